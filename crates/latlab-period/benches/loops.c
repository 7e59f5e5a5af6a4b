/* Loops compared: the library's, one of relative sleeps, one as cyclictest has it, and cyclictest. Each
 * records when its cycles start, against when they should: whole periods after the first.
 *
 *   loops library|spinning|relative|absolute|cyclictest PERIOD_US CYCLES
 *
 * docs/results/period.md has the figures; loops.py makes them.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <latlab-period.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static int64_t time_of(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static struct timespec timespec_of(int64_t time)
{
	return (struct timespec){ time / SECOND, time % SECOND };
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* What the loops without the library need to be real-time. */
static void prepare(void)
{
	struct sched_param priority = { .sched_priority = 80 };

	if (mlockall(MCL_CURRENT | MCL_FUTURE) || sched_setscheduler(0, SCHED_FIFO, &priority)) {
		perror("root is needed");
		exit(1);
	}
}

/* CPU time of cyclictest's measuring thread so far: of the thread that is not the first. */
static int64_t cpu_of(pid_t process)
{
	char path[600];
	int64_t used = -1;
	struct dirent *task;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", process);
	tasks = opendir(path);
	while (tasks && (task = readdir(tasks))) {
		FILE *file;

		if (atoi(task->d_name) <= process)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", process, task->d_name);
		file = fopen(path, "r");
		if (file && fscanf(file, "%" SCNd64, &used) != 1)
			used = -1;
		if (file)
			fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return used;
}

/* Runs cyclictest, which prints its latency, and measures the CPU time of its cycles from a tenth of
 * them to nine tenths. */
static int run_cyclictest(char *period_us, char *cycles)
{
	int64_t part = atol(period_us) * 1000 * (atol(cycles) / 10), from, to;
	struct timespec tenth = timespec_of(part), most = timespec_of(8 * part);
	pid_t process = fork();
	int status;

	if (!process) {
		execl("/usr/bin/cyclictest", "cyclictest", "-q", "-m", "-N", "-p", "80", "-t", "1", "-a", "0",
		      "-i", period_us, "-l", cycles, (char *)0);
		_exit(127);
	}
	nanosleep(&tenth, 0);
	from = cpu_of(process);
	nanosleep(&most, 0);
	to = cpu_of(process);
	if (waitpid(process, &status, 0) < 0 || status || from < 0 || to < 0) {
		fprintf(stderr, "cyclictest did not run to its end\n");
		return 1;
	}
	printf("cyclictest period_us %s cycles %s cpu_ns_per_cycle %" PRId64 "\n", period_us, cycles,
	       (to - from) / (8 * (atol(cycles) / 10)));
	return 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc == 4 ? argv[1] : "";
	int64_t period = argc == 4 ? atol(argv[2]) * 1000 : 0, missed = 0;
	long cycles = argc == 4 ? atol(argv[3]) : 0;
	int64_t *starts = calloc(cycles + 1, sizeof(*starts)), *dues = calloc(cycles + 1, sizeof(*dues));
	int64_t first, drift, cpu, sum = 0, late = 0, late_max = 0, least = INT64_MAX;
	struct latlab_period_settings settings = {
		.period_ns = period, .policy = LATLAB_FIFO, .priority = 80,
		.spin_at_most_ns = strcmp(kind, "spinning") ? 0 : 20000000,
	};
	struct latlab_period *library = 0;
	struct latlab_period_summary summary = { 0 };
	struct timespec next, sleep;

	if (period <= 0 || cycles <= 0 || !starts || !dues)
		return 2;
	if (!strcmp(kind, "cyclictest"))
		return run_cyclictest(argv[2], argv[3]);
	memset(starts, 1, (cycles + 1) * sizeof(*starts));
	memset(dues, 1, (cycles + 1) * sizeof(*dues));
	if (!strcmp(kind, "library") || !strcmp(kind, "spinning")) {
		library = latlab_period_start(&settings);
		if (!library) {
			perror(settings.failed);
			return 1;
		}
	} else {
		prepare();
	}
	cpu = time_of(CLOCK_THREAD_CPUTIME_ID);
	first = time_of(CLOCK_MONOTONIC);
	sleep = timespec_of(period);
	for (long cycle = 0; cycle <= cycles; cycle++) {
		if (library) {
			missed += latlab_period_wait(library);
		} else if (!strcmp(kind, "relative")) {
			clock_nanosleep(CLOCK_MONOTONIC, 0, &sleep, 0);
		} else {
			next = timespec_of(first + (cycle + 1) * period);
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
		}
		starts[cycle] = time_of(CLOCK_MONOTONIC);
		dues[cycle] = first + (cycle + 1 + missed) * period;
	}
	cpu = time_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
	drift = starts[cycles] - starts[0] - (cycles + missed) * period;
	if (library) {
		latlab_period_summary(library, &summary);
		latlab_period_end(library);
	}
	for (long cycle = 0; cycle <= cycles; cycle++) {
		int64_t lateness = starts[cycle] - dues[cycle];

		late += lateness;
		late_max = lateness > late_max ? lateness : late_max;
		least = lateness < least ? lateness : least;
	}
	late /= cycles + 1;
	/* When the library's first cycle was due, only the library knows: its shortest lateness is known. */
	if (library) {
		late += (int64_t)summary.lateness_min_ns - least;
		late_max = summary.lateness_max_ns;
	}
	/* Jitter: how much longer or shorter than a period the time between two starts is. */
	for (long cycle = 0; cycle < cycles; cycle++) {
		starts[cycle] = llabs(starts[cycle + 1] - starts[cycle] - period);
		sum += starts[cycle];
	}
	qsort(starts, cycles, sizeof(*starts), compare);
	printf("%s period_us %s cycles %ld missed %" PRId64 " drift_ns %" PRId64
	       " jitter_mean_ns %" PRId64 " jitter_p99_ns %" PRId64 " jitter_max_ns %" PRId64
	       " cpu_ns_per_cycle %" PRId64 " late_mean_ns %" PRId64 " late_max_ns %" PRId64
	       " spin_ns %" PRIu64 "\n",
	       kind, argv[2], cycles, missed, drift, sum / cycles, starts[cycles * 99 / 100],
	       starts[cycles - 1], cpu / (cycles + 1), late, late_max, summary.spin_ns);
	return 0;
}
