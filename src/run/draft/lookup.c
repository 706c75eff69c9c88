/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/lookup.h"

#include "base/memory.h"

enum { LEAST_CAPACITY = 1024, MOST_TRIES = 64 };

static const uint32_t none = UINT32_MAX;

/* The hash of the pair that ends at a position behind the first. */
static uint32_t hash_of(const gb_lookup *lookup, uint32_t end) {
    const uint32_t first = (uint32_t)lookup->tokens[end - 1], second = (uint32_t)lookup->tokens[end];
    const uint32_t mixed = (first * UINT32_C(0x9E3779B1)) ^ (second * UINT32_C(0x85EBCA77));
    return (mixed ^ mixed >> 15) & (lookup->capacity - 1);
}

static void link_pair(gb_lookup *lookup, uint32_t end) {
    uint32_t *latest = &lookup->latest[hash_of(lookup, end)];
    lookup->earlier[end] = *latest;
    *latest = end;
}

static bool resize(gb_lookup *lookup, uint32_t capacity) {
    int32_t *tokens = gb_reallocate(lookup->tokens, capacity, sizeof *tokens);
    lookup->tokens = tokens ? tokens : lookup->tokens;
    uint32_t *earlier = gb_reallocate(lookup->earlier, capacity, sizeof *earlier);
    lookup->earlier = earlier ? earlier : lookup->earlier;
    uint32_t *latest = gb_reallocate(lookup->latest, capacity, sizeof *latest);
    lookup->latest = latest ? latest : lookup->latest;
    if (!tokens || !earlier || !latest)
        return false;
    lookup->capacity = capacity;
    for (uint32_t i = 0; i < capacity; i++)
        latest[i] = none;
    for (uint32_t end = 1; end < lookup->count; end++)
        link_pair(lookup, end);
    return true;
}

/* Room for so many tokens more. */
static bool reserve(gb_lookup *lookup, size_t count) {
    uint32_t capacity = lookup->capacity > 0 ? lookup->capacity : LEAST_CAPACITY;
    if (count > (UINT32_MAX >> 2) - lookup->count)
        return false;
    while (capacity < lookup->count + count)
        capacity *= 2;
    return capacity == lookup->capacity || resize(lookup, capacity);
}

void gb_lookup_add(gb_lookup *lookup, const int32_t *tokens, size_t count) {
    if (lookup->has_failed || !reserve(lookup, count)) {
        lookup->has_failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t end = lookup->count++;
        lookup->tokens[end] = tokens[i];
        if (end > 0)
            link_pair(lookup, end);
    }
}

/* How many tokens up to an earlier position are the last ones. */
static uint32_t match_length(const gb_lookup *lookup, uint32_t end) {
    const int32_t *last = lookup->tokens + lookup->count - 1, *then = lookup->tokens + end;
    uint32_t length = 0;
    while (length <= end && length < GB_LOOKUP_LONGEST &&
           then[-(ptrdiff_t)length] == last[-(ptrdiff_t)length])
        length++;
    return length;
}

/* Where the longest match ends. A pair of the same hash may be another one. */
static uint32_t find_match(const gb_lookup *lookup, uint32_t *length) {
    uint32_t found = none, at = lookup->earlier[lookup->count - 1];
    *length = 1;
    for (uint32_t tries = 0; at != none && tries < MOST_TRIES && *length < GB_LOOKUP_LONGEST; tries++) {
        const uint32_t here = match_length(lookup, at);
        if (here > *length) {
            *length = here;
            found = at;
        }
        at = lookup->earlier[at];
    }
    return found;
}

uint32_t gb_lookup_find(const gb_lookup *lookup, int32_t *following, uint32_t most) {
    uint32_t length;
    if (lookup->has_failed || lookup->count < 2)
        return 0;
    const uint32_t end = find_match(lookup, &length);
    if (end == none)
        return 0;
    for (uint32_t i = 0; i < most; i++) {
        const uint32_t at = end + 1 + i;
        following[i] = at < lookup->count ? lookup->tokens[at] : following[at - lookup->count];
    }
    return length;
}

void gb_lookup_free(gb_lookup *lookup) {
    gb_free(lookup->tokens);
    gb_free(lookup->earlier);
    gb_free(lookup->latest);
    *lookup = (gb_lookup){0};
}
