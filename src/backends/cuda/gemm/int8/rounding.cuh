/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding of a row to 8 bits with one scale (gemm/int8/rows.cuh), with the bits of the CPU's kernels.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROUNDING_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROUNDING_CUH

#include "backends/cuda/gemm/prepared.cuh"

namespace gb_cuda {

/* The bits of the largest number so far. */
template <int EACH>
__device__ inline uint32_t larger(uint32_t magnitude, const float v[EACH]) {
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const uint32_t of_one = gb_float_bits(v[i]) & 0x7fffffffu;
        magnitude = magnitude < of_one ? of_one : magnitude;
    }
    return magnitude;
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

    __device__ int code_of(float v) const {
        const float ratio = quotient(v * enlarged, divisor, reciprocal);
        return has_codes ? (int)(gb_float_bits(ratio + 0x1.8p+23f) - 0x4b400000u) : 0;
    }

    /* The codes of neighbouring columns: their even ones and their odd ones, a byte each. Returns the sum. */
    template <int EACH>
    __device__ int32_t find_codes(const float v[EACH], uint32_t words[2]) const {
        int32_t sum = 0;
        words[0] = words[1] = 0;
#pragma unroll
        for (unsigned i = 0; i < EACH; i++) {
            const int code = code_of(v[i]);
            words[i % 2] |= ((uint32_t)code & 0xffu) << (i / 2 * 8);
            sum += code;
        }
        return sum;
    }
};

} // namespace gb_cuda

#endif
