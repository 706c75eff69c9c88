/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of the sampler's chain one by one, for programs whose sampler is not fused; a block has a row.
 * They have the bits of backends/sampler/chain.c.
 */
#include "backends/cuda/sampler/select.cuh"

using namespace gb_cuda;

enum { THREADS = 1024 };

/* One element per row of the batch, or of a row per thread. */
template <typename Function>
static __global__ void for_each(size_t count, Function function) {
    wait_for_earlier();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count)
        function(i);
}

template <typename Function>
static void launch_each(const gb_cuda_call *call, const char *name, size_t count, Function function) {
    add_launch(call->launches, name, for_each<Function>, blocks_for(count, THREADS), THREADS, 0, count,
               function);
}

/* ---- Choices ------------------------------------------------------------------------------------------- */

struct is_zero_function {
    const float *x;
    bool *y;
    __device__ void operator()(size_t i) const {
        y[i] = x[i] == 0;
    }
};
struct any_false_function {
    const bool *x;
    size_t count;
    bool *y;
    __device__ void operator()(size_t) const {
        bool any = false;
        for (size_t i = 0; i < count; i++)
            any = any || !x[i];
        *y = any;
    }
};
struct select_function {
    const bool *condition;
    const uint8_t *a, *b;
    size_t size;
    uint8_t *y;
    __device__ void operator()(size_t i) const {
        const uint8_t *from = (condition[i] ? a : b) + i * size;
        for (size_t k = 0; k < size; k++)
            y[i * size + k] = from[k];
    }
};
struct fill_function {
    float value, *y;
    __device__ void operator()(size_t i) const {
        y[i] = value;
    }
};
struct choose_function {
    const bool *condition;
    const int32_t *a, *b;
    int32_t *y;
    __device__ void operator()(size_t i) const {
        y[i] = a[i] < 0 || condition[i] ? a[i] : b[i];
    }
};

template <typename T>
static T *operand(const gb_cuda_call *call, int i) {
    return data_of<T>(call->operands[i]);
}
template <typename T>
static T *result(const gb_cuda_call *call) {
    return data_of<T>(call->results[0]);
}

void gb_cuda_is_zero(const gb_cuda_call *call) {
    launch_each(call, "is_zero", call->results[0]->dims[0],
                is_zero_function{operand<const float>(call, 0), result<bool>(call)});
}
void gb_cuda_any_false(const gb_cuda_call *call) {
    launch_each(
        call, "any_false", 1,
        any_false_function{operand<const bool>(call, 0), call->operands[0]->dims[0], result<bool>(call)});
}
void gb_cuda_select(const gb_cuda_call *call) {
    launch_each(call, "select", call->results[0]->dims[0],
                select_function{operand<const bool>(call, 0), operand<const uint8_t>(call, 1),
                                operand<const uint8_t>(call, 2), gb_dtype_size(call->results[0]->dtype),
                                result<uint8_t>(call)});
}
void gb_cuda_fill_like(const gb_cuda_call *call) {
    launch_each(call, "fill", call->results[0]->dims[0],
                fill_function{(float)gb_node_float(call->node, GB_ATTRIBUTE_VALUE), result<float>(call)});
}
void gb_cuda_choose_token(const gb_cuda_call *call) {
    launch_each(call, "choose", call->results[0]->dims[0],
                choose_function{operand<const bool>(call, 0), operand<const int32_t>(call, 1),
                                operand<const int32_t>(call, 2), result<int32_t>(call)});
}

/* ---- Elements of rows ---------------------------------------------------------------------------------- */

struct scale_function {
    const float *x, *temperature;
    size_t size;
    float *y;
    __device__ void operator()(size_t i) const {
        y[i] = x[i] == -gb_negative_infinity() ? 0.0f : gb_scale(x[i], temperature[i / size]);
    }
};
struct bits_function {
    const uint64_t *seed;
    size_t size;
    uint32_t *y;
    __device__ void operator()(size_t i) const {
        y[i] = gb_word_at(seed[i / size], (uint32_t)size, (uint32_t)(i % size));
    }
};
struct noise_function {
    const uint32_t *bits;
    float *y;
    __device__ void operator()(size_t i) const {
        y[i] = gb_gumbel(bits[i]);
    }
};

void gb_cuda_apply_temperature(const gb_cuda_call *call) {
    launch_each(call, "scale", gb_cuda_elements(call->results[0]),
                scale_function{operand<const float>(call, 0), operand<const float>(call, 1),
                               call->results[0]->dims[1], result<float>(call)});
}
void gb_cuda_random_bits(const gb_cuda_call *call) {
    launch_each(
        call, "bits", gb_cuda_elements(call->results[0]),
        bits_function{operand<const uint64_t>(call, 0), call->results[0]->dims[1], result<uint32_t>(call)});
}
void gb_cuda_gumbel_noise(const gb_cuda_call *call) {
    launch_each(call, "noise", gb_cuda_elements(call->results[0]),
                noise_function{operand<const uint32_t>(call, 0), result<float>(call)});
}

/* ---- Masks --------------------------------------------------------------------------------------------- */

struct masking {
    const float *x;
    const bool *keep; /* or NULL */
    uint32_t size;
    const int32_t *top_k;
    const float *limit; /* top_p or min_p */
    bool *kept;
    int32_t *index;
};

static masking masking_of(const gb_cuda_call *call) {
    masking m = {};
    m.x = operand<const float>(call, 0);
    m.keep = data_or_null<const bool>(call->operands[1]);
    m.size = (uint32_t)call->operands[0]->dims[1];
    return m;
}

static __global__ void __launch_bounds__(THREADS) find_candidates(masking m) {
    wait_for_earlier();
    __shared__ uint32_t any_infinite;
    const float *x = m.x + (size_t)blockIdx.x * m.size, infinity = -gb_negative_infinity();
    bool *kept = m.kept + (size_t)blockIdx.x * m.size;
    if (threadIdx.x == 0)
        any_infinite = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < m.size; i += THREADS)
        if (x[i] == infinity)
            atomicOr(&any_infinite, 1u);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < m.size; i += THREADS)
        kept[i] = any_infinite ? x[i] == infinity : x[i] > -infinity;
}

/* The largest kept value of a row, -inf where there is none. */
__device__ static float largest_kept(const float *x, const bool *keep, uint32_t size, weight_sum *of_warps) {
    weight_sum best = pack_best(gb_negative_infinity(), 0);
    for (uint32_t i = threadIdx.x; i < size; i += THREADS) {
        const weight_sum packed = keep[i] && x[i] == x[i] ? pack_best(x[i], i) : 0;
        best = packed > best ? packed : best;
    }
    return best_value(block_best(best, of_warps));
}

__device__ static void keep_from(const masking &m, const float *x, const bool *keep, float least,
                                 bool has_limit) {
    bool *kept = m.kept + (size_t)blockIdx.x * m.size;
    for (uint32_t i = threadIdx.x; i < m.size; i += THREADS)
        kept[i] = keep[i] && (!has_limit || x[i] >= least);
}

static __global__ void __launch_bounds__(THREADS) mask_top_k(masking m) {
    wait_for_earlier();
    __shared__ select_memory memory;
    __shared__ weight_sum of_warps[THREADS / WARP];
    const float *x = m.x + (size_t)blockIdx.x * m.size;
    const bool *keep = m.keep + (size_t)blockIdx.x * m.size;
    const int32_t top_k = m.top_k[blockIdx.x];
    weight_sum own = 0;
    for (uint32_t i = threadIdx.x; i < m.size; i += THREADS)
        own += keep[i];
    if (top_k <= 0 || (weight_sum)top_k >= block_total(own, of_warps)) {
        keep_from(m, x, keep, 0, false);
        return;
    }
    const uint32_t key =
        select_in_block(m.size, (weight_sum)top_k - 1, &memory, [&](unsigned i, uint32_t *of_item) {
            *of_item = key_of(x[i]);
            return (weight_sum)keep[i];
        });
    keep_from(m, x, keep, value_of(key), true);
}

static __global__ void __launch_bounds__(THREADS) mask_top_p(masking m) {
    wait_for_earlier();
    __shared__ select_memory memory;
    __shared__ weight_sum of_warps[THREADS / WARP];
    const float *x = m.x + (size_t)blockIdx.x * m.size, top_p = m.limit[blockIdx.x];
    const bool *keep = m.keep + (size_t)blockIdx.x * m.size;
    const float max = largest_kept(x, keep, m.size, of_warps);
    if (!(top_p < 1.0f) || max == gb_negative_infinity()) {
        keep_from(m, x, keep, 0, false);
        return;
    }
    const auto mass = [&](unsigned i, uint32_t *key) {
        *key = key_of(x[i]);
        return keep[i] ? (weight_sum)gb_mass(x[i], max) : (weight_sum)0;
    };
    weight_sum own = 0;
    for (uint32_t i = threadIdx.x; i < m.size; i += THREADS) {
        uint32_t key;
        own += mass(i, &key);
    }
    const weight_sum limit = gb_mass_limit(block_total(own, of_warps), top_p);
    keep_from(m, x, keep, value_of(select_in_block(m.size, limit, &memory, mass)), true);
}

static __global__ void __launch_bounds__(THREADS) mask_min_p(masking m) {
    wait_for_earlier();
    __shared__ weight_sum of_warps[THREADS / WARP];
    const float *x = m.x + (size_t)blockIdx.x * m.size;
    const bool *keep = m.keep + (size_t)blockIdx.x * m.size;
    const float max = largest_kept(x, keep, m.size, of_warps);
    const uint64_t least = gb_least_mass(m.limit[blockIdx.x]);
    bool *kept = m.kept + (size_t)blockIdx.x * m.size;
    for (uint32_t i = threadIdx.x; i < m.size; i += THREADS)
        kept[i] = keep[i] && gb_mass(x[i], max) >= least;
}

/* Without keep the candidates are the values above -inf, and a NaN anywhere counts. */
static __global__ void __launch_bounds__(THREADS) find_argmax(masking m) {
    wait_for_earlier();
    __shared__ weight_sum of_warps[THREADS / WARP];
    const float *x = m.x + (size_t)blockIdx.x * m.size;
    const bool *keep = m.keep ? m.keep + (size_t)blockIdx.x * m.size : nullptr;
    weight_sum best = 0, has_nan = 0;
    for (uint32_t i = threadIdx.x; i < m.size; i += THREADS) {
        if (keep && !keep[i])
            continue;
        has_nan |= (weight_sum)(x[i] != x[i]);
        const weight_sum packed = keep || x[i] > gb_negative_infinity() ? pack_best(x[i], i) : 0;
        best = packed > best ? packed : best;
    }
    best = block_best(best, of_warps);
    has_nan = block_total(has_nan, of_warps);
    if (threadIdx.x == 0)
        m.index[blockIdx.x] = has_nan ? -2 : best == 0 ? -1 : (int32_t)best_index(best);
}

static void launch_mask(const gb_cuda_call *call, const char *name, void (*kernel)(masking),
                        const masking &m) {
    add_launch(call->launches, name, kernel, (unsigned)call->operands[0]->dims[0], THREADS, 0, m);
}

void gb_cuda_candidates(const gb_cuda_call *call) {
    masking m = masking_of(call);
    m.kept = result<bool>(call);
    launch_mask(call, "candidates", find_candidates, m);
}
void gb_cuda_top_k_mask(const gb_cuda_call *call) {
    masking m = masking_of(call);
    m.top_k = operand<const int32_t>(call, 2);
    m.kept = result<bool>(call);
    launch_mask(call, "top_k", mask_top_k, m);
}
void gb_cuda_top_p_mask(const gb_cuda_call *call) {
    masking m = masking_of(call);
    m.limit = operand<const float>(call, 2);
    m.kept = result<bool>(call);
    launch_mask(call, "top_p", mask_top_p, m);
}
void gb_cuda_min_p_mask(const gb_cuda_call *call) {
    masking m = masking_of(call);
    m.limit = operand<const float>(call, 2);
    m.kept = result<bool>(call);
    launch_mask(call, "min_p", mask_min_p, m);
}
void gb_cuda_argmax(const gb_cuda_call *call) {
    masking m = masking_of(call);
    m.index = result<int32_t>(call);
    launch_mask(call, "argmax", find_argmax, m);
}

/* ---- Adjusting ----------------------------------------------------------------------------------------- */

struct bias_function { /* one thread has a row: the entries of a list have an order */
    const int32_t *ids;
    const float *values;
    size_t limit, size;
    float *y;
    __device__ void operator()(size_t b) const {
        for (size_t i = b * limit; i < (b + 1) * limit && ids[i] >= 0; i++)
            if ((size_t)ids[i] < size)
                y[b * size + (size_t)ids[i]] = gb_biased(y[b * size + (size_t)ids[i]], values[i]);
    }
};
struct penalize_function {
    const int32_t *counts; /* [B, limit, 3] */
    const float *repetition, *frequency, *presence;
    const int32_t *prompt;
    size_t limit, size;
    float *y;
    __device__ void operator()(size_t b) const {
        if (repetition[b] == 1.0f && frequency[b] == 0.0f && presence[b] == 0.0f)
            return;
        for (size_t i = b * limit; i < (b + 1) * limit && counts[i * 3] >= 0; i++) {
            const int32_t *token = counts + i * 3;
            if ((size_t)token[0] >= size)
                continue;
            float &x = y[b * size + (size_t)token[0]];
            const int32_t repeats = token[2] + (prompt[b] & 1 ? token[1] : 0);
            const int32_t occurs = token[2] + (prompt[b] & 2 ? token[1] : 0);
            if (repeats != 0)
                x = gb_repetition_penalized(x, repetition[b]);
            if (occurs != 0)
                x = gb_occurrence_penalized(x, (float)occurs, frequency[b], presence[b]);
        }
    }
};

struct mask_function {
    const float *x;
    const bool *masked;
    const uint32_t *mask;
    size_t words, size;
    float *y;
    __device__ void operator()(size_t i) const {
        const size_t b = i / size, token = i % size;
        const bool is_allowed = !masked[b] || mask[b * words + token / 32] >> token % 32 & 1;
        y[i] = is_allowed || x[i] != x[i] ? x[i] : gb_negative_infinity();
    }
};

void gb_cuda_apply_mask(const gb_cuda_call *call) {
    const gb_cuda_tensor *mask = call->operands[2], *y = call->results[0];
    launch_each(call, "mask", y->dims[0] * y->dims[1],
                mask_function{operand<const float>(call, 0), operand<const bool>(call, 1),
                              data_of<const uint32_t>(mask), mask->dims[1], y->dims[1], data_of<float>(y)});
}
void gb_cuda_apply_bias(const gb_cuda_call *call) {
    const gb_cuda_tensor *ids = call->operands[1], *y = call->results[0];
    gb_cuda_move(call);
    launch_each(call, "bias", y->dims[0],
                bias_function{data_of<const int32_t>(ids), operand<const float>(call, 2), ids->dims[1],
                              y->dims[1], data_of<float>(y)});
}
void gb_cuda_penalize(const gb_cuda_call *call) {
    const gb_cuda_tensor *counts = call->operands[1], *y = call->results[0];
    gb_cuda_move(call);
    launch_each(call, "penalize", y->dims[0],
                penalize_function{data_of<const int32_t>(counts), operand<const float>(call, 2),
                                  operand<const float>(call, 3), operand<const float>(call, 4),
                                  operand<const int32_t>(call, 5), counts->dims[1], y->dims[1],
                                  data_of<float>(y)});
}
