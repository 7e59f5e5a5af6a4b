/* Misuses /dev/latlab in many ways. Prints each call that does not give the expected error, and "done". */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "latlab.h"

#define DEVICE "/dev/latlab"

static int fd;

static void expect(const char *what, int answer, int error)
{
	int got = answer < 0 ? errno : 0;

	if (got != error)
		printf("%s: %s instead of %s\n", what, strerror(got), strerror(error));
}

static __u64 now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static int run(__u64 iterations, __u32 points, __u32 mode, __u32 zero)
{
	static struct latlab_run run;

	run.iterations = iterations;
	run.points = points;
	run.mode = mode;
	run.zero = zero;
	return ioctl(fd, LATLAB_IOC_RUN, &run);
}

static int arm_busy(__u64 time, __u32 source, __u32 flags, __u64 busy)
{
	struct latlab_arm arm = {
		.time = time, .source = source, .flags = flags, .busy = busy,
	};

	return ioctl(fd, LATLAB_IOC_ARM, &arm);
}

static int arm(__u64 time, __u32 source, __u32 flags)
{
	return arm_busy(time, source, flags, 0);
}

static int wait_after(__u64 sequence)
{
	struct latlab_wait wait = { .sequence = sequence };

	return ioctl(fd, LATLAB_IOC_WAIT, &wait);
}

/* Returns the sequence number of the last interrupt. */
static __u64 last(void)
{
	struct latlab_wait wait = { .sequence = 0 };

	expect("the last interrupt", ioctl(fd, LATLAB_IOC_WAIT, &wait), 0);
	return wait.sequence;
}

static void *waiting(void *argument)
{
	expect("a wait without an interrupt", wait_after(0), ETIMEDOUT);
	return argument;
}

static void woken(int signal)
{
	(void)signal;
}

static void loops(void)
{
	struct latlab_version version;
	__u32 mode;

	expect("the version", ioctl(fd, LATLAB_IOC_VERSION, &version), 0);
	expect("no iterations", run(0, 0, 0, 0), EINVAL);
	expect("fewer iterations than parts", run(10, 10, 0, 0), EINVAL);
	expect("a loop that is too long", run(version.iterations_per_second + 1, 0, 0, 0), EINVAL);
	expect("the largest number of iterations", run(~0ull, 0, 0, 0), EINVAL);
	expect("too many points", run(1000000, LATLAB_MAX_POINTS + 1, 0, 0), EINVAL);
	expect("the largest number of points", run(1000000, ~0u, 0, 0), EINVAL);
	expect("an unknown mode", run(1000, 0, LATLAB_MODES, 0), EINVAL);
	expect("a reserved field that is not 0", run(1000, 0, 0, 1), EINVAL);
	expect("a null pointer", ioctl(fd, LATLAB_IOC_RUN, NULL), EFAULT);
	expect("an unknown call", ioctl(fd, _IO(0xEF, 0x7F), NULL), ENOTTY);
	for (mode = 0; mode < LATLAB_MODES; mode++)
		expect("LATLAB_MAX_POINTS", run(2000000, LATLAB_MAX_POINTS, mode, 0), 0);
}

static void interrupts(void)
{
	struct sigaction action = { .sa_handler = woken };
	pthread_t thread;

	expect("a time too far away", arm(now() + 2 * LATLAB_LONGEST_NS, 0, 0), EINVAL);
	expect("the largest time", arm(~0ull, 0, 0), EINVAL);
	expect("an unknown source", arm(0, LATLAB_SOURCES, 0), EINVAL);
	expect("a flag for a timer", arm(0, LATLAB_TIMER, LATLAB_THREADED), EINVAL);
	expect("an unknown flag", arm(0, LATLAB_DEVICE, 8), EINVAL);
	expect("a timer at once", arm(0, LATLAB_TIMER, LATLAB_AT_ONCE), EINVAL);
	pthread_create(&thread, NULL, waiting, NULL);
	usleep(100000);
	expect("a second wait", wait_after(0), EBUSY);
	pthread_join(thread, NULL);
	sigaction(SIGALRM, &action, NULL);
	alarm(1);
	expect("a wait that is interrupted", wait_after(0), EINTR);
	expect("a time in the past", arm(1, LATLAB_TIMER, 0), 0);
	expect("its interrupt", wait_after(0), 0);
	expect("the device", arm(0, LATLAB_DEVICE, 0), 0);
	expect("the device while it is armed", arm(0, LATLAB_DEVICE, 0), EBUSY);
	usleep(200000);
	expect("the device in a thread", arm(0, LATLAB_DEVICE, LATLAB_THREADED), 0);
	expect("the device's interrupt", wait_after(1), 0);
}

static void at_once(void)
{
	const __u32 threaded = LATLAB_AT_ONCE | LATLAB_THREADED;
	struct latlab_version version = { .device = 0 };
	__u64 seen = last();

	expect("the version of the device", ioctl(fd, LATLAB_IOC_VERSION, &version), 0);
	if (!version.device)
		return;
	expect("the device at once", arm(0, LATLAB_DEVICE, LATLAB_AT_ONCE), 0);
	expect("the interrupt of the device at once", wait_after(seen), 0);
	seen = last();
	expect("the device at once, in a thread", arm(0, LATLAB_DEVICE, threaded), 0);
	expect("the interrupt in a thread", wait_after(seen), 0);
	seen = last();
	expect("the first of two at once", arm(0, LATLAB_DEVICE, LATLAB_AT_ONCE), 0);
	expect("the second of two at once", arm(0, LATLAB_DEVICE, LATLAB_AT_ONCE), 0);
	expect("the interrupt of either", wait_after(seen), 0);
}

/* What is invalid has no effect on what is armed. */
static void repeated(void)
{
	const __u64 period = LATLAB_SHORTEST_PERIOD_NS;
	const __u32 threaded = LATLAB_PERIODIC | LATLAB_THREADED;
	struct latlab_version version = { .device = 0 };
	__u64 seen = last();

	expect("the version of the device", ioctl(fd, LATLAB_IOC_VERSION, &version), 0);
	if (!version.device)
		return;
	expect("a timer", arm(now() + 10000000, LATLAB_TIMER, 0), 0);
	expect("a period that is too short", arm(period - 1, LATLAB_DEVICE, threaded), EINVAL);
	expect("the interrupt of the timer", wait_after(seen), 0);
	expect("a periodic device", arm(50 * period, LATLAB_DEVICE, threaded), 0);
	expect("a handler that takes most of the period",
	       arm_busy(period, LATLAB_DEVICE, LATLAB_PERIODIC, period - 5000), EINVAL);
	seen = last();
	expect("another interrupt of the device", wait_after(seen), 0);
	expect("a handler that takes half of the period",
	       arm_busy(50 * period, LATLAB_DEVICE, LATLAB_PERIODIC, 25 * period), 0);
	seen = last();
	expect("its next interrupt", wait_after(seen), 0);
	expect("a timer instead of the device", arm(1, LATLAB_TIMER, 0), 0);
}

/* A busy handler delays the task that armed it, before the interrupt is reported. */
static void keep_busy(const char *what, __u32 source, __u32 flags)
{
	const __u64 busy = LATLAB_BUSIEST_NS, most = busy + 100000;
	struct latlab_wait wait = { .sequence = last() };
	__u64 begin = now(), took;

	expect(what, arm_busy(1, source, flags, busy), 0);
	expect("its interrupt", ioctl(fd, LATLAB_IOC_WAIT, &wait), 0);
	took = now() - begin;
	if (took < busy || took > most)
		printf("%s took %llu ns\n", what, took);
}

static void handlers(void)
{
	const __u64 most = LATLAB_BUSIEST_NS;
	struct latlab_version version = { .device = 0 };

	expect("a timer's handler that is busy for too long", arm_busy(1, LATLAB_TIMER, 0, most + 1), EINVAL);
	expect("a device's handler that is busy for too long", arm_busy(0, LATLAB_DEVICE, LATLAB_AT_ONCE, most + 1), EINVAL);
	expect("a handler that is busy forever", arm_busy(1, LATLAB_TIMER, 0, ~0ull), EINVAL);
	keep_busy("a busy timer", LATLAB_TIMER, 0);
	expect("the version of the device", ioctl(fd, LATLAB_IOC_VERSION, &version), 0);
	if (!version.device)
		return;
	keep_busy("a busy device", LATLAB_DEVICE, LATLAB_AT_ONCE);
	keep_busy("a busy device, in a thread", LATLAB_DEVICE, LATLAB_AT_ONCE | LATLAB_THREADED);
}

static int inject(__u64 at, __u64 until, __u32 cause, __u32 zero)
{
	struct latlab_inject inject = {
		.at = at, .until = until, .cause = cause, .zero = zero,
	};

	return ioctl(fd, LATLAB_IOC_INJECT, &inject);
}

/* A refused delay takes no time, and an accepted one is over when the call returns. */
static void delays(void)
{
	const __u64 longest = LATLAB_LONGEST_DELAY_NS, length = 300000, more = 100000;
	__u64 at, back;
	__u32 cause;

	expect("an unknown cause", inject(now(), now(), LATLAB_CAUSES, 0), EINVAL);
	expect("the largest number of a cause", inject(now(), now(), ~0u, 0), EINVAL);
	expect("a reserved field of a delay that is not 0", inject(now(), now(), 0, 1), EINVAL);
	expect("a null pointer for a delay", ioctl(fd, LATLAB_IOC_INJECT, NULL), EFAULT);
	for (cause = 0; cause < LATLAB_CAUSES; cause++) {
		at = now() + 100000;
		back = at + longest;
		expect("a delay too far away", inject(back, back, cause, 0), EINVAL);
		expect("a delay at the largest time", inject(~0ull, ~0ull, cause, 0), EINVAL);
		expect("a delay that is too long", inject(at, at + longest + 1, cause, 0), EINVAL);
		expect("a delay that starts at 0", inject(0, at, cause, 0), EINVAL);
		expect("a delay without end", inject(at, ~0ull, cause, 0), EINVAL);
		expect("a delay that ends before it starts", inject(at, at - 1, cause, 0), EINVAL);
		at = now() + 100000;
		expect("a delay", inject(at, at + length, cause, 0), 0);
		back = now();
		if (back < at + length || back > at + length + more)
			printf("cause %u ended at %lld ns\n", cause, (long long)(back - at));
		at = now();
		expect("a delay in the past", inject(at - 2000, at - 1000, cause, 0), 0);
		if (now() - at > more)
			printf("cause %u, in the past, took %llu ns\n", cause, now() - at);
	}
}

static void watching(void)
{
	struct latlab_switches switches;
	struct latlab_watch watch;

	expect("switches without a watch", ioctl(fd, LATLAB_IOC_SWITCHES, &switches), EPERM);
	expect("a watch", ioctl(fd, LATLAB_IOC_WATCH, &watch), 0);
	expect("a second watch", ioctl(fd, LATLAB_IOC_WATCH, &watch), 0);
	usleep(1000);
	expect("switches", ioctl(fd, LATLAB_IOC_SWITCHES, &switches), 0);
	if (switches.count != 1 || switches.lost || switches.took[0] <= watch.cost)
		printf("one sleep had %u switches, and %u were lost\n", switches.count, switches.lost);
	expect("switches, again", ioctl(fd, LATLAB_IOC_SWITCHES, &switches), 0);
	if (switches.count || switches.lost)
		printf("without a sleep there were %u switches\n", switches.count);
	expect("a null pointer for switches", ioctl(fd, LATLAB_IOC_SWITCHES, NULL), EFAULT);
}

static void rights(void)
{
	struct stat there;
	int file;

	expect("stat of the device", stat(DEVICE, &there), 0);
	if ((there.st_mode & 0777) != 0600)
		printf("its mode is %o\n", there.st_mode);
	chmod(DEVICE, 0666);
	expect("setresuid to another user", syscall(SYS_setresuid, -1, 65534, 0), 0);
	expect("opening as another user", open(DEVICE, O_RDWR), EPERM);
	expect("setresuid to root", syscall(SYS_setresuid, -1, 0, 0), 0);
	file = open(DEVICE, O_RDWR);
	expect("a second file", file, 0);
	close(file);
}

/* Only open files keep the module loaded, whatever interrupts are still armed. */
static void unloading(void)
{
	int module = open("/modules/latlab.ko", O_RDONLY);
	struct latlab_watch watch;

	expect("unloading while it is used", syscall(SYS_delete_module, "latlab", O_NONBLOCK), EAGAIN);
	expect("arming a timer", arm(now() + 50000000, LATLAB_TIMER, 0), 0);
	expect("arming the device", arm(0, LATLAB_DEVICE, LATLAB_THREADED), 0);
	expect("a watch that is left", ioctl(fd, LATLAB_IOC_WATCH, &watch), 0);
	close(fd);
	expect("unloading", syscall(SYS_delete_module, "latlab", O_NONBLOCK), 0);
	usleep(200000);
	expect("opening the removed device", open(DEVICE, O_RDWR), ENOENT);
	expect("loading again", syscall(SYS_finit_module, module, "", 0), 0);
	usleep(100000);
	fd = open(DEVICE, O_RDWR);
	expect("opening again", fd, 0);
	expect("the device again", arm(0, LATLAB_DEVICE, 0), 0);
	expect("its interrupt", wait_after(0), 0);
}

int main(void)
{
	fd = open(DEVICE, O_RDWR);
	expect("opening", fd, 0);
	loops();
	interrupts();
	at_once();
	repeated();
	handlers();
	delays();
	watching();
	rights();
	unloading();
	puts("done");
	return 0;
}
