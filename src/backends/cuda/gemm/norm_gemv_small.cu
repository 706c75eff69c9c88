/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms around a residual fused with the GEMV of their result by small matrices, such as a router, for a few
 * tokens. Every block computes a whole row, which is cheaper than exchanging it, and multiplies it by some
 * rows of weights, prefetched to registers; one more rounds it for another product. The bits are those of
 * norm_chain.cu and gemv_small.cu.
 */
#include "backends/cuda/gemm/gemv_small.cuh"
#include "backends/cuda/gemm/int8/round_parts.cuh"
#include "backends/cuda/norm/norm_chain.cuh"

using namespace gb_cuda;

enum { MOST_WIDTH = SMALL_FOURS * WARP * 4, THREADS = MOST_WIDTH / 4 };
static_assert((int)MOST_WIDTH == (int)GB_CUDA_MOST_SMALL_NORM_COLUMNS, "rows of a norm's products");

struct norm_gemv_small {
    norm_chain chain;
    dense_matrices products; /* of the chain's last result, all of one dtype */
    uint32_t outputs;        /* of a block: a warp's each */
    uint32_t blocks;         /* of all outputs; the next one rounds, where that is wanted */
};

/* The block's part of the products of row `number`: loads weights, has the row made, multiplies. */
template <gb_dtype DTYPE, typename MakeRow>
__device__ static void multiply_row(const norm_gemv_small &p, size_t number, float4 *x,
                                    const MakeRow &make_row) {
    uint32_t output;
    const dense_matrix &m = matrix_of_block(p.products, p.outputs, &output);
    const uint32_t warp = threadIdx.x / WARP, fours = p.products.columns / 4;
    output += warp;
    const bool has_output = warp < p.outputs && output < m.outputs;
    output_fours<DTYPE, SMALL_FOURS> weights;
    if (has_output)
        weights.load(static_cast<const weight_four<DTYPE> *>(m.weight) + (size_t)output * fours, 0, fours);
    const row_part<4> row = make_row();
    if (threadIdx.x < fours)
        row.store(reinterpret_cast<float *>(x), threadIdx.x * 4);
    __syncthreads();
    if (!has_output)
        return;
    const float sum = warp_sum(weights.multiply(x, 0, fours, 0.0f));
    if (threadIdx.x % WARP == 0)
        m.y[number * m.outputs + output] = sum;
}

/* Grid: [blocks of the matrices' outputs and one that rounds, rows]. */
template <typename Element, gb_dtype DTYPE>
static __global__ void __launch_bounds__(THREADS) run_norm_gemv_small(GB_GRID_CONSTANT norm_gemv_small p) {
    __shared__ float4 x[MOST_WIDTH / 4];
    __shared__ float partial[2][WARP];
    let_next_begin();
    const size_t number = blockIdx.y;
    const row_share share = {blockIdx.x, gridDim.x};
    const auto make_row = [&] { return run_whole_row<4, Element>(p.chain, number, share, partial, nullptr); };
    if (blockIdx.x < p.blocks)
        return multiply_row<DTYPE>(p, number, x, make_row);
    const row_part<4> row = make_row();
    round_parts<4, 1>(p.chain.rounded, number, p.chain.width, &row, true, true);
}

template <typename Element>
static void launch(const norm_gemv_small &p, gb_dtype dtype, gb_cuda_launch_list *launches) {
    auto kernel = run_norm_gemv_small<Element, GB_F32>;
    if (dtype == GB_BF16)
        kernel = run_norm_gemv_small<Element, GB_BF16>;
    else if (dtype == GB_F16)
        kernel = run_norm_gemv_small<Element, GB_F16>;
    const dim3 grid(p.blocks + (p.chain.rounded.is_there() ? 1 : 0), p.products.rows);
    add_launch(launches, "norm_gemv_small", kernel, grid, threads_of_row(p.chain.width), 0, p);
}

/* Rows that are prepared in bfloat16 are one block's. */
static bool is_supported(const norm_chain &c) {
    return can_launch(c) && c.width <= MOST_WIDTH && norm_piece(c.width) == 4 &&
           (!c.prepared.is_there() || c.prepared.group > 0);
}

/* The chain, whose last result is always stored, and the products behind it, SMALL_OUTPUTS outputs a block,
 * or more where rows alone keep multiprocessors busy. */
static norm_gemv_small norm_gemv_small_of(const gb_cuda_problem *problem) {
    const gb_cuda_call *const *products = problem->parts + GB_NORMS_PARTS;
    const uint32_t count = problem->count - GB_NORMS_PARTS;
    norm_gemv_small p = {};
    p.chain = gb_cuda_norm_chain_of(problem);
    p.chain.last_stored = data_of<float>(problem->parts[GB_NORMS_LAST]->results[0]);
    const uint32_t most = threads_of_row(p.chain.width) / WARP;
    p.outputs = SMALL_OUTPUTS;
    p.blocks = list_matrices(products, count, p.outputs, &p.products);
    while (p.outputs * 2 <= most && p.products.rows * p.blocks > gb_cuda_find_facts()->multiprocessors) {
        p.outputs *= 2;
        p.blocks = list_matrices(products, count, p.outputs, &p.products);
    }
    return p;
}

/* Whether a product is one of a few rows of the chain's width. */
static bool is_of_rows(const norm_chain &c, const gb_cuda_call *product) {
    const gb_cuda_tensor *x = product->operands[0];
    return gb_cuda_supports_gemv_small(product) && product->row_class <= GB_CUDA_FEW_ROWS && x->rank == 2 &&
           x->dims[1] == c.width;
}

/* At most a block a multiprocessor for one row: more would compute it again. */
static bool has_few_blocks(const gb_cuda_problem *problem) {
    dense_matrices all = {};
    return list_matrices(problem->parts + GB_NORMS_PARTS, problem->count - GB_NORMS_PARTS, SMALL_OUTPUTS,
                         &all) <= gb_cuda_find_facts()->multiprocessors;
}

bool gb_cuda_supports_norm_gemv_small(const gb_cuda_problem *problem) {
    const norm_chain c = gb_cuda_norm_chain_of(problem);
    const gb_dtype dtype = problem->parts[GB_NORMS_PARTS]->operands[1]->dtype;
    for (uint32_t i = GB_NORMS_PARTS; i < problem->count; i++)
        if (!is_of_rows(c, problem->parts[i]) || problem->parts[i]->operands[1]->dtype != dtype)
            return false;
    return gb_cuda_supports_norms(problem) && is_supported(c) && has_few_blocks(problem);
}

void gb_cuda_norm_gemv_small(const gb_cuda_problem *problem) {
    const gb_cuda_call *last = problem->parts[GB_NORMS_LAST];
    const gb_dtype dtype = problem->parts[GB_NORMS_PARTS]->operands[1]->dtype;
    const norm_gemv_small p = norm_gemv_small_of(problem);
    if (has_dtypes(p.chain, GB_BF16))
        launch<uint16_t>(p, dtype, last->launches);
    else
        launch<float>(p, dtype, last->launches);
}
