/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms around a residual fused with the GEMV of their result by quantized matrices, for one token. Every
 * block computes the whole row in the shared memory from which it multiplies, while its first weights are in
 * flight: that saves a launch and an exchange of the row. The bits are those of norm_chain.cu and gemv.cu.
 */
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/gemm/gemv_launch.cuh"
#include "backends/cuda/gemm/gemv_one_row.cuh"
#include "backends/cuda/norm/product_row.cuh"

using namespace gb_cuda;

enum { ATOM_COLUMNS = 64 };
static_assert(PRODUCT_ROW_ROUNDS * WIDE_ROW_WARPS * WARP * 8 == (int)GB_CUDA_MOST_NORM_COLUMNS,
              "rows of a norm's products");
static_assert(PRODUCT_ROW_ROUNDS * NARROW_ROW_WARPS * WARP * 4 == (int)NARROW_COLUMNS,
              "rows of four columns a thread");

struct norm_gemv {
    norm_chain chain;
    gemv_products products;
    unsigned warps; /* that threads_of_row has */
};

/* Grid: [ranges of the blocks of all matrices]. */
template <typename Shape, int EACH, typename Element, int WARPS>
static __global__ void __launch_bounds__(gemv_one_row<Shape, WARPS>::THREADS, 1)
    run_norm_gemv(GB_GRID_CONSTANT norm_gemv p) {
    GB_DYNAMIC_SHARED(uint8_t, shared);
    __shared__ gemv_barriers barriers;
    __shared__ float partial[2][WARP];
    gemv_one_row<Shape, WARPS> row(p.products, shared, barriers);
    row.create_barriers();
    if (row.warp == row.COPYING) {
        row.copy_weights();
        return;
    }
    if (row.warp > row.COPYING) {
        row.add_blocks();
        return;
    }
    row.multiply_blocks([&] {
        const product_row<gemv_one_row<Shape, WARPS>, WARPS> block = {row, p.warps};
        const row_share share = {blockIdx.x, gridDim.x};
        row_part<EACH> parts[PRODUCT_ROW_ROUNDS];
        run_chain_row<EACH, Element>(p.chain, 0, block, share, partial, parts);
        const gemv_memory &memory = p.products.memory;
        const prepared_rows to = {reinterpret_cast<uint32_t *>(shared + memory.x),
                                  reinterpret_cast<float *>(shared + memory.sums),
                                  p.products.x.units,
                                  0,
                                  Shape::GROUP,
                                  false};
#pragma unroll
        for (int r = 0; r < PRODUCT_ROW_ROUNDS; r++)
            if (block.has(r)) {
                store_in_bytes<EACH>(to, 0, column_of<EACH>(block, r), parts[r].v);
                if (p.chain.prepared.values && share.is_mine(block.warp(r), block.warps()))
                    store_in_bytes<EACH>(p.chain.prepared, 0, column_of<EACH>(block, r), parts[r].v);
            }
    });
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

template <typename Shape, int EACH>
static void launch_rows(norm_gemv &p, size_t columns, gb_cuda_launch_list *launches) {
    const gemv_cut cut = cut_of<Shape>(columns, true);
    const gemv_launch launch = best_launch<Shape>(p.products, cut, 1);
    p.products.cut = cut;
    p.products.memory = launch.memory;
    p.products.begins_slowly = begins_slowly(launch);
    constexpr int WARPS = EACH == 4 ? NARROW_ROW_WARPS : WIDE_ROW_WARPS;
    const auto kernel = has_dtypes(p.chain, GB_BF16) ? run_norm_gemv<Shape, EACH, uint16_t, WARPS>
                                                     : run_norm_gemv<Shape, EACH, float, WARPS>;
    add_launch(launches, "norm_gemv", kernel, launch.grid, (gemv_one_row<Shape, WARPS>::THREADS),
               launch.memory.size, p);
}

static bool has_kernel(const gb_format &format) {
    return (format.bits == 4 && (format.group == 32 || format.group == 64)) ||
           (format.bits == 8 && format.group == 64);
}

static void launch(norm_gemv &p, const gb_format &format, gb_cuda_launch_list *launches) {
    const size_t columns = p.chain.width;
    dispatch(
        [&](auto bits, auto group, auto is_bf16, auto has_bias, auto each) {
            typedef gemv_shape<true, bits, bits == 8 ? 64 : int(group), is_bf16 != 0, has_bias != 0> shape;
            static_assert((int)shape::ATOM_COLUMNS == (int)ATOM_COLUMNS, "rows are whole atoms");
            launch_rows<shape, each>(p, columns, launches);
        },
        one_of<4, 8>(format.bits), one_of<32, 64>(format.group), one_of<0, 1>(format.scale == GB_BF16),
        one_of<0, 1>(format.has_bias), one_of<4, 8>(norm_piece((unsigned)columns)));
}

static bool takes(const norm_chain &c, const gb_cuda_call *product) {
    const gb_cuda_tensor *x = product->operands[0], *weight = product->operands[1];
    return !gb_cuda_is_prompt(product) && x->rank == 2 && x->dims[0] == 1 && x->dims[1] == c.width &&
           weight->is_packed && weight->rank == 2 && weight->int8_input && has_kernel(weight->format) &&
           x->dims[1] % ATOM_COLUMNS == 0;
}

/* Others than the products may take the norms' result, too. */
bool gb_cuda_supports_norm_gemv(const gb_cuda_problem *problem) {
    const gb_cuda_call *const *products = problem->parts + GB_NORMS_PARTS;
    const norm_chain c = gb_cuda_norm_chain_of(problem);
    if (!can_launch(c) || c.width > GB_CUDA_MOST_NORM_COLUMNS)
        return false;
    for (uint32_t i = 0; i < problem->count - GB_NORMS_PARTS; i++)
        if (!takes(c, products[i]) || (i > 0 && !gb_cuda_gemv_joins(products[0], products[i])))
            return false;
    return true;
}

/* A row in 8 bits, of which each block stores a part. */
bool gb_cuda_norm_gemv_has_epilogue(const gb_cuda_problem *problem) {
    const gb_cuda_call *last = problem->parts[GB_NORMS_LAST];
    return gb_cuda_is_epilogue_of(problem, GB_NORMS_LAST) && last->epilogue &&
           gb_cuda_epilogue_rows(last).group > 0 &&
           gb_cuda_epilogue_columns(last) == row_width(last->results[0]);
}

void gb_cuda_norm_gemv(const gb_cuda_problem *problem) {
    const gb_cuda_call *const *products = problem->parts + GB_NORMS_PARTS;
    const gb_cuda_tensor *weight = products[0]->operands[1];
    norm_gemv p = {};
    p.chain = gb_cuda_norm_chain_of(problem);
    if (!gb_cuda_norm_gemv_has_epilogue(problem))
        p.chain.prepared = {};
    p.warps = threads_of_row(p.chain.width) / WARP;
    p.products = products_of(weight);
    for (uint32_t i = 0; i < problem->count - GB_NORMS_PARTS; i++)
        add_matrix(p.products, products[i]->operands[1], data_of<float>(products[i]->results[0]));
    p.products.x.units = p.chain.width / UNIT;
    p.products.rows = p.products.tile_rows = 1;
    p.products.is_read_once = true;
    launch(p, weight->format, products[0]->launches);
}
