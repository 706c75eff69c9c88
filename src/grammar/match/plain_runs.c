/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/match/plain_runs.h"

#include "base/memory.h"

#include <string.h>

/* Configurations that are followed at once; where there are more a run ends. */
#define MAX_SET 8

typedef struct set {
    uint32_t items[MAX_SET];
    size_t count;
    bool fails; /* a character is not allowed, or there are too many */
} set;

/* A well-formed UTF-8 character of more than one byte: its lead bytes, the bytes that may follow, and how
 * many more there are of 0x80 to 0xBF. */
static const struct {
    uint8_t lead_first, lead_last, next_first, next_last, more;
} long_characters[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 0}, {0xE0, 0xE0, 0xA0, 0xBF, 1}, {0xE1, 0xEC, 0x80, 0xBF, 1},
    {0xED, 0xED, 0x80, 0x9F, 1}, {0xEE, 0xEF, 0x80, 0xBF, 1}, {0xF0, 0xF0, 0x90, 0xBF, 2},
    {0xF1, 0xF3, 0x80, 0xBF, 2}, {0xF4, 0xF4, 0x80, 0x8F, 2},
};

static void add(set *to, uint32_t configuration) {
    for (size_t i = 0; i < to->count; i++)
        if (to->items[i] == configuration)
            return;
    if (configuration == GB_DEAD || to->count == MAX_SET)
        to->fails = true;
    else
        to->items[to->count++] = configuration;
}

/* Where each byte from first to last leads; a class of bytes is looked at once. */
static void step_over(gb_configurations *configurations, const set *from, uint8_t first, uint8_t last,
                      set *to) {
    const uint8_t *class_of = configurations->closure.automaton->class_of;
    for (size_t i = 0; i < from->count && !to->fails; i++)
        for (unsigned byte = first; byte <= last && !to->fails; byte++)
            if (byte == first || class_of[byte] != class_of[byte - 1])
                add(to, gb_byte_step(configurations, from->items[i], (uint8_t)byte));
}

static void step_over_ascii(gb_configurations *configurations, const set *from, set *to) {
    step_over(configurations, from, 0x20, '"' - 1, to);
    step_over(configurations, from, '"' + 1, '\\' - 1, to);
    step_over(configurations, from, '\\' + 1, 0x7E, to);
}

static void step_over_long(gb_configurations *configurations, const set *from, size_t kind, set *to) {
    set between = {.count = 0}, next = {.count = 0};
    step_over(configurations, from, long_characters[kind].lead_first, long_characters[kind].lead_last,
              &between);
    step_over(configurations, &between, long_characters[kind].next_first, long_characters[kind].next_last,
              &next);
    to->fails |= between.fails;
    for (unsigned i = 0; i < long_characters[kind].more; i++) {
        set further = {.count = 0};
        step_over(configurations, &next, 0x80, 0xBF, &further);
        further.fails |= next.fails;
        next = further;
    }
    to->fails |= next.fails;
    for (size_t i = 0; i < next.count; i++)
        add(to, next.items[i]);
}

static bool make_room(gb_plain_runs *runs, size_t count) {
    size_t before = runs->capacity;
    if (!gb_grow((void **)&runs->after, &runs->capacity, count, sizeof *runs->after))
        return false;
    memset(runs->after + before, 0, (runs->capacity - before) * sizeof *runs->after);
    return true;
}

/* The configurations after any one character, stored; the empty set where one is not allowed. */
static bool find_after(gb_plain_runs *runs, gb_configurations *configurations, uint32_t configuration,
                       uint32_t *number) {
    if (!make_room(runs, configurations->sets.count))
        return false;
    if (runs->after[configuration]) {
        *number = runs->after[configuration] - 1;
        return true;
    }
    set from = {.items = {configuration}, .count = 1}, to = {.count = 0};
    step_over_ascii(configurations, &from, &to);
    for (size_t i = 0; i < sizeof long_characters / sizeof *long_characters && !to.fails; i++)
        step_over_long(configurations, &from, i, &to);
    if (!gb_intern(&runs->sets, to.items, to.fails ? 0 : to.count, number))
        return false;
    runs->after[configuration] = *number + 1;
    return true;
}

/* Adds to `to` what follows all of from. false where a character is not allowed. */
static bool follow(gb_plain_runs *runs, gb_configurations *configurations, const set *from, set *to) {
    for (size_t i = 0; i < from->count && !to->fails; i++) {
        uint32_t number;
        if (!find_after(runs, configurations, from->items[i], &number)) {
            runs->failed = true;
            return false;
        }
        size_t count = gb_interned_size(&runs->sets, number);
        to->fails |= count == 0;
        for (size_t k = 0; k < count; k++)
            add(to, gb_interned(&runs->sets, number)[k]);
    }
    return !to->fails;
}

static bool is_within(const set *inner, const set *outer) {
    for (size_t i = 0; i < inner->count; i++) {
        set with = *outer;
        add(&with, inner->items[i]);
        if (with.fails || with.count != outer->count)
            return false;
    }
    return true;
}

uint32_t gb_find_plain_run(gb_plain_runs *runs, gb_configurations *configurations, uint32_t configuration,
                           uint32_t most) {
    set at = {.items = {configuration}, .count = 1};
    for (uint32_t length = 0; length < most; length++) {
        set next = {.count = 0};
        if (!follow(runs, configurations, &at, &next))
            return length;
        if (is_within(&next, &at))
            return UINT32_MAX;
        at = next;
    }
    return most;
}

size_t gb_plain_runs_bytes(const gb_plain_runs *runs) {
    return runs->capacity * sizeof *runs->after + gb_intern_bytes(&runs->sets);
}

void gb_plain_runs_free(gb_plain_runs *runs) {
    gb_free(runs->after);
    gb_intern_free(&runs->sets);
    *runs = (gb_plain_runs){0};
}
