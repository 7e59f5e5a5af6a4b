// SPDX-License-Identifier: GPL-2.0
/*
 * QEMU's "edu" device (docs/specs/edu.rst in QEMU's sources) as a source of interrupts.
 *
 * A guest without high-resolution timers cannot place an interrupt between two ticks. This device
 * can: at the start of a DMA transfer it sets a timer of QEMU to the current millisecond of virtual
 * time + 100 ms, and raises its interrupt when that expires. Where QEMU counts instructions
 * (-icount shift=0), the guest's TSC, or the generic timer of arm64, shows virtual time in
 * nanoseconds, so the time of the interrupt is known exactly.
 *
 * Nothing is transferred, because the device may not be a bus master.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/timekeeping.h>

#include "cycles.h"
#include "driver.h"

#define EDU_IRQ_STATUS		0x24
#define EDU_IRQ_RAISE		0x60
#define EDU_IRQ_ACKNOWLEDGE	0x64
#define EDU_DMA_SOURCE		0x80
#define EDU_DMA_DESTINATION	0x88
#define EDU_DMA_COUNT		0x90
#define EDU_DMA_COMMAND		0x98
#define EDU_DMA_START		0x01
#define EDU_DMA_IRQ		0x04
/* Any number: the device returns it as its status until it is acknowledged. */
#define EDU_RAISED		0x02
/* Address of the device's own memory, as the device sees it. */
#define EDU_BUFFER		0x40000
#define EDU_DMA_TIME_MS		100

struct edu {
	void __iomem *registers;
	int irq;
	u64 due;
	u64 busy;
	struct hrtimer periodic;
	ktime_t period;
	bool wanted;
	bool threaded;
	u64 served;
};

/* The only device, protected by the mutex while it is used. */
static DEFINE_MUTEX(edu_mutex);
static struct edu *the_edu;

static irqreturn_t edu_interrupt(int irq, void *data)
{
	u64 served = ktime_get_ns();
	struct edu *edu = data;
	u32 status = readl(edu->registers + EDU_IRQ_STATUS);

	if (!status)
		return IRQ_NONE;
	writel(status, edu->registers + EDU_IRQ_ACKNOWLEDGE);
	if (!READ_ONCE(edu->wanted))
		return IRQ_HANDLED;
	edu->served = served;
	if (edu->threaded)
		return IRQ_WAKE_THREAD;
	latlab_keep_busy(served, edu->busy);
	edu->wanted = false;
	latlab_interrupted(edu->due, served);
	return IRQ_HANDLED;
}

static irqreturn_t edu_thread(int irq, void *data)
{
	struct edu *edu = data;

	if (!READ_ONCE(edu->wanted))
		return IRQ_HANDLED;
	latlab_keep_busy(ktime_get_ns(), edu->busy);
	edu->wanted = false;
	latlab_interrupted(edu->due, edu->served);
	return IRQ_HANDLED;
}

bool latlab_device_there(void)
{
	return READ_ONCE(the_edu);
}

/*
 * Returns whether a cycle is a nanosecond of virtual time and the kernel's clock counts cycles.
 * A kernel that calibrates their frequency against other clocks may be slightly off.
 */
static bool time_is_known(void)
{
	struct system_time_snapshot now;
	u64 before = latlab_cycles();

	ktime_get_snapshot(&now);
	if (abs((long)latlab_cycles_khz() - NSEC_PER_MSEC) > NSEC_PER_MSEC / 10000)
		return false;
	return now.cycles >= before && now.cycles <= latlab_cycles();
}

/* Returns the CLOCK_MONOTONIC time at which the counter will show @cycles. */
static u64 time_of(u64 cycles, const struct system_time_snapshot *now)
{
	u64 mono = ktime_to_ns(now->real) - ktime_to_ns(ktime_mono_to_real(0));

	return mono + div_u64((cycles - now->cycles) * NSEC_PER_MSEC, latlab_cycles_khz());
}

/* Starts a transfer and returns the CLOCK_MONOTONIC time at which it ends. */
static u64 edu_start(struct edu *edu)
{
	const u64 close = 20 * NSEC_PER_USEC;
	struct system_time_snapshot now;
	u64 millisecond;
	u32 within;

	/* Not so late that a millisecond could begin before the device reads its clock. */
	local_irq_disable();
	do {
		millisecond = div_u64_rem(latlab_cycles(), NSEC_PER_MSEC, &within);
	} while (within > NSEC_PER_MSEC - close);
	writel(EDU_DMA_START | EDU_DMA_IRQ, edu->registers + EDU_DMA_COMMAND);
	ktime_get_snapshot(&now);
	local_irq_enable();
	return time_of((millisecond + EDU_DMA_TIME_MS) * NSEC_PER_MSEC, &now);
}

/* Interrupts without a transfer. */
static void edu_raise(struct edu *edu)
{
	edu->due = ktime_get_ns();
	WRITE_ONCE(edu->wanted, true);
	writel(EDU_RAISED, edu->registers + EDU_IRQ_RAISE);
}

static enum hrtimer_restart edu_expired(struct hrtimer *expired)
{
	struct edu *edu = container_of(expired, struct edu, periodic);

	edu_raise(edu);
	hrtimer_forward_now(expired, edu->period);
	return HRTIMER_RESTART;
}

static void edu_repeat(struct edu *edu, struct latlab_arm *arm)
{
	edu->period = ns_to_ktime(arm->time);
	arm->time = ktime_get_ns() + arm->time;
	hrtimer_start(&edu->periodic, edu->period, HRTIMER_MODE_REL_HARD);
}

static int edu_arm(struct edu *edu, struct latlab_arm *arm)
{
	bool at_once = arm->flags & LATLAB_AT_ONCE;
	bool periodic = arm->flags & LATLAB_PERIODIC;

	if (!at_once && !periodic && !time_is_known())
		return -EOPNOTSUPP;
	/* A transfer cannot be cancelled: one in progress has to end first. */
	if (readl(edu->registers + EDU_DMA_COMMAND) & EDU_DMA_START)
		return -EBUSY;
	edu->busy = arm->busy;
	edu->threaded = arm->flags & LATLAB_THREADED;
	if (periodic) {
		edu_repeat(edu, arm);
		return 0;
	}
	if (at_once) {
		edu_raise(edu);
		arm->time = edu->due;
		return 0;
	}
	writel(0, edu->registers + EDU_DMA_SOURCE);
	writel(EDU_BUFFER, edu->registers + EDU_DMA_DESTINATION);
	writel(1, edu->registers + EDU_DMA_COUNT);
	WRITE_ONCE(edu->wanted, true);
	/* It takes at least 99 ms, so the due time is stored before it ends. */
	edu->due = edu_start(edu);
	arm->time = edu->due;
	return 0;
}

static void edu_disarm(struct edu *edu)
{
	hrtimer_cancel(&edu->periodic);
	WRITE_ONCE(edu->wanted, false);
	synchronize_irq(edu->irq);
}

int latlab_device_arm(struct latlab_arm *arm)
{
	int err = -ENODEV;

	mutex_lock(&edu_mutex);
	if (the_edu) {
		edu_disarm(the_edu);
		err = edu_arm(the_edu, arm);
	}
	mutex_unlock(&edu_mutex);
	return err;
}

void latlab_device_disarm(void)
{
	mutex_lock(&edu_mutex);
	if (the_edu)
		edu_disarm(the_edu);
	mutex_unlock(&edu_mutex);
}

static int edu_probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	struct edu *edu = devm_kzalloc(&pci->dev, sizeof(*edu), GFP_KERNEL);
	int err;

	if (!edu)
		return -ENOMEM;
	err = pcim_enable_device(pci);
	if (err)
		return err;
	edu->registers = pcim_iomap(pci, 0, 0);
	if (!edu->registers)
		return -ENOMEM;
	pci_clear_master(pci);
	/* An interrupt raised before the handler is registered may never be delivered. */
	writel(readl(edu->registers + EDU_IRQ_STATUS), edu->registers + EDU_IRQ_ACKNOWLEDGE);
	edu->irq = pci->irq;
	latlab_timer_setup(&edu->periodic, edu_expired, HRTIMER_MODE_REL_HARD);
	/* The handler is never forced into a thread: LATLAB_THREADED selects that. */
	err = request_threaded_irq(edu->irq, edu_interrupt, edu_thread,
				   IRQF_SHARED | IRQF_NO_THREAD, "latlab", edu);
	if (err)
		return err;
	err = -EBUSY;
	mutex_lock(&edu_mutex);
	if (!the_edu) {
		WRITE_ONCE(the_edu, edu);
		pci_set_drvdata(pci, edu);
		err = 0;
	}
	mutex_unlock(&edu_mutex);
	if (err)
		free_irq(edu->irq, edu);
	return err;
}

/* Waits for the end of a transfer while its interrupt is still handled and acknowledged. */
static void edu_let_end(struct edu *edu)
{
	int tries;

	for (tries = 0; tries < EDU_DMA_TIME_MS / 10; tries++) {
		if (!(readl(edu->registers + EDU_DMA_COMMAND) & EDU_DMA_START))
			break;
		msleep(20);
	}
}

static void edu_remove(struct pci_dev *pci)
{
	struct edu *edu = pci_get_drvdata(pci);

	mutex_lock(&edu_mutex);
	WRITE_ONCE(the_edu, NULL);
	edu_disarm(edu);
	mutex_unlock(&edu_mutex);
	edu_let_end(edu);
	free_irq(edu->irq, edu);
}

static const struct pci_device_id edu_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{ }
};
MODULE_DEVICE_TABLE(pci, edu_ids);

static struct pci_driver edu_driver = {
	.name = "latlab",
	.id_table = edu_ids,
	.probe = edu_probe,
	.remove = edu_remove,
};

int latlab_device_init(void)
{
	return pci_register_driver(&edu_driver);
}

void latlab_device_exit(void)
{
	pci_unregister_driver(&edu_driver);
}
