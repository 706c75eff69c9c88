/* SPDX-License-Identifier: Apache-2.0
 *
 * Rings of slots in a block's shared memory, which one warp fills from device memory ahead of those that use
 * them.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_COPY_RING_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_COPY_RING_CUH

#include "backends/cuda/device/async_copy.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define GB_LANES_COPY 1
#else
#define GB_LANES_COPY 0
#endif

namespace gb_cuda {

/* How many arrivals make a barrier's phase complete that a warp fills by announce_by_warp, copy_by_warp and
 * end_copies: before Hopper each lane says when its copies are there. */
#if GB_LANES_COPY
constexpr unsigned COPY_ARRIVALS = WARP;
#else
constexpr unsigned COPY_ARRIVALS = 1;
#endif

/* How many lanes of a warp say that it is done with a slot. One does, after the warp has met, which is
 * enough; but compute-sanitizer's racecheck follows the order of memory only through the lanes that arrive.
 */
#if defined(GUMBEL_CUDA_RACECHECK)
constexpr unsigned DONE_ARRIVALS = WARP;
#else
constexpr unsigned DONE_ARRIVALS = 1;
#endif

/* By all lanes of a warp, which has done its part of a phase. */
__device__ inline void arrive_by_warp(copy_barrier *barrier, uint32_t lane) {
    __syncwarp();
    if (lane < DONE_ARRIVALS)
        arrive(barrier);
}

__device__ inline void end_copies(copy_barrier *barrier) {
#if GB_LANES_COPY
    arrive_when_copied(barrier);
#else
    (void)barrier;
#endif
}

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
            begin_barrier(&empty[i], users * DONE_ARRIVALS);
        }
    }

    __device__ void wait_until_empty() const {
        wait_for_phase(&empty[slot], parity ^ 1);
    }

    __device__ void wait_until_full() const {
        wait_for_phase(&full[slot], parity);
    }

    /* The warp is done with the slot, which may be filled again. */
    __device__ void pass_on(uint32_t lane) const {
        arrive_by_warp(&empty[slot], lane);
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
