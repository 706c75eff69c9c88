/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/alternatives/candidates.h"

#include "grammar/schema/alternatives/alternatives.h"
#include "grammar/schema/alternatives/listed.h"
#include "grammar/schema/composite/contains.h"
#include "grammar/schema/composite/dependencies.h"
#include "grammar/schema/composite/members.h"
#include "grammar/schema/number/multiple.h"
#include "grammar/schema/number/number.h"
#include "grammar/schema/reader/big_integers.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/reader/types.h"
#include "grammar/schema/rewrite/made.h"
#include "grammar/schema/rewrite/rewrite.h"
#include "grammar/schema/string/json_string.h"
#include "grammar/schema/string/pattern.h"
#include "text/reply/json_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LARGEST_WHOLE 9007199254740992.0 /* 2^53: up to it a double is one whole number */

/* The first schema that lists values. A const counts before an enum. */
static const json_t *lister(const gb_terms *terms, const char *keyword) {
    for (size_t i = 0; i < terms->count; i++)
        if (json_object_get(terms->items[i], keyword))
            return terms->items[i];
    return NULL;
}

size_t gb_candidate_count(gb_schema_reader *reader, const gb_terms *terms) {
    if (lister(terms, "const"))
        return 1;
    const json_t *schema = lister(terms, "enum");
    return schema ? json_array_size(gb_keyword_array(reader, schema, "enum")) : SIZE_MAX;
}

const json_t *gb_candidate(const gb_terms *terms, size_t index) {
    const json_t *schema = lister(terms, "const");
    return schema ? json_object_get(schema, "const")
                  : json_array_get(json_object_get(lister(terms, "enum"), "enum"), index);
}

static bool breaks_lists(gb_schema_reader *reader, const json_t *schema, const json_t *value) {
    const json_t *only = json_object_get(schema, "const"), *values = json_object_get(schema, "enum");
    return (values && !gb_array_has(reader, values, value)) || (only && !gb_json_equal(only, value)) ||
           gb_is_listed(reader, gb_excluded(schema), value);
}

static bool is_outside(gb_counts counts, size_t count) {
    return count < counts.least || (counts.most != GB_NO_END && count > counts.most);
}

static size_t characters_of(const json_t *string) {
    const char *text = json_string_value(string);
    size_t count = 0;
    for (size_t i = 0; i < json_string_length(string); i++)
        count += ((uint8_t)text[i] & 0xC0) != 0x80;
    return count;
}

/* The number in units of 10^-decimals; -1: 64 bits do not hold that, or an error. */
static int64_t in_units(const gb_decimal *number, size_t decimals) {
    const size_t fraction = strlen(number->fraction);
    int64_t units = 0;
    if (strlen(number->whole) + decimals > 18)
        return -1;
    for (const char *at = number->whole; *at; at++)
        units = units * 10 + (*at - '0');
    for (size_t i = 0; i < decimals; i++)
        units = units * 10 + (i < fraction ? number->fraction[i] - '0' : 0);
    return units;
}

/* -1: it cannot be told. */
static int is_multiple(gb_schema_reader *reader, const json_t *schema, const json_t *value,
                       const json_t *unit) {
    gb_decimal number, step;
    if (!gb_read_decimal(reader, schema, "enum", value, &number) ||
        !gb_read_decimal(reader, schema, "multipleOf", unit, &step))
        return -1;
    const size_t a = strlen(number.fraction), b = strlen(step.fraction), decimals = a > b ? a : b;
    const int64_t units = in_units(&number, decimals), of = in_units(&step, decimals);
    return units < 0 || of <= 0 ? -1 : units % of == 0;
}

static bool number_fails(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    gb_bounds bounds;
    gb_decimal decimal;
    if (!gb_read_bounds(reader, terms, &bounds))
        return true;
    if ((bounds.least.exists || bounds.most.exists) &&
        (!gb_read_decimal(reader, terms->items[0], "enum", value, &decimal) ||
         !gb_is_within(&bounds, &decimal)))
        return true;
    for (size_t i = 0; i < terms->count; i++) {
        const json_t *multiple = gb_keyword_number(reader, terms->items[i], "multipleOf");
        const json_t *other = gb_keyword_number(reader, gb_excluded(terms->items[i]), "multipleOf");
        if ((multiple && is_multiple(reader, terms->items[i], value, multiple) != 1) ||
            (other && is_multiple(reader, terms->items[i], value, other) != 0))
            return true;
    }
    return false;
}

static bool array_fails(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    if (is_outside(gb_read_counts(reader, terms, "minItems", "maxItems"), json_array_size(value)))
        return true;
    for (size_t i = 0; i < terms->count; i++)
        if (json_is_true(json_object_get(terms->items[i], "uniqueItems")) &&
            gb_has_equal_items(reader, value))
            return true;
    return false;
}

bool gb_value_fails(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    const unsigned type = gb_type_of(value);
    if (!gb_expressions_go_on(reader->expressions, GB_WATCH_STEPS / 8))
        return true;
    if (!(gb_types_of(reader, terms) & type))
        return true;
    for (size_t i = 0; i < terms->count; i++)
        if (breaks_lists(reader, terms->items[i], value))
            return true;
    if (type & GB_TYPE_NUMBER)
        return number_fails(reader, terms, value);
    if (type == GB_TYPE_STRING)
        return is_outside(gb_read_counts(reader, terms, "minLength", "maxLength"), characters_of(value));
    if (type == GB_TYPE_ARRAY)
        return array_fails(reader, terms, value);
    return type == GB_TYPE_OBJECT &&
           is_outside(gb_read_counts(reader, terms, "minProperties", "maxProperties"),
                      json_object_size(value));
}

static gb_expression string_candidate(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    const char *text = json_string_value(value);
    const size_t length = json_string_length(value);
    bool is_asked;
    const gb_expression matching = gb_express_matching(reader, terms, &is_asked);
    if (gb_has_reserved(reader, text, length) ||
        (is_asked && !gb_expression_has(reader, matching, text, length)))
        return gb_schema_failed(reader) ? 0 : reader->nothing;
    return gb_quoted(reader, gb_express_plain_text(reader, text, length));
}

static gb_expression item_candidate(gb_schema_reader *reader, const gb_terms *terms, const json_t *array,
                                    size_t index) {
    gb_terms item = {0};
    const gb_expression literal = gb_item_terms(reader, terms, index, &item)
                                      ? gb_express_literal(reader, &item, json_array_get(array, index))
                                      : 0;
    gb_terms_free(&item);
    return literal ? GB_JOIN(reader, index ? reader->comma : reader->empty, literal, reader->space) : 0;
}

/* How many items satisfy the schema's `contains`. */
static size_t count_contained(gb_schema_reader *reader, const json_t *schema, const json_t *array) {
    size_t count = 0;
    for (size_t i = gb_contains_from(schema); i < json_array_size(array) && !gb_schema_failed(reader); i++)
        count += gb_allows(reader, json_object_get(schema, "contains"), json_array_get(array, i));
    return count;
}

static bool lacks_contained(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    for (size_t i = 0; i < terms->count; i++)
        if (json_object_get(terms->items[i], "contains") &&
            is_outside(gb_read_contains(reader, terms->items[i]),
                       count_contained(reader, terms->items[i], value)))
            return true;
    return false;
}

static gb_expression array_candidate(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    gb_value_parts all = {0};
    if (lacks_contained(reader, terms, value))
        return gb_schema_failed(reader) ? 0 : reader->nothing;
    bool is_added =
        gb_parts_add(reader, &all, gb_literal(reader, "[")) && gb_parts_add(reader, &all, reader->space);
    for (size_t i = 0; is_added && i < json_array_size(value); i++)
        is_added = gb_parts_add(reader, &all, item_candidate(reader, terms, value, i));
    if (is_added)
        gb_parts_add(reader, &all, gb_literal(reader, "]"));
    return gb_parts_join(reader, &all);
}

/* One member with its name; `nothing` if either is not allowed. */
static gb_expression member_candidate(gb_schema_reader *reader, const gb_terms *terms, const char *name,
                                      const json_t *value) {
    gb_terms member = {0}, names = {0};
    gb_expression key = 0, literal = 0;
    json_t *text = json_string(name);
    if (text && gb_name_terms(reader, terms, &names) && gb_member_terms(reader, terms, name, &member)) {
        key = gb_express_literal(reader, &names, text);
        literal = gb_express_literal(reader, &member, value);
    }
    json_decref(text);
    gb_terms_free(&names);
    gb_terms_free(&member);
    return key && literal ? GB_JOIN(reader, key, reader->colon, literal, reader->space)
                          : gb_schema_no_memory(reader);
}

static bool lacks_required(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    for (size_t i = 0; i < terms->count; i++) {
        const json_t *required = gb_keyword_array(reader, terms->items[i], "required");
        for (size_t k = 0; k < json_array_size(required); k++) {
            const char *name = json_string_value(json_array_get(required, k));
            if (name && !json_object_get(value, name))
                return true;
        }
        if (gb_lacks_dependency(reader, terms->items[i], value))
            return true;
    }
    return false;
}

static bool meets(gb_schema_reader *reader, const json_t *demand, const json_t *object) {
    const char *name;
    json_t *value;
    json_object_foreach(gb_mutable(object), name, value) {
        if (gb_allows_name(reader, json_object_get(demand, "names"), name) &&
            gb_allows(reader, json_object_get(demand, "value"), value))
            return true;
    }
    return false;
}

/* Whether no member of the object meets one of the demands of the terms. True as well on an error. */
static bool lacks_some_member(gb_schema_reader *reader, const gb_terms *terms, const json_t *object) {
    for (size_t i = 0; i < terms->count; i++) {
        const json_t *demand = json_object_get(terms->items[i], GB_SOME_MEMBER);
        if (demand && !meets(reader, demand, object))
            return true;
    }
    return gb_schema_failed(reader);
}

static gb_expression object_candidate(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    gb_value_parts all = {0};
    const char *name;
    json_t *member;
    size_t index = 0;
    if (lacks_required(reader, terms, value) || lacks_some_member(reader, terms, value))
        return gb_schema_failed(reader) ? 0 : reader->nothing;
    bool is_added =
        gb_parts_add(reader, &all, gb_literal(reader, "{")) && gb_parts_add(reader, &all, reader->space);
    json_object_foreach(gb_mutable(value), name, member) {
        is_added = is_added && (index++ == 0 || gb_parts_add(reader, &all, reader->comma)) &&
                   gb_parts_add(reader, &all, member_candidate(reader, terms, name, member));
    }
    if (is_added)
        gb_parts_add(reader, &all, gb_literal(reader, "}"));
    return gb_parts_join(reader, &all);
}

/* As its text is. */
static gb_expression written_candidate(gb_schema_reader *reader, const json_t *value) {
    gb_byte_buffer text = {0};
    const char *digits = gb_big_integer(reader->big_integers, value);
    if (digits)
        return gb_literal(reader, digits);
    gb_append_json(&text, value);
    const gb_expression literal = text.failed ? gb_schema_no_memory(reader)
                                              : gb_express_bytes(reader->expressions, text.data, text.size);
    gb_buffer_free(&text);
    return literal;
}

/* 2.0 is 2 as well. */
static gb_expression whole_number_candidate(gb_schema_reader *reader, const json_t *value) {
    const double number = json_real_value(value);
    const gb_expression written = written_candidate(reader, value);
    if (fabs(number) > LARGEST_WHOLE)
        return written;
    char text[32];
    snprintf(text, sizeof text, "%.0f", number);
    return GB_EITHER(reader, written, gb_literal(reader, text));
}

gb_expression gb_express_candidate(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    if (gb_value_fails(reader, terms, value))
        return gb_schema_failed(reader) ? 0 : reader->nothing;
    if (json_is_string(value))
        return string_candidate(reader, terms, value);
    if (json_is_array(value))
        return array_candidate(reader, terms, value);
    if (json_is_object(value))
        return object_candidate(reader, terms, value);
    if (json_is_real(value) && gb_type_of(value) == GB_TYPE_INTEGER)
        return whole_number_candidate(reader, value);
    return written_candidate(reader, value);
}

gb_expression gb_express_literal(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    gb_alternatives alternatives = {0};
    gb_expression literal = reader->nothing;
    if (!gb_find_alternatives(reader, terms, &alternatives))
        literal = 0;
    for (size_t i = 0; literal == reader->nothing && i < alternatives.count; i++)
        literal = gb_express_candidate(reader, &alternatives.items[i], value);
    gb_alternatives_free(&alternatives);
    return literal;
}

bool gb_allows(gb_schema_reader *reader, const json_t *schema, const json_t *value) {
    const gb_terms terms = {.items = &schema, .count = 1};
    const gb_expression literal = gb_express_literal(reader, &terms, value);
    return literal && literal != reader->nothing;
}

bool gb_allows_name(gb_schema_reader *reader, const json_t *schema, const char *name) {
    json_t *text = json_string(name);
    const bool is_allowed = text ? gb_allows(reader, schema, text) : gb_schema_no_memory(reader);
    json_decref(text);
    return is_allowed;
}
