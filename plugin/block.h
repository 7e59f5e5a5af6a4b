/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks of instructions as QEMU translates them, with their properties. */
#ifndef LATLAB_PLUGIN_BLOCK_H
#define LATLAB_PLUGIN_BLOCK_H

#include "qemu.h"

enum kind {
	CALL = 'c',
	RETURN = 'r',
	/* Return from an interrupt, or to user space. */
	LEAVE = 'l',
	INTERRUPTS_OFF = 'd',
	INTERRUPTS_ON = 'e',
	/* Flags restored from memory, including the interrupt flag. */
	RESTORE = 'p',
	/* The preemption counter changes. */
	PREEMPT = 'n',
};

struct event {
	/* Number of instructions of the block completed at the event. */
	uint16_t after;
	char kind;
	int32_t by;
};

struct block {
	uint64_t address;
	uint64_t last;
	uint32_t length;
	/* The last instruction halts the CPU. */
	bool halts;
	/* Memory accesses of the last instruction, as far as known. */
	uint64_t touches;
	/* The next instruction may be on a page that is not present. */
	bool fetches;
	/* The last instruction reads the clock, in user space. */
	bool reads_clock;
	/* The sample for which the block was last written. */
	uint64_t told;
	/* Its role in sections, 0 for most. */
	char role;
	size_t events;
	struct event event[];
};

/* What an instruction drops from the TLBs. */
enum drop {
	DROP_NOTHING,
	/* One page (INVLPG), whose address the plugin does not see. */
	DROP_PAGE,
	/* All but global pages: CR3 is written. */
	DROP_USER,
	/* Everything: CR4 is written, or INVPCID. */
	DROP_ALL,
};

/* Returns whether an address is in the kernel's half. */
static inline bool is_kernel(uint64_t address)
{
	return address >> 63;
}

/* `preempt_count` is the address of the preemption counter, 0 if unknown. */
struct block *block_of(const struct qemu_plugin_tb *tb, uint64_t preempt_count);
/* Returns whether the instruction is this mark of latlab's, of four letters. */
bool is_mark(const struct qemu_plugin_insn *insn, const char *mark);
/* Returns which translations the instruction drops. */
enum drop drop_of(const struct qemu_plugin_insn *insn);
/*
 * Returns what the instruction adds to a variable of the CPU whose address is in a
 * register, which may be the preemption counter; for most 0.
 */
int32_t indirect_addition(const struct qemu_plugin_insn *insn);
/* Returns whether it writes to the local APIC's page, as the end of each interrupt does. */
bool ends_interrupt(const struct qemu_plugin_insn *insn);

#endif
