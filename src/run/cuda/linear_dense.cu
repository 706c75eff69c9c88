/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of few rows with matrices that are not quantized, in float32. A warp has an output of up to ROWS
 * rows; its lanes take every 32nd run of FOUR inputs, in order, and a tree adds their sums, so that an
 * output's bits do not depend on how many rows there are. The first weights come while earlier kernels still
 * run.
 */
#include "run/cuda/device/row_lists.cuh"

using namespace gb_cuda;

enum { WARPS = 4, ROWS = 8, FOUR = 4, LOADS = 8, STEP = WARP * FOUR, CHUNK = STEP * LOADS };

struct dense_product {
    const float *x;
    const void *weight;
    gb_dtype dtype;
    bool in_fours; /* rows are whole runs of four, so that each is loaded at once */
    size_t inputs;
    row_lists lists;
    float *y;
};

/* Elements i .. i + 3 of a row, zeros from its end on. */
__device__ static float4 load_four(const void *row, gb_dtype dtype, bool in_fours, size_t i, size_t end) {
    if (i >= end)
        return float4{0, 0, 0, 0};
    if (in_fours && dtype == GB_F32)
        return reinterpret_cast<const float4 *>(row)[i / FOUR];
    if (in_fours) {
        const uint2 both = reinterpret_cast<const uint2 *>(row)[i / FOUR];
        return float4{gb_widen_half((uint16_t)both.x, dtype), gb_widen_half((uint16_t)(both.x >> 16), dtype),
                      gb_widen_half((uint16_t)both.y, dtype), gb_widen_half((uint16_t)(both.y >> 16), dtype)};
    }
    float v[FOUR];
    for (size_t e = 0; e < FOUR; e++)
        v[e] = i + e < end ? load_float(row, dtype, i + e) : 0.0f;
    return float4{v[0], v[1], v[2], v[3]};
}

__device__ static void load_chunk(const dense_product &p, const void *row, size_t first, float4 to[LOADS]) {
#pragma unroll
    for (int i = 0; i < LOADS; i++)
        to[i] = load_four(row, p.dtype, p.in_fours, first + i * STEP, p.inputs);
}

/* TILE: the most rows of a block. */
template <int TILE>
static __global__ void __launch_bounds__(WARPS *WARP) multiply_dense(dense_product p) {
    const size_t lane_first = threadIdx.x % WARP * FOUR;
    const size_t output = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    const bool is_output = output < p.lists.outputs;
    const bool waits_first = p.lists.expert != nullptr; /* to learn which expert's weights they are */
    if (waits_first)
        wait_for_earlier();
    const row_tile rows = tile_of(p.lists, blockIdx.y, TILE);
    const size_t row = ((size_t)rows.expert * p.lists.outputs + (is_output ? output : 0)) * p.inputs;
    const void *weights = static_cast<const uint8_t *>(p.weight) + row * (p.dtype == GB_F32 ? 4 : 2);
    float4 w[LOADS];
    load_chunk(p, weights, lane_first, w);
    if (!waits_first)
        wait_for_earlier();
    const int count = rows.end - rows.first;
    const float *x = p.x + (size_t)rows.first / p.lists.x_reuse * p.inputs;
    float sums[TILE] = {};
    for (size_t chunk = lane_first; chunk < p.inputs; chunk += CHUNK) {
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            for (int r = 0; r < TILE; r++) {
                if (r >= count)
                    break;
                const float4 v = load_four(x + r * p.inputs, GB_F32, p.in_fours, chunk + i * STEP, p.inputs);
                sums[r] = fmaf(w[i].x, v.x, sums[r]);
                sums[r] = fmaf(w[i].y, v.y, sums[r]);
                sums[r] = fmaf(w[i].z, v.z, sums[r]);
                sums[r] = fmaf(w[i].w, v.w, sums[r]);
            }
        load_chunk(p, weights, chunk + CHUNK, w);
    }
    for (int r = 0; r < TILE && r < count; r++) {
        const float sum = warp_sum(sums[r]);
        if (threadIdx.x % WARP == 0 && is_output)
            p.y[(size_t)(rows.first + r) * p.lists.outputs + output] = sum;
    }
}

void gb_cuda_dense_product(const gb_cuda_call *call, const gb_cuda_tensor *x, const gb_cuda_tensor *weight,
                           const row_lists &lists) {
    const size_t inputs = weight->dims[weight->rank - 1];
    const dense_product p = {
        data_of<const float>(x),         weight->data, weight->dtype, inputs % FOUR == 0, inputs, lists,
        data_of<float>(call->results[0])};
    const bool is_single = lists.expert || lists.rows == 1;
    auto kernel = is_single ? multiply_dense<1> : multiply_dense<ROWS>;
    const dim3 grid(blocks_for(lists.outputs, WARPS), blocks_for(lists.rows, is_single ? 1 : ROWS));
    GB_LAUNCH(kernel, grid, WARPS * WARP, 0, call->stream, p);
}

void gb_cuda_linear(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *weight = call->operands[1];
    row_lists lists = {};
    lists.rows = x->dims[0];
    lists.outputs = weight->dims[0];
    lists.x_reuse = 1;
    if (weight->is_packed && !call->is_prefill)
        gb_cuda_few_linears(&call, 1);
    else if (gb_cuda_takes_prefill(call, weight))
        gb_cuda_prefill_product(call, gb_cuda_prepare(call, x), weight, lists,
                                blocks_for(lists.rows, GB_CUDA_PREFILL_ROWS));
    else if (weight->dtype == GB_QUANTIZED)
        gb_cuda_quantized_product(call, x, weight, lists, 0);
    else if (call->is_prefill)
        gb_cuda_dense_prefill(call);
    else
        gb_cuda_dense_product(call, x, weight, lists);
}
