/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of rows in 8 bits with packed 4-bit weights, on Hopper (gemm/int8/wgmma_int8.cuh), of more rows than
 * gemv_int8.cu has.
 */
#include "backends/cuda/gemm/codes.cuh"
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/gemm/int8/wgmma_int8.cuh"

using namespace gb_cuda;

enum {
    LEAST_SPLIT_BLOCKS = 8, /* of columns */
    SPLIT_COST = 2,         /* in the time of a block of columns */
    LEAST_EXPERT_ROWS = 16, /* of a mean expert, for which tiles of 64 rows are worth it */
};

/* TOGETHER: blocks that a multiprocessor has at a time. */
template <int COLUMNS, int GROUP, int TOGETHER, int FEWEST>
static __global__ void __launch_bounds__(INT8_THREADS, TOGETHER)
    run_gemm_wgmma_int8(GB_GRID_CONSTANT int8_gemm p) {
#if defined(GB_HAS_WGMMA)
    typedef int8_stage<COLUMNS, GROUP, TOGETHER> stage;
    typedef int8_registers<TOGETHER> registers;
    __shared__ copy_barrier full[INT8_MOST_STAGES], empty[INT8_MOST_STAGES];
    __shared__ copy_barrier rows_full[RESULT_STAGES], rows_empty[RESULT_STAGES];
    __shared__ copy_barrier sent_full[SENT_STAGES], sent_empty[SENT_STAGES];
    __shared__ result_rows<COLUMNS> rows[RESULT_STAGES];
    __shared__ stored_fragments stored[SENT_STAGES];
    __shared__ group_table table;
    GB_DYNAMIC_SHARED(uint8_t, shared);
    uint8_t *stages = align_b(shared);
    const copy_pipeline pipeline(full, empty, stage::COUNT), of_rows(rows_full, rows_empty, RESULT_STAGES),
        of_sent(sent_full, sent_empty, SENT_STAGES);
    if (threadIdx.x == 0) {
        pipeline.create(1, INT8_FRAGMENTS);
        of_rows.create(DONE_ARRIVALS, INT8_FRAGMENTS);
        of_sent.create(INT8_FRAGMENTS * DONE_ARRIVALS, SENDING_WARPS);
        finish_barriers();
    }
    table.fill();
    __syncthreads();
    if (threadIdx.x < WARPGROUP) {
        give_registers_back<registers::OF_COPYING>();
        if (threadIdx.x == 0)
            int8_copier<stage>{p, stages, pipeline}.copy_all();
        else if (threadIdx.x / WARP == 1)
            load_result_rows<COLUMNS>(p, rows, of_rows);
        else if (threadIdx.x / WARP >= WARPGROUP / WARP - SENDING_WARPS && p.sends)
            send_results(p, stored, of_sent, threadIdx.x / WARP - (WARPGROUP / WARP - SENDING_WARPS));
    } else {
        take_registers<registers::OF_MULTIPLYING>();
        int8_multiplier<stage, FEWEST>(p, stages, table, rows, stored, pipeline, of_rows, of_sent)
            .multiply_all();
    }
#endif
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

/* Whether a kernel of it is there and the device can run it. */
static bool device_has_wgmma(const gb_cuda_call *call) {
    return call->scratch->wgmma_blocks > 0;
}

bool gb_cuda_supports_wgmma_int8(const gb_cuda_call *call) {
    return gb_cuda_is_in_int8_tiles(call) && device_has_wgmma(call) && call->operands[1]->rank == 2;
}

/* Rows of the tiles that a product of so many rows is computed in. */
static size_t tile_columns(size_t rows) {
    const size_t widths[] = {INT8_SMALL_TILE_ROWS, 128, 192, INT8_MOST_TILE_ROWS};
    size_t i = 0;
    while (widths[i] < rows && widths[i] < INT8_MOST_TILE_ROWS)
        i++;
    return widths[i];
}

/* The rounds of items that the busiest block of threads has, in blocks of columns. */
static uint32_t cost_of_splits(const gb_cuda_call *call, const int8_gemm &p, uint32_t splits) {
    const uint32_t rounds = blocks_for((size_t)p.tiles * p.row_tiles * splits, call->scratch->wgmma_blocks);
    return rounds * (blocks_for(p.blocks, splits) + (splits > 1 ? SPLIT_COST : 0));
}

/* Into splits of k that keep all multiprocessors equally busy, as far as scratch and counters go. */
static uint32_t choose_splits(const gb_cuda_call *call, const int8_gemm &p, size_t rows) {
    const size_t tiles = (size_t)p.tiles * p.row_tiles;
    uint32_t best = 1;
    for (uint32_t splits = 2; splits <= p.blocks / LEAST_SPLIT_BLOCKS; splits++)
        if (tiles * INT8_FRAGMENTS <= GB_CUDA_ARRIVALS &&
            tiles * splits * tile_columns(rows) <=
                (size_t)call->scratch->wgmma_blocks * INT8_MOST_TILE_ROWS &&
            cost_of_splits(call, p, splits) < cost_of_splits(call, p, best))
            best = splits;
    return best;
}

/* The product of the rows of x, or of the entries of lists. */
static int8_gemm product_of(const gb_cuda_call *const *calls, uint32_t count, const int8_rows &x,
                            const row_lists &lists, size_t row_tiles) {
    const gb_cuda_call *first = calls[0];
    int8_gemm p = {};
    for (uint32_t i = 0; i < count; i++) {
        p.of[i] = gb_cuda_int8_matrix(calls[i], &p.tiles);
        p.sends = p.sends || p.of[i].ranks;
    }
    p.x = x;
    p.lists = lists;
    p.partial = reinterpret_cast<int4 *>(first->scratch->bytes);
    p.arrivals = first->scratch->arrivals;
    p.row_tiles = (uint32_t)row_tiles;
    p.blocks = int8_blocks_of(first);
    p.splits = lists.tiles ? 1 : choose_splits(first, p, lists.rows);
    return p;
}

template <int COLUMNS, int GROUP, int TOGETHER, int FEWEST = COLUMNS>
static void add_product(const gb_cuda_call *call, const int8_gemm &p, unsigned blocks) {
    add_launch(call->launches, "gemm_wgmma_int8", run_gemm_wgmma_int8<COLUMNS, GROUP, TOGETHER, FEWEST>,
               blocks, INT8_THREADS, int8_stage<COLUMNS, GROUP, TOGETHER>::ALL_BYTES, p);
}

/* Where blocks have several items of few rows each, two of them wait for memory in turns; else one has as
 * many items as another. */
template <int COLUMNS, int GROUP>
static void launch_columns(const gb_cuda_call *call, const int8_gemm &p) {
    enum { SEVERAL = 4 };
    const uint32_t at_a_time = call->scratch->wgmma_blocks;
    if constexpr (COLUMNS <= INT8_SMALL_TILE_ROWS)
        if (p.items() >= SEVERAL * at_a_time)
            return add_product<COLUMNS, GROUP, 2>(call, p, 2 * at_a_time);
    const uint32_t blocks = blocks_for(p.items(), blocks_for(p.items(), at_a_time));
    if constexpr (COLUMNS == INT8_MOST_TILE_ROWS)
        if (p.lists.tiles)
            return add_product<COLUMNS, GROUP, 1, INT8_SMALL_TILE_ROWS>(call, p, blocks);
    add_product<COLUMNS, GROUP, 1>(call, p, blocks);
}

static void launch(const gb_cuda_call *call, const int8_gemm &p, size_t tile_rows) {
    const size_t columns = tile_columns(tile_rows);
    dispatch([&](auto width, auto group) { launch_columns<width, group>(call, p); },
             one_of<INT8_SMALL_TILE_ROWS, 128, 192, INT8_MOST_TILE_ROWS>(columns),
             one_of<32, 64, 128>(call->operands[1]->format.group));
}

void gb_cuda_gemm_wgmma_int8(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const row_lists lists = all_rows(call);
    const int8_rows x = gb_cuda_round_rows(call);
    launch(call,
           product_of(problem->parts, problem->count, x, lists, blocks_for(lists.rows, INT8_MOST_TILE_ROWS)),
           lists.rows);
}

/* Any number of rows: only products of few tiles are split. */
uint64_t gb_cuda_gemm_wgmma_int8_scratch(const gb_cuda_problem *problem) {
    return (uint64_t)problem->parts[0]->scratch->wgmma_blocks * GB_TILE_ROWS * INT8_MOST_TILE_ROWS *
           sizeof(int32_t);
}

/* ---- Experts ------------------------------------------------------------------------------------------- */

bool gb_cuda_supports_expert_wgmma_int8(const gb_cuda_call *call) {
    const size_t pairs = gb_cuda_elements(call->operands[2]), experts = call->operands[1]->dims[0];
    return gb_cuda_is_in_int8_tiles(call) && device_has_wgmma(call) && gb_cuda_is_prompt(call) &&
           pairs > experts * LEAST_EXPERT_ROWS;
}

size_t gb_cuda_wgmma_int8_tile_rows(size_t pairs, size_t experts) {
    return pairs / experts <= INT8_SMALL_TILE_ROWS ? INT8_SMALL_TILE_ROWS : INT8_MOST_TILE_ROWS;
}

void gb_cuda_expert_wgmma_int8(const gb_cuda_call *call, const row_lists &lists) {
    const int8_rows x = gb_cuda_gather_rounded(call, gb_cuda_round_rows(call), lists);
    launch(call, product_of(&call, 1, x, lists, lists.tile_count), lists.tile_rows);
}
