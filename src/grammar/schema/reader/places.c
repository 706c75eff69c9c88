/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/reader/places.h"

#include "base/memory.h"
#include "grammar/schema/reader/keywords.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLACES = 1 << 20 }; /* of a document of many more no errors name the rest */

typedef struct gb_document_place {
    const json_t *value;
    const char *key; /* in its parent, an object; NULL: index says where */
    size_t index;
    size_t parent;
} gb_document_place;

typedef struct gb_document_address {
    const json_t *value;
    size_t number; /* in places */
} gb_document_address;

static int by_address(const void *left, const void *right) {
    const gb_document_address *a = left, *b = right;
    const uintptr_t first = (uintptr_t)a->value, second = (uintptr_t)b->value;
    return first != second ? (first > second) - (first < second)
                           : (a->number > b->number) - (a->number < b->number);
}

/* ---- The walk ------------------------------------------------------------------------------------------ */

static bool add(gb_places *places, const json_t *value, gb_document_place place) {
    size_t capacity = places->capacity;
    places->failed |=
        !gb_grow((void **)&places->places, &places->capacity, places->count + 1, sizeof place) ||
        !gb_grow((void **)&places->sorted, &capacity, places->count + 1, sizeof *places->sorted);
    if (places->failed)
        return false;
    places->places[places->count] = place;
    places->sorted[places->count] = (gb_document_address){value, places->count};
    places->count++;
    return true;
}

/* Adds a value, and what is in it but for the lists of enum, which have no schemas. Documents nest no deeper
 * than GB_MAX_SCHEMA_DEPTH. */
static void walk(gb_places *places, const json_t *value, gb_document_place place) {
    const char *key;
    json_t *member;
    const size_t number = places->count;
    place.value = value;
    places->is_full |= number == MOST_PLACES;
    if (number == MOST_PLACES || !add(places, value, place))
        return;
    json_object_foreach(gb_mutable(value), key,
                        member) if (strcmp(key, "enum") != 0 || !json_is_array(member))
        walk(places, member, (gb_document_place){.key = key, .parent = number});
    for (size_t i = 0; i < json_array_size(value); i++)
        walk(places, json_array_get(value, i), (gb_document_place){.index = i, .parent = number});
}

static void find_all(gb_places *places, const json_t *root) {
    walk(places, root, (gb_document_place){0});
    if (places->count)
        qsort(places->sorted, places->count, sizeof *places->sorted, by_address);
}

/* ---- Pointers ------------------------------------------------------------------------------------------ */

void gb_append_step(gb_byte_buffer *path, const char *name) {
    gb_buffer_append(path, "/", 1);
    for (; *name; name++) {
        const char *escaped = *name == '~' ? "~0" : *name == '/' ? "~1" : NULL;
        gb_buffer_append(path, escaped ? escaped : name, escaped ? 2 : 1);
    }
}

static void append(const gb_places *places, size_t number, gb_byte_buffer *path) {
    const gb_document_place *place = &places->places[number];
    char index[24];
    if (number == 0)
        return; /* the root */
    append(places, place->parent, path);
    if (!place->key)
        snprintf(index, sizeof index, "%zu", place->index);
    gb_append_step(path, place->key ? place->key : index);
}

/* The number of the first place of the value; count: it has none. */
static size_t find(const gb_places *places, const json_t *value) {
    size_t low = 0, high = places->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((uintptr_t)places->sorted[middle].value < (uintptr_t)value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < places->count && places->sorted[low].value == value ? places->sorted[low].number
                                                                     : places->count;
}

/* The number of the value's place; count: it has none. */
static size_t number_of(gb_places *places, const json_t *root, const json_t *value) {
    if (places->count == 0 && !places->failed)
        find_all(places, root);
    return places->failed ? places->count : find(places, value);
}

void gb_append_place(gb_places *places, const json_t *root, const json_t *value, gb_byte_buffer *path) {
    const size_t number = number_of(places, root, value);
    if (number < places->count)
        append(places, number, path);
}

bool gb_is_of_document(gb_places *places, const json_t *root, const json_t *value) {
    return number_of(places, root, value) < places->count;
}

const json_t *gb_parent_of(gb_places *places, const json_t *root, const json_t *value) {
    const size_t number = number_of(places, root, value);
    return number < places->count && number > 0 ? places->places[places->places[number].parent].value : NULL;
}

void gb_places_free(gb_places *places) {
    gb_free(places->places);
    gb_free(places->sorted);
    *places = (gb_places){0};
}
