/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-probabilities and the likeliest tokens, for the rows that want them; many blocks share a row. (Those of
 * the tokens that a sample step draws are found by it.)
 */
#include "backends/cuda/device/each.cuh"
#include "backends/cuda/device/last_block.cuh"
#include "backends/cuda/sampler/candidates.cuh"
#include "backends/cuda/sampler/log_mass.cuh"

using namespace gb_cuda;

/* Groups of a row that a warp reads. */
enum { EACH = 2 };

/* ---- Normalizing --------------------------------------------------------------------------------------- */

struct normalizing {
    const float *logits; /* [B, size] */
    const bool *wanted;
    uint32_t size, blocks;
    float *y;          /* [B, 2]: the largest logit, and the logarithm of the sum */
    weight_sum *sums;  /* [B, blocks] */
    uint32_t *maxima;  /* [B, blocks]: keys */
    uint32_t *counter; /* [B]: blocks that are done */
};

static __global__ void __launch_bounds__(ROW_THREADS) run_logprob_largest(normalizing a) {
    wait_for_earlier();
    const size_t b = blockIdx.y;
    const bool is_wanted = a.wanted[b];
    __shared__ weight_sum of_warps[ROW_WARPS];
    if (blockIdx.x == 0 && threadIdx.x == 0)
        a.counter[b] = 0;
    if (!is_wanted) {
        if (blockIdx.x == 0 && threadIdx.x < 2)
            a.y[b * 2 + threadIdx.x] = 0;
        return;
    }
    float value[EACH][GROUP_EACH];
    uint32_t key = key_of(gb_negative_infinity());
    load_groups<EACH>(a.logits + b * a.size, a.size, value);
#pragma unroll
    for (int j = 0; j < EACH * GROUP_EACH; j++) {
        const float x = value[j / GROUP_EACH][j % GROUP_EACH];
        const uint32_t own = x == x ? key_of(x) : 0; /* a NaN is larger than nothing */
        key = own > key ? own : key;
    }
    const weight_sum largest = block_best(largest_in_warp(key), of_warps);
    if (threadIdx.x == 0)
        a.maxima[b * a.blocks + blockIdx.x] = (uint32_t)largest;
}

static __global__ void __launch_bounds__(ROW_THREADS) run_logprob_masses(normalizing a) {
    const size_t b = blockIdx.y;
    const bool is_wanted = a.wanted[b];
    wait_for_earlier();
    __shared__ weight_sum of_warps[ROW_WARPS];
    if (!is_wanted)
        return;
    float value[EACH][GROUP_EACH];
    load_groups<EACH>(a.logits + b * a.size, a.size, value);
    weight_sum own = 0;
    for (uint32_t i = threadIdx.x; i < a.blocks; i += ROW_THREADS)
        own = a.maxima[b * a.blocks + i] > own ? a.maxima[b * a.blocks + i] : own;
    const float max = value_of((uint32_t)block_best(own, of_warps));
    own = 0;
#pragma unroll
    for (int j = 0; j < EACH * GROUP_EACH; j++) {
        const uint32_t i = scanned_group<EACH>(j / GROUP_EACH) * GROUP + threadIdx.x % WARP * GROUP_EACH;
        own +=
            i + (unsigned)j % GROUP_EACH < a.size ? gb_mass(value[j / GROUP_EACH][j % GROUP_EACH], max) : 0;
    }
    own = block_total(own, of_warps);
    if (threadIdx.x == 0)
        a.sums[b * a.blocks + blockIdx.x] = own;
    if (!is_last_block(&a.counter[b], a.blocks))
        return;
    own = 0;
    for (uint32_t i = threadIdx.x; i < a.blocks; i += ROW_THREADS)
        own += a.sums[b * a.blocks + i];
    own = block_total(own, of_warps);
    if (threadIdx.x == 0) {
        a.y[b * 2] = max;
        a.y[b * 2 + 1] = log_of_mass(own);
    }
}

/* Blocks that share a row of an op's operand 0. */
static uint32_t blocks_of(const gb_cuda_call *call) {
    return blocks_for_groups(blocks_for(call->operands[0]->dims[1], GROUP), EACH);
}

uint64_t gb_cuda_log_normalizer_scratch(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const uint64_t rows = call->operands[0]->dims[0];
    return rows * (blocks_of(call) * (sizeof(weight_sum) + sizeof(uint32_t)) + sizeof(uint32_t));
}

void gb_cuda_log_normalizer(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0];
    const size_t rows = x->dims[0];
    normalizing a = {};
    a.logits = data_of<const float>(x);
    a.wanted = data_of<const bool>(call->operands[1]);
    a.size = (uint32_t)x->dims[1];
    a.blocks = blocks_of(call);
    a.y = data_of<float>(call->results[0]);
    a.sums = reinterpret_cast<weight_sum *>(call->scratch->bytes);
    a.maxima = reinterpret_cast<uint32_t *>(a.sums + rows * a.blocks);
    a.counter = a.maxima + rows * a.blocks;
    const dim3 grid(a.blocks, (unsigned)rows);
    add_launch(call->launches, "logprob_largest", run_logprob_largest, grid, ROW_THREADS, 0, a);
    add_launch(call->launches, "logprob_masses", run_logprob_masses, grid, ROW_THREADS, 0, a);
}

/* ---- Of single tokens ---------------------------------------------------------------------------------- */

struct log_probabilities {
    const float *logits, *normalizer;
    const int32_t *ids;
    size_t each;
    uint32_t size;
    float *y;
    __device__ void operator()(size_t b, size_t i) const {
        y[b * each + i] = log_probability_of(logits + b * size, size, ids[b * each + i], normalizer[b * 2],
                                             normalizer[b * 2 + 1]);
    }
};

void gb_cuda_log_probability(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *ids = call->operands[2];
    const size_t each = ids->rank == 2 ? ids->dims[1] : 1;
    add_each(call->launches, "log_probabilities", ids->dims[0], each,
             log_probabilities{data_of<const float>(x), data_of<const float>(call->operands[1]),
                               data_of<const int32_t>(ids), each, (uint32_t)x->dims[1],
                               data_of<float>(call->results[0])});
}

/* ---- The likeliest ------------------------------------------------------------------------------------- */

struct ranking {
    const float *logits; /* [B, size] */
    const bool *wanted;
    uint32_t size, groups, limit;
    int32_t *ids; /* [B, limit] */
    group_maxima maxima;
};

static __global__ void __launch_bounds__(ROW_THREADS) run_top_ids_scan(ranking a) {
    wait_for_earlier();
    const size_t b = blockIdx.y;
    const bool is_wanted = a.wanted[b];
    if (!is_wanted)
        return;
    float x[EACH][GROUP_EACH];
    load_groups<EACH>(a.logits + b * a.size, a.size, x);
    write_maxima<EACH>(x, a.groups, maxima_of_row(a.maxima, b, a.groups));
}

/* Lists at least the likeliest; false where there are too many to list, too few candidates, or a NaN. */
__device__ static bool list_top(const ranking &a, size_t b, group_list *groups, candidate_list *list) {
    const uint32_t *keys = maxima_of_row(a.maxima, b, a.groups).keys;
    float bound;
    if (a.groups <= MOST_GROUPS && a.limit <= MOST_WANTED) {
        uint32_t key[KEYS_EACH];
        load_keys(keys, a.groups, key, groups);
        bound = reaching_logit(scaled_key(bound_of_keys(a.limit, key, groups), 1.0f), 1.0f);
        list_keys(key, bound, groups, nullptr);
    } else {
        bound = reaching_logit(list_by_bins(keys, a.groups, a.limit, 1.0f, groups, &list->select), 1.0f);
    }
    if (groups->count > MOST_GROUPS || groups->has_nan)
        return false;
    const float *row = a.logits + b * a.size;
    const auto load = [&](unsigned, uint32_t i, float *x) { load_logits(row, a.size, i, x); };
    visit_groups(groups, a.size, bound, load, [&](uint32_t i) { list->append(row[i], i); });
    __syncthreads();
    return list->count >= a.limit && list->count <= MOST_CANDIDATES;
}

/* One after the other: the largest of those that are smaller than the one before. */
__device__ static void find_one_by_one(const ranking &a, size_t b, weight_sum *of_warps) {
    const float *x = a.logits + b * a.size;
    weight_sum last = ~(weight_sum)0;
    for (uint32_t found = 0; found < a.limit; found++) {
        weight_sum best = 0;
        for (uint32_t i = threadIdx.x; i < a.size; i += ROW_THREADS) {
            const weight_sum packed = pack_best(x[i], i);
            best = packed > best && packed < last ? packed : best;
        }
        last = block_best(best, of_warps);
        if (threadIdx.x == 0)
            a.ids[b * a.limit + found] = (int32_t)best_index(last);
    }
}

static __global__ void __launch_bounds__(ROW_THREADS) run_top_ids_find(ranking a) {
    __shared__ group_list groups;
    __shared__ candidate_list list;
    const size_t b = blockIdx.x;
    const bool is_wanted = a.wanted[b];
    wait_for_earlier();
    if (!is_wanted) {
        for (uint32_t i = threadIdx.x; i < a.limit; i += ROW_THREADS)
            a.ids[b * a.limit + i] = -1;
        return;
    }
    clear_list(&groups);
    if (threadIdx.x == 0)
        list.count = 0;
    __syncthreads();
    if (!list_top(a, b, &groups, &list)) {
        find_one_by_one(a, b, list.of_warps);
        return;
    }
    for (uint32_t i = threadIdx.x; i < list.count; i += ROW_THREADS) {
        const weight_sum own = pack_best(list.value[i], list.index[i]);
        uint32_t rank = 0;
        for (uint32_t j = 0; j < list.count; j++)
            rank += pack_best(list.value[j], list.index[j]) > own ? 1u : 0u;
        if (rank < a.limit)
            a.ids[b * a.limit + rank] = (int32_t)list.index[i];
    }
}

uint64_t gb_cuda_top_ids_scratch(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const uint64_t rows = call->operands[0]->dims[0], groups = blocks_for(call->operands[0]->dims[1], GROUP);
    return rows * groups * (sizeof(uint32_t) + 1);
}

void gb_cuda_top_ids(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *ids = call->results[0];
    const unsigned rows = (unsigned)x->dims[0];
    ranking a = {};
    a.logits = data_of<const float>(x);
    a.wanted = data_of<const bool>(call->operands[1]);
    a.size = (uint32_t)x->dims[1];
    a.groups = blocks_for(a.size, GROUP);
    a.limit = (uint32_t)ids->dims[1];
    a.ids = data_of<int32_t>(ids);
    a.maxima.keys = reinterpret_cast<uint32_t *>(call->scratch->bytes);
    a.maxima.offsets = reinterpret_cast<uint8_t *>(a.maxima.keys + (size_t)rows * a.groups);
    add_launch(call->launches, "top_ids_scan", run_top_ids_scan, dim3(blocks_of(call), rows), ROW_THREADS, 0,
               a);
    add_launch(call->launches, "top_ids_find", run_top_ids_find, rows, ROW_THREADS, 0, a);
}
