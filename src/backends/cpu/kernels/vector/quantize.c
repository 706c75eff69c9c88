/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/vector_sources.h"

#include <math.h>

/* NaN where a number is none; 0 where the quotients would not be exact enough. */
static float scale_of(const float *x, size_t count) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t magnitude = gb_bits_from_float(x[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    if (largest >= 0x7f800000u)
        return gb_float_from_bits(0x7fc00000u);
    float scale = gb_float_from_bits(largest) / 127.0f;
    return scale < 0x1p-126f ? 0.0f : scale;
}

/* Returns the sum of the codes. */
GB_INLINE int32_t round_codes(const float *x, size_t count, float scale, int8_t *codes) {
    const float round_to_int = 0x1.8p+23f;
    int32_t sum = 0;
    for (size_t i = 0; i < count;
         i++) { /* adding leaves the nearest integer, ties to even, in the low bits */
        int32_t code = (int32_t)(gb_bits_from_float(x[i] / scale + round_to_int) - 0x4b400000u);
        codes[i] = (int8_t)code;
        sum += code;
    }
    return sum;
}

void GB_FOR_ISA(gb_quantize)(const float *x, const gb_activations *to, size_t row, size_t first, size_t end) {
    for (size_t g = first; g < end; g++) {
        size_t at = g * to->group, left = to->inputs - at, count = left < to->group ? left : to->group;
        int8_t *codes = to->codes + row * to->stride + at;
        float scale = scale_of(x + at, count);
        int32_t sum = 0;
        if (scale > 0)
            sum = round_codes(x + at, count, scale, codes);
        else
            memset(codes, 0, count);
        to->scales[row * to->groups + g] = scale;
        to->sums[row * to->groups + g] = scale * (float)sum;
        to->code_sums[row * to->groups + g] = sum;
    }
}
