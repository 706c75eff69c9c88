/* SPDX-License-Identifier: Apache-2.0
 *
 * How kernels of several ranks tell each other things, by words that carry the number of their exchange.
 */
#ifndef GUMBEL_BACKENDS_CUDA_EXCHANGE_EXCHANGE_CUH
#define GUMBEL_BACKENDS_CUDA_EXCHANGE_EXCHANGE_CUH

#include "backends/cuda/device/device.cuh"
#include "backends/cuda/device/warp_integers.cuh"
#include "backends/cuda/exchange/exchange.h"

namespace gb_cuda {

enum { LOOKS = 1 << 12 /* between looks at whether to stop */ };

/* The other rank's memory at the place of this one's; both are in arenas. */
template <typename T>
__device__ inline T *at_rank(const gb_cuda_exchange &e, uint32_t rank, T *own) {
    return reinterpret_cast<T *>(
        e.arenas[rank] + (reinterpret_cast<uintptr_t>(own) - reinterpret_cast<uintptr_t>(e.arenas[e.rank])));
}

/* Stores what this rank has stored in the other ranks' arenas. */
template <typename T>
__device__ inline void store_at_others(const gb_cuda_exchange &e, T *own, T value) {
    for (uint32_t r = 1; r < e.ranks; r++) /* each begins with another one */
        *at_rank(e, (e.rank + r) % e.ranks, own) = value;
}

/* ---- Words that other devices write -------------------------------------------------------------------- */

__device__ inline void send(uint64_t *to, uint32_t epoch, uint32_t word) {
    const uint64_t both = (uint64_t)epoch << 32 | word;
#if defined(__CUDACC__)
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(both) : "memory");
#else
    atomicExch(to, both);
#endif
}

/* ACQUIRES: what was written before the word is there behind it. */
template <bool ACQUIRES>
__device__ inline uint64_t received(const uint64_t *at) {
#if defined(__CUDACC__)
    uint64_t both;
    if (ACQUIRES)
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(both) : "l"(at) : "memory");
    else
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(both) : "l"(at) : "memory");
    return both;
#else
    return atomicOr(const_cast<uint64_t *>(at), (uint64_t)0);
#endif
}

/* Whether to go on waiting, after so many looks. */
__device__ inline bool may_wait(const gb_cuda_exchange &e, uint32_t looks) {
#if defined(__CUDACC__)
    return looks % LOOKS != 0 || *e.stops[e.rank] == 0;
#else
    emulated::give_way_to_others();
    return looks > 0 && *e.stops[e.rank] == 0;
#endif
}

/* The word of that exchange with its epoch, once it has come; another epoch: waiting was ended. */
template <bool ACQUIRES>
__device__ inline uint64_t receive(const gb_cuda_exchange &e, const uint64_t *from, uint32_t epoch) {
    uint64_t both = received<ACQUIRES>(from);
    for (uint32_t looks = 1; (uint32_t)(both >> 32) != epoch && may_wait(e, looks); looks++)
        both = received<ACQUIRES>(from);
    return both;
}

/* ---- What a block and those of its number on other ranks have ------------------------------------------ */

/* Exchanges of a block with the blocks of its number on other ranks. All threads call all of it, but where it
 * says otherwise. */
class block_boxes {
  public:
    __device__ explicit block_boxes(const gb_cuda_exchange *ranks)
        : e(*ranks), counter(ranks->epochs + GB_CUDA_MAIL_BLOCKS + GB_CUDA_EXCHANGE_BLOCKS + blockIdx.x),
          epoch(*counter), was_stopped(false) {}

    /* The largest of the words that all give. */
    __device__ uint32_t largest(uint32_t own) {
        __shared__ uint32_t of_all;
        uint32_t word = threadIdx.x == e.rank ? own : 0;
        epoch++;
        if (is_of_peer()) {
            send(box(threadIdx.x, e.rank, epoch % 2), epoch, own);
            word = wait_for<false>(epoch % 2);
        }
        if (threadIdx.x < WARP)
            word = largest_in_warp(word);
        if (threadIdx.x == 0)
            of_all = word;
        __syncthreads();
        return of_all;
    }

    /* Leaves a word with the others, one of GB_CUDA_ROWS_OF_BLOCK between two meetings. */
    __device__ void leave(uint32_t number, uint32_t word) const {
        if (is_of_peer())
            send(box(threadIdx.x, e.rank, LEFT + number), epoch, word);
    }

    /* All have come, and what they wrote into this rank's memory and left is there. */
    __device__ void meet() {
        __syncthreads();
        if (is_of_peer()) {
            __threadfence_system();
            send(box(threadIdx.x, e.rank, MEETING), epoch, 0);
            wait_for<true>(MEETING);
        }
        __syncthreads();
    }

    /* The sum of what the others left by that number, behind a meeting: by any thread. */
    __device__ uint32_t sum_of_left(uint32_t number) const {
        uint32_t sum = 0;
        for (uint32_t r = 0; r < e.ranks; r++)
            sum += r == e.rank ? 0 : (uint32_t)received<false>(box(e.rank, r, LEFT + number));
        return sum;
    }

    __device__ void end() const {
        if (threadIdx.x == 0)
            *counter = epoch;
    }

  private:
    /* Of the largest there are two in turns: a rank that sends one has had the others' of the one before, but
     * they may still wait for its own. */
    enum { MEETING = 2, LEFT };
    const gb_cuda_exchange &e;
    uint32_t *const counter;
    uint32_t epoch;
    bool was_stopped; /* the thread's waiting was ended: it waits no more */

    template <bool ACQUIRES>
    __device__ uint32_t wait_for(uint32_t number) {
        const uint64_t *const from = box(e.rank, threadIdx.x, number);
        const uint64_t both = was_stopped ? received<ACQUIRES>(from) : receive<ACQUIRES>(e, from, epoch);
        was_stopped = (uint32_t)(both >> 32) != epoch;
        return (uint32_t)both;
    }

    /* A thread for each of the others. */
    __device__ bool is_of_peer() const {
        return threadIdx.x < e.ranks && threadIdx.x != e.rank;
    }

    __device__ uint64_t *box(uint32_t receiver, uint32_t sender, uint32_t number) const {
        return e.boxes[receiver] + ((size_t)blockIdx.x * GB_CUDA_BOXES + number) * e.ranks + sender;
    }
};

} // namespace gb_cuda

#endif
