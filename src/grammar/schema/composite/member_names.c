/* SPDX-License-Identifier: Apache-2.0
 *
 * Which members an object has by their names, and which of them require others.
 */
#include "base/memory.h"
#include "grammar/schema/composite/dependencies.h"
#include "grammar/schema/composite/members.h"
#include "grammar/schema/composite/object_parts.h"

#include <string.h>

enum { MOST_PATTERNS = 64 };

/* Notes whether the member of the name is required. False, with the error, without memory. */
static bool list_name(gb_object_parts *object, const char *name, bool is_required) {
    return json_object_set_new(object->names, name, json_boolean(is_required)) == 0 ||
           gb_schema_no_memory(object->reader);
}

static void list_properties(gb_object_parts *object, const json_t *schema) {
    const json_t *properties = gb_keyword_object(object->reader, schema, "properties");
    const json_t *patterns = gb_keyword_object(object->reader, schema, "patternProperties");
    const char *name;
    json_t *value;
    size_t i;
    json_object_foreach(gb_mutable(properties), name, value) if (!json_object_get(object->names, name))
        list_name(object, name, false);
    json_object_foreach(gb_mutable(patterns), name, value) {
        if (json_array_size(object->patterns) > MOST_PATTERNS)
            break; /* an error of gb_list_members */
        bool is_listed = false;
        json_t *listed;
        json_array_foreach(object->patterns, i, listed) is_listed |= !strcmp(json_string_value(listed), name);
        if (!is_listed && json_array_append_new(object->patterns, json_string(name)) != 0)
            gb_schema_no_memory(object->reader);
    }
}

/* Draft 3 and mistakes have a boolean here. */
static void list_required(gb_object_parts *object, const json_t *schema) {
    const json_t *required = gb_keyword_array(object->reader, schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (!name)
            gb_schema_fail(object->reader, schema, "required", GUMBEL_ERROR_FORMAT,
                           "expected a list of strings");
        else
            list_name(object, name, true);
    }
}

static void list_needs(gb_object_parts *object, const json_t *schema) {
    const char *member;
    json_t *list, *name;
    size_t i;
    if (!gb_read_dependencies(object->reader, schema, object->needs))
        return;
    json_object_foreach(object->needs, member, list) {
        if (!json_object_get(object->names, member))
            list_name(object, member, false);
        json_array_foreach(list, i, name) if (!json_object_get(object->names, json_string_value(name)))
            list_name(object, json_string_value(name), false);
    }
}

bool gb_list_members(gb_object_parts *object) {
    for (size_t i = 0; i < object->terms->count; i++)
        list_properties(object, object->terms->items[i]);
    for (size_t i = 0; i < object->terms->count; i++)
        list_required(object, object->terms->items[i]);
    for (size_t i = 0; i < object->terms->count && object->needs; i++)
        list_needs(object, object->terms->items[i]);
    if (json_array_size(object->patterns) > MOST_PATTERNS)
        gb_schema_fail(object->reader, object->terms->items[0], "patternProperties", GUMBEL_ERROR_UNSUPPORTED,
                       "more than %d patterns for one object", MOST_PATTERNS);
    return gb_name_terms(object->reader, object->terms, &object->key_terms) &&
           !gb_schema_failed(object->reader);
}

/* Where the name stands among the items, which are all there beside needs. */
static uint32_t index_of(const gb_object_parts *object, const char *name) {
    uint32_t index = 0;
    const char *key;
    json_t *value;
    json_object_foreach(object->names, key, value) {
        if (strcmp(key, name) == 0)
            break;
        index++;
    }
    return index;
}

bool gb_add_implications(gb_object_parts *object) {
    const char *member;
    json_t *list, *name;
    size_t i;
    json_object_foreach(object->needs, member, list) {
        const uint32_t item = index_of(object, member);
        json_array_foreach(list, i, name) {
            if (!gb_grow((void **)&object->implications, &object->implication_capacity,
                         object->implication_count + 1, sizeof *object->implications) ||
                !gb_schema_work(object->reader, object->terms->items[0]))
                return gb_schema_no_memory(object->reader);
            object->implications[object->implication_count++] =
                (gb_implication){item, index_of(object, json_string_value(name))};
        }
    }
    return true;
}
