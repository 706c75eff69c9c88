/* SPDX-License-Identifier: Apache-2.0
 *
 * The weights of a GEMV and a block's share of the work: blocks of 16 outputs, one after the other. One warp
 * copies weights into the stages of a pipeline, beginning before earlier kernels end (warp specialization);
 * others multiply (gemv_rows.cuh, gemv_one_row.cuh), and one or more add the partial sums.
 *
 * The sum over k is cut into slices (split-K) and these into parts of eight groups. A part is one warp's
 * work; warps take parts in turns, so that none waits for another. A load of some parts fills a stage. A
 * part's sums overwrite its codes, so that the stage is empty once they have been added. The cut depends on
 * the matrix's sizes alone, so an output has the same bits whatever else is in the launch.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_WEIGHT_PIPELINE_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_WEIGHT_PIPELINE_CUH

#include "backends/cuda/device/copy_pipeline.cuh"
#include "backends/cuda/device/last_block.cuh"
#include "backends/cuda/gemm/gemv.cuh"

namespace gb_cuda {

struct gemv_barriers {
    copy_barrier full[GEMV_MOST_STAGES], empty[GEMV_MOST_STAGES]; /* stages copied, and added */
    copy_barrier multiplied[GEMV_MOST_STAGES];
    copy_barrier met, has_inputs;
};

/* A part in shared memory: what a lane has of its weights, codes of rows r and r + 8, and where theirs begin
 * of all groups; and where its sums go, over the codes of all lanes. */
struct part_place {
    const uint8_t *codes, *scales, *biases;
    float *sums;
};

/* The pipeline as a warp sees it, and the block's part of the GEMV: WARPS warps multiply, the next one
 * copies, and ADDERS warps add FLOATS / ADDERS sums of every part. */
template <typename Shape, int FLOATS, int WARPS, int ADDERS>
struct weight_pipeline {
    typedef Shape shape;
    static constexpr uint32_t COPYING = WARPS;
    static constexpr int THREADS = (WARPS + 1 + ADDERS) * WARP;
    static constexpr uint32_t PART_CODE_BYTES = shape::PART_ATOMS * shape::CODE_BYTES;
    static_assert(FLOATS * sizeof(float) <= PART_CODE_BYTES, "sums take the place of codes");
    /* Of the sums: how many each of those that add has, and how many of them a lane. */
    static constexpr uint32_t SHARE = FLOATS / ADDERS, EACH = (SHARE + WARP - 1) / WARP;
    static_assert(ADDERS == 1 || FLOATS % (ADDERS * WARP) == 0, "a lane has as many of each share");

    const gemv_products &p;
    uint8_t *shared;
    gemv_barriers &barriers;
    uint32_t lane, warp;
    uint32_t blocks; /* of 16 outputs of all matrices; the block has every gridDim.x-th */
    uint32_t first_slice, end_slice;
    uint32_t first_atom, end_atom; /* of these slices */
    size_t first_row;              /* of the tile of rows */
    copy_pipeline pipeline;
    copy_pipeline arrived; /* of the copying warp: loads that have arrived */
    uint32_t loads_begun = 0, loads_arrived = 0, meetings = 0;

    __device__ weight_pipeline(const gemv_products &products, uint8_t *memory, gemv_barriers &of_block)
        : p(products), shared(memory), barriers(of_block), lane(threadIdx.x % WARP), warp(threadIdx.x / WARP),
          pipeline(of_block.full, of_block.empty, p.memory.stages),
          arrived(of_block.full, of_block.empty, p.memory.stages) {
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
            pipeline.create(COPY_ARRIVALS, ADDERS);
            for (uint32_t i = 0; i < pipeline.stages; i++)
                begin_barrier(&barriers.multiplied[i], WARPS * DONE_ARRIVALS);
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

    static constexpr uint32_t PLANES = shape::HAS_BIASES ? 3 : 2;

    /* Each of the first PLANES lanes copies codes, scales or biases. */
    __device__ void copy_weights() {
        uint32_t product = 0, expert_blocks = 0;
        if (p.expert) {
            wait_for_earlier();
            expert_blocks = (uint32_t)p.expert[first_row] * blocks;
        }
        const uint32_t block_bytes = lane == 0 ? p.code_bytes : p.scale_bytes,
                       atom_bytes = lane == 0 ? (uint32_t)shape::CODE_BYTES : (uint32_t)shape::SCALE_BYTES;
        for (uint32_t block = blockIdx.x; block < blocks; block += gridDim.x) {
            while (block >= p.of[product].blocks_end)
                product++;
            const gemv_product &of = p.of[product];
            const size_t number = block - (product ? p.of[product - 1].blocks_end : 0) + expert_blocks;
            const uint8_t *plane = lane == 0                         ? of.codes
                                   : lane == 1 || !shape::HAS_BIASES ? of.scales
                                                                     : of.biases;
            const uint8_t *from = plane + number * block_bytes;
            for (uint32_t s = first_slice; s < end_slice; s++)
                for_loads(s, [&](uint32_t atom, uint32_t count) {
                    copy_load(from + (size_t)atom * atom_bytes, count);
                });
        }
    }

    /* from: of the lane's plane. */
    __device__ void copy_load(const uint8_t *from, uint32_t count) {
        const uint32_t codes = count * shape::CODE_BYTES;
        const uint32_t scales = shape::GROUP ? count * shape::SCALE_BYTES : (uint32_t)shape::GROUP_BYTES;
        const uint32_t at = lane == 0 ? 0 : lane == 1 ? p.memory.scales : p.memory.biases;
        copy_barrier *full = &pipeline.full[pipeline.stage];
        const uint32_t most =
            p.begins_slowly && !has_ended_for_warp(&barriers.has_inputs) ? 1 : (uint32_t)GEMV_LOADS_IN_FLIGHT;
        for (; pipeline.stages > most && loads_begun - loads_arrived >= most; loads_arrived++) {
            arrived.wait_until_full();
            arrived.next();
        }
        loads_begun++;
        pipeline.wait_until_empty();
        announce_by_warp(full, codes + (PLANES - 1) * scales);
        const copy_piece mine = {shared + pipeline.stage * p.memory.stage_bytes + at, from,
                                 lane == 0 ? codes : scales};
        copy_by_warp(mine, PLANES, full, p.is_read_once);
        end_copies(full);
        pipeline.next();
        __syncwarp(); /* no lane waits for a phase that another one has left behind */
    }

    /* ---- Multiplying ---- */

    /* The multiplying warps wait for one another. */
    __device__ void meet() {
        meet_warps<WARPS>(&barriers.met, meetings);
    }

    /* By all that multiply, when the inputs are in shared memory. */
    __device__ void begin_to_multiply() {
        meet();
        if (threadIdx.x == 0)
            arrive(&barriers.has_inputs);
    }

    /* Does `work` with where a part is, its first atom and how many it has, for every part that is the
     * warp's, when its weights are there. */
    template <typename Work>
    __device__ void for_parts(const Work &work) {
        uint32_t part = warp; /* the warp's next one, from the load's first one on */
        for (uint32_t block = blockIdx.x; block < blocks; block += gridDim.x)
            for (uint32_t s = first_slice; s < end_slice; s++)
                for_loads(s, [&](uint32_t atom, uint32_t count) {
                    const uint32_t parts = parts_of(count);
                    pipeline.wait_until_full(); /* of every load, because it must not miss a phase */
                    for (; part < parts; part += WARPS) {
                        const uint32_t first = part * shape::PART_ATOMS, left = count - first;
                        work(place_of(part), atom + first,
                             left < shape::PART_ATOMS ? left : (uint32_t)shape::PART_ATOMS);
                    }
                    part -= parts;
                    arrive_by_warp(&barriers.multiplied[pipeline.stage], lane);
                    pipeline.next();
                });
    }

    /* Of the stage. */
    __device__ part_place place_of(uint32_t part) const {
        uint8_t *stage = shared + pipeline.stage * p.memory.stage_bytes;
        const uint32_t scales = part * (shape::PART_ATOMS * shape::SCALE_BYTES) + lane / 4 * 4;
        return {stage + part * PART_CODE_BYTES + lane * 16, stage + p.memory.scales + scales,
                stage + p.memory.biases + scales, reinterpret_cast<float *>(stage + part * PART_CODE_BYTES)};
    }

    /* ---- Adding ---- */

    /* By a warp that adds: sums its share of the parts of a slice, then of the slices. It calls `store`
     * with a lane's sums (of every 32nd), the number of the block of outputs and that of the slice: once a
     * block, or for each slice where several blocks of threads share them. */
    template <typename Store>
    __device__ void add_parts(const Store &store) {
        for (uint32_t block = blockIdx.x; block < blocks; block += gridDim.x) {
            float total[EACH], sum[EACH];
            set_nothing(total);
            for (uint32_t s = first_slice; s < end_slice; s++) {
                set_nothing(sum);
                for_loads(s, [&](uint32_t, uint32_t count) { add_load(parts_of(count), sum); });
                if (gridDim.y > 1)
                    store(sum, block, s);
#pragma unroll
                for (uint32_t i = 0; i < EACH; i++)
                    total[i] += sum[i];
            }
            if (gridDim.y == 1)
                store(total, block, first_slice);
        }
    }

    /* To -0, which changes nothing that is added to it, not even -0. */
    __device__ static void set_nothing(float sum[EACH]) {
#pragma unroll
        for (uint32_t i = 0; i < EACH; i++)
            sum[i] = -0.0f;
    }

    /* The first one of the warp's share. */
    __device__ uint32_t share_begin() const {
        return (warp - COPYING - 1) * SHARE;
    }

    __device__ void add_load(uint32_t parts, float sum[EACH]) {
        constexpr uint32_t AT_ONCE = 4; /* in flight to registers */
        wait_for_phase(&barriers.multiplied[pipeline.stage], pipeline.parity);
        const uint8_t *from = shared + pipeline.stage * p.memory.stage_bytes +
                              as_it_is((share_begin() + lane % SHARE) * (uint32_t)sizeof(float));
        uint32_t part = 0;
#pragma unroll 1
        for (; part + AT_ONCE <= parts; part += AT_ONCE)
            add_sums_of<AT_ONCE>(from + part * PART_CODE_BYTES, sum);
#pragma unroll 1
        for (; part < parts; part++)
            add_sums_of<1>(from + part * PART_CODE_BYTES, sum);
        finish_writing();
        pipeline.release(lane);
        pipeline.next();
    }

    /* Of so many parts, in their order. */
    template <uint32_t PARTS>
    __device__ static void add_sums_of(const uint8_t *from, float sum[EACH]) {
        float of_part[PARTS][EACH];
#pragma unroll
        for (uint32_t k = 0; k < PARTS; k++)
#pragma unroll
            for (uint32_t i = 0; i < EACH; i++)
                of_part[k][i] = reinterpret_cast<const float *>(from + k * PART_CODE_BYTES)[i * WARP];
#pragma unroll
        for (uint32_t k = 0; k < PARTS; k++)
#pragma unroll
            for (uint32_t i = 0; i < EACH; i++)
                sum[i] += of_part[k][i];
    }

    __device__ float *slice_sum(uint32_t slice, uint32_t block, uint32_t in_block, size_t row) const {
        return p.partial + (((size_t)slice * p.rows + row) * blocks + block) * GEMV_BLOCK_ROWS + in_block;
    }

    /* Where the outputs of a block of them are: of the first row, how far the rows are apart, and how many of
     * the block's there are. */
    struct block_outputs {
        float *first;
        uint32_t stride, count;
    };

    __device__ block_outputs outputs_of(uint32_t block) const {
        uint32_t m = 0;
#pragma unroll 1
        while (block >= p.of[m].blocks_end)
            m++;
        const uint32_t before = m ? p.of[m - 1].blocks_end : 0, first = (block - before) * GEMV_BLOCK_ROWS;
        return {p.of[m].y + first, p.of[m].outputs, p.of[m].outputs - first};
    }

    /* Adds the slices of the block's outputs of so many rows, in the block of threads that comes last. */
    __device__ void add_slices(uint32_t rows) const {
        if (!is_last_block(p.arrivals + blockIdx.z * gridDim.x + blockIdx.x, gridDim.y))
            return;
        const uint32_t here = (blocks - blockIdx.x + gridDim.x - 1) / gridDim.x * GEMV_BLOCK_ROWS;
        const uint32_t slices = p.cut.slices();
#pragma unroll 1
        for (uint32_t e = threadIdx.x; e < here * rows; e += THREADS) {
            const size_t row = first_row + e / here;
            const uint32_t block = blockIdx.x + e % here / GEMV_BLOCK_ROWS * gridDim.x,
                           in_block = e % GEMV_BLOCK_ROWS;
            float sum = 0;
            for (uint32_t s = 0; s < slices; s++) {
                const float of_slice = __ldcg(slice_sum(s, block, in_block, row));
                sum = s == 0 ? of_slice : sum + of_slice;
            }
            const block_outputs to = outputs_of(block);
            if (in_block < to.count)
                to.first[row * to.stride + in_block] = sum;
        }
    }
};

} // namespace gb_cuda

#endif
