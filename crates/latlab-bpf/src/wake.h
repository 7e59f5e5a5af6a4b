/* Watched tasks, and the state of their wake-ups. */
#ifndef LATLAB_WAKE_H
#define LATLAB_WAKE_H

#include "note.h"
#include "quota.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WAKES);
	__type(key, __u32);
	__type(value, struct watched);
} tasks SEC(".maps");

/* Changed by user space at any time. */
volatile __u64 above SEC(".data.above") = 0;
volatile __u8 filter[FILTER] SEC(".bss.filter");
struct lost lost SEC(".bss.lost");

/* Whether a task is watched; with TASKS, whether it may be: `tasks` decides. */
INLINE bool is_watched(struct task_struct *task)
{
	if (settings.how == TASKS)
		return filter[task->pid & (FILTER - 1)];
	/* Not by the priority that it inherits, without which it may be switched out. */
	if (settings.how == REAL_TIME)
		return task->normal_prio < 100 && !(task->flags & KTHREAD);
	__u64 *comm = (void *)task->comm;

	return task->pid && comm[0] == settings.name[0] && comm[1] == settings.name[1];
}

/* Finds a watched task. An array needs one memory access, a hash three. */
INLINE struct watched *find(struct task_struct *task)
{
	__u32 pid = task->pid, place = pid & (WAKES - 1);
	struct watched *watched = bpf_map_lookup_elem(&tasks, &place);

	return watched && pid && watched->pid == pid ? watched : 0;
}

/* The same; allocates a slot for a task seen for the first time, unless it exits: it would keep the
 * slot forever. */
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

/* Whether latencies are judged when the task sleeps again, so that its own clock may be read. */
INLINE bool judges_later(void)
{
	return settings.later;
}

/* A watched task waits since `now` for a CPU, given as 1 plus its number, or for none (0). */
INLINE void waits_for(struct watched *watched, __u64 cpu, __u64 now)
{
	if (!settings.sparse)
		return;
	__u64 before = __sync_lock_test_and_set(&watched->waits, cpu);
	__u32 place = before - 1;
	struct ring *ring;

	if (before == cpu)
		return;
	if (before && (ring = bpf_map_lookup_elem(&rings, &place)))
		__sync_fetch_and_add(&ring->waiting, -1);
	place = cpu - 1;
	if (!cpu || !(ring = bpf_map_lookup_elem(&rings, &place)))
		return;
	__sync_fetch_and_add(&ring->waiting, 1);
	ring->queued = now;
}

/* Whether a switch between two tasks is recorded where that is `sparse`: one is watched, or waits here. */
INLINE bool matters(struct ring *ring, struct task_struct *prev, struct task_struct *next)
{
	return ring->waiting || is_watched(prev) || is_watched(next);
}

/* Stores the kernel stack, without the BPF program and its caller. */
INLINE int stack(void *ctx, __u64 *frames)
{
	return bpf_get_stack(ctx, frames, FRAMES * sizeof(*frames), 2);
}

/* Whether the callback of the timer that expired last runs here, and nothing on top of it. */
INLINE bool is_by_timer(struct ring *ring)
{
	return ring->context == UPON_ALL || ring->context == context(ring);
}

/* Whether wake-ups may be kept with the CPU until the task has run for the first time. */
INLINE bool keeps_later(void)
{
	return settings.defers;
}

/* When a task that is woken now was due: when the timer expired whose callback wakes it. */
INLINE __u64 due_by_timer(struct ring *ring, __u64 now, __u64 *expiry)
{
	*expiry = now;
	if (!ring->due || !is_by_timer(ring) || ring->due >= now)
		return now;
	if (ring->expiry < now)
		*expiry = ring->expiry;
	return ring->due;
}

/* Keeps with the CPU that a watched task is woken which slept here. Returns whether it did: not where more may
 * have to be recorded. */
INLINE bool wakes_sleeper(struct ring *ring, __u32 here, struct task_struct *task)
{
	__u32 pid = task->pid;

	if (ring->sleeper != pid || (__u32)task->thread_info.cpu != here || ring->fresh)
		return false;
	__u64 now = bpf_ktime_get_ns();
	struct task_struct *current = bpf_get_current_task_btf();
	__u32 other = current->pid;

	if (other && ((ring->upon & (INTERRUPTED | USER)) == INTERRUPTED || other == pid))
		return false;
	ring->woken.due = due_by_timer(ring, now, &ring->woken.expiry);
	ring->woken.waking = now;
	describe(&ring->woken.waker, current);
	ring->queued = now;
	ring->awaited = pid;
	ring->sleeper = 0;
	ring->fresh = pid;
	return true;
}

/* A wake-up begins without a move, from a sleep. */
INLINE void stays(struct wake *wake)
{
	wake->moves = 0;
	wake->stop = 0;
	wake->former_cpu = NO_CPU;
}

/* A sleep from which a stop took the task goes on afterwards, and ends at once where its time has passed: until
 * the task could go on, the stop's own wake-up has that time. */
INLINE void begins_after_stop(struct watched *watched, struct wake *wake)
{
	struct wake *before = &watched->wakes[~watched->next & 1];

	if (before->stop && wake->due < before->waking)
		wake->due = wake->expiry = before->waking;
}

/* Begins the wake-up of the watched task that is kept with the CPU. */
static __noinline void enter(struct ring *ring, __u32 cpu)
{
	__u32 pid = ring->fresh, place = pid & (WAKES - 1);
	struct watched *watched = bpf_map_lookup_elem(&tasks, &place);

	if (!pid || __sync_val_compare_and_swap(&ring->fresh, pid, 0) != pid)
		return;
	if (!watched || watched->pid != pid)
		return;
	struct wake *wake = &watched->wakes[watched->next & 1];

	wake->due = ring->woken.due;
	wake->expiry = ring->woken.expiry;
	wake->waking = ring->woken.waking;
	wake->waker = ring->woken.waker;
	wake->waker_cpu = cpu;
	wake->waking_depth = 0;
	stays(wake);
	begins_after_stop(watched, wake);
	watched->due = wake->due;
	watched->pending = 1;
}

/* The same for a task on whatever CPU; it no longer sleeps. */
INLINE void enter_of(struct task_struct *task)
{
	__u32 cpu = task->thread_info.cpu, pid = task->pid;
	struct ring *ring = ring_of(cpu);

	if (!keeps_later() || !ring)
		return;
	if (ring->sleeper == pid)
		ring->sleeper = 0;
	if (ring->fresh == pid)
		enter(ring, cpu);
}

/* Begins the wake-up of a watched task. */
INLINE void begin_wake(void *ctx, struct ring *ring, __u32 here, struct watched *watched,
		       struct task_struct *current, struct task_struct *task, __u64 now)
{
	struct wake *wake = &watched->wakes[watched->next & 1];
	__u64 expiry, due = due_by_timer(ring, now, &expiry);

	stays(wake);
	if (watched->asleep > ASLEEP) {
		due = expiry = watched->stopped < now ? watched->stopped : now;
		wake->stop = watched->asleep;
		wake->stopper = watched->stopper;
	}
	wake->due = due;
	wake->expiry = expiry;
	begins_after_stop(watched, wake);
	due = wake->due;
	watched->due = due;
	watched->throttled = 0;
	wake->waking = now;
	describe(&wake->waker, current);
	wake->waker_cpu = here;
	if (settings.cpustat_steal)
		wake->steal = most_stolen(ring, due);
	wake->waking_depth = 0;
	if (task->thread_info.cpu == here) {
		ring->queued = now;
		ring->awaited = watched->pid;
	}
	__u32 upon = ring->upon;

	/* The stack shows what was interrupted. It is taken if the wake-up is late already, or if
	 * kernel code that was interrupted is not preempted afterwards. Otherwise the stack at the
	 * context switch shows what delayed the task. Softirqs have events of their own. */
	if (upon & INTERRUPTED && !(upon & USER) && current->pid) {
		bool late = now - due > settings.slow && now - due > above / 4;
		bool goes_on = settings.goes_on && !(preempt_count(ring) & SERVING_SOFTIRQ);

		if (late || goes_on)
			wake->waking_depth = stack(ctx, wake->waking_stack);
	}
	watched->pending = 1;
	waits_for(watched, 1 + (__u64)task->thread_info.cpu, now);
}

INLINE __u64 grown(__u64 from, __u64 to)
{
	return to > from ? to - from : 0;
}

/* Lower bound of the steal time since the task was due, as accounted at ticks: of the waking CPU, or
 * from the waking on of the CPU that runs it. Time that may have been stolen before does not count. */
INLINE __u64 stolen(struct wake *wake, struct ring *ring)
{
	__u64 since = wake->steal;

	if (!ring->steal_at)
		return 0;
	if (wake->cpu != wake->waker_cpu)
		since = most_stolen(ring, wake->waking);
	return grown(since, variable(ring, settings.cpustat_steal));
}

/* Whether a task was woken since it was switched out. An earlier waking is another one, which came
 * before the task went to sleep. It may be slightly earlier, as the waker does not wait until the
 * task is switched out. */
INLINE bool was_woken(struct watched *watched)
{
	struct wake *wake = &watched->wakes[watched->next & 1];

	return watched->pending && wake->waking + settings.slow >= watched->left;
}

/* A sleeping task runs again. If its waking was not reported, it is only known that it came after the
 * task went to sleep. */
INLINE struct wake *back(struct watched *watched, __u32 cpu)
{
	struct wake *wake = &watched->wakes[watched->next & 1];

	if (!was_woken(watched)) {
		wake->due = watched->left;
		wake->expiry = watched->left;
		wake->waking = 0;
		wake->waker_cpu = cpu;
		wake->waking_depth = 0;
		stays(wake);
		wake->stolen = 0;
	}
	wake->switch_depth = 0;
	wake->cpu = cpu;
	watched->pending = 0;
	watched->asleep = 0;
	waits_for(watched, 0, 0);
	watched->next ^= 1;
	watched->late = LATE;
	return wake;
}

/* A watched task is put on the run queue of a CPU. On the CPU that woke it, that is no event: the
 * waking came just before. */
INLINE void queued(struct task_struct *task)
{
	struct watched *watched = find(task);
	__u32 here = bpf_get_smp_processor_id(), cpu = task->thread_info.cpu;

	struct ring *ring = ring_of(cpu);

	if (!watched || !ring || ring->fresh == watched->pid)
		return;
	if (cpu == here && watched->wakes[watched->next & 1].waker_cpu == here)
		return;
	ring->queued = bpf_ktime_get_ns();
	ring->awaited = watched->pid;
	note_here(QUEUED, task->pid, cpu);
}

/* A watched task goes to another CPU. The move counts from one run queue to another: a task that is only being
 * woken waits on none yet. */
INLINE void moves(struct watched *watched, struct task_struct *task, __u32 to, __u64 now)
{
	if (!watched->pending || task->on_rq != MIGRATING)
		return;
	struct wake *wake = &watched->wakes[watched->next & 1];
	struct move *move = &wake->moved[wake->moves++ & (MOVES - 1)];

	move->at = now;
	move->from = task->thread_info.cpu;
	move->to = to;
	if (move->from != wake->waker_cpu)
		wake->former_cpu = move->from;
}

/* When a task that is switched in was put on the run queue, as the scheduler accounts it: at most about a
 * microsecond later, the time since the scheduler last read its clock. 0 if it keeps no account. */
INLINE __u64 queued_at(struct task_struct *next, __u64 now)
{
	if (!bpf_core_field_exists(next->sched_info.last_queued) ||
	    !bpf_core_field_exists(next->se.cfs_rq))
		return 0;
	__u64 since = next->sched_info.last_queued;

	return since ? now - grown(since, next->se.cfs_rq->rq->clock) : 0;
}

/* The CPU on which a watched task was queued at `since` switches to another one: a task of higher
 * priority. The stack of the task that is switched out shows what delayed both. */
INLINE void passed(void *ctx, struct ring *ring, struct task_struct *prev, __u64 now, __u64 since)
{
	if (!prev->pid || now - since <= settings.slow)
		return;
	ring->passed = now;
	ring->passed_pid = prev->pid;
	ring->passed_depth = stack(ctx, ring->passed_stack);
}

/* Whether a task is switched in at once after it was queued here, so that no stack is taken. Its wake-up is
 * then kept after its first moments, by `keep`. */
INLINE bool is_prompt(struct ring *ring, struct task_struct *next, __u32 pid, __u64 now, __u64 since)
{
	return keeps_later() && ring->awaited == pid && now - since <= settings.slow &&
	       !is_to_be_throttled(next);
}

/* Keeps the wake-up of a task that was switched in promptly and has run since. The event of that switch tells
 * which task it was; where it is overwritten, the task is `current`. */
static __noinline void keep(struct ring *ring, __u32 cpu, __u32 pid, struct task_struct *current)
{
	__u64 head = ring->arrived_head, at = ring->arrived;
	struct event *event = &ring->events[(head - 1) & (EVENTS - 1)];
	bool is_whole = event->seq == (__u32)head;
	__u32 place = pid & (WAKES - 1), named = event->other.pid;
	struct watched *watched = bpf_map_lookup_elem(&tasks, &place);

	barrier_var(named);	/* the verifier refuses one load from either place */
	if (!is_whole)
		named = current->pid;
	if (!head || named != pid)
		return;
	if (__sync_val_compare_and_swap(&ring->arrived_head, head, 0) != head)
		return;
	if (ring->fresh == pid)
		enter(ring, cpu);
	if (!watched || watched->pid != pid || !(watched->pending || watched->asleep))
		return;
	struct wake *wake = back(watched, cpu);

	wake->switched = at;
	wake->queued = 0;
	wake->head = head;
	wake->group = 0;
	wake->stolen = 0;
	if (is_whole)
		wake->task = event->other;
	else
		describe(&wake->task, current);
}

/* The same for a task that is about to be judged, on whatever CPU it runs. */
INLINE void keep_of(struct task_struct *task, struct task_struct *current)
{
	__u32 cpu = task->thread_info.cpu;
	struct ring *ring = ring_of(cpu);

	if (ring && ring->arrived_head)
		keep(ring, cpu, task->pid, current);
}

/* A watched task is switched in. If it is not late, only its first cache line is accessed. */
INLINE void arrived(void *ctx, struct ring *ring, __u32 cpu, struct task_struct *prev,
		    struct task_struct *next, __u64 now)
{
	struct watched *watched = find(next);

	if (!watched || !(watched->pending || watched->asleep))
		return;
	has_waited(watched, ring, next, now);
	if (watched->pending && is_to_be_throttled(next))
		return;
	if (!judges_later() && (!watched->pending || now - watched->due < above)) {
		watched->pending = 0;
		watched->asleep = 0;
		waits_for(watched, 0, 0);
		return;
	}
	struct wake *wake = back(watched, cpu);

	wake->switched = now;
	wake->queued = settings.sparse ? queued_at(next, now) : 0;
	describe(&wake->task, next);
	wake->head = ring->head;
	wake->group = group_of(next);
	if (!wake->waking)
		return;
	wake->stolen = settings.cpustat_steal ? stolen(wake, ring) : 0;
	if (ring->passed > wake->waking) {
		wake->switch_pid = ring->passed_pid;
		wake->switch_depth = ring->passed_depth;
		__builtin_memcpy(wake->switch_stack, ring->passed_stack, sizeof(ring->passed_stack));
	} else if (now - wake->waking > settings.slow && prev->pid) {
		wake->switch_pid = prev->pid;
		wake->switch_depth = stack(ctx, wake->switch_stack);
	}
}

#endif
