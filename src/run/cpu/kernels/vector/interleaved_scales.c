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

/* Integers of 6 bits of 16 rows: of group g in the nibbles of a byte that it shares with g ^ 1, and in one of
 * four pairs of bits of another one. */
GB_INLINE void expand_six_bits(const uint8_t *low, const uint8_t *high, size_t g, int32_t *to) {
    const int nibble = (int)(g % 2) * 4, pair = (int)(g % 4) * 2;
    for (int r = 0; r < ROWS; r++)
        to[r] = (low[r] >> nibble & 15) | (high[r] >> pair & 3) << 4;
}

typedef struct integers {
    const uint8_t *block;
    size_t groups; /* of a row */
    uint32_t bits;
} integers;

GB_INLINE void expand_integers(const integers *from, size_t g, int32_t *to) {
    if (from->bits == 8) {
        for (int r = 0; r < ROWS; r++)
            to[r] = (int8_t)from->block[g * ROWS + (size_t)r];
        return;
    }
    const uint8_t *high = from->block + from->groups / 2 * ROWS;
    expand_six_bits(from->block + g / 2 * ROWS, high + g / 4 * ROWS, g, to);
}

/* sign * (super * integer), the product rounded. */
static void expand_levels(const integers *from, const uint8_t *supers, size_t groups_of_super, float sign,
                          size_t first, size_t count, float *to) {
    for (size_t g = 0; g < count; g++) {
        int32_t integer[ROWS];
        float super[ROWS];
        size_t at = (first + g) / groups_of_super;
        gb_store_lanes(super, gb_load_lanes((const uint16_t *)(const void *)supers, GB_F16, at * ROWS));
        expand_integers(from, first + g, integer);
        for (int r = 0; r < ROWS; r++)
            to[g * ROWS + (size_t)r] = sign * (super[r] * (float)integer[r]);
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
