/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/messages.h"

#include "cli/base/report.h"
#include "cli/base/storage.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static gumbel_status refuse(gumbel_error *error, const char *name, size_t index, const char *what) {
    cli_refuse(error, "%s: message %zu: %s", name, index, what);
    return error->status = GUMBEL_ERROR_FORMAT;
}

/* The texts of a content's parts, one after the other; false when a part is no text. */
static bool join_parts(const json_t *parts, cli_text *text) {
    size_t i;
    json_t *part;
    cli_text_add(text, "", 0);
    json_array_foreach(parts, i, part) {
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *content = json_object_get(part, "text");
        if (!type || strcmp(type, "text") != 0 || !json_is_string(content))
            return false;
        cli_text_add(text, json_string_value(content), json_string_length(content));
    }
    return true;
}

static gumbel_status read_message(const char *name, const json_t *item, size_t index, gumbel_message *message,
                                  gumbel_error *error) {
    const json_t *role = json_object_get(item, "role"), *content = json_object_get(item, "content");
    if (!json_is_string(role))
        return refuse(error, name, index, "expected an object with a string \"role\"");
    if (json_array_size(json_object_get(item, "tool_calls")) > 0)
        return refuse(error, name, index, "\"tool_calls\" are not supported in this version");
    cli_text text = {0};
    bool good = json_is_array(content) && join_parts(content, &text);
    if (json_is_string(content)) {
        cli_text_add(&text, json_string_value(content), json_string_length(content));
        good = true;
    }
    if (!good) {
        cli_text_free(&text);
        return refuse(error, name, index,
                      "expected \"content\" to be a string or an array of {\"type\": \"text\"} parts");
    }
    bool is_developer = strcmp(json_string_value(role), "developer") == 0; /* OpenAI's later word */
    const char *name_of_role = is_developer ? "system" : json_string_value(role);
    message->role = cli_copy_text(name_of_role, strlen(name_of_role));
    message->content = text.bytes;
    return GUMBEL_OK;
}

static gumbel_status read_array(const char *name, const json_t *array, cli_messages *messages,
                                gumbel_error *error) {
    size_t count = json_array_size(array);
    if (count == 0) {
        cli_refuse(error, "%s: expected an array of messages, or an object with one under \"messages\"",
                   name);
        return error->status = GUMBEL_ERROR_FORMAT;
    }
    messages->items = cli_allocate(count, sizeof *messages->items);
    for (size_t i = 0; i < count; i++) {
        gumbel_status status = read_message(name, json_array_get(array, i), i, &messages->items[i], error);
        if (status != GUMBEL_OK)
            return status;
        messages->count = i + 1;
    }
    return GUMBEL_OK;
}

gumbel_status cli_messages_parse(const char *name, const char *json, size_t length, cli_messages *messages,
                                 gumbel_error *error) {
    *messages = (cli_messages){0};
    json_error_t reason;
    json_t *root = json_loadb(json, length, JSON_REJECT_DUPLICATES, &reason);
    if (!root) {
        cli_refuse(error, "%s: line %d: %s", name, reason.line, reason.text);
        return error->status = GUMBEL_ERROR_FORMAT;
    }
    const json_t *array = json_is_object(root) ? json_object_get(root, "messages") : root;
    gumbel_status status = read_array(name, array, messages, error);
    json_decref(root);
    if (status != GUMBEL_OK)
        cli_messages_free(messages);
    return status;
}

void cli_messages_free(cli_messages *messages) {
    for (size_t i = 0; i < messages->count; i++) {
        free((char *)(uintptr_t)messages->items[i].role);
        free((char *)(uintptr_t)messages->items[i].content);
    }
    free(messages->items);
    *messages = (cli_messages){0};
}
