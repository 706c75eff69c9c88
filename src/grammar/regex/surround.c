/* SPDX-License-Identifier: Apache-2.0
 *
 * Alternatives as expressions, with what may stand around them.
 */
#include "base/memory.h"
#include "grammar/regex/alternatives.h"

/* The items of one that has no lookahead, then behind, which may be 0. */
static gb_expression express_items(gb_regex_reader *reader, const gb_alternative *one, gb_expression behind) {
    gb_expression *items = gb_allocate(one->count + 1, sizeof *items), sequence = 0;
    if (!items)
        gb_regex_fail(reader, GUMBEL_ERROR_MEMORY, reader->at, "no memory");
    for (size_t i = 0; i < one->count && items; i++)
        items[i] = one->parts[i].expression;
    if (items)
        items[one->count] = behind;
    if (reader->status == GUMBEL_OK)
        sequence = gb_express_sequence(reader->expressions, items, one->count + (behind ? 1 : 0));
    gb_free(items);
    return sequence;
}

/* The parts from the last one on, since lookahead is about all that follows. */
static gb_expression express_parts(gb_regex_reader *reader, const gb_alternative *one, gb_expression behind) {
    gb_expressions *expressions = reader->expressions;
    if (!one->has_ahead)
        return express_items(reader, one, behind);
    gb_expression rest = behind ? behind : gb_express_empty(expressions);
    for (size_t i = one->count; i-- > 0 && reader->status == GUMBEL_OK;) {
        const gb_regex_part part = one->parts[i];
        if (part.kind == GB_REGEX_ITEM)
            rest = gb_express_sequence(expressions, (const gb_expression[]){part.expression, rest}, 2);
        else if (part.kind == GB_REGEX_AHEAD)
            rest = gb_express_both(expressions, rest, part.expression);
        else
            rest = gb_express_except(expressions, rest, part.expression);
    }
    return rest;
}

static gb_expression choose(gb_regex_reader *reader, const gb_expression *items, size_t count) {
    return reader->status == GUMBEL_OK ? gb_express_choice(reader->expressions, items, count) : 0;
}

static gb_expression *allocate(gb_regex_reader *reader, size_t count) {
    gb_expression *items = gb_allocate(count + 4, sizeof *items);
    if (!items)
        gb_regex_fail(reader, GUMBEL_ERROR_MEMORY, reader->at, "no memory");
    return items;
}

gb_expression gb_express_alternatives(gb_regex_reader *reader, const gb_alternative_list *all) {
    gb_expression *items = allocate(reader, all->count);
    for (size_t i = 0; i < all->count && items; i++)
        items[i] = express_parts(reader, &all->items[i], 0);
    const gb_expression choice = items ? choose(reader, items, all->count) : 0;
    gb_free(items);
    return choice;
}

/* before, item and behind; 0 is nothing. */
static gb_expression enclose(gb_regex_reader *reader, gb_expression before, gb_expression item,
                             gb_expression behind) {
    const gb_expression items[] = {before, item, behind};
    const size_t first = before ? 0 : 1, end = behind ? 3 : 2;
    if (reader->status != GUMBEL_OK || end - first == 1)
        return item;
    return gb_express_sequence(reader->expressions, items + first, end - first);
}

/* Those with these anchors share what stands around them: a place in a text is then not one of those behind
 * each of them. Lookahead sees what is behind. */
static size_t surround_group(gb_regex_reader *reader, const gb_alternative_list *all, gb_expression left,
                             gb_expression right, bool at_start, bool at_end, gb_expression *surrounded,
                             gb_expression *shared) {
    size_t count = 0, shared_count = 0;
    const gb_expression before = at_start ? 0 : left, behind = at_end ? 0 : right;
    for (size_t i = 0; i < all->count; i++) {
        const gb_alternative *one = &all->items[i];
        if (one->at_start != at_start || one->at_end != at_end)
            continue;
        if (one->has_ahead)
            surrounded[count++] = enclose(reader, before, express_parts(reader, one, behind), 0);
        else
            shared[shared_count++] = express_items(reader, one, 0);
    }
    if (shared_count)
        surrounded[count++] = enclose(reader, before, choose(reader, shared, shared_count), behind);
    return count;
}

gb_expression gb_express_surrounded(gb_regex_reader *reader, const gb_alternative_list *all,
                                    gb_expression left, gb_expression right) {
    gb_expression *items = allocate(reader, all->count), *shared = allocate(reader, all->count);
    size_t count = 0;
    for (unsigned anchors = 0; anchors < 4 && items && shared; anchors++)
        count += surround_group(reader, all, left, right, anchors & 1, anchors & 2, items + count, shared);
    const gb_expression choice = items && shared ? choose(reader, items, count) : 0;
    gb_free(items);
    gb_free(shared);
    return choice;
}

gb_expression gb_express_any_text(gb_regex_reader *reader) {
    gb_character_range range = {0, 0x10FFFF};
    const gb_ranges all = {.items = &range, .count = 1};
    if (reader->options->around)
        return reader->options->around;
    const gb_expression character = gb_express_ranges(reader, &all);
    return reader->status == GUMBEL_OK ? gb_express_repeat(reader->expressions, character, 0, GB_NO_END) : 0;
}
