/* SPDX-License-Identifier: Apache-2.0
 *
 * What a result of a product of rows in 8 bits needs of its row: where it is stored, the row's scale, and
 * what raised weights have added. A warp with nothing else to do loads that for a tile's rows, while others
 * multiply: loads one after the other at the tile's end took as long as the products of a short k.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_RESULT_ROWS_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_RESULT_ROWS_CUH

#include "backends/cuda/gemm/int8/pipeline.cuh"

namespace gb_cuda {

enum { RESULT_STAGES = 2 };

/* Of a tile's rows, in shared memory. */
template <int COLUMNS>
struct alignas(8) result_rows {
    int32_t raised[COLUMNS];
    float scales[COLUMNS];
    uint32_t numbers[COLUMNS];

    __device__ void load(const int8_gemm &p, const int8_item &item, uint32_t column) {
        const result_row row = load_result_row(p, item.first + column);
        raised[column] = row.raised;
        scales[column] = row.scale;
        numbers[column] = row.number;
    }

    /* Two rows, from an even one on; those that the tile lacks are anything. */
    __device__ result_pair pair(uint32_t column) const {
        return {*reinterpret_cast<const int2 *>(raised + column),
                *reinterpret_cast<const float2 *>(scales + column),
                *reinterpret_cast<const uint2 *>(numbers + column)};
    }
};

/* Loads the rows of the block's items, one after the other: by a warp. */
template <int COLUMNS>
__device__ void load_result_rows(const int8_gemm &p, result_rows<COLUMNS> *stages, copy_pipeline pipeline) {
    const uint32_t lane = threadIdx.x % WARP;
    wait_for_earlier();
    for (uint32_t i = blockIdx.x; i < p.items(); i += gridDim.x) {
        const int8_item item(p, i);
        if (item.is_empty())
            continue;
        pipeline.wait_until_empty();
        for (uint32_t column = lane; column < item.count; column += WARP)
            stages[pipeline.stage].load(p, item, column);
        arrive_by_warp(&pipeline.full[pipeline.stage], lane);
        pipeline.next();
    }
}

} // namespace gb_cuda

#endif
