/* What the kernel's side of the wakers and the program say to each other; wakers.rs is the same in
 * Rust. */
#ifndef LATLAB_WAKERS_H
#define LATLAB_WAKERS_H

#define PAIRS 4096	/* of which is known when they were last told; the oldest are forgotten */
#define QUIET 100000000ULL	/* nanoseconds in which a pair is told once */
#define ROOM 65536	/* bytes of what was told and not read; a page's size, on any machine */
#define SOFTIRQS 10	/* NR_SOFTIRQS */

/* Who woke whom. */
struct pair {
	__s32 task;
	__s32 process;
	__s32 thread;	/* an interrupt or a soft-irq thread */
	__s32 behind;	/* the interrupt thread that a soft-irq thread worked for; 0: none is known */
};

/* Wake-ups of real-time tasks by tasks of lower priority. */
struct violations {
	__u64 count;
	__u64 last;	/* who woke in the upper half, whom in the lower */
};

/* Where per-CPU variables lie among all. */
struct places {
	__u32 runqueues;
	__u32 preempt_count;
};

#endif
