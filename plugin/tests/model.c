// SPDX-License-Identifier: GPL-2.0-or-later
/* Compares the models with a naive one that keeps the time of each entry's last use: make test */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../model.h"

#define MOST 8192
struct naive {
	uint32_t number;
	struct {
		uint64_t number, used;
	} entry[MOST];
};

static uint64_t now, state = 88172645463325252;

/* Marsaglia 2003, xorshift64. */
static uint64_t chance(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static bool use_naive(struct naive *naive, const struct cache *shape, uint64_t number)
{
	uint32_t in_set = 0, oldest = 0;

	for (uint32_t i = 0; i < naive->number; i++) {
		if (naive->entry[i].number == number) {
			naive->entry[i].used = ++now;
			return true;
		}
		if (naive->entry[i].number % shape->sets != number % shape->sets)
			continue;
		if (!in_set++ || naive->entry[i].used < naive->entry[oldest].used)
			oldest = i;
	}
	if (in_set < shape->ways)
		oldest = naive->number++;
	naive->entry[oldest].number = number;
	naive->entry[oldest].used = ++now;
	return false;
}

static void drop_naive(struct naive *naive, bool all)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < naive->number; i++)
		if (!all && naive->entry[i].number >> 51)
			naive->entry[kept++] = naive->entry[i];
	naive->number = kept;
}

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	printf("the model differs: %s\n", what);
	exit(1);
}

/* Half of all numbers are among few, so that there are hits in every shape. */
static uint64_t number_for(const struct cache *shape)
{
	uint64_t size = shape->sets * shape->ways;

	return chance(2) ? chance(size / 2 + 1) : chance(4 * size);
}

static void check_cache(struct cache *cache, const char *what)
{
	static struct naive naive;

	naive.number = 0;
	for (int i = 0; cache->ways && i < 20000; i++) {
		uint64_t number = number_for(cache);

		check(use(cache, number) == use_naive(&naive, cache, number), what);
	}
}

/* User pages and global pages, with drops of either kind. */
static void check_tlb(struct processor *processor, struct cache *tlb, const char *what)
{
	static struct naive naive;

	reset_processor(processor);
	naive.number = 0;
	for (int i = 0; tlb->ways && i < 50000; i++) {
		uint64_t page = number_for(tlb) | (chance(2) ? 1ul << 51 : 0);
		uint64_t drops = chance(500);

		if (drops < 2) {
			drop_translations(processor, drops);
			drop_naive(&naive, drops);
		}
		check(use(tlb, page) == use_naive(&naive, tlb, page), what);
	}
}

/* Counts of a few accesses, found by hand. */
static void check_processor(struct processor *processor)
{
	const uint64_t user = 0x400000, text = 0xffffffff81000000, heap = 0xffff888001000000;
	bool splits = processor->splits_code_pages;

	reset_processor(processor);
	access_memory(processor, user, 0x1000, false);
	access_memory(processor, user + 64, 0x1040, false);
	check(processor->walks == 1 && processor->second_misses == 2, "two lines of a page");
	access_memory(processor, heap, 0x1000, false);
	check(processor->walks == 2 && processor->first_misses == 2, "one line, two addresses");
	access_memory(processor, heap + 0x1ff000, 0x200000, false);
	check(processor->walks == 2 && processor->third_misses == 3, "one large page");
	access_memory(processor, text, 0x300000, true);
	access_memory(processor, text + 0x1000, 0x301000, true);
	check(processor->walks == (splits ? 4 : 3), "large pages of code");
	processor->walks = 0;
	drop_translations(processor, false);
	access_memory(processor, heap, 0x1000, false);
	check(processor->walks == 0, "global pages stay");
	access_memory(processor, user, 0x1000, false);
	check(processor->walks == 1, "pages of user space go");
	drop_translations(processor, true);
	access_memory(processor, heap, 0x1000, false);
	check(processor->walks == 2 && processor->second_misses == 5, "all go");
	access_memory(processor, heap, 0x1000, true);
	check(processor->first_misses == 6 && processor->second_misses == 5, "code has its own cache");
}

int main(void)
{
	for (struct processor *it = processors; it < processors + PROCESSORS; it++) {
		reset_processor(it);
		check_cache(&it->code, "cache of code");
		check_cache(&it->data, "cache of data");
		check_cache(&it->second, "second cache");
		check_tlb(it, &it->code_tlb, "TLB of code");
		check_tlb(it, &it->data_tlb, "TLB of data");
		check_tlb(it, &it->second_tlb, "second TLB");
		check_processor(it);
	}
	return 0;
}
