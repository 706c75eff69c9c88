/* SPDX-License-Identifier: Apache-2.0
 *
 * The gates of generated tokens: an activation's values times others, of one tensor or of two side by side. A
 * warp has a group of columns of the product's row and rounds it to bytes in registers. Functions are those
 * of row_chain.cu, and so are the bits.
 */
#include "run/cuda/device/row_chain.cuh"

using namespace gb_cuda;

enum { MOST_GATES = 2, THREADS = 2 * WARP, MOST_GRID_Y = 65535 };

/* y = activation(x) * other. Rows of the ops are cut into those of the product, which all blocks along the
 * grid's second dim count. */
struct gate {
    row_view x, other;
    float *kept; /* [rows, parts * columns], or NULL */
    prepared_rows prepared;
    unsigned columns, parts;
};

struct gate_chain {
    gate gates[MOST_GATES];
    unsigned rows;
};

template <chain_kind KIND>
__device__ static float activation(float x) {
    return KIND == CHAIN_GELU ? gelu_tanh(x) : KIND == CHAIN_SILU ? silu(x) : sigmoid(x);
}

template <int EACH>
__device__ static void load_columns(const row_view &view, unsigned row, unsigned column, float v[EACH]) {
    const float *from = view.data + row * view.stride + place_of(view, column);
#pragma unroll
    for (int i = 0; i < EACH; i += 2) {
        const float2 two = *reinterpret_cast<const float2 *>(from + i);
        v[i] = two.x, v[i + 1] = two.y;
    }
}

template <chain_kind KIND, int EACH>
static __global__ void __launch_bounds__(THREADS) run_gate_chain(GB_GRID_CONSTANT gate_chain c) {
    let_next_begin();
    const gate &g = c.gates[blockIdx.z];
    const unsigned column = (blockIdx.x * THREADS + threadIdx.x) * EACH, number = blockIdx.y;
    const unsigned row = number / g.parts, part = number % g.parts;
    const bool is_there = row < c.rows && column < g.columns;
    float x[EACH] = {}, other[EACH] = {};
    wait_for_earlier();
    if (is_there) {
        load_columns<EACH>(g.x, row, part * g.columns + column, x);
        load_columns<EACH>(g.other, row, part * g.columns + column, other);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            x[i] = activation<KIND>(x[i]) * other[i];
    }
    if (g.prepared.values && row < c.rows)
        store_in_bytes<EACH>(g.prepared, number, column, x);
    float *to = g.kept + (size_t)number * g.columns + column;
    if (g.kept && is_there)
#pragma unroll
        for (int i = 0; i < EACH; i += 2)
            *reinterpret_cast<float2 *>(to + i) = float2{x[i], x[i + 1]};
}

/* ---- Finding it in a chain ----------------------------------------------------------------------------- */

static bool is_activation(const chain_op &op) {
    return op.kind == CHAIN_GELU || op.kind == CHAIN_SILU || op.kind == CHAIN_SIGMOID;
}

/* A thread's columns lie side by side, and can be loaded by two. */
static bool is_loadable(const row_view &view) {
    return (uintptr_t)view.data % 8 == 0 && view.stride % 2 == 0 && view.inner % 4 == 0 &&
           view.outer % 2 == 0;
}

/* Ops k and k + 1 as a gate. */
static bool take_gate(gate *g, const row_chain &chain, unsigned k) {
    const chain_op &first = chain.ops[k], &last = chain.ops[k + 1];
    if (!is_activation(first) || last.kind != CHAIN_MULTIPLY || first.kept || first.prepared.values)
        return false;
    const bool is_left = is_result(last.a, first);
    if (!is_left && !is_result(last.b, first))
        return false;
    g->x = first.a;
    g->other = is_left ? last.b : last.a;
    g->kept = last.kept;
    g->prepared = last.prepared;
    g->columns = last.prepared.values ? last.prepared_columns : last.width;
    g->parts = last.width / g->columns;
    return is_made_before(chain, k, g->x) && is_made_before(chain, k + 1, g->other) && is_loadable(g->x) &&
           is_loadable(g->other) && (uintptr_t)g->kept % 8 == 0 && g->columns % 2 == 0;
}

/* Columns of a thread: a warp has a group of the product's. 0: it cannot have it. */
static unsigned columns_of_thread(const gate &g) {
    if (!g.prepared.values)
        return 2;
    const bool is_warps =
        (g.prepared.group == 64 || g.prepared.group == 128) && g.columns % g.prepared.group == 0;
    return is_warps ? (unsigned)g.prepared.group / WARP : 0;
}

template <chain_kind KIND>
static void launch(const gate_chain &c, unsigned count, unsigned each, cudaStream_t stream) {
    dim3 grid(1, 1, count);
    for (unsigned i = 0; i < count; i++) {
        const gate &g = c.gates[i];
        const unsigned blocks = blocks_for(g.columns, THREADS * each), rows = c.rows * g.parts;
        grid.x = blocks > grid.x ? blocks : grid.x;
        grid.y = rows > grid.y ? rows : grid.y;
    }
    auto kernel = each == 2 ? run_gate_chain<KIND, 2> : run_gate_chain<KIND, 4>;
    GB_LAUNCH(kernel, grid, THREADS, 0, stream, c);
}

bool gb_cuda_gate_chain(const row_chain &chain, unsigned rows, cudaStream_t stream) {
    gate_chain c = {};
    const unsigned count = chain.count / 2;
    if (chain.count % 2 || count > MOST_GATES)
        return false;
    c.rows = rows;
    unsigned each = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!take_gate(&c.gates[i], chain, 2 * i) || chain.ops[2 * i].kind != chain.ops[0].kind)
            return false;
        const unsigned of_this = columns_of_thread(c.gates[i]);
        if (of_this == 0 || (i > 0 && of_this != each) || c.gates[i].columns % of_this)
            return false;
        each = of_this;
        if ((size_t)rows * c.gates[i].parts > MOST_GRID_Y)
            return false;
    }
    if (chain.ops[0].kind == CHAIN_GELU)
        launch<CHAIN_GELU>(c, count, each, stream);
    else if (chain.ops[0].kind == CHAIN_SILU)
        launch<CHAIN_SILU>(c, count, each, stream);
    else
        launch<CHAIN_SIGMOID>(c, count, each, stream);
    return true;
}
