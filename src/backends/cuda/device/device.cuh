/* SPDX-License-Identifier: Apache-2.0
 *
 * What every .cu file begins with: the language's built-ins (nvcc's, or those of the emulated device of the
 * tests), how launches are described, and sums over a warp and a block in a fixed order.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_DEVICE_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_DEVICE_CUH

/* GB_DYNAMIC_SHARED: from a line of memory on, because what the copy engine copies to other places, it copies
 * in two pieces a line: products of one row were 2 to 11 % slower sixteen bytes further on. */
#if defined(__CUDACC__)
#include <cuda_runtime.h>
#define GB_GRID_CONSTANT __grid_constant__ const
#define GB_DYNAMIC_SHARED(type, name)                                                                        \
    extern __shared__ __align__(128) unsigned char gb_dynamic_shared[];                                      \
    type *name = reinterpret_cast<type *>(gb_dynamic_shared)
#else
#include "device.h"
#define GB_GRID_CONSTANT const
#define GB_DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(emulated::dynamic_shared())
#endif

#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <type_traits>

extern "C" {
#include "backends/cuda/lowering/launch.h"
#include "backends/cuda/lowering/products.h"
#include "backends/cuda/lowering/steps.h"
#include "backends/cuda/runtime/facts.h"
#include "backends/math.h"
}

namespace gb_cuda {

enum { WARP = 32, CACHE_LINE = 128 };

/* The shared memory that a block of threads can have, where it asks for it. */
inline size_t most_shared_bytes() {
    return gb_cuda_find_facts()->shared_bytes;
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

/* A launch but for its parameters. name: part of the kernel's own. */
template <typename... Parameters>
gb_cuda_launch launch_of(const char *name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                         size_t shared_bytes) {
    static_assert(sizeof...(Parameters) <= GB_CUDA_MOST_PARAMETERS, "a launch has no place for them");
#if !defined(__CUDACC__)
    emulated::know_kernel(kernel);
#endif
    gb_cuda_launch launch = {};
    launch.name = name;
    launch.function = reinterpret_cast<const void *>(kernel);
    launch.grid = grid;
    launch.block = block;
    launch.cluster = 1;
    launch.shared_bytes = shared_bytes;
    return launch;
}

template <typename Parameter>
void add_parameter(gb_cuda_launch_list *list, const Parameter &parameter) {
    gb_cuda_launch_add_parameter(list, &parameter, sizeof parameter);
}

/* Adds a launch of a kernel to the list, in clusters of that many blocks along x. */
template <typename... Parameters, typename... Arguments>
void add_clusters(gb_cuda_launch_list *list, unsigned cluster, const char *name,
                  void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                  Arguments... arguments) {
    gb_cuda_launch launch = launch_of(name, kernel, grid, block, shared_bytes);
    launch.cluster = cluster;
    gb_cuda_launch_add(list, &launch);
    (add_parameter<Parameters>(list, arguments), ...);
}

template <typename... Parameters, typename... Arguments>
void add_launch(gb_cuda_launch_list *list, const char *name, void (*kernel)(Parameters...), dim3 grid,
                dim3 block, size_t shared_bytes, Arguments... arguments) {
    add_clusters(list, 1, name, kernel, grid, block, shared_bytes, arguments...);
}

template <typename... Parameters>
void run_with(const gb_cuda_launch &launch, cudaStream_t stream, Parameters... parameters) {
    void *pointers[] = {const_cast<void *>(static_cast<const void *>(&parameters))...};
    gb_cuda_launch_run_with(&launch, pointers, stream);
}

/* Enqueues a kernel that is in no list, without shared memory of the launch's. */
template <typename... Parameters, typename... Arguments>
void run_alone(cudaStream_t stream, const char *name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
               Arguments... arguments) {
    run_with<Parameters...>(launch_of(name, kernel, grid, block, 0), stream, arguments...);
}

/* A number as a type, for what is chosen among template arguments. */
template <int NUMBER>
using fixed = std::integral_constant<int, NUMBER>;

/* ---- Waiting ------------------------------------------------------------------------------------------- */

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

/* Prefetches a kernel's parameters, all at once and while it waits for the kernel before it: the first use
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

/* to = *from, in shared memory, where it is wanted: one instruction, and `to` stays in registers. (A
 * condition around several of them had the compiler put arrays into memory.) */
__device__ inline void load_shared_if(bool is_wanted, const uint2 *from, uint2 &to) {
#if defined(__CUDA_ARCH__)
    asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p ld.shared.v2.u32 {%0, %1}, [%2];}"
                 : "+r"(to.x), "+r"(to.y)
                 : "r"((uint32_t)__cvta_generic_to_shared(from)), "r"((uint32_t)is_wanted));
#else
    if (is_wanted)
        to = *from;
#endif
}

/* Prefetches a line of memory to the L2 cache. */
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

/* The larger of two numbers; a NaN where one is. */
__device__ inline float largest_or_nan(float a, float b) {
#if defined(__CUDA_ARCH__)
    float largest;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(largest) : "f"(a), "f"(b));
    return largest;
#else
    return a != a || a > b ? a : b;
#endif
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
