/* A real-time loop of 2 ms whose cycles overrun for a known cause, which the first argument names.
 * Causes in the kernel need the test driver (kmod/). */
#define _GNU_SOURCE
#include "../../../../../kmod/latlab.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CYCLES 150
#define PERIOD 2000000L
#define PRIORITY 40
#define PAGES 8192
#define NOINLINE __attribute__((noinline))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile char *page;
static int driver;

static unsigned long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000UL + time.tv_nsec;
}

static void spin(long ns)
{
	unsigned long end = now() + ns;

	while (now() < end)
		;
}

/* Holds the mutex for more than a period. */
static void *hold(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&mutex);
		spin(3 * PERIOD / 2);
		pthread_mutex_unlock(&mutex);
		usleep(20000);
	}
	return unused;
}

static void *compute(void *unused)
{
	for (;;)
		spin(PERIOD);
	return unused;
}

/* Has the kernel not preemptible, or interrupts disabled, for more than a period. */
static void *disable(void *cause)
{
	for (;;) {
		struct latlab_inject delay = {
			.at = now(),
			.until = now() + 3 * PERIOD / 2,
			.cause = cause ? LATLAB_INTERRUPTS_OFF : LATLAB_PREEMPTION_OFF,
		};

		if (ioctl(driver, LATLAB_IOC_INJECT, &delay))
			_exit(8);
		usleep(20000);
	}
	return 0;
}

/* Takes the driver's mutex, and holds it for so long. */
static void take_kernel_mutex(unsigned long ns)
{
	struct latlab_inject delay = { .at = now(), .until = now() + ns, .cause = LATLAB_MUTEX };

	if (ioctl(driver, LATLAB_IOC_INJECT, &delay))
		_exit(8);
}

static void *hold_kernel_mutex(void *unused)
{
	for (;;) {
		take_kernel_mutex(3 * PERIOD / 2);
		usleep(20000);
	}
	return unused;
}

/* Has a device interrupt, whose handler takes long. */
static void *interrupt(void *unused)
{
	for (;;) {
		struct latlab_arm arm = { .source = LATLAB_DEVICE,
					  .flags = LATLAB_AT_ONCE,
					  .busy = 900000 };

		if (ioctl(driver, LATLAB_IOC_ARM, &arm))
			_exit(8);
		usleep(5000);
	}
	return unused;
}

/* Computes at a higher priority. */
static void *disturb(void *unused)
{
	struct sched_param priority = { PRIORITY + 10 };

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
	for (;;) {
		usleep(20000);
		spin(3 * PERIOD / 2);
	}
	return unused;
}

NOINLINE static void touch_pages(int cycle)
{
	for (int i = 0; cycle % 50 == 10 && i < PAGES / 8; i++)
		*(page += 4096) = 1; /* mark: fault */
}

NOINLINE static void lock(void)
{
	pthread_mutex_lock(&mutex); /* mark: mutex */
	pthread_mutex_unlock(&mutex);
}

static void act(const char *cause, int cycle)
{
	if (!strcmp(cause, "fault"))
		touch_pages(cycle);
	else if (!strcmp(cause, "mutex"))
		lock();
	else if (!strcmp(cause, "kernel-mutex"))
		take_kernel_mutex(0);
	else if (!strcmp(cause, "throttled"))
		spin(PERIOD - PERIOD / 50);
	else if (!strcmp(cause, "interrupt") || !strcmp(cause, "higher-priority"))
		spin(13 * PERIOD / 16);
	else if (!strcmp(cause, "program") && cycle % 50 == 10)
		spin(2 * PERIOD);
}

static void start(void *(*run)(void *), void *argument)
{
	struct sched_param ordinary = { 0 };
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
	pthread_attr_setschedparam(&attributes, &ordinary);
	pthread_create(&thread, &attributes, run, argument);
}

static void plant(const char *cause)
{
	driver = open("/dev/latlab", O_RDWR);
	if (!strcmp(cause, "mutex"))
		start(hold, 0);
	else if (!strcmp(cause, "kernel-mutex"))
		start(hold_kernel_mutex, 0);
	else if (!strcmp(cause, "throttled"))
		start(compute, 0);
	else if (!strcmp(cause, "preemption-off"))
		start(disable, 0);
	else if (!strcmp(cause, "interrupts-off"))
		start(disable, &driver);
	else if (!strcmp(cause, "interrupt"))
		start(interrupt, 0);
	else if (!strcmp(cause, "higher-priority"))
		start(disturb, 0);
}

int main(int argc, char **argv)
{
	const char *cause = argc > 1 ? argv[1] : "";
	int cycles = strcmp(cause, "throttled") ? CYCLES : 6 * CYCLES;
	struct sched_param priority = { PRIORITY };
	unsigned long due;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	mlockall(MCL_CURRENT);
	page = mmap(0, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	plant(cause);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		return 9;
	due = now();
	for (int cycle = 0; cycle < cycles; cycle++) {
		/* Missed periods are skipped. */
		do
			due += PERIOD;
		while (due < now());
		struct timespec time = { due / 1000000000, due % 1000000000 };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
		act(cause, cycle);
	}
	return 0;
}
