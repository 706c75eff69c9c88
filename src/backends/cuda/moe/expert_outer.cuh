/* SPDX-License-Identifier: Apache-2.0
 *
 * The second launch of a decode step's experts: down of the chosen experts and of the shared one, weighted
 * and added to the residual, if there is one.
 */
#ifndef GUMBEL_BACKENDS_CUDA_MOE_EXPERT_OUTER_CUH
#define GUMBEL_BACKENDS_CUDA_MOE_EXPERT_OUTER_CUH

#include "backends/cuda/gemm/prepared.cuh"
#include "backends/cuda/moe/expert_blocks.cuh"

namespace gb_cuda {

struct expert_outer {
    packed_matrices weight, shared; /* shared: one matrix, of a shared expert */
    expert_values from;
    const float *residual; /* [tokens, outputs]; NULL: it is added elsewhere */
    float *y;              /* [tokens, outputs] */
    uint32_t outputs;
};

/* A warp's atoms of the inner values of all experts of a token, in 8 bits. */
template <typename Shape>
struct inner_atoms {
    uint8_t *bytes;              /* [experts, atoms of a part, EXPERT_COLUMNS], the shared one last */
    float2 *sums;                /* [experts, atoms of a part, groups] */
    uint32_t first, count, most; /* atoms of the warp's part, and of the largest one */

    /* The lane's eight columns of an expert's atom. */
    __device__ void load(const expert_values &from, size_t token, uint32_t expert, uint32_t atom,
                         float v[8]) const {
        float4 halves[2] = {};
        if (expert < from.count && atom < count) {
            const float *row = from.inner + (token * from.count + expert) * from.size;
            const float4 *at =
                reinterpret_cast<const float4 *>(row + (first + atom) * EXPERT_COLUMNS) + threadIdx.x % 8 * 2;
            halves[0] = at[0];
            halves[1] = at[1];
        }
        memcpy(v, halves, sizeof halves);
    }

    /* An atom of all experts: eight lanes have one, and what comes next is in flight. */
    __device__ void create_atom(const expert_values &from, size_t token, uint32_t atom) const {
        constexpr uint32_t GROUP_LANES = Shape::GROUP / 8;
        const uint32_t lane = threadIdx.x % WARP, quarter = lane % 8;
        float v[8], next[8];
        load(from, token, lane / 8, atom, next);
#pragma unroll 1
        for (uint32_t begin = 0; begin < from.count; begin += 4) {
            const uint32_t expert = begin + lane / 8, task = expert * most + atom;
            memcpy(v, next, sizeof v);
            load(from, token, expert + 4, atom, next);
            const byte_columns rounded = round_to_bytes<8>(v, GROUP_LANES);
            if (expert >= from.count || count == 0)
                continue;
            *reinterpret_cast<uint2 *>(bytes + task * EXPERT_COLUMNS + (quarter % 4 * 2 + quarter / 4) * 8) =
                uint2{rounded.words[0], rounded.words[1]};
            if (quarter % GROUP_LANES == 0)
                sums[task * Shape::ATOM_GROUPS + quarter / GROUP_LANES] = float2{rounded.scale, rounded.sum};
        }
    }

    __device__ void create(const expert_values &from, size_t token) const {
#pragma unroll 1
        for (uint32_t atom = 0; atom < most; atom++)
            create_atom(from, token, atom);
        __syncwarp();
    }
};

/* Each warp copies the block of one expert's matrix, the first one also the shared one's. */
template <typename Shape>
__device__ inline void copy_chosen(const expert_outer &p, int expert, uint32_t block, uint8_t *to,
                                   copy_barrier *arrived) {
    const uint32_t warp = threadIdx.x / WARP, choices = p.from.choices,
                   pitch = p.weight.atoms * Shape::ATOM_BYTES;
    const packed_block mine = {to + warp * pitch};
    announce_by_warp(arrived, warp < choices ? packed_block::bytes(p.weight) : 0);
    if (warp < choices)
        mine.copy(p.weight, (size_t)expert * p.weight.blocks + block, arrived);
}

template <typename Shape, bool HAS_ALL>
__device__ inline void copy_shared(const expert_outer &p, uint32_t block, uint8_t *to,
                                   copy_barrier *arrived) {
    const packed_block shared = {to + p.from.choices * p.weight.atoms * Shape::ATOM_BYTES};
    if (threadIdx.x >= WARP)
        return;
    const bool is_there = HAS_ALL || p.shared.codes;
    announce_by_warp(arrived, is_there ? packed_block::bytes(p.shared) : 0);
    if (is_there)
        shared.copy(p.shared, block, arrived);
}

/* Bytes of run_expert_outer's shared memory for so many experts: blocks of weights, one or two stages of
 * them, and the inner values. */
template <typename Shape>
inline size_t outer_bytes(uint32_t atoms, uint32_t count, unsigned stages) {
    const size_t inner_bytes = EXPERT_COLUMNS + Shape::ATOM_GROUPS * sizeof(float2);
    return count * (stages * atoms * (size_t)Shape::ATOM_BYTES + whole_turns(atoms) * inner_bytes);
}

/* Grid: [shares of the blocks of 16 outputs, tokens]. A block of threads has every gridDim.x-th of them;
 * while it multiplies one the next one comes. HAS_ALL: there are a shared expert and a residual. */
template <typename Shape, bool HAS_ALL>
static __global__ void __launch_bounds__(EXPERT_THREADS, 2)
    run_expert_outer(GB_GRID_CONSTANT expert_outer p) {
    enum { MATRICES = MOST_CHOICES + 1, STAGES = 2 };
    GB_DYNAMIC_SHARED(uint8_t, memory);
    __shared__ copy_barrier arrived[STAGES];
    __shared__ float of_warps[MATRICES][EXPERT_WARPS][GEMV_BLOCK_ROWS], sums[MATRICES][GEMV_BLOCK_ROWS];
    __shared__ float weights[MATRICES];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, choices = p.from.choices;
    const uint32_t matrices = p.from.count, pitch = p.weight.atoms * Shape::ATOM_BYTES;
    const uint32_t stages = blockIdx.x + gridDim.x < p.weight.blocks ? 2 : 1;
    const size_t token = blockIdx.y;
    inner_atoms<Shape> inner;
    const atom_range mine(p.weight.atoms, warp);
    inner.first = mine.first;
    inner.count = mine.count;
    inner.most = atoms_of_warp(p.weight.atoms);
    inner.bytes = memory + stages * matrices * pitch + warp * matrices * inner.most * EXPERT_COLUMNS;
    inner.sums = reinterpret_cast<float2 *>(memory + stages * matrices * pitch +
                                            whole_turns(p.weight.atoms) * matrices * EXPERT_COLUMNS) +
                 warp * matrices * inner.most * Shape::ATOM_GROUPS;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++)
            begin_barrier(&arrived[s], EXPERT_WARPS + 1);
        finish_barriers();
    }
    __syncthreads();
    copy_shared<Shape, HAS_ALL>(p, blockIdx.x, memory, &arrived[0]);
    wait_alone();
    const int expert = warp < choices ? p.from.experts[token * choices + warp] : 0;
    copy_chosen<Shape>(p, expert, blockIdx.x, memory, &arrived[0]);
    if (threadIdx.x < matrices)
        weights[threadIdx.x] = p.from.weights[token * matrices + threadIdx.x];
    inner.create(p.from, token);
    uint32_t used = 0;
    for (uint32_t block = blockIdx.x; block < p.weight.blocks; block += gridDim.x, used++) {
        const uint32_t next = block + gridDim.x, stage = used % STAGES;
        const size_t y = token * p.outputs + block * GEMV_BLOCK_ROWS + threadIdx.x;
        const float residual =
            (HAS_ALL || p.residual) && threadIdx.x < GEMV_BLOCK_ROWS ? p.residual[y] : 0.0f;
        if (next < p.weight.blocks) {
            copy_shared<Shape, HAS_ALL>(p, next, memory + (1 - stage) * matrices * pitch,
                                        &arrived[1 - stage]);
            copy_chosen<Shape>(p, expert, next, memory + (1 - stage) * matrices * pitch, &arrived[1 - stage]);
        }
        wait_for_block_copies(&arrived[stage], used / STAGES % 2);
        if (next >= p.weight.blocks)
            let_next_begin();
#pragma unroll 3
        for (uint32_t e = 0; e < matrices; e++) {
            const packed_block of = {memory + (stage * matrices + e) * pitch};
            float of_rows[2] = {};
#pragma unroll 1
            for (uint32_t i = 0; i < inner.count; i++) { /* one or two */
                const uint32_t task = e * inner.most + i;
                const uint4 x =
                    *reinterpret_cast<const uint4 *>(inner.bytes + task * EXPERT_COLUMNS + lane % 4 * 16);
                float of_atom[2];
                of.template multiply<Shape>(inner.first + i, p.weight, x,
                                            inner.sums + task * Shape::ATOM_GROUPS, of_atom);
                of_rows[0] = i == 0 ? of_atom[0] : of_rows[0] + of_atom[0];
                of_rows[1] = i == 0 ? of_atom[1] : of_rows[1] + of_atom[1];
            }
            store_sums(of_warps[e][warp], of_rows);
        }
        __syncthreads();
        if (threadIdx.x < matrices * GEMV_BLOCK_ROWS)
            sums[threadIdx.x / GEMV_BLOCK_ROWS][threadIdx.x % GEMV_BLOCK_ROWS] = add_sums<Shape, 1>(
                of_warps[threadIdx.x / GEMV_BLOCK_ROWS], threadIdx.x % GEMV_BLOCK_ROWS, p.weight.atoms);
        __syncthreads();
        if (threadIdx.x < GEMV_BLOCK_ROWS)
            p.y[y] = join_experts<HAS_ALL>(p.from, &sums[0][threadIdx.x], GEMV_BLOCK_ROWS, weights,
                                           p.residual != nullptr, residual);
    }
}

} // namespace gb_cuda

#endif
