// SPDX-License-Identifier: GPL-2.0
/*
 * Duration of the scheduler's switches to a task: from the first instruction of __schedule() to
 * that of finish_task_switch(), the first function that runs as the next task. This covers putting
 * away the previous task, choosing the next one, and switching memory and stack.
 *
 * Both ends are kprobes. Their own cost is part of each time. It is measured with two empty
 * functions, called in succession, that have kprobes of the same kind.
 */
#include <linux/compiler.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "driver.h"

/* Time at which the scheduler was entered on this processor; 0 after the switch. */
static DEFINE_PER_CPU(u64, entered);

/* Only compared with current: the task may have exited. */
static struct task_struct *watched;
/* Written during a switch to the task and read by the task, so never at the same time. */
static u64 took[LATLAB_SWITCHES];
static u32 switches, lost;
static u64 cost;
static bool watching;
static struct kprobe entry, end;

/* The clock is read as late as possible here, and as early as possible below. */
static int on_entry(struct kprobe *kprobe, struct pt_regs *regs)
{
	this_cpu_write(entered, ktime_get_mono_fast_ns());
	return 0;
}

static int on_switch(struct kprobe *kprobe, struct pt_regs *regs)
{
	u64 now = ktime_get_mono_fast_ns();
	u64 began = this_cpu_read(entered);
	u32 nth = READ_ONCE(switches);

	this_cpu_write(entered, 0);
	if (current != READ_ONCE(watched))
		return 0;
	/* A kprobe that is hit while another one runs is missed. */
	if (!began || nth == LATLAB_SWITCHES) {
		WRITE_ONCE(lost, lost + 1);
		return 0;
	}
	took[nth] = now - began;
	WRITE_ONCE(switches, nth + 1);
	return 0;
}

/*
 * A kprobe with a post handler is never optimised into a jump. The kernel does that to others some
 * time after they were set, which would change their cost.
 */
static void afterwards(struct kprobe *kprobe, struct pt_regs *regs, unsigned long flags)
{
}

/* Like __schedule(), not traced by ftrace; the second like finish_task_switch(), traced by it. */
static noinline notrace void latlab_first(void)
{
	asm volatile("nop");
}

static noinline void latlab_second(void)
{
	asm volatile("nop");
}

static int place(struct kprobe *kprobe, const char *symbol, kprobe_pre_handler_t handler)
{
	/* A used kprobe cannot be registered again. */
	*kprobe = (struct kprobe) {
		.symbol_name = symbol,
		.pre_handler = handler,
		.post_handler = afterwards,
	};
	return register_kprobe(kprobe);
}

/* Compilers append a suffix to the names of functions they have transformed. */
static int place_switch(struct kprobe *kprobe)
{
	static const char * const names[] = {
		"finish_task_switch.isra.0",
		"finish_task_switch",
		"finish_task_switch.constprop.0",
		"finish_task_switch.isra.0.constprop.0",
	};
	int err = -ENOENT;
	size_t nth;

	for (nth = 0; err && nth < ARRAY_SIZE(names); nth++)
		err = place(kprobe, names[nth], on_switch);
	return err;
}

/* Returns the minimum cost of several calls; the caller is being watched. */
static u64 least_cost(void)
{
	u64 least = U64_MAX;
	int call;

	for (call = 0; call < 100; call++) {
		local_irq_disable();
		WRITE_ONCE(switches, 0);
		latlab_first();
		latlab_second();
		if (READ_ONCE(switches))
			least = min(least, READ_ONCE(took[0]));
		local_irq_enable();
	}
	return least;
}

static int measure_cost(void)
{
	struct kprobe first, second;
	int err;

	err = place(&first, "latlab_first", on_entry);
	if (err)
		return err;
	err = place(&second, "latlab_second", on_switch);
	if (err)
		goto only_first;
	/* Kprobes based on ftrace have another cost than the others. */
	cost = least_cost();
	if (cost == U64_MAX || kprobe_ftrace(&first) != kprobe_ftrace(&entry) ||
	    kprobe_ftrace(&second) != kprobe_ftrace(&end))
		err = -EOPNOTSUPP;
	unregister_kprobe(&second);
only_first:
	unregister_kprobe(&first);
	return err;
}

static int begin(void)
{
	int err;

	err = place(&entry, "__schedule", on_entry);
	if (err)
		return err;
	err = place_switch(&end);
	if (err)
		goto only_entry;
	err = measure_cost();
	if (err)
		goto both;
	watching = true;
	return 0;
both:
	unregister_kprobe(&end);
only_entry:
	unregister_kprobe(&entry);
	return err;
}

/* Watches the caller instead of the task watched so far. */
int latlab_watch(struct latlab_watch *watch)
{
	WRITE_ONCE(watched, current);
	/* There are no kprobes, or not these functions. */
	if (!watching && begin()) {
		WRITE_ONCE(watched, NULL);
		return -EOPNOTSUPP;
	}
	preempt_disable();
	switches = 0;
	lost = 0;
	preempt_enable();
	watch->cost = cost;
	return 0;
}

void latlab_unwatch(void)
{
	WRITE_ONCE(watched, NULL);
	if (!watching)
		return;
	unregister_kprobe(&end);
	unregister_kprobe(&entry);
	watching = false;
}

/* Only the watched task may ask. */
int latlab_switches(struct latlab_switches *answer)
{
	if (current != READ_ONCE(watched))
		return -EPERM;
	/* No switch to this task happens in between. */
	preempt_disable();
	answer->count = switches;
	answer->lost = lost;
	memcpy(answer->took, took, sizeof(took));
	switches = 0;
	lost = 0;
	preempt_enable();
	return 0;
}
