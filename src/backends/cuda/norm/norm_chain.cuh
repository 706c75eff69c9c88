/* SPDX-License-Identifier: Apache-2.0
 *
 * The chains that stand around every layer, of long rows: a norm, a residual that is added, a factor and the
 * next norm, each of which may be missing. A block has a row in registers; weights come before the
 * wait, and all loads of a row are under way at once. Functions and orders of sums are those of row_chain.cu,
 * and so are the bits.
 */
#ifndef GUMBEL_BACKENDS_CUDA_NORM_NORM_CHAIN_CUH
#define GUMBEL_BACKENDS_CUDA_NORM_NORM_CHAIN_CUH

#include "backends/cuda/norm/long_rows.cuh"
#include "backends/cuda/norm/row_chain.cuh"

namespace gb_cuda {

/* One of the ops; what is missing has no result of its own. */
struct norm_chain {
    const float *x, *added; /* added: or NULL */
    size_t x_stride, added_stride;
    bool has_first, has_last;
    normalization first, last;
    const void *scale; /* or NULL */
    gb_dtype scale_dtype;
    float *first_kept, *added_kept, *scaled_kept, *last_kept; /* or NULL */
    prepared_rows prepared;                                   /* of the last result */
    unsigned width;
};

/* Whether the weights of both norms are of that dtype, where they are. */
inline bool has_dtypes(const norm_chain &c, gb_dtype dtype) {
    return has_dtype(c.first, dtype) && has_dtype(c.last, dtype);
}

/* Whether a block can have the chain's rows. */
inline bool can_launch(const norm_chain &c) {
    return fits_block(c.width) && (has_dtypes(c, GB_BF16) || has_dtypes(c, GB_F32)) && is_aligned(c.x) &&
           is_aligned(c.added) && c.x_stride % 4 == 0 && c.added_stride % 4 == 0 &&
           is_aligned(c.first_kept) && is_aligned(c.added_kept) && is_aligned(c.scaled_kept) &&
           is_aligned(c.last_kept) && can_prepare(c.prepared, c.width);
}

/* Stores the columns that are the block's to store, where they are kept. */
template <int EACH, typename Block>
__device__ inline void keep(const row_part<EACH> *row, const Block &block, const row_share &share,
                            float *kept, size_t number, unsigned width) {
#pragma unroll
    for (int r = 0; r < Block::ROUNDS; r++) {
        const unsigned column = column_of<EACH>(block, r);
        if (kept && column < width && share.is_mine(block.warp(r), block.warps()))
            row[r].store(kept + number * width, column);
    }
}

/* row[rounds] = row `number` of a chain: the last result, of which what is past the row's end is zeros. Loads
 * weights, waits for the kernels before, and does the rest. partial: shared memory. All that the block has
 * the row by call it. */
template <int EACH, typename Element, typename Block>
__device__ inline void run_chain_row(const norm_chain &c, size_t number, const Block &block,
                                     const row_share &share, float partial[2][WARP], row_part<EACH> *row) {
    constexpr int ROUNDS = Block::ROUNDS;
    row_part<EACH> added[ROUNDS] = {};
    weight_part<EACH, Element> first_weight[ROUNDS] = {}, last_weight[ROUNDS] = {};
    const float *other = c.added + number * c.added_stride;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const unsigned column = column_of<EACH>(block, r);
        if (column >= c.width)
            continue;
        if (c.added)
            prefetch_line(other + column); /* it is older than the weights that have passed since */
        if (c.first.weight)
            first_weight[r].load(c.first.weight, column);
        if (c.last.weight)
            last_weight[r].load(c.last.weight, column);
    }
    const float scale = c.scale ? load_float(c.scale, c.scale_dtype, 0) : 1.0f;
    wait_for_earlier();
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const unsigned column = column_of<EACH>(block, r);
        row[r] = {};
        if (column < c.width)
            row[r].load(c.x + number * c.x_stride, column);
        if (c.added && column < c.width)
            added[r].load(other, column);
    }
    if (c.has_first) {
        normalize_row(row, c.first, first_weight, block, partial[0]);
        keep(row, block, share, c.first_kept, number, c.width);
    }
    if (c.added) {
#pragma unroll
        for (int i = 0; i < ROUNDS * EACH; i++)
            row[i / EACH].v[i % EACH] += added[i / EACH].v[i % EACH];
        keep(row, block, share, c.added_kept, number, c.width);
    }
    if (c.scale) {
#pragma unroll
        for (int i = 0; i < ROUNDS * EACH; i++)
            row[i / EACH].v[i % EACH] *= scale;
        keep(row, block, share, c.scaled_kept, number, c.width);
    }
    if (c.has_last) {
        normalize_row(row, c.last, last_weight, block, partial[1]);
        keep(row, block, share, c.last_kept, number, c.width);
    }
}

/* The same by a block of threads_of_row, which prepares its share of the result. shared: width floats, where
 * rows are prepared in bfloat16. */
template <int EACH, typename Element>
__device__ inline row_part<EACH> run_whole_row(const norm_chain &c, size_t number, const row_share &share,
                                               float partial[2][WARP], float *shared) {
    const whole_row block;
    row_part<EACH> row;
    run_chain_row<EACH, Element>(c, number, block, share, partial, &row);
    if (c.prepared.values && share.is_mine(block.warp(0), block.warps()))
        prepare_part(c.prepared, number, row, c.width, shared);
    return row;
}

} // namespace gb_cuda

/* norm_chain.cu: the chain of a step's parts, whose last result is stored where it is kept. */
gb_cuda::norm_chain gb_cuda_norm_chain_of(const gb_cuda_problem *problem);

#endif
