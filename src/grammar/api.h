/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands behind the public handle of a grammar: the compiled grammar, shared by the answers that follow
 * it.
 */
#ifndef GUMBEL_GRAMMAR_API_H
#define GUMBEL_GRAMMAR_API_H

#include "grammar/matcher.h"
#include "gumbel.h"

#include <stdatomic.h>

struct gumbel_grammar {
    gb_grammar *compiled;
    const gumbel_tokenizer *tokenizer;
    const gb_token_trie *trie; /* the tokenizer's */
    bool is_json;
    bool is_free_text; /* where an answer may end, any token may follow: text in which tools are called */
    atomic_size_t references;
};

/* One more reference; gumbel_grammar_destroy gives one back. Thread-safe. */
gumbel_grammar *gb_grammar_retain(const gumbel_grammar *grammar);

/* As gumbel_matcher_forced, where another mask has told it already; otherwise -1. */
int32_t gb_known_forced(gumbel_matcher *matcher);

/* Says where the answer stands and what may come next: `at $.age: the grammar expects '0', ...`. Writes at
 * most size bytes with the terminating zero. */
void gb_describe_matcher(const gumbel_matcher *matcher, char *text, size_t size);

#endif
