/* SPDX-License-Identifier: Apache-2.0
 *
 * Choices as a trie, which is a deterministic automaton: of any number of them an answer has one place.
 */
#include "base/memory.h"
#include "grammar/common/common.h"

#include <stdlib.h>
#include <string.h>

typedef struct choice {
    const char *text;
    size_t size;
} choice;

/* A state: the choices that begin with the same `depth` bytes. */
typedef struct prefix {
    size_t first, end, depth;
} prefix;

typedef struct trie {
    choice *choices; /* sorted */
    prefix *states;  /* in the order of their depth */
    gb_byte_move *moves;
    bool *accepts;
    size_t state_count, move_count;
    size_t state_capacity, move_capacity, accept_capacity;
} trie;

static int by_bytes(const void *left, const void *right) {
    const choice *a = left, *b = right;
    const size_t shorter = a->size < b->size ? a->size : b->size;
    const int order = shorter ? memcmp(a->text, b->text, shorter) : 0;
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static bool add_state(trie *t, prefix state) {
    if (!gb_grow((void **)&t->states, &t->state_capacity, t->state_count + 1, sizeof *t->states) ||
        !gb_grow((void **)&t->accepts, &t->accept_capacity, t->state_count + 1, sizeof *t->accepts))
        return false;
    t->accepts[t->state_count] = t->choices[state.first].size == state.depth;
    t->states[t->state_count++] = state;
    return true;
}

static bool add_move(trie *t, size_t from, uint8_t byte) {
    if (!gb_grow((void **)&t->moves, &t->move_capacity, t->move_count + 1, sizeof *t->moves))
        return false;
    t->moves[t->move_count++] = (gb_byte_move){(uint32_t)from, (uint32_t)t->state_count, byte, byte};
    return true;
}

/* The states that a byte leads to, each the choices that have the same one. */
static bool add_next_states(trie *t, size_t from) {
    const prefix at = t->states[from];
    size_t i = at.first;
    while (i < at.end && t->choices[i].size == at.depth)
        i++; /* ends here; there may be several of the same text */
    while (i < at.end) {
        const char byte = t->choices[i].text[at.depth];
        prefix next = {.first = i, .depth = at.depth + 1};
        while (i < at.end && t->choices[i].text[at.depth] == byte)
            i++;
        next.end = i;
        if (!add_move(t, from, (uint8_t)byte) || !add_state(t, next))
            return false;
    }
    return true;
}

static bool fill(trie *t, const char *const *texts, const size_t *sizes, size_t count) {
    t->choices = gb_allocate(count, sizeof *t->choices);
    if (!t->choices)
        return false;
    for (size_t i = 0; i < count; i++)
        t->choices[i] = (choice){texts[i], sizes[i]};
    qsort(t->choices, count, sizeof *t->choices, by_bytes);
    if (!add_state(t, (prefix){.first = 0, .end = count}))
        return false;
    for (size_t from = 0; from < t->state_count; from++)
        if (t->state_count >= GB_MAX_EXPRESSIONS || !add_next_states(t, from))
            return false;
    return true;
}

gb_expression gb_express_choices(gb_expressions *expressions, const char *const *texts, const size_t *sizes,
                                 size_t count) {
    trie t = {0};
    gb_expression choices = 0;
    if (count == 0)
        return gb_expressions_fail(expressions, GUMBEL_ERROR_ARGUMENT, "choices: there are none");
    if (fill(&t, texts, sizes, count))
        choices = gb_express_automaton(expressions, t.moves, t.move_count, t.accepts, t.state_count);
    else
        gb_expressions_fail(
            expressions, GUMBEL_ERROR_LIMIT,
            "choices: no memory for %zu of them, or more than %u bytes that they do not share", count,
            GB_MAX_EXPRESSIONS);
    gb_free(t.choices);
    gb_free(t.states);
    gb_free(t.moves);
    gb_free(t.accepts);
    return choices;
}
