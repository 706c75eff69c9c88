/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/threads/team_trial.h"

/* The longer a result has stood, the rarer the trials. */
enum { FIRST_INTERVAL = 16, LAST_INTERVAL = 1024, TRIALS = 2, MEMORY = 4 };

/* What one thread needs at most, about, on a machine of its own: for a batch, and for a multiplication where
 * float32 weights come from memory. */
static const double most_for_batch = 100e-6, most_for_work = 0.25e-9;

static bool is_suspicious(const gb_team_trial *trial, uint64_t work, double seconds) {
    return trial->is_single || seconds > most_for_batch + (double)work * most_for_work;
}

static void add_to_mean(double *mean, double value) {
    *mean = *mean > 0 ? *mean + (value - *mean) / (double)MEMORY : value;
}

bool gb_team_trial_is_single(const gb_team_trial *trial) {
    return trial->is_single != (trial->trials > 0);
}

static void end_trials(gb_team_trial *trial) {
    const double now = trial->is_single ? trial->single : trial->team;
    const double other = trial->is_single ? trial->team : trial->single;
    const uint32_t longer = 2 * trial->interval;
    if (other < now) {
        trial->is_single = !trial->is_single;
        trial->interval = FIRST_INTERVAL;
    } else {
        trial->interval = longer < LAST_INTERVAL ? longer : LAST_INTERVAL;
    }
}

void gb_team_trial_record(gb_team_trial *trial, uint64_t work, double seconds) {
    const bool was_single = gb_team_trial_is_single(trial);
    if (trial->interval == 0)
        trial->interval = FIRST_INTERVAL;
    add_to_mean(was_single ? &trial->single : &trial->team, seconds / (double)(work > 0 ? work : 1));
    if (trial->trials > 0) {
        if (--trial->trials == 0)
            end_trials(trial);
        return;
    }
    if (trial->since < trial->interval)
        trial->since++;
    if (trial->since < trial->interval || !is_suspicious(trial, work, seconds))
        return;
    trial->since = 0;
    trial->trials = TRIALS;
    *(was_single ? &trial->team : &trial->single) = 0; /* what was long ago does not count */
}
