/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel may use of CUDA C++, as host C++: the .cu files compile unchanged with this in place of
 * nvcc's built-ins. The threads of a block are fibers; a barrier or an exchange within a warp switches to
 * the next one. Blocks run one after the other, in both orders of threads by turns, so that a missing barrier
 * shows. A mask must name all threads of the warp that have not returned.
 */
#ifndef GUMBEL_TESTS_EMULATED_DEVICE_H
#define GUMBEL_TESTS_EMULATED_DEVICE_H

#include "cuda_runtime_api.h"
#include "races.h"
#include "written.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ /* libstdc++ has attributes of this name */
#define __restrict__ __restrict
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __ldg(pointer) (*(pointer))
#define __ldcg(pointer) (*(pointer))

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

/* From what a launch has of a kernel, its parameters' addresses, to a call of it with copies of them. */
typedef std::function<void()> (*binder)(const void *function, void **parameters);
void know_kernel(const void *function, binder bind);

template <typename... Parameters>
struct kernel_binder {
    template <size_t... I>
    static std::function<void()> bind_each(void (*kernel)(Parameters...), void **parameters,
                                           std::index_sequence<I...>) {
        const std::tuple<Parameters...> copies(*static_cast<Parameters *>(parameters[I])...);
        return [=] { std::apply(kernel, copies); };
    }
    static std::function<void()> bind(const void *function, void **parameters) {
        return bind_each(reinterpret_cast<void (*)(Parameters...)>(const_cast<void *>(function)), parameters,
                         std::index_sequence_for<Parameters...>());
    }
};

template <typename... Parameters>
void know_kernel(void (*kernel)(Parameters...)) {
    know_kernel(reinterpret_cast<const void *>(kernel), kernel_binder<Parameters...>::bind);
}

/* Ends the test with that sentence where something does not hold. */
void require(bool holds, const char *otherwise);

/* The block's dynamic shared memory. */
void *dynamic_shared();

void block_barrier();
int any_of_block(int predicate);

/* Lets all other threads of the block go on before this one does: for a loop that waits for what they do. */
void give_way();

/* The same, and launches of other devices: for a loop that waits for what they do. Of a kernel without shared
 * memory, which they would use. */
void give_way_to_others();

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

/* A barrier in shared memory, and what async_copy.cuh says of it; copies are made at once. */
struct copy_barrier {
    uint32_t arrivals, missing, parity;
    int32_t bytes;
};

void begin_barrier(copy_barrier *barrier, unsigned arrivals);
void arrive_expecting(copy_barrier *barrier, unsigned bytes);
void count_copied(copy_barrier *barrier, unsigned bytes);
bool has_ended(const copy_barrier *barrier, unsigned parity);
void wait_for_phase(const copy_barrier *barrier, unsigned parity);

} // namespace emulated

inline void __syncthreads() {
    emulated::block_barrier();
}
inline int __syncthreads_or(int predicate) {
    return emulated::any_of_block(predicate);
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

/* Atomic accesses, which are in order with one another, are distinguished from those that GCC reports.
 * Another process may make some, too. */
#define EMULATED_ATOMIC(name, result)                                                                        \
    template <typename T>                                                                                    \
    __attribute__((no_sanitize("thread"))) T name(T *at, T value) {                                          \
        emulated::check_atomic_order(at, sizeof *at, true);                                                  \
        emulated::check_written(at, sizeof *at, "an atomic access");                                         \
        T before, after;                                                                                     \
        __atomic_load(at, &before, __ATOMIC_SEQ_CST);                                                        \
        do                                                                                                   \
            after = (T)(result);                                                                             \
        while (!__atomic_compare_exchange(at, &before, &after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));  \
        return before;                                                                                       \
    }
EMULATED_ATOMIC(atomicAdd, before + value)
EMULATED_ATOMIC(atomicMax, before < value ? value : before)
EMULATED_ATOMIC(atomicMin, value < before ? value : before)
EMULATED_ATOMIC(atomicOr, before | value)
EMULATED_ATOMIC(atomicExch, value)

template <typename T>
__attribute__((no_sanitize("thread"))) T atomicCAS(T *at, T expected, T value) {
    T before = expected;
    emulated::check_written(at, sizeof *at, "an atomic access");
    const bool is_set =
        __atomic_compare_exchange(at, &before, &value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    emulated::check_atomic_order(at, sizeof *at, is_set);
    return before;
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
