/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles what a fuzzer read and follows it: wherever the matcher is, the text may end or a byte may follow.
 */
#ifndef GUMBEL_TESTS_FUZZ_GRAMMAR_WALK_H
#define GUMBEL_TESTS_FUZZ_GRAMMAR_WALK_H

#include "grammar/matcher.h"

#include <stdlib.h>

/* Takes the first byte from start on, around, that is allowed. A byte that meets a limit says nothing of
 * others, and nobody knows whether it is allowed: *is_limited. */
static inline bool take_some_byte(gb_matcher *matcher, uint8_t start, bool *is_limited) {
    for (unsigned i = 0; i < 256; i++) {
        if (gb_matcher_accept_byte(matcher, (uint8_t)(start + i)))
            return true;
        *is_limited |= gb_matcher_error(matcher, NULL) != GUMBEL_OK;
    }
    return false;
}

static inline void follow_grammar(const gb_grammar *grammar, const uint8_t *data, size_t size) {
    gb_matcher_options options = {.cache_bytes = 1 << 20};
    gb_matcher *matcher;
    char where[64];
    if (gb_matcher_create(grammar, NULL, &options, &matcher, NULL) != GUMBEL_OK)
        return;
    for (size_t i = 0; i < 64; i++) {
        bool is_limited = false;
        if (take_some_byte(matcher, data[i % size], &is_limited))
            continue;
        if (!is_limited && !gb_matcher_may_end(matcher))
            abort();
        break;
    }
    gb_matcher_where(matcher, where, sizeof where);
    if (!where[0] || !gb_matcher_rollback(matcher, gb_matcher_history(matcher)))
        abort();
    gb_matcher_destroy(matcher);
}

/* status and error are the reader's. */
static inline void check_grammar(gb_expressions *expressions, gumbel_status status, gb_expression root,
                                 gumbel_error *error, const uint8_t *data, size_t size) {
    const gb_grammar_limits limits = {.states = 20000, .dfa_states = 2000, .work = 1000000};
    gb_grammar *grammar = NULL;
    if (status == GUMBEL_OK)
        status = gb_grammar_compile(expressions, root, &limits, &grammar, error);
    if (status != GUMBEL_OK && (error->status != status || !error->message[0] || grammar))
        abort();
    if (grammar && size)
        follow_grammar(grammar, data, size);
    gb_grammar_destroy(grammar);
    gb_expressions_destroy(expressions);
}

#endif
