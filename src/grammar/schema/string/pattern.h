/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions of `pattern` and `patternProperties`, and `format`, over the characters of a JSON
 * string in their one spelling.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_STRING_PATTERN_H
#define GUMBEL_GRAMMAR_SCHEMA_STRING_PATTERN_H

#include "grammar/schema/reader/reader.h"

/* The strings, without quotes, in which the pattern is found, which may have U+0000 in it. schema and keyword
 * are named in errors. */
gb_expression gb_express_pattern(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                                 const char *pattern, size_t length);

/* The same of a JSON string; 0 of NULL, which is an error that the reader has. */
gb_expression gb_express_pattern_of(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                                    const json_t *pattern);

/* Strings of this format, or all that may be of it; 0 and no error: of any. */
gb_expression gb_express_format(gb_schema_reader *reader, const json_t *schema, const char *name,
                                bool is_outer);

/* Whether the text is one of the regular expression's, which may be of any of these functions. */
bool gb_expression_has(gb_schema_reader *reader, gb_expression expression, const char *text, size_t length);

/* Whether it has no text at all. True as well after an error. */
bool gb_expression_is_empty(gb_schema_reader *reader, gb_expression expression);
void gb_free_tried(gb_schema_reader *reader);

#endif
