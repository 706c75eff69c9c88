/* SPDX-License-Identifier: Apache-2.0
 *
 * What matchers of one grammar, one trie and the same options find on their way: configurations and masks,
 * which all of them share. A grammar keeps a few caches that no matcher uses, so that the next answer need
 * not find everything again.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_MATCH_CACHE_H
#define GUMBEL_GRAMMAR_MATCH_MATCH_CACHE_H

#include "grammar/compile/grammar.h"
#include "grammar/match/alike.h"
#include "grammar/match/configurations.h"
#include "grammar/match/mask_cache.h"
#include "grammar/match/plain_runs.h"
#include "grammar/match/plain_states.h"
#include "grammar/matcher.h"

#include <pthread.h>

enum {
    GB_IDLE_CACHES = 4,    /* that no matcher uses, of a grammar */
    GB_STACK_LIMIT = 20000 /* stacks that one closure may visit */
};

/* Everything behind the mutex is for the thread that has it. */
typedef struct gb_match_cache {
    const gb_automaton *automaton;
    const gb_token_trie *trie;
    uint32_t *end_tokens; /* owned */
    size_t end_token_count, cache_bytes;
    uint64_t work;
    struct gb_match_cache *next; /* of the grammar's; the list and references are behind its own mutex */
    size_t references;           /* matchers */
    pthread_mutex_t mutex;
    size_t bound; /* cache_bytes, or more where the histories alone take more */
    gb_configurations configurations;
    gb_plain_runs plain_runs;
    gb_plain_states plain_states;
    gb_alike alike;
    gb_mask_cache masks;
    gb_matcher *matchers; /* all that use it */
} gb_match_cache;

/* The caches of a grammar. Any thread may use them. */
typedef struct gb_match_caches gb_match_caches;

/* NULL without memory. */
gb_match_caches *gb_match_caches_create(void);

/* There must be no matchers. NULL is allowed. */
void gb_match_caches_destroy(gb_match_caches *caches);

/* The cache of this trie and these options, made if there is none; NULL without memory. Give it back with
 * gb_match_cache_release. */
gb_match_cache *gb_match_cache_acquire(gb_match_caches *caches, const gb_automaton *automaton,
                                       const gb_token_trie *trie, const gb_matcher_options *options);

/* One more reference to a cache that is in use. */
void gb_match_cache_retain(gb_match_caches *caches, gb_match_cache *cache);
void gb_match_cache_release(gb_match_caches *caches, gb_match_cache *cache);

/* Keeps what was found below the bound: beyond it, everything but the matchers' histories is forgotten. The
 * caller has the mutex. false without memory; nothing changed. */
bool gb_match_cache_trim(gb_match_cache *cache);

bool gb_is_end_token(const gb_match_cache *cache, uint32_t token);

/* Makes the mask of a configuration: words[word_count + 1]. The caller has the mutex. */
void gb_walk_tokens(gb_match_cache *cache, uint32_t configuration, uint32_t *words, unsigned *slices);

#endif
