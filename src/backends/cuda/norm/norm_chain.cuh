/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms around a residual, of long rows: a norm, an added residual, a factor and the next norm, all but the
 * last optional. A block has a row in registers; weights are loaded before the wait, and all loads of a row
 * are in flight at once. The bits are those of row_chain.cu.
 */
#ifndef GUMBEL_BACKENDS_CUDA_NORM_NORM_CHAIN_CUH
#define GUMBEL_BACKENDS_CUDA_NORM_NORM_CHAIN_CUH

#include "backends/cuda/gemm/int8/rows.cuh"
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
    float *first_stored, *added_stored, *scaled_stored, *last_stored; /* or NULL */
    prepared_rows prepared;                                           /* of the last result */
    row_rounding rounded; /* the same as a whole: one of the two, or none */
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
           is_aligned(c.first_stored) && is_aligned(c.added_stored) && is_aligned(c.scaled_stored) &&
           is_aligned(c.last_stored) && can_prepare(c.prepared, c.width);
}

/* Stores the block's share of the columns, where the result has a place. */
template <int EACH, typename Block>
__device__ inline void store_columns(const row_part<EACH> *row, const Block &block, const row_share &share,
                                     float *stored, size_t number, unsigned width) {
#pragma unroll
    for (int r = 0; r < Block::ROUNDS; r++) {
        const unsigned column = column_of<EACH>(block, r);
        if (stored && column < width && share.is_mine(block.warp(r), block.warps()))
            row[r].store(stored + number * width, column);
    }
}

/* row[rounds] = the last result of row `number` of a chain, zeros past its end. Loads weights, waits for
 * earlier kernels, and computes. partial: shared memory. Needs all threads of the block that has the row. */
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
        store_columns(row, block, share, c.first_stored, number, c.width);
    }
    if (c.added) {
#pragma unroll
        for (int i = 0; i < ROUNDS * EACH; i++)
            row[i / EACH].v[i % EACH] += added[i / EACH].v[i % EACH];
        store_columns(row, block, share, c.added_stored, number, c.width);
    }
    if (c.scale) {
#pragma unroll
        for (int i = 0; i < ROUNDS * EACH; i++)
            row[i / EACH].v[i % EACH] *= scale;
        store_columns(row, block, share, c.scaled_stored, number, c.width);
    }
    if (c.has_last) {
        normalize_row(row, c.last, last_weight, block, partial[1]);
        store_columns(row, block, share, c.last_stored, number, c.width);
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

/* norm_chain.cu: the chain of a fused step, whose last result is stored where it is live. */
gb_cuda::norm_chain gb_cuda_norm_chain_of(const gb_cuda_problem *problem);

#endif
