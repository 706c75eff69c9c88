/* SPDX-License-Identifier: Apache-2.0
 *
 * Gated values, an activation times another tensor or the halves of one (gate_values.cuh), whose next product
 * takes no bfloat16 rows. A warp has whole groups of columns and quantizes them in registers for it; where
 * rows are rounded as a whole, a block of threads has one, or a cluster of blocks. The bits are those of
 * row_chain.cu.
 */
#include "backends/cuda/exchange/round_for_ranks.cuh"
#include "backends/cuda/norm/gate_values.cuh"

using namespace gb_cuda;

enum {
    THREADS = 2 * WARP,
    MOST_GRID_Y = 65535,
    FEW_ROWS = GB_CUDA_MOST_FEW_ROWS, /* which need many blocks */
    WIDE = 4096,                      /* columns */
    ROW_PARTS = 3,                    /* of LANE_COLUMNS, that a thread has of a row that a block has */
    MANY_PARTS = 6, /* the same of more rows than multiprocessors: fewer threads compute what a row needs as a
                     * whole, and two blocks have room */
    MANY_THREADS = 14 * WARP
};

/* y = activation(x) * other. Rows of the ops are cut into those of the product, which all blocks along the
 * grid's second dim count. */
struct gate {
    row_view x, other;
    float *stored; /* [rows, parts * columns], or NULL */
    prepared_rows prepared;
    unsigned columns, parts;
    clamped_gate clamped;
};

struct gate_chain {
    gate of;
    row_rounding rounded; /* instead of prepared */
    unsigned rows;
    bool shares_device; /* ranks that exchange the largest of rows do */
};

template <int EACH>
__device__ static void load_columns(const row_view &view, unsigned row, unsigned column, float v[EACH]) {
    const float *from = view.data + row * view.stride + place_of(view, column);
#pragma unroll
    for (int i = 0; i < EACH; i += 2) {
        const float2 two = *reinterpret_cast<const float2 *>(from + i);
        v[i] = two.x, v[i + 1] = two.y;
    }
}

/* Grid: [blocks of columns, rows of the product]. */
template <chain_kind KIND, int EACH>
static __global__ void __launch_bounds__(THREADS) run_gate_chain(GB_GRID_CONSTANT gate_chain c) {
    let_next_begin();
    const gate &g = c.of;
    const unsigned column = (blockIdx.x * THREADS + threadIdx.x) * EACH, number = blockIdx.y;
    const unsigned row = number / g.parts, part = number % g.parts;
    const bool is_there = row < c.rows && column < g.columns;
    float x[EACH] = {}, other[EACH] = {};
    wait_for_earlier();
    if (is_there) {
        load_columns<EACH>(g.x, row, part * g.columns + column, x);
        if (has_other<KIND>())
            load_columns<EACH>(g.other, row, part * g.columns + column, other);
        add_biases<KIND, EACH>(g.clamped, number, g.columns, column, x, other);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            x[i] = gate_value<KIND>(g.clamped, x[i], other[i]);
    }
    if (g.prepared.values && row < c.rows)
        store_in_bytes<EACH>(g.prepared, number, column, x);
    if (!is_there || !g.stored)
        return;
    float *to = g.stored + (size_t)number * g.columns + column;
#pragma unroll
    for (int i = 0; i < EACH; i += 2)
        *reinterpret_cast<float2 *>(to + i) = float2{x[i], x[i + 1]};
}

/* What a thread has of a row of the product, PARTS parts of it. */
template <chain_kind KIND, int PARTS, int SHARES>
__device__ static void compute_parts(const gate &g, unsigned number, row_part<LANE_COLUMNS> x[PARTS]) {
    const unsigned row = number / g.parts, first = number % g.parts * g.columns;
#pragma unroll
    for (unsigned i = 0; i < PARTS; i++) {
        const unsigned column = part_column<LANE_COLUMNS, SHARES>(i);
        row_part<LANE_COLUMNS> other = {};
        if (column >= g.columns)
            continue;
        x[i].load(g.x.data + row * g.x.stride, place_of(g.x, first + column));
        if (has_other<KIND>())
            other.load(g.other.data + row * g.other.stride, place_of(g.other, first + column));
        add_biases<KIND, LANE_COLUMNS>(g.clamped, number, g.columns, column, x[i].v, other.v);
#pragma unroll
        for (unsigned j = 0; j < LANE_COLUMNS; j++)
            x[i].v[j] = gate_value<KIND>(g.clamped, x[i].v[j], other.v[j]);
        if (g.stored)
            x[i].store(g.stored + (size_t)number * g.columns, column);
    }
}

/* Grid: [rows of the product, shares of each]. */
template <chain_kind KIND, int PARTS, int SHARES>
static __global__ void __launch_bounds__(PARTS == MANY_PARTS ? MANY_THREADS : ROUND_WARPS * WARP,
                                         PARTS == MANY_PARTS ? 2 : 1)
    run_gate_rows(GB_GRID_CONSTANT gate_chain c) {
    const unsigned number = blockIdx.x / SHARES;
    row_part<LANE_COLUMNS> x[PARTS] = {};
    let_next_begin();
    arrive_in_cluster();
    wait_for_earlier();
    compute_parts<KIND, PARTS, SHARES>(c.of, number, x);
    round_parts<LANE_COLUMNS, PARTS, SHARES>(c.rounded, number, c.of.columns, x, true,
                                             blockIdx.x % SHARES == 0);
}

/* The same of a rank's columns. Grid: [rows, shares of each], or fewer blocks, each of several rows. */
template <chain_kind KIND, int SHARES>
static __global__ void __launch_bounds__(ROUND_WARPS *WARP)
    run_gate_rows_for_ranks(GB_GRID_CONSTANT gate_chain c) {
    constexpr int PARTS = SHARES > 1 ? 1 : ROW_PARTS;
    arrive_in_cluster();
    wait_alone();
    if (!c.shares_device)
        let_next_begin();
    rank_rounding<LANE_COLUMNS, PARTS, SHARES> rows(c.rounded, c.of.columns);
    for (unsigned number = blockIdx.x / SHARES; number < c.rows * c.of.parts; number += gridDim.x / SHARES) {
        row_part<LANE_COLUMNS> x[PARTS] = {};
        compute_parts<KIND, PARTS, SHARES>(c.of, number, x);
        rows.add(number, x);
    }
    rows.end();
}

/* ---- From a step to a gate ----------------------------------------------------------------------------- */

/* A thread's columns lie side by side, and can be loaded by two. */
static bool is_loadable(const row_view &view) {
    return (uintptr_t)view.data % 8 == 0 && view.stride % 2 == 0 && view.inner % 4 == 0 &&
           view.outer % 2 == 0;
}

static row_view operand_view(const gb_cuda_tensor *x, const gb_cuda_call *slice) {
    const row_view view = view_of_rows(x);
    return slice ? slice_of(view, slice) : view;
}

static unsigned columns_of(const gb_cuda_tensor *tensor) {
    return (unsigned)tensor->dims[tensor->rank - 1];
}

static gate_chain chain_of(const gb_cuda_problem *problem) {
    const gb_cuda_call *last = problem->parts[GB_GATED_RESULT];
    const unsigned width = row_width(last->results[0]);
    gate_chain c = {};
    gate &g = c.of;
    c.rows = (unsigned)last->results[0]->dims[0];
    g.x = operand_view(problem->operands[GB_GATED_X], problem->parts[GB_GATED_X_SLICE]);
    g.other = g.x;
    if (last->node->op != GB_OP_RELU_SQUARED)
        g.other = operand_view(problem->operands[GB_GATED_OTHER], problem->parts[GB_GATED_OTHER_SLICE]);
    g.clamped = clamped_of(problem);
    g.stored = gb_cuda_is_live(problem, GB_GATED_RESULT) ? data_of<float>(last->results[0]) : nullptr;
    g.prepared = gb_cuda_epilogue_rows(last);
    c.rounded = gb_cuda_epilogue_rounding(last);
    c.shares_device = c.rounded.ranks && last->scratch->exchange->shares_device;
    const bool is_prepared = g.prepared.is_there() || c.rounded.is_there();
    g.columns = last->rounds_for_ranks ? columns_of(last->results[0])
                : is_prepared          ? (unsigned)gb_cuda_epilogue_columns(last)
                : has_biases(problem)  ? columns_of(last->results[0])
                                       : width;
    g.parts = width / g.columns;
    return c;
}

/* Columns of a thread: a warp has one or two groups of the product's. 0: it cannot have them. */
static unsigned columns_of_thread(const gate_chain &c) {
    const gate &g = c.of;
    const size_t group = g.prepared.group;
    if (!g.prepared.is_there())
        return c.rows > FEW_ROWS && g.columns % 4 == 0 ? 4 : 2;
    const bool is_warps = (group == 32 || group == 64 || group == 128) && g.columns % group == 0;
    return !is_warps ? 0 : group == 128 ? 4 : 2;
}

/* Whether rows are rounded by blocks that have them whole. */
static bool rounds_rows(const gate_chain &c) {
    return c.rounded.is_there() &&
           c.of.columns % (c.rounded.ranks ? (unsigned)INT8_BLOCK : (unsigned)LANE_COLUMNS) == 0 &&
           c.of.columns <= (unsigned)ROW_PARTS * ROUND_WARPS * WARP_COLUMNS &&
           (c.rounded.rotation == 0 || c.of.columns % c.rounded.rotation == 0) &&
           is_loadable_by_four(c.of.x, LANE_COLUMNS) && is_loadable_by_four(c.of.other, LANE_COLUMNS) &&
           (uintptr_t)c.of.stored % 16 == 0;
}

static unsigned shares_of(const gate_chain &c) {
    return shares_of_rows((size_t)c.rows * c.of.parts, c.of.columns);
}

/* Parts of a row that a thread has: few rows leave the device to more threads, which are done sooner; of many
 * that are wide each thread has more, because narrow ones leave room for other blocks anyway. */
static unsigned parts_of_thread(const gate_chain &c) {
    if (!are_many_rows(c.rows * c.of.parts))
        return c.of.columns <= (unsigned)ROUND_WARPS * WARP_COLUMNS ? 1 : ROW_PARTS;
    return c.of.columns >= WIDE && c.of.columns <= (unsigned)MANY_PARTS * MANY_THREADS * LANE_COLUMNS
               ? MANY_PARTS
               : ROW_PARTS;
}

template <chain_kind KIND>
static void launch_rows(const gate_chain &c, const gb_cuda_call *call) {
    const gb_cuda_exchange *e = c.rounded.ranks ? call->scratch->exchange : nullptr;
    const unsigned rows = c.rows * c.of.parts, shares = gb_cuda_row_shares(e, rows, shares_of(c)),
                   parts = e ? (unsigned)ROW_PARTS : parts_of_thread(c),
                   of_thread = shares > 1 ? shares : parts,
                   threads = blocks_for(c.of.columns, (size_t)of_thread * WARP_COLUMNS) * WARP,
                   blocks = rows * shares;
    if (e)
        add_clusters(call->launches, shares, "gate_rows_for_ranks",
                     shares > 1 ? run_gate_rows_for_ranks<KIND, ROW_SHARES>
                                : run_gate_rows_for_ranks<KIND, 1>,
                     blocks < e->row_blocks ? blocks : e->row_blocks, threads, 0, c);
    else
        add_clusters(call->launches, shares, "gate_rows",
                     shares > 1            ? run_gate_rows<KIND, 1, ROW_SHARES>
                     : parts == 1          ? run_gate_rows<KIND, 1, 1>
                     : parts == MANY_PARTS ? run_gate_rows<KIND, MANY_PARTS, 1>
                                           : run_gate_rows<KIND, ROW_PARTS, 1>,
                     blocks, threads, 0, c);
}

template <chain_kind KIND>
static void launch(const gate_chain &c, const gb_cuda_call *call) {
    if (rounds_rows(c))
        return launch_rows<KIND>(c, call);
    const unsigned each = columns_of_thread(c);
    const dim3 grid(blocks_for(c.of.columns, THREADS * each), c.rows * c.of.parts);
    auto kernel = each == 2 ? run_gate_chain<KIND, 2> : run_gate_chain<KIND, 4>;
    add_launch(call->launches, "gate_chain", kernel, grid, THREADS, 0, c);
}

/* Of the grid along y; rounded rows lie along x. */
static size_t grid_rows(const gate_chain &c) {
    return rounds_rows(c) ? c.rows : (size_t)c.rows * c.of.parts;
}

bool gb_cuda_supports_gated(const gb_cuda_problem *problem) {
    const gate_chain c = chain_of(problem);
    const unsigned each = columns_of_thread(c);
    return each > 0 && c.of.columns % each == 0 && c.of.columns % 2 == 0 && grid_rows(c) <= MOST_GRID_Y &&
           (!has_biases(problem) ||
            c.of.columns == columns_of(problem->parts[GB_GATED_RESULT]->results[0])) &&
           is_loadable(c.of.clamped.x) && is_loadable(c.of.clamped.other) && is_loadable(c.of.x) &&
           is_loadable(c.of.other) && (uintptr_t)c.of.stored % 8 == 0;
}

/* A block of threads takes long for a wide row: only where it is shared out, or there are so many that a
 * launch of their own, which reads them again, takes longer. */
bool gb_cuda_gated_has_epilogue(const gb_cuda_problem *problem) {
    const gate_chain c = chain_of(problem);
    const bool is_soon = c.of.columns <= WIDE || shares_of(c) > 1 || c.rows > FEW_ROWS;
    return gb_cuda_is_epilogue_of(problem, GB_GATED_RESULT) &&
           (!c.rounded.is_there() || (is_soon && rounds_rows(c)));
}

void gb_cuda_gate_chain(const gb_cuda_problem *problem) {
    const gb_cuda_call *last = problem->parts[GB_GATED_RESULT],
                       *activation = problem->parts[GB_GATED_ACTIVATION];
    const gate_chain c = chain_of(problem);
    switch ((activation ? activation : last)->node->op) {
    case GB_OP_GELU_TANH:
        return launch<CHAIN_GELU>(c, last);
    case GB_OP_SILU:
        return launch<CHAIN_SILU>(c, last);
    case GB_OP_CLAMPED_SWIGLU:
        return launch<CHAIN_CLAMPED_SWIGLU>(c, last);
    case GB_OP_RELU_SQUARED:
        return launch<CHAIN_RELU_SQUARED>(c, last);
    default:
        return launch<CHAIN_SIGMOID>(c, last);
    }
}
