/* SPDX-License-Identifier: Apache-2.0
 *
 * A matcher follows one answer through a grammar and says which tokens may come next. One thread at a time
 * may use a matcher; the grammar and the trie may be shared by any number of them.
 */
#ifndef GUMBEL_GRAMMAR_MATCHER_H
#define GUMBEL_GRAMMAR_MATCHER_H

#include "grammar/grammar.h"
#include "text/trie/trie.h"

typedef struct gb_matcher gb_matcher;

/* How many tokens gb_matcher_rollback can undo at least. */
#define GB_MATCHER_ROLLBACK 1024

typedef struct gb_matcher_options {
    const uint32_t *end_tokens; /* tokens that end the answer, allowed where the grammar may end; copied */
    size_t end_token_count;
    size_t cache_bytes; /* of what is found on the way; 0: 16 MiB */
    uint64_t work;      /* that one call may cost, in stacks visited; 0: 20,000,000, about a second */
} gb_matcher_options;

/* Matchers of the same grammar, trie and options share what they find, on any threads; a grammar keeps it for
 * a while after the last of them. grammar and trie must outlive the matcher, the trie the grammar as well;
 * trie may be NULL for one that takes bytes only, options too. Errors: ARGUMENT (an end token that is none of
 * the trie's), LIMIT, MEMORY. */
gumbel_status gb_matcher_create(const gb_grammar *grammar, const gb_token_trie *trie,
                                const gb_matcher_options *options, gb_matcher **matcher, gumbel_error *error);

/* A matcher at the same place, which can be rolled back as far. Errors: MEMORY. */
gumbel_status gb_matcher_clone(const gb_matcher *matcher, gb_matcher **clone, gumbel_error *error);

/* NULL is allowed. */
void gb_matcher_destroy(gb_matcher *matcher);

/* Takes one token of the answer. false: it is not allowed here, or an error (gb_matcher_error); nothing
 * changed. After an end token nothing is allowed. */
bool gb_matcher_accept_token(gb_matcher *matcher, uint32_t token);

/* Takes one byte, which counts as a token in gb_matcher_rollback. */
bool gb_matcher_accept_byte(gb_matcher *matcher, uint8_t byte);

/* Undoes the last count tokens. false: more than were accepted, or than it can; nothing changed. */
bool gb_matcher_rollback(gb_matcher *matcher, size_t count);

/* Tokens that gb_matcher_rollback can undo now. */
size_t gb_matcher_history(const gb_matcher *matcher);

/* Writes the mask of the next token: words[token_count / 32, rounded up], bit token % 32 of word token / 32
 * is set where the token is allowed; bits beyond the vocabulary are 0. Needs a trie. Errors: LIMIT (the
 * grammar is too ambiguous here), MEMORY; then words are undefined and the matcher stays as it is. */
gumbel_status gb_matcher_mask(gb_matcher *matcher, uint32_t *words, gumbel_error *error);

/* The one token that the mask allows, or -1: several are, or none, or its mask is not cached and makes_mask
 * is false. Errors as of gb_matcher_mask give -1. */
int32_t gb_matcher_forced(gb_matcher *matcher, bool makes_mask);

/* Whether the answer may end here, or has ended. */
bool gb_matcher_may_end(const gb_matcher *matcher);

/* The error that the last call of this matcher met, or GUMBEL_OK. */
gumbel_status gb_matcher_error(const gb_matcher *matcher, gumbel_error *error);

/* Describes for an error message what the grammar expects here, such as `'"', '}' or 12 other bytes`: writes
 * at most size bytes with the terminating zero. */
void gb_matcher_where(gb_matcher *matcher, char *text, size_t size);

#endif
