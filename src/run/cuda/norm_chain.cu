/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of the chains of norm_chain.cuh, and how they are found.
 */
#include "run/cuda/device/norm_chain.cuh"

using namespace gb_cuda;

/* Grid: [rows, blocks that share a row]. */
template <int EACH, typename Element>
static __global__ void __launch_bounds__(NORM_THREADS) run_norm_chain(GB_GRID_CONSTANT norm_chain c) {
    GB_DYNAMIC_SHARED(float, shared);
    __shared__ float partial[2][WARP];
    let_next_begin();
    run_whole_row<EACH, Element>(c, blockIdx.x, row_share{blockIdx.y, gridDim.y}, partial, shared);
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

template <typename Element>
static void launch(const norm_chain &c, unsigned rows, cudaStream_t stream) {
    auto kernel = norm_piece(c.width) == 4 ? run_norm_chain<4, Element> : run_norm_chain<8, Element>;
    const dim3 grid(rows, blocks_of_row(c.prepared, rows, c.width));
    GB_LAUNCH(kernel, grid, threads_of_row(c.width), shared_of_row(c.prepared, c.width), stream, c);
}

/* The chain, if the kernels can have it. */
static bool launch_chain(const norm_chain &c, unsigned rows, cudaStream_t stream) {
    if (!can_launch(c))
        return false;
    if (has_dtypes(c, GB_BF16))
        launch<uint16_t>(c, rows, stream);
    else
        launch<float>(c, rows, stream);
    return true;
}

bool gb_cuda_find_norm_chain(const row_chain &chain, norm_chain *found) {
    norm_chain c = {};
    c.width = chain.ops[0].width;
    for (unsigned k = 0; k < chain.count; k++)
        if (chain.columns || !take(&c, chain, k))
            return false;
    const chain_op &last = chain.ops[chain.count - 1];
    c.prepared = last.prepared;
    *found = c;
    return c.has_last && (!last.prepared.values || last.prepared_columns == c.width);
}

bool gb_cuda_norm_chain(const row_chain &chain, unsigned rows, cudaStream_t stream) {
    norm_chain c;
    return gb_cuda_find_norm_chain(chain, &c) && launch_chain(c, rows, stream);
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
