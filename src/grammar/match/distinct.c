/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of items that all differ: which texts came before, and which of them the item may still become.
 */
#include "grammar/match/closure.h"

#include <string.h>

/* What such a frame has as its value, in closure->seen. A frame that stands for others (alike.h) has no text,
 * so that what ends above it is not known: then `shut` is what follows must differ from. */
typedef struct place {
    uint32_t count; /* items that began, as far as they are counted */
    uint32_t set;   /* texts of the items before the one with `text` */
    uint32_t text;  /* of the item, as far as it is read */
    uint32_t rest;  /* in an item: what would make its text that of an earlier one */
} place;

#define NO_TEXT UINT32_MAX
#define SHUT UINT32_MAX

static place place_of(const gb_closure *closure, gb_frame frame) {
    place at;
    memcpy(&at, gb_interned(&closure->seen, frame.value), sizeof at);
    return at;
}

static const gb_distinct_part *part_of(const gb_closure *closure, gb_frame frame) {
    return &closure->automaton->distincts[frame.part];
}

/* The frame with another place. */
static gb_frame put(gb_closure *closure, gb_frame frame, place at) {
    _Static_assert(sizeof at == 4 * sizeof(uint32_t), "a place is four words");
    if (!gb_intern(&closure->seen, (const uint32_t *)&at, 4, &frame.value))
        closure->failed = true;
    return frame;
}

/* ---- Begin and end ------------------------------------------------------------------------------------- */

/* The texts of all items up to the one that is read. */
static uint32_t all_texts(gb_closure *closure, place at) {
    uint32_t set = at.set;
    if (at.text != NO_TEXT && at.text != GB_EMPTY_TEXT &&
        !gb_texts_add(&closure->texts, at.set, at.text, &set))
        closure->failed = true;
    return set;
}

static void begin_item(gb_closure *closure, gb_frame frame) {
    const gb_distinct_part *part = part_of(closure, frame);
    place at = place_of(closure, frame);
    at.rest = all_texts(closure, at);
    at.count += !gb_is_far(at.count) && at.count < part->last;
    at.set = at.text == NO_TEXT ? GB_NO_TEXTS : at.rest;
    at.text = at.text == NO_TEXT ? NO_TEXT : GB_EMPTY_TEXT;
    frame.kind = GB_FRAME_DISTINCT;
    frame = put(closure, frame, at);
    gb_closure_add(closure, part->item, gb_frame_number(closure, frame));
}

void gb_begin_distinct(gb_closure *closure, uint32_t part, uint32_t next, uint32_t frame) {
    const gb_distinct_part *items = &closure->automaton->distincts[part];
    gb_frame pushed = {.parent = frame, .next = next, .kind = GB_FRAME_BETWEEN, .part = part};
    if (items->least == 0)
        gb_closure_add(closure, next, frame);
    pushed = put(closure, pushed, (place){0});
    if (items->most > 0 && !closure->failed)
        begin_item(closure, pushed);
}

void gb_end_distinct(gb_closure *closure, gb_frame frame) {
    const gb_distinct_part *part = part_of(closure, frame);
    place at = place_of(closure, frame);
    if (frame.kind == GB_FRAME_BETWEEN) {
        begin_item(closure, frame);
        return;
    }
    if (at.rest == SHUT || gb_texts_have_empty(&closure->texts, at.rest))
        return;
    const uint32_t count = gb_count_of(at.count, part->least);
    if (count >= part->least)
        gb_closure_add(closure, frame.next, frame.parent);
    at.set = at.text == NO_TEXT ? SHUT : at.set;
    at.rest = GB_NO_TEXTS;
    frame.kind = GB_FRAME_BETWEEN;
    frame = put(closure, frame, at);
    if (part->most == GB_NO_END || count < part->most)
        gb_closure_add(closure, part->separator, gb_frame_number(closure, frame));
}

/* ---- Bytes --------------------------------------------------------------------------------------------- */

/* Whether an item at this state can become one that is not among `rest`. */
static bool can_differ(const gb_closure *closure, const gb_distinct_part *part, uint32_t state,
                       uint32_t rest) {
    const uint32_t texts = closure->automaton->forks[part->texts + state - part->item];
    return rest == SHUT ? texts == GB_NO_END : texts > gb_texts_count(&closure->texts, rest);
}

bool gb_take_distinct_byte(gb_closure *closure, uint32_t *number, uint8_t byte, uint32_t state) {
    gb_frame frame;
    memcpy(&frame, gb_interned(&closure->frames, *number), sizeof frame);
    if (*number == 0 || frame.kind != GB_FRAME_DISTINCT)
        return true;
    place at = place_of(closure, frame);
    at.rest = at.rest == SHUT ? SHUT : gb_texts_after(&closure->texts, at.rest, byte);
    if (!can_differ(closure, part_of(closure, frame), state, at.rest))
        return false;
    if (at.text != NO_TEXT && !gb_text_append(&closure->texts, at.text, byte, &at.text))
        closure->failed = true;
    *number = gb_frame_number(closure, put(closure, frame, at));
    return true;
}

/* ---- Frames that stand for others ---------------------------------------------------------------------- */

uint32_t gb_distinct_count(const gb_closure *closure, gb_frame frame) {
    return place_of(closure, frame).count;
}

gb_frame gb_forget_text(gb_closure *closure, gb_frame frame, uint32_t count) {
    place at = place_of(closure, frame);
    at.count = count;
    at.set = frame.kind == GB_FRAME_BETWEEN ? all_texts(closure, at) : GB_NO_TEXTS;
    at.text = NO_TEXT;
    return put(closure, frame, at);
}

gb_frame gb_move_distinct(const gb_closure *from, gb_closure *to, gb_frame frame, uint32_t *moved) {
    place at = place_of(from, frame);
    if ((at.set != SHUT && !gb_texts_move(&from->texts, &to->texts, moved, &at.set)) ||
        (at.text != NO_TEXT && !gb_texts_move(&from->texts, &to->texts, moved, &at.text)) ||
        (at.rest != SHUT && !gb_texts_move(&from->texts, &to->texts, moved, &at.rest)))
        to->failed = true;
    return put(to, frame, at);
}
