/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of prefill with large bfloat16 matrices, on Hopper (gemm/wgmma_bf16.cuh).
 */
#include "backends/cuda/gemm/wgmma_bf16.cuh"

using namespace gb_cuda;

template <typename Shape>
__device__ static inline void multiply_and_store(const bf16_tile &tile, const row_lists &lists,
                                                 float *__restrict__ y) {
    bf16_sums<Shape> work;
    multiply_stages<Shape>(tile, work);
#pragma unroll
    for (int half = 0; half < BF16_HALVES; half++)
        store_sums<Shape::COLUMNS>(tile, lists,
                                   (size_t)blockIdx.y * BF16_OUTPUTS + (unsigned)half * CONSUMED_OUTPUTS,
                                   work.sums[half], y);
}

/* A tile is of up to 128 rows; one of no more than 64 is multiplied as such. */
static __global__ void __launch_bounds__(WGMMA_THREADS, 1)
    run_gemm_wgmma_bf16(bf16_matrix weight, prepared_rows x, row_lists lists, unsigned tile_rows,
                        float *__restrict__ y) {
#if defined(GB_HAS_WGMMA)
    typedef bf16_stage_shape<64> shape_64;
    typedef bf16_stage_shape<128> shape_128;
    __shared__ copy_barrier full[MOST_STAGES], empty[MOST_STAGES];
    GB_DYNAMIC_SHARED(uint8_t, shared);
    begin_stages(full, empty);
    const row_tile rows = tile_of(lists, blockIdx.x, tile_rows);
    const uint32_t first_output = blockIdx.y * BF16_OUTPUTS, count = (uint32_t)(rows.end - rows.first);
    const bf16_tile tile = {begin_tile(x, rows, shared, full, empty), weight,
                            (size_t)rows.expert * weight.outputs + first_output,
                            at_most(weight.outputs - first_output, BF16_OUTPUTS)};
    if (count == 0)
        return;
    if (threadIdx.x < WARPGROUP) {
        give_registers_back<COPYING_REGISTERS>();
        if (count <= shape_64::COLUMNS)
            copy_stages<shape_64, row_copier<shape_64>>(tile);
        else
            copy_stages<shape_128, row_copier<shape_128>>(tile);
    } else {
        take_registers<MULTIPLYING_REGISTERS>();
        if (count <= shape_64::COLUMNS)
            multiply_and_store<shape_64>(tile, lists, y);
        else
            multiply_and_store<shape_128>(tile, lists, y);
    }
#endif
}

/* Matrices of fewer outputs, routers among them, keep all bits of their inputs; experts have no routers. */
bool gb_cuda_is_large_bf16(const gb_cuda_tensor *weight) {
    const size_t fewest = weight->rank == 3 ? (size_t)BF16_OUTPUTS : (size_t)GB_CUDA_MOST_SMALL_OUTPUTS + 1;
    return weight->dtype == GB_BF16 && weight->dims[weight->rank - 1] % PAIR_COLUMNS == 0 &&
           weight->dims[weight->rank - 2] >= fewest;
}

/* Narrow tiles where wide ones leave multiprocessors without any. Either gives the same bits. */
static unsigned choose_tile_rows(const gb_cuda_call *call, size_t rows, unsigned output_tiles) {
    const unsigned wide = GB_CUDA_BF16_TILE_ROWS;
    return blocks_for(rows, wide) * output_tiles < call->scratch->wgmma_blocks ? wide / 2 : wide;
}

void gb_cuda_wgmma_product_bf16(const gb_cuda_call *call, const prepared_rows &x,
                                const gb_cuda_tensor *weight, const row_lists &lists) {
    bf16_matrix m = {};
    m.values = data_of<const uint16_t>(weight);
    m.outputs = (uint32_t)lists.outputs;
    m.pairs = (uint32_t)(weight->dims[weight->rank - 1] / PAIR_COLUMNS);
    const unsigned output_tiles = blocks_for(lists.outputs, BF16_OUTPUTS);
    const unsigned tile_rows = choose_tile_rows(call, lists.rows, output_tiles);
    launch_tiles(call, "gemm_wgmma_bf16", run_gemm_wgmma_bf16, output_tiles, m, x, lists, tile_rows);
}
