/* SPDX-License-Identifier: Apache-2.0
 *
 * Floats as 8-bit codes with one scale, of a group or of a whole token.
 */
#include "backends/cpu/kernels/vector/hadamard.h"
#include "backends/cpu/kernels/vector/vector_sources.h"

_Static_assert((size_t)GB_MAX_INT32_INPUTS * sizeof(float) <= GB_LINEAR_SCRATCH, "the scratch holds a row");

/* The largest magnitude / 127; NaN where a number is none, 0 where the quotients would not be exact enough.
 */
GB_INLINE float code_scale(const float *x, size_t count) {
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
GB_INLINE int32_t round_codes(const float *x, size_t count, float scale, int8_t *codes) {
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

void GB_FOR_ISA(gb_quantize)(const float *x, const gb_activations *to, size_t row, size_t first, size_t end) {
    for (size_t g = first; g < end; g++) {
        size_t at = g * to->group, left = to->inputs - at, count = left < to->group ? left : to->group;
        float scale = code_scale(x + at, count);
        int32_t sum = round_codes(x + at, count, scale, to->codes + row * to->stride + at);
        to->scales[row * to->groups + g] = scale;
        to->sums[row * to->groups + g] = scale * (float)sum;
        to->code_sums[row * to->groups + g] = sum;
    }
}

/* Groups whose sizes the compiler knows. */
static void round_groups(const float *x, const gb_activations *to, size_t row, float scale) {
    enum { GROUP = 32 };
    int8_t *codes = to->codes + row * to->stride;
    int32_t *sums = to->code_sums + row * to->groups;
    size_t at = 0;
    for (; to->group == GROUP && at + GROUP <= to->inputs; at += GROUP)
        *sums++ = round_codes(x + at, GROUP, scale, codes + at);
    for (size_t count; at < to->inputs; at += count) {
        count = to->inputs - at < to->group ? to->inputs - at : to->group;
        *sums++ = round_codes(x + at, count, scale, codes + at);
    }
}

void GB_FOR_ISA(gb_quantize_token)(const float *x, const gb_activations *to, size_t row, void *scratch) {
    const size_t rotation = to->rounding.rotation;
    if (rotation > 0) {
        gb_hadamard_row(x, to->inputs, rotation, scratch);
        x = scratch;
    }
    const float scale = code_scale(x, to->inputs);
    round_groups(x, to, row, scale);
    to->scales[row] = rotation > 0 ? scale * gb_hadamard_scale(rotation) : scale;
}
