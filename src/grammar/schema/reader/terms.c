/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/reader/terms.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

bool gb_terms_have(const gb_terms *terms, const json_t *schema) {
    for (size_t i = 0; i < terms->count; i++)
        if (terms->items[i] == schema)
            return true;
    return false;
}

bool gb_terms_add(gb_terms *terms, const json_t *schema) {
    if (gb_terms_have(terms, schema))
        return true;
    if (!gb_grow((void **)&terms->items, &terms->capacity, terms->count + 1, sizeof *terms->items))
        return false;
    terms->items[terms->count++] = schema;
    return true;
}

/* All at once where nothing is there: none of them stands twice. */
static bool copy_all(gb_terms *to, const gb_terms *from) {
    if (from->count == 0)
        return true;
    if (!gb_grow((void **)&to->items, &to->capacity, from->count, sizeof *to->items))
        return false;
    memcpy(to->items, from->items, from->count * sizeof *to->items);
    to->count = from->count;
    return true;
}

bool gb_terms_add_all(gb_terms *terms, const gb_terms *added) {
    if (terms->count == 0)
        return copy_all(terms, added);
    for (size_t i = 0; i < added->count; i++)
        if (!gb_terms_add(terms, added->items[i]))
            return false;
    return true;
}

void gb_terms_free(gb_terms *terms) {
    gb_free(terms->items);
    *terms = (gb_terms){0};
}

static int compare(const void *a, const void *b) {
    const uintptr_t first = (uintptr_t) * (const json_t *const *)a;
    const uintptr_t second = (uintptr_t) * (const json_t *const *)b;
    return (first > second) - (first < second);
}

static size_t hash_of(const gb_terms *terms) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < terms->count; i++)
        hash = (hash ^ (uintptr_t)terms->items[i] >> 4) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 16);
}

static bool are_same(const gb_terms *a, const gb_terms *b) {
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->items, b->items, a->count * sizeof *a->items) == 0);
}

static uint32_t *slot_of(const gb_terms_map *map, const gb_terms *key) {
    const size_t mask = map->slot_count - 1;
    for (size_t at = hash_of(key) & mask;; at = (at + 1) & mask)
        if (!map->slots[at] || are_same(&map->entries[map->slots[at] - 1].key, key))
            return &map->slots[at];
}

static bool grow_slots(gb_terms_map *map) {
    if (map->count * 2 < map->slot_count)
        return true;
    const size_t count = map->slot_count ? map->slot_count * 2 : 64;
    uint32_t *slots = gb_allocate(count, sizeof *slots);
    if (!slots)
        return false;
    gb_free(map->slots);
    map->slots = slots;
    map->slot_count = count;
    for (size_t i = 0; i < map->count; i++)
        *slot_of(map, &map->entries[i].key) = (uint32_t)i + 1;
    return true;
}

uint32_t *gb_terms_map_at(gb_terms_map *map, const gb_terms *terms) {
    gb_terms key = {0};
    if (!grow_slots(map) || !gb_terms_add_all(&key, terms) ||
        !gb_grow((void **)&map->entries, &map->capacity, map->count + 1, sizeof *map->entries)) {
        gb_terms_free(&key);
        return NULL;
    }
    if (key.count)
        qsort(key.items, key.count, sizeof *key.items, compare);
    uint32_t *slot = slot_of(map, &key);
    if (*slot) {
        gb_terms_free(&key);
    } else {
        map->entries[map->count] = (gb_terms_entry){.key = key};
        *slot = (uint32_t)++map->count;
    }
    return &map->entries[*slot - 1].value;
}

void gb_terms_map_free(gb_terms_map *map) {
    for (size_t i = 0; i < map->count; i++)
        gb_terms_free(&map->entries[i].key);
    gb_free(map->entries);
    gb_free(map->slots);
    *map = (gb_terms_map){0};
}
