/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of words, each stored once and then known by a number; numbers count from 0 in the order of storing.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_INTERN_H
#define GUMBEL_GRAMMAR_MATCH_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed at the start. */
typedef struct gb_intern_table {
    uint32_t *words; /* owned */
    size_t word_count, word_capacity;
    uint32_t *starts; /* [count + 1] into words; owned */
    size_t count, start_capacity;
    uint32_t *slots; /* number + 1, or 0; a power of two of them; owned */
    size_t slot_count;
} gb_intern_table;

/* The number of these words, in *number. words must not lie in the table. false without
 * memory. */
bool gb_intern(gb_intern_table *table, const uint32_t *words, size_t count, uint32_t *number);

/* The words of a number below table->count; valid until the next gb_intern. */
static inline const uint32_t *gb_interned(const gb_intern_table *table, uint32_t number) {
    return table->words + table->starts[number];
}
static inline size_t gb_interned_size(const gb_intern_table *table, uint32_t number) {
    return table->starts[number + 1] - table->starts[number];
}

size_t gb_intern_bytes(const gb_intern_table *table);
void gb_intern_free(gb_intern_table *table);

/* A hash of words. */
uint64_t gb_hash_words(const uint32_t *words, size_t count);

#endif
