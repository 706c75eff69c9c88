/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/alternatives/listed.h"

#include "base/memory.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/rewrite/honoured.h"

#include <string.h>

enum { FEW = 8 }; /* values that are found faster without a set */

/* ---- Equal values -------------------------------------------------------------------------------------- */

static bool objects_are_equal(const json_t *a, const json_t *b) {
    const char *key;
    json_t *value;
    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach(gb_mutable(a), key, value) {
        const json_t *other = json_object_get(b, key);
        if (!other || !gb_json_equal(value, other))
            return false;
    }
    return true;
}

bool gb_json_equal(const json_t *a, const json_t *b) {
    if (json_is_integer(a) && json_is_integer(b))
        return json_integer_value(a) == json_integer_value(b);
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    if (json_is_object(a) && json_is_object(b))
        return objects_are_equal(a, b);
    if (!json_is_array(a) || !json_is_array(b))
        return json_equal(gb_mutable(a), gb_mutable(b));
    for (size_t i = 0; i < json_array_size(a); i++)
        if (i >= json_array_size(b) || !gb_json_equal(json_array_get(a, i), json_array_get(b, i)))
            return false;
    return json_array_size(a) == json_array_size(b);
}

static uint64_t mix(uint64_t hash, uint64_t more) {
    hash = (hash ^ more) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of_text(const char *text, size_t length) {
    uint64_t hash = length;
    for (size_t i = 0; i < length; i++)
        hash = mix(hash, (uint8_t)text[i]);
    return hash;
}

static uint64_t hash_of_number(double number) {
    uint64_t bits;
    number = number == 0 ? 0 : number; /* of both signs */
    memcpy(&bits, &number, sizeof bits);
    return mix(1, bits);
}

/* Equal values have the same. */
static uint64_t hash_of(const json_t *value) {
    const char *key;
    json_t *member;
    uint64_t hash = json_is_object(value) ? json_object_size(value) : json_array_size(value);
    if (json_is_string(value))
        return hash_of_text(json_string_value(value), json_string_length(value));
    if (json_is_number(value))
        return hash_of_number(json_number_value(value));
    json_object_foreach(gb_mutable(value), key, member) hash +=
        mix(hash_of_text(key, strlen(key)), hash_of(member));
    for (size_t i = 0; i < json_array_size(value); i++)
        hash = mix(hash, hash_of(json_array_get(value, i)));
    return mix(hash, (uint64_t)json_typeof(value));
}

/* ---- Sets ---------------------------------------------------------------------------------------------- */

/* The slot of an equal value, or the free one where this one belongs. */
static const json_t **slot_of(const gb_value_set *set, const json_t *value) {
    const size_t mask = set->slot_count - 1;
    for (size_t at = hash_of(value) & mask;; at = (at + 1) & mask)
        if (!set->slots[at] || gb_json_equal(set->slots[at], value))
            return &set->slots[at];
}

/* false without memory. */
static bool make_room(gb_value_set *set, size_t count) {
    set->slot_count = 64;
    while (set->slot_count < 2 * count)
        set->slot_count *= 2;
    set->slots = gb_allocate(set->slot_count, sizeof *set->slots);
    return set->slots != NULL;
}

static bool fill(gb_value_set *set, const json_t *array) {
    const bool has_room = make_room(set, json_array_size(array));
    for (size_t i = 0; has_room && i < json_array_size(array); i++)
        *slot_of(set, json_array_get(array, i)) = json_array_get(array, i);
    return has_room;
}

/* NULL without memory, which is then the error. */
static const gb_value_set *set_of(gb_schema_reader *reader, const json_t *array) {
    const gb_terms key = {.items = &array, .count = 1};
    uint32_t *number = gb_terms_map_at(&reader->listed, &key);
    if (number && *number)
        return &reader->value_sets[*number - 1];
    gb_value_set set = {0};
    if (!number ||
        !gb_grow((void **)&reader->value_sets, &reader->value_set_capacity, reader->value_set_count + 1,
                 sizeof set) ||
        !fill(&set, array)) {
        gb_schema_no_memory(reader);
        return NULL;
    }
    reader->value_sets[reader->value_set_count++] = set;
    *number = (uint32_t)reader->value_set_count;
    return &reader->value_sets[*number - 1];
}

void gb_value_sets_free(gb_schema_reader *reader) {
    for (size_t i = 0; i < reader->value_set_count; i++)
        gb_free(reader->value_sets[i].slots);
    gb_free(reader->value_sets);
    gb_terms_map_free(&reader->listed);
}

bool gb_array_has(gb_schema_reader *reader, const json_t *array, const json_t *value) {
    if (json_array_size(array) > FEW) {
        const gb_value_set *set = set_of(reader, array);
        return set && *slot_of(set, value);
    }
    for (size_t i = 0; i < json_array_size(array); i++)
        if (gb_json_equal(json_array_get(array, i), value))
            return true;
    return false;
}

bool gb_is_listed(gb_schema_reader *reader, const json_t *schema, const json_t *value) {
    const json_t *only = json_object_get(schema, "const");
    return (only && gb_json_equal(only, value)) ||
           gb_array_has(reader, json_object_get(schema, "enum"), value);
}

bool gb_has_equal_items(gb_schema_reader *reader, const json_t *array) {
    gb_value_set seen;
    const size_t count = json_array_size(array);
    bool differ = make_room(&seen, count) || gb_schema_no_memory(reader);
    for (size_t i = 0; differ && i < count; i++) {
        const json_t **slot = slot_of(&seen, json_array_get(array, i));
        differ = !*slot && gb_expressions_go_on(reader->expressions, 1);
        *slot = json_array_get(array, i);
    }
    gb_free(seen.slots);
    return !differ;
}

bool gb_have_different_consts(gb_schema_reader *reader, const json_t *schemas) {
    gb_value_set seen;
    const size_t count = json_array_size(schemas);
    bool differ = make_room(&seen, count) || gb_schema_no_memory(reader);
    for (size_t i = 0; differ && i < count; i++) {
        const json_t *value = json_object_get(gb_honoured(reader, json_array_get(schemas, i)), "const");
        const json_t **slot = value ? slot_of(&seen, value) : NULL;
        differ = slot && !*slot;
        if (differ)
            *slot = value;
    }
    gb_free(seen.slots);
    return differ;
}
