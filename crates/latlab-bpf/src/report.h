/* Report of a late wake-up with the events around it. */
#ifndef LATLAB_REPORT_H
#define LATLAB_REPORT_H

#include "wake.h"
#include "stop.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} windows SEC(".maps");

/* Returns the number of events of a CPU before `at`, by binary search. It is not inlined and compares
 * without branches, because the verifier would follow each path. */
__noinline __u64 first_since(__u32 cpu, __u64 at)
{
	struct ring *ring = bpf_map_lookup_elem(&rings, &cpu);

	if (!ring)
		return 0;
	__u64 head = ring->head;
	__u64 first = head > EVENTS - COPIED ? head - (EVENTS - COPIED) : 0;

#pragma unroll
	for (__u64 step = EVENTS / 2; step; step /= 2) {
		__u64 last = first + step - 1;
		__u64 beyond = head - 1 - last;
		__u64 before = ring->events[last & (EVENTS - 1)].at - at;

		barrier_var(beyond);
		barrier_var(before);
		first += step * ((before >> 63) & ~(beyond >> 63));
	}
	return first;
}

/* Copies events, in two pieces if they wrap around the end of the ring. The bounds are checked for
 * the verifier, which must see them on the value that is used. */
INLINE void copy(struct bpf_dynptr *to, __u32 offset, struct ring *ring, __u64 first, __u64 count)
{
	__u64 place = first & (EVENTS - 1);
	__u64 until_end = EVENTS - place;
	__u64 bytes = (count < until_end ? count : until_end) * sizeof(struct event);
	__u64 rest = count * sizeof(struct event) - bytes;

	barrier_var(bytes);
	if (bytes <= COPIED * sizeof(struct event))
		bpf_dynptr_write(to, offset, &ring->events[place], bytes, 0);
	offset += bytes;
	barrier_var(rest);
	if (rest <= COPIED * sizeof(struct event))
		bpf_dynptr_write(to, offset, ring->events, rest, 0);
}

/* When a woken task was moved last; 0 if it was not. */
INLINE __u64 last_move(struct wake *wake)
{
	return wake->moves ? wake->moved[(wake->moves - 1) & (MOVES - 1)].at : 0;
}

/* Selects the events of another CPU from a moment on, until the task left it. */
INLINE __u64 choose_on(struct ring *ring, __u32 cpu, __u64 from, __u64 until, __u32 *events)
{
	__u64 head = ring->head;
	__u64 end = first_since(cpu, until) + AFTER_LEFT;
	__u64 first = first_since(cpu, from);

	end = end < head ? end : head;
	first = first > BEFORE ? first - BEFORE : 0;
	if (end - first > COPIED)
		first = end - COPIED;
	*events = end - first;
	return first;
}

/* Selects the events of the own CPU, of the waking CPU and of one in between for a window. */
INLINE void choose(struct wake *wake, struct ring *ring, struct ring *abroad, struct ring *former)
{
	__u64 head = ring->head, moved = last_move(wake), waking = wake->waking;
	__u64 end = wake->head + AFTER < head ? wake->head + AFTER : head;
	__u64 first = first_since(wake->cpu, wake->due);

	first = first > BEFORE ? first - BEFORE : 0;
	if (judges_later() && head - first <= COPIED)
		end = head;
	if (end - first > COPIED)
		first = end - COPIED;
	wake->first = first;
	wake->events = end - first;
	wake->first_abroad = 0;
	wake->events_abroad = 0;
	wake->first_former = 0;
	wake->events_former = 0;
	if (abroad)
		wake->first_abroad = choose_on(abroad, wake->waker_cpu, wake->due,
					       moved ? moved : waking, &wake->events_abroad);
	if (former)
		wake->first_former = choose_on(former, wake->former_cpu, waking, moved,
					       &wake->events_former);
}

/* Writes a late wake-up to the ring buffer. */
__noinline int report(__u32 pid, __u64 now)
{
	__u32 place = pid & (WAKES - 1);
	struct watched *watched = bpf_map_lookup_elem(&tasks, &place);
	struct ring *abroad = 0, *former = 0, *ring;
	struct bpf_dynptr to;

	if (!watched || watched->pid != pid)
		return 0;
	struct wake *wake = &watched->wakes[~watched->next & 1];

	ring = bpf_map_lookup_elem(&rings, &wake->cpu);
	if (!ring || now - wake->due < above)
		return 0;
	wake->out = now;
	if (wake->waker_cpu != wake->cpu)
		abroad = bpf_map_lookup_elem(&rings, &wake->waker_cpu);
	if (wake->former_cpu != wake->cpu)
		former = bpf_map_lookup_elem(&rings, &wake->former_cpu);
	choose(wake, ring, abroad, former);
	__u32 events = wake->events, events_abroad = wake->events_abroad;
	__u32 events_former = wake->events_former;

	if (events > COPIED || events_abroad > COPIED || events_former > COPIED)
		return 0;
	__u32 size = sizeof(*wake) + (events + events_abroad + events_former) * sizeof(struct event);

	if (bpf_ringbuf_reserve_dynptr(&windows, size, 0, &to)) {
		__sync_fetch_and_add(&lost.windows, 1);
		bpf_ringbuf_discard_dynptr(&to, BPF_RB_NO_WAKEUP);
		return 0;
	}
	__u32 offset = sizeof(*wake);

	bpf_dynptr_write(&to, 0, wake, sizeof(*wake), 0);
	copy(&to, offset, ring, wake->first, events);
	offset += events * sizeof(struct event);
	if (abroad)
		copy(&to, offset, abroad, wake->first_abroad, events_abroad);
	offset += events_abroad * sizeof(struct event);
	if (former)
		copy(&to, offset, former, wake->first_former, events_former);
	/* The reader polls; it is woken only when the ring buffer fills up. */
	bool full = bpf_ringbuf_query(&windows, BPF_RB_AVAIL_DATA) > 4 << 20;

	bpf_ringbuf_submit_dynptr(&to, full ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return 0;
}

/* A watched task ran although, by the events reported, it sleeps. */
INLINE void ran(struct watched *watched, __u32 cpu, struct task_struct *task)
{
	struct ring *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct wake *wake = back(watched, bpf_get_smp_processor_id());

	wake->cpu = cpu;
	wake->switched = 0;
	wake->queued = 0;
	wake->group = 0;
	wake->stolen = 0;
	describe(&wake->task, task);
	wake->head = ring ? ring->head : 0;
}

/* A watched task is woken that is current, was late, or was woken before. If it is current, it has
 * run, even if that was not reported. If it is not, it has run and slept since: a sleeping task is not
 * woken twice. But a task woken while it is about to sleep continues instead, and that waking is no
 * wake-up: otherwise the following sleep would count as its latency. */
static __noinline void settle(struct watched *watched, struct task_struct *current,
			      struct task_struct *task, __u64 now)
{
	bool runs = current->pid == watched->pid;

	keep_of(task, current);
	/* Since Linux 6.12 a SCHED_OTHER task may sleep and stay on the run queue for a while (delayed
	 * dequeue): it is treated as one that is about to sleep. */
	if (!runs && task->on_rq)
		return;
	if (judges_later() && watched->asleep && (runs || was_woken(watched)))
		ran(watched, task->thread_info.cpu, task);
	if (runs || !watched->late)
		return;
	watched->late = 0;
	report(watched->pid, now);
}

/* A watched task is woken. */
INLINE void woken(void *ctx, struct ring *ring, __u32 here, struct task_struct *current,
		  struct task_struct *task, __u64 now)
{
	struct watched *watched = find_or_begin(task);

	if (!watched)
		return;
	enter_of(task);
	if (watched->pending || watched->late || current->pid == watched->pid) {
		/* The wait for a lock is a part of what the task does after its wake-up. */
		if (watched->lock) {
			watched->released = now;
			return;
		}
		settle(watched, current, task, now);
	}
	begin_wake(ctx, ring, here, watched, current, task, now);
}

/* A watched task that is switched out to sleep may be stopped: it is late from now on, or from the end of the
 * sleep from which a signal took it. */
INLINE void halts(struct watched *watched, struct task_struct *task, __u64 now, __u32 state)
{
	__u32 stop = stop_of(task, state);

	if (!stop)
		return;
	__u64 until = would_sleep_until(task);

	watched->asleep = stop;
	watched->stopped = until > now ? until : now;
	describe_stopper(&watched->stopper, task, stop);
}

/* A watched task is switched out: to sleep, in a state, or while runnable. */
INLINE void left(struct ring *ring, struct task_struct *prev, __u64 now, bool runnable, __u32 state)
{
	struct watched *watched = find(prev);

	if (!watched)
		return;
	if (runnable && watched->pending && waits_for_quota(prev)) {
		begins_to_wait(watched, ring, prev, now);
		return;
	}
	if (judges_later() && watched->asleep)
		ran(watched, bpf_get_smp_processor_id(), prev);
	/* A task woken before it slept, and switched out since, did not wait for the CPU. */
	if (runnable) {
		watched->pending = 0;
		waits_for(watched, 0, 0);
	}
	bool goes_on = watched->late != LATE || (runnable && judges_later());

	/* A task that waits for a lock does not sleep. */
	if (goes_on && watched->lock)
		return;
	watched->asleep = runnable ? 0 : ASLEEP;
	watched->left = now;
	if (!runnable)
		halts(watched, prev, now, state);
	if (goes_on)
		return;
	watched->late = 0;
	report(watched->pid, now);
}

/* A watched task exits, whatever its name and policy are by now. */
INLINE void ended(struct task_struct *task)
{
	struct watched *watched = find(task);

	if (!watched)
		return;
	keep_of(task, task);
	if (judges_later() && watched->asleep)
		ran(watched, bpf_get_smp_processor_id(), task);
	if (watched->late)
		report(task->pid, bpf_ktime_get_ns());
	watched->late = 0;
	watched->pending = 0;
	watched->asleep = 0;
	watched->lock = 0;
	waits_for(watched, 0, 0);
	watched->pid = 0;
}

#endif
