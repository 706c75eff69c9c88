/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/quantize.h"
#include "tensor/hadamard.h"

_Static_assert((size_t)GB_MAX_INT32_INPUTS * sizeof(float) <= GB_LINEAR_SCRATCH, "the scratch holds a row");

static const float *rotate_row(const float *x, size_t count, size_t rotation, float *rotated) {
    if (rotation == 0)
        return x;
    memcpy(rotated, x, count * sizeof *x);
    for (size_t at = 0; at < count; at += rotation)
        gb_hadamard(rotated + at, rotation);
    return rotated;
}

void GB_FOR_ISA(gb_quantize_token)(const float *x, const gb_activations *to, size_t row, void *scratch) {
    const size_t rotation = to->rounding.rotation;
    const float *rotated = rotate_row(x, to->inputs, rotation, scratch);
    const float scale = gb_code_scale(rotated, to->inputs);
    for (size_t g = 0; g < to->groups; g++) {
        size_t at = g * to->group, left = to->inputs - at, count = left < to->group ? left : to->group;
        to->code_sums[row * to->groups + g] =
            gb_round_codes(rotated + at, count, scale, to->codes + row * to->stride + at);
    }
    to->scales[row] = rotation > 0 ? scale * gb_hadamard_scale(rotation) : scale;
}
