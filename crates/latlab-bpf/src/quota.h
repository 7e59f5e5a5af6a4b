/* CPU quotas of control groups: when a group may not run on a CPU. */
#ifndef LATLAB_QUOTA_H
#define LATLAB_QUOTA_H

#include "note.h"

#define FIRST_ORDINARY 100	/* kernel priority; quotas do not count the time of real-time tasks */

/* Records that a group is throttled, or no longer, since a moment that may be past: events are found by their
 * times, so that the event has its own. It has nothing to do with the current task. */
INLINE void note_quota(struct ring *ring, __u8 kind, __u64 group, __u64 now, __u64 since)
{
	__u32 seq;
	struct event *event = next_slot(ring, &seq);

	fill(event, ring, kind, 0, now);
	event->task.pid = SAME;
	event->value[0] = group;
	event->value[1] = since;
	done(event, seq);
}

/* The same for a CPU, given by its run queue, that may be another one. */
INLINE void note_quota_on(__u64 queue, __u8 kind, struct task_group *group)
{
	__u32 cpu = word(queue + bpf_core_field_offset(struct rq, cpu));
	struct ring *ring = ring_of(cpu);
	__u64 now = bpf_ktime_get_ns();

	if (ring)
		note_quota(ring, kind, (__u64)group, now, now);
}

/* Both are called for the group and each one below it. Not every kernel lets them be traced; from Linux 6.18 on
 * a task says itself that it waits. */
SEC("fentry/tg_throttle_down")
int BPF_PROG(tg_throttle_down, struct task_group *group, void *queue)
{
	note_quota_on((__u64)queue, THROTTLED, group);
	return 0;
}

SEC("fentry/tg_unthrottle_up")
int BPF_PROG(tg_unthrottle_up, struct task_group *group, void *queue)
{
	note_quota_on((__u64)queue, UNTHROTTLED, group);
	return 0;
}

INLINE __u64 group_of(struct task_struct *task)
{
	if (task->prio < FIRST_ORDINARY || !bpf_core_field_exists(task->se.cfs_rq->tg))
		return 0;
	return (__u64)task->se.cfs_rq->tg;
}

/* Whether a task that is switched in waits again when it would return to user space. */
INLINE bool is_to_be_throttled(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->sched_throttle_work) || task->prio < FIRST_ORDINARY)
		return false;
	__u64 none = (__u64)task + bpf_core_field_offset(struct task_struct, sched_throttle_work);

	return (__u64)task->sched_throttle_work.next != none;
}

/* Whether a task that is switched out while runnable waits for quota. */
INLINE bool waits_for_quota(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->throttled))
		return false;
	return task->throttled || is_to_be_throttled(task);
}

/* A moment of the clock of a run queue, which has just been read, by CLOCK_MONOTONIC. */
INLINE __u64 by_monotonic(struct cfs_rq *queue, __u64 moment, __u64 now)
{
	__u64 clock = queue->rq->clock;

	return moment < clock ? now - (clock - moment) : now;
}

/* A woken task is switched out to wait for quota. Its queue may have been throttled before. */
INLINE void begins_to_wait(struct watched *watched, struct ring *ring, struct task_struct *task, __u64 now)
{
	if (!bpf_core_field_exists(task->throttled) || !task->throttled || watched->throttled)
		return;
	struct cfs_rq *queue = task->se.cfs_rq;
	__u64 since = queue->throttled_clock_self;

	if (!since)
		return;
	watched->throttled = since;
	watched->throttled_before = queue->throttled_clock_self_time;
	note_quota(ring, THROTTLED, group_of(task), now, by_monotonic(queue, since, now));
}

/* It is switched in again: the queue's account says when it got quota, after which it waited for the CPU. */
INLINE void has_waited(struct watched *watched, struct ring *ring, struct task_struct *task, __u64 now)
{
	__u64 since = watched->throttled;

	if (!since || !bpf_core_field_exists(task->throttled))
		return;
	struct cfs_rq *queue = task->se.cfs_rq;
	__u64 until = since + queue->throttled_clock_self_time - watched->throttled_before;

	watched->throttled = 0;
	note_quota(ring, UNTHROTTLED, group_of(task), now, by_monotonic(queue, until, now));
}

#endif
