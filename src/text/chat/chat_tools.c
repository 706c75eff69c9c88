/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/chat_tools.h"

#include "base/byte_buffer.h"
#include "base/memory.h"
#include "text/chat/chat_messages.h"
#include "text/jinja/jinja.h"
#include "text/reply/tool_types.h"

#include <ctype.h>
#include <string.h>

static const char there_are[] = "You can call these functions:\n";
static const char how[] = "\nTo call one, answer with a JSON object of its name and its arguments alone: "
                          "{\"name\": NAME, \"arguments\": {...}}";

static bool is_of_name(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* The variable, and not a member of that name, which messages may have. */
bool gb_chat_shows_tools(const char *template_text) {
    const size_t length = strlen("tools");
    for (const char *at = template_text; (at = strstr(at, "tools")); at += length) {
        const char before = at == template_text ? ' ' : at[-1];
        if (!is_of_name(before) && !strchr(".'\"", before) && !is_of_name(at[length]))
            return true;
    }
    return false;
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

static json_t *describe(const json_t *tools) {
    gb_byte_buffer text = {0};
    append(&text, there_are);
    for (size_t i = 0; i < json_array_size(tools); i++) {
        append_json(&text, gb_tool_function(json_array_get(tools, i)));
        append(&text, "\n");
    }
    append(&text, how);
    return string_of(&text);
}

static json_t *first_user(const json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (strcmp(gb_chat_role(json_array_get(messages, i)), "user") == 0)
            return json_array_get(messages, i);
    return NULL;
}

/* Puts the text, which is released, before the content. */
static bool put_before(json_t *message, json_t *text) {
    json_t *content = json_object_get(message, "content");
    bool good = text != NULL;
    if (good && json_is_array(content))
        good = json_array_insert_new(content, 0, json_pack("{s:s, s:O}", "type", "text", "text", text)) == 0;
    else if (good)
        good = json_object_set_new_nocheck(message, "content", paragraphs(text, content)) == 0;
    json_decref(text);
    return good;
}

gumbel_status gb_chat_insert_tools(json_t *messages, const json_t *tools, gumbel_error *error) {
    json_t *first = json_array_get(messages, 0), *user = first_user(messages), *text = describe(tools);
    bool good = text != NULL;
    if (!good || gb_chat_is_system(first))
        good = add_paragraph(first, text);
    else if (user)
        good = put_before(user, text);
    else
        good = json_array_insert_new(messages, 0,
                                     json_pack("{s:s, s:o}", "role", "system", "content", text)) == 0;
    return good ? GUMBEL_OK : gb_no_memory(error, "the tools of a conversation");
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

gumbel_status gb_chat_insert_calls(json_t *messages, size_t count, const char *template_text,
                                   gumbel_error *error) {
    if (strstr(template_text, "tool_calls"))
        return GUMBEL_OK;
    for (size_t i = 0; i < count; i++) {
        json_t *message = json_array_get(messages, i);
        const json_t *calls = json_object_get(message, "tool_calls");
        for (size_t k = 0; k < json_array_size(calls); k++)
            if (!add_paragraph(message, describe_call(json_array_get(calls, k))))
                return gb_no_memory(error, "the tools of a conversation");
    }
    return GUMBEL_OK;
}
