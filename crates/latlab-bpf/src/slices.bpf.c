/* A scheduler of SCHED_OTHER tasks (sched_ext, Linux 6.12 and later) without wake-up preemption: a
 * task runs until its slice ends or it sleeps, whichever tasks are woken meanwhile. Real-time tasks are in
 * another scheduling class and preempt at once. After section 3.1 of Seo et al. 2009.
 *
 * It is fair by virtual time, as Documentation/scheduler/sched-ext.rst describes: the waiting task
 * with the least CPU time for its weight is next. */
#include "kernel.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct sched_ext_entity {
	__u32 weight;
	__u64 slice;
	__u64 dsq_vtime;
} CORE;

/* The same struct as in kernel.h, with another field. */
struct task_struct___scheduled {
	struct sched_ext_entity scx;
} CORE;

struct scx_exit_info;

/* The members used here; the kernel has more. */
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *task, __s32 before, __u64 wake_flags);
	void (*enqueue)(struct task_struct *task, __u64 flags);
	void (*dispatch)(__s32 cpu, struct task_struct *before);
	void (*running)(struct task_struct *task);
	void (*stopping)(struct task_struct *task, bool runnable);
	void (*enable)(struct task_struct *task);
	__s32 (*init)(void);
	__u32 timeout_ms;
	char name[128];
};

#define LOCAL 0x8000000000000002ULL
#define WAITING 0
/* The weight of nice 0, and the kernel's default slice in ns. */
#define USUAL 100
#define SLICE 20000000ULL

extern __s32 scx_bpf_create_dsq(__u64 queue, __s32 node) __ksym;
extern __s32 scx_bpf_select_cpu_dfl(struct task_struct *task, __s32 before, __u64 wake_flags,
				    bool *idle) __ksym;
/* Their names in Linux 6.12: scx_bpf_dispatch, scx_bpf_dispatch_vtime and scx_bpf_consume. */
extern void scx_bpf_dsq_insert(struct task_struct *task, __u64 queue, __u64 slice,
			       __u64 flags) __ksym __weak;
extern void scx_bpf_dispatch(struct task_struct *task, __u64 queue, __u64 slice,
			     __u64 flags) __ksym __weak;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *task, __u64 queue, __u64 slice,
				     __u64 vtime, __u64 flags) __ksym __weak;
extern void scx_bpf_dispatch_vtime(struct task_struct *task, __u64 queue, __u64 slice, __u64 vtime,
				   __u64 flags) __ksym __weak;
extern bool scx_bpf_dsq_move_to_local(__u64 queue) __ksym __weak;
extern bool scx_bpf_consume(__u64 queue) __ksym __weak;

/* Current virtual time: that of the task that started to run last. */
static __u64 now;

INLINE struct sched_ext_entity *of(struct task_struct *task)
{
	return &((struct task_struct___scheduled *)task)->scx;
}

INLINE bool before(__u64 one, __u64 other)
{
	return (__s64)(one - other) < 0;
}

/* An idle CPU runs the woken task at once. */
SEC("struct_ops/select_cpu")
__s32 BPF_PROG(select_cpu, struct task_struct *task, __s32 last, __u64 wake_flags)
{
	bool idle = false;
	__s32 cpu = scx_bpf_select_cpu_dfl(task, last, wake_flags, &idle);

	if (idle) {
		if (scx_bpf_dsq_insert)
			scx_bpf_dsq_insert(task, LOCAL, SLICE, 0);
		else
			scx_bpf_dispatch(task, LOCAL, SLICE, 0);
	}
	return cpu;
}

/* A task accumulates at most one slice of credit while it sleeps. */
SEC("struct_ops/enqueue")
void BPF_PROG(enqueue, struct task_struct *task, __u64 flags)
{
	__u64 vtime = of(task)->dsq_vtime;

	if (before(vtime, now - SLICE))
		vtime = now - SLICE;
	if (scx_bpf_dsq_insert_vtime)
		scx_bpf_dsq_insert_vtime(task, WAITING, SLICE, vtime, flags);
	else
		scx_bpf_dispatch_vtime(task, WAITING, SLICE, vtime, flags);
}

SEC("struct_ops/dispatch")
void BPF_PROG(dispatch, __s32 cpu, struct task_struct *last)
{
	if (scx_bpf_dsq_move_to_local)
		scx_bpf_dsq_move_to_local(WAITING);
	else
		scx_bpf_consume(WAITING);
}

SEC("struct_ops/running")
void BPF_PROG(running, struct task_struct *task)
{
	if (before(now, of(task)->dsq_vtime))
		now = of(task)->dsq_vtime;
}

SEC("struct_ops/stopping")
void BPF_PROG(stopping, struct task_struct *task, bool runnable)
{
	of(task)->dsq_vtime += (SLICE - of(task)->slice) * USUAL / of(task)->weight;
}

SEC("struct_ops/enable")
void BPF_PROG(enable, struct task_struct *task)
{
	of(task)->dsq_vtime = now;
}

SEC("struct_ops.s/init")
__s32 BPF_PROG(init)
{
	return scx_bpf_create_dsq(WAITING, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops slices = {
	.select_cpu = (void *)select_cpu,
	.enqueue = (void *)enqueue,
	.dispatch = (void *)dispatch,
	.running = (void *)running,
	.stopping = (void *)stopping,
	.enable = (void *)enable,
	.init = (void *)init,
	.timeout_ms = 5000,
	.name = "latlab_slices",
};
