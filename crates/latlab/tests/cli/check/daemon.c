/* A program that becomes a daemon: it forks twice and ends. The daemon starts a process, which becomes
 * real-time only after a while and logs in each cycle: for half a second or, with the argument `endless`, for
 * ever. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static FILE *file;

NOINLINE void log_state(void)
{
	fprintf(file, "state\n");
	fflush(file); /* mark: log */
}

static int work(int endless)
{
	struct sched_param priority = { 60 };
	struct timespec time;

	mlockall(MCL_CURRENT | MCL_FUTURE);
	file = tmpfile();
	usleep(300000);
	if (!file || sched_setscheduler(0, SCHED_FIFO, &priority))
		return 9;
	clock_gettime(CLOCK_MONOTONIC, &time);
	for (int cycle = 0; cycle < 250 || endless; cycle++) {
		time.tv_nsec += 2000000;
		if (time.tv_nsec >= 1000000000) {
			time.tv_nsec -= 1000000000;
			time.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
		log_state();
	}
	return 0;
}

int main(int argc, char **argv)
{
	int endless = argc > 1 && !strcmp(argv[1], "endless");

	if (fork())
		return 0;
	setsid();
	if (fork())
		return 0;
	if (!fork())
		return work(endless);
	return wait(0) < 0;
}
