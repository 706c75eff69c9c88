/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/reader/types.h"

#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/rewrite/made.h"

#include <math.h>
#include <string.h>

/* 0: no such type. */
static unsigned type_named(const char *name) {
    static const struct {
        const char *name;
        unsigned type;
    } types[] = {{"null", GB_TYPE_NULL},     {"boolean", GB_TYPE_BOOLEAN}, {"integer", GB_TYPE_INTEGER},
                 {"number", GB_TYPE_NUMBER}, {"string", GB_TYPE_STRING},   {"array", GB_TYPE_ARRAY},
                 {"object", GB_TYPE_OBJECT}};
    for (size_t i = 0; name && i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].type;
    return 0;
}

unsigned gb_type_keyword(gb_schema_reader *reader, const json_t *schema) {
    const json_t *names = json_object_get(schema, "type");
    unsigned types = 0;
    if (!names)
        return GB_TYPE_ANY;
    const size_t count = json_is_array(names) ? json_array_size(names) : 1;
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_is_array(names) ? json_array_get(names, i) : names);
        const unsigned type = type_named(name);
        if (!type)
            gb_schema_fail(reader, schema, "type", GUMBEL_ERROR_FORMAT,
                           "expected null, boolean, integer, number, string, array, object, or a list of "
                           "them, found %s%s",
                           name ? "" : "something else", name ? name : "");
        types |= type;
    }
    return types;
}

static unsigned types_of_schema(gb_schema_reader *reader, const json_t *schema) {
    const json_t *nullable = json_object_get(schema, "nullable");
    const json_t *excluded = json_object_get(schema, GB_EXCLUDED);
    unsigned types = gb_type_keyword(reader, schema);
    if (nullable && !json_is_boolean(nullable))
        gb_schema_fail(reader, schema, "nullable", GUMBEL_ERROR_FORMAT, "expected true or false");
    if (json_is_true(nullable) && types == GB_TYPE_ANY && !json_object_get(schema, "type"))
        gb_schema_fail(reader, schema, "nullable", GUMBEL_ERROR_UNSUPPORTED,
                       "needs a type beside it; use anyOf with {\"type\": \"null\"}");
    types |= json_is_true(nullable) ? GB_TYPE_NULL : 0u;
    if (json_object_get(excluded, "type"))
        types &= ~gb_type_keyword(reader, excluded);
    return types;
}

unsigned gb_types_of(gb_schema_reader *reader, const gb_terms *terms) {
    unsigned types = GB_TYPE_ANY;
    for (size_t i = 0; i < terms->count; i++)
        types &= types_of_schema(reader, terms->items[i]);
    return types;
}

unsigned gb_type_of(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_NULL:
        return GB_TYPE_NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        return GB_TYPE_BOOLEAN;
    case JSON_INTEGER:
        return GB_TYPE_INTEGER;
    case JSON_REAL:
        return floor(json_real_value(value)) == json_real_value(value) ? GB_TYPE_INTEGER : GB_TYPE_FRACTION;
    case JSON_STRING:
        return GB_TYPE_STRING;
    case JSON_ARRAY:
        return GB_TYPE_ARRAY;
    default:
        return GB_TYPE_OBJECT;
    }
}
