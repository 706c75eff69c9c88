/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of threads' share of a product of few rows, and the weights of it: the block goes through blocks of
 * 16 outputs, and one of its warps keeps copies of the next weights under way in a ring, which begin before
 * the kernels before it end. The others multiply (few_rows.cuh, one_row.cuh) and pass the slots on.
 *
 * The sum over k is cut into slices, a slice into turns, of which each is a slot of the ring, and a turn into
 * parts, one for each multiplying warp, all of whole atoms. How it is cut depends on the matrix's sizes
 * alone, so that an output has the same bits whatever the other rows and matrices of the launch are.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_WEIGHT_RING_CUH
#define GUMBEL_RUN_CUDA_DEVICE_WEIGHT_RING_CUH

#include "run/cuda/device/copy_ring.cuh"
#include "run/cuda/device/few_product.cuh"
#include "run/cuda/device/last_block.cuh"

namespace gb_cuda {

struct few_barriers {
    copy_barrier full[FEW_MOST_SLOTS], empty[FEW_MOST_SLOTS]; /* of the ring of weights */
    copy_barrier met;
};

/* The ring as one warp sees it, and what the block has of the product. */
template <typename Shape>
struct weight_ring {
    typedef Shape shape;

    const few_products &p;
    uint8_t *shared;
    few_barriers &barriers;
    uint32_t lane, warp;
    uint32_t blocks; /* of 16 outputs of all matrices; the block has every gridDim.x-th */
    uint32_t first_slice, end_slice;
    uint32_t first_atom, end_atom; /* of these slices */
    size_t first_row;              /* of the tile of rows */
    shared_ring ring;
    shared_ring arrived; /* of the copying warp: what it has seen come */
    uint32_t turns_begun = 0, meetings = 0;

    __device__ weight_ring(const few_products &products, uint8_t *memory, few_barriers &of_block)
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
    }

    /* All threads call it before anything else. */
    __device__ void create_barriers() const {
        if (threadIdx.x == 0) {
            ring.create(COPY_ARRIVALS, FEW_PARTS);
            begin_barrier(&barriers.met, FEW_PARTS);
            finish_barriers();
        }
        __syncthreads();
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

    /* The first of a turn's atoms that a part has. */
    __device__ static uint32_t part_begin(uint32_t count, uint32_t part) {
        return count * part / FEW_PARTS;
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
        asm volatile("bar.sync 1, %0;" ::"n"(FEW_PARTS * WARP) : "memory");
#else
        __syncwarp();
        if (lane == 0)
            arrive(&barriers.met);
        wait_for_phase(&barriers.met, meetings);
        meetings ^= 1;
#endif
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
        for (uint32_t e = threadIdx.x; e < here * rows; e += FEW_THREADS) {
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
