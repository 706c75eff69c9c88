/* SPDX-License-Identifier: Apache-2.0
 *
 * Counted texts into an automaton: each state behind a gate that counts its unit and asks whether the text
 * can still end within its bounds.
 */
#include "base/memory.h"
#include "grammar/compile/lengths.h"

#include <string.h>

static gb_numbers numbers_of(const gb_dfa *dfa, uint32_t state) {
    const gb_lengths *lengths = &dfa->lengths;
    return (gb_numbers){.spans = lengths->spans + lengths->starts[state],
                        .count = lengths->starts[state + 1] - lengths->starts[state],
                        .turn = lengths->turn,
                        .period = lengths->period};
}

bool gb_has_length(const gb_dfa *dfa, uint32_t state, uint32_t least, uint32_t most) {
    return gb_next_number(numbers_of(dfa, state), least) <= most;
}

/* From how many units below `most` on every state leads to an end in time. */
static uint32_t distance_above(const gb_dfa *dfa) {
    uint32_t distance = 0;
    for (uint32_t state = 0; state < dfa->count; state++) {
        const uint64_t shortest = gb_next_number(numbers_of(dfa, state), 0);
        if (shortest != GB_NO_NUMBER && shortest > distance)
            distance = (uint32_t)shortest;
    }
    return distance;
}

/* From how many units below `least` on all counts mean the same: where whole periods are within the bounds.
 */
static uint32_t distance_below(const gb_lengths *lengths, uint32_t least, uint32_t most) {
    const bool has_periods = lengths->period && (most == GB_NO_END || most - least >= lengths->period - 1);
    return has_periods ? lengths->turn : GB_NO_END;
}

static bool add_count(const gb_dfa *dfa, gb_automaton *automaton, uint32_t least, uint32_t most,
                      uint32_t item) {
    const gb_count count = {.item = item,
                            .least = least,
                            .most = most,
                            .last = most == GB_NO_END ? least : most,
                            .above = distance_above(dfa),
                            .below = distance_below(&dfa->lengths, least, most),
                            .has_units = true,
                            .turn = dfa->lengths.turn,
                            .period = dfa->lengths.period};
    return gb_add_count(automaton, &count);
}

/* Adds the gates; false without memory. */
static bool add_gates(const gb_dfa *dfa, gb_automaton *automaton) {
    const gb_lengths *lengths = &dfa->lengths;
    const size_t span_count = lengths->starts[dfa->count];
    if (!gb_grow((void **)&automaton->spans, &automaton->span_capacity, automaton->span_count + span_count,
                 sizeof *automaton->spans) ||
        !gb_grow((void **)&automaton->gates, &automaton->gate_capacity, automaton->gate_count + dfa->count,
                 sizeof *automaton->gates))
        return false;
    if (span_count)
        memcpy(automaton->spans + automaton->span_count, lengths->spans,
               span_count * sizeof *automaton->spans);
    for (uint32_t state = 0; state < dfa->count; state++)
        automaton->gates[automaton->gate_count++] =
            (gb_gate){.first = (uint32_t)automaton->span_count + lengths->starts[state],
                      .count = lengths->starts[state + 1] - lengths->starts[state],
                      .ends_unit = dfa->ends_unit[state]};
    automaton->span_count += span_count;
    return true;
}

uint32_t gb_emit_units(const gb_dfa *dfa, gb_automaton *automaton, uint32_t least, uint32_t most,
                       uint32_t next) {
    const uint32_t first_gate = (uint32_t)automaton->gate_count, count = (uint32_t)dfa->count;
    if (count == 0 || automaton->full || automaton->failed)
        return GB_NO_STATE;
    const uint32_t gates = (uint32_t)automaton->state_count, states = gates + count;
    if (!add_gates(dfa, automaton) || !add_count(dfa, automaton, least, most, states)) {
        automaton->failed = true;
        return GB_NO_STATE;
    }
    for (uint32_t state = 0; state < count; state++)
        gb_add_state(automaton, GB_ACTION_GATE, first_gate + state, states + state);
    for (uint32_t state = 0; state < count; state++) {
        gb_add_state(automaton, dfa->accepts[state] ? GB_ACTION_GO : GB_ACTION_NONE, 0, GB_END_STATE);
        gb_dfa_emit_moves(dfa, automaton, state, gates);
    }
    return gb_add_state(automaton, GB_ACTION_COUNT, (uint32_t)automaton->count_count - 1, next);
}
