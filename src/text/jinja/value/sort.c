/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/sort.h"

#include <string.h>

/* Merges the sorted runs [0, middle) and [middle, count) of from into to. */
static gumbel_status merge(gb_jinja_state *state, const gb_jinja_entry *from, size_t middle, size_t count,
                           bool reverse, gb_jinja_entry *to) {
    size_t left = 0, right = middle;
    for (size_t i = 0; i < count; i++) {
        bool take_right = left == middle;
        if (left < middle && right < count) {
            int order;
            GB_TRY(gb_jinja_order(state, &from[right].key, &from[left].key, &order));
            take_right = reverse ? order > 0 : order < 0;
        }
        to[i] = take_right ? from[right++] : from[left++];
    }
    return gb_jinja_work(state, count);
}

gumbel_status gb_jinja_sort(gb_jinja_state *state, gb_jinja_entry *entries, size_t count, bool reverse) {
    gumbel_status status;
    gb_jinja_entry *merged = gb_jinja_allocate(state, count, sizeof *merged, &status);
    if (!merged)
        return status;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t length = count - start < 2 * width ? count - start : 2 * width;
            size_t middle = length < width ? length : width;
            GB_TRY(merge(state, entries + start, middle, length, reverse, merged + start));
        }
        memcpy(entries, merged, count * sizeof *entries);
    }
    return GUMBEL_OK;
}
