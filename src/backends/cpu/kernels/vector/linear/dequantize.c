/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/linear/quantized.h"

static void scale_codes(const int16_t *codes, size_t count, gb_affine affine, bool has_offset, float *to) {
    if (has_offset) {
        for (size_t i = 0; i < count; i++)
            to[i] = affine.scale * (float)codes[i] + affine.bias;
    } else {
        for (size_t i = 0; i < count; i++)
            to[i] = affine.scale * (float)codes[i];
    }
}

void GB_FOR_ISA(gb_dequantize)(const gb_quantized_matrix *matrix, size_t row, size_t first, size_t count,
                               float *to) {
    int16_t codes[GB_CODE_RUN];
    size_t group_size = (size_t)matrix->planes.group;
    for (size_t at = first, end = first + count; at < end;) {
        size_t group = at / group_size, group_end = (group + 1) * group_size;
        size_t run = (group_end < end ? group_end : end) - at;
        run = run < GB_CODE_RUN ? run : GB_CODE_RUN;
        gb_affine affine = gb_affine_of(matrix, row, group);
        gb_unpack_codes(matrix, row, at, run, codes);
        scale_codes(codes, run, affine, gb_format_has_offset(&matrix->format), to);
        at += run;
        to += run;
    }
}
