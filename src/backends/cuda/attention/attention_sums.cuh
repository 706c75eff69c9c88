/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of values over spans (split-K), each beside its own largest score, are added up in order, wherever
 * they were computed. The block that has a token's first spans adds up what it has in registers, others leave
 * each span in memory, and the last of them goes on (Dao et al., Flash-Decoding, 2023).
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_SUMS_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_SUMS_CUH

#include "backends/cuda/attention/attention_round.cuh"
#include "backends/cuda/device/last_block.cuh"
#include "backends/cuda/device/quick_math.cuh"

namespace gb_cuda {

/* Parts that blocks share, in memory, by span: each block begins one token's head at most that it does not
 * end, whose parts are at its place. */
struct shared_parts {
    float4 *sums;       /* [blocks, MOST_SPANS, SPAN_QUERIES, SIZE / 4] */
    softmax *totals;    /* [blocks, MOST_SPANS, SPAN_QUERIES] */
    uint32_t *arrivals; /* [blocks] */
};

/* What sums count for that are added to others: those so far, and the added ones. */
struct factors {
    float so_far, added;
};

/* Sums of all parts, and what the next part counts for. */
template <unsigned SIZE>
struct sums_memory {
    float4 sums[SPAN_QUERIES][SIZE / 4];
    softmax totals[SPAN_QUERIES];
    factors counted[MOST_SPANS][SPAN_QUERIES];
};

/* Adds a softmax to another; returns what the sums of values count for then. */
__device__ inline factors add_softmax(softmax &total, const softmax &added) {
    const float largest = larger(total.largest, added.largest);
    const factors counted = {exp2_fast(total.largest - largest), exp2_fast(added.largest - largest)};
    total = softmax{largest, fmaf(added.sum, counted.added, total.sum * counted.so_far)};
    return counted;
}

__device__ inline float add_sum(float total, float added, const factors &counted) {
    return fmaf(added, counted.added, total * counted.so_far);
}

/* The first of the two queries that a thread has sums of; of y[i][c] it is number c mod 2. */
__device__ inline unsigned query_of_sums() {
    return threadIdx.x % 4 * 2;
}

/* Adds a thread's sums to others. counted: of the queries. */
template <unsigned SIZE>
__device__ inline void add_sums(lane_sums<SIZE> &total, const lane_sums<SIZE> &added,
                                const factors *counted) {
    const factors two[2] = {counted[query_of_sums()], counted[query_of_sums() + 1]};
#pragma unroll
    for (unsigned i = 0; i < decode_shape<SIZE>::VALUE_TILES; i++)
#pragma unroll
        for (unsigned c = 0; c < 4; c++)
            total.y[i][c] = add_sum(total.y[i][c], added.y[i][c], two[c % 2]);
}

/* Stores a thread's sums of the first `queries` queries: to [SPAN_QUERIES, SIZE]. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void store_sums(const lane_sums<SIZE> &sums, unsigned queries, float4 *to) {
#pragma unroll
    for (unsigned c = 0; c < 4; c++) {
        const unsigned q = query_of_sums() + c % 2;
        float *row = reinterpret_cast<float *>(to) + q * SIZE;
#pragma unroll
        for (unsigned i = 0; i < decode_shape<SIZE>::VALUE_TILES; i++)
            if (q < queries)
                row[element_of_sums<SIZE, FORM>(i, c / 2)] = sums.y[i][c];
    }
}

/* ---- Parts in memory ----------------------------------------------------------------------------------- */

/* Part number `number` of a block's place: [SPAN_QUERIES, SIZE / 4] sums, and [SPAN_QUERIES] softmaxes. */
template <unsigned SIZE>
__device__ inline float4 *sums_of_part(const shared_parts &parts, unsigned block, unsigned number) {
    return parts.sums + ((size_t)block * MOST_SPANS + number) * SPAN_QUERIES * (SIZE / 4);
}

__device__ inline softmax *totals_of_part(const shared_parts &parts, unsigned block, unsigned number) {
    return parts.totals + ((size_t)block * MOST_SPANS + number) * SPAN_QUERIES;
}

/* The softmax of a part, by the query's warp. */
__device__ inline void leave_total(const shared_parts &to, unsigned block, unsigned number,
                                   const softmax &total) {
    if (threadIdx.x % WARP == 0)
        totals_of_part(to, block, number)[threadIdx.x / WARP] = total;
}

/* Adds up the softmaxes of parts first .. end - 1, in order: a warp has a query, a lane a part. */
template <unsigned SIZE>
__device__ inline void gather_totals(const shared_parts &from, unsigned block, unsigned first, unsigned end,
                                     sums_memory<SIZE> &shared) {
    const unsigned lane = threadIdx.x % WARP, q = threadIdx.x / WARP;
    const bool is_there = first <= lane && lane < end;
    const float2 *totals = reinterpret_cast<const float2 *>(totals_of_part(from, block, 0)) + q;
    const float2 mine = is_there ? __ldcg(&totals[lane * SPAN_QUERIES]) : float2{-INFINITY, 0};
    float largest = mine.x; /* of the parts so far */
#pragma unroll
    for (unsigned distance = 1; distance < MOST_SPANS; distance *= 2) {
        const float before = __shfl_up_sync(0xffffffffu, largest, distance);
        largest = lane >= distance ? larger(before, largest) : largest;
    }
    const float before = __shfl_up_sync(0xffffffffu, largest, 1);
    factors counted = {0, 1}; /* the first part */
    if (is_there && lane > first)
        counted = factors{exp2_fast(before - largest), exp2_fast(mine.x - largest)};
    float sum = 0;
    for (unsigned s = first; s < end; s++) {
        const float added = __shfl_sync(0xffffffffu, mine.y, (int)s),
                    so_far = __shfl_sync(0xffffffffu, counted.so_far, (int)s),
                    counts = __shfl_sync(0xffffffffu, counted.added, (int)s);
        sum = s == first ? added : fmaf(added, counts, sum * so_far);
    }
    if (is_there)
        shared.counted[lane][q] = counted;
    if (lane == end - 1)
        shared.totals[q] = softmax{largest, sum};
}

/* Adds up parts first .. end - 1 of a place, in order, in shared memory. */
template <unsigned SIZE>
__device__ inline void gather_parts(const shared_parts &from, unsigned block, unsigned first, unsigned end,
                                    unsigned queries, sums_memory<SIZE> &shared) {
    constexpr unsigned TOGETHER = 8; /* loads on their way */
    if (threadIdx.x / WARP < queries)
        gather_totals<SIZE>(from, block, first, end, shared);
    __syncthreads();
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < queries * (SIZE / 4); i += SPAN_THREADS) {
        const float4 *sums = sums_of_part<SIZE>(from, block, first) + i;
        const factors *counted = &shared.counted[first][i / (SIZE / 4)];
        float4 total = {};
#pragma unroll 1
        for (unsigned at = first; at < end; at += TOGETHER) {
            float4 parts[TOGETHER];
#pragma unroll
            for (unsigned s = 0; s < TOGETHER; s++)
                if (at + s < end)
                    parts[s] = __ldcg(&sums[(size_t)s * SPAN_QUERIES * (SIZE / 4)]);
#pragma unroll
            for (unsigned s = 0; s < TOGETHER; s++) {
                if (at + s >= end)
                    continue;
                const factors c = counted[s * SPAN_QUERIES];
                const float4 next = {add_sum(total.x, parts[s].x, c), add_sum(total.y, parts[s].y, c),
                                     add_sum(total.z, parts[s].z, c), add_sum(total.w, parts[s].w, c)};
                total = at + s == first ? parts[s] : next;
            }
            sums += (size_t)TOGETHER * SPAN_QUERIES * (SIZE / 4);
            counted += TOGETHER * SPAN_QUERIES;
        }
        shared.sums[i / (SIZE / 4)][i % (SIZE / 4)] = total;
    }
}

} // namespace gb_cuda

#endif
