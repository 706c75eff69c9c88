/* SPDX-License-Identifier: Apache-2.0
 *
 * What a block of threads has of a GEMV of one row in 8 bits with packed 4-bit matrices (gemv_one_row.cuh):
 * its share of the weights (tile_runs.cuh), which one warp copies ahead, and the row, which the others round.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROW_PIPELINE_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROW_PIPELINE_CUH

#include "backends/cuda/device/copy_pipeline.cuh"
#include "backends/cuda/device/warp_integers.cuh"
#include "backends/cuda/gemm/int8/row_operand.cuh"
#include "backends/cuda/gemm/int8/tile_runs.cuh"
#include "backends/cuda/norm/long_rows.cuh"

namespace gb_cuda {

enum {
    ROW_TURNS = 2,        /* warps of a fragment */
    ROW_STAGE_BLOCKS = 2, /* of columns */
    ROW_MOST_STAGES = 12,
    /* In flight at a time: more would delay the inputs while these are not there, and afterwards let some
     * multiprocessors have memory's bandwidth before others. */
    ROW_EARLY_STAGES = 2,
    ROW_LATE_STAGES = 4,
};
static_assert(ROW_MOST_STAGES % ROW_TURNS == 0, "a stage's place is always that of one turn");

/* Products of one row. */
struct int8_row_products : tile_products {
    uint32_t stages;   /* a multiple of ROW_TURNS: a place among them is always that of one turn */
    uint32_t inputs;   /* of the row; zeros follow up to `columns` */
    unsigned rotation; /* 0: none */
    float factor;      /* of the row's scale */
};

struct row_barriers {
    copy_barrier full[ROW_MOST_STAGES], empty[ROW_MOST_STAGES];
    copy_barrier given[INT8_FRAGMENTS], taken[INT8_FRAGMENTS];
    copy_barrier met, has_inputs;
};

/* Bytes of the dynamic shared memory behind the stages. */
struct row_memory {
    uint32_t given_at, size;

    __host__ __device__ explicit row_memory(uint32_t columns)
        : given_at(row_operand::bytes(columns)),
          size(given_at + (uint32_t)((ROW_TURNS - 1) * GB_TILE_ROWS * sizeof(int32_t))) {}
};

template <int GROUP>
struct int8_row_pipeline {
    enum {
        WARPS = ROW_TURNS * INT8_FRAGMENTS, /* that multiply; the next one copies */
        THREADS = (WARPS + 1) * WARP,
        GROUPS = GB_TILE_COLUMNS / GROUP,
        GROUP_BYTES = GB_TILE_ROWS * GROUPS,
        GROUPS_AT = ROW_STAGE_BLOCKS * INT8_CODE_BYTES,
        STAGE_BYTES = GROUPS_AT + ROW_STAGE_BLOCKS * GROUP_BYTES,
    };

    const int8_row_products &p;
    uint8_t *shared;
    row_barriers &barriers;
    row_operand x;
    float &x_scale; /* in shared memory */
    uint32_t lane, warp, fragment, turn;
    copy_pipeline pipeline;
    uint32_t meetings = 0;

    __device__ int8_row_pipeline(const int8_row_products &products, uint8_t *memory, row_barriers &of_block,
                                 float &scale)
        : p(products), shared(memory), barriers(of_block), x(memory + p.stages * STAGE_BYTES, p.columns),
          x_scale(scale), lane(threadIdx.x % WARP), warp(threadIdx.x / WARP), fragment(warp % INT8_FRAGMENTS),
          turn(warp / INT8_FRAGMENTS), pipeline(of_block.full, of_block.empty, p.stages) {}

    /* All threads call it before anything else. */
    __device__ void create_barriers() const {
        if (threadIdx.x == 0) {
            pipeline.create(COPY_ARRIVALS, INT8_FRAGMENTS);
            for (unsigned i = 0; i < INT8_FRAGMENTS; i++)
                copy_pipeline(barriers.given + i, barriers.taken + i, 1)
                    .create((ROW_TURNS - 1) * DONE_ARRIVALS, 1);
            begin_barrier(&barriers.met, WARPS);
            begin_barrier(&barriers.has_inputs, 1);
            finish_barriers();
        }
        __syncthreads();
    }

    __device__ bool copies() const {
        return warp == WARPS;
    }

    /* ---- Copying ---- */

    /* By the warp that copies: its first lane codes, its second one groups. */
    __device__ void copy_weights() {
        copy_pipeline landed = pipeline;
        uint32_t in_flight = 0;
        for_pieces(p, [&](const tile_piece &piece) {
            uint32_t tile;
            const int8_matrix &m = p.matrix_of(piece.tile, &tile);
            for_stages<ROW_STAGE_BLOCKS>(piece, [&](uint32_t at, uint32_t count) {
                const uint32_t most = has_ended_for_warp(&barriers.has_inputs) ? (uint32_t)ROW_LATE_STAGES
                                                                               : (uint32_t)ROW_EARLY_STAGES;
                for (; in_flight >= most; in_flight--) {
                    landed.wait_until_full();
                    landed.next();
                }
                copy_stage(m, (size_t)tile * p.blocks() + at, count);
                in_flight++;
            });
        });
    }

    __device__ void copy_stage(const int8_matrix &m, size_t block, uint32_t count) {
        uint8_t *stage = shared + pipeline.stage * STAGE_BYTES;
        copy_barrier *full = &pipeline.full[pipeline.stage];
        pipeline.wait_until_empty();
        announce_by_warp(full, count * (INT8_CODE_BYTES + GROUP_BYTES));
        const uint32_t size = lane == 0 ? (uint32_t)INT8_CODE_BYTES : (uint32_t)GROUP_BYTES;
        const copy_piece piece = {stage + (lane == 0 ? 0 : GROUPS_AT),
                                  (lane == 0 ? m.codes : m.groups) + block * size, count * size};
        copy_by_warp(piece, 2, full, true);
        end_copies(full);
        pipeline.next();
        __syncwarp(); /* no lane waits for a phase that another one has left behind */
    }

    /* ---- Inputs ---- */

    /* The multiplying warps wait for one another. */
    __device__ void meet() {
        meet_warps<WARPS>(&barriers.met, meetings);
    }

    /* Whether the warp has some in a round. */
    template <int EACH>
    __device__ bool has_columns(int round) const {
        return ((uint32_t)round * WARPS + warp) * WARP * EACH < p.columns;
    }

    /* Rounds the row. of: of each round a thread's columns, those of a round after those of the one before;
     * zeros past the row's end. largest: shared memory, a word for each warp. */
    template <int EACH, int ROUNDS>
    __device__ void round_row(row_part<EACH> *of, uint32_t *largest) {
        uint32_t magnitude = 0;
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            if (!has_columns<EACH>(r))
                break;
            hadamard_of_warp<EACH>(of[r].v, p.rotation);
            magnitude = larger<EACH>(magnitude, of[r].v);
        }
        magnitude = largest_in_warp(magnitude);
        if (lane == 0)
            largest[warp] = magnitude;
        meet();
        const row_divisor by(largest_in_warp(lane < WARPS ? largest[lane] : 0));
#pragma unroll
        for (int r = 0; r < ROUNDS && has_columns<EACH>(r); r++) {
            const uint32_t column = ((uint32_t)r * WARPS * WARP + threadIdx.x) * EACH;
            x.store<EACH>(by, column, column < p.columns, of[r].v);
        }
        if (threadIdx.x == 0)
            x_scale = p.rotation > 0 ? by.scale * p.factor : by.scale;
    }
};

} // namespace gb_cuda

#endif
