/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel may use of CUDA C++, as host C++: the .cu files compile unchanged with this in place of
 * nvcc's built-ins. The threads of a block are fibers; a barrier or an exchange within a warp hands over to
 * the next one. Blocks run one after the other, in both orders of threads by turns, so that a missing barrier
 * shows. A mask must name all threads of the warp that have not returned.
 */
#ifndef GUMBEL_TESTS_EMULATED_DEVICE_H
#define GUMBEL_TESTS_EMULATED_DEVICE_H

#include "cuda_runtime_api.h"

#include <cmath>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __ldg(pointer) (*(pointer))
#define __ldcg(pointer) (*(pointer))

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

struct float2 {
    float x, y;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

namespace emulated {

constexpr unsigned WARP = 32, EXCHANGE_BYTES = 64;

/* Runs a kernel on every thread of the grid, or records it where the stream is being captured. */
void launch(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, std::function<void()> kernel);

/* The block's dynamic shared memory. */
void *dynamic_shared();

void block_barrier();

/* Lets all other threads of the block go on before this one does: for a loop that waits for what they do. */
void give_way();

/* Waits for the warp; then the bytes of its lanes, EXCHANGE_BYTES apart, of returned ones zeros. Valid until
 * the lane's next exchange but one. */
const uint8_t *exchange(const void *mine, size_t size);

template <typename T>
T of_lane(T mine, unsigned lane) {
    const uint8_t *all = exchange(&mine, sizeof mine);
    T value;
    memcpy(&value, all + lane % WARP * EXCHANGE_BYTES, sizeof value);
    return value;
}

unsigned lane();

} // namespace emulated

inline void __syncthreads() {
    emulated::block_barrier();
}
inline int __syncthreads_or(int predicate) {
    static int any; /* one block runs at a time */
    emulated::block_barrier();
    any = 0;
    emulated::block_barrier();
    any |= predicate;
    emulated::block_barrier();
    return any;
}
inline void __syncwarp(unsigned = 0xffffffffu) {
    const uint8_t none = 0;
    emulated::exchange(&none, 1);
}
inline void __threadfence() {}
inline void __threadfence_system() {}

template <typename T>
T __shfl_sync(unsigned, T value, int source) {
    return emulated::of_lane(value, (unsigned)source);
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
    return emulated::of_lane(value, emulated::lane() ^ (unsigned)mask);
}
template <typename T>
T __shfl_up_sync(unsigned, T value, unsigned delta) {
    const unsigned lane = emulated::lane();
    return emulated::of_lane(value, lane >= delta ? lane - delta : lane);
}
inline unsigned __ballot_sync(unsigned, bool predicate) {
    const uint8_t mine = predicate, *all = emulated::exchange(&mine, 1);
    unsigned result = 0;
    for (unsigned i = 0; i < emulated::WARP; i++)
        result |= (unsigned)all[i * emulated::EXCHANGE_BYTES] << i;
    return result;
}

template <typename T>
T emulated_replace(T *at, T value) {
    const T before = *at;
    *at = value;
    return before;
}
template <typename T>
T atomicAdd(T *at, T value) {
    return emulated_replace(at, (T)(*at + value));
}
template <typename T>
T atomicMax(T *at, T value) {
    return emulated_replace(at, *at < value ? value : *at);
}
template <typename T>
T atomicMin(T *at, T value) {
    return emulated_replace(at, value < *at ? value : *at);
}
template <typename T>
T atomicOr(T *at, T value) {
    return emulated_replace(at, (T)(*at | value));
}
template <typename T>
T atomicCAS(T *at, T expected, T value) {
    return emulated_replace(at, *at == expected ? value : *at);
}

inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
inline int __ffs(int value) {
    return __builtin_ffs(value);
}

inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}

#endif
