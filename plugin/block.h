/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks of instructions as QEMU translates them, and what is to know of each. */
#ifndef LATLAB_PLUGIN_BLOCK_H
#define LATLAB_PLUGIN_BLOCK_H

#include "qemu.h"

enum kind {
	CALL = 'c',
	RETURN = 'r',
	/* Back from an interrupt, or to a program. */
	LEAVE = 'l',
	INTERRUPTS_OFF = 'd',
	INTERRUPTS_ON = 'e',
	/* Flags out of memory: interrupts are as they were. */
	RESTORE = 'p',
	/* The preemption counter changes. */
	PREEMPT = 'n',
};

struct event {
	/* So many instructions of the block are through then. */
	uint16_t after;
	char kind;
	int32_t by;
};

struct block {
	uint64_t address;
	uint64_t last;
	uint32_t length;
	/* What the last instruction does. */
	bool halts;
	/* How often it touches memory, as far as that is known. */
	uint64_t touches;
	/* What follows may lie on a page that is not there. */
	bool fetches;
	/* It is of a program, not of the kernel. */
	bool reads_clock;
	/* The sample for which it was last described. */
	uint64_t told;
	size_t events;
	struct event event[];
};

/* The upper half of all addresses is the kernel's. */
static inline bool is_kernel(uint64_t address)
{
	return address >> 63;
}

/* `preempt_count` is where the preemption counter lies; 0 where that is not known. */
struct block *block_of(const struct qemu_plugin_tb *tb, uint64_t preempt_count);
/* Whether latlab marks a sample with it. */
bool is_mark(const struct qemu_plugin_insn *insn);
/* Whether it writes into the local APIC's page, as the end of each interrupt does. */
bool ends_interrupt(const struct qemu_plugin_insn *insn);

#endif
