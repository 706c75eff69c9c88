/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/composite/members.h"

#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/string/json_string.h"
#include "grammar/schema/string/pattern.h"

#include <string.h>

static bool add(gb_schema_reader *reader, gb_terms *terms, const json_t *schema, const json_t *parent,
                const char *keyword) {
    if (!schema || json_is_true(schema))
        return true;
    if (!json_is_object(schema) && !json_is_false(schema))
        return gb_schema_fail(reader, parent, keyword, GUMBEL_ERROR_FORMAT,
                              "expected schemas: objects or booleans");
    return gb_terms_add(terms, schema) || gb_schema_no_memory(reader);
}

static bool matches(gb_schema_reader *reader, const json_t *schema, const char *pattern, const char *name) {
    const gb_expression names =
        gb_express_pattern(reader, schema, "patternProperties", pattern, strlen(pattern));
    return names && gb_expression_has(reader, names, name, strlen(name));
}

static bool add_member(gb_schema_reader *reader, const json_t *schema, const char *name, gb_terms *member) {
    const json_t *properties = gb_keyword_object(reader, schema, "properties");
    const json_t *patterns = gb_keyword_object(reader, schema, "patternProperties");
    const json_t *property = json_object_get(properties, name);
    bool is_known = property != NULL;
    if (!gb_expressions_go_on(reader->expressions, GB_WATCH_STEPS / 64))
        return false;
    const char *pattern;
    json_t *value;
    if (!add(reader, member, property, schema, "properties"))
        return false;
    json_object_foreach(gb_mutable(patterns), pattern, value) {
        if (!matches(reader, schema, pattern, name))
            continue;
        is_known = true;
        if (!add(reader, member, value, schema, "patternProperties"))
            return false;
    }
    return is_known || add(reader, member, json_object_get(schema, "additionalProperties"), schema,
                           "additionalProperties");
}

bool gb_member_terms(gb_schema_reader *reader, const gb_terms *terms, const char *name, gb_terms *member) {
    for (size_t i = 0; i < terms->count; i++)
        if (!add_member(reader, terms->items[i], name, member))
            return false;
    return !gb_schema_failed(reader);
}

bool gb_other_member_terms(gb_schema_reader *reader, const gb_terms *terms, const json_t *patterns,
                           uint64_t matched, gb_terms *member) {
    for (size_t i = 0; i < terms->count; i++) {
        const json_t *schema = terms->items[i];
        const json_t *own = gb_keyword_object(reader, schema, "patternProperties");
        bool is_known = false;
        for (size_t k = 0; k < json_array_size(patterns); k++) {
            const json_t *value = json_object_get(own, json_string_value(json_array_get(patterns, k)));
            if (!value || !(matched >> k & 1))
                continue;
            is_known = true;
            if (!add(reader, member, value, schema, "patternProperties"))
                return false;
        }
        if (!is_known && !add(reader, member, json_object_get(schema, "additionalProperties"), schema,
                              "additionalProperties"))
            return false;
    }
    return !gb_schema_failed(reader);
}

bool gb_name_terms(gb_schema_reader *reader, const gb_terms *terms, gb_terms *names) {
    for (size_t i = 0; i < terms->count; i++)
        if (!add(reader, names, json_object_get(terms->items[i], "propertyNames"), terms->items[i],
                 "propertyNames"))
            return false;
    return true;
}

/* The schemas of the first items: prefixItems, or items as a list in older drafts. */
static const json_t *prefix_of(gb_schema_reader *reader, const json_t *schema) {
    const json_t *items = json_object_get(schema, "items");
    const json_t *prefix = gb_keyword_array(reader, schema, "prefixItems");
    if (prefix && json_is_array(items))
        gb_schema_fail(reader, schema, "items", GUMBEL_ERROR_FORMAT, "a list, beside prefixItems");
    return prefix ? prefix : json_is_array(items) ? items : NULL;
}

bool gb_item_terms(gb_schema_reader *reader, const gb_terms *terms, size_t index, gb_terms *item) {
    for (size_t i = 0; i < terms->count; i++) {
        const json_t *schema = terms->items[i], *prefix = prefix_of(reader, schema);
        const bool is_old = json_is_array(json_object_get(schema, "items"));
        const char *keyword = is_old ? "additionalItems" : "items";
        const json_t *value = index < json_array_size(prefix) ? json_array_get(prefix, index)
                                                              : json_object_get(schema, keyword);
        if (!add(reader, item, value, schema,
                 index < json_array_size(prefix) && !is_old ? "prefixItems" : keyword))
            return false;
    }
    return !gb_schema_failed(reader);
}

size_t gb_prefix_count(gb_schema_reader *reader, const gb_terms *terms) {
    size_t most = 0;
    for (size_t i = 0; i < terms->count; i++) {
        const size_t count = json_array_size(prefix_of(reader, terms->items[i]));
        most = count > most ? count : most;
    }
    return most;
}
