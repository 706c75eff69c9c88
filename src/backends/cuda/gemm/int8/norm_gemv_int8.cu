/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms around a residual fused with the GEMV of their result in 8 bits, for one token. Every block computes
 * and rounds the whole row while its first weights are in flight. The bits are those of norm_chain.cu and of
 * the other kernels of exact sums.
 */
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/gemm/int8/row_launch.cuh"
#include "backends/cuda/norm/product_row.cuh"

using namespace gb_cuda;

static_assert(PRODUCT_ROW_ROUNDS * ROW_TURNS * INT8_FRAGMENTS * WARP * 8 >= (int)GB_CUDA_MOST_NORM_COLUMNS &&
                  PRODUCT_ROW_ROUNDS * ROW_TURNS * INT8_FRAGMENTS >= WARP,
              "the warps have the row");

struct norm_gemv_int8 {
    norm_chain chain;
    int8_row_products products;
    unsigned warps; /* that threads_of_row has */
};

/* Grid: [runs of the blocks of all tiles]. */
template <int GROUP, int EACH, typename Element>
static __global__ void __launch_bounds__(int8_row_gemv<GROUP>::THREADS, 1)
    run_norm_gemv_int8(GB_GRID_CONSTANT norm_gemv_int8 p) {
    typedef int8_row_gemv<GROUP> gemv;
    GB_DYNAMIC_SHARED(uint8_t, shared);
    __shared__ row_barriers barriers;
    __shared__ uint32_t largest[gemv::WARPS];
    __shared__ float scale, partial[2][WARP];
    gemv row(p.products, shared, barriers, scale);
    row.create_barriers();
    if (row.copies())
        return row.copy_weights();
    row.multiply_all([&] {
        const product_row<gemv, gemv::WARPS> block = {row, p.warps};
        row_part<EACH> parts[PRODUCT_ROW_ROUNDS];
        run_chain_row<EACH, Element>(p.chain, 0, block, row_share{blockIdx.x, gridDim.x}, partial, parts);
        row.template round_row<EACH, PRODUCT_ROW_ROUNDS>(parts, largest);
    });
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

template <int GROUP, int EACH>
static void launch(norm_gemv_int8 &p, gb_cuda_launch_list *launches) {
    const row_launch launch = row_launch_of<GROUP>(p.products);
    const auto kernel = has_dtypes(p.chain, GB_BF16) ? run_norm_gemv_int8<GROUP, EACH, uint16_t>
                                                     : run_norm_gemv_int8<GROUP, EACH, float>;
    p.products = launch.products;
    add_launch(launches, "norm_gemv_int8", kernel, launch.grid, (int8_row_gemv<GROUP>::THREADS),
               launch.shared_bytes, p);
}

/* A block of the rotation lies in one warp. */
bool gb_cuda_supports_norm_gemv_int8(const gb_cuda_problem *problem) {
    const gb_cuda_call *const *products = problem->parts + GB_NORMS_PARTS;
    const norm_chain c = gb_cuda_norm_chain_of(problem);
    return can_launch(c) && c.width <= GB_CUDA_MOST_NORM_COLUMNS &&
           supports_int8_row(products, problem->count - GB_NORMS_PARTS) &&
           c.width == products[0]->operands[1]->dims[1] &&
           gb_node_int(products[0]->node, GB_ATTRIBUTE_ROTATION) <= (int64_t)WARP * norm_piece(c.width);
}

void gb_cuda_norm_gemv_int8(const gb_cuda_problem *problem) {
    const gb_cuda_call *const *products = problem->parts + GB_NORMS_PARTS;
    norm_gemv_int8 p = {};
    p.chain = gb_cuda_norm_chain_of(problem);
    p.chain.prepared = {};
    p.warps = threads_of_row(p.chain.width) / WARP;
    p.products = int8_row_products_of(products, problem->count - GB_NORMS_PARTS);
    dispatch([&](auto group, auto each) { launch<group, each>(p, products[0]->launches); },
             one_of<32, 64, 128>(products[0]->operands[1]->format.group),
             one_of<4, 8>(norm_piece(p.chain.width)));
}
