/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of the chains of norm_chain.cuh.
 */
#include "backends/cuda/norm/norm_chain.cuh"

#include "backends/cuda/gemm/int8/round_parts.cuh"

using namespace gb_cuda;

enum { MANY_ROUNDS = 2 };

/* Grid: [rows, blocks that share a row]. */
template <int EACH, typename Element>
static __global__ void __launch_bounds__(NORM_THREADS) run_norm_chain(GB_GRID_CONSTANT norm_chain c) {
    GB_DYNAMIC_SHARED(float, shared);
    __shared__ float partial[2][WARP];
    let_next_begin();
    const row_share share = {blockIdx.y, gridDim.y};
    const row_part<EACH> row = run_whole_row<EACH, Element>(c, blockIdx.x, share, partial, shared);
    if (c.rounded.is_there())
        round_parts<EACH, 1>(c.rounded, blockIdx.x, c.width, &row,
                             share.is_mine(threadIdx.x / WARP, blockDim.x / WARP), share.block == 0);
}

/* The same of many rows: with fewer threads, what all of them compute of a row is computed less often.
 * warps: that have a row in one round. Grid: rows. */
template <int EACH, typename Element>
static __global__ void __launch_bounds__(NORM_THREADS / MANY_ROUNDS)
    run_norm_rows(GB_GRID_CONSTANT norm_chain c, unsigned warps) {
    __shared__ float partial[2][WARP];
    let_next_begin();
    const row_in_rounds<MANY_ROUNDS> block = {warps};
    row_part<EACH> row[MANY_ROUNDS];
    run_chain_row<EACH, Element>(c, blockIdx.x, block, row_share{0, 1}, partial, row);
    if (c.rounded.is_there())
        round_parts<EACH, MANY_ROUNDS>(c.rounded, blockIdx.x, c.width, row, true, true);
}

/* ---- From a step to a chain ---------------------------------------------------------------------------- */

static float *stored_rows(const gb_cuda_problem *problem, uint32_t part) {
    return gb_cuda_is_live(problem, part) ? data_of<float>(problem->parts[part]->results[0]) : nullptr;
}

norm_chain gb_cuda_norm_chain_of(const gb_cuda_problem *problem) {
    const gb_cuda_call *const *parts = problem->parts;
    const gb_cuda_tensor *added = problem->operands[GB_NORMS_ADDED],
                         *scale = problem->operands[GB_NORMS_SCALE_FACTOR];
    norm_chain c = {};
    c.width = row_width(parts[GB_NORMS_LAST]->results[0]);
    c.x = data_of<const float>(problem->operands[GB_NORMS_X]);
    c.x_stride = c.added_stride = c.width;
    c.has_first = parts[GB_NORMS_FIRST] != nullptr;
    if (c.has_first)
        c.first = normalization_of(parts[GB_NORMS_FIRST]);
    c.added = data_or_null<const float>(added);
    c.scale = scale ? scale->data : nullptr;
    c.scale_dtype = scale ? scale->dtype : GB_F32;
    c.has_last = true;
    c.last = normalization_of(parts[GB_NORMS_LAST]);
    c.first_stored = stored_rows(problem, GB_NORMS_FIRST);
    c.added_stored = stored_rows(problem, GB_NORMS_ADD);
    c.scaled_stored = stored_rows(problem, GB_NORMS_SCALE);
    c.last_stored = stored_rows(problem, GB_NORMS_LAST);
    c.prepared = gb_cuda_epilogue_rows(parts[GB_NORMS_LAST]);
    c.rounded = gb_cuda_epilogue_rounding(parts[GB_NORMS_LAST]);
    return c;
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* Of many rows, unless they are prepared, which a block does that has a row in one round. */
static bool goes_in_rounds(const norm_chain &c, unsigned rows) {
    return are_many_rows(rows) && !c.prepared.is_there();
}

template <typename Element>
static void launch(const norm_chain &c, unsigned rows, gb_cuda_launch_list *launches) {
    if (goes_in_rounds(c, rows)) {
        auto of_many = norm_piece(c.width) == 4 ? run_norm_rows<4, Element> : run_norm_rows<8, Element>;
        const unsigned warps = threads_of_row(c.width) / WARP;
        return add_launch(launches, "norm_chain", of_many, rows, blocks_for(warps, MANY_ROUNDS) * WARP, 0, c,
                          warps);
    }
    auto kernel = norm_piece(c.width) == 4 ? run_norm_chain<4, Element> : run_norm_chain<8, Element>;
    const dim3 grid(rows, blocks_of_row(c.prepared, rows, c.width));
    add_launch(launches, "norm_chain", kernel, grid, threads_of_row(c.width),
               shared_of_row(c.prepared, c.width), c);
}

/* The chain, if the kernels can have it. */
static bool launch_chain(const norm_chain &c, unsigned rows, gb_cuda_launch_list *launches) {
    if (!can_launch(c))
        return false;
    if (has_dtypes(c, GB_BF16))
        launch<uint16_t>(c, rows, launches);
    else
        launch<float>(c, rows, launches);
    return true;
}

bool gb_cuda_supports_norms(const gb_cuda_problem *problem) {
    const gb_cuda_call *last = problem->parts[GB_NORMS_LAST];
    const norm_chain c = gb_cuda_norm_chain_of(problem);
    return can_launch(c) && (!c.prepared.is_there() || gb_cuda_epilogue_columns(last) == c.width);
}

/* A row that is rounded is the product's, and a block of its rotation lies in one warp. */
bool gb_cuda_norms_have_epilogue(const gb_cuda_problem *problem) {
    const gb_cuda_call *last = problem->parts[GB_NORMS_LAST];
    const norm_chain c = gb_cuda_norm_chain_of(problem);
    return gb_cuda_is_epilogue_of(problem, GB_NORMS_LAST) &&
           (!c.rounded.is_there() ||
            (gb_cuda_epilogue_columns(last) == c.width && c.rounded.rotation <= WARP * norm_piece(c.width)));
}

void gb_cuda_norm_chain(const gb_cuda_problem *problem) {
    const gb_cuda_call *last = problem->parts[GB_NORMS_LAST];
    launch_chain(gb_cuda_norm_chain_of(problem), (unsigned)last->results[0]->dims[0], last->launches);
}

bool gb_cuda_long_norm(const gb_cuda_call *call, const normalization &norm, const prepared_rows &prepared) {
    norm_chain c = {};
    c.x = data_of<const float>(call->operands[0]);
    c.x_stride = norm.size;
    c.width = (unsigned)norm.size;
    c.has_last = true;
    c.last = norm;
    c.last_stored = data_of<float>(call->results[0]);
    c.prepared = prepared;
    return launch_chain(c, (unsigned)(gb_cuda_elements(call->operands[0]) / norm.size), call->launches);
}
