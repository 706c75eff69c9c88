/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a layer of experts: what the chosen ones found is added up with their weights, the shared one's
 * is added times its gate, then the residual, and the next layer's norm follows. A row is a block's and stays
 * in registers; all of its loads are under way at once. Functions and orders of sums are those of
 * row_chain.cu, and so are the bits.
 */
#include "run/cuda/device/long_rows.cuh"
#include "run/cuda/device/row_chain.cuh"

using namespace gb_cuda;

enum { MOST_CHOICES = 8, EACH = 4, OPS = 6 };

struct combine_chain {
    const float *found, *weights; /* [rows, choices, width], [rows, choices] */
    const float *shared, *gate;   /* [rows, width], [rows]: the shared expert's, before its sigmoid */
    const float *residual;        /* [rows, width] */
    size_t found_stride, weights_stride, shared_stride, gate_stride, residual_stride;
    unsigned choices, width;
    float *sum_kept, *last_kept; /* residual and all experts; normalized; or NULL */
    normalization norm;
    prepared_rows prepared; /* of the normalized row */
};

/* The weighted sum of a thread's columns, choice by choice. */
__device__ static void combine(const combine_chain &c, unsigned column, row_part<EACH> *sum) {
    const float *found = c.found + blockIdx.x * c.found_stride;
    const float *weights = c.weights + blockIdx.x * c.weights_stride;
    row_part<EACH> x[MOST_CHOICES];
    float weight[MOST_CHOICES];
#pragma unroll
    for (unsigned t = 0; t < MOST_CHOICES; t++)
        if (t < c.choices) {
            weight[t] = weights[t];
            x[t].load(found + t * c.width, column);
        }
#pragma unroll
    for (unsigned t = 0; t < MOST_CHOICES; t++)
        if (t < c.choices)
#pragma unroll
            for (unsigned i = 0; i < EACH; i++) {
                const float product = x[t].v[i] * weight[t];
                sum->v[i] = t == 0 ? product : sum->v[i] + product;
            }
}

template <typename Element>
static __global__ void __launch_bounds__(NORM_THREADS) run_combine_chain(GB_GRID_CONSTANT combine_chain c) {
    GB_DYNAMIC_SHARED(float, in_block);
    __shared__ float partial[WARP];
    const unsigned column = threadIdx.x * EACH;
    const bool is_there = column < c.width;
    row_part<EACH> row = {}, shared = {}, residual = {};
    weight_part<EACH, Element> weight = {};
    if (c.norm.weight && is_there)
        weight.load(c.norm.weight, column);
    wait_for_earlier();
    if (is_there) {
        const float gate = c.gate[blockIdx.x * c.gate_stride];
        shared.load(c.shared + blockIdx.x * c.shared_stride, column);
        residual.load(c.residual + blockIdx.x * c.residual_stride, column);
        combine(c, column, &row);
        const float factor = sigmoid(gate);
#pragma unroll
        for (unsigned i = 0; i < EACH; i++)
            row.v[i] = residual.v[i] + (row.v[i] + shared.v[i] * factor);
        if (c.sum_kept)
            row.store(c.sum_kept + (size_t)blockIdx.x * c.width, column);
    }
    normalize_part(&row, c.norm, weight, partial);
    if (c.last_kept && is_there)
        row.store(c.last_kept + (size_t)blockIdx.x * c.width, column);
    if (c.prepared.values)
        prepare_part(c.prepared, blockIdx.x, row, c.width, in_block);
}

/* ---- Finding it in a chain ----------------------------------------------------------------------------- */

static const chain_op *find(const row_chain &chain, unsigned end, chain_kind kind) {
    for (unsigned k = 0; k < end; k++)
        if (chain.ops[k].kind == kind)
            return &chain.ops[k];
    return nullptr;
}

/* The operand of a sum beside an op's result; NULL: that is none of its operands. */
static const row_view *other_than(const chain_op &sum, const chain_op &op) {
    return is_result(sum.a, op) ? &sum.b : is_result(sum.b, op) ? &sum.a : nullptr;
}

static bool is_row(const row_view &view) {
    return is_outside(view) && is_aligned(view.data) && view.stride % 4 == 0;
}

/* The rows that come from outside. */
static bool set_rows(combine_chain *c, const chain_op &combined, const chain_op &gate, const chain_op &scaled,
                     const row_view &residual) {
    if (!is_row(combined.a) || !is_outside(combined.b) || !is_outside(gate.a) || !is_row(scaled.a) ||
        !is_row(residual) || combined.kept || gate.kept || scaled.kept || combined.count > MOST_CHOICES ||
        gate.width != 1 || !is_result(scaled.b, gate))
        return false;
    c->found = combined.a.data;
    c->found_stride = combined.a.stride;
    c->weights = combined.b.data;
    c->weights_stride = combined.b.stride;
    c->choices = combined.count;
    c->gate = gate.a.data;
    c->gate_stride = gate.a.stride;
    c->shared = scaled.a.data;
    c->shared_stride = scaled.a.stride;
    c->residual = residual.data;
    c->residual_stride = residual.stride;
    return true;
}

/* The last three ops are sums and a norm; the first three may have any order that they can have. */
static bool match(combine_chain *c, const row_chain &chain) {
    const chain_op *combined = find(chain, 3, CHAIN_COMBINE), *gate = find(chain, 3, CHAIN_SIGMOID),
                   *scaled = find(chain, 3, CHAIN_SCALE_ROWS);
    const chain_op &experts = chain.ops[3], &sum = chain.ops[4], &norm = chain.ops[5];
    if (!combined || !gate || !scaled || experts.kind != CHAIN_ADD || sum.kind != CHAIN_ADD ||
        norm.kind != CHAIN_NORM || experts.kept || !is_result(norm.a, sum))
        return false;
    for (unsigned k = 0; k + 1 < OPS; k++)
        if (chain.ops[k].prepared.values || (chain.ops[k].width != norm.width && &chain.ops[k] != gate))
            return false;
    const row_view *other = other_than(experts, *combined), *residual = other_than(sum, experts);
    if (!other || !is_result(*other, *scaled) || !residual)
        return false;
    c->width = norm.width;
    c->sum_kept = sum.kept;
    c->last_kept = norm.kept;
    c->norm = norm.norm;
    c->prepared = norm.prepared;
    return norm.norm.size == norm.width && set_rows(c, *combined, *gate, *scaled, *residual) &&
           (!norm.prepared.values || norm.prepared_columns == norm.width);
}

bool gb_cuda_combine_chain(const row_chain &chain, unsigned rows, cudaStream_t stream) {
    combine_chain c = {};
    if (chain.columns || chain.count != OPS || !match(&c, chain) || !fits_block(c.width) ||
        norm_piece(c.width) != EACH || !can_prepare(c.prepared, c.width) || !is_aligned(c.sum_kept) ||
        !is_aligned(c.last_kept))
        return false;
    const bool is_short = has_dtype(c.norm, GB_BF16);
    if (!is_short && !has_dtype(c.norm, GB_F32))
        return false;
    auto kernel = is_short ? run_combine_chain<uint16_t> : run_combine_chain<float>;
    GB_LAUNCH(kernel, rows, threads_of_row(c.width), shared_of_row(c.prepared, c.width), stream, c);
    return true;
}
