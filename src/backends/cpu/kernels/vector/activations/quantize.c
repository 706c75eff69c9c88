/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/activations/quantize.h"

void GB_FOR_ISA(gb_quantize)(const float *x, const gb_activations *to, size_t row, size_t first, size_t end) {
    for (size_t g = first; g < end; g++) {
        size_t at = g * to->group, left = to->inputs - at, count = left < to->group ? left : to->group;
        float scale = gb_code_scale(x + at, count);
        int32_t sum = gb_round_codes(x + at, count, scale, to->codes + row * to->stride + at);
        to->scales[row * to->groups + g] = scale;
        to->sums[row * to->groups + g] = scale * (float)sum;
        to->code_sums[row * to->groups + g] = sum;
    }
}
