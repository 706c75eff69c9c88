/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of a quantized matrix with many rows of a prompt, on Hopper's tensor cores. A weight is
 *
 *     w = bfloat16(scale * q + bias),
 *
 * made in registers as the first operand; inputs, rounded to bfloat16, are the second one, in shared memory;
 * products are added in float32 in the order of k, whatever the tile. A block has 256 outputs of up to 128
 * rows: two warpgroups have 128 outputs each, and a warp of a third one copies what they need, some stages
 * ahead.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_PREFILL_PRODUCT_CUH
#define GUMBEL_RUN_CUDA_DEVICE_PREFILL_PRODUCT_CUH

#include "run/cuda/device/prepared.cuh"
#include "run/cuda/device/row_lists.cuh"
#include "run/cuda/device/wgmma.cuh"

namespace gb_cuda {

enum {
    FRAGMENT_ROWS = 16,   /* of a block of the weight's rows (gb_packing_fragments) */
    FRAGMENT_BYTES = 512, /* of the codes of a block and a pair of units */
    GROUP_BYTES = 2 * FRAGMENT_ROWS,
    STAGE_PAIRS = 2, /* pairs of units that are copied together */
    CONSUMERS = 2,   /* warpgroups that multiply */
    PREFILL_THREADS = (CONSUMERS + 1) * WARPGROUP,
    PREFILL_SHARED_BYTES = 224 * 1024,
};

/* A weight of 4-bit codes in the packing gb_packing_fragments. */
struct fragment_matrix {
    const uint8_t *codes;           /* [block][pair of units][FRAGMENT_BYTES] */
    const uint8_t *scales, *biases; /* [block][group][rows 0, 8, 1, 9 ..]; biases: NULL if there are none */
    uint32_t blocks;                /* of an expert */
    uint32_t pairs;                 /* of units of a row */
    uint32_t minus_center;          /* -128 - center as bfloat16, twice */
};

/* How a stage lies in shared memory: the rows of each pair of units; codes, scales and biases of each block.
 * GROUP_UNITS: units that share a scale. */
template <int ROW_TILES_, int COLUMNS_, int GROUP_UNITS_>
struct stage_shape {
    enum {
        ROW_TILES = ROW_TILES_, /* of 64 outputs, of a warpgroup */
        COLUMNS = COLUMNS_,     /* rows of inputs */
        FRAGMENTS = CONSUMERS * ROW_TILES * 4,
        OUTPUTS = FRAGMENTS * FRAGMENT_ROWS,
        GROUP_UNITS = GROUP_UNITS_,
        GROUPS = STAGE_PAIRS * 2 / GROUP_UNITS,
        INPUT_BYTES = COLUMNS * B_ROW_BYTES, /* of a pair of units */
        CODES_AT = STAGE_PAIRS * INPUT_BYTES,
        SCALES_AT = CODES_AT + FRAGMENTS * STAGE_PAIRS * FRAGMENT_BYTES,
        BIASES_AT = SCALES_AT + FRAGMENTS * GROUPS * GROUP_BYTES,
        BYTES = (BIASES_AT + FRAGMENTS * GROUPS * GROUP_BYTES + B_ALIGNMENT - 1) / B_ALIGNMENT * B_ALIGNMENT,
        MOST = (PREFILL_SHARED_BYTES - B_ALIGNMENT) / BYTES,
        COUNT = MOST < 8 ? MOST : 8,
    };
};
enum { MOST_STAGES = 8 };

/* What a block multiplies, and where its stages are. A stage is full when it has been copied, and empty when
 * all warps have read it. */
struct prefill_tile {
    fragment_matrix weight;
    prepared_rows x;
    size_t first_fragment; /* of the weight's blocks of rows */
    uint32_t fragments;    /* that are there, of Shape::FRAGMENTS */
    uint32_t first, end;   /* rows of x */
    uint8_t *stages;
    copy_barrier *full, *empty; /* [MOST_STAGES] */
};

/* ---- The warpgroup that copies ------------------------------------------------------------------------- */

__device__ inline uint32_t at_most(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Copies a plane's share of a stage, `bytes` of each fragment, which are `from_step` from one to the next in
 * the weight and to_step in the stage. */
__device__ inline void copy_plane(uint8_t *to, uint32_t to_step, const uint8_t *from, size_t from_step,
                                  uint32_t bytes, uint32_t fragments) {
    const uint32_t pieces = bytes / 16;
    for (uint32_t i = threadIdx.x; i < pieces * fragments; i += WARPGROUP) {
        const uint32_t fragment = i / pieces, at = i % pieces * 16;
        copy_16(to + fragment * to_step + at, from + fragment * from_step + at);
    }
}

template <typename Shape>
__device__ inline void copy_fragments(const prefill_tile &tile, uint32_t number, uint32_t pairs,
                                      uint8_t *to) {
    const size_t row_pairs = tile.weight.pairs, row_groups = row_pairs * 2 / Shape::GROUP_UNITS;
    const size_t pair = tile.first_fragment * row_pairs + number * STAGE_PAIRS;
    const size_t group = tile.first_fragment * row_groups + number * Shape::GROUPS;
    const uint32_t group_bytes = pairs * 2 / Shape::GROUP_UNITS * GROUP_BYTES;
    copy_plane(to + Shape::CODES_AT, STAGE_PAIRS * FRAGMENT_BYTES, tile.weight.codes + pair * FRAGMENT_BYTES,
               row_pairs * FRAGMENT_BYTES, pairs * FRAGMENT_BYTES, tile.fragments);
    copy_plane(to + Shape::SCALES_AT, Shape::GROUPS * GROUP_BYTES, tile.weight.scales + group * GROUP_BYTES,
               row_groups * GROUP_BYTES, group_bytes, tile.fragments);
    if (tile.weight.biases)
        copy_plane(to + Shape::BIASES_AT, Shape::GROUPS * GROUP_BYTES,
                   tile.weight.biases + group * GROUP_BYTES, row_groups * GROUP_BYTES, group_bytes,
                   tile.fragments);
}

template <typename Shape>
__device__ inline void copy_stage(const prefill_tile &tile, uint32_t number, uint8_t *to,
                                  copy_barrier *full) {
    const uint32_t first_pair = number * STAGE_PAIRS;
    const uint32_t pairs = at_most(tile.weight.pairs - first_pair, STAGE_PAIRS);
    const uint32_t rows = at_most((uint32_t)tile.x.pair_rows - tile.first, Shape::COLUMNS);
    if (threadIdx.x == 0) {
        arrive_expecting(full, pairs * rows * B_ROW_BYTES);
        for (uint32_t i = 0; i < pairs; i++)
            copy_bulk(to + i * Shape::INPUT_BYTES,
                      tile.x.values + ((first_pair + i) * tile.x.pair_rows + tile.first) * PAIR_WORDS,
                      rows * B_ROW_BYTES, full);
    }
    copy_fragments<Shape>(tile, number, pairs, to);
    arrive_when_copied(full);
}

template <typename Shape>
__device__ inline void copy_stages(const prefill_tile &tile) {
    const uint32_t count = (tile.weight.pairs + STAGE_PAIRS - 1) / STAGE_PAIRS;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t place = i % Shape::COUNT, round = i / Shape::COUNT;
        if (round > 0)
            wait_for_phase(&tile.empty[place], (round - 1) % 2);
        copy_stage<Shape>(tile, i, tile.stages + place * Shape::BYTES, &tile.full[place]);
    }
}

/* ---- Weights ------------------------------------------------------------------------------------------- */

/* Scales and biases of a lane's rows r and r + 8. bfloat16 ones are multiplied as such: a product and its sum
 * with the bias are rounded once. */
template <gb_dtype SCALE>
struct lane_affine;

template <>
struct lane_affine<GB_BF16> {
    uint32_t scale[2], bias[2]; /* twice in each */

    __device__ void load(uint32_t scales, uint32_t biases) {
        scale[0] = scales << 16 | (scales & 0xffffu);
        scale[1] = scales >> 16 | (scales & 0xffff0000u);
        bias[0] = biases << 16 | (biases & 0xffffu);
        bias[1] = biases >> 16 | (biases & 0xffff0000u);
    }
    __device__ uint32_t apply(uint32_t codes, int which) const {
        return multiply_add_bf16(scale[which], codes, bias[which]);
    }
};

template <>
struct lane_affine<GB_F16> {
    float scale[2], bias[2];

    __device__ void load(uint32_t scales, uint32_t biases) {
        scale[0] = gb_widen_half((uint16_t)scales, GB_F16);
        scale[1] = gb_widen_half((uint16_t)(scales >> 16), GB_F16);
        bias[0] = gb_widen_half((uint16_t)biases, GB_F16);
        bias[1] = gb_widen_half((uint16_t)(biases >> 16), GB_F16);
    }
    __device__ uint32_t apply(uint32_t codes, int which) const {
        return pack_bf16(fmaf(scale[which], low_bf16(codes), bias[which]),
                         fmaf(scale[which], high_bf16(codes), bias[which]));
    }
};

/* ---- The warpgroups that multiply ---------------------------------------------------------------------- */

/* A warpgroup's 128 outputs of Shape::COLUMNS rows. */
template <typename Shape, gb_dtype SCALE>
struct prefill_sums {
    float sums[Shape::ROW_TILES][Shape::COLUMNS / 2];
    uint32_t weights[2][Shape::ROW_TILES][2][4]; /* of a unit and the one before it: a of two products */
    uint4 codes[Shape::ROW_TILES];
    lane_affine<SCALE> affine[Shape::ROW_TILES];

    __device__ void clear() {
#pragma unroll
        for (int m = 0; m < Shape::ROW_TILES; m++)
#pragma unroll
            for (int i = 0; i < Shape::COLUMNS / 2; i++)
                sums[m][i] = 0;
    }

    /* The lane's codes of a pair of units; fragment: the first one's, of a stage. */
    __device__ void load_codes(const uint8_t *stage, unsigned pair, unsigned fragment) {
#pragma unroll
        for (int m = 0; m < Shape::ROW_TILES; m++)
            codes[m] = reinterpret_cast<const uint4 *>(stage + Shape::CODES_AT +
                                                       ((fragment + m * 4) * STAGE_PAIRS + pair) *
                                                           FRAGMENT_BYTES)[threadIdx.x % WARP];
    }

    __device__ void load_group(const uint8_t *stage, unsigned group, unsigned fragment, bool has_bias) {
#pragma unroll
        for (int m = 0; m < Shape::ROW_TILES; m++) {
            const uint8_t *at = stage + Shape::SCALES_AT +
                                ((fragment + m * 4) * Shape::GROUPS + group) * GROUP_BYTES +
                                threadIdx.x % WARP / 4 * 4;
            const uint8_t *bias_at = at + (Shape::BIASES_AT - Shape::SCALES_AT);
            affine[m].load(*reinterpret_cast<const uint32_t *>(at),
                           has_bias ? *reinterpret_cast<const uint32_t *>(bias_at) : 0);
        }
    }

    /* Of a unit; its words of codes are those of rows r and r + 8. */
    __device__ void make_weights(int unit, uint32_t minus_center) {
#pragma unroll
        for (int m = 0; m < Shape::ROW_TILES; m++) {
            const uint32_t words[2] = {unit ? codes[m].z : codes[m].x, unit ? codes[m].w : codes[m].y};
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const int pair = i / 2, which = i % 2;
                const uint32_t code = (words[which] >> (4 * pair) & 0x000f000fu) | 0x43004300u; /* 128 + q */
                uint32_t &weight = weights[unit][m][pair / 2][pair % 2 * 2 + which];
                weight = affine[m].apply(multiply_add_bf16(0x3f803f80u, code, minus_center), which);
                keep_in_place(weight);
            }
        }
    }

    __device__ void add_unit(int unit, b_operand b) {
        begin_products();
#pragma unroll
        for (int step = 0; step < 2; step++)
#pragma unroll
            for (int m = 0; m < Shape::ROW_TILES; m++)
                start_products<Shape::COLUMNS>(sums[m], weights[unit][m][step],
                                               b + (unsigned)(unit * 2 + step) * B_STEP);
        end_products();
    }
};

/* The lane's first fragment in a stage. */
template <typename Shape>
__device__ inline unsigned fragment_of_warp() {
    return (threadIdx.x / WARPGROUP - 1) * Shape::ROW_TILES * 4 + threadIdx.x % WARPGROUP / WARP;
}

/* Makes the weights of a unit while the tensor cores multiply the one before it. */
template <typename Shape, gb_dtype SCALE>
__device__ inline void multiply_stages(const prefill_tile &tile, prefill_sums<Shape, SCALE> &work) {
    const unsigned lane = threadIdx.x % WARP, fragment = fragment_of_warp<Shape>();
    const bool has_bias = tile.weight.biases != nullptr;
    uint32_t place = 0, parity = 0, last = 0;
    work.clear();
#pragma unroll 1
    for (uint32_t first = 0; first < tile.weight.pairs; first += STAGE_PAIRS) {
        const uint8_t *stage = tile.stages + place * Shape::BYTES;
        wait_for_phase(&tile.full[place], parity);
#pragma unroll
        for (uint32_t pair = 0; pair < STAGE_PAIRS; pair++) {
            if (first + pair >= tile.weight.pairs)
                break;
            const b_operand b = operand_b(stage + pair * Shape::INPUT_BYTES);
            work.load_codes(stage, pair, fragment);
#pragma unroll
            for (int unit = 0; unit < 2; unit++) {
                if ((pair * 2 + unit) % Shape::GROUP_UNITS == 0)
                    work.load_group(stage, (pair * 2 + unit) / Shape::GROUP_UNITS, fragment, has_bias);
                wait_for_products<1>();
                if (unit == 1 && pair == 0 && first > 0 && lane == 0) /* the stage before has been read */
                    arrive(&tile.empty[last]);
                work.make_weights(unit, tile.weight.minus_center);
                work.add_unit(unit, b);
            }
        }
        last = place;
        if (++place == Shape::COUNT) {
            place = 0;
            parity ^= 1;
        }
    }
    wait_for_products<0>();
}

template <typename Shape, gb_dtype SCALE>
__device__ inline void store_sums(const prefill_tile &tile, const row_lists &lists, size_t first_output,
                                  const prefill_sums<Shape, SCALE> &work, float *__restrict__ y) {
    const unsigned lane = threadIdx.x % WARP;
    const size_t lane_output = first_output + fragment_of_warp<Shape>() * FRAGMENT_ROWS + lane / 4;
#pragma unroll
    for (int j = 0; j < Shape::COLUMNS / 8; j++)
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
            const uint32_t entry = tile.first + j * 8 + lane % 4 * 2 + odd;
            if (entry >= tile.end)
                continue;
            float *row = y + listed_row(lists, (int32_t)entry) * lists.outputs;
#pragma unroll
            for (int m = 0; m < Shape::ROW_TILES; m++)
#pragma unroll
                for (int below = 0; below < 2; below++) {
                    const size_t output = lane_output + m * 64 + below * 8;
                    if (output < lists.outputs)
                        row[output] = work.sums[m][j * 4 + below * 2 + odd];
                }
        }
}

} // namespace gb_cuda

#endif
