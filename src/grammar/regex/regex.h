/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions, as JSON Schema's `pattern` and requests have them: what ECMA 262 and Rust's regex
 * crate have in common. Classes, \d \w \s (ASCII but for \s, as in ECMA 262), \p{..} of general categories,
 * groups, alternatives and quantifiers; `.` is any character but a new line. Anchors and lookahead may stand
 * anywhere but in a group that is repeated, where they are known at the end of its turns and in front of one
 * character. Lookbehind, back references, word boundaries and flags are refused by name.
 */
#ifndef GUMBEL_GRAMMAR_REGEX_REGEX_H
#define GUMBEL_GRAMMAR_REGEX_REGEX_H

#include "grammar/expression.h"

/* How one character of the ranges is written, for texts in which some are escaped. */
typedef gb_expression (*gb_express_class)(void *user, gb_expressions *expressions,
                                          const gb_character_range *ranges, size_t count);

typedef struct gb_regex_options {
    gb_express_class characters; /* NULL: gb_express_characters */
    void *user;
    gb_expression around; /* may stand at a side where an alternative has no anchor; 0: nothing may */
} gb_regex_options;

/* What the expression says about its sides: whether every alternative has an anchor there. */
typedef struct gb_regex {
    gb_expression expression;
    bool anchored_at_start, anchored_at_end;
} gb_regex;

/* Reads size bytes of UTF-8. options may be NULL: the whole text matches, as if both anchors were there.
 * Errors: FORMAT (names the character, counted from 1), UNSUPPORTED (what is refused, likewise), those of
 * expressions. */
gumbel_status gb_read_regex(gb_expressions *expressions, const char *text, size_t size,
                            const gb_regex_options *options, gb_regex *regex, gumbel_error *error);

#endif
