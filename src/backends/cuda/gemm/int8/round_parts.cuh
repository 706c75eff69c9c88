/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding of a row (gemm/int8/rows.cuh) by the block of threads that has it in registers, or a cluster of
 * blocks that share it, with the bits of the CPU's kernels. A thread has neighbouring columns, so that a
 * block of the rotation lies in one warp.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROUND_PARTS_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROUND_PARTS_CUH

#include "backends/cuda/device/cluster.cuh"
#include "backends/cuda/device/warp_integers.cuh"
#include "backends/cuda/gemm/int8/hadamard.cuh"
#include "backends/cuda/gemm/int8/rounding.cuh"
#include "backends/cuda/gemm/int8/rows.cuh"
#include "backends/cuda/norm/long_rows.cuh"

namespace gb_cuda {

enum {
    ROUND_WARPS = 32, /* of a block, at most */
    ROW_SHARES = 8,   /* blocks of a cluster that share a row */
};

/* Into how many blocks each of a few long rows is shared out, which would otherwise be as many rows' work for
 * as many multiprocessors. */
inline unsigned shares_of_rows(size_t rows, size_t columns) {
    enum { MOST_ROWS = 16, WIDE = 4096 };
    return rows <= MOST_ROWS && columns >= WIDE && has_clusters() ? (unsigned)ROW_SHARES : 1;
}

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

/* The same of a row that SHARES blocks of a cluster have, which have begun with arrive_in_cluster. */
template <int SHARES>
__device__ inline uint32_t largest_of_row(uint32_t magnitude) {
    magnitude = largest_of_block(magnitude);
    if (SHARES == 1)
        return magnitude;
    __shared__ uint32_t of_blocks[SHARES];
    wait_for_cluster();
    if (threadIdx.x < SHARES)
        store_in_block(of_blocks + blockIdx.x % SHARES, magnitude, threadIdx.x);
    arrive_in_cluster();
    wait_for_cluster();
    for (int i = 0; i < SHARES; i++)
        magnitude = magnitude < of_blocks[i] ? of_blocks[i] : magnitude;
    return magnitude;
}

/* In the first of these blocks the sum of theirs; behind largest_of_row. */
template <int SHARES>
__device__ inline int32_t sum_of_shares(int32_t sum) {
    if (SHARES == 1)
        return sum;
    __shared__ uint32_t of_blocks[SHARES];
    if (threadIdx.x == 0)
        store_in_block(of_blocks + blockIdx.x % SHARES, (uint32_t)sum, 0);
    arrive_in_cluster();
    wait_for_cluster();
    uint32_t all = 0;
    for (int i = 0; i < SHARES && blockIdx.x % SHARES == 0; i++)
        all += of_blocks[i];
    return (int32_t)all;
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

/* The first of a thread's columns of a part. */
template <int EACH, int SHARES>
__device__ inline unsigned part_column(unsigned part) {
    return ((part * SHARES + blockIdx.x % SHARES) * blockDim.x + threadIdx.x) * EACH;
}

/* Rotates what the block has of a row: a thread's parts are EACH columns, each part of all threads of all
 * blocks of the cluster behind the one before, zeros past the row's end. Returns the largest of the row. */
template <int EACH, int PARTS, int SHARES>
__device__ inline uint32_t rotate_parts(const row_rounding &r, row_part<EACH> parts[PARTS]) {
    uint32_t magnitude = 0;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        hadamard_of_warp<EACH>(parts[i].v, r.rotation);
        magnitude = larger<EACH>(magnitude, parts[i].v);
    }
    return largest_of_row<SHARES>(magnitude);
}

/* Rounds and stores them, from column r.first on; returns the block's sum. */
template <int EACH, int PARTS, int SHARES>
__device__ inline int32_t store_parts(const row_rounding &r, size_t row, size_t columns,
                                      const row_divisor &by, const row_part<EACH> parts[PARTS],
                                      bool is_mine) {
    int32_t sum = 0;
#pragma unroll
    for (unsigned i = 0; i < PARTS; i++) {
        const size_t column = part_column<EACH, SHARES>(i);
        if (column < columns)
            sum += store_codes<EACH>(r.to, row, r.first + column, by, parts[i].v, is_mine);
    }
    return sum_of_block(sum);
}

/* Rotates, rounds and stores a row of so many columns, and zeros up to the next 128 of them, which the parts
 * have. All threads call it; is_mine: its codes are this block's to store; is_first: so are the row's scale
 * and sum. */
template <int EACH, int PARTS, int SHARES = 1>
__device__ inline void round_parts(const row_rounding &r, size_t row, size_t columns,
                                   const row_part<EACH> of[PARTS], bool is_mine, bool is_first) {
    row_part<EACH> parts[PARTS];
#pragma unroll
    for (int i = 0; i < PARTS; i++)
        parts[i] = of[i];
    const row_divisor by(rotate_parts<EACH, PARTS, SHARES>(r, parts));
    const size_t all = (columns + INT8_BLOCK - 1) / INT8_BLOCK * INT8_BLOCK;
    const int32_t sum =
        sum_of_shares<SHARES>(store_parts<EACH, PARTS, SHARES>(r, row, all, by, parts, is_mine));
    if (is_first && threadIdx.x == 0) {
        r.to.scales[row] = r.scale(by.scale);
        r.to.sums[row] = sum;
    }
}

} // namespace gb_cuda

#endif
