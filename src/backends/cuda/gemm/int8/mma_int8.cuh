/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of rows in 8 bits (rows.cuh) with packed matrices by a warp's tensor-core instruction (mma): 4-bit
 * ones (weights.cuh), for chosen experts, and for all rows on devices before Hopper, and those of 8 bits with
 * a scale each row (gb_packing_fragments). Codes of 8 bits are above their integers by 128, too. A warp has
 * 16 outputs of up to 8 * TILES rows and a share of k, and adds its sums to those of the warps with the other
 * shares. All reads go to memory or the caches, so that nothing has to be set up before the first one.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_MMA_INT8_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_MMA_INT8_CUH

#include "backends/cuda/gemm/int8/weights.cuh"

namespace gb_cuda {

enum { MMA_INT8_WARPS = 8, MMA_INT8_ROWS = 8 /* of a tensor-core instruction */ };

/* Grid: [groups of fragments, tiles of rows]. */
struct mma_int8 {
    int8_matrix of[GB_CUDA_MOST_JOINED];
    int8_rows x; /* by lane */
    row_lists lists;
    unsigned tile_rows; /* of a tile of the lists: at most 8 * TILES */
    uint32_t tiles;     /* of 128 outputs, of all matrices; of one expert's */
    uint32_t blocks;    /* of 128 columns */
    uint32_t shares;    /* of k: 1, 2, 4 or 8 warps have a fragment */
    uint32_t units;     /* of 32 columns of a row; 8-bit codes have none beyond */
    gb_dtype scale;     /* of rows */
};

enum { OF_BYTES = 0 /* the GROUP of 8-bit codes */ };

/* What a warp multiplies a block of columns with: codes, groups, and the first 8 rows of the input. */
template <int GROUP>
struct mma_int8_block {
    enum { GROUPS = GB_TILE_COLUMNS / GROUP };
    uint4 codes[2], inputs[2];
    uint16_t groups[GROUPS];
};

template <>
struct mma_int8_block<OF_BYTES> {
    enum { GROUPS = 0 };
    uint4 codes[INT8_UNITS], inputs[2];
};

template <int TILES, int GROUP>
struct mma_int8_warp {
    typedef mma_int8_block<GROUP> block_data;
    enum { GROUPS = block_data::GROUPS, GROUP_BYTES = GB_TILE_ROWS * GROUPS };

    const mma_int8 &p;
    const group_table &table;
    const int8_matrix *matrix;
    row_tile rows;
    uint32_t lane, output;         /* of the fragment the first, in y and */
    size_t weight_row;             /* in the matrix */
    const uint8_t *codes, *groups; /* the lane's of block 0 */
    uint32_t inputs[TILES];        /* where the lane's row of 8 is in a block */
    int32_t sums[TILES][4];

    __device__ mma_int8_warp(const mma_int8 &product, const group_table &groups_of, const row_tile &of,
                             uint32_t fragment)
        : p(product), table(groups_of), rows(of), lane(threadIdx.x % WARP), sums() {
        const uint32_t tile = fragment / INT8_FRAGMENTS, in_tile = fragment % INT8_FRAGMENTS;
        matrix = p.of;
        while (tile >= matrix->tiles_end)
            matrix++;
        const uint32_t first = matrix == p.of ? 0 : matrix[-1].tiles_end;
        output = (tile - first) * GB_TILE_ROWS + in_tile * GB_FRAGMENT_ROWS;
        if constexpr (GROUP == OF_BYTES) {
            weight_row = (size_t)rows.expert * matrix->outputs + output;
            codes = matrix->codes + weight_row * p.units * UNIT + lane * sizeof(uint4);
            return;
        }
        weight_row = (size_t)rows.expert * p.tiles * GB_TILE_ROWS + output;
        const size_t block = weight_row / GB_TILE_ROWS * p.blocks;
        codes =
            matrix->codes + block * INT8_CODE_BYTES + in_tile * INT8_FRAGMENT_BYTES + lane * sizeof(uint4);
        groups = matrix->groups + block * GROUP_BYTES + in_tile * GROUPS * GB_FRAGMENT_ROWS +
                 lane / 4 * sizeof(uint16_t);
    }

    /* Zeros fill tiles; of 8-bit codes there are none where a tile has no outputs. */
    __device__ bool is_there() const {
        return GROUP != OF_BYTES || output < matrix->outputs;
    }

    /* Rows past the last are those of the first; their sums are not stored. */
    __device__ void find_inputs() {
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            int32_t entry = rows.first + tile * MMA_INT8_ROWS + (int32_t)lane / 4;
            if (entry >= rows.end)
                entry = rows.first;
            const size_t row = listed_row(p.lists, entry) / p.lists.x_reuse;
            inputs[tile] = (uint32_t)row * INT8_BLOCK + lane_half(row, lane % 4, 0);
        }
    }

    __device__ void load_bytes(uint32_t block, block_data &to) const {
        const uint4 *from = reinterpret_cast<const uint4 *>(codes) + block * INT8_UNITS * WARP;
#pragma unroll
        for (uint32_t u = 0; u < INT8_UNITS; u++)
            to.codes[u] =
                is_there() && block * INT8_UNITS + u < p.units ? __ldcg(from + u * WARP) : uint4{0, 0, 0, 0};
    }

    __device__ void load_tile(uint32_t block, block_data &to) const {
        const uint4 *from = reinterpret_cast<const uint4 *>(codes + block * INT8_CODE_BYTES);
        to.codes[0] = __ldcg(from);
        to.codes[1] = __ldcg(from + WARP);
        const uint16_t *pairs = reinterpret_cast<const uint16_t *>(groups + block * GROUP_BYTES);
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            to.groups[g] = pairs[g * (GB_FRAGMENT_ROWS / 2)];
    }

    __device__ void load_weights(uint32_t block, block_data &to) const {
        if constexpr (GROUP == OF_BYTES)
            load_bytes(block, to);
        else
            load_tile(block, to);
    }

    __device__ void load_inputs(uint32_t block, int tile, uint4 to[2]) const {
        const uint8_t *rows_of_block = p.x.codes + block * p.x.padded_rows * INT8_BLOCK;
        to[0] = *reinterpret_cast<const uint4 *>(rows_of_block + inputs[tile]);
        to[1] = *reinterpret_cast<const uint4 *>(rows_of_block + (inputs[tile] ^ sizeof(uint4)));
    }

    __device__ static void expand_bytes(const block_data &from, uint32_t a[INT8_UNITS][4]) {
#pragma unroll
        for (int unit = 0; unit < INT8_UNITS; unit++) {
            const uint4 &rows = from.codes[unit];
            a[unit][0] = even_bytes(rows.x, rows.y);
            a[unit][1] = even_bytes(rows.z, rows.w);
            a[unit][2] = odd_bytes(rows.x, rows.y);
            a[unit][3] = odd_bytes(rows.z, rows.w);
        }
    }

    __device__ void expand_groups(const block_data &from, uint32_t a[INT8_UNITS][4]) const {
        expanded_group group = {};
#pragma unroll
        for (int unit = 0; unit < INT8_UNITS; unit++) {
            const uint4 pair = from.codes[unit / 2];
            if (unit * UNIT % GROUP == 0)
                group.load(table, from.groups[unit * UNIT / GROUP]);
            group.expand(unit % 2 ? pair.z : pair.x, unit % 2 ? pair.w : pair.y, a[unit]);
        }
    }

    __device__ void add_block(uint32_t block, const block_data &from) {
        uint32_t a[INT8_UNITS][4];
        if constexpr (GROUP == OF_BYTES)
            expand_bytes(from, a);
        else
            expand_groups(from, a);
        uint4 b[2] = {from.inputs[0], from.inputs[1]};
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            if (tile > 0 && rows.first + tile * MMA_INT8_ROWS >= rows.end)
                break;
            uint4 next[2] = {};
            if (tile + 1 < TILES)
                load_inputs(block, tile + 1, next);
            multiply_add_bytes(sums[tile], a[0], b[0].x, b[0].y, sums[tile]);
            multiply_add_bytes(sums[tile], a[1], b[0].z, b[0].w, sums[tile]);
            multiply_add_bytes(sums[tile], a[2], b[1].x, b[1].y, sums[tile]);
            multiply_add_bytes(sums[tile], a[3], b[1].z, b[1].w, sums[tile]);
            b[0] = next[0];
            b[1] = next[1];
        }
    }

    /* Blocks share, share + shares ..; the weights of the first one are there. */
    __device__ void add_share(uint32_t share, block_data &next) {
        if (share < p.blocks)
            load_inputs(share, 0, next.inputs);
        for (uint32_t block = share; block < p.blocks; block += p.shares) {
            const block_data current = next;
            if (block + p.shares < p.blocks) {
                load_weights(block + p.shares, next);
                load_inputs(block + p.shares, 0, next.inputs);
            }
            add_block(block, current);
        }
    }

    /* Of 8-bit codes those of rows r and r + 8 lie side by side. */
    __device__ float row_scale(uint32_t below) const {
        const uint32_t at = GROUP == OF_BYTES ? lane / 4 * 2 + below : lane / 4 + below * 8;
        return gb_widen_half(matrix->row_scales[weight_row + at], p.scale);
    }

    __device__ void store() const {
        if (!is_there())
            return;
        const float scales[2] = {row_scale(0), row_scale(1)};
#pragma unroll
        for (int i = 0; i < TILES * 2; i++) {
            const int32_t entry = rows.first + i / 2 * MMA_INT8_ROWS + (int32_t)(lane % 4 * 2) + i % 2;
            if (entry >= rows.end)
                continue;
            const size_t row = listed_row(p.lists, entry), of_x = row / p.lists.x_reuse;
            const int32_t raised = INT8_RAISED_BY * p.x.sums[of_x];
            float *to = matrix->y + row * matrix->outputs + output + lane / 4;
#pragma unroll
            for (int below = 0; below < 2; below++)
                if (output + lane / 4 + below * 8 < matrix->outputs)
                    to[below * 8] =
                        int8_result(sums[i / 2][below * 2 + i % 2] - raised, p.x.scales[of_x], scales[below]);
        }
    }
};

/* The sums of a fragment's warps, in the first of them. partial: [warps][TILES * 4][WARP]. */
template <int TILES>
__device__ void add_shares(int32_t sums[TILES][4], uint32_t shares, int32_t (*partial)[TILES * 4][WARP]) {
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
#pragma unroll
    for (int i = 0; i < TILES * 4; i++)
        partial[warp][i][lane] = sums[i / 4][i % 4];
    __syncthreads();
    if (warp % shares != 0)
        return;
    for (uint32_t other = warp + 1; other < warp + shares; other++)
#pragma unroll
        for (int i = 0; i < TILES * 4; i++)
            sums[i / 4][i % 4] += partial[other][i][lane];
}

} // namespace gb_cuda

#endif
