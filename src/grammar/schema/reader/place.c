/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/reader/place.h"

#include "base/byte_buffer.h"
#include "grammar/schema/reader/keywords.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gb_schema_place(gb_schema_reader *reader, const json_t *schema, const char *keyword, char *text,
                     size_t size) {
    gb_byte_buffer path = {0};
    gb_append_place(&reader->places, reader->root, schema, &path);
    if (keyword)
        gb_append_step(&path, keyword);
    const size_t room = size - 1, length = path.failed ? 0 : path.size;
    if (length + 1 <= room)
        snprintf(text, size, "#%.*s", (int)length, length ? (const char *)path.data : "");
    else
        snprintf(text, size, "#%.*s...%.*s", (int)(room / 2 - 4), (const char *)path.data, (int)(room / 2),
                 (const char *)path.data + length - room / 2);
    gb_buffer_free(&path);
}

static bool is_deeper(const json_t *value, unsigned most) {
    const char *key;
    json_t *member;
    size_t i;
    if (!json_is_object(value) && !json_is_array(value))
        return false;
    if (most == 0)
        return true;
    json_object_foreach(gb_mutable(value), key, member) if (is_deeper(member, most - 1)) return true;
    json_array_foreach(gb_mutable(value), i, member) if (is_deeper(member, most - 1)) return true;
    return false;
}

bool gb_schema_is_deep(const json_t *root) {
    return is_deeper(root, GB_MAX_SCHEMA_DEPTH);
}

static bool holds_values(const char *keyword) {
    return !strcmp(keyword, "enum") || !strcmp(keyword, "const") || !strcmp(keyword, "default") ||
           !strcmp(keyword, "example") || !strcmp(keyword, "examples");
}

static bool is_base(const json_t *value) {
    const char *text = json_string_value(value);
    return text && text[0] != '#';
}

/* The first schema that the function is true of. */
static const json_t *search(const json_t *value, bool is_sought(const json_t *, const void *),
                            const void *user) {
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_object(value) && is_sought(value, user))
        return value;
    json_object_foreach(gb_mutable(value), key, member) {
        const json_t *found = holds_values(key) ? NULL : search(member, is_sought, user);
        if (found)
            return found;
    }
    json_array_foreach(gb_mutable(value), i, member) {
        const json_t *found = search(member, is_sought, user);
        if (found)
            return found;
    }
    return NULL;
}

/* The keyword that names a schema. */
static const char *id_keyword(const gb_schema_reader *reader) {
    return reader->draft <= 4 ? "id" : "$id";
}

static bool is_inner_base(const json_t *schema, const void *user) {
    const gb_schema_reader *reader = user;
    return schema != reader->root && is_base(json_object_get(schema, id_keyword(reader)));
}

bool gb_schema_has_inner_ids(const gb_schema_reader *reader) {
    return search(reader->root, is_inner_base, reader) != NULL;
}

static bool is_text(const json_t *value, const char *text) {
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* user: "#name". */
static bool has_anchor(const json_t *schema, const void *user) {
    const char *fragment = user;
    return is_text(json_object_get(schema, "$anchor"), fragment + 1) ||
           is_text(json_object_get(schema, "$dynamicAnchor"), fragment + 1) ||
           is_text(json_object_get(schema, "$id"), fragment) ||
           is_text(json_object_get(schema, "id"), fragment);
}

/* Takes the next step of a pointer, which begins behind its '/', undoing %XX, ~0 and ~1. */
static const char *next_step(const char *at, gb_byte_buffer *step) {
    step->size = 0;
    while (*at && *at != '/') {
        unsigned code = (uint8_t)*at++;
        if (code == '%' && sscanf(at, "%2x", &code) == 1)
            at += at[1] ? 2 : 1;
        else if (code == '~' && (*at == '0' || *at == '1'))
            code = *at++ == '0' ? '~' : '/';
        const uint8_t byte = (uint8_t)code;
        gb_buffer_append(step, &byte, 1);
    }
    gb_buffer_append(step, "", 1);
    return at;
}

static const json_t *follow_pointer(gb_schema_reader *reader, const json_t *value, const char *at) {
    gb_byte_buffer step = {0};
    while (value && *at == '/') {
        at = next_step(at + 1, &step);
        if (step.failed) {
            gb_schema_no_memory(reader);
            value = NULL;
            break;
        }
        const char *name = (const char *)step.data;
        char *end = NULL;
        const unsigned long index = strtoul(name, &end, 10);
        value = json_is_array(value) ? (*name && !*end ? json_array_get(value, index) : NULL)
                                     : json_object_get(value, name);
    }
    gb_buffer_free(&step);
    return value;
}

/* The part of the reference from '#' on, if it is one to this document: alone, or behind the root's own $id.
 */
static const char *fragment_of(const gb_schema_reader *reader, const char *reference) {
    const char *id = json_string_value(json_object_get(reader->root, id_keyword(reader)));
    const char *hash = strchr(reference, '#');
    const size_t length = hash ? (size_t)(hash - reference) : strlen(reference);
    if (length == 0 || (id && strcspn(id, "#") == length && strncmp(id, reference, length) == 0))
        return hash ? hash : "#";
    return NULL;
}

const json_t *gb_schema_refer(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    const char *reference = json_string_value(json_object_get(schema, keyword));
    if (!reference) {
        gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_FORMAT, "expected a string");
        return NULL;
    }
    const char *fragment = fragment_of(reader, reference);
    if (!fragment || reader->has_inner_ids) {
        gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_UNSUPPORTED,
                       fragment ? "'%s' in a schema that has an $id within; put what it means under $defs"
                                : "'%s' is in another document; put what it means under $defs",
                       reference);
        return NULL;
    }
    const json_t *found = fragment[1] == 0 || fragment[1] == '/'
                              ? follow_pointer(reader, reader->root, fragment + 1)
                              : search(reader->root, has_anchor, fragment);
    if (!found)
        gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_FORMAT, "nothing is at '%s'", reference);
    return found;
}
