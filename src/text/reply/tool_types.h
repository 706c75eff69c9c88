/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of tool calls, typed as the tools' JSON Schemas say.
 */
#ifndef GUMBEL_TEXT_REPLY_TOOL_TYPES_H
#define GUMBEL_TEXT_REPLY_TOOL_TYPES_H

#include "gumbel.h"

#include <jansson.h>

enum { GB_MAX_TOOLS = 16 << 20 }; /* bytes of JSON */

/* Reads a list of tools: {"type": "function", "function": {"name", "parameters"}}, or what "function" has by
 * itself, or with "input_schema". text may be NULL for none. Errors: ARGUMENT, naming the tool. The caller
 * releases *tools, which is NULL for none. */
gumbel_status gb_read_tools(const char *text, json_t **tools, gumbel_error *error);

/* Types by the names that JSON Schema has for them, which live as long as the schema. Starts zeroed. */
typedef struct gb_type_list {
    const char *names[16];
    size_t count;
} gb_type_list;

bool gb_has_type(const gb_type_list *types, const char *name);

/* Adds the types that a tool's schema gives to its argument of this name, in their order: those that
 * gb_type_arguments tries. None: any text is a string. */
void gb_argument_types(const json_t *schema, const char *name, gb_type_list *types);

/* What describes it: in OpenAI's form what "function" has, otherwise the tool itself. */
const json_t *gb_tool_function(const json_t *tool);

/* The schema of a tool's arguments; NULL: it has none. */
const json_t *gb_tool_schema(const json_t *tool);
const char *gb_tool_name(const json_t *tool);
bool gb_is_strict_tool(const json_t *tool);

/* Gives the members of arguments, an object, the types that the tool called so asks for, where they can have
 * them. tools may be NULL. is_text: the arguments were written without types, so that a string may be
 * anything; otherwise a string stays one where it may be one. */
void gb_type_arguments(const json_t *tools, const char *name, bool is_text, json_t *arguments);

#endif
