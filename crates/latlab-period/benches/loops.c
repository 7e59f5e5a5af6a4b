/* Loops compared: the library's, one of relative sleeps, and one as cyclictest has it. Each records when
 * its cycles start, against when they should: whole periods after the first.
 *
 *   loops library|spinning|relative|absolute PERIOD_US CYCLES
 *
 * docs/results/2026-11-period.md has the figures, and the command.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <latlab-period.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SECOND 1000000000LL

static int64_t time_of(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static struct timespec timespec_of(int64_t time)
{
	return (struct timespec){ time / SECOND, time % SECOND };
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* What the loops without the library need to be real-time. */
static void prepare(void)
{
	struct sched_param priority = { .sched_priority = 80 };

	if (mlockall(MCL_CURRENT | MCL_FUTURE) || sched_setscheduler(0, SCHED_FIFO, &priority)) {
		perror("root is needed");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	const char *kind = argc == 4 ? argv[1] : "";
	int64_t period = argc == 4 ? atol(argv[2]) * 1000 : 0, missed = 0;
	long cycles = argc == 4 ? atol(argv[3]) : 0;
	int64_t *starts = calloc(cycles + 1, sizeof(*starts)), first, drift, cpu, sum = 0;
	struct latlab_period_settings settings = {
		.period_ns = period, .policy = LATLAB_FIFO, .priority = 80,
		.spin_at_most_ns = strcmp(kind, "spinning") ? 0 : 20000000,
	};
	struct latlab_period *library = 0;
	struct latlab_period_summary summary = { 0 };
	struct timespec next, sleep;

	if (period <= 0 || cycles <= 0 || !starts)
		return 2;
	memset(starts, 1, (cycles + 1) * sizeof(*starts));
	if (!strcmp(kind, "library") || !strcmp(kind, "spinning")) {
		library = latlab_period_start(&settings);
		if (!library) {
			perror(settings.failed);
			return 1;
		}
	} else {
		prepare();
	}
	cpu = time_of(CLOCK_THREAD_CPUTIME_ID);
	first = time_of(CLOCK_MONOTONIC);
	sleep = timespec_of(period);
	for (long cycle = 0; cycle <= cycles; cycle++) {
		if (library) {
			missed += latlab_period_wait(library);
		} else if (!strcmp(kind, "relative")) {
			clock_nanosleep(CLOCK_MONOTONIC, 0, &sleep, 0);
		} else {
			next = timespec_of(first + (cycle + 1) * period);
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
		}
		starts[cycle] = time_of(CLOCK_MONOTONIC);
	}
	cpu = time_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
	drift = starts[cycles] - starts[0] - (cycles + missed) * period;
	if (library) {
		latlab_period_summary(library, &summary);
		latlab_period_end(library);
	}
	/* Jitter: how much longer or shorter than a period the time between two starts is. */
	for (long cycle = 0; cycle < cycles; cycle++) {
		starts[cycle] = llabs(starts[cycle + 1] - starts[cycle] - period);
		sum += starts[cycle];
	}
	qsort(starts, cycles, sizeof(*starts), compare);
	printf("%s period_us %s cycles %ld missed %" PRId64 " drift_ns %" PRId64
	       " jitter_mean_ns %" PRId64 " jitter_p99_ns %" PRId64 " jitter_max_ns %" PRId64
	       " cpu_ns_per_cycle %" PRId64 " late_max_ns %" PRIu64 " spin_ns %" PRIu64 "\n",
	       kind, argv[2], cycles, missed, drift, sum / cycles, starts[cycles * 99 / 100],
	       starts[cycles - 1], cpu / (cycles + 1), summary.lateness_max_ns, summary.spin_ns);
	return 0;
}
