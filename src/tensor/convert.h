/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact conversions between the 16-bit floats and float32, in integer arithmetic so that every compiler and
 * instruction set gives the same bits. Rounding is to nearest even (IEEE 754-2019, 4.3.1).
 */
#ifndef GUMBEL_TENSOR_CONVERT_H
#define GUMBEL_TENSOR_CONVERT_H

#include "base/anywhere.h"
#include "tensor/dtype.h"

#include <stdint.h>
#include <string.h>

GB_ANYWHERE float gb_float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

GB_ANYWHERE uint32_t gb_bits_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

GB_ANYWHERE float gb_float_from_bf16(uint16_t bits) {
    return gb_float_from_bits((uint32_t)bits << 16);
}

/* A NaN keeps its sign and becomes quiet. */
GB_ANYWHERE uint16_t gb_bf16_from_float(float value) {
    uint32_t bits = gb_bits_from_float(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x0040u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* Rounded likewise, but 0 below 2^-56: of products of such numbers no sum is subnormal, which some
 * instructions for bfloat16 take for 0. */
GB_ANYWHERE uint16_t gb_bf16_operand(float value) {
    const uint32_t bits = gb_bits_from_float(value), smallest = 0x23800000u;
    return (bits & 0x7fffffffu) < smallest ? (uint16_t)(bits >> 16 & 0x8000u) : gb_bf16_from_float(value);
}

/* Written without a branch that a vectorizer could not turn into a select: a normal or infinite half is
 * rebiased; a subnormal one is made by one exact float subtraction. */
GB_ANYWHERE float gb_float_from_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
    uint32_t exponent = magnitude & 0x0f800000u;
    uint32_t normal = magnitude + 0x38000000u;
    uint32_t special = magnitude + 0x70000000u;
    float tiny = gb_float_from_bits(magnitude + 0x38800000u) - gb_float_from_bits(0x38800000u);
    uint32_t bits = exponent == 0x0f800000u ? special : exponent == 0 ? gb_bits_from_float(tiny) : normal;
    return gb_float_from_bits(sign | bits);
}

uint16_t gb_f16_from_float(float value);

/* A 16-bit float of that dtype, GB_F16 or GB_BF16, both ways. */
static inline uint16_t gb_round_half(float value, gb_dtype dtype) {
    return dtype == GB_BF16 ? gb_bf16_from_float(value) : gb_f16_from_float(value);
}

GB_ANYWHERE float gb_widen_half(uint16_t half, gb_dtype dtype) {
    return dtype == GB_BF16 ? gb_float_from_bf16(half) : gb_float_from_f16(half);
}

#endif
