/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of prefill with a large bfloat16 matrix on Hopper (wgmma). The weight is the first operand, in
 * registers; an activation is the second one, as two bfloat16 numbers that keep 16 bits of it. Sums are
 * float32 in the order of k, of 16 columns first those of the high terms, whatever the tile. A block has 256
 * outputs of up to 128 rows; either warpgroup has half of the first and half of the second 128 outputs, so
 * that inputs are read once for both.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_WGMMA_BF16_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_WGMMA_BF16_CUH

#include "backends/cuda/gemm/wgmma_tile.cuh"

namespace gb_cuda {

enum {
    BF16_HALVES = 2,
    BF16_OUTPUTS = BF16_HALVES * CONSUMED_OUTPUTS,
    WEIGHT_ROW_BYTES = PAIR_COLUMNS * 2, /* of a row in a stage */
    ROW_PIECES = WEIGHT_ROW_BYTES / 16,
};

struct bf16_matrix {
    const uint16_t *values; /* [experts, outputs, columns] */
    uint32_t outputs;       /* of an expert */
    uint32_t pairs;         /* of units of a row */
};

/* A stage: the two terms of a pair of units of the rows of inputs, and that pair of all outputs. */
template <int COLUMNS_>
struct bf16_stage_shape {
    enum {
        COLUMNS = COLUMNS_, /* rows of inputs */
        PAIRS = 1,
        TERMS = 2,
        INPUT_BYTES = COLUMNS * B_ROW_BYTES, /* of a term */
        WEIGHTS_AT = TERMS * INPUT_BYTES,
        BYTES = WEIGHTS_AT + BF16_OUTPUTS * WEIGHT_ROW_BYTES,
        MOST = (WGMMA_SHARED_BYTES - B_ALIGNMENT) / BYTES,
        COUNT = MOST < MOST_STAGES ? MOST : MOST_STAGES,
    };
    static_assert(BYTES % B_ALIGNMENT == 0, "the next stage's inputs are aligned");
    static_assert(COUNT >= 2, "a stage is empty when the next one is being multiplied");
};

struct bf16_tile : wgmma_tile {
    bf16_matrix weight;
    size_t first_row; /* of the weight */
    uint32_t outputs; /* that are there, of BF16_OUTPUTS */
};

/* Where a piece of 16 bytes of a row stands: rows change the halves of their 128 bytes by turns, so that what
 * eight lanes of a warp read lies in all banks. */
__device__ inline uint32_t piece_place(uint32_t row, uint32_t piece) {
    return row * WEIGHT_ROW_BYTES + (piece ^ row % 2 * (ROW_PIECES / 2)) * 16;
}

/* What a thread copies of the weights in each stage: of every 16th row the same piece. */
template <typename Shape>
struct row_copier {
    enum { ROW_STEP = WARPGROUP / ROW_PIECES, COPIES = BF16_OUTPUTS / ROW_STEP };
    const uint8_t *from;
    size_t step; /* from row to row */
    uint32_t to, copies;

    __device__ void begin(const bf16_tile &tile) {
        const uint32_t row = threadIdx.x / ROW_PIECES, piece = threadIdx.x % ROW_PIECES;
        const size_t row_bytes = (size_t)tile.weight.pairs * WEIGHT_ROW_BYTES;
        from = reinterpret_cast<const uint8_t *>(tile.weight.values) + (tile.first_row + row) * row_bytes +
               piece * 16;
        step = row_bytes * ROW_STEP;
        to = Shape::WEIGHTS_AT + piece_place(row, piece);
        copies = row < tile.outputs ? (tile.outputs - row + ROW_STEP - 1) / ROW_STEP : 0;
    }

    /* The next stage; it has one pair. */
    __device__ void copy(uint8_t *stage, uint32_t) {
        static_assert(ROW_STEP % 2 == 0, "a thread's rows have their pieces in the same place");
#pragma unroll
        for (uint32_t i = 0; i < COPIES; i++)
            if (i < copies)
                copy_16(stage + to + i * (ROW_STEP * WEIGHT_ROW_BYTES), from + i * step);
        from += WEIGHT_ROW_BYTES;
    }
};

/* ---- The warpgroups that multiply ---------------------------------------------------------------------- */

/* A warpgroup's 64 outputs of each half. */
template <typename Shape>
struct bf16_sums {
    float sums[BF16_HALVES][Shape::COLUMNS / 2];
    uint32_t weights[2][BF16_HALVES][2][4]; /* of a unit and the one before it: a of two products */

    __device__ void clear() {
#pragma unroll
        for (int half = 0; half < BF16_HALVES; half++)
#pragma unroll
            for (int i = 0; i < Shape::COLUMNS / 2; i++)
                sums[half][i] = 0;
    }

    /* The columns of quarter t = lane % 4 of a unit, of rows r and r + 8, in pairs as prepared.cuh has them.
     */
    __device__ void load_weights(const uint8_t *stage, int unit) {
        const uint32_t lane = threadIdx.x % WARP;
#pragma unroll
        for (int half = 0; half < BF16_HALVES; half++)
#pragma unroll
            for (int below = 0; below < 2; below++) {
                const uint32_t row = (uint32_t)half * CONSUMED_OUTPUTS + fragment_of_warp() * FRAGMENT_ROWS +
                                     lane / 4 + (uint32_t)below * 8;
                const uint4 columns = *reinterpret_cast<const uint4 *>(
                    stage + Shape::WEIGHTS_AT + piece_place(row, (uint32_t)unit * 4 + lane % 4));
                set(unit, half, below, columns);
            }
    }

    __device__ void set(int unit, int half, int below, const uint4 &columns) {
        const uint32_t pairs[4] = {low_halves(columns.x, columns.z), high_halves(columns.x, columns.z),
                                   low_halves(columns.y, columns.w), high_halves(columns.y, columns.w)};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t &weight = weights[unit][half][i / 2][i % 2 * 2 + below];
            weight = pairs[i];
            keep_in_place(weight);
        }
    }

    __device__ static uint32_t low_halves(uint32_t a, uint32_t b) {
        return (a & 0xffffu) | b << 16;
    }
    __device__ static uint32_t high_halves(uint32_t a, uint32_t b) {
        return a >> 16 | (b & 0xffff0000u);
    }

    __device__ void add_unit(const uint8_t *stage, int unit) {
        begin_products();
#pragma unroll
        for (int step = 0; step < 2; step++)
#pragma unroll
            for (int term = 0; term < Shape::TERMS; term++)
#pragma unroll
                for (int half = 0; half < BF16_HALVES; half++)
                    start_products<Shape::COLUMNS>(sums[half], weights[unit][half][step],
                                                   operand_b(stage + term * Shape::INPUT_BYTES) +
                                                       (unsigned)(unit * 2 + step) * B_STEP);
        end_products();
    }
};

/* Reads the weights of a unit while the tensor cores multiply the one before it. There is a pair at least:
 * for a loop that may end at once the compiler waits for every product. */
template <typename Shape>
__device__ inline void multiply_stages(const bf16_tile &tile, bf16_sums<Shape> &work) {
    uint32_t place = 0, parity = 0, last = 0, pair = 0;
    work.clear();
    do {
        const uint8_t *stage = tile.stages + place * Shape::BYTES;
        wait_for_phase(&tile.full[place], parity);
#pragma unroll
        for (int unit = 0; unit < 2; unit++) {
            wait_for_products<1>();
            if (unit == 1 && pair > 0) /* the stage before has been multiplied */
                arrive_by_warp(&tile.empty[last], threadIdx.x % WARP);
            work.load_weights(stage, unit);
            work.add_unit(stage, unit);
        }
        last = place;
        if (++place == Shape::COUNT) {
            place = 0;
            parity ^= 1;
        }
    } while (++pair < tile.weight.pairs);
    wait_for_products<0>();
}

} // namespace gb_cuda

#endif
