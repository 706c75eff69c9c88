/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/chat_messages.h"

#include "base/memory.h"
#include "text/base/load_json.h"
#include "text/base/utf8.h"

#include <string.h>

static const char *type_name(const json_t *json) {
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",  [JSON_NULL] = "null",
    };
    return json ? names[json_typeof(json)] : "nothing";
}

gumbel_status gb_chat_read_json(const char *what, const char *text, json_type wanted, json_t **json,
                                gumbel_error *error) {
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
    GB_TRY(gb_load_json(what, text, strlen(text), flags, json, error));
    if (json_typeof(*json) == wanted)
        return GUMBEL_OK;
    gumbel_status status = gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: expected %s, found %s", what,
                                   wanted == JSON_ARRAY ? "an array" : "an object", type_name(*json));
    json_decref(*json);
    *json = NULL;
    return status;
}

/* ---- From structures ---- */

/* Sets a text that may be ill-formed; none where it is NULL. */
static bool set_text(json_t *object, const char *key, const char *text) {
    if (!text)
        return true;
    size_t length = strlen(text);
    if (gb_utf8_is_valid(text, length))
        return json_object_set_new_nocheck(object, key, json_stringn_nocheck(text, length)) == 0;
    gb_byte_buffer repaired = {0};
    gb_utf8_append_repaired(&repaired, text, length);
    json_t *value = repaired.failed ? NULL : json_stringn_nocheck((const char *)repaired.data, repaired.size);
    gb_buffer_free(&repaired);
    return json_object_set_new_nocheck(object, key, value) == 0;
}

static bool add_call(json_t *calls, const gumbel_tool_call *call) {
    json_t *object = json_object(), *function = json_object();
    bool good = object && function && set_text(object, "id", call->id) &&
                set_text(object, "type", "function") && set_text(function, "name", call->name) &&
                set_text(function, "arguments", call->arguments);
    good = json_object_set_new_nocheck(object, "function", function) == 0 && good;
    return json_array_append_new(calls, object) == 0 && good;
}

static gumbel_status add_calls(json_t *object, const gumbel_message *message, gumbel_error *error) {
    if (message->tool_call_count == 0)
        return GUMBEL_OK;
    size_t stride = message->tool_calls->size;
    if (stride != sizeof(gumbel_tool_call))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "gumbel_tool_call: size is %zu instead of %zu", stride,
                       sizeof(gumbel_tool_call));
    json_t *calls = json_array();
    bool good = json_object_set_new_nocheck(object, "tool_calls", calls) == 0;
    for (size_t i = 0; good && i < message->tool_call_count; i++)
        good = add_call(calls, &message->tool_calls[i]);
    return good ? GUMBEL_OK : gb_no_memory(error, "a conversation");
}

static bool add_parts(json_t *object, const gumbel_message *message) {
    json_t *parts = json_array();
    bool good = json_object_set_new_nocheck(object, "content", parts) == 0;
    for (size_t i = 0; good && i < message->part_count; i++) {
        json_t *part = json_object();
        good = set_text(part, "type", "text") && set_text(part, "text", message->parts[i]);
        good = json_array_append_new(parts, part) == 0 && good;
    }
    return good;
}

static gumbel_status fill_message(json_t *object, const gumbel_message *message, gumbel_error *error) {
    if (message->content && message->part_count > 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "there are both content and parts");
    bool good = set_text(object, "role", message->role) && set_text(object, "content", message->content) &&
                (message->part_count == 0 || add_parts(object, message)) &&
                set_text(object, "reasoning_content", message->reasoning) &&
                set_text(object, "tool_call_id", message->tool_call_id) &&
                set_text(object, "name", message->name);
    return good ? add_calls(object, message, error) : gb_no_memory(error, "a conversation");
}

gumbel_status gb_chat_messages_to_json(const gumbel_message *messages, size_t count, json_t **array,
                                       gumbel_error *error) {
    if (count > 0 && messages->size != sizeof *messages)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "gumbel_message: size is %zu instead of %zu",
                       messages->size, sizeof *messages);
    *array = json_array();
    gumbel_status status = *array ? GUMBEL_OK : gb_no_memory(error, "a conversation");
    for (size_t i = 0; status == GUMBEL_OK && i < count; i++) {
        json_t *object = json_object();
        if (json_array_append_new(*array, object) != 0)
            status = gb_no_memory(error, "a conversation");
        else if ((status = fill_message(object, &messages[i], error)) != GUMBEL_OK)
            status = gb_prefix(error, status, "message %zu", i);
    }
    if (status != GUMBEL_OK) {
        json_decref(*array);
        *array = NULL;
    }
    return status;
}

/* ---- Checking and completing ---- */

#define REFUSE(...) gb_fail(error, GUMBEL_ERROR_ARGUMENT, __VA_ARGS__)

static void drop_nulls(json_t *object) {
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value) {
        if (json_is_null(value))
            json_object_del(object, key);
    }
}

static gumbel_status check_string(const json_t *object, const char *key, gumbel_error *error) {
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_string(value))
        return GUMBEL_OK;
    return REFUSE("%s is %s instead of a string", key, type_name(value));
}

static gumbel_status check_role(const json_t *message, gumbel_error *error) {
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    const json_t *role = json_object_get(message, "role");
    if (!json_is_string(role))
        return REFUSE("role is %s instead of a string", type_name(role));
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(json_string_value(role), roles[i]) == 0)
            return GUMBEL_OK;
    return REFUSE("role is \"%.32s\"; there are system, developer, user, assistant and tool",
                  json_string_value(role));
}

static gumbel_status check_part(const json_t *part, size_t index, gumbel_error *error) {
    const json_t *type = json_object_get(part, "type"), *text = json_object_get(part, "text");
    if (!json_is_string(type))
        return REFUSE("content[%zu].type is %s instead of a string", index, type_name(type));
    if (strcmp(json_string_value(type), "text") != 0)
        return REFUSE("content[%zu].type is \"%.32s\"; this version takes \"text\" alone", index,
                      json_string_value(type));
    if (!json_is_string(text))
        return REFUSE("content[%zu].text is %s instead of a string", index, type_name(text));
    return GUMBEL_OK;
}

static gumbel_status check_content(json_t *message, gumbel_error *error) {
    const json_t *content = json_object_get(message, "content");
    if (json_is_array(content)) {
        for (size_t i = 0; i < json_array_size(content); i++)
            GB_TRY(check_part(json_array_get(content, i), i, error));
        return GUMBEL_OK;
    }
    bool is_assistant = strcmp(json_string_value(json_object_get(message, "role")), "assistant") == 0;
    bool says_more = json_array_size(json_object_get(message, "tool_calls")) > 0 ||
                     json_object_get(message, "reasoning_content");
    if (json_is_string(content) || (!content && is_assistant && says_more))
        return GUMBEL_OK;
    if (!content && is_assistant)
        return json_object_set_new(message, "content", json_string("")) == 0
                   ? GUMBEL_OK
                   : gb_no_memory(error, "a conversation");
    return REFUSE("content is %s instead of a string or an array of parts", type_name(content));
}

/* Arguments stand as text in OpenAI's API, and as an object in templates. A model may have written a text
 * that is none, which its next turn is to see.
 */
static gumbel_status complete_arguments(json_t *function, json_t *written, gumbel_error *error) {
    json_t *arguments = json_object_get(function, "arguments"), *parsed;
    bool is_text = json_is_string(arguments);
    if (json_array_append_new(written, is_text ? json_incref(arguments) : json_null()) != 0)
        return gb_no_memory(error, "a conversation");
    if (json_is_object(arguments))
        return GUMBEL_OK;
    const char *text = arguments && json_string_length(arguments) == 0 ? "{}" : json_string_value(arguments);
    if (arguments && !json_is_string(arguments) && !json_is_null(arguments))
        return REFUSE("%s instead of an object or its JSON", type_name(arguments));
    const gumbel_status status =
        gb_chat_read_json("as JSON", text ? text : "{}", JSON_OBJECT, &parsed, error);
    if (status != GUMBEL_OK)
        return status == GUMBEL_ERROR_MEMORY ? status : GUMBEL_OK;
    return json_object_set_new_nocheck(function, "arguments", parsed) == 0
               ? GUMBEL_OK
               : gb_no_memory(error, "a conversation");
}

static gumbel_status complete_call(json_t *call, size_t index, json_t *written, gumbel_error *error) {
    json_t *function = json_object_get(call, "function");
    if (!json_is_object(function))
        return REFUSE("tool_calls[%zu].function is %s instead of an object", index, type_name(function));
    const json_t *name = json_object_get(function, "name");
    if (!json_is_string(name))
        return REFUSE("tool_calls[%zu].function.name is %s instead of a string", index, type_name(name));
    drop_nulls(call);
    gumbel_status status = check_string(call, "id", error);
    if (status != GUMBEL_OK)
        return gb_prefix(error, status, "tool_calls[%zu]", index);
    status = complete_arguments(function, written, error);
    if (status == GUMBEL_OK || status == GUMBEL_ERROR_MEMORY)
        return status;
    gb_prefix(error, status, "tool_calls[%zu].function.arguments", index);
    if (error)
        error->status = GUMBEL_ERROR_ARGUMENT;
    return GUMBEL_ERROR_ARGUMENT;
}

static gumbel_status complete_calls(json_t *message, json_t *written, gumbel_error *error) {
    json_t *calls = json_object_get(message, "tool_calls");
    if (calls && !json_is_array(calls))
        return REFUSE("tool_calls is %s instead of an array", type_name(calls));
    for (size_t i = 0; i < json_array_size(calls); i++)
        GB_TRY(complete_call(json_array_get(calls, i), i, written, error));
    if (calls && json_array_size(calls) == 0)
        json_object_del(message, "tool_calls");
    return GUMBEL_OK;
}

/* transformers' rule: the first of the names that is there is the reasoning, which the newest name and the
 * one of gpt-oss then have too. */
static gumbel_status complete_reasoning(json_t *message, gumbel_error *error) {
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    json_t *reasoning = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        GB_TRY(check_string(message, names[i], error));
        if (!reasoning)
            reasoning = json_object_get(message, names[i]);
    }
    if (!reasoning)
        return GUMBEL_OK;
    bool good = json_object_set_nocheck(message, "reasoning_content", reasoning) == 0;
    if (!json_object_get(message, "thinking"))
        good = json_object_set_nocheck(message, "thinking", reasoning) == 0 && good;
    return good ? GUMBEL_OK : gb_no_memory(error, "a conversation");
}

static gumbel_status complete_message(json_t *message, json_t *written, gumbel_error *error) {
    if (!json_is_object(message))
        return REFUSE("it is %s instead of an object", type_name(message));
    drop_nulls(message);
    GB_TRY(check_role(message, error));
    GB_TRY(check_string(message, "name", error));
    GB_TRY(check_string(message, "tool_call_id", error));
    GB_TRY(complete_calls(message, written, error));
    GB_TRY(complete_reasoning(message, error));
    return check_content(message, error);
}

gumbel_status gb_chat_complete_messages(json_t *messages, json_t **written, gumbel_error *error) {
    *written = json_array();
    if (!*written)
        return gb_no_memory(error, "a conversation");
    if (json_array_size(messages) == 0)
        return REFUSE("the conversation has no messages");
    for (size_t i = 0; i < json_array_size(messages); i++) {
        gumbel_status status = complete_message(json_array_get(messages, i), *written, error);
        if (status != GUMBEL_OK)
            return gb_prefix(error, status, "message %zu", i);
    }
    return GUMBEL_OK;
}

gumbel_status gb_chat_check_tools(const json_t *tools, gumbel_error *error) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i), *function = json_object_get(tool, "function");
        const json_t *name = json_object_get(function ? function : tool, "name");
        if (!json_is_object(tool))
            return REFUSE("tool %zu: it is %s instead of an object", i, type_name(tool));
        if (!json_is_string(name))
            return REFUSE("tool %zu: %s is %s instead of a string", i, function ? "function.name" : "name",
                          type_name(name));
    }
    return GUMBEL_OK;
}

/* ---- Roles ---- */

const char *gb_chat_role(const json_t *message) {
    return json_string_value(json_object_get(message, "role"));
}

bool gb_chat_is_system(const json_t *message) {
    const char *role = gb_chat_role(message);
    return role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0);
}

bool gb_chat_rename_developer(json_t *messages) {
    bool good = true;
    for (size_t i = 0; good && i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i);
        if (strcmp(json_string_value(json_object_get(message, "role")), "developer") == 0)
            good = json_object_set_new_nocheck(message, "role", json_string_nocheck("system")) == 0;
    }
    return good;
}
