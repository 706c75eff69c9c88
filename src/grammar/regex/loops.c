/* SPDX-License-Identifier: Apache-2.0
 *
 * Repeated groups whose alternatives have anchors or lookahead, said without them in the repeat.
 */
#include "grammar/regex/alternatives.h"

/* Those that end the text, or those that do not, as one expression. */
static gb_expression express_some(gb_regex_reader *reader, const gb_alternative_list *group, bool at_end) {
    gb_alternative_list some = {0};
    for (size_t i = 0; i < group->count; i++)
        if (group->items[i].at_end == at_end)
            gb_add_alternative(reader, &some, &group->items[i]);
    const gb_expression expression = gb_express_alternatives(reader, &some);
    gb_free_alternatives(&some);
    return expression;
}

static void add(gb_regex_reader *reader, gb_alternative_list *to, const gb_expression *items, size_t count,
                bool at_end) {
    gb_alternative_list one = {0};
    gb_add_alternative(reader, &one, NULL);
    for (size_t i = 0; i < count; i++)
        gb_alternatives_push(reader, &one, (gb_regex_part){items[i], GB_REGEX_ITEM, false});
    if (at_end)
        gb_alternatives_anchor(reader, &one, false);
    gb_move_alternatives(reader, to, &one);
}

static gb_expression endless(gb_regex_reader *reader, gb_expression item, uint32_t least) {
    return reader->status == GUMBEL_OK ? gb_express_repeat(reader->expressions, item, least, GB_NO_END) : 0;
}

/* Only the last turn that has characters may end the text; those behind it are empty. */
static void loop_to_end(gb_regex_reader *reader, const gb_alternative_list *group, uint32_t least,
                        gb_alternative_list *looped) {
    const gb_expression inner = express_some(reader, group, false), last = express_some(reader, group, true);
    const gb_expression ended[] = {endless(reader, inner, least ? least - 1 : 0), last};
    add(reader, looped, (const gb_expression[]){endless(reader, inner, least)}, 1, false);
    add(reader, looped, ended, 2, true);
    if (reader->status != GUMBEL_OK || least < 2)
        return;
    gb_expressions *expressions = reader->expressions;
    const gb_expression empty = gb_express_both(expressions, last, gb_express_empty(expressions));
    add(reader, looped, (const gb_expression[]){endless(reader, inner, 0), last, empty}, 3, true);
}

/* Whether an alternative is one character with what may not begin at it, as in ((?!a).)*. */
static bool is_guarded_character(const gb_alternative *one) {
    bool is_guarded = one->count > 0 && one->parts[one->count - 1].is_character;
    for (size_t i = 0; i + 1 < one->count; i++)
        is_guarded &= one->parts[i].kind == GB_REGEX_NOT_AHEAD;
    return is_guarded && !one->at_start && !one->at_end;
}

/* Where the characters go on to the end of the text there is one way to divide it into them: none may be at
 * the begin of what is not ahead. */
static void loop_guarded(gb_regex_reader *reader, const gb_alternative *one, uint32_t least,
                         gb_alternative_list *looped) {
    gb_expressions *expressions = reader->expressions;
    const gb_expression character = one->parts[one->count - 1].expression;
    const gb_expression before = endless(reader, character, 0), any = gb_express_any_text(reader);
    gb_alternative_list made = {0};
    gb_add_alternative(reader, &made, NULL);
    for (size_t i = 0; i + 1 < one->count && reader->status == GUMBEL_OK; i++) {
        const gb_expression rest =
            gb_express_sequence(expressions, (const gb_expression[]){character, any}, 2);
        const gb_expression bad[] = {before, gb_express_both(expressions, rest, one->parts[i].expression)};
        const gb_expression texts = gb_express_sequence(expressions, bad, 2);
        gb_alternatives_push(reader, &made, (gb_regex_part){texts, GB_REGEX_NOT_AHEAD, false});
    }
    gb_alternatives_push(reader, &made,
                         (gb_regex_part){endless(reader, character, least), GB_REGEX_ITEM, false});
    gb_move_alternatives(reader, looped, &made);
}

bool gb_loop_alternatives(gb_regex_reader *reader, const gb_alternative_list *group, uint32_t least,
                          bool to_end, gb_alternative_list *looped) {
    if (to_end && group->count == 1 && is_guarded_character(&group->items[0])) {
        loop_guarded(reader, &group->items[0], least, looped);
        return true;
    }
    for (size_t i = 0; i < group->count; i++)
        if (group->items[i].at_start || group->items[i].has_ahead)
            return false;
    loop_to_end(reader, group, least, looped);
    return true;
}
