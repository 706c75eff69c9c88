/* SPDX-License-Identifier: Apache-2.0
 *
 * A sample step: one token per row, with the bits of docs/sampling.md. Every row goes through the same three
 * launches, whatever its settings, so that a captured graph holds them; a row that does not need one leaves
 * it at once.
 *
 *     scan    the largest logit of each group of 128; biases and penalties, where many blocks need them
 *     settle  the token where the largest logit is it, or where top-k leaves few; otherwise many blocks share
 *             the row: they draw, or with top-p alone sum masses
 *     finish  what is left: sample_finish.cu
 */
#include "backends/cuda/sampler/adjust.cuh"
#include "backends/cuda/sampler/candidates.cuh"
#include "backends/cuda/sampler/draw.cuh"

using namespace gb_cuda;

/* ---- Scanning ------------------------------------------------------------------------------------------ */

/* Changes that a block of the scan finds: few where blocks are few, so that all end at once. */
__host__ __device__ constexpr uint32_t changes_of_block(int each) {
    return each == 1 ? 128u : (uint32_t)ROW_THREADS;
}

/* After the blocks that scan a row come some that find what biases and penalties change in it. The logits are
 * in flight before it is known which are used. */
template <int EACH>
static __global__ void __launch_bounds__(ROW_THREADS, 4) run_sample_scan(GB_GRID_CONSTANT sampling a) {
    const size_t b = blockIdx.y;
    const uint32_t scanning = blocks_for_groups(a.groups, EACH);
    if (blockIdx.x >= scanning) {
        const uint32_t own = threadIdx.x < changes_of_block(EACH) ? threadIdx.x : (uint32_t)MOST_CHANGES;
        find_change(a, b, (blockIdx.x - scanning) * changes_of_block(EACH) + own);
        return;
    }
    wait_for_earlier();
    float x[EACH][GROUP_EACH];
    load_groups<EACH>(a.logits + b * a.size, a.size, x);
    const row_settings r = settings_of(a, b);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        a.rows[b] = row_state{};
    if (r.temperature != 0.0f && r.top_k == 0 && r.top_p < 1.0f)
        for (unsigned i = blockIdx.x * ROW_THREADS + threadIdx.x; i < MASS_BINS; i += scanning * ROW_THREADS)
            a.bins[b * MASS_BINS + i] = 0;
    if (is_adjusted(r) && !r.is_short)
        scan_adjusted<EACH>(a, b);
    else
        write_maxima<EACH>(x, a.groups, maxima_of_row(a.maxima, b, a.groups));
}

/* ---- Settling ------------------------------------------------------------------------------------------ */

/* What a block settles a row with. */
struct settling {
    group_list groups;
    candidate_list list;
    changed_groups changed;
};

__device__ static void finish_row(const sampling &a, size_t b, weight_sum best) {
    if (threadIdx.x == 0)
        a.token[b] = token_of(best); /* the row's kind is ROW_IS_DONE since the scan */
}

/* Leaves a row to run_sample_finish. */
__device__ static void leave_row(const sampling &a, size_t b, row_kind kind, float max_s, float least) {
    if (blockIdx.x != 0 || threadIdx.x != 0)
        return;
    a.rows[b].kind = kind;
    a.rows[b].max_s = max_s;
    a.rows[b].least = least;
}

/* The least s that top-k, and top-p after it, keep, from the whole row: for a k in the thousands, or
 * thousands of equals. */
static __device__ __noinline__ float cut_whole_row(uint32_t size, const float *row, row_settings r,
                                                   float max_s, candidate_list *list) {
    weight_sum own = 0;
    for (uint32_t i = threadIdx.x; i < size; i += ROW_THREADS)
        own += row[i] > gb_negative_infinity();
    float least = gb_negative_infinity();
    if (block_total(own, list->of_warps) > r.top_k)
        least = value_of(select_in_block(size, r.top_k - 1, &list->select, [&](unsigned i, uint32_t *key) {
            *key = key_of(gb_scale(row[i], r.temperature));
            return (weight_sum)(row[i] > gb_negative_infinity());
        }));
    if (!(r.top_p < 1.0f))
        return least;
    const auto mass = [&](unsigned i, uint32_t *key) {
        const float s = gb_scale(row[i], r.temperature);
        *key = key_of(s);
        return row[i] > gb_negative_infinity() && s >= least ? (weight_sum)gb_mass(s, max_s) : (weight_sum)0;
    };
    own = 0;
    uint32_t key;
    for (uint32_t i = threadIdx.x; i < size; i += ROW_THREADS)
        own += mass(i, &key);
    const weight_sum limit = gb_mass_limit(block_total(own, list->of_warps), r.top_p);
    const uint32_t threshold = select_in_block(size, limit, &list->select, mass);
    return threshold != 0 ? value_of(threshold) : least;
}

/* What the largest logit says of a row: whether that settles it. */
__device__ static bool settle_by_largest(const sampling &a, size_t b, const row_settings &r,
                                         weight_sum best) {
    const float max = best_value(best), infinity = -gb_negative_infinity();
    if (max > -infinity && r.temperature != 0.0f) {
        if (max == infinity)
            leave_row(a, b, ROW_IS_EVEN, 0.0f, gb_negative_infinity());
        return max == infinity;
    }
    if (blockIdx.x == 0)
        finish_row(a, b, max > -infinity ? best : max == max ? 0 : ~(weight_sum)0);
    return true;
}

/* By the whole row, in one block: where too many logits can be the token to list them. */
static __device__ __noinline__ void settle_slowly(const sampling &a, size_t b, const row_settings &r,
                                                  settling *memory) {
    const float *row = row_of(a, b, r);
    weight_sum best = 0;
    for (uint32_t i = threadIdx.x; i < a.size; i += ROW_THREADS) {
        const weight_sum packed = pack_best(row[i], i);
        best = packed > best ? packed : best;
    }
    best = block_best(best, memory->list.of_warps);
    if (settle_by_largest(a, b, r, best))
        return;
    const float max_s = gb_scale(best_value(best), r.temperature);
    leave_row(a, b, ROW_IS_LEFT, max_s, cut_whole_row(a.size, row, r, max_s, &memory->list));
}

/* Draws from the candidates that are listed; false where they are too many, or infinite. Needs all threads.
 */
__device__ static bool settle_by_list(const sampling &a, size_t b, const row_settings &r,
                                      candidate_list *list) {
    __syncthreads();
    if (list->count > MOST_CANDIDATES)
        return false;
    const float largest = largest_listed(list);
    if (largest == -gb_negative_infinity())
        return false;
    if (r.temperature != 0.0f) {
        const cut_rule rule = {
            a.size, r.temperature, gb_scale(largest, r.temperature), r.top_k, r.top_p, false, 0};
        finish_row(a, b, draw_candidates(list, rule, r));
        return true;
    }
    weight_sum best = 0;
    for (unsigned i = threadIdx.x; i < list->count; i += ROW_THREADS) {
        const weight_sum packed = pack_best(list->value[i], list->index[i]);
        best = packed > best ? packed : best;
    }
    finish_row(a, b, block_best(best, list->of_warps));
    return true;
}

/* A short row: the k-th largest of the groups' maxima bounds the k-th largest logit from below, so that
 * few groups are read. Changes by biases and penalties are listed apart; a group whose largest changes
 * does not count for the bound. */
__device__ static void settle_short(const sampling &a, size_t b, const row_settings &r, settling *memory) {
    const float *row = a.logits + b * a.size;
    group_list *groups = &memory->groups;
    candidate_list *list = &memory->list;
    changed_groups *changed = is_adjusted(r) ? &memory->changed : nullptr;
    const uint32_t wanted = r.temperature == 0.0f ? 1 : r.top_k;
    const float temperature = r.temperature == 0.0f ? 1.0f : r.temperature;
    uint32_t key[KEYS_EACH], known[KEYS_EACH];
    own_changes own;
    clear_list(groups);
    if (threadIdx.x == 0)
        list->count = 0;
    if (changed)
        clear_changes(changed);
    __syncthreads();
    wait_for_earlier();
    if (changed)
        load_changes(a, b, &own);
    load_keys(maxima_of_row(a.maxima, b, a.groups).keys, a.groups, key, groups);
    if (changed)
        keep_changes(&own, changed);
#pragma unroll
    for (unsigned j = 0; j < KEYS_EACH; j++)
        known[j] = changed && changed->before[threadIdx.x + j * ROW_THREADS] == key[j] ? 0 : key[j];
    const float least = scaled_key(bound_of_keys(wanted, known, groups), temperature);
    const float bound = reaching_logit(least, temperature);
    if (groups->has_nan) {
        finish_row(a, b, ~(weight_sum)0);
        return;
    }
    list_keys(key, bound, groups, changed ? changed->place_of : nullptr);
    if (!changed || groups->count <= MOST_PLACES) {
        if (changed) {
            list_changes(own, bound, changed, list);
            __syncthreads();
        }
        const auto load = [&](unsigned place, uint32_t i, float *x) {
            load_logits(row, a.size, i, x);
            if (!changed || i >= a.size)
                return;
            for (unsigned j = 0; j < GROUP_EACH; j++)
                x[j] = changed->changed[place][j] >> threadIdx.x % WARP & 1 ? gb_negative_infinity() : x[j];
        };
        visit_groups(groups, a.size, bound, load, [&](uint32_t i) { list->append(row[i], i); });
        if (settle_by_list(a, b, r, list))
            return;
    }
    if (changed)
        copy_adjusted(a, b);
    settle_slowly(a, b, r, memory);
}

/* Likewise with a long list, or a long row. */
static __device__ __noinline__ void settle_long(const sampling &a, size_t b, const row_settings &r,
                                                settling *memory) {
    const float *row = row_of(a, b, r);
    group_list *groups = &memory->groups;
    candidate_list *list = &memory->list;
    clear_list(groups);
    if (threadIdx.x == 0)
        list->count = 0;
    __syncthreads();
    const float least =
        list_by_bins(maxima_of(a, b, r).keys, a.groups, r.top_k, r.temperature, groups, &list->select);
    if (groups->count <= MOST_GROUPS) {
        const auto load = [&](unsigned, uint32_t i, float *x) { load_logits(row, a.size, i, x); };
        visit_groups(groups, a.size, reaching_logit(least, r.temperature), load,
                     [&](uint32_t i) { list->append(row[i], i); });
        if (settle_by_list(a, b, r, list))
            return;
    }
    settle_slowly(a, b, r, memory);
}

/* Neither top-k nor top-p: what noise can lift above the largest, and min-p keeps, is drawn. */
__device__ static void draw_plain(const sampling &a, size_t b, const row_settings &r, weight_sum best_logit,
                                  weight_sum *of_warps) {
    const float max_s = gb_scale(best_value(best_logit), r.temperature);
    weight_sum best = score_of(r.seed, a.size, max_s, best_index(best_logit));
    const float least = gb_floor_bound(r.floor, max_s), reach = gb_reach(best_value(best));
    const drawing d = drawing_of(a, b, r, max_s, least > reach ? least : reach);
    visit_part(d, [&](bool exists, uint32_t index, float x, uint32_t word) {
        float s;
        if (exists && is_in(d, x, &s))
            compete(d, s, index, word, &best);
    });
    best = block_best(best, of_warps);
    if (threadIdx.x == 0)
        atomicMax(&a.rows[b].drawn, best);
    leave_row(a, b, ROW_IS_DRAWN, max_s, 0.0f);
}

/* top-p alone: the masses of this block's part of the row, by their distance from the top. */
__device__ static void sum_masses(const sampling &a, size_t b, const row_settings &r, weight_sum best,
                                  weight_bins<MASS_BINS> *bins) {
    enum { EACH = 4 }; /* logits in flight to a thread at a time */
    const float *row = row_of(a, b, r);
    const float max_s = gb_scale(best_value(best), r.temperature);
    clear_bins(bins);
    __syncthreads();
    const uint32_t step = gridDim.x * ROW_THREADS;
#pragma unroll 1
    for (uint32_t i = blockIdx.x * ROW_THREADS + threadIdx.x; i < a.size; i += step * EACH) {
        float x[EACH];
#pragma unroll
        for (unsigned j = 0; j < EACH; j++)
            x[j] = i + j * step < a.size ? row[i + j * step] : gb_negative_infinity();
#pragma unroll
        for (unsigned j = 0; j < EACH; j++) {
            const float s = gb_scale(x[j], r.temperature);
            const weight_sum mass = gb_mass(s, max_s);
            if (mass != 0)
                add_to_bin(bins, (unsigned)mass_bin(s, max_s), mass);
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < MASS_BINS; i += ROW_THREADS) {
        const weight_sum sum = sum_of_bin(bins, i);
        if (sum != 0)
            atomicAdd(&a.bins[b * MASS_BINS + i], sum);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        atomicMax(&a.rows[b].drawn, score_of(r.seed, a.size, max_s, best_index(best)));
    leave_row(a, b, ROW_IS_CUT, max_s, gb_negative_infinity());
}

/* A part of a row's mass, of its own logits at temperature 1, for the log-probability of its token. */
static __device__ __noinline__ void add_mass(const sampling &a, size_t b, unsigned part, unsigned parts) {
    enum { AT_ONCE = 2 }; /* reads in flight */
    __shared__ weight_sum of_warps[ROW_WARPS];
    const float *row = a.logits + b * a.size;
    const uint32_t *keys = maxima_of_row(a.maxima, b, a.groups).keys, step = parts * ROW_THREADS * GROUP_EACH;
    uint32_t key = 0;
    wait_for_earlier();
#pragma unroll 4
    for (uint32_t g = threadIdx.x; g < a.groups; g += ROW_THREADS)
        key = keys[g] > key ? keys[g] : key;
    const float max = value_of((uint32_t)block_best(key, of_warps));
    weight_sum own = 0;
#pragma unroll 1
    for (uint32_t i = (part * ROW_THREADS + threadIdx.x) * GROUP_EACH; i < a.size; i += step * AT_ONCE) {
        float x[AT_ONCE * GROUP_EACH];
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++)
            load_logits(row, a.size, i + k * step, x + k * GROUP_EACH);
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE * GROUP_EACH; j++)
            own += i + j / GROUP_EACH * step + j % GROUP_EACH < a.size ? gb_mass(x[j], max) : 0;
    }
    own = block_total(own, of_warps);
    if (threadIdx.x == 0)
        atomicAdd(&a.rows[b].mass, own);
    if (threadIdx.x == 0 && part == 0)
        a.rows[b].largest = max;
}

union settle_memory {
    settling of_row;
    weight_bins<MASS_BINS> bins;
};

/* Where one block settles a row, the others find its mass, if that is wanted. */
static __global__ void __launch_bounds__(ROW_THREADS) run_sample_settle(GB_GRID_CONSTANT sampling a) {
    __shared__ settle_memory memory;
    __shared__ weight_sum of_warps[ROW_WARPS];
    const size_t b = blockIdx.y;
    const row_settings r = settings_of(a, b); /* which are there since before the scan */
    const bool is_single = r.temperature == 0.0f || r.top_k != 0;
    const unsigned settling = is_single && gridDim.x > 1 ? 1 : 0; /* blocks that do not sum */
    if (a.wanted && a.wanted[b] && blockIdx.x >= settling)
        add_mass(a, b, blockIdx.x - settling, gridDim.x - settling);
    if (is_single && blockIdx.x != 0)
        return;
    if (r.is_short && (r.temperature != 0.0f || is_adjusted(r))) {
        settle_short(a, b, r, &memory.of_row);
        return;
    }
    wait_for_earlier();
    const weight_sum best = best_of_row(maxima_of(a, b, r), a.groups, of_warps);
    if (settle_by_largest(a, b, r, best))
        return;
    if (r.top_k != 0)
        settle_long(a, b, r, &memory.of_row);
    else if (r.top_p < 1.0f && gb_scale(best_value(best), r.temperature) > gb_negative_infinity())
        sum_masses(a, b, r, best, &memory.bins);
    else
        draw_plain(a, b, r, best, of_warps);
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

static sampling sampling_of(const gb_cuda_call *call, size_t *rows) {
    const uint32_t sharing_blocks = 512, most_parts = 64, least_parts = 8;
    const gb_cuda_tensor *const *operands = call->operands, *logits = operands[GB_SAMPLE_LOGITS];
    const gb_cuda_tensor *biases = operands[GB_SAMPLE_BIAS_IDS], *counts = operands[GB_SAMPLE_COUNTS];
    sampling a = {};
    *rows = logits->dims[0];
    a.logits = data_of<const float>(logits);
    a.size = (uint32_t)logits->dims[1];
    a.groups = (a.size + GROUP - 1) / GROUP;
    a.parts = sharing_blocks / (uint32_t)*rows;
    a.parts = a.parts > most_parts ? most_parts : a.parts < least_parts ? least_parts : a.parts;
    a.parts = a.parts > blocks_for_groups(a.groups, 1) ? blocks_for_groups(a.groups, 1) : a.parts;
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    a.name = data_or_null<const GB_C_TYPE(dtype)>(operands[GB_SAMPLE_##NAME]);
#include "program/roles.def"
    a.seed = data_of<const uint64_t>(operands[GB_SAMPLE_SEED]);
    a.bias_ids = data_or_null<const int32_t>(biases);
    a.bias_values = data_or_null<const float>(operands[GB_SAMPLE_BIAS_VALUES]);
    a.bias_limit = biases ? (uint32_t)biases->dims[1] : 0;
    a.counts = data_or_null<const token_count>(counts);
    a.count_limit = counts ? (uint32_t)counts->dims[1] : 0;
    a.prompt = data_or_null<const int32_t>(operands[GB_SAMPLE_PENALIZE_PROMPT]);
    a.masked = data_or_null<const bool>(operands[GB_SAMPLE_MASKED]);
    a.mask = data_or_null<const uint32_t>(operands[GB_SAMPLE_MASK]);
    a.mask_words = a.mask ? (uint32_t)operands[GB_SAMPLE_MASK]->dims[1] : 0;
    a.token = data_of<int32_t>(call->results[0]);
    return a;
}

static uint64_t row_bytes(const sampling &a) {
    const uint64_t words = 2 * (uint64_t)a.size + 3 * MOST_CHANGES + 2 * a.groups;
    return sizeof(row_state) + MASS_BINS * sizeof(weight_sum) + words * sizeof(uint32_t) + 2 * a.groups;
}

uint64_t gb_cuda_sample_scratch(const gb_cuda_call *call) {
    size_t rows;
    const sampling a = sampling_of(call, &rows);
    return rows * row_bytes(a);
}

template <int EACH>
static void launch_scan(const sampling &a, size_t rows, gb_cuda_launch_list *launches) {
    const bool can_adjust = a.counts || a.bias_ids;
    const uint32_t blocks = blocks_for_groups(a.groups, EACH) +
                            (can_adjust ? blocks_for(MOST_CHANGES, changes_of_block(EACH)) : 0);
    add_launch(launches, "sample_scan", run_sample_scan<EACH>, dim3(blocks, (unsigned)rows), ROW_THREADS, 0,
               a);
}

static void launch_sample(const gb_cuda_call *call, sampling a, size_t rows) {
    a.adjusted = reinterpret_cast<float *>(call->scratch->bytes);
    a.listed = reinterpret_cast<uint32_t *>(a.adjusted + rows * a.size);
    a.rows = reinterpret_cast<row_state *>(a.listed + rows * a.size);
    a.bins = reinterpret_cast<weight_sum *>(a.rows + rows);
    a.changes.ids = reinterpret_cast<int32_t *>(a.bins + rows * MASS_BINS);
    a.changes.values = reinterpret_cast<float *>(a.changes.ids + rows * MOST_CHANGES);
    a.changes.before = reinterpret_cast<uint32_t *>(a.changes.values + rows * MOST_CHANGES);
    a.maxima.keys = a.changes.before + rows * MOST_CHANGES;
    a.adjusted_maxima.keys = a.maxima.keys + rows * a.groups;
    a.maxima.offsets = reinterpret_cast<uint8_t *>(a.adjusted_maxima.keys + rows * a.groups);
    a.adjusted_maxima.offsets = a.maxima.offsets + rows * a.groups;
    const dim3 sharing(a.parts, (unsigned)rows);
    /* Blocks that have few groups end soon, where they all run at once; with more groups a warp has more
     * reads in flight. */
    if (blocks_for_groups(a.groups, 1) * rows <= 512)
        launch_scan<1>(a, rows, call->launches);
    else
        launch_scan<4>(a, rows, call->launches);
    add_launch(call->launches, "sample_settle", run_sample_settle, sharing, ROW_THREADS, 0, a);
    launch_finish(a, sharing, call->launches);
}

void gb_cuda_sample(const gb_cuda_call *call) {
    size_t rows;
    const sampling a = sampling_of(call, &rows);
    launch_sample(call, a, rows);
}

uint64_t gb_cuda_sample_logprob_scratch(const gb_cuda_problem *problem) {
    return gb_cuda_sample_scratch(problem->parts[GB_LOGPROB_SAMPLER]);
}

void gb_cuda_sample_with_logprob(const gb_cuda_problem *problem) {
    const gb_cuda_call *sample = problem->parts[GB_LOGPROB_SAMPLER],
                       *normalizer = problem->parts[GB_LOGPROB_NORMALIZER],
                       *logprob = problem->parts[GB_LOGPROB_RESULT];
    size_t rows;
    sampling a = sampling_of(sample, &rows);
    a.wanted = data_of<const bool>(normalizer->operands[1]);
    a.normalizer = data_of<float>(normalizer->results[0]);
    a.logprob = data_of<float>(logprob->results[0]);
    launch_sample(sample, a, rows);
}
