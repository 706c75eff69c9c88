/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends work that takes too long, or that nobody waits for any more.
 */
#ifndef GUMBEL_GRAMMAR_WATCH_H
#define GUMBEL_GRAMMAR_WATCH_H

#include "base/status.h"

#include <stdint.h>

/* Of one piece of work, whose thread alone uses it. Filled in from the top up to user, the rest zeroed. */
typedef struct gb_watch {
    double seconds;                   /* that the work may take */
    bool (*is_cancelled)(void *user); /* NULL: nobody cancels it */
    void *user;
    double begin, last_asked; /* gb_seconds */
    uint64_t steps;           /* since the clock was read */
    gumbel_error error;       /* LIMIT, CANCELLED; status GUMBEL_OK: the work goes on */
} gb_watch;

/* So many steps make the clock be read. */
#define GB_WATCH_STEPS 1024u

void gb_watch_begin(gb_watch *watch);

/* Counts steps of some ten nanoseconds each. False, from then on, when the work has to end. watch may be
 * NULL. */
bool gb_watch_goes_on(gb_watch *watch, uint64_t steps);

#endif
