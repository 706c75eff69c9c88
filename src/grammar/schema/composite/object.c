/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "grammar/schema/alternatives/candidates.h"
#include "grammar/schema/arguments.h"
#include "grammar/schema/composite/composite.h"
#include "grammar/schema/composite/in_order.h"
#include "grammar/schema/composite/members.h"
#include "grammar/schema/composite/object_parts.h"
#include "grammar/schema/composite/some_member.h"

bool gb_has_bare_keys(const gb_object_parts *object) {
    const gb_argument_form *form = object->reader->options.form;
    return object->is_tagged || (form && form->bare_keys);
}

/* A key that propertyNames allows, with its quotes. */
static gb_expression express_key(gb_object_parts *object, const char *name) {
    gb_schema_reader *reader = object->reader;
    const gb_strings *strings = reader->strings;
    if (object->is_tagged && !gb_is_tag_name(name))
        return gb_schema_fail(reader, object->terms->items[0], "properties", GUMBEL_ERROR_UNSUPPORTED,
                              "'%.60s' cannot be written as the name of an argument", name);
    if (object->is_tagged || (gb_has_bare_keys(object) && gb_is_bare_key(name)))
        reader->strings = &reader->bare;
    json_t *text = json_string(name);
    const gb_expression key =
        text ? gb_express_literal(reader, &object->key_terms, text) : gb_schema_no_memory(reader);
    json_decref(text);
    reader->strings = strings;
    return key;
}

gb_expression gb_express_member(gb_object_parts *object, gb_expression key, gb_expression value) {
    const gb_argument_form *form = object->reader->options.form;
    if (object->is_tagged)
        return GB_JOIN(object->reader, form->before_name, key, form->behind_name, value, form->behind_value);
    return GB_JOIN(object->reader, key, object->reader->colon, value, object->reader->space);
}

gb_expression gb_express_member_value(gb_object_parts *object, const char *name, const gb_terms *terms) {
    return object->is_tagged ? gb_express_tagged_value(object->reader, name, terms)
                             : gb_express_value(object->reader, terms);
}

static bool add_items(gb_object_parts *object) {
    gb_schema_reader *reader = object->reader;
    const char *name;
    json_t *required;
    object->items =
        gb_allocate(json_object_size(object->names) + object->demands->count + 1, sizeof *object->items);
    if (!object->items)
        return gb_schema_no_memory(reader);
    json_object_foreach(object->names, name, required) {
        gb_terms terms = {0};
        const gb_expression value = gb_member_terms(reader, object->terms, name, &terms)
                                        ? gb_express_member_value(object, name, &terms)
                                        : 0;
        gb_terms_free(&terms);
        const gb_expression key = value ? express_key(object, name) : 0;
        const gb_expression member = key ? gb_express_member(object, key, value) : 0;
        if (!member)
            return false;
        object->required_count += json_is_true(required);
        object->impossible |= member == reader->nothing && json_is_true(required);
        if (member != reader->nothing || json_object_size(object->needs))
            object->items[object->count++] = (gb_any_order_item){member, json_is_true(required)};
    }
    return true;
}

/* Members that are not named may have one name twice, which counts once for minProperties. */
static bool counts_may_fail(const gb_object_parts *object, gb_counts counts) {
    return object->rest != object->reader->nothing && counts.least > object->required_count + 1;
}

/* Members that come together leave out numbers of members. */
static bool needs_may_fail(const gb_object_parts *object, gb_counts counts) {
    const size_t least = object->required_count ? object->required_count : 1;
    return object->implication_count && counts.most <= object->count && counts.least > least;
}

static const json_t *schema_with(const gb_object_parts *object, const char *keyword) {
    for (size_t i = 0; i < object->terms->count; i++)
        if (json_object_get(object->terms->items[i], keyword))
            return object->terms->items[i];
    return NULL;
}

/* Arguments, of which one that no properties name stands once: a name that came twice would become a list. */
static gb_expression express_arguments(gb_object_parts *object, gb_counts counts) {
    gb_schema_reader *reader = object->reader;
    if (object->rest != reader->nothing)
        object->items[object->count++] = (gb_any_order_item){object->rest, false};
    if (object->impossible || counts.most < counts.least || counts.least > object->count)
        return reader->nothing;
    if (object->count == 0)
        return reader->empty;
    const gb_any_order order = {.items = object->items,
                                .count = object->count,
                                .least = counts.least,
                                .most = counts.most,
                                .implications = object->implications,
                                .implication_count = object->implication_count};
    return gb_express_any_order(reader->expressions, &order);
}

/* The members and the closing brace. */
static gb_expression express_members(gb_object_parts *object) {
    gb_schema_reader *reader = object->reader;
    const gb_counts counts = gb_read_counts(reader, object->terms, "minProperties", "maxProperties");
    const gb_expression close = gb_literal(reader, "}");
    if (needs_may_fail(object, counts))
        return gb_schema_fail(reader, schema_with(object, "minProperties"), "minProperties",
                              GUMBEL_ERROR_UNSUPPORTED,
                              "beside maxProperties and members that require others");
    if (object->is_tagged)
        return express_arguments(object, counts);
    if (counts_may_fail(object, counts))
        return gb_schema_fail(reader, schema_with(object, "minProperties"), "minProperties",
                              GUMBEL_ERROR_UNSUPPORTED,
                              "%u members, of which at most %zu are sure to differ; name them in required",
                              counts.least, object->required_count + 1);
    if (object->impossible || counts.most < counts.least)
        return reader->nothing;
    if (object->count == 0 && object->rest == reader->nothing)
        return counts.least == 0 ? close : reader->nothing;
    if (reader->options.in_order)
        return gb_express_in_order(reader,
                                   schema_with(object, counts.least ? "minProperties" : "maxProperties"),
                                   object->items, object->count, object->rest, counts);
    const gb_any_order order = {.items = object->items,
                                .count = object->count,
                                .separator = reader->comma,
                                .rest = object->rest == reader->nothing ? 0 : object->rest,
                                .least = counts.least,
                                .most = counts.most,
                                .implications = object->implications,
                                .implication_count = object->implication_count};
    return GB_JOIN(reader, gb_express_any_order(reader->expressions, &order), close);
}

static gb_expression express_object(gb_schema_reader *reader, const gb_terms *terms, const gb_terms *demands,
                                    bool is_tagged) {
    gb_object_parts object = {.reader = reader,
                              .terms = terms,
                              .demands = demands,
                              .is_tagged = is_tagged,
                              .names = json_object(),
                              .patterns = json_array(),
                              .needs = reader->options.in_order ? NULL : json_object()};
    gb_expression members = 0;
    if (!object.names || !object.patterns || (!object.needs && !reader->options.in_order))
        gb_schema_no_memory(reader);
    else if (gb_list_members(&object) && add_items(&object) && gb_add_implications(&object) &&
             gb_add_other_members(&object))
        members = express_members(&object);
    json_decref(object.names);
    json_decref(object.patterns);
    json_decref(object.needs);
    gb_free(object.implications);
    gb_free(object.met);
    gb_terms_free(&object.key_terms);
    gb_free(object.items);
    return members;
}

gb_expression gb_express_object(gb_schema_reader *reader, const gb_terms *terms) {
    const gb_expression members = gb_express_some_members(reader, terms, false, express_object);
    return members ? GB_JOIN(reader, gb_literal(reader, "{"), reader->space, members) : 0;
}

gb_expression gb_express_tagged_members(gb_schema_reader *reader, const gb_terms *terms) {
    return gb_express_some_members(reader, terms, true, express_object);
}
