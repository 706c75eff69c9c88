/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of rows in 8 bits with packed 4-bit weights, on Hopper (gemm/wgmma_int8.cuh), for any number of rows.
 */
#include "backends/cuda/gemm/codes.cuh"
#include "backends/cuda/gemm/wgmma_int8.cuh"

using namespace gb_cuda;

enum {
    LEAST_SPLIT_BLOCKS = 8, /* of columns: what a split costs is the work of about two */
    FEW_ROWS = 16,          /* for which the kernel without a pipeline is faster */
    LEAST_EXPERT_ROWS = 16, /* of a mean expert, likewise */
};

template <int COLUMNS, int GROUP>
static __global__ void __launch_bounds__(INT8_THREADS, 1) multiply_rows(GB_GRID_CONSTANT int8_gemm p) {
#if defined(GB_HAS_WGMMA)
    typedef int8_stage<COLUMNS, GROUP> stage;
    __shared__ copy_barrier full[INT8_MOST_STAGES], empty[INT8_MOST_STAGES];
    GB_DYNAMIC_SHARED(uint8_t, shared);
    uint8_t *stages = align_b(shared);
    const copy_pipeline pipeline(full, empty, stage::COUNT);
    if (threadIdx.x == 0) {
        pipeline.create(1, INT8_FRAGMENTS);
        finish_barriers();
    }
    __syncthreads();
    if (threadIdx.x < WARPGROUP) {
        give_registers_back<INT8_COPYING_REGISTERS>();
        if (threadIdx.x == 0)
            int8_copier<stage>{p, stages, pipeline}.copy_all();
    } else {
        take_registers<INT8_MULTIPLYING_REGISTERS>();
        int8_multiplier<stage>(p, stages, pipeline).multiply_all();
    }
#endif
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

/* Whether a kernel of it is there and the device can run it. */
static bool device_has_wgmma(const gb_cuda_call *call) {
    return call->scratch->wgmma_blocks > 0;
}

bool gb_cuda_supports_wgmma_int8(const gb_cuda_call *call) {
    return gb_cuda_supports_mma_int8(call) && device_has_wgmma(call) && call->operands[1]->rank == 2;
}

/* Into as many splits of k as keep the device busy, where there are few tiles. */
static uint32_t choose_splits(const gb_cuda_call *call, const int8_gemm &p) {
    const uint32_t busy = call->scratch->wgmma_blocks / (p.tiles * p.row_tiles),
                   most = p.blocks / LEAST_SPLIT_BLOCKS;
    const uint32_t splits = busy < most ? busy : most;
    return splits < 1 ? 1 : splits;
}

/* Blocks of threads that have equally many items. */
static unsigned choose_grid(const gb_cuda_call *call, uint32_t items) {
    return blocks_for(items, blocks_for(items, call->scratch->wgmma_blocks));
}

template <int COLUMNS>
static void launch_columns(const gb_cuda_call *call, const int8_gemm &p) {
    const unsigned group = call->operands[1]->format.group;
    auto kernel = multiply_rows<COLUMNS, 32>;
    if (group == 64)
        kernel = multiply_rows<COLUMNS, 64>;
    else if (group == 128)
        kernel = multiply_rows<COLUMNS, 128>;
    GB_LAUNCH(kernel, choose_grid(call, p.items()), INT8_THREADS, INT8_SHARED_BYTES, call->stream, p);
}

static void launch(const gb_cuda_call *call, const int8_gemm &p, size_t tile_rows) {
    if (tile_rows <= 64)
        launch_columns<64>(call, p);
    else if (tile_rows <= 128)
        launch_columns<128>(call, p);
    else
        launch_columns<INT8_MOST_TILE_ROWS>(call, p);
}

static int8_gemm gemm_of(const gb_cuda_call *const *calls, uint32_t count, const int8_rows &x,
                         const row_lists &lists, size_t row_tiles) {
    const gb_cuda_call *first = calls[0];
    const gb_cuda_tensor *weight = first->operands[1];
    int8_gemm p = {};
    for (uint32_t i = 0; i < count; i++)
        p.of[i] = gb_cuda_int8_matrix(calls[i], &p.tiles);
    p.x = x;
    p.lists = lists;
    p.partial = reinterpret_cast<int4 *>(first->scratch->bytes);
    p.arrivals = first->scratch->arrivals;
    p.row_tiles = (uint32_t)row_tiles;
    p.blocks = (uint32_t)(weight->dims[weight->rank - 1] / GB_TILE_COLUMNS);
    p.splits = lists.tiles ? 1 : choose_splits(first, p);
    return p;
}

void gb_cuda_gemm_wgmma_int8(const gb_cuda_call *const *calls, uint32_t count) {
    const row_lists lists = all_rows(calls[0]);
    if (lists.rows <= FEW_ROWS) {
        gb_cuda_gemm_mma_int8(calls, count);
        return;
    }
    const int8_rows x = gb_cuda_round_rows(calls[0], INT8_SWIZZLED);
    launch(calls[0], gemm_of(calls, count, x, lists, blocks_for(lists.rows, INT8_MOST_TILE_ROWS)),
           lists.rows);
}

/* Any number of rows: only products of few tiles are split. */
uint64_t gb_cuda_gemm_wgmma_int8_scratch(const gb_cuda_call *call) {
    return (uint64_t)call->scratch->wgmma_blocks * GB_TILE_ROWS * INT8_MOST_TILE_ROWS * sizeof(int32_t);
}

/* ---- Experts ------------------------------------------------------------------------------------------- */

bool gb_cuda_supports_expert_wgmma_int8(const gb_cuda_call *call) {
    return gb_cuda_supports_mma_int8(call) && device_has_wgmma(call);
}

size_t gb_cuda_wgmma_int8_tile_rows(size_t pairs, size_t experts) {
    const size_t mean = pairs / experts;
    return mean < LEAST_EXPERT_ROWS ? 0 : mean <= 64 ? 64 : 128;
}

void gb_cuda_expert_wgmma_int8(const gb_cuda_call *call, const row_lists &lists, size_t tile_rows,
                               size_t row_tiles) {
    const int8_rows x = gb_cuda_round_entries(call, INT8_SWIZZLED, lists);
    launch(call, gemm_of(&call, 1, x, lists, row_tiles), tile_rows);
}
