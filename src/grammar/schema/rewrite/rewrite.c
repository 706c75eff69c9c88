/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/rewrite/rewrite.h"

#include "base/memory.h"
#include "grammar/common/build_json.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/rewrite/negate.h"

#include <string.h>

const json_t *gb_excluded(const json_t *schema) {
    static const char *const keywords[] = {"type", "enum", "const", "pattern", "format"};
    const json_t *excluded = json_object_get(schema, "not");
    if (!json_is_object(excluded) || json_object_size(excluded) != 1)
        return NULL;
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (json_object_get(excluded, keywords[i]))
            return excluded;
    return NULL;
}

static json_t *rewrite_not(gb_schema_reader *reader, const json_t *schema) {
    return gb_excluded(schema) ? json_true()
                               : gb_negate(reader, schema, "not", json_object_get(schema, "not"));
}

/* Both of them, of which either may be missing. Takes `condition`. */
static json_t *both(json_t *condition, json_t *consequence) {
    return condition ? json_pack("{s:[o, O]}", "allOf", condition, consequence ? consequence : json_true())
                     : NULL;
}

static json_t *rewrite_if(gb_schema_reader *reader, const json_t *schema) {
    json_t *condition = json_object_get(schema, "if");
    json_t *then = json_object_get(schema, "then"), *otherwise = json_object_get(schema, "else");
    if (!then && !otherwise)
        return json_true();
    json_t *first = both(json_incref(condition), then);
    json_t *second = both(gb_negate(reader, schema, "if", condition), otherwise);
    json_t *made = first && second ? json_pack("{s:[O, O]}", "anyOf", first, second) : NULL;
    json_decref(first);
    json_decref(second);
    return made;
}

/* The member is missing, or the schema holds as well. */
static json_t *depend(const char *member, json_t *schema) {
    return json_pack("{s:[{s:{s:b}}, {s:[{s:[s]}, O]}]}", "anyOf", "properties", member, 0, "allOf",
                     "required", member, schema);
}

/* keyword: of members, each with a list of others that it requires or a schema. */
static json_t *rewrite_dependencies(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    const json_t *dependencies = gb_keyword_object(reader, schema, keyword);
    json_t *all = json_array(), *value;
    const char *member;
    json_object_foreach(gb_mutable(dependencies), member, value) {
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

const json_t *gb_keep_schema(gb_schema_reader *reader, json_t *schema, const json_t *source) {
    if (schema && gb_grow((void **)&reader->made, &reader->made_capacity, reader->made_count + 1,
                          sizeof *reader->made)) {
        reader->made[reader->made_count++] = (gb_made_schema){schema, source};
        return schema;
    }
    json_decref(schema);
    gb_schema_no_memory(reader);
    return NULL;
}

const json_t *gb_rewritten(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                           gb_rewriter *rewrite) {
    const json_t *const pair[] = {schema, (const json_t *)(uintptr_t)keyword};
    const gb_terms key = {.items = (const json_t **)(uintptr_t)pair, .count = 2};
    const uint32_t *known = gb_terms_map_at(&reader->rewritten, &key);
    if (known && *known)
        return reader->made[*known - 1].schema;
    const json_t *made = known ? gb_keep_schema(reader, rewrite(reader, schema), schema) : NULL;
    const size_t number = reader->made_count;
    uint32_t *added = made ? gb_terms_map_at(&reader->rewritten, &key) : NULL;
    if (!added) {
        gb_schema_no_memory(reader);
        return NULL;
    }
    *added = (uint32_t)number;
    return made;
}

bool gb_rewrite(gb_schema_reader *reader, const json_t *schema, gb_terms *made) {
    static const struct {
        const char *keyword;
        gb_rewriter *rewrite;
    } rewriters[] = {{"not", rewrite_not},
                     {"if", rewrite_if},
                     {"dependentRequired", rewrite_dependent_required},
                     {"dependentSchemas", rewrite_dependent_schemas},
                     {"dependencies", rewrite_old_dependencies}};
    for (size_t i = 0; i < sizeof rewriters / sizeof rewriters[0]; i++) {
        if (!json_object_get(schema, rewriters[i].keyword))
            continue;
        const json_t *term = gb_rewritten(reader, schema, rewriters[i].keyword, rewriters[i].rewrite);
        if (!term)
            return false;
        if (!gb_terms_add(made, term))
            return gb_schema_no_memory(reader);
    }
    return true;
}
