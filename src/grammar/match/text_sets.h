/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of texts. Texts and sets are each stored once and then known by a number, so that two sets of the same
 * texts are one, however they came about.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_TEXT_SETS_H
#define GUMBEL_GRAMMAR_MATCH_TEXT_SETS_H

#include "grammar/match/intern.h"

#include <stdint.h>

#define GB_NO_TEXTS 0u   /* the empty set */
#define GB_EMPTY_TEXT 0u /* the text without bytes */

/* Zeroed at the start. */
typedef struct gb_text_sets {
    /* A text: the one before its last byte, and that byte. A set: twice how many texts it has, and 1 where
     * the empty one is among them; then each byte that others begin with, and the set of what follows it. */
    gb_intern_table table;
    uint32_t *path; /* scratch */
    size_t path_capacity;
} gb_text_sets;

/* Stores the empty set. false without memory; gb_text_sets_free is to be called in any case. */
bool gb_text_sets_begin(gb_text_sets *sets);
void gb_text_sets_free(gb_text_sets *sets);
size_t gb_text_sets_bytes(const gb_text_sets *sets);

/* The text with one more byte, in *longer. false without memory. */
bool gb_text_append(gb_text_sets *sets, uint32_t text, uint8_t byte, uint32_t *longer);

/* What follows the byte in the texts of a set that begin with it. */
uint32_t gb_texts_after(const gb_text_sets *sets, uint32_t set, uint8_t byte);

/* The set with a text that it has not yet, in *with. false without memory. */
bool gb_texts_add(gb_text_sets *sets, uint32_t set, uint32_t text, uint32_t *with);

/* The number in `to` of a text or set of `from`, in *number; moved: by number, 0: not moved yet. false
 * without memory. */
bool gb_texts_move(const gb_text_sets *from, gb_text_sets *to, uint32_t *moved, uint32_t *number);

static inline uint32_t gb_texts_count(const gb_text_sets *sets, uint32_t set) {
    return gb_interned(&sets->table, set)[0] / 2;
}
static inline bool gb_texts_have_empty(const gb_text_sets *sets, uint32_t set) {
    return gb_interned(&sets->table, set)[0] & 1u;
}

#endif
