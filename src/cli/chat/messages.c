/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/messages.h"

#include "base/output_file.h"
#include "cli/base/files.h"
#include "cli/base/json.h"
#include "cli/base/report.h"
#include "cli/base/storage.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static int add(const char *bytes, size_t length, void *text) {
    cli_text_add(text, bytes, length);
    return 0;
}

static char *dump(const json_t *value) {
    cli_text text = {0};
    if (value && !json_is_null(value))
        json_dump_callback(value, add, &text, JSON_COMPACT);
    return text.bytes;
}

gumbel_status cli_messages_parse(const char *name, const char *json, size_t length, cli_messages *messages,
                                 gumbel_error *error) {
    *messages = (cli_messages){0};
    json_error_t reason;
    json_t *root = json_loadb(json, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &reason);
    if (!root) {
        cli_refuse(error, "%s: line %d: %s", name, reason.line, reason.text);
        return error->status = GUMBEL_ERROR_FORMAT;
    }
    const json_t *array = json_is_object(root) ? json_object_get(root, "messages") : root;
    const json_t *tools = json_object_get(root, "tools");
    bool good = json_array_size(array) > 0 && (!tools || json_is_array(tools) || json_is_null(tools));
    if (good)
        *messages = (cli_messages){dump(array), dump(tools)};
    json_decref(root);
    if (good)
        return GUMBEL_OK;
    cli_refuse(error,
               "%s: expected an array of messages, or an object with one under \"messages\" and perhaps an "
               "array \"tools\"",
               name);
    return error->status = GUMBEL_ERROR_FORMAT;
}

void cli_messages_free(cli_messages *messages) {
    free(messages->messages);
    free(messages->tools);
    *messages = (cli_messages){0};
}

/* ---- Files of text alone ---- */

static const char *role_of(const json_t *message) {
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    const char *role = json_string_value(json_object_get(message, "role"));
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0)
            return roles[i];
    return NULL;
}

static gumbel_status write_text(const char *path, const cli_text *text, gumbel_error *error) {
    char buffer[4096];
    gb_output_file file = GB_NO_OUTPUT;
    gumbel_status status = gb_output_create(&file, path, NULL, buffer, sizeof buffer, error);
    if (status == GUMBEL_OK)
        status = gb_output_write(&file, text->bytes, text->length, error);
    if (status == GUMBEL_OK)
        status = gb_output_commit(&file, NULL, 0, error);
    gb_output_close(&file);
    return status;
}

gumbel_status cli_messages_write(const char *path, const gumbel_message *messages, size_t count,
                                 gumbel_error *error) {
    json_t *array = json_array();
    cli_text text = {0};
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array,
                              json_pack("{s:s, s:o}", "role", messages[i].role, "content",
                                        cli_json_text(messages[i].content, strlen(messages[i].content))));
    json_dump_callback(array, add, &text, JSON_INDENT(1));
    cli_text_add(&text, "\n", 1);
    json_decref(array);
    gumbel_status status = write_text(path, &text, error);
    cli_text_free(&text);
    return status;
}

static gumbel_status take_messages(const char *path, const json_t *array, cli_plain_message *messages,
                                   size_t *count, gumbel_error *error) {
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *message = json_array_get(array, i), *content = json_object_get(message, "content");
        if (!role_of(message) || !json_is_string(content)) {
            cli_refuse(error, "%s: message %zu: expected a role and a content of text", path, i);
            return error->status = GUMBEL_ERROR_FORMAT;
        }
        messages[(*count)++] = (cli_plain_message){
            role_of(message), cli_copy_text(json_string_value(content), json_string_length(content))};
    }
    return GUMBEL_OK;
}

gumbel_status cli_messages_read(const char *path, cli_plain_message **messages, size_t *count,
                                gumbel_error *error) {
    cli_text text = {0};
    json_error_t reason;
    *messages = NULL;
    *count = 0;
    gumbel_status status = cli_read_file(path, &text, error);
    if (status != GUMBEL_OK)
        return status;
    json_t *array = json_loadb(text.bytes, text.length, JSON_REJECT_DUPLICATES, &reason);
    cli_text_free(&text);
    if (!json_is_array(array)) {
        cli_refuse(error, "%s: expected an array of messages", path);
        status = error->status = GUMBEL_ERROR_FORMAT;
    } else {
        *messages = cli_allocate(json_array_size(array), sizeof **messages);
        status = take_messages(path, array, *messages, count, error);
    }
    json_decref(array);
    for (size_t i = 0; status != GUMBEL_OK && i < *count; i++)
        free((*messages)[i].content);
    if (status != GUMBEL_OK)
        free(*messages);
    return status;
}
