/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms around a residual fused with the GEMV of their result by small matrices, such as a router, for one
 * token. Every block computes the whole row, which is cheaper than exchanging it, and multiplies it by
 * SMALL_OUTPUTS rows of weights, prefetched to registers. The bits are those of norm_chain.cu and
 * gemv_small.cu.
 */
#include "backends/cuda/gemm/gemv_small.cuh"
#include "backends/cuda/norm/norm_chain.cuh"

using namespace gb_cuda;

enum { MOST_WIDTH = SMALL_FOURS * WARP * 4, THREADS = MOST_WIDTH / 4 };
static_assert((int)MOST_WIDTH == (int)GB_CUDA_MOST_SMALL_NORM_COLUMNS, "rows of a norm's products");

struct norm_gemv_small {
    norm_chain chain;
    dense_matrices products; /* of the chain's last result, all of one dtype */
};

/* Grid: [blocks of the matrices' outputs]. */
template <typename Element, gb_dtype DTYPE>
static __global__ void __launch_bounds__(THREADS) run_norm_gemv_small(GB_GRID_CONSTANT norm_gemv_small p) {
    __shared__ float4 x[MOST_WIDTH / 4];
    __shared__ float partial[2][WARP];
    let_next_begin();
    uint32_t output;
    const dense_matrix &m = matrix_of_block(p.products, SMALL_OUTPUTS, &output);
    const uint32_t warp = threadIdx.x / WARP, fours = p.products.columns / 4;
    output += warp;
    const bool has_output = warp < SMALL_OUTPUTS && output < m.outputs;
    output_fours<DTYPE, SMALL_FOURS> weights;
    if (has_output)
        weights.load(static_cast<const weight_four<DTYPE> *>(m.weight) + (size_t)output * fours, 0, fours);
    const row_share share = {blockIdx.x, gridDim.x};
    const row_part<4> row = run_whole_row<4, Element>(p.chain, 0, share, partial, nullptr);
    if (threadIdx.x < fours)
        row.store(reinterpret_cast<float *>(x), threadIdx.x * 4);
    __syncthreads();
    if (!has_output)
        return;
    const float sum = warp_sum(weights.multiply(x, 0, fours, 0.0f));
    if (threadIdx.x % WARP == 0)
        m.y[output] = sum;
}

template <typename Element>
static void launch(const norm_gemv_small &p, gb_dtype dtype, uint32_t blocks, gb_cuda_launch_list *launches) {
    auto kernel = run_norm_gemv_small<Element, GB_F32>;
    if (dtype == GB_BF16)
        kernel = run_norm_gemv_small<Element, GB_BF16>;
    else if (dtype == GB_F16)
        kernel = run_norm_gemv_small<Element, GB_F16>;
    add_launch(launches, "norm_gemv_small", kernel, blocks, threads_of_row(p.chain.width), 0, p);
}

/* Rows that are prepared in bfloat16 are one block's. */
static bool is_supported(const norm_chain &c) {
    return can_launch(c) && c.width <= MOST_WIDTH && norm_piece(c.width) == 4 &&
           (!c.prepared.is_there() || c.prepared.group > 0);
}

/* The chain, whose last result is always stored, and the products behind it; returns how many blocks they
 * take. */
static uint32_t list_products(const gb_cuda_problem *problem, norm_gemv_small *p) {
    p->chain = gb_cuda_norm_chain_of(problem);
    p->chain.last_stored = data_of<float>(problem->parts[GB_NORMS_LAST]->results[0]);
    return list_matrices(problem->parts + GB_NORMS_PARTS, problem->count - GB_NORMS_PARTS, SMALL_OUTPUTS,
                         &p->products);
}

/* Whether a product is one of a single row of the chain's width. */
static bool is_of_row(const norm_chain &c, const gb_cuda_call *product) {
    const gb_cuda_tensor *x = product->operands[0];
    return gb_cuda_supports_gemv_small(product) && x->rank == 2 && x->dims[0] == 1 && x->dims[1] == c.width;
}

bool gb_cuda_supports_norm_gemv_small(const gb_cuda_problem *problem) {
    norm_gemv_small p = {};
    const gb_dtype dtype = problem->parts[GB_NORMS_PARTS]->operands[1]->dtype;
    p.chain = gb_cuda_norm_chain_of(problem);
    for (uint32_t i = GB_NORMS_PARTS; i < problem->count; i++)
        if (!is_of_row(p.chain, problem->parts[i]) || problem->parts[i]->operands[1]->dtype != dtype)
            return false;
    /* at most a block a multiprocessor: more would compute the row again */
    return gb_cuda_supports_norms(problem) && is_supported(p.chain) &&
           list_products(problem, &p) <= gb_cuda_find_facts()->multiprocessors;
}

void gb_cuda_norm_gemv_small(const gb_cuda_problem *problem) {
    const gb_cuda_call *last = problem->parts[GB_NORMS_LAST];
    const gb_dtype dtype = problem->parts[GB_NORMS_PARTS]->operands[1]->dtype;
    norm_gemv_small p = {};
    const uint32_t blocks = list_products(problem, &p);
    if (has_dtypes(p.chain, GB_BF16))
        launch<uint16_t>(p, dtype, blocks, last->launches);
    else
        launch<float>(p, dtype, blocks, last->launches);
}
