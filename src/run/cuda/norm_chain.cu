/* SPDX-License-Identifier: Apache-2.0
 *
 * The chains that stand around every layer, of long rows: a norm, a residual that is added, a factor and the
 * next norm, each of which may be missing. A row is a block's and stays in registers; weights come before the
 * wait, and all loads of a row are under way at once. Functions and orders of sums are those of row_chain.cu,
 * and so are the bits.
 */
#include "run/cuda/device/row_chain.cuh"

using namespace gb_cuda;

constexpr unsigned MOST_EACH = 8; /* elements of a thread */

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

/* A thread's elements of a row: every NORM_THREADS-th. */
template <int EACH>
struct row_part {
    float v[EACH];

    __device__ static bool is_there(unsigned j, unsigned width) {
        return threadIdx.x + j * NORM_THREADS < width;
    }

    __device__ void load(const void *row, gb_dtype dtype, unsigned width) {
#pragma unroll
        for (unsigned j = 0; j < EACH; j++)
            v[j] = is_there(j, width) ? load_float(row, dtype, threadIdx.x + j * NORM_THREADS) : 0.0f;
    }

    __device__ void store(float *row, unsigned width) const {
#pragma unroll
        for (unsigned j = 0; j < EACH; j++)
            if (is_there(j, width))
                row[threadIdx.x + j * NORM_THREADS] = v[j];
    }

    __device__ void keep(float *kept, unsigned width) const {
        if (kept)
            store(kept + (size_t)blockIdx.x * width, width);
    }

    __device__ void normalize(const normalization &norm, const row_part &weight, float *partial) {
        float sum = 0;
#pragma unroll
        for (unsigned j = 0; j < EACH; j++)
            sum += v[j] * v[j];
        const float factor = norm_factor(norm, block_sum(sum, partial));
#pragma unroll
        for (unsigned j = 0; j < EACH; j++) {
            const float value = v[j] * factor;
            v[j] = norm.weight ? value * (norm.weight_offset + weight.v[j]) : value;
        }
    }
};

/* The row, which shared memory has, as the next product takes it. */
__device__ static void prepare_row(const norm_chain &c, const float *row) {
    const unsigned quarters = (unsigned)c.prepared.units * 4;
#pragma unroll 1
    for (unsigned first = 0; first < quarters; first += NORM_THREADS) {
        const unsigned quarter = first + threadIdx.x;
        float v[8];
#pragma unroll
        for (unsigned i = 0; i < 8; i++)
            v[i] = quarter * 8 + i < c.width ? row[quarter * 8 + i] : 0.0f;
        prepare_quarter(c.prepared, blockIdx.x, quarter < quarters ? quarter : quarters, v);
    }
}

template <int EACH>
static __global__ void __launch_bounds__(NORM_THREADS) run_norm_chain(GB_GRID_CONSTANT norm_chain c) {
    GB_DYNAMIC_SHARED(float, shared);
    __shared__ float partial[WARP];
    row_part<EACH> row, added = {}, first_weight = {}, last_weight = {};
    if (c.first.weight)
        first_weight.load(c.first.weight, c.first.dtype, c.width);
    if (c.last.weight)
        last_weight.load(c.last.weight, c.last.dtype, c.width);
    const float scale = c.scale ? load_float(c.scale, c.scale_dtype, 0) : 1.0f;
    wait_for_earlier();
    row.load(c.x + blockIdx.x * c.x_stride, GB_F32, c.width);
    if (c.added)
        added.load(c.added + blockIdx.x * c.added_stride, GB_F32, c.width);
    if (c.has_first) {
        row.normalize(c.first, first_weight, partial);
        row.keep(c.first_kept, c.width);
    }
    if (c.added) {
#pragma unroll
        for (unsigned j = 0; j < EACH; j++)
            row.v[j] += added.v[j];
        row.keep(c.added_kept, c.width);
    }
    if (c.scale) {
#pragma unroll
        for (unsigned j = 0; j < EACH; j++)
            row.v[j] *= scale;
        row.keep(c.scaled_kept, c.width);
    }
    if (c.has_last) {
        row.normalize(c.last, last_weight, partial);
        row.keep(c.last_kept, c.width);
    }
    if (c.prepared.values) {
        row.store(shared, c.width);
        __syncthreads();
        prepare_row(c, shared);
    }
}

/* ---- Finding it in a chain ------------------------------------------------------------------------------
 */

/* Whether a view is a row in memory that no op of the chain made, as it stands there. */
static bool is_outside(const row_view &view) {
    return view.data && !view.inner;
}

static bool is_result(const row_view &view, const chain_op &op) {
    return !view.inner &&
           (view.data ? view.data == op.kept : op.offset >= 0 && view.offset == (unsigned)op.offset);
}

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

bool gb_cuda_norm_chain(const row_chain &chain, unsigned rows, cudaStream_t stream) {
    norm_chain c = {};
    c.width = chain.ops[0].width;
    if (chain.columns || c.width > MOST_EACH * NORM_THREADS)
        return false;
    for (unsigned k = 0; k < chain.count; k++)
        if (!take(&c, chain, k))
            return false;
    const chain_op &last = chain.ops[chain.count - 1];
    if (!c.has_last || (last.prepared.values && last.prepared_columns != c.width))
        return false;
    c.prepared = last.prepared;
    const size_t shared_bytes = c.prepared.values ? c.width * sizeof(float) : 0;
    auto kernel = c.width <= 2 * NORM_THREADS   ? run_norm_chain<2>
                  : c.width <= 6 * NORM_THREADS ? run_norm_chain<6>
                                                : run_norm_chain<(int)MOST_EACH>;
    GB_LAUNCH(kernel, rows, NORM_THREADS, shared_bytes, stream, c);
    return true;
}
