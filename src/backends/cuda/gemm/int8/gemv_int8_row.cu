/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of the GEMV of one row in 8 bits (gemm/int8/gemv_one_row.cuh). Each block of threads rounds the
 * row that it multiplies, while its first weights are in flight: that saves a launch and an exchange of the
 * row.
 */
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/gemm/int8/row_launch.cuh"
#include "backends/cuda/norm/long_rows.cuh"

using namespace gb_cuda;

enum { MOST_ROUNDS = 6, ROUND_COLUMNS = ROW_TURNS * INT8_FRAGMENTS * WARP * LANE_COLUMNS };

/* Grid: [runs of the blocks of all tiles]. */
template <int GROUP, int ROUNDS>
static __global__ void __launch_bounds__(int8_row_gemv<GROUP>::THREADS, 1)
    run_gemv_int8_row(GB_GRID_CONSTANT int8_row_products p, const float *x) {
    typedef int8_row_gemv<GROUP> gemv;
    GB_DYNAMIC_SHARED(uint8_t, shared);
    __shared__ row_barriers barriers;
    __shared__ uint32_t largest[gemv::WARPS];
    __shared__ float scale;
    gemv row(p, shared, barriers, scale);
    row.create_barriers();
    if (row.copies())
        return row.copy_weights();
    row.multiply_all([&] {
        row_part<LANE_COLUMNS> parts[ROUNDS] = {};
        wait_for_earlier();
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            const uint32_t column = ((uint32_t)r * gemv::WARPS * WARP + threadIdx.x) * LANE_COLUMNS;
            if (column < p.inputs)
                parts[r].load(x, column);
        }
        row.template round_row<LANE_COLUMNS, ROUNDS>(parts, largest);
    });
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

template <int GROUP, int ROUNDS>
static void launch(const gb_cuda_call *call, const int8_row_products &p) {
    const row_launch launch = row_launch_of<GROUP>(p);
    add_launch(call->launches, "gemv_int8_row", run_gemv_int8_row<GROUP, ROUNDS>, launch.grid,
               (int8_row_gemv<GROUP>::THREADS), launch.shared_bytes, launch.products,
               data_of<const float>(call->operands[0]));
}

bool gb_cuda_supports_gemv_int8_row(const gb_cuda_problem *problem) {
    const gb_cuda_tensor *x = problem->parts[0]->operands[0];
    return supports_int8_row(problem->parts, problem->count) &&
           x->dims[x->rank - 1] <= (size_t)MOST_ROUNDS * ROUND_COLUMNS && is_aligned(x->data);
}

void gb_cuda_gemv_int8_row(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const int8_row_products p = int8_row_products_of(problem->parts, problem->count);
    const unsigned rounds = blocks_for(p.columns, ROUND_COLUMNS);
    dispatch([&](auto group, auto count) { launch<group, count>(call, p); },
             one_of<32, 64, 128>(call->operands[1]->format.group),
             one_of<1, 2, MOST_ROUNDS>(rounds <= 2 ? rounds : (size_t)MOST_ROUNDS));
}
