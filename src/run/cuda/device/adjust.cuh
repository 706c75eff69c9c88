/* SPDX-License-Identifier: Apache-2.0
 *
 * Biases and penalties. Where one block samples from a row, only what they touch lies in the row's copy, and
 * the block knows what that is; otherwise the blocks of the scan copy the row, each going through the row's
 * lists for what concerns it.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_ADJUST_CUH
#define GUMBEL_RUN_CUDA_DEVICE_ADJUST_CUH

#include "run/cuda/device/sampling.cuh"

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

/* Scans the block's groups of a row as they are with biases and penalties, and writes them to the row's
 * copy. Needs all threads. */
template <int EACH>
static __device__ __noinline__ void scan_adjusted(const sampling &a, size_t b) {
    enum { COUNT = EACH * ROW_WARPS * GROUP };
    const row_settings r = settings_of(a, b);
    __shared__ float logits[COUNT];
    const uint32_t first = blockIdx.x * COUNT;
    float *copy = a.adjusted + b * a.size;
    for (uint32_t i = threadIdx.x * GROUP_EACH; i < COUNT; i += ROW_THREADS * GROUP_EACH)
        load_logits(a.logits + b * a.size, a.size, first + i, logits + i);
    __syncthreads();
    if (r.is_biased && threadIdx.x < WARP)
        add_biases(a, b, first, COUNT, logits);
    if (r.is_penalized) /* which has barriers before it changes a logit */
        visit_list(a.counts + b * a.count_limit, a.count_limit, [&](token_count token) {
            const uint32_t at = (uint32_t)token.id - first;
            if (at < COUNT)
                logits[at] = penalized(logits[at], token, r.repetition, r.frequency, r.presence, r.prompt);
        });
    __syncthreads();
#pragma unroll 1
    for (int g = 0; g < EACH; g++) {
        const uint32_t group = scanned_group<EACH>(g);
        const uint32_t i = group * GROUP + threadIdx.x % WARP * GROUP_EACH;
        float x[GROUP_EACH];
        for (unsigned j = 0; j < GROUP_EACH; j++) {
            x[j] = logits[i + j - first];
            if (i + j < a.size)
                copy[i + j] = x[j];
        }
        write_maximum(x, group, a.groups, maxima_of_row(a.maxima, b, a.groups));
    }
}

/* ---- Overlays ------------------------------------------------------------------------------------------ */

/* What biases and penalties change in a row, for the block that samples from it; in shared memory. A row's
 * copy has the changed logits, and the rest of each lane's GROUP_EACH that has one. */
struct row_overlay {
    uint32_t lanes[MOST_GROUPS];  /* bits: whose logits are in the copy */
    uint32_t before[MOST_GROUPS]; /* the largest of the changed logits of a group before the change: keys */
    uint32_t after[MOST_GROUPS];  /* no less than the largest of them after it */
};

/* Puts the logit of an id into the overlay as it is, with its lane's others. */
__device__ inline void cover(const float *row, float *copy, uint32_t size, uint32_t id,
                             row_overlay *overlay) {
    const uint32_t first = id / GROUP_EACH * GROUP_EACH;
    float x[GROUP_EACH];
    load_logits(row, size, first, x);
#pragma unroll
    for (unsigned j = 0; j < GROUP_EACH; j++)
        if (first + j < size)
            copy[first + j] = x[j];
    const float own = id % 4 == 0 ? x[0] : id % 4 == 1 ? x[1] : id % 4 == 2 ? x[2] : x[3];
    atomicOr(&overlay->lanes[id / GROUP], 1u << id % GROUP / GROUP_EACH);
    atomicMax(&overlay->before[id / GROUP], logit_key(own));
}

/* Adds biases to what the overlay covers, in their order, by one warp: lanes with the same id come to the
 * same logit. */
__device__ inline void bias_overlay(const int32_t *ids, const float *values, uint32_t limit, uint32_t size,
                                    float *copy, row_overlay *overlay) {
    const unsigned lane = threadIdx.x % WARP;
#pragma unroll 1
    for (uint32_t begin = 0; begin < limit; begin += WARP) {
        const bool exists = begin + lane < limit;
        const int32_t id = exists ? ids[begin + lane] : -1;
        const float value = exists ? values[begin + lane] : 0.0f;
        const unsigned ends = __ballot_sync(0xffffffffu, id < 0);
        const unsigned count = ends ? (unsigned)__popc((ends & (0u - ends)) - 1) : 32u;
        const bool is_in = lane < count && (uint32_t)id < size;
        float x = is_in ? copy[id] : 0.0f;
#pragma unroll 1
        for (unsigned from = 0; from < count; from++) {
            const int32_t other = __shfl_sync(0xffffffffu, id, (int)from);
            const float more = __shfl_sync(0xffffffffu, value, (int)from);
            x = other == id ? gb_biased(x, more) : x;
        }
        if (is_in) {
            copy[id] = x;
            atomicMax(&overlay->after[(uint32_t)id / GROUP], logit_key(x));
        }
        __syncwarp();
        if (ends)
            break;
    }
}

/* Makes a row's overlay. Reads nothing that the scan writes. Needs all threads. */
static __device__ __noinline__ void make_overlay(const sampling &a, size_t b, row_overlay *overlay) {
    const row_settings r = settings_of(a, b);
    const float *row = a.logits + b * a.size;
    float *copy = a.adjusted + b * a.size;
    const token_count *counts = a.counts + b * a.count_limit;
    const int32_t *ids = a.bias_ids + b * a.bias_limit;
    for (unsigned g = threadIdx.x; g < MOST_GROUPS; g += ROW_THREADS)
        overlay->lanes[g] = overlay->before[g] = overlay->after[g] = 0;
    __syncthreads();
    if (r.is_biased)
        for (uint32_t i = threadIdx.x; i < a.bias_limit; i += ROW_THREADS)
            if ((uint32_t)ids[i] < a.size) /* what follows the list's end does no harm */
                cover(row, copy, a.size, (uint32_t)ids[i], overlay);
    if (r.is_penalized)
        visit_list(counts, a.count_limit, [&](token_count token) {
            if ((uint32_t)token.id < a.size)
                cover(row, copy, a.size, (uint32_t)token.id, overlay);
        });
    __syncthreads();
    if (r.is_biased && threadIdx.x < WARP)
        bias_overlay(ids, a.bias_values + b * a.bias_limit, a.bias_limit, a.size, copy, overlay);
    if (r.is_penalized)
        visit_list(counts, a.count_limit, [&](token_count token) {
            if ((uint32_t)token.id >= a.size)
                return;
            float *x = &copy[token.id];
            *x = penalized(*x, token, r.repetition, r.frequency, r.presence, r.prompt);
            atomicMax(&overlay->after[(uint32_t)token.id / GROUP], logit_key(*x));
        });
    __syncthreads();
}

/* Copies the rest of the row, and raises its groups' maxima where a logit was raised. Needs all threads. */
static __device__ __noinline__ void complete_copy(const sampling &a, size_t b, const row_overlay *overlay) {
    const float *row = a.logits + b * a.size;
    float *copy = a.adjusted + b * a.size;
    uint32_t *keys = maxima_of_row(a.maxima, b, a.groups).keys;
    for (uint32_t i = threadIdx.x; i < a.size; i += ROW_THREADS)
        if (!(overlay->lanes[i / GROUP] >> i % GROUP / GROUP_EACH & 1))
            copy[i] = row[i];
    for (uint32_t g = threadIdx.x; g < a.groups; g += ROW_THREADS)
        keys[g] = overlay->after[g] > keys[g] ? overlay->after[g] : keys[g];
    __syncthreads();
}

} // namespace gb_cuda

#endif
