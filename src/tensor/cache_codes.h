/* SPDX-License-Identifier: Apache-2.0
 *
 * The dtypes q8 and q4 of caches: codes of 8 or 4 bits in groups of 32 elements with a float16 scale each. A
 * row of n elements, a multiple of 32, is its codes and then its scales, both in the order of groups. A code
 * c with the scale s is the element s * c, which float32 holds exactly. q8: c is -127 .. 127, a byte. q4: c
 * is -8 .. 7, stored as c + 8; byte b of a group has element b in its low four bits and element b + 16 in the
 * others. This is the definition; backends have kernels with the same bits.
 */
#ifndef GUMBEL_TENSOR_CACHE_CODES_H
#define GUMBEL_TENSOR_CACHE_CODES_H

#include "tensor/convert.h"

/* Elements of a group, and the most of a head, so that kernels know how much room a rotated one takes. */
enum { GB_CODE_GROUP = 32, GB_MAX_CODED_HEAD = 512 };

/* Bytes of the codes of so many elements, and of their scales; elements are a multiple of GB_CODE_GROUP. */
GB_ANYWHERE size_t gb_code_bytes(gb_dtype dtype, size_t elements) {
    return dtype == GB_Q8 ? elements : elements / 2;
}

GB_ANYWHERE size_t gb_code_scale_bytes(size_t elements) {
    return elements / GB_CODE_GROUP * sizeof(uint16_t);
}

/* What a group's largest element becomes: 127, or -8 whatever its sign, so that all codes are of use. */
static inline float gb_code_scale_of(const float *x, gb_dtype dtype) {
    uint32_t above = 0, below = 0; /* magnitudes of the largest and the smallest element, as bits */
    for (size_t i = 0; i < GB_CODE_GROUP; i++) {
        const uint32_t bits = gb_bits_from_float(x[i]), magnitude = bits & 0x7fffffffu;
        const uint32_t if_above = bits >> 31 ? 0 : magnitude, if_below = bits >> 31 ? magnitude : 0;
        above = if_above > above ? if_above : above;
        below = if_below > below ? if_below : below;
    }
    const uint32_t largest = above > below ? above : below;
    if (largest >= 0x7f800000u)
        return gb_float_from_bits(0x7fc00000u);
    if (dtype == GB_Q8)
        return gb_float_from_bits(largest) / 127.0f;
    return gb_float_from_bits(largest) * (above > below ? -0.125f : 0.125f);
}

/* The code of x: the quotient rounded to the nearest integer, ties to even, within the dtype's range. */
GB_ANYWHERE int32_t gb_code_of(float x, float scale, gb_dtype dtype) {
    const float least = dtype == GB_Q8 ? -127.0f : -8.0f, most = dtype == GB_Q8 ? 127.0f : 7.0f;
    float quotient = x / scale;
    quotient = quotient < least ? least : quotient;
    quotient = quotient > most ? most : quotient;
    return (int32_t)(gb_bits_from_float(quotient + 0x1.8p+23f) - 0x4b400000u); /* it rounds in the low bits */
}

/* Rounds a group to its codes and its scale, which is the largest magnitude / 127, or the element of that
 * magnitude / -8, rounded to float16. Codes are 0 where the scale is 0; and where an element is infinite or
 * NaN, or the scale would be infinite: the scale is then NaN, and so is every element read back. */
static inline void gb_round_group(const float *x, gb_dtype dtype, uint8_t *codes, uint8_t *scale) {
    uint16_t half = gb_f16_from_float(gb_code_scale_of(x, dtype));
    const bool is_number = (half & 0x7c00u) != 0x7c00u, is_zero = (half & 0x7fffu) == 0;
    half = is_number ? half : 0x7e00u;
    memcpy(scale, &half, sizeof half);
    const float step = gb_float_from_f16(half);
    int32_t code[GB_CODE_GROUP];
    for (size_t i = 0; i < GB_CODE_GROUP; i++)
        code[i] = is_number && !is_zero ? gb_code_of(x[i], step, dtype) : 0;
    if (dtype == GB_Q8)
        for (size_t i = 0; i < GB_CODE_GROUP; i++)
            codes[i] = (uint8_t)(int8_t)code[i];
    else
        for (size_t i = 0; i < GB_CODE_GROUP / 2; i++)
            codes[i] = (uint8_t)((code[i] + 8) | (code[i + GB_CODE_GROUP / 2] + 8) << 4);
}

/* Element i of a group. */
GB_ANYWHERE float gb_group_element(gb_dtype dtype, const uint8_t *codes, const uint8_t *scale, size_t i) {
    uint16_t half;
    memcpy(&half, scale, sizeof half);
    const int32_t code = dtype == GB_Q8 ? (int8_t)codes[i] : (codes[i % 16] >> (i < 16 ? 0 : 4) & 15) - 8;
    return gb_float_from_f16(half) * (float)code;
}

#endif
