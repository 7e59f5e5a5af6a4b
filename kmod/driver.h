/* SPDX-License-Identifier: GPL-2.0 */
/* Interfaces between the files of the driver. */
#ifndef LATLAB_DRIVER_H
#define LATLAB_DRIVER_H

#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/kconfig.h>
#include <linux/types.h>

#include "latlab.h"

/* loop.c: the non-preemptible loop. */
u64 latlab_calibrate(void);
int latlab_run(struct latlab_run *run, u64 iterations_per_second);

/* interrupt.c: the interrupt and the task that waits for it. */
void latlab_timer_setup(struct hrtimer *it, enum hrtimer_restart (*expired)(struct hrtimer *),
			enum hrtimer_mode mode);
void latlab_interrupt_init(void);
void latlab_interrupt_reset(void);
int latlab_arm(struct latlab_arm *arm);
int latlab_wait(struct latlab_wait *wait);
void latlab_keep_busy(u64 served, u64 busy);
void latlab_interrupted(u64 due, u64 served);

/* inject.c: delays of known cause and length. */
int latlab_inject(struct latlab_inject *inject);

/* schedule.c: duration of a switch to a task. */
int latlab_watch(struct latlab_watch *watch);
int latlab_switches(struct latlab_switches *answer);
void latlab_unwatch(void);

/* edu.c: a device that interrupts at a known time. */
#if IS_ENABLED(CONFIG_PCI) && (IS_ENABLED(CONFIG_X86_64) || IS_ENABLED(CONFIG_ARM64))
int latlab_device_init(void);
void latlab_device_exit(void);
bool latlab_device_there(void);
int latlab_device_arm(struct latlab_arm *arm);
void latlab_device_disarm(void);
#else
static inline int latlab_device_init(void) { return 0; }
static inline void latlab_device_exit(void) { }
static inline bool latlab_device_there(void) { return false; }
static inline int latlab_device_arm(struct latlab_arm *arm) { return -ENODEV; }
static inline void latlab_device_disarm(void) { }
#endif

#endif
