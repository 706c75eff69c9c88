/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding of a row to 8 bits with one scale (gemm/int8/rows.cuh), with the bits of the CPU's kernels.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROUNDING_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROUNDING_CUH

#include "backends/cuda/gemm/prepared.cuh"

namespace gb_cuda {

/* The bits of the largest number so far; what is no number is larger than all. */
template <int EACH>
__device__ inline uint32_t larger(uint32_t magnitude, const float v[EACH]) {
#if defined(__CUDACC__)
    float largest = gb_float_from_bits(magnitude);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        asm("max.NaN.f32 %0, %0, %1;" : "+f"(largest) : "f"(fabsf(v[i])));
    return gb_float_bits(largest);
#else
    for (int i = 0; i < EACH; i++) {
        const uint32_t of_one = gb_float_bits(v[i]) & 0x7fffffffu;
        magnitude = magnitude < of_one ? of_one : magnitude;
    }
    return magnitude;
#endif
}

/* What all of a row's numbers are divided by. */
struct row_divisor {
    float scale, enlarged, divisor, reciprocal;
    bool has_codes;

    /* magnitude: the bits of the row's largest number. */
    __device__ explicit row_divisor(uint32_t magnitude) {
        scale = magnitude >= 0x7f800000u ? gb_float_from_bits(0x7fc00000u)
                                         : gb_float_from_bits(magnitude) / 127.0f;
        scale = scale < 0x1p-126f ? 0.0f : scale;
        has_codes = scale > 0;
        enlarged = scale < 0x1p-90f ? 0x1p+60f : 1.0f;
        divisor = has_codes ? scale * enlarged : 1.0f;
        reciprocal = 1.0f / divisor;
    }

    /* A number whose lowest byte is the code. */
    __device__ uint32_t bits_of_code(float v) const {
        return gb_float_bits(quotient(v * enlarged, divisor, reciprocal) + 0x1.8p+23f);
    }

    /* The codes of neighbouring columns, 4 or 8: their even ones and their odd ones, a byte each. Returns the
     * sum. */
    template <int EACH>
    __device__ int32_t find_codes(const float v[EACH], uint32_t words[2]) const {
        uint32_t bits[8] = {};
        int32_t sum = 0;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            bits[i] = bits_of_code(v[i]);
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
            const uint32_t low = select_bytes<0x0040>(bits[odd], bits[odd + 2]),
                           high = select_bytes<0x0040>(bits[odd + 4], bits[odd + 6]);
            words[odd] = has_codes ? select_bytes<0x5410>(low, high) : 0;
            sum = add_products_of_bytes(words[odd], 0x01010101, sum);
        }
        return sum;
    }
};

} // namespace gb_cuda

#endif
