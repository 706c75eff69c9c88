/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with chosen experts. A row of y is a (token, choice) pair. Few of them are computed one by one;
 * many are first put in the order of their experts, on the device, and cut into tiles of one expert each.
 * Every output is the linear kernel's, so neither the way nor the neighbours change it.
 */
#include "run/cuda/device/row_lists.cuh"

using namespace gb_cuda;

enum { THREADS = 256, FEW_PAIRS = 256, TILE = GB_CUDA_MANY_ROWS };

/* What the lists take, in 32-bit words: each expert's next place, the order, the tiles. */
struct list_memory {
    int32_t *next;   /* [experts] */
    int32_t *order;  /* [pairs] */
    row_tile *tiles; /* [tile_count] */
};

static size_t most_tiles(size_t pairs, size_t experts) {
    return pairs / TILE + (pairs < experts ? pairs : experts) + 1;
}

static __global__ void clear_counts(int32_t *next, int experts) {
    wait_for_earlier();
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (i < experts)
        next[i] = 0;
}

static __global__ void count_pairs(const int32_t *expert, int pairs, int32_t *next) {
    wait_for_earlier();
    const int p = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (p < pairs)
        atomicAdd(&next[expert[p]], 1);
}

/* One thread: there are at most GB_MAX_EXPERTS. Afterwards next[e] is where expert e's pairs begin. */
static __global__ void cut_tiles(int32_t *next, int experts, row_tile *tiles, int tile_count) {
    wait_for_earlier();
    int32_t begin = 0;
    int made = 0;
    for (int e = 0; e < experts; e++) {
        const int32_t end = begin + next[e];
        next[e] = begin;
        for (; begin < end; begin += TILE) {
            const row_tile tile = {begin, begin + TILE < end ? begin + TILE : end, e};
            tiles[made++] = tile;
        }
        begin = end;
    }
    const row_tile empty = {0, 0, 0};
    while (made < tile_count)
        tiles[made++] = empty;
}

/* The order of an expert's pairs is left to chance: it changes no output. */
static __global__ void order_pairs(const int32_t *expert, int pairs, int32_t *next, int32_t *order) {
    wait_for_earlier();
    const int p = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (p < pairs)
        order[atomicAdd(&next[expert[p]], 1)] = p;
}

static list_memory lists_in(const gb_cuda_call *call, size_t pairs, size_t experts) {
    list_memory memory;
    memory.next = reinterpret_cast<int32_t *>(call->scratch->bytes);
    memory.order = memory.next + experts;
    memory.tiles = reinterpret_cast<row_tile *>(memory.order + pairs);
    return memory;
}

uint64_t gb_cuda_expert_linear_scratch(const gb_cuda_call *call) {
    const size_t pairs = gb_cuda_elements(call->operands[2]), experts = call->operands[1]->dims[0];
    return (experts + pairs) * sizeof(int32_t) + most_tiles(pairs, experts) * sizeof(row_tile);
}

static row_lists make_lists(const gb_cuda_call *call, row_lists lists, const int32_t *expert,
                            size_t experts) {
    const list_memory memory = lists_in(call, lists.rows, experts);
    const int pairs = (int)lists.rows, tiles = (int)most_tiles(lists.rows, experts);
    const unsigned blocks = blocks_for(lists.rows, THREADS);
    GB_LAUNCH(clear_counts, blocks_for(experts, THREADS), THREADS, 0, call->stream, memory.next,
              (int)experts);
    GB_LAUNCH(count_pairs, blocks, THREADS, 0, call->stream, expert, pairs, memory.next);
    GB_LAUNCH(cut_tiles, 1, 1, 0, call->stream, memory.next, (int)experts, memory.tiles, tiles);
    GB_LAUNCH(order_pairs, blocks, THREADS, 0, call->stream, expert, pairs, memory.next, memory.order);
    lists.order = memory.order;
    lists.tiles = memory.tiles;
    return lists;
}

void gb_cuda_expert_linear(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *weight = call->operands[1], *experts = call->operands[2];
    const int32_t *expert = data_of<const int32_t>(experts);
    row_lists lists = {};
    lists.rows = gb_cuda_elements(experts);
    lists.outputs = weight->dims[1];
    lists.x_reuse = x->rank == 3 ? 1 : experts->dims[1];
    const bool is_few = weight->is_packed && !call->is_prefill;
    if (weight->dtype == GB_QUANTIZED && !is_few && lists.rows > FEW_PAIRS) {
        lists = make_lists(call, lists, expert, weight->dims[0]);
        gb_cuda_quantized_product(call, x, weight, lists, most_tiles(lists.rows, weight->dims[0]));
        return;
    }
    lists.expert = expert;
    if (is_few)
        gb_cuda_few_pairs(call, x, weight, lists);
    else if (weight->dtype == GB_QUANTIZED)
        gb_cuda_quantized_product(call, x, weight, lists, 0);
    else
        gb_cuda_dense_product(call, x, weight, lists);
}
