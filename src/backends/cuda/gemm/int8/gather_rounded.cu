/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounded rows (gemm/int8/rows.cuh) in the order of experts: a row is rounded once and copied for each expert
 * that has it, because tiles of wgmma are neighbouring rows of memory.
 */
#include "backends/cuda/gemm/int8/rows.cuh"
#include "backends/cuda/lowering/activations.h"

using namespace gb_cuda;

enum {
    THREADS = 256,
    PIECES = INT8_BLOCK / sizeof(uint4),
    ROWS = THREADS / PIECES, /* of a block of threads */
    DEPTH = 4,               /* blocks of columns of a thread, all of which are loaded before one is stored */
};

struct gathering {
    int8_rows from, to;
    const int32_t *order; /* of each row of `to`, the row of y that it is for, or -1 */
    uint32_t entries;     /* rows of `to` */
    uint32_t x_reuse;     /* row i of y is computed from row i / x_reuse of x */
    uint32_t blocks;      /* of columns */
};

/* The pieces of that number, DEPTH of them from block `first` on. */
__device__ static void copy_pieces(const gathering &g, uint32_t row, uint32_t entry, uint32_t first,
                                   uint32_t piece) {
    uint4 pieces[DEPTH];
#pragma unroll
    for (uint32_t i = 0; i < DEPTH; i++)
        if (first + i < g.blocks)
            pieces[i] = *int8_piece(g.from, row, first + i, piece);
#pragma unroll
    for (uint32_t i = 0; i < DEPTH; i++)
        if (first + i < g.blocks)
            *int8_piece(g.to, entry, first + i, piece) = pieces[i];
}

/* Grid: [entries / ROWS, blocks of columns / DEPTH]. Eight threads have an entry's row of a block, a whole
 * line of memory. */
static __global__ void __launch_bounds__(THREADS) run_gather_rounded(gathering g) {
    wait_for_earlier();
    const uint32_t entry = blockIdx.x * ROWS + threadIdx.x / PIECES, piece = threadIdx.x % PIECES;
    const int32_t of_y = entry < g.entries ? g.order[entry] : -1;
    if (of_y < 0)
        return;
    const uint32_t row = (uint32_t)of_y / g.x_reuse;
    copy_pieces(g, row, entry, blockIdx.y * DEPTH, piece);
    if (blockIdx.y == 0 && piece == 0) {
        g.to.scales[entry] = g.from.scales[row];
        g.to.sums[entry] = g.from.sums[row];
    }
}

/* ---- What others call ---------------------------------------------------------------------------------- */

enum { ALIGNMENT = 256, LEAST_TILE_ROWS = 8 };

static size_t entries_of(const gb_cuda_call *call) {
    return gb_cuda_list_entries(gb_cuda_elements(call->operands[2]), call->operands[1]->dims[0]);
}

/* Of lists with the smallest tiles, which are the longest. */
static uint64_t most_list_bytes(const gb_cuda_call *call) {
    const uint64_t bytes =
        gb_cuda_list_bytes(gb_cuda_elements(call->operands[2]), call->operands[1]->dims[0], LEAST_TILE_ROWS);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t gb_cuda_gathered_bytes(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    return most_list_bytes(call) + gb_cuda_int8_rows_bytes(entries_of(call), call->operands[1]->dims[2]);
}

int8_rows gb_cuda_gather_rounded(const gb_cuda_call *call, const int8_rows &x, const row_lists &lists) {
    const size_t columns = call->operands[1]->dims[2];
    gathering g = {};
    g.from = x;
    g.entries = (uint32_t)entries_of(call);
    g.to = gb_cuda_place_int8_rows(call->scratch->bytes + most_list_bytes(call), GB_CUDA_BYTES_SWIZZLED,
                                   g.entries, columns);
    g.order = lists.order;
    g.x_reuse = (uint32_t)lists.x_reuse;
    g.blocks = blocks_for(columns, INT8_BLOCK);
    add_launch(call->launches, "gather_rounded", run_gather_rounded,
               dim3(blocks_for(g.entries, ROWS), blocks_for(g.blocks, DEPTH)), THREADS, 0, g);
    return g.to;
}
