/* SPDX-License-Identifier: Apache-2.0
 *
 * The types of JSON values as bits; numbers are two of them.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_READER_TYPES_H
#define GUMBEL_GRAMMAR_SCHEMA_READER_TYPES_H

#include "grammar/schema/reader/reader.h"

enum {
    GB_TYPE_NULL = 1,
    GB_TYPE_BOOLEAN = 2,
    GB_TYPE_INTEGER = 4,
    GB_TYPE_FRACTION = 8, /* a number that is no integer */
    GB_TYPE_STRING = 16,
    GB_TYPE_ARRAY = 32,
    GB_TYPE_OBJECT = 64,
    GB_TYPE_NUMBER = GB_TYPE_INTEGER | GB_TYPE_FRACTION,
    GB_TYPE_ANY = 127
};

/* The types that all terms allow by type, nullable, and not with type. */
unsigned gb_types_of(gb_schema_reader *reader, const gb_terms *terms);

/* The types that one schema's `type` names. GB_TYPE_ANY if it is not there. */
unsigned gb_type_keyword(gb_schema_reader *reader, const json_t *schema);

/* The type of a value. */
unsigned gb_type_of(const json_t *value);

#endif
