/* Kernel structs with the fields that the programs read. Their offsets are taken from the running
 * kernel's BTF when the programs are loaded (CO-RE). */
#ifndef LATLAB_KERNEL_H
#define LATLAB_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed short __s16;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define false 0
#define true 1

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9 };
enum { BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0 };

struct bpf_dynptr {
	__u64 opaque[2];
} __attribute__((aligned(8)));

#define CORE __attribute__((preserve_access_index))
#define INLINE static __always_inline

/* Flags of a task. */
#define KTHREAD 0x00200000	/* PF_KTHREAD */
#define EXITING 0x00000004	/* PF_EXITING */

/* States of a task that sleeps until others let it go on. */
#define STOPPED 0x4	/* __TASK_STOPPED */
#define TRACED 0x8	/* __TASK_TRACED */
#define FROZEN 0x8000	/* TASK_FROZEN, since Linux 6.1 */

#define MIGRATING 2	/* TASK_ON_RQ_MIGRATING of `on_rq` */

/* Bit of the preemption count: set while a softirq runs. The bits above count the sections with softirqs
 * disabled; where those of interrupts are depends on the kernel. */
#define SERVING_SOFTIRQ 0x100

struct thread_info {
	__u32 cpu;
	__u64 preempt_count;	/* arm64 only; x86 has a per-CPU variable */
} CORE;

struct rq {
	__u64 clock;
	__u32 cpu;
} CORE;

/* Accounts of the scheduler, in time of `rq->clock`. */
struct sched_info {
	__u64 last_queued;	/* 0 once the task runs */
} CORE;

struct task_group {
	__u32 shares;
} CORE;

struct cfs_rq {
	struct rq *rq;
	struct task_group *tg;	/* with control groups */
	/* With CPU quotas, in time of `rq->clock`: since when this queue is throttled, and for how long it was. */
	__u64 throttled_clock_self;
	__u64 throttled_clock_self_time;
} CORE;

struct sched_entity {
	struct cfs_rq *cfs_rq;
} CORE;

struct callback_head {
	struct callback_head *next;
} CORE;

struct restart_block {
	struct {
		int clockid;
		__u64 expires;
	} nanosleep;
} CORE;

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	unsigned int on_rq;	/* int, but u8 in Linux 7.3: loads of another size need an unsigned type */
	int prio;
	int normal_prio;
	struct sched_entity se;
	struct sched_info sched_info;
	struct callback_head sched_throttle_work;	/* since Linux 6.18 */
	bool throttled;	/* the same */
	unsigned frozen:1;	/* by the freezer of its control group, version 2 */
	struct restart_block restart_block;
	struct task_struct *parent;	/* of a traced task, its tracer */
	int pid;
	int tgid;
	int softirq_disable_cnt;	/* PREEMPT_RT only; replaces the softirq part of the preemption count */
	void *pi_blocked_on;
	char comm[16];
} CORE;

struct timerqueue_node {
	__s64 expires;
} CORE;

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
} CORE;

/* Linux 6.2 and later: reads kernel memory as a struct of the given type. */
extern void *bpf_rdonly_cast(const void *address, __u32 type) __ksym __weak;

struct hrtimer_cpu_base {
	unsigned int cpu;
} CORE;

struct hrtimer_clock_base {
	struct hrtimer_cpu_base *cpu_base;
	__s64 offset;
} CORE;

struct hrtimer {
	struct timerqueue_node node;
	__s64 _softexpires;
	void *function;
	struct hrtimer_clock_base *base;
	__u8 is_soft;	/* expires in a softirq */
} CORE;

struct timer_list {
	void *function;
} CORE;

struct irqaction {
	const char *name;
} CORE;

struct pt_regs {
	unsigned long di;
	unsigned long dx;
	unsigned long ax;
	unsigned long orig_ax;
	unsigned long ip;
} CORE;

struct pt_regs___arm64 {
	__u64 pc;
} CORE;

/* The first bytes of what arm64 calls its interrupts. */
#define ARCH_TIMER 0x6d69745f68637261	/* "arch_tim" of "arch_timer" */
#define IPI 0x495049			/* "IPI" and its end */
#define RESCHEDULING 0x7564656863736552	/* "Reschedu" of "Rescheduling interrupts" */
#define TIMER_BROADCAST 0x72622072656d6954	/* "Timer br" of "Timer broadcast interrupts" */

/* Reads eight bytes of kernel memory, through a struct that every kernel has and that begins with a number of
 * that size. */
INLINE __u64 word(__u64 address)
{
	if (bpf_rdonly_cast)
		return *(__u64 *)bpf_rdonly_cast((void *)address,
						 bpf_core_type_id_kernel(struct timespec64));
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

#endif
