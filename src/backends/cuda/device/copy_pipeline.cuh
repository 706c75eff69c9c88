/* SPDX-License-Identifier: Apache-2.0
 *
 * Pipelines of stages in shared memory: one warp copies ahead, others read.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_COPY_PIPELINE_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_COPY_PIPELINE_CUH

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

/* How many lanes of a warp release a stage. One is enough after __syncwarp, but compute-sanitizer's
 * racecheck follows only lanes that arrive. */
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

/* WARPS warps of a block wait for one another, all of whose lanes call it. barrier: begun for as many
 * arrivals; parity: the warp's, 0 at first; number: the warps' own of 1 .. 15. */
template <int WARPS>
__device__ inline void meet_warps(copy_barrier *barrier, uint32_t &parity, unsigned number = 1) {
#if defined(__CUDACC__)
    asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(WARPS * WARP) : "memory");
#else
    (void)number;
    __syncwarp();
    if (threadIdx.x % WARP == 0)
        arrive(barrier);
    wait_for_phase(barrier, parity);
    parity ^= 1;
#endif
}

/* Whether a barrier's first phase has ended, the same in all lanes of the warp; it does not wait. */
__device__ inline bool has_ended_for_warp(copy_barrier *barrier) {
    return __shfl_sync(0xffffffffu, (int)has_ended(barrier, 0), 0) != 0;
}

/* A warp's position in a pipeline. All warps go through the stages in one order: the copying one waits
 * until a stage is empty, the others until it is full. */
struct copy_pipeline {
    copy_barrier *full, *empty; /* [stages] in shared memory */
    uint32_t stages, stage, parity;

    __device__ copy_pipeline(copy_barrier *of_full, copy_barrier *of_empty, uint32_t of_stages)
        : full(of_full), empty(of_empty), stages(of_stages), stage(0), parity(0) {}

    /* By one thread, before all others begin; then finish_barriers. fillers: how many arrivals make a stage
     * full; users: how many warps use it. */
    __device__ void create(unsigned fillers, unsigned users) const {
        for (uint32_t i = 0; i < stages; i++) {
            begin_barrier(&full[i], fillers);
            begin_barrier(&empty[i], users * DONE_ARRIVALS);
        }
    }

    __device__ void wait_until_empty() const {
        wait_for_phase(&empty[stage], parity ^ 1);
    }

    __device__ void wait_until_full() const {
        wait_for_phase(&full[stage], parity);
    }

    /* The warp is done with the stage, which may be filled again. */
    __device__ void release(uint32_t lane) const {
        arrive_by_warp(&empty[stage], lane);
    }

    __device__ void next() {
        stage++;
        if (stage == stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

} // namespace gb_cuda

#endif
