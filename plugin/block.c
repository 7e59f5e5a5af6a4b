// SPDX-License-Identifier: GPL-2.0-or-later
/* Decodes the instructions that matter from their bytes (Intel SDM, volume 2). */
#include <stdlib.h>
#include <string.h>

#include "block.h"

/* An instruction without its prefixes. */
struct code {
	const uint8_t *op;
	size_t length;
	bool gs;
};

static struct code code_of(const struct qemu_plugin_insn *insn)
{
	struct code code = { qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn), false };

	while (code.length > 1 && (memchr("\x2e\x3e\x64\x65\x66\x67\xf0\xf2\xf3", *code.op, 9) ||
				   (*code.op & 0xf0) == 0x40)) {
		code.gs |= *code.op == 0x65;
		code.op++;
		code.length--;
	}
	return code;
}

static bool is(const struct code *code, const char *bytes, size_t length)
{
	return code->length >= length && !memcmp(code->op, bytes, length);
}

#define IS(code, bytes) is(code, bytes, sizeof(bytes) - 1)

static int32_t number(const uint8_t *bytes)
{
	int32_t number;

	memcpy(&number, bytes, sizeof(number));
	return number;
}

bool is_mark(const struct qemu_plugin_insn *insn, const char *mark)
{
	const uint8_t *bytes = qemu_plugin_insn_data(insn);

	return qemu_plugin_insn_size(insn) == 8 && !memcmp(bytes, "\x0f\x1f\x84\x00", 4) &&
	       !memcmp(bytes + 4, mark, 4);
}

enum drop drop_of(const struct qemu_plugin_insn *insn)
{
	struct code code = code_of(insn);
	uint8_t modrm = code.length > 2 ? code.op[2] : 0, reg = modrm >> 3 & 7;

	if (IS(&code, "\x0f\x22") && (reg == 3 || reg == 4))
		return reg == 3 ? DROP_USER : DROP_ALL;
	if (IS(&code, "\x0f\x01") && reg == 7 && modrm >> 6 != 3)
		return DROP_PAGE;
	return IS(&code, "\x0f\x38\x82") ? DROP_ALL : DROP_NOTHING;
}

/*
 * The APIC page is at a fixed kernel address, 0xffffffffff5f.000, and is
 * recognized by all but the last two bytes of the address.
 */
bool ends_interrupt(const struct qemu_plugin_insn *insn)
{
	struct code code = code_of(insn);

	if (code.length < 6 || !(*code.op == 0xc7 || *code.op == 0x89 || *code.op == 0x87))
		return false;
	for (size_t i = 2; i + 4 <= code.length && i <= 3; i++)
		if (((uint32_t)number(code.op + i) >> 16) == 0xff5f)
			return true;
	return false;
}

/* Returns what is added to the preemption counter at `address`, else 0. */
static int32_t preemption(const struct code *code, uint64_t next, uint64_t address)
{
	uint8_t op = code->op[0], modrm = code->length > 5 ? code->op[1] : 0;
	int32_t by, sign = (modrm >> 3 & 7) == 5 ? -1 : 1;

	if (!address || !code->gs || code->length < 6)
		return 0;
	if (op == 0xff && (modrm == 0x05 || modrm == 0x0d))
		by = modrm == 0x05 ? 1 : -1;
	else if (op == 0x01 && (modrm & 0xc7) == 0x05)
		/* A register only in __local_bh_enable_ip(cnt), which subtracts cnt - 1. */
		by = -(0x200 - 1);
	else if (op == 0x83 && (modrm == 0x05 || modrm == 0x2d) && code->length == 7)
		by = sign * (int8_t)code->op[6];
	else if (op == 0x81 && (modrm == 0x05 || modrm == 0x2d) && code->length == 10)
		by = sign * number(code->op + 6);
	else
		return 0;
	return next + (int64_t)number(code->op + 2) == address ? by : 0;
}

/*
 * Returns whether an instruction passes the second argument 0x201 to the function called
 * next. That is __local_bh_enable_ip() at the release of a lock, which subtracts one
 * more there than preemption() can know: 0x200 disables softirqs, 1 is the lock's.
 */
static bool releases_lock(const struct qemu_plugin_tb *tb, size_t i)
{
	const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
	struct code next;

	/* With a prefix it is another register. */
	if (qemu_plugin_insn_size(insn) != 5 ||
	    memcmp(qemu_plugin_insn_data(insn), "\xbe\x01\x02\x00\x00", 5))
		return false;
	/* QEMU may end a block anywhere. */
	if (i + 1 == qemu_plugin_tb_n_insns(tb))
		return true;
	next = code_of(qemu_plugin_tb_get_insn(tb, i + 1));
	return *next.op == 0xe8 || *next.op == 0xe9;
}

int32_t indirect_addition(const struct qemu_plugin_insn *insn)
{
	struct code code = code_of(insn);
	uint8_t modrm = code.length > 1 ? code.op[1] : 0, reg = modrm >> 3 & 7;

	/* Relative to the instruction, or no memory. */
	if (!code.gs || code.length < 2 || (modrm & 0xc7) == 0x05 || modrm >> 6 == 3)
		return 0;
	if (code.op[0] == 0xff && reg <= 1)
		return reg ? -1 : 1;
	if (code.op[0] == 0x83 && (reg == 0 || reg == 5))
		return (reg ? -1 : 1) * (int8_t)code.op[code.length - 1];
	return 0;
}

/* Returns whether the instruction returns from the kernel to user space. */
static bool leaves(const struct code *code)
{
	return code->op[0] == 0xcf || IS(code, "\x0f\x07") || IS(code, "\x0f\x35");
}

/* Returns the event of an instruction; for most its kind is 0. */
static struct event event_of(const struct qemu_plugin_insn *insn, uint64_t preempt_count)
{
	struct code code = code_of(insn);
	uint64_t next = qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn);
	struct event event = { 0 };
	uint8_t op = code.op[0];
	bool indirect = op == 0xff && code.length > 1;
	/* Calls over a single byte fill the return stack buffer and never return. */
	bool direct = op == 0xe8 && code.length == 5 && number(code.op + 1) != 1;

	if (direct || (indirect && (code.op[1] >> 3 & 7) == 2))
		event.kind = CALL;
	else if (op == 0xc3 || op == 0xc2)
		event.kind = RETURN;
	else if (leaves(&code))
		event.kind = LEAVE;
	else if (op == 0xfa)
		event.kind = INTERRUPTS_OFF;
	else if (op == 0xfb)
		event.kind = INTERRUPTS_ON;
	else if (op == 0x9d)
		event.kind = RESTORE;
	else if ((event.by = preemption(&code, next, preempt_count)))
		event.kind = PREEMPT;
	return event;
}

/* Returns whether the instruction determines the next address itself. */
static bool jumps(const struct code *code)
{
	uint8_t op = code->op[0];
	bool conditional = (op & 0xf0) == 0x70 || (op == 0x0f && (code->op[1] & 0xf0) == 0x80);
	bool call = op == 0xe8 || op == 0xe9 || op == 0xeb || op == 0xc3 || op == 0xc2;
	bool indirect = op == 0xff && ((code->op[1] >> 3 & 7) == 2 || (code->op[1] >> 3 & 7) == 4);

	return conditional || call || indirect || IS(code, "\x0f\x05");
}

/* Returns the memory accesses of a jump: to the stack, and to its target address; else 0. */
static uint64_t touches(const struct code *code)
{
	uint8_t op = code->op[0], modrm = code->length > 1 ? code->op[1] : 0;
	bool call = op == 0xff && (modrm >> 3 & 7) == 2, jump = op == 0xff && (modrm >> 3 & 7) == 4;

	return (op == 0xe8 || op == 0xc3 || op == 0xc2 || call) + ((call || jump) && modrm >> 6 != 3);
}

/*
 * Returns whether a block that ends here ends because its page does: QEMU translates
 * neither beyond the page nor an instruction that might reach into the next one.
 */
static bool ends_page(uint64_t next)
{
	const uint64_t page = 0x1000, longest = 15;

	return next % page == 0 || next % page > page - longest;
}

struct block *block_of(const struct qemu_plugin_tb *tb, uint64_t preempt_count)
{
	size_t length = qemu_plugin_tb_n_insns(tb);
	/* Never freed: QEMU does not report when it drops a translation. */
	struct block *block = malloc(sizeof(*block) + length * sizeof(struct event));
	const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, length - 1);
	struct code code = code_of(last);

	if (!block)
		abort();
	*block = (struct block){ .length = length };
	block->address = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
	block->last = qemu_plugin_insn_vaddr(last);
	block->halts = code.op[0] == 0xf4 || IS(&code, "\x0f\x01\xc9");
	block->touches = touches(&code);
	/* The kernel's own code is always present. */
	block->fetches = is_kernel(block->address)
				 ? leaves(&code)
				 : jumps(&code) ||
					   ends_page(block->last + qemu_plugin_insn_size(last));
	block->reads_clock = !is_kernel(block->address) && (IS(&code, "\x0f\x31") || IS(&code, "\x0f\x01\xf9"));
	for (size_t i = 0; i < length && is_kernel(block->address); i++) {
		struct event event = event_of(qemu_plugin_tb_get_insn(tb, i), preempt_count);

		if (preempt_count && releases_lock(tb, i))
			event = (struct event){ .kind = PREEMPT, .by = -1 };
		event.after = i + 1;
		if (event.kind)
			block->event[block->events++] = event;
	}
	return block;
}
