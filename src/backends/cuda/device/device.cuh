/* SPDX-License-Identifier: Apache-2.0
 *
 * What every .cu file begins with: the language's built-ins (nvcc's, or those of the emulated device of the
 * tests), how kernels are launched, and sums over a warp and a block in a fixed order.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_DEVICE_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_DEVICE_CUH

/* GB_DYNAMIC_SHARED: from a line of memory on, because what the copy engine copies to other places, it copies
 * in two pieces a line: products of one row were 2 to 11 % slower sixteen bytes further on. */
#if defined(__CUDACC__)
#include <cuda_runtime.h>
#define GB_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                            \
    gb_cuda::launch_kernel(kernel, grid, block, shared_bytes, stream, __VA_ARGS__)
#define GB_GRID_CONSTANT __grid_constant__ const
#define GB_DYNAMIC_SHARED(type, name)                                                                        \
    extern __shared__ __align__(128) unsigned char gb_dynamic_shared[];                                      \
    type *name = reinterpret_cast<type *>(gb_dynamic_shared)
#else
#include "device.h"
#define GB_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                            \
    emulated::launch(grid, block, shared_bytes, stream, [=] { kernel(__VA_ARGS__); })
#define GB_GRID_CONSTANT const
#define GB_DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(emulated::dynamic_shared())
#endif

#include <cstdarg>
#include <cstdint>
#include <cstring>

extern "C" {
#include "backends/cuda/lowering/kernels.h"
#include "backends/cuda/runtime/facts.h"
#include "backends/math.h"
}

namespace gb_cuda {

enum { WARP = 32, CACHE_LINE = 128 };

/* The shared memory that a block of threads can have, where it asks for it. */
inline size_t most_shared_bytes() {
    return gb_cuda_find_facts()->shared_bytes;
}

#if defined(__CUDACC__)
/* Whether the first device has programmatic dependent launch. */
inline bool device_can_overlap() {
    return gb_cuda_find_facts()->is_there && gb_cuda_find_facts()->major >= 9;
}

/* Launches a kernel that may begin while the one before it in the stream ends (programmatic dependent
 * launch), where the device can do that. */
template <typename... Parameters, typename... Arguments>
void launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                   cudaStream_t stream, Arguments... arguments) {
    static const bool can_overlap = device_can_overlap();
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &overlap;
    config.numAttrs = can_overlap ? 1 : 0;
    if (shared_bytes > 32 * 1024) /* with its own variables a kernel gets 48 KB without asking */
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}
#endif

/* Trigger: the next kernel may start once a thread of each block has called this or the block has ended;
 * it waits for this kernel before it reads or writes what kernels write. Small kernels before GEMVs call
 * it at once, so that weights are prefetched early. Kernels with few weights a block call it when these
 * have arrived, because the next one's would compete for memory. */
__device__ inline void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Wait: what earlier kernels wrote is visible from here on. In every launch some thread waits and none
 * writes before; so the kernel before the last has ended when one starts, unless the last one triggered
 * before it waited. Weights, a step's inputs and what earlier steps left in caches and states may be read
 * before. Does not trigger. */
__device__ inline void wait_alone() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* The same, and the next kernel may get ready. */
__device__ inline void wait_for_earlier() {
    wait_alone();
    let_next_begin();
}

/* Brings a kernel's parameters nearer, all at once and while it waits for the kernel before it: the first use
 * of each line of them takes as long as one of global memory. */
template <typename T>
__device__ inline void fetch_parameters(const T &parameters) {
#if defined(__CUDA_ARCH__)
    constexpr unsigned LINE_WORDS = 16;
    const uint32_t *words = reinterpret_cast<const uint32_t *>(&parameters);
    uint32_t all = 0;
#pragma unroll
    for (unsigned at = 0; at < sizeof(T) / sizeof(uint32_t); at += LINE_WORDS)
        all ^= words[at];
    /* Something that needs them, does nothing, and is not left out for that. */
    asm volatile("{.reg .pred p; setp.eq.u32 p, %0, 1; @p nanosleep.u32 0;}" ::"r"(all));
#else
    (void)parameters;
#endif
}

/* The same number, of which the compiler knows nothing: so that it keeps one address and adds constants to it
 * where they are used, instead of keeping all the sums. */
__device__ inline uint32_t as_it_is(uint32_t number) {
#if defined(__CUDA_ARCH__)
    asm("" : "+r"(number));
#endif
    return number;
}

/* Brings a line of memory nearer, to the L2 cache, without waiting for it. */
__device__ inline void prefetch_line(const void *line) {
#if defined(__CUDA_ARCH__)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
#else
    (void)line;
#endif
}

/* The sum over the warp, in every lane: a tree whose order is fixed. */
__device__ inline float warp_sum(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

__device__ inline float larger(float a, float b) {
    return a > b ? a : b;
}

__device__ inline float warp_max(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        value = larger(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

/* The sum over a block of whole warps, in every thread. partial: a float of shared memory for each warp, free
 * before and after. */
__device__ inline float block_sum(float value, float *partial) {
    const unsigned thread = threadIdx.x, warps = blockDim.x / WARP;
    value = warp_sum(value);
    __syncthreads();
    if (thread % WARP == 0)
        partial[thread / WARP] = value;
    __syncthreads();
    float sum = 0;
    for (unsigned w = 0; w < warps; w++)
        sum += partial[w];
    return sum;
}

/* Element i of a tensor of a float dtype, exactly. */
__device__ inline float load_float(const void *data, gb_dtype dtype, size_t i) {
    if (dtype == GB_F32)
        return static_cast<const float *>(data)[i];
    return gb_widen_half(static_cast<const uint16_t *>(data)[i], dtype);
}

/* Blocks of that many threads for count things, at most as many as a grid takes along y or z. */
inline unsigned blocks_for(size_t count, size_t threads) {
    const size_t blocks = (count + threads - 1) / threads;
    return (unsigned)blocks;
}

template <typename T>
inline T *data_of(const gb_cuda_tensor *tensor) {
    return static_cast<T *>(tensor->data);
}

/* Like data_of, NULL for a missing operand. */
template <typename T>
inline T *data_or_null(const gb_cuda_tensor *tensor) {
    return tensor ? static_cast<T *>(tensor->data) : nullptr;
}

} // namespace gb_cuda

#endif
