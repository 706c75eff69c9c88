/* SPDX-License-Identifier: Apache-2.0
 *
 * The first launch of a decode step's experts with exact sums: routing, and activation(gate) * up of each
 * chosen expert and of the shared one. A block of threads has 16 rows of gate and of up, and rotates and
 * rounds the input while they are in flight.
 */
#ifndef GUMBEL_BACKENDS_CUDA_MOE_EXPERT_INNER_INT8_CUH
#define GUMBEL_BACKENDS_CUDA_MOE_EXPERT_INNER_INT8_CUH

#include "backends/cuda/device/warp_integers.cuh"
#include "backends/cuda/moe/expert_fragments.cuh"
#include "backends/cuda/norm/long_rows.cuh"

namespace gb_cuda {

enum {
    INNER_WARPS = ROUTING_WARPS,
    INNER_THREADS = INNER_WARPS * WARP,
    INNER_ROUND_COLUMNS = INNER_THREADS * LANE_COLUMNS,
    INNER_MOST_ROUNDS = 2,
};

/* Of rows of so many rounds: the blocks of columns that a warp loads at a time, mostly all it has, and blocks
 * of threads on a multiprocessor, of which registers allow fewer then. */
__host__ __device__ constexpr int inner_part(int rounds) {
    return rounds == 1 ? 2 : 3;
}
__host__ __device__ constexpr int inner_at_once(int rounds) {
    return rounds == 1 ? 3 : 2;
}

enum inner_activation { INNER_SILU, INNER_GELU, INNER_CLAMPED /* biased gates and ups */ };

struct expert_inner_int8 {
    int8_matrix weight;                 /* gate above up */
    int8_matrix shared_gate, shared_up; /* of a shared expert */
    int8_matrix next;                 /* down, of which the chosen experts' are prefetched; no codes: none */
    uint32_t next_codes, next_groups; /* its bytes of an expert */
    expert_bias biases[2];            /* of INNER_CLAMPED's gate and up */
    float alpha, limit;               /* likewise */
    const float *x;                   /* [tokens, columns] */
    expert_columns of;
    expert_choice choice;
};

/* An expert's first row of gate or of up in the matrix that has it. */
__device__ inline size_t first_row(const expert_inner_int8 &p, bool is_shared, size_t expert, uint32_t up) {
    return is_shared ? 0 : first_row_of(p.weight, expert) + up * p.choice.to.size;
}

/* The rows of gate and of up of inner values from number `row` on. */
template <int GROUP>
struct gate_up_place {
    fragment_place<GROUP> gate, up;

    __device__ gate_up_place(const expert_inner_int8 &p, bool is_shared, size_t expert, size_t row)
        : gate(is_shared ? p.shared_gate : p.weight, first_row(p, is_shared, expert, 0) + row, p.of),
          up(is_shared ? p.shared_up : p.weight, first_row(p, is_shared, expert, 1) + row, p.of) {}
};

/* What a warp multiplies of them: every INNER_WARPS-th block of columns, PART at a time. */
template <int GROUP, int PART>
struct gate_up_part {
    typedef gate_up_place<GROUP> place;
    typedef fragment_part<GROUP, PART> part;
    part gate, up;

    __device__ void load(const place &from, uint32_t first, const expert_columns &of) {
        gate.load(from.gate, first, INNER_WARPS, of.blocks);
        up.load(from.up, first, INNER_WARPS, of.blocks);
    }

    __device__ void begin(const place &from, const expert_columns &of) {
        load(from, threadIdx.x / WARP, of);
    }

    __device__ static void prefetch(const place &from, const expert_columns &of) {
        part::prefetch(from.gate, threadIdx.x / WARP, INNER_WARPS, of.blocks);
        part::prefetch(from.up, threadIdx.x / WARP, INNER_WARPS, of.blocks);
    }

    __device__ void multiply(const place &from, const expert_columns &of, const row_operand &x,
                             int32_t of_gate[2], int32_t of_up[2]) {
        const uint32_t warp = threadIdx.x / WARP;
        uint2 inputs[INT8_UNITS] = {};
#pragma unroll 1
        for (uint32_t first = warp; first < of.blocks; first += PART * INNER_WARPS) {
            if (first > warp)
                load(from, first, of);
#pragma unroll
            for (uint32_t b = 0; b < PART; b++) {
                const uint32_t block = first + b * INNER_WARPS;
                if (block >= of.blocks)
                    break;
                x.load(block, inputs);
                gate.add(b, block, x, inputs, of_gate);
                up.add(b, block, x, inputs, of_up);
            }
        }
    }
};

/* Rotates and rounds a row, of which parts are a thread's in rounds; returns its scale. */
template <int ROUNDS>
__device__ inline float round_in_block(const expert_columns &of, row_part<LANE_COLUMNS> parts[ROUNDS],
                                       uint32_t largest[INNER_WARPS], const row_operand &to) {
    const uint32_t lane = threadIdx.x % WARP;
    uint32_t magnitude = 0;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        hadamard_of_warp<LANE_COLUMNS>(parts[r].v, of.rotation);
        magnitude = larger<LANE_COLUMNS>(magnitude, parts[r].v);
    }
    magnitude = largest_in_warp(magnitude);
    if (lane == 0)
        largest[threadIdx.x / WARP] = magnitude;
    __syncthreads();
    const row_divisor by(largest_in_warp(lane < INNER_WARPS ? largest[lane] : 0));
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const uint32_t column = (uint32_t)r * INNER_ROUND_COLUMNS + threadIdx.x * LANE_COLUMNS;
        to.store<LANE_COLUMNS>(by, column, column < of.columns(), parts[r].v);
    }
    __syncthreads();
    return of.scale(by);
}

/* What a lane's row needs beside its sums: of a fragment's 16 of gate and, in the upper lanes, of up. */
struct beside_inner {
    uint16_t row_scale;
    float bias;
};

template <inner_activation ACTIVATION>
__device__ inline beside_inner load_beside(const expert_inner_int8 &p, bool is_shared, size_t expert,
                                           size_t row) {
    const uint32_t lane = threadIdx.x % WARP, up = lane / GB_FRAGMENT_ROWS;
    const int8_matrix &m = is_shared ? up ? p.shared_up : p.shared_gate : p.weight;
    row += lane % GB_FRAGMENT_ROWS;
    return {m.row_scales[first_row(p, is_shared, expert, up) + row],
            ACTIVATION == INNER_CLAMPED ? p.biases[up].load(expert, row) : 0.0f};
}

/* In a lane that has a row of gate, its inner value; the lane's own is of gate or of up. */
template <inner_activation ACTIVATION>
__device__ inline float inner_value(const expert_inner_int8 &p, float value, const beside_inner &beside) {
    const float own = ACTIVATION == INNER_CLAMPED ? value + beside.bias : value;
    const float up = __shfl_xor_sync(0xffffffffu, own, GB_FRAGMENT_ROWS);
    if (ACTIVATION == INNER_CLAMPED)
        return clamped_swiglu(own, up, p.alpha, p.limit);
    return (ACTIVATION == INNER_GELU ? gelu_tanh(own) : silu(own)) * up;
}

/* Grid: [shares of the fragments of inner values, experts of a token, tokens]. */
template <int GROUP, int ROUNDS, inner_activation ACTIVATION>
static __global__ void __launch_bounds__(INNER_THREADS, inner_at_once(ROUNDS))
    run_expert_inner_int8(GB_GRID_CONSTANT expert_inner_int8 p) {
    typedef gate_up_part<GROUP, inner_part(ROUNDS)> part;
    typedef gate_up_place<GROUP> place;
    GB_DYNAMIC_SHARED(uint8_t, memory);
    __shared__ block_routing routing;
    __shared__ uint32_t largest[INNER_WARPS];
    __shared__ int32_t sums[2][2][INNER_WARPS][GB_FRAGMENT_ROWS];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, number = blockIdx.y;
    const expert_values &to = p.choice.to;
    const size_t token = blockIdx.z;
    const bool is_shared = number == to.choices;
    const row_operand x(memory, p.of.columns());
    size_t row = (size_t)blockIdx.x * GB_FRAGMENT_ROWS, expert = 0;
    part weights;
    if (is_shared)
        weights.begin(place(p, true, 0, row), p.of);
    wait_alone();
    row_part<LANE_COLUMNS> parts[ROUNDS] = {};
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const uint32_t column = (uint32_t)r * INNER_ROUND_COLUMNS + threadIdx.x * LANE_COLUMNS;
        if (column < p.of.inputs)
            parts[r].load(p.x + token * p.of.inputs, column);
    }
    if (!is_shared) {
        expert = p.choice.find(token, number, routing);
        weights.begin(place(p, false, expert, row), p.of);
        if (p.next.codes) {
            prefetch_part(p.next.codes + expert * p.next_codes, p.next_codes);
            prefetch_part(p.next.groups + expert * p.next_groups, p.next_groups);
        }
        if (blockIdx.x == 0 && number == 0)
            p.choice.note(token, routing);
    } else if (blockIdx.x == 0 && threadIdx.x == 0) {
        p.choice.note_shared(token);
    }
    const uint32_t apart = gridDim.x * GB_FRAGMENT_ROWS;
    if (row + apart < to.size)
        part::prefetch(place(p, is_shared, expert, row + apart), p.of);
    const auto beside_row = [&](size_t at) {
        return warp == 0 ? load_beside<ACTIVATION>(p, is_shared, expert, at) : beside_inner{};
    };
    beside_inner next = beside_row(row);
    const float x_scale = round_in_block<ROUNDS>(p.of, parts, largest, x);
#pragma unroll 1
    for (uint32_t turn = 0; row < to.size; row += apart, turn ^= 1) {
        const beside_inner beside = next;
        int32_t of_gate[2] = {}, of_up[2] = {};
        weights.multiply(place(p, is_shared, expert, row), p.of, x, of_gate, of_up);
        if (row + apart < to.size) {
            weights.begin(place(p, is_shared, expert, row + apart), p.of);
            next = beside_row(row + apart);
        } else {
            let_next_begin();
        }
        if (row + 2 * apart < to.size)
            part::prefetch(place(p, is_shared, expert, row + 2 * apart), p.of);
        store_rows(sums[turn][0][warp], of_gate);
        store_rows(sums[turn][1][warp], of_up);
        __syncthreads();
        if (warp > 0)
            continue;
        int32_t sum = 0;
        for (uint32_t w = 0; w < INNER_WARPS; w++)
            sum += sums[turn][lane / GB_FRAGMENT_ROWS][w][lane % GB_FRAGMENT_ROWS];
        const float value = int8_result(sum, x_scale, gb_widen_half(beside.row_scale, GB_F16)),
                    inner = inner_value<ACTIVATION>(p, value, beside);
        if (lane < GB_FRAGMENT_ROWS)
            to.inner[(token * to.count + number) * to.size + row + lane] = inner;
    }
}

} // namespace gb_cuda

#endif
