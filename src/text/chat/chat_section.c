/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/chat_section.h"

#include "text/base/byte_reader.h"
#include "text/base/utf8.h"
#include "text/jinja/value/limits.h"

#include <stdio.h>
#include <string.h>

typedef enum record { RECORD_TEMPLATE = 1, RECORD_TOKEN = 2 } record;

static bool is_text(const char *text, size_t length) {
    return gb_utf8_is_valid(text, length) && !memchr(text, 0, length);
}

/* Adds a text of at most max_length bytes to one of the section's objects. */
static gumbel_status add(json_t *object, size_t max_count, const char *what, const char *name,
                         const char *text, size_t length, size_t max_length, gumbel_error *error) {
    if (!*name || strlen(name) > GB_MAX_CHAT_NAME || !is_text(name, strlen(name)))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "a %s has a name that is empty, too long or not UTF-8",
                       what);
    if (json_object_get(object, name))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "there are two %ss \"%s\"", what, name);
    if (length > max_length || json_object_size(object) >= max_count)
        return gb_fail(error, GUMBEL_ERROR_LIMIT,
                       "the %s \"%s\" has %zu bytes; at most %zu are allowed, and %zu %ss", what, name,
                       length, max_length, max_count, what);
    if (!is_text(text, length))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the %s \"%s\" is not UTF-8, or has a zero byte", what,
                       name);
    json_t *value = json_stringn_nocheck(text, length);
    return json_object_set_new_nocheck(object, name, value) == 0 ? GUMBEL_OK
                                                                 : gb_no_memory(error, "a chat template");
}

gumbel_status gb_chat_section_create(gb_chat_section *section, gumbel_error *error) {
    *section = (gb_chat_section){json_object(), json_object()};
    if (section->templates && section->special_tokens)
        return GUMBEL_OK;
    gb_chat_section_free(section);
    return gb_no_memory(error, "a chat template");
}

gumbel_status gb_chat_section_add_template(gb_chat_section *section, const char *name, const char *text,
                                           size_t length, gumbel_error *error) {
    return add(section->templates, GB_MAX_CHAT_TEMPLATES, "chat template", name, text, length,
               GB_JINJA_MAX_TEMPLATE, error);
}

gumbel_status gb_chat_section_add_token(gb_chat_section *section, const char *name, const char *spelling,
                                        size_t length, gumbel_error *error) {
    return add(section->special_tokens, GB_MAX_CHAT_TOKENS, "special token", name, spelling, length,
               GB_MAX_CHAT_NAME, error);
}

/* ---- The program's section ---- */

static gumbel_status read_record(gb_byte_reader *in, gb_chat_section *section, gumbel_error *error) {
    char name[GB_MAX_CHAT_NAME + 1] = {0};
    uint32_t kind = gb_read_u32(in), name_length, length;
    const char *named = gb_read_text(in, &name_length), *text = gb_read_text(in, &length);
    if (in->failed || name_length > GB_MAX_CHAT_NAME || memchr(named, 0, name_length))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the section ends within a record, or a name is too long");
    memcpy(name, named, name_length);
    if (kind == RECORD_TEMPLATE)
        return gb_chat_section_add_template(section, name, text, length, error);
    if (kind == RECORD_TOKEN)
        return gb_chat_section_add_token(section, name, text, length, error);
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "records of kind %u are not known to this version", kind);
}

static gumbel_status read_records(const gb_blob *blob, gb_chat_section *section, gumbel_error *error) {
    gb_byte_reader in = {.data = blob->data, .size = blob->size};
    uint32_t version = gb_read_u32(&in);
    if (in.failed || version != GB_CHAT_VERSION)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "version %u; this version reads %d", version,
                       GB_CHAT_VERSION);
    while (in.size > 0)
        GB_TRY(read_record(&in, section, error));
    return GUMBEL_OK;
}

gumbel_status gb_chat_section_parse(const gb_blob *blob, gb_chat_section *section, gumbel_error *error) {
    GB_TRY(gb_chat_section_create(section, error));
    gumbel_status status = read_records(blob, section, error);
    if (status == GUMBEL_OK)
        return GUMBEL_OK;
    gb_chat_section_free(section);
    return gb_prefix(error, status, "chat section");
}

static void write_records(json_t *object, record kind, gb_byte_buffer *bytes) {
    const char *name;
    json_t *text;
    json_object_foreach(object, name, text) {
        gb_buffer_append_u32(bytes, kind);
        gb_buffer_append_text(bytes, name, strlen(name));
        gb_buffer_append_text(bytes, json_string_value(text), json_string_length(text));
    }
}

void gb_chat_section_write(const gb_chat_section *section, gb_byte_buffer *bytes) {
    gb_buffer_append_u32(bytes, GB_CHAT_VERSION);
    write_records(section->templates, RECORD_TEMPLATE, bytes);
    write_records(section->special_tokens, RECORD_TOKEN, bytes);
}

void gb_chat_section_free(gb_chat_section *section) {
    json_decref(section->templates);
    json_decref(section->special_tokens);
    *section = (gb_chat_section){0};
}

/* ---- Choosing ---- */

static gumbel_status fail_choice(const gb_chat_section *section, const char *name, gumbel_error *error) {
    char names[256] = "";
    size_t length = 0;
    const char *key;
    json_t *text;
    json_object_foreach(section->templates, key, text) {
        int more = snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", key);
        if (more < 0 || (size_t)more >= sizeof names - length)
            break;
        length += (size_t)more;
    }
    if (!length)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "the program has no chat template; give one (--chat-template-file FILE) or plain text "
                       "(--raw)");
    return name ? gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                          "the program has no chat template \"%s\"; there are: %s", name, names)
                : gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                          "the program has several chat templates and none is the default; choose one of: %s",
                          names);
}

gumbel_status gb_chat_section_choose(const gb_chat_section *section, const char *name, bool has_tools,
                                     const char **text, gumbel_error *error) {
    json_t *templates = section->templates;
    const json_t *found = name ? json_object_get(templates, name) : NULL;
    if (!name && has_tools)
        found = json_object_get(templates, "tool_use");
    if (!name && !found)
        found = json_object_get(templates, "default");
    if (!name && !found && json_object_size(templates) == 1)
        found = json_object_iter_value(json_object_iter(templates));
    if (!found)
        return fail_choice(section, name, error);
    *text = json_string_value(found);
    return GUMBEL_OK;
}
