/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/compile/except_words.h"

#include "base/memory.h"

#include <string.h>

/* In rows that are not finished a state of `all` has this bit; the others are those of the trie. */
#define OF_ALL (1u << 31)

typedef struct trie {
    const gb_dfa *all;
    gb_dfa *dfa;
    uint32_t *all_rows; /* those of `all`, by the classes of the trie */
    size_t row_capacity, accept_capacity, limit;
    gumbel_status status;
} trie;

static bool is_word(const gb_expression_node *node) {
    return node->kind == GB_NODE_BYTES || node->kind == GB_NODE_EMPTY;
}

bool gb_are_words(const gb_expressions *expressions, gb_expression expression) {
    const gb_expression_node *node = &expressions->nodes[expression];
    for (uint32_t i = 0; i < node->count && node->kind == GB_NODE_CHOICE; i++)
        if (!is_word(&expressions->nodes[expressions->links[node->first + i]]))
            return false;
    return node->kind == GB_NODE_CHOICE || is_word(node);
}

/* ---- Classes of bytes ---------------------------------------------------------------------------------- */

static void mark_bytes(const gb_expressions *expressions, const gb_expression_node *word, gb_byte_set *set) {
    for (uint32_t i = 0; i < word->count; i++)
        gb_set_add(set, expressions->bytes.data[word->first + i]);
}

/* Bytes of words are classes of their own, the others those that `all` has. False without memory. */
static bool find_classes(const gb_dfa *all, const gb_byte_set *of_words, gb_dfa *dfa) {
    uint16_t class_of_rest[256] = {0}; /* + 1, by the class in all */
    for (unsigned byte = 0; byte < 256; byte++) {
        uint16_t *rest = &class_of_rest[all->class_of[byte]];
        const bool is_new = gb_set_has(of_words, byte) || !*rest;
        const size_t class = is_new ? dfa->class_count++ : (size_t)*rest - 1;
        if (is_new && !gb_set_has(of_words, byte))
            *rest = (uint16_t)(class + 1);
        dfa->class_of[byte] = (uint8_t) class;
    }
    dfa->class_bytes = gb_allocate(dfa->class_count, sizeof *dfa->class_bytes);
    for (unsigned byte = 0; byte < 256 && dfa->class_bytes; byte++)
        gb_set_add(&dfa->class_bytes[dfa->class_of[byte]], byte);
    return dfa->class_bytes;
}

/* False without memory. */
static bool spread_rows(trie *to) {
    const gb_dfa *all = to->all;
    const size_t classes = to->dfa->class_count;
    to->all_rows = gb_allocate(all->count * classes, sizeof *to->all_rows);
    for (size_t state = 0; state < all->count && to->all_rows; state++)
        for (unsigned byte = 0; byte < 256; byte++) {
            const uint32_t target = all->rows[state * all->class_count + all->class_of[byte]];
            to->all_rows[state * classes + to->dfa->class_of[byte]] =
                target == GB_NO_STATE ? GB_NO_STATE : target | OF_ALL;
        }
    return to->all_rows;
}

/* ---- States -------------------------------------------------------------------------------------------- */

/* Adds a state that is like one of `all`; its number, or GB_NO_STATE after an error. */
static uint32_t add_state(trie *to, uint32_t like) {
    gb_dfa *dfa = to->dfa;
    const size_t classes = dfa->class_count, number = dfa->count;
    if (number == to->limit) {
        to->status = GUMBEL_ERROR_LIMIT;
        return GB_NO_STATE;
    }
    if (!gb_grow((void **)&dfa->rows, &to->row_capacity, (number + 1) * classes, sizeof *dfa->rows) ||
        !gb_grow((void **)&dfa->accepts, &to->accept_capacity, number + 1, 1)) {
        to->status = GUMBEL_ERROR_MEMORY;
        return GB_NO_STATE;
    }
    memcpy(dfa->rows + number * classes, to->all_rows + like * classes, classes * sizeof *dfa->rows);
    dfa->accepts[number] = to->all->accepts[like];
    return (uint32_t)dfa->count++;
}

/* Adds what of the word is not there yet; one that is no text of `all` changes nothing. */
static void add_word(trie *to, const uint8_t *bytes, size_t size) {
    gb_dfa *dfa = to->dfa;
    uint32_t at = 0;
    for (size_t i = 0; i < size; i++) {
        const size_t move = at * dfa->class_count + dfa->class_of[bytes[i]];
        uint32_t next = dfa->rows[move];
        if (next == GB_NO_STATE)
            return;
        if (next & OF_ALL) {
            next = add_state(to, next & ~OF_ALL);
            if (next == GB_NO_STATE)
                return;
            dfa->rows[move] = next;
        }
        at = next;
    }
    dfa->accepts[at] = 0;
}

static void add_words(trie *to, const gb_expressions *expressions, gb_expression words, gb_watch *watch) {
    const gb_expression_node *node = &expressions->nodes[words];
    const bool is_one = node->kind != GB_NODE_CHOICE;
    for (uint32_t i = 0; i < (is_one ? 1 : node->count) && to->status == GUMBEL_OK; i++) {
        const gb_expression_node *word =
            is_one ? node : &expressions->nodes[expressions->links[node->first + i]];
        if (!gb_watch_goes_on(watch, word->count + 1))
            to->status = watch->error.status;
        else
            add_word(to, word->count ? expressions->bytes.data + word->first : NULL, word->count);
    }
}

/* Puts the states of `all` behind those of the trie. */
static void add_all(trie *to, gb_watch *watch) {
    gb_dfa *dfa = to->dfa;
    if (to->status == GUMBEL_OK && !gb_watch_goes_on(watch, to->all->count + dfa->count))
        to->status = watch->error.status;
    const uint32_t offset = (uint32_t)dfa->count;
    for (uint32_t state = 0; state < to->all->count && to->status == GUMBEL_OK; state++)
        add_state(to, state);
    for (size_t i = 0; i < dfa->count * dfa->class_count && to->status == GUMBEL_OK; i++)
        if (dfa->rows[i] != GB_NO_STATE && dfa->rows[i] & OF_ALL)
            dfa->rows[i] = (dfa->rows[i] & ~OF_ALL) + offset;
}

/* ---- All ----------------------------------------------------------------------------------------------- */

static void build(trie *to, const gb_expressions *expressions, gb_expression words, gb_watch *watch) {
    const gb_expression_node *node = &expressions->nodes[words];
    gb_byte_set bytes = {{0}};
    if (node->kind != GB_NODE_CHOICE)
        mark_bytes(expressions, node, &bytes);
    for (uint32_t i = 0; i < node->count && node->kind == GB_NODE_CHOICE; i++)
        mark_bytes(expressions, &expressions->nodes[expressions->links[node->first + i]], &bytes);
    if (!find_classes(to->all, &bytes, to->dfa) || !spread_rows(to))
        to->status = GUMBEL_ERROR_MEMORY;
    if (to->status == GUMBEL_OK && add_state(to, 0) != GB_NO_STATE)
        add_words(to, expressions, words, watch);
    add_all(to, watch);
    to->dfa->ends_unit = to->status == GUMBEL_OK ? gb_allocate(to->dfa->count, 1) : NULL;
    if (to->status == GUMBEL_OK && (!to->dfa->ends_unit || !gb_dfa_trim(to->dfa)))
        to->status = GUMBEL_ERROR_MEMORY;
}

gumbel_status gb_dfa_except_words(const gb_dfa *all, const gb_expressions *expressions, gb_expression words,
                                  const gb_dfa_limits *limits, gb_dfa *dfa) {
    trie to = {.all = all, .dfa = dfa, .limit = limits->states};
    *dfa = (gb_dfa){0};
    if (all->count == 0)
        return GUMBEL_OK;
    build(&to, expressions, words, limits->watch);
    gb_free(to.all_rows);
    if (to.status != GUMBEL_OK)
        gb_dfa_free(dfa);
    return to.status;
}
