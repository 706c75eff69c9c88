/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/compile/automaton.h"

#include "base/memory.h"

#include <string.h>

void gb_automaton_begin(gb_automaton *automaton, size_t state_limit) {
    *automaton = (gb_automaton){.state_limit = state_limit};
    gb_add_state(automaton, GB_ACTION_END, 0, 0);
}

void gb_automaton_free(gb_automaton *automaton) {
    gb_free(automaton->states);
    gb_free(automaton->moves);
    gb_free(automaton->forks);
    gb_free(automaton->counts);
    gb_free(automaton->gates);
    gb_free(automaton->spans);
    gb_free(automaton->orders);
    gb_free(automaton->distincts);
    gb_free(automaton->sets);
    gb_free(automaton->set_slots);
    gb_free(automaton->set_classes);
    *automaton = (gb_automaton){0};
}

uint32_t gb_add_state(gb_automaton *automaton, gb_action action, uint32_t argument, uint32_t next) {
    size_t index = automaton->state_count;
    automaton->full |= index >= automaton->state_limit;
    if (automaton->full || automaton->failed)
        return GB_NO_STATE;
    if (!gb_grow((void **)&automaton->states, &automaton->state_capacity, index + 1,
                 sizeof *automaton->states)) {
        automaton->failed = true;
        return GB_NO_STATE;
    }
    automaton->states[index] = (gb_automaton_state){
        .first_move = (uint32_t)automaton->move_count, .action = action, .argument = argument, .next = next};
    automaton->state_count++;
    return (uint32_t)index;
}

/* ---- Sets of bytes, each once ----------------------------------------------------------------------------
 */

static uint32_t *slot_of(const gb_automaton *automaton, const gb_byte_set *set) {
    size_t mask = automaton->set_slot_count - 1;
    uint64_t hash = 0;
    for (int i = 0; i < 8; i++)
        hash = (hash ^ set->words[i]) * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t at = hash >> 32 & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &automaton->set_slots[at];
        if (!*slot || memcmp(&automaton->sets[*slot - 1], set, sizeof *set) == 0)
            return slot;
    }
}

static bool grow_set_slots(gb_automaton *automaton) {
    if (automaton->set_count * 2 < automaton->set_slot_count)
        return true;
    size_t count = automaton->set_slot_count ? automaton->set_slot_count * 2 : 64;
    uint32_t *slots = gb_allocate(count, sizeof *slots);
    if (!slots)
        return false;
    gb_free(automaton->set_slots);
    automaton->set_slots = slots;
    automaton->set_slot_count = count;
    for (size_t i = 0; i < automaton->set_count; i++)
        *slot_of(automaton, &automaton->sets[i]) = (uint32_t)i + 1;
    return true;
}

static uint32_t set_index(gb_automaton *automaton, const gb_byte_set *set) {
    if (!grow_set_slots(automaton) || !gb_grow((void **)&automaton->sets, &automaton->set_capacity,
                                               automaton->set_count + 1, sizeof *set)) {
        automaton->failed = true;
        return 0;
    }
    uint32_t *slot = slot_of(automaton, set);
    if (!*slot) {
        automaton->sets[automaton->set_count++] = *set;
        *slot = (uint32_t)automaton->set_count;
    }
    return *slot - 1;
}

/* ---- Moves and forks -------------------------------------------------------------------------------------
 */

void gb_add_move(gb_automaton *automaton, const gb_byte_set *set, uint32_t target) {
    uint32_t index = set_index(automaton, set);
    if (!gb_grow((void **)&automaton->moves, &automaton->move_capacity, automaton->move_count + 1,
                 sizeof *automaton->moves))
        automaton->failed = true;
    if (automaton->failed || automaton->full)
        return;
    automaton->moves[automaton->move_count++] = (gb_move){.set = index, .target = target};
    automaton->states[automaton->state_count - 1].move_count++;
}

uint32_t gb_add_byte_state(gb_automaton *automaton, const gb_byte_set *set, uint32_t target) {
    uint32_t state = gb_add_state(automaton, GB_ACTION_NONE, 0, 0);
    gb_add_move(automaton, set, target);
    return state;
}

uint32_t gb_add_targets(gb_automaton *automaton, const uint32_t *targets, size_t count) {
    size_t first = automaton->fork_count;
    if (count == 0)
        return 0;
    if (!gb_grow((void **)&automaton->forks, &automaton->fork_capacity, first + count, sizeof *targets)) {
        automaton->failed = true;
        return 0;
    }
    memcpy(automaton->forks + first, targets, count * sizeof *targets);
    automaton->fork_count += count;
    return (uint32_t)first;
}

uint32_t gb_add_fork(gb_automaton *automaton, const uint32_t *targets, size_t count) {
    uint32_t first = gb_add_targets(automaton, targets, count);
    return gb_add_state(automaton, GB_ACTION_FORK, first, (uint32_t)count);
}

/* ---- Counts ----------------------------------------------------------------------------------------------
 */

bool gb_add_count(gb_automaton *automaton, const gb_count *count) {
    if (!gb_grow((void **)&automaton->counts, &automaton->count_capacity, automaton->count_count + 1,
                 sizeof *count)) {
        automaton->failed = true;
        return false;
    }
    automaton->counts[automaton->count_count++] = *count;
    return true;
}

/* Within the spans. */
static uint64_t find_number(gb_numbers numbers, uint64_t from) {
    uint32_t first = 0, end = numbers.count;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (numbers.spans[middle].last < from)
            first = middle + 1;
        else
            end = middle;
    }
    if (first == numbers.count)
        return GB_NO_NUMBER;
    return numbers.spans[first].first > from ? numbers.spans[first].first : from;
}

uint64_t gb_next_number(gb_numbers numbers, uint64_t from) {
    const uint64_t end = (uint64_t)numbers.turn + numbers.period;
    uint64_t shift = 0;
    if (from >= end && numbers.period)
        shift = (from - numbers.turn) / numbers.period * numbers.period;
    uint64_t found = find_number(numbers, from - shift);
    if (found == GB_NO_NUMBER && numbers.period &&
        (found = find_number(numbers, numbers.turn)) != GB_NO_NUMBER)
        shift += numbers.period;
    return found == GB_NO_NUMBER ? found : found + shift;
}

/* ---- Classes of bytes ------------------------------------------------------------------------------------
 */

/* The bytes of a set, one after the other. */
#define EACH_BYTE(byte, set)                                                                                 \
    for (unsigned word_ = 0; word_ < 8; word_++)                                                             \
        for (uint32_t left_ = (set)->words[word_], byte = 0;                                                 \
             left_ && (byte = word_ * 32 + (uint32_t)__builtin_ctz(left_), true); left_ &= left_ - 1)

/* Divides each class into the bytes that are in the set and those that are not. sizes: of the classes. */
static void divide(gb_automaton *automaton, const gb_byte_set *set, uint16_t *sizes) {
    uint16_t inside[256] = {0};    /* by class: how many of its bytes are in the set */
    uint16_t class_for[256] = {0}; /* of these; 0: not known yet */
    EACH_BYTE(byte, set)
    inside[automaton->class_of[byte]]++;
    EACH_BYTE(byte, set) {
        const uint8_t class = automaton->class_of[byte];
        if (!class_for[class] && inside[class] < sizes[class])
            class_for[class] = (uint16_t)automaton->class_count++;
        if (!class_for[class])
            continue;
        automaton->class_of[byte] = (uint8_t)class_for[class];
        sizes[class_for[class]]++;
    }
    for (unsigned class = 0; class < 256; class ++)
        sizes[class] = (uint16_t)(sizes[class] - (class_for[class] ? inside[class] : 0));
}

/* Items that differ are told apart by each of their bytes. */
static void make_each_byte_a_class(gb_automaton *automaton) {
    automaton->class_count = 256;
    for (unsigned byte = 0; byte < 256; byte++)
        automaton->class_of[byte] = (uint8_t)byte;
}

static void find_classes(gb_automaton *automaton) {
    uint16_t sizes[256] = {256};
    automaton->class_count = 1;
    if (automaton->distinct_count > 0)
        make_each_byte_a_class(automaton);
    else
        for (size_t i = 0; i < automaton->set_count; i++)
            divide(automaton, &automaton->sets[i], sizes);
}

void gb_automaton_finish(gb_automaton *automaton) {
    find_classes(automaton);
    automaton->set_classes = gb_allocate(automaton->set_count, 4 * sizeof *automaton->set_classes);
    if (!automaton->set_classes) {
        automaton->failed = true;
        return;
    }
    for (size_t i = 0; i < automaton->set_count; i++)
        EACH_BYTE(byte, &automaton->sets[i]) {
            const uint8_t class = automaton->class_of[byte];
            automaton->set_classes[i * 4 + class / 64] |= UINT64_C(1) << (class % 64);
        }
}
