/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves out the states of a deterministic automaton from which no text ends.
 */
#include "base/memory.h"
#include "grammar/compile/dfa.h"

static bool leads_to_live(const gb_dfa *dfa, const uint32_t *live, size_t state) {
    const uint32_t *row = dfa->rows + state * dfa->class_count;
    for (size_t class = 0; class < dfa->class_count; class ++)
        if (row[class] != GB_NO_STATE && live[row[class]])
            return true;
    return false;
}

/* Marks states that accept, or lead to one that is marked. They are found behind those that lead to them, so
 * that from the last to the first nearly all are marked. How many. */
static size_t mark_live(const gb_dfa *dfa, uint32_t *live) {
    size_t count = 0;
    for (size_t i = dfa->count; i-- > 0;) {
        live[i] = dfa->accepts[i] || leads_to_live(dfa, live, i);
        count += live[i];
    }
    return count;
}

/* The moves from states that are not marked, by where they lead: sources[starts[i], starts[i + 1]). */
typedef struct moves_back {
    uint32_t *starts, *sources, *pending;
} moves_back;

static void free_moves_back(moves_back *moves) {
    gb_free(moves->starts);
    gb_free(moves->sources);
    gb_free(moves->pending);
}

static void count_moves(const gb_dfa *dfa, size_t state, uint32_t *starts) {
    const uint32_t *row = dfa->rows + state * dfa->class_count;
    for (size_t class = 0; class < dfa->class_count; class ++)
        if (row[class] != GB_NO_STATE)
            starts[row[class] + 2]++;
}

static void add_sources(const gb_dfa *dfa, size_t state, const moves_back *moves) {
    const uint32_t *row = dfa->rows + state * dfa->class_count;
    for (size_t class = 0; class < dfa->class_count; class ++)
        if (row[class] != GB_NO_STATE)
            moves->sources[moves->starts[row[class] + 1]++] = (uint32_t)state;
}

/* False without memory. */
static bool find_moves_back(const gb_dfa *dfa, const uint32_t *live, size_t unmarked, moves_back *moves) {
    moves->starts = gb_allocate(dfa->count + 2, sizeof *moves->starts);
    moves->sources = gb_allocate(unmarked * dfa->class_count, sizeof *moves->sources);
    moves->pending = gb_allocate(dfa->count, sizeof *moves->pending);
    if (!moves->starts || !moves->sources || !moves->pending)
        return false;
    for (size_t i = 0; i < dfa->count; i++)
        if (!live[i])
            count_moves(dfa, i, moves->starts);
    for (size_t i = 2; i < dfa->count + 2; i++)
        moves->starts[i] += moves->starts[i - 1];
    for (size_t i = 0; i < dfa->count; i++)
        if (!live[i])
            add_sources(dfa, i, moves);
    return true;
}

/* Marks what leads to marked states. False without memory. */
static bool spread_live(const gb_dfa *dfa, uint32_t *live, size_t unmarked) {
    moves_back moves = {0};
    const bool is_found = find_moves_back(dfa, live, unmarked, &moves);
    size_t count = 0;
    for (uint32_t i = 0; i < dfa->count && is_found; i++)
        if (live[i])
            moves.pending[count++] = i;
    while (count) {
        const uint32_t state = moves.pending[--count];
        for (uint32_t i = moves.starts[state]; i < moves.starts[state + 1]; i++)
            if (!live[moves.sources[i]]) {
                live[moves.sources[i]] = 1;
                moves.pending[count++] = moves.sources[i];
            }
    }
    free_moves_back(&moves);
    return is_found;
}

/* Keeps the states that are marked. */
static void keep_live(gb_dfa *dfa, uint32_t *live) {
    size_t classes = dfa->class_count, count = 0;
    for (size_t i = 0; i < dfa->count; i++)
        live[i] = live[i] ? (uint32_t)++count : 0;
    if (dfa->count && !live[0])
        count = 0;
    for (size_t i = 0; i < dfa->count && count; i++) {
        if (!live[i])
            continue;
        uint32_t *row = dfa->rows + (live[i] - 1) * classes, *old = dfa->rows + i * classes;
        for (size_t class = 0; class < classes; class ++)
            row[class] = old[class] != GB_NO_STATE && live[old[class]] ? live[old[class]] - 1 : GB_NO_STATE;
        dfa->accepts[live[i] - 1] = dfa->accepts[i];
        dfa->ends_unit[live[i] - 1] = dfa->ends_unit[i];
    }
    dfa->count = count;
}

bool gb_dfa_trim(gb_dfa *dfa) {
    uint32_t *live = gb_allocate(dfa->count, sizeof *live);
    const size_t marked = live ? mark_live(dfa, live) : 0;
    const bool is_found = live && (marked == dfa->count || spread_live(dfa, live, dfa->count - marked));
    if (is_found && marked < dfa->count)
        keep_live(dfa, live);
    gb_free(live);
    return is_found;
}
