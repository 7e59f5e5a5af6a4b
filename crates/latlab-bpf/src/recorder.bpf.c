/* BPF programs of the flight recorder: each CPU records its events, and when a watched task that ran
 * late is switched out again, the events around its wake-up are written to the ring buffer. */
#include "report.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Reads the interrupted code from the saved registers. Returns whether it was a program's. */
INLINE bool interrupted(__u64 registers, __u64 *ip)
{
	struct pt_regs *regs = (void *)registers;
	struct pt_regs___arm64 *arm64 = (void *)registers;

	if (bpf_core_field_exists(arm64->pstate)) {
		*ip = word((__u64)&arm64->pc);
		return !(word((__u64)&arm64->pstate) & 15);
	}
	*ip = word((__u64)&regs->ip);
	return word((__u64)&regs->cs) & 3;
}

/* Records an interrupt, and the interrupted code. */
INLINE void interrupt(__u8 kind, __u64 line)
{
	struct ring *ring = this_ring();
	__u64 ip = 0;
	__u8 user = 0;

	if (!ring)
		return;
	__u64 registers = variable(ring, settings.irq_regs);

	if (registers)
		user = interrupted(registers, &ip);
	ring->upon = INTERRUPTED | (user ? USER : 0);
	note(ring, kind, user, line, ip);
}

/* Records an interrupt without the interrupted code. */
INLINE void short_interrupt(__u8 kind)
{
	struct ring *ring = this_ring();

	if (!ring)
		return;
	ring->upon = INTERRUPTED;
	note(ring, kind, 0, 0, 0);
}

INLINE void interrupt_end(void)
{
	struct ring *ring = this_ring();

	if (!ring)
		return;
	ring->upon = 0;
	note(ring, INTERRUPT_END, 0, 0, 0);
}

SEC("tp_btf/local_timer_entry")
int local_timer_entry(void *ctx)
{
	interrupt(TIMER_INTERRUPT, 0);
	return 0;
}

INLINE void timer_end(void)
{
	struct ring *ring = this_ring();

	if (ring)
		read_steal(ring);
	interrupt_end();
}

SEC("tp_btf/local_timer_exit")
int local_timer_exit(void *ctx)
{
	timer_end();
	return 0;
}

/* On arm64 the timer's interrupt is one of a device, and an interrupt between processors is too. */
SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry, int irq, struct irqaction *action)
{
	__u64 name = word((__u64)action->name);

	if (name == ARCH_TIMER)
		interrupt(TIMER_INTERRUPT, 0);
	else if ((__u32)name != IPI)
		interrupt(DEVICE, (__u32)irq);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit, int irq, struct irqaction *action)
{
	__u64 name = word((__u64)action->name);

	if (name == ARCH_TIMER)
		timer_end();
	else if ((__u32)name != IPI)
		interrupt_end();
	return 0;
}

/* arm64 */
SEC("tp_btf/ipi_entry")
int BPF_PROG(ipi_entry, const char *reason)
{
	__u64 name = word((__u64)reason);

	if (name == TIMER_BROADCAST)
		interrupt(TIMER_INTERRUPT, 0);
	else
		short_interrupt(name == RESCHEDULING ? RESCHEDULE : CALL);
	return 0;
}

SEC("tp_btf/ipi_exit")
int ipi_exit(void *ctx)
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
	note(ring, TIMER, 0, (__u64)timer->function, ring->expiry);
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int hrtimer_expire_exit(void *ctx)
{
	struct ring *ring = this_ring();

	if (!ring)
		return 0;
	ring->due = 0;
	note(ring, TIMER_END, 0, 0, 0);
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
	note(ring, state == -1u ? IDLE_END : IDLE, 0, state, 0);
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault_user, unsigned long address)
{
	if (is_watched(bpf_get_current_task_btf()))
		note_here(PAGE_FAULT, address, 0);
	return 0;
}

/* Where there is no such tracepoint: the software event of page faults. On arm64 the context begins
 * with 31 registers, sp, pc and pstate; the period and the address follow (bpf_perf_event.h). */
SEC("perf_event")
int page_fault_event(__u64 *ctx)
{
	__u64 pstate = ctx[33], address = ctx[35];

	if (!(pstate & 15) && is_watched(bpf_get_current_task_btf()))
		note_here(PAGE_FAULT, address, 0);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *task)
{
	if (is_watched(task)) {
		note_here(QUEUED, task->pid, task->thread_info.cpu);
		queued(task->thread_info.cpu);
	}
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
	if (!watched)
		return 0;
	settle(event, task);
	woken(ctx, ring, event, task);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempted, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	struct ring *ring = this_ring();
	__u32 seq;

	if (!ring)
		return 0;
	struct event *event = begin(ring, prev, SWITCH, &seq);

	event->flag = preempted;
	describe(&event->other, next);
	done(event, seq);
	if (ring->running != prev->pid && ring->running)
		__sync_fetch_and_add(&lost.switches, 1);
	ring->running = next->pid;
	if (is_watched(prev))
		left(event, prev, preempted || !state);
	__u64 queued = ring->queued;

	ring->queued = 0;
	if (is_watched(next))
		arrived(ctx, ring, event, next);
	else if (queued)
		passed(ctx, ring, event, queued);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	ended(task);
	return 0;
}
