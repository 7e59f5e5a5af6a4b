/* Periods that hold, for real-time loops; latlab watch shows them. See docs/period.md.
 * cc loop.c $(pkg-config --cflags --libs latlab-period) */
#ifndef LATLAB_PERIOD_H
#define LATLAB_PERIOD_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

enum latlab_policy { LATLAB_KEEP, LATLAB_FIFO, LATLAB_RR, LATLAB_DEADLINE };
enum latlab_overrun { LATLAB_SKIP, LATLAB_CATCH_UP, LATLAB_STOP };

/* Settings of a loop. All but the period may be zero. */
struct latlab_period_settings {
	uint64_t period_ns;		/* 10 us to 1 h */
	const char *name;		/* at most 32 bytes; 0: the name of the thread */
	int policy;			/* enum latlab_policy */
	int priority;			/* 1 to 99, for LATLAB_FIFO and LATLAB_RR */
	uint64_t runtime_ns;		/* CPU time in each period, for LATLAB_DEADLINE */
	int on_overrun;			/* enum latlab_overrun: after a cycle that ended too late */
	int leave_memory_unlocked;	/* 0: all memory of the process is locked */
	uint64_t stack_bytes;		/* stack to touch at the start; 0: 64 KiB */
	int hold_cpu_dma_latency;	/* 1: idle states take at most this time to leave: */
	int cpu_dma_latency_us;
	uint64_t spin_at_most_ns;	/* longest time to spin in each period; 0: never */
	const char *failed;		/* set where the loop can't start */
};

/* The loop so far. Lateness is the time from when a cycle was due until it started. */
struct latlab_period_summary {
	uint64_t cycles, overruns, missed, lateness_min_ns, lateness_max_ns, running_max_ns, spin_ns;
};

struct latlab_period;

/* Prepares the calling thread. 0 where that is refused: see settings->failed and errno. The thread then
 * keeps its policy. Call it after daemon(3): a child of fork(2) does not inherit locked memory or
 * LATLAB_DEADLINE, and the statistics name the thread of its parent. */
struct latlab_period *latlab_period_start(struct latlab_period_settings *settings);
/* Ends a cycle and waits for the next. Returns the number of periods that were skipped, or -1 where
 * LATLAB_STOP ended the loop. */
int64_t latlab_period_wait(struct latlab_period *period);
void latlab_period_summary(const struct latlab_period *period, struct latlab_period_summary *summary);
/* Ends a loop. The policy stays, and memory stays locked. */
void latlab_period_end(struct latlab_period *period);

/* The calling thread waits for interrupts of these device groups of latlab adapt, such as "AUDIO,NETWORK",
 * until it ends; "": for none. Returns 0, or what was refused; errno says why. See docs/daemon.md. */
const char *latlab_prioritize(const char *groups);

#ifdef __cplusplus
}
#endif
#endif
