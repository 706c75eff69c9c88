/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMV of small matrices that are not quantized, such as a router, in float32. A block has four outputs,
 * whose weights it prefetches to shared memory before earlier kernels end; each of its warps has a row at a
 * time. Of a single row each warp has one output, with the weights in registers. A lane adds every 32nd four
 * columns, a tree adds the lanes. Matrices of one input share a launch.
 */
#include "backends/cuda/gemm/gemv_small.cuh"

using namespace gb_cuda;

enum {
    WARPS = 8,
    THREADS = WARPS * WARP,
    PIECE = 8,  /* columns that are loaded at a time; they divide a row */
    PIECES = 4, /* in flight */
    MOST_COLUMNS = 8192
};

/* ---- Several rows -------------------------------------------------------------------------------------- */

/* Eight weights as floats. */
__device__ static void load_piece(const dense_matrix &m, size_t at, float4 piece[2]) {
    if (m.dtype == GB_F32) {
        piece[0] = static_cast<const float4 *>(m.weight)[at * 2];
        piece[1] = static_cast<const float4 *>(m.weight)[at * 2 + 1];
        return;
    }
    const uint4 words = static_cast<const uint4 *>(m.weight)[at];
    const uint2 first = {words.x, words.y}, second = {words.z, words.w};
    const bool is_bf16 = m.dtype == GB_BF16;
    piece[0] = is_bf16 ? weight_four<GB_BF16>{first}.widened() : weight_four<GB_F16>{first}.widened();
    piece[1] = is_bf16 ? weight_four<GB_BF16>{second}.widened() : weight_four<GB_F16>{second}.widened();
}

/* Copies rows first .. first + SMALL_OUTPUTS - 1 of a matrix to shared memory, zeros past its end. */
__device__ static void load_weights(const dense_matrix &m, uint32_t first, uint32_t columns,
                                    float4 *weights) {
    const uint32_t of_row = columns / PIECE, count = SMALL_OUTPUTS * of_row;
    for (uint32_t begin = threadIdx.x; begin < count; begin += PIECES * THREADS) {
        float4 pieces[PIECES][2] = {};
#pragma unroll
        for (uint32_t j = 0; j < PIECES; j++) {
            const uint32_t i = begin + j * THREADS;
            if (i < count && first + i / of_row < m.outputs)
                load_piece(m, (size_t)first * of_row + i, pieces[j]);
        }
#pragma unroll
        for (uint32_t j = 0; j < PIECES; j++)
            if (begin + j * THREADS < count) {
                weights[(begin + j * THREADS) * 2] = pieces[j][0];
                weights[(begin + j * THREADS) * 2 + 1] = pieces[j][1];
            }
    }
}

/* sums += a row's fours times the outputs' weights, [SMALL_OUTPUTS, end]. */
__device__ static void add_outputs(const row_fours &row, const float4 *weights, uint32_t first, uint32_t end,
                                   float sums[SMALL_OUTPUTS]) {
#pragma unroll
    for (uint32_t j = 0; j < SMALL_FOURS; j++) {
        const uint32_t i = first + j * WARP + threadIdx.x % WARP;
        if (i >= end)
            break;
#pragma unroll
        for (uint32_t o = 0; o < SMALL_OUTPUTS; o++)
            sums[o] = add_four(sums[o], weights[o * end + i], row.x[j]);
    }
}

/* Grid: [blocks of the matrices' outputs, shares of the rows]. */
static __global__ void __launch_bounds__(THREADS) run_gemv_small(GB_GRID_CONSTANT dense_matrices p) {
    GB_DYNAMIC_SHARED(float4, weights);
    uint32_t first;
    const dense_matrix &m = matrix_of_block(p, SMALL_OUTPUTS, &first);
    const uint32_t fours = p.columns / 4, lane = threadIdx.x % WARP;
    load_weights(m, first, p.columns, weights);
    wait_for_earlier();
    __syncthreads();
    for (uint32_t row = blockIdx.y * WARPS + threadIdx.x / WARP; row < p.rows; row += gridDim.y * WARPS) {
        const float4 *x = reinterpret_cast<const float4 *>(p.x) + (size_t)row * fours;
        float sums[SMALL_OUTPUTS] = {};
        for (uint32_t at = 0; at < fours; at += SMALL_FOURS * WARP) {
            row_fours part;
            part.load(x, at, fours);
            add_outputs(part, weights, at, fours, sums);
        }
#pragma unroll
        for (uint32_t o = 0; o < SMALL_OUTPUTS; o++) {
            const float sum = warp_sum(sums[o]);
            if (lane == 0 && first + o < m.outputs)
                m.y[(size_t)row * m.outputs + first + o] = sum;
        }
    }
}

/* ---- One row ------------------------------------------------------------------------------------------- */

/* Output number `output` of a matrix, by one warp. The first COUNT fours of a lane's weights are in flight
 * before the kernels before this one end. */
template <gb_dtype DTYPE, uint32_t COUNT>
__device__ static void multiply_output(const dense_matrices &p, const dense_matrix &m, uint32_t output) {
    const uint32_t fours = p.columns / 4;
    const auto *row = static_cast<const weight_four<DTYPE> *>(m.weight) + (size_t)output * fours;
    const float4 *x = reinterpret_cast<const float4 *>(p.x);
    output_fours<DTYPE, COUNT> weights;
    weights.load(row, 0, fours);
    wait_for_earlier();
    float sum = weights.multiply(x, 0, fours, 0.0f);
    for (uint32_t at = COUNT * WARP; at < fours; at += COUNT * WARP) {
        weights.load(row, at, fours);
        sum = weights.multiply(x, at, fours, sum);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0)
        m.y[output] = sum;
}

template <uint32_t COUNT>
static __global__ void __launch_bounds__(SMALL_OUTPUTS *WARP)
    run_gemv_small_row(GB_GRID_CONSTANT dense_matrices p) {
    uint32_t output;
    const dense_matrix &m = matrix_of_block(p, SMALL_OUTPUTS, &output);
    output += threadIdx.x / WARP;
    if (output >= m.outputs)
        return;
    if (m.dtype == GB_BF16)
        multiply_output<GB_BF16, COUNT>(p, m, output);
    else if (m.dtype == GB_F16)
        multiply_output<GB_F16, COUNT>(p, m, output);
    else
        multiply_output<GB_F32, COUNT>(p, m, output);
}

/* Of a row of more than 4096 columns the first 4096 are in flight: more take too many registers. */
static void launch_one_row(const dense_matrices &p, uint32_t blocks, gb_cuda_launch_list *launches) {
    if (p.columns / 4 <= SMALL_FOURS * WARP)
        add_launch(launches, "gemv_small_row", run_gemv_small_row<SMALL_FOURS>, blocks, SMALL_OUTPUTS * WARP,
                   0, p);
    else
        add_launch(launches, "gemv_small_row", run_gemv_small_row<2 * SMALL_FOURS>, blocks,
                   SMALL_OUTPUTS * WARP, 0, p);
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* What several rows' weights take of a block's shared memory. */
static size_t weights_bytes(size_t columns) {
    return SMALL_OUTPUTS * columns * sizeof(float);
}

bool gb_cuda_supports_gemv_small(const gb_cuda_call *call) {
    const gb_cuda_tensor *weight = call->operands[1];
    return !gb_cuda_is_prompt(call) && weight->dtype != GB_QUANTIZED && weight->rank == 2 &&
           gb_cuda_all_outputs(weight) <= GB_CUDA_MOST_SMALL_OUTPUTS && weight->dims[1] <= MOST_COLUMNS &&
           weight->dims[1] % PIECE == 0 && weights_bytes(weight->dims[1]) <= most_shared_bytes();
}

/* So many shares of the rows, each WARPS of them or more, that no multiprocessor is idle. */
static unsigned count_shares(uint32_t blocks, uint32_t rows) {
    enum { BLOCKS = 4 /* of a multiprocessor */ };
    const unsigned most = blocks_for(rows, WARPS),
                   wanted = blocks_for((size_t)BLOCKS * gb_cuda_find_facts()->multiprocessors, blocks);
    return most < wanted ? most : wanted;
}

void gb_cuda_gemv_small(const gb_cuda_problem *problem) {
    dense_matrices p = {};
    const uint32_t blocks = list_matrices(problem->parts, problem->count, SMALL_OUTPUTS, &p);
    if (p.rows == 1)
        launch_one_row(p, blocks, problem->parts[0]->launches);
    else
        add_launch(problem->parts[0]->launches, "gemv_small", run_gemv_small,
                   dim3(blocks, count_shares(blocks, p.rows)), THREADS, weights_bytes(p.columns), p);
}
