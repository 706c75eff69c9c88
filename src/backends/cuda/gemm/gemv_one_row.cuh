/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMV of packed matrices with one row in 8 bits, with the bits of gemv_rows.cuh for fewer instructions. The
 * eight columns of a tensor core's operand, which are rows there, are the eight groups of a part here: inputs
 * are zero in all columns but the group's own, so that the groups' sums come out side by side and a lane
 * scales two of them.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_GEMV_ONE_ROW_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_GEMV_ONE_ROW_CUH

#include "backends/cuda/gemm/gemv_multiply.cuh"
#include "backends/cuda/gemm/weight_pipeline.cuh"

namespace gb_cuda {

/* How many warps multiply a row of so many columns: more where a load is the work of few. */
enum { NARROW_COLUMNS = 4096, NARROW_ROW_WARPS = 16, WIDE_ROW_WARPS = 12 };

/* A warp of a block of threads that multiplies. */
template <typename Shape, int WARPS>
struct gemv_one_row : weight_pipeline<Shape, GEMV_BLOCK_ROWS, WARPS, 1> {
    typedef Shape shape;
    typedef weight_pipeline<Shape, GEMV_BLOCK_ROWS, WARPS, 1> base;
    using base::end_atom, base::first_atom, base::first_row, base::lane, base::p, base::shared;
    static constexpr int CHUNKS = shape::ATOM_UNITS / 2; /* of a lane's inputs of an atom */
    static constexpr int EACH = 2;                       /* columns of a lane's sums */

    struct column_numbers {
        uint32_t scales, biases; /* of rows r and r + 8 */
        float2 inputs;           /* their scale, and its product with their sum */
        bool is_there;           /* the part has such a group */
    };

    __device__ gemv_one_row(const gemv_products &products, uint8_t *memory, gemv_barriers &of_block)
        : base(products, memory, of_block) {}

    /* Not by the copy engine, where they would wait behind the weights that are in flight. */
    __device__ void copy_inputs() const {
        const size_t row = first_row / p.x_reuse;
        const uint8_t *x = reinterpret_cast<const uint8_t *>(p.x.values) +
                           (row * p.cut.atoms + first_atom) * shape::INPUT_BYTES;
        const float *sums = p.x.sums + (row * p.cut.atoms + first_atom) * shape::ATOM_GROUPS * 2;
        const uint32_t atoms = end_atom - first_atom;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < atoms * (shape::INPUT_BYTES / 16); i += WARPS * WARP)
            copy_16(shared + p.memory.x + i * 16, x + i * 16);
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < atoms * shape::ATOM_GROUPS; i += WARPS * WARP)
            copy_8(shared + p.memory.sums + i * 8, sums + i * 2);
        wait_for_copies();
    }

    /* make_inputs() waits for the kernels before and puts the inputs where copy_inputs does. */
    template <typename MakeInputs>
    __device__ void multiply_blocks(const MakeInputs &make_inputs) {
        make_inputs();
        base::begin_to_multiply();
        base::for_parts([&](const part_place &place, uint32_t atom, uint32_t count) {
            uint4 x[CHUNKS];
            load_inputs(atom - first_atom, x);
            float y[2];
            if (count == shape::PART_ATOMS)
                multiply_part<true>(place, atom - first_atom, count, x, y);
            else
                multiply_part<false>(place, atom - first_atom, count, x, y);
            store_part(y, place.sums);
        });
    }

    /* ---- A part ---- */

    /* The lane's share of the column that it multiplies, lane / 4, of a part that begins with the block's
     * atom number `begin`. What is past the part's end is not used. */
    __device__ void load_inputs(uint32_t begin, uint4 x[CHUNKS]) const {
        const uint8_t *from = shared + p.memory.x +
                              (begin + lane / 4 / shape::ATOM_GROUPS) * shape::INPUT_BYTES + lane % 4 * 16;
        for (int i = 0; i < CHUNKS; i++)
            x[i] = *reinterpret_cast<const uint4 *>(from + i * CHUNK_BYTES);
    }

    /* y = what a part of `count` atoms gives to rows r and r + 8 in the lane's two columns. Its first atom is
     * number `begin` of the block's. */
    template <bool ALL>
    __device__ void multiply_part(const part_place &place, uint32_t begin, uint32_t count,
                                  const uint4 x[CHUNKS], float y[2]) const {
        byte_sums<shape, true> sums;
#pragma unroll
        for (uint32_t i = 0; i < shape::PART_ATOMS; i++) {
            if (!ALL && i >= count)
                break;
            uint32_t w[shape::ATOM_STEPS][4];
            load_codes<shape>(place.codes + i * shape::CODE_BYTES, w);
#pragma unroll
            for (uint32_t g = 0; g < shape::ATOM_GROUPS; g++) {
                const bool is_mine = lane / 4 == i * shape::ATOM_GROUPS + g;
                sums.add(w, (int)g * shape::GROUP_UNITS, [&](int chunk) {
                    return is_mine ? x[chunk] : uint4{0, 0, 0, 0};
                });
            }
        }
        float values[EACH][2];
#pragma unroll
        for (int j = 0; j < EACH; j++)
            find_values(load_column<ALL>(place, begin, count, j), sums, j, values[j]);
        for (int h = 0; h < 2; h++)
            y[h] = values[0][h] + values[1][h];
    }

    /* Those of the group of the j-th column that the lane has sums of. */
    template <bool ALL>
    __device__ column_numbers load_column(const part_place &place, uint32_t begin, uint32_t count,
                                          int j) const {
        const uint32_t column = lane % 4 * EACH + (uint32_t)j, atom = column / shape::ATOM_GROUPS;
        const float2 *groups = reinterpret_cast<const float2 *>(shared + p.memory.sums);
        column_numbers numbers = {};
        numbers.is_there = ALL || atom < count;
        numbers.inputs = groups[begin * shape::ATOM_GROUPS + (numbers.is_there ? column : 0)];
        const uint32_t at = (numbers.is_there ? column : 0) * shape::GROUP_BYTES;
        numbers.scales = *reinterpret_cast<const uint32_t *>(place.scales + at);
        if (shape::HAS_BIASES)
            numbers.biases = *reinterpret_cast<const uint32_t *>(place.biases + at);
        return numbers;
    }

    /* That group's values, of rows r and r + 8. */
    __device__ void find_values(const column_numbers &numbers, const byte_sums<shape, true> &sums, int j,
                                float y[2]) const {
        float scale[2], bias[2] = {0, 0};
        widen_halves<shape::IS_BF16>(numbers.scales, scale);
        if (shape::HAS_BIASES)
            widen_halves<shape::IS_BF16>(numbers.biases, bias);
        for (int h = 0; h < 2; h++) {
            if (!shape::HAS_BIASES)
                bias[h] = fmaf(-p.offset, scale[h], bias[h]);
            const float value = value_of_bytes(scale[h], bias[h], numbers.inputs, sums.sum(2 * h + j));
            y[h] = numbers.is_there ? value : 0.0f;
        }
    }

    /* ---- Adding ---- */

    /* The sums of a part: those of its columns, by twos. */
    __device__ void store_part(const float y[2], float *sums) const {
        __syncwarp(); /* all lanes have had the codes */
        float *to = sums + lane / 4;
        for (int h = 0; h < 2; h++) {
            float sum = y[h];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (lane % 4 == 0)
                to[8 * h] = sum;
        }
    }

    __device__ void add_blocks() {
        base::add_parts([&](const float *sum, uint32_t block, uint32_t) {
            const typename base::block_outputs to = base::outputs_of(block);
            if (lane < GEMV_BLOCK_ROWS && lane < to.count)
                to.first[first_row * to.stride + lane] = *sum;
        });
    }
};

/* Grid: [ranges of the blocks of all matrices, 1, rows]. */
template <typename Shape, int WARPS>
static __global__ void __launch_bounds__(gemv_one_row<Shape, WARPS>::THREADS, 1)
    run_gemv_row(GB_GRID_CONSTANT gemv_products p) {
    GB_DYNAMIC_SHARED(uint8_t, shared);
    __shared__ gemv_barriers barriers;
    gemv_one_row<Shape, WARPS> row(p, shared, barriers);
    row.create_barriers();
    if (row.warp == row.COPYING)
        row.copy_weights();
    else if (row.warp > row.COPYING)
        row.add_blocks();
    else
        row.multiply_blocks([&] {
            wait_for_earlier();
            row.copy_inputs();
        });
}

} // namespace gb_cuda

#endif
