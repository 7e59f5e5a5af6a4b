/* SPDX-License-Identifier: GPL-2.0 */
/* The processor's counter, by which the kernel keeps time. */
#ifndef LATLAB_CYCLES_H
#define LATLAB_CYCLES_H

#include <linux/types.h>

#ifdef CONFIG_X86_64

#include <asm/tsc.h>

static inline u64 latlab_cycles(void) { return rdtsc_ordered(); }
static inline u32 latlab_cycles_khz(void) { return tsc_khz; }

#else

#include <asm/arch_timer.h>

static inline u64 latlab_cycles(void) { return __arch_counter_get_cntvct(); }
static inline u32 latlab_cycles_khz(void) { return arch_timer_get_cntfrq() / 1000; }

#endif

#endif
