/* SPDX-License-Identifier: Apache-2.0
 *
 * A block's span of a decode token's positions: scores, weights and the sum of values for up to eight query
 * heads of a kv head. A cached row is read once, straight into registers in the tensor cores' order; the
 * first rows are prefetched before earlier kernels end, because earlier steps wrote them.
 *
 * Queries and weights enter the products as two bfloat16 terms, high + low, which keep 16 bits. Cached rows
 * are bfloat16 (TERMS 1) or float32, which enter as two terms as well (2), without the product of the low
 * ones.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_SPAN_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_SPAN_CUH

#include "backends/cuda/attention/attention.cuh"

namespace gb_cuda {

constexpr unsigned SPAN_THREADS = 256, SPAN_WARPS = SPAN_THREADS / WARP, SPAN_QUERIES = 8, SPLITS = 2;

/* How a block's warps share a round of keys: scores of 16 keys over 128 elements each, then 64 elements of
 * the values of 32 keys each. */
template <unsigned SIZE>
struct decode_shape {
    static constexpr unsigned KEYS = 16 * SPAN_WARPS * 128 / SIZE;
    static constexpr unsigned DEPTHS = SIZE / 128, KEY_TILES = SPAN_WARPS / DEPTHS;
    static constexpr unsigned COLUMNS = SIZE / 64, KEY_SHARES = SPAN_WARPS / COLUMNS;
    static constexpr unsigned SCORE_STRIDE = KEYS + 4, WEIGHT_STRIDE = KEYS + 8; /* against bank conflicts */
    static_assert(KEY_TILES * 16 == KEYS && KEY_SHARES * 32 == KEYS, "all keys of a round are taken");
};

/* Eight neighbouring elements as a cache has them: bfloat16, or float32 where they are two terms. */
template <unsigned TERMS>
struct eight {
    uint4 words[TERMS];
};

template <unsigned SIZE, unsigned TERMS>
struct decode_memory {
    union {
        uint4 query[SIZE / 32][SPLITS][WARP]; /* as the tensor cores take it */
        float result[SPAN_QUERIES][SIZE];     /* when all is done */
    };
    eight<TERMS> own[2][SIZE / 8]; /* the token's own key and value */
    float4 sums[decode_shape<SIZE>::KEY_SHARES > 1 ? SPAN_WARPS - decode_shape<SIZE>::COLUMNS : 1][4][WARP];
    float scores[decode_shape<SIZE>::DEPTHS][SPAN_QUERIES][decode_shape<SIZE>::SCORE_STRIDE];
    uint16_t weights[SPLITS][SPAN_QUERIES][decode_shape<SIZE>::WEIGHT_STRIDE];
    float correction[SPAN_QUERIES], factor[SPAN_QUERIES]; /* of the sums so far, of all */
};

/* ---- Reading the caches -------------------------------------------------------------------------------- */

/* A kv head's rows in one slot, in units of 16 bits; position `first` is in row `row`. */
struct cached_rows {
    const uint16_t *data;
    unsigned stride, capacity, first, row;
};

template <unsigned TERMS>
__device__ inline cached_rows rows_from(const cache &c, size_t slot, size_t kv_head, unsigned first) {
    const uint16_t *data = reinterpret_cast<const uint16_t *>(c.data + slot * c.slot_bytes);
    return cached_rows{data + kv_head * c.size * TERMS, (unsigned)(c.heads * c.size) * TERMS,
                       (unsigned)c.capacity, first, first % (unsigned)c.capacity};
}

/* Eight elements of the row of position j, which is less than capacity past the first; zeros from `end` on.
 */
template <unsigned TERMS>
__device__ inline eight<TERMS> load_eight(const cached_rows &rows, unsigned j, unsigned end,
                                          unsigned element) {
    unsigned row = rows.row + (j - rows.first);
    row -= row >= rows.capacity ? rows.capacity : 0;
    const uint16_t *from = rows.data + (size_t)row * rows.stride + element * TERMS;
    eight<TERMS> loaded;
#pragma unroll
    for (unsigned i = 0; i < TERMS; i++)
        loaded.words[i] = j < end ? reinterpret_cast<const uint4 *>(from)[i] : uint4{0, 0, 0, 0};
    return loaded;
}

/* Of keys j and j + 8: elements 32 u + 8 t .. of each unit u of 32. */
template <unsigned TERMS>
__device__ inline void load_keys(const cached_rows &rows, unsigned j, unsigned end, unsigned element,
                                 eight<TERMS> keys[4][2]) {
#pragma unroll
    for (unsigned i = 0; i < 2; i++)
#pragma unroll
        for (unsigned u = 0; u < 4; u++)
            keys[u][i] = load_eight<TERMS>(rows, j + 8 * i, end, element + 32 * u);
}

/* Of values j .. j + 3 and j + 16 .. j + 19, eight elements each. */
template <unsigned TERMS>
__device__ inline void load_values(const cached_rows &rows, unsigned j, unsigned end, unsigned element,
                                   eight<TERMS> values[2][4]) {
#pragma unroll
    for (unsigned s = 0; s < 2; s++)
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            values[s][i] = load_eight<TERMS>(rows, j + 16 * s + i, end, element);
}

/* A thread's eight elements of the token's own key or value; zeros in threads that have none. */
struct own_elements {
    float4 four[2];
};

template <unsigned SIZE>
__device__ inline own_elements load_own(const attention &a, const query_tile &t) {
    own_elements own = {};
    if (threadIdx.x >= 2 * SIZE / 8)
        return own;
    const bool is_key = threadIdx.x < SIZE / 8;
    const float4 *x = reinterpret_cast<const float4 *>(is_key ? a.key : a.value) +
                      ((t.first * a.keys.heads + t.kv_head) * (SIZE / 8) + threadIdx.x % (SIZE / 8)) * 2;
    own.four[0] = x[0];
    own.four[1] = x[1];
    return own;
}

/* As the caches have them. */
template <unsigned TERMS>
__device__ inline eight<TERMS> as_cached(const own_elements &own) {
    const float4 *x = own.four;
    if constexpr (TERMS > 1)
        return {{uint4{gb_float_bits(x[0].x), gb_float_bits(x[0].y), gb_float_bits(x[0].z),
                       gb_float_bits(x[0].w)},
                 uint4{gb_float_bits(x[1].x), gb_float_bits(x[1].y), gb_float_bits(x[1].z),
                       gb_float_bits(x[1].w)}}};
    else
        return {{uint4{pack_bf16(x[0].x, x[0].y), pack_bf16(x[0].z, x[0].w), pack_bf16(x[1].x, x[1].y),
                       pack_bf16(x[1].z, x[1].w)}}};
}

/* They go to the caches, and to shared memory for this block, which reads them. */
template <unsigned SIZE, unsigned TERMS>
__device__ inline void store_own(const attention &a, const query_tile &t, const own_elements &own,
                                 decode_memory<SIZE, TERMS> &shared) {
    if (threadIdx.x >= 2 * SIZE / 8)
        return;
    const bool is_key = threadIdx.x < SIZE / 8;
    const cache &c = is_key ? a.keys : a.values;
    const unsigned e = threadIdx.x % (SIZE / 8), row = (unsigned)a.positions[t.first] % (unsigned)c.capacity;
    const eight<TERMS> mine = as_cached<TERMS>(own);
    auto *slot = reinterpret_cast<eight<TERMS> *>(c.data + (size_t)a.slots[t.first] * c.slot_bytes);
    slot[(row * c.heads + t.kv_head) * (SIZE / 8) + e] = mine;
    shared.own[is_key ? 0 : 1][e] = mine;
}

/* What load_keys and load_values have left out: the row of position j + 8 i, if it is the token's own. */
template <unsigned SIZE, unsigned TERMS>
__device__ inline void add_own_key(const decode_memory<SIZE, TERMS> &shared, unsigned j, unsigned own,
                                   unsigned element, eight<TERMS> keys[4][2]) {
#pragma unroll
    for (unsigned i = 0; i < 2; i++)
        if (j + 8 * i == own)
#pragma unroll
            for (unsigned u = 0; u < 4; u++)
                keys[u][i] = shared.own[0][element / 8 + 4 * u];
}

template <unsigned SIZE, unsigned TERMS>
__device__ inline void add_own_value(const decode_memory<SIZE, TERMS> &shared, unsigned j, unsigned own,
                                     unsigned element, eight<TERMS> values[2][4]) {
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        if (j + i / 4 * 16 + i % 4 == own)
            values[i / 4][i % 4] = shared.own[1][element / 8];
}

/* ---- Products ------------------------------------------------------------------------------------------ */

/* The queries as the second matrix of multiply_add, scaled: lane l has of query l / 4 elements 8 (l mod 4) ..
 * of each unit of 32. Queries that are not there are zeros. */
template <unsigned SIZE, unsigned TERMS>
__device__ inline void stage_queries(const attention &a, const query_tile &t,
                                     decode_memory<SIZE, TERMS> &shared) {
    for (unsigned i = threadIdx.x; i < SIZE / 32 * WARP; i += SPAN_THREADS) {
        const unsigned lane = i % WARP, q = lane / 4;
        uint32_t words[SPLITS][4] = {};
        if (q < count_of(t)) {
            const float4 *from = reinterpret_cast<const float4 *>(
                a.query + (t.first * a.heads + t.head + q) * SIZE + i / WARP * 32 + lane % 4 * 8);
            const float4 four[2] = {from[0], from[1]};
            const float x[8] = {four[0].x, four[0].y, four[0].z, four[0].w,
                                four[1].x, four[1].y, four[1].z, four[1].w};
#pragma unroll
            for (unsigned w = 0; w < 4; w++) {
                const float low = x[2 * w] * a.scale, high = x[2 * w + 1] * a.scale;
                const uint32_t both = words[0][w] = pack_bf16(low, high);
                words[1][w] = pack_rest(both, low, high);
            }
        }
#pragma unroll
        for (unsigned s = 0; s < SPLITS; s++)
            shared.query[i / WARP][s][lane] = uint4{words[s][0], words[s][1], words[s][2], words[s][3]};
    }
}

/* Numbers 2 w and 2 w + 1 of the words of eight. */
template <unsigned TERMS>
__device__ inline uint2 two_words(const eight<TERMS> &of, unsigned w) {
    const uint4 four = of.words[w / 2];
    return w % 2 ? uint2{four.z, four.w} : uint2{four.x, four.y};
}

/* Elements 4 h .. 4 h + 3 of keys r and r + 8 as the tensor cores' first matrix. */
template <unsigned TERMS>
__device__ inline void take_keys(const eight<TERMS> keys[2], unsigned h, uint32_t to[TERMS][4]) {
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        if constexpr (TERMS > 1) {
            const uint2 two = two_words(keys[i % 2], 2 * h + i / 2);
            const float low = gb_float_from_bits(two.x), high = gb_float_from_bits(two.y);
            to[0][i] = pack_bf16(low, high);
            to[1][i] = pack_rest(to[0][i], low, high);
        } else {
            const uint2 two = two_words(keys[i % 2], h);
            to[0][i] = i / 2 ? two.y : two.x;
        }
    }
}

/* What the warp's part of the keys gives to the scores of its 16 keys. */
template <unsigned SIZE, unsigned TERMS>
__device__ inline void score(const eight<TERMS> keys[4][2], decode_memory<SIZE, TERMS> &shared) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const unsigned depth = warp / decode_shape<SIZE>::KEY_TILES, tile = warp % decode_shape<SIZE>::KEY_TILES;
    float sums[SPLITS][4] = {};
#pragma unroll
    for (unsigned u = 0; u < 4; u++) {
        uint32_t first[TERMS][4], second[TERMS][4];
        take_keys<TERMS>(keys[u], 0, first);
        take_keys<TERMS>(keys[u], 1, second);
#pragma unroll
        for (unsigned s = 0; s < SPLITS; s++) {
            const uint4 query = shared.query[depth * 4 + u][s][lane];
#pragma unroll
            for (unsigned term = 0; term < TERMS && s + term < SPLITS; term++) {
                multiply_add(sums[s + term], first[term], query.x, query.y);
                multiply_add(sums[s + term], second[term], query.z, query.w);
            }
        }
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        shared.scores[depth][lane % 4 * 2 + i % 2][tile * 16 + lane / 4 + i / 2 * 8] =
            sums[0][i] + sums[1][i];
}

/* A query's softmax so far: its warp's to keep, the sum of weights a lane's part. */
struct softmax {
    float largest, sum;
};

/* Turns a round's scores of the warp's query into weights; keys from `count` on are none. */
template <unsigned SIZE, unsigned TERMS>
__device__ inline void weigh(decode_memory<SIZE, TERMS> &shared, unsigned count, softmax &so_far) {
    constexpr unsigned KEYS = decode_shape<SIZE>::KEYS;
    const unsigned lane = threadIdx.x % WARP, q = threadIdx.x / WARP;
    float scores[KEYS / WARP], largest = so_far.largest, sum = 0;
#pragma unroll
    for (unsigned i = 0; i < KEYS / WARP; i++) {
        const unsigned j = lane + i * WARP;
        scores[i] = shared.scores[0][q][j];
#pragma unroll
        for (unsigned d = 1; d < decode_shape<SIZE>::DEPTHS; d++)
            scores[i] += shared.scores[d][q][j];
        scores[i] = j < count ? scores[i] : -INFINITY;
        largest = larger(scores[i], largest);
    }
    largest = warp_max(largest);
    const float correction = gb_exp(so_far.largest - largest);
#pragma unroll
    for (unsigned i = 0; i < KEYS / WARP; i++) {
        const unsigned j = lane + i * WARP;
        const float weight = gb_exp(scores[i] - largest);
        const uint32_t high = pack_bf16(weight, 0);
        shared.weights[0][q][j] = (uint16_t)high;
        shared.weights[1][q][j] = (uint16_t)pack_bf16(weight - low_bf16(high), 0);
        sum += weight;
    }
    so_far.sum = so_far.sum * correction + sum;
    so_far.largest = largest;
    if (lane == 0)
        shared.correction[q] = correction;
}

/* Elements 2 i and 2 i + 1 of four keys as the tensor cores' first matrix. */
template <unsigned TERMS>
__device__ inline void take_values(const eight<TERMS> values[4], unsigned i, uint32_t to[TERMS][4]) {
#pragma unroll
    for (unsigned k = 0; k < 4; k += 2) {
        if constexpr (TERMS > 1) {
            const uint2 first = two_words(values[k], i), second = two_words(values[k + 1], i);
            const float low[2] = {gb_float_from_bits(first.x), gb_float_from_bits(first.y)};
            const float high[2] = {gb_float_from_bits(second.x), gb_float_from_bits(second.y)};
#pragma unroll
            for (unsigned e = 0; e < 2; e++) {
                to[0][k + e] = pack_bf16(low[e], high[e]);
                to[1][k + e] = pack_rest(to[0][k + e], low[e], high[e]);
            }
        } else {
            const uint2 of_first = two_words(values[k], i / 2), of_second = two_words(values[k + 1], i / 2);
            const uint32_t first = i % 2 ? of_first.y : of_first.x,
                           second = i % 2 ? of_second.y : of_second.x;
            to[0][k] = (first & 0xffff) | second << 16;
            to[0][k + 1] = first >> 16 | (second & 0xffff0000);
        }
    }
}

/* y = correction * y + weights * values, of the warp's share of elements and keys. In y[i] are element
 * 8 (lane / 4) + 2 i of queries 2 (lane mod 4) and the next, and the same of the element after it. */
template <unsigned SIZE, unsigned TERMS>
__device__ inline void add_values(const eight<TERMS> values[2][4], const decode_memory<SIZE, TERMS> &shared,
                                  float y[4][4]) {
    const unsigned lane = threadIdx.x % WARP, share = threadIdx.x / WARP / decode_shape<SIZE>::COLUMNS;
    const float corrections[2] = {shared.correction[lane % 4 * 2], shared.correction[lane % 4 * 2 + 1]};
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
#pragma unroll
        for (unsigned c = 0; c < 4; c++)
            y[i][c] *= corrections[c % 2];
#pragma unroll
    for (unsigned step = 0; step < 2; step++) {
#pragma unroll
        for (unsigned s = 0; s < SPLITS; s++) {
            const uint2 weights = *reinterpret_cast<const uint2 *>(
                &shared.weights[s][lane / 4][share * 32 + step * 16 + lane % 4 * 4]);
#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
                uint32_t pairs[TERMS][4];
                take_values<TERMS>(values[step], i, pairs);
#pragma unroll
                for (unsigned term = 0; term < TERMS && s + term < SPLITS; term++)
                    multiply_add(y[i], pairs[term], weights.x, weights.y);
            }
        }
    }
}

/* ---- Spans ----------------------------------------------------------------------------------------------
 */

/* Positions first .. end - 1 of a token; own: the token's own one if this block stores it, else end. */
struct key_range {
    unsigned first, end, own;
    bool waits; /* for the kernel before this one, which the cached rows do not need */
};

/* Computes positions for the tile's queries, into y and the warp's query's softmax. */
template <unsigned SIZE, unsigned TERMS>
__device__ inline softmax attend_span(const attention &a, const query_tile &t, const key_range &range,
                                      decode_memory<SIZE, TERMS> &shared, float y[4][4]) {
    constexpr unsigned KEYS = decode_shape<SIZE>::KEYS;
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const size_t slot = (size_t)a.slots[t.first];
    const cached_rows key_rows = rows_from<TERMS>(a.keys, slot, t.kv_head, range.first);
    const cached_rows value_rows = rows_from<TERMS>(a.values, slot, t.kv_head, range.first);
    const unsigned key_element = warp / decode_shape<SIZE>::KEY_TILES * 128 + lane % 4 * 8;
    const unsigned value_element = warp % decode_shape<SIZE>::COLUMNS * 64 + lane / 4 * 8;
    unsigned key = range.first + warp % decode_shape<SIZE>::KEY_TILES * 16 + lane / 4;
    unsigned value = range.first + warp / decode_shape<SIZE>::COLUMNS * 32 + lane % 4 * 4;
    eight<TERMS> keys[4][2], values[2][4];
    load_keys(key_rows, key, range.own, key_element, keys);
    load_values(value_rows, value, range.own, value_element, values);
    if (range.waits)
        wait_for_earlier();
    own_elements own = {};
    if (range.own < range.end)
        own = load_own<SIZE>(a, t);
    stage_queries<SIZE, TERMS>(a, t, shared);
    if (range.own < range.end)
        store_own<SIZE, TERMS>(a, t, own, shared);
    __syncthreads();
    softmax so_far = {-INFINITY, 0};
    for (unsigned j = range.first; j < range.end; j += KEYS) {
        const bool is_there = range.own < range.end && j + KEYS >= range.end; /* the own row, in this round */
        if (is_there)
            add_own_key<SIZE, TERMS>(shared, key, range.own, key_element, keys);
        score<SIZE, TERMS>(keys, shared);
        key += KEYS;
        if (j + KEYS < range.end)
            load_keys(key_rows, key, range.own, key_element, keys);
        __syncthreads();
        if (warp < count_of(t))
            weigh<SIZE, TERMS>(shared, range.end - j, so_far);
        __syncthreads();
        if (is_there)
            add_own_value<SIZE, TERMS>(shared, value, range.own, value_element, values);
        add_values<SIZE, TERMS>(values, shared, y);
        value += KEYS;
        if (j + KEYS < range.end)
            load_values(value_rows, value, range.own, value_element, values);
    }
    return so_far;
}

/* The sums of the warps that had other keys of the same elements, to those of the first keys: in order. */
template <unsigned SIZE, unsigned TERMS>
__device__ inline void add_key_shares(decode_memory<SIZE, TERMS> &shared, float y[4][4]) {
    constexpr unsigned COLUMNS = decode_shape<SIZE>::COLUMNS;
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if constexpr (decode_shape<SIZE>::KEY_SHARES > 1) {
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            if (warp >= COLUMNS)
                shared.sums[warp - COLUMNS][i][lane] = float4{y[i][0], y[i][1], y[i][2], y[i][3]};
        __syncthreads();
        for (unsigned s = 0; s + 1 < decode_shape<SIZE>::KEY_SHARES && warp < COLUMNS; s++) {
#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
                const float4 sums = shared.sums[s * COLUMNS + warp][i][lane];
                y[i][0] += sums.x;
                y[i][1] += sums.y;
                y[i][2] += sums.z;
                y[i][3] += sums.w;
            }
        }
    }
}

} // namespace gb_cuda

#endif
