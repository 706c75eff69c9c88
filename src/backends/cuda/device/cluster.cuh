/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters: neighbouring blocks that run at the same time and reach each other's shared memory (from Hopper
 * on). A kernel that is compiled for other devices, or emulated, has clusters of one block.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_CLUSTER_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_CLUSTER_CUH

#include "backends/cuda/device/device.cuh"

namespace gb_cuda {

/* Whether kernels can be launched in clusters of several blocks. Not in the build for racecheck, under which
 * such a kernel did not end. */
inline bool has_clusters() {
#if defined(__CUDACC__) && !defined(GUMBEL_CUDA_RACECHECK)
    return gb_cuda_find_facts()->major >= 9;
#else
    return false;
#endif
}

/* Stores into the same place of the shared memory of one of the cluster's blocks. */
__device__ inline void store_in_block(uint32_t *to, uint32_t value, uint32_t block) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(remote)
                 : "r"((uint32_t)__cvta_generic_to_shared(to)), "r"(block));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote), "r"(value) : "memory");
#else
    (void)block;
    *to = value;
#endif
}

__device__ inline void store_in_first_block(float *to, float value) {
    store_in_block(reinterpret_cast<uint32_t *>(to), gb_float_bits(value), 0);
}

/* The thread has done what others of the cluster wait for; every thread comes here, and nobody twice before
 * waiting. */
__device__ inline void arrive_in_cluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

/* All have arrived, or ended. */
__device__ inline void wait_for_cluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

} // namespace gb_cuda

#endif
