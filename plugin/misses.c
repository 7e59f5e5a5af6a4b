// SPDX-License-Identifier: GPL-2.0-or-later
/* Feeds the models of caches and TLBs with what a guest executes. See README.md. */
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "misses.h"
#include "model.h"

/* A line of code, or a part of it. */
struct line {
	uint64_t address;
	uint64_t physical;
};

/* The lines of a block, in order. */
struct lines {
	size_t number;
	struct line line[];
};

/* Physical addresses of pages, as QEMU told them; `page` 0 is none. */
#define KNOWN 1024
static struct {
	uint64_t page;
	uint64_t physical;
} known[KNOWN];

static bool counting;
static FILE *file;

bool can_count_misses(void)
{
	return qemu_ram_addr_from_host;
}

static void access_line(uint64_t address, uint64_t physical, bool is_code)
{
	for (size_t i = 0; i < PROCESSORS; i++)
		access_memory(&processors[i], address, physical, is_code);
}

static void on_code(unsigned int cpu, void *data)
{
	const struct lines *lines = data;

	(void)cpu;
	for (size_t i = 0; counting && i < lines->number; i++)
		access_line(lines->line[i].address, lines->line[i].physical, true);
}

static void access_data(qemu_plugin_meminfo_t info, uint64_t address)
{
	/* Not 0, also for the first page. */
	uint64_t page = address >> 12 | 1ul << 52;

	if (known[page % KNOWN].page != page) {
		struct qemu_plugin_hwaddr *place = qemu_plugin_get_hwaddr(info, address);

		if (!place || qemu_plugin_hwaddr_is_io(place))
			return;
		known[page % KNOWN].page = page;
		known[page % KNOWN].physical = qemu_plugin_hwaddr_phys_addr(place) & ~0xffful;
	}
	access_line(address, known[page % KNOWN].physical | (address & 0xfff), false);
}

static void on_data(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	uint64_t last = address + (1ul << qemu_plugin_mem_size_shift(info)) - 1;

	(void)cpu;
	(void)data;
	if (!counting)
		return;
	access_data(info, address);
	if (last / 64 != address / 64)
		access_data(info, last);
}

/* Before an instruction that drops translations. */
static void on_drop(unsigned int cpu, void *data)
{
	enum drop drop = (enum drop)(uintptr_t)data;

	(void)cpu;
	memset(known, 0, sizeof(known));
	for (size_t i = 0; counting && drop != DROP_PAGE && i < PROCESSORS; i++)
		drop_translations(&processors[i], drop == DROP_ALL);
}

static void on_begin(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	for (size_t i = 0; i < PROCESSORS; i++)
		reset_processor(&processors[i]);
	counting = true;
}

static void write_down(const struct processor *it)
{
	fprintf(file, "misses %lu TLB misses of a modelled %s\n", it->walks, it->name);
	fprintf(file, "misses %lu L1 cache misses of a modelled %s\n", it->first_misses, it->name);
	fprintf(file, "misses %lu L2 cache misses of a modelled %s\n", it->second_misses, it->name);
	if (it->third.ways)
		fprintf(file, "misses %lu L3 cache misses of a modelled %s\n", it->third_misses,
			it->name);
}

static void on_end(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	for (size_t i = 0; counting && i < PROCESSORS; i++)
		write_down(&processors[i]);
	fflush(file);
	counting = false;
}

/* Adds the lines of an instruction, unless the one before ended in the same line. */
static void add(struct lines *lines, const struct qemu_plugin_insn *insn)
{
	uint64_t address = qemu_plugin_insn_vaddr(insn);
	uint64_t last = address + qemu_plugin_insn_size(insn) - 1;
	uint64_t before = lines->number ? lines->line[lines->number - 1].address / 64 : ~0ul;
	uint64_t physical = qemu_ram_addr_from_host(qemu_plugin_insn_haddr(insn));

	if (physical == ~0ul)
		return;
	if (address / 64 != before)
		lines->line[lines->number++] = (struct line){ address, physical };
	/* Whatever follows on another page has a block of its own, or is in the next instruction. */
	if (last / 64 != address / 64 && last / 4096 == address / 4096)
		lines->line[lines->number++] = (struct line){ last, physical + (last - address) };
}

static struct lines *lines_of(const struct qemu_plugin_tb *tb)
{
	size_t length = qemu_plugin_tb_n_insns(tb);
	/* Never freed, as a block. */
	struct lines *lines = malloc(sizeof(*lines) + 2 * length * sizeof(struct line));

	if (!lines)
		abort();
	lines->number = 0;
	for (size_t i = 0; i < length; i++)
		add(lines, qemu_plugin_tb_get_insn(tb, i));
	return lines;
}

void count_misses(struct qemu_plugin_tb *tb, FILE *out)
{
	file = out;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_code,
					     QEMU_PLUGIN_CB_NO_REGS, lines_of(tb));
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		enum drop drop = drop_of(insn);

		qemu_plugin_register_vcpu_mem_cb(insn, on_data, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, NULL);
		if (drop)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_drop,
							       QEMU_PLUGIN_CB_NO_REGS,
							       (void *)(uintptr_t)drop);
		if (is_mark(insn, "latb"))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		if (is_mark(insn, "late"))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}
