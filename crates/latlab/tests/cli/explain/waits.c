/* Programs that wait for a known reason. The first argument says for which. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void sleep_until(long long at)
{
	struct timespec time = {at / 1000000000, at % 1000000000};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
}

static void compute(long long ns)
{
	for (long long end = now() + ns; now() < end;)
		;
}

static void run_on(int pid, int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(pid, sizeof(cpus), &cpus);
}

static int begin(const char *name, int cpu, int priority)
{
	int pid = fork();
	struct sched_param fifo = {priority};

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, 9);
	prctl(PR_SET_NAME, name);
	run_on(0, cpu);
	if (priority && sched_setscheduler(0, SCHED_FIFO, &fifo))
		exit(1);
	return 0;
}

/* The victim sleeps for milliseconds on CPU 1, where a task of higher priority computes for 200 ms of each 500.
 * After 100 ms of these, another moves it to CPU 0, and back in the end. Prints the PID of the victim. */
static void moved(void)
{
	int victim = begin("victim", 1, 0);

	if (!victim)
		for (;;)
			usleep(1000);
	printf("%d\n", victim);
	fflush(stdout);
	long long at = now() + 100000000;

	if (!begin("hog", 1, 40))
		for (;; at += 500000000) {
			sleep_until(at);
			compute(200000000);
		}
	run_on(0, 0);
	for (;; at += 500000000) {
		sleep_until(at + 100000000);
		run_on(victim, 0);
		sleep_until(at + 400000000);
		run_on(victim, 1);
	}
}

/* A loop of 5 ms, and a task beside it that uses up the quota of both. */
static void capped(void)
{
	run_on(0, 0);
	if (!begin("burner", 0, 0))
		for (;;)
			;
	for (long long at = now();; at += 5000000) {
		sleep_until(at);
		compute(100000);
		if (now() > at + 5000000)
			at = now();
	}
}

/* A loop of 1 ms that is never long. */
static void loop(void)
{
	for (long long at = now();; at += 1000000)
		sleep_until(at);
}

int main(int count, char **arguments)
{
	const char *reason = count > 1 ? arguments[1] : "";

	if (!strcmp(reason, "moved"))
		moved();
	if (!strcmp(reason, "capped"))
		capped();
	if (!strcmp(reason, "loop"))
		loop();
	return 1;
}
