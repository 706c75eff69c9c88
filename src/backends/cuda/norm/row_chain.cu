/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/norm/norm_chain.cuh"

using namespace gb_cuda;

/* Elements that a thread loads before it uses the first. Every piece of code is there once and is short: what
 * runs once in a step is fetched anew each time, and that takes longer than its execution. */
enum { BATCH = 4 };

/* A row as a block sees it. */
struct block_row {
    const float *at;
    row_view view;
    __device__ float operator[](unsigned i) const {
        return at[place_of(view, i)];
    }
};

/* What a block knows of its place: columns begin .. end - 1 of the op's rows. */
struct block_place {
    size_t row;
    float *shared;
    unsigned begin, end;
    __device__ block_row row_of(const row_view &view) const {
        return {view.data ? view.data + row * view.stride : shared + view.offset - begin, view};
    }
};

__device__ static void put(const chain_op &op, const block_place &place, unsigned i, float value) {
    if (op.offset >= 0)
        place.shared[(unsigned)op.offset + i - place.begin] = value;
    if (op.stored)
        op.stored[place.row * op.width + i] = value;
}

/* The op's function of element i; y is b's element, or a weight's. */
__device__ static float function_of(const chain_op &op, float x, float y, float factor, unsigned i) {
    switch (op.kind) {
    case CHAIN_ADD:
    case CHAIN_ADD_BIAS:
    case CHAIN_ADD_EXPERT_BIAS:
        return x + y;
    case CHAIN_MULTIPLY:
    case CHAIN_SCALE_COLUMNS:
        return x * y;
    case CHAIN_SCALE:
    case CHAIN_SCALE_ROWS:
        return x * factor;
    case CHAIN_GELU:
        return gelu_tanh(x);
    case CHAIN_SILU:
        return silu(x);
    case CHAIN_SIGMOID:
        return sigmoid(x);
    case CHAIN_RELU_SQUARED:
        return relu_squared(x);
    case CHAIN_CLAMPED_SWIGLU:
        return clamped_swiglu(x, y, op.scale, op.limit);
    case CHAIN_SOFTPLUS:
        return softplus(x);
    case CHAIN_DECAY:
        return delta_decay(x, load_float(op.norm.weight, op.norm.dtype, i),
                           load_float(op.bias, op.bias_dtype, i));
    case CHAIN_NORM: {
        const float value = x * factor;
        return op.norm.weight ? value * (op.norm.weight_offset + y) : value;
    }
    default:
        return x;
    }
}

/* Elements first, first + step, .. below end of the result. */
__device__ static void map_elements(const chain_op &op, const block_place &place, unsigned first,
                                    unsigned step, unsigned end, unsigned weight_begin, float factor) {
    const block_row a = place.row_of(op.a), b = place.row_of(op.b);
    const bool has_b = has_two_rows(op.kind), has_place = has_weight_place(op.kind);
    const bool has_weight =
        op.kind == CHAIN_ADD_BIAS || has_place || (op.kind == CHAIN_NORM && op.norm.weight);
#pragma unroll 1
    for (; first < end; first += BATCH * step) {
        float x[BATCH], y[BATCH];
#pragma unroll
        for (unsigned j = 0; j < BATCH; j++) {
            const unsigned i = first + j * step;
            x[j] = i < end ? a[i] : 0.0f;
            y[j] = 0;
            if (has_b && i < end)
                y[j] = b[i];
            if (has_weight && i < end)
                y[j] =
                    load_float(op.norm.weight, op.norm.dtype,
                               has_place ? weight_place(op.kind, op.indices, op.count, op.size, place.row, i)
                                         : i - weight_begin);
        }
#pragma unroll
        for (unsigned j = 0; j < BATCH; j++) {
            const unsigned i = first + j * step;
            if (i < end)
                put(op, place, i, function_of(op, x[j], y[j], factor, i));
        }
    }
}

/* The sum of squares of the pieces first, first + step, .. below end, in this order. */
__device__ static float squares(const block_row &x, unsigned first, unsigned step, unsigned end,
                                unsigned piece) {
    float sum = 0;
#pragma unroll 1
    for (; first < end; first += step)
#pragma unroll 4
        for (unsigned i = first; i < first + piece && i < end; i++)
            sum += x[i] * x[i];
    return sum;
}

/* A row is a block's, or those within it a warp's each. Alone in its block, a warp adds its sum to 0. */
__device__ static void normalize(const chain_op &op, const block_place &place, float *partial) {
    const bool by_warps = op.norm.size <= LONGEST_WARP_ROW;
    const unsigned size = (unsigned)op.norm.size, piece = by_warps ? 1 : norm_piece(size);
    const unsigned thread = by_warps ? threadIdx.x % WARP : threadIdx.x,
                   step = by_warps ? (unsigned)WARP : blockDim.x;
    const unsigned rows = by_warps ? blockDim.x / WARP : 1, row = by_warps ? threadIdx.x / WARP : 0;
#pragma unroll 1
    for (unsigned begin = place.begin + row * size; begin < place.end; begin += rows * size) {
        float sum = squares(place.row_of(op.a), begin + thread * piece, step * piece, begin + size, piece);
        if (!by_warps)
            __syncthreads(); /* the sums of the norm before have been read */
        sum = by_warps ? warp_sum(sum) : norm_sum(sum, partial);
        map_elements(op, place, begin + thread, step, begin + size, begin, norm_factor(op.norm, sum));
    }
}

__device__ static void rotate(const chain_op &op, const block_place &place) {
    const block_row x = place.row_of(op.a);
    const float position = (float)(op.indices[place.row] + op.start);
    const float *frequencies = static_cast<const float *>(op.norm.weight);
#pragma unroll 1
    for (unsigned i = place.begin + threadIdx.x; i < place.end; i += blockDim.x) {
        const unsigned d = i % op.size;
        if (d < op.count) {
            float sine, cosine;
            const float a = x[i], b = x[i + op.pair_offset];
            gb_sin_cos(position * frequencies[d], &sine, &cosine);
            sine *= op.scale;
            cosine *= op.scale;
            put(op, place, i, a * cosine - b * sine);
            put(op, place, i + op.pair_offset, b * cosine + a * sine);
        } else if (d < op.pair_offset || d >= op.pair_offset + op.count) {
            put(op, place, i, x[i]);
        }
    }
}

__device__ static void combine(const chain_op &op, const block_place &place) {
    const block_row x = place.row_of(op.a), weights = place.row_of(op.b);
#pragma unroll 1
    for (unsigned i = place.begin + threadIdx.x; i < place.end; i += blockDim.x) {
        float sum = x[i] * weights[0];
#pragma unroll 4
        for (unsigned t = 1; t < op.count; t++)
            sum += x[t * op.width + i] * weights[t];
        put(op, place, i, sum);
    }
}

__device__ static void prepare_result(const chain_op &op, const block_place &place) {
    __syncthreads();
    const float *y =
        op.offset >= 0 ? place.shared + op.offset - place.begin : op.stored + place.row * op.width;
    const unsigned columns = op.prepared_columns, of_row = (unsigned)op.prepared.units * 4;
    const unsigned rows = op.width / columns;
    const unsigned end = place.end < op.width ? place.end / 8 : rows * of_row;
#pragma unroll 1
    for (unsigned first = place.begin / 8; first < end; first += blockDim.x) {
        const unsigned number = first + threadIdx.x, row = number / of_row, quarter = number % of_row;
        const bool is_there = number < end;
        float v[8];
        for (unsigned i = 0; i < 8; i++)
            v[i] = is_there && quarter * 8 + i < columns ? y[row * columns + quarter * 8 + i] : 0.0f;
        prepare_quarter(op.prepared, place.row * rows + row, is_there ? quarter : of_row, v);
    }
}

__device__ static void execute(const chain_op &op, const block_place &place, float *partial) {
    if (op.kind == CHAIN_NORM)
        return normalize(op, place, partial);
    if (op.kind == CHAIN_ROTATE)
        return rotate(op, place);
    if (op.kind == CHAIN_COMBINE)
        return combine(op, place);
    float factor = 1;
    if (op.kind == CHAIN_SCALE)
        factor = load_float(op.norm.weight, op.norm.dtype, 0);
    if (op.kind == CHAIN_SCALE_ROWS)
        factor = place.row_of(op.b)[0];
    map_elements(op, place, place.begin + threadIdx.x, blockDim.x, place.end, 0, factor);
}

/* Norms' weights are in flight before the rows are there. */
__device__ static void prefetch_weights(const row_chain &chain) {
    for (unsigned k = 0; k < chain.count; k++) {
        const chain_op &op = chain.ops[k];
        const size_t bytes =
            op.kind == CHAIN_NORM && op.norm.weight ? op.norm.size * (op.norm.dtype == GB_F32 ? 4 : 2) : 0;
        for (size_t at = threadIdx.x * CACHE_LINE; at < bytes; at += blockDim.x * CACHE_LINE)
            prefetch_line(static_cast<const uint8_t *>(op.norm.weight) + at);
    }
}

static __global__ void __launch_bounds__(NORM_THREADS) run_row_chain(GB_GRID_CONSTANT row_chain chain) {
    GB_DYNAMIC_SHARED(float, shared);
    __shared__ float partial[WARP];
    prefetch_weights(chain);
    wait_for_earlier();
    const unsigned begin = blockIdx.y * chain.columns;
#pragma unroll 1
    for (unsigned k = 0; k < chain.count; k++) {
        const chain_op &op = chain.ops[k];
        const bool is_cut = chain.columns && begin + chain.columns < op.width;
        const block_place place = {blockIdx.x, shared, begin, is_cut ? begin + chain.columns : op.width};
        if (begin >= op.width)
            continue;
        if (op.waits)
            __syncthreads();
        execute(op, place, partial);
        if (op.prepared.values)
            prepare_result(op, place);
    }
}

/* ---- From calls to a chain ----------------------------------------------------------------------------- */

/* Shared memory of a block, in floats: two blocks fit in a multiprocessor. */
enum { MOST_SHARED = 20 * 1024 };

struct chain_builder {
    row_chain chain;
    const gb_cuda_call *const *calls;
    unsigned shared;                    /* floats in use */
    const void *produced[GB_MOST_ROWS]; /* results so far, */
    row_view views[GB_MOST_ROWS];       /* where they are, */
    int producers[GB_MOST_ROWS];        /* and the op that computes them; -1: they are in memory already */
    unsigned produced_count;
};

/* The view of a call's operand, and the op of the chain that computes it, or -1. */
static row_view view_of(const chain_builder &b, const gb_cuda_tensor *operand, int *producer) {
    *producer = -1;
    for (unsigned i = b.produced_count; i-- > 0;)
        if (b.produced[i] == operand->data) {
            *producer = b.producers[i];
            return b.views[i];
        }
    return view_of_rows(operand);
}

static void note_produced(chain_builder *b, const gb_cuda_tensor *result, const row_view &view,
                          int producer) {
    b->produced[b->produced_count] = result->data;
    b->views[b->produced_count] = view;
    b->producers[b->produced_count++] = producer;
}

/* Makes a slice a view of its operand, where it can be one. */
static bool view_slice(chain_builder *b, const gb_cuda_call *call) {
    int producer;
    const row_view view = view_of(*b, call->operands[0], &producer);
    if (view.inner)
        return false;
    note_produced(b, call->results[0], slice_of(view, call), producer);
    return true;
}

/* Ops whose thread i reads what thread i of another such op computed. */
static bool is_by_elements(const chain_op &op) {
    return op.kind <= CHAIN_SCALE_ROWS;
}

/* Whether an op must wait for the one that computes its operand. */
static bool must_wait(const chain_builder &b, const chain_op &op, const row_view &view, int producer) {
    if (producer < 0)
        return false;
    const chain_op &before = b.chain.ops[producer];
    return !is_by_elements(op) || !is_by_elements(before) || before.width != op.width || view.inner ||
           (view.data ? view.data != before.stored : view.offset != (unsigned)before.offset);
}

static chain_kind kind_of(gb_op op) {
    switch (op) {
    case GB_OP_ADD:
        return CHAIN_ADD;
    case GB_OP_ADD_BIAS:
        return CHAIN_ADD_BIAS;
    case GB_OP_MULTIPLY:
        return CHAIN_MULTIPLY;
    case GB_OP_SCALE:
        return CHAIN_SCALE;
    case GB_OP_GELU_TANH:
        return CHAIN_GELU;
    case GB_OP_SILU:
        return CHAIN_SILU;
    case GB_OP_SIGMOID:
        return CHAIN_SIGMOID;
    case GB_OP_RELU_SQUARED:
        return CHAIN_RELU_SQUARED;
    case GB_OP_SOFTPLUS:
        return CHAIN_SOFTPLUS;
    case GB_OP_CLAMPED_SWIGLU:
        return CHAIN_CLAMPED_SWIGLU;
    case GB_OP_SCALE_COLUMNS:
        return CHAIN_SCALE_COLUMNS;
    case GB_OP_ADD_EXPERT_BIAS:
        return CHAIN_ADD_EXPERT_BIAS;
    case GB_OP_SLICE:
        return CHAIN_COPY;
    case GB_OP_DELTA_DECAY:
        return CHAIN_DECAY;
    case GB_OP_SCALE_ROWS:
        return CHAIN_SCALE_ROWS;
    case GB_OP_COMBINE_EXPERTS:
        return CHAIN_COMBINE;
    case GB_OP_ROPE:
        return CHAIN_ROTATE;
    default:
        return CHAIN_NORM;
    }
}

static void set_weight(chain_op *op, const gb_cuda_tensor *weight) {
    op->norm.weight = weight->data;
    op->norm.dtype = weight->dtype;
}

/* What the op has beside rows. */
static void set_constants(chain_op *op, const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0];
    switch (op->kind) {
    case CHAIN_NORM:
        op->norm = normalization_of(call);
        break;
    case CHAIN_ADD_BIAS:
    case CHAIN_SCALE:
        set_weight(op, call->operands[1]);
        break;
    case CHAIN_SCALE_COLUMNS:
        set_weight(op, call->operands[1]);
        op->size = (unsigned)(x->dims[1] / call->operands[1]->dims[0]);
        break;
    case CHAIN_ADD_EXPERT_BIAS:
        set_weight(op, call->operands[1]);
        op->indices = data_of<const int32_t>(call->operands[2]);
        op->count = (unsigned)x->dims[1];
        op->size = (unsigned)x->dims[2];
        break;
    case CHAIN_CLAMPED_SWIGLU:
        op->scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_ALPHA);
        op->limit = (float)gb_node_float(call->node, GB_ATTRIBUTE_LIMIT);
        break;
    case CHAIN_DECAY:
        set_weight(op, call->operands[1]);
        op->bias = call->operands[2]->data;
        op->bias_dtype = call->operands[2]->dtype;
        break;
    case CHAIN_COMBINE:
        op->count = (unsigned)x->dims[1];
        break;
    case CHAIN_ROTATE:
        set_weight(op, call->operands[2]);
        op->indices = data_of<const int32_t>(call->operands[1]);
        op->count = (unsigned)call->operands[2]->dims[0];
        op->size = (unsigned)x->dims[2];
        op->pair_offset = (unsigned)gb_node_int(call->node, GB_ATTRIBUTE_PAIR_OFFSET);
        op->start = (int32_t)gb_node_int(call->node, GB_ATTRIBUTE_START);
        op->scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
        break;
    default:
        break;
    }
}

/* Both operands are rows. */
static bool has_two_operands(chain_kind kind) {
    return has_two_rows(kind) || kind == CHAIN_SCALE_ROWS || kind == CHAIN_COMBINE;
}

static void add_op(chain_builder *b, const gb_cuda_call *call, bool is_live) {
    const gb_cuda_tensor *y = call->results[0];
    int producers[2] = {-1, -1};
    chain_op op = {};
    op.kind = kind_of(call->node->op);
    if (op.kind == CHAIN_COPY) { /* as a view of its operand, which is then copied */
        chain_builder aside = *b;
        view_slice(&aside, call);
        op.a = view_of(aside, y, &producers[0]);
    } else {
        op.a = view_of(*b, call->operands[0], &producers[0]);
    }
    op.width = row_width(y);
    if (has_two_operands(op.kind))
        op.b = view_of(*b, call->operands[1], &producers[1]);
    set_constants(&op, call);
    op.offset = -1;
    const unsigned room = b->chain.columns ? b->chain.columns : op.width;
    if (b->shared + room <= MOST_SHARED) {
        op.offset = (int)b->shared;
        b->shared += room;
    }
    op.stored = is_live || op.offset < 0 ? data_of<float>(y) : nullptr;
    op.waits = must_wait(*b, op, op.a, producers[0]) || must_wait(*b, op, op.b, producers[1]);
    if (call->epilogue) {
        op.prepared = gb_cuda_epilogue_rows(call);
        op.prepared_columns = (unsigned)gb_cuda_epilogue_columns(call);
    }
    row_view view = {};
    view.data = op.offset < 0 ? op.stored : nullptr;
    view.stride = op.offset < 0 ? op.width : 0;
    view.offset = op.offset < 0 ? 0 : (unsigned)op.offset;
    note_produced(b, y, view, (int)b->chain.count);
    b->chain.ops[b->chain.count++] = op;
}

/* The size of the heads that an op works on by themselves, or 0. */
static unsigned head_size(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0];
    const chain_kind kind = kind_of(call->node->op);
    const bool has_heads = x->rank > 2 && (kind == CHAIN_NORM || kind == CHAIN_ROTATE || kind == CHAIN_COPY);
    return has_heads ? (unsigned)call->results[0]->dims[2] : 0;
}

static bool is_produced_before(const gb_cuda_call *const *calls, unsigned i, const gb_cuda_tensor *x) {
    for (unsigned j = 0; x && j < i; j++)
        if (calls[j]->results[0]->data == x->data)
            return true;
    return false;
}

/* Whether the call is a slice of what the chain computes. */
static bool is_inner_slice(const gb_cuda_call *const *calls, unsigned i) {
    return calls[i]->node->op == GB_OP_SLICE && is_produced_before(calls, i, calls[i]->operands[0]);
}

/* Columns of a row that a block can have: heads where every op is of heads of one size, or parts of wide rows
 * where every op is of single elements; 0: all. */
static unsigned columns_of_block(const gb_cuda_call *const *calls, unsigned count) {
    const unsigned width = row_width(calls[count - 1]->results[0]), head = head_size(calls[count - 1]);
    bool by_heads = head > 0, by_parts = width >= 2 * SHARED_COLUMNS;
    for (unsigned i = 0; i < count; i++) {
        const gb_cuda_call *call = calls[i];
        const chain_kind kind = kind_of(call->node->op);
        const bool is_whole = !is_inner_slice(calls, i);
        by_heads = by_heads && head_size(call) == head && is_whole && !call->epilogue;
        by_parts = by_parts && kind <= CHAIN_COPY && row_width(call->results[0]) == width && is_whole &&
                   (!call->epilogue || gb_cuda_epilogue_columns(call) % UNIT == 0);
    }
    return by_heads ? head : by_parts ? (unsigned)SHARED_COLUMNS : 0;
}

static unsigned blocks_of_row(const gb_cuda_call *const *calls, unsigned count, unsigned columns) {
    unsigned widest = 0;
    for (unsigned i = 0; i < count; i++) {
        const unsigned width = row_width(calls[i]->results[0]);
        widest = width > widest ? width : widest;
    }
    return columns ? blocks_for(widest, columns) : 1;
}

static unsigned threads_for(const row_chain &chain) {
    if (chain.columns)
        return chain.columns < SHARED_COLUMNS ? 2 * WARP : SHARED_COLUMNS / BATCH;
    unsigned most = 2 * WARP;
    for (unsigned i = 0; i < chain.count; i++) {
        const chain_op &op = chain.ops[i];
        const bool by_warps = op.kind == CHAIN_NORM && op.norm.size <= LONGEST_WARP_ROW;
        const unsigned threads = by_warps ? op.width / (unsigned)op.norm.size * WARP : op.width;
        most = threads > most ? threads : most;
    }
    most = (most + WARP - 1) / WARP * WARP;
    return most < NORM_THREADS ? most : (unsigned)NORM_THREADS;
}

static chain_builder chain_of(const gb_cuda_problem *problem, unsigned columns) {
    const gb_cuda_call *const *calls = problem->parts;
    chain_builder b = {};
    b.calls = calls;
    b.chain.columns = columns;
    for (unsigned i = 0; i < problem->count; i++) {
        const bool is_live = gb_cuda_is_live(problem, i);
        if (is_live || calls[i]->node->op != GB_OP_SLICE || !view_slice(&b, calls[i]))
            add_op(&b, calls[i], is_live);
    }
    return b;
}

/* One op has a kernel of its own; norms of whole rows are quicker as a chain, also alone. */
bool gb_cuda_supports_rows(const gb_cuda_problem *problem) {
    const gb_cuda_call *first = problem->parts[0];
    return problem->count > 1 || (first->node->op == GB_OP_RMS_NORM && first->operands[0]->rank == 2);
}

static unsigned rows_of(const gb_cuda_problem *problem) {
    return (unsigned)problem->parts[0]->results[0]->dims[0];
}

static bool describe_elements(const gb_cuda_problem *problem) {
    const gb_cuda_call *const *calls = problem->parts;
    for (unsigned i = 0; i < problem->count; i++)
        if (calls[i]->epilogue || is_inner_slice(calls, i))
            return false;
    return gb_cuda_element_chain(chain_of(problem, ELEMENT_COLUMNS).chain, rows_of(problem),
                                 calls[0]->launches);
}

void gb_cuda_row_chain(const gb_cuda_problem *problem) {
    const gb_cuda_call *const *calls = problem->parts;
    if (describe_elements(problem))
        return;
    const chain_builder b = chain_of(problem, columns_of_block(calls, problem->count));
    const dim3 grid(rows_of(problem), blocks_of_row(calls, problem->count, b.chain.columns));
    add_launch(calls[0]->launches, "row_chain", run_row_chain, grid, threads_for(b.chain),
               b.shared * sizeof(float), b.chain);
}
