/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Feeds the models of caches and TLBs with what a guest executes. */
#ifndef LATLAB_PLUGIN_MISSES_H
#define LATLAB_PLUGIN_MISSES_H

#include <stdio.h>

#include "qemu.h"

/* Whether QEMU tells the physical address of code. */
bool can_count_misses(void);
/* Has a block counted, and the misses between its marks written to `out`. */
void count_misses(struct qemu_plugin_tb *tb, FILE *out);

#endif
