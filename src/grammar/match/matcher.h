/* SPDX-License-Identifier: Apache-2.0
 *
 * What a matcher is made of.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_MATCHER_H
#define GUMBEL_GRAMMAR_MATCH_MATCHER_H

#include "grammar/compile/grammar.h"
#include "grammar/match/configurations.h"
#include "grammar/match/mask_cache.h"
#include "grammar/match/plain_runs.h"
#include "grammar/matcher.h"

struct gb_matcher {
    const gb_grammar *grammar;
    const gb_token_trie *trie;
    uint32_t *end_tokens; /* owned */
    size_t end_token_count, cache_bytes;
    uint64_t work;
    size_t bound; /* cache_bytes, or more where the history alone takes more */
    gb_configurations configurations;
    gb_plain_runs plain_runs;
    gb_mask_cache masks;
    uint32_t *history; /* configurations: before the oldest token that can be undone, after it, ... */
    size_t history_count, history_capacity;
};

/* In a history, after an end token. */
#define GB_ENDED UINT32_MAX

static inline uint32_t gb_configuration_of(const gb_matcher *matcher) {
    return matcher->history[matcher->history_count - 1];
}

/* What cache_bytes and work mean. */
size_t gb_cache_bytes_of(const gb_matcher_options *options);
uint64_t gb_work_of(const gb_matcher_options *options);

/* Frees a matcher that no pool has. */
void gb_matcher_free(gb_matcher *matcher);

/* Keeps what was found on the way below the bound: beyond it, everything but the history is forgotten.
 * false without memory; nothing changed. */
bool gb_matcher_bound(gb_matcher *matcher);

bool gb_is_end_token(const gb_matcher *matcher, uint32_t token);

/* Makes the mask of a configuration: words[word_count + 1]. */
void gb_walk_tokens(gb_matcher *matcher, uint32_t configuration, uint32_t *words, unsigned *slices);

#endif
