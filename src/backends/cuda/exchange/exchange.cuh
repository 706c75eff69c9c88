/* SPDX-License-Identifier: Apache-2.0
 *
 * How kernels of several ranks tell each other things: words that carry the number of their exchange, and
 * flags that are raised behind other writes.
 */
#ifndef GUMBEL_BACKENDS_CUDA_EXCHANGE_EXCHANGE_CUH
#define GUMBEL_BACKENDS_CUDA_EXCHANGE_EXCHANGE_CUH

#include "backends/cuda/device/device.cuh"
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
__device__ inline void store_at_others(const gb_cuda_exchange &e, T *own, const T &value) {
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

__device__ inline void raise(uint32_t *flag, uint32_t epoch) {
#if defined(__CUDACC__)
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(epoch) : "memory");
#else
    atomicExch(flag, epoch);
#endif
}

__device__ inline uint32_t seen(const uint32_t *flag) {
#if defined(__CUDACC__)
    uint32_t epoch;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(epoch) : "l"(flag) : "memory");
    return epoch;
#else
    return atomicOr(const_cast<uint32_t *>(flag), 0u);
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

/* The word of that exchange, once it has come. */
template <bool ACQUIRES>
__device__ inline uint32_t receive(const gb_cuda_exchange &e, const uint64_t *from, uint32_t epoch) {
    uint64_t both = received<ACQUIRES>(from);
    for (uint32_t looks = 1; (uint32_t)(both >> 32) != epoch && may_wait(e, looks); looks++)
        both = received<ACQUIRES>(from);
    return (uint32_t)both;
}

/* ---- What a block and those of its number on other ranks have ------------------------------------------ */

struct largest_word {
    __device__ static uint32_t of(uint32_t a, uint32_t b) {
        return a < b ? b : a;
    }
};

struct sum_of_words {
    __device__ static uint32_t of(uint32_t a, uint32_t b) {
        return a + b;
    }
};

/* Exchanges of a block's words with the blocks of its number: of the largest, then of the sum, behind which
 * there is what the others wrote into this rank's memory. Alone (NULL) a block has what it gives. All threads
 * call all of it. */
class block_boxes {
  public:
    __device__ explicit block_boxes(const gb_cuda_exchange *ranks) : e(ranks), counter(nullptr), epoch(0) {
        if (!e)
            return;
        counter = e->epochs + GB_CUDA_MAIL_BLOCKS + GB_CUDA_EXCHANGE_BLOCKS + blockIdx.x;
        epoch = *counter + 1;
    }

    __device__ uint32_t largest(uint32_t own) {
        return e ? exchange<largest_word, false>(0, own) : own;
    }

    __device__ uint32_t sum(uint32_t own) {
        if (!e)
            return own;
        __syncthreads();
        if (threadIdx.x < e->ranks && threadIdx.x != e->rank)
            __threadfence_system();
        const uint32_t all = exchange<sum_of_words, true>(1, own);
        if (threadIdx.x == 0)
            *counter = epoch;
        return all;
    }

  private:
    const gb_cuda_exchange *e;
    uint32_t *counter;
    uint32_t epoch;

    __device__ uint64_t *box(uint32_t receiver, uint32_t sender, uint32_t round) const {
        return e->boxes[receiver] + ((size_t)blockIdx.x * 2 + round) * e->ranks + sender;
    }

    template <typename Combine, bool ACQUIRES>
    __device__ uint32_t exchange(uint32_t round, uint32_t own) {
        __shared__ uint32_t words[GB_MOST_RANKS];
        const uint32_t rank = threadIdx.x;
        if (rank < e->ranks && rank != e->rank) {
            send(box(rank, e->rank, round), epoch, own);
            words[rank] = receive<ACQUIRES>(*e, box(e->rank, rank, round), epoch);
        }
        __syncthreads();
        uint32_t all = own;
        for (uint32_t r = 0; r < e->ranks; r++)
            all = r == e->rank ? all : Combine::of(all, words[r]);
        return all;
    }
};

} // namespace gb_cuda

#endif
