/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/composite/some_member.h"

#include "grammar/common/build_json.h"
#include "grammar/schema/alternatives/candidates.h"
#include "grammar/schema/composite/dependencies.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/rewrite/made.h"

/* Demands that are still to be met are [next, demands.count). */
typedef struct choice {
    gb_schema_reader *reader;
    gb_express_demanded *express;
    bool is_tagged;
    gb_terms demands;
    json_t *names; /* {"a": null} of the members that properties name */
} choice;

/* ---- What is demanded and named ------------------------------------------------------------------------ */

static bool list_demands(gb_schema_reader *reader, const gb_terms *terms, gb_terms *demands) {
    for (size_t i = 0; i < terms->count; i++) {
        const json_t *demand = json_object_get(terms->items[i], GB_SOME_MEMBER);
        if (demand && !gb_terms_add(demands, demand))
            return gb_schema_no_memory(reader);
    }
    return true;
}

static bool add_name(choice *all, const char *name) {
    return json_object_set_new(all->names, name, json_null()) == 0 || gb_schema_no_memory(all->reader);
}

/* Names that dependencies list are members, too. */
static bool list_needs(choice *all, const json_t *schema) {
    json_t *needs = json_object(), *list, *name;
    const char *member;
    size_t i;
    bool is_listed =
        needs ? gb_read_dependencies(all->reader, schema, needs) : gb_schema_no_memory(all->reader);
    json_object_foreach(needs, member, list) {
        is_listed = is_listed && add_name(all, member);
        json_array_foreach(list, i, name) is_listed = is_listed && add_name(all, json_string_value(name));
    }
    json_decref(needs);
    return is_listed;
}

static bool list_names(choice *all, const json_t *schema) {
    const char *name;
    json_t *value;
    const json_t *required = json_object_get(schema, "required");
    json_object_foreach(json_object_get(schema, "properties"), name, value) {
        if (!add_name(all, name))
            return false;
    }
    for (size_t k = 0; k < json_array_size(required); k++)
        if (json_is_string(json_array_get(required, k)) &&
            !add_name(all, json_string_value(json_array_get(required, k))))
            return false;
    return all->reader->options.in_order || list_needs(all, schema);
}

static bool list_all_names(choice *all, const gb_terms *terms) {
    for (size_t i = 0; i < terms->count; i++)
        if (!list_names(all, terms->items[i]))
            return false;
    return true;
}

/* ---- Ways to meet them --------------------------------------------------------------------------------- */

static gb_expression meet(choice *all, const gb_terms *terms, const gb_terms *unnamed, size_t next);

/* The member of this name meets the demand. */
static gb_expression meet_by_name(choice *all, const gb_terms *terms, const gb_terms *unnamed, size_t next,
                                  const char *name) {
    json_t *value = json_object_get(all->demands.items[next], "value");
    const json_t *made = gb_keep_schema(
        all->reader, json_pack("{s:[s], s:{s:O}}", "required", name, "properties", name, value),
        terms->items[0]);
    gb_terms more = {0};
    gb_expression met = 0;
    if (made && gb_terms_add_all(&more, terms) && gb_terms_add(&more, made))
        met = meet(all, &more, unnamed, next + 1);
    else
        gb_schema_no_memory(all->reader);
    gb_terms_free(&more);
    return met;
}

static gb_expression meet_unnamed(choice *all, const gb_terms *terms, const gb_terms *unnamed, size_t next) {
    gb_terms more = {0};
    gb_expression met = 0;
    if (gb_terms_add_all(&more, unnamed) && gb_terms_add(&more, all->demands.items[next]))
        met = meet(all, terms, &more, next + 1);
    else
        gb_schema_no_memory(all->reader);
    gb_terms_free(&more);
    return met;
}

static gb_expression meet(choice *all, const gb_terms *terms, const gb_terms *unnamed, size_t next) {
    gb_value_parts ways = {0};
    const char *name;
    json_t *value;
    if (!gb_schema_work(all->reader, terms->items[0]))
        return 0;
    if (next == all->demands.count)
        return all->express(all->reader, terms, unnamed, all->is_tagged);
    json_object_foreach(all->names, name, value) {
        if (gb_allows_name(all->reader, json_object_get(all->demands.items[next], "names"), name) &&
            !gb_parts_add(all->reader, &ways, meet_by_name(all, terms, unnamed, next, name)))
            break;
    }
    gb_parts_add(all->reader, &ways, meet_unnamed(all, terms, unnamed, next));
    return gb_parts_either(all->reader, &ways);
}

gb_expression gb_express_some_members(gb_schema_reader *reader, const gb_terms *terms, bool is_tagged,
                                      gb_express_demanded *express) {
    choice all = {.reader = reader, .express = express, .is_tagged = is_tagged};
    const gb_terms none = {0};
    gb_expression objects = 0;
    if (list_demands(reader, terms, &all.demands)) {
        if (all.demands.count == 0)
            return express(reader, terms, &none, is_tagged);
        all.names = json_object();
        if (all.names && list_all_names(&all, terms))
            objects = meet(&all, terms, &none, 0);
        else
            gb_schema_no_memory(reader);
    }
    json_decref(all.names);
    gb_terms_free(&all.demands);
    return objects;
}
