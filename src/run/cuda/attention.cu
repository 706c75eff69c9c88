/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over the caches. Keys come in spans that begin at multiples of SPAN positions. A span's softmax
 * is computed whole; spans are put together in the order of positions (Milakov and Gimelshein, Online
 * normalizer calculation for softmax, 2018). With few tokens each span is a block's and a second kernel puts
 * them together; with many a block walks all spans of some queries that read the same keys. Both give the
 * same bits.
 */
#include "run/cuda/device/mma.cuh"

using namespace gb_cuda;

enum { THREADS = 256, SPAN = 256, QUERIES = 8, KEY_LANES = 8, KEYS_AT_ONCE = THREADS / KEY_LANES };
static_assert(QUERIES == THREADS / WARP && QUERIES <= KEY_LANES, "a warp, and a lane of a key, for a query");
enum { FEW_TOKENS = 16 };

/* Operands by their place in ops.def. */
enum { QUERY, KEY, VALUE, POSITIONS, SLOTS, KEY_CACHE, VALUE_CACHE };

struct cache {
    uint8_t *data;
    size_t slot_bytes;
    gb_dtype dtype;
    size_t capacity, heads, size; /* rows of a slot; elements of a head */
};

static cache cache_of(const gb_cuda_tensor *tensor) {
    return cache{data_of<uint8_t>(tensor), tensor->slot_bytes, tensor->dtype,
                 tensor->dims[0],          tensor->dims[1],    tensor->dims[2]};
}

/* ---- Storing ------------------------------------------------------------------------------------------- */

__device__ static void store_row(const cache &c, const float *x, size_t slot, size_t position) {
    const size_t width = c.heads * c.size, at = position % c.capacity * width;
    uint8_t *data = c.data + slot * c.slot_bytes;
    for (size_t i = threadIdx.x; i < width; i += blockDim.x) {
        if (c.dtype == GB_F32)
            reinterpret_cast<float *>(data)[at + i] = x[i];
        else
            reinterpret_cast<uint16_t *>(data)[at + i] = (uint16_t)pack_bf16(x[i], 0);
    }
}

static __global__ void append(const float *key, const float *value, const int32_t *positions,
                              const int32_t *slots, cache keys, cache values) {
    wait_for_earlier();
    const size_t n = blockIdx.x, slot = (size_t)slots[n], position = (size_t)positions[n];
    store_row(keys, key + n * keys.heads * keys.size, slot, position);
    store_row(values, value + n * values.heads * values.size, slot, position);
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

struct attention {
    const float *query; /* [N, heads, key size] */
    const int32_t *positions, *slots, *run_first;
    cache keys, values;
    size_t heads, window, run_count;
    unsigned tile_heads, tile_tokens; /* of the queries of a block */
    float scale;
    float *y;
    /* Of few tokens: what each span of a query gives: [N, heads, spans, value size], and (largest, sum). */
    unsigned spans;
    float *span_y, *span_state;
};

/* The queries of a block: tokens first .. end - 1 of one slot, heads head .. head_end - 1 of one kv head. */
struct query_tile {
    size_t first, end, head, head_end, kv_head;
};

/* Tile number blockIdx.z of the batch's runs, kv head and heads by blockIdx.y. Empty where there is none. */
__device__ static query_tile find_tile(const attention &a) {
    const size_t group = a.heads / a.keys.heads, parts = (group + a.tile_heads - 1) / a.tile_heads;
    size_t tile = blockIdx.z;
    query_tile t = {0, 0, 0, 0, blockIdx.y / parts};
    t.head = t.kv_head * group + blockIdx.y % parts * a.tile_heads;
    t.head_end =
        t.head + a.tile_heads < (t.kv_head + 1) * group ? t.head + a.tile_heads : (t.kv_head + 1) * group;
    for (size_t r = 0; r < a.run_count; r++) {
        const size_t begin = (size_t)a.run_first[r], end = (size_t)a.run_first[r + 1];
        const size_t tiles = (end - begin + a.tile_tokens - 1) / a.tile_tokens;
        if (tile < tiles) {
            t.first = begin + tile * a.tile_tokens;
            t.end = t.first + a.tile_tokens < end ? t.first + a.tile_tokens : end;
            return t;
        }
        tile -= tiles;
    }
    return t;
}

__device__ static size_t first_read(const attention &a, size_t position) {
    return a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
}

/* Elements i .. i + 7 of a row, zeros past its size. */
__device__ static void load_eight(const uint8_t *row, gb_dtype dtype, size_t i, size_t size, float to[8]) {
    if (size % 8 == 0 && dtype == GB_BF16) {
        const uint4 packed = reinterpret_cast<const uint4 *>(row)[i / 8];
        const uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
        for (int e = 0; e < 4; e++) {
            to[2 * e] = low_bf16(words[e]);
            to[2 * e + 1] = high_bf16(words[e]);
        }
    } else {
        for (size_t e = 0; e < 8; e++)
            to[e] = i + e < size ? load_float(row, dtype, i + e) : 0.0f;
    }
}

__device__ static const uint8_t *head_row(const cache &c, size_t slot, size_t kv_head, size_t position) {
    const size_t at = (position % c.capacity * c.heads + kv_head) * c.size;
    return c.data + slot * c.slot_bytes + at * (c.dtype == GB_F32 ? 4 : 2);
}

/* A block's shared memory. */
struct workspace {
    float *query;  /* [QUERIES, padded key size] */
    float *scores; /* [QUERIES, SPAN] */
    float *y;      /* [QUERIES, value size]: of the spans so far */
    float *parts;  /* [THREADS, QUERIES]: of a span, by thread */
    float *state;  /* [QUERIES, 4]: largest and sum so far; largest and sum of the span */
};

__host__ __device__ static size_t padded(size_t key_size) {
    return (key_size + 63) / 64 * 64;
}

static size_t workspace_bytes(const attention &a) {
    return (QUERIES * (padded(a.keys.size) + SPAN + a.values.size + 4) + THREADS * QUERIES) * sizeof(float);
}

__device__ static workspace workspace_of(const attention &a, float *memory) {
    workspace w;
    w.query = memory;
    w.scores = w.query + QUERIES * padded(a.keys.size);
    w.parts = w.scores + QUERIES * SPAN;
    w.state = w.parts + THREADS * QUERIES;
    w.y = w.state + QUERIES * 4;
    return w;
}

struct query_place {
    bool is_there;
    size_t token, head;
};

__device__ static unsigned count_of(const query_tile &t) {
    return (unsigned)((t.head_end - t.head) * (t.end - t.first));
}

__device__ static query_place place_of(const query_tile &t, unsigned q) {
    const size_t heads = t.head_end - t.head;
    query_place p = {q < count_of(t), t.first + q / heads, t.head + q % heads};
    return p;
}

/* scores[q][j] of the span's keys first .. end - 1 = scale * query . key, -inf where the query reads it not.
 * Q: at least as many as the tile's queries. */
template <unsigned Q>
__device__ static void score_span(const attention &a, const query_tile &t, const workspace &w, size_t span,
                                  size_t first, size_t end) {
    const unsigned lane = threadIdx.x % KEY_LANES, count = count_of(t);
    const size_t size = a.keys.size, stride = padded(size), slot = (size_t)a.slots[t.first];
    const query_place mine = place_of(t, lane);
    const size_t position = mine.is_there ? (size_t)a.positions[mine.token] : 0;
    const size_t first_of_mine = first_read(a, position);
    for (size_t at = threadIdx.x / WARP * (WARP / KEY_LANES); at < SPAN; at += KEYS_AT_ONCE) {
        const size_t j = span + at + threadIdx.x % WARP / KEY_LANES;
        const bool is_read = j >= first && j < end;
        float score = -INFINITY;
        if (span + at < end && span + at + WARP / KEY_LANES > first) { /* for some lane of the warp */
            float sums[Q] = {};
            const uint8_t *row = head_row(a.keys, slot, t.kv_head, is_read ? j : first);
            for (size_t i = lane * 8; is_read && i < size; i += KEY_LANES * 8) {
                float key[8];
                load_eight(row, a.keys.dtype, i, size, key);
                for (unsigned q = 0; q < Q; q++)
                    for (unsigned e = 0; e < 8; e++)
                        sums[q] = fmaf(w.query[q * stride + i + e], key[e], sums[q]);
            }
            for (unsigned q = 0; q < Q; q++) {
                if (q >= count)
                    break;
                float sum = sums[q];
                for (int distance = KEY_LANES / 2; distance > 0; distance /= 2)
                    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
                if (lane == q && is_read && j <= position && j >= first_of_mine)
                    score = sum * a.scale;
            }
        }
        if (lane < Q)
            w.scores[lane * SPAN + (j - span)] = score;
    }
}

/* Turns scores into weights; a warp has a query. */
__device__ static void weigh_span(const workspace &w, unsigned count) {
    const unsigned q = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (q >= count)
        return;
    float *scores = w.scores + q * SPAN, largest = -INFINITY, sum = 0;
    for (unsigned j = lane; j < SPAN; j += WARP)
        largest = larger(scores[j], largest);
    largest = warp_max(largest);
    for (unsigned j = lane; j < SPAN; j += WARP) {
        scores[j] = largest == -INFINITY ? 0.0f : gb_exp(scores[j] - largest);
        sum += scores[j];
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        w.state[q * 4 + 2] = largest;
        w.state[q * 4 + 3] = sum;
    }
}

/* y so far and of a span become that of both. */
__device__ static float put_together(float so_far, float largest, float y, float span_largest) {
    const float both = larger(largest, span_largest);
    return so_far * gb_exp(largest - both) + y * gb_exp(span_largest - both);
}

/* Weighted values of the span, one element of a head after the other; where a head has fewer than the block's
 * threads, several of them share the keys. put(q, e, sum) takes the sums. */
template <unsigned Q, typename Put>
__device__ static void add_values(const attention &a, const query_tile &t, const workspace &w, size_t span,
                                  size_t first, size_t end, Put put) {
    const size_t size = a.values.size, slot = (size_t)a.slots[t.first];
    const size_t across = size < THREADS ? size : (size_t)THREADS, shares = THREADS / across;
    const size_t e0 = threadIdx.x % across, share = threadIdx.x / across;
    for (size_t chunk = 0; chunk < size; chunk += across) {
        const size_t e = chunk + e0;
        float sums[Q] = {};
        for (size_t j = span + share; share < shares && e < size && j < end; j += shares) {
            if (j < first)
                continue;
            const float value = load_float(head_row(a.values, slot, t.kv_head, j), a.values.dtype, e);
            for (unsigned q = 0; q < Q; q++)
                sums[q] = fmaf(w.scores[q * SPAN + (j - span)], value, sums[q]);
        }
        __syncthreads();
        for (unsigned q = 0; q < Q; q++)
            w.parts[threadIdx.x * Q + q] = sums[q];
        __syncthreads();
        for (size_t i = threadIdx.x; i < across * count_of(t); i += THREADS) {
            const size_t q = i / across, of = i % across;
            float sum = w.parts[of * Q + q];
            for (size_t s = 1; s < shares; s++)
                sum += w.parts[(s * across + of) * Q + q];
            if (chunk + of < size)
                put((unsigned)q, chunk + of, sum);
        }
    }
}

__device__ static void load_queries(const attention &a, const query_tile &t, const workspace &w) {
    const size_t size = a.keys.size, stride = padded(size);
    for (size_t i = threadIdx.x; i < QUERIES * stride; i += THREADS) {
        const query_place p = place_of(t, (unsigned)(i / stride));
        const size_t d = i % stride;
        w.query[i] = p.is_there && d < size ? a.query[(p.token * a.heads + p.head) * size + d] : 0.0f;
    }
}

/* Few tokens: a block has span number blockIdx.x, of those that its token reads. */
template <unsigned Q>
static __global__ void __launch_bounds__(THREADS) attend_span(attention a) {
    wait_for_earlier();
    GB_DYNAMIC_SHARED(float, memory);
    const workspace w = workspace_of(a, memory);
    const query_tile t = find_tile(a);
    const size_t position = (size_t)a.positions[t.first], first = first_read(a, position);
    const size_t span = (first / SPAN + blockIdx.x) * SPAN;
    if (span > position || t.first == t.end)
        return;
    const size_t begin = span > first ? span : first;
    const size_t end = position + 1 < span + SPAN ? position + 1 : span + SPAN;
    load_queries(a, t, w);
    __syncthreads();
    score_span<Q>(a, t, w, span, begin, end);
    __syncthreads();
    weigh_span(w, count_of(t));
    __syncthreads();
    add_values<Q>(a, t, w, span, begin, end, [&](unsigned q, size_t e, float sum) {
        const query_place p = place_of(t, q);
        if (p.is_there)
            a.span_y[((p.token * a.heads + p.head) * a.spans + blockIdx.x) * a.values.size + e] = sum;
    });
    if (threadIdx.x < count_of(t)) {
        const query_place p = place_of(t, threadIdx.x);
        float *state = a.span_state + ((p.token * a.heads + p.head) * a.spans + blockIdx.x) * 2;
        for (unsigned i = 0; i < 2; i++)
            state[i] = w.state[threadIdx.x * 4 + 2 + i];
    }
}

static __global__ void join_spans(attention a) {
    wait_for_earlier();
    const size_t n = blockIdx.y, h = blockIdx.x, row = n * a.heads + h;
    const size_t position = (size_t)a.positions[n];
    const size_t spans = position / SPAN - first_read(a, position) / SPAN + 1;
    for (size_t e = threadIdx.x; e < a.values.size; e += THREADS) {
        float largest = -INFINITY, sum = 0, y = 0;
        for (size_t s = 0; s < spans; s++) {
            const float *state = a.span_state + (row * a.spans + s) * 2;
            if (state[0] == -INFINITY)
                continue;
            y = put_together(y, largest, a.span_y[(row * a.spans + s) * a.values.size + e], state[0]);
            sum = put_together(sum, largest, state[1], state[0]);
            largest = larger(largest, state[0]);
        }
        a.y[row * a.values.size + e] = y / sum;
    }
}

/* Many tokens: a block walks all spans that one of its queries reads. */
static __global__ void __launch_bounds__(THREADS) attend_all(attention a) {
    wait_for_earlier();
    GB_DYNAMIC_SHARED(float, memory);
    const workspace w = workspace_of(a, memory);
    const query_tile t = find_tile(a);
    if (t.first == t.end)
        return;
    const size_t first = first_read(a, (size_t)a.positions[t.first]);
    const size_t last = (size_t)a.positions[t.end - 1];
    load_queries(a, t, w);
    for (size_t i = threadIdx.x; i < QUERIES * a.values.size; i += THREADS)
        w.y[i] = 0;
    if (threadIdx.x < QUERIES) {
        w.state[threadIdx.x * 4] = -INFINITY;
        w.state[threadIdx.x * 4 + 1] = 0;
    }
    for (size_t span = first / SPAN * SPAN; span <= last; span += SPAN) {
        const size_t begin = span > first ? span : first,
                     end = last + 1 < span + SPAN ? last + 1 : span + SPAN;
        __syncthreads();
        score_span<QUERIES>(a, t, w, span, begin, end);
        __syncthreads();
        weigh_span(w, count_of(t));
        __syncthreads();
        add_values<QUERIES>(a, t, w, span, begin, end, [&](unsigned q, size_t e, float sum) {
            const float *state = w.state + q * 4;
            float &y = w.y[q * a.values.size + e];
            if (state[2] != -INFINITY)
                y = put_together(y, state[0], sum, state[2]);
        });
        __syncthreads();
        if (threadIdx.x < count_of(t)) {
            float *state = w.state + threadIdx.x * 4;
            if (state[2] != -INFINITY) {
                state[1] = put_together(state[1], state[0], state[3], state[2]);
                state[0] = larger(state[0], state[2]);
            }
        }
    }
    __syncthreads();
    for (size_t i = threadIdx.x; i < QUERIES * a.values.size; i += THREADS) {
        const unsigned q = (unsigned)(i / a.values.size);
        const query_place p = place_of(t, q);
        if (p.is_there)
            a.y[(p.token * a.heads + p.head) * a.values.size + i % a.values.size] =
                w.y[i] / w.state[q * 4 + 1];
    }
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

static unsigned most_spans(const gb_cuda_call *call) {
    const size_t window = (size_t)gb_node_int(call->node, GB_ATTRIBUTE_WINDOW);
    const size_t of_window = window > 0 ? (window - 1) / SPAN + 2 : SIZE_MAX;
    const size_t of_cache = (call->operands[KEY_CACHE]->dims[0] - 1) / SPAN + 1;
    return (unsigned)(window > 0 ? of_window : of_cache);
}

uint64_t gb_cuda_attention_scratch(const gb_cuda_call *call) {
    const size_t tokens =
        call->operands[SLOTS]->dims[0] < FEW_TOKENS ? call->operands[SLOTS]->dims[0] : (size_t)FEW_TOKENS;
    const uint64_t floats = tokens * call->operands[QUERY]->dims[1] * most_spans(call);
    return floats * (call->operands[VALUE]->dims[2] + 2) * sizeof(float);
}

static attention attention_of(const gb_cuda_call *call) {
    attention a = {};
    a.query = data_of<const float>(call->operands[QUERY]);
    a.positions = data_of<const int32_t>(call->operands[POSITIONS]);
    a.slots = data_of<const int32_t>(call->operands[SLOTS]);
    a.run_first = call->runs.first;
    a.run_count = call->runs.count;
    a.keys = cache_of(call->operands[KEY_CACHE]);
    a.values = cache_of(call->operands[VALUE_CACHE]);
    a.heads = call->operands[QUERY]->dims[1];
    a.window = (size_t)gb_node_int(call->node, GB_ATTRIBUTE_WINDOW);
    a.scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    a.y = data_of<float>(call->results[0]);
    const size_t group = a.heads / a.keys.heads;
    a.tile_heads = (unsigned)(group < QUERIES ? group : (size_t)QUERIES);
    return a;
}

void gb_cuda_attention(const gb_cuda_call *call) {
    attention a = attention_of(call);
    const size_t tokens = call->operands[SLOTS]->dims[0], group = a.heads / a.keys.heads;
    const unsigned across = (unsigned)(a.keys.heads * ((group + a.tile_heads - 1) / a.tile_heads));
    const float *key = data_of<const float>(call->operands[KEY]);
    const float *value = data_of<const float>(call->operands[VALUE]);
    GB_LAUNCH(append, (unsigned)tokens, THREADS, 0, call->stream, key, value, a.positions, a.slots, a.keys,
              a.values);
    if (tokens <= FEW_TOKENS) {
        a.tile_tokens = 1;
        a.spans = most_spans(call);
        a.span_y = reinterpret_cast<float *>(call->scratch->bytes);
        a.span_state = a.span_y + tokens * a.heads * a.spans * a.values.size;
        const dim3 grid(a.spans, across, (unsigned)tokens), join_grid((unsigned)a.heads, (unsigned)tokens);
        auto kernel = a.tile_heads <= 2   ? attend_span<2>
                      : a.tile_heads <= 4 ? attend_span<4>
                                          : attend_span<8>;
        GB_LAUNCH(kernel, grid, THREADS, workspace_bytes(a), call->stream, a);
        GB_LAUNCH(join_spans, join_grid, THREADS, 0, call->stream, a);
        return;
    }
    a.tile_tokens = QUERIES / a.tile_heads;
    const dim3 grid(1, across, (unsigned)(tokens / a.tile_tokens + a.run_count));
    GB_LAUNCH(attend_all, grid, THREADS, workspace_bytes(a), call->stream, a);
}
