/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that a schema does not allow.
 */
#include "grammar/schema/negate/negation.h"
#include "grammar/schema/rewrite/made.h"

/* An object that has one of the members, each of which `negated` gives a schema of its own. */
static json_t *with_member(const char *name, json_t *value) {
    return json_pack("{s:s, s:[s], s:{s:o}}", "type", "object", "required", name, "properties", name, value);
}

/* An object with a member whose name and value are as these schemas ask. Takes both. */
static json_t *with_some_member(json_t *names, json_t *value) {
    json_t *object = json_pack("{s:s}", "type", "object");
    json_t *member = json_pack("{s:o, s:o}", "names", names, "value", value);
    if (object && member && json_object_set_new_nocheck(object, GB_SOME_MEMBER, member) == 0)
        return object;
    json_decref(object);
    if (!object)
        json_decref(member);
    return NULL;
}

/* What the member must not be, where the schema itself requires it: missing it breaks that as well. */
static const json_t *required_property(const json_t *schema, const json_t *required, const char *name) {
    const json_t *property = json_object_get(json_object_get(schema, "properties"), name);
    return json_object_get(schema, "required") == required ? property : NULL;
}

/* The names of a list as an object's, which finds one of many at once. */
static json_t *set_of_names(const json_t *names) {
    json_t *set = json_object();
    for (size_t i = 0; set && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name && json_object_set_new(set, name, json_true()) != 0) {
            json_decref(set);
            return NULL;
        }
    }
    return set;
}

/* One of the members is missing, or there and not as the schema's `properties` ask. */
json_t *gb_negate_required(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    if (!json_is_array(value))
        return gb_refuse_negation(at, schema, key, value);
    json_t *parts = json_array();
    for (size_t i = 0; parts && i < json_array_size(value); i++) {
        const char *name = json_string_value(json_array_get(value, i));
        if (!name)
            gb_schema_fail(at->reader, schema, key, GUMBEL_ERROR_FORMAT, "expected a list of strings");
        const json_t *property = name ? required_property(schema, value, name) : NULL;
        json_t *negated = property ? gb_negate_later(property) : json_false();
        parts = gb_append_value(parts, name && negated ? json_pack("{s:s, s:{s:o}}", "type", "object",
                                                                   "properties", name, negated)
                                                       : NULL);
    }
    return gb_any_of(parts);
}

/* One of the members is there and does not satisfy its schema, but for those that are required. */
json_t *gb_negate_properties(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    json_t *required = set_of_names(json_object_get(schema, "required"));
    json_t *parts = required ? json_array() : NULL, *member;
    const char *name;
    (void)at;
    (void)key;
    json_object_foreach(value, name, member) {
        if (!parts || json_object_get(required, name))
            continue;
        json_t *negated = gb_negate_later(member);
        parts = gb_append_value(parts, negated ? with_member(name, negated) : NULL);
    }
    json_decref(required);
    return gb_any_of(parts);
}

/* The same of those whose name a pattern matches. */
json_t *gb_negate_patterns(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    (void)at;
    json_t *parts = json_array(), *member;
    const char *pattern;
    (void)schema;
    (void)key;
    json_object_foreach(value, pattern, member) {
        json_t *negated = gb_negate_later(member);
        json_t *part = negated ? with_some_member(json_pack("{s:s}", "pattern", pattern), negated) : NULL;
        if (!(parts = gb_append_value(parts, part)))
            break;
    }
    return gb_any_of(parts);
}

/* Names that neither properties have nor patternProperties match. */
static json_t *other_names(const json_t *schema) {
    json_t *listed = json_array(), *value;
    const char *name;
    json_object_foreach(json_object_get(schema, "properties"), name, value) {
        if (!(listed = gb_append_value(listed, json_string(name))))
            break;
    }
    json_t *parts = gb_append_value(json_array(), json_pack("{s:{s:o}}", "not", "enum", listed));
    json_object_foreach(json_object_get(schema, "patternProperties"), name, value) {
        if (!parts || !(parts = gb_append_value(parts, json_pack("{s:{s:s}}", "not", "pattern", name))))
            break;
    }
    return json_pack("{s:o}", "allOf", parts);
}

json_t *gb_negate_other_members(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    (void)at;
    (void)key;
    json_t *negated = gb_negate_later(value);
    return negated ? with_some_member(other_names(schema), negated) : NULL;
}

json_t *gb_negate_names(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    (void)schema;
    (void)key;
    json_t *negated = gb_negate_schema(at, value);
    return negated ? with_some_member(negated, json_true()) : NULL;
}

/* What a member does not bring along, though it should: others, or a schema. */
static json_t *miss_dependency(gb_negation *at, const json_t *schema, json_t *value) {
    if (json_is_string(value)) {
        json_t *one = json_pack("[O]", value);
        json_t *missed = one ? gb_negate_required(at, schema, "required", one) : NULL;
        json_decref(one);
        return missed;
    }
    return json_is_array(value) ? gb_negate_required(at, schema, "required", value)
                                : gb_negate_schema(at, value);
}

json_t *gb_negate_dependencies(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    json_t *parts = json_array(), *dependency;
    const char *name;
    (void)key;
    json_object_foreach(value, name, dependency) {
        json_t *missed = miss_dependency(at, schema, dependency);
        json_t *present = json_pack("{s:s, s:[s]}", "type", "object", "required", name);
        if (!(parts = gb_append_value(parts, gb_all_of_two(present, missed))))
            break;
    }
    return gb_any_of(parts);
}
