/* SPDX-License-Identifier: Apache-2.0
 *
 * Floats as 8-bit codes with one scale. Only this folder includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_ACTIVATIONS_QUANTIZE_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_ACTIVATIONS_QUANTIZE_H

#include "backends/cpu/kernels/vector/vector_sources.h"

/* The largest magnitude / 127; NaN where a number is none, 0 where the quotients would not be exact enough.
 */
GB_INLINE float gb_code_scale(const float *x, size_t count) {
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

/* x / scale, or 0 where the scale is 0 or NaN. Returns the sum of the codes. */
GB_INLINE int32_t gb_round_codes(const float *x, size_t count, float scale, int8_t *codes) {
    const float round_to_int = 0x1.8p+23f;
    int32_t sum = 0;
    if (!(scale > 0)) {
        memset(codes, 0, count);
        return 0;
    }
    for (size_t i = 0; i < count;
         i++) { /* adding leaves the nearest integer, ties to even, in the low bits */
        int32_t code = (int32_t)(gb_bits_from_float(x[i] / scale + round_to_int) - 0x4b400000u);
        codes[i] = (int8_t)code;
        sum += code;
    }
    return sum;
}

#endif
