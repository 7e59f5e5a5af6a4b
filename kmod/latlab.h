/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface of /dev/latlab, the test driver of latlab.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC. Invalid arguments end a call with EINVAL.
 */
#ifndef LATLAB_H
#define LATLAB_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Incremented with every change of the interface. */
#define LATLAB_VERSION		6

/* Number of parts of the loop, from the first, whose times are returned. */
#define LATLAB_PARTS		64
/* Maximum number of preemption points of one loop. */
#define LATLAB_MAX_POINTS	1023
/* Maximum time until an armed interrupt, and maximum wait for one. */
#define LATLAB_LONGEST_NS	10000000000ULL
/* Minimum time between two interrupts of a periodic device. */
#define LATLAB_SHORTEST_PERIOD_NS	20000ULL
/* Maximum run time of an interrupt handler. */
#define LATLAB_BUSIEST_NS	1000000ULL
/* Maximum length of a delay, and maximum time until it begins. */
#define LATLAB_LONGEST_DELAY_NS	10000000ULL
/* Number of switches to a task that are kept until it asks for them. */
#define LATLAB_SWITCHES		16

/* Version and abilities of the driver. */
struct latlab_version {
	__u32 version;			/* LATLAB_VERSION */
	__u32 device;			/* 1 if LATLAB_DEVICE can interrupt, else 0 */
	__u64 iterations_per_second;	/* of the loop; also the maximum of one call */
};

/* Context of the loop. */
enum latlab_mode {
	LATLAB_PLAIN,		/* unprotected: preemptible where the kernel is */
	LATLAB_SPIN,		/* each part under a spinlock */
	LATLAB_RAW_SPIN,	/* each part under a raw spinlock */
	LATLAB_PREEMPT_OFF,	/* each part with preemption disabled */
	LATLAB_IRQ_OFF,		/* each part with interrupts disabled */
	LATLAB_LOCK_BREAK,	/* all under one spinlock, dropped at a point if a task waits */
	LATLAB_MODES		/* not a mode: their number */
};

/* One part of the loop, including the time of tasks that preempted it. */
struct latlab_part {
	__u64 begin;		/* after the lock was taken */
	__u64 end;		/* before it is released */
};

/* A loop of equal parts with preemption points between them. */
struct latlab_run {
	__u64 iterations;	/* in: of all parts together; at least one per part */
	__u32 points;		/* in: preemption points, one fewer than parts */
	__u32 mode;		/* in: enum latlab_mode */
	__u32 parts;		/* out: number of entries in part[], at most LATLAB_PARTS */
	__u32 zero;		/* in: 0 */
	struct latlab_part part[LATLAB_PARTS];	/* out */
};

/* Source of an interrupt. */
enum latlab_source {
	LATLAB_TIMER,		/* a kernel timer, served in hard interrupt context */
	LATLAB_DEVICE,		/* QEMU's "edu" device */
	LATLAB_SOURCES		/* not a source: their number */
};

/* The device's interrupt handler wakes a thread, which wakes the waiting task. */
#define LATLAB_THREADED		1
/* The device interrupts at once instead of at the end of a transfer. */
#define LATLAB_AT_ONCE		2
/* The device interrupts again and again, until the next arming, or until nobody has the driver open. */
#define LATLAB_PERIODIC		4

/* The next interrupt. Replaces an armed interrupt that has not come. */
struct latlab_arm {
	__u64 time;		/* in, timer: due time, past: at once; in, periodic: the period;
				 * out: due time
				 */
	__u32 source;		/* in: enum latlab_source */
	__u32 flags;		/* in, device: any of LATLAB_THREADED, and LATLAB_AT_ONCE
				 * or LATLAB_PERIODIC
				 */
	__u64 busy;		/* in: run time of the handler, at most LATLAB_BUSIEST_NS; periodic
				 * and not threaded: at most half of the period
				 */
};

/* An interrupt that came. */
struct latlab_wait {
	__u64 sequence;		/* in: of the last one seen, initially 0; out: of this one.
				 * Counted from 1 while anybody has the driver open
				 */
	__u64 time;		/* out: when it was due */
	__u64 served;		/* out: first instruction of its service routine */
};

/* Starts timing the scheduler's switches to the caller. */
struct latlab_watch {
	__u64 cost;		/* out: cost of timing, to be subtracted from each time below */
};

/* The switches to the caller since its last request. */
struct latlab_switches {
	__u32 count;		/* out: number of entries in took[] */
	__u32 lost;		/* out: number of further switches, not timed */
	__u64 took[LATLAB_SWITCHES];	/* out: duration of each */
};

/* The causes of an injected delay: other tasks are kept off the caller's processor, or wait for a lock. */
enum latlab_cause {
	LATLAB_INTERRUPTS_OFF,	/* interrupts are disabled */
	LATLAB_PREEMPTION_OFF,	/* preemption is disabled */
	LATLAB_RAW_SPINLOCK,	/* a raw spinlock is held, interrupts are disabled */
	LATLAB_SOFTIRQ,		/* a tasklet runs */
	LATLAB_TIMER_CALLBACK,	/* the callback of a high-resolution timer runs */
	LATLAB_MUTEX,		/* a mutex is held, of which there is one: other callers wait for it */
	LATLAB_CAUSES		/* not a cause: their number */
};

/* A delay. Begins at once if its time is past; the call returns when it is over. */
struct latlab_inject {
	__u64 at;		/* in: when it begins, at most LATLAB_LONGEST_DELAY_NS ahead; out: when it was about to begin */
	__u64 until;		/* in: when it ends, at most LATLAB_LONGEST_DELAY_NS after that */
	__u32 cause;		/* in: enum latlab_cause */
	__u32 zero;		/* in: 0 */
};

/* Numbers below 0x10 are for calls that measure. */
#define LATLAB_IOC_VERSION	_IOR(0xEF, 0x00, struct latlab_version)
#define LATLAB_IOC_RUN		_IOWR(0xEF, 0x01, struct latlab_run)
#define LATLAB_IOC_ARM		_IOWR(0xEF, 0x02, struct latlab_arm)
#define LATLAB_IOC_WAIT		_IOWR(0xEF, 0x03, struct latlab_wait)
#define LATLAB_IOC_WATCH	_IOR(0xEF, 0x04, struct latlab_watch)
#define LATLAB_IOC_SWITCHES	_IOR(0xEF, 0x05, struct latlab_switches)
#define LATLAB_IOC_INJECT	_IOWR(0xEF, 0x06, struct latlab_inject)

#endif
