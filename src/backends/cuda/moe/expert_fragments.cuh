/* SPDX-License-Identifier: Apache-2.0
 *
 * Fragments of 16 outputs of experts' matrices with exact sums (gemm/int8/weights.cuh), as a warp of a decode
 * step loads them: from memory to registers, because nothing has to be set up for that.
 */
#ifndef GUMBEL_BACKENDS_CUDA_MOE_EXPERT_FRAGMENTS_CUH
#define GUMBEL_BACKENDS_CUDA_MOE_EXPERT_FRAGMENTS_CUH

#include "backends/cuda/gemm/int8/row_operand.cuh"
#include "backends/cuda/moe/expert_values.cuh"

namespace gb_cuda {

/* What products of one input have in common. */
struct expert_columns {
    uint32_t blocks;   /* of 128 columns */
    uint32_t inputs;   /* columns of a row; zeros follow up to those of the blocks */
    unsigned rotation; /* 0: none */
    float factor;      /* of a row's scale */

    __host__ __device__ uint32_t columns() const {
        return blocks * GB_TILE_COLUMNS;
    }

    __device__ float scale(const row_divisor &by) const {
        return rotation > 0 ? by.scale * factor : by.scale;
    }
};

/* Of an expert's matrix, whose last tile zeros may fill. */
__device__ inline size_t first_row_of(const int8_matrix &m, size_t expert) {
    return expert * m.tiles_end * GB_TILE_ROWS;
}

/* Where a fragment's block 0 of columns is. */
template <int GROUP>
struct fragment_place {
    enum { GROUPS = GB_TILE_COLUMNS / GROUP, GROUP_BYTES = GB_TILE_ROWS * GROUPS };
    const uint8_t *codes, *groups;

    /* Of the 16 rows from `row` on. */
    __device__ fragment_place(const int8_matrix &m, size_t row, const expert_columns &of) {
        const size_t block = row / GB_TILE_ROWS * of.blocks;
        const uint32_t in_tile = (uint32_t)row % GB_TILE_ROWS / GB_FRAGMENT_ROWS;
        codes = m.codes + block * INT8_CODE_BYTES + in_tile * INT8_FRAGMENT_BYTES;
        groups = m.groups + block * GROUP_BYTES + in_tile * GROUPS * GB_FRAGMENT_ROWS;
    }
};

/* BLOCKS blocks of columns of a fragment, of which the lane has its part. */
template <int GROUP, int BLOCKS>
struct fragment_part {
    typedef fragment_place<GROUP> place;
    uint4 codes[BLOCKS][2];
    uint32_t groups[BLOCKS];

    /* Those from `first` on, `apart` from one another, as far as they are before `end`. */
    __device__ void load(const place &from, uint32_t first, uint32_t apart, uint32_t end) {
        const uint4 *of_lane = reinterpret_cast<const uint4 *>(from.codes) + threadIdx.x % WARP;
        const uint16_t *groups_from = groups_of_lane<GROUP>(from.groups);
#pragma unroll
        for (uint32_t b = 0; b < BLOCKS; b++) {
            const uint32_t block = first + b * apart;
            if (block >= end)
                break;
            const uint4 *at = of_lane + block * (INT8_CODE_BYTES / sizeof(uint4));
            codes[b][0] = __ldcg(at);
            codes[b][1] = __ldcg(at + WARP);
            groups[b] = groups_from[block * (place::GROUP_BYTES / sizeof(uint16_t))];
        }
    }

    /* Prefetches the same to the L2 cache. */
    __device__ static void prefetch(const place &from, uint32_t first, uint32_t apart, uint32_t end) {
        constexpr uint32_t LINES = INT8_FRAGMENT_BYTES / CACHE_LINE;
        static_assert(BLOCKS * LINES <= (uint32_t)WARP, "a line for each lane");
        const uint32_t lane = threadIdx.x % WARP, block = first + lane / LINES * apart,
                       of_groups = first + lane * apart;
        if (lane < BLOCKS * LINES && block < end)
            prefetch_line(from.codes + block * INT8_CODE_BYTES + lane % LINES * CACHE_LINE);
        if (lane < BLOCKS && of_groups < end)
            prefetch_line(from.groups + of_groups * place::GROUP_BYTES);
    }

    /* Adds block number b, which is number `block` of the row's. */
    __device__ void add(uint32_t b, uint32_t block, const row_operand &x, const uint2 inputs[INT8_UNITS],
                        int32_t sums[2]) const {
        int32_t of_units[4] = {};
        add_units(codes[b], inputs, of_units);
        scale_units(of_units, groups[b], x.sums[block * INT8_UNITS + threadIdx.x % 4], sums);
    }
};

/* How many blocks of threads share so many fragments, where `others` are at work beside them: as many as are
 * there at once, each with as many as the others. */
inline unsigned count_shares(unsigned fragments, size_t others, unsigned of_multiprocessor) {
    const size_t at_once = (size_t)of_multiprocessor * gb_cuda_find_facts()->multiprocessors / others;
    return blocks_for(fragments, blocks_for(fragments, at_once > 1 ? at_once : 1));
}

/* Puts the sums of a warp where all of a fragment's meet. */
__device__ inline void store_rows(int32_t of_rows[GB_FRAGMENT_ROWS], int32_t sums[2]) {
    const uint32_t lane = threadIdx.x % WARP;
    add_quads(sums);
    if (lane % 4 < 2)
        of_rows[lane % 4 * 8 + lane / 4] = lane % 4 == 0 ? sums[0] : sums[1];
}

} // namespace gb_cuda

#endif
