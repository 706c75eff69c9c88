/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of items in any order: which items may follow those that were seen.
 */
#include "base/memory.h"
#include "grammar/match/closure.h"

#include <string.h>

/* ---- Sets of items ------------------------------------------------------------------------------------- */

/* Makes the words of a set of items seen in the scratch: how many, then a bit for each. */
static uint32_t *copy_seen(gb_closure *closure, uint32_t seen, size_t *count) {
    *count = gb_interned_size(&closure->seen, seen);
    if (!gb_grow((void **)&closure->scratch, &closure->scratch_capacity, *count, sizeof *closure->scratch)) {
        closure->failed = true;
        return NULL;
    }
    memcpy(closure->scratch, gb_interned(&closure->seen, seen), *count * sizeof(uint32_t));
    return closure->scratch;
}

static uint32_t number_of_seen(gb_closure *closure, const uint32_t *words, size_t count) {
    uint32_t number = 0;
    if (!gb_intern(&closure->seen, words, count, &number))
        closure->failed = true;
    return number;
}

static bool has(const uint32_t *set, uint32_t item) {
    return set[item / 32] >> (item % 32) & 1u;
}

static const uint32_t *row_of(const gb_closure *closure, const gb_order_part *part, uint32_t item) {
    return closure->automaton->forks + part->implied + (size_t)item * gb_set_words(part->count);
}

static void add_row(gb_closure *closure, const gb_order_part *part, uint32_t item) {
    const uint32_t *row = row_of(closure, part, item);
    for (uint32_t word = 0; word < gb_set_words(part->count); word++)
        closure->missing[word] |= row[word];
}

static uint32_t count_bits(const uint32_t *set, uint32_t words) {
    uint32_t count = 0;
    for (uint32_t word = 0; word < words; word++)
        count += (uint32_t)__builtin_popcount(set[word]);
    return count;
}

/* ---- What may follow ----------------------------------------------------------------------------------- */

/* What was seen, and what follows of it; closure->missing has the items that must still come. */
typedef struct order_place {
    const gb_order_part *part;
    const uint32_t *seen; /* a bit for each item; in closure->seen, until that grows */
    uint32_t count;       /* items seen and of the rest, as far as they are counted */
    uint32_t missing;     /* how many must still come */
    uint32_t left;        /* how many may */
} order_place;

static void find_missing(gb_closure *closure, order_place *at) {
    const gb_order_part *part = at->part;
    const uint32_t words = gb_set_words(part->count);
    memset(closure->missing, 0, words * sizeof *closure->missing);
    for (uint32_t i = 0; i < part->required; i++)
        closure->missing[i / 32] |= 1u << (i % 32);
    for (uint32_t i = 0; i < part->count && part->implied != GB_NO_STATE; i++)
        if (i < part->required || has(at->seen, i))
            add_row(closure, part, i);
    for (uint32_t word = 0; word < words; word++)
        closure->missing[word] &= ~at->seen[word];
    at->missing = count_bits(closure->missing, words);
}

/* False without memory. */
static bool find_place(gb_closure *closure, gb_frame frame, order_place *at) {
    const gb_order_part *part = &closure->automaton->orders[frame.part];
    const uint32_t *words = gb_interned(&closure->seen, frame.value);
    if (!gb_grow((void **)&closure->missing, &closure->missing_capacity, gb_set_words(part->count) + 1,
                 sizeof *closure->missing)) {
        closure->failed = true;
        return false;
    }
    *at = (order_place){.part = part, .seen = words + 1, .count = words[0]};
    at->left = part->most == GB_NO_END ? GB_NO_END : part->most - words[0];
    find_missing(closure, at);
    return true;
}

/* How many must still come where this item does, which is not one of those. */
static uint32_t count_with(const gb_closure *closure, const order_place *at, uint32_t item) {
    uint32_t count = 0;
    if (at->part->implied == GB_NO_STATE)
        return at->missing + 1;
    const uint32_t *row = row_of(closure, at->part, item);
    for (uint32_t word = 0; word < gb_set_words(at->part->count); word++)
        count += (uint32_t)__builtin_popcount((closure->missing[word] | row[word]) & ~at->seen[word]);
    return count;
}

/* Whether the item may come next; item part->count is one of the rest. */
static bool may_come(const gb_closure *closure, const order_place *at, uint32_t item) {
    if (item == at->part->count)
        return at->part->rest != GB_NO_STATE && at->left > at->missing;
    if (has(at->seen, item))
        return false;
    return has(closure->missing, item) || count_with(closure, at, item) <= at->left;
}

static bool may_end(const order_place *at) {
    return at->missing == 0 && at->count >= at->part->least;
}

static bool may_go_on(const gb_closure *closure, const order_place *at) {
    for (uint32_t i = 0; i <= at->part->count; i++)
        if (may_come(closure, at, i))
            return true;
    return false;
}

/* ---- Items --------------------------------------------------------------------------------------------- */

/* Begins an item; item part->count is one of the rest. */
static void begin_item(gb_closure *closure, gb_frame frame, uint32_t item) {
    const gb_order_part *part = &closure->automaton->orders[frame.part];
    size_t count;
    uint32_t *words = copy_seen(closure, frame.value, &count);
    if (!words)
        return;
    uint32_t last = part->most == GB_NO_END ? part->least : part->most;
    words[0] += words[0] < last;
    if (item < part->count)
        words[1 + item / 32] |= 1u << (item % 32);
    frame.kind = GB_FRAME_ITEM;
    frame.value = number_of_seen(closure, words, count);
    uint32_t state = item < part->count ? closure->automaton->forks[part->first + item] : part->rest;
    gb_closure_add(closure, state, gb_frame_number(closure, frame));
}

void gb_choose_item(gb_closure *closure, gb_frame frame) {
    order_place at;
    if (!find_place(closure, frame, &at))
        return;
    for (uint32_t i = 0; i <= at.part->count; i++) {
        at.seen = gb_interned(&closure->seen, frame.value) + 1;
        if (may_come(closure, &at, i))
            begin_item(closure, frame, i);
    }
}

void gb_begin_order(gb_closure *closure, uint32_t part, uint32_t next, uint32_t frame) {
    gb_frame pushed = {.parent = frame, .next = next, .kind = GB_FRAME_SEPARATOR, .part = part};
    size_t count = 1 + gb_set_words(closure->automaton->orders[part].count);
    order_place at;
    if (!gb_grow((void **)&closure->scratch, &closure->scratch_capacity, count, sizeof *closure->scratch)) {
        closure->failed = true;
        return;
    }
    memset(closure->scratch, 0, count * sizeof *closure->scratch);
    pushed.value = number_of_seen(closure, closure->scratch, count);
    if (closure->failed || !find_place(closure, pushed, &at))
        return; /* the value is no set of this part */
    if (may_end(&at))
        gb_closure_add(closure, next, frame);
    gb_choose_item(closure, pushed);
}

void gb_end_item(gb_closure *closure, gb_frame frame) {
    order_place at;
    if (!find_place(closure, frame, &at))
        return;
    if (may_end(&at))
        gb_closure_add(closure, frame.next, frame.parent);
    frame.kind = GB_FRAME_SEPARATOR;
    if (may_go_on(closure, &at))
        gb_closure_add(closure, closure->automaton->orders[frame.part].separator,
                       gb_frame_number(closure, frame));
}
