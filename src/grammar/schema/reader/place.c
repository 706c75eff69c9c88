/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/reader/place.h"

#include "base/byte_buffer.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/reader/resources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gb_schema_place(gb_schema_reader *reader, const json_t *schema, const char *keyword, char *text,
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
    const bool is_found = !path.failed;
    gb_buffer_free(&path);
    return is_found;
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

const json_t *gb_schema_search(const json_t *value, bool is_sought(const json_t *, const void *),
                               const void *user) {
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_object(value) && is_sought(value, user))
        return value;
    json_object_foreach(gb_mutable(value), key, member) {
        const json_t *found = holds_values(key) ? NULL : gb_schema_search(member, is_sought, user);
        if (found)
            return found;
    }
    json_array_foreach(gb_mutable(value), i, member) {
        const json_t *found = gb_schema_search(member, is_sought, user);
        if (found)
            return found;
    }
    return NULL;
}

static bool is_text(const json_t *value, const char *text) {
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

typedef struct anchor {
    gb_schema_reader *reader;
    const json_t *resource;
    const char *fragment; /* "#name" */
} anchor;

/* Whether a schema of the resource, and of none within, has the name. */
static bool has_anchor(const json_t *schema, const void *user) {
    const anchor *sought = user;
    const bool is_named = is_text(json_object_get(schema, "$anchor"), sought->fragment + 1) ||
                          is_text(json_object_get(schema, "$dynamicAnchor"), sought->fragment + 1) ||
                          is_text(json_object_get(schema, gb_id_keyword(sought->reader)), sought->fragment);
    return is_named && gb_resource_of(sought->reader, schema) == sought->resource;
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

/* The resource that a reference with this length before its '#' means; NULL: it is in another document. */
static const json_t *refer_resource(gb_schema_reader *reader, const json_t *schema, const char *reference,
                                    size_t length) {
    const json_t *given = gb_schema_is_given(reader, schema) ? schema : gb_schema_source(reader, schema);
    if (gb_schema_failed(reader))
        return NULL;
    const json_t *from = gb_resource_of(reader, given);
    return length ? gb_find_resource(reader, from, reference, length) : from;
}

typedef struct anchors {
    const char *name;
    size_t *count;
} anchors;

static bool count_anchor(const json_t *schema, const void *user) {
    const anchors *all = user;
    *all->count += is_text(json_object_get(schema, "$dynamicAnchor"), all->name);
    return false;
}

/* Where several schemas have the anchor, which one is meant depends on the way to the reference. */
static bool is_dynamic(const gb_schema_reader *reader, const char *keyword, const char *fragment) {
    size_t count = 0;
    if (strcmp(keyword, "$dynamicRef") == 0)
        gb_schema_search(reader->root, count_anchor, &(anchors){fragment + 1, &count});
    return count > 1;
}

const json_t *gb_schema_refer(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    const char *reference = json_string_value(json_object_get(schema, keyword));
    if (!reference) {
        gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_FORMAT, "expected a string");
        return NULL;
    }
    const size_t length = strcspn(reference, "#");
    const char *fragment = reference[length] ? reference + length : "#";
    const json_t *resource = refer_resource(reader, schema, reference, length);
    if (!resource || is_dynamic(reader, keyword, fragment)) {
        gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_UNSUPPORTED,
                       resource ? "several schemas have the anchor of '%s'"
                                : "'%s' is in another document; put what it means under $defs",
                       reference);
        return NULL;
    }
    const json_t *found = fragment[1] == 0 || fragment[1] == '/'
                              ? follow_pointer(reader, resource, fragment + 1)
                              : gb_schema_search(resource, has_anchor, &(anchor){reader, resource, fragment});
    if (!found)
        gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_FORMAT, "nothing is at '%s'", reference);
    return found;
}
