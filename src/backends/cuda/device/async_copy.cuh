/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies into shared memory that run by themselves (cp.async and, on Hopper, cp.async.bulk), and the barriers
 * that say when they have arrived (mbarrier). A barrier goes through phases: one ends when all who are
 * expected have arrived and all announced bytes have been copied. Who waits names the parity of the phase: 0,
 * 1, 0 and so on.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_ASYNC_COPY_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_ASYNC_COPY_CUH

#include "backends/cuda/device/device.cuh"

namespace gb_cuda {

#if defined(__CUDACC__)

typedef uint64_t copy_barrier;

__device__ inline uint32_t shared_address(const void *pointer) {
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* One thread sets a barrier up, for that many arrivals a phase; then finish_barriers, then the block's own
 * barrier. */
__device__ inline void begin_barrier(copy_barrier *barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
                 : "memory");
}

__device__ inline void finish_barriers() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 /* for the copy engine */
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ inline void arrive(copy_barrier *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/* Arrives and announces bytes that are going to be copied in this phase. */
__device__ inline void arrive_expecting(copy_barrier *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

/* Orders what the copy engine will write to shared memory behind the writes there that the thread knows of:
 * to be called before it arrives at the barrier for which the copying warp waits. */
__device__ inline void finish_writing() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

__device__ inline void wait_for_phase(copy_barrier *barrier, unsigned parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
                 "mbarrier.test_wait.parity.shared::cta.b64 done, [%0], %1;\n"
#else
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
#endif
                 "@done bra finished;\n"
                 "bra again;\n"
                 "finished:\n"
                 "}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* Whether a phase has ended; it does not wait. */
__device__ inline bool has_ended(copy_barrier *barrier, unsigned parity) {
    uint32_t ended;
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, done;\n"
                 "}"
                 : "=r"(ended)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
    return ended != 0;
}

/* Copies 16 bytes from and to multiples of 16. */
__device__ inline void copy_16(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

/* The same with 8 bytes. */
__device__ inline void copy_8(void *to, const void *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

/* Waits for all that the thread has begun with these. */
__device__ inline void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* Arrives when all that the thread has begun with copy_16 has been copied. */
__device__ inline void arrive_when_copied(copy_barrier *barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}

/* Copies bytes (a multiple of 16, from and to multiples of 16) that the barrier's phase counts. */
__device__ inline void copy_bulk(void *to, const void *from, unsigned bytes, copy_barrier *barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}

/* The same of what is read once: it is the first to leave the L2 cache again. */
__device__ inline void copy_bulk_once(void *to, const void *from, unsigned bytes, copy_barrier *barrier) {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], "
        "%2, [%3], %4;" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
        : "memory");
}

#else

/* Emulated: copies are done at once. */
using emulated::arrive_expecting;
using emulated::begin_barrier;
using emulated::copy_barrier;
using emulated::has_ended;
using emulated::wait_for_phase;

inline void finish_barriers() {}

inline void finish_writing() {}

inline void arrive(copy_barrier *barrier) {
    arrive_expecting(barrier, 0);
}

inline void copy_16(void *to, const void *from) {
    memcpy(to, from, 16);
}

inline void copy_8(void *to, const void *from) {
    memcpy(to, from, 8);
}

inline void wait_for_copies() {}

inline void arrive_when_copied(copy_barrier *barrier) {
    arrive(barrier);
}

inline void copy_bulk(void *to, const void *from, unsigned bytes, copy_barrier *barrier) {
    memcpy(to, from, bytes);
    emulated::count_copied(barrier, bytes);
}

inline void copy_bulk_once(void *to, const void *from, unsigned bytes, copy_barrier *barrier) {
    copy_bulk(to, from, bytes, barrier);
}

#endif

/* Copies that warps of a block of threads share, by the copy engine from Hopper on, before that by the lanes:
 * a warp announces how many bytes it is going to copy in a barrier's phase, and begins to copy them. */
__device__ inline void announce_by_warp(copy_barrier *barrier, unsigned bytes) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (threadIdx.x % WARP == 0)
        arrive_expecting(barrier, bytes);
#endif
}

__device__ inline void copy_by_lanes(uint8_t *to, const uint8_t *from, unsigned bytes) {
    for (unsigned at = threadIdx.x % WARP * 16; at < bytes; at += WARP * 16)
        copy_16(to + at, from + at);
}

/* What a lane has of a warp's copies: of a multiple of 16 bytes, from and to multiples of 16. */
struct copy_piece {
    uint8_t *to;
    const uint8_t *from;
    unsigned bytes;
};

/* Begins the copies of the first `count` lanes, whose addresses they find side by side: one after the other
 * they took a warp some 250 cycles each. once: nothing else reads these bytes soon. */
__device__ inline void copy_by_warp(const copy_piece &mine, unsigned count, copy_barrier *barrier,
                                    bool once) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (threadIdx.x % WARP < count && once)
        copy_bulk_once(mine.to, mine.from, mine.bytes, barrier);
    else if (threadIdx.x % WARP < count)
        copy_bulk(mine.to, mine.from, mine.bytes, barrier);
#else
    for (unsigned i = 0; i < count; i++) {
        const uint64_t to = __shfl_sync(0xffffffffu, reinterpret_cast<uint64_t>(mine.to), (int)i),
                       from = __shfl_sync(0xffffffffu, reinterpret_cast<uint64_t>(mine.from), (int)i);
        copy_by_lanes(reinterpret_cast<uint8_t *>(to), reinterpret_cast<const uint8_t *>(from),
                      __shfl_sync(0xffffffffu, mine.bytes, (int)i));
    }
#endif
}

/* All threads call it; before Hopper it waits for all copies that have begun. */
__device__ inline void wait_for_block_copies(copy_barrier *barrier, unsigned parity) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    wait_for_phase(barrier, parity);
#else
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
#endif
}

} // namespace gb_cuda

#endif
