/* SPDX-License-Identifier: Apache-2.0
 *
 * Which regular expressions mean the same to the `tokenizers` package (Oniguruma) and to the runtime (pcre2).
 */
#ifndef GUMBEL_EXPORT_TEXT_SPLIT_EXPRESSION_H
#define GUMBEL_EXPORT_TEXT_SPLIT_EXPRESSION_H

#include "base/status.h"

#include <stddef.h>

/* Accepts those of known tokenizers (expressions.def), and alternatives, groups, lookahead, quantifiers,
 * ASCII characters, character classes, and \s, \p{L}, \p{M} and \p{N} with their opposites: what tokenizers
 * of the GPT and Qwen families are written in. Errors: UNSUPPORTED for anything else, naming it. What is
 * accepted need not be well-formed yet. */
gumbel_status gb_check_split_expression(const char *text, size_t length, gumbel_error *error);

#endif
