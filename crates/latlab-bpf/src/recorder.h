/* What the kernel's side of the recorder and the program say to each other; layout.rs is the same
 * in Rust. Times are nanoseconds of CLOCK_MONOTONIC. */
#ifndef LATLAB_RECORDER_H
#define LATLAB_RECORDER_H

#define EVENTS 16384	/* that a CPU keeps; a power of two */
#define COPIED 1024	/* events of its own CPU that a window has at most */
#define ABROAD 512	/* events of the CPU that woke the task, likewise */
#define BEFORE 64	/* events from before it was due */
#define AFTER 64	/* events from after it ran */
#define AFTER_WAKING 8	/* events from after the waking, on the CPU that woke it */
#define FRAMES 32	/* functions of a stack */
#define WAKES 4096	/* tasks that are watched at a time, at most; by pid modulo this */
#define STOLEN_UNIT 10	/* bits of nanoseconds that an event leaves out of the stolen time */
#define FILTER 1024	/* words of the filter of watched tasks: a bit for each pid modulo 65536 */

enum kind {
	SWITCH = 1,
	WAKING,
	QUEUED,
	MIGRATED,
	DEVICE,
	TIMER_INTERRUPT,
	RESCHEDULE,
	CALL,
	INTERRUPT_END,
	SOFTIRQ,
	SOFTIRQ_END,
	TIMER,
	TIMER_END,
	CALLBACK,
	CALLBACK_END,
	IDLE,
	IDLE_END,
	PAGE_FAULT,
};

/* A task as an event keeps it. */
struct who {
	__u32 pid;
	__s16 prio;
	__u16 cpu;	/* where it last ran */
	__u64 comm[2];
};

/* What happened, in 64 bytes. */
struct event {
	__u32 seq;	/* the count of events before it, plus 1; last to be written */
	__u8 kind;
	__u8 flag;	/* SWITCH: preempted; interrupts: came upon user code */
	__u16 stolen;	/* what KVM took of the CPU so far, in units of 1024 ns; 0 if it does not say */
	__u64 at;
	struct who task;	/* current */
	union {
		struct who other;	/* SWITCH, WAKING */
		__u64 value[2];
	};
};

/* What a CPU keeps. */
struct ring {
	__u64 head;	/* events that there were */
	__u64 steal;	/* time stolen until the tick at the moment that follows */
	__u64 steal_at;	/* when that was read; 0 if it never was */
	__u64 due;	/* of the high-resolution timer whose callback runs; 0 if none */
	__u64 expiry;	/* the same with its slack */
	__u64 context;	/* in which context that is */
	__u64 variables;	/* where its per-CPU variables lie; 0 until it is known */
	__u32 upon;	/* what the interrupt that is handled came upon, below */
	__u32 running;	/* the task that the CPU went over to last */
	struct event events[EVENTS + COPIED];
};

/* Bits of `upon`. */
#define INTERRUPTED 1
#define USER 2

/* One wake-up, as the window begins. */
struct wake {
	__u64 due;
	__u64 expiry;
	__u64 waking;	/* 0 if the kernel did not report it */
	__u64 switched;	/* likewise */
	__u64 out;	/* when it was switched out again */
	__u64 stolen;	/* since it was due, at least, where that is counted at ticks */
	__u64 steal;	/* the most that this count can have been when it was due */
	__u64 head;	/* that of the CPU, at the switch */
	struct who task;
	struct who waker;
	__u32 cpu;
	__u32 waker_cpu;
	__s32 waking_depth;	/* bytes of the stacks; below 1 if there is none */
	__s32 switch_depth;
	__u32 first;	/* the count of events before the first that follows */
	__u32 events;	/* how many follow */
	__u32 first_abroad;
	__u32 events_abroad;
	__u64 waking_stack[FRAMES];
	__u64 switch_stack[FRAMES];
};

/* A watched task: the wake-up that goes on, and the late one that is yet to be reported. */
struct watched {
	__u32 pid;	/* 0: none has this place */
	__u32 next;	/* which of the two goes on */
	__u32 pending;	/* whether it was woken and has not run */
	__u32 late;	/* whether the other is to be reported when it gives way */
	__u64 due;	/* of the one that goes on */
	__u64 left;	/* when it last gave the CPU away */
	__u64 asleep;	/* whether it did so to sleep, and has not come back */
	__u64 free[3];
	struct wake wakes[2];
};

/* How tasks are watched. */
enum how { TASKS = 0, NAME = 1, REAL_TIME = 2 };

struct settings {
	__u64 name[2];
	__u64 slow;	/* what is later than this is worth a stack */
	/* Where per-CPU variables lie among all; 0 where the kernel has none of that name. */
	__u32 hrtimer_bases;
	__u32 irq_regs;
	__u32 preempt_count;
	__u32 steal_time;	/* KVM's, exact: each event has it */
	__u32 cpustat_steal;	/* as of the last tick */
	__u32 how;
	__u32 goes_on;	/* whether the kernel goes on with its work until it leaves itself */
	__u32 reserved;
};

struct lost {
	__u64 windows;	/* for which there was no room */
	__u64 switches;	/* that nobody reported: the next began from another task */
	__u64 wakes;	/* of tasks whose place another has */
};

#endif
