// SPDX-License-Identifier: GPL-2.0-or-later
/* Models of two processors' caches and TLBs. See README.md for sources and limits. */
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define KIB(size, number_of_ways) { .sets = (size) * 1024 / 64 / (number_of_ways), .ways = number_of_ways }
#define ENTRIES(number, number_of_ways) { .sets = (number) / (number_of_ways), .ways = number_of_ways }

struct processor processors[PROCESSORS] = {
	{
		.name = "Pentium 4",
		.code_tlb = ENTRIES(128, 4),
		.data_tlb = ENTRIES(64, 64),
		.splits_code_pages = true,
		.code = KIB(16, 8),
		.data = KIB(8, 4),
		.second = KIB(512, 8),
	},
	{
		.name = "Skylake",
		.code_tlb = ENTRIES(128, 8),
		.data_tlb = ENTRIES(64, 4),
		.second_tlb = ENTRIES(1536, 12),
		.code = KIB(32, 8),
		.data = KIB(32, 8),
		.second = KIB(256, 4),
		.third = KIB(8192, 16),
	},
};

static void reset(struct cache *cache)
{
	free(cache->entries);
	cache->entries = calloc((size_t)cache->sets * cache->ways + 1, sizeof(uint64_t));
	if (!cache->entries)
		abort();
}

void reset_processor(struct processor *processor)
{
	reset(&processor->code_tlb);
	reset(&processor->data_tlb);
	reset(&processor->second_tlb);
	reset(&processor->code);
	reset(&processor->data);
	reset(&processor->second);
	reset(&processor->third);
	processor->walks = processor->first_misses = 0;
	processor->second_misses = processor->third_misses = 0;
}

/* An entry is its number plus 1. Those of a set come first, 0 fills the rest. */
bool use(struct cache *cache, uint64_t number)
{
	uint64_t *set = cache->entries + (number & (cache->sets - 1)) * cache->ways;
	uint64_t entry = number + 1, previous = entry;

	for (uint32_t way = 0; way < cache->ways; way++) {
		uint64_t here = set[way];

		set[way] = previous;
		if (here == entry || !here)
			return here == entry;
		previous = here;
	}
	return false;
}

/*
 * The page of an address: its number in pages of 4 KiB, or one of 2 MiB, marked by bit 52.
 * Linux maps all memory, and the kernel's code, with pages of 2 MiB
 * (Documentation/arch/x86/x86_64/mm.rst); everything else counts as pages of 4 KiB.
 */
static uint64_t page_of(uint64_t address, bool split)
{
	bool memory = address >= 0xffff888000000000 && address < 0xffffc88000000000;
	bool kernel = address >= 0xffffffff80000000 && address < 0xffffffffa0000000;

	return (memory || kernel) && !split ? address >> 21 | 1ul << 52 : address >> 12;
}

/* Whether a page belongs to the kernel, whose pages are global: bit 63 of its addresses is set. */
static bool is_global(uint64_t page)
{
	return page >> 51;
}

void access_memory(struct processor *processor, uint64_t address, uint64_t physical, bool is_code)
{
	uint64_t page = page_of(address, is_code && processor->splits_code_pages);
	uint64_t line = physical / 64;

	if (!use(is_code ? &processor->code_tlb : &processor->data_tlb, page))
		processor->walks += !use(&processor->second_tlb, page);
	if (use(is_code ? &processor->code : &processor->data, line))
		return;
	processor->first_misses++;
	if (use(&processor->second, line))
		return;
	processor->second_misses++;
	processor->third_misses += !use(&processor->third, line);
}

static void drop(struct cache *tlb, bool all)
{
	for (uint32_t set = 0; set < tlb->sets; set++) {
		uint64_t *entries = tlb->entries + set * tlb->ways;
		uint32_t kept = 0;

		for (uint32_t way = 0; way < tlb->ways; way++)
			if (entries[way] && !all && is_global(entries[way] - 1))
				entries[kept++] = entries[way];
		memset(entries + kept, 0, (tlb->ways - kept) * sizeof(*entries));
	}
}

void drop_translations(struct processor *processor, bool all)
{
	drop(&processor->code_tlb, all);
	drop(&processor->data_tlb, all);
	drop(&processor->second_tlb, all);
}
