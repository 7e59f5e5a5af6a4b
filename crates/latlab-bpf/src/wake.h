/* Who is watched, and what is kept of a wake-up. */
#ifndef LATLAB_WAKE_H
#define LATLAB_WAKE_H

#include "note.h"

#define KTHREAD 0x00200000	/* PF_KTHREAD */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAKES);
	__type(key, __u32);
	__type(value, struct watched);
} tasks SEC(".maps");

const volatile struct watched nothing SEC(".rodata.nothing");
/* May change at any time. */
volatile __u64 above SEC(".data.above") = 0;
volatile __u64 filter[FILTER] SEC(".bss.filter");
struct lost lost SEC(".bss.lost");

/* Whether a task is watched; with TASKS, whether it may be: `tasks` knows. */
INLINE bool is_watched(struct task_struct *task)
{
	__u32 pid = task->pid;

	if (!pid)
		return false;
	if (settings.how == TASKS)
		return filter[(pid >> 6) & (FILTER - 1)] >> (pid & 63) & 1;
	if (settings.how == REAL_TIME)
		return task->prio < 100 && !(task->flags & KTHREAD);
	__u64 *comm = (void *)task->comm;

	return comm[0] == settings.name[0] && comm[1] == settings.name[1];
}

INLINE struct watched *find(struct task_struct *task)
{
	__u32 pid = task->pid;
	struct watched *watched = bpf_map_lookup_elem(&tasks, &pid);

	if (watched || settings.how == TASKS)
		return watched;
	if (bpf_map_update_elem(&tasks, &pid, (void *)&nothing, 0))
		__sync_fetch_and_add(&lost.tasks, 1);
	return bpf_map_lookup_elem(&tasks, &pid);
}

/* The kernel functions that were called, without the program and what calls it. */
INLINE int stack(void *ctx, __u64 *frames)
{
	return bpf_get_stack(ctx, frames, FRAMES * sizeof(*frames), 2);
}

/* A watched task is woken. */
INLINE void woken(void *ctx, struct ring *ring, struct event *event, struct task_struct *task)
{
	struct watched *watched = find(task);

	if (!watched)
		return;
	struct wake *wake = &watched->wakes[watched->next & 1];
	__u64 now = event->at, due = now, expiry = now;

	if (ring->due && ring->context == context(ring) && ring->due < now) {
		due = ring->due;
		expiry = ring->expiry < now ? ring->expiry : now;
	}
	wake->due = due;
	wake->expiry = expiry;
	wake->waking = now;
	wake->waker = event->task;
	wake->waker_cpu = bpf_get_smp_processor_id();
	wake->steal = steal(ring);
	wake->stolen = wake->steal - ring->steal;
	wake->waking_depth = 0;
	wake->switch_depth = 0;
	__u32 upon = ring->upon;

	/* What comes on time was held up by nothing. What comes upon something that then lets the
	 * task wait is known by that one's stack, when it gives way; but not where it only does so
	 * when it is done. A softirq is known by itself. */
	bool late = now - due > settings.slow && now - due > above / 4;
	bool goes_on = settings.goes_on && !(preempt_count(ring) & SERVING_SOFTIRQ);

	if ((late || goes_on) && upon & INTERRUPTED && !(upon & USER) && event->task.pid)
		wake->waking_depth = stack(ctx, wake->waking_stack);
	watched->pending = 1;
}

/* A watched task gets the CPU. */
INLINE void arrived(void *ctx, struct ring *ring, struct event *event, struct task_struct *prev,
		    struct task_struct *next)
{
	__u32 pid = next->pid;
	struct watched *watched = bpf_map_lookup_elem(&tasks, &pid);

	if (!watched || !watched->pending)
		return;
	struct wake *wake = &watched->wakes[watched->next & 1];
	__u64 now = event->at;

	watched->pending = 0;
	/* Of what watches itself, being late counts until it sleeps again. */
	if (settings.how != TASKS && now - wake->due < above)
		return;
	wake->switched = now;
	wake->task = event->other;
	wake->cpu = bpf_get_smp_processor_id();
	wake->head = ring->head;
	wake->stolen += steal(ring) - (wake->cpu == wake->waker_cpu ? wake->steal : ring->steal);
	if (event->task.pid && now - wake->waking > settings.slow)
		wake->switch_depth = stack(ctx, wake->switch_stack);
	watched->next ^= 1;
	watched->late = 1;
}

#endif
