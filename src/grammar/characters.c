/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of Unicode characters as automata over the bytes of UTF-8, which is a tree: below a lead byte, each
 * continuation byte chooses one of 64 parts. Parts that are equal become one state.
 */
#include "base/memory.h"
#include "grammar/nodes.h"

#include <stdlib.h>
#include <string.h>

/* Moves of one state. */
typedef struct place {
    gb_byte_move moves[256];
    size_t count;
} place;

/* States in the order in which they are made: each after those that it leads to. */
typedef struct builder {
    gb_character_range *ranges; /* by where they begin; those before `range` are done */
    size_t range_count, range;
    gb_byte_move *moves;
    size_t move_count, move_capacity;
    uint32_t *starts; /* of each state: its first move */
    size_t state_count, start_capacity;
    bool failed; /* memory ran out */
} builder;

enum { END = 0 }; /* the state behind a character */

/* A part of the tree: characters from `first` on, `span` of them below each byte from `byte` on. */
typedef struct part {
    uint32_t first, span, byte;
} part;

static void add_move(place *at, uint32_t first, uint32_t last, uint32_t to) {
    gb_byte_move *before = at->count ? &at->moves[at->count - 1] : NULL;
    if (before && before->to == to && before->last + 1u == first)
        before->last = (uint8_t)last;
    else
        at->moves[at->count++] = (gb_byte_move){.to = to, .first = (uint8_t)first, .last = (uint8_t)last};
}

static bool has_moves(const builder *all, uint32_t state, const place *at) {
    const uint32_t first = all->starts[state], end = all->starts[state + 1];
    if (end - first != at->count)
        return false;
    for (size_t i = 0; i < at->count; i++) {
        const gb_byte_move *a = &all->moves[first + i], *b = &at->moves[i];
        if (a->to != b->to || a->first != b->first || a->last != b->last)
            return false;
    }
    return true;
}

/* The state of these moves. */
static uint32_t state_of(builder *all, const place *at) {
    for (uint32_t state = 1; state < all->state_count; state++)
        if (has_moves(all, state, at))
            return state;
    if (!gb_grow((void **)&all->moves, &all->move_capacity, all->move_count + at->count,
                 sizeof *all->moves) ||
        !gb_grow((void **)&all->starts, &all->start_capacity, all->state_count + 2, sizeof *all->starts)) {
        all->failed = true;
        return END;
    }
    for (size_t i = 0; i < at->count; i++) {
        all->moves[all->move_count] = at->moves[i];
        all->moves[all->move_count++].from = (uint32_t)all->state_count;
    }
    all->starts[all->state_count + 1] = (uint32_t)all->move_count;
    return (uint32_t)all->state_count++;
}

static void add_part(builder *all, part in, uint32_t first, uint32_t last, place *at);

/* The state below a byte that stands for `span` characters from `begin` on, of which first to last count. */
static uint32_t state_below(builder *all, uint32_t begin, uint32_t span, uint32_t first, uint32_t last) {
    place at;
    if (span == 1)
        return END;
    at.count = 0;
    add_part(all, (part){begin, span / 64, 0x80}, first, last, &at);
    return state_of(all, &at);
}

/* The first range that does not end before a character. */
static const gb_character_range *range_from(builder *all, uint32_t first) {
    while (all->range < all->range_count && all->ranges[all->range].last < first)
        all->range++;
    return all->range < all->range_count ? &all->ranges[all->range] : NULL;
}

/* Adds moves for those of the characters first to last that are in the set. Bytes below which all are in it
 * go together. */
static void add_part(builder *all, part in, uint32_t first, uint32_t last, place *at) {
    const gb_character_range *range;
    while (first <= last && (range = range_from(all, first)) && range->first <= last) {
        const uint32_t begin = range->first > first ? range->first : first;
        const uint32_t end = range->last < last ? range->last : last;
        const uint32_t child = (begin - in.first) / in.span, below = in.first + child * in.span;
        const uint32_t below_last = below + in.span - 1 < last ? below + in.span - 1 : last;
        uint32_t last_child = child;
        if (begin == below && end - begin >= in.span - 1)
            last_child = (end + 1 - in.first) / in.span - 1;
        const uint32_t to = state_below(all, below, in.span, begin, below_last);
        add_move(at, in.byte + child, in.byte + last_child, to);
        first = in.first + (last_child + 1) * in.span;
    }
}

static void add_all(builder *all, place *start) {
    start->count = 0;
    add_part(all, (part){0, 1, 0}, 0, 0x7F, start);
    add_part(all, (part){0, 64, 0xC0}, 0x80, 0x7FF, start);
    add_part(all, (part){0, 4096, 0xE0}, 0x800, 0xFFFF, start);
    add_part(all, (part){0, 0x40000, 0xF0}, 0x10000, 0x10FFFF, start);
}

/* ---- As an expression ---------------------------------------------------------------------------------- */

/* The start, which was made last, becomes state 0, and the end the last one. */
static gb_expression express_states(gb_expressions *expressions, const builder *all) {
    const uint32_t last = (uint32_t)all->state_count - 1;
    gb_byte_move *moves = gb_allocate(all->move_count, sizeof *moves);
    bool *accepts = gb_allocate(all->state_count, sizeof *accepts);
    gb_expression made = 0;
    size_t count = 0;
    for (uint32_t state = last; state > END && moves; state--)
        for (uint32_t i = all->starts[state]; i < all->starts[state + 1]; i++)
            moves[count++] = (gb_byte_move){last - state, last - all->moves[i].to, all->moves[i].first,
                                            all->moves[i].last};
    if (moves && accepts) {
        accepts[last - END] = true;
        made = gb_express_automaton(expressions, moves, count, accepts, all->state_count);
    } else
        gb_expressions_no_memory(expressions);
    gb_free(moves);
    gb_free(accepts);
    return made;
}

static gb_expression express_all(gb_expressions *expressions, builder *all) {
    place start;
    all->failed |= !gb_grow((void **)&all->starts, &all->start_capacity, 2, sizeof *all->starts);
    if (!all->failed) {
        all->starts[0] = all->starts[1] = 0;
        all->state_count = 1;
        add_all(all, &start);
        if (start.count == 0)
            return gb_express_nothing(expressions);
        state_of(all, &start);
    }
    return all->failed ? gb_expressions_no_memory(expressions) : express_states(expressions, all);
}

static int by_first(const void *left, const void *right) {
    const gb_character_range *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

static void keep_range(builder *all, uint32_t first, uint32_t last) {
    if (first <= last)
        all->ranges[all->range_count++] = (gb_character_range){first, last};
}

/* Leaves surrogates out. */
static void sort_ranges(builder *all, const gb_character_range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const uint32_t first = ranges[i].first, last = ranges[i].last;
        keep_range(all, first, last < 0xD800 ? last : 0xD7FF);
        keep_range(all, first > 0xDFFF ? first : 0xE000, last);
    }
    qsort(all->ranges, all->range_count, sizeof *all->ranges, by_first);
}

static bool check_ranges(gb_expressions *expressions, const gb_character_range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (ranges[i].last < ranges[i].first || ranges[i].last > 0x10FFFF)
            gb_expressions_fail(expressions, GUMBEL_ERROR_ARGUMENT, "grammar: characters U+%04X to U+%04X",
                                ranges[i].first, ranges[i].last);
    return expressions->error.status == GUMBEL_OK;
}

static bool is_ascii(const gb_character_range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (ranges[i].last >= 0x80)
            return false;
    return true;
}

static gb_expression express_ascii(gb_expressions *expressions, const gb_character_range *ranges,
                                   size_t count) {
    gb_byte_set set = {{0}};
    for (size_t i = 0; i < count; i++)
        for (uint32_t c = ranges[i].first; c <= ranges[i].last; c++)
            gb_set_add(&set, c);
    return gb_express_byte_set(expressions, set.words);
}

gb_expression gb_express_characters(gb_expressions *expressions, const gb_character_range *ranges,
                                    size_t count) {
    if (!check_ranges(expressions, ranges, count))
        return 0;
    if (is_ascii(ranges, count))
        return express_ascii(expressions, ranges, count);
    builder all = {.ranges = gb_allocate(2 * count, sizeof *all.ranges)};
    gb_expression made = 0;
    if (all.ranges) {
        sort_ranges(&all, ranges, count);
        made = express_all(expressions, &all);
    } else
        gb_expressions_no_memory(expressions);
    gb_free(all.ranges);
    gb_free(all.moves);
    gb_free(all.starts);
    return made;
}
