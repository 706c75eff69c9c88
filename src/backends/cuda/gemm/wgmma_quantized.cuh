/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of prefill with a matrix of 4 or 8 bits on Hopper (wgmma). A weight,
 *
 *     w = bfloat16(scale * q + bias),
 *
 * is dequantized in registers as the first operand; activations in bfloat16 are the second one, in shared
 * memory. Sums are float32 in the order of k, whatever the tile. A block has 128 outputs of up to 256 rows.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_WGMMA_QUANTIZED_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_WGMMA_QUANTIZED_CUH

#include "backends/cuda/gemm/wgmma_tile.cuh"

namespace gb_cuda {

enum {
    GROUP_BYTES = 2 * FRAGMENT_ROWS,
    STAGE_PAIRS = 2, /* pairs of units that are copied together */
    TILE_FRAGMENTS = CONSUMED_OUTPUTS / FRAGMENT_ROWS,
};

/* A weight in the packing gb_packing_fragments. */
struct fragment_matrix {
    const uint8_t *codes;           /* [block][pair of units][128 * bits] */
    const uint8_t *scales, *biases; /* [block][group][rows 0, 8, 1, 9 ..]; biases: NULL if there are none */
    uint32_t blocks;                /* of an expert */
    uint32_t pairs;                 /* of units of a row */
    uint32_t minus_center;          /* what code_pairs adds to codes */
};

/* How a stage lies in shared memory: the rows of each pair of units; codes, scales and biases of each block.
 * GROUP_UNITS: units that share a scale. */
template <int COLUMNS_, int GROUP_UNITS_, int BITS_>
struct stage_shape {
    enum {
        COLUMNS = COLUMNS_, /* rows of inputs */
        GROUP_UNITS = GROUP_UNITS_,
        BITS = BITS_,                 /* of a code */
        FRAGMENT_BYTES = 128 * BITS_, /* of the codes of a block of rows and a pair of units */
        PAIRS = STAGE_PAIRS,
        TERMS = 1, /* of an input */
        GROUPS = STAGE_PAIRS * 2 / GROUP_UNITS,
        INPUT_BYTES = COLUMNS * B_ROW_BYTES, /* of a pair of units */
        CODES_AT = STAGE_PAIRS * INPUT_BYTES,
        SCALES_AT = CODES_AT + TILE_FRAGMENTS * STAGE_PAIRS * FRAGMENT_BYTES,
        BIASES_AT = SCALES_AT + TILE_FRAGMENTS * GROUPS * GROUP_BYTES,
        BYTES =
            (BIASES_AT + TILE_FRAGMENTS * GROUPS * GROUP_BYTES + B_ALIGNMENT - 1) / B_ALIGNMENT * B_ALIGNMENT,
        MOST = (WGMMA_SHARED_BYTES - B_ALIGNMENT) / BYTES,
        COUNT = MOST < MOST_STAGES ? MOST : MOST_STAGES,
    };
};

/* What a block multiplies. */
struct fragment_tile : wgmma_tile {
    fragment_matrix weight;
    size_t first_fragment; /* of the weight's blocks of rows */
    uint32_t fragments;    /* that are there, of TILE_FRAGMENTS */
};

/* ---- The warpgroup that copies ------------------------------------------------------------------------- */

/* What a thread copies of the fragments in each stage, 16 bytes at a time: of the codes a piece of every
 * FRAGMENT_STEP-th fragment; of scales and biases, which follow one another in a stage, every 128th piece. */
template <typename Shape>
struct fragment_copier {
    enum {
        FRAGMENT_BYTES = Shape::FRAGMENT_BYTES,
        FRAGMENT_PIECES = STAGE_PAIRS * FRAGMENT_BYTES / 16,
        CODE_COPIES = TILE_FRAGMENTS * FRAGMENT_PIECES / WARPGROUP,
        FRAGMENT_STEP = WARPGROUP / FRAGMENT_PIECES,
        GROUP_PIECES = Shape::GROUPS * GROUP_BYTES / 16, /* of a fragment */
        PLANE_PIECES = TILE_FRAGMENTS * GROUP_PIECES,
        GROUP_COPIES = (2 * PLANE_PIECES + WARPGROUP - 1) / WARPGROUP,
    };
    const uint8_t *codes, *groups[GROUP_COPIES];
    size_t code_step;
    uint32_t code_copies;
    bool has_group[GROUP_COPIES];

    __device__ void begin(const fragment_tile &tile) {
        const uint32_t first = threadIdx.x / FRAGMENT_PIECES;
        const size_t row_bytes = (size_t)tile.weight.pairs * FRAGMENT_BYTES;
        codes = tile.weight.codes + (tile.first_fragment + first) * row_bytes +
                threadIdx.x % FRAGMENT_PIECES * 16;
        code_step = row_bytes * FRAGMENT_STEP;
        code_copies =
            first < tile.fragments ? (tile.fragments - first + FRAGMENT_STEP - 1) / FRAGMENT_STEP : 0;
        const size_t row_groups = (size_t)tile.weight.pairs * 2 / Shape::GROUP_UNITS;
#pragma unroll
        for (int i = 0; i < GROUP_COPIES; i++) {
            const uint32_t piece = threadIdx.x + i * WARPGROUP, of_plane = piece % PLANE_PIECES;
            const uint32_t fragment = of_plane / GROUP_PIECES;
            const uint8_t *plane = piece < PLANE_PIECES ? tile.weight.scales : tile.weight.biases;
            has_group[i] = piece < 2 * PLANE_PIECES && plane && fragment < tile.fragments;
            groups[i] = plane + (tile.first_fragment + fragment) * row_groups * GROUP_BYTES +
                        of_plane % GROUP_PIECES * 16;
        }
    }

    /* The next stage, which has that many pairs of units. */
    __device__ void copy(uint8_t *to, uint32_t pairs) {
        uint8_t *piece = to + threadIdx.x * 16;
        if (threadIdx.x % FRAGMENT_PIECES < pairs * (FRAGMENT_BYTES / 16)) {
#pragma unroll
            for (uint32_t i = 0; i < CODE_COPIES; i++)
                if (i < code_copies)
                    copy_16(piece + Shape::CODES_AT + i * WARPGROUP * 16, codes + i * code_step);
        }
#pragma unroll
        for (int i = 0; i < GROUP_COPIES; i++) {
            const uint32_t in_fragment = (threadIdx.x + i * WARPGROUP) % GROUP_PIECES;
            if (has_group[i] && in_fragment < pairs * GROUP_PIECES / STAGE_PAIRS)
                copy_16(piece + Shape::SCALES_AT + i * WARPGROUP * 16, groups[i]);
            groups[i] += Shape::GROUPS * GROUP_BYTES;
        }
        codes += STAGE_PAIRS * FRAGMENT_BYTES;
    }
};

/* ---- Weights ------------------------------------------------------------------------------------------- */

/* The lane's codes of a pair of units, less their center, as bfloat16: those of columns i and i + 4 of its
 * eight, of rows r and r + 8. */
template <int BITS>
struct code_pairs;

template <>
struct code_pairs<4> {
    uint4 words; /* of both rows of the first unit, then of the second */

    /* bfloat16 holds 128 + q in its low bits; of that minus_center has -128 - center, twice. */
    static uint32_t minus_center(uint32_t center) {
        return (0xc300u + center) << 16 | (0xc300u + center);
    }
    __device__ void load(const uint8_t *fragment) {
        words = reinterpret_cast<const uint4 *>(fragment)[threadIdx.x % WARP];
    }
    __device__ uint32_t find(int unit, int which, int i, uint32_t minus_center) const {
        const uint32_t word = unit ? (which ? words.w : words.z) : which ? words.y : words.x;
        const uint32_t code = mask_and_set<0x000f000fu, 0x43004300u>(word >> (4 * i));
        return multiply_add_bf16(0x3f803f80u, code, minus_center);
    }
};

template <>
struct code_pairs<8> {
    uint4 units[2]; /* two words of each row */

    /* float32 holds 2^23 + q in its low bits; minus_center is -2^23 - center. */
    static uint32_t minus_center(uint32_t center) {
        return 0xcb000000u + center;
    }
    __device__ void load(const uint8_t *fragment) {
        const uint4 *from = reinterpret_cast<const uint4 *>(fragment) + threadIdx.x % WARP;
        units[0] = from[0];
        units[1] = from[WARP];
    }
    __device__ uint32_t find(int unit, int which, int i, uint32_t minus_center) const {
        const uint4 &of = units[unit];
        const float less = gb_float_from_bits(minus_center);
        const uint32_t select = 0x7650u + (uint32_t)i; /* byte i, in the low bits of 2^23 */
        const float low = gb_float_from_bits(select_bytes(which ? of.z : of.x, 0x4b000000u, select)) + less,
                    high = gb_float_from_bits(select_bytes(which ? of.w : of.y, 0x4b000000u, select)) + less;
        return pack_bf16(low, high);
    }
};

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
        scale[0] = low_half(scales);
        scale[1] = high_half(scales);
        bias[0] = low_half(biases);
        bias[1] = high_half(biases);
    }
    __device__ uint32_t apply(uint32_t codes, int which) const {
        return pack_bf16(fmaf(scale[which], low_bf16(codes), bias[which]),
                         fmaf(scale[which], high_bf16(codes), bias[which]));
    }
};

/* ---- The warpgroups that multiply ---------------------------------------------------------------------- */

/* A warpgroup's 64 outputs of Shape::COLUMNS rows. */
template <typename Shape, gb_dtype SCALE>
struct wgmma_sums {
    float sums[Shape::COLUMNS / 2];
    uint32_t weights[2][2][4]; /* of a unit and the one before it: a of two products */
    code_pairs<Shape::BITS> codes;
    lane_affine<SCALE> affine;

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < Shape::COLUMNS / 2; i++)
            sums[i] = 0;
    }

    /* The lane's codes of a pair of units; fragment: the warp's, of a stage. */
    __device__ void load_codes(const uint8_t *stage, unsigned pair, unsigned fragment) {
        codes.load(stage + Shape::CODES_AT + (fragment * STAGE_PAIRS + pair) * Shape::FRAGMENT_BYTES);
    }

    __device__ void load_group(const uint8_t *stage, unsigned group, unsigned fragment, bool has_bias) {
        const unsigned row = threadIdx.x % WARP / 4, at = (fragment * Shape::GROUPS + group) * GROUP_BYTES;
        const uint8_t *scales = stage + Shape::SCALES_AT + at, *biases = stage + Shape::BIASES_AT + at;
        affine.load(reinterpret_cast<const uint32_t *>(scales)[row],
                    has_bias ? reinterpret_cast<const uint32_t *>(biases)[row] : 0);
    }

    /* Of a unit. */
    __device__ void make_weights(int unit, uint32_t minus_center) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int pair = i / 2, which = i % 2;
            uint32_t &weight = weights[unit][pair / 2][pair % 2 * 2 + which];
            weight = affine.apply(codes.find(unit, which, pair, minus_center), which);
            keep_in_place(weight);
        }
    }

    __device__ void add_unit(int unit, b_operand b) {
        begin_products();
#pragma unroll
        for (int step = 0; step < 2; step++)
            start_products<Shape::COLUMNS>(sums, weights[unit][step],
                                           b + (unsigned)(unit * 2 + step) * B_STEP);
        end_products();
    }
};

/* Makes the weights of a unit while the tensor cores multiply the one before it. */
template <typename Shape, gb_dtype SCALE>
__device__ inline void multiply_stages(const fragment_tile &tile, wgmma_sums<Shape, SCALE> &work) {
    const unsigned lane = threadIdx.x % WARP, fragment = fragment_of_warp();
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
                if (unit == 1 && pair == 0 && first > 0) /* all lanes have read the stage before */
                    arrive_by_warp(&tile.empty[last], lane);
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

} // namespace gb_cuda

#endif
