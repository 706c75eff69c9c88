/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/chat_template.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "export/checkpoint/json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TEMPLATE_FILE = 1 << 20, MAX_CONFIG_FILE = 64 << 20, MAX_PATH = 4096 };

static gumbel_status join_path(const char *directory, const char *name, char path[MAX_PATH],
                               gumbel_error *error) {
    int length = snprintf(path, MAX_PATH, "%s/%s", directory, name);
    return length > 0 && length < MAX_PATH
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_IO, "%s: the path is too long", directory);
}

/* A special token stands as its spelling or as an object with it. */
static const json_t *spelling_of(const json_t *token) {
    return json_is_object(token) ? json_object_get(token, "content") : token;
}

/* transformers gives templates the spellings of all special tokens that tokenizer_config.json names. */
static gumbel_status read_special_tokens(json_t *config, json_t **special_tokens, gumbel_error *error) {
    const char *key;
    json_t *value;
    *special_tokens = json_object();
    bool failed = !*special_tokens;
    json_object_foreach(config, key, value) {
        size_t length = strlen(key);
        const json_t *spelling = spelling_of(value);
        if (length <= 6 || strcmp(key + length - 6, "_token") != 0 || !json_is_string(spelling))
            continue;
        failed |= json_object_set_new(*special_tokens, key, json_string(json_string_value(spelling))) != 0;
    }
    return failed ? gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the special tokens") : GUMBEL_OK;
}

/* chat_template is one template, or several by name. */
static const json_t *choose_template(const json_t *value) {
    if (!json_is_array(value))
        return value;
    const json_t *chosen = NULL;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *entry = json_array_get(value, i);
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (!chosen || (name && strcmp(name, "default") == 0))
            chosen = json_object_get(entry, "template");
    }
    return chosen;
}

static gumbel_status read_config(const char *path, gb_chat_template *chat, gumbel_error *error) {
    json_t *config;
    GB_TRY(gb_read_json(path, MAX_CONFIG_FILE, &config, error));
    gumbel_status status = read_special_tokens(config, &chat->special_tokens, error);
    const json_t *value = json_object_get(config, "chat_template");
    const json_t *text = choose_template(value);
    if (status == GUMBEL_OK && value && !json_is_null(value) && !json_is_string(text))
        status =
            gb_fail(error, GUMBEL_ERROR_FORMAT,
                    "%s: chat_template is neither a string nor a list of {\"name\", \"template\"}", path);
    if (status == GUMBEL_OK && json_is_string(text) && !chat->text) {
        chat->length = json_string_length(text);
        chat->text = gb_copy_string(json_string_value(text), chat->length);
        chat->source = "tokenizer_config.json";
        if (!chat->text)
            status = gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a chat template");
    }
    json_decref(config);
    return status;
}

gumbel_status gb_read_chat_template(const char *directory, gb_chat_template *chat, gumbel_error *error) {
    char path[MAX_PATH];
    *chat = (gb_chat_template){0};
    GB_TRY(join_path(directory, "chat_template.jinja", path, error));
    if (access(path, F_OK) == 0) {
        GB_TRY(gb_read_file(path, MAX_TEMPLATE_FILE, &chat->text, &chat->length, error));
        chat->source = "chat_template.jinja";
    }
    GB_TRY(join_path(directory, "tokenizer_config.json", path, error));
    return access(path, F_OK) == 0 ? read_config(path, chat, error) : GUMBEL_OK;
}

void gb_chat_template_free(gb_chat_template *chat) {
    gb_free(chat->text);
    json_decref(chat->special_tokens);
    *chat = (gb_chat_template){0};
}
