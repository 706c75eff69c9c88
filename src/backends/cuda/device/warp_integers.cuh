/* SPDX-License-Identifier: Apache-2.0
 *
 * Integers of a warp's lanes joined in one instruction (redux).
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_WARP_INTEGERS_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_WARP_INTEGERS_CUH

#include "backends/cuda/device/device.cuh"

namespace gb_cuda {

/* The largest over a warp, in every lane. */
__device__ inline uint32_t largest_in_warp(uint32_t value) {
#if defined(__CUDA_ARCH__)
    return __reduce_max_sync(0xffffffffu, value);
#else
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = other > value ? other : value;
    }
    return value;
#endif
}

/* The sum over a warp, in every lane. */
__device__ inline uint32_t sum_in_warp(uint32_t value) {
#if defined(__CUDA_ARCH__)
    return __reduce_add_sync(0xffffffffu, value);
#else
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
#endif
}

} // namespace gb_cuda

#endif
