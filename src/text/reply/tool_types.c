/* SPDX-License-Identifier: Apache-2.0 */
#include "text/reply/tool_types.h"

#include "base/byte_buffer.h"
#include "base/status.h"
#include "text/base/load_json.h"
#include "text/base/utf8.h"
#include "text/reply/json_text.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { MAX_REFERENCES = 8 };

/* ---- Reading ------------------------------------------------------------------------------------------- */

const json_t *gb_tool_function(const json_t *tool) {
    const json_t *function = json_object_get(tool, "function");
    return function ? function : tool;
}

const char *gb_tool_name(const json_t *tool) {
    return json_string_value(json_object_get(gb_tool_function(tool), "name"));
}

bool gb_is_strict_tool(const json_t *tool) {
    return json_is_true(json_object_get(gb_tool_function(tool), "strict"));
}

const json_t *gb_tool_schema(const json_t *tool) {
    const json_t *function = gb_tool_function(tool), *schema = json_object_get(function, "parameters");
    return schema ? schema : json_object_get(function, "input_schema");
}

gumbel_status gb_read_tools(const char *text, json_t **tools, gumbel_error *error) {
    json_error_t reason;
    *tools = NULL;
    if (!text)
        return GUMBEL_OK;
    if (strlen(text) > GB_MAX_TOOLS)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "tools: more than %d bytes", GB_MAX_TOOLS);
    gumbel_status status;
    json_t *read = gb_decode_json(text, strlen(text), 0, &reason, &status);
    if (status == GUMBEL_ERROR_MEMORY)
        return gb_fail(error, status, "tools: no memory to read them");
    if (!read)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "tools: line %d, column %d: %s", reason.line,
                       reason.column, reason.text);
    if (!json_is_array(read))
        status = gb_fail(error, GUMBEL_ERROR_ARGUMENT, "tools: not a list");
    for (size_t i = 0; status == GUMBEL_OK && i < json_array_size(read); i++)
        if (!gb_tool_name(json_array_get(read, i)))
            status = gb_fail(error, GUMBEL_ERROR_ARGUMENT, "tools: number %zu has no name", i);
    if (status == GUMBEL_OK)
        *tools = read;
    else
        json_decref(read);
    return status;
}

/* ---- What a schema allows ------------------------------------------------------------------------------ */

bool gb_has_type(const gb_type_list *types, const char *name) {
    for (size_t i = 0; i < types->count; i++)
        if (strcmp(types->names[i], name) == 0)
            return true;
    return false;
}

static void add_type(gb_type_list *types, const char *name) {
    if (!gb_has_type(types, name) && types->count < sizeof types->names / sizeof types->names[0])
        types->names[types->count++] = name;
}

/* What "#/$defs/name" means in the root schema; NULL: nothing. */
static const json_t *referenced(const json_t *root, const char *reference) {
    const json_t *at = root;
    if (strncmp(reference, "#/", 2) != 0)
        return NULL;
    for (const char *key = reference + 2; *key;) {
        const size_t length = strcspn(key, "/");
        at = json_object_getn(at, key, length);
        key += length + (key[length] == '/');
    }
    return at;
}

static const char *type_of(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return "number";
    case JSON_NULL:
        return "null";
    default:
        return "boolean";
    }
}

static void add_types(const json_t *root, const json_t *schema, int references, gb_type_list *types);

static void add_choices(const json_t *root, const json_t *schema, int references, gb_type_list *types) {
    static const char *const unions[] = {"anyOf", "oneOf", "allOf"};
    for (size_t i = 0; i < sizeof unions / sizeof unions[0]; i++) {
        const json_t *choices = json_object_get(schema, unions[i]);
        for (size_t k = 0; k < json_array_size(choices); k++)
            add_types(root, json_array_get(choices, k), references + 1, types);
    }
}

/* Adds the types that the schema allows, in its order. */
static void add_types(const json_t *root, const json_t *schema, int references, gb_type_list *types) {
    const json_t *type = json_object_get(schema, "type"), *values = json_object_get(schema, "enum");
    const json_t *only = json_object_get(schema, "const");
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    if (references == MAX_REFERENCES)
        return;
    if (reference)
        add_types(root, referenced(root, reference), references + 1, types);
    if (json_is_string(type))
        add_type(types, json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++)
        if (json_is_string(json_array_get(type, i)))
            add_type(types, json_string_value(json_array_get(type, i)));
    for (size_t i = 0; !type && i < json_array_size(values); i++)
        add_type(types, type_of(json_array_get(values, i)));
    if (!type && only)
        add_type(types, type_of(only));
    add_choices(root, schema, references, types);
    if (json_is_true(json_object_get(schema, "nullable")))
        add_type(types, "null");
}

/* ---- Values -------------------------------------------------------------------------------------------- */

static json_t *as_number(const json_t *value, bool is_integer) {
    const double real = json_number_value(value);
    if (json_is_integer(value))
        return json_incref((json_t *)(uintptr_t)value);
    if (!json_is_real(value))
        return NULL;
    if (is_integer)
        return trunc(real) == real && fabs(real) < 9e15 ? json_integer((json_int_t)real) : NULL;
    return json_incref((json_t *)(uintptr_t)value);
}

/* The text as a value of the type; NULL: it is none. */
static json_t *read_as(const char *type, const char *text, size_t length) {
    if (strcmp(type, "boolean") == 0) {
        const bool is_true =
            (length == 4 && strncasecmp(text, "true", 4) == 0) || (length == 1 && *text == '1');
        const bool is_false =
            (length == 5 && strncasecmp(text, "false", 5) == 0) || (length == 1 && *text == '0');
        return is_true || is_false ? json_boolean(is_true) : NULL;
    }
    if (strcmp(type, "null") == 0)
        return length == 4 && (memcmp(text, "null", 4) == 0 || memcmp(text, "None", 4) == 0) ? json_null()
                                                                                             : NULL;
    json_t *value = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL), *number = NULL;
    if (!value && strcmp(type, "string") != 0)
        value = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    if ((strcmp(type, "object") == 0 && json_is_object(value)) ||
        (strcmp(type, "array") == 0 && json_is_array(value)))
        return value;
    if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
        number = as_number(value, type[0] == 'i');
    json_decref(value);
    return number;
}

/* 0 and 1 are truth values only where they are no numbers. */
static bool is_tried(const gb_type_list *types, const char *name, size_t length) {
    const bool is_truth = strcmp(name, "boolean") == 0;
    return strcmp(name, "string") != 0 &&
           !(is_truth && length == 1 && (gb_has_type(types, "integer") || gb_has_type(types, "number")));
}

static json_t *type_text(const json_t *text, const gb_type_list *types) {
    const char *bytes = json_string_value(text);
    size_t start = 0, end = json_string_length(text);
    if (end > 0)
        gb_utf8_strip(bytes, &start, &end);
    for (size_t i = 0; i < types->count; i++) {
        json_t *value = is_tried(types, types->names[i], end - start)
                            ? read_as(types->names[i], bytes + start, end - start)
                            : NULL;
        if (value)
            return value;
    }
    return NULL;
}

/* Numbers and truth values where only a text will do. */
static json_t *spell(const json_t *value) {
    gb_byte_buffer text = {0};
    gb_append_json(&text, value);
    json_t *string = text.failed ? NULL : json_stringn_nocheck((const char *)text.data, text.size);
    gb_buffer_free(&text);
    return string;
}

/* The value that the argument becomes, owned by the caller; NULL: it stays. */
static json_t *typed(const json_t *argument, const gb_type_list *types, bool is_text) {
    if (json_is_string(argument))
        return is_text || !gb_has_type(types, "string") ? type_text(argument, types) : NULL;
    if (types->count == 1 && gb_has_type(types, "string") &&
        (json_is_number(argument) || json_is_boolean(argument)))
        return spell(argument);
    return json_is_real(argument) && gb_has_type(types, "integer") && !gb_has_type(types, "number")
               ? as_number(argument, true)
               : NULL;
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

static const json_t *schema_of(const json_t *tools, const char *name) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        if (strcmp(gb_tool_name(tool), name) == 0)
            return gb_tool_schema(tool);
    }
    return NULL;
}

void gb_argument_types(const json_t *schema, const char *name, gb_type_list *types) {
    add_types(schema, json_object_get(json_object_get(schema, "properties"), name), 0, types);
}

/* Values that stood under one key several times are a list, where none was asked for. */
static void type_items(json_t *list, const gb_type_list *types, bool is_text) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *value = typed(json_array_get(list, i), types, is_text);
        if (value)
            json_array_set_new(list, i, value);
    }
}

void gb_type_arguments(const json_t *tools, const char *name, bool is_text, json_t *arguments) {
    const char *key;
    json_t *argument;
    const json_t *schema = schema_of(tools, name);
    json_object_foreach(arguments, key, argument) {
        gb_type_list types = {.count = 0};
        gb_argument_types(schema, key, &types);
        if (json_is_array(argument) && types.count > 0 && !gb_has_type(&types, "array")) {
            type_items(argument, &types, is_text);
            continue;
        }
        json_t *value = typed(argument, &types, is_text);
        if (value)
            json_object_set_new(arguments, key, value);
    }
}
