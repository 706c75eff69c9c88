/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of packed matrices (gb_packing_fragments) with few prepared rows, at the speed at which weights
 * come from memory. A block of threads goes through blocks of 16 outputs. One of its warps keeps copies of
 * the next weights under way in a ring, which begin before the kernels before it end; the other FEW_PARTS
 * multiply, and meet at the end of a block to add up what they have.
 *
 * The sum over k is cut into slices, a slice into turns, of which each is a slot of the ring, and a turn into
 * parts, one for each multiplying warp, all of whole groups. For each group of its parts of a slice, in the
 * order of k, a warp does
 *
 *     y = y + (bias - offset * scale) * xsum, then y = y + scale * sum.
 *
 * Of rows in 8 bits, sum is the input's scale times the integer sum of codes and rounded inputs, and xsum its
 * scale times their sum. Of rows in bfloat16, sum is that of codes times inputs and xsum that of the inputs,
 * where codes of 4 bits are q + 128, which bfloat16 holds in its low bits, and those of 8 bits less their
 * center. Then the warps' sums are added in their order, and the slices'. How the sum is cut depends on the
 * matrix's sizes alone, so that an output has the same bits whatever the other rows and matrices of the
 * launch are.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_FEW_ROWS_CUH
#define GUMBEL_RUN_CUDA_DEVICE_FEW_ROWS_CUH

#include "run/cuda/device/copy_ring.cuh"
#include "run/cuda/device/few_multiply.cuh"

namespace gb_cuda {

struct few_barriers {
    copy_barrier full[FEW_MOST_SLOTS], empty[FEW_MOST_SLOTS]; /* of the ring of weights */
    copy_barrier met;
};

/* A warp of a block of threads, and what the block has of the product. */
template <typename Shape, int TILES>
struct few_rows {
    typedef few_multiply<Shape, TILES> multiply;
    typedef Shape shape;

    const few_products &p;
    uint8_t *shared;
    few_barriers &barriers;
    uint32_t lane, warp;
    uint32_t blocks; /* of 16 outputs of all matrices; the block has every gridDim.x-th */
    uint32_t first_slice, end_slice;
    uint32_t first_atom, end_atom; /* of these slices */
    uint32_t columns;              /* rows of x in this tile */
    size_t first_row;              /* of the tile */
    shared_ring ring;
    shared_ring arrived; /* of the copying warp: what it has seen come */
    uint32_t turns_begun = 0, meetings = 0;
    bool is_odd = false;

    __device__ few_rows(const few_products &products, uint8_t *memory, few_barriers &of_block)
        : p(products), shared(memory), barriers(of_block),
          ring(of_block.full, of_block.empty, p.memory.slots),
          arrived(of_block.full, of_block.empty, p.memory.slots) {
        lane = threadIdx.x % WARP;
        warp = threadIdx.x / WARP;
        blocks = p.of[p.count - 1].blocks_end;
        const uint32_t slices = p.cut.slices();
        first_slice = slices * blockIdx.y / gridDim.y;
        end_slice = slices * (blockIdx.y + 1) / gridDim.y;
        first_atom = first_slice * p.cut.slice_atoms;
        end_atom = slice_end(end_slice - 1);
        first_row = (size_t)blockIdx.z * p.tile_rows;
        columns = p.rows - first_row < p.tile_rows ? (uint32_t)(p.rows - first_row) : p.tile_rows;
    }

    __device__ uint32_t slice_end(uint32_t slice) const {
        const uint32_t end = (slice + 1) * p.cut.slice_atoms;
        return end < p.cut.atoms ? end : p.cut.atoms;
    }

    /* Does `turn` with the first atom and the number of them of each of a slice's turns. */
    template <typename Turn>
    __device__ void for_turns(uint32_t slice, const Turn &turn) const {
        const uint32_t end = slice_end(slice);
        for (uint32_t atom = slice * p.cut.slice_atoms; atom < end; atom += p.cut.turn_atoms)
            turn(atom, end - atom < p.cut.turn_atoms ? end - atom : p.cut.turn_atoms);
    }

    /* ---- Copying ---- */

    __device__ void copy_weights() {
        uint32_t product = 0, expert_blocks = 0;
        if (p.expert) {
            wait_for_earlier();
            expert_blocks = (uint32_t)p.expert[first_row] * blocks;
        }
        for (uint32_t block = blockIdx.x; block < blocks; block += gridDim.x) {
            while (block >= p.of[product].blocks_end)
                product++;
            const few_product &from = p.of[product];
            const size_t number = block - (product ? p.of[product - 1].blocks_end : 0) + expert_blocks;
            for (uint32_t s = first_slice; s < end_slice; s++)
                for_turns(s, [&](uint32_t atom, uint32_t count) { copy_turn(from, number, atom, count); });
        }
    }

    __device__ void copy_turn(const few_product &from, size_t block, uint32_t atom, uint32_t count) {
        const uint32_t codes = count * shape::CODE_BYTES;
        const uint32_t scales = shape::GROUP ? count * shape::SCALE_BYTES : (uint32_t)shape::GROUP_BYTES;
        const size_t code = block * p.code_bytes + atom * shape::CODE_BYTES;
        const size_t scale = block * p.scale_bytes + atom * shape::SCALE_BYTES;
        uint8_t *to = shared + ring.slot * p.memory.slot_bytes;
        copy_barrier *full = &ring.full[ring.slot];
        if (ring.slots > FEW_UNDER_WAY && turns_begun++ >= FEW_UNDER_WAY) {
            arrived.wait_until_full();
            arrived.next();
        }
        ring.wait_until_empty();
        announce_by_warp(full, codes + scales + (shape::HAS_BIASES ? scales : 0));
        copy_by_warp(to, from.codes + code, codes, full);
        copy_by_warp(to + p.memory.scales, from.scales + scale, scales, full);
        if (shape::HAS_BIASES)
            copy_by_warp(to + p.memory.biases, from.biases + scale, scales, full);
        end_copies(full);
        ring.next();
    }

    /* ---- Multiplying ---- */

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
        meet();
        uint32_t part = warp; /* another one each time: some have a group more */
        for (uint32_t block = blockIdx.x; block < blocks; block += gridDim.x) {
            float total = 0;
            for (uint32_t s = first_slice; s < end_slice; s++) {
                float y[TILES][4] = {};
                for_turns(s, [&](uint32_t atom, uint32_t count) { add_turn(part, atom, count, y); });
                const float sum = add_parts(part, y);
                if (gridDim.y > 1)
                    store(sum,
                          [&](uint32_t in_block, size_t row) { return slice_sum(s, block, in_block, row); });
                total = s == first_slice ? sum : total + sum;
            }
            if (gridDim.y == 1)
                store(total, [&](uint32_t in_block, size_t row) { return output(block, in_block, row); });
            part = (part + 1) % FEW_PARTS;
        }
    }

    /* The multiplying warps wait for one another. */
    __device__ void meet() {
#if defined(__CUDACC__)
        asm volatile("bar.sync 1, %0;" ::"n"(FEW_PARTS * WARP) : "memory");
#else
        __syncwarp();
        if (lane == 0)
            arrive(&barriers.met);
        wait_for_phase(&barriers.met, meetings);
        meetings ^= 1;
#endif
    }

    __device__ void add_turn(uint32_t part, uint32_t atom, uint32_t count, float y[TILES][4]) {
        const uint32_t first = count * part / FEW_PARTS, end = count * (part + 1) / FEW_PARTS;
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
        ring.pass_on(ring.empty, lane);
        ring.next();
    }

    /* ---- Adding ---- */

    /* The sum of all parts of the thread's value of the block: of output lane / 4 + i / 2 * 8 and column
     * lane % 4 * 2 + i % 2 of a tile, with i and the tile by warps. */
    __device__ float add_parts(uint32_t part, const float y[TILES][4]) {
        constexpr uint32_t VALUES = TILES * 4 * WARP;
        float *parts = reinterpret_cast<float *>(shared + p.memory.partial) + is_odd * FEW_PARTS * VALUES;
        is_odd = !is_odd; /* the other half may still be read */
        for (uint32_t i = 0; i < TILES * 4; i++)
            parts[part * VALUES + i * WARP + lane] = y[i / 4][i % 4];
        meet();
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

    __device__ float *slice_sum(uint32_t slice, uint32_t block, uint32_t in_block, size_t row) const {
        return p.partial + (((size_t)slice * p.rows + row) * blocks + block) * FEW_BLOCK_ROWS + in_block;
    }

    __device__ float *output(uint32_t block, uint32_t in_block, size_t row) const {
        uint32_t m = 0;
        while (block >= p.of[m].blocks_end)
            m++;
        const uint32_t before = m ? p.of[m - 1].blocks_end : 0;
        return p.of[m].y + row * p.of[m].outputs + (block - before) * FEW_BLOCK_ROWS + in_block;
    }

    /* Adds the slices of the block's outputs, in the block of threads that comes last. */
    __device__ void add_slices() const {
        __shared__ bool is_last;
        uint32_t *arrivals = p.arrivals + blockIdx.z * gridDim.x + blockIdx.x;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            is_last = atomicAdd(arrivals, 1u) == gridDim.y - 1;
            if (is_last)
                *arrivals = 0;
        }
        __syncthreads();
        if (!is_last)
            return;
        __threadfence();
        const uint32_t here = (blocks - blockIdx.x + gridDim.x - 1) / gridDim.x * FEW_BLOCK_ROWS;
        const uint32_t slices = p.cut.slices();
        for (uint32_t e = threadIdx.x; e < here * columns; e += FEW_THREADS) {
            const size_t row = first_row + e / here;
            const uint32_t block = blockIdx.x + e % here / FEW_BLOCK_ROWS * gridDim.x,
                           in_block = e % FEW_BLOCK_ROWS;
            float sum = 0;
            for (uint32_t s = 0; s < slices; s++) {
                const float of_slice = __ldcg(slice_sum(s, block, in_block, row));
                sum = s == 0 ? of_slice : sum + of_slice;
            }
            *output(block, in_block, row) = sum;
        }
    }
};

/* Grid: [ranges of the blocks of all matrices, shares of the slices, tiles of rows]. */
template <typename Shape, int TILES>
static __global__ void __launch_bounds__(FEW_THREADS, TILES == 1 ? 2 : 1)
    multiply_few(GB_GRID_CONSTANT few_products p) {
    GB_DYNAMIC_SHARED(uint8_t, shared);
    __shared__ few_barriers barriers;
    few_rows<Shape, TILES> rows(p, shared, barriers);
    if (threadIdx.x == 0) {
        rows.ring.create(COPY_ARRIVALS, FEW_PARTS);
        begin_barrier(&barriers.met, FEW_PARTS);
        finish_barriers();
    }
    __syncthreads();
    if (rows.warp == FEW_COPYING)
        rows.copy_weights();
    else
        rows.multiply_blocks();
    if (gridDim.y > 1)
        rows.add_slices();
}

} // namespace gb_cuda

#endif
