/* What a mark costs: 200 cycles of 10 ms at SCHED_FIFO 80, each with 100 parts. Prints the median time of
 * a mark, in nanoseconds, from the times of cycles. docs/results/check.md has the figures. */
#define _GNU_SOURCE
#include <latlab-mark.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { CYCLES = 200, PERIOD = 10000000, MARKS = 200 };

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	const long *first = a, *second = b;

	return (*first > *second) - (*first < *second);
}

int main(int argc, char **argv)
{
	/* So many times the marks of a cycle, as those that are not watched take no time to speak of. */
	int turns = argc > 1 ? atoi(argv[1]) : 1;
	static long took[CYCLES];
	struct sched_param priority = { 80 };
	long due = now();

	if (mlockall(MCL_CURRENT | MCL_FUTURE) || sched_setscheduler(0, SCHED_FIFO, &priority)) {
		perror("marks");
		return 1;
	}
	for (int cycle = 0; cycle < CYCLES; cycle++) {
		struct timespec time;

		due += PERIOD;
		time = (struct timespec){ due / 1000000000, due % 1000000000 };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
		took[cycle] = now();
		for (int part = 0; part < turns * MARKS / 2; part++) {
			latlab_begin("part", part);
			latlab_end("part");
		}
		took[cycle] = now() - took[cycle];
	}
	qsort(took, CYCLES, sizeof(*took), ascending);
	fprintf(stderr, "mark %.2f\n", (double)took[CYCLES / 2] / (turns * MARKS));
	return 0;
}
