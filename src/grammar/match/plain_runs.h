/* SPDX-License-Identifier: Apache-2.0
 *
 * How many plain characters (those that JSON strings have unescaped) may follow a configuration, whichever
 * they are: tokens of no more than these need no walk.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_PLAIN_RUNS_H
#define GUMBEL_GRAMMAR_MATCH_PLAIN_RUNS_H

#include "grammar/match/configurations.h"

/* Zeroed at the start. */
typedef struct gb_plain_runs {
    uint32_t
        *after; /* by configuration: number of the set of those after any one character + 1; 0: unknown */
    size_t count, capacity;
    gb_intern_table sets; /* of configurations */
    bool failed;          /* memory ran out: runs are found shorter than they are */
} gb_plain_runs;

/* Characters of the longest run that may follow whatever it is made of, at most `most`; GB_ENDLESS (all bits)
 * where it has no end. */
uint32_t gb_find_plain_run(gb_plain_runs *runs, gb_configurations *configurations, uint32_t configuration,
                           uint32_t most);

size_t gb_plain_runs_bytes(const gb_plain_runs *runs);
void gb_plain_runs_free(gb_plain_runs *runs);

#endif
