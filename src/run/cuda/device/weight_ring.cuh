/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of threads' share of a product of few rows, and the weights of it: the block goes through blocks of
 * 16 outputs, and one of its warps keeps copies of the next weights under way in a ring, which begin before
 * the kernels before it end. Others multiply (few_rows.cuh, one_row.cuh), and one adds up what they have.
 *
 * The sum over k is cut into slices, and these into parts of eight groups. A part is one warp's work: the
 * warps take the parts of all blocks of outputs in turns, so that none waits for another one. Some parts are
 * a load, which is a slot of the ring. How the sum is cut depends on the matrix's sizes alone, so that an
 * output has the same bits whatever the other rows and matrices of the launch are.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_WEIGHT_RING_CUH
#define GUMBEL_RUN_CUDA_DEVICE_WEIGHT_RING_CUH

#include "run/cuda/device/copy_ring.cuh"
#include "run/cuda/device/few_product.cuh"
#include "run/cuda/device/last_block.cuh"

namespace gb_cuda {

struct few_barriers {
    copy_barrier full[FEW_MOST_SLOTS], empty[FEW_MOST_SLOTS]; /* of the ring of weights */
    copy_barrier summed[FEW_MOST_SUMS], added[FEW_MOST_SUMS]; /* of the sums of loads' parts */
    copy_barrier met, has_inputs;
};

/* What a lane has of a part's weights: codes of rows r and r + 8, and where theirs begin of all groups. */
struct part_weights {
    const uint8_t *codes, *scales, *biases;
};

/* The ring as one warp sees it, and what the block has of the product. So many warps multiply, the next one
 * copies, and the last one adds. */
template <typename Shape, int WARPS>
struct weight_ring {
    typedef Shape shape;
    static constexpr uint32_t COPYING = WARPS, ADDING = WARPS + 1;
    static constexpr int THREADS = (WARPS + 2) * WARP;

    const few_products &p;
    uint8_t *shared;
    few_barriers &barriers;
    uint32_t lane, warp;
    uint32_t blocks; /* of 16 outputs of all matrices; the block has every gridDim.x-th */
    uint32_t first_slice, end_slice;
    uint32_t first_atom, end_atom; /* of these slices */
    size_t first_row;              /* of the tile of rows */
    shared_ring ring;
    shared_ring arrived;   /* of the copying warp: what it has seen come */
    shared_ring part_sums; /* of loads, on their way to the adding warp */
    uint32_t loads_begun = 0, loads_arrived = 0, meetings = 0;

    __device__ weight_ring(const few_products &products, uint8_t *memory, few_barriers &of_block)
        : p(products), shared(memory), barriers(of_block), lane(threadIdx.x % WARP), warp(threadIdx.x / WARP),
          ring(of_block.full, of_block.empty, p.memory.slots),
          arrived(of_block.full, of_block.empty, p.memory.slots),
          part_sums(of_block.summed, of_block.added, p.memory.sum_slots) {
        blocks = p.of[p.count - 1].blocks_end;
        const uint32_t slices = p.cut.slices();
        first_slice = slices * blockIdx.y / gridDim.y;
        end_slice = slices * (blockIdx.y + 1) / gridDim.y;
        first_atom = first_slice * p.cut.slice_atoms;
        end_atom = slice_end(end_slice - 1);
        first_row = (size_t)blockIdx.z * p.tile_rows;
    }

    /* All threads call it before anything else. */
    __device__ void create_barriers() const {
        if (threadIdx.x == 0) {
            ring.create(COPY_ARRIVALS, WARPS);
            part_sums.create(WARPS * DONE_ARRIVALS, 1);
            begin_barrier(&barriers.met, WARPS);
            begin_barrier(&barriers.has_inputs, 1);
            finish_barriers();
        }
        __syncthreads();
    }

    __device__ uint32_t slice_end(uint32_t slice) const {
        const uint32_t end = (slice + 1) * p.cut.slice_atoms;
        return end < p.cut.atoms ? end : p.cut.atoms;
    }

    /* How many parts some atoms are, of which the last one may be smaller. */
    __device__ static uint32_t parts_of(uint32_t atoms) {
        return (atoms + shape::PART_ATOMS - 1) / shape::PART_ATOMS;
    }

    /* Does `work` with the first atom and the number of them of each load of a slice. */
    template <typename Work>
    __device__ void for_loads(uint32_t slice, const Work &work) const {
        const uint32_t end = slice_end(slice);
        for (uint32_t atom = slice * p.cut.slice_atoms; atom < end; atom += p.cut.load_atoms)
            work(atom, end - atom < p.cut.load_atoms ? end - atom : p.cut.load_atoms);
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
                for_loads(s, [&](uint32_t atom, uint32_t count) { copy_load(from, number, atom, count); });
        }
    }

    /* The same in all lanes. */
    __device__ bool has_inputs() const {
        return __shfl_sync(0xffffffffu, (int)has_ended(&barriers.has_inputs, 0), 0) != 0;
    }

    __device__ void copy_load(const few_product &from, size_t block, uint32_t atom, uint32_t count) {
        const uint32_t codes = count * shape::CODE_BYTES;
        const uint32_t scales = shape::GROUP ? count * shape::SCALE_BYTES : (uint32_t)shape::GROUP_BYTES;
        const size_t code = block * p.code_bytes + atom * shape::CODE_BYTES;
        const size_t scale = block * p.scale_bytes + atom * shape::SCALE_BYTES;
        uint8_t *to = shared + ring.slot * p.memory.slot_bytes;
        copy_barrier *full = &ring.full[ring.slot];
        const uint32_t most = p.begins_slowly && !has_inputs() ? 1 : (uint32_t)FEW_UNDER_WAY;
        for (; ring.slots > most && loads_begun - loads_arrived >= most; loads_arrived++) {
            arrived.wait_until_full();
            arrived.next();
        }
        loads_begun++;
        ring.wait_until_empty();
        announce_by_warp(full, codes + scales + (shape::HAS_BIASES ? scales : 0));
        copy_by_warp(to, from.codes + code, codes, full, p.is_read_once);
        copy_by_warp(to + p.memory.scales, from.scales + scale, scales, full, p.is_read_once);
        if (shape::HAS_BIASES)
            copy_by_warp(to + p.memory.biases, from.biases + scale, scales, full, p.is_read_once);
        end_copies(full);
        ring.next();
        __syncwarp(); /* no lane waits for a phase that another one has left behind */
    }

    /* ---- Multiplying ---- */

    /* The multiplying warps wait for one another. */
    __device__ void meet() {
#if defined(__CUDACC__)
        asm volatile("bar.sync 1, %0;" ::"n"(WARPS * WARP) : "memory");
#else
        __syncwarp();
        if (lane == 0)
            arrive(&barriers.met);
        wait_for_phase(&barriers.met, meetings);
        meetings ^= 1;
#endif
    }

    /* By all that multiply, when the inputs are in shared memory. */
    __device__ void begin_to_multiply() {
        meet();
        if (threadIdx.x == 0)
            arrive(&barriers.has_inputs);
    }

    /* Does `work` with where a part's weights are, its first atom, how many it has and where its sums go, for
     * every part that is the warp's: it waits until the weights are there, and for the place of the sums
     * until part_sums is empty. */
    template <typename Work>
    __device__ void for_parts(uint32_t part_floats, const Work &work) {
        uint32_t part = warp; /* the warp's next one, from the load's first one on */
        for (uint32_t block = blockIdx.x; block < blocks; block += gridDim.x)
            for (uint32_t s = first_slice; s < end_slice; s++)
                for_loads(s, [&](uint32_t atom, uint32_t count) {
                    const uint32_t parts = parts_of(count);
                    const uint8_t *slot = shared + ring.slot * p.memory.slot_bytes;
                    if (part >= parts) { /* it must not miss a phase */
                        ring.wait_until_full();
                        part_sums.wait_until_empty();
                    }
                    for (; part < parts; part += WARPS) {
                        const uint32_t first = part * shape::PART_ATOMS, left = count - first;
                        work(part_weights{slot + first * shape::CODE_BYTES + lane * 16,
                                          slot + p.memory.scales + first * shape::SCALE_BYTES + lane / 4 * 4,
                                          slot + p.memory.biases + first * shape::SCALE_BYTES + lane / 4 * 4},
                             atom + first, left < shape::PART_ATOMS ? left : (uint32_t)shape::PART_ATOMS,
                             sums_of_load(part_sums.slot, part_floats) + part * part_floats);
                    }
                    part -= parts;
                    part_sums.hand_over(lane);
                    part_sums.next();
                    ring.pass_on(lane);
                    ring.next();
                });
    }

    /* [parts, part_floats] */
    __device__ float *sums_of_load(uint32_t slot, uint32_t part_floats) const {
        return reinterpret_cast<float *>(shared + p.memory.partial) +
               slot * (p.cut.load_atoms / shape::PART_ATOMS) * part_floats;
    }

    /* ---- Adding ---- */

    /* By the adding warp: adds the parts of a slice, FLOATS of each, and the slices, and does `store` with
     * what a lane has of them (of every 32nd), the number of the block of outputs, and that of a slice: once
     * a block, or where several blocks of threads share the slices for each of them. */
    template <uint32_t FLOATS, typename Store>
    __device__ void add_parts(const Store &store) {
        constexpr uint32_t EACH = (FLOATS + WARP - 1) / WARP;
        for (uint32_t block = blockIdx.x; block < blocks; block += gridDim.x) {
            float total[EACH] = {};
            for (uint32_t s = first_slice; s < end_slice; s++) {
                float sum[EACH] = {};
                bool is_first = true;
                for_loads(s, [&](uint32_t, uint32_t count) {
                    add_load<FLOATS>(parts_of(count), is_first, sum);
                    is_first = false;
                });
#pragma unroll
                for (uint32_t i = 0; i < EACH; i++)
                    total[i] = s == first_slice || gridDim.y > 1 ? sum[i] : total[i] + sum[i];
                if (gridDim.y > 1 || s + 1 == end_slice)
                    store(total, block, s);
            }
        }
    }

    /* Four parts at a time are on their way to registers. */
    template <uint32_t FLOATS>
    __device__ void add_load(uint32_t parts, bool is_first, float *sum) {
        constexpr uint32_t EACH = (FLOATS + WARP - 1) / WARP, AT_ONCE = 4;
        part_sums.wait_until_full();
        const float *from = sums_of_load(part_sums.slot, FLOATS) + lane;
        for (uint32_t part = 0; part < parts; part += AT_ONCE) {
            float of_part[AT_ONCE][EACH];
#pragma unroll
            for (uint32_t k = 0; k < AT_ONCE; k++)
#pragma unroll
                for (uint32_t i = 0; i < EACH; i++)
                    of_part[k][i] = part + k < parts && (FLOATS % WARP == 0 || lane < FLOATS)
                                        ? from[(part + k) * FLOATS + i * WARP]
                                        : 0.0f;
#pragma unroll
            for (uint32_t k = 0; k < AT_ONCE; k++)
#pragma unroll
                for (uint32_t i = 0; i < EACH; i++) {
                    const float added = is_first && part + k == 0 ? of_part[k][i] : sum[i] + of_part[k][i];
                    sum[i] = part + k < parts ? added : sum[i];
                }
        }
        part_sums.pass_on(lane);
        part_sums.next();
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

    /* Adds the slices of the block's outputs of so many rows, in the block of threads that comes last. */
    __device__ void add_slices(uint32_t rows) const {
        if (!is_last_block(p.arrivals + blockIdx.z * gridDim.x + blockIdx.x, gridDim.y))
            return;
        const uint32_t here = (blocks - blockIdx.x + gridDim.x - 1) / gridDim.x * FEW_BLOCK_ROWS;
        const uint32_t slices = p.cut.slices();
#pragma unroll 1
        for (uint32_t e = threadIdx.x; e < here * rows; e += THREADS) {
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

} // namespace gb_cuda

#endif
