/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface of /dev/latlab, the test driver of latlab.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC. A call that is not understood ends with EINVAL.
 */
#ifndef LATLAB_H
#define LATLAB_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Raised with every change of what a call means. */
#define LATLAB_VERSION		3

/* A call of the loop returns the times of so many of its parts, the first ones. */
#define LATLAB_PARTS		64
/* The most preemption points of one loop. */
#define LATLAB_MAX_POINTS	1023
/* An interrupt may be so far away, and is waited for so long. */
#define LATLAB_LONGEST_NS	10000000000ULL
/* The longest that a handler keeps its processor. */
#define LATLAB_BUSIEST_NS	1000000ULL
/* So many switches to a task are remembered until it asks. */
#define LATLAB_SWITCHES		16

/* What the driver is, and what it has. */
struct latlab_version {
	__u32 version;			/* LATLAB_VERSION */
	__u32 device;			/* 1: LATLAB_DEVICE can interrupt, else 0 */
	__u64 iterations_per_second;	/* of the loop; also the most for one call */
};

/* In what the loop runs. */
enum latlab_mode {
	LATLAB_PLAIN,		/* in nothing: preemptible where the kernel is */
	LATLAB_SPIN,		/* each part under a spinlock */
	LATLAB_RAW_SPIN,	/* each part under a raw spinlock */
	LATLAB_PREEMPT_OFF,	/* each part with preemption disabled */
	LATLAB_IRQ_OFF,		/* each part with interrupts disabled */
	LATLAB_LOCK_BREAK,	/* all under one spinlock, dropped at a point if somebody waits */
	LATLAB_MODES		/* not a mode: how many there are */
};

/* One part of the loop; the time of whoever preempted it is in it. */
struct latlab_part {
	__u64 begin;		/* after the lock was taken */
	__u64 end;		/* before it is released */
};

/* A loop of equal parts, between which the processor is given to whoever waits for it. */
struct latlab_run {
	__u64 iterations;	/* in: of all parts together; one part has at least one */
	__u32 points;		/* in: preemption points; there is one part more */
	__u32 mode;		/* in: enum latlab_mode */
	__u32 parts;		/* out: how many of part[] are set, at most LATLAB_PARTS */
	__u32 zero;		/* in: 0 */
	struct latlab_part part[LATLAB_PARTS];	/* out */
};

/* Where an interrupt comes from. */
enum latlab_source {
	LATLAB_TIMER,		/* a timer of the kernel, served in hard interrupt context */
	LATLAB_DEVICE,		/* QEMU's "edu" device */
	LATLAB_SOURCES		/* not a source: how many there are */
};

/* The interrupt handler of the device wakes a thread, and that wakes who waits. */
#define LATLAB_THREADED		1
/* The device interrupts now, and not when it has done something. */
#define LATLAB_AT_ONCE		2

/* The next interrupt. One that was armed before and has not come does not come. */
struct latlab_arm {
	__u64 time;		/* in, timer: when, a past time at once; out: when it comes */
	__u32 source;		/* in: enum latlab_source */
	__u32 flags;		/* in, device: any of LATLAB_THREADED, LATLAB_AT_ONCE */
	__u64 busy;		/* in: its handler takes so long, at most LATLAB_BUSIEST_NS */
};

/* An interrupt that came. */
struct latlab_wait {
	__u64 sequence;		/* in: of the last one seen, first 0; out: of this one. They are
				 * counted from 1 while anybody has the driver open
				 */
	__u64 time;		/* out: when it was to come */
	__u64 served;		/* out: first instruction of its service routine */
};

/* The scheduler is watched: how long it takes to switch to the caller. */
struct latlab_watch {
	__u64 cost;		/* out: of watching; to be taken off each time below */
};

/* The switches to the caller since it asked last. */
struct latlab_switches {
	__u32 count;		/* out: how many of took[] are set */
	__u32 lost;		/* out: of how many besides it is not known */
	__u64 took[LATLAB_SWITCHES];	/* out: how long each took */
};

/* Numbers below 0x10 are for calls that measure. */
#define LATLAB_IOC_VERSION	_IOR(0xEF, 0x00, struct latlab_version)
#define LATLAB_IOC_RUN		_IOWR(0xEF, 0x01, struct latlab_run)
#define LATLAB_IOC_ARM		_IOWR(0xEF, 0x02, struct latlab_arm)
#define LATLAB_IOC_WAIT		_IOWR(0xEF, 0x03, struct latlab_wait)
#define LATLAB_IOC_WATCH	_IOR(0xEF, 0x04, struct latlab_watch)
#define LATLAB_IOC_SWITCHES	_IOR(0xEF, 0x05, struct latlab_switches)

#endif
