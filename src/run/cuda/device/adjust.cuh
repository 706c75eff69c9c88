/* SPDX-License-Identifier: Apache-2.0
 *
 * Biases and penalties, on the logits that a block has of a row: each block goes through the row's lists for
 * what concerns it.
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

/* Adds a row's biases to logits first .. first + BLOCK_LOGITS - 1, which shared memory has, in their order:
 * an id may stand in the list several times. By one warp. */
__device__ inline void add_biases(const sampling &a, size_t b, uint32_t first, float *logits) {
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
        unsigned here = __ballot_sync(0xffffffffu, at < BLOCK_LOGITS) & before_end;
        for (; here != 0; here &= here - 1) {
            if (1u << lane == (here & (0u - here)))
                logits[at] = gb_biased(logits[at], value);
            __syncwarp();
        }
        if (ends)
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

/* Likewise the penalties; their ids are distinct. */
__device__ inline void penalize(const sampling &a, size_t b, const row_settings &r, uint32_t first,
                                float *logits) {
    visit_list(a.counts + b * a.count_limit, a.count_limit, [&](token_count token) {
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
    if (r.is_biased && threadIdx.x < WARP)
        add_biases(a, b, first, logits);
    if (r.is_penalized) /* which has barriers before it changes a logit */
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
