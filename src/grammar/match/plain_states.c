/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest set of states from each of which every byte of a plain text leads to a state of the set: all
 * are taken to be in it until one is found that is not.
 */
#include "grammar/match/plain_states.h"

#include "base/memory.h"

#include <string.h>

/* States that are reached without a byte; where there are more, what is found is that texts are not allowed.
 */
enum { MOST_ENTERED = 128, MOST_ROUNDS = 64 };

typedef struct entered {
    uint32_t states[MOST_ENTERED];
    size_t count;
} entered;

static void enter(entered *to, uint32_t state) {
    for (size_t i = 0; i < to->count; i++)
        if (to->states[i] == state)
            return;
    if (to->count < MOST_ENTERED)
        to->states[to->count++] = state;
}

/* Without ends: what follows them depends on the frames. */
static void enter_all(const gb_automaton *automaton, uint32_t first, entered *to) {
    *to = (entered){.states = {first}, .count = 1};
    for (size_t i = 0; i < to->count; i++) {
        const gb_automaton_state *state = &automaton->states[to->states[i]];
        if (state->action == GB_ACTION_GO)
            enter(to, state->next);
        else if (state->action == GB_ACTION_CALL)
            enter(to, state->argument);
        for (uint32_t k = 0; k < state->next && state->action == GB_ACTION_FORK; k++)
            enter(to, automaton->forks[state->argument + k]);
    }
}

/* Whether a part may come at a state, as far as is known. */
static bool may_come(gb_plain_states *all, uint32_t state, uint32_t part) {
    if (!(all->found[state] >> part & 1u)) {
        if (!gb_grow((void **)&all->places, &all->place_capacity, all->place_count + 1, sizeof *all->places))
            return false;
        all->places[all->place_count++] = (gb_plain_place){state, part};
        all->found[state] |= (uint8_t)(1u << part);
    }
    return !(all->fails[state] >> part & 1u);
}

static bool is_none(const uint64_t classes[4]) {
    return !(classes[0] | classes[1] | classes[2] | classes[3]);
}

/* Takes from the classes those over which a move leads to where the part may come. */
static void take_move(gb_plain_states *all, const gb_automaton *automaton, gb_move move, uint32_t part,
                      uint64_t classes[4]) {
    const uint64_t *of_move = automaton->set_classes + (size_t)move.set * 4;
    uint64_t both = 0;
    for (size_t word = 0; word < 4; word++)
        both |= of_move[word] & classes[word];
    if (!both || !may_come(all, move.target, part))
        return;
    for (size_t word = 0; word < 4; word++)
        classes[word] &= ~of_move[word];
}

/* Whether a move over each needed byte leads on, wherever it leads. Where not, nothing else need be looked
 * at. */
static bool has_moves(const gb_plain_states *all, const gb_automaton *automaton, const entered *from,
                      uint32_t part) {
    uint64_t left[4] = {0};
    for (uint32_t next = 0; next < GB_PLAIN_PARTS; next++)
        for (size_t word = 0; word < 4; word++)
            left[word] |= all->parts.needed[part][next][word];
    for (size_t i = 0; i < from->count; i++) {
        const gb_automaton_state *state = &automaton->states[from->states[i]];
        for (uint32_t k = 0; k < state->move_count; k++)
            for (size_t word = 0; word < 4; word++)
                left[word] &=
                    ~automaton->set_classes[(size_t)automaton->moves[state->first_move + k].set * 4 + word];
    }
    return is_none(left);
}

/* Whether all bytes that lead from the part to `next` lead to where that may come. */
static bool leads_to(gb_plain_states *all, const gb_automaton *automaton, const entered *from, uint32_t part,
                     uint32_t next) {
    uint64_t left[4];
    memcpy(left, all->parts.needed[part][next], sizeof left);
    for (size_t i = 0; i < from->count && !is_none(left); i++) {
        const gb_automaton_state *state = &automaton->states[from->states[i]];
        for (uint32_t k = 0; k < state->move_count && !is_none(left); k++)
            take_move(all, automaton, automaton->moves[state->first_move + k], next, left);
    }
    return is_none(left);
}

static bool is_followed(gb_plain_states *all, const gb_automaton *automaton, const entered *from,
                        uint32_t part) {
    bool follows = has_moves(all, automaton, from, part);
    for (uint32_t next = 0; next < GB_PLAIN_PARTS && follows; next++)
        follows = leads_to(all, automaton, from, part, next);
    return follows;
}

/* Whether a place turns out to fail. */
static bool look_at(gb_plain_states *all, const gb_automaton *automaton, gb_plain_place at) {
    entered from;
    if (all->fails[at.state] >> at.part & 1u)
        return false;
    enter_all(automaton, at.state, &from);
    if (is_followed(all, automaton, &from, at.part))
        return false;
    all->fails[at.state] |= (uint8_t)(1u << at.part);
    return true;
}

/* Looks at all places until no more of them fail; those found last first, since others depend on them. */
static void settle(gb_plain_states *all, const gb_automaton *automaton) {
    size_t looked = 0;
    bool changes = true;
    for (int round = 0; round < MOST_ROUNDS && changes; round++) {
        for (changes = false; looked < all->place_count; looked++)
            changes |= look_at(all, automaton, all->places[looked]);
        for (size_t i = changes || round ? looked : 0; i-- > 0;)
            changes |= look_at(all, automaton, all->places[i]);
        changes |= looked < all->place_count;
    }
    for (size_t i = 0; i < all->place_count && changes; i++)
        all->fails[all->places[i].state] |= (uint8_t)(1u << all->places[i].part);
    all->place_count = 0;
}

static bool begin(gb_plain_states *all, const gb_automaton *automaton) {
    gb_find_plain_parts(automaton->class_of, &all->parts);
    all->found = gb_allocate(automaton->state_count, 1);
    all->fails = gb_allocate(automaton->state_count, 1);
    if (all->found && all->fails)
        return true;
    gb_plain_states_free(all);
    return false;
}

/* Whether a byte that is needed leads nowhere. */
static bool is_missing_some(const gb_plain_states *all, const gb_configurations *configurations,
                            uint32_t configuration) {
    const uint32_t classes = configurations->closure.automaton->class_count;
    const uint32_t *row = configurations->rows + (size_t)configuration * classes;
    for (uint32_t next = 0; next < GB_PLAIN_PARTS; next++)
        for (uint32_t class = 0; class < classes; class ++)
            if (row[class] == GB_DEAD &&
                all->parts.needed[GB_PLAIN_CHARACTER][next][class / 64] >> (class % 64) & 1u)
                return true;
    return false;
}

bool gb_allows_plain_texts(gb_plain_states *states, const gb_configurations *configurations,
                           uint32_t configuration) {
    const gb_automaton *automaton = configurations->closure.automaton;
    entered from = {.count = 0};
    if ((!states->found && !begin(states, automaton)) ||
        is_missing_some(states, configurations, configuration))
        return false;
    size_t count;
    const gb_stack *stacks = gb_stacks_of(configurations, configuration, &count);
    for (size_t i = 0; i < count; i++)
        enter(&from, stacks[i].state);
    bool follows = is_followed(states, automaton, &from, GB_PLAIN_CHARACTER);
    while (states->place_count) {
        settle(states, automaton);
        follows = follows && is_followed(states, automaton, &from, GB_PLAIN_CHARACTER);
    }
    return follows;
}

void gb_plain_states_free(gb_plain_states *states) {
    gb_free(states->found);
    gb_free(states->fails);
    gb_free(states->places);
    *states = (gb_plain_states){0};
}
