/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/interleaved.h"

enum { ROWS = 16 };

/* The share of a plane that the block of row has. */
static const uint8_t *block_of(const gb_quantized_matrix *matrix, const gb_plane *plane, size_t row) {
    return (const uint8_t *)matrix->data + plane->offset + row * plane->row_bytes;
}

static void expand_halves(const uint8_t *block, gb_dtype dtype, size_t first, size_t count, float *to) {
    const uint16_t *from = (const uint16_t *)(const void *)block + first * ROWS;
    __builtin_prefetch((const void *)((uintptr_t)from + GB_FETCH_CODES / 8));
    for (size_t g = 0; g < count; g++) {
        if (dtype == GB_BF16)
            gb_store_lanes(to + g * ROWS, gb_load_lanes(from, GB_BF16, g * ROWS));
        else
            gb_store_lanes(to + g * ROWS, gb_load_lanes(from, GB_F16, g * ROWS));
    }
}

/* The small integers of two levels, for 16 rows. */
typedef struct integers {
    const uint8_t *block;
    size_t groups; /* of a row */
    uint32_t bits;
} integers;

/* Of group g: signed bytes; or six bits, of which a nibble stands in a byte shared with group g ^ 1 and two
 * bits in a byte that four groups share. */
GB_INLINE gb_lanes integers_of(const integers *from, size_t g) {
    const uint8_t *high = from->block + (from->groups / 2 + g / 4) * ROWS;
    const int nibble = (int)(g % 2) * 4, pair = (int)(g % 4) * 2;
    gb_wide wide;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++) {
        const size_t r = (size_t)(p * GB_VECTOR_LANES);
        if (from->bits == 8)
            wide.part[p] = (gb_vector_integers)(gb_widen_bytes(from->block + g * ROWS + r) << 24) >> 24;
        else
            wide.part[p] =
                (gb_vector_integers)((gb_widen_bytes(from->block + g / 2 * ROWS + r) >> nibble & 15) |
                                     (gb_widen_bytes(high + r) >> pair & 3) << 4);
    }
    return gb_floats_of(wide);
}

/* sign * (super * integer), the product rounded. */
static void expand_levels(const integers *from, const uint8_t *supers, size_t groups_of_super, float sign,
                          size_t first, size_t count, float *to) {
    __builtin_prefetch((const void *)((uintptr_t)from->block + (first + count) * ROWS));
    for (size_t g = first; g < first + count; g++, to += ROWS) {
        const gb_lanes super = gb_load_lanes(supers, GB_F16, g / groups_of_super * ROWS);
        const gb_lanes integer = integers_of(from, g);
        gb_lanes product;
#pragma GCC unroll 4
        for (int p = 0; p < GB_PARTS; p++)
            product.part[p] = sign * (super.part[p] * integer.part[p]);
        gb_store_lanes(to, product);
    }
}

void GB_FOR_ISA(gb_expand_scales)(const gb_quantized_matrix *matrix, size_t row, size_t first_group,
                                  size_t groups, float *scales, float *biases) {
    const gb_planes *planes = &matrix->planes;
    const gb_format *format = &matrix->format;
    const uint8_t *scale_block = block_of(matrix, &planes->scales, row);
    const uint8_t *bias_block = block_of(matrix, &planes->biases, row);
    if (format->kind == GB_FORMAT_ONE_LEVEL) {
        expand_halves(scale_block, format->scale, first_group, groups, scales);
        if (format->has_bias)
            expand_halves(bias_block, format->scale, first_group, groups, biases);
        return;
    }
    const size_t groups_of_super = GB_SUPER_GROUP / format->group;
    const size_t row_groups = planes->super_scales.row_bytes / 2 * groups_of_super;
    integers from = {scale_block, row_groups, format->scale_bits};
    expand_levels(&from, block_of(matrix, &planes->super_scales, row), groups_of_super, 1, first_group,
                  groups, scales);
    from.block = bias_block;
    if (format->has_bias)
        expand_levels(&from, block_of(matrix, &planes->super_biases, row), groups_of_super, -1, first_group,
                      groups, biases);
}
