// SPDX-License-Identifier: GPL-2.0
/*
 * Delays of known cause: other tasks are kept off the caller's processor, by a cause and for a time
 * that the caller chooses. They test explanations of late wake-ups.
 *
 * Each cause keeps the processor in a function of its own, whose name the explanation has to find.
 * There is no shared state but the mutex, so each processor can have a delay at the same time.
 */
#include <linux/compiler.h>
#include <linux/container_of.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>

#include "driver.h"

static __always_inline void keep_until(u64 until)
{
	while (ktime_get_ns() < until)
		barrier();
}

/* Waits with interrupts and preemption enabled, so that higher-priority tasks can run. */
static noinline void latlab_wait_until(u64 at)
{
	while (ktime_get_ns() < at)
		cond_resched();
}

static noinline void latlab_interrupts_off(u64 until)
{
	unsigned long flags;

	local_irq_save(flags);
	keep_until(until);
	local_irq_restore(flags);
}

static noinline void latlab_preemption_off(u64 until)
{
	preempt_disable();
	keep_until(until);
	preempt_enable();
}

/* The lock is private: the delay comes from holding it, not from contention. */
static noinline void latlab_raw_spinlock(u64 until)
{
	raw_spinlock_t lock;
	unsigned long flags;

	raw_spin_lock_init(&lock);
	raw_spin_lock_irqsave(&lock, flags);
	keep_until(until);
	raw_spin_unlock_irqrestore(&lock, flags);
}

static DEFINE_MUTEX(latlab_mutex);

/* The holder stays preemptible: only who calls for the mutex waits. */
static noinline void latlab_hold_mutex(u64 until)
{
	mutex_lock(&latlab_mutex);
	latlab_wait_until(until);
	mutex_unlock(&latlab_mutex);
}

struct softirq {
	struct tasklet_struct tasklet;
	u64 until;
};

static noinline void latlab_softirq(struct tasklet_struct *tasklet)
{
	keep_until(container_of(tasklet, struct softirq, tasklet)->until);
}

/*
 * Pending softirqs run when they are enabled again, in local_bh_enable(). On PREEMPT_RT they run
 * there as part of the task, which stays preemptible.
 */
static void serve_softirq(u64 until)
{
	struct softirq softirq = { .until = until };

	tasklet_setup(&softirq.tasklet, latlab_softirq);
	local_bh_disable();
	tasklet_schedule(&softirq.tasklet);
	local_bh_enable();
	/* ksoftirqd may have taken it over. */
	tasklet_kill(&softirq.tasklet);
}

struct callback {
	struct hrtimer timer;
	u64 until;
	u64 began;
};

static noinline enum hrtimer_restart latlab_timer_callback(struct hrtimer *timer)
{
	struct callback *callback = container_of(timer, struct callback, timer);

	callback->began = ktime_get_ns();
	keep_until(callback->until);
	return HRTIMER_NORESTART;
}

static void setup(struct hrtimer *timer)
{
#ifdef LATLAB_HAVE_HRTIMER_SETUP
	hrtimer_setup_on_stack(timer, latlab_timer_callback, CLOCK_MONOTONIC,
			       HRTIMER_MODE_ABS_PINNED_HARD);
#else
	hrtimer_init_on_stack(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	timer->function = latlab_timer_callback;
#endif
}

/*
 * The timer interrupts the wait. If timers fire at ticks only, it may expire after the wait. Returns
 * when its callback began, or else when the wait ended.
 */
static u64 set_timer(u64 at, u64 until)
{
	struct callback callback = { .until = until };

	setup(&callback.timer);
	hrtimer_start(&callback.timer, ns_to_ktime(at), HRTIMER_MODE_ABS_PINNED_HARD);
	latlab_wait_until(until);
	hrtimer_cancel(&callback.timer);
	destroy_hrtimer_on_stack(&callback.timer);
	return callback.began ?: ktime_get_ns();
}

int latlab_inject(struct latlab_inject *inject)
{
	u64 at = inject->at, until = inject->until;

	if (inject->cause >= LATLAB_CAUSES || inject->zero)
		return -EINVAL;
	if (at > ktime_get_ns() + LATLAB_LONGEST_DELAY_NS)
		return -EINVAL;
	if (until < at || until - at > LATLAB_LONGEST_DELAY_NS)
		return -EINVAL;
	if (inject->cause == LATLAB_TIMER_CALLBACK) {
		inject->at = set_timer(at, until);
		return 0;
	}
	latlab_wait_until(at);
	inject->at = ktime_get_ns();
	switch (inject->cause) {
	case LATLAB_INTERRUPTS_OFF:
		latlab_interrupts_off(until);
		break;
	case LATLAB_PREEMPTION_OFF:
		latlab_preemption_off(until);
		break;
	case LATLAB_RAW_SPINLOCK:
		latlab_raw_spinlock(until);
		break;
	case LATLAB_MUTEX:
		latlab_hold_mutex(until);
		break;
	default:
		serve_softirq(until);
	}
	return 0;
}
