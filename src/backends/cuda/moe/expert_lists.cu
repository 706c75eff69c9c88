/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouping rows by expert, on the device in one block: a histogram of the experts, its prefix sums, and the
 * rows' places.
 */
#include "backends/cuda/gemm/row_lists.cuh"

using namespace gb_cuda;

enum { THREADS = 1024, GRANULE = 8 };

/* The sums of what all threads before this one and this one have. memory: [THREADS]. */
__device__ static int2 sum_up_to(int2 mine, int2 *memory) {
    const unsigned thread = threadIdx.x;
    memory[thread] = mine;
    __syncthreads();
    for (unsigned distance = 1; distance < THREADS; distance *= 2) {
        int2 before = {0, 0};
        if (thread >= distance)
            before = memory[thread - distance];
        __syncthreads();
        memory[thread].x += before.x;
        memory[thread].y += before.y;
        __syncthreads();
    }
    return memory[thread];
}

struct list_sizes {
    int rows, experts, tile_rows, entries, tiles; /* the last two at most */
};

/* An expert's entries and tiles begin at `at`; where the next one's begin is stored there. */
__device__ static void lay_out(int expert, int count, int tile_rows, int2 *at, int32_t *order,
                               row_tile *tiles) {
    const int end = at->x + count, next = at->x + (count + GRANULE - 1) / GRANULE * GRANULE;
    for (int begin = at->x; begin < end; begin += tile_rows) {
        const row_tile tile = {begin, begin + tile_rows < end ? begin + tile_rows : end, expert};
        tiles[at->y++] = tile;
    }
    for (int gap = end; gap < next; gap++)
        order[gap] = -1;
    at->x = next;
}

static __global__ void run_list_experts(const int32_t *expert, list_sizes sizes, int32_t *order,
                                        row_tile *tiles) {
    wait_for_earlier();
    __shared__ int32_t places[GB_MAX_EXPERTS];
    __shared__ int2 sums[THREADS];
    const int thread = (int)threadIdx.x;
    for (int e = thread; e < sizes.experts; e += THREADS)
        places[e] = 0;
    __syncthreads();
    for (int row = thread; row < sizes.rows; row += THREADS)
        atomicAdd(&places[expert[row]], 1);
    __syncthreads();

    const int share = (sizes.experts + THREADS - 1) / THREADS, first = thread * share;
    int2 mine = {0, 0};
    for (int e = first; e < first + share && e < sizes.experts; e++) {
        mine.x += (places[e] + GRANULE - 1) / GRANULE * GRANULE;
        mine.y += (places[e] + sizes.tile_rows - 1) / sizes.tile_rows;
    }
    int2 at = sum_up_to(mine, sums);
    at.x -= mine.x;
    at.y -= mine.y;
    for (int e = first; e < first + share && e < sizes.experts; e++) {
        const int count = places[e];
        places[e] = at.x;
        lay_out(e, count, sizes.tile_rows, &at, order, tiles);
    }
    const row_tile empty = {0, 0, 0};
    for (int t = sums[THREADS - 1].y + thread; t < sizes.tiles; t += THREADS)
        tiles[t] = empty;
    for (int entry = sums[THREADS - 1].x + thread; entry < sizes.entries; entry += THREADS)
        order[entry] = -1;
    __syncthreads();

    /* The order of an expert's rows is left to chance: it changes no output. */
    for (int row = thread; row < sizes.rows; row += THREADS)
        order[atomicAdd(&places[expert[row]], 1)] = row;
}

static size_t fewer(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t gb_cuda_list_entries(size_t rows, size_t experts) {
    return (rows + (GRANULE - 1) * fewer(rows, experts) + GRANULE - 1) / GRANULE * GRANULE;
}

size_t gb_cuda_list_tiles(size_t rows, size_t experts, size_t tile_rows) {
    return rows / tile_rows + fewer(rows, experts);
}

uint64_t gb_cuda_list_bytes(size_t rows, size_t experts, size_t tile_rows) {
    return gb_cuda_list_entries(rows, experts) * sizeof(int32_t) +
           gb_cuda_list_tiles(rows, experts, tile_rows) * sizeof(row_tile);
}

void gb_cuda_list_experts(const gb_cuda_call *call, const int32_t *expert, size_t experts, size_t tile_rows,
                          void *memory, row_lists *lists) {
    const size_t entries = gb_cuda_list_entries(lists->rows, experts);
    const size_t tile_count = gb_cuda_list_tiles(lists->rows, experts, tile_rows);
    const list_sizes sizes = {(int)lists->rows, (int)experts, (int)tile_rows, (int)entries, (int)tile_count};
    int32_t *order = static_cast<int32_t *>(memory);
    row_tile *tiles = reinterpret_cast<row_tile *>(order + entries);
    if (!call->has_lists)
        add_launch(call->launches, "list_experts", run_list_experts, 1, THREADS, 0, expert, sizes, order,
                   tiles);
    lists->order = order;
    lists->tiles = tiles;
    lists->tile_count = tile_count;
    lists->tile_rows = tile_rows;
}
