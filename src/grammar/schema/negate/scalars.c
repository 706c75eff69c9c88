/* SPDX-License-Identifier: Apache-2.0
 *
 * Types, listed values, texts and numbers that a schema does not allow.
 */
#include "grammar/schema/negate/negation.h"
#include "grammar/schema/rewrite/made.h"
#include "grammar/schema/string/formats.h"

/* Values of the type (NULL: any) but for those that the key's value allows, which is taken. */
static json_t *leave_out(const char *type, const char *key, json_t *value) {
    json_t *schema = type ? json_pack("{s:s}", "type", type) : json_object();
    json_t *excluded = json_pack("{s:o}", key, value);
    if (schema && excluded && json_object_set_nocheck(schema, GB_EXCLUDED, excluded) == 0) {
        json_decref(excluded);
        return schema;
    }
    json_decref(schema);
    json_decref(excluded);
    return NULL;
}

json_t *gb_negate_leave_out(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    (void)at;
    (void)schema;
    return leave_out(NULL, key, json_incref(value));
}

json_t *gb_negate_pattern(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    (void)at;
    (void)schema;
    return leave_out("string", key, json_incref(value));
}

/* All strings are left out that may be of the format. */
json_t *gb_negate_format(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    const gb_string_format *format = json_is_string(value) ? gb_find_format(json_string_value(value)) : NULL;
    if (!format || !format->outer)
        return gb_refuse_negation(at, schema, key, value);
    return *format->outer ? leave_out("string", key, json_incref(value)) : json_false();
}

json_t *gb_negate_multiple(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    (void)at;
    (void)schema;
    return leave_out("number", key, json_incref(value));
}

/* A bound of a number. Draft 4's boolean beside it makes the other side unclear. */
json_t *gb_negate_bound(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    const char *turned = !strcmp(key, "minimum")            ? "exclusiveMaximum"
                         : !strcmp(key, "maximum")          ? "exclusiveMinimum"
                         : !strcmp(key, "exclusiveMinimum") ? "maximum"
                                                            : "minimum";
    return json_is_number(value) ? json_pack("{s:s, s:O}", "type", "number", turned, value)
                                 : gb_refuse_negation(at, schema, key, value);
}

static const char *type_of_count(const char *key) {
    return strcmp(key + 3, "Length") == 0 ? "string" : strcmp(key + 3, "Items") == 0 ? "array" : "object";
}

/* A count: minLength 3 becomes maxLength 2. */
json_t *gb_negate_count(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    static const struct {
        const char *least, *most;
    } counts[] = {{"minLength", "maxLength"}, {"minItems", "maxItems"}, {"minProperties", "maxProperties"}};
    const char *type = type_of_count(key);
    if (!json_is_integer(value))
        return gb_refuse_negation(at, schema, key, value);
    const json_int_t count = json_integer_value(value);
    if (count >= GB_NO_END) /* nothing is as long */
        return strncmp(key, "max", 3) == 0 ? json_false() : json_pack("{s:s}", "type", type_of_count(key));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (!strcmp(key, counts[i].least))
            return count > 0 ? json_pack("{s:s, s:I}", "type", type, counts[i].most, count - 1)
                             : json_false();
        if (!strcmp(key, counts[i].most))
            return json_pack("{s:s, s:I}", "type", type, counts[i].least, count + 1);
    }
    return gb_refuse_negation(at, schema, key, value);
}

/* ---- Listed values ------------------------------------------------------------------------------------- */

static json_t *schema_of_value(const json_t *value);

static json_t *schema_of_array(const json_t *array) {
    const json_int_t count = (json_int_t)json_array_size(array);
    json_t *items = json_array();
    for (size_t i = 0; items && i < json_array_size(array); i++)
        items = gb_append_value(items, schema_of_value(json_array_get(array, i)));
    return json_pack("{s:s, s:I, s:I, s:o}", "type", "array", "minItems", count, "maxItems", count,
                     "prefixItems", items);
}

static json_t *schema_of_object(const json_t *object) {
    json_t *members = json_object(), *names = json_array(), *value;
    const char *name;
    json_object_foreach(gb_mutable(object), name, value) {
        members = members ? gb_set_member(members, name, schema_of_value(value)) : NULL;
        names = names ? gb_append_value(names, json_string(name)) : NULL;
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "required", names, "properties", members,
                     "additionalProperties", 0);
}

/* What this value alone satisfies. */
static json_t *schema_of_value(const json_t *value) {
    return json_is_array(value)    ? schema_of_array(value)
           : json_is_object(value) ? schema_of_object(value)
                                   : json_pack("{s:O}", "const", value);
}

/* Takes parts; adds what is neither of an array or object. */
static json_t *add_other_than(gb_negation *at, json_t *parts, const json_t *value) {
    json_t *only = schema_of_value(value);
    json_t *other = only ? gb_negate_schema(at, only) : NULL;
    json_decref(only);
    return gb_append_value(parts, other);
}

static bool is_composite(const json_t *value) {
    return json_is_array(value) || json_is_object(value);
}

/* Takes both lists: none of the scalars, and each of the parts. */
static json_t *none_of(json_t *scalars, json_t *parts) {
    json_t *none = leave_out(NULL, "enum", scalars);
    if (!parts || json_array_size(parts) > 0)
        return json_pack("{s:o}", "allOf", gb_append_value(parts, none));
    json_decref(parts);
    return none;
}

json_t *gb_negate_values(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    const bool is_list = strcmp(key, "enum") == 0;
    const size_t count = is_list ? json_array_size(value) : 1;
    json_t *scalars = json_array(), *parts = json_array();
    if (is_list && !json_is_array(value)) {
        json_decref(scalars);
        json_decref(parts);
        return gb_refuse_negation(at, schema, key, value);
    }
    for (size_t i = 0; i < count && scalars && parts; i++) {
        json_t *one = is_list ? json_array_get(value, i) : value;
        if (is_composite(one))
            parts = add_other_than(at, parts, one);
        else
            scalars = gb_append_value(scalars, json_incref(one));
    }
    return none_of(scalars, parts);
}
