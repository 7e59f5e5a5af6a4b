/* Who is watched, and what is kept of a wake-up. */
#ifndef LATLAB_WAKE_H
#define LATLAB_WAKE_H

#include "note.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WAKES);
	__type(key, __u32);
	__type(value, struct watched);
} tasks SEC(".maps");

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

/* What is kept of a watched task: an array is read in one place, a hash in three. */
INLINE struct watched *find(struct task_struct *task)
{
	__u32 pid = task->pid, place = pid & (WAKES - 1);
	struct watched *watched = bpf_map_lookup_elem(&tasks, &place);

	return watched && watched->pid == pid ? watched : 0;
}

/* The same, and makes room for one that is seen for the first time. One that is about to end would
 * keep it for good. */
INLINE struct watched *find_or_begin(struct task_struct *task)
{
	__u32 pid = task->pid, place = pid & (WAKES - 1);
	struct watched *watched = bpf_map_lookup_elem(&tasks, &place);

	if (!watched || watched->pid == pid)
		return watched;
	if (settings.how == TASKS || task->flags & EXITING)
		return 0;
	if (!__sync_val_compare_and_swap(&watched->pid, 0, pid))
		return watched;
	__sync_fetch_and_add(&lost.wakes, 1);
	return 0;
}

/* The kernel functions that were called, without the program and what calls it. */
INLINE int stack(void *ctx, __u64 *frames)
{
	return bpf_get_stack(ctx, frames, FRAMES * sizeof(*frames), 2);
}

/* A watched task is woken. */
INLINE void woken(void *ctx, struct ring *ring, struct event *event, struct task_struct *task)
{
	struct watched *watched = find_or_begin(task);

	if (!watched)
		return;
	struct wake *wake = &watched->wakes[watched->next & 1];
	__u64 now = event->at, due = now, expiry = now;

	if (ring->due && ring->context == context(ring) && ring->due < now) {
		due = ring->due;
		expiry = ring->expiry < now ? ring->expiry : now;
	}
	watched->due = due;
	wake->due = due;
	wake->expiry = expiry;
	wake->waking = now;
	wake->waker = event->task;
	wake->waker_cpu = bpf_get_smp_processor_id();
	wake->steal = most_stolen(ring, due);
	wake->stolen = 0;
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

INLINE __u64 grown(__u64 from, __u64 to)
{
	return to > from ? to - from : 0;
}

/* What the hypervisor surely took since the task was due, as ticks count it: from the CPU that woke
 * it, or since then from that which runs it. What may have been taken before is not counted. */
INLINE __u64 stolen(struct wake *wake, struct ring *ring)
{
	__u64 since = wake->steal;

	if (!ring->steal_at)
		return 0;
	if (wake->cpu != wake->waker_cpu)
		since = most_stolen(ring, wake->waking);
	return grown(since, variable(ring, settings.cpustat_steal));
}

/* Whether a task was woken since it gave the CPU away. A waking before that is another: one that came
 * while the task had not gone to sleep yet. It may be a little before, as who wakes a task does not
 * wait for it to be switched out. */
INLINE bool was_woken(struct watched *watched)
{
	struct wake *wake = &watched->wakes[watched->next & 1];

	return watched->pending && wake->waking + settings.slow >= watched->left;
}

/* A task that sleeps has come back. If nobody saw it being woken, no more is known than that this was
 * after it went to sleep. */
INLINE struct wake *back(struct watched *watched)
{
	struct wake *wake = &watched->wakes[watched->next & 1];

	if (!was_woken(watched)) {
		wake->due = watched->left;
		wake->expiry = watched->left;
		wake->waking = 0;
		wake->waker_cpu = bpf_get_smp_processor_id();
		wake->waking_depth = 0;
		wake->stolen = 0;
	}
	wake->switch_depth = 0;
	wake->cpu = bpf_get_smp_processor_id();
	watched->pending = 0;
	watched->asleep = 0;
	watched->next ^= 1;
	watched->late = 1;
	return wake;
}

/* A watched task gets the CPU. Where it is not late, no more than its first line is touched. */
INLINE void arrived(void *ctx, struct ring *ring, struct event *event, struct task_struct *next)
{
	struct watched *watched = find(next);
	__u64 now = event->at;

	if (!watched || !(watched->pending || watched->asleep))
		return;
	/* Of what watches itself, being late counts until it sleeps again. */
	if (settings.how != TASKS && (!watched->pending || now - watched->due < above)) {
		watched->pending = 0;
		watched->asleep = 0;
		return;
	}
	struct wake *wake = back(watched);

	wake->switched = now;
	wake->task = event->other;
	wake->head = ring->head;
	if (!wake->waking)
		return;
	wake->stolen = stolen(wake, ring);
	if (event->task.pid && now - wake->waking > settings.slow)
		wake->switch_depth = stack(ctx, wake->switch_stack);
}

#endif
