/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a schema stands in its document: JSON pointers (RFC 6901), and what $ref points to.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_READER_PLACE_H
#define GUMBEL_GRAMMAR_SCHEMA_READER_PLACE_H

#include "grammar/schema/reader/reader.h"

/* Writes "#/properties/a/pattern": the pointer of the keyword (or NULL: of the schema) in its document, cut
 * in its middle where it is longer than size. "#" stands for a schema that is not in it. False: there was no
 * memory for more than that. */
bool gb_schema_place(gb_schema_reader *reader, const json_t *schema, const char *keyword, char *text,
                     size_t size);

/* The first schema of a document that the function is true of; what enum, const and the like hold is none. */
const json_t *gb_schema_search(const json_t *value, bool is_sought(const json_t *, const void *),
                               const void *user);

/* Whether arrays and objects nest deeper than GB_MAX_SCHEMA_DEPTH. */
bool gb_schema_is_deep(const json_t *root);

/* What schema's reference of this keyword means. NULL, with the error: UNSUPPORTED (another document), FORMAT
 * (nothing is there). */
const json_t *gb_schema_refer(gb_schema_reader *reader, const json_t *schema, const char *keyword);

#endif
