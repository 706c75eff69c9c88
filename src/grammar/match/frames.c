/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of counted repeats and of items in any order: what follows when such a part begins, and when what
 * its frame was pushed for ends.
 */
#include "base/memory.h"
#include "grammar/match/closure.h"

#include <string.h>

uint32_t gb_frame_number(gb_closure *closure, gb_frame frame) {
    uint32_t number = 0;
    _Static_assert(sizeof frame == 5 * sizeof(uint32_t), "a frame is five words");
    if (!gb_intern(&closure->frames, (const uint32_t *)&frame, 5, &number))
        closure->failed = true;
    return number;
}

static gb_frame frame_at(const gb_closure *closure, uint32_t number) {
    gb_frame frame;
    memcpy(&frame, gb_interned(&closure->frames, number), sizeof frame);
    return frame;
}

/* ---- Counted repeats -------------------------------------------------------------------------------------
 */

/* As many items as frame.value are complete. */
static void go_on_counting(gb_closure *closure, gb_frame frame) {
    const gb_count *part = &closure->automaton->counts[frame.part];
    if (frame.value >= part->least)
        gb_closure_add(closure, frame.next, frame.parent);
    if (frame.value < part->most)
        gb_closure_add(closure, part->item, gb_frame_number(closure, frame));
}

void gb_begin_count(gb_closure *closure, uint32_t part, uint32_t next, uint32_t frame) {
    const gb_count *count = &closure->automaton->counts[part];
    gb_frame pushed = {.parent = frame, .next = next, .kind = GB_FRAME_COUNT, .part = part};
    if (!count->has_units) {
        go_on_counting(closure, pushed);
        return;
    }
    pushed.kind = GB_FRAME_UNITS;
    gb_closure_add(closure, count->item, gb_frame_number(closure, pushed));
}

static void end_counted(gb_closure *closure, gb_frame frame) {
    frame.value += frame.value < closure->automaton->counts[frame.part].last;
    go_on_counting(closure, frame);
}

/* ---- Counted units -------------------------------------------------------------------------------------
 */

static void end_units(gb_closure *closure, gb_frame frame) {
    if (frame.value >= closure->automaton->counts[frame.part].least)
        gb_closure_add(closure, frame.next, frame.parent);
}

/* Whether the text can end within its bounds, by how many units may follow. */
static bool can_end(const gb_automaton *automaton, const gb_gate *gate, const gb_count *part,
                    uint32_t count) {
    const gb_numbers numbers = {.spans = automaton->spans + gate->first,
                                .count = gate->count,
                                .turn = part->turn,
                                .period = part->period};
    const uint64_t next = gb_next_number(numbers, count < part->least ? part->least - count : 0);
    return part->most == GB_NO_END ? next != GB_NO_NUMBER : next <= part->most - count;
}

void gb_pass_gate(gb_closure *closure, const gb_automaton_state *state, uint32_t number) {
    const gb_automaton *automaton = closure->automaton;
    const gb_gate *gate = &automaton->gates[state->argument];
    gb_frame frame = frame_at(closure, number);
    const gb_count *part = &automaton->counts[frame.part];
    const bool counts = gate->ends_unit && frame.value < part->last;
    if (gate->ends_unit && frame.value == part->most)
        return;
    frame.value += counts;
    if (can_end(automaton, gate, part, frame.value))
        gb_closure_add(closure, state->next, counts ? gb_frame_number(closure, frame) : number);
}

/* ---- Items in any order ----------------------------------------------------------------------------------
 */

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

static bool has_seen(const uint32_t *words, uint32_t item) {
    return words[1 + item / 32] >> (item % 32) & 1u;
}

static uint32_t count_missing(const gb_order_part *part, const uint32_t *words) {
    uint32_t missing = 0;
    for (uint32_t i = 0; i < part->required; i++)
        missing += !has_seen(words, i);
    return missing;
}

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

/* Whether so many items are enough, and whether one that is required, or another one, may follow. */
typedef struct order_choices {
    bool may_end, required, other;
} order_choices;

static order_choices choices_of(const gb_closure *closure, gb_frame frame) {
    const gb_order_part *part = &closure->automaton->orders[frame.part];
    const uint32_t *words = gb_interned(&closure->seen, frame.value);
    uint32_t missing = count_missing(part, words);
    uint32_t left = part->most == GB_NO_END ? GB_NO_END : part->most - words[0];
    bool has_other = part->rest != GB_NO_STATE;
    for (uint32_t i = part->required; i < part->count && !has_other; i++)
        has_other = !has_seen(words, i);
    return (order_choices){.may_end = missing == 0 && words[0] >= part->least,
                           .required = missing > 0,
                           .other = has_other && left > missing};
}

static void choose_item(gb_closure *closure, gb_frame frame) {
    const gb_order_part *part = &closure->automaton->orders[frame.part];
    order_choices choices = choices_of(closure, frame);
    uint32_t end = choices.other ? part->count : part->required;
    for (uint32_t i = 0; i < end; i++)
        if (!has_seen(gb_interned(&closure->seen, frame.value), i))
            begin_item(closure, frame, i);
    if (choices.other && part->rest != GB_NO_STATE)
        begin_item(closure, frame, part->count);
}

void gb_begin_order(gb_closure *closure, uint32_t part, uint32_t next, uint32_t frame) {
    gb_frame pushed = {.parent = frame, .next = next, .kind = GB_FRAME_SEPARATOR, .part = part};
    size_t count = 1 + (closure->automaton->orders[part].count + 31) / 32;
    if (!gb_grow((void **)&closure->scratch, &closure->scratch_capacity, count, sizeof *closure->scratch)) {
        closure->failed = true;
        return;
    }
    memset(closure->scratch, 0, count * sizeof *closure->scratch);
    pushed.value = number_of_seen(closure, closure->scratch, count);
    if (closure->failed)
        return; /* the value is no set of this part */
    if (choices_of(closure, pushed).may_end)
        gb_closure_add(closure, next, frame);
    choose_item(closure, pushed);
}

static void end_item(gb_closure *closure, gb_frame frame) {
    order_choices choices = choices_of(closure, frame);
    if (choices.may_end)
        gb_closure_add(closure, frame.next, frame.parent);
    frame.kind = GB_FRAME_SEPARATOR;
    if (choices.required || choices.other)
        gb_closure_add(closure, closure->automaton->orders[frame.part].separator,
                       gb_frame_number(closure, frame));
}

void gb_pop_frame(gb_closure *closure, uint32_t number) {
    const gb_frame frame = frame_at(closure, number);
    switch ((gb_frame_kind)frame.kind) {
    case GB_FRAME_CALL:
        gb_closure_add(closure, frame.next, frame.parent);
        break;
    case GB_FRAME_COUNT:
        end_counted(closure, frame);
        break;
    case GB_FRAME_UNITS:
        end_units(closure, frame);
        break;
    case GB_FRAME_ITEM:
        end_item(closure, frame);
        break;
    case GB_FRAME_SEPARATOR:
        choose_item(closure, frame);
        break;
    }
}
