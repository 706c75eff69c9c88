/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/interleaved.h"

enum { ROWS = 16 };

/* The share of a plane that the block of row has. */
static const uint8_t *block_of(const gb_quantized_matrix *matrix, const gb_plane *plane, size_t row) {
    return (const uint8_t *)matrix->data + plane->offset + row * plane->row_bytes;
}

/* Four groups of small integers of two levels, which share a super-scale. */
typedef struct integers {
    gb_wide group[4];
} integers;

GB_INLINE gb_wide load_bytes(const uint8_t *from) {
    gb_wide wide;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        wide.part[p] = (gb_vector_integers)gb_widen_bytes(from + p * GB_VECTOR_LANES);
    return wide;
}

GB_INLINE integers load_signed(const uint8_t *from) {
    integers four;
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        four.group[g] = load_bytes(from + g * ROWS);
#pragma GCC unroll 4
        for (int p = 0; p < GB_PARTS; p++)
            four.group[g].part[p] = four.group[g].part[p] << 24 >> 24;
    }
    return four;
}

/* Six bits: the low four in nibbles of a byte for two groups, the others in a byte for all four. */
GB_INLINE integers load_six_bits(const uint8_t *low, const uint8_t *high) {
    const gb_wide pairs = load_bytes(high);
    integers four;
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        const gb_wide nibbles = load_bytes(low + g / 2 * ROWS);
#pragma GCC unroll 4
        for (int p = 0; p < GB_PARTS; p++)
            four.group[g].part[p] =
                (nibbles.part[p] >> 4 * (g % 2) & 15) | (pairs.part[p] << 4 >> 2 * g & 0x30);
    }
    return four;
}

/* What the scales, or the biases, of a block consist of. */
typedef struct levels {
    const uint8_t *supers, *integers;
    uint32_t bits;
    size_t groups, groups_of_super; /* of a row */
} levels;

/* super * integer, and the product's sign changed for a bias. */
GB_INLINE void expand_levels(const levels *from, bool is_bias, size_t first, size_t count, float *to) {
    const uint8_t *high = from->integers + from->groups / 2 * ROWS;
    gb_fetch(from->integers + first * ROWS * from->bits / 8, GB_FETCH_SCALES);
    for (size_t g = first; g < first + count; g += 4) {
        const gb_lanes super = gb_load_lanes(from->supers, GB_F16, g / from->groups_of_super * ROWS);
        const integers four = from->bits == 8
                                  ? load_signed(from->integers + g * ROWS)
                                  : load_six_bits(from->integers + g / 2 * ROWS, high + g / 4 * ROWS);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++, to += ROWS) {
            gb_lanes product = gb_floats_of(four.group[i]);
#pragma GCC unroll 4
            for (int p = 0; p < GB_PARTS; p++) {
                product.part[p] *= super.part[p];
                if (is_bias)
                    product.part[p] = -product.part[p];
            }
            gb_store_lanes(to, product);
        }
    }
}

void GB_FOR_ISA(gb_expand_scales)(const gb_quantized_matrix *matrix, size_t row, size_t first_group,
                                  size_t groups, float *scales, float *biases) {
    const gb_planes *planes = &matrix->planes;
    const size_t of_super = matrix->format.group == 16 ? 16 : 8;
    levels from = {.supers = block_of(matrix, &planes->super_scales, row),
                   .integers = block_of(matrix, &planes->scales, row),
                   .bits = matrix->format.scale_bits,
                   .groups = planes->super_scales.row_bytes / 2 * of_super,
                   .groups_of_super = of_super};
    expand_levels(&from, false, first_group, groups, scales);
    if (!matrix->format.has_bias)
        return;
    from.supers = block_of(matrix, &planes->super_biases, row);
    from.integers = block_of(matrix, &planes->biases, row);
    expand_levels(&from, true, first_group, groups, biases);
}
