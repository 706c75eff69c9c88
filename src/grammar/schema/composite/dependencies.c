/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/composite/dependencies.h"

static const char *const keywords[] = {"dependentRequired", "dependencies"};

enum { KEYWORD_COUNT = sizeof keywords / sizeof keywords[0] };

static bool add_need(gb_schema_reader *reader, json_t *needs, const char *member, const json_t *name) {
    json_t *list = json_object_get(needs, member);
    if (!list && json_object_set_new(needs, member, list = json_array()) != 0)
        return gb_schema_no_memory(reader);
    return json_array_append(list, gb_mutable(name)) == 0 || gb_schema_no_memory(reader);
}

/* A list of names, or one name as draft 3 has it. */
static bool add_needs(gb_schema_reader *reader, const json_t *schema, const char *keyword, json_t *needs,
                      const char *member, const json_t *value) {
    if (json_is_string(value))
        return add_need(reader, needs, member, value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *name = json_array_get(value, i);
        if (!json_is_string(name))
            return gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_FORMAT, "expected lists of strings");
        if (!add_need(reader, needs, member, name))
            return false;
    }
    return true;
}

bool gb_read_dependencies(gb_schema_reader *reader, const json_t *schema, json_t *needs) {
    for (size_t i = 0; i < KEYWORD_COUNT; i++) {
        const json_t *dependencies = gb_keyword_object(reader, schema, keywords[i]);
        const char *member;
        json_t *value;
        json_object_foreach(gb_mutable(dependencies), member, value) {
            if (gb_are_names(value) && !add_needs(reader, schema, keywords[i], needs, member, value))
                return false;
        }
    }
    return !gb_schema_failed(reader);
}

bool gb_lacks_dependency(gb_schema_reader *reader, const json_t *schema, const json_t *value) {
    json_t *needs = json_object(), *list;
    const char *member;
    bool lacks = false;
    if (!needs)
        return !gb_schema_no_memory(reader);
    gb_read_dependencies(reader, schema, needs);
    json_object_foreach(needs, member, list) {
        for (size_t i = 0; json_object_get(value, member) && i < json_array_size(list); i++)
            lacks |= !json_object_get(value, json_string_value(json_array_get(list, i)));
    }
    json_decref(needs);
    return lacks;
}
