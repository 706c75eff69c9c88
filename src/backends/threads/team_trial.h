/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a team of threads is worth its barriers. On a machine that others keep busy a barrier may wait for
 * a descheduled thread far longer than the work takes; a team that is slower than one thread should be is
 * then tried against one thread. How a batch is run changes no bits.
 */
#ifndef GUMBEL_BACKENDS_THREADS_TEAM_TRIAL_H
#define GUMBEL_BACKENDS_THREADS_TEAM_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at first. Not thread-safe. */
typedef struct gb_team_trial {
    double team, single; /* seconds per unit of work, a moving mean; 0: not known */
    uint32_t interval;   /* batches from one comparison to the next */
    uint32_t since;      /* batches since the last one */
    uint32_t trials;     /* batches left of the trial */
    bool is_single;      /* which has been faster */
} gb_team_trial;

/* Whether one thread should run the next batch. */
bool gb_team_trial_is_single(const gb_team_trial *trial);

/* Records the time of a batch, run as gb_team_trial_is_single said; work as of gb_kernel_work. */
void gb_team_trial_record(gb_team_trial *trial, uint64_t work, double seconds);

#endif
