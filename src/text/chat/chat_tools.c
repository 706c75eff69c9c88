/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/chat_tools.h"

#include "base/byte_buffer.h"
#include "base/memory.h"
#include "text/jinja/jinja.h"

#include <string.h>

static const char there_are[] = "You can call these functions:\n";
static const char how[] = "\nTo call one, answer with a JSON object of its name and its arguments alone: "
                          "{\"name\": NAME, \"arguments\": {...}}";

bool gb_chat_shows_tools(const char *template_text) {
    return strstr(template_text, "tools") != NULL;
}

static gumbel_status no_memory(gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the tools of a conversation");
}

static const char *role_of(const json_t *message) {
    return json_string_value(json_object_get(message, "role"));
}

static void append(gb_byte_buffer *text, const char *string) {
    gb_buffer_append(text, string, strlen(string));
}

static void append_json(gb_byte_buffer *text, const json_t *value) {
    char *json = NULL;
    if (gb_jinja_write_json(value, &json, NULL) == GUMBEL_OK)
        append(text, json);
    else
        text->failed = true;
    gb_free(json);
}

/* ---- Contents ------------------------------------------------------------------------------------------ */

/* Frees the text. NULL: no memory. */
static json_t *string_of(gb_byte_buffer *text) {
    json_t *string = text->failed ? NULL : json_stringn_nocheck((const char *)text->data, text->size);
    gb_buffer_free(text);
    return string;
}

static json_t *paragraphs(const json_t *before, const json_t *text) {
    gb_byte_buffer all = {0};
    gb_buffer_append(&all, json_string_value(before), json_string_length(before));
    append(&all, "\n\n");
    gb_buffer_append(&all, json_string_value(text), json_string_length(text));
    return string_of(&all);
}

/* Puts the text, which is released, behind the content, a string, a list of parts, or nothing. */
static bool add_paragraph(json_t *message, json_t *text) {
    json_t *content = json_object_get(message, "content");
    bool good = text != NULL;
    if (good && json_is_array(content))
        good = json_array_append_new(content, json_pack("{s:s, s:O}", "type", "text", "text", text)) == 0;
    else if (good && json_string_length(content) > 0)
        good = json_object_set_new_nocheck(message, "content", paragraphs(content, text)) == 0;
    else if (good)
        good = json_object_set_nocheck(message, "content", text) == 0;
    json_decref(text);
    return good;
}

/* ---- Tools --------------------------------------------------------------------------------------------- */

/* OpenAI's tools have the function within, others are one. */
static const json_t *function_of(const json_t *tool) {
    const json_t *function = json_object_get(tool, "function");
    return function ? function : tool;
}

static json_t *describe(const json_t *tools) {
    gb_byte_buffer text = {0};
    append(&text, there_are);
    for (size_t i = 0; i < json_array_size(tools); i++) {
        append_json(&text, function_of(json_array_get(tools, i)));
        append(&text, "\n");
    }
    append(&text, how);
    return string_of(&text);
}

gumbel_status gb_chat_tell_tools(json_t *messages, const json_t *tools, gumbel_error *error) {
    json_t *first = json_array_get(messages, 0), *text = describe(tools);
    const bool has_system = strcmp(role_of(first), "system") == 0 || strcmp(role_of(first), "developer") == 0;
    if (!text || has_system)
        return add_paragraph(first, text) ? GUMBEL_OK : no_memory(error);
    json_t *message = json_pack("{s:s, s:o}", "role", "system", "content", text);
    return json_array_insert_new(messages, 0, message) == 0 ? GUMBEL_OK : no_memory(error);
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

static json_t *describe_call(const json_t *call) {
    const json_t *function = json_object_get(call, "function");
    const json_t *arguments = json_object_get(function, "arguments");
    gb_byte_buffer text = {0};
    append(&text, "{\"name\": ");
    append_json(&text, json_object_get(function, "name"));
    append(&text, ", \"arguments\": ");
    if (json_is_string(arguments)) /* which is no JSON, as the model wrote it */
        gb_buffer_append(&text, json_string_value(arguments), json_string_length(arguments));
    else
        append_json(&text, arguments);
    append(&text, "}");
    return string_of(&text);
}

gumbel_status gb_chat_tell_calls(json_t *messages, const char *template_text, gumbel_error *error) {
    if (strstr(template_text, "tool_calls"))
        return GUMBEL_OK;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i);
        const json_t *calls = json_object_get(message, "tool_calls");
        for (size_t k = 0; k < json_array_size(calls); k++)
            if (!add_paragraph(message, describe_call(json_array_get(calls, k))))
                return no_memory(error);
    }
    return GUMBEL_OK;
}
