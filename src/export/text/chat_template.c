/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/chat_template.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "export/checkpoint/json.h"
#include "text/jinja/jinja.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CONFIG_FILE = 64 << 20, MAX_PATH = 4096 };

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
static gumbel_status read_special_tokens(json_t *config, gb_chat_section *chat, gumbel_error *error) {
    const char *key;
    json_t *value;
    json_object_foreach(config, key, value) {
        size_t length = strlen(key);
        const json_t *spelling = spelling_of(value);
        if (length > 6 && strcmp(key + length - 6, "_token") == 0 && json_is_string(spelling))
            GB_TRY(gb_chat_section_add_token(chat, key, json_string_value(spelling),
                                             json_string_length(spelling), error));
    }
    return GUMBEL_OK;
}

static gumbel_status add_template(gb_chat_section *chat, const char *name, const json_t *text,
                                  gumbel_error *error) {
    if (!name || !json_is_string(text))
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "chat_template is neither a string nor a list of {\"name\", \"template\"}");
    return gb_chat_section_add_template(chat, name, json_string_value(text), json_string_length(text), error);
}

/* chat_template is one template, or several by name. */
static gumbel_status read_named_templates(const json_t *value, gb_chat_section *chat, gumbel_error *error) {
    if (!json_is_array(value))
        return add_template(chat, "default", value, error);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *entry = json_array_get(value, i);
        GB_TRY(add_template(chat, json_string_value(json_object_get(entry, "name")),
                            json_object_get(entry, "template"), error));
    }
    return GUMBEL_OK;
}

static gumbel_status read_config(json_t *config, gb_chat_section *chat, gumbel_error *error) {
    const json_t *value = json_object_get(config, "chat_template");
    GB_TRY(read_special_tokens(config, chat, error));
    if (!value || json_is_null(value) || json_object_size(chat->templates) > 0)
        return GUMBEL_OK;
    return read_named_templates(value, chat, error);
}

static gumbel_status read_config_file(const char *path, gb_chat_section *chat, gumbel_error *error) {
    json_t *config;
    GB_TRY(gb_read_json(path, MAX_CONFIG_FILE, &config, error));
    gumbel_status status = read_config(config, chat, error);
    json_decref(config);
    return status == GUMBEL_OK ? GUMBEL_OK : gb_prefix(error, status, "%s", path);
}

static gumbel_status read_template_file(const char *path, const char *name, gb_chat_section *chat,
                                        gumbel_error *error) {
    char *text;
    size_t length;
    GB_TRY(gb_read_file(path, GB_JINJA_MAX_TEMPLATE, &text, &length, error));
    gumbel_status status = gb_chat_section_add_template(chat, name, text, length, error);
    gb_free(text);
    return status == GUMBEL_OK ? GUMBEL_OK : gb_prefix(error, status, "%s", path);
}

/* Names of additional templates, in the order of their bytes. */
typedef struct template_names {
    char (*items)[GB_MAX_CHAT_NAME + 1]; /* owned */
    size_t count, capacity;
} template_names;

static int compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

/* Adds the name of a file NAME.jinja; of other files nothing. */
static gumbel_status add_name(const char *file, template_names *names, gumbel_error *error) {
    static const char ending[] = ".jinja";
    const size_t length = strlen(file), size = sizeof ending - 1;
    if (file[0] == '.' || length <= size || strcmp(file + length - size, ending) != 0)
        return GUMBEL_OK;
    if (length - size > GB_MAX_CHAT_NAME)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: the name of a chat template has at most %d bytes",
                       file, GB_MAX_CHAT_NAME);
    if (!gb_grow((void **)&names->items, &names->capacity, names->count + 1, sizeof *names->items))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the names of chat templates");
    char *name = names->items[names->count++];
    memcpy(name, file, length - size);
    name[length - size] = 0;
    return GUMBEL_OK;
}

static gumbel_status list_names(const char *folder, template_names *names, gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    DIR *directory = opendir(folder);
    for (const struct dirent *file; directory && status == GUMBEL_OK && (file = readdir(directory));)
        status = add_name(file->d_name, names, error);
    if (directory)
        closedir(directory);
    if (status == GUMBEL_OK && names->count > 1)
        qsort(names->items, names->count, sizeof *names->items, compare_names);
    return status;
}

static gumbel_status read_additional(const char *directory, gb_chat_section *chat, gumbel_error *error) {
    char folder[MAX_PATH], file[GB_MAX_CHAT_NAME + 16], path[MAX_PATH];
    template_names names = {0};
    GB_TRY(join_path(directory, "additional_chat_templates", folder, error));
    gumbel_status status = list_names(folder, &names, error);
    for (size_t i = 0; i < names.count && status == GUMBEL_OK; i++) {
        snprintf(file, sizeof file, "%s.jinja", names.items[i]);
        status = join_path(folder, file, path, error);
        if (status == GUMBEL_OK)
            status = read_template_file(path, names.items[i], chat, error);
    }
    gb_free(names.items);
    return status;
}

gumbel_status gb_read_chat_templates(const char *directory, gb_chat_section *chat, gumbel_error *error) {
    char path[MAX_PATH];
    GB_TRY(gb_chat_section_create(chat, error));
    GB_TRY(join_path(directory, "chat_template.jinja", path, error));
    if (access(path, F_OK) == 0) {
        GB_TRY(read_template_file(path, "default", chat, error));
        GB_TRY(read_additional(directory, chat, error));
    }
    GB_TRY(join_path(directory, "tokenizer_config.json", path, error));
    return access(path, F_OK) == 0 ? read_config_file(path, chat, error) : GUMBEL_OK;
}

void gb_warn_of_chat_templates(const gb_chat_section *chat, gumbel_log_callback log, void *log_user) {
    const char *name;
    json_t *text;
    json_object_foreach(chat->templates, name, text) {
        gumbel_error reason;
        char line[sizeof reason.message + 192];
        if (!log || gb_jinja_check(json_string_value(text), json_string_length(text), &reason) == GUMBEL_OK)
            continue;
        snprintf(line, sizeof line, "%s (\"%s\"); chat needs --chat-template-file FILE or --raw",
                 reason.message, name);
        log(log_user, GUMBEL_LOG_WARNING, line);
    }
}
