/* Data shared by the BPF programs of the check and user space; check/layout.rs declares the same in
 * Rust. Times are nanoseconds of CLOCK_MONOTONIC. */
#ifndef LATLAB_CHECK_H
#define LATLAB_CHECK_H

#define PROCESSES 1024	/* largest number of watched processes, a power of two */
#define ROOM (16 << 20)	/* size of the ring buffer in bytes */
#define STACK 2048	/* bytes copied from the top of the user stack */
#define SHORT_STACK 512	/* the same where that many are not mapped */
#define CALLERS 16	/* words of the stack in which the C library returns to its caller */
#define VALUES 11
#define LOCK_WORDS 8	/* words of memory by which a lock of user space is known */
#define LOCK_BEFORE 12	/* bytes of them before that of the futex */

enum kind_of_note {
	ENTER = 1,	/* number, six arguments, time, the file of that number if the first argument is
			 * one, memory locks; file name, stack. A futex has the memory around it in place of
			 * the file and its name, and after the locks. Without name and stack, both are those of the last
			 * ENTER of nanosleep() of the thread */
	LEAVE,		/* result, number */
	FAULT,		/* address, error code, major faults so far, in the kernel; stack */
	FAULTED,	/* result of handle_mm_fault() */
	WAKING,		/* waker, its priority, context, its name */
	OUT,		/* state, preempted, next task, its priority, its name; of a stop, its kind and, above 8
			 * bits, who stopped it; whether the next task is the kernel's; name of who stopped it */
	IN,		/* major faults so far */
	MIGRATE,	/* to this CPU */
	FORK,		/* the new process */
	EXEC,
	EXIT,		/* whether all threads of the process have ended */
	BEGIN,		/* the ID of a part of a cycle, and its name */
	END,		/* 0, and the name of the part */
	MAPPED,		/* code of a file */
	REQUEST,	/* for a real-time policy or locked memory: number, result, thread or address, policy or
			 * length, priority, limits RLIMIT_RTPRIO and RLIMIT_MEMLOCK, rights, size of the
			 * memory in bytes; stack */
};

/* How a thread is stopped. */
enum stop { RUNS, BY_SIGNAL, BY_TRACER, BY_FREEZER };

/* The rights of a thread that makes a request. */
#define MAY_SCHEDULE 1	/* CAP_SYS_NICE */
#define MAY_LOCK 2	/* CAP_IPC_LOCK */
#define IN_NAMESPACE 4	/* in a user namespace, whose capabilities do not count */
#define WITHOUT_BUDGET 8	/* its control group has no real-time budget */

#define NAME 64		/* longest name of a part with its zero, in the values after the first */

/* Where a waking happened. */
enum context { UNKNOWN, INTERRUPT, BY_TASK, LOCK };

/* An event of a watched thread. */
struct note {
	__u64 at;
	__u32 tid;
	__u32 tgid;
	__s16 prio;	/* the kernel's, without inherited priority */
	__u8 policy;
	__u8 kind;
	__u32 cpu;
	char comm[16];
	__u64 value[VALUES];
};

/* An event with registers and the top of the stack of the user's code. */
struct long_note {
	struct note note;
	char file[16];	/* the end of the name of the file in the first argument */
	__u64 ip;
	__u64 sp;
	__u64 bp;
	__u64 lr;	/* arm64 only */
	__u32 length;	/* bytes of the stack */
	__u32 reserved;
	char stack[STACK];
};

/* A watched process. */
struct process {
	/* User's code at the last call of nanosleep() or clock_nanosleep(), and its thread. */
	__u64 ip;
	__u64 sp;
	__u64 callers;	/* sum over the addresses on the top of the stack */
	__u32 tid;
	__u32 stopper;		/* who last sent it a signal that stops it */
	char stopper_name[16];
};

struct check_settings {
	__u32 parent;	/* the processes that this one starts are watched; 0: none */
	/* Numbers of system calls. */
	__u32 nanosleep;
	__u32 clock_nanosleep;
	__u32 mmap;
	__u32 sched_setscheduler;
	__u32 sched_setparam;
	__u32 sched_setattr;
	__u32 mlock;
	__u32 mlock2;
	__u32 mlockall;
	__u32 futex;
	__u32 any_policy;	/* whether all threads are watched, not only real-time ones */
};

#endif
