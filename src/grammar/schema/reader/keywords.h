/* SPDX-License-Identifier: Apache-2.0
 *
 * Which keywords there are (keywords.def), and reading their values.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_READER_KEYWORDS_H
#define GUMBEL_GRAMMAR_SCHEMA_READER_KEYWORDS_H

#include "grammar/schema/reader/reader.h"

typedef enum gb_keyword_kind {
    GB_KEYWORD_ASSERTION,
    GB_KEYWORD_APPLICATOR,
    GB_KEYWORD_PLACE,
    GB_KEYWORD_ANNOTATION,
    GB_KEYWORD_REFUSED,
    GB_KEYWORD_DRAFT_3,
    GB_KEYWORD_UNKNOWN
} gb_keyword_kind;

/* What a keyword is in the draft of the reader's document. */
gb_keyword_kind gb_keyword_kind_of(const gb_schema_reader *reader, const char *keyword);

/* Whether the draft is one of those up to 7, in which nothing counts beside $ref. */
bool gb_reference_stands_alone(const gb_schema_reader *reader, const json_t *schema);

/* Looks at all keywords of an object, of which all count (honoured.h). False, with the error, if one is
 * refused; *asserts is whether one is an assertion, as what its draft does not know is in schemas made here.
 */
bool gb_check_keywords(gb_schema_reader *reader, const json_t *schema, bool *asserts);

/* The keyword's value if it is there and of the kind that jansson's type says; NULL otherwise. Another kind
 * is the error, which says what was `expected`. */
const json_t *gb_keyword_object(gb_schema_reader *reader, const json_t *schema, const char *keyword);
const json_t *gb_keyword_array(gb_schema_reader *reader, const json_t *schema, const char *keyword);
const json_t *gb_keyword_string(gb_schema_reader *reader, const json_t *schema, const char *keyword);
const json_t *gb_keyword_number(gb_schema_reader *reader, const json_t *schema, const char *keyword);

typedef struct gb_counts {
    uint32_t least, most; /* most: GB_NO_END without a limit */
} gb_counts;

/* What all terms together say with two keywords, such as minItems and maxItems. */
gb_counts gb_read_counts(gb_schema_reader *reader, const gb_terms *terms, const char *least,
                         const char *most);

/* jansson's iterators take a value that is not const, but change nothing. */
static inline json_t *gb_mutable(const json_t *value) {
    return (json_t *)(uintptr_t)value;
}

#endif
