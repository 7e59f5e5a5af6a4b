/* The kernel's side of the flight recorder: every CPU notes what happens on it, and when a watched
 * task that ran late is switched out again, the events around its wake-up are handed over. */
#include "report.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* What handling an interrupt, and being called by a tracepoint, add to the preemption count. It is
 * corrected where the truth is known: code of users has none. */
__u32 own_count SEC(".data.own_count") = 0x10001;

/* An interrupt, and what it came upon, of which the kernel keeps the registers. */
INLINE void interrupt(__u8 kind, __u64 line)
{
	struct ring *ring = this_ring();
	__u32 count = 0;
	__u64 ip = 0;
	__u8 user = 0;

	if (!ring)
		return;
	struct pt_regs *regs = (void *)variable(ring, settings.irq_regs);

	if (regs) {
		ip = word((__u64)&regs->ip);
		user = (word((__u64)&regs->cs) & 3) != 0;
	}

	if (ip) {
		count = preempt_count(ring);
		if (user && count != own_count)
			own_count = count;
		count = count > own_count ? count - own_count : 0;
	}
	ring->upon = INTERRUPTED | (user ? USER : 0);
	note(ring, kind, user, line, ip, count);
}

/* One that says nothing of what it came upon. */
INLINE void short_interrupt(__u8 kind)
{
	struct ring *ring = this_ring();

	if (!ring)
		return;
	ring->upon = INTERRUPTED;
	note(ring, kind, 0, 0, 0, 0);
}

INLINE void interrupt_end(void)
{
	struct ring *ring = this_ring();

	if (!ring)
		return;
	ring->upon = 0;
	note(ring, INTERRUPT_END, 0, 0, 0, 0);
}

SEC("tp_btf/local_timer_entry")
int local_timer_entry(void *ctx)
{
	interrupt(TIMER_INTERRUPT, 0);
	return 0;
}

SEC("tp_btf/local_timer_exit")
int local_timer_exit(void *ctx)
{
	struct ring *ring = this_ring();

	if (ring)
		ring->steal = steal(ring);
	interrupt_end();
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry, int irq)
{
	interrupt(DEVICE, (__u32)irq);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int irq_handler_exit(void *ctx)
{
	interrupt_end();
	return 0;
}

SEC("tp_btf/reschedule_entry")
int reschedule_entry(void *ctx)
{
	short_interrupt(RESCHEDULE);
	return 0;
}

SEC("tp_btf/reschedule_exit")
int reschedule_exit(void *ctx)
{
	interrupt_end();
	return 0;
}

SEC("tp_btf/call_function_entry")
int call_function_entry(void *ctx)
{
	short_interrupt(CALL);
	return 0;
}

SEC("tp_btf/call_function_exit")
int call_function_exit(void *ctx)
{
	interrupt_end();
	return 0;
}

SEC("tp_btf/call_function_single_entry")
int call_function_single_entry(void *ctx)
{
	short_interrupt(CALL);
	return 0;
}

SEC("tp_btf/call_function_single_exit")
int call_function_single_exit(void *ctx)
{
	interrupt_end();
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry, unsigned int number)
{
	note_here(SOFTIRQ, number, 0);
	return 0;
}

SEC("tp_btf/softirq_exit")
int softirq_exit(void *ctx)
{
	note_here(SOFTIRQ_END, 0, 0);
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_expire_entry, struct hrtimer *timer)
{
	struct ring *ring = this_ring();
	struct hrtimer_clock_base *base = timer->base;
	__s64 offset = base->offset;

	if (!ring)
		return 0;
	if (settings.hrtimer_bases)
		ring->variables = (__u64)base->cpu_base - settings.hrtimer_bases;
	ring->due = timer->_softexpires - offset;
	ring->expiry = timer->node.expires - offset;
	ring->context = context(ring);
	note(ring, TIMER, 0, (__u64)timer->function, ring->expiry, 0);
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int hrtimer_expire_exit(void *ctx)
{
	struct ring *ring = this_ring();

	if (!ring)
		return 0;
	ring->due = 0;
	note(ring, TIMER_END, 0, 0, 0, 0);
	return 0;
}

SEC("tp_btf/timer_expire_entry")
int BPF_PROG(timer_expire_entry, struct timer_list *timer)
{
	note_here(CALLBACK, (__u64)timer->function, 0);
	return 0;
}

SEC("tp_btf/timer_expire_exit")
int timer_expire_exit(void *ctx)
{
	note_here(CALLBACK_END, 0, 0);
	return 0;
}

SEC("tp_btf/cpu_idle")
int BPF_PROG(cpu_idle, unsigned int state)
{
	struct ring *ring = this_ring();

	if (!ring)
		return 0;
	ring->steal = steal(ring);
	note(ring, state == -1u ? IDLE_END : IDLE, 0, state, 0, 0);
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault_user, unsigned long address)
{
	if (is_watched(bpf_get_current_task_btf()))
		note_here(PAGE_FAULT, address, 0);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *task)
{
	if (is_watched(task))
		note_here(QUEUED, task->pid, task->thread_info.cpu);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task, int cpu)
{
	if (is_watched(task))
		note_here(MIGRATED, task->pid, (__u32)cpu);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	bool watched = is_watched(task);
	struct ring *ring;
	__u32 seq;

	if (!watched && task->prio >= 100)
		return 0;
	ring = this_ring();
	if (!ring)
		return 0;
	struct event *event = begin(ring, bpf_get_current_task_btf(), WAKING, &seq);

	describe(&event->other, task);
	event->other.cpu = task->thread_info.cpu;
	done(event, seq);
	if (watched)
		woken(ctx, ring, event, task);
	return 0;
}

<<<<<<< HEAD
/* The count of events on a CPU before the first that is not before `at`. It is no part of its
 * caller, and compares without branches, because the verifier follows each path of both. */
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

INLINE void copy(struct bpf_dynptr *to, __u32 offset, struct ring *ring, __u64 first, __u32 count)
{
	__u32 place = first & (EVENTS - 1);
	__u32 until_wrap = EVENTS - place;
	__u32 now = count < until_wrap ? count : until_wrap;
	__u32 rest = count - now;

	barrier_var(now);
	if (now && now <= COPIED)
		bpf_dynptr_write(to, offset, &ring->events[place], now * sizeof(struct event), 0);
	barrier_var(rest);
	if (rest && rest <= COPIED)
		bpf_dynptr_write(to, offset + now * sizeof(struct event), ring->events,
				 rest * sizeof(struct event), 0);
}

/* Which events of its own CPU a window gets, and which of the CPU that woke it. */
INLINE void choose(struct wake *wake, struct ring *ring, struct ring *abroad)
{
	__u64 head = ring->head;
	__u64 end = wake->head + AFTER < head ? wake->head + AFTER : head;
	__u64 first = first_since(wake->cpu, wake->due);

	first = first > BEFORE ? first - BEFORE : 0;
	if (end - first > COPIED)
		first = end - COPIED;
	wake->first = first;
	wake->events = end - first;
	wake->first_abroad = 0;
	wake->events_abroad = 0;
	if (!abroad)
		return;
	head = abroad->head;
	end = first_since(wake->waker_cpu, wake->waking) + AFTER_WAKING;
	end = end < head ? end : head;
	first = first_since(wake->waker_cpu, wake->due);
	first = first > BEFORE ? first - BEFORE : 0;
	if (end - first > ABROAD)
		first = end - ABROAD;
	wake->first_abroad = first;
	wake->events_abroad = end - first;
}

/* Hands a late wake-up over. */
__noinline int report(__u32 pid, __u64 now)
{
	struct watched *watched = bpf_map_lookup_elem(&tasks, &pid);
	struct ring *abroad = 0, *ring = this_ring();
	struct bpf_dynptr to;

	if (!watched || !ring)
		return 0;
	struct wake *wake = &watched->wakes[~watched->next & 1];

	wake->out = now;
	if (now - wake->due < above)
		return 0;
	if (wake->waker_cpu != wake->cpu)
		abroad = bpf_map_lookup_elem(&rings, &wake->waker_cpu);
	choose(wake, ring, abroad);
	__u32 events = wake->events, events_abroad = wake->events_abroad;

	if (events > COPIED || events_abroad > ABROAD)
		return 0;
	__u32 size = sizeof(*wake) + (events + events_abroad) * sizeof(struct event);

	if (bpf_ringbuf_reserve_dynptr(&windows, size, 0, &to)) {
		__sync_fetch_and_add(&lost.windows, 1);
		bpf_ringbuf_discard_dynptr(&to, BPF_RB_NO_WAKEUP);
		return 0;
	}
	bpf_dynptr_write(&to, 0, wake, sizeof(*wake), 0);
	copy(&to, sizeof(*wake), ring, wake->first, events);
	if (abroad)
		copy(&to, sizeof(*wake) + events * sizeof(struct event), abroad, wake->first_abroad,
		     events_abroad);
	/* The reader looks by itself; it is woken only where the room gets short. */
	bool full = bpf_ringbuf_query(&windows, BPF_RB_AVAIL_DATA) > 4 << 20;

	bpf_ringbuf_submit_dynptr(&to, full ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return 0;
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
	ring->late = pid;
}

=======
>>>>>>> bpf
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempted, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	struct ring *ring = this_ring();
	__u32 seq, late;

	if (!ring)
		return 0;
	struct event *event = begin(ring, prev, SWITCH, &seq);
	__u64 now = event->at;

	event->flag = preempted;
	describe(&event->other, next);
	done(event, seq);
	late = ring->late;
	ring->late = 0;
	if (ring->running != prev->pid && ring->running)
		__sync_fetch_and_add(&lost.switches, 1);
	ring->running = next->pid;
	/* One that was woken before it slept, and that gave way since, did not wait for the CPU. */
	if ((preempted || !state) && is_watched(prev)) {
		__u32 pid = prev->pid;
		struct watched *watched = bpf_map_lookup_elem(&tasks, &pid);

		if (watched)
			watched->pending = 0;
	}
	if (is_watched(next))
		arrived(ctx, ring, event, prev, next);
	if (late && late == prev->pid)
		report(late, now);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	__u32 pid = task->pid;

	if (is_watched(task))
		bpf_map_delete_elem(&tasks, &pid);
	return 0;
}
