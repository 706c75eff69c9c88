/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMV of up to 16 rows in 8 bits with packed 4-bit matrices, on Hopper, in equal runs (tile_runs.cuh). One
 * thread copies weights, the first ones ahead of the kernels before, and one copies rows; a fragment of 16
 * outputs has two warps, which take stages in turns and multiply by their own tensor-core instruction (mma).
 */
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/gemm/int8/pipeline.cuh"
#include "backends/cuda/gemm/int8/tile_runs.cuh"

using namespace gb_cuda;

enum {
    TURNS = 2, /* warps of a fragment */
    MULTIPLYING = TURNS * INT8_FRAGMENTS,
    COPYING = 2, /* one warp's thread weights, the other's rows */
    STAGES = 6,  /* what is in flight: more let some multiprocessors have memory's bandwidth before others */
    EARLY_STAGES = 4, /* before the inputs are there: more would make them late */
    GEMV_INT8_THREADS = (MULTIPLYING + COPYING) * WARP,
};

struct gemv_int8 : tile_products {
    int8_rows x;
    uint32_t rows;
};

/* Where a fragment's second warp hands its sums to the first. */
template <typename Stage>
struct exchanged_sums {
    int32_t sums[INT8_FRAGMENTS][Stage::COLUMNS / 2][WARP];
    copy_barrier full[INT8_FRAGMENTS], empty[INT8_FRAGMENTS];
};

/* ---- Copying ------------------------------------------------------------------------------------------- */

template <typename Stage>
struct gemv_copier {
    const gemv_int8 &p;
    uint8_t *stages;
    copy_pipeline pipeline;

    /* Does `work` with a piece, and the first block and the number of blocks of each of its stages. */
    template <typename Work>
    __device__ void for_run(const Work &work) {
        for_pieces(p, [&](const tile_piece &piece) {
            uint32_t tile;
            const int8_matrix &m = p.matrix_of(piece.tile, &tile);
            for_stages<Stage::DEPTH>(piece, [&](uint32_t at, uint32_t blocks) {
                pipeline.wait_until_empty();
                work(m, (size_t)tile * p.blocks() + at, at, blocks);
                pipeline.next();
            });
        });
    }

    /* The first ones do not wait for the kernel before this one. */
    __device__ void copy_weights() {
        static_assert((int)EARLY_STAGES < (int)STAGES, "the rest wait in stages of their own");
        uint32_t number = 0;
        for_run([&](const int8_matrix &m, size_t first, uint32_t, uint32_t blocks) {
            uint8_t *stage = stages + pipeline.stage * Stage::BYTES;
            copy_barrier *full = &pipeline.full[pipeline.stage];
            if (number++ == EARLY_STAGES)
                wait_for_earlier();
            arrive_expecting(full, blocks * (INT8_CODE_BYTES + Stage::GROUP_BYTES));
            copy_bulk(stage, m.codes + first * INT8_CODE_BYTES, blocks * INT8_CODE_BYTES, full);
            copy_bulk(stage + Stage::GROUPS_AT, m.groups + first * Stage::GROUP_BYTES,
                      blocks * Stage::GROUP_BYTES, full);
        });
    }

    /* Rows past the last are what was there before; their sums are not stored. */
    __device__ void copy_rows() {
        wait_for_earlier();
        const uint32_t bytes = p.rows * INT8_BLOCK;
        for_run([&](const int8_matrix &, size_t, uint32_t at, uint32_t blocks) {
            uint8_t *to = stages + pipeline.stage * Stage::BYTES + Stage::INPUTS_AT;
            copy_barrier *full = &pipeline.full[pipeline.stage];
            arrive_expecting(full, blocks * bytes);
            for (uint32_t i = 0; i < blocks; i++)
                copy_bulk(to + i * Stage::INPUT_BYTES, int8_block(p.x, 0, at + i), bytes, full);
        });
    }
};

/* ---- Multiplying --------------------------------------------------------------------------------------- */

/* The rows of a lane's sums: what INT8_RAISED_BY has added to them, and their scales. */
template <int SUMS>
struct lane_rows {
    int32_t raised[SUMS];
    float scales[SUMS];

    __device__ void load(const gemv_int8 &p) {
#pragma unroll
        for (uint32_t i = 0; i < SUMS; i++) {
            const uint32_t row = i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
            raised[i] = row < p.rows ? INT8_RAISED_BY * p.x.sums[row] : 0;
            scales[i] = row < p.rows ? p.x.scales[row] : 0;
        }
    }
};

template <typename Stage>
struct gemv_int8_warp {
    enum { SUMS = Stage::COLUMNS / 2, TILES = Stage::COLUMNS / 8 };
    static_assert(STAGES % TURNS == 0 && (int)STAGES <= (int)Stage::COUNT,
                  "a stage's place is always that of one turn");

    const gemv_int8 &p;
    const uint8_t *stages;
    const group_table &table;
    copy_pipeline pipeline, exchange;
    int32_t (*exchanged)[WARP];
    uint32_t lane, fragment, turn;
    int32_t sums[SUMS]; /* as mma.cuh has them, of 8 rows after another */

    __device__ gemv_int8_warp(const gemv_int8 &product, const uint8_t *in_stages, const group_table &groups,
                              const copy_pipeline &of, exchanged_sums<Stage> &with)
        : p(product), stages(in_stages), table(groups), pipeline(of),
          exchange(with.full + threadIdx.x / WARP % INT8_FRAGMENTS,
                   with.empty + threadIdx.x / WARP % INT8_FRAGMENTS, 1),
          exchanged(with.sums[threadIdx.x / WARP % INT8_FRAGMENTS]), lane(threadIdx.x % WARP),
          fragment(threadIdx.x / WARP % INT8_FRAGMENTS), turn(threadIdx.x / WARP / INT8_FRAGMENTS) {}

    __device__ void add_block(const uint8_t *stage, uint32_t block) {
        uint32_t weights[INT8_UNITS][4];
        expand_block<Stage>(table, stage, block, fragment, weights);
        const uint8_t *rows = stage + Stage::INPUTS_AT + block * Stage::INPUT_BYTES + lane / 4 * INT8_BLOCK;
        const uint32_t halves[2] = {lane_half(lane / 4, lane % 4, 0), lane_half(lane / 4, lane % 4, 1)};
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const uint4 b = *reinterpret_cast<const uint4 *>(rows + tile * 8 * INT8_BLOCK + halves[half]);
                int32_t *of_tile = sums + tile * 4;
                multiply_add_bytes(of_tile, weights[half * 2], b.x, b.y, of_tile);
                multiply_add_bytes(of_tile, weights[half * 2 + 1], b.z, b.w, of_tile);
            }
    }

    __device__ void add_stage(uint32_t blocks) {
        const uint8_t *stage = stages + pipeline.stage * Stage::BYTES;
        pipeline.wait_until_full();
        if (blocks == Stage::DEPTH) {
#pragma unroll
            for (uint32_t block = 0; block < Stage::DEPTH; block++)
                add_block(stage, block);
        } else {
            add_block(stage, 0);
        }
        pipeline.release(lane);
    }

    __device__ void multiply_all() {
        static_assert(Stage::DEPTH == 2, "a stage that is not full has one block");
        wait_for_earlier();
        lane_rows<SUMS / 2> rows;
        rows.load(p);
        uint32_t number = 0;
        for_pieces(p, [&](const tile_piece &piece) {
            tile_result to = {};
            if (turn == 0)
                to = result_of(piece.tile);
#pragma unroll
            for (int i = 0; i < SUMS; i++)
                sums[i] = 0;
            for_stages<Stage::DEPTH>(piece, [&](uint32_t, uint32_t blocks) {
                if (number++ % TURNS == turn)
                    add_stage(blocks);
                pipeline.next();
            });
            if (turn > 0)
                give_sums();
            else
                finish(piece, to, rows);
        });
    }

    /* ---- Results ---- */

    __device__ void give_sums() {
        exchange.wait_until_empty();
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            exchanged[i][lane] = sums[i];
        arrive_by_warp(exchange.full, lane);
        exchange.next();
    }

    __device__ void take_sums() {
        exchange.wait_until_full();
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sums[i] += exchanged[i][lane];
        exchange.release(lane);
        exchange.next();
    }

    /* Where the lane's outputs r and r + 8 of a tile go, and their scales, which are on their way while the
     * tile is multiplied: memory that is busy with weights answers late. */
    struct tile_result {
        float *to;
        uint32_t stride, count; /* count: of outputs from the first one on that the matrix has */
        uint16_t scales[2];
        const gb_cuda_exchange *ranks;
    };

    __device__ uint32_t output_in_tile() const {
        return fragment * GB_FRAGMENT_ROWS + lane / 4;
    }

    __device__ tile_result result_of(uint32_t tile) const {
        const int8_matrix &m = p.matrix_of(tile, &tile);
        const uint32_t output = tile * GB_TILE_ROWS + output_in_tile();
        const uint32_t count = output < m.outputs ? m.outputs - output : 0;
        return {m.y + output, m.stride, count, {m.row_scales[output], m.row_scales[output + 8]}, m.ranks};
    }

    __device__ uint32_t row_of(int sum) const {
        return (uint32_t)(sum / 4 * 8 + sum % 2) + lane % 4 * 2;
    }
    __device__ static uint32_t below(int sum) {
        return (uint32_t)(sum % 4 / 2 * 8);
    }

    __device__ void store(const tile_result &to, int sum, int32_t value,
                          const lane_rows<SUMS / 2> &rows) const {
        const int row = sum / 4 * 2 + sum % 2;
        float *const own = to.to + (size_t)row_of(sum) * to.stride + below(sum);
        const float result = int8_result(value - rows.raised[row], rows.scales[row],
                                         gb_widen_half(to.scales[below(sum) / 8], GB_F16));
        if (below(sum) >= to.count)
            return;
        *own = result;
        if (to.ranks)
            store_at_others(*to.ranks, own, result);
    }

    __device__ void finish(const tile_piece &piece, const tile_result &to, const lane_rows<SUMS / 2> &rows) {
        take_sums();
        if (!piece.is_whole(p))
            return join(piece, to, rows);
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            if (row_of(i) < p.rows)
                store(to, i, sums[i], rows);
    }

    /* Adds the piece's sums to those of the tile's other pieces; the last one stores results. */
    __device__ void join(const tile_piece &piece, const tile_result &to,
                         const lane_rows<SUMS / 2> &rows) const {
        const piece_joint joint(p, piece.tile, Stage::COLUMNS);
        unsigned long long joined[SUMS] = {};
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            if (row_of(i) < p.rows)
                joined[i] = joint.add(row_of(i) * GB_TILE_ROWS + output_in_tile() + below(i), sums[i]);
#pragma unroll
        for (int i = 0; i < SUMS; i++) {
            int32_t sum;
            if (row_of(i) < p.rows &&
                joint.take(row_of(i) * GB_TILE_ROWS + output_in_tile() + below(i), joined[i], &sum))
                store(to, i, sum, rows);
        }
    }
};

template <int COLUMNS, int GROUP>
static __global__ void __launch_bounds__(GEMV_INT8_THREADS, 1) run_gemv_int8(GB_GRID_CONSTANT gemv_int8 p) {
#if defined(GB_HAS_WGMMA)
    typedef int8_stage<COLUMNS, GROUP> stage;
    __shared__ copy_barrier full[STAGES], empty[STAGES];
    __shared__ exchanged_sums<stage> exchanged;
    __shared__ group_table table;
    GB_DYNAMIC_SHARED(uint8_t, shared);
    uint8_t *stages = align_b(shared);
    const copy_pipeline pipeline(full, empty, STAGES);
    if (threadIdx.x == 0) {
        pipeline.create(COPYING, INT8_FRAGMENTS);
        for (unsigned i = 0; i < INT8_FRAGMENTS; i++)
            copy_pipeline(exchanged.full + i, exchanged.empty + i, 1).create(DONE_ARRIVALS, 1);
        finish_barriers();
    }
    table.fill();
    __syncthreads();
    if (threadIdx.x / WARP < MULTIPLYING)
        gemv_int8_warp<stage>(p, stages, table, pipeline, exchanged).multiply_all();
    else if (threadIdx.x == MULTIPLYING * WARP)
        gemv_copier<stage>{p, stages, pipeline}.copy_weights();
    else if (threadIdx.x == (MULTIPLYING + 1) * WARP)
        gemv_copier<stage>{p, stages, pipeline}.copy_rows();
#endif
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* Blocks of threads: as many as multiprocessors, and as have places to join their sums. */
static unsigned grid_of(const gemv_int8 &p, uint32_t columns) {
    const uint32_t all = p.keeps_tiles ? p.tiles : p.tiles * p.blocks(),
                   blocks = gb_cuda_find_facts()->multiprocessors,
                   places = GB_CUDA_ARRIVALS * sizeof(uint32_t) / (GB_TILE_ROWS * sizeof(uint64_t)) / columns,
                   most = blocks < places ? blocks : places;
    return all < most ? all : most;
}

/* Whether whole tiles keep multiprocessors busy for less time, in blocks of columns, than cut ones with what
 * joining their sums takes. */
static bool keeps_tiles(const gemv_int8 &p) {
    const uint32_t blocks = gb_cuda_find_facts()->multiprocessors, joining = 2 + p.rows / 2;
    return blocks_for(p.tiles, blocks) * p.blocks() <=
           blocks_for((size_t)p.tiles * p.blocks(), blocks) + joining;
}

template <int COLUMNS, int GROUP>
static void launch(const gb_cuda_call *call, const gemv_int8 &p) {
    typedef int8_stage<COLUMNS, GROUP> stage;
    const size_t shared = (size_t)STAGES * stage::BYTES + B_ALIGNMENT;
    auto kernel = run_gemv_int8<COLUMNS, GROUP>;
    add_launch(call->launches, "gemv_int8", kernel, grid_of(p, COLUMNS), GEMV_INT8_THREADS, shared, p);
}

void gb_cuda_gemv_int8(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    gemv_int8 p = {};
    for (uint32_t i = 0; i < problem->count; i++)
        p.of[i] = gb_cuda_int8_matrix(problem->parts[i], &p.tiles);
    p.joined = reinterpret_cast<unsigned long long *>(call->scratch->arrivals);
    p.columns = int8_blocks_of(call) * GB_TILE_COLUMNS;
    p.x = gb_cuda_round_rows(call);
    p.rows = (uint32_t)call->operands[0]->dims[0];
    p.keeps_tiles = keeps_tiles(p);
    dispatch([&](auto columns, auto group) { launch<columns, group>(call, p); },
             one_of<8, GB_CUDA_MOST_FEW_ROWS>(p.rows <= 8 ? 8 : (size_t)GB_CUDA_MOST_FEW_ROWS),
             one_of<32, 64, 128>(call->operands[1]->format.group));
}
