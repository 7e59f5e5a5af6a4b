/* A real-time loop: 1000 cycles of 2 ms. With an argument, it touches a new page of memory in every
 * tenth cycle, which latlab check reports.
 *
 *   cc -g -O2 -o my-loop loop.c
 *   latlab check -- ./my-loop
 *   latlab check -- ./my-loop faulty
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define PERIOD 2000000

__attribute__((noinline)) static void touch_new_page(void)
{
	volatile char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*page = 1;
}

int main(int argc, char **argv)
{
	struct sched_param priority = { .sched_priority = 70 };
	struct timespec time;

	(void)argv;
	/* Pages are locked now, and those of later mappings too, unless a fault is wanted. */
	if (mlockall(argc > 1 ? MCL_CURRENT : MCL_CURRENT | MCL_FUTURE) ||
	    sched_setscheduler(0, SCHED_FIFO, &priority)) {
		perror("memory can't be locked, or SCHED_FIFO is not allowed");
		return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &time);
	for (int cycle = 0; cycle < 1000; cycle++) {
		time.tv_nsec += PERIOD;
		if (time.tv_nsec >= 1000000000) {
			time.tv_nsec -= 1000000000;
			time.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
		if (argc > 1 && cycle % 10 == 0)
			touch_new_page();
	}
	return 0;
}
