/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/threads/pace.h"

/* Comparisons come the more seldom the longer the result has stood. */
enum { FIRST_INTERVAL = 16, LAST_INTERVAL = 1024, TRIALS = 2, MEMORY = 4 };

/* What one thread needs at most, about, on a machine of its own: for a batch, and for a multiplication where
 * float32 weights come from memory. */
static const double most_for_batch = 100e-6, most_for_work = 0.25e-9;

static bool is_suspicious(const gb_pace *pace, uint64_t work, double seconds) {
    return pace->is_alone || seconds > most_for_batch + (double)work * most_for_work;
}

static void add_to_mean(double *mean, double value) {
    *mean = *mean > 0 ? *mean + (value - *mean) / MEMORY : value;
}

bool gb_pace_is_alone(const gb_pace *pace) {
    return pace->is_alone != (pace->trials > 0);
}

static void end_trials(gb_pace *pace) {
    const double now = pace->is_alone ? pace->alone : pace->team;
    const double other = pace->is_alone ? pace->team : pace->alone;
    const uint32_t longer = 2 * pace->interval;
    if (other < now) {
        pace->is_alone = !pace->is_alone;
        pace->interval = FIRST_INTERVAL;
    } else {
        pace->interval = longer < LAST_INTERVAL ? longer : LAST_INTERVAL;
    }
}

void gb_pace_record(gb_pace *pace, uint64_t work, double seconds) {
    const bool was_alone = gb_pace_is_alone(pace);
    if (pace->interval == 0)
        pace->interval = FIRST_INTERVAL;
    add_to_mean(was_alone ? &pace->alone : &pace->team, seconds / (double)(work > 0 ? work : 1));
    if (pace->trials > 0) {
        if (--pace->trials == 0)
            end_trials(pace);
        return;
    }
    if (pace->since < pace->interval)
        pace->since++;
    if (pace->since < pace->interval || !is_suspicious(pace, work, seconds))
        return;
    pace->since = 0;
    pace->trials = TRIALS;
    *(was_alone ? &pace->team : &pace->alone) = 0; /* what was long ago does not count */
}
