/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Models of two processors' caches and TLBs. README.md has sources and limits. */
#ifndef LATLAB_PLUGIN_MODEL_H
#define LATLAB_PLUGIN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* A set-associative cache or TLB that replaces the least recently used entry of a set. */
struct cache {
	/* A power of two; 0 if the processor has no such cache. */
	uint32_t sets;
	uint32_t ways;
	/* The entries of each set, most recently used first. */
	uint64_t *entries;
};

struct processor {
	const char *name;
	struct cache code_tlb, data_tlb, second_tlb;
	struct cache code, data, second, third;
	/* Whether the TLB of code has entries of 4 KiB for large pages, too. */
	bool splits_code_pages;
	/* Translations that no TLB had. */
	uint64_t walks;
	/* Lines that the caches up to this level did not have. */
	uint64_t first_misses, second_misses, third_misses;
};

#define PROCESSORS 2
extern struct processor processors[PROCESSORS];

/* Empties all caches and sets all counters to 0. To be called before anything else. */
void reset_processor(struct processor *processor);
/* Returns whether a cache has an entry, and loads it if not. `number` is below 2^63. */
bool use(struct cache *cache, uint64_t number);
/* An access to memory within one line of 64 bytes. */
void access_memory(struct processor *processor, uint64_t address, uint64_t physical, bool is_code);
/* Drops the translations of user space, or all. */
void drop_translations(struct processor *processor, bool all);

#endif
