// SPDX-License-Identifier: GPL-2.0
/*
 * The test driver of latlab: a loop in the kernel, preemptible or not, an interrupt at a known time
 * in the middle of it, a task that waits for the interrupt, timing of the scheduler's switches to a
 * task, and delays of known cause.
 *
 * After "Preemption concepts, Rhealstone Benchmark and scheduler analysis of Linux 2.4"
 * (Heursch et al. 2001), sections 2.5 to 2.7.
 */
#include <linux/bitops.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/uaccess.h>

#include "driver.h"

/* Activities, of each of which only one is allowed at a time. */
enum { RUNNING, ARMING, WAITING, WATCHING };

static unsigned long busy;
/* Number of openers: the interrupted and the waiting task may belong to two programs. */
static DEFINE_MUTEX(opened_mutex);
static unsigned int opened;
static u64 iterations_per_second;
/* Too large for the stack; owned by the holder of RUNNING. */
static struct latlab_run the_run;

static long run(void __user *user)
{
	size_t parts;
	int err;

	if (copy_from_user(&the_run, user, offsetof(struct latlab_run, part)))
		return -EFAULT;
	err = latlab_run(&the_run, iterations_per_second);
	if (err)
		return err;
	parts = offsetof(struct latlab_run, part[the_run.parts]);
	return copy_to_user(user, &the_run, parts) ? -EFAULT : 0;
}

static long arm(void __user *user)
{
	struct latlab_arm arm;
	int err;

	if (copy_from_user(&arm, user, sizeof(arm)))
		return -EFAULT;
	err = latlab_arm(&arm);
	if (err)
		return err;
	return copy_to_user(user, &arm, sizeof(arm)) ? -EFAULT : 0;
}

static long wait(void __user *user)
{
	struct latlab_wait wait;
	int err;

	if (copy_from_user(&wait, user, sizeof(wait)))
		return -EFAULT;
	err = latlab_wait(&wait);
	if (err)
		return err;
	return copy_to_user(user, &wait, sizeof(wait)) ? -EFAULT : 0;
}

static long watch(void __user *user)
{
	struct latlab_watch watch;
	int err;

	err = latlab_watch(&watch);
	if (err)
		return err;
	return copy_to_user(user, &watch, sizeof(watch)) ? -EFAULT : 0;
}

static long switches(void __user *user)
{
	struct latlab_switches switches;
	int err;

	err = latlab_switches(&switches);
	if (err)
		return err;
	return copy_to_user(user, &switches, sizeof(switches)) ? -EFAULT : 0;
}

static long inject(void __user *user)
{
	struct latlab_inject inject;
	int err;

	if (copy_from_user(&inject, user, sizeof(inject)))
		return -EFAULT;
	err = latlab_inject(&inject);
	if (err)
		return err;
	return copy_to_user(user, &inject, sizeof(inject)) ? -EFAULT : 0;
}

static long version(void __user *user)
{
	struct latlab_version version = {
		.version = LATLAB_VERSION,
		.device = latlab_device_there(),
		.iterations_per_second = iterations_per_second,
	};

	return copy_to_user(user, &version, sizeof(version)) ? -EFAULT : 0;
}

static long alone(int what, long (*call)(void __user *user), void __user *user)
{
	long err;

	if (test_and_set_bit_lock(what, &busy))
		return -EBUSY;
	err = call(user);
	clear_bit_unlock(what, &busy);
	return err;
}

static long latlab_ioctl(struct file *file, unsigned int number, unsigned long argument)
{
	void __user *user = (void __user *)argument;

	switch (number) {
	case LATLAB_IOC_VERSION:
		return version(user);
	case LATLAB_IOC_RUN:
		return alone(RUNNING, run, user);
	case LATLAB_IOC_ARM:
		return alone(ARMING, arm, user);
	case LATLAB_IOC_WAIT:
		return alone(WAITING, wait, user);
	case LATLAB_IOC_WATCH:
		return alone(WATCHING, watch, user);
	case LATLAB_IOC_SWITCHES:
		return alone(WATCHING, switches, user);
	/* These share no state: there may be one on each processor. */
	case LATLAB_IOC_INJECT:
		return inject(user);
	default:
		return -ENOTTY;
	}
}

static int latlab_open(struct inode *inode, struct file *file)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	mutex_lock(&opened_mutex);
	opened++;
	mutex_unlock(&opened_mutex);
	return nonseekable_open(inode, file);
}

/* The last release ends the timing of switches and cancels pending interrupts. */
static int latlab_release(struct inode *inode, struct file *file)
{
	mutex_lock(&opened_mutex);
	if (!--opened) {
		latlab_device_disarm();
		latlab_interrupt_reset();
		latlab_unwatch();
	}
	mutex_unlock(&opened_mutex);
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = latlab_open,
	.release = latlab_release,
	.unlocked_ioctl = latlab_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "latlab",
	.mode = 0600,
	.fops = &operations,
};

static int __init latlab_init(void)
{
	int err;

	iterations_per_second = latlab_calibrate();
	if (!iterations_per_second)
		return -EOPNOTSUPP;
	latlab_interrupt_init();
	err = latlab_device_init();
	if (err)
		return err;
	err = misc_register(&device);
	if (err)
		latlab_device_exit();
	return err;
}

static void __exit latlab_exit(void)
{
	misc_deregister(&device);
	latlab_device_exit();
}

module_init(latlab_init);
module_exit(latlab_exit);

MODULE_DESCRIPTION("Test driver of latlab: non-preemptible loops, interrupts at known times, delays of known cause, time of the scheduler");
MODULE_AUTHOR("the latlab authors");
MODULE_LICENSE("GPL");
