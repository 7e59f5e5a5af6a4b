/* The context in which a program runs: an interrupt, a softirq, or a task and its kind. */
#ifndef LATLAB_CURRENT_H
#define LATLAB_CURRENT_H

#include "kernel.h"

struct places {
	/* Offsets of per-CPU variables in the per-CPU section. */
	__u32 runqueues;
	__u32 preempt_count;
	__u32 interrupts;	/* bits of the preemption count that count interrupts; 0: it can't be read */
};

const volatile struct places places SEC(".rodata.places");

enum kind { OTHER, INTERRUPT_THREAD, SOFTIRQ_THREAD };

/* Kind of a thread, by its name: the only mark that every kernel version has. */
INLINE enum kind kind(struct task_struct *task)
{
	__u64 name = *(__u64 *)task->comm;

	if (!(task->flags & KTHREAD))
		return OTHER;
	if ((__u32)name == 0x2f717269) /* "irq/" */
		return INTERRUPT_THREAD;
	if (name == 0x7172697466736f6b || name == 0x2f7372656d69746b) /* "ksoftirq", "ktimers/" */
		return SOFTIRQ_THREAD;
	return OTHER;
}

/* The distance between two per-CPU variables is that of their offsets; the run queue is known. */
INLINE __u32 preempt_count(struct task_struct *current)
{
	if (bpf_core_field_exists(current->thread_info.preempt_count))
		return (__u32)current->thread_info.preempt_count;
	__u64 queue = (__u64)current->se.cfs_rq->rq;

	return (__u32)word(queue - places.runqueues + places.preempt_count);
}

/* Whether a softirq runs. With PREEMPT_RT the task has that count. */
INLINE bool serves(struct task_struct *current, __u32 count)
{
	if (bpf_core_field_exists(current->softirq_disable_cnt))
		count = current->softirq_disable_cnt;
	return count & SERVING_SOFTIRQ;
}

#endif
