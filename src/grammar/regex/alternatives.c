/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/regex/alternatives.h"

#include "base/memory.h"

/* Of a sequence whose groups have anchors or lookahead. */
#define MOST_ALTERNATIVES 256

static void no_memory(gb_regex_reader *reader) {
    gb_regex_fail(reader, GUMBEL_ERROR_MEMORY, reader->at, "no memory");
}

static void push(gb_regex_reader *reader, gb_alternative *to, gb_regex_part part) {
    if (reader->status != GUMBEL_OK)
        return;
    if (!gb_grow((void **)&to->parts, &to->capacity, to->count + 1, sizeof part)) {
        no_memory(reader);
        return;
    }
    to->has_ahead |= part.kind != GB_REGEX_ITEM;
    to->parts[to->count++] = part;
}

/* An item that matches the empty text or nothing. */
static void make_empty(gb_regex_reader *reader, gb_regex_part *part) {
    if (part->kind == GB_REGEX_ITEM && reader->status == GUMBEL_OK)
        *part = (gb_regex_part){.kind = GB_REGEX_ITEM,
                                .expression = gb_express_both(reader->expressions, part->expression,
                                                              gb_express_empty(reader->expressions))};
}

static void go_on(gb_regex_reader *reader, gb_alternative *to, gb_regex_part part) {
    if (to->at_end)
        make_empty(reader, &part);
    push(reader, to, part);
}

static void begin_text(gb_regex_reader *reader, gb_alternative *to) {
    for (size_t i = 0; i < to->count; i++)
        make_empty(reader, &to->parts[i]);
    to->at_start = true;
}

/* ---- Lists --------------------------------------------------------------------------------------------- */

void gb_add_alternative(gb_regex_reader *reader, gb_alternative_list *all, const gb_alternative *other) {
    gb_alternative added = {0};
    if (!gb_grow((void **)&all->items, &all->capacity, all->count + 1, sizeof added)) {
        no_memory(reader);
        return;
    }
    for (size_t i = 0; other && i < other->count; i++)
        push(reader, &added, other->parts[i]);
    added.at_start = other && other->at_start;
    added.at_end = other && other->at_end;
    all->items[all->count++] = added;
}

void gb_move_alternatives(gb_regex_reader *reader, gb_alternative_list *all, gb_alternative_list *others) {
    if (!gb_grow((void **)&all->items, &all->capacity, all->count + others->count, sizeof *all->items))
        no_memory(reader);
    for (size_t i = 0; i < others->count && reader->status == GUMBEL_OK; i++) {
        all->items[all->count++] = others->items[i];
        others->items[i] = (gb_alternative){0};
    }
    gb_free_alternatives(others);
}

void gb_free_alternatives(gb_alternative_list *all) {
    for (size_t i = 0; i < all->count; i++)
        gb_free(all->items[i].parts);
    gb_free(all->items);
    *all = (gb_alternative_list){0};
}

bool gb_alternatives_ask(const gb_alternative_list *all) {
    bool ask = false;
    for (size_t i = 0; i < all->count; i++)
        ask |= all->items[i].at_start || all->items[i].at_end || all->items[i].has_ahead;
    return ask;
}

void gb_alternatives_push(gb_regex_reader *reader, gb_alternative_list *all, gb_regex_part part) {
    for (size_t i = 0; i < all->count; i++)
        go_on(reader, &all->items[i], part);
}

void gb_alternatives_anchor(gb_regex_reader *reader, gb_alternative_list *all, bool at_start) {
    for (size_t i = 0; i < all->count; i++)
        if (at_start)
            begin_text(reader, &all->items[i]);
        else
            all->items[i].at_end = true;
}

static void append(gb_regex_reader *reader, gb_alternative *to, const gb_alternative *from) {
    if (from->at_start)
        begin_text(reader, to);
    for (size_t i = 0; i < from->count; i++)
        go_on(reader, to, from->parts[i]);
    to->at_end |= from->at_end;
}

void gb_alternatives_cross(gb_regex_reader *reader, gb_alternative_list *all,
                           const gb_alternative_list *group, size_t place) {
    gb_alternative_list crossed = {0};
    if (all->count * group->count > MOST_ALTERNATIVES && all->count > 1)
        gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place,
                      "too many alternatives: groups with anchors or lookahead multiply them");
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < group->count && reader->status == GUMBEL_OK; k++) {
            gb_add_alternative(reader, &crossed, &all->items[i]);
            if (reader->status == GUMBEL_OK)
                append(reader, &crossed.items[crossed.count - 1], &group->items[k]);
        }
    gb_free_alternatives(all);
    *all = crossed;
}
