/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMV of packed matrices (gb_packing_fragments) with few prepared rows, at the speed of memory
 * (weight_pipeline.cuh). A group's value is
 *
 *     scale * sum + (bias - offset * scale) * xsum.
 *
 * Of rows in 8 bits, sum is the input's scale times the integer sum of codes and rounded inputs, and xsum its
 * scale times the sum of these. Of rows in bfloat16, sum is that of codes times inputs and xsum that of the
 * inputs; codes of 4 bits enter as q + 128, which bfloat16 holds in its low bits, and those of 8 bits less
 * their center.
 *
 * The order of a sum: the eight groups of a part by twos, ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)), missing
 * ones as zeros; then a slice's parts in order; then the slices. gemv_one_row.cuh and expert_blocks.cuh have
 * the same bits.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_GEMV_ROWS_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_GEMV_ROWS_CUH

#include "backends/cuda/gemm/gemv_multiply.cuh"
#include "backends/cuda/gemm/weight_pipeline.cuh"

namespace gb_cuda {

/* How many warps multiply rows of so many tiles (measured). */
constexpr int gemv_warps(int tiles) {
    return tiles == 1 ? 8 : 12;
}

/* Two warps add, because one could not keep up with those that multiply 16 rows. */
enum { GEMV_ADDERS = 2 };

/* The product as a warp sees it. */
template <typename Shape, int TILES>
struct gemv_rows : weight_pipeline<Shape, TILES * 4 * WARP, gemv_warps(TILES), GEMV_ADDERS> {
    typedef gemv_multiply<Shape, TILES> multiply;
    typedef Shape shape;
    typedef weight_pipeline<Shape, TILES * 4 * WARP, gemv_warps(TILES), GEMV_ADDERS> base;
    using base::end_atom, base::first_atom, base::first_row, base::lane, base::p, base::shared;

    uint32_t columns; /* rows of x in this tile */

    __device__ gemv_rows(const gemv_products &products, uint8_t *memory, gemv_barriers &of_block)
        : base(products, memory, of_block) {
        columns = p.rows - first_row < p.tile_rows ? (uint32_t)(p.rows - first_row) : p.tile_rows;
    }

    /* Does `work` with c and each i below `each` of every row c of the tile, shared by the multiplying warps.
     */
    template <typename Work>
    __device__ void for_rows(uint32_t each, const Work &work) const {
        uint32_t i = threadIdx.x;
        for (uint32_t c = 0; c < columns; c++) {
            for (; i < each; i += base::COPYING * WARP)
                work(c, i);
            i -= each;
        }
    }

    /* Begins to copy the tile's rows of x, of the block's slices. Not by the copy engine, where they would
     * wait behind the weights that are in flight. */
    __device__ void copy_inputs() const {
        const size_t row_bytes = (size_t)p.cut.atoms * shape::INPUT_BYTES;
        const uint8_t *from = reinterpret_cast<const uint8_t *>(p.x.values) +
                              first_row / p.x_reuse * row_bytes + first_atom * shape::INPUT_BYTES;
        uint8_t *to = shared + p.memory.x;
        for_rows((end_atom - first_atom) * (shape::INPUT_BYTES / 16), [&](uint32_t c, uint32_t piece) {
            copy_16(to + c * p.memory.x_stride + piece * 16, from + c * row_bytes + piece * 16);
        });
    }

    /* The same with scales and sums of the groups of the inputs. Columns that are not there have none, and
     * outputs that nobody stores. */
    __device__ void load_sums() const {
        const size_t row = first_row / p.x_reuse;
        const size_t row_groups = (size_t)p.cut.atoms * shape::ATOM_GROUPS;
        const size_t first = (size_t)first_atom * shape::ATOM_GROUPS;
        float *to = reinterpret_cast<float *>(shared + p.memory.sums);
        for_rows((end_atom - first_atom) * shape::ATOM_GROUPS, [&](uint32_t c, uint32_t g) {
            float *of_group = to + (g * TILES * GEMV_COLUMNS + c) * shape::SUM_FLOATS;
            if (shape::IN_BYTES) {
                copy_8(of_group, p.x.sums + ((row + c) * row_groups + first + g) * 2);
                return;
            }
            const float *halves = p.x.sums + ((row + c) * p.x.units + (first + g) * shape::GROUP_UNITS) * 2;
            float sum = 0;
            for (int i = 0; i < shape::GROUP_UNITS * 2; i++)
                sum += halves[i];
            *of_group = sum;
        });
    }

    __device__ void multiply_blocks() {
        wait_for_earlier();
        copy_inputs();
        load_sums();
        wait_for_copies();
        base::begin_to_multiply();
        base::for_parts([&](const part_place &place, uint32_t atom, uint32_t count) {
            float y[TILES][4] = {};
            multiply_part(place, atom - first_atom, count, y);
            store_part(y, place.sums);
        });
    }

    __device__ void multiply_part(const part_place &place, uint32_t of_inputs, uint32_t count,
                                  float y[TILES][4]) const {
        typename multiply::sources at;
        at.codes = place.codes;
        at.scales = place.scales;
        at.biases = place.biases;
        for (uint32_t c = 0; c < TILES; c++) {
            const uint32_t column = c * GEMV_COLUMNS + lane / 4,
                           there = column < columns ? column : columns - 1;
            at.x[c] = shared + as_it_is(p.memory.x + there * p.memory.x_stride + lane % 4 * 16 +
                                        of_inputs * shape::INPUT_BYTES);
        }
        at.sums = reinterpret_cast<const float *>(
            shared +
            as_it_is(p.memory.sums + (of_inputs * multiply::ATOM_SUMS + lane % 4 * 2 * shape::SUM_FLOATS) *
                                         (uint32_t)sizeof(float)));
        multiply{p.offset}.multiply_part(at, count, y);
    }

    /* Value i of a lane is of output lane / 4 + i / 2 % 2 * 8 and column i / 4 * 8 + lane % 4 * 2 + i % 2. */
    __device__ void store_part(const float y[TILES][4], float *sums) const {
        __syncwarp(); /* all lanes have had the codes */
        float *to = sums + lane;
        for (uint32_t i = 0; i < TILES * 4; i++)
            to[i * WARP] = y[i / 4][i % 4];
    }

    /* ---- Adding ---- */

    __device__ void add_blocks() {
        base::add_parts([&](const float *sum, uint32_t block, uint32_t slice) {
            const typename base::block_outputs to = base::outputs_of(block);
#pragma unroll
            for (uint32_t e = 0; e < base::EACH; e++) {
                const uint32_t i = base::share_begin() / WARP + e;
                const uint32_t column = i / 4 * GEMV_COLUMNS + lane % 4 * 2 + i % 2,
                               output = lane / 4 + i / 2 % 2 * 8;
                if (column < columns && (gridDim.y > 1 || output < to.count))
                    *(gridDim.y > 1 ? base::slice_sum(slice, block, output, first_row + column)
                                    : to.first + (first_row + column) * to.stride + output) = sum[e];
            }
        });
    }
};

/* Grid: [ranges of the blocks of all matrices, shares of the slices, tiles of rows]. */
template <typename Shape, int TILES>
static __global__ void __launch_bounds__(gemv_rows<Shape, TILES>::THREADS, 1)
    run_gemv(GB_GRID_CONSTANT gemv_products p) {
    GB_DYNAMIC_SHARED(uint8_t, shared);
    __shared__ gemv_barriers barriers;
    gemv_rows<Shape, TILES> rows(p, shared, barriers);
    rows.create_barriers();
    if (rows.warp == rows.COPYING)
        rows.copy_weights();
    else if (rows.warp > rows.COPYING)
        rows.add_blocks();
    else
        rows.multiply_blocks();
    if (gridDim.y > 1)
        rows.add_slices(rows.columns);
}

} // namespace gb_cuda

#endif
