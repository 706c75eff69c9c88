/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/regex/ranges.h"

#include "base/memory.h"

#include <stdlib.h>

void gb_add_range(gb_ranges *ranges, uint32_t first, uint32_t last) {
    if (!gb_grow((void **)&ranges->items, &ranges->capacity, ranges->count + 1, sizeof *ranges->items))
        ranges->failed = true;
    else
        ranges->items[ranges->count++] = (gb_character_range){first, last};
}

void gb_add_ranges(gb_ranges *ranges, const gb_ranges *others) {
    for (size_t i = 0; i < others->count; i++)
        gb_add_range(ranges, others->items[i].first, others->items[i].last);
    ranges->failed |= others->failed;
}

static int by_first(const void *left, const void *right) {
    const gb_character_range *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

void gb_negate_ranges(gb_ranges *ranges) {
    gb_ranges others = {0};
    uint32_t next = 0;
    if (ranges->count > 1)
        qsort(ranges->items, ranges->count, sizeof *ranges->items, by_first);
    for (size_t i = 0; i < ranges->count; i++) {
        if (ranges->items[i].first > next)
            gb_add_range(&others, next, ranges->items[i].first - 1);
        if (ranges->items[i].last >= next)
            next = ranges->items[i].last + 1;
    }
    if (next <= 0x10FFFF)
        gb_add_range(&others, next, 0x10FFFF);
    others.failed |= ranges->failed;
    gb_free_ranges(ranges);
    *ranges = others;
}

void gb_free_ranges(gb_ranges *ranges) {
    gb_free(ranges->items);
    *ranges = (gb_ranges){0};
}
