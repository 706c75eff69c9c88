/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/negate/negate.h"

#include "grammar/schema/negate/negation.h"
#include "grammar/schema/reader/place.h"
#include "grammar/schema/rewrite/honoured.h"
#include "grammar/schema/rewrite/made.h"

enum { MOST_DEPTH = 32 };

json_t *gb_refuse_negation(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    (void)schema;
    (void)value;
    gb_schema_fail(at->reader, at->schema, at->keyword, GUMBEL_ERROR_UNSUPPORTED, "\"%s\" cannot be negated",
                   key);
    return NULL;
}

json_t *gb_refuse_many(gb_negation *at, const char *key) {
    gb_schema_fail(at->reader, at->schema, at->keyword, GUMBEL_ERROR_LIMIT,
                   "\"%s\" of more than %d schemas cannot be negated", key, GB_MOST_NEGATED);
    return NULL;
}

json_t *gb_negate_later(const json_t *negated) {
    if (json_is_boolean(negated))
        return json_boolean(json_is_false(negated));
    json_t *schema = json_object();
    if (schema && json_object_set_nocheck(schema, GB_NEGATED, gb_mutable(negated)) == 0)
        return schema;
    json_decref(schema);
    return NULL;
}

json_t *gb_any_of(json_t *parts) {
    if (parts && json_array_size(parts) == 0) {
        json_decref(parts);
        return json_false();
    }
    return parts ? json_pack("{s:o}", "anyOf", parts) : NULL;
}

json_t *gb_all_of_two(json_t *a, json_t *b) {
    return json_pack("{s:o}", "allOf", gb_append_value(gb_append_value(json_array(), a), b));
}

/* NULL: the keyword says something of another one only. */
static gb_negate_keyword *negation_of(const char *key) {
    static const struct {
        const char *key;
        gb_negate_keyword *negate;
    } negations[] = {{"type", gb_negate_leave_out},
                     {"enum", gb_negate_values},
                     {"const", gb_negate_values},
                     {"pattern", gb_negate_pattern},
                     {"format", gb_negate_format},
                     {"multipleOf", gb_negate_multiple},
                     {"minimum", gb_negate_bound},
                     {"maximum", gb_negate_bound},
                     {"exclusiveMinimum", gb_negate_bound},
                     {"exclusiveMaximum", gb_negate_bound},
                     {"minLength", gb_negate_count},
                     {"maxLength", gb_negate_count},
                     {"minItems", gb_negate_count},
                     {"maxItems", gb_negate_count},
                     {"minProperties", gb_negate_count},
                     {"maxProperties", gb_negate_count},
                     {"required", gb_negate_required},
                     {"properties", gb_negate_properties},
                     {"patternProperties", gb_negate_patterns},
                     {"additionalProperties", gb_negate_other_members},
                     {"propertyNames", gb_negate_names},
                     {"dependencies", gb_negate_dependencies},
                     {"dependentRequired", gb_negate_dependencies},
                     {"dependentSchemas", gb_negate_dependencies},
                     {"items", gb_negate_items},
                     {"prefixItems", gb_negate_prefix_items},
                     {"additionalItems", gb_negate_other_items},
                     {"contains", gb_negate_contains},
                     {"minContains", NULL},
                     {"maxContains", NULL},
                     {"allOf", gb_negate_branches},
                     {"anyOf", gb_negate_branches},
                     {"oneOf", gb_negate_one_of},
                     {GB_NEGATED, gb_negate_not},
                     {GB_EVALUATED, gb_negate_branches},
                     {"unevaluatedProperties", gb_negate_unevaluated},
                     {"unevaluatedItems", gb_negate_unevaluated},
                     {"if", gb_negate_if},
                     {"then", NULL},
                     {"else", NULL},
                     {"not", gb_negate_not}};
    for (size_t i = 0; i < sizeof negations / sizeof negations[0]; i++)
        if (strcmp(key, negations[i].key) == 0)
            return negations[i].negate;
    return gb_refuse_negation;
}

static json_t *negate_member(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    if (strcmp(key, "$ref") != 0)
        return negation_of(key)(at, schema, key, value);
    const json_t *target = gb_schema_refer(at->reader, schema, key);
    return target ? gb_negate_later(target) : NULL;
}

/* Keywords that are not what they have to be are errors, however little they would leave. */
static bool check_shapes(gb_schema_reader *reader, const json_t *schema) {
    static const char *const arrays[] = {"allOf", "anyOf", "oneOf", "enum", "required", "prefixItems"};
    static const char *const objects[] = {"properties", "patternProperties", "dependencies",
                                          "dependentRequired", "dependentSchemas"};
    bool asserts;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        const json_t *array = gb_keyword_array(reader, schema, arrays[i]);
        if (array && i < 3 && json_array_size(array) == 0)
            gb_schema_fail(reader, schema, arrays[i], GUMBEL_ERROR_FORMAT, "expected at least one schema");
    }
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
        gb_keyword_object(reader, schema, objects[i]);
    return gb_check_keywords(reader, schema, &asserts);
}

static json_t *negate_object(gb_negation *at, const json_t *negated) {
    json_t *parts = json_array(), *value;
    const char *key;
    const json_t *honoured = gb_honoured(at->reader, negated);
    if (!honoured || !check_shapes(at->reader, honoured)) {
        json_decref(parts);
        return NULL;
    }
    json_object_foreach(gb_mutable(honoured), key, value) {
        const gb_keyword_kind kind = gb_keyword_kind_of(at->reader, key);
        if (kind == GB_KEYWORD_ANNOTATION || kind == GB_KEYWORD_PLACE || !negation_of(key))
            continue;
        if (!(parts = gb_append_value(parts, negate_member(at, honoured, key, value))))
            break;
    }
    return gb_any_of(parts);
}

json_t *gb_negate_schema(gb_negation *at, const json_t *negated) {
    if (json_is_boolean(negated))
        return json_boolean(json_is_false(negated));
    if (!json_is_object(negated)) {
        gb_schema_fail(at->reader, at->schema, at->keyword, GUMBEL_ERROR_FORMAT,
                       "expected a schema: an object or a boolean");
        return NULL;
    }
    if (at->depth == MOST_DEPTH) {
        gb_schema_fail(at->reader, at->schema, at->keyword, GUMBEL_ERROR_LIMIT,
                       "what is negated is deeper than %d schemas", MOST_DEPTH);
        return NULL;
    }
    at->depth++;
    json_t *result = gb_schema_work(at->reader, at->schema) ? negate_object(at, negated) : NULL;
    at->depth--;
    return result;
}

json_t *gb_negate(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                  const json_t *negated) {
    gb_negation at = {.reader = reader, .schema = schema, .keyword = keyword};
    json_t *result = gb_negate_schema(&at, negated);
    if (!result && !gb_schema_failed(reader))
        gb_schema_no_memory(reader);
    return result;
}

static json_t *negate_whole(gb_schema_reader *reader, const json_t *schema) {
    return gb_negate(reader, schema, NULL, schema);
}

const json_t *gb_negated(gb_schema_reader *reader, const json_t *schema) {
    return gb_rewritten(reader, schema, GB_NEGATED, negate_whole);
}
