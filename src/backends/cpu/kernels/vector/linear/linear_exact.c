/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/exact/exact.h"
#include "backends/cpu/kernels/vector/linear/quantized.h"

/* For canonical matrices. A row of the weight is expanded to 8-bit integers once for all tokens. */
typedef struct weight_row {
    int16_t integers[GB_MAX_INT32_INPUTS + 1];
    float scale;
} weight_row;

_Static_assert(sizeof(weight_row) <= GB_LINEAR_SCRATCH, "the scratch holds a row");

static gb_group_integers integers_of(const gb_quantized_matrix *matrix, size_t row, size_t group) {
    const gb_plane *bytes = &matrix->planes.scales;
    return gb_get_group_integers(
        matrix->format.bits, ((const uint8_t *)matrix->data)[bytes->offset + row * bytes->row_bytes + group]);
}

static float row_scale(const gb_quantized_matrix *matrix, size_t row) {
    if (matrix->format.kind != GB_FORMAT_PROGRESSIVE)
        return gb_affine_of(matrix, row, 0).scale;
    const gb_plane *supers = &matrix->planes.super_scales;
    uint16_t half;
    memcpy(&half, (const uint8_t *)matrix->data + supers->offset + row * supers->row_bytes, sizeof half);
    return gb_float_from_f16(half);
}

/* Codes of 8 bits have lost their center already. */
static void expand_row(const gb_quantized_matrix *matrix, size_t row, size_t inputs, weight_row *to) {
    const bool has_groups = matrix->format.kind == GB_FORMAT_PROGRESSIVE;
    const size_t run = has_groups ? matrix->format.group : GB_CODE_RUN;
    to->scale = row_scale(matrix, row);
    for (size_t first = 0; first < inputs; first += run) {
        const size_t count = inputs - first < run ? inputs - first : run;
        gb_unpack_codes(matrix, row, first, count, to->integers + first);
        if (!has_groups)
            continue;
        const gb_group_integers group = integers_of(matrix, row, first / run);
        for (size_t i = first; i < first + count; i++)
            to->integers[i] = (int16_t)((to->integers[i] - (int)group.zero) * (int)group.scale);
    }
}

static int32_t dot(const int8_t *codes, const int16_t *integers, size_t count) {
    int32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += codes[i] * integers[i];
    return sum;
}

static void multiply_canonical(const gb_linear *l, size_t first, size_t end, weight_row *weight) {
    const gb_activations *x = l->activations;
    for (size_t row = first; row < end; row++) {
        expand_row(l->quantized, l->first_row + row, l->inputs, weight);
        for (size_t t = 0; t < l->tokens; t++) {
            const size_t input = gb_linear_input_row(l, t);
            const int32_t sum = dot(x->codes + input * x->stride, weight->integers, l->inputs);
            gb_linear_result(l, t)[row] = ((float)sum * x->scales[input]) * weight->scale;
        }
    }
}

void GB_FOR_ISA(gb_linear_exact)(const gb_linear *l, size_t first, size_t end, void *scratch) {
    if (!l->quantized->is_interleaved)
        multiply_canonical(l, first, end, scratch);
    else if (l->tokens > GB_STREAM_TOKENS && gb_is_expanded(l->quantized->format.bits))
        GB_FOR_ISA(gb_linear_exact_many)(l, first, end, scratch);
    else
        GB_FOR_ISA(gb_linear_exact_few)(l, first, end, scratch);
}
