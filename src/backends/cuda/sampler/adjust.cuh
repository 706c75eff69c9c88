/* SPDX-License-Identifier: Apache-2.0
 *
 * Biases, penalties and masks. Where one block samples from a row, the scan finds the logits that biases and
 * penalties change, one by one; otherwise, and under a mask, its blocks copy the row, each going through the
 * row's lists for what concerns it.
 */
#ifndef GUMBEL_BACKENDS_CUDA_SAMPLER_ADJUST_CUH
#define GUMBEL_BACKENDS_CUDA_SAMPLER_ADJUST_CUH

#include "backends/cuda/sampler/candidates.cuh"

namespace gb_cuda {

/* Visits the entries of a list, which ends at its limit or at the first with a negative id: visit(entry).
 * Needs all threads, which agree on where the list ends. */
template <typename Entry, typename Visit>
__device__ void visit_list(const Entry *list, uint32_t limit, Visit visit) {
    enum { EACH = GB_CUDA_COUNTS_TOGETHER / (int)ROW_THREADS }; /* entries in flight to a thread */
    __shared__ uint32_t end;
#pragma unroll 1
    for (uint32_t begin = 0; begin < limit; begin += ROW_THREADS * EACH) {
        Entry entry[EACH] = {};
        uint32_t own_end = limit;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const uint32_t i = begin + (unsigned)j * ROW_THREADS + threadIdx.x;
            if (i < limit)
                entry[j] = list[i];
        }
        __syncthreads();
        if (threadIdx.x == 0)
            end = limit;
        __syncthreads();
#pragma unroll
        for (int j = EACH - 1; j >= 0; j--) {
            const uint32_t i = begin + (unsigned)j * ROW_THREADS + threadIdx.x;
            own_end = i < limit && entry[j].id < 0 ? i : own_end;
        }
        if (own_end < limit)
            atomicMin(&end, own_end);
        __syncthreads();
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const uint32_t i = begin + (unsigned)j * ROW_THREADS + threadIdx.x;
            if (i < end)
                visit(entry[j]);
        }
        if (end < begin + ROW_THREADS * EACH)
            break;
    }
}

/* Also called for what follows a list's end, for nothing: sums must not overflow whatever stands there. */
static __device__ __noinline__ float penalized(float x, token_count token, float repetition, float frequency,
                                               float presence, int32_t prompt) {
    const uint32_t of_prompt = (uint32_t)token.prompt, generated = (uint32_t)token.generated;
    const int32_t repeats = (int32_t)(generated + (prompt & 1 ? of_prompt : 0));
    const int32_t occurs = (int32_t)(generated + (prompt & 2 ? of_prompt : 0));
    if (repeats != 0)
        x = gb_repetition_penalized(x, repetition);
    return occurs != 0 ? gb_occurrence_penalized(x, (float)occurs, frequency, presence) : x;
}

/* ---- Whole copies -------------------------------------------------------------------------------------- */

/* Adds a row's biases to logits first .. first + count - 1, which shared memory has, in their order: an id
 * may stand in the list several times. By one warp. */
__device__ inline void add_biases(const sampling &a, size_t b, uint32_t first, uint32_t count,
                                  float *logits) {
    const int32_t *ids = a.bias_ids + b * a.bias_limit;
    const float *values = a.bias_values + b * a.bias_limit;
    const unsigned lane = threadIdx.x % WARP;
#pragma unroll 1
    for (uint32_t begin = 0; begin < a.bias_limit; begin += WARP) {
        const bool exists = begin + lane < a.bias_limit;
        const int32_t id = exists ? ids[begin + lane] : -1;
        const float value = exists ? values[begin + lane] : 0.0f;
        const unsigned ends = __ballot_sync(0xffffffffu, id < 0);
        const unsigned before_end = ends ? (ends & (0u - ends)) - 1 : 0xffffffffu;
        const uint32_t at = (uint32_t)id - first;
        unsigned here = __ballot_sync(0xffffffffu, at < count) & before_end;
        for (; here != 0; here &= here - 1) {
            if (1u << lane == (here & (0u - here)))
                logits[at] = gb_biased(logits[at], value);
            __syncwarp();
        }
        if (ends)
            break;
    }
}

/* Likewise the penalties; their ids are distinct. By all threads. */
__device__ inline void penalize(const sampling &a, size_t b, const row_settings &r, uint32_t first,
                                uint32_t count, float *logits) {
    visit_list(a.counts + b * a.count_limit, a.count_limit, [&](token_count token) {
        const uint32_t at = (uint32_t)token.id - first;
        if (at < count)
            logits[at] = penalized(logits[at], token, r.repetition, r.frequency, r.presence, r.prompt);
    });
}

/* Bans what the row's mask does not allow of logits first .. first + count - 1. By all threads. */
__device__ inline void apply_mask(const sampling &a, size_t b, uint32_t first, uint32_t count,
                                  float *logits) {
    const uint32_t *mask = a.mask + b * a.mask_words;
    for (uint32_t i = threadIdx.x; i < count && first + i < a.size; i += ROW_THREADS)
        if (!(mask[(first + i) / 32] >> (first + i) % 32 & 1) && logits[i] == logits[i])
            logits[i] = gb_negative_infinity();
}

template <int COUNT>
struct block_logits {
    alignas(16) float x[COUNT];
};

/* Scans the block's groups of a row with biases and penalties, and writes them to the row's copy; where
 * masses are wanted also without. Needs all threads. */
template <int EACH>
static __device__ __noinline__ void scan_adjusted(const sampling &a, size_t b) {
    enum { COUNT = EACH * ROW_WARPS * GROUP };
    const row_settings r = settings_of(a, b);
    __shared__ block_logits<COUNT> memory;
    float *logits = memory.x;
    const uint32_t first = blockIdx.x * COUNT;
    const uint32_t own = scanned_group<EACH>(0) * GROUP + threadIdx.x % WARP * GROUP_EACH;
    float *copy = a.adjusted + b * a.size;
    float x[EACH][GROUP_EACH];
    load_groups<EACH>(a.logits + b * a.size, a.size, x);
#pragma unroll
    for (int g = 0; g < EACH; g++)
        store_logits(logits, COUNT, own + (unsigned)g * GROUP - first, x[g]);
    if (a.wanted && a.wanted[b])
        for (int g = 0; g < EACH; g++)
            write_maximum(x[g], scanned_group<EACH>(g), a.groups, maxima_of_row(a.maxima, b, a.groups));
    __syncthreads();
    if (r.is_biased && threadIdx.x < WARP)
        add_biases(a, b, first, COUNT, logits);
    if (r.is_penalized) /* which has barriers before it changes a logit */
        penalize(a, b, r, first, COUNT, logits);
    __syncthreads();
    if (r.is_masked) {
        apply_mask(a, b, first, COUNT, logits);
        __syncthreads();
    }
#pragma unroll
    for (int g = 0; g < EACH; g++) {
        load_logits(logits, COUNT, own + (unsigned)g * GROUP - first, x[g]);
        store_logits(copy, a.size, own + (unsigned)g * GROUP, x[g]);
        write_maximum(x[g], scanned_group<EACH>(g), a.groups, maxima_of_row(a.adjusted_maxima, b, a.groups));
    }
}

/* The same for a whole row, by one block: for a row that turned out not to be short. */
static __device__ __noinline__ void copy_adjusted(const sampling &a, size_t b) {
    const row_settings r = settings_of(a, b);
    float *copy = a.adjusted + b * a.size;
    for (uint32_t i = threadIdx.x; i < a.size; i += ROW_THREADS)
        copy[i] = a.logits[b * a.size + i];
    __syncthreads();
    if (r.is_biased && threadIdx.x < WARP)
        add_biases(a, b, 0, a.size, copy);
    if (r.is_penalized)
        penalize(a, b, r, 0, a.size, copy);
    __syncthreads();
    for (uint32_t group = threadIdx.x / WARP; group < a.groups; group += ROW_WARPS) {
        float x[GROUP_EACH];
        load_logits(copy, a.size, group * GROUP + threadIdx.x % WARP * GROUP_EACH, x);
        write_maximum(x, group, a.groups, maxima_of_row(a.adjusted_maxima, b, a.groups));
    }
    __syncthreads();
}

/* ---- Short rows ---------------------------------------------------------------------------------------- */

struct short_biases {
    alignas(16) int32_t ids[MOST_SHORT_BIASES];
    float values[MOST_SHORT_BIASES];
};

/* Finds the i-th change of a row from its lists: counted tokens have the first MOST_SHORT_COUNTS places,
 * then come the biases; i may be larger. What follows a list's end is found too, for nothing. The
 * settings, which say whether the row has counts, are read before it waits for earlier kernels. Needs all
 * threads. */
__device__ inline void find_change(const sampling &a, size_t b, uint32_t i) {
    __shared__ short_biases biased;
    const bool is_counted = i < MOST_SHORT_COUNTS, exists = i < MOST_CHANGES;
    const uint32_t entry = is_counted ? i : i - MOST_SHORT_COUNTS;
    const float repetition = a.counts ? a.repetition_penalty[b] : 1.0f,
                frequency = a.counts ? a.frequency_penalty[b] : 0.0f;
    const float presence = a.counts ? a.presence_penalty[b] : 0.0f;
    const int32_t prompt = a.counts ? a.prompt[b] : 0;
    const bool is_penalized = (repetition != 1.0f) | (frequency != 0.0f) | (presence != 0.0f);
    token_count token = {NO_CHANGE, 0, 0};
    if (threadIdx.x < MOST_SHORT_BIASES) {
        const bool has_bias = threadIdx.x < a.bias_limit;
        biased.ids[threadIdx.x] = has_bias ? a.bias_ids[b * a.bias_limit + threadIdx.x] : -1;
        biased.values[threadIdx.x] = has_bias ? a.bias_values[b * a.bias_limit + threadIdx.x] : 0.0f;
    }
    wait_for_earlier();
    if (is_counted && is_penalized)
        token = entry < a.count_limit ? a.counts[b * a.count_limit + entry] : token_count{-1, 0, 0};
    __syncthreads();
    if (!is_penalized && biased.ids[0] < 0)
        return;
    if (!is_counted && exists)
        token.id = biased.ids[entry];
    const bool is_in = (uint32_t)token.id < a.size;
    const float before = is_in ? a.logits[b * a.size + (uint32_t)token.id] : 0.0f;
    float x = before;
    uint32_t equal = 0, negative = 0; /* biases, by bits */
#pragma unroll 2
    for (unsigned e = 0; e < MOST_SHORT_BIASES; e += 4) {
        const int4 ids = *reinterpret_cast<const int4 *>(biased.ids + e);
        equal |= ((ids.x == token.id) | (ids.y == token.id) << 1 | (ids.z == token.id) << 2 |
                  (ids.w == token.id) << 3)
                 << e;
        negative |= ((ids.x < 0) | (ids.y < 0) << 1 | (ids.z < 0) << 2 | (ids.w < 0) << 3) << e;
    }
    equal &= (negative & (0u - negative)) - 1; /* the first negative id is the list's end */
    const uint32_t first = equal == 0 ? 0 : 32u - (uint32_t)__clz((int)(equal & (0u - equal)));
    for (; equal != 0; equal &= equal - 1)
        x = gb_biased(x, biased.values[31u - (uint32_t)__clz((int)(equal & (0u - equal)))]);
    if (is_counted)
        x = penalized(x, token, repetition, frequency, presence, prompt);
    if (!exists)
        return;
    const bool is_change = is_in && (is_counted || first == entry + 1);
    const int32_t none = token.id < 0 ? token.id : (int32_t)NO_CHANGE;
    const size_t at = b * MOST_CHANGES + i;
    a.changes.ids[at] = is_change ? token.id | (int32_t)(first << CHANGE_BIAS_SHIFT) : none;
    a.changes.values[at] = x;
    a.changes.before[at] = logit_key(before);
}

enum { MOST_PLACES = 512 };

/* What changes mean for the groups of a short row, in the shared memory of the block that samples from it. */
struct changed_groups {
    alignas(16) uint32_t changed[MOST_PLACES][GROUP_EACH]; /* of a listed group, bits by lane: changed ones */
    uint32_t before[MOST_GROUPS];   /* the largest of the changed logits of a group before the change: keys */
    uint16_t place_of[MOST_GROUPS]; /* of a group in the list, from 1 on */
    uint32_t is_counted[MOST_SHORT_BIASES]; /* of biases, by place: the change is that of a counted token */
    uint32_t end;                           /* of the list of counts */
};

/* To be called before a barrier. */
__device__ inline void clear_changes(changed_groups *groups) {
    for (unsigned g = threadIdx.x; g < MOST_GROUPS; g += ROW_THREADS) {
        groups->before[g] = groups->place_of[g] = 0;
        groups->changed[g / GROUP_EACH][g % GROUP_EACH] = 0;
    }
    if (threadIdx.x < MOST_SHORT_BIASES)
        groups->is_counted[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        groups->end = MOST_SHORT_COUNTS;
}

/* A thread's changes; the last is of a bias. */
struct own_changes {
    int32_t id[CHANGES_EACH];
    float value[CHANGES_EACH];
    uint32_t before[CHANGES_EACH];
};

__device__ inline void load_changes(const sampling &a, size_t b, own_changes *own) {
#pragma unroll
    for (unsigned j = 0; j < CHANGES_EACH; j++) {
        const uint32_t i = j * ROW_THREADS + threadIdx.x;
        const size_t at = b * MOST_CHANGES + i;
        own->id[j] = i < MOST_CHANGES ? a.changes.ids[at] : NO_CHANGE;
        own->value[j] = i < MOST_CHANGES ? a.changes.values[at] : 0.0f;
        own->before[j] = i < MOST_CHANGES ? a.changes.before[at] : 0;
    }
}

/* Keeps the changes before the list's end, and each token's once; marks the groups. Needs all threads, and a
 * barrier after clear_changes. */
__device__ inline void keep_changes(own_changes *own, changed_groups *groups) {
    uint32_t end = MOST_SHORT_COUNTS;
#pragma unroll
    for (unsigned j = 0; j + 1 < CHANGES_EACH; j++) {
        const uint32_t i = j * ROW_THREADS + threadIdx.x;
        end = own->id[j] == -1 && i < end ? i : end;
    }
    if (end < MOST_SHORT_COUNTS)
        atomicMin(&groups->end, end);
    __syncthreads();
#pragma unroll
    for (unsigned j = 0; j < CHANGES_EACH; j++) {
        const bool is_counted = j + 1 < CHANGES_EACH;
        if (is_counted && j * ROW_THREADS + threadIdx.x >= groups->end)
            own->id[j] = NO_CHANGE;
        if (own->id[j] < 0)
            continue;
        const unsigned bias = (unsigned)own->id[j] >> CHANGE_BIAS_SHIFT;
        own->id[j] &= (1 << CHANGE_BIAS_SHIFT) - 1;
        if (is_counted && bias > 0)
            groups->is_counted[bias - 1] = 1;
        atomicMax(&groups->before[(unsigned)own->id[j] / GROUP], own->before[j]);
    }
    __syncthreads();
    if (threadIdx.x < MOST_SHORT_BIASES && groups->is_counted[threadIdx.x])
        own->id[CHANGES_EACH - 1] = NO_CHANGE;
}

/* Marks the changed logits of the listed groups, and lists those that reach a bound. */
__device__ inline void list_changes(const own_changes &own, float bound, changed_groups *groups,
                                    candidate_list *list) {
#pragma unroll
    for (unsigned j = 0; j < CHANGES_EACH; j++) {
        const uint32_t id = (uint32_t)own.id[j];
        if (own.id[j] < 0)
            continue;
        const unsigned place = groups->place_of[id / GROUP];
        if (place > 0)
            atomicOr(&groups->changed[place - 1][id % GROUP_EACH], 1u << id % GROUP / GROUP_EACH);
        if (own.value[j] >= bound)
            list->append(own.value[j], id);
    }
}

} // namespace gb_cuda

#endif
