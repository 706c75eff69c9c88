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

/* Gives the members of arguments, an object, the types that the tool called so asks for, where they can have
 * them. tools may be NULL. */
void gb_type_arguments(const json_t *tools, const char *name, json_t *arguments);

#endif
