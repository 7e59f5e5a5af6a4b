/* The kernel's side of the flight recorder: every CPU notes what happens on it, and when a watched
 * task that ran late is switched out again, the events around its wake-up are handed over. */
#include "kernel.h"
#include "recorder.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);	/* as many as there are CPUs, when loaded */
	__type(key, __u32);
	__type(value, struct ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAKES);
	__type(key, __u32);
	__type(value, struct watched);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} windows SEC(".maps");

const volatile struct settings settings SEC(".rodata.settings");
const volatile struct watched nothing SEC(".rodata.nothing");
/* May change at any time. */
volatile __u64 above SEC(".data.above") = 0;
volatile __u64 filter[FILTER] SEC(".bss.filter");
struct lost lost SEC(".bss.lost");

#define KTHREAD 0x00200000	/* PF_KTHREAD */
#define HARDIRQ 0x000f0000	/* the part of the preemption count that counts interrupts */
#define NEED_RESCHED 0x80000000
#define INLINE static __always_inline

/* What handling an interrupt, and being called by a tracepoint, add to the preemption count. It is
 * corrected where the truth is known: code of users has none. */
__u32 own_count SEC(".data.own_count") = 0x10001;

INLINE struct ring *this_ring(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&rings, &cpu);
}

INLINE void describe(struct who *who, struct task_struct *task)
{
	__u64 *comm = (void *)task->comm;

	who->pid = task->pid;
	who->prio = task->prio;
	who->comm[0] = comm[0];
	who->comm[1] = comm[1];
}

/* Begins an event; `done` ends it. An interrupt between the two takes the next place. */
INLINE struct event *begin(struct ring *ring, struct task_struct *current, __u8 kind, __u32 *seq)
{
	__u64 place = __sync_fetch_and_add(&ring->head, 1);
	struct event *event = &ring->events[place & (EVENTS - 1)];

	*(volatile __u32 *)&event->seq = 0;
	event->at = bpf_ktime_get_ns();
	event->kind = kind;
	event->flag = 0;
	describe(&event->task, current);
	*seq = place + 1;
	return event;
}

INLINE void done(struct event *event, __u32 seq)
{
	barrier();
	*(volatile __u32 *)&event->seq = seq;
}

/* An event with up to three numbers. */
INLINE void note(struct ring *ring, __u8 kind, __u8 flag, __u64 a, __u64 b, __u64 c)
{
	__u32 seq;
	struct event *event = begin(ring, bpf_get_current_task_btf(), kind, &seq);

	event->flag = flag;
	event->value[0] = a;
	event->value[1] = b;
	event->value[2] = c;
	done(event, seq);
}

INLINE void note_here(__u8 kind, __u64 a, __u64 b)
{
	struct ring *ring = this_ring();

	if (ring)
		note(ring, kind, 0, a, b, 0);
}

/* Any eight bytes of the kernel, as a struct that every kernel has and that begins with them. */
INLINE __u64 word(__u64 address)
{
	__u64 value = 0;

	if (bpf_rdonly_cast) {
		struct kernel_cpustat *at =
			bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct kernel_cpustat));

		return at->cpustat[0];
	}
	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

/* A per-CPU variable of the kernel. Its symbol would need CONFIG_KALLSYMS_ALL. */
INLINE __u64 variable(struct ring *ring, __u32 offset)
{
	return offset && ring->variables ? word(ring->variables + offset) : 0;
}

INLINE __u32 preempt_count(struct ring *ring)
{
	return (__u32)variable(ring, settings.preempt_count) & ~NEED_RESCHED;
}

/* The time that the hypervisor has taken from this CPU. */
INLINE __u64 steal(struct ring *ring)
{
	__u64 exact = variable(ring, settings.steal_time);

	return exact ? exact : variable(ring, settings.cpustat_steal);
}

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

/* Where a callback runs: an interrupt that comes upon it is elsewhere. */
INLINE __u64 context(struct ring *ring)
{
	__u32 pid = bpf_get_current_task_btf()->pid;

	return (__u64)(preempt_count(ring) & HARDIRQ) << 32 | pid;
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
	 * task wait is known by that one's stack, when it gives way. */
	bool late = now - due > settings.slow && now - due > above / 4;

	if (late && upon & INTERRUPTED && !(upon & USER) && event->task.pid)
		wake->waking_depth = stack(ctx, wake->waking_stack);
	watched->pending = 1;
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

/* Copies events, in two pieces where they go over the ring's end. The bounds are for the verifier,
 * which has to see them on the very value that is used. */
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
	if (now - wake->due < above)
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
