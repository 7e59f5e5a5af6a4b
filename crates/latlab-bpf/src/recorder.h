/* Data shared by the recorder's BPF programs and user space; layout.rs declares the same in Rust.
 * Times are nanoseconds of CLOCK_MONOTONIC. */
#ifndef LATLAB_RECORDER_H
#define LATLAB_RECORDER_H

#define EVENTS 16384	/* kept per CPU; a power of two */
#define COPIED 1024	/* largest number of events of one CPU in a window */
#define BEFORE 64	/* events from before the task was due */
#define AFTER 64	/* events from after the task ran */
#define AFTER_LEFT 8	/* events of another CPU from after the waking, or after the last move */
#define MOVES 4	/* moves between run queues that are kept; a power of two */
#define FRAMES 32	/* largest number of functions in a stack */
#define WAKES 4096	/* largest number of watched tasks; slots are PIDs modulo this */
#define STOLEN_UNIT 10	/* low bits of the stolen nanoseconds that an event drops */
#define FILTER 8192	/* bytes of the filter of watched tasks, one per PID modulo this */

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
	PAGE_FAULT,
	EXPIRY,	/* TIMER_INTERRUPT, and TIMER of the first callback in it */
	CURRENT,	/* the task, after switches that were not recorded */
	CALLED,	/* the function is comm[0] of `task`, whose PID is SAME; `other` asked for it */
	LOCK_WAIT,	/* the task waits for the lock at comm[0] of `task`; `other` has it */
	CALLERS,	/* five functions that called for the lock, from comm[0] of `task` on */
	LOCK_TAKEN,	/* the wait ends; when its task was last woken from it (0: it did not sleep), its PID */
	THROTTLED,	/* a control group has used up its CPU quota on the CPU */
	UNTHROTTLED,	/* it has CPU time again */
};

/* Bits of the priority of a LOCK_WAIT's task: whose memory the lock protects, and whether `other` is a
 * reader, maybe of several, that has had it last. */
#define OF_OWN_MEMORY 1
#define OF_OWNERS_MEMORY 2
#define OF_READERS 4

#define CALLER_EVENTS 3	/* CALLERS after a LOCK_WAIT */

/* A task as recorded in an event. */
struct who {
	__u32 pid;
	__s16 prio;
	__u16 cpu;	/* on which it last ran */
	__u64 comm[2];
};

/* Stands for the PID of an event whose task is that of the event before. */
#define SAME 0xffffffff

/* An event of 64 bytes. */
struct event {
	__u32 seq;	/* number of events before it, plus 1; written last */
	union {
		struct {
			__u8 kind;
			__u8 flag;	/* SWITCH: still runnable; interrupts: interrupted user code; LOCK_WAIT: the kernel's */
			__u16 stolen;	/* KVM steal time of the CPU so far, in units of 1024 ns; 0 if unknown */
		};
		__u32 what;	/* the three of them */
	};
	__u64 at;
	struct who task;	/* current */
	union {
		struct who other;	/* SWITCH, WAKING, CALLED, LOCK_WAIT */
		__u64 value[3];
	};
};

/* A move of a woken task from one run queue to another. */
struct move {
	__u64 at;
	__u32 from;
	__u32 to;
};

/* What is kept of a wake-up until the task has run for the first time. */
struct woken {
	__u64 due;
	__u64 expiry;
	__u64 waking;
	struct who waker;
};

/* The events and the state of a CPU. */
struct ring {
	/* Used at each switch: one cache line. */
	__u64 head;	/* number of events so far */
	__u64 variables;	/* address of its per-CPU section; 0 until known */
	__u64 waiting;	/* number of watched tasks that were woken and are to run here; `sparse` only */
	__u64 unrecorded;	/* time of the last switch, if it was not recorded; else 0 */
	__u64 unrecorded_steal;	/* exact steal time then */
	__u64 queued;	/* when a watched task was queued here; 0 after the next switch */
	__u64 arrived_head;	/* number of events when `arrived`; 0 if there is none */
	/* Used at each interrupt. */
	__u64 due;	/* expiry of the high-resolution timer whose callback runs; 0 if none */
	__u64 expiry;	/* the same plus its slack */
	__u64 context;	/* context in which the callback runs; UPON_ALL for an interrupt's */
	__u32 upon;	/* what the current interrupt interrupted; bits below */
	__u32 running;	/* task of the last context switch; NOBODY before the first, as set before attaching */
	__u32 awaited;	/* the task that was queued at `queued` */
	__u32 sleeper;	/* a watched task that went to sleep here, and was not woken before; 0 if none */
	__u32 fresh;	/* a watched task that was woken here, whose wake-up is in `woken` only; 0 if none */
	__u32 reserved;
	__u64 arrived;	/* when a watched task was switched in whose wake-up is not yet kept */
	struct woken woken;
	__u64 steal;	/* steal time at the last tick that was read */
	__u64 steal_at;	/* time of that read; 0 if there was none */
	__u64 passed;	/* time of the last switch to another task than the one queued here */
	__u32 passed_pid;	/* the task that was switched out then */
	__s32 passed_depth;	/* bytes of its stack; less than 1 if there is none */
	__u64 passed_stack[FRAMES];
	struct event events[EVENTS + COPIED];
};

#define NOBODY (~0U)
#define NO_CPU (~0U)
_Static_assert(__builtin_offsetof(struct ring, running) == 84, "layout.rs has the same");

/* Bits of `upon`. */
#define INTERRUPTED 1
#define USER 2

/* Context of the callbacks of an interrupt: none comes on top of it. */
#define UPON_ALL (~0ULL)

/* A wake-up; the head of a window. */
struct wake {
	__u64 due;
	__u64 expiry;
	__u64 waking;	/* time of sched_waking; 0 if not reported */
	__u64 switched;	/* time of sched_switch; 0 if not reported */
	__u64 out;	/* when the task was switched out again */
	__u64 stolen;	/* lower bound of the steal time since due, if accounted at ticks */
	__u64 steal;	/* upper bound of the steal counter at due */
	__u64 head;	/* number of events of the CPU at the switch */
	__u64 queued;	/* when the task was put on the run queue; 0 if unknown; `sparse` only */
	struct who task;
	struct who waker;
	__u32 cpu;
	__u32 waker_cpu;
	__s32 waking_depth;	/* bytes of the stacks; less than 1 if there is none */
	__s32 switch_depth;
	__u32 first;	/* number of events before the first that follows */
	__u32 events;	/* number of events that follow */
	__u32 first_abroad;
	__u32 events_abroad;
	__u32 first_former;
	__u32 events_former;
	__u32 former_cpu;	/* the last one that it left and that did not wake it, or NO_CPU */
	__u32 switch_pid;	/* the task of switch_stack */
	__u32 moves;	/* number of moves while it was runnable; the last ones are kept */
	__u32 stop;	/* what stopped the task until it was woken, as `asleep`; 0 if it slept */
	__u64 group;	/* its control group when it ran; 0 for real-time tasks */
	struct who stopper;	/* with `stop` only */
	struct move moved[MOVES];
	__u64 waking_stack[FRAMES];
	__u64 switch_stack[FRAMES];
};

/* A watched task: the wake-up in progress, and the late one not yet reported. */
struct watched {
	__u32 pid;	/* 0: the slot is free */
	__u32 next;	/* index of the wake-up in progress */
	__u32 pending;	/* whether the task was woken and has not run */
	__u32 late;	/* LATE: the other wake-up is to be reported at the next switch */
	__u64 due;	/* of the wake-up in progress */
	__u64 left;	/* when the task was last switched out */
	__u64 asleep;	/* ASLEEP, or what stops it: it was switched out so and has not run since; else 0 */
	__u64 waits;	/* 1 plus the CPU among whose `waiting` tasks it is; 0: none */
	__u64 lock;	/* address of the lock for which it waits; 0: none */
	__u64 released;	/* when it was last woken from that wait; 0: it has not slept */
	struct wake wakes[2];
	__u64 stopped;	/* since when a stop delays it, while `asleep` says that it is stopped */
	struct who stopper;
	__u64 throttled;	/* since when its queue was throttled, when it began to wait for quota; 0: it does not */
	__u64 throttled_before;	/* how long the queue had been before */
};

/* Values of `asleep`. */
#define ASLEEP 1
#define BY_SIGNAL 2
#define BY_TRACER 3
#define BY_FREEZER 4

/* Values of `late`; another value spares the task's way to sleep a look at `lock`. */
#define LATE 1
#define LATE_IN_LOCK 2

/* How tasks are watched. */
enum how { TASKS = 0, NAME = 1, REAL_TIME = 2 };

struct settings {
	__u64 name[2];
	__u64 slow;	/* latency above which a stack is taken */
	/* Offsets in the per-CPU section; 0 where the kernel has no variable of that name. */
	__u32 hrtimer_bases;
	__u32 irq_regs;
	__u32 preempt_count;
	__u32 steal_time;	/* KVM's, exact; recorded with each event */
	__u32 cpustat_steal;	/* value of the last tick */
	__u32 how;
	__u32 goes_on;	/* whether kernel code is not preempted by a woken task */
	__u32 local_timer;	/* whether timers expire in the local timer interrupt only, which ends visibly */
	__u32 interrupts;	/* bits of the preemption count that count interrupts */
	__u32 sparse;	/* whether switches are recorded only while a watched task waits for the CPU */
	__u32 later;	/* whether latencies are judged when the task sleeps again; with TASKS only */
	__u32 defers;	/* whether wake-ups are kept with the CPU until the task sleeps again; with `later` only */
	__u32 wakings;	/* whether the wakings of watched tasks are events */
	__u32 unused;
};

struct lost {
	__u64 windows;	/* late wake-ups that did not fit into the ring buffer */
	__u64 switches;	/* not reported: the next switch began from another task */
	__u64 wakes;	/* of tasks whose slot was taken */
};

#endif
