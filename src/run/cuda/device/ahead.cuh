/* SPDX-License-Identifier: Apache-2.0
 *
 * Bringing weights into the L2 cache while memory has nothing else to do.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_AHEAD_CUH
#define GUMBEL_RUN_CUDA_DEVICE_AHEAD_CUH

#include "run/cuda/device/async_copy.cuh"

namespace gb_cuda {

/* By a warp of each block of the grid: a block's share of the ranges, the first bytes first. */
__device__ inline void prefetch_ahead(const gb_cuda_ahead &ahead, uint32_t block, uint32_t blocks,
                                      uint32_t lane) {
    constexpr uint64_t PIECE = 4096;
    for (uint32_t i = 0; i < ahead.count; i++)
        for (uint64_t at = (lane * blocks + block) * PIECE; at < ahead.of[i].bytes;
             at += WARP * blocks * PIECE) {
            const uint64_t left = ahead.of[i].bytes - at;
            prefetch_bulk(ahead.of[i].from + at, (unsigned)(left < PIECE ? left : PIECE));
        }
}

} // namespace gb_cuda

#endif
