// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Traces every instruction of a guest, and writes what was executed before
 * chosen samples, without taking guest time. See README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "misses.h"
#include "qemu.h"
#include "sections.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* One block, executed once or repeatedly; without a block, idle time. */
struct run {
	struct block *block;
	/* Instructions of each execution; for idle time, nanoseconds. */
	uint64_t executed;
	uint64_t times;
};

#define RING (1u << 20)
static struct run ring[RING];
/* Number of runs so far. The ring holds the last of them. */
static uint64_t runs;

/* Instructions started, and those among them that were started twice. */
static uint64_t begun;
static uint64_t repeated;

/* Memory accesses by last instructions of blocks. */
static uint64_t touched;

/* The block being executed, and `begun` and `touched` at its entry. */
static struct block *current;
static uint64_t entered;
static uint64_t untouched;

/* `runs` at a program's last clock reading. */
static uint64_t clock_read;
/* The guest's time minus its instructions, at the last query. */
static int64_t idle_before;
static bool looked;
/* The run that stands for the time since the CPU halted. */
static uint64_t halted;
static bool is_halted;
/* Last difference of time and instructions without idle time, and `runs` at that point. */
static uint64_t apart;
static uint64_t apart_at;

#define MOST 64
struct wanted {
	uint64_t nth;
	uint64_t latency;
};
static struct wanted wanted[MOST];
static size_t wants;
static uint64_t marks;

static uint64_t faults[MOST];
static size_t n_faults;
static uint64_t preempt_count;
static bool counts_misses;
static bool finds_sections;
static FILE *out;

static void push(struct block *block, uint64_t executed)
{
	struct run *last = &ring[(runs - 1) % RING];

	if (runs && block && last->block == block && last->executed == executed) {
		last->times++;
		return;
	}
	ring[runs++ % RING] = (struct run){ block, executed, 1 };
}

static bool is_fault(uint64_t address)
{
	for (size_t i = 0; i < n_faults; i++)
		if (faults[i] == address)
			return true;
	return false;
}

/*
 * The current block is over, and `next` follows. A faulting instruction was
 * started and will be started again; QEMU counts it once. If the whole block was
 * executed, either its last instruction faulted or the one after it, on a page
 * that is not present. It was the last instruction if it touched memory less often
 * than when it completes.
 */
static void close_current(const struct block *next)
{
	uint64_t executed = begun - entered, touches = touched - untouched;
	uint64_t began = entered - repeated;
	bool whole = executed == current->length;
	bool through = whole && current->fetches && touches >= current->touches;

	if (is_fault(next->address) && executed && !through) {
		executed--;
		repeated++;
		whole = false;
	} else if (whole && !is_kernel(current->address) && !is_kernel(next->address) &&
		   touches > current->touches) {
		/* Before a kernel block, QEMU may have counted the accesses of an interrupt. */
		current->touches = touches;
	}
	if (executed)
		push(current, executed);
	if (finds_sections)
		leave_block(current, executed, began);
	if (whole && current->reads_clock) {
		clock_read = runs;
		read_clock(began + executed);
	}
	if (whole && current->halts) {
		if (finds_sections)
			halt_cpu(current, began + executed);
		push(NULL, 0);
		halted = runs - 1;
		is_halted = true;
	}
}

static void on_block(unsigned int cpu, void *data)
{
	struct block *block = data;

	(void)cpu;
	if (current)
		close_current(block);
	current = block;
	entered = begun;
	untouched = touched;
	if (finds_sections)
		enter_block(block, begun - repeated);
}

/*
 * The end of an interrupt, the only point in each where the guest's time may be
 * queried. Time that advanced beyond the instructions was idle time.
 */
static void on_end_of_interrupt(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address,
				void *data)
{
	int64_t idle = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) - (int64_t)(begun - repeated);

	(void)cpu;
	(void)info;
	(void)address;
	(void)data;
	if (is_halted && looked && runs - halted < RING)
		ring[halted % RING].executed = idle - idle_before;
	if (!is_halted && looked && idle != idle_before) {
		apart = llabs(idle - idle_before);
		apart_at = runs;
		/* Where a snapshot was restored, time was added before. */
		if (finds_sections && marks)
			fprintf(out, "apart %lu\n", apart);
	}
	is_halted = false;
	looked = true;
	idle_before = idle;
	set_idle(idle);
}

static void describe(struct block *block, uint64_t nth)
{
	if (block->told == nth)
		return;
	block->told = nth;
	fprintf(out, "block %p %lx %u", (void *)block, block->address, block->length);
	for (size_t i = 0; i < block->events; i++) {
		const struct event *event = &block->event[i];

		fprintf(out, " %u%c", event->after, event->kind);
		if (event->kind == PREEMPT)
			fprintf(out, "%d", event->by);
	}
	fputc('\n', out);
}

/* Writes what was executed up to the last clock reading. */
static void write_down(const struct wanted *sample)
{
	uint64_t first = clock_read, sum = 0;
	uint64_t oldest = runs > RING ? runs - RING : 0;

	while (first > oldest && sum < sample->latency) {
		const struct run *run = &ring[--first % RING];

		/* Its length is not known yet. */
		if (is_halted && first == halted)
			break;
		sum += run->executed * run->times;
	}
	fprintf(out, "sample %lu %lu %lu\n", sample->nth, sample->latency,
		apart_at > first ? apart : 0);
	for (uint64_t i = first; i < clock_read; i++)
		if (ring[i % RING].block)
			describe(ring[i % RING].block, sample->nth);
	for (uint64_t i = first; i < clock_read; i++) {
		const struct run *run = &ring[i % RING];

		if (run->block)
			fprintf(out, "run %p %lu %lu\n", (void *)run->block, run->executed, run->times);
		else
			fprintf(out, "idle %lu\n", run->executed);
	}
	fputs("end\n", out);
	fflush(out);
}

static void on_mark(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	marks++;
	if (finds_sections)
		end_sample(marks, idle_before);
	for (size_t i = 0; i < wants; i++)
		if (wanted[i].nth == marks)
			write_down(&wanted[i]);
}

static void on_begin(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	begin_sections();
}

static void on_counter(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	(void)cpu;
	(void)info;
	(void)data;
	learn_counter(address);
}

static void on_addition(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *by)
{
	/* QEMU also reports the read before the write of one instruction. */
	static uint64_t noted;

	(void)cpu;
	(void)info;
	if (begun != noted)
		note_addition(address, (intptr_t)by);
	noted = begun;
}

/* Follows the preemption counter where its address is in a register. */
static void follow_counter(struct qemu_plugin_tb *tb, const struct block *block)
{
	for (size_t i = 0; i < block->events; i++)
		if (block->event[i].kind == PREEMPT)
			qemu_plugin_register_vcpu_mem_cb(
				qemu_plugin_tb_get_insn(tb, block->event[i].after - 1), on_counter,
				QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W, NULL);
	for (size_t i = 0; i < block->length && is_kernel(block->address); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		intptr_t by = indirect_addition(insn);

		if (by)
			qemu_plugin_register_vcpu_mem_cb(insn, on_addition, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_W, (void *)by);
	}
}

static void trace(struct qemu_plugin_tb *tb)
{
	struct block *block = block_of(tb, preempt_count);

	block->role = role_of(block->address);
	if (finds_sections)
		follow_counter(tb, block);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, block);
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
							   &begun, 1);
		if (i + 1 == qemu_plugin_tb_n_insns(tb))
			qemu_plugin_register_vcpu_mem_inline(insn, QEMU_PLUGIN_MEM_RW,
							     QEMU_PLUGIN_INLINE_ADD_U64, &touched,
							     1);
		if (is_mark(insn, "latl"))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		if (finds_sections && is_mark(insn, "latm"))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		if (ends_interrupt(insn) && qemu_clock_get_ns)
			qemu_plugin_register_vcpu_mem_cb(insn, on_end_of_interrupt,
							 QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_W, NULL);
	}
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	if (wants || finds_sections)
		trace(tb);
	if (counts_misses)
		count_misses(tb, out);
}

/* Returns the text after `key` if `word` begins with it. */
static const char *value(const char *word, const char *key)
{
	size_t length = strlen(key);

	return strncmp(word, key, length) ? NULL : word + length;
}

static bool understand(const char *word)
{
	const char *text;
	uint64_t begin, end;
	char role;

	if ((text = value(word, "out="))) {
		out = fopen(text, "w");
		return out;
	}
	if ((text = value(word, "fault=")) && n_faults < MOST) {
		faults[n_faults++] = strtoull(text, NULL, 16);
		return true;
	}
	if ((text = value(word, "preempt="))) {
		preempt_count = strtoull(text, NULL, 16);
		return true;
	}
	if ((text = value(word, "role=")))
		return sscanf(text, "%lx:%c", &begin, &role) == 2 && add_role(begin, role);
	if ((text = value(word, "stubs="))) {
		if (sscanf(text, "%lx:%lx", &begin, &end) != 2)
			return false;
		set_stubs(begin, end);
		return true;
	}
	if (!strcmp(word, "sections=on"))
		return finds_sections = qemu_clock_get_ns;
	if (!strcmp(word, "misses=on"))
		return counts_misses = can_count_misses();
	if ((text = value(word, "sample=")) && wants < MOST)
		return sscanf(text, "%lu:%lu", &wanted[wants].nth, &wanted[wants].latency) == 2 &&
		       ++wants;
	return false;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int words,
					   char **word)
{
	if (strcmp(info->target_name, "x86_64") || info->system.smp_vcpus != 1) {
		fputs("latlab's plugin supports only x86-64 machines with one CPU\n", stderr);
		return -1;
	}
	for (int i = 0; i < words; i++) {
		if (!understand(word[i])) {
			fprintf(stderr, "latlab's plugin: invalid argument '%s'\n", word[i]);
			return -1;
		}
	}
	if (!out || !(wants || counts_misses || finds_sections)) {
		fputs("latlab's plugin needs out=FILE, and sample=NUMBER:LATENCY, misses=on or "
		      "sections=on\n",
		      stderr);
		return -1;
	}
	write_sections_to(out);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
