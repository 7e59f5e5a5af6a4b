/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The longest sections of a run in which no thread can be scheduled, and its interrupts. */
#ifndef LATLAB_PLUGIN_SECTIONS_H
#define LATLAB_PLUGIN_SECTIONS_H

#include <stdio.h>

#include "block.h"

/* Notes that the block at `address` has this role; whether there was room. */
bool add_role(uint64_t address, char role);
/* Notes the stubs of device interrupts, which all have one symbol. */
void set_stubs(uint64_t begin, uint64_t end);
/* The role of the block at an address, 0 for most. */
char role_of(uint64_t address);

/* A block begins. `now` is the number of instructions before it. */
void enter_block(const struct block *block, uint64_t now);
/* The first instructions of a block were executed; it began at `now`. */
void leave_block(const struct block *block, uint64_t executed, uint64_t now);
/* An instruction changed the preemption counter, which is at this address. */
void learn_counter(uint64_t address);
/* An instruction of the current block added to a variable at an address. */
void note_addition(uint64_t address, int32_t by);
/* The CPU halts. */
void halt_cpu(const struct block *block, uint64_t now);
/* The warm-up is over: what was seen before does not count. */
void begin_sections(void);
/* A program read the clock. */
void read_clock(uint64_t now);
/* A sample was taken; `idle` is the guest's time minus its instructions. */
void end_sample(uint64_t index, int64_t idle);
/* The guest's time minus its instructions, known at the end of an interrupt. */
void set_idle(int64_t idle);
/* Where all of it is written. */
void write_sections_to(FILE *file);

#endif
