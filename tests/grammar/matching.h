/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a compiled grammar accepts whole texts.
 */
#ifndef GUMBEL_TESTS_GRAMMAR_MATCHING_H
#define GUMBEL_TESTS_GRAMMAR_MATCHING_H

#include "grammar/matcher.h"
#include "support/assertions.h"

static inline bool accepts_bytes(const gb_grammar *grammar, const char *text, size_t size) {
    gb_matcher *matcher;
    gumbel_error error;
    assert_ok(gb_matcher_create(grammar, NULL, NULL, &matcher, &error), &error);
    size_t taken = 0;
    while (taken < size && gb_matcher_accept_byte(matcher, (uint8_t)text[taken]))
        taken++;
    bool accepts = taken == size && gb_matcher_may_end(matcher);
    gb_matcher_destroy(matcher);
    return accepts;
}

/* Compiles root, which must work, and frees the expressions. */
static inline gb_grammar *compile_and_free(gb_expressions *expressions, gb_expression root) {
    gb_grammar *grammar;
    gumbel_error error;
    assert_ok(gb_grammar_compile(expressions, root, NULL, &grammar, &error), &error);
    gb_expressions_destroy(expressions);
    return grammar;
}

#endif
