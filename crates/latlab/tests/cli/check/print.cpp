/* A real-time program in C++ that prints its state in each tenth cycle. */
#include <iostream>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

static void log_state(int cycle)
{
	std::cout << "state " << cycle << std::endl; /* mark: print */
}

int main()
{
	struct sched_param priority = { 60 };
	struct timespec time;

	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		return 9;
	clock_gettime(CLOCK_MONOTONIC, &time);
	for (int cycle = 0; cycle < 200; cycle++) {
		time.tv_nsec += 2000000;
		if (time.tv_nsec >= 1000000000) {
			time.tv_nsec -= 1000000000;
			time.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
		if (cycle % 10 == 0)
			log_state(cycle);
	}
}
