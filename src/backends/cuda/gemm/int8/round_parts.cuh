/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding of a row (gemm/int8/rows.cuh) by the block of threads that has it in registers, with the bits of
 * the CPU's kernels. A thread has neighbouring columns, so that a block of the rotation lies in one warp.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROUND_PARTS_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROUND_PARTS_CUH

#include "backends/cuda/device/warp_integers.cuh"
#include "backends/cuda/gemm/int8/hadamard.cuh"
#include "backends/cuda/gemm/int8/rounding.cuh"
#include "backends/cuda/gemm/int8/rows.cuh"
#include "backends/cuda/norm/long_rows.cuh"

namespace gb_cuda {

enum { ROUND_WARPS = 32 /* of a block, at most */ };

__device__ inline uint32_t largest_of_block(uint32_t magnitude) {
    __shared__ uint32_t of_warps[ROUND_WARPS];
    const unsigned lane = threadIdx.x % WARP;
    magnitude = largest_in_warp(magnitude);
    if (lane == 0)
        of_warps[threadIdx.x / WARP] = magnitude;
    __syncthreads();
    return largest_in_warp(lane < blockDim.x / WARP ? of_warps[lane] : 0);
}

__device__ inline int32_t sum_of_block(int32_t sum) {
    __shared__ uint32_t of_warps[ROUND_WARPS];
    const unsigned lane = threadIdx.x % WARP;
    const uint32_t of_warp = sum_in_warp((uint32_t)sum);
    if (lane == 0)
        of_warps[threadIdx.x / WARP] = of_warp;
    __syncthreads();
    return (int32_t)sum_in_warp(lane < blockDim.x / WARP ? of_warps[lane] : 0);
}

/* The codes of EACH columns, 4 or 8, from a multiple of that on, stored where that is wanted; returns their
 * sum. */
template <int EACH>
__device__ inline int32_t store_codes(const int8_rows &to, size_t row, size_t column, const row_divisor &by,
                                      const float v[EACH], bool stores = true) {
    uint32_t words[2];
    const int32_t sum = by.find_codes<EACH>(v, words);
    for (unsigned odd = 0; odd < 2 && stores; odd++) {
        uint8_t *at = int8_quarter(to, row, column / 8, odd) + column % 8 / 2;
        if (EACH == 8)
            *reinterpret_cast<uint32_t *>(at) = words[odd];
        else
            *reinterpret_cast<uint16_t *>(at) = (uint16_t)words[odd];
    }
    return sum;
}

/* Rotates, rounds and stores a row of so many columns, which 128 divides: a thread's parts are EACH columns,
 * each part of all threads behind the one before, zeros past the row's end. All threads call it; is_mine: its
 * codes are this block's to store; is_first: so are the row's scale and sum. */
template <int EACH, int PARTS>
__device__ inline void round_parts(const row_rounding &r, size_t row, size_t columns,
                                   const row_part<EACH> of[PARTS], bool is_mine, bool is_first) {
    row_part<EACH> parts[PARTS];
    uint32_t magnitude = 0;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        parts[i] = of[i];
        hadamard_of_warp<EACH>(parts[i].v, r.rotation);
        magnitude = larger<EACH>(magnitude, parts[i].v);
    }
    const row_divisor by(largest_of_block(magnitude));
    int32_t sum = 0;
#pragma unroll
    for (unsigned i = 0; i < PARTS; i++) {
        const size_t column = ((size_t)i * blockDim.x + threadIdx.x) * EACH;
        if (column < columns)
            sum += store_codes<EACH>(r.to, row, column, by, parts[i].v, is_mine);
    }
    sum = sum_of_block(sum);
    if (is_first && threadIdx.x == 0) {
        r.to.scales[row] = r.scale(by.scale);
        r.to.sums[row] = sum;
    }
}

} // namespace gb_cuda

#endif
