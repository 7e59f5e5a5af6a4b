/*
 * Measures as in the paper. `pdlt SOURCE MODE,POINTS,OFFSET...` prints "PDLT IRT" in ns for each loop
 * of 482 us with this mode and number of preemption points, interrupted at this offset in ns. SOURCE is
 * 0 for the timer and 1 for the device.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "latlab.h"

#define LENGTH_NS 482000
#define LEAD_NS 200000

static int fd;
static volatile int done;
static struct latlab_wait came;
static __u64 woken;

static __u64 now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void set_priority(int priority)
{
	struct sched_param parameter = { .sched_priority = priority };

	if (sched_setscheduler(0, SCHED_FIFO, &parameter))
		perror("sched_setscheduler");
}

static void *producer(void *argument)
{
	struct latlab_wait wait = { 0 };

	set_priority(90);
	while (!ioctl(fd, LATLAB_IOC_WAIT, &wait)) {
		woken = now();
		came = wait;
		done = 1;
	}
	return argument;
}

static int measure(__u64 offset, __u32 source, struct latlab_run *run)
{
	struct latlab_arm arm = { .time = now() + LEAD_NS + offset, .source = source };

	done = 0;
	if (ioctl(fd, LATLAB_IOC_ARM, &arm))
		return -1;
	while (now() < arm.time - offset)
		;
	if (ioctl(fd, LATLAB_IOC_RUN, run))
		return -1;
	while (!done)
		usleep(100);
	printf("%lld %lld\n", (long long)(woken - came.time), (long long)(came.served - came.time));
	return came.time == arm.time ? 0 : -1;
}

int main(int count, char **words)
{
	static struct latlab_run run;
	struct latlab_version version;
	pthread_t thread;
	__u64 offset;
	int word;

	fd = open("/dev/latlab", O_RDWR);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (count < 2 || fd < 0 || ioctl(fd, LATLAB_IOC_VERSION, &version))
		return 1;
	run.iterations = version.iterations_per_second / 1000 * LENGTH_NS / 1000000;
	set_priority(50);
	pthread_create(&thread, NULL, producer, NULL);
	usleep(10000);
	/* Warm-up: the first measurement has cold caches. */
	if (measure(1000, atoi(words[1]), &run))
		return 1;
	for (word = 2; word < count; word++) {
		if (sscanf(words[word], "%u,%u,%llu", &run.mode, &run.points, &offset) != 3)
			return 1;
		if (measure(offset, atoi(words[1]), &run))
			return 1;
	}
	fflush(stdout);
	_exit(0);
}
