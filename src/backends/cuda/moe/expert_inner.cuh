/* SPDX-License-Identifier: Apache-2.0
 *
 * The first launch of a decode step's experts: routing, and activation(gate) * up of each chosen expert and
 * of the shared one.
 */
#ifndef GUMBEL_BACKENDS_CUDA_MOE_EXPERT_INNER_CUH
#define GUMBEL_BACKENDS_CUDA_MOE_EXPERT_INNER_CUH

#include "backends/cuda/moe/expert_blocks.cuh"

#include <type_traits>

namespace gb_cuda {

struct expert_inner {
    packed_matrices weight;                 /* gate above up */
    packed_matrices shared_gate, shared_up; /* one matrix each, of a shared expert */
    packed_matrices next; /* down, whose chosen experts are prefetched to the L2 cache; no codes: none */
    const uint4 *x;       /* [tokens, atoms, 4], */
    const float2 *x_sums; /* [tokens, groups]: prepared in 8 bits */
    expert_choice choice;
};

/* Memory of a block: its rows' sums lie where routing.keys are free again, if there is room. */
union one_round_memory {
    block_routing routing;
    float sums[2][EXPERT_WARPS][GEMV_BLOCK_ROWS];
};

static_assert(sizeof(one_round_memory::sums) <= sizeof(block_routing::keys), "what is chosen stays");

template <int ROUNDS>
struct rounds_memory {
    block_routing routing;
    float sums[2][ROUNDS * EXPERT_WARPS][GEMV_BLOCK_ROWS];
};

template <int ROUNDS>
using inner_memory = std::conditional_t<ROUNDS == 1, one_round_memory, rounds_memory<ROUNDS>>;

/* Prefetches the block's part of an expert's matrix. */
__device__ inline void prefetch_matrix(const packed_matrices &m, size_t expert) {
    const uint32_t codes = m.blocks * m.code_bytes, scales = m.blocks * m.scale_bytes;
    prefetch_part(m.codes + expert * codes, codes);
    prefetch_part(m.scales + expert * scales, scales);
    if (m.biases)
        prefetch_part(m.biases + expert * scales, scales);
}

/* The first two warps copy a block of the gate's rows and one of up's. */
__device__ inline void copy_gate_up(const packed_matrices &gate, const packed_matrices &up, size_t of_gate,
                                    size_t of_up, const packed_block to[2], copy_barrier *arrived) {
    const uint32_t warp = threadIdx.x / WARP;
    if (warp >= 2)
        return;
    announce_by_warp(arrived, packed_block::bytes(gate));
    if (warp == 0)
        to[0].copy(gate, of_gate, arrived);
    else
        to[1].copy(up, of_up, arrived);
}

/* A warp's part of the sums of gate and up: of up to MOST_INNER_ATOMS atoms from `first` on. x: the lane's
 * inputs of atom lane / 8, of_x: the numbers of the groups of atom lane % 4. An atom of one group: the sums
 * come out side by side, as in gemv_one_row.cuh, the i-th atom's of gate in column 2 i, of up in column
 * 2 i + 1. */
template <typename Shape>
__device__ inline void multiply_whole_atoms(const packed_matrices &m, const packed_block of[2],
                                            uint32_t first, uint32_t count, const uint4 &x,
                                            const float2 &of_x, float of_rows[2][2]) {
    const uint32_t lane = threadIdx.x % WARP;
    const bool is_there = lane % 4 < count;
    byte_sums<Shape, true> sums;
    static_assert(2 * (int)MOST_INNER_ATOMS == (int)GEMV_COLUMNS,
                  "gate and up of an atom have two of eight columns");
#pragma unroll
    for (uint32_t column = 0; column < 2 * MOST_INNER_ATOMS; column++) {
        if (column / 2 >= count)
            break;
        uint32_t w[1][4];
        load_codes<Shape>(of[column % 2].template codes<Shape>(first + column / 2), w);
        sums.add(w, 0, [&](int) { return lane / 4 == column ? x : uint4{0, 0, 0, 0}; });
    }
#pragma unroll
    for (int up = 0; up < 2; up++) {
        float scale[2], bias[2];
        of[up].template load_scales<Shape>(first + (is_there ? lane % 4 : 0), m, scale, bias);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float sum = value_of_bytes(scale[half], bias[half], of_x, sums.sum(2 * half + up));
            sum = is_there ? sum : 0.0f;
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            of_rows[up][half] = sum;
        }
    }
}

/* The same of one of the two matrices, whose atoms have two groups: those of the i-th are in columns 2 i and
 * 2 i + 1. */
template <typename Shape>
__device__ inline void multiply_half_atoms(const packed_matrices &m, const packed_block &of, uint32_t first,
                                           uint32_t count, const uint4 &x, const float2 of_x[2],
                                           float of_rows[2]) {
    const uint32_t lane = threadIdx.x % WARP;
    const bool is_there = lane % 4 < count;
    byte_sums<Shape, true> sums;
#pragma unroll
    for (uint32_t column = 0; column < 2 * MOST_INNER_ATOMS; column++) {
        if (column / 2 >= count)
            break;
        uint32_t w[1][4];
        load_codes<Shape>(of.template codes<Shape>(first + column / 2), w);
        sums.add(w, column % 2, [&](int) { return lane / 4 == column ? x : uint4{0, 0, 0, 0}; });
    }
    float values[2][2];
#pragma unroll
    for (uint32_t g = 0; g < 2; g++) {
        float scale[2], bias[2];
        of.template load_scales<Shape>((first + (is_there ? lane % 4 : 0)) * 2 + g, m, scale, bias);
#pragma unroll
        for (uint32_t half = 0; half < 2; half++)
            values[g][half] = value_of_bytes(scale[half], bias[half], of_x[g], sums.sum((int)(2 * half + g)));
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = is_there ? values[0][half] + values[1][half] : 0.0f;
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        of_rows[half] = sum;
    }
}

/* What a warp multiplies in a turn: some atoms, the lane's inputs of atom lane / 8, and the numbers of the
 * groups of atom lane % 4. */
template <typename Shape>
struct inner_turn {
    uint32_t first, count;
    uint4 x;
    float2 of_x[Shape::ATOM_GROUPS];

    __device__ void load(const expert_inner &p, size_t token, uint32_t turn) {
        const uint32_t lane = threadIdx.x % WARP;
        const atom_range mine(p.weight.atoms, turn);
        const size_t of_token = token * p.weight.atoms + mine.first;
        first = mine.first;
        count = mine.count;
        x = p.x[(of_token + (lane / 8 < count ? lane / 8 : 0)) * 4 + lane % 4];
#pragma unroll
        for (uint32_t g = 0; g < Shape::ATOM_GROUPS; g++)
            of_x[g] = p.x_sums[(of_token + (lane % 4 < count ? lane % 4 : 0)) * Shape::ATOM_GROUPS + g];
    }

    __device__ void multiply(const packed_matrices &m, const packed_block of[2], float of_rows[2][2]) const {
        if constexpr (Shape::ATOM_GROUPS == 1)
            return multiply_whole_atoms<Shape>(m, of, first, count, x, *of_x, of_rows);
        else
            for (int up = 0; up < 2; up++)
                multiply_half_atoms<Shape>(m, of[up], first, count, x, of_x, of_rows[up]);
    }
};

/* Bytes of shared memory for gate and up. */
template <typename Shape>
inline size_t inner_bytes(uint32_t atoms) {
    return 2 * atoms * (size_t)Shape::ATOM_BYTES;
}

/* Grid: [blocks of 16 inner values, experts of a token, tokens]. */
template <typename Shape, int ROUNDS, bool IS_GELU>
static __global__ void __launch_bounds__(EXPERT_THREADS, 4)
    run_expert_inner(GB_GRID_CONSTANT expert_inner p) {
    GB_DYNAMIC_SHARED(uint8_t, memory);
    __shared__ copy_barrier arrived;
    __shared__ inner_memory<ROUNDS> shared;
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, block = blockIdx.x;
    const expert_values &to = p.choice.to;
    const uint32_t number = blockIdx.y, choices = to.choices;
    const size_t token = blockIdx.z;
    const packed_block of[2] = {{memory}, {memory + p.weight.atoms * Shape::ATOM_BYTES}}; /* gate and up */
    if (threadIdx.x == 0) {
        begin_barrier(&arrived, 2);
        finish_barriers();
    }
    __syncthreads();
    if (number == choices)
        copy_gate_up(p.shared_gate, p.shared_up, block, block, of, &arrived);
    wait_alone();
    inner_turn<Shape> turns[ROUNDS];
#pragma unroll
    for (uint32_t r = 0; r < ROUNDS; r++)
        turns[r].load(p, token, r * EXPERT_WARPS + warp);
    if (number < choices) {
        const size_t expert = p.choice.find(token, number, shared.routing);
        const size_t of_gate = expert * p.weight.blocks + block;
        copy_gate_up(p.weight, p.weight, of_gate, of_gate + p.weight.blocks / 2, of, &arrived);
        if (p.next.codes)
            prefetch_matrix(p.next, expert);
        if (block == 0 && number == 0)
            p.choice.note(token, shared.routing);
    } else if (block == 0 && threadIdx.x == 0) {
        p.choice.note_shared(token);
    }
    wait_for_block_copies(&arrived, 0);
    let_next_begin();
#pragma unroll
    for (uint32_t r = 0; r < ROUNDS; r++) {
        float of_rows[2][2];
        turns[r].multiply(p.weight, of, of_rows);
        for (int up = 0; up < 2; up++)
            store_sums(shared.sums[up][r * EXPERT_WARPS + warp], of_rows[up]);
    }
    __syncthreads();
    if (warp == 0) {
        const float sum = add_sums<Shape, ROUNDS>(shared.sums[lane / GEMV_BLOCK_ROWS], lane % GEMV_BLOCK_ROWS,
                                                  p.weight.atoms);
        const float of_up = __shfl_xor_sync(0xffffffffu, sum, GEMV_BLOCK_ROWS);
        if (lane < GEMV_BLOCK_ROWS)
            to.inner[(token * to.count + number) * to.size + block * GEMV_BLOCK_ROWS + lane] =
                (IS_GELU ? gelu_tanh(sum) : silu(sum)) * of_up;
    }
}

} // namespace gb_cuda

#endif
