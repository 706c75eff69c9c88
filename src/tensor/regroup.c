/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/regroup.h"

#include "tensor/convert.h"

#include <math.h>
#include <string.h>

static uint64_t group_of(const gb_format *format, uint64_t columns) {
    return format->group ? format->group : columns;
}

bool gb_can_regroup(const gb_format *from, const gb_format *to, uint64_t columns) {
    return from->kind == GB_FORMAT_ONE_LEVEL && to->kind == GB_FORMAT_ONE_LEVEL && from->bits == to->bits &&
           from->scale == to->scale && (to->has_bias || !from->has_bias) && columns > 0 &&
           gb_format_fits(from, columns) && gb_format_fits(to, columns) &&
           group_of(from, columns) % group_of(to, columns) == 0;
}

/* The bias that stands for a missing one; false where it, or a product that it is added to, overflows. */
static bool make_bias(const gb_format *from, const uint8_t *scale, uint8_t *bias) {
    uint16_t half;
    memcpy(&half, scale, sizeof half);
    float value = gb_widen_half(half, from->scale), center = (float)gb_format_center(from);
    half = gb_round_half(-value * center, from->scale);
    memcpy(bias, &half, sizeof half);
    return isfinite(gb_widen_half(half, from->scale)) && isfinite(value * 2 * center);
}

bool gb_regroup(const gb_format *from, const gb_format *to, uint64_t rows, uint64_t columns,
                const uint8_t *matrix, uint8_t *regrouped) {
    enum { HALF = 2 };
    gb_planes coarse, finer;
    if (!gb_format_planes(from, rows, columns, &coarse) || !gb_format_planes(to, rows, columns, &finer))
        return false;
    memcpy(regrouped + finer.codes.offset, matrix + coarse.codes.offset,
           (size_t)(rows * coarse.codes.row_bytes));
    const uint64_t old_groups = columns / coarse.group, new_groups = columns / finer.group;
    bool fits = true;
    for (uint64_t i = 0; i < rows * new_groups; i++) {
        uint64_t j = i / new_groups * old_groups + i % new_groups * finer.group / coarse.group;
        const uint8_t *scale = matrix + coarse.scales.offset + HALF * j;
        uint8_t *bias = regrouped + finer.biases.offset + HALF * i;
        memcpy(regrouped + finer.scales.offset + HALF * i, scale, HALF);
        if (from->has_bias)
            memcpy(bias, matrix + coarse.biases.offset + HALF * j, HALF);
        else if (to->has_bias)
            fits = make_bias(from, scale, bias) && fits;
    }
    return fits;
}
