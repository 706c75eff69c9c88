/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/match/configurations.h"

#include "base/memory.h"

#include <string.h>

static size_t class_count(const gb_configurations *configurations) {
    return configurations->closure.automaton->class_count;
}

static uint8_t traits_of(const gb_closure *closure) {
    uint8_t traits = 0;
    for (size_t i = 0; i < closure->found.count; i++) {
        const gb_automaton_state *state = &closure->automaton->states[closure->found.items[i].state];
        if (state->action == GB_ACTION_END)
            traits |= GB_MAY_END;
        if (gb_takes_token(state))
            traits |= GB_HAS_TOKENS;
    }
    return traits;
}

/* Marks the classes over which no move leads anywhere as dead, and the others as not looked for. */
static void begin_row(const gb_configurations *configurations, uint32_t *row) {
    const gb_closure *closure = &configurations->closure;
    const gb_automaton *automaton = closure->automaton;
    uint64_t moves[4] = {0};
    for (size_t i = 0; i < closure->found.count; i++) {
        const gb_automaton_state *state = &automaton->states[closure->found.items[i].state];
        for (uint32_t k = 0; k < state->move_count; k++)
            for (size_t word = 0; word < 4; word++)
                moves[word] |=
                    automaton->set_classes[(size_t)automaton->moves[state->first_move + k].set * 4 + word];
    }
    for (uint32_t class = 0; class < automaton->class_count; class ++)
        row[class] = moves[class / 64] >> (class % 64) & 1u ? GB_UNKNOWN : GB_DEAD;
}

/* The error of a closure becomes that of the configurations. */
static bool is_good(gb_configurations *configurations) {
    const gb_closure *closure = &configurations->closure;
    if (configurations->status == GUMBEL_OK && closure->failed)
        configurations->status = GUMBEL_ERROR_MEMORY;
    if (configurations->status == GUMBEL_OK &&
        (closure->full || configurations->work > configurations->work_limit))
        configurations->status = GUMBEL_ERROR_LIMIT;
    return configurations->status == GUMBEL_OK;
}

/* Makes room for one more configuration. */
static bool grow(gb_configurations *configurations) {
    size_t count = configurations->sets.count + 1, classes = class_count(configurations);
    return gb_grow((void **)&configurations->traits, &configurations->trait_capacity, count, 1) &&
           gb_grow((void **)&configurations->rows, &configurations->row_capacity, count * classes,
                   sizeof *configurations->rows);
}

uint32_t gb_configuration_of_closure(gb_configurations *configurations) {
    gb_closure *closure = &configurations->closure;
    gb_closure_run(closure);
    configurations->work += closure->visited_count + 1;
    if (!is_good(configurations))
        return GB_DEAD;
    size_t before = configurations->sets.count, classes = class_count(configurations);
    uint32_t number;
    if (!grow(configurations) || !gb_intern(&configurations->sets, (const uint32_t *)closure->found.items,
                                            2 * closure->found.count, &number)) {
        configurations->status = GUMBEL_ERROR_MEMORY;
        return GB_DEAD;
    }
    if (number == before) {
        configurations->work += classes;
        configurations->traits[number] = traits_of(closure);
        begin_row(configurations, configurations->rows + number * classes);
    }
    return number;
}

bool gb_configurations_begin(gb_configurations *configurations, const gb_automaton *automaton,
                             size_t stack_limit, uint64_t work_limit) {
    *configurations = (gb_configurations){.work_limit = work_limit};
    if (!gb_closure_begin(&configurations->closure, automaton, stack_limit)) {
        configurations->status = GUMBEL_ERROR_MEMORY;
        return false;
    }
    gb_closure_clear(&configurations->closure);
    gb_configuration_of_closure(configurations); /* GB_DEAD */
    return configurations->status == GUMBEL_OK;
}

void gb_configurations_free(gb_configurations *configurations) {
    gb_closure_free(&configurations->closure);
    gb_intern_free(&configurations->sets);
    gb_free(configurations->traits);
    gb_free(configurations->rows);
    *configurations = (gb_configurations){0};
}

size_t gb_configurations_bytes(const gb_configurations *configurations) {
    return gb_closure_bytes(&configurations->closure) + gb_intern_bytes(&configurations->sets) +
           configurations->trait_capacity + configurations->row_capacity * sizeof *configurations->rows;
}

uint32_t gb_start_configuration(gb_configurations *configurations) {
    if (configurations->closure.automaton->start == GB_NO_STATE)
        return GB_DEAD;
    gb_closure_clear(&configurations->closure);
    gb_closure_add(&configurations->closure, configurations->closure.automaton->start, 0);
    return gb_configuration_of_closure(configurations);
}

/* Adds to the closure where a class leads; same: the classes that all these moves and no others are over. */
static void add_moves(gb_configurations *configurations, uint32_t from, uint32_t class, uint64_t same[4]) {
    gb_closure *closure = &configurations->closure;
    const gb_automaton *automaton = closure->automaton;
    size_t count;
    const gb_stack *stacks = gb_stacks_of(configurations, from, &count);
    memset(same, 0xFF, 4 * sizeof *same);
    for (size_t i = 0; i < count; i++) {
        const gb_automaton_state *state = &automaton->states[stacks[i].state];
        for (uint32_t k = 0; k < state->move_count; k++) {
            const gb_move move = automaton->moves[state->first_move + k];
            const uint64_t *classes = automaton->set_classes + (size_t)move.set * 4;
            const bool is_over = gb_set_has_class(automaton, move.set, class);
            uint32_t frame = stacks[i].frame;
            for (size_t word = 0; word < 4; word++)
                same[word] &= is_over ? classes[word] : ~classes[word];
            if (is_over && (automaton->distinct_count == 0 ||
                            gb_take_distinct_byte(closure, &frame, (uint8_t) class, move.target)))
                gb_closure_add(closure, move.target, frame);
        }
    }
}

uint32_t gb_find_step(gb_configurations *configurations, uint32_t from, uint32_t class) {
    const gb_automaton *automaton = configurations->closure.automaton;
    const bool is_distinct = automaton->distinct_count > 0;
    uint64_t same[4];
    gb_closure_clear(&configurations->closure);
    add_moves(configurations, from, class, same);
    const uint32_t to = gb_configuration_of_closure(configurations);
    if (configurations->status != GUMBEL_OK)
        return to;
    uint32_t *row = configurations->rows + from * class_count(configurations);
    row[class] = to;
    for (size_t word = 0; word < 4 && !is_distinct; word++)
        for (uint64_t left = same[word]; left; left &= left - 1) {
            const size_t other = word * 64 + (size_t)__builtin_ctzll(left);
            if (other >= automaton->class_count)
                break;
            row[other] = to;
        }
    return to;
}

uint32_t gb_token_step(gb_configurations *configurations, uint32_t from, uint32_t id, bool may_be_other) {
    const gb_automaton *automaton = configurations->closure.automaton;
    if (!(configurations->traits[from] & GB_HAS_TOKENS))
        return GB_DEAD;
    size_t count;
    const gb_stack *stacks = gb_stacks_of(configurations, from, &count);
    gb_closure_clear(&configurations->closure);
    for (size_t i = 0; i < count; i++) {
        const gb_automaton_state *state = &automaton->states[stacks[i].state];
        if ((state->action == GB_ACTION_TOKEN && state->argument == id) ||
            (state->action == GB_ACTION_OTHER_TOKEN && state->argument != id && may_be_other))
            gb_closure_add(&configurations->closure, state->next, stacks[i].frame);
    }
    return gb_configuration_of_closure(configurations);
}

uint32_t gb_unite(gb_configurations *configurations, uint32_t a, uint32_t b) {
    if (a == GB_DEAD || b == GB_DEAD || a == b)
        return a == GB_DEAD ? b : a;
    gb_closure_clear(&configurations->closure);
    for (int side = 0; side < 2; side++) {
        size_t count;
        const gb_stack *stacks = gb_stacks_of(configurations, side ? b : a, &count);
        for (size_t i = 0; i < count; i++)
            gb_closure_add(&configurations->closure, stacks[i].state, stacks[i].frame);
    }
    return gb_configuration_of_closure(configurations);
}
