/* Recording of events in the ring of a CPU, and reading of per-CPU kernel variables. */
#ifndef LATLAB_NOTE_H
#define LATLAB_NOTE_H

#include "kernel.h"
#include "recorder.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);	/* set to the number of CPUs before loading */
	__type(key, __u32);
	__type(value, struct ring);
} rings SEC(".maps");

const volatile struct settings settings SEC(".rodata.settings");

INLINE struct ring *ring_of(__u32 cpu)
{
	return bpf_map_lookup_elem(&rings, &cpu);
}

INLINE struct ring *this_ring(void)
{
	return ring_of(bpf_get_smp_processor_id());
}

INLINE void describe(struct who *who, struct task_struct *task)
{
	who->pid = task->pid;
	who->prio = task->prio;
	who->comm[0] = *(__u64 *)&task->comm[0];
	who->comm[1] = *(__u64 *)&task->comm[8];
}

/* Reads a per-CPU variable of the kernel by its offset. Its symbol would need CONFIG_KALLSYMS_ALL. */
INLINE __u64 variable(struct ring *ring, __u32 offset)
{
	return offset && ring->variables ? word(ring->variables + offset) : 0;
}

/* Steal time of this CPU as KVM reports it, exact; 0 if it does not. */
INLINE __u64 exact_steal(struct ring *ring)
{
	return variable(ring, settings.steal_time);
}

/* Takes the next slot; an interrupt in between uses the one after it. Until `done`, the slot has the number
 * of the event that it held before. */
INLINE struct event *next_slot(struct ring *ring, __u32 *seq)
{
	__u64 place = __sync_fetch_and_add(&ring->head, 1);
	struct ring *from = (void *)&((struct event *)ring)[place & (EVENTS - 1)];

	barrier_var(from);	/* one addition for all fields of the event */
	*seq = place + 1;
	return from->events;
}

/* Fills in an event but for its tasks and numbers. */
INLINE void fill(struct event *event, struct ring *ring, __u8 kind, __u8 flag, __u64 at)
{
	event->what = kind | flag << 8;
	event->at = at;
	if (settings.steal_time)
		event->stolen = exact_steal(ring) >> STOLEN_UNIT;
}

INLINE void done(struct event *event, __u32 seq)
{
	barrier();
	*(volatile __u32 *)&event->seq = seq;
}

/* Records which task runs, and since when, after switches that were not recorded. */
static __noinline void catch_up(struct ring *ring)
{
	__u64 since = ring->unrecorded;
	__u32 seq;

	if (!since)
		return;
	ring->unrecorded = 0;
	struct event *event = next_slot(ring, &seq);

	event->what = CURRENT | (__u32)(ring->unrecorded_steal >> STOLEN_UNIT) << 16;
	event->at = since;
	describe(&event->task, bpf_get_current_task_btf());
	done(event, seq);
}

/* Takes the slot of an event; `done` completes it. */
INLINE struct event *take(struct ring *ring, __u32 *seq)
{
	if (settings.sparse)
		catch_up(ring);
	return next_slot(ring, seq);
}

/* Begins an event that happens now. */
INLINE struct event *begin(struct ring *ring, struct task_struct *current, __u8 kind, __u8 flag,
			   __u32 *seq)
{
	struct event *event = take(ring, seq);

	fill(event, ring, kind, flag, bpf_ktime_get_ns());
	describe(&event->task, current);
	return event;
}

/* Records an event with up to two numbers. */
INLINE void note(struct ring *ring, __u8 kind, __u64 a, __u64 b)
{
	__u32 seq;
	struct event *event = begin(ring, bpf_get_current_task_btf(), kind, 0, &seq);

	event->value[0] = a;
	event->value[1] = b;
	done(event, seq);
}

INLINE void note_here(__u8 kind, __u64 a, __u64 b)
{
	struct ring *ring = this_ring();

	if (ring)
		note(ring, kind, a, b);
}

/* Records an event that follows another one of the same task, whose description is left out. */
INLINE void follow(struct ring *ring, __u8 kind, __u64 at, __u64 a, __u64 b)
{
	__u32 seq;
	struct event *event = take(ring, &seq);

	fill(event, ring, kind, 0, at);
	event->task.pid = SAME;
	event->value[0] = a;
	event->value[1] = b;
	done(event, seq);
}

INLINE void follow_here(__u8 kind, __u64 a)
{
	__u64 now = bpf_ktime_get_ns();
	struct ring *ring = this_ring();

	if (ring)
		follow(ring, kind, now, a, 0);
}

/* Records the end of something that the same task has begun. */
INLINE void end(struct ring *ring, __u8 kind, __u64 at)
{
	__u32 seq;
	struct event *event = take(ring, &seq);

	fill(event, ring, kind, 0, at);
	event->task.pid = SAME;
	done(event, seq);
}

INLINE __u32 preempt_count(struct ring *ring)
{
	return (__u32)variable(ring, settings.preempt_count);
}

/* Records the steal time so far, where it is accounted at ticks only. The clock is read first: time
 * stolen between the two reads must not seem to have been stolen later. */
INLINE void read_steal(struct ring *ring, __u64 now)
{
	if (!settings.cpustat_steal || !ring->variables || exact_steal(ring))
		return;
	ring->steal = variable(ring, settings.cpustat_steal);
	ring->steal_at = now;
}

/* Upper bound of the steal time until a moment: the last value read, plus all time since then.
 * Without branches, because the verifier would follow each path. */
INLINE __u64 most_stolen(struct ring *ring, __u64 until)
{
	__s64 since = until - ring->steal_at;

	return ring->steal + (since & ~(since >> 63));
}

/* Context in which a timer callback of a softirq runs; an interrupt on top of it has another. */
INLINE __u64 context(struct ring *ring)
{
	__u32 pid = bpf_get_current_task_btf()->pid;

	return (__u64)(preempt_count(ring) & settings.interrupts) << 32 | pid;
}

#endif
