/* SPDX-License-Identifier: Apache-2.0
 *
 * Scales and biases of 16 rows and up to 256 inputs as float32, of every format. Only this folder includes
 * it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_SPAN_SCALES_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_SPAN_SCALES_H

#include "backends/cpu/kernels/vector/interleaved/levels.h"
#include "backends/cpu/kernels/vector/interleaved/row.h"

enum { GB_SPAN_GROUPS = GB_SUPER_GROUP / 16 };

/* Biases are undefined where the format has no offset. */
typedef struct gb_span_scales {
    float scales[GB_SPAN_GROUPS][GB_ROWS], biases[GB_SPAN_GROUPS][GB_ROWS];
} gb_span_scales;

GB_INLINE void gb_load_span_halves(const gb_quantized_matrix *matrix, const gb_plane *plane, size_t row,
                                   size_t group, float *to) {
    const uint8_t *from = gb_interleaved_block(matrix, plane, row, 0);
    const gb_affines affines = {.dtype = matrix->format.scale, .at = group * GB_ROWS};
    gb_store_lanes(to, gb_load_affine(&affines, from));
}

GB_INLINE void gb_load_span_one_level(const gb_quantized_matrix *matrix, size_t row, size_t group,
                                      size_t groups, gb_span_scales *to) {
    for (size_t g = 0; g < groups; g++) {
        gb_load_span_halves(matrix, &matrix->planes.scales, row, group + g, to->scales[g]);
        if (matrix->format.has_bias)
            gb_load_span_halves(matrix, &matrix->planes.biases, row, group + g, to->biases[g]);
    }
}

GB_INLINE void gb_load_span_progressive(const gb_quantized_matrix *matrix, size_t row, size_t group,
                                        size_t groups, gb_span_scales *to) {
    for (size_t g = 0; g < groups; g++)
        for (size_t r = 0; r < GB_ROWS; r++) {
            const gb_affine affine = gb_interleaved_affine(matrix, row + r, group + g);
            to->scales[g][r] = affine.scale;
            to->biases[g][r] = affine.bias;
        }
}

GB_INLINE void gb_load_span_scales(const gb_quantized_matrix *matrix, size_t row, size_t group, size_t groups,
                                   gb_span_scales *to) {
    if (matrix->format.kind == GB_FORMAT_TWO_LEVEL)
        GB_FOR_ISA(gb_expand_scales)(matrix, row, group, groups, to->scales[0], to->biases[0]);
    else if (matrix->format.kind == GB_FORMAT_ONE_LEVEL)
        gb_load_span_one_level(matrix, row, group, groups, to);
    else
        gb_load_span_progressive(matrix, row, group, groups, to);
}

#endif
