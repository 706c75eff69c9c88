/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/compile/distinct.h"

#include "base/memory.h"

/* ---- How many texts ------------------------------------------------------------------------------------ */

enum { NEW, ON_PATH, DONE };

/* States in the order of a walk that counts one when it has counted all that it leads to. */
typedef struct counter {
    const gb_dfa *dfa;
    uint32_t *counts, *path,
        *classes; /* by state; the states that are being counted, and by them their class */
    uint8_t *marks;
} counter;

static uint32_t bytes_of(const gb_dfa *dfa, size_t class) {
    uint32_t bytes = 0;
    for (size_t word = 0; word < 8; word++)
        bytes += (uint32_t)__builtin_popcount(dfa->class_bytes[class].words[word]);
    return bytes;
}

static void add_texts(uint32_t *count, uint32_t bytes, uint32_t texts) {
    const uint64_t sum = *count + (uint64_t)bytes * texts;
    *count = texts == GB_NO_END || sum > GB_NO_END ? GB_NO_END : (uint32_t)sum;
}

/* Counts a state that is reached again on its own path as endless: every state can end. */
static uint32_t texts_of(const counter *all, uint32_t state) {
    return all->marks[state] == ON_PATH ? GB_NO_END : all->counts[state];
}

/* Adds up what the state leads to, as far as it is counted; the first that is not, or GB_NO_STATE. */
static uint32_t next_uncounted(counter *all, uint32_t state) {
    const uint32_t *row = all->dfa->rows + state * all->dfa->class_count;
    for (uint32_t *class = &all->classes[state]; *class < all->dfa->class_count; ++*class) {
        const uint32_t to = row[*class];
        if (to != GB_NO_STATE && all->marks[to] == NEW)
            return to;
        if (to != GB_NO_STATE)
            add_texts(&all->counts[state], bytes_of(all->dfa, *class), texts_of(all, to));
    }
    return GB_NO_STATE;
}

static void count_all(counter *all) {
    uint32_t next = 0;
    for (size_t length = 0; length || next != GB_NO_STATE;) {
        if (next != GB_NO_STATE) {
            all->counts[next] = all->dfa->accepts[next];
            all->marks[next] = ON_PATH;
            all->path[length++] = next;
        } else {
            all->marks[all->path[--length]] = DONE;
        }
        next = length ? next_uncounted(all, all->path[length - 1]) : GB_NO_STATE;
    }
}

uint32_t *gb_count_texts(const gb_dfa *dfa) {
    counter all = {.dfa = dfa, .counts = gb_allocate(dfa->count + 1, sizeof *all.counts)};
    all.path = gb_allocate(dfa->count, sizeof *all.path);
    all.classes = gb_allocate(dfa->count, sizeof *all.classes);
    all.marks = gb_allocate(dfa->count, 1);
    const bool has_memory = all.counts && all.path && all.classes && all.marks;
    if (has_memory && dfa->count > 0)
        count_all(&all);
    gb_free(all.path);
    gb_free(all.classes);
    gb_free(all.marks);
    if (has_memory)
        return all.counts;
    gb_free(all.counts);
    return NULL;
}

/* ---- Their automaton ----------------------------------------------------------------------------------- */

uint32_t gb_emit_distinct(const gb_dfa *dfa, gb_automaton *automaton, gb_distinct_part part, uint32_t next) {
    uint32_t *texts = gb_count_texts(dfa);
    automaton->failed |= !texts || !gb_grow((void **)&automaton->distincts, &automaton->distinct_capacity,
                                            automaton->distinct_count + 1, sizeof part);
    part.item = automaton->failed ? GB_NO_STATE : gb_dfa_emit(dfa, automaton, GB_END_STATE, false);
    if (part.item == GB_NO_STATE) {
        gb_free(texts);
        return GB_NO_STATE;
    }
    if (part.separator == GB_NO_STATE && part.most > 1)
        part.most = 1;
    part.most = part.most > texts[0] ? texts[0] : part.most;
    part.last = part.most == GB_NO_END ? part.least : part.most;
    part.texts = gb_add_targets(automaton, texts, dfa->count);
    gb_free(texts);
    automaton->distincts[automaton->distinct_count] = part;
    return gb_add_state(automaton, GB_ACTION_DISTINCT, (uint32_t)automaton->distinct_count++, next);
}
