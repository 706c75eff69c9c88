/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of a prompt's tokens with matrices that are not quantized, in float32: a block has 64 outputs of
 * 64 rows, a thread 4 of 4, added in the order of k.
 */
#include "run/cuda/device/row_lists.cuh"

using namespace gb_cuda;

enum {
    TILE = 64, /* outputs, and rows */
    STEP = 16, /* inputs that are in shared memory at a time */
    SHARE = 4, /* outputs and rows of a thread: every 16th of the tile */
    ACROSS = TILE / SHARE,
    THREADS = ACROSS * ACROSS,
    PITCH = TILE + 1,
};

/* A row's inputs first .. first + STEP - 1, transposed; zeros past the ends. */
__device__ static void load_inputs(const void *data, gb_dtype dtype, size_t rows, size_t first_row,
                                   size_t inputs, size_t first, float (*to)[PITCH]) {
    for (unsigned i = threadIdx.x; i < TILE * STEP; i += THREADS) {
        const size_t row = first_row + i / STEP, k = first + i % STEP;
        to[i % STEP][i / STEP] = row < rows && k < inputs ? load_float(data, dtype, row * inputs + k) : 0.0f;
    }
}

static __global__ void __launch_bounds__(THREADS)
    multiply_dense_prompt(const float *__restrict__ x, const void *__restrict__ weight, gb_dtype dtype,
                          size_t inputs, size_t rows, size_t outputs, float *__restrict__ y) {
    wait_for_earlier();
    __shared__ float of_x[STEP][PITCH], of_weight[STEP][PITCH];
    const size_t first_row = (size_t)blockIdx.x * TILE, first_output = (size_t)blockIdx.y * TILE;
    const unsigned across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
    float sums[SHARE][SHARE] = {};
    for (size_t first = 0; first < inputs; first += STEP) {
        __syncthreads();
        load_inputs(x, GB_F32, rows, first_row, inputs, first, of_x);
        load_inputs(weight, dtype, outputs, first_output, inputs, first, of_weight);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < STEP; k++)
#pragma unroll
            for (int r = 0; r < SHARE; r++)
#pragma unroll
                for (int o = 0; o < SHARE; o++)
                    sums[r][o] =
                        fmaf(of_weight[k][across + o * ACROSS], of_x[k][down + r * ACROSS], sums[r][o]);
    }
    for (int r = 0; r < SHARE; r++)
        for (int o = 0; o < SHARE; o++) {
            const size_t row = first_row + down + r * ACROSS, output = first_output + across + o * ACROSS;
            if (row < rows && output < outputs)
                y[row * outputs + output] = sums[r][o];
        }
}

void gb_cuda_dense_prefill(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *weight = call->operands[1];
    const size_t rows = x->dims[0], outputs = weight->dims[0];
    GB_LAUNCH(multiply_dense_prompt, dim3(blocks_for(rows, TILE), blocks_for(outputs, TILE)), THREADS, 0,
              call->stream, data_of<const float>(x), weight->data, weight->dtype, weight->dims[1], rows,
              outputs, data_of<float>(call->results[0]));
}
