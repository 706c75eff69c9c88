/* SPDX-License-Identifier: Apache-2.0
 *
 * When the answers of one request came, for benchmarks of the scheduler.
 */
#ifndef GUMBEL_BENCH_ANSWER_TIMES_H
#define GUMBEL_BENCH_ANSWER_TIMES_H

#include "base/clock.h"
#include "gumbel.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct answer_times {
    double first, last; /* when the first answer's first token and the last event came */
    uint64_t tokens;    /* of all answers */
} answer_times;

/* A submission's callback; user is its answer_times. Ends the program where an answer fails. */
static inline void hear_times(void *user, const gumbel_event *event) {
    answer_times *t = user;
    if (event->type == GUMBEL_EVENT_ERROR) {
        fprintf(stderr, "%s\n", event->message);
        exit(1);
    }
    t->last = gb_seconds();
    if (t->first <= 0)
        t->first = t->last;
    t->tokens += event->type == GUMBEL_EVENT_TOKEN;
}

#endif
