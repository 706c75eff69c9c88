/* SPDX-License-Identifier: Apache-2.0
 *
 * Deterministic automata as parts of a larger one.
 */
#include "grammar/compile/dfa.h"

/* The move of a row to a state. */
typedef struct row_move {
    uint32_t target;
    gb_byte_set bytes;
} row_move;

static void add_class(const gb_dfa *dfa, size_t class, gb_byte_set *bytes) {
    for (size_t word = 0; word < 8; word++)
        bytes->words[word] |= dfa->class_bytes[class].words[word];
}

/* One move for each state that the row leads to; how many. */
static size_t find_moves(const gb_dfa *dfa, const uint32_t *row, row_move moves[256]) {
    size_t count = 0, at = 0;
    for (size_t class = 0; class < dfa->class_count; class ++) {
        if (row[class] == GB_NO_STATE)
            continue;
        if (at == count || moves[at].target != row[class]) /* most lead where the class before does */
            for (at = 0; at < count && moves[at].target != row[class];)
                at++;
        if (at == count)
            moves[count++] = (row_move){.target = row[class]};
        add_class(dfa, class, &moves[at].bytes);
    }
    return count;
}

void gb_dfa_emit_moves(const gb_dfa *dfa, gb_automaton *automaton, uint32_t state, uint32_t base) {
    row_move moves[256];
    const size_t count = find_moves(dfa, dfa->rows + state * dfa->class_count, moves);
    for (size_t i = 0; i < count; i++)
        gb_add_move(automaton, &moves[i].bytes, base + moves[i].target);
}

uint32_t gb_dfa_emit(const gb_dfa *dfa, gb_automaton *automaton, uint32_t next, bool nonempty) {
    if (dfa->count == 0)
        return GB_NO_STATE;
    uint32_t base = (uint32_t)automaton->state_count;
    for (uint32_t i = 0; i < dfa->count; i++) {
        gb_add_state(automaton, dfa->accepts[i] ? GB_ACTION_GO : GB_ACTION_NONE, 0, next);
        gb_dfa_emit_moves(dfa, automaton, i, base);
    }
    if (!nonempty || !dfa->accepts[0])
        return base;
    uint32_t start = gb_add_state(automaton, GB_ACTION_NONE, 0, 0);
    gb_dfa_emit_moves(dfa, automaton, 0, base);
    return start;
}
