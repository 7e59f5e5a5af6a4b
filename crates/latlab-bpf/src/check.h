/* Data shared by the BPF programs of the check and user space; check/layout.rs declares the same in
 * Rust. Times are nanoseconds of CLOCK_MONOTONIC. */
#ifndef LATLAB_CHECK_H
#define LATLAB_CHECK_H

#define PROCESSES 1024	/* largest number of watched processes, a power of two */
#define ROOM (16 << 20)	/* size of the ring buffer in bytes */
#define STACK 2048	/* bytes copied from the top of the user stack */
#define SHORT_STACK 512	/* the same where that many are not mapped */
#define CALLERS 16	/* words of the stack in which the C library returns to its caller */
#define VALUES 10

enum kind_of_note {
	ENTER = 1,	/* number, six arguments, time, the file of that number if the first argument is
			 * one, memory locks; file name, stack, without which both are those of the last
			 * ENTER of nanosleep() of the thread */
	LEAVE,		/* result, number */
	FAULT,		/* address, error code, major faults so far, in the kernel; stack */
	FAULTED,	/* result of handle_mm_fault() */
	WAKING,		/* waker, its priority, context, its name */
	OUT,		/* state, preempted, next task, its priority, its name, major faults so far */
	IN,		/* major faults so far */
	MIGRATE,	/* to this CPU */
	FORK,		/* the new process */
	EXEC,
	EXIT,		/* whether all threads of the process have ended */
	BEGIN,		/* the ID of a part of a cycle, and its name */
	END,		/* 0, and the name of the part */
	MAPPED,		/* code of a file */
};

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
	__u32 reserved;
};

struct check_settings {
	__u32 parent;	/* the processes that this one starts are watched; 0: none */
	/* Numbers of system calls. */
	__u32 nanosleep;
	__u32 clock_nanosleep;
	__u32 mmap;
};

#endif
