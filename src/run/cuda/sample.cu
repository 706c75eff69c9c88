/* SPDX-License-Identifier: Apache-2.0
 *
 * A sample step: one token per row, with the bits of docs/sampling.md. Every row goes through the same
 * kernels, whatever its settings, so that a captured graph holds them; a row that does not need one leaves it
 * at once.
 *
 *     begin      biases and penalties, written into the row
 *     scan       the largest logit, and the largest of each group of 256
 *     bound      top-k: the k-th largest of the groups' bounds the k-th largest logit from below
 *     gather     top-k: the logits from the bound on
 *     cut        top-k, and top-p after it: the threshold, from the gathered
 *     sum_masses top-p alone: masses by the upper, middle and lower bits of s
 *     draw       the largest s + g
 *     finish     the token; biases and penalties are taken back
 */
#include "run/cuda/device/select.cuh"

using namespace gb_cuda;

enum { THREADS = 256, WIDE_THREADS = 1024, GROUP = 256, BLOCK_LOGITS = GROUP * (THREADS / WARP) };
enum { BINS = 2048, ROUNDS = 3 };

struct row_state {
    weight_sum best, drawn;          /* packed: the largest logit, the largest score */
    uint32_t has_nan, has_nan_score; /* */
    uint32_t bound;                  /* top-k: a key; 0 where top-k keeps all */
    uint32_t gathered;               /* how many are */
    uint32_t mass_prefix;            /* top-p alone: the bits of the threshold's key that are known */
    float least;                     /* the smallest s that is kept */
    weight_sum mass_limit, mass_above;
};

/* What a token's counts are stored as. */
struct token_count {
    int32_t id, prompt, generated;
};

struct sampling {
    float *logits; /* [B, size] */
    uint32_t size, groups, blocks;
    const float *temperature, *top_p, *min_p; /* top_p, min_p, top_k may be NULL */
    const int32_t *top_k;
    const uint64_t *seed;
    const int32_t *bias_ids; /* or NULL: [B, bias_limit] */
    const float *bias_values;
    uint32_t bias_limit;
    const token_count *counts; /* or NULL: [B, count_limit] */
    uint32_t count_limit;
    const float *repetition, *frequency, *presence;
    const int32_t *prompt;
    int32_t *token;
    /* scratch, by row */
    row_state *rows;
    weight_sum *bins;   /* [ROUNDS, BINS] */
    uint32_t *maxima;   /* [groups]: keys */
    uint32_t *gathered; /* [size]: indices */
    float *before_bias, *before_penalty;
};

/* A row's settings and what the scan found. */
struct row {
    float *x;
    float temperature, max; /* of the logits */
    float max_s;
    float top_p;
    uint32_t top_k; /* 0: all */
    bool is_drawn;  /* a token is to be drawn from finite values: top-k and so on take part */
    bool is_infinite;
};

__device__ static row row_of(const sampling &a, size_t b) {
    row r;
    const row_state &state = a.rows[b];
    const int32_t top_k = a.top_k ? a.top_k[b] : 0;
    r.x = a.logits + b * a.size;
    r.temperature = a.temperature[b];
    r.max = best_value(state.best);
    r.is_infinite = r.max == -gb_negative_infinity();
    r.is_drawn = r.temperature != 0.0f && !state.has_nan && state.best != 0 &&
                 r.max > gb_negative_infinity() && !r.is_infinite;
    r.max_s = r.is_drawn ? gb_scale(r.max, r.temperature) : 0.0f;
    r.top_k = top_k <= 0 || (uint32_t)top_k >= a.size ? 0 : (uint32_t)top_k;
    r.top_p = a.top_p && r.max_s > gb_negative_infinity() ? a.top_p[b] : 1.0f;
    return r;
}

/* ---- Biases and penalties ------------------------------------------------------------------------------ */

__device__ static float penalized(const sampling &a, size_t b, const token_count &token, float x) {
    const int32_t flags = a.prompt[b];
    const int32_t repeats = token.generated + (flags & 1 ? token.prompt : 0);
    const int32_t occurs = token.generated + (flags & 2 ? token.prompt : 0);
    if (repeats != 0)
        x = gb_repetition_penalized(x, a.repetition[b]);
    if (occurs != 0)
        x = gb_occurrence_penalized(x, (float)occurs, a.frequency[b], a.presence[b]);
    return x;
}

__device__ static bool has_penalties(const sampling &a, size_t b) {
    return a.counts && (a.repetition[b] != 1.0f || a.frequency[b] != 0.0f || a.presence[b] != 0.0f);
}

/* A list ends at its limit or at the first negative id; ids are distinct, so threads may take any. The
 * threads agree on where it ends. */
template <typename Visit>
__device__ static void visit_counts(const sampling &a, size_t b, Visit visit) {
    const token_count *list = a.counts + b * a.count_limit;
    __shared__ uint32_t end;
    for (uint32_t begin = 0; begin < a.count_limit; begin += THREADS) {
        const uint32_t i = begin + threadIdx.x;
        __syncthreads();
        if (threadIdx.x == 0)
            end = a.count_limit;
        __syncthreads();
        if (i < a.count_limit && list[i].id < 0)
            atomicMin(&end, i);
        __syncthreads();
        if (i < end && (uint32_t)list[i].id < a.size)
            visit(i, list[i]);
        if (end < begin + THREADS)
            break;
    }
}

static __global__ void __launch_bounds__(THREADS) begin_rows(sampling a) {
    wait_for_earlier();
    const size_t b = blockIdx.x;
    float *x = a.logits + b * a.size;
    weight_sum *bins = a.bins + b * ROUNDS * BINS;
    for (unsigned i = threadIdx.x; i < ROUNDS * BINS; i += THREADS)
        bins[i] = 0;
    if (threadIdx.x == 0) {
        row_state none = {};
        none.least = gb_negative_infinity();
        a.rows[b] = none;
        const int32_t *ids = a.bias_ids + b * a.bias_limit;
        for (uint32_t i = 0; a.bias_ids && i < a.bias_limit && ids[i] >= 0; i++) {
            if ((uint32_t)ids[i] >= a.size)
                continue;
            a.before_bias[b * a.bias_limit + i] = x[ids[i]];
            x[ids[i]] = gb_biased(x[ids[i]], a.bias_values[b * a.bias_limit + i]);
        }
    }
    __threadfence();
    __syncthreads();
    if (has_penalties(a, b))
        visit_counts(a, b, [&](uint32_t i, const token_count &token) {
            a.before_penalty[b * a.count_limit + i] = x[token.id];
            x[token.id] = penalized(a, b, token, x[token.id]);
        });
}

static __global__ void __launch_bounds__(THREADS) finish_rows(sampling a) {
    wait_for_earlier();
    const size_t b = blockIdx.x;
    float *x = a.logits + b * a.size;
    if (threadIdx.x == 0) {
        const row_state &state = a.rows[b];
        const bool has_candidate = best_value(state.best) > gb_negative_infinity();
        int32_t token = (int32_t)best_index(a.temperature[b] == 0.0f ? state.best : state.drawn);
        if (!has_candidate)
            token = -1;
        if (state.has_nan || (has_candidate && state.has_nan_score))
            token = -2;
        a.token[b] = token;
    }
    if (has_penalties(a, b))
        visit_counts(a, b, [&](uint32_t i, const token_count &token) {
            x[token.id] = a.before_penalty[b * a.count_limit + i];
        });
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && a.bias_ids) { /* backwards: an id may stand in the list twice */
        const int32_t *ids = a.bias_ids + b * a.bias_limit;
        uint32_t end = 0;
        while (end < a.bias_limit && ids[end] >= 0)
            end++;
        while (end-- > 0)
            if ((uint32_t)ids[end] < a.size)
                x[ids[end]] = a.before_bias[b * a.bias_limit + end];
    }
}

/* ---- The largest, and top-k ---------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS) scan_rows(sampling a) {
    wait_for_earlier();
    __shared__ weight_sum of_warps[THREADS / WARP];
    const size_t b = blockIdx.y;
    const float *x = a.logits + b * a.size;
    const uint32_t group = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    weight_sum best = 0;
    bool has_nan = false;
    for (uint32_t j = threadIdx.x % WARP; j < GROUP; j += WARP) {
        const uint32_t i = group * GROUP + j;
        if (i >= a.size)
            break;
        const float value = x[i];
        const weight_sum packed = pack_best(value, i);
        has_nan |= value != value;
        best = packed > best ? packed : best;
    }
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const weight_sum other = __shfl_xor_sync(0xffffffffu, best, distance);
        best = other > best ? other : best;
    }
    if (threadIdx.x % WARP == 0 && group < a.groups)
        a.maxima[b * a.groups + group] = (uint32_t)(best >> 32);
    best = block_best(best, of_warps);
    if (threadIdx.x == 0)
        atomicMax(&a.rows[b].best, best);
    if (has_nan)
        atomicOr(&a.rows[b].has_nan, 1u);
}

static __global__ void __launch_bounds__(WIDE_THREADS) bound_rows(sampling a) {
    wait_for_earlier();
    __shared__ select_memory memory;
    const size_t b = blockIdx.x;
    const row r = row_of(a, b);
    if (!r.is_drawn || r.top_k == 0)
        return;
    const uint32_t *maxima = a.maxima + b * a.groups;
    uint32_t bound = 0;
    if (r.top_k <= a.groups)
        bound = select_in_block(a.groups, r.top_k - 1, &memory, [&](unsigned i, uint32_t *key) {
            *key = maxima[i];
            return (weight_sum)1;
        });
    const uint32_t least = key_of(gb_negative_infinity()) + 1;
    if (threadIdx.x == 0)
        a.rows[b].bound = bound > least ? bound : least;
}

static __global__ void __launch_bounds__(THREADS) gather_rows(sampling a) {
    wait_for_earlier();
    const size_t b = blockIdx.y;
    const row r = row_of(a, b);
    row_state &state = a.rows[b];
    if (!r.is_drawn || r.top_k == 0)
        return;
    for (uint32_t j = threadIdx.x; j < BLOCK_LOGITS; j += THREADS) {
        const uint32_t i = blockIdx.x * BLOCK_LOGITS + j;
        if (i < a.size && key_of(r.x[i]) >= state.bound)
            a.gathered[b * a.size + atomicAdd(&state.gathered, 1u)] = i;
    }
}

/* The weight of an s under top-p; its key. */
__device__ static weight_sum mass_of(const row &r, float s, uint32_t *key) {
    *key = key_of(s);
    return gb_mass(s, r.max_s);
}

static __global__ void __launch_bounds__(WIDE_THREADS) cut_rows(sampling a) {
    wait_for_earlier();
    __shared__ select_memory memory;
    __shared__ weight_sum total;
    const size_t b = blockIdx.x;
    const row r = row_of(a, b);
    row_state &state = a.rows[b];
    if (!r.is_drawn || r.top_k == 0)
        return;
    const uint32_t *gathered = a.gathered + b * a.size;
    float least = gb_negative_infinity();
    if (r.top_k <= state.gathered) /* else there are fewer candidates */
        least = gb_scale(value_of(select_in_block(state.gathered, r.top_k - 1, &memory,
                                                  [&](unsigned i, uint32_t *key) {
                                                      *key = key_of(r.x[gathered[i]]);
                                                      return (weight_sum)1;
                                                  })),
                         r.temperature);
    if (r.top_p < 1.0f) {
        const auto mass = [&](unsigned i, uint32_t *key) {
            const float s = gb_scale(r.x[gathered[i]], r.temperature);
            return s >= least ? mass_of(r, s, key) : (weight_sum)0;
        };
        if (threadIdx.x == 0)
            total = 0;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < state.gathered; i += WIDE_THREADS) {
            uint32_t key;
            atomicAdd(&total, mass(i, &key));
        }
        __syncthreads();
        least = value_of(select_in_block(state.gathered, gb_mass_limit(total, r.top_p), &memory, mass));
    }
    if (threadIdx.x == 0)
        state.least = least;
}

/* ---- top-p alone ----------------------------------------------------------------------------------------
 */

__device__ static bool sums_masses(const row &r) {
    return r.is_drawn && r.top_k == 0 && r.top_p < 1.0f;
}

/* Of a key: bits 21 .. 31, 10 .. 20 and 0 .. 9. */
__device__ static int shift_of(int round) {
    return round == 0 ? 21 : round == 1 ? 10 : 0;
}

/* What a round's sums say about the threshold: the prefix of its key, and the masses above. */
struct known_bits {
    uint32_t prefix;
    weight_sum above, limit;
};

/* Follows the rounds before `round`; needs all threads. */
__device__ static known_bits known_before(const sampling &a, size_t b, const row &r, int round,
                                          weight_sum *shared) {
    known_bits known = {0, 0, 0};
    const weight_sum *bins = a.bins + b * ROUNDS * BINS;
    if (round > 0) {
        __shared__ weight_sum total;
        __syncthreads();
        if (threadIdx.x == 0)
            total = 0;
        __syncthreads();
        weight_sum own = 0;
        for (unsigned i = threadIdx.x; i < BINS; i += THREADS)
            own += bins[i];
        if (own)
            atomicAdd(&total, own);
        __syncthreads();
        known.limit = gb_mass_limit(total, r.top_p);
    }
    for (int before = 0; before < round; before++) {
        const found_bin found = find_bin<BINS>(bins + before * BINS, known.above, known.limit, shared);
        known.prefix |= (uint32_t)found.bin << shift_of(before);
        known.above = found.above;
    }
    return known;
}

static __global__ void __launch_bounds__(THREADS) sum_masses(sampling a, int round) {
    wait_for_earlier();
    __shared__ uint32_t high[BINS], low[BINS]; /* of BLOCK_LOGITS masses of two times 20 bits */
    __shared__ weight_sum finding[12];
    const size_t b = blockIdx.y;
    const row r = row_of(a, b);
    if (!sums_masses(r))
        return;
    const known_bits known = known_before(a, b, r, round, finding);
    for (unsigned i = threadIdx.x; i < BINS; i += THREADS)
        high[i] = low[i] = 0;
    __syncthreads();
    const int shift = shift_of(round), above_shift = round == 0 ? 0 : shift_of(round - 1);
    for (uint32_t j = threadIdx.x; j < BLOCK_LOGITS; j += THREADS) {
        const uint32_t i = blockIdx.x * BLOCK_LOGITS + j;
        if (i >= a.size)
            break;
        const float s = gb_scale(r.x[i], r.temperature);
        const uint32_t key = key_of(s);
        if (round > 0 && key >> above_shift != known.prefix >> above_shift)
            continue;
        uint32_t mass_high, mass_low;
        gb_mass_parts(s, r.max_s, &mass_high, &mass_low);
        const uint32_t bin = key >> shift & (BINS - 1);
        if (mass_high)
            atomicAdd(&high[bin], mass_high);
        if (mass_low)
            atomicAdd(&low[bin], mass_low);
    }
    __syncthreads();
    weight_sum *bins = a.bins + (b * ROUNDS + (size_t)round) * BINS;
    for (unsigned i = threadIdx.x; i < BINS; i += THREADS)
        if (high[i] | low[i])
            atomicAdd(&bins[i], ((weight_sum)high[i] << 20) + low[i]);
}

/* ---- The draw ------------------------------------------------------------------------------------------ */

static __global__ void __launch_bounds__(THREADS) draw_rows(sampling a) {
    wait_for_earlier();
    __shared__ weight_sum of_warps[THREADS / WARP];
    __shared__ weight_sum finding[12];
    const size_t b = blockIdx.y;
    const row r = row_of(a, b);
    row_state &state = a.rows[b];
    if (!r.is_drawn && !(r.is_infinite && r.temperature != 0.0f))
        return;
    float least = state.least;
    if (sums_masses(r))
        least = value_of(known_before(a, b, r, ROUNDS, finding).prefix);
    const uint64_t least_mass = a.min_p ? gb_least_mass(a.min_p[b]) : 0, seed = a.seed[b];
    weight_sum best = 0;
    bool has_nan = false;
    for (uint32_t j = threadIdx.x; j < BLOCK_LOGITS; j += THREADS) {
        const uint32_t i = blockIdx.x * BLOCK_LOGITS + j;
        if (i >= a.size)
            break;
        const float x = r.x[i];
        const float s = r.is_infinite ? 0.0f : gb_scale(x, r.temperature);
        const bool is_kept =
            r.is_infinite ? x == r.max
                          : x > gb_negative_infinity() && s >= least && gb_mass(s, r.max_s) >= least_mass;
        if (!is_kept)
            continue;
        const float score = s + gb_gumbel(gb_word_at(seed, a.size, i));
        const weight_sum packed = pack_best(score, i);
        has_nan |= score != score;
        best = packed > best ? packed : best;
    }
    best = block_best(best, of_warps);
    if (threadIdx.x == 0 && best)
        atomicMax(&state.drawn, best);
    if (has_nan)
        atomicOr(&state.has_nan_score, 1u);
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

static sampling sampling_of(const gb_cuda_call *call, size_t *rows) {
    const gb_cuda_tensor *const *operands = call->operands, *logits = operands[GB_SAMPLE_LOGITS];
    const gb_cuda_tensor *biases = operands[GB_SAMPLE_BIAS_IDS], *counts = operands[GB_SAMPLE_COUNTS];
    sampling a = {};
    *rows = logits->dims[0];
    a.logits = data_of<float>(logits);
    a.size = (uint32_t)logits->dims[1];
    a.groups = (a.size + GROUP - 1) / GROUP;
    a.blocks = (a.size + BLOCK_LOGITS - 1) / BLOCK_LOGITS;
    a.temperature = data_of<const float>(operands[GB_SAMPLE_TEMPERATURE]);
    a.top_k = data_or_null<const int32_t>(operands[GB_SAMPLE_TOP_K]);
    a.top_p = data_or_null<const float>(operands[GB_SAMPLE_TOP_P]);
    a.min_p = data_or_null<const float>(operands[GB_SAMPLE_MIN_P]);
    a.seed = data_of<const uint64_t>(operands[GB_SAMPLE_SEED]);
    a.bias_ids = data_or_null<const int32_t>(biases);
    a.bias_values = data_or_null<const float>(operands[GB_SAMPLE_BIAS_VALUES]);
    a.bias_limit = biases ? (uint32_t)biases->dims[1] : 0;
    a.counts = data_or_null<const token_count>(counts);
    a.count_limit = counts ? (uint32_t)counts->dims[1] : 0;
    a.repetition = data_or_null<const float>(operands[GB_SAMPLE_REPETITION]);
    a.frequency = data_or_null<const float>(operands[GB_SAMPLE_FREQUENCY]);
    a.presence = data_or_null<const float>(operands[GB_SAMPLE_PRESENCE]);
    a.prompt = data_or_null<const int32_t>(operands[GB_SAMPLE_PENALIZE_PROMPT]);
    a.token = data_of<int32_t>(call->results[0]);
    return a;
}

static uint64_t row_bytes(const sampling &a) {
    return sizeof(row_state) + ROUNDS * BINS * sizeof(weight_sum) +
           ((uint64_t)a.groups + a.size + a.bias_limit + a.count_limit) * sizeof(uint32_t);
}

uint64_t gb_cuda_sample_scratch(const gb_cuda_call *call) {
    size_t rows;
    const sampling a = sampling_of(call, &rows);
    return rows * row_bytes(a);
}

void gb_cuda_sample(const gb_cuda_call *call) {
    size_t rows;
    sampling a = sampling_of(call, &rows);
    a.rows = reinterpret_cast<row_state *>(call->scratch->bytes);
    a.bins = reinterpret_cast<weight_sum *>(a.rows + rows);
    a.maxima = reinterpret_cast<uint32_t *>(a.bins + rows * ROUNDS * BINS);
    a.gathered = a.maxima + rows * a.groups;
    a.before_bias = reinterpret_cast<float *>(a.gathered + rows * a.size);
    a.before_penalty = a.before_bias + rows * a.bias_limit;
    const unsigned across = (unsigned)rows;
    const dim3 all(a.blocks, across);
    GB_LAUNCH(begin_rows, across, THREADS, 0, call->stream, a);
    GB_LAUNCH(scan_rows, all, THREADS, 0, call->stream, a);
    if (a.top_k) {
        GB_LAUNCH(bound_rows, across, WIDE_THREADS, 0, call->stream, a);
        GB_LAUNCH(gather_rows, all, THREADS, 0, call->stream, a);
        GB_LAUNCH(cut_rows, across, WIDE_THREADS, 0, call->stream, a);
    }
    for (int round = 0; a.top_p && round < ROUNDS; round++)
        GB_LAUNCH(sum_masses, all, THREADS, 0, call->stream, a, round);
    GB_LAUNCH(draw_rows, all, THREADS, 0, call->stream, a);
    GB_LAUNCH(finish_rows, across, THREADS, 0, call->stream, a);
}
