/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over blocks in one launch: the last block to finish goes on with the results of all, because a
 * second launch would cost more.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_LAST_BLOCK_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_LAST_BLOCK_CUH

#include "backends/cuda/device/device.cuh"

namespace gb_cuda {

/* Whether this block is the last of `blocks` to arrive, or stands for the last `mine` of them; it sees
 * what the others wrote. *counter is 0 before the first arrives and after the last. Needs all threads. */
__device__ inline bool is_last_block(uint32_t *counter, unsigned blocks, unsigned mine = 1) {
    bool is_last = false;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(counter, mine) == blocks - mine;
        if (is_last) {
            *counter = 0;
            __threadfence();
        }
    }
    return __syncthreads_or(is_last) != 0;
}

} // namespace gb_cuda

#endif
