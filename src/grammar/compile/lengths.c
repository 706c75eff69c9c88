/* SPDX-License-Identifier: Apache-2.0
 *
 * From the states where a text may end backwards, one unit at a time: the states that n units may follow
 * depend on those that n - 1 may follow alone, so that the first set that comes again begins a period.
 */
#include "grammar/compile/lengths.h"

#include "base/memory.h"
#include "grammar/match/intern.h"

#include <string.h>

/* Units n of a state, of a run that is complete. */
typedef struct run {
    uint32_t state;
    gb_interval span;
} run;

typedef struct finder {
    const gb_dfa *dfa;
    uint32_t *starts, *sources;   /* of the moves to a state: sources[starts[state], starts[state + 1]) */
    uint32_t *members, *previous; /* states that `unit` more units may follow, and one fewer */
    size_t member_count, previous_count, word_count;
    uint32_t *bits;   /* of members */
    uint32_t *opened; /* by state: where its run began, or GB_NO_END */
    gb_intern_table sets;
    run *runs;
    size_t run_count, run_capacity;
    uint64_t steps;
    bool failed; /* memory ran out */
} finder;

static bool has(const uint32_t *bits, uint32_t state) {
    return bits[state / 32] >> (state % 32) & 1u;
}

/* ---- Moves backwards ----------------------------------------------------------------------------------- */

/* Each state once that a state leads to: counts the move in starts, or writes its source. */
static void visit_row(finder *all, uint32_t state, uint32_t *seen, bool writes) {
    const gb_dfa *dfa = all->dfa;
    const uint32_t *row = dfa->rows + state * dfa->class_count;
    for (size_t class = 0; class < dfa->class_count; class ++) {
        if (row[class] == GB_NO_STATE || seen[row[class]] == state)
            continue;
        seen[row[class]] = state;
        if (writes)
            all->sources[all->starts[row[class] + 1]++] = state;
        else
            all->starts[row[class] + 2]++;
    }
}

static void find_sources(finder *all) {
    const uint32_t count = (uint32_t)all->dfa->count;
    uint32_t *seen = all->opened; /* is not in use yet */
    memset(seen, 0xFF, count * sizeof *seen);
    for (uint32_t state = 0; state < count; state++)
        visit_row(all, state, seen, false);
    for (uint32_t i = 2; i < count + 2; i++)
        all->starts[i] += all->starts[i - 1];
    all->sources = gb_allocate(all->starts[count + 1] + (size_t)1, sizeof *all->sources);
    all->failed |= !all->sources;
    memset(seen, 0xFF, count * sizeof *seen);
    for (uint32_t state = 0; state < count && !all->failed; state++)
        visit_row(all, state, seen, true);
    memset(seen, 0xFF, count * sizeof *seen);
    all->steps += 2 * count * all->dfa->class_count;
}

/* ---- Sets of states ------------------------------------------------------------------------------------ */

static void add_member(finder *all, uint32_t state) {
    if (has(all->bits, state))
        return;
    all->bits[state / 32] |= 1u << (state % 32);
    all->members[all->member_count++] = state;
}

static void add_sources(finder *all, uint32_t state) {
    for (uint32_t i = all->starts[state]; i < all->starts[state + 1]; i++)
        add_member(all, all->sources[i]);
    all->steps += all->starts[state + 1] - all->starts[state] + 1;
}

/* Goes one unit back: over a move that ends a unit, then over those within it. */
static void go_back(finder *all) {
    uint32_t *members = all->previous;
    all->previous = all->members;
    all->previous_count = all->member_count;
    all->members = members;
    all->member_count = 0;
    memset(all->bits, 0, all->word_count * sizeof *all->bits);
    all->steps += all->word_count;
    for (size_t i = 0; i < all->previous_count; i++)
        if (all->dfa->ends_unit[all->previous[i]])
            add_sources(all, all->previous[i]);
    for (size_t i = 0; i < all->member_count; i++)
        if (!all->dfa->ends_unit[all->members[i]])
            add_sources(all, all->members[i]);
}

static void begin_members(finder *all) {
    for (uint32_t state = 0; state < all->dfa->count; state++)
        if (all->dfa->accepts[state])
            add_member(all, state);
}

/* ---- Runs of numbers ----------------------------------------------------------------------------------- */

static void close_run(finder *all, uint32_t state, uint32_t end) {
    if (!gb_grow((void **)&all->runs, &all->run_capacity, all->run_count + 1, sizeof *all->runs)) {
        all->failed = true;
        return;
    }
    all->runs[all->run_count++] = (run){state, {all->opened[state], end - 1}};
    all->opened[state] = GB_NO_END;
}

/* Takes note that `unit` units may follow the members, and no others. */
static void note_members(finder *all, uint32_t unit) {
    for (size_t i = 0; i < all->previous_count; i++)
        if (!has(all->bits, all->previous[i]))
            close_run(all, all->previous[i], unit);
    for (size_t i = 0; i < all->member_count; i++)
        if (all->opened[all->members[i]] == GB_NO_END)
            all->opened[all->members[i]] = unit;
}

/* By states; those of a state are in their order already. */
static bool store_runs(const finder *all, gb_lengths *lengths) {
    const size_t count = all->dfa->count;
    lengths->starts = gb_allocate(count + 2, sizeof *lengths->starts);
    lengths->spans = gb_allocate(all->run_count + 1, sizeof *lengths->spans);
    if (!lengths->starts || !lengths->spans)
        return false;
    for (size_t i = 0; i < all->run_count; i++)
        lengths->starts[all->runs[i].state + 2]++;
    for (size_t i = 2; i < count + 2; i++)
        lengths->starts[i] += lengths->starts[i - 1];
    for (size_t i = 0; i < all->run_count; i++)
        lengths->spans[lengths->starts[all->runs[i].state + 1]++] = all->runs[i].span;
    return true;
}

/* ---- All ----------------------------------------------------------------------------------------------- */

static gumbel_status search(finder *all, uint32_t most, const gb_dfa_limits *limits, gb_lengths *lengths) {
    uint32_t unit = 0, number;
    find_sources(all);
    if (!gb_watch_goes_on(limits->watch, all->steps))
        return limits->watch->error.status;
    for (begin_members(all); unit <= most && !all->failed; unit++, go_back(all)) {
        const uint64_t before = all->steps;
        if (!gb_intern(&all->sets, all->bits, all->word_count, &number))
            return GUMBEL_ERROR_MEMORY;
        if (number < unit) {
            lengths->period = unit - number;
            break;
        }
        note_members(all, unit);
        all->steps += all->member_count + 1;
        if (!gb_watch_goes_on(limits->watch, all->steps - before))
            return limits->watch->error.status;
        if (all->steps > limits->work)
            return GUMBEL_ERROR_LIMIT;
    }
    lengths->turn = unit - lengths->period;
    for (uint32_t state = 0; state < all->dfa->count && !all->failed; state++)
        if (all->opened[state] != GB_NO_END)
            close_run(all, state, unit);
    return all->failed || !store_runs(all, lengths) ? GUMBEL_ERROR_MEMORY : GUMBEL_OK;
}

static bool allocate(finder *all) {
    const size_t count = all->dfa->count;
    all->word_count = (count + 31) / 32;
    all->starts = gb_allocate(count + 2, sizeof *all->starts);
    all->members = gb_allocate(count, sizeof *all->members);
    all->previous = gb_allocate(count, sizeof *all->previous);
    all->bits = gb_allocate(all->word_count, sizeof *all->bits);
    all->opened = gb_allocate(count, sizeof *all->opened);
    if (!all->starts || !all->members || !all->previous || !all->bits || !all->opened)
        return false;
    return true;
}

gumbel_status gb_find_lengths(gb_dfa *dfa, uint32_t most, const gb_dfa_limits *limits) {
    finder all = {.dfa = dfa};
    gumbel_status status = allocate(&all) ? search(&all, most, limits, &dfa->lengths) : GUMBEL_ERROR_MEMORY;
    gb_free(all.starts);
    gb_free(all.sources);
    gb_free(all.members);
    gb_free(all.previous);
    gb_free(all.bits);
    gb_free(all.opened);
    gb_free(all.runs);
    gb_intern_free(&all.sets);
    dfa->lengths.steps = all.steps;
    return status;
}

void gb_lengths_free(gb_lengths *lengths) {
    gb_free(lengths->starts);
    gb_free(lengths->spans);
    *lengths = (gb_lengths){0};
}
