/* Tasks that sleep until a time and compute for a time, by the clock that latlab's records have. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static long long read_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static void sleep_until(long long at)
{
	struct timespec time = {at / 1000000000, at % 1000000000};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
}

/* Has the CPU for that long: what other tasks take meanwhile does not count. */
static void compute(long long ns)
{
	for (long long end = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns;
	     read_clock(CLOCK_THREAD_CPUTIME_ID) < end;)
		;
}

static void run_on(int pid, int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(pid, sizeof(cpus), &cpus);
}

/* Starts a process that ends with this one. Returns its PID here, and 0 there. */
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
