/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of ops on single elements, each of which takes the result of the one before. A thread has four
 * neighbouring columns and goes from op to op in registers. The bits are those of row_chain.cu.
 */
#include "backends/cuda/norm/long_rows.cuh"
#include "backends/cuda/norm/row_chain.cuh"

using namespace gb_cuda;

enum { THREADS = 256, MOST_OPS = 4 };

typedef row_part<ELEMENT_COLUMNS> part;

struct element_op {
    chain_kind kind;
    bool is_logistic;   /* SCALE_ROWS: the factor is the sigmoid of other */
    row_view other;     /* the operand that is not the result before */
    const void *weight; /* ADD_BIAS, SCALE */
    gb_dtype dtype;
    float *stored_factor; /* or NULL, as stored */
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

/* Of a row's factor the first column alone, and no weights: nothing here waits for what is loaded. */
__device__ static void load_other(const element_op &op, size_t row, unsigned column, part &y) {
    if (op.kind == CHAIN_ADD || op.kind == CHAIN_MULTIPLY)
        load_rows(op.other, row, column, y);
    else if (op.kind == CHAIN_SCALE_ROWS)
        y.v[0] = op.other.data[row * op.other.stride];
}

__device__ static float factor_of(const element_op &op, size_t row, unsigned column, float loaded) {
    if (op.kind == CHAIN_SCALE)
        return load_float(op.weight, op.dtype, 0);
    const float factor = op.is_logistic ? sigmoid(loaded) : loaded;
    if (op.stored_factor && column == 0)
        op.stored_factor[row] = factor;
    return factor;
}

/* What load_other has left out. */
__device__ static void finish_other(const element_op &op, size_t row, unsigned column, part &y) {
    if (op.kind == CHAIN_SCALE || op.kind == CHAIN_SCALE_ROWS) {
        const float factor = factor_of(op, row, column, y.v[0]);
#pragma unroll
        for (unsigned j = 0; j < ELEMENT_COLUMNS; j++)
            y.v[j] = factor;
    }
    if (op.kind == CHAIN_ADD_BIAS)
#pragma unroll
        for (unsigned j = 0; j < ELEMENT_COLUMNS; j++)
            y.v[j] = load_float(op.weight, op.dtype, column + j);
}

__device__ static float function_of(chain_kind kind, float x, float y) {
    switch (kind) {
    case CHAIN_ADD:
    case CHAIN_ADD_BIAS:
        return x + y;
    case CHAIN_GELU:
        return gelu_tanh(x);
    case CHAIN_SILU:
    case CHAIN_SIGMOID: /* they share the exponential's code */
        return (kind == CHAIN_SILU ? x : 1.0f) / (1.0f + gb_exp(-x));
    default:
        return x * y;
    }
}

__device__ static void execute(const element_op &op, const part &y, part &x) {
#pragma unroll
    for (unsigned j = 0; j < ELEMENT_COLUMNS; j++)
        x.v[j] = function_of(op.kind, x.v[j], y.v[j]);
}

/* Grid: [rows, blocks of columns]. A thread's loads are in flight at once. */
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
        finish_other(op, row, column, others[0]);
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
    return kind < CHAIN_COPY || kind == CHAIN_SCALE_ROWS;
}

/* What a step's ops have been so far. */
struct element_builder {
    element_chain chain;
    const chain_op *ops;
    int before;      /* the op of the last result; -1: none */
    unsigned unread; /* bit i: op i is a factor that no op has taken */
};

static bool add_factor(element_builder *b, int number) {
    const chain_op &op = b->ops[number];
    b->unread |= 1u << number;
    return op.kind == CHAIN_SIGMOID && op.a.data;
}

static bool take_factor(element_builder *b, const chain_op &op, element_op *e) {
    const int producer = producer_of(op.b);
    e->other = op.b;
    if (producer < 0)
        return true;
    e->is_logistic = true;
    e->other = b->ops[producer].a;
    e->stored_factor = b->ops[producer].stored;
    const bool is_factor = (b->unread >> producer & 1u) != 0;
    b->unread &= ~(1u << producer);
    return is_factor;
}

/* The other operand of sums and products may be the first one. */
static bool take_operands(element_builder *b, const chain_op &op, element_op *e) {
    const bool has_rows = op.kind == CHAIN_ADD || op.kind == CHAIN_MULTIPLY;
    const bool is_second = has_rows && b->before >= 0 && producer_of(op.b) == b->before;
    const row_view &x = is_second ? op.b : op.a;
    if (has_rows)
        e->other = is_second ? op.a : op.b;
    if (b->before < 0)
        b->chain.x = x;
    return producer_of(x) == b->before && (x.data == nullptr || is_loadable_by_four(x, ELEMENT_COLUMNS)) &&
           (!has_rows || is_loadable_by_four(e->other, ELEMENT_COLUMNS));
}

static bool add_op(element_builder *b, int number) {
    const chain_op &op = b->ops[number];
    if (op.width == 1)
        return add_factor(b, number);
    if (!is_of_elements(op.kind) || op.width != b->chain.width || b->chain.count == MOST_OPS)
        return false;
    element_op *e = &b->chain.ops[b->chain.count++];
    e->kind = op.kind;
    e->weight = op.norm.weight;
    e->dtype = op.norm.dtype;
    e->stored = op.stored;
    if (!take_operands(b, op, e) || !is_aligned(e->stored))
        return false;
    b->before = number;
    return op.kind != CHAIN_SCALE_ROWS || take_factor(b, op, e);
}

bool gb_cuda_element_chain(const row_chain &chain, unsigned rows, gb_cuda_launch_list *launches) {
    element_builder b = {};
    b.ops = chain.ops;
    b.before = -1;
    b.chain.width = chain.ops[chain.count - 1].width;
    for (unsigned i = 0; i < chain.count; i++)
        if (!add_op(&b, (int)i))
            return false;
    if (b.unread || b.chain.width % ELEMENT_COLUMNS != 0)
        return false;
    const unsigned pieces = b.chain.width / ELEMENT_COLUMNS,
                   threads = pieces < THREADS ? blocks_for(pieces, WARP) * WARP : (unsigned)THREADS;
    add_launch(launches, "element_chain", run_element_chain, dim3(rows, blocks_for(pieces, threads)), threads,
               0, b.chain);
    return true;
}
