/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two launches of a decode step's experts share (expert_inner.cuh, expert_outer.cuh): matrices,
 * their blocks in shared memory, and sums. Matrices are packed, 4-bit codes in groups of 64 or 32, with 8-bit
 * activations. An atom is 64 columns, of one group or two. A block of threads has 16 rows of each matrix; of
 * the sum over k a warp has one, two or four neighbouring atoms, of wide rows four in each of two rounds.
 * Their groups are added in the order of gemv_rows.cuh, so that the bits are those of the ops one by one.
 */
#ifndef GUMBEL_BACKENDS_CUDA_MOE_EXPERT_BLOCKS_CUH
#define GUMBEL_BACKENDS_CUDA_MOE_EXPERT_BLOCKS_CUH

#include "backends/cuda/device/async_copy.cuh"
#include "backends/cuda/gemm/gemv_multiply.cuh"
#include "backends/cuda/moe/expert_values.cuh"

namespace gb_cuda {

enum {
    EXPERT_WARPS = 8, /* of a block */
    EXPERT_THREADS = EXPERT_WARPS * WARP,
    EXPERT_COLUMNS = 64,   /* of an atom */
    MOST_INNER_ATOMS = 4,  /* that a warp has of a row of gate and up in a round, */
    MOST_INNER_ROUNDS = 2, /* of which there are so many, */
    MOST_OUTER_ATOMS = 2   /* and of down */
};

/* What the kernels of few rows know of the format. */
template <int GROUP, bool IS_BF16>
struct expert_shape : gemv_shape<true, 4, GROUP, IS_BF16, true> {
    typedef gemv_shape<true, 4, GROUP, IS_BF16, true> base;
    static_assert((int)base::ATOM_COLUMNS == (int)EXPERT_COLUMNS, "one group or two");
    /* Of an atom of a packed block, with room for biases. */
    static constexpr uint32_t ATOM_BYTES = base::CODE_BYTES + 2 * base::SCALE_BYTES;
};

/* How many neighbouring atoms a warp has of so many, in a round: a power of two, for which all warps have
 * them. */
__host__ __device__ inline uint32_t atoms_of_warp(uint32_t atoms) {
    return atoms <= EXPERT_WARPS ? 1 : atoms <= 2 * EXPERT_WARPS ? 2 : 4;
}

/* So many atoms, and those that the last warp lacks. */
__host__ __device__ inline uint32_t whole_turns(uint32_t atoms) {
    const uint32_t most = atoms_of_warp(atoms);
    return (atoms + most - 1) & ~(most - 1);
}

/* What a warp has of a row's atoms in a turn, of which one round has EXPERT_WARPS; the last turns may have
 * less than others, or none. */
struct atom_range {
    uint32_t first, count;

    __device__ atom_range(uint32_t atoms, uint32_t turn) {
        const uint32_t most = atoms_of_warp(atoms), left = atoms > most * turn ? atoms - most * turn : 0;
        first = left > 0 ? most * turn : 0;
        count = left < most ? left : most;
    }
};

/* As many matrices as there are experts. */
struct packed_matrices {
    const uint8_t *codes, *scales, *biases; /* biases: NULL without */
    uint32_t code_bytes, scale_bytes;       /* of a block of 16 rows */
    uint32_t blocks;                        /* of one matrix */
    uint32_t atoms;                         /* of a row */
    float offset;                           /* what codes are above the format's */
    bool is_read_once;                      /* there is one token */
};

/* A block of 16 rows in shared memory: the atoms' codes, their scales, their biases. */
struct packed_block {
    uint8_t *at;

    /* A warp begins to copy it; the barrier's phase counts it. */
    __device__ void copy(const packed_matrices &m, size_t block, copy_barrier *barrier) const {
        const uint32_t plane = threadIdx.x % WARP;
        const uint8_t *from = plane == 0 ? m.codes : plane == 1 || !m.biases ? m.scales : m.biases;
        const uint32_t size = plane == 0 ? m.code_bytes : m.scale_bytes;
        uint8_t *to = at + (plane > 0 ? m.code_bytes : 0) + (plane > 1 ? m.scale_bytes : 0);
        copy_by_warp({to, from + block * size, size}, m.biases ? 3 : 2, barrier, m.is_read_once);
    }

    __device__ static uint32_t bytes(const packed_matrices &m) {
        return m.code_bytes + m.scale_bytes + (m.biases ? m.scale_bytes : 0);
    }

    /* Where the lane's codes of an atom are. */
    template <typename Shape>
    __device__ const uint8_t *codes(uint32_t atom) const {
        return at + atom * Shape::CODE_BYTES + threadIdx.x % WARP * 16;
    }

    /* A group's scales of the lane's rows r and r + 8 (r = lane / 4), and biases as they are for the codes.
     */
    template <typename Shape>
    __device__ void load_scales(uint32_t group, const packed_matrices &m, float scale[2],
                                float bias[2]) const {
        const uint8_t *from = at + m.code_bytes + group * Shape::GROUP_BYTES + threadIdx.x % WARP / 4 * 4;
        widen_halves<Shape::IS_BF16>(*reinterpret_cast<const uint32_t *>(from), scale);
        if (m.biases) {
            widen_halves<Shape::IS_BF16>(*reinterpret_cast<const uint32_t *>(from + m.scale_bytes), bias);
        } else {
            bias[0] = -m.offset * scale[0];
            bias[1] = -m.offset * scale[1];
        }
    }

    /* y = an atom of rows r and r + 8 times inputs x, whose groups' scales and sums are of_x. */
    template <typename Shape>
    __device__ void multiply(uint32_t atom, const packed_matrices &m, const uint4 &x, const float2 *of_x,
                             float y[2]) const {
        uint32_t w[1][4];
        load_codes<Shape>(codes<Shape>(atom), w);
#pragma unroll
        for (uint32_t g = 0; g < Shape::ATOM_GROUPS; g++) {
            byte_sums<Shape, true> sums;
            float scale[2], bias[2];
            load_scales<Shape>(atom * Shape::ATOM_GROUPS + g, m, scale, bias);
            sums.add(w, (int)g * Shape::GROUP_UNITS, [&](int) { return x; });
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const float value = value_of_bytes(scale[half], bias[half], of_x[g], sums.sum(2 * half));
                y[half] = g == 0 ? value : y[half] + value;
            }
        }
    }
};

/* Puts the sums of a warp's turn where all of a block's rows meet. */
__device__ inline void store_sums(float of_turn[GEMV_BLOCK_ROWS], const float y[2]) {
    const uint32_t lane = threadIdx.x % WARP;
    if (lane % 4 == 0) {
        of_turn[lane / 4] = y[0];
        of_turn[lane / 4 + 8] = y[1];
    }
}

/* Adds a row's parts in their order. */
template <typename Shape, uint32_t PARTS, typename SumOf>
__device__ inline float add_parts(uint32_t atoms, const SumOf &sum_of) {
    float total = sum_of(0);
#pragma unroll
    for (uint32_t i = 1; i < PARTS; i++)
        if (i * Shape::PART_ATOMS < atoms)
            total += sum_of(i);
    return total;
}

/* Adds a row's, of so many rounds: of a part by twos, then the parts. */
template <typename Shape, int ROUNDS>
__device__ inline float add_sums(const float (*sums)[GEMV_BLOCK_ROWS], uint32_t row, uint32_t atoms) {
    const auto of_turn = [&](uint32_t i) { return sums[i][row]; };
    const auto of_two = [&](uint32_t i) { return sums[2 * i][row] + sums[2 * i + 1][row]; };
    if constexpr (ROUNDS > 1) {
        constexpr uint32_t TURNS = ROUNDS * EXPERT_WARPS;
        if constexpr (Shape::PART_ATOMS == MOST_INNER_ATOMS)
            return add_parts<Shape, TURNS>(atoms, of_turn);
        else
            return add_parts<Shape, TURNS / 2>(atoms, of_two);
    } else {
        const uint32_t warps = Shape::PART_ATOMS / atoms_of_warp(atoms); /* of a part */
        if (Shape::ATOM_GROUPS > 1 && warps == 1)
            return add_parts<Shape, EXPERT_WARPS>(atoms, of_turn);
        const float twos[] = {of_two(0), of_two(1), of_two(2), of_two(3)};
        if (warps > 2) /* all are one part, or its halves are two */
            return (twos[0] + twos[1]) + (twos[2] + twos[3]);
        return add_parts<Shape, EXPERT_WARPS / 2>(atoms, [&](uint32_t i) { return twos[i]; });
    }
}

} // namespace gb_cuda

#endif
