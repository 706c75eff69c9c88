/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of packed matrices with one row in 8 bits, with the bits of few_rows.cuh for a third of its
 * instructions. There the eight columns of a tensor core's product are rows. Here each is a group of the one
 * row: an atom's codes are multiplied by inputs that are zeros in all columns but its own, so that the sums
 * of eight groups come out side by side, one for each lane and row of weights. A lane then scales two groups
 * for two rows, where all lanes scaled all groups four times before, and these are the chains of
 * few_rows.cuh: lanes with the same lane % 4 have the same one.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_ONE_ROW_CUH
#define GUMBEL_RUN_CUDA_DEVICE_ONE_ROW_CUH

#include "run/cuda/device/few_multiply.cuh"
#include "run/cuda/device/weight_ring.cuh"

namespace gb_cuda {

/* Which group of a pass is in a column of the product, by the number of its atom in the pass. */
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
    static constexpr bool IS_ONE_PASS = shape::TURN_ATOMS <= FEW_PARTS * (int)column::ATOMS;

    /* What a pass takes of the inputs. */
    struct pass_inputs {
        uint4 x[CHUNKS];           /* of the column that the lane multiplies, */
        uint32_t atom, group;      /* and which one that is */
        float2 sums[column::EACH]; /* of the columns whose sums it has; zeros where there is no such atom */
    };

    bool is_odd = false;

    using base::base;

    /* Not by the copy engine, where they would wait behind the weights that are under way. */
    __device__ void copy_inputs() const {
        const size_t row = first_row / p.x_reuse;
        const uint8_t *x = reinterpret_cast<const uint8_t *>(p.x.values) +
                           (row * p.cut.atoms + first_atom) * shape::INPUT_BYTES;
        const float *sums = p.x.sums + (row * p.cut.atoms + first_atom) * shape::ATOM_GROUPS * 2;
        const uint32_t atoms = end_atom - first_atom;
        for (uint32_t i = threadIdx.x; i < atoms * (shape::INPUT_BYTES / 16); i += FEW_PARTS * WARP)
            copy_16(shared + p.memory.x + i * 16, x + i * 16);
        for (uint32_t i = threadIdx.x; i < atoms * shape::ATOM_GROUPS; i += FEW_PARTS * WARP)
            copy_8(shared + p.memory.sums + i * 8, sums + i * 2);
        wait_for_copies();
    }

    __device__ void multiply_blocks() {
        wait_for_earlier();
        copy_inputs();
        base::meet();
        uint32_t part = warp; /* another one each time: some have an atom more */
        for (uint32_t block = blockIdx.x; block < blocks; block += gridDim.x) {
            for (uint32_t s = first_slice; s < end_slice; s++) {
                float y[2] = {0, 0};
                base::for_turns(s, [&](uint32_t atom, uint32_t count) { add_turn(part, atom, count, y); });
                store_part(s, part, y);
            }
            base::meet();
            if (part == 0)
                store_outputs(block);
            part = (part + 1) % FEW_PARTS;
            is_odd = !is_odd; /* the other half may still be read */
        }
    }

    /* ---- A turn ---- */

    __device__ void add_turn(uint32_t part, uint32_t atom, uint32_t count, float y[2]) {
        const uint32_t first = base::part_begin(count, part), end = base::part_begin(count, part + 1);
        const uint8_t *slot = shared + ring.slot * p.memory.slot_bytes;
        pass_inputs inputs = load_inputs(atom - first_atom + first, end - first);
        ring.wait_until_full();
        add_pass(slot, first, end - first, inputs, y);
        for (uint32_t i = first + column::ATOMS; !IS_ONE_PASS && i < end; i += column::ATOMS) {
            inputs = load_inputs(atom - first_atom + i, end - i);
            add_pass(slot, i, end - i, inputs, y);
        }
        ring.pass_on(ring.empty, lane);
        ring.next();
    }

    /* Those of the pass whose first atom is number `first` of the block's inputs; `left` atoms are there. */
    __device__ pass_inputs load_inputs(uint32_t first, uint32_t left) const {
        const column multiplied(lane / 4);
        const uint32_t at = first + (multiplied.atom < left ? multiplied.atom : 0);
        const uint8_t *x = shared + p.memory.x + at * shape::INPUT_BYTES + lane % 4 * 16;
        const float2 *sums = reinterpret_cast<const float2 *>(shared + p.memory.sums);
        pass_inputs inputs;
        inputs.atom = multiplied.atom;
        inputs.group = multiplied.group;
        for (int i = 0; i < CHUNKS; i++)
            inputs.x[i] = *reinterpret_cast<const uint4 *>(x + i * CHUNK_BYTES);
        for (int j = 0; j < column::EACH; j++) {
            const column c(lane % 4 * column::EACH + (uint32_t)j);
            inputs.sums[j] =
                c.atom < left ? sums[(first + c.atom) * shape::ATOM_GROUPS + c.group] : float2{0, 0};
        }
        return inputs;
    }

    /* The atoms of a slot from `first` on, as many as are left and a pass has. */
    __device__ void add_pass(const uint8_t *slot, uint32_t first, uint32_t left, const pass_inputs &inputs,
                             float y[2]) const {
        const uint8_t *codes = slot + first * shape::CODE_BYTES + lane * 16;
        byte_sums<shape> sums;
        const uint32_t count = left < column::ATOMS ? left : column::ATOMS;
        uint32_t i = 0;
#pragma unroll 1
        for (; i + 4 <= count; i += 4)
            add_atoms<4>(codes, i, inputs, sums);
        if (count % 4 >= 2)
            add_atoms<2>(codes, i, inputs, sums);
        if (count % 2 == 1)
            add_atoms<1>(codes, count - 1, inputs, sums);
#pragma unroll
        for (int j = 0; j < column::EACH; j++)
            add_column(slot, first, left, j, inputs, sums, y);
    }

    template <uint32_t COUNT>
    __device__ void add_atoms(const uint8_t *codes, uint32_t first, const pass_inputs &inputs,
                              byte_sums<shape> &sums) const {
        uint32_t w[COUNT][shape::ATOM_STEPS][4];
#pragma unroll
        for (uint32_t i = 0; i < COUNT; i++)
#pragma unroll
            for (int s = 0; s < shape::ATOM_STEPS; s++) {
                const uint4 loaded = *reinterpret_cast<const uint4 *>(
                    codes + (first + i) * shape::CODE_BYTES + s * shape::STEP_BYTES);
                w[i][s][0] = loaded.x;
                w[i][s][1] = loaded.y;
                w[i][s][2] = loaded.z;
                w[i][s][3] = loaded.w;
            }
#pragma unroll
        for (uint32_t i = 0; i < COUNT; i++)
#pragma unroll
            for (int g = 0; g < shape::ATOM_GROUPS; g++) {
                const bool is_mine = inputs.atom == first + i && inputs.group == (uint32_t)g;
                sums.add(w[i], g * shape::GROUP_UNITS, [&](int chunk) {
                    return is_mine ? inputs.x[chunk] : uint4{0, 0, 0, 0};
                });
            }
    }

    /* y += the group of the lane's j-th column, of rows r and r + 8. */
    __device__ void add_column(const uint8_t *slot, uint32_t first, uint32_t left, int j,
                               const pass_inputs &inputs, const byte_sums<shape> &sums, float y[2]) const {
        const column c(lane % 4 * column::EACH + (uint32_t)j);
        if (shape::ATOM_GROUPS == 1 && left <= (uint32_t)j * FEW_CHAINS)
            return;
        if (c.atom < left) {
            const uint32_t at =
                (first + c.atom) * shape::SCALE_BYTES + c.group * shape::GROUP_BYTES + lane / 4 * 4;
            float scale[2], bias[2] = {0, 0};
            widen_halves<shape>(slot + p.memory.scales + at, scale);
            if (shape::HAS_BIASES)
                widen_halves<shape>(slot + p.memory.biases + at, bias);
            for (int h = 0; h < 2; h++) {
                if (!shape::HAS_BIASES)
                    bias[h] = fmaf(-p.offset, scale[h], bias[h]);
                y[h] = add_bytes_group(scale[h], bias[h], inputs.sums[j], sums.sum(2 * h + j), y[h]);
            }
        }
    }

    /* ---- Adding ---- */

    /* Where all parts of a slice's sums meet: [FEW_PARTS, FEW_BLOCK_ROWS]. */
    __device__ float *parts_of(uint32_t slice) const {
        const uint32_t slices = end_slice - first_slice, number = is_odd * slices + slice - first_slice;
        return reinterpret_cast<float *>(shared + p.memory.partial) + number * FEW_PARTS * FEW_BLOCK_ROWS;
    }

    /* The sums of the warp's part: its chains', (0 + 1) + (2 + 3). */
    __device__ void store_part(uint32_t slice, uint32_t part, const float y[2]) const {
        float *to = parts_of(slice) + part * FEW_BLOCK_ROWS + lane / 4;
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
        for (uint32_t s = first_slice; s < end_slice; s++) {
            const float *parts = parts_of(s) + lane;
            float sum = 0;
#pragma unroll
            for (int part = 0; part < FEW_PARTS; part++)
                sum += parts[part * FEW_BLOCK_ROWS];
            total = s == first_slice ? sum : total + sum;
            if (gridDim.y > 1)
                *base::slice_sum(s, block, lane, first_row) = sum;
        }
        if (gridDim.y == 1)
            *base::output(block, lane, first_row) = total;
    }
};

/* Grid: [ranges of the blocks of all matrices, shares of the slices, rows]. */
template <typename Shape>
static __global__ void __launch_bounds__(FEW_THREADS, 2) multiply_one(GB_GRID_CONSTANT few_products p) {
    GB_DYNAMIC_SHARED(uint8_t, shared);
    __shared__ few_barriers barriers;
    one_row<Shape> row(p, shared, barriers);
    row.create_barriers();
    if (row.warp == FEW_COPYING)
        row.copy_weights();
    else
        row.multiply_blocks();
    if (gridDim.y > 1)
        row.add_slices(1);
}

} // namespace gb_cuda

#endif
