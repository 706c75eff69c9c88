/* SPDX-License-Identifier: Apache-2.0
 *
 * Where schemas stand in a document, found by one walk for all of them.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_READER_PLACES_H
#define GUMBEL_GRAMMAR_SCHEMA_READER_PLACES_H

#include "base/byte_buffer.h"

#include <jansson.h>

/* Starts zeroed. Its document must stay as it is. */
typedef struct gb_places {
    struct gb_document_place *places; /* in the order of the document */
    size_t count, capacity;
    struct gb_document_address *sorted; /* [count] by their addresses */
    bool failed;                        /* memory ran out: it knows none */
    bool is_full;                       /* there are more, of which it knows none */
} gb_places;

/* Appends the JSON pointer of a value; nothing for the document itself, and for what is not in it. */
void gb_append_place(gb_places *places, const json_t *root, const json_t *value, gb_byte_buffer *path);

/* Whether the value is one of the document, and not of a schema that was made of it. */
bool gb_is_of_document(gb_places *places, const json_t *root, const json_t *value);

/* The object or array of the document that the value stands in; NULL: in none. */
const json_t *gb_parent_of(gb_places *places, const json_t *root, const json_t *value);

/* One step of a pointer. */
void gb_append_step(gb_byte_buffer *path, const char *name);

void gb_places_free(gb_places *places);

#endif
