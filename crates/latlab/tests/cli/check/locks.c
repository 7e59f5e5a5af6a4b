/* A loop of 2 ms and SCHED_FIFO 60 needs a lock that a thread without a real-time policy holds for half of the
 * time, in a loop of its own. The argument says which: "write" or "read" hold a read-write lock for that, and the
 * loop reads or writes; "inherit" holds a mutex with priority inheritance. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD = 2 * 1000 * 1000, CYCLES = 200 };

static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t mutex;
static volatile int ended;
static char kind;

static void *hold(void *unused)
{
	struct timespec held = { .tv_nsec = PERIOD }, pause = { .tv_nsec = PERIOD / 2 };

	prctl(PR_SET_NAME, "holder");
	while (!ended) {
		if (kind == 'w')
			pthread_rwlock_wrlock(&shared);
		else if (kind == 'r')
			pthread_rwlock_rdlock(&shared);
		else
			pthread_mutex_lock(&mutex);
		nanosleep(&held, 0);
		if (kind == 'i')
			pthread_mutex_unlock(&mutex);
		else
			pthread_rwlock_unlock(&shared);
		nanosleep(&pause, 0);
	}
	return unused;
}

static void __attribute__((noinline)) update(void)
{
	if (kind == 'i') {
		pthread_mutex_lock(&mutex); /* mark: inherit */
		pthread_mutex_unlock(&mutex);
		return;
	}
	if (kind == 'w')
		pthread_rwlock_rdlock(&shared); /* mark: write */
	else
		pthread_rwlock_wrlock(&shared); /* mark: read */
	pthread_rwlock_unlock(&shared);
}

int main(int count, char **words)
{
	struct sched_param priority = { .sched_priority = 60 };
	pthread_mutexattr_t inherits;
	struct timespec next;
	pthread_t holder;

	kind = words[1][0];
	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&mutex, &inherits);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	pthread_create(&holder, 0, hold, 0);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int i = 0; i < CYCLES; i++) {
		next.tv_nsec += PERIOD;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
		update();
	}
	ended = 1;
	pthread_join(holder, 0);
	return count != 2;
}
