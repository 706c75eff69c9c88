/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of prefill with large bfloat16 matrices, on Hopper (gemm/wgmma_bf16.cuh).
 */
#include "backends/cuda/gemm/wgmma_bf16.cuh"

using namespace gb_cuda;

/* A tile is of up to 128 rows; one of no more than 64 is multiplied as such. */
struct gemm_wgmma_bf16 {
    typedef bf16_matrix matrix;
    typedef tile_widths<64, 128> widths;

    __device__ static bf16_tile tile_of(const wgmma_tile &tile, const matrix &weight, int32_t expert) {
        const uint32_t first = blockIdx.y * BF16_OUTPUTS;
        return {tile, weight, (size_t)expert * weight.outputs + first,
                at_most(weight.outputs - first, BF16_OUTPUTS)};
    }
    template <int COLUMNS>
    __device__ static void copy(const bf16_tile &tile) {
        copy_stages<bf16_stage_shape<COLUMNS>, row_copier<bf16_stage_shape<COLUMNS>>>(tile);
    }
    template <int COLUMNS>
    __device__ static void multiply(const bf16_tile &tile, const row_lists &lists, float *y) {
        bf16_sums<bf16_stage_shape<COLUMNS>> work;
        multiply_stages(tile, work);
#pragma unroll
        for (int half = 0; half < BF16_HALVES; half++)
            store_sums<COLUMNS>(tile, lists,
                                (size_t)blockIdx.y * BF16_OUTPUTS + (unsigned)half * CONSUMED_OUTPUTS,
                                work.sums[half], y);
    }
};

/* Matrices of fewer outputs, routers among them, keep all bits of their inputs; experts have no routers. */
bool gb_cuda_is_large_bf16(const gb_cuda_tensor *weight) {
    const size_t fewest = weight->rank == 3 ? (size_t)BF16_OUTPUTS : (size_t)GB_CUDA_MOST_SMALL_OUTPUTS + 1;
    return weight->dtype == GB_BF16 && weight->dims[weight->rank - 1] % PAIR_COLUMNS == 0 &&
           gb_cuda_all_outputs(weight) >= fewest;
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
    add_wgmma<gemm_wgmma_bf16>(call, "gemm_wgmma_bf16", output_tiles, m, x, lists, tile_rows);
}
