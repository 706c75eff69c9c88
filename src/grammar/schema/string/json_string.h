/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON strings.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_STRING_JSON_STRING_H
#define GUMBEL_GRAMMAR_SCHEMA_STRING_JSON_STRING_H

#include "base/byte_buffer.h"
#include "grammar/schema/reader/reader.h"

/* One character of a string in its one spelling: those of the ranges of code points. */
gb_expression gb_express_plain(gb_schema_reader *reader, const gb_character_range *ranges, size_t count);

/* Makes the characters and the strings of a spelling whose quotes are known. */
void gb_express_strings(gb_schema_reader *reader, gb_strings *strings);

/* Contents with one of the texts in it, a JSON array of strings; 0: there are none. */
gb_expression gb_express_reserved(gb_schema_reader *reader, const json_t *texts);

/* Whether the text has a reserved one in it. */
bool gb_has_reserved(const gb_schema_reader *reader, const char *text, size_t length);

/* Appends the text in its one spelling, without quotes; the latter also as an expression. */
void gb_spell(const gb_schema_reader *reader, const char *text, size_t length, gb_byte_buffer *spelled);
gb_expression gb_express_plain_text(gb_schema_reader *reader, const char *text, size_t length);

gb_expression gb_quoted(gb_schema_reader *reader, gb_expression content);

/* Strings with quotes that the terms allow; is_plain: in their one spelling. */
gb_expression gb_express_string(gb_schema_reader *reader, const gb_terms *terms, bool is_plain);

/* The same without quotes, of any length, and whether anything was asked of them; made once. */
gb_expression gb_express_matching(gb_schema_reader *reader, const gb_terms *terms, bool *is_asked);

#endif
