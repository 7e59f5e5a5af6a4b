/* Data shared by the BPF programs of the wakers and user space; wakers.rs declares the same in
 * Rust. */
#ifndef LATLAB_WAKERS_H
#define LATLAB_WAKERS_H

#define PAIRS 4096	/* pairs with the time of their last report; the oldest are evicted */
#define QUIET 100000000ULL	/* shortest time between two reports of a pair, in ns */
#define ROOM 65536	/* size of the ring buffer in bytes; a multiple of the page size on any machine */
#define SOFTIRQS 10	/* NR_SOFTIRQS */

/* A woken task and its waker. */
struct pair {
	__s32 task;
	__s32 process;
	__s32 thread;	/* the waker: an interrupt or softirq thread */
	__s32 behind;	/* the IRQ thread that raised the softirq; 0: unknown */
};

/* Wake-ups of real-time tasks by tasks of lower priority. */
struct violations {
	__u64 count;
	__u64 last;	/* the waker in the upper half, the woken task in the lower */
};

#endif
