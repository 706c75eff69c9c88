/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-probabilities, for the rows that want them; a block has a row. The same integers and the same few float
 * operations as in run/sampler/logprob.c, so the same bits.
 */
#include "run/cuda/device/select.cuh"

using namespace gb_cuda;

enum { THREADS = 1024 };

/* The logarithm of a mass in units of 2^-40, above 0: that of the nearest float, and what it leaves out. */
__device__ static float log_of_mass(weight_sum mass) {
    const float nearest = (float)mass;
    const double rest = ((double)mass - (double)nearest) / (double)nearest;
    return gb_log(nearest * 0x1p-40f) + (float)rest;
}

static __global__ void __launch_bounds__(THREADS)
    normalize_rows(const float *logits, const bool *wanted, uint32_t size, float *y) {
    wait_for_earlier();
    __shared__ weight_sum of_warps[THREADS / WARP];
    __shared__ weight_sum total;
    const size_t b = blockIdx.x;
    const float *x = logits + b * size;
    if (!wanted[b]) {
        if (threadIdx.x < 2)
            y[b * 2 + threadIdx.x] = 0;
        return;
    }
    weight_sum best = pack_best(gb_negative_infinity(), 0);
    for (uint32_t i = threadIdx.x; i < size; i += THREADS) {
        const weight_sum packed = x[i] == x[i] ? pack_best(x[i], i) : 0; /* a NaN is larger than nothing */
        best = packed > best ? packed : best;
    }
    const float max = best_value(block_best(best, of_warps));
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    weight_sum own = 0;
    for (uint32_t i = threadIdx.x; i < size; i += THREADS)
        own += gb_mass(x[i], max);
    atomicAdd(&total, own);
    __syncthreads();
    if (threadIdx.x == 0) {
        y[b * 2] = max;
        y[b * 2 + 1] = log_of_mass(total);
    }
}

void gb_cuda_log_normalizer(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0];
    GB_LAUNCH(normalize_rows, (unsigned)x->dims[0], THREADS, 0, call->stream, data_of<const float>(x),
              data_of<const bool>(call->operands[1]), (uint32_t)x->dims[1], data_of<float>(call->results[0]));
}

static __global__ void log_probabilities(const float *logits, const float *normalizer, const int32_t *ids,
                                         size_t count, size_t each, uint32_t size, float *y) {
    wait_for_earlier();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x, b = i / each;
    if (i >= count)
        return;
    const float *of_row = normalizer + b * 2;
    float value = gb_negative_infinity();
    if (ids[i] >= 0 && (uint32_t)ids[i] < size) {
        const float x = logits[b * size + (uint32_t)ids[i]];
        value = x == of_row[0] /* also where both are infinite */
                    ? -of_row[1]
                    : (float)(((double)x - (double)of_row[0]) - (double)of_row[1]);
    }
    y[i] = value;
}

void gb_cuda_log_probability(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *ids = call->operands[2];
    const size_t count = gb_cuda_elements(ids), each = ids->rank == 2 ? ids->dims[1] : 1;
    GB_LAUNCH(log_probabilities, blocks_for(count, THREADS), THREADS, 0, call->stream,
              data_of<const float>(x), data_of<const float>(call->operands[1]), data_of<const int32_t>(ids),
              count, each, (uint32_t)x->dims[1], data_of<float>(call->results[0]));
}

/* One after the other: the largest of those that are smaller than the one before. */
static __global__ void __launch_bounds__(THREADS)
    find_top(const float *logits, const bool *wanted, uint32_t size, uint32_t limit, int32_t *ids) {
    wait_for_earlier();
    __shared__ weight_sum of_warps[THREADS / WARP];
    const size_t b = blockIdx.x;
    const float *x = logits + b * size;
    if (!wanted[b]) {
        for (uint32_t i = threadIdx.x; i < limit; i += THREADS)
            ids[b * limit + i] = -1;
        return;
    }
    weight_sum last = ~(weight_sum)0;
    for (uint32_t found = 0; found < limit; found++) {
        weight_sum best = 0;
        for (uint32_t i = threadIdx.x; i < size; i += THREADS) {
            const weight_sum packed = pack_best(x[i], i);
            best = packed > best && packed < last ? packed : best;
        }
        last = block_best(best, of_warps);
        if (threadIdx.x == 0)
            ids[b * limit + found] = (int32_t)best_index(last);
    }
}

void gb_cuda_top_ids(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *ids = call->results[0];
    GB_LAUNCH(find_top, (unsigned)x->dims[0], THREADS, 0, call->stream, data_of<const float>(x),
              data_of<const bool>(call->operands[1]), (uint32_t)x->dims[1], (uint32_t)ids->dims[1],
              data_of<int32_t>(ids));
}
