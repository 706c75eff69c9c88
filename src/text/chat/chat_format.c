/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/chat_format.h"

#include "base/memory.h"
#include "text/base/byte_reader.h"
#include "text/base/utf8.h"

#include <jansson.h>
#include <string.h>

enum { CHAT_FORMAT_VERSION = 1 };

typedef enum field_type { TEXT, FLAG } field_type;

typedef struct field {
    uint32_t number;
    field_type type;
    const char *name;
    size_t offset; /* in gb_chat_format */
} field;

static const field fields[] = {
#define GB_CHAT_FIELD(number, type, name, what) {number, type, #name, offsetof(gb_chat_format, name)},
#include "text/chat/chat_format.def"
#undef GB_CHAT_FIELD
};
enum { FIELD_COUNT = sizeof fields / sizeof fields[0] };

static const char **text_of(gb_chat_format *format, const field *f) {
    return (const char **)(void *)((char *)format + f->offset);
}

static bool *flag_of(gb_chat_format *format, const field *f) {
    return (bool *)(void *)((char *)format + f->offset);
}

/* A field's text as it was read, before all of them are copied into the format's storage. */
typedef struct source_text {
    const char *text;
    size_t length;
} source_text;

static gumbel_status store_texts(gb_chat_format *format, const source_text texts[FIELD_COUNT],
                                 gumbel_error *error) {
    size_t total = 0;
    for (int i = 0; i < FIELD_COUNT; i++)
        total += texts[i].length + 1;
    format->storage = gb_allocate(total, 1);
    if (!format->storage)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a chat format of %zu bytes", total);
    char *next = format->storage;
    for (int i = 0; i < FIELD_COUNT; i++) {
        if (fields[i].type != TEXT)
            continue;
        *text_of(format, &fields[i]) = next;
        if (texts[i].length > 0)
            memcpy(next, texts[i].text, texts[i].length);
        next += texts[i].length + 1;
    }
    return GUMBEL_OK;
}

static bool is_text(const char *text, size_t length) {
    return gb_utf8_is_valid(text, length) && !memchr(text, 0, length);
}

/* ---- The program's section ---- */

static const field *find_number(uint32_t number) {
    for (int i = 0; i < FIELD_COUNT; i++)
        if (fields[i].number == number)
            return &fields[i];
    return NULL;
}

static gumbel_status read_field(gb_byte_reader *in, gb_chat_format *format, source_text texts[FIELD_COUNT],
                                uint32_t *last, gumbel_error *error) {
    uint32_t number = gb_read_u32(in);
    const field *f = find_number(number);
    if (!f && !in->failed)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "chat format: field %u is not known to this version",
                       number);
    if (!in->failed && number <= *last)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "chat format: field %u stands after field %u", number,
                       *last);
    *last = number;
    if (f && f->type == FLAG) {
        uint32_t value = gb_read_u32(in);
        if (value > 1)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "chat format: %s is %u instead of 0 or 1", f->name,
                           value);
        *flag_of(format, f) = value == 1;
    } else if (f) {
        uint32_t length;
        const char *text = gb_read_text(in, &length);
        if (!is_text(text, length))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "chat format: %s is not UTF-8 text", f->name);
        texts[f - fields] = (source_text){text, length};
    }
    if (in->failed)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "chat format: the section is cut short");
    return GUMBEL_OK;
}

gumbel_status gb_chat_format_parse(const gb_blob *blob, gb_chat_format *format, gumbel_error *error) {
    gb_byte_reader in = {.data = blob->data, .size = (size_t)blob->size};
    source_text texts[FIELD_COUNT] = {{0}};
    uint32_t last = 0;
    *format = (gb_chat_format){0};
    uint32_t version = gb_read_u32(&in);
    if (in.failed)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "chat format: the section is cut short");
    if (version != CHAT_FORMAT_VERSION)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "chat format: version %u is not known to this version", version);
    while (in.size > 0)
        GB_TRY(read_field(&in, format, texts, &last, error));
    return store_texts(format, texts, error);
}

void gb_chat_format_write(const gb_chat_format *format, gb_byte_buffer *bytes) {
    gb_chat_format copy = *format;
    gb_buffer_append_u32(bytes, CHAT_FORMAT_VERSION);
    for (int i = 0; i < FIELD_COUNT; i++) {
        gb_buffer_append_u32(bytes, fields[i].number);
        if (fields[i].type == FLAG) {
            gb_buffer_append_u32(bytes, *flag_of(&copy, &fields[i]));
        } else {
            const char *text = *text_of(&copy, &fields[i]);
            gb_buffer_append_text(bytes, text ? text : "", text ? strlen(text) : 0);
        }
    }
}

/* ---- The JSON form ---- */

static const field *find_name(const char *name) {
    for (int i = 0; i < FIELD_COUNT; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static gumbel_status read_object(json_t *object, const char *name, gb_chat_format *format,
                                 gumbel_error *error) {
    source_text texts[FIELD_COUNT] = {{0}};
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        const field *f = find_name(key);
        if (!f)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: \"%.64s\" is no part of a chat format", name,
                           key);
        if (f->type == TEXT ? !json_is_string(value) : !json_is_boolean(value))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: \"%s\" is not a %s", name, key,
                           f->type == TEXT ? "string" : "boolean");
        if (f->type == TEXT)
            texts[f - fields] = (source_text){json_string_value(value), json_string_length(value)};
        else
            *flag_of(format, f) = json_is_true(value);
    }
    return store_texts(format, texts, error);
}

gumbel_status gb_chat_format_parse_json(const char *text, size_t length, const char *name,
                                        gb_chat_format *format, gumbel_error *error) {
    *format = (gb_chat_format){0};
    json_error_t reason;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
    if (!object)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: line %d: %s", name, reason.line, reason.text);
    gumbel_status status = json_is_object(object)
                               ? read_object(object, name, format, error)
                               : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: not a JSON object", name);
    json_decref(object);
    return status;
}

void gb_chat_format_free(gb_chat_format *format) {
    gb_free(format->storage);
    *format = (gb_chat_format){0};
}
