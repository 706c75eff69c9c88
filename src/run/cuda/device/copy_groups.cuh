/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies from device memory to shared memory that a thread begins and later waits for, in groups: the ones
 * that it began longest ago are done first.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_COPY_GROUPS_CUH
#define GUMBEL_RUN_CUDA_DEVICE_COPY_GROUPS_CUH

#include "run/cuda/device/device.cuh"

namespace gb_cuda {

/* A place in shared memory, as instructions take it. */
#if defined(__CUDACC__)
typedef uint32_t shared_place;
__device__ inline shared_place place_of(const void *shared) {
    return (uint32_t)__cvta_generic_to_shared(shared);
}
#else
typedef uint8_t *shared_place;
inline shared_place place_of(void *shared) {
    return static_cast<uint8_t *>(shared);
}
#endif

__device__ inline uint4 load_16(shared_place from) {
#if defined(__CUDACC__)
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(from));
    return v;
#else
    return *reinterpret_cast<const uint4 *>(from);
#endif
}

__device__ inline uint2 load_8(shared_place from) {
#if defined(__CUDACC__)
    uint2 v;
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(from));
    return v;
#else
    return *reinterpret_cast<const uint2 *>(from);
#endif
}

/* 16 bytes that are read once: they pass by the first cache, and what follows them comes to the second. */
__device__ inline void copy_async_16(shared_place to, const void *from) {
#if defined(__CUDACC__)
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
    memcpy(to, from, 16);
#endif
}

__device__ inline void copy_async_4(shared_place to, const void *from) {
#if defined(__CUDACC__)
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
#else
    memcpy(to, from, 4);
#endif
}

/* Ends the thread's group of copies, which may be empty. */
__device__ inline void end_copy_group() {
#if defined(__CUDACC__)
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most PENDING of the thread's groups are under way. */
template <int PENDING>
__device__ inline void wait_for_copies() {
#if defined(__CUDACC__)
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

} // namespace gb_cuda

#endif
