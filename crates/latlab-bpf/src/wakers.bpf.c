/* BPF programs of the wakers: which IRQ threads wake real-time tasks of user space, and how
 * often such a task is woken by a lower-priority task. */
#include "current.h"
#include "wakers.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Softirqs of a CPU. */
struct cpu {
	__s32 raised[SOFTIRQS];	/* the IRQ thread that raised each; 0: none */
	__s32 server;	/* the task in which a softirq runs */
	__s32 behind;	/* the IRQ thread that raised it */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

/* Time of the last report of each pair. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PAIRS);
	__type(key, struct pair);
	__type(value, __u64);
} told SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, ROOM);
} wakes SEC(".maps");

/* By interrupt and softirq threads, and by others. */
struct violations violations[2] SEC(".bss.violations");

INLINE struct cpu *this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

/* The IRQ thread that raised the softirq that runs in this task. */
INLINE __s32 served(struct task_struct *current)
{
	struct cpu *cpu = this_cpu();

	return cpu && cpu->server == current->pid ? cpu->behind : 0;
}

/* Reports a pair, unless it was reported a moment ago. */
INLINE void tell(struct pair *pair)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 *last = bpf_map_lookup_elem(&told, pair);

	if (last && now - *last < QUIET)
		return;
	/* If the ring buffer is full, the next wake-up is reported. */
	if (bpf_ringbuf_output(&wakes, pair, sizeof(*pair), 0))
		return;
	if (last)
		*last = now;
	else
		bpf_map_update_elem(&told, pair, &now, 0);
}

SEC("tp_btf/softirq_raise")
int BPF_PROG(softirq_raise, unsigned int number)
{
	struct task_struct *current = bpf_get_current_task_btf();
	enum kind by = kind(current);

	if (by == OTHER || number >= SOFTIRQS)
		return 0;
	__u32 count = preempt_count(current);
	__s32 behind = 0;

	if (count & places.interrupts)
		return 0;
	/* A softirq raised by a softirq belongs to the same thread. */
	if (serves(current, count))
		behind = served(current);
	else if (by == INTERRUPT_THREAD)
		behind = current->pid;
	struct cpu *cpu = this_cpu();

	if (behind && cpu)
		cpu->raised[number] = behind;
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry, unsigned int number)
{
	struct cpu *cpu = this_cpu();

	if (!cpu || number >= SOFTIRQS)
		return 0;
	cpu->server = bpf_get_current_task_btf()->pid;
	cpu->behind = cpu->raised[number];
	cpu->raised[number] = 0;
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	if (task->normal_prio >= 100 || task->flags & KTHREAD)
		return 0;
	struct task_struct *current = bpf_get_current_task_btf();
	__u32 count = preempt_count(current);

	/* The idle task runs work that interrupts left. The owner of a lock that the task waits for
	 * has inherited the task's priority. */
	if (count & places.interrupts || !current->pid || task->pi_blocked_on)
		return 0;
	enum kind by = kind(current);
	struct pair pair = { .task = task->pid, .process = task->tgid, .thread = current->pid };

	if (!serves(current, count)) {
		if (by == OTHER)
			pair.thread = 0;
	} else if (by == SOFTIRQ_THREAD) {
		pair.behind = served(current);
	} else {
		/* An IRQ thread may run softirqs raised by others as well. */
		pair.thread = by == INTERRUPT_THREAD ? served(current) : 0;
		/* It runs above all tasks, whichever it interrupted. */
		if (!pair.thread && count & SERVING_SOFTIRQ)
			return 0;
	}
	if (current->prio > task->prio) {
		struct violations *ones = by == OTHER ? &violations[1] : &violations[0];

		__sync_fetch_and_add(&ones->count, 1);
		ones->last = (__u64)current->pid << 32 | (__u32)task->pid;
	}
	if (pair.thread)
		tell(&pair);
	return 0;
}
