/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GEMMs of rows in 8 bits with packed 4-bit matrices have in common on Hopper: items of work, a
 * thread that copies weights and rows into the stages of a pipeline, and how sums of splits of k become
 * results.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_PIPELINE_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_PIPELINE_CUH

#include "backends/cuda/device/copy_pipeline.cuh"
#include "backends/cuda/device/wgmma.cuh"
#include "backends/cuda/gemm/int8/weights.cuh"

namespace gb_cuda {

enum {
    INT8_MOST_STAGES = 10,
    INT8_MOST_TILE_ROWS = 256,
    INT8_SMALL_TILE_ROWS = 64,
};
constexpr uint32_t INT8_ROW_TILES_TOGETHER = 8; /* of the order of items */

/* Products of the same rows. An item of work is a tile of outputs, a tile of rows, and a split of k. */
struct int8_gemm {
    int8_matrix of[GB_CUDA_MOST_JOINED];
    int8_rows x;                       /* of experts in the order of the lists */
    row_lists lists;                   /* of experts, or all rows */
    int4 *partial;                     /* [splits, tiles, row tiles, fragments, columns / 8, WARP] */
    uint32_t *arrivals;                /* [tiles, row tiles, fragments] zeros, as it leaves them */
    uint32_t tiles, row_tiles, splits; /* tiles: of outputs, of all matrices or of an expert's */
    uint32_t blocks;                   /* of 128 columns */
    bool sends;                        /* results to other ranks */

    __host__ __device__ uint32_t items() const {
        return tiles * row_tiles * splits;
    }
};

/* An item: rows first .. first + count - 1, and blocks begin .. end - 1. INT8_ROW_TILES_TOGETHER tiles of
 * rows have all tiles of outputs before the next ones have any, so that blocks which run at a time share most
 * of what they read in the L2 cache. */
struct int8_item {
    uint32_t matrix;
    uint32_t output_tile, weight_tile; /* in y and among the matrix's: the same but for experts */
    uint32_t tile, row_tile, split, first, count, begin, end;

    __device__ int8_item(const int8_gemm &p, uint32_t number) {
        const uint32_t of_split = number % (p.tiles * p.row_tiles),
                       together = of_split / (INT8_ROW_TILES_TOGETHER * p.tiles) * INT8_ROW_TILES_TOGETHER,
                       left = p.row_tiles - together, in_group = of_split - together * p.tiles,
                       rows_of_group = left < INT8_ROW_TILES_TOGETHER ? left : INT8_ROW_TILES_TOGETHER;
        row_tile = together + in_group % rows_of_group;
        tile = in_group / rows_of_group;
        split = number / (p.tiles * p.row_tiles);
        begin = p.blocks * split / p.splits;
        end = p.blocks * (split + 1) / p.splits;
        matrix = 0;
        while (tile >= p.of[matrix].tiles_end)
            matrix++;
        output_tile = tile - (matrix ? p.of[matrix - 1].tiles_end : 0);
        const gb_cuda::row_tile rows = tile_of(p.lists, row_tile, INT8_MOST_TILE_ROWS);
        first = (uint32_t)rows.first;
        count = (uint32_t)(rows.end - rows.first);
        weight_tile = (uint32_t)rows.expert * p.tiles + output_tile;
        if (count == 0)
            end = begin;
    }

    /* A tile that a list lacks. */
    __device__ bool is_empty() const {
        return begin == end;
    }
};

/* How a stage of DEPTH blocks of columns lies in shared memory: codes, groups, rows of the input. TOGETHER:
 * blocks of threads that a multiprocessor has at a time. */
template <int COLUMNS_, int GROUP_, int TOGETHER = 1>
struct int8_stage {
    enum {
        COLUMNS = COLUMNS_, /* rows of the input */
        GROUP = GROUP_,
        DEPTH = COLUMNS <= INT8_SMALL_TILE_ROWS ? 2 : 1,
        GROUPS = GB_TILE_COLUMNS / GROUP,
        GROUP_BYTES = GB_TILE_ROWS * GROUPS,
        GROUPS_AT = DEPTH * INT8_CODE_BYTES,
        INPUTS_AT = (GROUPS_AT + DEPTH * GROUP_BYTES + B_ALIGNMENT - 1) / B_ALIGNMENT * B_ALIGNMENT,
        INPUT_BYTES = COLUMNS * INT8_BLOCK,
        BYTES = INPUTS_AT + DEPTH * INPUT_BYTES,
        ALL_BYTES = (TOGETHER > 1 ? 104 : 218) * 1024, /* tables and rows of results have the rest */
        MOST = (ALL_BYTES - B_ALIGNMENT) / BYTES,
        COUNT = MOST < INT8_MOST_STAGES ? MOST : INT8_MOST_STAGES,
    };
};

/* ---- The thread that copies ---------------------------------------------------------------------------- */

template <typename Stage>
struct int8_copier {
    const int8_gemm &p;
    uint8_t *stages;
    copy_pipeline pipeline;

    /* The weights of blocks from `begin` on, and the announcement of all that the stage gets. */
    __device__ void copy_weights(const int8_item &item, uint32_t begin, uint32_t blocks) const {
        uint8_t *stage = stages + pipeline.stage * Stage::BYTES;
        copy_barrier *full = &pipeline.full[pipeline.stage];
        const int8_matrix &weight = p.of[item.matrix];
        const size_t first = (size_t)item.weight_tile * p.blocks + begin;
        arrive_expecting(full, blocks * (INT8_CODE_BYTES + Stage::GROUP_BYTES + item.count * INT8_BLOCK));
        copy_bulk(stage, weight.codes + first * INT8_CODE_BYTES, blocks * INT8_CODE_BYTES, full);
        copy_bulk(stage + Stage::GROUPS_AT, weight.groups + first * Stage::GROUP_BYTES,
                  blocks * Stage::GROUP_BYTES, full);
    }

    /* Rows that the tile lacks are what was there before; their sums are not stored. */
    __device__ void copy_inputs(const int8_item &item, uint32_t begin, uint32_t blocks) const {
        uint8_t *to = stages + pipeline.stage * Stage::BYTES + Stage::INPUTS_AT;
        for (uint32_t i = 0; i < blocks; i++)
            copy_bulk(to + i * Stage::INPUT_BYTES,
                      p.x.codes + ((begin + i) * p.x.padded_rows + item.first) * INT8_BLOCK,
                      item.count * INT8_BLOCK, &pipeline.full[pipeline.stage]);
    }

    /* Does `work` for the stages of the block's items, from number `skipped` on and at most `most`. */
    template <typename Work>
    __device__ void for_stages(uint32_t skipped, uint32_t most, const Work &work) const {
        uint32_t number = 0;
        for (uint32_t i = blockIdx.x; i < p.items(); i += gridDim.x) {
            const int8_item item(p, i);
            for (uint32_t at = item.begin; at < item.end; at += Stage::DEPTH, number++) {
                if (number >= skipped + most)
                    return;
                const uint32_t left = item.end - at;
                if (number >= skipped)
                    work(item, at, left < Stage::DEPTH ? left : (uint32_t)Stage::DEPTH);
            }
        }
    }

    /* The first weights do not wait for the kernel before this one, unless it makes the lists. */
    __device__ void copy_all() {
        if (p.lists.tiles)
            wait_for_earlier();
        const copy_pipeline first = pipeline;
        for_stages(0, Stage::COUNT, [&](const int8_item &item, uint32_t at, uint32_t blocks) {
            copy_weights(item, at, blocks);
            pipeline.next();
        });
        pipeline = first;
        wait_for_earlier();
        for_stages(0, Stage::COUNT, [&](const int8_item &item, uint32_t at, uint32_t blocks) {
            copy_inputs(item, at, blocks);
            pipeline.next();
        });
        for_stages(Stage::COUNT, UINT32_MAX - Stage::COUNT,
                   [&](const int8_item &item, uint32_t at, uint32_t blocks) {
                       pipeline.wait_until_empty();
                       copy_weights(item, at, blocks);
                       copy_inputs(item, at, blocks);
                       pipeline.next();
                   });
    }
};

/* ---- Weights ------------------------------------------------------------------------------------------- */

/* A warp's weights of a fragment in a block of a stage. */
template <typename Stage>
__device__ void expand_block(const group_table &table, const uint8_t *stage, uint32_t block,
                             uint32_t fragment, uint32_t weights[INT8_UNITS][4]) {
    const uint32_t lane = threadIdx.x % WARP;
    const uint4 *codes =
        reinterpret_cast<const uint4 *>(stage + block * INT8_CODE_BYTES + fragment * INT8_FRAGMENT_BYTES) +
        lane;
    const uint16_t *pairs_of_groups =
        reinterpret_cast<const uint16_t *>(stage + Stage::GROUPS_AT + block * Stage::GROUP_BYTES +
                                           fragment * Stage::GROUPS * GB_FRAGMENT_ROWS) +
        lane / 4;
    const uint4 pairs[2] = {codes[0], codes[WARP]};
    expanded_group group = {};
#pragma unroll
    for (int unit = 0; unit < INT8_UNITS; unit++) {
        const uint4 pair = pairs[unit / 2];
        if (unit * UNIT % Stage::GROUP == 0)
            group.load(table, pairs_of_groups[unit * UNIT / Stage::GROUP * (GB_FRAGMENT_ROWS / 2)]);
        group.expand(unit % 2 ? pair.z : pair.x, unit % 2 ? pair.w : pair.y, weights[unit]);
    }
}

/* ---- Results ------------------------------------------------------------------------------------------- */

/* What a result needs of its row, and the same of two neighbours. */
struct result_row {
    int32_t raised; /* what INT8_RAISED_BY has added to the sums */
    float scale;
    uint32_t number; /* of y */
};
struct result_pair {
    int2 raised;
    float2 scales;
    uint2 numbers;
};

__device__ inline result_row load_result_row(const int8_gemm &p, uint32_t entry) {
    return {INT8_RAISED_BY * p.x.sums[entry], p.x.scales[entry],
            (uint32_t)listed_row(p.lists, (int32_t)entry)};
}

/* A warp's sums of a fragment, as wgmma.cuh has them. */
template <typename Stage>
struct int8_sums {
    const int8_gemm &p;
    uint32_t lane, fragment;
    int32_t sums[Stage::COLUMNS / 2];

    __device__ int8_sums(const int8_gemm &product, uint32_t of_fragment)
        : p(product), lane(threadIdx.x % WARP), fragment(of_fragment) {}

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < Stage::COLUMNS / 2; i++)
            sums[i] = 0;
    }

    __device__ int4 *partial_sums(const int8_item &item, uint32_t split) const {
        const size_t place = ((size_t)split * p.tiles + item.tile) * p.row_tiles + item.row_tile;
        return p.partial + (place * INT8_FRAGMENTS + fragment) * (Stage::COLUMNS / 8) * WARP + lane;
    }

    /* Adds the other splits' sums in the warp that comes last; false in the others. */
    __device__ bool add_splits(const int8_item &item) {
        int4 *mine = partial_sums(item, item.split);
#pragma unroll
        for (int i = 0; i < Stage::COLUMNS / 8; i++)
            mine[i * WARP] = int4{sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
        __threadfence();
        __syncwarp();
        uint32_t before = 0;
        uint32_t *arrivals =
            &p.arrivals[(item.tile * p.row_tiles + item.row_tile) * INT8_FRAGMENTS + fragment];
        if (lane == 0)
            before = atomicAdd(arrivals, 1u);
        if (__shfl_sync(0xffffffffu, before, 0) != p.splits - 1)
            return false;
        __threadfence();
        if (lane == 0)
            *arrivals = 0;
        for (uint32_t split = 0; split < p.splits; split++) {
            if (split == item.split)
                continue;
            const int4 *other = partial_sums(item, split);
#pragma unroll
            for (int i = 0; i < Stage::COLUMNS / 8; i++) {
                const int4 v = __ldcg(other + i * WARP);
                sums[4 * i] += v.x;
                sums[4 * i + 1] += v.y;
                sums[4 * i + 2] += v.z;
                sums[4 * i + 3] += v.w;
            }
        }
        return true;
    }

    /* A row's two results of a lane. */
    __device__ void store_row(const int8_matrix &weight, uint32_t output, const int32_t of[4], uint32_t odd,
                              const result_row &row, const float scales[2]) const {
        float *to = weight.y + (size_t)row.number * weight.stride + output;
#pragma unroll
        for (int below = 0; below < 2; below++)
            if (output + below * 8 < weight.outputs)
                to[below * 8] = int8_result(of[below * 2 + odd] - row.raised, row.scale, scales[below]);
    }

    template <typename Rows>
    __device__ void store(const int8_item &item, const Rows &rows) const {
        const int8_matrix &weight = p.of[item.matrix];
        const uint32_t in_tile = fragment * GB_FRAGMENT_ROWS + lane / 4;
        const uint32_t output = item.output_tile * GB_TILE_ROWS + in_tile;
        const uint16_t *row_scales = weight.row_scales + (size_t)item.weight_tile * GB_TILE_ROWS + in_tile;
        const float scales[2] = {gb_widen_half(row_scales[0], GB_F16), gb_widen_half(row_scales[8], GB_F16)};
#pragma unroll
        for (int j = 0; j < Stage::COLUMNS / 8; j++) {
            const uint32_t column = j * 8 + lane % 4 * 2;
            const result_pair pair = rows.pair(column);
            if (column < item.count)
                store_row(weight, output, sums + j * 4, 0, {pair.raised.x, pair.scales.x, pair.numbers.x},
                          scales);
            if (column + 1 < item.count)
                store_row(weight, output, sums + j * 4, 1, {pair.raised.y, pair.scales.y, pair.numbers.y},
                          scales);
        }
    }

    /* Stores the item's results, in the warp that has the last of its splits; false in others. */
    template <typename Rows>
    __device__ bool finish(const int8_item &item, const Rows &rows) {
        const bool is_last = p.splits == 1 || add_splits(item);
        if (is_last)
            store(item, rows);
        return is_last;
    }
};

} // namespace gb_cuda

#endif
