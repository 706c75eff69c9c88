/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of packed matrices with one row in 8 bits, with the bits of few_rows.cuh for two thirds of its
 * instructions. There the eight columns of a tensor core's product are rows. Here each is a group of the one
 * row: an atom's codes are multiplied by inputs that are zeros in all columns but its own, so that the sums
 * of eight groups come out side by side, and a lane scales two of them for two rows of weights, where every
 * lane scaled all of them for four outputs before. These are the chains of few_rows.cuh: lanes with the same
 * lane % 4 have the same one.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_ONE_ROW_CUH
#define GUMBEL_RUN_CUDA_DEVICE_ONE_ROW_CUH

#include "run/cuda/device/few_multiply.cuh"
#include "run/cuda/device/weight_ring.cuh"

namespace gb_cuda {

/* Which group is in a column of a pass, by the number of its atom there. */
template <typename Shape>
struct pass_column {
    static constexpr int EACH = FEW_COLUMNS / FEW_CHAINS;               /* columns of a lane's sums */
    static constexpr uint32_t ATOMS = FEW_COLUMNS / Shape::ATOM_GROUPS; /* of a pass */
    static_assert(EACH == 2 && Shape::ATOM_GROUPS <= EACH, "an atom's groups are neighbours");

    uint32_t atom, group;

    __device__ explicit pass_column(uint32_t column)
        : atom(Shape::ATOM_GROUPS == 1 ? column / EACH + column % EACH * FEW_CHAINS : column / EACH),
          group(Shape::ATOM_GROUPS == 1 ? 0 : column % EACH) {}
};

/* A warp of a block of threads that multiplies. */
template <typename Shape>
struct one_row : weight_ring<Shape> {
    typedef Shape shape;
    typedef weight_ring<Shape> base;
    typedef pass_column<Shape> column;
    using base::blocks, base::end_atom, base::end_slice, base::first_atom, base::first_row, base::first_slice,
        base::lane, base::p, base::ring, base::shared, base::warp;
    static constexpr int CHUNKS = shape::ATOM_UNITS / 2; /* of a lane's inputs of an atom */
    static constexpr uint32_t MOST_ATOMS = (shape::TURN_ATOMS + FEW_PARTS - 1) / FEW_PARTS; /* of a part */
    static_assert(MOST_ATOMS < 8, "a pass's atoms are four and two and one");

    struct column_numbers {
        uint32_t scales, biases; /* of rows r and r + 8 */
        float2 inputs;           /* their scale, and its product with their sum */
        bool is_there;           /* the part has such an atom */
    };

    const column multiplied;       /* the one of whose inputs the lane has a share */
    uint32_t first = 0, count = 0; /* the warp's part of a turn */
    uint32_t turn = 0;             /* the atoms of that turn */
    bool is_odd = false;

    __device__ one_row(const few_products &products, uint8_t *memory, few_barriers &of_block)
        : base(products, memory, of_block), multiplied(threadIdx.x % WARP / 4) {}

    /* Not by the copy engine, where they would wait behind the weights that are under way. */
    __device__ void copy_inputs() const {
        const size_t row = first_row / p.x_reuse;
        const uint8_t *x = reinterpret_cast<const uint8_t *>(p.x.values) +
                           (row * p.cut.atoms + first_atom) * shape::INPUT_BYTES;
        const float *sums = p.x.sums + (row * p.cut.atoms + first_atom) * shape::ATOM_GROUPS * 2;
        const uint32_t atoms = end_atom - first_atom;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < atoms * (shape::INPUT_BYTES / 16); i += FEW_PARTS * WARP)
            copy_16(shared + p.memory.x + i * 16, x + i * 16);
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < atoms * shape::ATOM_GROUPS; i += FEW_PARTS * WARP)
            copy_8(shared + p.memory.sums + i * 8, sums + i * 2);
        wait_for_copies();
    }

    __device__ void multiply_blocks() {
        wait_for_earlier();
        copy_inputs();
        base::meet();
        for (uint32_t block = blockIdx.x; block < blocks; block += gridDim.x) {
            for (uint32_t s = first_slice; s < end_slice; s++) {
                float y[2] = {0, 0};
                base::for_turns(s, [&](uint32_t atom, uint32_t of_turn) { add_turn(atom, of_turn, y); });
                store_part(s, y);
            }
            base::meet();
            if (warp == block / gridDim.x % FEW_PARTS)
                store_outputs(block);
            is_odd = !is_odd; /* the other half may still be read */
        }
    }

    /* ---- A turn ---- */

    __device__ void add_turn(uint32_t atom, uint32_t of_turn, float y[2]) {
        if (of_turn != turn) {
            turn = of_turn;
            first = base::part_begin(turn, warp);
            count = base::part_begin(turn, warp + 1) - first;
        }
        const uint8_t *slot = shared + ring.slot * p.memory.slot_bytes;
        const uint32_t of_inputs = atom - first_atom;
        uint4 x[CHUNKS];
        load_inputs(of_inputs + first, x);
        ring.wait_until_full();
        add_pass(slot, first, of_inputs, count, x, y);
        for (uint32_t i = column::ATOMS; MOST_ATOMS > column::ATOMS && i < count; i += column::ATOMS) {
            load_inputs(of_inputs + first + i, x);
            add_pass(slot, first + i, of_inputs, count - i, x, y);
        }
        ring.pass_on(lane);
        ring.next();
    }

    /* The lane's share of the column that it multiplies, of the pass that begins with the block's atom number
     * `begin`. What is past the part's end is not used. */
    __device__ void load_inputs(uint32_t begin, uint4 x[CHUNKS]) const {
        const uint8_t *from =
            shared + p.memory.x + (begin + multiplied.atom) * shape::INPUT_BYTES + lane % 4 * 16;
        for (int i = 0; i < CHUNKS; i++)
            x[i] = *reinterpret_cast<const uint4 *>(from + i * CHUNK_BYTES);
    }

    /* The atoms from `begin` of a turn on whose first one is number of_inputs of the block's, as many as are
     * left and a pass has. */
    __device__ void add_pass(const uint8_t *slot, uint32_t begin, uint32_t of_inputs, uint32_t left,
                             const uint4 x[CHUNKS], float y[2]) const {
        const uint8_t *codes = slot + begin * shape::CODE_BYTES + lane * 16;
        const uint32_t atoms = left < column::ATOMS ? left : column::ATOMS;
        const bool has_both = shape::ATOM_GROUPS > 1 || left > FEW_CHAINS;
        const column_numbers first_column = load_column(slot, begin, of_inputs + begin, left, 0);
        column_numbers second_column = {};
        if (has_both)
            second_column = load_column(slot, begin, of_inputs + begin, left, 1);
        byte_sums<shape> sums;
        if (atoms & 4)
            add_atoms<4>(codes, 0, x, sums);
        if (atoms & 2)
            add_atoms<2>(codes, atoms & 4, x, sums);
        if (atoms & 1)
            add_atoms<1>(codes, atoms & 6, x, sums);
        add_column(first_column, sums, 0, y);
        if (has_both)
            add_column(second_column, sums, 1, y);
    }

    /* Codes of COUNT atoms, of which the first one is number `number` of the pass. */
    template <uint32_t COUNT>
    __device__ void add_atoms(const uint8_t *codes, uint32_t number, const uint4 x[CHUNKS],
                              byte_sums<shape> &sums) const {
        uint32_t w[COUNT][shape::ATOM_STEPS][4];
#pragma unroll
        for (uint32_t i = 0; i < COUNT; i++)
            load_codes<shape>(codes + (number + i) * shape::CODE_BYTES, w[i]);
#pragma unroll
        for (uint32_t i = 0; i < COUNT; i++)
#pragma unroll
            for (int g = 0; g < shape::ATOM_GROUPS; g++) {
                const bool is_mine = multiplied.atom == number + i && multiplied.group == (uint32_t)g;
                sums.add(w[i], g * shape::GROUP_UNITS, [&](int chunk) {
                    return is_mine ? x[chunk] : uint4{0, 0, 0, 0};
                });
            }
    }

    /* Those of the group of the j-th column that the lane has sums of. */
    __device__ column_numbers load_column(const uint8_t *slot, uint32_t begin, uint32_t of_inputs,
                                          uint32_t left, int j) const {
        const column c(lane % 4 * column::EACH + (uint32_t)j);
        const float2 *groups = reinterpret_cast<const float2 *>(shared + p.memory.sums);
        column_numbers numbers = {};
        numbers.is_there = c.atom < left;
        numbers.inputs = groups[(of_inputs + c.atom) * shape::ATOM_GROUPS + c.group];
        const uint32_t at = (begin + (numbers.is_there ? c.atom : 0)) * shape::SCALE_BYTES +
                            c.group * shape::GROUP_BYTES + lane / 4 * 4;
        numbers.scales = *reinterpret_cast<const uint32_t *>(slot + p.memory.scales + at);
        if (shape::HAS_BIASES)
            numbers.biases = *reinterpret_cast<const uint32_t *>(slot + p.memory.biases + at);
        return numbers;
    }

    /* y += that group, of rows r and r + 8. */
    __device__ void add_column(const column_numbers &numbers, const byte_sums<shape> &sums, int j,
                               float y[2]) const {
        float scale[2], bias[2] = {0, 0};
        widen_halves<shape::IS_BF16>(numbers.scales, scale);
        if (shape::HAS_BIASES)
            widen_halves<shape::IS_BF16>(numbers.biases, bias);
        for (int h = 0; h < 2; h++) {
            if (!shape::HAS_BIASES)
                bias[h] = fmaf(-p.offset, scale[h], bias[h]);
            const float sum = add_bytes_group(scale[h], bias[h], numbers.inputs, sums.sum(2 * h + j), y[h]);
            y[h] = numbers.is_there ? sum : y[h];
        }
    }

    /* ---- Adding ---- */

    /* Where all parts of a slice's sums meet: [FEW_PARTS, FEW_BLOCK_ROWS]. */
    __device__ float *parts_of(uint32_t slice) const {
        const uint32_t number = slice - first_slice + (is_odd ? end_slice - first_slice : 0);
        return reinterpret_cast<float *>(shared + p.memory.partial) + number * FEW_PARTS * FEW_BLOCK_ROWS;
    }

    /* The sums of the warp's part: its chains', (0 + 1) + (2 + 3). */
    __device__ void store_part(uint32_t slice, const float y[2]) const {
        float *to = parts_of(slice) + warp * FEW_BLOCK_ROWS + lane / 4;
        for (int h = 0; h < 2; h++) {
            float sum = y[h];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (lane % 4 == 0)
                to[8 * h] = sum;
        }
    }

    /* By one warp: adds the parts of each slice, and the slices unless several blocks of threads have them.
     */
    __device__ void store_outputs(uint32_t block) const {
        if (lane >= FEW_BLOCK_ROWS)
            return;
        float total = 0;
#pragma unroll 1
        for (uint32_t s = first_slice; s < end_slice; s++) {
            const float *parts = parts_of(s) + lane;
            float sum = 0;
#pragma unroll
            for (int part = 0; part < FEW_PARTS; part++)
                sum += parts[part * FEW_BLOCK_ROWS];
            total = s == first_slice ? sum : total + sum;
        }
        *base::output(block, lane, first_row) = total;
    }
};

/* Grid: [ranges of the blocks of all matrices, 1, rows]. */
template <typename Shape>
static __global__ void __launch_bounds__(FEW_THREADS, 1) multiply_one(GB_GRID_CONSTANT few_products p) {
    GB_DYNAMIC_SHARED(uint8_t, shared);
    __shared__ few_barriers barriers;
    one_row<Shape> row(p, shared, barriers);
    row.create_barriers();
    if (row.warp == FEW_COPYING)
        row.copy_weights();
    else
        row.multiply_blocks();
}

} // namespace gb_cuda

#endif
