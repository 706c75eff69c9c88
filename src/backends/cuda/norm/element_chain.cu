/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of ops on single elements, each of which takes the result of the one before, and experts' weighted
 * sums. A thread has four neighbouring columns and goes from op to op in registers. The bits are those of
 * row_chain.cu.
 */
#include "backends/cuda/norm/long_rows.cuh"
#include "backends/cuda/norm/row_chain.cuh"

using namespace gb_cuda;

enum { THREADS = 256, MOST_OPS = 4, LOADED_TOGETHER = 4 /* rows of experts */ };

typedef row_part<ELEMENT_COLUMNS> part;

struct element_op {
    chain_kind kind;
    bool is_logistic; /* SCALE_ROWS: the factor is the sigmoid of other */
    row_view other;   /* the operand that is not the result before */
    unsigned choices; /* of experts, of whose rows the sum by weights is the operand; 0: it is one row */
    row_view weights;
    const void *weight; /* ADD_BIAS, SCALE, SCALE_COLUMNS; the biases of those experts, or NULL */
    gb_dtype dtype;
    const int32_t *experts;
    unsigned size;       /* columns of a factor: SCALE_COLUMNS */
    float alpha, limit;  /* CLAMPED_SWIGLU */
    float *stored_other; /* what is made of other; or NULL, as stored */
    float *stored;
};

struct element_chain {
    row_view x; /* the first op's operand */
    element_op ops[MOST_OPS];
    unsigned count, width;
};

__device__ static void load_rows(const row_view &view, size_t row, unsigned column, part &y) {
    y.load(view.data + row * view.stride, place_of(view, column));
}

/* Of a row's factor the first column alone, no weights and no sums: nothing here waits for what is loaded. */
__device__ static void load_other(const element_op &op, size_t row, unsigned column, part &y) {
    if (has_two_rows(op.kind) && !op.choices)
        load_rows(op.other, row, column, y);
    else if (op.kind == CHAIN_SCALE_ROWS)
        y.v[0] = op.other.data[row * op.other.stride];
}

__device__ static float factor_of(const element_op &op, size_t row, unsigned column, float loaded) {
    if (op.kind == CHAIN_SCALE)
        return load_float(op.weight, op.dtype, 0);
    const float factor = op.is_logistic ? sigmoid(loaded) : loaded;
    if (op.stored_other && column == 0)
        op.stored_other[row] = factor;
    return factor;
}

/* What a chosen expert adds to its row. */
__device__ static void add_bias(const element_op &op, size_t expert, unsigned width, unsigned column,
                                part &x) {
    const size_t first = expert * width + column;
    part bias;
    if (op.dtype == GB_BF16) {
        weight_part<ELEMENT_COLUMNS, uint16_t> halves;
        halves.load(static_cast<const uint16_t *>(op.weight) + first, 0);
#pragma unroll
        for (unsigned j = 0; j < ELEMENT_COLUMNS; j++)
            bias.v[j] = halves.at((int)j);
    } else {
        bias.load(static_cast<const float *>(op.weight) + first, 0);
    }
#pragma unroll
    for (unsigned j = 0; j < ELEMENT_COLUMNS; j++)
        x.v[j] += bias.v[j];
}

/* In the order of choices. To add anything to -0 leaves its bits. */
template <bool HAS_BIASES>
__device__ static void add_experts(const element_op &op, size_t row, unsigned width, unsigned column,
                                   part &y) {
    const float *rows = op.other.data + row * op.other.stride,
                *weights = op.weights.data + row * op.weights.stride;
    y = {{-0.0f, -0.0f, -0.0f, -0.0f}};
#pragma unroll 1
    for (unsigned first = 0; first < op.choices; first += LOADED_TOGETHER) {
        part x[LOADED_TOGETHER] = {};
        float weight[LOADED_TOGETHER] = {};
#pragma unroll
        for (unsigned t = 0; t < LOADED_TOGETHER; t++)
            if (first + t < op.choices) {
                x[t].load(rows, (first + t) * width + column);
                weight[t] = weights[first + t];
            }
        if constexpr (HAS_BIASES)
#pragma unroll
            for (unsigned t = 0; t < LOADED_TOGETHER; t++)
                if (first + t < op.choices && op.experts)
                    add_bias(op, (size_t)op.experts[row * op.choices + first + t], width, column, x[t]);
#pragma unroll
        for (unsigned t = 0; t < LOADED_TOGETHER; t++)
#pragma unroll
            for (unsigned j = 0; j < ELEMENT_COLUMNS; j++)
                y.v[j] = first + t < op.choices ? y.v[j] + x[t].v[j] * weight[t] : y.v[j];
    }
    if (op.stored_other)
        y.store(op.stored_other + row * width, column);
}

/* What load_other has left out. */
template <bool HAS_BIASES>
__device__ static void finish_other(const element_op &op, size_t row, unsigned width, unsigned column,
                                    part &y) {
    if (op.choices)
        add_experts<HAS_BIASES>(op, row, width, column, y);
    if (op.kind == CHAIN_SCALE || op.kind == CHAIN_SCALE_ROWS) {
        const float factor = factor_of(op, row, column, y.v[0]);
#pragma unroll
        for (unsigned j = 0; j < ELEMENT_COLUMNS; j++)
            y.v[j] = factor;
    }
    if (op.kind == CHAIN_ADD_BIAS || op.kind == CHAIN_SCALE_COLUMNS)
#pragma unroll
        for (unsigned j = 0; j < ELEMENT_COLUMNS; j++)
            y.v[j] = load_float(op.weight, op.dtype,
                                op.kind == CHAIN_ADD_BIAS ? column + j : (column + j) / op.size);
}

__device__ static float function_of(const element_op &op, float x, float y) {
    switch (op.kind) {
    case CHAIN_ADD:
    case CHAIN_ADD_BIAS:
        return x + y;
    case CHAIN_GELU:
        return gelu_tanh(x);
    case CHAIN_SILU:
        return silu(x);
    case CHAIN_SIGMOID:
        return sigmoid(x);
    case CHAIN_RELU_SQUARED:
        return relu_squared(x);
    case CHAIN_SOFTPLUS:
        return softplus(x);
    case CHAIN_CLAMPED_SWIGLU:
        return clamped_swiglu(x, y, op.alpha, op.limit);
    case CHAIN_COMBINE:
        return y;
    default:
        return x * y;
    }
}

__device__ static void execute(const element_op &op, const part &y, part &x) {
#pragma unroll
    for (unsigned j = 0; j < ELEMENT_COLUMNS; j++)
        x.v[j] = function_of(op, x.v[j], y.v[j]);
}

/* Grid: [rows, blocks of columns]. A thread's loads are in flight at once. */
template <bool HAS_BIASES>
static __global__ void __launch_bounds__(THREADS) run_element_chain(GB_GRID_CONSTANT element_chain c) {
    const size_t row = blockIdx.x;
    const unsigned column = (blockIdx.y * blockDim.x + threadIdx.x) * ELEMENT_COLUMNS;
    part x, others[MOST_OPS] = {};
    wait_for_earlier();
    if (column >= c.width)
        return;
    load_rows(c.x, row, column, x);
#pragma unroll
    for (unsigned k = 0; k < MOST_OPS; k++)
        if (k < c.count)
            load_other(c.ops[k], row, column, others[k]);
#pragma unroll 1
    for (unsigned k = 0; k < c.count; k++) {
        const element_op &op = c.ops[k];
        finish_other<HAS_BIASES>(op, row, c.width, column, others[0]);
        execute(op, others[0], x);
        if (op.stored)
            x.store(op.stored + row * c.width, column);
#pragma unroll
        for (unsigned j = 1; j < MOST_OPS; j++) /* registers have no index */
            others[j - 1] = others[j];
    }
}

/* ---- From a chain of rows ------------------------------------------------------------------------------ */

/* The op whose result it is: each has ELEMENT_COLUMNS of shared memory. -1: none. */
static int producer_of(const row_view &view) {
    return view.data ? -1 : (int)(view.offset / ELEMENT_COLUMNS);
}

static bool is_of_elements(chain_kind kind) {
    return kind < CHAIN_ADD_EXPERT_BIAS || kind == CHAIN_SCALE_ROWS;
}

/* What a step's ops have been so far. */
struct element_builder {
    element_chain chain;
    const chain_op *ops;
    unsigned last; /* of them */
    int before;    /* the op of the last result; -1: none */
    bool has_biases;
    unsigned unread; /* bit i: op i is an aside that no op has taken */
};

/* Rows' factors and experts' sums are computed with the op that takes them, and biases with those sums. */
static bool is_aside(const element_builder &b, int number) {
    const chain_op &op = b.ops[number];
    return op.width == 1 || op.kind == CHAIN_ADD_EXPERT_BIAS ||
           (op.kind == CHAIN_COMBINE && number < (int)b.last);
}

/* The biases added to an expert's rows before their sum, or NULL. */
static const chain_op *biases_of(const element_builder &b, const chain_op &sum) {
    const int producer = producer_of(sum.a);
    return producer < 0 ? nullptr : &b.ops[producer];
}

static bool is_of_experts(element_builder *b, const chain_op &sum) {
    const chain_op *biased = biases_of(*b, sum);
    const row_view &rows = biased ? biased->a : sum.a;
    if (biased) {
        const bool is_there = (b->unread >> (biased - b->ops) & 1u) != 0;
        b->unread &= ~(1u << (biased - b->ops));
        b->has_biases = true;
        if (!is_there || biased->kind != CHAIN_ADD_EXPERT_BIAS || biased->size != sum.width)
            return false;
    }
    return sum.width == b->chain.width && !rows.inner && sum.b.data &&
           is_loadable_by_four(rows, ELEMENT_COLUMNS) && is_aligned(sum.stored);
}

static bool is_bias(const chain_op &op) {
    return !op.stored && is_aligned(op.norm.weight) && (op.norm.dtype == GB_BF16 || op.norm.dtype == GB_F32);
}

static bool add_aside(element_builder *b, int number) {
    const chain_op &op = b->ops[number];
    b->unread |= 1u << number;
    if (op.kind == CHAIN_COMBINE)
        return is_of_experts(b, op);
    if (op.kind == CHAIN_ADD_EXPERT_BIAS)
        return is_bias(op);
    return op.kind == CHAIN_SIGMOID && op.a.data;
}

static void take_experts(const element_builder &b, const chain_op &sum, element_op *e) {
    const chain_op *biased = biases_of(b, sum);
    e->other = biased ? biased->a : sum.a;
    e->weights = sum.b;
    e->choices = sum.count;
    if (biased) {
        e->weight = biased->norm.weight;
        e->dtype = biased->norm.dtype;
        e->experts = biased->indices;
    }
}

/* The operand as it is, or what an aside makes of its own one. */
static bool take_other(element_builder *b, const row_view &operand, element_op *e) {
    const int producer = producer_of(operand);
    e->other = operand;
    if (producer < 0)
        return true;
    const chain_op &aside = b->ops[producer];
    const bool is_there = (b->unread >> producer & 1u) != 0;
    b->unread &= ~(1u << producer);
    e->other = aside.a;
    if (aside.kind == CHAIN_COMBINE)
        take_experts(*b, aside, e);
    e->is_logistic = aside.kind == CHAIN_SIGMOID;
    e->stored_other = aside.stored;
    return is_there && (aside.kind == CHAIN_COMBINE) == has_two_rows(e->kind);
}

/* The other operand of sums and products may be the first one. */
static bool take_operands(element_builder *b, const chain_op &op, element_op *e) {
    const bool is_second = has_two_rows(op.kind) && op.kind != CHAIN_CLAMPED_SWIGLU &&
                           producer_of(op.b) == b->before && producer_of(op.a) != b->before;
    const row_view &x = is_second ? op.b : op.a;
    if (b->before < 0)
        b->chain.x = x;
    if (producer_of(x) != b->before || (x.data && !is_loadable_by_four(x, ELEMENT_COLUMNS)))
        return false;
    if (op.kind == CHAIN_SCALE_ROWS)
        return take_other(b, op.b, e);
    return !has_two_rows(op.kind) ||
           (take_other(b, is_second ? op.a : op.b, e) && is_loadable_by_four(e->other, ELEMENT_COLUMNS));
}

/* An experts' sum that no op takes is the chain's only op, in place of what it would be added to. */
static bool add_sum(element_builder *b, const chain_op &sum) {
    element_op *e = &b->chain.ops[0];
    if (b->before >= 0 || !is_of_experts(b, sum))
        return false;
    e->kind = CHAIN_COMBINE;
    e->stored = sum.stored;
    take_experts(*b, sum, e);
    b->chain.x = e->other;
    b->chain.count = 1;
    return true;
}

static bool add_op(element_builder *b, int number) {
    const chain_op &op = b->ops[number];
    if (is_aside(*b, number))
        return add_aside(b, number);
    if (op.kind == CHAIN_COMBINE)
        return add_sum(b, op);
    if (!is_of_elements(op.kind) || op.width != b->chain.width || b->chain.count == MOST_OPS)
        return false;
    element_op *e = &b->chain.ops[b->chain.count++];
    e->kind = op.kind;
    e->weight = op.norm.weight;
    e->dtype = op.norm.dtype;
    e->size = op.size;
    e->alpha = op.scale;
    e->limit = op.limit;
    e->stored = op.stored;
    const bool is_taken = take_operands(b, op, e);
    b->before = number;
    return is_taken && is_aligned(e->stored);
}

bool gb_cuda_element_chain(const row_chain &chain, unsigned rows, gb_cuda_launch_list *launches) {
    element_builder b = {};
    b.ops = chain.ops;
    b.last = chain.count - 1;
    b.before = -1;
    b.chain.width = chain.ops[chain.count - 1].width;
    for (unsigned i = 0; i < chain.count; i++)
        if (!add_op(&b, (int)i))
            return false;
    if (b.unread || b.chain.width % ELEMENT_COLUMNS != 0)
        return false;
    const unsigned pieces = b.chain.width / ELEMENT_COLUMNS,
                   threads = pieces < THREADS ? blocks_for(pieces, WARP) * WARP : (unsigned)THREADS;
    auto kernel = b.has_biases ? run_element_chain<true> : run_element_chain<false>;
    add_launch(launches, "element_chain", kernel, dim3(rows, blocks_for(pieces, threads)), threads, 0,
               b.chain);
    return true;
}
