/* Real-time programs, each with one fault in its cycle; marks tell the lines. On arm64 the start of a
 * function grows the stack. The first argument names the fault; `none`, `timer`, `busy` and `calls` are
 * correct, `endless` logs for ever, `dies` until it is aborted, `hangs` waits for a mutex of its own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CYCLES 200
#define PERIOD 2000000
#define NOINLINE __attribute__((noinline))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;
static volatile char *page;
static FILE *file;

static void spin(long ns)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < ns);
}

NOINLINE void touch_page(void)
{
	*page = 1; /* mark: fault */
}

/* The page is there, but may not be written: it is the page of zeros. */
NOINLINE void write_private_page(void)
{
	*page = 1; /* mark: copy */
}

NOINLINE void grow_stack(int depth)
{ /* mark on arm64: stack */
	volatile char frame[4096] = { depth }; /* mark: stack */

	if (depth)
		grow_stack(depth - 1);
	(void)frame[0];
}

NOINLINE void allocate(void)
{
	void *memory = malloc(1 << 20); /* mark: allocation */

	__asm__ volatile("" : : "r"(memory));
	free(memory);
}

NOINLINE void log_state(void)
{
	fprintf(file, "state\n");
	fflush(file); /* mark: file-io */
}

NOINLINE void rest(void)
{
	usleep(100); /* mark: sleep */
}

NOINLINE void update(void)
{
	pthread_mutex_lock(&mutex); /* mark: inversion */
	pthread_mutex_unlock(&mutex);
}

NOINLINE void pin(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus); /* mark: syscall */
}

NOINLINE void compute(void)
{
	spin(1000000);
}

NOINLINE void hang(void)
{
	spin(3 * PERIOD);
}

/* Holds the mutex most of the time, and tells each time that it does. */
static void *hold(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&mutex);
		sem_post(&semaphore);
		usleep(5000);
		pthread_mutex_unlock(&mutex);
		usleep(1000);
	}
	return unused;
}

static void *post(void *unused)
{
	for (int i = 0; i < CYCLES; i++) {
		usleep(2000);
		sem_post(&semaphore);
	}
	return unused;
}

static void *work(void *unused)
{
	for (;;)
		spin(PERIOD);
	return unused;
}

static void *call(void *unused)
{
	for (;;)
		getppid();
	return unused;
}

static void be_ordinary(pthread_attr_t *attributes)
{
	struct sched_param ordinary = { 0 };

	pthread_attr_init(attributes);
	pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attributes, SCHED_OTHER);
	pthread_attr_setschedparam(attributes, &ordinary);
	pthread_attr_setstacksize(attributes, 1 << 16);
}

static void advance(struct timespec *time)
{
	time->tv_nsec += PERIOD;
	if (time->tv_nsec >= 1000000000) {
		time->tv_nsec -= 1000000000;
		time->tv_sec++;
	}
}

static void act(const char *fault, int cycle)
{
	if (!strcmp(fault, "dies") && cycle == CYCLES / 2)
		abort();
	if (!strcmp(fault, "hangs") && cycle == CYCLES / 2) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_lock(&mutex);
	}
	if (!strcmp(fault, "fault")) {
		page += 4096;
		touch_page();
	} else if (!strcmp(fault, "copy")) {
		page += 4096;
		write_private_page();
	} else if (!strcmp(fault, "stack")) {
		if (cycle == 50)
			grow_stack(60);
	} else if (!strcmp(fault, "allocation")) {
		allocate();
	} else if (!strcmp(fault, "file-io") || !strcmp(fault, "endless") || !strcmp(fault, "dies")) {
		log_state();
	} else if (!strcmp(fault, "sleep")) {
		rest();
	} else if (!strcmp(fault, "inversion")) {
		update();
	} else if (!strcmp(fault, "syscall")) {
		pin();
	} else if (!strcmp(fault, "overrun") || !strcmp(fault, "shared-cpu")) {
		compute();
	} else if (!strcmp(fault, "catch-up")) {
		if (cycle % 50 == 49)
			hang();
	}
}

NOINLINE void wait_for_time(const char *fault, struct timespec *time)
{
	struct timespec period = { 0, PERIOD };

	if (!strcmp(fault, "drift")) {
		nanosleep(&period, 0); /* mark: drift */
	} else if (!strcmp(fault, "wall-clock")) {
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, time, 0); /* mark: wall-clock */
	} else if (!strcmp(fault, "waker")) {
		sem_wait(&semaphore); /* mark: waker */
	} else {
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, time, 0);
		if (!strcmp(fault, "pause")) {
			period.tv_nsec = 100000;
			clock_nanosleep(CLOCK_MONOTONIC, 0, &period, 0); /* mark: pause */
		}
	}
}

static void run(const char *fault)
{
	struct timespec time;
	struct itimerspec each = { { 0, PERIOD }, { 0, PERIOD } };
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), cycles = CYCLES;
	unsigned long expired;

	if (!strcmp(fault, "timer")) {
		timerfd_settime(timer, 0, &each, 0);
		for (int i = 0; i < CYCLES; i++)
			if (read(timer, &expired, sizeof(expired)) < 0)
				return;
		return;
	}
	clock_gettime(strcmp(fault, "wall-clock") ? CLOCK_MONOTONIC : CLOCK_REALTIME, &time);
	/* Enough for a wait of which the kernel reports neither the start nor the end. */
	if (!strcmp(fault, "calls"))
		cycles = 5 * CYCLES;
	for (int i = 0; i < cycles || !strcmp(fault, "endless"); i++) {
		advance(&time);
		wait_for_time(fault, &time);
		act(fault, i);
	}
}

static void *beat(void *unused)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	time.tv_nsec += PERIOD / 4;
	for (int i = 0; i < CYCLES; i++) {
		advance(&time);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
		spin(200000);
	}
	return unused;
}

static void set_up(const char *fault)
{
	pthread_attr_t ordinary;
	pthread_t thread;

	be_ordinary(&ordinary);
	file = tmpfile();
	if (!strcmp(fault, "not-locked"))
		return;
	mlockall(strcmp(fault, "lock-future") && strcmp(fault, "fault") && strcmp(fault, "copy") &&
		 strcmp(fault, "stack") ? MCL_CURRENT | MCL_FUTURE : MCL_CURRENT);
	page = mmap(0, (CYCLES + 1) * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!strcmp(fault, "copy"))
		for (int i = 0; i <= CYCLES; i++)
			(void)page[i * 4096];
	/* A busy machine may let the thread wait for a CPU until the last cycle. */
	if (!strcmp(fault, "inversion")) {
		pthread_create(&thread, &ordinary, hold, 0);
		sem_wait(&semaphore);
	}
	if (!strcmp(fault, "waker"))
		pthread_create(&thread, &ordinary, post, 0);
	/* The timer then interrupts a task of lower priority. */
	if (!strcmp(fault, "busy"))
		pthread_create(&thread, &ordinary, work, 0);
	/* The timer then interrupts it in a system call. */
	if (!strcmp(fault, "calls"))
		pthread_create(&thread, &ordinary, call, 0);
}

static void *run_in_thread(void *fault)
{
	run(fault);
	return 0;
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "none";
	struct sched_param priority = { 60 };
	pthread_t thread;

	/* The child process is the real-time program. */
	if (!strcmp(fault, "forks")) {
		if (fork())
			return wait(0) < 0;
		fault = "fault";
	}
	if (!strcmp(fault, "executes"))
		return execl("/proc/self/exe", "faults", "fault", (char *)0);
	pin();
	sem_init(&semaphore, 0, 0);
	set_up(fault);
	if (!strcmp(fault, "ordinary"))
		return 0;
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		return 9;
	if (!strcmp(fault, "shared-cpu")) {
		priority.sched_priority = 70;
		pthread_create(&thread, 0, beat, 0);
		pthread_setschedparam(thread, SCHED_FIFO, &priority);
	}
	/* The main thread ends before the one that is real-time. */
	if (!strcmp(fault, "outlived")) {
		pthread_create(&thread, 0, run_in_thread, "file-io");
		pthread_exit(0);
	}
	/* The second thread gets the stack of the first. */
	if (!strcmp(fault, "successor")) {
		for (int i = 0; i < 2; i++) {
			pthread_create(&thread, 0, run_in_thread, "drift");
			pthread_join(thread, 0);
		}
		return 0;
	}
	run(fault);
	return 0;
}
