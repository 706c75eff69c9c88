/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocols/convert.h"

#include <string.h>

json_t *server_add_message(json_t *messages, const char *role, json_t *content) {
    json_t *message = json_pack("{s:s}", "role", role);
    if (content)
        json_object_set_new(message, "content", content);
    json_array_append_new(messages, message);
    return message;
}

json_t *server_assistant_message(json_t *messages) {
    const size_t count = json_array_size(messages);
    json_t *last = count > 0 ? json_array_get(messages, count - 1) : NULL;
    const char *role = json_string_value(json_object_get(last, "role"));
    return role && strcmp(role, "assistant") == 0 ? last : server_add_message(messages, "assistant", NULL);
}

void server_add_call(json_t *message, const char *id, const char *name, json_t *arguments) {
    json_t *calls = json_object_get(message, "tool_calls");
    if (!calls) {
        calls = json_array();
        json_object_set_new(message, "tool_calls", calls);
    }
    json_array_append_new(calls, json_pack("{s:s, s:s, s:{s:s, s:O}}", "id", id, "type", "function",
                                           "function", "name", name, "arguments", arguments));
}

json_t *server_make_tool(const json_t *tool, json_t *name, json_t *parameters) {
    json_t *function = json_pack("{s:O}", "name", name);
    json_t *description = json_object_get(tool, "description");
    if (description && !json_is_null(description))
        json_object_set(function, "description", description);
    if (parameters && !json_is_null(parameters))
        json_object_set(function, "parameters", parameters);
    if (json_is_true(json_object_get(tool, "strict")))
        json_object_set_new(function, "strict", json_true());
    return json_pack("{s:s, s:o}", "type", "function", "function", function);
}

const char *server_part_text(const char *place, const json_t *part, const char *types,
                             server_failure *failure) {
    const char *type = json_string_value(json_object_get(part, "type"));
    const char *text = json_string_value(json_object_get(part, "text"));
    if (!type || strchr(type, ' ') || !server_has_word(types, type)) {
        server_refuse(failure, "messages", "%s: a part of type %.40s; this version takes: %s", place,
                      type ? type : "(none)", types);
        return NULL;
    }
    if (!text)
        server_refuse(failure, "messages", "%s.text: expected a string", place);
    return text;
}

const char *server_result_text(const char *place, const json_t *part, const char *types,
                               server_failure *failure) {
    const char *type = json_string_value(json_object_get(part, "type"));
    if (type && !strchr(type, ' ')) {
        if (server_has_word("image image_url input_image", type))
            return "[an image, left out]";
        if (server_has_word("document file input_file", type))
            return "[a file, left out]";
    }
    return server_part_text(place, part, types, failure);
}
