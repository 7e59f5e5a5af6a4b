/* Real-time programs that differ in the memory which they lock or protect. `page` locks one page, `current`
 * what is mapped when it locks, `all` everything. `protected` locks everything, and each tenth cycle writes to a
 * page that may not be accessed until a signal handler has made it accessible, as at a safepoint of a garbage
 * collector. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define NOINLINE __attribute__((noinline))

static char *page;
static char own[PAGE] __attribute__((aligned(PAGE)));

static void open_page(int signal)
{
	mprotect(page, PAGE, PROT_READ | PROT_WRITE); /* mark: open */
	(void)signal;
}

NOINLINE void poll_safepoint(void)
{
	*(volatile char *)page = 1; /* mark: poll */
}

static void lock(const char *kind)
{
	if (!strcmp(kind, "page"))
		mlock(own, PAGE);
	else
		mlockall(!strcmp(kind, "current") ? MCL_CURRENT : MCL_CURRENT | MCL_FUTURE);
	page = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(volatile char *)page = 1;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "all";
	struct sched_param priority = { 60 };
	struct timespec time;

	lock(kind);
	signal(SIGSEGV, open_page);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		return 9;
	clock_gettime(CLOCK_MONOTONIC, &time);
	for (int cycle = 0; cycle < 500; cycle++) {
		time.tv_nsec += 2000000;
		if (time.tv_nsec >= 1000000000) {
			time.tv_nsec -= 1000000000;
			time.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
		if (!strcmp(kind, "protected") && cycle % 10 == 5)
			mprotect(page, PAGE, PROT_NONE); /* mark: close */
		poll_safepoint();
	}
	return 0;
}
