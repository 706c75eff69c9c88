/* SPDX-License-Identifier: Apache-2.0
 *
 * Biases and penalties. Where one block samples from a row, its threads know the logits that they change;
 * otherwise the blocks of the scan copy the row, each going through the row's lists for what concerns it.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_ADJUST_CUH
#define GUMBEL_RUN_CUDA_DEVICE_ADJUST_CUH

#include "run/cuda/device/candidates.cuh"

namespace gb_cuda {

/* Visits the entries of a list, which ends at its limit or at the first with a negative id: visit(entry).
 * Needs all threads, which agree on where the list ends. */
template <typename Entry, typename Visit>
__device__ void visit_list(const Entry *list, uint32_t limit, Visit visit) {
    enum { EACH = 4 }; /* entries on their way to a thread at a time */
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

static __device__ __noinline__ float penalized(float x, token_count token, float repetition, float frequency,
                                               float presence, int32_t prompt) {
    const int32_t repeats = token.generated + (prompt & 1 ? token.prompt : 0);
    const int32_t occurs = token.generated + (prompt & 2 ? token.prompt : 0);
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

/* Scans the block's groups of a row with biases and penalties, and writes them to the row's copy; where
 * masses are wanted also without. Needs all threads. */
template <int EACH>
static __device__ __noinline__ void scan_adjusted(const sampling &a, size_t b) {
    enum { COUNT = EACH * ROW_WARPS * GROUP };
    const row_settings r = settings_of(a, b);
    __shared__ float logits[COUNT];
    const uint32_t first = blockIdx.x * COUNT;
    const uint32_t own = scanned_group<EACH>(0) * GROUP + threadIdx.x % WARP * GROUP_EACH;
    float *copy = a.adjusted + b * a.size;
    float x[EACH][GROUP_EACH];
    load_groups<EACH>(a.logits + b * a.size, a.size, x);
#pragma unroll
    for (unsigned i = 0; i < EACH * GROUP_EACH; i++)
        logits[own + i / GROUP_EACH * GROUP + i % GROUP_EACH - first] = x[i / GROUP_EACH][i % GROUP_EACH];
    if (a.wanted && a.wanted[b])
        for (int g = 0; g < EACH; g++)
            write_maximum(x[g], scanned_group<EACH>(g), a.groups, maxima_of_row(a.maxima, b, a.groups));
    __syncthreads();
    if (r.is_biased && threadIdx.x < WARP)
        add_biases(a, b, first, COUNT, logits);
    if (r.is_penalized) /* which has barriers before it changes a logit */
        penalize(a, b, r, first, COUNT, logits);
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < EACH * GROUP_EACH; i++) {
        const uint32_t at = own + i / GROUP_EACH * GROUP + i % GROUP_EACH;
        x[i / GROUP_EACH][i % GROUP_EACH] = logits[at - first];
        if (at < a.size)
            copy[at] = x[i / GROUP_EACH][i % GROUP_EACH];
    }
#pragma unroll
    for (int g = 0; g < EACH; g++)
        write_maximum(x[g], scanned_group<EACH>(g), a.groups, maxima_of_row(a.adjusted_maxima, b, a.groups));
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

enum { COUNTS_EACH = (int)MOST_SHORT_COUNTS / (int)ROW_THREADS, MOST_PLACES = 512 };

/* What biases and penalties change in a row, in the shared memory of the block that samples from it. */
struct row_changes {
    alignas(16) uint32_t changed[MOST_PLACES][GROUP_EACH]; /* of a listed group, bits by lane: changed ones */
    uint32_t before[MOST_GROUPS];   /* the largest of the changed logits of a group before the change: keys */
    uint16_t place_of[MOST_GROUPS]; /* of a group in the list, from 1 on */
    alignas(16) int32_t biased_ids[WARP];
    float biased[WARP];
    uint32_t is_penalized[WARP]; /* a biased token: its change is that of a counted token */
    uint32_t end;                /* of the list of counts */
};

/* The changed logits of a thread, -1 for none: those of counted tokens, and of a biased one. */
struct own_changes {
    int32_t id[COUNTS_EACH + 1];
    float value[COUNTS_EACH + 1];
};

/* The logit of a lane's bias, after all biases of its token, in their order; lanes with the same token come
 * to the same. *is_first: no lane before has it. By a whole warp. */
__device__ inline float add_short_biases(float x, int32_t id, float bias, unsigned count, bool *is_first) {
    *is_first = true;
#pragma unroll 1
    for (unsigned from = 0; from < count; from++) {
        const int32_t other = __shfl_sync(0xffffffffu, id, (int)from);
        const float more = __shfl_sync(0xffffffffu, bias, (int)from);
        x = other == id ? gb_biased(x, more) : x;
        *is_first = *is_first && !(other == id && from < threadIdx.x % WARP);
    }
    return x;
}

/* The biases of a short row, by its first warp: their tokens' logits go to shared memory. */
__device__ inline void find_biased(const sampling &a, size_t b, row_changes *changes, own_changes *own) {
    const unsigned lane = threadIdx.x;
    const bool exists = lane < a.bias_limit;
    const int32_t id = exists ? a.bias_ids[b * a.bias_limit + lane] : -1;
    const float bias = exists ? a.bias_values[b * a.bias_limit + lane] : 0.0f;
    const unsigned ends = __ballot_sync(0xffffffffu, id < 0);
    const unsigned count = ends ? (unsigned)__popc((ends & (0u - ends)) - 1) : 32u;
    const bool is_in = lane < count && (uint32_t)id < a.size;
    const float before = is_in ? a.logits[b * a.size + (uint32_t)id] : 0.0f;
    bool is_first;
    const float x = add_short_biases(before, id, bias, count, &is_first);
    const bool is_own = is_in && is_first;
    if (is_own)
        atomicMax(&changes->before[(uint32_t)id / GROUP], logit_key(before));
    changes->biased_ids[lane] = own->id[COUNTS_EACH] = is_own ? id : -1;
    changes->biased[lane] = own->value[COUNTS_EACH] = x;
}

/* Finds what biases and penalties change in a short row. Reads nothing that the scan writes. Needs all
 * threads. */
static __device__ __noinline__ void find_changes(const sampling &a, size_t b, row_changes *changes,
                                                 own_changes *own) {
    const row_settings r = settings_of(a, b);
    const float *row = a.logits + b * a.size;
    const uint32_t limit = !r.is_penalized                     ? 0
                           : a.count_limit < MOST_SHORT_COUNTS ? a.count_limit
                                                               : (uint32_t)MOST_SHORT_COUNTS;
    token_count token[COUNTS_EACH];
    float x[COUNTS_EACH];
    uint32_t own_end = limit;
#pragma unroll
    for (int j = 0; j < COUNTS_EACH; j++) {
        const uint32_t i = (unsigned)j * ROW_THREADS + threadIdx.x;
        token[j] = i < limit ? a.counts[b * a.count_limit + i] : token_count{-1, 0, 0};
    }
#pragma unroll
    for (int j = 0; j < COUNTS_EACH; j++) /* what follows the list's end does no harm */
        x[j] = (uint32_t)token[j].id < a.size ? row[token[j].id] : 0.0f;
    for (unsigned g = threadIdx.x; g < MOST_GROUPS; g += ROW_THREADS) {
        changes->before[g] = changes->place_of[g] = 0;
        changes->changed[0][g] = 0; /* which has MOST_GROUPS words, too */
    }
    if (threadIdx.x < WARP) {
        changes->biased_ids[threadIdx.x] = -1;
        changes->is_penalized[threadIdx.x] = 0;
    }
    if (threadIdx.x == 0)
        changes->end = limit;
    own->id[COUNTS_EACH] = -1;
    __syncthreads();
#pragma unroll
    for (int j = COUNTS_EACH - 1; j >= 0; j--)
        own_end = token[j].id < 0 && (unsigned)j * ROW_THREADS + threadIdx.x < own_end
                      ? (unsigned)j * ROW_THREADS + threadIdx.x
                      : own_end;
    if (own_end < limit)
        atomicMin(&changes->end, own_end);
    if (r.is_biased && threadIdx.x < WARP)
        find_biased(a, b, changes, own);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < COUNTS_EACH; j++) {
        const bool is_in =
            (unsigned)j * ROW_THREADS + threadIdx.x < changes->end && (uint32_t)token[j].id < a.size;
        own->id[j] = is_in ? token[j].id : -1;
        if (!is_in)
            continue;
        atomicMax(&changes->before[(uint32_t)token[j].id / GROUP], logit_key(x[j]));
        for (unsigned i = 0; r.is_biased && i < WARP; i++)
            if (changes->biased_ids[i] == token[j].id) {
                x[j] = changes->biased[i];
                changes->is_penalized[i] = 1;
            }
        own->value[j] = penalized(x[j], token[j], r.repetition, r.frequency, r.presence, r.prompt);
    }
    __syncthreads();
    if (threadIdx.x < WARP && changes->is_penalized[threadIdx.x])
        own->id[COUNTS_EACH] = -1;
}

/* Marks the changed logits of the listed groups, and lists those that reach a bound. */
__device__ inline void list_changes(const own_changes &own, float bound, row_changes *changes,
                                    candidate_list *list) {
#pragma unroll
    for (int j = 0; j <= COUNTS_EACH; j++) {
        const uint32_t id = (uint32_t)own.id[j];
        if (own.id[j] < 0)
            continue;
        const unsigned place = changes->place_of[id / GROUP];
        if (place > 0)
            atomicOr(&changes->changed[place - 1][id % GROUP_EACH], 1u << id % GROUP / GROUP_EACH);
        if (own.value[j] >= bound)
            list->put(list->take(1), own.value[j], id);
    }
}

} // namespace gb_cuda

#endif
