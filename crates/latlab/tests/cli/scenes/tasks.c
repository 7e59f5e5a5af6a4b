/* The tasks of a scene. The first argument is its length, after which all sleep. Each other one is a task: its
 * name, and what it does, as in `hog,fifo=40,every=500000000,busy=200000000`. Times are in nanoseconds.
 *
 * A task begins `first` after a moment that all have in common, and acts each `every`, where it skips times
 * that have passed, unless it `catches` up: it computes for `busy`, or does something to the task `of` for
 * `lasts`. Without `every` it computes all the time. */
#include "../explain/tasks.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define MOST 16

struct task {
	char *name, *group, *does, *of;
	long long fifo, nice, first, every, busy, lasts, catches;
	int pid;
};

static struct task tasks[MOST];
static long long start, end;

static void write_file(const char *group, const char *file, long long value)
{
	char path[200], text[30];
	int length = snprintf(text, sizeof(text), "%lld", value);

	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/%s", group, file);
	int opened = open(path, O_WRONLY);

	if (opened < 0 || write(opened, text, length) != length) {
		perror(path);
		exit(1);
	}
	close(opened);
}

static struct task *victim_of(struct task *task)
{
	struct task *victim = tasks;

	while (strcmp(victim->name, task->of))
		victim++;
	return victim;
}

static void attach(struct task *task)
{
	if (!strcmp(task->does, "trace") && ptrace(PTRACE_SEIZE, victim_of(task)->pid, 0, 0)) {
		perror("ptrace");
		exit(1);
	}
}

static void stop_by_tracing(int pid, long long until)
{
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	waitpid(pid, 0, __WALL);
	sleep_until(until);
	ptrace(PTRACE_CONT, pid, 0, 0);
}

static void act(struct task *task, long long at)
{
	long long until = at + task->lasts;
	struct task *victim = task->of ? victim_of(task) : 0;

	if (!task->does) {
		compute(task->busy);
	} else if (!strcmp(task->does, "stop")) {
		kill(victim->pid, SIGSTOP);
		sleep_until(until);
		kill(victim->pid, SIGCONT);
	} else if (!strcmp(task->does, "trace")) {
		stop_by_tracing(victim->pid, until);
	} else if (!strcmp(task->does, "freeze")) {
		write_file(victim->group, "cgroup.freeze", 1);
		sleep_until(until);
		write_file(victim->group, "cgroup.freeze", 0);
	}
}

static void run(struct task *task)
{
	if (task->group)
		write_file(task->group, "cgroup.procs", getpid());
	if (task->nice)
		setpriority(PRIO_PROCESS, 0, task->nice);
	if (task->does)
		attach(task);
	for (long long at = start + task->first; at < end;) {
		sleep_until(at);
		if (!task->every) {
			while (now() < end)
				;
			break;
		}
		act(task, at);
		do
			at += task->every;
		while (at < end && !task->catches && at <= now());
	}
	for (;;)
		pause();
}

static void set(struct task *task, char *word)
{
	char *value = strchr(word, '=');
	struct { const char *name; char **text; long long *number; } keys[] = {
		{"group", &task->group, 0}, {"does", &task->does, 0}, {"of", &task->of, 0},
		{"fifo", 0, &task->fifo}, {"nice", 0, &task->nice},
		{"first", 0, &task->first}, {"every", 0, &task->every}, {"busy", 0, &task->busy},
		{"lasts", 0, &task->lasts}, {"catches", 0, &task->catches}, {0, 0, 0},
	};
	int key = 0;

	for (*value++ = 0; keys[key].name && strcmp(keys[key].name, word);)
		key++;
	if (keys[key].text)
		*keys[key].text = value;
	else if (keys[key].number)
		*keys[key].number = atoll(value);
	else
		exit(2);
}

int main(int count, char **arguments)
{
	/* Time for all to start, and for latlab to begin to watch them. */
	start = now() + 4000000000;
	end = start + atoll(arguments[1]);
	for (int each = 0; each < count - 2 && each < MOST; each++) {
		struct task *task = &tasks[each];

		task->name = strtok(arguments[each + 2], ",");
		for (char *word; (word = strtok(0, ","));)
			set(task, word);
		task->pid = begin(task->name, 0, task->fifo);
		if (!task->pid)
			run(task);
	}
	pause();
	return 0;
}
