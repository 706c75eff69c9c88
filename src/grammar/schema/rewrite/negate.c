/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/rewrite/negate.h"

#include "grammar/common/build_json.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/reader/place.h"
#include "grammar/schema/rewrite/honoured.h"

#include <string.h>

enum { MOST_DEPTH = 32 };

/* Where an error is reported: the `not` or `if` that asks for it. */
typedef struct negation {
    gb_schema_reader *reader;
    const json_t *schema;
    const char *keyword;
    unsigned depth;
} negation;

typedef json_t *negate_keyword(negation *at, const char *key, json_t *value);

static json_t *negate(negation *at, const json_t *negated);

/* Values that the expressions of types leave out (gb_excluded). */
static json_t *leave_out(negation *at, const char *key, json_t *value) {
    (void)at;
    return json_pack("{s:{s:O}}", "not", key, value);
}

static json_t *leave_out_text(negation *at, const char *key, json_t *value) {
    (void)at;
    return json_pack("{s:s, s:{s:O}}", "type", "string", "not", key, value);
}

static json_t *refuse(negation *at, const char *key, json_t *value) {
    (void)value;
    gb_schema_fail(at->reader, at->schema, at->keyword, GUMBEL_ERROR_UNSUPPORTED, "\"%s\" cannot be negated",
                   key);
    return NULL;
}

/* A bound of a number. Draft 4's boolean beside it makes the other side unclear. */
static json_t *turn_bound(negation *at, const char *key, json_t *value) {
    const char *turned = !strcmp(key, "minimum")            ? "exclusiveMaximum"
                         : !strcmp(key, "maximum")          ? "exclusiveMinimum"
                         : !strcmp(key, "exclusiveMinimum") ? "maximum"
                                                            : "minimum";
    return json_is_number(value) ? json_pack("{s:s, s:O}", "type", "number", turned, value)
                                 : refuse(at, key, value);
}

/* A count: minLength 3 becomes maxLength 2. */
static json_t *turn_count(negation *at, const char *key, json_t *value) {
    static const struct {
        const char *least, *most, *type;
    } counts[] = {{"minLength", "maxLength", "string"},
                  {"minItems", "maxItems", "array"},
                  {"minProperties", "maxProperties", "object"}};
    if (!json_is_integer(value))
        return refuse(at, key, value);
    const json_int_t count = json_integer_value(value);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (!strcmp(key, counts[i].least))
            return count > 0 ? json_pack("{s:s, s:I}", "type", counts[i].type, counts[i].most, count - 1)
                             : json_false();
        if (!strcmp(key, counts[i].most))
            return json_pack("{s:s, s:I}", "type", counts[i].type, counts[i].least, count + 1);
    }
    return refuse(at, key, value);
}

/* {"anyOf": parts}, which is false without any. Takes parts; NULL if it is. */
static json_t *any_of(json_t *parts) {
    if (parts && json_array_size(parts) == 0) {
        json_decref(parts);
        return json_false();
    }
    return parts ? json_pack("{s:o}", "anyOf", parts) : NULL;
}

/* One of the members is missing. */
static json_t *miss_member(negation *at, const char *key, json_t *value) {
    if (!json_is_array(value))
        return refuse(at, key, value);
    json_t *parts = json_array();
    for (size_t i = 0; parts && i < json_array_size(value); i++) {
        const char *name = json_string_value(json_array_get(value, i));
        parts = gb_append_value(
            parts, json_pack("{s:s, s:{s:b}}", "type", "object", "properties", name ? name : "", 0));
    }
    return any_of(parts);
}

/* One of the members is there and does not satisfy its schema. */
static json_t *break_member(negation *at, const char *key, json_t *value) {
    json_t *parts = json_array(), *member;
    const char *name;
    (void)key;
    json_object_foreach(value, name, member) {
        json_t *negated = negate(at, member);
        json_t *part = negated ? json_pack("{s:s, s:[s], s:{s:o}}", "type", "object", "required", name,
                                           "properties", name, negated)
                               : NULL;
        if (!(parts = gb_append_value(parts, part)))
            break;
    }
    return any_of(parts);
}

/* allOf becomes anyOf, and anyOf allOf, of what is negated. */
static json_t *turn_branches(negation *at, const char *key, json_t *value) {
    json_t *parts = json_array();
    for (size_t i = 0; parts && i < json_array_size(value); i++)
        parts = gb_append_value(parts, negate(at, json_array_get(value, i)));
    if (!parts || strcmp(key, "allOf") == 0)
        return any_of(parts);
    return json_pack("{s:o}", "allOf", parts);
}

static json_t *drop_not(negation *at, const char *key, json_t *value) {
    (void)at;
    (void)key;
    return json_incref(value);
}

static negate_keyword *negation_of(const char *key) {
    static const struct {
        const char *key;
        negate_keyword *negate;
    } negations[] = {{"type", leave_out},
                     {"enum", leave_out},
                     {"const", leave_out},
                     {"pattern", leave_out_text},
                     {"format", leave_out_text},
                     {"minimum", turn_bound},
                     {"maximum", turn_bound},
                     {"exclusiveMinimum", turn_bound},
                     {"exclusiveMaximum", turn_bound},
                     {"minLength", turn_count},
                     {"maxLength", turn_count},
                     {"minItems", turn_count},
                     {"maxItems", turn_count},
                     {"minProperties", turn_count},
                     {"maxProperties", turn_count},
                     {"required", miss_member},
                     {"properties", break_member},
                     {"allOf", turn_branches},
                     {"anyOf", turn_branches},
                     {"not", drop_not}};
    for (size_t i = 0; i < sizeof negations / sizeof negations[0]; i++)
        if (strcmp(key, negations[i].key) == 0)
            return negations[i].negate;
    return refuse;
}

static json_t *negate_member(negation *at, const json_t *negated, const char *key, json_t *value) {
    if (strcmp(key, "$ref") != 0)
        return negation_of(key)(at, key, value);
    const json_t *target = gb_schema_refer(at->reader, negated, key);
    return target ? negate(at, target) : NULL;
}

static json_t *negate_object(negation *at, const json_t *negated) {
    json_t *parts = json_array(), *value;
    const char *key;
    const json_t *honoured = gb_honoured(at->reader, negated);
    json_object_foreach(gb_mutable(honoured), key, value) {
        const gb_keyword_kind kind = gb_keyword_kind_of(at->reader, key);
        if (kind == GB_KEYWORD_ANNOTATION || kind == GB_KEYWORD_PLACE)
            continue;
        if (!(parts = gb_append_value(parts, negate_member(at, honoured, key, value))))
            break;
    }
    return any_of(parts);
}

static json_t *negate(negation *at, const json_t *negated) {
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
    negation at = {.reader = reader, .schema = schema, .keyword = keyword};
    json_t *result = negate(&at, negated);
    if (!result && !gb_schema_failed(reader))
        gb_schema_no_memory(reader);
    return result;
}
