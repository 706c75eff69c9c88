/* SPDX-License-Identifier: Apache-2.0
 *
 * What the text of a reply's field becomes: a value as JSON.
 */
#ifndef GUMBEL_TEXT_REPLY_VALUE_PARSER_H
#define GUMBEL_TEXT_REPLY_VALUE_PARSER_H

#include "text/reply/reply_format.h"

/* Reads a field's `content` (its kind) and `content_args` into parser, which must be zeroed. where names the
 * field. Errors: FORMAT, MEMORY. Free with gb_value_parser_free, also after an error. */
gumbel_status gb_read_value_parser(const json_t *kind, const json_t *arguments, const char *where,
                                   gb_value_parser *parser, gumbel_error *error);
void gb_value_parser_free(gb_value_parser *parser);

/* The value of well-formed text, owned by the caller; NULL if it has none. */
json_t *gb_parse_value(const gb_value_parser *parser, gb_pattern_matcher *matcher, const char *text,
                       size_t length);

#endif
