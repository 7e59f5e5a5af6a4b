/* BPF programs of the flight recorder: each CPU records its events, and when a watched task that ran
 * late is switched out again, the events around its wake-up are written to the ring buffer. */
#include "report.h"
#include "lock.h"
#include "senders.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The interrupted code, from the saved registers. */
INLINE __u64 interrupted(struct ring *ring)
{
	__u64 registers = variable(ring, settings.irq_regs);
	struct pt_regs *regs = (void *)registers;
	struct pt_regs___arm64 *arm64 = (void *)registers;

	if (!registers)
		return 0;
	return word(bpf_core_field_exists(arm64->pc) ? (__u64)&arm64->pc : (__u64)&regs->ip);
}

/* From this delay on an interrupt was late, and what it interrupted tells why; as DELIVERY of cause.rs. */
#define DELIVERY 1000

/* Records an interrupt that began at a moment, and the interrupted code. Of an EXPIRY, the values are
 * a callback and its expiry; where it came on time and interrupted the idle task, the code is not read. */
INLINE void interrupt(struct ring *ring, __u8 kind, __u64 at, __u64 value, __u64 expiry)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u64 ip = 0;

	if (kind != EXPIRY || current->pid || (__s64)(at - expiry) >= DELIVERY)
		ip = interrupted(ring);
	__u32 seq;
	struct event *event = take(ring, &seq);
	bool user = (__s64)ip > 0;	/* the upper half of all addresses is the kernel's */

	ring->upon = INTERRUPTED | (user ? USER : 0);
	fill(event, ring, kind, user, at);
	describe(&event->task, current);
	event->value[0] = value;
	event->value[1] = ip;
	event->value[2] = expiry;
	done(event, seq);
}

INLINE void interrupt_here(__u8 kind, __u64 line)
{
	struct ring *ring = this_ring();

	if (ring)
		interrupt(ring, kind, bpf_ktime_get_ns(), line, 0);
}

/* Records an interrupt without the interrupted code. */
INLINE void short_interrupt(__u8 kind)
{
	struct ring *ring = this_ring();

	if (!ring)
		return;
	ring->upon = INTERRUPTED;
	if (kind != RESCHEDULE || !settings.sparse || ring->waiting)
		note(ring, kind, 0, 0);
}

INLINE void interrupt_end(void)
{
	struct ring *ring = this_ring();

	if (!ring)
		return;
	ring->upon = 0;
	end(ring, INTERRUPT_END, bpf_ktime_get_ns());
}

/* Not attached with `local_timer`: the first expiry tells of the interrupt. */
SEC("tp_btf/local_timer_entry")
int local_timer_entry(void *ctx)
{
	interrupt_here(TIMER_INTERRUPT, 0);
	return 0;
}

/* A timer interrupt in which no timer had expired. */
static __noinline void empty_interrupt(struct ring *ring, __u64 now)
{
	interrupt(ring, TIMER_INTERRUPT, now, 0, 0);
}

INLINE void timer_end(void)
{
	__u64 now = bpf_ktime_get_ns();
	struct ring *ring = this_ring();

	if (!ring)
		return;
	if (!ring->upon && settings.local_timer)
		empty_interrupt(ring, now);
	read_steal(ring, now);
	ring->due = 0;
	ring->upon = 0;
	end(ring, INTERRUPT_END, now);
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
		interrupt_here(TIMER_INTERRUPT, 0);
	else if ((__u32)name != IPI)
		interrupt_here(DEVICE, (__u32)irq);
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
		interrupt_here(TIMER_INTERRUPT, 0);
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
	struct ring *ring = this_ring();

	if (!ring)
		return 0;
	ring->upon = 0;
	if (!settings.sparse || ring->waiting)
		end(ring, INTERRUPT_END, bpf_ktime_get_ns());
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
	struct ring *ring = this_ring();

	if (!ring)
		return 0;
	ring->due = 0;
	end(ring, SOFTIRQ_END, bpf_ktime_get_ns());
	return 0;
}

/* In an interrupt, `started` is when the kernel began to look for expired timers. */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_expire_entry, struct hrtimer *timer, __s64 *started)
{
	struct ring *ring = this_ring();
	struct hrtimer_clock_base *base = timer->base;
	__s64 offset = base->offset;
	bool soft = timer->is_soft;

	if (!ring)
		return 0;
	if (!ring->variables && settings.hrtimer_bases)
		ring->variables = (__u64)base->cpu_base - settings.hrtimer_bases;
	__u64 function = (__u64)timer->function, expiry = timer->node.expires - offset;

	ring->due = timer->_softexpires - offset;
	ring->expiry = expiry;
	ring->context = soft ? context(ring) : UPON_ALL;
	if (settings.local_timer && !soft && !ring->upon)
		interrupt(ring, EXPIRY, word((__u64)started) - offset, function, expiry);
	else
		follow(ring, TIMER, bpf_ktime_get_ns(), function, expiry);
	return 0;
}

/* Not attached with `local_timer`: the next expiry or the end of the interrupt or softirq tells. */
SEC("tp_btf/hrtimer_expire_exit")
int hrtimer_expire_exit(void *ctx)
{
	struct ring *ring = this_ring();

	if (!ring)
		return 0;
	ring->due = 0;
	end(ring, TIMER_END, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/timer_expire_entry")
int BPF_PROG(timer_expire_entry, struct timer_list *timer)
{
	follow_here(CALLBACK, (__u64)timer->function);
	return 0;
}

SEC("tp_btf/timer_expire_exit")
int timer_expire_exit(void *ctx)
{
	follow_here(CALLBACK_END, 0);
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

static __noinline void note_waking(struct ring *ring, struct task_struct *current, struct task_struct *task,
			__u64 now)
{
	__u32 seq;
	struct event *event = take(ring, &seq);

	fill(event, ring, WAKING, 0, now);
	describe(&event->task, current);
	describe(&event->other, task);
	event->other.cpu = task->thread_info.cpu;
	done(event, seq);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *task)
{
	if (is_watched(task))
		queued(task);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task, int cpu)
{
	struct watched *watched;

	if (!is_watched(task))
		return 0;
	enter_of(task);
	note_here(MIGRATED, task->pid, (__u32)cpu);
	watched = find(task);
	if (!watched)
		return 0;
	__u64 now = bpf_ktime_get_ns();

	moves(watched, task, cpu, now);
	if (settings.sparse && watched->waits)
		waits_for(watched, 1 + (__u64)(__u32)cpu, now);
	return 0;
}

INLINE bool is_real_time_thread(struct task_struct *task)
{
	return task->prio < 100 && task->flags & KTHREAD;
}

/* Of the tasks that are not watched, IRQ threads matter: they may wake one that is. */
SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	bool is_ours = is_watched(task);

	if (!is_ours && !is_real_time_thread(task))
		return 0;
	__u32 cpu = bpf_get_smp_processor_id();
	struct ring *ring = ring_of(cpu);

	if (!ring || (keeps_later() && wakes_sleeper(ring, cpu, task)))
		return 0;
	__u64 now = bpf_ktime_get_ns();
	struct task_struct *current = bpf_get_current_task_btf();
	bool is_thread = is_real_time_thread(task);

	if (is_thread || settings.wakings)
		note_waking(ring, current, task, now);
	if (is_ours)
		woken(ctx, ring, cpu, current, task, now);
	return 0;
}

/* A watched task is switched out. If it sleeps and nothing is to be reported of it, the next waking here is
 * kept with the CPU; real-time threads of the kernel have an event. Of a task that is preempted in user mode
 * only the state says that it is runnable: the event of this switch, the last one as interrupts are disabled, is
 * told so here, as it does not matter of other tasks. */
static __noinline void leaves(__u64 *ctx, struct ring *ring, struct task_struct *prev, __u64 now)
{
	bool preempted = ctx[0];
	__u32 state = ctx[3];

	if (!state)
		ring->events[(ring->head - 1) & (EVENTS - 1)].flag = true;
	left(ring, prev, now, preempted || !state, state);
	if (!keeps_later())
		return;
	struct watched *watched = find(prev);
	bool sleeps = watched && watched->asleep == ASLEEP && !watched->pending && !watched->late;

	ring->sleeper = sleeps && !is_real_time_thread(prev) ? prev->pid : 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, __u32 preempted, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	__u64 now = bpf_ktime_get_ns();
	struct ring *ring = this_ring();
	__u32 seq;

	if (!ring)
		return 0;
	if (settings.sparse) {
		if (!matters(ring, prev, next)) {
			ring->unrecorded = now;
			ring->unrecorded_steal = exact_steal(ring);
			return 0;
		}
		catch_up(ring);
	}
	struct event *event = next_slot(ring, &seq);

	fill(event, ring, SWITCH, preempted, now);
	describe(&event->task, prev);
	describe(&event->other, next);
	done(event, seq);
	__u32 prev_pid = event->task.pid, pid = event->other.pid, running = ring->running;

	if (ring->arrived_head)
		keep(ring, bpf_get_smp_processor_id(), running, prev);
	if (running != prev_pid && running != NOBODY && !settings.sparse)
		__sync_fetch_and_add(&lost.switches, 1);
	ring->running = pid;
	if (prev_pid && is_watched(prev))
		leaves(ctx, ring, prev, now);
	__u64 queued = ring->queued;

	if (queued && is_prompt(ring, next, pid, now, queued)) {
		ring->arrived = now;
		ring->arrived_head = ring->head;
	} else if (is_watched(next)) {
		enter_of(next);
		arrived(ctx, ring, bpf_get_smp_processor_id(), prev, next, now);
	} else if (queued) {
		passed(ctx, ring, prev, now, queued);
	}
	if (queued)
		ring->queued = 0;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	ended(task);
	return 0;
}
