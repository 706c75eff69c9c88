/* SPDX-License-Identifier: Apache-2.0
 *
 * A warp's ring of stages in shared memory, which copies from device memory fill ahead of their use: by the
 * copy engine from Hopper on, before that by the lanes. A stage is filled with begin, pieces and end, in the
 * order of the ring; wait is for the stage that was filled longest ago and not waited for yet. Before a stage
 * is filled again the warp meets.
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

template <int STAGES>
struct copy_ring {
    copy_barrier *barriers; /* [STAGES] in shared memory */
    uint32_t lane;
    uint32_t filling, using_now; /* stages */
    uint32_t parity;             /* of the phase of the stage that is used next */

    __device__ void create(copy_barrier *of_warp, uint32_t of_lane) {
        barriers = of_warp;
        lane = of_lane;
        filling = using_now = parity = 0;
#if !GB_LANES_COPY
        if (lane == 0) {
            for (int i = 0; i < STAGES; i++)
                begin_barrier(&barriers[i], 1);
            finish_barriers();
        }
#endif
        __syncwarp();
    }

    /* bytes: of all pieces that follow. */
    __device__ void begin(uint32_t bytes) {
#if !GB_LANES_COPY
        if (lane == 0)
            arrive_expecting(&barriers[filling], bytes);
#endif
    }

    /* Multiples of 16 bytes, from and to multiples of 16. */
    __device__ void piece(uint8_t *to, const uint8_t *from, uint32_t bytes) {
#if GB_LANES_COPY
        for (uint32_t at = lane * 16; at < bytes; at += WARP * 16)
            copy_16(to + at, from + at);
#else
        if (lane == 0)
            copy_bulk(to, from, bytes, &barriers[filling]);
#endif
    }

    /* Also where there is nothing left to fill the stage with. */
    __device__ void end() {
#if GB_LANES_COPY
        asm volatile("cp.async.commit_group;" ::: "memory");
#endif
        filling = filling + 1 == STAGES ? 0 : filling + 1;
    }

    __device__ void wait() {
#if GB_LANES_COPY
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
        __syncwarp();
#else
        wait_for_phase(&barriers[using_now], parity);
#endif
    }

    __device__ void next() {
        using_now++;
        if (using_now == STAGES) {
            using_now = 0;
            parity ^= 1;
        }
    }
};

} // namespace gb_cuda

#endif
