// SPDX-License-Identifier: GPL-2.0
/*
 * The interrupt at a known time, and the task that waits for it.
 *
 * The interrupt handler itself wakes the task, through a simple wait queue. This works on
 * PREEMPT_RT too, where ordinary wait queues cannot be used in hard interrupt context.
 */
#include <linux/compiler.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/swait.h>
#include <linux/timekeeping.h>

#include "driver.h"

static struct hrtimer timer;
static u64 timer_due, timer_busy;

static DECLARE_SWAIT_QUEUE_HEAD(queue);
/* Limits the length of a wait. */
static struct hrtimer patience;
static bool lost_patience;

/* The last interrupt, and the lock that protects it. */
static DEFINE_RAW_SPINLOCK(last_lock);
static struct latlab_wait last;

/* Runs until @busy after @served, as a handler that services a real device. For handlers. */
void latlab_keep_busy(u64 served, u64 busy)
{
	/* Without a busy time the clock is not read: that would add to the latency. */
	if (!busy)
		return;
	while (ktime_get_ns() - served < busy)
		barrier();
}

/* Called by an interrupt handler or its thread. */
void latlab_interrupted(u64 due, u64 served)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&last_lock, flags);
	last.time = due;
	last.served = served;
	WRITE_ONCE(last.sequence, last.sequence + 1);
	raw_spin_unlock_irqrestore(&last_lock, flags);
	swake_up_one(&queue);
}

static enum hrtimer_restart timer_expired(struct hrtimer *expired)
{
	u64 served = ktime_get_ns();

	latlab_keep_busy(served, timer_busy);
	latlab_interrupted(timer_due, served);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart patience_expired(struct hrtimer *expired)
{
	WRITE_ONCE(lost_patience, true);
	swake_up_one(&queue);
	return HRTIMER_NORESTART;
}

void latlab_timer_setup(struct hrtimer *it, enum hrtimer_restart (*expired)(struct hrtimer *),
			enum hrtimer_mode mode)
{
#ifdef LATLAB_HAVE_HRTIMER_SETUP
	hrtimer_setup(it, expired, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(it, CLOCK_MONOTONIC, mode);
	it->function = expired;
#endif
}

void latlab_interrupt_init(void)
{
	latlab_timer_setup(&timer, timer_expired, HRTIMER_MODE_ABS_PINNED_HARD);
	latlab_timer_setup(&patience, patience_expired, HRTIMER_MODE_REL_HARD);
}

/* Cancels pending interrupts and forgets the last one. */
void latlab_interrupt_reset(void)
{
	hrtimer_cancel(&timer);
	hrtimer_cancel(&patience);
	last = (struct latlab_wait) { };
}

static int arm_timer(struct latlab_arm *arm)
{
	if (arm->flags)
		return -EINVAL;
	if (arm->time > ktime_get_ns() + LATLAB_LONGEST_NS)
		return -EINVAL;
	hrtimer_cancel(&timer);
	latlab_device_disarm();
	timer_due = arm->time;
	timer_busy = arm->busy;
	hrtimer_start(&timer, ns_to_ktime(arm->time), HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

/* A handler with interrupts disabled that takes a whole period would leave no time for anything else. */
static bool is_valid_period(struct latlab_arm *arm)
{
	bool threaded = arm->flags & LATLAB_THREADED;

	return arm->time >= LATLAB_SHORTEST_PERIOD_NS && arm->time <= LATLAB_LONGEST_NS &&
	       (threaded || arm->busy <= arm->time / 2);
}

static bool is_valid_for_device(struct latlab_arm *arm)
{
	bool at_once = arm->flags & LATLAB_AT_ONCE, periodic = arm->flags & LATLAB_PERIODIC;

	if (arm->flags & ~(LATLAB_THREADED | LATLAB_AT_ONCE | LATLAB_PERIODIC))
		return false;
	return !periodic || (!at_once && is_valid_period(arm));
}

/* The timer interrupts the processor of the caller. */
int latlab_arm(struct latlab_arm *arm)
{
	if (arm->busy > LATLAB_BUSIEST_NS)
		return -EINVAL;
	switch (arm->source) {
	case LATLAB_TIMER:
		return arm_timer(arm);
	case LATLAB_DEVICE:
		if (!is_valid_for_device(arm))
			return -EINVAL;
		hrtimer_cancel(&timer);
		return latlab_device_arm(arm);
	default:
		return -EINVAL;
	}
}

int latlab_wait(struct latlab_wait *wait)
{
	u64 seen = wait->sequence;
	int err;

	/*
	 * The timeout is not cancelled after the wait: that would cost time between the interrupt
	 * and the task. If it expires later, no task is waiting.
	 */
	hrtimer_cancel(&patience);
	lost_patience = false;
	hrtimer_start(&patience, ns_to_ktime(LATLAB_LONGEST_NS), HRTIMER_MODE_REL_HARD);
	err = swait_event_interruptible_exclusive(queue, READ_ONCE(last.sequence) != seen ||
						  READ_ONCE(lost_patience));
	if (err)
		return err;
	raw_spin_lock_irq(&last_lock);
	*wait = last;
	raw_spin_unlock_irq(&last_lock);
	return wait->sequence == seen ? -ETIMEDOUT : 0;
}
