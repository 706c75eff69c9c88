/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/alternatives/impossible.h"

#include "grammar/schema/alternatives/alternatives.h"
#include "grammar/schema/alternatives/candidates.h"
#include "grammar/schema/composite/contains.h"
#include "grammar/schema/composite/members.h"
#include "grammar/schema/number/number.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/reader/types.h"

enum { LOOKS_PER_STEP = 32 }; /* members in terms, which cost as much as a schema that is looked at */

/* Takes the terms of a member or an item, and whether they could be found. */
static bool is_part_impossible(gb_schema_reader *reader, gb_terms *terms, bool is_found, unsigned look) {
    const bool is_impossible = !is_found || !gb_has_alternative(reader, terms, look);
    gb_terms_free(terms);
    return is_impossible;
}

/* Whether no item can be as contains asks, of which one has to be. */
static bool is_contained_impossible(gb_schema_reader *reader, const gb_terms *terms, const json_t *schema,
                                    unsigned look) {
    gb_terms item = {0};
    if (gb_read_contains(reader, schema).least == 0 || gb_prefix_count(reader, terms) > 0)
        return false;
    const bool is_found =
        gb_item_terms(reader, terms, 0, &item) &&
        (gb_terms_add(&item, json_object_get(schema, "contains")) || gb_schema_no_memory(reader));
    return is_part_impossible(reader, &item, is_found, look - 1);
}

static bool is_array_impossible(gb_schema_reader *reader, const gb_terms *terms, unsigned look) {
    const gb_counts counts = gb_read_counts(reader, terms, "minItems", "maxItems");
    const size_t prefix = gb_prefix_count(reader, terms);
    if (counts.most < counts.least)
        return true;
    for (size_t i = 0; look > 0 && i < terms->count; i++)
        if (is_contained_impossible(reader, terms, terms->items[i], look))
            return true;
    for (size_t i = 0; look > 0 && i < counts.least && i <= prefix; i++) {
        gb_terms item = {0};
        const bool is_found = gb_item_terms(reader, terms, i, &item);
        if (is_part_impossible(reader, &item, is_found, look - 1))
            return true;
    }
    return false;
}

static bool is_required_impossible(gb_schema_reader *reader, const gb_terms *terms, const json_t *required,
                                   unsigned look) {
    reader->work += json_array_size(required) * terms->count / LOOKS_PER_STEP;
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        gb_terms member = {0};
        const bool is_found = name && gb_member_terms(reader, terms, name, &member);
        if (name && is_part_impossible(reader, &member, is_found, look - 1))
            return true;
    }
    return false;
}

static bool is_object_impossible(gb_schema_reader *reader, const gb_terms *terms, unsigned look) {
    const gb_counts counts = gb_read_counts(reader, terms, "minProperties", "maxProperties");
    if (counts.most < counts.least)
        return true;
    for (size_t i = 0; look > 0 && i < terms->count; i++)
        if (is_required_impossible(reader, terms, gb_keyword_array(reader, terms->items[i], "required"),
                                   look))
            return true;
    return false;
}

static bool is_string_impossible(gb_schema_reader *reader, const gb_terms *terms) {
    const gb_counts counts = gb_read_counts(reader, terms, "minLength", "maxLength");
    return counts.most < counts.least;
}

static bool is_number_impossible(gb_schema_reader *reader, const gb_terms *terms) {
    gb_bounds bounds;
    return !gb_read_bounds(reader, terms, &bounds) || gb_bounds_are_empty(&bounds);
}

static bool are_candidates_impossible(gb_schema_reader *reader, const gb_terms *terms, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!gb_value_fails(reader, terms, gb_candidate(terms, i)))
            return false;
    return true;
}

bool gb_is_impossible(gb_schema_reader *reader, const gb_terms *terms, unsigned look) {
    const unsigned types = gb_types_of(reader, terms);
    const size_t candidates = gb_candidate_count(reader, terms);
    if (gb_schema_failed(reader))
        return true;
    if (candidates != SIZE_MAX)
        return are_candidates_impossible(reader, terms, candidates);
    if (types & (GB_TYPE_NULL | GB_TYPE_BOOLEAN))
        return false;
    return (!(types & GB_TYPE_NUMBER) || is_number_impossible(reader, terms)) &&
           (!(types & GB_TYPE_STRING) || is_string_impossible(reader, terms)) &&
           (!(types & GB_TYPE_ARRAY) || is_array_impossible(reader, terms, look)) &&
           (!(types & GB_TYPE_OBJECT) || is_object_impossible(reader, terms, look));
}
