/* SPDX-License-Identifier: Apache-2.0
 *
 * What a matcher is made of.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_MATCHER_H
#define GUMBEL_GRAMMAR_MATCH_MATCHER_H

#include "grammar/match/match_cache.h"

struct gb_matcher {
    const gb_grammar *grammar;
    gb_match_cache *cache;        /* a reference */
    gb_matcher *next, **previous; /* among the cache's */
    gumbel_status status;         /* of the last call */
    uint32_t *history; /* configurations: before the oldest token that can be undone, after it, ... */
    size_t history_count, history_capacity;
};

/* In a history, after an end token. */
#define GB_ENDED UINT32_MAX

static inline uint32_t gb_configuration_of(const gb_matcher *matcher) {
    return matcher->history[matcher->history_count - 1];
}

/* Begin and end a call: between them the thread has the cache, whose last error is the matcher's. */
gb_configurations *gb_matcher_lock(gb_matcher *matcher);
void gb_matcher_unlock(gb_matcher *matcher);

#endif
