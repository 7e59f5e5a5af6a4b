/* What a cycle of a 1 kHz loop costs its CPU: an ordinary thread reads the clock all the time, and
 * prints the median of the gaps in which the loop ran, from its timer interrupt until it sleeps. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define CYCLES 2000
#define PERIOD 1000000

static atomic_int cycle;

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void *loop(void *unused)
{
	struct sched_param priority = { 60 };
	struct timespec time;

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority))
		exit(9);
	clock_gettime(CLOCK_MONOTONIC, &time);
	while (cycle < CYCLES) {
		time.tv_nsec += PERIOD;
		if (time.tv_nsec >= 1000000000) {
			time.tv_nsec -= 1000000000;
			time.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
		cycle++;
	}
	return unused;
}

static int ascending(const void *one, const void *other)
{
	long a = *(const long *)one, b = *(const long *)other;

	return (a > b) - (a < b);
}

int main(void)
{
	static long gaps[CYCLES];
	int seen = 0, count = 0;
	pthread_t thread;
	cpu_set_t cpus;
	long last;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (pthread_create(&thread, 0, loop, 0))
		return 9;
	last = now();
	while (seen < CYCLES) {
		int done = cycle;
		long time = now();

		if (done == seen + 1)
			gaps[count++] = time - last;
		seen = done;
		last = time;
	}
	pthread_join(thread, 0);
	qsort(gaps, count, sizeof(*gaps), ascending);
	fprintf(stderr, "%d gaps, median %ld ns\n", count, gaps[count / 2]);
	return 0;
}
