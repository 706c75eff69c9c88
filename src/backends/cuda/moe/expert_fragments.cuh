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
    unsigned rotation; /* 0: none */
    float factor;      /* of a row's scale */

    __host__ __device__ uint32_t columns() const {
        return blocks * GB_TILE_COLUMNS;
    }

    __device__ float scale(const row_divisor &by) const {
        return rotation > 0 ? by.scale * factor : by.scale;
    }
};

/* BLOCKS blocks of columns, `apart` from one another, of which the lane has its part. */
template <int GROUP, int BLOCKS>
struct fragment_part {
    uint4 codes[BLOCKS][2];
    uint32_t groups[BLOCKS];
    const uint8_t *all_codes, *all_groups; /* of block 0 */

    /* The fragment of 16 rows from `row` on. */
    __device__ void find(const int8_matrix &m, size_t row, const expert_columns &of) {
        constexpr uint32_t GROUPS = GB_TILE_COLUMNS / GROUP;
        const size_t block = row / GB_TILE_ROWS * of.blocks;
        const uint32_t in_tile = (uint32_t)row % GB_TILE_ROWS / GB_FRAGMENT_ROWS;
        all_codes = m.codes + block * INT8_CODE_BYTES + in_tile * INT8_FRAGMENT_BYTES +
                    threadIdx.x % WARP * sizeof(uint4);
        all_groups = reinterpret_cast<const uint8_t *>(groups_of_lane<GROUP>(
            m.groups + block * GB_TILE_ROWS * GROUPS + in_tile * GROUPS * GB_FRAGMENT_ROWS));
    }

    __device__ void load(uint32_t first, uint32_t apart, uint32_t end) {
        constexpr uint32_t GROUP_BYTES = GB_TILE_ROWS * GB_TILE_COLUMNS / GROUP;
#pragma unroll
        for (uint32_t b = 0; b < BLOCKS; b++) {
            const uint32_t block = first + b * apart;
            if (block >= end)
                break;
            const uint4 *from = reinterpret_cast<const uint4 *>(all_codes + block * INT8_CODE_BYTES);
            codes[b][0] = __ldcg(from);
            codes[b][1] = __ldcg(from + WARP);
            groups[b] = *reinterpret_cast<const uint16_t *>(all_groups + block * GROUP_BYTES);
        }
    }

    /* Adds block number b, which is number `block` of the row's. */
    __device__ void add(uint32_t b, uint32_t block, const row_operand &x, const uint2 inputs[INT8_UNITS],
                        int32_t sums[2]) const {
        int32_t of_units[4] = {};
        add_units(codes[b], inputs, of_units);
        scale_units(of_units, groups[b], x.sums[block * INT8_UNITS + threadIdx.x % 4], sums);
    }
};

/* Puts the sums of a warp where all of a fragment's meet. */
__device__ inline void store_rows(int32_t of_rows[GB_FRAGMENT_ROWS], int32_t sums[2]) {
    const uint32_t lane = threadIdx.x % WARP;
    add_quads(sums);
    if (lane % 4 < 2)
        of_rows[lane % 4 * 8 + lane / 4] = lane % 4 == 0 ? sums[0] : sums[1];
}

} // namespace gb_cuda

#endif
