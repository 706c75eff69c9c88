/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/rewrite/rewrite.h"

#include "grammar/common/build_json.h"
#include "grammar/schema/composite/dependencies.h"
#include "grammar/schema/negate/negate.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/rewrite/made.h"
#include "grammar/schema/rewrite/unevaluated.h"

#include <string.h>

const json_t *gb_excluded(const json_t *schema) {
    return json_object_get(schema, GB_EXCLUDED);
}

enum { MOST_LISTS = 4 };

static json_t *rewrite_not(gb_schema_reader *reader, const json_t *schema) {
    return gb_negate(reader, schema, "not", json_object_get(schema, "not"));
}

/* Both of them, of which either may be missing. Takes `condition`. */
static json_t *both(json_t *condition, json_t *consequence) {
    return condition ? json_pack("{s:[o, O]}", "allOf", condition, consequence ? consequence : json_true())
                     : NULL;
}

static json_t *rewrite_if(gb_schema_reader *reader, const json_t *schema) {
    (void)reader;
    json_t *condition = json_object_get(schema, "if");
    json_t *then = json_object_get(schema, "then"), *otherwise = json_object_get(schema, "else");
    if (!then && !otherwise)
        return json_true();
    json_t *first = both(json_incref(condition), then);
    json_t *second = both(gb_negate_later(condition), otherwise);
    json_t *made = first && second ? json_pack("{s:[O, O]}", "anyOf", first, second) : NULL;
    json_decref(first);
    json_decref(second);
    return made;
}

static const char condition_keyword[] = "if";

const json_t *gb_rewritten_if(gb_schema_reader *reader, const json_t *schema) {
    return gb_rewritten(reader, schema, condition_keyword, rewrite_if);
}

/* The member is missing, or the schema holds as well. */
static json_t *depend(const char *member, json_t *schema) {
    return json_pack("{s:[{s:{s:b}}, {s:[{s:[s]}, O]}]}", "anyOf", "properties", member, 0, "allOf",
                     "required", member, schema);
}

/* Whether objects look at the dependency themselves, which they do where members have no order. */
static bool is_left(const gb_schema_reader *reader, const json_t *value) {
    return (gb_are_names(value) && !reader->options.in_order) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

/* In order each list doubles the ways to read an object. */
static bool check_lists(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    size_t lists = 0;
    const char *member;
    json_t *value;
    json_object_foreach(json_object_get(schema, keyword), member, value) lists +=
        gb_are_names(value) && !is_left(reader, value);
    return lists <= MOST_LISTS || gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_UNSUPPORTED,
                                                 "in order, beside more than %d lists", MOST_LISTS);
}

/* keyword: of members, each with a list of others that it requires or a schema. */
static json_t *rewrite_dependencies(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    const json_t *dependencies = gb_keyword_object(reader, schema, keyword);
    json_t *all = json_array(), *value;
    const char *member;
    if (!check_lists(reader, schema, keyword)) {
        json_decref(all);
        return NULL;
    }
    json_object_foreach(gb_mutable(dependencies), member, value) {
        if (is_left(reader, value))
            continue;
        json_t *required = json_is_string(value)  ? json_pack("{s:[O]}", "required", value)
                           : json_is_array(value) ? json_pack("{s:O}", "required", value)
                                                  : json_incref(value);
        all = gb_append_value(all, required ? depend(member, required) : NULL);
        json_decref(required);
        if (!all)
            break;
    }
    if (dependencies && all)
        return json_pack("{s:o}", "allOf", all);
    json_decref(all);
    return NULL;
}

static json_t *rewrite_dependent_required(gb_schema_reader *reader, const json_t *schema) {
    return rewrite_dependencies(reader, schema, "dependentRequired");
}

static json_t *rewrite_dependent_schemas(gb_schema_reader *reader, const json_t *schema) {
    return rewrite_dependencies(reader, schema, "dependentSchemas");
}

static json_t *rewrite_old_dependencies(gb_schema_reader *reader, const json_t *schema) {
    return rewrite_dependencies(reader, schema, "dependencies");
}

static bool add(gb_schema_reader *reader, gb_terms *made, const json_t *term) {
    return term && (gb_terms_add(made, term) || gb_schema_no_memory(reader));
}

static bool add_unevaluated(gb_schema_reader *reader, const json_t *schema, gb_terms *made) {
    static const char *const keywords[] = {"unevaluatedProperties", "unevaluatedItems"};
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (json_object_get(schema, keywords[i]) &&
            !add(reader, made, gb_unevaluated(reader, schema, keywords[i])))
            return false;
    return true;
}

bool gb_rewrite(gb_schema_reader *reader, const json_t *schema, gb_terms *made) {
    static const struct {
        const char *keyword;
        gb_rewriter *rewrite;
    } rewriters[] = {{"not", rewrite_not},
                     {condition_keyword, rewrite_if},
                     {"dependentRequired", rewrite_dependent_required},
                     {"dependentSchemas", rewrite_dependent_schemas},
                     {"dependencies", rewrite_old_dependencies}};
    for (size_t i = 0; i < sizeof rewriters / sizeof rewriters[0]; i++) {
        if (!json_object_get(schema, rewriters[i].keyword))
            continue;
        const json_t *term = gb_rewritten(reader, schema, rewriters[i].keyword, rewriters[i].rewrite);
        if (!add(reader, made, term))
            return false;
    }
    return add_unevaluated(reader, schema, made);
}
