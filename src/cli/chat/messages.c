/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/messages.h"

#include "base/status.h"
#include "cli/base/files.h"
#include "cli/base/json.h"
#include "cli/base/storage.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static int add(const char *bytes, size_t length, void *text) {
    cli_append(text, bytes, length);
    return 0;
}

/* NULL for none. Free the text. */
static gumbel_status dump(const json_t *value, char **text, gumbel_error *error) {
    gb_byte_buffer written = {0};
    const bool failed =
        value && !json_is_null(value) && json_dump_callback(value, add, &written, JSON_COMPACT) != 0;
    *text = written.text;
    return failed ? gb_no_memory(error, "messages") : GUMBEL_OK;
}

gumbel_status cli_messages_parse(const char *name, const char *json, size_t length, cli_messages *messages,
                                 gumbel_error *error) {
    *messages = (cli_messages){0};
    json_error_t reason;
    json_t *root = json_loadb(json, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &reason);
    if (!root) {
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: line %d: %s", name, reason.line, reason.text);
    }
    const json_t *array = json_is_object(root) ? json_object_get(root, "messages") : root;
    const json_t *tools = json_object_get(root, "tools");
    bool good = json_array_size(array) > 0 && (!tools || json_is_array(tools) || json_is_null(tools));
    gumbel_status status = good ? dump(array, &messages->messages, error) : GUMBEL_OK;
    if (good && status == GUMBEL_OK)
        status = dump(tools, &messages->tools, error);
    json_decref(root);
    if (good)
        return status;
    return gb_fail(
        error, GUMBEL_ERROR_FORMAT,
        "%s: expected an array of messages, or an object with one under \"messages\" and perhaps an "
        "array \"tools\"",
        name);
}

void cli_messages_free(cli_messages *messages) {
    free(messages->messages);
    free(messages->tools);
    *messages = (cli_messages){0};
}

/* ---- Files ---- */

static void keep(void *user, const char *text, size_t length) {
    cli_append(user, text, length);
}

gumbel_status cli_messages_write(const char *path, const gumbel_conversation *conversation,
                                 gumbel_error *error) {
    gb_byte_buffer text = {0};
    gumbel_status status = gumbel_conversation_write(conversation, keep, &text, error);
    if (status == GUMBEL_OK) {
        cli_append_string(&text, "\n");
        status = cli_write_file(path, &text, error);
    }
    gb_buffer_free(&text);
    return status;
}

gumbel_status cli_messages_read(const char *path, gumbel_conversation *conversation, gumbel_error *error) {
    gb_byte_buffer text = {0};
    cli_messages messages = {0};
    gumbel_status status = cli_read_file(path, &text, error);
    if (status == GUMBEL_OK)
        status = cli_messages_parse(path, text.text, text.size, &messages, error);
    if (status == GUMBEL_OK)
        status = gumbel_conversation_add_json(conversation, messages.messages, error);
    cli_messages_free(&messages);
    gb_buffer_free(&text);
    return status;
}

/* ---- The system message ---- */

static bool is_system(const json_t *message) {
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0);
}

gumbel_status cli_messages_set_system(gumbel_conversation *conversation, const char *system,
                                      gumbel_error *error) {
    gb_byte_buffer before = {0}, after = {0};
    gumbel_status status = gumbel_conversation_write(conversation, keep, &before, error);
    if (status != GUMBEL_OK)
        return status;
    json_t *array = json_loadb(before.text, before.size, JSON_ALLOW_NUL, NULL);
    if (is_system(json_array_get(array, 0)))
        json_array_remove(array, 0);
    bool is_written = array != NULL;
    if (system)
        is_written = json_array_insert_new(array, 0,
                                           json_pack("{s:s, s:o}", "role", "system", "content",
                                                     cli_json_text(system, strlen(system)))) == 0;
    is_written = is_written && json_dump_callback(array, add, &after, JSON_COMPACT) == 0;
    json_decref(array);
    if (is_written) {
        gumbel_conversation_truncate(conversation, 0);
        status = gumbel_conversation_add_json(conversation, after.text, error);
    } else
        status = gb_no_memory(error, "messages");
    gb_buffer_free(&before);
    gb_buffer_free(&after);
    return status;
}
