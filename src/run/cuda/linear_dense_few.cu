/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of few rows with matrices of few outputs that are not quantized, in float32: a block has four
 * outputs, whose weights it brings to shared memory before the kernels before it end, and each of its warps a
 * row at a time. A lane adds every 32nd four columns, a tree adds the lanes' sums. Matrices of the same input
 * are one launch.
 */
#include "run/cuda/device/dense_matrices.cuh"

using namespace gb_cuda;

enum {
    OUTPUTS = 4, /* of a block */
    WARPS = 8,
    THREADS = WARPS * WARP,
    FOURS = 16, /* of columns that a lane has under way */
    PIECE = 8,  /* columns that are loaded at a time; they divide a row */
    PIECES = 4, /* under way */
    MOST_OUTPUTS = 1024,
    MOST_COLUMNS = 8192
};

/* Eight weights as floats. */
__device__ static void load_piece(const dense_matrix &m, size_t at, float4 piece[2]) {
    if (m.dtype == GB_F32) {
        piece[0] = static_cast<const float4 *>(m.weight)[at * 2];
        piece[1] = static_cast<const float4 *>(m.weight)[at * 2 + 1];
        return;
    }
    const uint4 words = static_cast<const uint4 *>(m.weight)[at];
    const bool is_bf16 = m.dtype == GB_BF16;
    const auto low = [=](uint32_t both) { return is_bf16 ? low_bf16(both) : low_half(both); };
    const auto high = [=](uint32_t both) { return is_bf16 ? high_bf16(both) : high_half(both); };
    piece[0] = float4{low(words.x), high(words.x), low(words.y), high(words.y)};
    piece[1] = float4{low(words.z), high(words.z), low(words.w), high(words.w)};
}

/* Brings rows first .. first + OUTPUTS - 1 of a matrix to shared memory, zeros past its end. */
__device__ static void load_weights(const dense_matrix &m, uint32_t first, uint32_t columns,
                                    float4 *weights) {
    const uint32_t of_row = columns / PIECE, count = OUTPUTS * of_row;
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

/* A lane's fours of a row from four number `first` on. */
struct row_fours {
    float4 x[FOURS];

    __device__ void load(const float4 *row, uint32_t first, uint32_t end) {
#pragma unroll
        for (uint32_t j = 0; j < FOURS; j++) {
            const uint32_t i = first + j * WARP + threadIdx.x % WARP;
            x[j] = i < end ? row[i] : float4{0, 0, 0, 0};
        }
    }

    /* sums += these times the outputs' weights. */
    __device__ void multiply(const float4 *weights, uint32_t first, uint32_t end, float sums[OUTPUTS]) const {
#pragma unroll
        for (uint32_t j = 0; j < FOURS; j++) {
            const uint32_t i = first + j * WARP + threadIdx.x % WARP;
            if (i >= end)
                break;
#pragma unroll
            for (uint32_t o = 0; o < OUTPUTS; o++) {
                const float4 w = weights[o * end + i];
                sums[o] = fmaf(w.x, x[j].x, sums[o]);
                sums[o] = fmaf(w.y, x[j].y, sums[o]);
                sums[o] = fmaf(w.z, x[j].z, sums[o]);
                sums[o] = fmaf(w.w, x[j].w, sums[o]);
            }
        }
    }
};

static __global__ void __launch_bounds__(THREADS) multiply_dense_few(GB_GRID_CONSTANT dense_matrices p) {
    GB_DYNAMIC_SHARED(float4, weights);
    uint32_t first;
    const dense_matrix &m = matrix_of_block(p, OUTPUTS, &first);
    const uint32_t fours = p.columns / 4, lane = threadIdx.x % WARP;
    load_weights(m, first, p.columns, weights);
    wait_for_earlier();
    __syncthreads();
    for (uint32_t row = threadIdx.x / WARP; row < p.rows; row += WARPS) {
        const float4 *x = reinterpret_cast<const float4 *>(p.x) + (size_t)row * fours;
        float sums[OUTPUTS] = {};
        for (uint32_t at = 0; at < fours; at += FOURS * WARP) {
            row_fours part;
            part.load(x, at, fours);
            part.multiply(weights, at, fours, sums);
        }
#pragma unroll
        for (uint32_t o = 0; o < OUTPUTS; o++) {
            const float sum = warp_sum(sums[o]);
            if (lane == 0 && first + o < m.outputs)
                m.y[(size_t)row * m.outputs + first + o] = sum;
        }
    }
}

bool gb_cuda_takes_dense_few(const gb_cuda_call *call) {
    const gb_cuda_tensor *weight = call->operands[1];
    return !call->is_prefill && weight->dtype != GB_QUANTIZED && weight->rank == 2 &&
           weight->dims[0] <= MOST_OUTPUTS && weight->dims[1] <= MOST_COLUMNS && weight->dims[1] % PIECE == 0;
}

void gb_cuda_dense_few(const gb_cuda_call *const *calls, uint32_t count) {
    dense_matrices p = {};
    const uint32_t blocks = list_matrices(calls, count, OUTPUTS, &p);
    GB_LAUNCH(multiply_dense_few, blocks, THREADS, (size_t)OUTPUTS * p.columns * sizeof(float),
              calls[0]->stream, p);
}
