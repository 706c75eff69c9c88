/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "grammar/schema/alternatives/candidates.h"
#include "grammar/schema/arguments.h"
#include "grammar/schema/composite/composite.h"
#include "grammar/schema/composite/dependencies.h"
#include "grammar/schema/composite/in_order.h"
#include "grammar/schema/composite/members.h"
#include "grammar/schema/composite/some_member.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/string/json_string.h"
#include "grammar/schema/string/pattern.h"
#include "grammar/schema/value.h"

#include <string.h>

enum { MOST_PATTERNS = 6 };

/* What is found of an object before it is expressed. */
typedef struct object_parts {
    gb_schema_reader *reader;
    const gb_terms *terms;
    const gb_terms *demands; /* each of them is met by a member that is not named (some_member.h) */
    bool is_tagged;          /* members are arguments that stand by themselves */
    json_t *names;    /* {"a": true}: members that are named, whether they are required; in their order */
    json_t *patterns; /* of patternProperties, each once */
    gb_terms key_terms;
    gb_any_order_item *items;
    size_t count, required_count;
    json_t *needs; /* {"a": ["b"]}: names that stand beside others; NULL in order, where they are rewritten */
    gb_implication *implications;
    size_t implication_count, implication_capacity;
    bool impossible; /* a required member cannot be */
    gb_expression rest;
} object_parts;

/* Notes whether the member of the name is required. False, with the error, without memory. */
static bool list_name(object_parts *object, const char *name, bool is_required) {
    return json_object_set_new(object->names, name, json_boolean(is_required)) == 0 ||
           gb_schema_no_memory(object->reader);
}

static void list_properties(object_parts *object, const json_t *schema) {
    const json_t *properties = gb_keyword_object(object->reader, schema, "properties");
    const json_t *patterns = gb_keyword_object(object->reader, schema, "patternProperties");
    const char *name;
    json_t *value;
    size_t i;
    json_object_foreach(gb_mutable(properties), name, value) if (!json_object_get(object->names, name))
        list_name(object, name, false);
    json_object_foreach(gb_mutable(patterns), name, value) {
        bool is_listed = false;
        json_t *listed;
        json_array_foreach(object->patterns, i, listed) is_listed |= !strcmp(json_string_value(listed), name);
        if (!is_listed && json_array_append_new(object->patterns, json_string(name)) != 0)
            gb_schema_no_memory(object->reader);
    }
}

/* Draft 3 and mistakes have a boolean here. */
static void list_required(object_parts *object, const json_t *schema) {
    const json_t *required = gb_keyword_array(object->reader, schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (!name)
            gb_schema_fail(object->reader, schema, "required", GUMBEL_ERROR_FORMAT,
                           "expected a list of strings");
        else
            list_name(object, name, true);
    }
}

static void list_needs(object_parts *object, const json_t *schema) {
    const char *member;
    json_t *list, *name;
    size_t i;
    if (!gb_read_dependencies(object->reader, schema, object->needs))
        return;
    json_object_foreach(object->needs, member, list) {
        if (!json_object_get(object->names, member))
            list_name(object, member, false);
        json_array_foreach(list, i, name) if (!json_object_get(object->names, json_string_value(name)))
            list_name(object, json_string_value(name), false);
    }
}

static bool list_names(object_parts *object) {
    for (size_t i = 0; i < object->terms->count; i++)
        list_properties(object, object->terms->items[i]);
    for (size_t i = 0; i < object->terms->count; i++)
        list_required(object, object->terms->items[i]);
    for (size_t i = 0; i < object->terms->count && object->needs; i++)
        list_needs(object, object->terms->items[i]);
    if (json_array_size(object->patterns) > MOST_PATTERNS)
        gb_schema_fail(object->reader, object->terms->items[0], "patternProperties", GUMBEL_ERROR_UNSUPPORTED,
                       "more than %d patterns for one object", MOST_PATTERNS);
    return gb_name_terms(object->reader, object->terms, &object->key_terms) &&
           !gb_schema_failed(object->reader);
}

/* Whether keys have no quotes, where they can do without. */
static bool has_bare_keys(const object_parts *object) {
    const gb_argument_form *form = object->reader->options.form;
    return object->is_tagged || (form && form->bare_keys);
}

/* A key that propertyNames allows, with its quotes. */
static gb_expression express_key(object_parts *object, const char *name) {
    gb_schema_reader *reader = object->reader;
    const gb_strings *strings = reader->strings;
    if (object->is_tagged && !gb_is_tag_name(name))
        return gb_schema_fail(reader, object->terms->items[0], "properties", GUMBEL_ERROR_UNSUPPORTED,
                              "'%.60s' cannot be written as the name of an argument", name);
    if (object->is_tagged || (has_bare_keys(object) && gb_is_bare_key(name)))
        reader->strings = &reader->bare;
    json_t *text = json_string(name);
    const gb_expression key =
        text ? gb_express_literal(reader, &object->key_terms, text) : gb_schema_no_memory(reader);
    json_decref(text);
    reader->strings = strings;
    return key;
}

static gb_expression express_member(object_parts *object, gb_expression key, gb_expression value) {
    const gb_argument_form *form = object->reader->options.form;
    if (object->is_tagged)
        return GB_JOIN(object->reader, form->before_name, key, form->behind_name, value, form->behind_value);
    return GB_JOIN(object->reader, key, object->reader->colon, value, object->reader->space);
}

/* What the member's value is; name is NULL for one that no properties name. */
static gb_expression express_member_value(object_parts *object, const char *name, const gb_terms *terms) {
    return object->is_tagged ? gb_express_tagged_value(object->reader, name, terms)
                             : gb_express_value(object->reader, terms);
}

static bool add_items(object_parts *object) {
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
                                        ? express_member_value(object, name, &terms)
                                        : 0;
        gb_terms_free(&terms);
        const gb_expression key = value ? express_key(object, name) : 0;
        const gb_expression member = key ? express_member(object, key, value) : 0;
        if (!member)
            return false;
        object->required_count += json_is_true(required);
        object->impossible |= member == reader->nothing && json_is_true(required);
        if (member != reader->nothing || json_object_size(object->needs))
            object->items[object->count++] = (gb_any_order_item){member, json_is_true(required)};
    }
    return true;
}

/* Where the name stands among the items, which are all there beside needs. */
static uint32_t index_of(const object_parts *object, const char *name) {
    uint32_t index = 0;
    const char *key;
    json_t *value;
    json_object_foreach(object->names, key, value) {
        if (strcmp(key, name) == 0)
            break;
        index++;
    }
    return index;
}

static bool add_implications(object_parts *object) {
    const char *member;
    json_t *list, *name;
    size_t i;
    json_object_foreach(object->needs, member, list) {
        const uint32_t item = index_of(object, member);
        json_array_foreach(list, i, name) {
            if (!gb_grow((void **)&object->implications, &object->implication_capacity,
                         object->implication_count + 1, sizeof *object->implications) ||
                !gb_schema_work(object->reader, object->terms->items[0]))
                return gb_schema_no_memory(object->reader);
            object->implications[object->implication_count++] =
                (gb_implication){item, index_of(object, json_string_value(name))};
        }
    }
    return true;
}

/* The contents of keys that the patterns of `matched` match and no other, and that no member has as its name.
 */
static gb_expression express_other_keys(object_parts *object, uint64_t matched) {
    gb_schema_reader *reader = object->reader;
    gb_expression keys =
        gb_express_repeat(reader->expressions, reader->strings->plain_character, 0, GB_NO_END);
    const char *name;
    json_t *value;
    size_t i;
    json_array_foreach(object->patterns, i, value) {
        const gb_expression pattern =
            gb_express_pattern_of(reader, object->terms->items[0], "patternProperties", value);
        keys = matched >> i & 1 ? gb_express_both(reader->expressions, keys, pattern)
                                : gb_express_except(reader->expressions, keys, pattern);
    }
    const size_t count = json_object_size(object->names);
    gb_expression *names = gb_allocate(count, sizeof *names);
    if (!names)
        return gb_schema_no_memory(reader);
    i = 0;
    json_object_foreach(object->names, name, value) names[i++] =
        gb_express_plain_text(reader, name, strlen(name));
    if (count)
        keys = gb_express_except(reader->expressions, keys,
                                 gb_express_choice(reader->expressions, names, count));
    gb_free(names);
    return keys;
}

/* Those that are also as propertyNames asks. */
static gb_expression narrow_keys(object_parts *object, gb_expression keys) {
    gb_schema_reader *reader = object->reader;
    if (!object->key_terms.count)
        return keys;
    const gb_expression allowed = gb_express_keys(reader, &object->key_terms);
    return allowed == reader->nothing ? allowed : gb_express_both(reader->expressions, keys, allowed);
}

static gb_expression express_bare_key(object_parts *object, uint64_t matched) {
    gb_schema_reader *reader = object->reader;
    const gb_strings *strings = reader->strings;
    reader->strings = &reader->bare;
    const gb_expression keys = gb_express_both(reader->expressions, express_other_keys(object, matched),
                                               gb_express_bare_keys(reader));
    const gb_expression allowed = narrow_keys(object, keys);
    reader->strings = strings;
    return allowed;
}

/* Keys with their quotes. */
static gb_expression express_other_key(object_parts *object, uint64_t matched) {
    gb_schema_reader *reader = object->reader;
    if (has_bare_keys(object))
        return express_bare_key(object, matched);
    if (!json_object_size(object->names) && !json_array_size(object->patterns) && !object->key_terms.count)
        return reader->strings->free_string;
    return narrow_keys(object, gb_quoted(reader, express_other_keys(object, matched)));
}

/* Members that are not named: a class of keys for each set of patterns that may match. */
static bool add_rest(object_parts *object) {
    gb_schema_reader *reader = object->reader;
    object->rest = reader->nothing;
    for (uint64_t matched = 0; matched >> json_array_size(object->patterns) == 0; matched++) {
        gb_terms terms = {0};
        const bool is_found = gb_other_member_terms(reader, object->terms, object->patterns, matched, &terms);
        const gb_expression value = is_found ? express_member_value(object, NULL, &terms) : 0;
        gb_terms_free(&terms);
        if (!value)
            return false;
        if (value != reader->nothing)
            object->rest = GB_EITHER(reader, object->rest,
                                     express_member(object, express_other_key(object, matched), value));
    }
    return !gb_schema_failed(reader);
}

/* A member that meets the demand, of the keys that the patterns of `matched` match and no other. */
static gb_expression express_demanded(object_parts *object, const json_t *demand, uint64_t matched) {
    gb_schema_reader *reader = object->reader;
    const json_t *names = json_object_get(demand, "names");
    const gb_terms of_name = {.items = &names, .count = 1};
    gb_terms terms = {0};
    gb_expression value = 0;
    if (gb_other_member_terms(reader, object->terms, object->patterns, matched, &terms)) {
        if (gb_terms_add(&terms, json_object_get(demand, "value")))
            value = express_member_value(object, NULL, &terms);
        else
            gb_schema_no_memory(reader);
    }
    gb_terms_free(&terms);
    const gb_expression keys = value ? gb_express_keys(reader, &of_name) : 0;
    if (!keys || value == reader->nothing || keys == reader->nothing)
        return keys ? reader->nothing : 0;
    return express_member(
        object, gb_express_both(reader->expressions, express_other_key(object, matched), keys), value);
}

/* Each demand is an item of its own, which may be any of many members. */
static bool add_demanded(object_parts *object) {
    gb_schema_reader *reader = object->reader;
    if (object->demands->count && has_bare_keys(object))
        return gb_schema_fail(reader, object->terms->items[0], NULL, GUMBEL_ERROR_UNSUPPORTED,
                              "what some member has to be cannot be said of arguments in this form");
    for (size_t i = 0; i < object->demands->count; i++) {
        gb_value_parts members = {0};
        for (uint64_t matched = 0; matched >> json_array_size(object->patterns) == 0; matched++)
            if (!gb_parts_add(reader, &members, express_demanded(object, object->demands->items[i], matched)))
                break;
        const gb_expression member = gb_parts_either(reader, &members);
        if (!member)
            return false;
        object->impossible |= member == reader->nothing;
        object->items[object->count++] = (gb_any_order_item){member, true};
    }
    return true;
}

/* Members that are not named may have one name twice, which counts once for minProperties. */
static bool counts_may_fail(const object_parts *object, gb_counts counts) {
    return object->rest != object->reader->nothing && counts.least > object->required_count + 1;
}

/* Members that come together leave out numbers of members. */
static bool needs_may_fail(const object_parts *object, gb_counts counts) {
    const size_t least = object->required_count ? object->required_count : 1;
    return object->implication_count && counts.most <= object->count && counts.least > least;
}

static const json_t *schema_with(const object_parts *object, const char *keyword) {
    for (size_t i = 0; i < object->terms->count; i++)
        if (json_object_get(object->terms->items[i], keyword))
            return object->terms->items[i];
    return NULL;
}

/* Arguments, of which one that no properties name stands once: a name that came twice would become a list. */
static gb_expression express_arguments(object_parts *object, gb_counts counts) {
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
static gb_expression express_members(object_parts *object) {
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
    object_parts object = {.reader = reader,
                           .terms = terms,
                           .demands = demands,
                           .is_tagged = is_tagged,
                           .names = json_object(),
                           .patterns = json_array(),
                           .needs = reader->options.in_order ? NULL : json_object()};
    gb_expression members = 0;
    if (!object.names || !object.patterns || (!object.needs && !reader->options.in_order))
        gb_schema_no_memory(reader);
    else if (list_names(&object) && add_items(&object) && add_implications(&object) &&
             add_demanded(&object) && add_rest(&object))
        members = express_members(&object);
    json_decref(object.names);
    json_decref(object.patterns);
    json_decref(object.needs);
    gb_free(object.implications);
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
