/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that go to other ranks, too: warps with nothing else to do copy what a block has stored of a tile,
 * in whole lines, while others multiply the next one.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_SEND_RESULTS_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_SEND_RESULTS_CUH

#include "backends/cuda/gemm/int8/pipeline.cuh"

namespace gb_cuda {

enum { SENT_STAGES = 2, SENDING_WARPS = 2, SENT_AT_ONCE = 4 /* rows of a warp */ };

/* Which fragments of an item this block has stored, in shared memory. */
struct stored_fragments {
    bool has[INT8_FRAGMENTS];
};

/* By a warp that has finished a fragment of an item. */
__device__ inline void tell_stored(stored_fragments *stages, copy_pipeline &pipeline, uint32_t fragment,
                                   bool is_stored) {
    const uint32_t lane = threadIdx.x % WARP;
    pipeline.wait_until_empty();
    if (lane == 0)
        stages[pipeline.stage].has[fragment] = is_stored;
    arrive_by_warp(&pipeline.full[pipeline.stage], lane);
    pipeline.next();
}

/* A warp's rows of an item; a lane has four outputs. */
__device__ inline void send_rows(const int8_matrix &m, const int8_item &item, const stored_fragments &stored,
                                 uint32_t warp) {
    const uint32_t lane = threadIdx.x % WARP;
    float *const tile = m.y + (size_t)item.first * m.stride + item.output_tile * GB_TILE_ROWS + lane * 4;
    if (!stored.has[lane / (GB_FRAGMENT_ROWS / 4)])
        return;
    for (uint32_t first = warp; first < item.count; first += SENDING_WARPS * SENT_AT_ONCE) {
        float4 values[SENT_AT_ONCE] = {};
#pragma unroll
        for (uint32_t i = 0; i < SENT_AT_ONCE; i++)
            if (first + i * SENDING_WARPS < item.count)
                values[i] = __ldcg(
                    reinterpret_cast<const float4 *>(tile + (size_t)(first + i * SENDING_WARPS) * m.stride));
#pragma unroll
        for (uint32_t i = 0; i < SENT_AT_ONCE; i++)
            if (first + i * SENDING_WARPS < item.count)
                store_at_others(
                    *m.ranks,
                    reinterpret_cast<float4 *>(tile + (size_t)(first + i * SENDING_WARPS) * m.stride),
                    values[i]);
    }
}

/* Sends the block's items, one after the other: by warp `warp` of SENDING_WARPS. */
__device__ inline void send_results(const int8_gemm &p, const stored_fragments *stages,
                                    copy_pipeline pipeline, uint32_t warp) {
    for (uint32_t i = blockIdx.x; i < p.items(); i += gridDim.x) {
        const int8_item item(p, i);
        if (item.is_empty())
            continue;
        pipeline.wait_until_full();
        if (p.of[item.matrix].ranks)
            send_rows(p.of[item.matrix], item, stages[pipeline.stage], warp);
        pipeline.release(threadIdx.x % WARP);
        pipeline.next();
    }
}

} // namespace gb_cuda

#endif
