/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/interleaved/levels.h"

/* The share of a plane that the block of row has. */
static const uint8_t *block_of(const gb_quantized_matrix *matrix, const gb_plane *plane, size_t row) {
    return (const uint8_t *)matrix->data + plane->offset + row * plane->row_bytes;
}

/* What the scales, or the biases, of a block consist of. */
typedef struct levels {
    const uint8_t *supers, *integers;
    float unit; /* of the book */
    uint32_t bits;
    size_t groups, groups_of_super; /* of a row */
} levels;

/* super * integer, and the product's sign changed for a bias. */
GB_INLINE void expand_levels(const levels *from, bool is_bias, size_t first, size_t count, float *to) {
    const uint8_t *high = from->integers + from->groups / 2 * GB_ROWS;
    gb_fetch(from->integers + first * GB_ROWS * from->bits / 8, GB_FETCH_SCALES);
    for (size_t g = first; g < first + count; g += 4) {
        const gb_lanes super = gb_multiply_by(
            gb_load_lanes(from->supers, GB_F16, g / from->groups_of_super * GB_ROWS), from->unit);
        const uint8_t *low = from->integers + g * GB_ROWS / (from->bits == 8 ? 1 : 2);
        const gb_integers four = from->bits == 8   ? gb_load_signed(low)
                                 : from->bits == 4 ? gb_load_four_bits(low)
                                                   : gb_load_six_bits(low, high + g / 4 * GB_ROWS);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++, to += GB_ROWS) {
            const gb_lanes product = gb_multiply_lanes(gb_floats_of(four.group[i]), super);
            gb_store_lanes(to, is_bias ? gb_negate_lanes(product) : product);
        }
    }
}

void GB_FOR_ISA(gb_expand_scales)(const gb_quantized_matrix *matrix, size_t row, size_t first_group,
                                  size_t groups, float *scales, float *biases) {
    const gb_planes *planes = &matrix->planes;
    const size_t of_super = matrix->format.group == 16 ? 16 : 8;
    levels from = {.supers = block_of(matrix, &planes->super_scales, row),
                   .integers = block_of(matrix, &planes->scales, row),
                   .unit = gb_book_unit(matrix->format.book),
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
