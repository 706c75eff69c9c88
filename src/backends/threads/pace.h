/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a team is worth its barriers. Where other programs keep the cores busy, a barrier may wait for a
 * thread that the system has set aside, for far longer than the work in between takes; one thread alone is
 * then faster. A team that is slower than one thread ought to be is compared with one thread now and then.
 * How a batch is run changes no bits.
 */
#ifndef GUMBEL_BACKENDS_THREADS_PACE_H
#define GUMBEL_BACKENDS_THREADS_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at first. Not thread-safe. */
typedef struct gb_pace {
    double team, alone; /* seconds per unit of work, a moving mean; 0: not known */
    uint32_t interval;  /* batches from one comparison to the next */
    uint32_t since;     /* batches since the last one */
    uint32_t trials;    /* batches left that try the other way */
    bool is_alone;      /* what has been faster */
} gb_pace;

/* Whether one thread should run the next batch. */
bool gb_pace_is_alone(const gb_pace *pace);

/* Tells how long the batch took, run as gb_pace_is_alone said; work as gb_kernel_work has it. */
void gb_pace_record(gb_pace *pace, uint64_t work, double seconds);

#endif
