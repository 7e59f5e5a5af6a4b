// SPDX-License-Identifier: GPL-2.0
/* The loop: non-preemptible parts with preemption points between them. */
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>

#include "driver.h"

static DEFINE_SPINLOCK(lock);
static DEFINE_RAW_SPINLOCK(raw_lock);

/* The function that stack traces show while the loop delays its processor. */
static noinline void latlab_loop(u64 iterations)
{
	while (iterations--)
		barrier();
}

/*
 * Returns the iterations per second of the loop, from the shortest of several rounds, which had no
 * interrupts. Returns 0 if the clock is too coarse: then nothing would bound a loop.
 */
u64 latlab_calibrate(void)
{
	const u64 iterations = 20000;
	u64 shortest = U64_MAX;
	int round;

	for (round = 0; round < 10; round++) {
		u64 begin = ktime_get_ns();

		latlab_loop(iterations);
		shortest = min(shortest, ktime_get_ns() - begin);
	}
	/* No processor does ten iterations in a nanosecond. */
	if (shortest < iterations / 10)
		return 0;
	return div64_u64(iterations * NSEC_PER_SEC, shortest);
}

static void timed(struct latlab_run *run, u64 iterations, u32 nth)
{
	u64 begin = ktime_get_ns();

	latlab_loop(iterations);
	if (nth < LATLAB_PARTS)
		run->part[nth] = (struct latlab_part) { .begin = begin, .end = ktime_get_ns() };
}

/* One part in the given mode; in LATLAB_LOCK_BREAK the lock is held already. */
static void part(struct latlab_run *run, u64 iterations, u32 nth)
{
	switch (run->mode) {
	case LATLAB_SPIN:
		spin_lock(&lock);
		timed(run, iterations, nth);
		spin_unlock(&lock);
		break;
	case LATLAB_RAW_SPIN:
		raw_spin_lock(&raw_lock);
		timed(run, iterations, nth);
		raw_spin_unlock(&raw_lock);
		break;
	case LATLAB_PREEMPT_OFF:
		preempt_disable();
		timed(run, iterations, nth);
		preempt_enable();
		break;
	case LATLAB_IRQ_OFF:
		local_irq_disable();
		timed(run, iterations, nth);
		local_irq_enable();
		break;
	default:
		timed(run, iterations, nth);
	}
}

/* The conditional preemption point of the paper. It works on every kernel. */
static void preemption_point(void)
{
	if (need_resched())
		schedule();
}

static void parts(struct latlab_run *run)
{
	u64 iterations = div_u64(run->iterations, run->points + 1);
	u32 nth;

	part(run, iterations, 0);
	for (nth = 1; nth <= run->points; nth++) {
		preemption_point();
		part(run, iterations, nth);
	}
}

/* Like cond_resched_lock(), but also on kernels where cond_resched() does nothing. */
static void lock_break(struct latlab_run *run)
{
	u64 iterations = div_u64(run->iterations, run->points + 1);
	u32 nth;

	spin_lock(&lock);
	part(run, iterations, 0);
	for (nth = 1; nth <= run->points; nth++) {
		if (need_resched()) {
			spin_unlock(&lock);
			preemption_point();
			spin_lock(&lock);
		}
		part(run, iterations, nth);
	}
	spin_unlock(&lock);
}

/* Runs the loop for at most about a second, @iterations_per_second iterations. */
int latlab_run(struct latlab_run *run, u64 iterations_per_second)
{
	if (run->mode >= LATLAB_MODES || run->zero || run->points > LATLAB_MAX_POINTS)
		return -EINVAL;
	if (run->iterations <= run->points || run->iterations > iterations_per_second)
		return -EINVAL;
	if (run->mode == LATLAB_LOCK_BREAK)
		lock_break(run);
	else
		parts(run);
	run->parts = min_t(u32, run->points + 1, LATLAB_PARTS);
	return 0;
}
