/* SPDX-License-Identifier: Apache-2.0
 *
 * What the wgmma GEMMs share. A block has some outputs of a tile of rows: two warpgroups multiply, a third
 * copies ahead into the stages of a pipeline (warp specialization). Activations are the second operand, in
 * shared memory.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_WGMMA_TILE_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_WGMMA_TILE_CUH

#include "backends/cuda/device/copy_pipeline.cuh"
#include "backends/cuda/device/wgmma.cuh"
#include "backends/cuda/gemm/prepared.cuh"
#include "backends/cuda/gemm/row_lists.cuh"

namespace gb_cuda {

enum {
    FRAGMENT_ROWS = 16, /* of the weight, of a warp */
    CONSUMERS = 2,      /* warpgroups that multiply */
    CONSUMED_OUTPUTS = CONSUMERS * 64,
    WGMMA_THREADS = (CONSUMERS + 1) * WARPGROUP,
    WGMMA_SHARED_BYTES = 224 * 1024,
    MOST_STAGES = 8,
    COPYING_REGISTERS = 40, /* of a thread that copies, and of one that multiplies */
    MULTIPLYING_REGISTERS = 232,
};

/* The rows of x that a block multiplies, and where its stages are. A stage is full when it has been copied,
 * and empty when all warps have read it. */
struct wgmma_tile {
    prepared_rows x;
    uint32_t first, end; /* rows of x */
    uint8_t *stages;
    copy_barrier *full, *empty; /* [MOST_STAGES] */
};

/* memory: the block's WGMMA_SHARED_BYTES. */
__device__ inline wgmma_tile begin_tile(const prepared_rows &x, const row_tile &rows, uint8_t *memory,
                                        copy_barrier *full, copy_barrier *empty) {
    return {x, (uint32_t)rows.first, (uint32_t)rows.end, align_b(memory), full, empty};
}

/* All threads call it first: sets the barriers up while the kernels before it still run, then waits for them.
 */
__device__ inline void begin_stages(copy_barrier *full, copy_barrier *empty) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < MOST_STAGES; i++) {
            begin_barrier(&full[i], 1 + WARPGROUP);
            begin_barrier(&empty[i], CONSUMERS * WARPGROUP / WARP * DONE_ARRIVALS);
        }
        finish_barriers();
    }
    wait_for_earlier();
    __syncthreads();
}

/* ---- The warpgroup that copies ------------------------------------------------------------------------- */

__device__ inline uint32_t at_most(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Copies a stage's inputs; one thread does. Where the tile has fewer rows than the stage, what was there
 * before is multiplied in their place, and not stored. */
template <typename Shape>
__device__ inline void copy_inputs(const wgmma_tile &tile, uint32_t first_pair, uint32_t pairs, uint8_t *to,
                                   copy_barrier *full) {
    const uint32_t rows = tile.end - tile.first, planes = pairs * Shape::TERMS;
    const uint32_t *from =
        tile.x.values + (first_pair * Shape::TERMS * tile.x.pair_rows + tile.first) * PAIR_WORDS;
    arrive_expecting(full, planes * rows * B_ROW_BYTES);
    for (uint32_t i = 0; i < planes; i++)
        copy_bulk(to + i * Shape::INPUT_BYTES, from + i * tile.x.pair_rows * PAIR_WORDS, rows * B_ROW_BYTES,
                  full);
}

/* All pairs of units of the sum, stage by stage. Tile: a wgmma_tile with its weight; Copier: what copies a
 * thread's share of the weight, from `begin` on a stage at a time. */
template <typename Shape, typename Copier, typename Tile>
__device__ inline void copy_stages(const Tile &tile) {
    uint32_t place = 0, parity = 1; /* in the first round nobody waits */
    Copier copier;
    copier.begin(tile);
    for (uint32_t first = 0; first < tile.weight.pairs; first += Shape::PAIRS) {
        const uint32_t pairs = at_most(tile.weight.pairs - first, Shape::PAIRS);
        uint8_t *stage = tile.stages + place * Shape::BYTES;
        wait_for_phase(&tile.empty[place], parity);
        if (threadIdx.x == 0)
            copy_inputs<Shape>(tile, first, pairs, stage, &tile.full[place]);
        copier.copy(stage, pairs);
        arrive_when_copied(&tile.full[place]);
        if (++place == Shape::COUNT) {
            place = 0;
            parity ^= 1;
        }
    }
}

/* ---- The warpgroups that multiply ---------------------------------------------------------------------- */

/* Which of a stage's blocks of FRAGMENT_ROWS of the weight is the warp's. */
__device__ inline unsigned fragment_of_warp() {
    return threadIdx.x / WARP - WARPGROUP / WARP;
}

/* Of CONSUMED_OUTPUTS from first_output on. */
template <int COLUMNS>
__device__ inline void store_sums(const wgmma_tile &tile, const row_lists &lists, size_t first_output,
                                  const float (&sums)[COLUMNS / 2], float *__restrict__ y) {
    const unsigned lane = threadIdx.x % WARP;
    const size_t lane_output = first_output + fragment_of_warp() * FRAGMENT_ROWS + lane / 4;
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
            const uint32_t entry = tile.first + j * 8 + lane % 4 * 2 + odd;
            if (entry >= tile.end)
                continue;
            float *row = y + listed_row(lists, (int32_t)entry) * lists.outputs;
#pragma unroll
            for (int below = 0; below < 2; below++) {
                const size_t output = lane_output + below * 8;
                if (output < lists.outputs)
                    row[output] = sums[j * 4 + below * 2 + odd];
            }
        }
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

/* Rows that the tiles of a product are multiplied as. */
template <int... WIDTHS>
struct tile_widths {};

/* Calls a function with the first width that holds so many rows, which the last one does. */
template <int WIDTH, int... WIDER, typename Function>
__device__ inline void with_width(tile_widths<WIDTH, WIDER...>, uint32_t rows, const Function &function) {
    if constexpr (sizeof...(WIDER) > 0)
        if (rows > WIDTH)
            return with_width(tile_widths<WIDER...>(), rows, function);
    function(fixed<WIDTH>());
}

/* Product: its matrix, the widths of its tiles, their number of outputs, and what a block does with one. */
template <typename Product>
static __global__ void __launch_bounds__(WGMMA_THREADS, 1)
    run_wgmma(typename Product::matrix weight, prepared_rows x, row_lists lists, unsigned tile_rows,
              float *__restrict__ y) {
#if defined(GB_HAS_WGMMA)
    typedef typename Product::widths widths;
    __shared__ copy_barrier full[MOST_STAGES], empty[MOST_STAGES];
    GB_DYNAMIC_SHARED(uint8_t, shared);
    begin_stages(full, empty);
    const row_tile rows = tile_of(lists, blockIdx.x, tile_rows);
    const uint32_t count = (uint32_t)(rows.end - rows.first);
    const auto tile = Product::tile_of(begin_tile(x, rows, shared, full, empty), weight, rows.expert);
    if (count == 0)
        return;
    if (threadIdx.x < WARPGROUP) {
        give_registers_back<COPYING_REGISTERS>();
        with_width(widths(), count, [&](auto width) { Product::template copy<width>(tile); });
    } else {
        take_registers<MULTIPLYING_REGISTERS>();
        with_width(widths(), count, [&](auto width) { Product::template multiply<width>(tile, lists, y); });
    }
#endif
}

/* A block has a tile of rows and one of outputs. */
template <typename Product>
void add_wgmma(const gb_cuda_call *call, const char *name, unsigned output_tiles,
               const typename Product::matrix &weight, const prepared_rows &x, const row_lists &lists,
               unsigned tile_rows) {
    const dim3 grid(lists.tiles ? (unsigned)lists.tile_count : blocks_for(lists.rows, tile_rows),
                    output_tiles);
    add_launch(call->launches, name, run_wgmma<Product>, grid, WGMMA_THREADS, WGMMA_SHARED_BYTES, weight, x,
               lists, tile_rows, data_of<float>(call->results[0]));
}

} // namespace gb_cuda

#endif
