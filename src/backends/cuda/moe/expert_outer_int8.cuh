/* SPDX-License-Identifier: Apache-2.0
 *
 * The second launch of a decode step's experts with exact sums: down of the chosen experts and of the shared
 * one, weighted and added to the residual, if there is one. A warp has an expert, or some columns of a wide
 * one: it rotates and rounds the inner values there and multiplies 16 outputs with them.
 */
#ifndef GUMBEL_BACKENDS_CUDA_MOE_EXPERT_OUTER_INT8_CUH
#define GUMBEL_BACKENDS_CUDA_MOE_EXPERT_OUTER_INT8_CUH

#include "backends/cuda/device/warp_integers.cuh"
#include "backends/cuda/moe/expert_fragments.cuh"
#include "backends/cuda/norm/long_rows.cuh"

namespace gb_cuda {

enum {
    OUTER_WIDE = 2,         /* warps of a wide expert */
    OUTER_WIDE_EXPERTS = 4, /* at most, of a token */
    OUTER_MOST_ROUNDS = 4,  /* of WARP_COLUMNS columns, that a warp has alone, */
    OUTER_WIDE_ROUNDS = 6,  /* and of a wide expert */
    OUTER_PART = 4,         /* blocks of columns that a warp loads at a time */
    OUTER_AT_ONCE = 2,      /* blocks of threads on a multiprocessor */
};

struct expert_outer_int8 {
    int8_matrix weight, shared; /* shared: of a shared expert */
    expert_columns of;
    expert_values from;
    expert_bias bias;
    const float *residual; /* [tokens, outputs]; NULL: it is added elsewhere */
    float *y;              /* [tokens, outputs] */
};

/* Warps of a block: SHARES for each of a token's experts. */
template <int SHARES>
__host__ __device__ constexpr int outer_warps() {
    return SHARES == 1 ? MOST_CHOICES + 1 : SHARES * OUTER_WIDE_EXPERTS;
}

/* Until the warps of an expert are there. */
template <int SHARES>
__device__ inline void meet_expert() {
    if (SHARES == 1)
        __syncwarp();
    else
        __syncthreads();
}

/* Rotates and rounds an expert's inner values, every SHARES-th part of which is the warp's; returns their
 * scale. largest: of the expert's warps, in shared memory. */
template <int ROUNDS, int SHARES>
__device__ inline float round_expert(const expert_columns &of, const float *inner, uint32_t share,
                                     uint32_t largest[SHARES], const row_operand &to) {
    const uint32_t first = share * WARP_COLUMNS + threadIdx.x % WARP * LANE_COLUMNS,
                   apart = SHARES * WARP_COLUMNS;
    row_part<LANE_COLUMNS> parts[ROUNDS] = {};
    uint32_t magnitude = 0;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
        if (first + (uint32_t)r * apart < of.inputs)
            parts[r].load(inner, first + (uint32_t)r * apart);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        hadamard_of_warp<LANE_COLUMNS>(parts[r].v, of.rotation);
        magnitude = larger<LANE_COLUMNS>(magnitude, parts[r].v);
    }
    magnitude = largest_in_warp(magnitude);
    if (SHARES > 1) {
        largest[share] = magnitude;
        meet_expert<SHARES>();
        for (uint32_t i = 0; i < SHARES; i++)
            magnitude = largest[i] > magnitude ? largest[i] : magnitude;
    }
    const row_divisor by(magnitude);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const uint32_t column = first + (uint32_t)r * apart;
        to.store<LANE_COLUMNS>(by, column, column < of.columns(), parts[r].v);
    }
    meet_expert<SHARES>();
    return of.scale(by);
}

/* A fragment of an expert's outputs, every SHARES-th block of columns: rows r and r + 8 of the lane, without
 * what other lanes have. The first blocks are loaded. */
template <int GROUP, int SHARES>
__device__ inline void multiply_expert(fragment_part<GROUP, OUTER_PART> &part,
                                       const fragment_place<GROUP> &from, const expert_columns &of,
                                       uint32_t share, const row_operand &x, int32_t sums[2]) {
    uint2 inputs[INT8_UNITS] = {};
#pragma unroll 1
    for (uint32_t first = share; first < of.blocks; first += OUTER_PART * SHARES) {
        if (first > share)
            part.load(from, first, SHARES, of.blocks);
#pragma unroll
        for (uint32_t b = 0; b < OUTER_PART; b++) {
            const uint32_t block = first + b * SHARES;
            if (block >= of.blocks)
                break;
            x.load(block, inputs);
            part.add(b, block, x, inputs, sums);
        }
    }
}

/* What an output needs beside its sums; it is on its way while these are made. */
struct beside_sums {
    uint16_t row_scale;
    float bias, residual;
};

/* Grid: [shares of the fragments of outputs, tokens]; SHARES warps for each of a token's experts. HAS_ALL:
 * there are a shared expert and a residual. */
template <int GROUP, int ROUNDS, int SHARES, bool HAS_ALL>
static __global__ void __launch_bounds__(outer_warps<SHARES>() * WARP, OUTER_AT_ONCE)
    run_expert_outer_int8(GB_GRID_CONSTANT expert_outer_int8 p) {
    typedef fragment_part<GROUP, OUTER_PART> part;
    typedef fragment_place<GROUP> place;
    GB_DYNAMIC_SHARED(uint8_t, memory);
    enum { EXPERTS = outer_warps<SHARES>() / SHARES };
    __shared__ int32_t sums[EXPERTS][SHARES][GB_FRAGMENT_ROWS];
    __shared__ float values[2][EXPERTS][GB_FRAGMENT_ROWS], weights[EXPERTS];
    __shared__ uint32_t largest[EXPERTS][SHARES];
    const uint32_t number = threadIdx.x / (SHARES * WARP), share = threadIdx.x / WARP % SHARES,
                   lane = threadIdx.x % WARP, choices = p.from.choices;
    const size_t token = blockIdx.y, apart = (size_t)gridDim.x * GB_FRAGMENT_ROWS;
    const row_operand x(memory + number * row_operand::bytes(p.of.columns()), p.of.columns());
    const bool is_shared = number == choices;
    const int8_matrix &m = is_shared ? p.shared : p.weight;
    size_t row = (size_t)blockIdx.x * GB_FRAGMENT_ROWS, expert = 0, first = 0;
    part of;
    if (is_shared)
        of.load(place(m, row, p.of), share, SHARES, p.of.blocks);
    wait_for_earlier();
    if (!is_shared) {
        expert = (size_t)p.from.experts[token * choices + number];
        first = first_row_of(m, expert);
        of.load(place(m, first + row, p.of), share, SHARES, p.of.blocks);
    }
    if (row + apart < p.weight.outputs)
        part::prefetch(place(m, first + row + apart, p.of), share, SHARES, p.of.blocks);
    if (lane == 0 && share == 0)
        weights[number] = p.from.weights[token * p.from.count + number];
    const auto load_beside = [&](size_t at) {
        const bool has_output = share == 0 && lane < GB_FRAGMENT_ROWS, has_residual = HAS_ALL || p.residual;
        return beside_sums{has_output ? m.row_scales[first + at + lane] : (uint16_t)0,
                           has_output ? p.bias.load(expert, at + lane) : 0.0f,
                           has_output && has_residual && number == 0
                               ? p.residual[token * p.weight.outputs + at + lane]
                               : 0.0f};
    };
    beside_sums next = load_beside(row);
    const float x_scale = round_expert<ROUNDS, SHARES>(
        p.of, p.from.inner + (token * p.from.count + number) * p.from.size, share, largest[number], x);
#pragma unroll 1
    for (uint32_t turn = 0; row < p.weight.outputs; row += apart, turn ^= 1) {
        const beside_sums beside = next;
        int32_t of_rows[2] = {};
        multiply_expert<GROUP, SHARES>(of, place(m, first + row, p.of), p.of, share, x, of_rows);
        if (row + apart < p.weight.outputs) {
            of.load(place(m, first + row + apart, p.of), share, SHARES, p.of.blocks);
            next = load_beside(row + apart);
        }
        if (row + 2 * apart < p.weight.outputs)
            part::prefetch(place(m, first + row + 2 * apart, p.of), share, SHARES, p.of.blocks);
        store_rows(sums[number][share], of_rows);
        meet_expert<SHARES>();
        if (share == 0 && lane < GB_FRAGMENT_ROWS) {
            int32_t sum = 0;
            for (uint32_t i = 0; i < SHARES; i++)
                sum += sums[number][i][lane];
            values[turn][number][lane] =
                int8_result(sum, x_scale, gb_widen_half(beside.row_scale, GB_F16)) + beside.bias;
        }
        __syncthreads();
        if (threadIdx.x < GB_FRAGMENT_ROWS)
            p.y[token * p.weight.outputs + row + lane] =
                join_experts<HAS_ALL>(p.from, &values[turn][0][lane], GB_FRAGMENT_ROWS, weights,
                                      p.residual != nullptr, beside.residual);
    }
}

} // namespace gb_cuda

#endif
