/* A real-time loop with marks of the parts of its cycle. The argument says what is special about them. */
#define _GNU_SOURCE
#include <latlab-mark.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { CYCLES = 200, PERIOD = 2000000 };

static const char *kind;

static void compute(int turns)
{
	for (volatile int turn = 0; turn < turns; turn++)
		;
}

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void *other_thread(void *unused)
{
	latlab_end("control");
	return unused;
}

static void cycle(int number)
{
	latlab_begin("read", number);
	compute(number == 150 ? 3000 : 1000);
	latlab_end("read");
	latlab_begin("control", number);
	/* 5000 turns before: a fast processor needs less for them than for the caches of the first part. */
	compute(20000);
	latlab_begin("filter", -number);
	compute(20000);
	latlab_end("filter");
	if (!strcmp(kind, "allocation"))
		munmap(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
	if (!strcmp(kind, "overrun") && number == 100)
		for (long end = now() + 10 * PERIOD; now() < end;)
			;
	if (strcmp(kind, "without-end"))
		latlab_end("control");
	if (!strcmp(kind, "without-begin"))
		latlab_end("unknown");
	for (int part = 0; !strcmp(kind, "many") && part < 1100 && number < 20; part++) {
		latlab_begin("many", part);
		latlab_end("many");
	}
}

int main(int argc, char **argv)
{
	struct sched_param priority = { 80 };
	struct timespec time;
	pthread_t thread;

	kind = argc > 1 ? argv[1] : "none";
	if (mlockall(MCL_CURRENT | MCL_FUTURE) || sched_setscheduler(0, SCHED_FIFO, &priority)) {
		perror("marks");
		return 1;
	}
	if (!strcmp(kind, "other-thread") && !pthread_create(&thread, 0, other_thread, 0))
		pthread_join(thread, 0);
	clock_gettime(CLOCK_MONOTONIC, &time);
	for (int number = 0; number < CYCLES; number++) {
		time.tv_nsec += PERIOD;
		if (time.tv_nsec >= 1000000000) {
			time.tv_nsec -= 1000000000;
			time.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
		cycle(number);
	}
	return 0;
}
