/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that make the masks of a step while a device computes it. Between steps they sleep.
 */
#ifndef GUMBEL_RUN_MASK_WORKERS_H
#define GUMBEL_RUN_MASK_WORKERS_H

#include "backends/batch/late_masks.h"
#include "base/status.h"

typedef struct gb_mask_workers gb_mask_workers;

/* A thread for each core, at most `most` of them; masks must outlive them. Errors: MEMORY (also where the
 * system refuses threads). */
gumbel_status gb_mask_workers_create(unsigned most, gb_late_masks *masks, gb_mask_workers **workers,
                                     gumbel_error *error);

/* Waits until the threads have ended. NULL is allowed. */
void gb_mask_workers_destroy(gb_mask_workers *workers);

/* Wakes them for the masks of a step, and returns at once. */
void gb_mask_workers_wake(gb_mask_workers *workers);

#endif
