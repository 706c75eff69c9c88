/* SPDX-License-Identifier: Apache-2.0
 *
 * Rings of slots in a block's shared memory, which some warps fill ahead of others that use them, and copies
 * of a warp's from device memory: by the copy engine from Hopper on, before that by the lanes.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_COPY_RING_CUH
#define GUMBEL_RUN_CUDA_DEVICE_COPY_RING_CUH

#include "run/cuda/device/async_copy.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define GB_LANES_COPY 1
#else
#define GB_LANES_COPY 0
#endif

namespace gb_cuda {

/* A copy that a barrier's phase counts, of one warp: the announcement of all its bytes, then its pieces, then
 * the end. Pieces are multiples of 16 bytes, from and to multiples of 16. */
#if GB_LANES_COPY

constexpr unsigned COPY_ARRIVALS = WARP;

__device__ inline void announce_copy(copy_barrier *, uint32_t, uint32_t) {}

__device__ inline void copy_piece(void *to, const void *from, uint32_t bytes, copy_barrier *, uint32_t lane) {
    for (uint32_t at = lane * 16; at < bytes; at += WARP * 16)
        copy_16(static_cast<uint8_t *>(to) + at, static_cast<const uint8_t *>(from) + at);
}

__device__ inline void end_copy(copy_barrier *barrier) {
    arrive_when_copied(barrier);
}

#else

constexpr unsigned COPY_ARRIVALS = 1;

__device__ inline void announce_copy(copy_barrier *barrier, uint32_t bytes, uint32_t lane) {
    if (lane == 0)
        arrive_expecting(barrier, bytes);
}

__device__ inline void copy_piece(void *to, const void *from, uint32_t bytes, copy_barrier *barrier,
                                  uint32_t lane) {
    if (lane == 0)
        copy_bulk(to, from, bytes, barrier);
}

__device__ inline void end_copy(copy_barrier *) {}

#endif

/* A warp's place in a ring. All warps go through the slots in the same order: those that fill wait until one
 * is empty, the others until it is full. */
struct shared_ring {
    copy_barrier *full, *empty; /* [slots] in shared memory */
    uint32_t slots, slot, parity;

    __device__ shared_ring(copy_barrier *of_full, copy_barrier *of_empty, uint32_t of_slots)
        : full(of_full), empty(of_empty), slots(of_slots), slot(0), parity(0) {}

    /* By one thread, before all others begin; then finish_barriers. fillers: how many arrivals make a slot
     * full; users: how many warps use it. */
    __device__ void create(unsigned fillers, unsigned users) const {
        for (uint32_t i = 0; i < slots; i++) {
            begin_barrier(&full[i], fillers);
            begin_barrier(&empty[i], users);
        }
    }

    __device__ void wait_until_empty() const {
        wait_for_phase(&empty[slot], parity ^ 1);
    }

    __device__ void wait_until_full() const {
        wait_for_phase(&full[slot], parity);
    }

    /* What the warp has done with the slot is done. */
    __device__ void pass_on(copy_barrier *to, uint32_t lane) const {
        __syncwarp();
        if (lane == 0)
            arrive(&to[slot]);
    }

    __device__ void next() {
        slot++;
        if (slot == slots) {
            slot = 0;
            parity ^= 1;
        }
    }
};

} // namespace gb_cuda

#endif
