/* SPDX-License-Identifier: Apache-2.0
 *
 * Alternatives of a regular expression with what they ask of the text around them: anchors, and lookahead.
 */
#ifndef GUMBEL_GRAMMAR_REGEX_ALTERNATIVES_H
#define GUMBEL_GRAMMAR_REGEX_ALTERNATIVES_H

#include "grammar/regex/reader.h"

typedef enum gb_regex_part_kind {
    GB_REGEX_ITEM,
    GB_REGEX_AHEAD,    /* all that follows it in the text is of the expression */
    GB_REGEX_NOT_AHEAD /* is not */
} gb_regex_part_kind;

typedef struct gb_regex_part {
    gb_expression expression;
    gb_regex_part_kind kind;
    bool is_character; /* an item of one */
} gb_regex_part;

/* at_start, at_end: it begins or ends the text. */
typedef struct gb_alternative {
    gb_regex_part *parts; /* owned */
    size_t count, capacity;
    bool at_start, at_end, has_ahead;
} gb_alternative;

/* Starts zeroed. */
typedef struct gb_alternative_list {
    gb_alternative *items; /* owned */
    size_t count, capacity;
} gb_alternative_list;

/* Adds one without parts, or a copy of another one with its parts. */
void gb_add_alternative(gb_regex_reader *reader, gb_alternative_list *all, const gb_alternative *other);

/* Moves all of `others` to `all`. */
void gb_move_alternatives(gb_regex_reader *reader, gb_alternative_list *all, gb_alternative_list *others);

void gb_free_alternatives(gb_alternative_list *all);

/* Each goes on with the part, or has an anchor here: what is before a start and behind an end is empty. */
void gb_alternatives_push(gb_regex_reader *reader, gb_alternative_list *all, gb_regex_part part);
void gb_alternatives_anchor(gb_regex_reader *reader, gb_alternative_list *all, bool at_start);

/* Each goes on with any of the group's. Errors: UNSUPPORTED (too many). */
void gb_alternatives_cross(gb_regex_reader *reader, gb_alternative_list *all,
                           const gb_alternative_list *group, size_t place);

/* What `least` or more turns of a group mean that has anchors or lookahead; `to_end`: the text ends behind
 * them. False where that is not known here: with anchors at a start, and with lookahead but for what no
 * character of the turns may begin. */
bool gb_loop_alternatives(gb_regex_reader *reader, const gb_alternative_list *group, uint32_t least,
                          bool to_end, gb_alternative_list *looped);

/* Whether one of them has an anchor or lookahead. */
bool gb_alternatives_ask(const gb_alternative_list *all);

/* Any characters. */
gb_expression gb_express_any_text(gb_regex_reader *reader);

/* Any of them, which ask nothing of what is around them. */
gb_expression gb_express_alternatives(gb_regex_reader *reader, const gb_alternative_list *all);

/* Any of them with what may stand before and behind them where they have no anchor; 0: nothing may. */
gb_expression gb_express_surrounded(gb_regex_reader *reader, const gb_alternative_list *all,
                                    gb_expression left, gb_expression right);

#endif
