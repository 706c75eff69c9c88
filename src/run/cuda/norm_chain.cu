/* SPDX-License-Identifier: Apache-2.0
 *
 * The chains that stand around every layer, of long rows: a norm, a residual that is added, a factor and the
 * next norm, each of which may be missing. A block has a row in registers; weights come before the
 * wait, and all loads of a row are under way at once. Functions and orders of sums are those of row_chain.cu,
 * and so are the bits.
 */
#include "run/cuda/device/long_rows.cuh"
#include "run/cuda/device/row_chain.cuh"

using namespace gb_cuda;

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

/* Stores the calling warp's columns, where they are the block's to store. */
template <int EACH>
__device__ static void keep(const row_part<EACH> &row, float *kept, unsigned width) {
    const unsigned column = threadIdx.x * EACH;
    if (kept && column < width && stores_part())
        row.store(kept + (size_t)blockIdx.x * width, column);
}

template <int EACH, typename Element>
static __global__ void __launch_bounds__(NORM_THREADS) run_norm_chain(GB_GRID_CONSTANT norm_chain c) {
    GB_DYNAMIC_SHARED(float, shared);
    __shared__ float partial[2][WARP];
    let_next_begin();
    const unsigned column = threadIdx.x * EACH;
    const bool is_there = column < c.width;
    row_part<EACH> row = {}, added = {};
    weight_part<EACH, Element> first_weight = {}, last_weight = {};
    const float *other = c.added + blockIdx.x * c.added_stride;
    if (c.added && is_there)
        prefetch_line(other + column); /* it is older than the weights that have passed since */
    if (c.first.weight && is_there)
        first_weight.load(c.first.weight, column);
    if (c.last.weight && is_there)
        last_weight.load(c.last.weight, column);
    const float scale = c.scale ? load_float(c.scale, c.scale_dtype, 0) : 1.0f;
    wait_for_earlier();
    if (is_there)
        row.load(c.x + blockIdx.x * c.x_stride, column);
    if (c.added && is_there)
        added.load(other, column);
    if (c.has_first) {
        normalize_part(&row, c.first, first_weight, partial[0]);
        keep(row, c.first_kept, c.width);
    }
    if (c.added) {
#pragma unroll
        for (int i = 0; i < EACH; i++)
            row.v[i] += added.v[i];
        keep(row, c.added_kept, c.width);
    }
    if (c.scale) {
#pragma unroll
        for (int i = 0; i < EACH; i++)
            row.v[i] *= scale;
        keep(row, c.scaled_kept, c.width);
    }
    if (c.has_last) {
        normalize_part(&row, c.last, last_weight, partial[1]);
        keep(row, c.last_kept, c.width);
    }
    if (c.prepared.values && stores_part())
        prepare_part(c.prepared, blockIdx.x, row, c.width, shared);
}

/* ---- Finding it in a chain ------------------------------------------------------------------------------
 */

static bool is_long_norm(const chain_op &op) {
    return op.kind == CHAIN_NORM && op.norm.size == op.width && op.width > LONGEST_WARP_ROW;
}

/* Takes op number k into the chain where it can be its next one. */
static bool take(norm_chain *c, const row_chain &chain, unsigned k) {
    const chain_op &op = chain.ops[k];
    const bool goes_on = k > 0 && is_result(op.a, chain.ops[k - 1]);
    if (op.width != c->width || (k > 0 && chain.ops[k - 1].prepared.values) || c->has_last)
        return false;
    if (op.kind == CHAIN_ADD && k > 0 && !c->added && !c->scale) {
        const row_view &other = goes_on ? op.b : op.a;
        if ((!goes_on && !is_result(op.b, chain.ops[k - 1])) || !is_outside(other))
            return false;
        c->added = other.data;
        c->added_stride = other.stride;
        c->added_kept = op.kept;
        return true;
    }
    if (op.kind == CHAIN_ADD && k == 0 && is_outside(op.a) && is_outside(op.b)) {
        c->x = op.a.data;
        c->x_stride = op.a.stride;
        c->added = op.b.data;
        c->added_stride = op.b.stride;
        c->added_kept = op.kept;
        return true;
    }
    if (op.kind == CHAIN_SCALE && goes_on && !c->scale) {
        c->scale = op.norm.weight;
        c->scale_dtype = op.norm.dtype;
        c->scaled_kept = op.kept;
        return true;
    }
    if (!is_long_norm(op) || (k > 0 && !goes_on) || (k == 0 && !is_outside(op.a)))
        return false;
    if (k == 0 && chain.count > 1) {
        c->x = op.a.data;
        c->x_stride = op.a.stride;
        c->has_first = true;
        c->first = op.norm;
        c->first_kept = op.kept;
        return true;
    }
    if (k == 0) {
        c->x = op.a.data;
        c->x_stride = op.a.stride;
    }
    c->has_last = true;
    c->last = op.norm;
    c->last_kept = op.kept;
    return true;
}

/* Whether the kernel can load and store the chain's rows. */
static bool is_loadable(const norm_chain &c) {
    return is_aligned(c.x) && is_aligned(c.added) && c.x_stride % 4 == 0 && c.added_stride % 4 == 0 &&
           is_aligned(c.first_kept) && is_aligned(c.added_kept) && is_aligned(c.scaled_kept) &&
           is_aligned(c.last_kept) && can_prepare(c.prepared, c.width);
}

template <typename Element>
static void launch(const norm_chain &c, unsigned rows, cudaStream_t stream) {
    auto kernel = norm_piece(c.width) == 4 ? run_norm_chain<4, Element> : run_norm_chain<8, Element>;
    const dim3 grid(rows, blocks_of_row(c.prepared, rows, c.width));
    GB_LAUNCH(kernel, grid, threads_of_row(c.width), shared_of_row(c.prepared, c.width), stream, c);
}

static bool launch_chain(const norm_chain &c, unsigned rows, cudaStream_t stream) {
    if (!fits_block(c.width) || !is_loadable(c))
        return false;
    if (has_dtype(c.first, GB_BF16) && has_dtype(c.last, GB_BF16))
        launch<uint16_t>(c, rows, stream);
    else if (has_dtype(c.first, GB_F32) && has_dtype(c.last, GB_F32))
        launch<float>(c, rows, stream);
    else
        return false;
    return true;
}

bool gb_cuda_norm_chain(const row_chain &chain, unsigned rows, cudaStream_t stream) {
    norm_chain c = {};
    c.width = chain.ops[0].width;
    for (unsigned k = 0; k < chain.count; k++)
        if (chain.columns || !take(&c, chain, k))
            return false;
    const chain_op &last = chain.ops[chain.count - 1];
    c.prepared = last.prepared;
    return c.has_last && (!last.prepared.values || last.prepared_columns == c.width) &&
           launch_chain(c, rows, stream);
}

bool gb_cuda_long_norm(const gb_cuda_call *call, const normalization &norm, const prepared_rows &prepared) {
    norm_chain c = {};
    c.x = data_of<const float>(call->operands[0]);
    c.x_stride = norm.size;
    c.width = (unsigned)norm.size;
    c.has_last = true;
    c.last = norm;
    c.last_kept = data_of<float>(call->results[0]);
    c.prepared = prepared;
    return launch_chain(c, (unsigned)(gb_cuda_elements(call->operands[0]) / norm.size), call->stream);
}
