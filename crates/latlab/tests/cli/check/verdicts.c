/* Real-time programs that have no correct cycle, or are not allowed to be real-time. The first argument names
 * what is wrong; marks tell the lines. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static struct timespec now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time;
}

/* Runs for three seconds without a system call. */
static void compute(void)
{
	struct timespec begin = now();

	while (now().tv_sec - begin.tv_sec < 3)
		;
}

static void wait_until(struct timespec *time)
{
	time->tv_nsec += 1000000;
	if (time->tv_nsec >= 1000000000) {
		time->tv_nsec -= 1000000000;
		time->tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, time, 0);
}

/* The time is one of CLOCK_MONOTONIC. */
NOINLINE void wait_on_another_clock(void)
{
	struct timespec time = now();

	for (int i = 0; i < 20000; i++)
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, 0); /* mark: spin */
}

NOINLINE void poll_without_reading(void)
{
	struct pollfd event = { eventfd(1, 0), POLLIN, 0 };

	for (int i = 0; i < 20000; i++)
		poll(&event, 1, -1); /* mark: poll */
}

static void receive(void)
{
	int sockets[2];
	char byte;
	struct timeval time = { 0, 1 };
	struct timespec next = now();

	socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets);
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	for (int i = 0; i < 50; i++) {
		wait_until(&next);
		recv(sockets[0], &byte, 1, 0);
	}
}

static void loop(void)
{
	struct timespec time = now();

	for (;;)
		wait_until(&time);
}

static void *rest(void *unused)
{
	return unused;
}

/* Asks for what an ordinary user may not have. */
static void want(void)
{
	struct rlimit none = { 0, 0 };
	struct sched_param priority = { 80 };
	pthread_attr_t attributes;
	pthread_t thread;

	setrlimit(RLIMIT_RTPRIO, &none);
	setrlimit(RLIMIT_MEMLOCK, &none);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority); /* mark: want */
	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_RR);
	pthread_attr_setschedparam(&attributes, &priority);
	pthread_create(&thread, &attributes, rest, 0);
	mlockall(MCL_CURRENT);
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "";
	struct sched_param priority = { 60 };

	if (!strcmp(fault, "want")) {
		want();
		return 0;
	}
	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		return 9;
	if (!strcmp(fault, "busy"))
		compute();
	else if (!strcmp(fault, "spin"))
		wait_on_another_clock();
	else if (!strcmp(fault, "poll"))
		poll_without_reading();
	else if (!strcmp(fault, "timeout"))
		receive();
	else
		loop();
	return 0;
}
