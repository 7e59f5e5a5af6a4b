/* A real-time thread at 1 kHz that prints what a cycle takes: the mean latency until its wait returned,
 * and its mean CPU time, in nanoseconds. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define CYCLES 2000
#define PERIOD 1000000

static long long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(void)
{
	struct sched_param priority = { 80 };
	long long due, latency = 0, used;

	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		return 9;
	due = now(CLOCK_MONOTONIC);
	used = now(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < CYCLES; i++) {
		due += PERIOD;
		struct timespec time = { due / 1000000000, due % 1000000000 };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
		latency += now(CLOCK_MONOTONIC) - due;
	}
	used = now(CLOCK_THREAD_CPUTIME_ID) - used;
	fprintf(stderr, "latency %lld used %lld\n", latency / CYCLES, used / CYCLES);
	return 0;
}
