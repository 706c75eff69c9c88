/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices that are not quantized, in float32: a warp has an output of some rows, its lanes every
 * 32nd input; a tree adds their sums.
 */
#include "run/cuda/device/row_lists.cuh"

using namespace gb_cuda;

enum { WARPS = 8, ROWS = 8 };

static __global__ void multiply_dense(const float *__restrict__ x, const void *__restrict__ weight,
                                      gb_dtype dtype, size_t inputs, row_lists lists, unsigned tile_rows,
                                      float *__restrict__ y) {
    wait_for_earlier();
    const unsigned lane = threadIdx.x % WARP;
    const size_t output = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    const row_tile rows = tile_of(lists, blockIdx.y, tile_rows);
    if (output >= lists.outputs)
        return;
    const size_t row = ((size_t)rows.expert * lists.outputs + output) * inputs;
    const int count = rows.end - rows.first;
    x += (size_t)rows.first / lists.x_reuse * inputs;
    float sums[ROWS] = {};
    for (size_t k = lane; k < inputs; k += WARP) {
        const float w = load_float(weight, dtype, row + k);
        for (int i = 0; i < ROWS; i++)
            if (i < count)
                sums[i] = fmaf(w, x[i * inputs + k], sums[i]);
    }
    for (int i = 0; i < ROWS; i++) {
        if (i >= count)
            break;
        const float sum = warp_sum(sums[i]);
        if (lane == 0)
            y[(size_t)(rows.first + i) * lists.outputs + output] = sum;
    }
}

void gb_cuda_dense_product(const gb_cuda_call *call, const gb_cuda_tensor *x, const gb_cuda_tensor *weight,
                           const row_lists &lists) {
    const unsigned tile_rows = lists.expert ? 1 : ROWS;
    const dim3 grid(blocks_for(lists.outputs, WARPS), blocks_for(lists.rows, tile_rows));
    GB_LAUNCH(multiply_dense, grid, WARPS * WARP, 0, call->stream, data_of<const float>(x), weight->data,
              weight->dtype, weight->dims[weight->rank - 1], lists, tile_rows,
              data_of<float>(call->results[0]));
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
    else
        gb_cuda_dense_product(call, x, weight, lists);
}
