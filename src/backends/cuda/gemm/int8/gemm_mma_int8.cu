/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of the GEMM of rows in 8 bits by a warp's tensor-core instruction (gemm/int8/mma_int8.cuh).
 */
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/gemm/int8/mma_int8.cuh"

using namespace gb_cuda;

enum {
    FEWEST_WARPS = 32, /* of a multiprocessor, below which k is shared */
    MOST_TILES = 8,
};

template <int TILES, int GROUP>
static __global__ void __launch_bounds__(MMA_INT8_WARPS *WARP, TILES == 1   ? 4
                                                               : TILES == 2 ? 3
                                                                            : 2)
    run_gemm_mma_int8(GB_GRID_CONSTANT mma_int8 p) {
    __shared__ int32_t partial[MMA_INT8_WARPS][TILES * 4][WARP];
    __shared__ group_table table;
    if (GROUP != OF_BYTES)
        table.fill();
    const bool has_lists = p.lists.expert || p.lists.tiles;
    if (has_lists)
        wait_for_earlier();
    const row_tile rows = tile_of(p.lists, blockIdx.y, p.tile_rows);
    if (rows.first >= rows.end)
        return;
    const uint32_t warp = threadIdx.x / WARP, share = warp % p.shares;
    mma_int8_warp<TILES, GROUP> mine(p, table, rows,
                                     blockIdx.x * (MMA_INT8_WARPS / p.shares) + warp / p.shares);
    mma_int8_block<GROUP> first = {};
    if (share < p.blocks)
        mine.load_weights(share, first);
    if (!has_lists)
        wait_for_earlier();
    __syncthreads();
    mine.find_inputs();
    mine.add_share(share, first);
    if (p.shares > 1)
        add_shares<TILES>(mine.sums, p.shares, partial);
    if (share == 0)
        mine.store();
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

int8_matrix gb_cuda_int8_matrix(const gb_cuda_call *call, uint32_t *tiles) {
    const gb_cuda_tensor *weight = call->operands[1];
    const uint8_t *data = data_of<const uint8_t>(weight);
    int8_matrix m = {};
    m.codes = data + weight->planes.codes.offset;
    m.groups = data + weight->planes.scales.offset;
    const gb_plane &rows =
        weight->format.kind == GB_FORMAT_PROGRESSIVE ? weight->planes.super_scales : weight->planes.scales;
    m.row_scales = reinterpret_cast<const uint16_t *>(data + rows.offset);
    m.outputs = m.stride = (uint32_t)weight->dims[weight->rank - 2];
    m.y = data_of<float>(call->results[0]);
    if (call->gathered) {
        const gb_cuda_exchange *e = call->scratch->exchange;
        m.stride = (uint32_t)call->gathered->dims[call->gathered->rank - 1];
        m.y = data_of<float>(call->gathered) + (e ? e->rank * m.outputs : 0);
        m.ranks = e ? e->on_device : nullptr;
    }
    *tiles += blocks_for(m.outputs, GB_TILE_ROWS);
    m.tiles_end = *tiles;
    return m;
}

bool gb_cuda_supports_mma_int8(const gb_cuda_call *call) {
    const gb_cuda_tensor *weight = call->operands[1];
    return gb_cuda_supports_int8(call) && weight->is_packed;
}

bool gb_cuda_is_in_int8_tiles(const gb_cuda_call *call) {
    return gb_cuda_supports_mma_int8(call) && call->operands[1]->format.kind == GB_FORMAT_PROGRESSIVE;
}

bool gb_cuda_packed_int8_joins(const gb_cuda_call *call, const gb_cuda_call *other) {
    return call->operands[0] == other->operands[0] &&
           gb_node_int(call->node, GB_ATTRIBUTE_ROTATION) ==
               gb_node_int(other->node, GB_ATTRIBUTE_ROTATION) &&
           gb_format_equal(&call->operands[1]->format, &other->operands[1]->format);
}

static uint32_t choose_shares(const mma_int8 &p, size_t row_tiles) {
    const size_t warps = row_tiles * p.tiles * INT8_FRAGMENTS,
                 fewest = (size_t)FEWEST_WARPS * gb_cuda_find_facts()->multiprocessors;
    uint32_t shares = 1;
    while (shares < MMA_INT8_WARPS && shares * 2 <= p.blocks && warps * shares < fewest)
        shares *= 2;
    return shares;
}

template <int TILES, int GROUP>
static void launch_tiles(const gb_cuda_call *call, mma_int8 &p, size_t row_tiles) {
    p.shares = choose_shares(p, row_tiles);
    const dim3 grid(p.tiles * INT8_FRAGMENTS * p.shares / MMA_INT8_WARPS, (unsigned)row_tiles);
    add_launch(call->launches, "gemm_mma_int8", run_gemm_mma_int8<TILES, GROUP>, grid, MMA_INT8_WARPS * WARP,
               0, p);
}

/* In tiles of at least as many rows as given. */
static size_t choose_tile_rows(size_t rows) {
    size_t tile_rows = MMA_INT8_ROWS;
    while (tile_rows < rows && tile_rows < MOST_TILES * MMA_INT8_ROWS)
        tile_rows *= 2;
    return tile_rows;
}

static void launch(const gb_cuda_call *call, mma_int8 &p, size_t tile_rows, size_t row_tiles) {
    p.tile_rows = (unsigned)tile_rows;
    dispatch([&](auto tiles, auto group) { launch_tiles<tiles, group>(call, p, row_tiles); },
             one_of<1, 2, 4, MOST_TILES>(blocks_for(tile_rows, MMA_INT8_ROWS)),
             one_of<32, 64, 128, OF_BYTES>(call->operands[1]->format.group));
}

static mma_int8 product_of(const gb_cuda_call *const *calls, uint32_t count, const row_lists &lists) {
    mma_int8 p = {};
    for (uint32_t i = 0; i < count; i++)
        p.of[i] = gb_cuda_int8_matrix(calls[i], &p.tiles);
    p.x = gb_cuda_round_rows(calls[0]);
    p.lists = lists;
    p.blocks = int8_blocks_of(calls[0]);
    const gb_cuda_tensor *weight = calls[0]->operands[1];
    p.units = (uint32_t)weight->dims[weight->rank - 1] / UNIT;
    p.scale = weight->format.scale;
    return p;
}

void gb_cuda_gemm_mma_int8(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const row_lists lists = all_rows(call);
    mma_int8 p = product_of(problem->parts, problem->count, lists);
    const size_t tile_rows = choose_tile_rows(lists.rows);
    launch(call, p, tile_rows, blocks_for(lists.rows, tile_rows));
}

/* ---- Experts ------------------------------------------------------------------------------------------- */

/* Twice the mean, since experts are chosen by chance. */
size_t gb_cuda_mma_int8_tile_rows(size_t pairs, size_t experts) {
    return choose_tile_rows(2 * pairs / experts);
}

void gb_cuda_expert_mma_int8(const gb_cuda_call *call, const row_lists &lists) {
    mma_int8 p = product_of(&call, 1, lists);
    launch(call, p, lists.tile_rows, lists.tile_count);
}
