/* Stops of watched tasks: by signals, tracers and freezers. */
#ifndef LATLAB_STOP_H
#define LATLAB_STOP_H

#include "note.h"

/* Signals that stop a process, unless it handles them: SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU. */
#define FIRST_STOP 19
#define LAST_STOP 22

/* System calls of x86-64 that wait for a time, and how they end for a signal (include/linux/errno.h). */
#define NANOSLEEP 35
#define CLOCK_NANOSLEEP 230
#define RESTART_SYSCALL 219	/* goes on with a sleep that a stop has interrupted before */
#define RESTARTS (-514)		/* ERESTARTNOHAND: with the same arguments */
#define RESTARTS_REST (-516)	/* ERESTART_RESTARTBLOCK: for the rest of the time */
#define MONOTONIC 1

/* Who last sent such a signal to a process. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);	/* its PID */
	__type(value, struct who);
} stoppers SEC(".maps");

/* Who last froze a control group. */
struct who freezer;

SEC("tp_btf/signal_generate")
int BPF_PROG(signal_generate, int number, void *info, struct task_struct *task)
{
	__u32 process = task->tgid;
	struct who sender = {};

	if (number < FIRST_STOP || number > LAST_STOP)
		return 0;
	describe(&sender, bpf_get_current_task_btf());
	bpf_map_update_elem(&stoppers, &process, &sender, 0);
	return 0;
}

/* Version 2 of control groups. */
SEC("tp_btf/cgroup_freeze")
int cgroup_freeze(void *ctx)
{
	describe(&freezer, bpf_get_current_task_btf());
	return 0;
}

/* What stops a task that is switched out in this state; the freezer of version 2 has no state of its own. */
INLINE __u32 stop_of(struct task_struct *task, __u32 state)
{
	if (state & TRACED)
		return BY_TRACER;
	if (state & STOPPED)
		return BY_SIGNAL;
	if (state & FROZEN)
		return BY_FREEZER;
	return BPF_CORE_READ_BITFIELD(task, frozen) ? BY_FREEZER : 0;
}

/* Until when the current task would sleep without the signal that stops it; 0 if it did not, or if that is not
 * known. On x86-64 a signal is handled before the registers are prepared for the call to go on. Other calls that go
 * on by restart_syscall keep an aligned address in the place of the clock, which is not 1. */
INLINE __u64 would_sleep_until(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	struct timespec64 until;

	if (!bpf_core_field_exists(regs->orig_ax))
		return 0;
	__s64 call = regs->orig_ax, result = regs->ax;

	if (result == RESTARTS_REST &&
	    (call == NANOSLEEP || call == CLOCK_NANOSLEEP || call == RESTART_SYSCALL) &&
	    (int)word((__u64)&task->restart_block.nanosleep.clockid) == MONOTONIC)
		return word((__u64)&task->restart_block.nanosleep.expires);
	if (result != RESTARTS || call != CLOCK_NANOSLEEP || (int)regs->di != MONOTONIC ||
	    bpf_probe_read_user(&until, sizeof(until), (void *)regs->dx))
		return 0;
	return until.tv_sec * 1000000000 + until.tv_nsec;
}

/* Describes who stops the current task; nobody if that is not known. */
INLINE void describe_stopper(struct who *who, struct task_struct *task, __u32 stop)
{
	__u32 process = task->tgid;
	struct who *sender = bpf_map_lookup_elem(&stoppers, &process);

	__builtin_memset(who, 0, sizeof(*who));
	if (stop == BY_TRACER)
		describe(who, task->parent);
	else if (stop == BY_FREEZER)
		*who = freezer;
	else if (sender)
		*who = *sender;
}

#endif
