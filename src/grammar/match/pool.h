/* SPDX-License-Identifier: Apache-2.0
 *
 * Matchers of a grammar that nobody uses, with what they found on their way: the next answer need not find it
 * again. Any thread may use a pool.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_POOL_H
#define GUMBEL_GRAMMAR_MATCH_POOL_H

#include "grammar/matcher.h"

enum { GB_POOL_SIZE = 4 };

typedef struct gb_matcher_pool gb_matcher_pool;

/* NULL without memory. */
gb_matcher_pool *gb_matcher_pool_create(void);

/* Frees the matchers, too. NULL is allowed. */
void gb_matcher_pool_destroy(gb_matcher_pool *pool);

/* A matcher of this trie and these options, or NULL. The caller owns it. */
gb_matcher *gb_matcher_pool_take(gb_matcher_pool *pool, const gb_token_trie *trie,
                                 const gb_matcher_options *options);

/* Takes a matcher, unless there are GB_POOL_SIZE already: false. */
bool gb_matcher_pool_put(gb_matcher_pool *pool, gb_matcher *matcher);

#endif
