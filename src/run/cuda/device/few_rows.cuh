/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of packed matrices (gb_packing_fragments) with few prepared rows, at the speed at which weights
 * come from memory (weight_ring.cuh). Of FEW_PARTS + 1 warps of a block of threads one copies, the others
 * multiply a part of each turn, and meet at the end of a block of outputs to add up what they have.
 *
 * The atoms of a warp's part of a turn go to FEW_CHAINS sums in turns, the first one to the first. To its sum
 * an atom adds group by group, in the order of k,
 *
 *     y = y + (bias - offset * scale) * xsum, then y = y + scale * sum.
 *
 * Of rows in 8 bits, sum is the input's scale times the integer sum of codes and rounded inputs, and xsum its
 * scale times their sum. Of rows in bfloat16, sum is that of codes times inputs and xsum that of the inputs,
 * where codes of 4 bits are q + 128, which bfloat16 holds in its low bits, and those of 8 bits less their
 * center. At the end of a slice the chains are added, (0 + 1) + (2 + 3), then the warps' sums in their order,
 * and at last the slices'. One row in 8 bits has a kernel of its own with the same bits (one_row.cuh).
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_FEW_ROWS_CUH
#define GUMBEL_RUN_CUDA_DEVICE_FEW_ROWS_CUH

#include "run/cuda/device/few_multiply.cuh"
#include "run/cuda/device/weight_ring.cuh"

namespace gb_cuda {

/* A warp of a block of threads that multiplies. */
template <typename Shape, int TILES>
struct few_rows : weight_ring<Shape> {
    typedef few_multiply<Shape, TILES> multiply;
    typedef Shape shape;
    typedef weight_ring<Shape> base;
    using base::blocks, base::end_atom, base::end_slice, base::first_atom, base::first_row, base::first_slice,
        base::lane, base::p, base::ring, base::shared, base::warp;

    uint32_t columns; /* rows of x in this tile */
    bool is_odd = false;

    __device__ few_rows(const few_products &products, uint8_t *memory, few_barriers &of_block)
        : base(products, memory, of_block) {
        columns = p.rows - first_row < p.tile_rows ? (uint32_t)(p.rows - first_row) : p.tile_rows;
    }

    /* Does `work` with c and each i below `each` of every row c of the tile, shared by the multiplying warps.
     */
    template <typename Work>
    __device__ void for_rows(uint32_t each, const Work &work) const {
        uint32_t i = threadIdx.x;
        for (uint32_t c = 0; c < columns; c++) {
            for (; i < each; i += FEW_PARTS * WARP)
                work(c, i);
            i -= each;
        }
    }

    /* Begins to copy the tile's rows of x, of the block's slices. Not by the copy engine, where they would
     * wait behind the weights that are under way. */
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
            float *of_group = to + (g * TILES * FEW_COLUMNS + c) * shape::SUM_FLOATS;
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
        base::meet();
        uint32_t part = warp; /* another one each time: some have a group more */
        for (uint32_t block = blockIdx.x; block < blocks; block += gridDim.x) {
            float total = 0;
            for (uint32_t s = first_slice; s < end_slice; s++) {
                float y[FEW_CHAINS][TILES][4] = {};
                base::for_turns(s, [&](uint32_t atom, uint32_t count) { add_turn(part, atom, count, y); });
                const float sum = add_parts(part, y);
                if (gridDim.y > 1)
                    store(sum, [&](uint32_t in_block, size_t row) {
                        return base::slice_sum(s, block, in_block, row);
                    });
                total = s == first_slice ? sum : total + sum;
            }
            if (gridDim.y == 1)
                store(total,
                      [&](uint32_t in_block, size_t row) { return base::output(block, in_block, row); });
            part = (part + 1) % FEW_PARTS;
        }
    }

    __device__ void add_turn(uint32_t part, uint32_t atom, uint32_t count, float y[FEW_CHAINS][TILES][4]) {
        const uint32_t first = base::part_begin(count, part), end = base::part_begin(count, part + 1);
        const uint32_t of_inputs = atom - first_atom + first;
        const uint8_t *slot = shared + ring.slot * p.memory.slot_bytes;
        typename multiply::sources at;
        at.codes = slot + first * shape::CODE_BYTES + lane * 16;
        at.scales = slot + p.memory.scales + first * shape::SCALE_BYTES + lane / 4 * 4;
        at.biases = slot + p.memory.biases + first * shape::SCALE_BYTES + lane / 4 * 4;
        for (uint32_t c = 0; c < TILES; c++) {
            const uint32_t column = c * FEW_COLUMNS + lane / 4,
                           there = column < columns ? column : columns - 1;
            at.x[c] = shared + p.memory.x + there * p.memory.x_stride + of_inputs * shape::INPUT_BYTES +
                      lane % 4 * 16;
        }
        at.sums = reinterpret_cast<const float *>(shared + p.memory.sums) + of_inputs * multiply::ATOM_SUMS +
                  lane % 4 * 2 * shape::SUM_FLOATS;
        ring.wait_until_full();
        multiply{p.offset}.add_atoms(at, end - first, y);
        ring.pass_on(lane);
        ring.next();
    }

    /* ---- Adding ---- */

    /* The sum of all parts of the thread's value of the block: of output lane / 4 + i / 2 * 8 and column
     * lane % 4 * 2 + i % 2 of a tile, with i and the tile by warps. */
    __device__ float add_parts(uint32_t part, const float y[FEW_CHAINS][TILES][4]) {
        constexpr uint32_t VALUES = TILES * 4 * WARP;
        float *parts = reinterpret_cast<float *>(shared + p.memory.partial) + is_odd * FEW_PARTS * VALUES;
        is_odd = !is_odd; /* the other half may still be read */
        for (uint32_t i = 0; i < TILES * 4; i++)
            parts[part * VALUES + i * WARP + lane] =
                add_chains(y[0][i / 4][i % 4], y[1][i / 4][i % 4], y[2][i / 4][i % 4], y[3][i / 4][i % 4]);
        base::meet();
        float sum = 0;
        if (threadIdx.x < VALUES)
            for (uint32_t q = 0; q < FEW_PARTS; q++)
                sum += parts[q * VALUES + threadIdx.x];
        return sum;
    }

    /* Stores the thread's value where place(output in the block, row) says. */
    template <typename Place>
    __device__ void store(float value, const Place &place) const {
        const uint32_t column = warp / 4 * FEW_COLUMNS + lane % 4 * 2 + warp % 2;
        if (warp < TILES * 4 && column < columns)
            *place(lane / 4 + warp % 4 / 2 * 8, first_row + column) = value;
    }
};

/* Grid: [ranges of the blocks of all matrices, shares of the slices, tiles of rows]. */
template <typename Shape, int TILES>
static __global__ void __launch_bounds__(FEW_THREADS, TILES == 1 ? 2 : 1)
    multiply_few(GB_GRID_CONSTANT few_products p) {
    GB_DYNAMIC_SHARED(uint8_t, shared);
    __shared__ few_barriers barriers;
    few_rows<Shape, TILES> rows(p, shared, barriers);
    rows.create_barriers();
    if (rows.warp == FEW_COPYING)
        rows.copy_weights();
    else
        rows.multiply_blocks();
    if (gridDim.y > 1)
        rows.add_slices(rows.columns);
}

} // namespace gb_cuda

#endif
