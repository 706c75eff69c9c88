/* SPDX-License-Identifier: Apache-2.0
 *
 * GBNF, the grammars of llama.cpp: rules of literals, classes of characters, `.`, references, groups, repeats
 * and comments, and tokens by id (<[7]>) or spelling (<|end|>), also negated (!<[7]>).
 */
#ifndef GUMBEL_GRAMMAR_GBNF_GBNF_H
#define GUMBEL_GRAMMAR_GBNF_GBNF_H

#include "grammar/expression.h"

/* The id of a token by its spelling, brackets and all (not terminated by a zero), or -1. */
typedef int32_t (*gb_token_finder)(void *user, const char *spelling, size_t length);

typedef struct gb_gbnf_options {
    gb_token_finder find_token; /* NULL: tokens by their spelling are refused */
    void *user;
    const char *root; /* the rule that an answer is; NULL: root */
} gb_gbnf_options;

/* Reads size bytes of UTF-8; *root is the rule that an answer is. options may be NULL. Errors, which name
 * line and column from 1: FORMAT (also a rule that is not defined, or twice), UNSUPPORTED (a token that is
 * not known), LIMIT; and those of expressions. */
gumbel_status gb_read_gbnf(gb_expressions *expressions, const char *text, size_t size,
                           const gb_gbnf_options *options, gb_expression *root, gumbel_error *error);

#endif
