/* SPDX-License-Identifier: Apache-2.0
 *
 * The first launch of a decode step's experts with exact sums: routing, and activation(gate) * up of each
 * chosen expert and of the shared one. A block of threads has 16 rows of gate and of up, and rotates and
 * rounds the input while they are in flight.
 */
#ifndef GUMBEL_BACKENDS_CUDA_MOE_EXPERT_INNER_INT8_CUH
#define GUMBEL_BACKENDS_CUDA_MOE_EXPERT_INNER_INT8_CUH

#include "backends/cuda/moe/expert_fragments.cuh"
#include "backends/cuda/norm/long_rows.cuh"

namespace gb_cuda {

enum {
    INNER_WARPS = ROUTING_WARPS,
    INNER_THREADS = INNER_WARPS * WARP,
    INNER_ROUND_COLUMNS = INNER_THREADS * LANE_COLUMNS,
    INNER_MOST_ROUNDS = 2,
    INNER_PART = 2, /* blocks of columns that a warp loads at a time */
};

struct expert_inner_int8 {
    int8_matrix weight;                 /* gate above up */
    int8_matrix shared_gate, shared_up; /* of a shared expert */
    int8_matrix next;                 /* down, of which the chosen experts' are prefetched; no codes: none */
    uint32_t next_codes, next_groups; /* its bytes of an expert */
    const float *x;                   /* [tokens, columns] */
    expert_columns of;
    expert_choice choice;
};

/* Rows of gate and of up that a warp multiplies. */
template <int GROUP>
struct gate_up_part {
    fragment_part<GROUP, INNER_PART> gate, up;

    __device__ void load(const expert_columns &of, uint32_t first) {
        gate.load(first, INNER_WARPS, of.blocks);
        up.load(first, INNER_WARPS, of.blocks);
    }

    __device__ void begin(const expert_inner_int8 &p, const int8_matrix &of_gate, size_t gate_row,
                          const int8_matrix &of_up, size_t up_row) {
        gate.find(of_gate, gate_row, p.of);
        up.find(of_up, up_row, p.of);
        load(p.of, threadIdx.x / WARP);
    }

    /* A warp has every INNER_WARPS-th block of columns. */
    __device__ void multiply(const expert_columns &of, const row_operand &x, int32_t of_gate[2],
                             int32_t of_up[2]) {
        const uint32_t warp = threadIdx.x / WARP;
        uint2 inputs[INT8_UNITS] = {};
#pragma unroll 1
        for (uint32_t first = warp; first < of.blocks; first += INNER_PART * INNER_WARPS) {
            if (first > warp)
                load(of, first);
#pragma unroll
            for (uint32_t b = 0; b < INNER_PART; b++) {
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
    magnitude = largest_of_lanes(magnitude, WARP);
    if (lane == 0)
        largest[threadIdx.x / WARP] = magnitude;
    __syncthreads();
    const row_divisor by(largest_of_lanes(lane < INNER_WARPS ? largest[lane] : 0, WARP));
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const uint32_t column = (uint32_t)r * INNER_ROUND_COLUMNS + threadIdx.x * LANE_COLUMNS;
        to.store<LANE_COLUMNS>(by, column, column < of.columns(), parts[r].v);
    }
    __syncthreads();
    return of.scale(by);
}

/* Grid: [fragments of inner values, experts of a token, tokens]. */
template <int GROUP, int ROUNDS, bool IS_GELU>
static __global__ void __launch_bounds__(INNER_THREADS, 3)
    run_expert_inner_int8(GB_GRID_CONSTANT expert_inner_int8 p) {
    GB_DYNAMIC_SHARED(uint8_t, memory);
    __shared__ block_routing routing;
    __shared__ uint32_t largest[INNER_WARPS];
    __shared__ int32_t sums[2][INNER_WARPS][GB_FRAGMENT_ROWS];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, number = blockIdx.y;
    const expert_values &to = p.choice.to;
    const size_t token = blockIdx.z, row = (size_t)blockIdx.x * GB_FRAGMENT_ROWS;
    const bool is_shared = number == to.choices;
    const row_operand x(memory, p.of.columns());
    gate_up_part<GROUP> weights;
    if (is_shared)
        weights.begin(p, p.shared_gate, row, p.shared_up, row);
    wait_alone();
    row_part<LANE_COLUMNS> parts[ROUNDS] = {};
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const uint32_t column = (uint32_t)r * INNER_ROUND_COLUMNS + threadIdx.x * LANE_COLUMNS;
        if (column < p.of.columns())
            parts[r].load(p.x + token * p.of.columns(), column);
    }
    size_t gate_row = row;
    if (!is_shared) {
        const size_t expert = p.choice.find(token, number, routing);
        gate_row += expert * p.weight.outputs;
        weights.begin(p, p.weight, gate_row, p.weight, gate_row + to.size);
        if (p.next.codes) {
            prefetch_part(p.next.codes + expert * p.next_codes, p.next_codes);
            prefetch_part(p.next.groups + expert * p.next_groups, p.next_groups);
        }
        if (blockIdx.x == 0 && number == 0)
            p.choice.note(token, routing);
    } else if (blockIdx.x == 0 && threadIdx.x == 0) {
        p.choice.note_shared(token);
    }
    uint16_t of_row = 0;
    if (warp == 0) {
        const int8_matrix &gate = is_shared ? p.shared_gate : p.weight,
                          &up = is_shared ? p.shared_up : p.weight;
        const size_t first = lane < GB_FRAGMENT_ROWS ? gate_row : gate_row + (is_shared ? 0 : to.size);
        of_row = (lane < GB_FRAGMENT_ROWS ? gate : up).row_scales[first + lane % GB_FRAGMENT_ROWS];
    }
    const float x_scale = round_in_block<ROUNDS>(p.of, parts, largest, x);
    int32_t of_gate[2] = {}, of_up[2] = {};
    weights.multiply(p.of, x, of_gate, of_up);
    let_next_begin();
    store_rows(sums[0][warp], of_gate);
    store_rows(sums[1][warp], of_up);
    __syncthreads();
    if (warp > 0)
        return;
    int32_t sum = 0;
    for (uint32_t w = 0; w < INNER_WARPS; w++)
        sum += sums[lane / GB_FRAGMENT_ROWS][w][lane % GB_FRAGMENT_ROWS];
    const float value = int8_result(sum, x_scale, gb_widen_half(of_row, GB_F16)),
                of_other = __shfl_xor_sync(0xffffffffu, value, GB_FRAGMENT_ROWS);
    if (lane < GB_FRAGMENT_ROWS)
        to.inner[(token * to.count + number) * to.size + row + lane] =
            (IS_GELU ? gelu_tanh(value) : silu(value)) * of_other;
}

} // namespace gb_cuda

#endif
