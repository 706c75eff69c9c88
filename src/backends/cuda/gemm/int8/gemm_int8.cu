/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of rows in 8 bits with integer weights of any format (gemm/int8/rows.cuh), canonical or in tiles,
 * on any device. A warp has one output of a few rows.
 */
#include "backends/cuda/gemm/codes.cuh"
#include "backends/cuda/gemm/int8/rows.cuh"

using namespace gb_cuda;

enum { INT8_WARPS = 8, INT8_ROWS = 8 };

/* ---- Weights ------------------------------------------------------------------------------------------- */

struct integer_matrix {
    quantized_matrix matrix;
    size_t columns;
};

__device__ static float weight_scale(const integer_matrix &m, size_t row) {
    if (m.matrix.format.kind == GB_FORMAT_PROGRESSIVE)
        return read_half(plane_row(m.matrix, m.matrix.planes.super_scales, row), 0, GB_F16);
    return read_half(plane_row(m.matrix, m.matrix.planes.scales, row), 0, m.matrix.format.scale);
}

/* Of a format that has no groups: what is taken from its codes. */
__device__ static gb_group_integers group_of(const integer_matrix &m, size_t row, size_t column) {
    const gb_format &format = m.matrix.format;
    if (format.kind != GB_FORMAT_PROGRESSIVE)
        return {1u << (format.bits - 1), 1};
    return gb_get_group_integers(format.bits, group_byte(m.matrix, row, column / format.group));
}

/* The integers of a quarter as bytes, even columns and odd ones; zeros past the row's end. */
__device__ static void load_integers(const integer_matrix &m, size_t row, size_t quarter, uint32_t words[2]) {
    const unsigned bits = m.matrix.format.bits;
    const uint8_t *codes = quarter_codes(m.matrix, row, quarter);
    const gb_group_integers group = group_of(m, row, quarter * 8);
    words[0] = words[1] = 0;
    for (unsigned i = 0; i < 8 && quarter * 8 + i < m.columns; i++) {
        const int integer = ((int)gb_get_code(codes, bits, i) - (int)group.zero) * (int)group.scale;
        words[i % 2] |= ((uint32_t)integer & 0xffu) << (i / 2 * 8);
    }
}

/* ---- Products ------------------------------------------------------------------------------------------ */

/* Grid: [tiles of rows, tiles of outputs]. */
static __global__ void __launch_bounds__(INT8_WARPS *WARP)
    run_gemm_int8(integer_matrix m, int8_rows x, row_lists lists, unsigned tile_rows, float *__restrict__ y) {
    wait_for_earlier();
    const row_tile rows = tile_of(lists, blockIdx.x, tile_rows);
    const size_t output = (size_t)blockIdx.y * INT8_WARPS + threadIdx.x / WARP;
    if (output >= lists.outputs)
        return;
    const size_t weight_row = (size_t)rows.expert * lists.outputs + output;
    int32_t sums[INT8_ROWS] = {};
    for (size_t quarter = threadIdx.x % WARP; quarter < (m.columns + 7) / 8; quarter += WARP) {
        uint32_t integers[2];
        load_integers(m, weight_row, quarter, integers);
#pragma unroll
        for (int i = 0; i < INT8_ROWS; i++)
            for (unsigned odd = 0; odd < 2 && rows.first + i < rows.end; odd++) {
                const size_t row = (size_t)(rows.first + i) / lists.x_reuse;
                const uint8_t *codes = int8_quarter(x, row, quarter, odd);
                sums[i] =
                    add_products_of_bytes(*reinterpret_cast<const uint32_t *>(codes), integers[odd], sums[i]);
            }
    }
    for (int i = 0; i < INT8_ROWS && rows.first + i < rows.end; i++) {
        for (unsigned distance = 1; distance < WARP; distance *= 2)
            sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], (int)distance);
        const size_t row = (size_t)(rows.first + i);
        if (threadIdx.x % WARP == 0)
            y[row * lists.outputs + output] =
                int8_result(sums[i], x.scales[row / lists.x_reuse], weight_scale(m, weight_row));
    }
}

/* ---- What others call ---------------------------------------------------------------------------------- */

bool gb_cuda_supports_int8(const gb_cuda_call *call) {
    const gb_cuda_tensor *weight = call->operands[1];
    return call->node && gb_cuda_is_int8_per_token(call->node) && weight->dtype == GB_QUANTIZED &&
           gb_format_is_integer(&weight->format);
}

bool gb_cuda_supports_canonical_int8(const gb_cuda_call *call) {
    return gb_cuda_supports_int8(call) && !call->operands[1]->is_packed;
}

void gb_cuda_int8_product(const gb_cuda_call *call, const row_lists &lists) {
    const gb_cuda_tensor *weight = call->operands[1];
    const integer_matrix m = {matrix_of(weight), weight->dims[weight->rank - 1]};
    const unsigned tile_rows = lists.expert ? 1 : INT8_ROWS;
    const dim3 grid(blocks_for(lists.rows, tile_rows), blocks_for(lists.outputs, INT8_WARPS));
    const int8_rows x = gb_cuda_round_rows(call);
    add_launch(call->launches, "gemm_int8", run_gemm_int8, grid, INT8_WARPS * WARP, 0, m, x, lists, tile_rows,
               data_of<float>(call->results[0]));
}

void gb_cuda_gemm_int8(const gb_cuda_call *call) {
    gb_cuda_int8_product(call, all_rows(call));
}
