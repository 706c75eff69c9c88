/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of prefill with matrices that are not quantized, in float32. A block's tile is 32 outputs of 32 rows,
 * a thread's 4 of 4; sums go in the order of k.
 */
#include "backends/cuda/gemm/row_lists.cuh"

using namespace gb_cuda;

enum {
    TILE = 32, /* outputs, and rows */
    STEP = 32, /* inputs that are in shared memory at a time */
    SHARE = 4, /* outputs and rows of a thread */
    ACROSS = TILE / SHARE,
    THREADS = ACROSS * ACROSS,
    PITCH = TILE / SHARE + 1,
    LOADS = TILE * STEP / THREADS,
};

/* A matrix of which a block reads 32 rows. */
struct dense_rows {
    const void *data;
    gb_dtype dtype;
    size_t count, columns;
};

/* A thread's share of the inputs first .. first + STEP - 1 of the block's rows, zeros past the ends: one
 * input of every second row. */
struct dense_share {
    float values[LOADS];

    __device__ void load(const dense_rows &from, size_t first_row, size_t first) {
        const size_t k = first + threadIdx.x % STEP, row = first_row + threadIdx.x / STEP;
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const size_t r = row + i * (THREADS / STEP);
            values[i] = r < from.count && k < from.columns
                            ? load_float(from.data, from.dtype, r * from.columns + k)
                            : 0.0f;
        }
    }

    /* Transposed: by input, four rows side by side. */
    __device__ void store(float4 (*to)[PITCH]) const {
        float *row = reinterpret_cast<float *>(to[threadIdx.x % STEP]) + threadIdx.x / STEP;
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            row[i * (THREADS / STEP)] = values[i];
    }
};

__device__ static void add_products(float sums[SHARE], float x, const float4 &weights) {
    sums[0] = fmaf(weights.x, x, sums[0]);
    sums[1] = fmaf(weights.y, x, sums[1]);
    sums[2] = fmaf(weights.z, x, sums[2]);
    sums[3] = fmaf(weights.w, x, sums[3]);
}

static __global__ void __launch_bounds__(THREADS)
    run_gemm_float(dense_rows x, dense_rows weight, float *__restrict__ y) {
    wait_for_earlier();
    __shared__ float4 of_x[STEP][PITCH], of_weight[STEP][PITCH];
    const size_t first_row = (size_t)blockIdx.x * TILE, first_output = (size_t)blockIdx.y * TILE;
    const unsigned across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
    float sums[SHARE][SHARE] = {}; /* [row][output] */
    dense_share next_x, next_weight;
    next_x.load(x, first_row, 0);
    next_weight.load(weight, first_output, 0);
    for (size_t first = 0; first < x.columns; first += STEP) {
        __syncthreads();
        next_x.store(of_x);
        next_weight.store(of_weight);
        __syncthreads();
        next_x.load(x, first_row, first + STEP);
        next_weight.load(weight, first_output, first + STEP);
#pragma unroll 8
        for (int k = 0; k < STEP; k++) {
            const float4 of_rows = of_x[k][down], weights = of_weight[k][across];
            add_products(sums[0], of_rows.x, weights);
            add_products(sums[1], of_rows.y, weights);
            add_products(sums[2], of_rows.z, weights);
            add_products(sums[3], of_rows.w, weights);
        }
    }
    for (int r = 0; r < SHARE; r++)
        for (int o = 0; o < SHARE; o++) {
            const size_t row = first_row + down * SHARE + r, output = first_output + across * SHARE + o;
            if (row < x.count && output < weight.count)
                y[row * weight.count + output] = sums[r][o];
        }
}

void gb_cuda_gemm_float(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const gb_cuda_tensor *x = call->operands[0], *weight = call->operands[1];
    const dense_rows rows = {x->data, GB_F32, x->dims[0], x->dims[1]};
    const dense_rows outputs = {weight->data, weight->dtype, weight->dims[0], weight->dims[1]};
    add_launch(call->launches, "gemm_float", run_gemm_float,
               dim3(blocks_for(rows.count, TILE), blocks_for(outputs.count, TILE)), THREADS, 0, rows, outputs,
               data_of<float>(call->results[0]));
}
