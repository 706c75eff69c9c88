/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/reader/resources.h"

#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/reader/place.h"

#include <string.h>

const char *gb_id_keyword(const gb_schema_reader *reader) {
    return reader->draft <= 4 ? "id" : "$id";
}

/* NULL: the schema has none that gives it another base. */
static const char *id_of(const gb_schema_reader *reader, const json_t *schema) {
    const char *id = json_string_value(json_object_get(schema, gb_id_keyword(reader)));
    return id && id[0] != '#' && !gb_reference_stands_alone(reader, schema) ? id : NULL;
}

const json_t *gb_resource_of(gb_schema_reader *reader, const json_t *schema) {
    while (schema && schema != reader->root && !id_of(reader, schema))
        schema = gb_parent_of(&reader->places, reader->root, schema);
    return schema ? schema : reader->root;
}

/* ---- Names of resources -------------------------------------------------------------------------------- */

/* How much of a base is kept before a reference of this form (RFC 3986, 5.2.2). */
static size_t kept_of(const char *base, size_t length, const char *reference) {
    const char *scheme = memchr(base, ':', length);
    const size_t authority = scheme && strncmp(scheme, "://", 3) == 0 ? (size_t)(scheme - base) + 3 : 0;
    if (strncmp(reference, "//", 2) == 0)
        return scheme ? (size_t)(scheme - base) + 1 : 0;
    if (reference[0] == '/')
        return authority + strcspn(base + authority, "/");
    while (length > authority && base[length - 1] != '/')
        length--;
    return length;
}

static bool has_scheme(const char *reference) {
    const size_t length = strcspn(reference, ":/?#");
    return length > 0 && reference[length] == ':';
}

/* Replaces the name of a resource by what the reference means there; both end with a zero. */
static void resolve(gb_byte_buffer *name, const char *reference) {
    const size_t length = name->size ? name->size - 1 : 0;
    name->size = has_scheme(reference) || !length ? 0 : kept_of((const char *)name->data, length, reference);
    gb_buffer_append(name, reference, strcspn(reference, "#"));
    gb_buffer_append(name, "", 1);
}

/* Appends what the resource, one of the document, is called. */
static void append_name(gb_schema_reader *reader, const json_t *resource, gb_byte_buffer *name) {
    const char *id = id_of(reader, resource);
    if (resource != reader->root) {
        const json_t *parent = gb_parent_of(&reader->places, reader->root, resource);
        append_name(reader, gb_resource_of(reader, parent), name);
    }
    if (id)
        resolve(name, id);
}

typedef struct sought {
    gb_schema_reader *reader;
    const gb_byte_buffer *name;
    const json_t *other; /* than this one; NULL: any */
} sought;

static bool is_called(const json_t *schema, const void *user) {
    const sought *wanted = user;
    gb_byte_buffer name = {0};
    if (!id_of(wanted->reader, schema) || schema == wanted->other)
        return false;
    append_name(wanted->reader, schema, &name);
    if (name.failed)
        gb_schema_no_memory(wanted->reader);
    const bool is_same = !name.failed && name.size == wanted->name->size &&
                         memcmp(name.data, wanted->name->data, name.size) == 0;
    gb_buffer_free(&name);
    return is_same;
}

const json_t *gb_find_resource(gb_schema_reader *reader, const json_t *from, const char *reference,
                               size_t length) {
    gb_byte_buffer name = {0}, text = {0};
    gb_buffer_append(&text, reference, length);
    gb_buffer_append(&text, "", 1);
    append_name(reader, from, &name);
    if (!text.failed)
        resolve(&name, (const char *)text.data);
    sought wanted = {reader, &name, NULL};
    const json_t *found =
        name.failed || text.failed ? NULL : gb_schema_search(reader->root, is_called, &wanted);
    wanted.other = found;
    if (found && gb_schema_search(reader->root, is_called, &wanted))
        gb_schema_fail(reader, found, gb_id_keyword(reader), GUMBEL_ERROR_FORMAT,
                       "another schema has it, too");
    if (name.failed || text.failed)
        gb_schema_no_memory(reader);
    gb_buffer_free(&name);
    gb_buffer_free(&text);
    return found;
}
