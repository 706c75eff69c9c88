/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of counted repeats, and what follows when a part ends for which a frame was pushed.
 */
#include "grammar/match/closure.h"

/* ---- Counted repeats -------------------------------------------------------------------------------------
 */

static bool may_count(const gb_count *part, uint32_t value) {
    return !gb_is_far(value) && value < part->last;
}

/* As many items as frame.value are complete. */
static void go_on_counting(gb_closure *closure, gb_frame frame) {
    const gb_count *part = &closure->automaton->counts[frame.part];
    const uint32_t count = gb_count_of(frame.value, part->least);
    if (count >= part->least)
        gb_closure_add(closure, frame.next, frame.parent);
    if (count < part->most)
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
    frame.value += may_count(&closure->automaton->counts[frame.part], frame.value);
    go_on_counting(closure, frame);
}

/* ---- Counted units -------------------------------------------------------------------------------------
 */

static void end_units(gb_closure *closure, gb_frame frame) {
    const gb_count *part = &closure->automaton->counts[frame.part];
    if (gb_count_of(frame.value, part->least) >= part->least)
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
    gb_frame frame = gb_frame_at(closure, number);
    const gb_count *part = &automaton->counts[frame.part];
    const bool counts = gate->ends_unit && may_count(part, frame.value);
    if (gate->ends_unit && gb_count_of(frame.value, part->least) == part->most)
        return;
    frame.value += counts;
    if (can_end(automaton, gate, part, gb_count_of(frame.value, part->least)))
        gb_closure_add(closure, state->next, counts ? gb_frame_number(closure, frame) : number);
}

static void pop_joined(gb_closure *closure, gb_frame frame) {
    const size_t count = gb_interned_size(&closure->joined, frame.value);
    for (size_t i = 0; i < count; i++)
        gb_pop_frame(closure, gb_interned(&closure->joined, frame.value)[i]);
}

void gb_pop_frame(gb_closure *closure, uint32_t number) {
    const gb_frame frame = gb_frame_at(closure, number);
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
        gb_end_item(closure, frame);
        break;
    case GB_FRAME_SEPARATOR:
        gb_choose_item(closure, frame);
        break;
    case GB_FRAME_DISTINCT:
    case GB_FRAME_BETWEEN:
        gb_end_distinct(closure, frame);
        break;
    case GB_FRAME_JOINED:
        pop_joined(closure, frame);
        break;
    }
}
