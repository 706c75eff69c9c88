/* SPDX-License-Identifier: Apache-2.0
 *
 * The second launch of a decode step's experts with exact sums: down of the chosen experts and of the shared
 * one, weighted and added to the residual, if there is one. A warp has an expert: it rotates and rounds the
 * expert's inner values and multiplies 16 outputs with them.
 */
#ifndef GUMBEL_BACKENDS_CUDA_MOE_EXPERT_OUTER_INT8_CUH
#define GUMBEL_BACKENDS_CUDA_MOE_EXPERT_OUTER_INT8_CUH

#include "backends/cuda/device/warp_integers.cuh"
#include "backends/cuda/moe/expert_fragments.cuh"
#include "backends/cuda/norm/long_rows.cuh"

namespace gb_cuda {

enum {
    OUTER_WARPS = MOST_CHOICES + 1,
    OUTER_MOST_ROUNDS = 4, /* of WARP_COLUMNS columns */
    OUTER_PART = 4,        /* blocks of columns that a warp loads at a time */
    OUTER_AT_ONCE = 2,     /* blocks of threads on a multiprocessor */
};

struct expert_outer_int8 {
    int8_matrix weight, shared; /* shared: of a shared expert */
    expert_columns of;
    expert_values from;
    const float *residual; /* [tokens, outputs]; NULL: it is added elsewhere */
    float *y;              /* [tokens, outputs] */
};

/* Rotates and rounds an expert's inner values; returns their scale. */
template <int ROUNDS>
__device__ inline float round_in_warp(const expert_columns &of, const float *inner, const row_operand &to) {
    const uint32_t first = threadIdx.x % WARP * LANE_COLUMNS;
    row_part<LANE_COLUMNS> parts[ROUNDS] = {};
    uint32_t magnitude = 0;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
        if (first + (uint32_t)r * WARP_COLUMNS < of.inputs)
            parts[r].load(inner, first + (uint32_t)r * WARP_COLUMNS);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        hadamard_of_warp<LANE_COLUMNS>(parts[r].v, of.rotation);
        magnitude = larger<LANE_COLUMNS>(magnitude, parts[r].v);
    }
    const row_divisor by(largest_in_warp(magnitude));
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const uint32_t column = first + (uint32_t)r * WARP_COLUMNS;
        to.store<LANE_COLUMNS>(by, column, column < of.columns(), parts[r].v);
    }
    __syncwarp();
    return of.scale(by);
}

/* A fragment of an expert's outputs: rows r and r + 8 of the lane, without what other lanes have. */
template <int GROUP>
__device__ inline void multiply_expert(fragment_part<GROUP, OUTER_PART> &part,
                                       const fragment_place<GROUP> &from, const expert_columns &of,
                                       const row_operand &x, int32_t sums[2]) {
    uint2 inputs[INT8_UNITS] = {};
#pragma unroll 1
    for (uint32_t first = 0; first < of.blocks; first += OUTER_PART) {
        if (first > 0)
            part.load(from, first, 1, of.blocks);
#pragma unroll
        for (uint32_t b = 0; b < OUTER_PART; b++) {
            if (first + b >= of.blocks)
                break;
            x.load(first + b, inputs);
            part.add(b, first + b, x, inputs, sums);
        }
    }
}

/* What an output needs beside its sums; it is on its way while these are made. */
struct beside_sums {
    uint16_t row_scale;
    float residual;
};

/* Grid: [shares of the fragments of outputs, tokens]; a warp for each of a token's experts. HAS_ALL: there
 * are a shared expert and a residual. */
template <int GROUP, int ROUNDS, bool HAS_ALL>
static __global__ void __launch_bounds__(OUTER_WARPS *WARP, OUTER_AT_ONCE)
    run_expert_outer_int8(GB_GRID_CONSTANT expert_outer_int8 p) {
    typedef fragment_part<GROUP, OUTER_PART> part;
    typedef fragment_place<GROUP> place;
    GB_DYNAMIC_SHARED(uint8_t, memory);
    __shared__ int32_t sums[OUTER_WARPS][GB_FRAGMENT_ROWS];
    __shared__ float values[2][OUTER_WARPS][GB_FRAGMENT_ROWS], weights[OUTER_WARPS];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, choices = p.from.choices;
    const size_t token = blockIdx.y, apart = (size_t)gridDim.x * GB_FRAGMENT_ROWS;
    const row_operand x(memory + warp * row_operand::bytes(p.of.columns()), p.of.columns());
    const bool is_shared = warp == choices;
    const int8_matrix &m = is_shared ? p.shared : p.weight;
    size_t row = (size_t)blockIdx.x * GB_FRAGMENT_ROWS, first = 0;
    part of;
    if (is_shared)
        of.load(place(m, row, p.of), 0, 1, p.of.blocks);
    wait_for_earlier();
    if (!is_shared) {
        first = (size_t)p.from.experts[token * choices + warp] * m.outputs;
        of.load(place(m, first + row, p.of), 0, 1, p.of.blocks);
    }
    if (row + apart < p.weight.outputs)
        part::prefetch(place(m, first + row + apart, p.of), 0, 1, p.of.blocks);
    if (lane == 0)
        weights[warp] = p.from.weights[token * p.from.count + warp];
    const auto load_beside = [&](size_t at) {
        const bool has_output = lane < GB_FRAGMENT_ROWS, has_residual = HAS_ALL || p.residual;
        return beside_sums{has_output ? m.row_scales[first + at + lane] : (uint16_t)0,
                           has_output && has_residual && warp == 0
                               ? p.residual[token * p.weight.outputs + at + lane]
                               : 0.0f};
    };
    beside_sums next = load_beside(row);
    const float x_scale =
        round_in_warp<ROUNDS>(p.of, p.from.inner + (token * p.from.count + warp) * p.from.size, x);
#pragma unroll 1
    for (uint32_t turn = 0; row < p.weight.outputs; row += apart, turn ^= 1) {
        const beside_sums beside = next;
        int32_t of_rows[2] = {};
        multiply_expert<GROUP>(of, place(m, first + row, p.of), p.of, x, of_rows);
        if (row + apart < p.weight.outputs) {
            of.load(place(m, first + row + apart, p.of), 0, 1, p.of.blocks);
            next = load_beside(row + apart);
        }
        if (row + 2 * apart < p.weight.outputs)
            part::prefetch(place(m, first + row + 2 * apart, p.of), 0, 1, p.of.blocks);
        store_rows(sums[warp], of_rows);
        __syncwarp();
        if (lane < GB_FRAGMENT_ROWS)
            values[turn][warp][lane] =
                int8_result(sums[warp][lane], x_scale, gb_widen_half(beside.row_scale, GB_F16));
        __syncthreads();
        if (threadIdx.x < GB_FRAGMENT_ROWS)
            p.y[token * p.weight.outputs + row + lane] =
                join_experts<HAS_ALL>(p.from, &values[turn][0][lane], GB_FRAGMENT_ROWS, weights,
                                      p.residual != nullptr, beside.residual);
    }
}

} // namespace gb_cuda

#endif
