/* SPDX-License-Identifier: Apache-2.0
 *
 * One call: its name, and arguments by the tool's schema.
 */
#include "base/memory.h"
#include "grammar/common/build_json.h"
#include "grammar/grammar.h"
#include "grammar/schema/schema.h"
#include "grammar/tools/tools.h"
#include "text/reply/reply_format.h"
#include "text/reply/tool_types.h"

#include <string.h>

/* ---- The schema ---------------------------------------------------------------------------------------- */

static bool has_any(const json_t *schema, const char *const *keywords) {
    for (; *keywords; keywords++)
        if (json_object_get(schema, *keywords))
            return true;
    return false;
}

/* An empty one of what is no object. NULL without memory, of which json_copy does not tell. */
static json_t *copy_object(const json_t *value) {
    json_t *copy = json_object();
    if (!json_is_object(value) || json_object_update(copy, (json_t *)(uintptr_t)value) == 0)
        return copy;
    json_decref(copy);
    return NULL;
}

static bool is_type(const char *name) {
    static const char *const types[] = {"null",   "boolean", "integer", "number",
                                        "string", "array",   "object",  NULL};
    for (const char *const *type = types; *type; type++)
        if (strcmp(*type, name) == 0)
            return true;
    return false;
}

static bool names_object(const json_t *type) {
    const char *name = json_string_value(type);
    return name && strcmp(name, "object") == 0;
}

/* Whether the schema's types leave objects, which arguments are in every format of replies. */
static bool allows_object(const json_t *type) {
    size_t index;
    const json_t *one;
    if (!json_is_array(type))
        return !type || names_object(type);
    json_array_foreach(type, index, one) {
        if (names_object(one))
            return true;
    }
    return false;
}

/* Arguments are an object, and those that a tool does not declare are not written unless it says otherwise.
 */
static json_t *close_schema(const json_t *parameters) {
    static const char *const open[] = {"additionalProperties",
                                       "patternProperties",
                                       "$ref",
                                       "allOf",
                                       "anyOf",
                                       "unevaluatedProperties",
                                       "oneOf",
                                       "const",
                                       "enum",
                                       NULL};
    json_t *schema = copy_object(parameters);
    if (allows_object(json_object_get(schema, "type")))
        schema = gb_set_member(schema, "type", json_string("object"));
    return has_any(schema, open) ? schema : gb_set_member(schema, "additionalProperties", json_false());
}

/* The types of the member that are known, as a schema. */
static json_t *type_schema(const json_t *parameters, const char *name) {
    gb_type_list types = {.count = 0};
    json_t *names = json_array();
    gb_argument_types(parameters, name, &types);
    for (size_t i = 0; names && i < types.count; i++)
        if (is_type(types.names[i]))
            names = gb_append_value(names, json_string(types.names[i]));
    if (!names || json_array_size(names) > 0)
        return names ? json_pack("{s:o}", "type", names) : NULL;
    json_decref(names);
    return json_object();
}

/* The declared names with their types alone. */
static json_t *loosen_schema(const json_t *parameters) {
    json_t *members = json_object(), *value;
    const char *name;
    json_object_foreach(json_object_get(parameters, "properties"), name, value) {
        if (!(members = gb_set_member(members, name, type_schema(parameters, name))))
            return NULL;
    }
    return members ? json_pack("{s:s, s:o, s:b}", "type", "object", "properties", members,
                               "additionalProperties", 0)
                   : NULL;
}

/* ---- Arguments ----------------------------------------------------------------------------------------- */

static gb_expression of_text(const gb_tool_writer *writer, gb_form_text text) {
    return gb_express_marked(writer, text.text, text.length);
}

static gb_expression of_mark(const gb_tool_writer *writer, const char *mark) {
    return gb_express_marked(writer, mark, strlen(mark));
}

void gb_prepare_writer(gb_tool_writer *writer) {
    const struct gb_reply_field *field = writer->field;
    const gb_json_dialect *dialect = &field->parser.dialect;
    gb_argument_form *form = &writer->arguments;
    *form = (gb_argument_form){.bare_keys = dialect->unquoted_keys,
                               .reserved = field->written.reserved,
                               .is_tagged = field->parser.kind == GB_FIELD_TAGS};
    for (size_t i = 0; i < 3; i++)
        writer->call[i] = of_text(writer, field->written.call[i]);
    writer->again = of_text(writer, field->written.again);
    if (dialect->mark_count > 0) {
        form->open_mark = of_mark(writer, dialect->marks[0].open);
        form->close_mark = of_mark(writer, dialect->marks[0].close);
    }
    if (form->is_tagged) {
        form->before_name = of_text(writer, field->written.argument[0]);
        form->behind_name = of_text(writer, field->written.argument[1]);
        form->behind_value = of_text(writer, field->written.argument[2]);
    }
}

static gb_expression express_arguments(const gb_tool_writer *writer, const json_t *schema, bool is_strict,
                                       gumbel_error *error) {
    const gb_schema_options options = {.space = writer->arguments.bare_keys ? GB_SPACE_NONE : GB_SPACE_LINES,
                                       .strict = is_strict,
                                       .form = &writer->arguments};
    return gb_schema_express(writer->expressions, schema, &options, error);
}

/* Whether a grammar of the arguments alone can be had: OK, or the reason that it cannot. */
static gumbel_status try_arguments(const gb_tool_writer *writer, const json_t *schema) {
    gb_tool_writer alone = *writer;
    gb_grammar *grammar = NULL;
    gumbel_error error = {0};
    alone.expressions = gb_expressions_create();
    if (!alone.expressions)
        return GUMBEL_ERROR_MEMORY;
    gb_prepare_writer(&alone);
    const gb_expression arguments = express_arguments(&alone, schema, false, &error);
    if (arguments)
        gb_grammar_compile(alone.expressions, arguments, NULL, &grammar, &error);
    gb_grammar_destroy(grammar);
    gb_expressions_destroy(alone.expressions);
    return grammar ? GUMBEL_OK : error.status;
}

/* What the arguments of the tool are; NULL without memory. */
static json_t *schema_of_call(const gb_tool_writer *writer, const json_t *tool, bool loosened) {
    json_t *schema = close_schema(gb_tool_schema(tool));
    if (!schema || !loosened || gb_is_strict_tool(tool))
        return schema;
    const gumbel_status status = try_arguments(writer, schema);
    if (status == GUMBEL_OK)
        return schema;
    json_decref(schema);
    return status == GUMBEL_ERROR_MEMORY ? NULL : loosen_schema(gb_tool_schema(tool));
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

/* Names go between marks of the format. */
static gumbel_status check_name(const char *name, gumbel_error *error) {
    if (*name && name[strcspn(name, " \t\r\n{}<>:\"")] == 0)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "tools: \"%.80s\": a name is not empty and has no blanks and none of {}<>:\"", name);
}

/* Types that are none of JSON's are the schema's own error, for which a tool that is not strict is loosened.
 */
static bool names_other_types(const json_t *type) {
    size_t index;
    const json_t *one;
    if (!json_is_array(type))
        return json_is_string(type) && is_type(json_string_value(type)) && !names_object(type);
    json_array_foreach(type, index, one) {
        if (!names_other_types(one))
            return false;
    }
    return json_array_size(type) > 0;
}

static gumbel_status check_parameters(const json_t *tool, gumbel_error *error) {
    if (!names_other_types(json_object_get(gb_tool_schema(tool), "type")))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "tool \"%.80s\": its parameters are of another type than \"object\", which arguments are",
                   gb_tool_name(tool));
}

gb_expression gb_express_call(const gb_tool_writer *writer, const json_t *tool, bool loosened,
                              gumbel_error *error) {
    const char *name = gb_tool_name(tool);
    gumbel_error reason = {0};
    if (check_name(name, error) != GUMBEL_OK || check_parameters(tool, error) != GUMBEL_OK)
        return 0;
    json_t *schema = schema_of_call(writer, tool, loosened);
    const gb_expression arguments =
        schema ? express_arguments(writer, schema, gb_is_strict_tool(tool), &reason) : 0;
    if (!schema)
        gb_fail(&reason, GUMBEL_ERROR_MEMORY, "no memory for its schema");
    json_decref(schema);
    if (!arguments) {
        gb_fail(error, reason.status, "tool \"%.80s\": %s", name, reason.message);
        return 0;
    }
    const gb_expression once = gb_express_bytes(writer->expressions, name, strlen(name));
    const gb_expression twice[] = {once, writer->again, once};
    const gb_expression names =
        writer->field->written.again.length > 0 ? gb_express_sequence(writer->expressions, twice, 3) : once;
    const gb_expression parts[] = {writer->call[0], names, writer->call[1], arguments, writer->call[2]};
    return gb_express_sequence(writer->expressions, parts, 5);
}
