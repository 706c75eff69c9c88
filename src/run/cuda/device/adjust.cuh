/* SPDX-License-Identifier: Apache-2.0
 *
 * Biases and penalties, on the logits that a block has of a row: each block goes through the row's lists for
 * what concerns it.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_ADJUST_CUH
#define GUMBEL_RUN_CUDA_DEVICE_ADJUST_CUH

#include "run/cuda/device/sampling.cuh"

namespace gb_cuda {

/* Visits the entries of a list, which ends at its limit or at the first with a negative id: load(i) reads
 * one, visit(i, entry) uses it. Needs all threads, which agree on where the list ends. */
template <typename Entry, typename Load, typename Visit>
__device__ void visit_list(uint32_t limit, Load load, Visit visit) {
    enum { EACH = 4 }; /* entries on their way to a thread at a time */
    __shared__ uint32_t end;
#pragma unroll 1
    for (uint32_t begin = 0; begin < limit; begin += ROW_THREADS * EACH) {
        Entry entry[EACH];
        uint32_t own_end = limit;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const uint32_t i = begin + (unsigned)j * ROW_THREADS + threadIdx.x;
            if (i < limit)
                entry[j] = load(i);
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
                visit(i, entry[j]);
        }
        if (end < begin + ROW_THREADS * EACH)
            break;
    }
}

struct bias_entry {
    int32_t id;
};

/* Adds the biases of the id of entry i, in their order; an id may stand in the list several times, and its
 * first entry adds all. */
static __device__ __noinline__ void add_biases_of(const int32_t *ids, const float *values, uint32_t limit,
                                                  uint32_t i, float *logit) {
    const int32_t id = ids[i];
    float x = *logit;
    for (uint32_t j = 0; j < limit && ids[j] >= 0; j++) {
        if (ids[j] == id && j < i)
            return;
        x = ids[j] == id ? gb_biased(x, values[j]) : x;
    }
    *logit = x;
}

/* Adds a row's biases to logits first .. first + BLOCK_LOGITS - 1, which shared memory has. */
__device__ inline void add_biases(const sampling &a, size_t b, uint32_t first, float *logits) {
    const int32_t *ids = a.bias_ids + b * a.bias_limit;
    const float *values = a.bias_values + b * a.bias_limit;
    visit_list<bias_entry>(
        a.bias_limit, [&](uint32_t i) { return bias_entry{ids[i]}; },
        [&](uint32_t i, bias_entry own) {
            const uint32_t at = (uint32_t)own.id - first;
            if (at < BLOCK_LOGITS)
                add_biases_of(ids, values, a.bias_limit, i, &logits[at]);
        });
}

static __device__ __noinline__ float penalized(float x, token_count token, float repetition, float frequency,
                                               float presence, int32_t prompt) {
    const int32_t repeats = token.generated + (prompt & 1 ? token.prompt : 0);
    const int32_t occurs = token.generated + (prompt & 2 ? token.prompt : 0);
    if (repeats != 0)
        x = gb_repetition_penalized(x, repetition);
    return occurs != 0 ? gb_occurrence_penalized(x, (float)occurs, frequency, presence) : x;
}

/* Likewise the penalties; their ids are distinct. */
__device__ inline void penalize(const sampling &a, size_t b, const row_settings &r, uint32_t first,
                                float *logits) {
    const token_count *list = a.counts + b * a.count_limit;
    visit_list<token_count>(
        a.count_limit, [&](uint32_t i) { return list[i]; },
        [&](uint32_t, token_count token) {
            const uint32_t at = (uint32_t)token.id - first;
            if (at < BLOCK_LOGITS)
                logits[at] = penalized(logits[at], token, r.repetition, r.frequency, r.presence, r.prompt);
        });
}

/* Adjusts what the block's threads hold of a row, and writes it to the row's copy. logits: BLOCK_LOGITS in
 * shared memory. Needs all threads. */
__device__ inline void adjust(const sampling &a, size_t b, const row_settings &r, float value[LOGITS_EACH],
                              float *logits) {
    if (!r.is_biased && !r.is_penalized)
        return;
    const uint32_t first = blockIdx.x * BLOCK_LOGITS;
#pragma unroll
    for (int j = 0; j < LOGITS_EACH; j++)
        logits[logit_index(blockIdx.x, j) - first] = value[j];
    __syncthreads();
    if (r.is_biased)
        add_biases(a, b, first, logits);
    __syncthreads();
    if (r.is_penalized)
        penalize(a, b, r, first, logits);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < LOGITS_EACH; j++) {
        const uint32_t i = logit_index(blockIdx.x, j);
        value[j] = logits[i - first];
        if (i < a.size)
            a.adjusted[b * a.size + i] = value[j];
    }
}

} // namespace gb_cuda

#endif
