/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of the sampler's chain one by one, for programs whose sampler is not fused; a block has a row.
 * They have the bits of backends/sampler/chain.c.
 */
#include "backends/cuda/device/each.cuh"
#include "backends/cuda/sampler/select.cuh"

using namespace gb_cuda;

enum { THREADS = 1024 };

/* For a number of elements. */
template <typename Function>
struct of_number {
    Function function;
    __device__ void operator()(size_t, size_t i) const {
        function(i);
    }
};

template <typename Function>
static void launch_each(const gb_cuda_call *call, const char *name, size_t count, Function function) {
    add_each(call->launches, name, 1, count, of_number<Function>{function});
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

struct temperature_scale {
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
                temperature_scale{operand<const float>(call, 0), operand<const float>(call, 1),
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
    const int32_t *top_k; /* operand 2, which otherwise is a limit */
    const float *limit;   /* top_p or min_p */
    bool *kept;           /* the result, which otherwise is an index */
    int32_t *index;
};

struct masking_memory {
    select_memory select;
    weight_sum of_warps[THREADS / WARP];
    uint32_t any_infinite;
};

/* A block has row blockIdx.x. */
template <typename Operation>
static __global__ void __launch_bounds__(THREADS) run_on_row(masking m) {
    wait_for_earlier();
    __shared__ masking_memory memory;
    const size_t first = (size_t)blockIdx.x * m.size;
    m.x += first;
    m.keep = m.keep ? m.keep + first : nullptr;
    m.kept += first;
    Operation::run(m, memory);
}

template <typename Operation>
static void launch_on_rows(const gb_cuda_call *call, const char *name) {
    const gb_cuda_tensor *x = call->operands[0], *limit = call->operands[2];
    const masking m = {data_of<const float>(x),
                       data_or_null<const bool>(call->operands[1]),
                       (uint32_t)x->dims[1],
                       data_or_null<const int32_t>(limit),
                       data_or_null<const float>(limit),
                       result<bool>(call),
                       result<int32_t>(call)};
    add_launch(call->launches, name, run_on_row<Operation>, (unsigned)x->dims[0], THREADS, 0, m);
}

struct candidates_of_row {
    __device__ static void run(const masking &m, masking_memory &memory) {
        const float infinity = -gb_negative_infinity();
        if (threadIdx.x == 0)
            memory.any_infinite = 0;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < m.size; i += THREADS)
            if (m.x[i] == infinity)
                atomicOr(&memory.any_infinite, 1u);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < m.size; i += THREADS)
            m.kept[i] = memory.any_infinite ? m.x[i] == infinity : m.x[i] > -infinity;
    }
};

/* The largest kept value of a row, -inf where there is none. */
__device__ static float largest_kept(const masking &m, weight_sum *of_warps) {
    weight_sum best = pack_best(gb_negative_infinity(), 0);
    for (uint32_t i = threadIdx.x; i < m.size; i += THREADS) {
        const weight_sum packed = m.keep[i] && m.x[i] == m.x[i] ? pack_best(m.x[i], i) : 0;
        best = packed > best ? packed : best;
    }
    return best_value(block_best(best, of_warps));
}

__device__ static void keep_all(const masking &m) {
    for (uint32_t i = threadIdx.x; i < m.size; i += THREADS)
        m.kept[i] = m.keep[i];
}

/* Those of at least the value that has a key. */
__device__ static void keep_from(const masking &m, uint32_t key) {
    const float least = value_of(key);
    for (uint32_t i = threadIdx.x; i < m.size; i += THREADS)
        m.kept[i] = m.keep[i] && m.x[i] >= least;
}

struct top_k_of_row {
    __device__ static void run(const masking &m, masking_memory &memory) {
        const int32_t top_k = m.top_k[blockIdx.x];
        weight_sum own = 0;
        for (uint32_t i = threadIdx.x; i < m.size; i += THREADS)
            own += m.keep[i];
        if (top_k <= 0 || (weight_sum)top_k >= block_total(own, memory.of_warps))
            return keep_all(m);
        keep_from(
            m, select_in_block(m.size, (weight_sum)top_k - 1, &memory.select, [&](unsigned i, uint32_t *key) {
                *key = key_of(m.x[i]);
                return (weight_sum)m.keep[i];
            }));
    }
};

struct top_p_of_row {
    __device__ static void run(const masking &m, masking_memory &memory) {
        const float top_p = m.limit[blockIdx.x], max = largest_kept(m, memory.of_warps);
        if (!(top_p < 1.0f) || max == gb_negative_infinity())
            return keep_all(m);
        const auto mass = [&](unsigned i, uint32_t *key) {
            *key = key_of(m.x[i]);
            return m.keep[i] ? (weight_sum)gb_mass(m.x[i], max) : (weight_sum)0;
        };
        weight_sum own = 0;
        for (uint32_t i = threadIdx.x; i < m.size; i += THREADS) {
            uint32_t key;
            own += mass(i, &key);
        }
        const weight_sum limit = gb_mass_limit(block_total(own, memory.of_warps), top_p);
        keep_from(m, select_in_block(m.size, limit, &memory.select, mass));
    }
};

struct min_p_of_row {
    __device__ static void run(const masking &m, masking_memory &memory) {
        const float max = largest_kept(m, memory.of_warps);
        const uint64_t least = gb_least_mass(m.limit[blockIdx.x]);
        for (uint32_t i = threadIdx.x; i < m.size; i += THREADS)
            m.kept[i] = m.keep[i] && gb_mass(m.x[i], max) >= least;
    }
};

/* Without keep the candidates are the values above -inf, and a NaN anywhere counts. */
struct argmax_of_row {
    __device__ static void run(const masking &m, masking_memory &memory) {
        weight_sum best = 0, has_nan = 0;
        for (uint32_t i = threadIdx.x; i < m.size; i += THREADS) {
            if (m.keep && !m.keep[i])
                continue;
            has_nan |= (weight_sum)(m.x[i] != m.x[i]);
            const weight_sum packed = m.keep || m.x[i] > gb_negative_infinity() ? pack_best(m.x[i], i) : 0;
            best = packed > best ? packed : best;
        }
        best = block_best(best, memory.of_warps);
        has_nan = block_total(has_nan, memory.of_warps);
        if (threadIdx.x == 0)
            m.index[blockIdx.x] = has_nan ? -2 : best == 0 ? -1 : (int32_t)best_index(best);
    }
};

void gb_cuda_candidates(const gb_cuda_call *call) {
    launch_on_rows<candidates_of_row>(call, "candidates");
}
void gb_cuda_top_k_mask(const gb_cuda_call *call) {
    launch_on_rows<top_k_of_row>(call, "top_k");
}
void gb_cuda_top_p_mask(const gb_cuda_call *call) {
    launch_on_rows<top_p_of_row>(call, "top_p");
}
void gb_cuda_min_p_mask(const gb_cuda_call *call) {
    launch_on_rows<min_p_of_row>(call, "min_p");
}
void gb_cuda_argmax(const gb_cuda_call *call) {
    launch_on_rows<argmax_of_row>(call, "argmax");
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
