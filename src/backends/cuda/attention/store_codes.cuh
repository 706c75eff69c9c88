/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a cache as codes: gb_round_group of tensor/cache_codes.h by four lanes, with its bits.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_STORE_CODES_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_STORE_CODES_CUH

#include "backends/cuda/attention/attention.cuh"
#include "backends/cuda/gemm/int8/hadamard.cuh"

namespace gb_cuda {

/* Rounded to float16. */
__device__ inline uint16_t half_of(float x) {
#if defined(__CUDA_ARCH__)
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
#else
    return gb_f16_from_float(x);
#endif
}

__device__ inline uint32_t larger_bits(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* The largest of the four lanes that have a group. */
__device__ inline uint32_t group_max(uint32_t x) {
    x = larger_bits(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return larger_bits(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/* As gb_code_scale_of. */
__device__ inline float scale_of_group(const float x[8], gb_dtype dtype) {
    uint32_t above = 0, below = 0; /* magnitudes of the largest and the smallest element, as bits */
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        const uint32_t bits = gb_float_bits(x[i]), magnitude = bits & 0x7fffffffu;
        above = larger_bits(above, bits >> 31 ? 0 : magnitude);
        below = larger_bits(below, bits >> 31 ? magnitude : 0);
    }
    above = group_max(above);
    below = group_max(below);
    const uint32_t largest = larger_bits(above, below);
    if (largest >= 0x7f800000u)
        return gb_float_from_bits(0x7fc00000u);
    if (dtype == GB_Q8)
        return gb_float_from_bits(largest) / 127.0f;
    return gb_float_from_bits(largest) * (above > below ? -0.125f : 0.125f);
}

/* A lane's eight codes of a group, a byte each, and the group's scale. */
struct lane_codes {
    uint32_t bytes[2];
    uint16_t scale;
};

__device__ inline lane_codes round_group(const float x[8], gb_dtype dtype) {
    lane_codes found = {};
    const uint16_t half = half_of(scale_of_group(x, dtype));
    const bool is_number = (half & 0x7c00u) != 0x7c00u, is_zero = (half & 0x7fffu) == 0;
    const float step = gb_float_from_f16(half);
    found.scale = is_number ? half : 0x7e00u;
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        const int32_t code = is_number && !is_zero ? gb_code_of(x[i], step, dtype) : 0;
        found.bytes[i / 4] |= (uint32_t)(uint8_t)(dtype == GB_Q8 ? code : code + 8) << (i % 4 * 8);
    }
    return found;
}

/* A byte has elements b and b + 16 of a group: the first two lanes' and the others'. */
__device__ inline void join_halves(lane_codes &codes) {
#pragma unroll
    for (unsigned w = 0; w < 2; w++)
        codes.bytes[w] |= __shfl_xor_sync(0xffffffffu, codes.bytes[w], 2) << 4;
}

__device__ inline void store_bytes(uint8_t *to, const uint32_t bytes[2]) {
    if (reinterpret_cast<uintptr_t>(to) % 8 == 0) {
        *reinterpret_cast<uint2 *>(to) = uint2{bytes[0], bytes[1]};
        return;
    }
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(bytes[i / 4] >> (i % 4 * 8));
}

/* A row of x goes to `to`, rotated and rounded. All threads of the block call it. */
__device__ inline void store_codes(const cache &c, const float *x, uint8_t *to) {
    const unsigned width = (unsigned)(c.heads * c.size), lane = threadIdx.x % WARP;
    uint8_t *scales = to + gb_code_bytes(c.dtype, width);
    for (unsigned first = threadIdx.x / WARP * WARP_COLUMNS; first < width;
         first += blockDim.x / WARP * WARP_COLUMNS) {
        const unsigned column = first + lane * LANE_COLUMNS;
        const bool is_there = column < width;
        float v[LANE_COLUMNS];
#pragma unroll
        for (unsigned i = 0; i < LANE_COLUMNS; i++)
            v[i] = is_there ? x[column + i] : 0.0f;
        rotate_eight(v, c.rotation);
        lane_codes codes = round_group(v, c.dtype);
        if (c.dtype == GB_Q4)
            join_halves(codes);
        const unsigned in_group = column % GB_CODE_GROUP;
        if (is_there && (c.dtype == GB_Q8 || in_group < GB_CODE_GROUP / 2))
            store_bytes(to + gb_code_bytes(c.dtype, column - in_group) + in_group, codes.bytes);
        if (is_there && in_group == 0)
            *reinterpret_cast<uint16_t *>(scales + gb_code_scale_bytes(column)) = codes.scale;
    }
}

} // namespace gb_cuda

#endif
