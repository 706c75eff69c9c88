/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of schemas that hold together, and a hash map from such lists, whose order does not count.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_READER_TERMS_H
#define GUMBEL_GRAMMAR_SCHEMA_READER_TERMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Starts zeroed. No schema stands twice. */
typedef struct gb_terms {
    const json_t **items;
    size_t count, capacity;
} gb_terms;

/* Both: false without memory. */
bool gb_terms_add(gb_terms *terms, const json_t *schema);
bool gb_terms_add_all(gb_terms *terms, const gb_terms *added);

bool gb_terms_have(const gb_terms *terms, const json_t *schema);
void gb_terms_free(gb_terms *terms);

typedef struct gb_terms_entry {
    gb_terms key; /* sorted, owned */
    uint32_t value;
} gb_terms_entry;

/* Starts zeroed. */
typedef struct gb_terms_map {
    gb_terms_entry *entries;
    size_t count, capacity;
    uint32_t *slots; /* index + 1 of an entry; a power of two of them, at most half full */
    size_t slot_count;
} gb_terms_map;

/* The value of these terms, which is 0 if they are new; NULL without memory. Valid until the next call. */
uint32_t *gb_terms_map_at(gb_terms_map *map, const gb_terms *terms);

void gb_terms_map_free(gb_terms_map *map);

#endif
