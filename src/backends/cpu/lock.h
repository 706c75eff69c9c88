/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a program's weights in memory once they have been read.
 */
#ifndef GUMBEL_BACKENDS_CPU_LOCK_H
#define GUMBEL_BACKENDS_CPU_LOCK_H

#include "backends/cpu/weights.h"
#include "program/program.h"

/* Locks the pages of the constants where they are placed. TOUCHED: each from when it is first read, if all
 * that are still in the file are at most 80 % of the memory that is available, and silently not where the
 * system refuses. ALL: reads and locks them now; IO error where the system refuses. NONE: nothing. */
gumbel_status gb_lock_weights(const gb_program *program, const gb_placed_weights *weights, gumbel_lock mode,
                              gumbel_error *error);

/* Undoes it, also after a failure. */
void gb_unlock_weights(const gb_program *program, const gb_placed_weights *weights);

#endif
