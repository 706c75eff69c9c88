/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of tool calls in the forms that models write them in (gb_argument_form): names without quotes,
 * and arguments that stand by themselves, whose values have no types until a reader gives them those of the
 * tool's schema (text/reply/tool_types.h).
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_ARGUMENTS_H
#define GUMBEL_GRAMMAR_SCHEMA_ARGUMENTS_H

#include "grammar/schema/reader/reader.h"

/* All arguments, each by itself, that the terms of the root allow. */
gb_expression gb_express_tagged(gb_schema_reader *reader, const gb_terms *terms);

/* The value of an argument that stands by itself: a string as it is, where a reader would take it for one;
 * anything else as JSON. name: of the root's property that it is; NULL: of none. */
gb_expression gb_express_tagged_value(gb_schema_reader *reader, const char *name, const gb_terms *terms);

/* Whether the text can be a key without quotes, or the name of an argument that stands by itself. */
bool gb_is_bare_key(const char *text);
bool gb_is_tag_name(const char *text);

/* Keys without quotes that no properties name: words of ASCII. */
gb_expression gb_express_bare_keys(gb_schema_reader *reader);

#endif
