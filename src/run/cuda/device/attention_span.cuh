/* SPDX-License-Identifier: Apache-2.0
 *
 * A block's work on a span of positions of one generated token: scores of its keys, weights and the sum of
 * its values for up to eight queries of a kv head, over caches of bfloat16. Every row of the caches is read
 * once, straight into registers in the order in which the tensor cores take it. The first rows are on their
 * way before the kernel before this one ends, because earlier steps wrote them.
 *
 * Queries and weights go into the products as two bfloat16 each, x = high + low, so that a product has 16
 * bits of them; cached keys and values are bfloat16 anyway.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_ATTENTION_SPAN_CUH
#define GUMBEL_RUN_CUDA_DEVICE_ATTENTION_SPAN_CUH

#include "run/cuda/device/attention.cuh"

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

template <unsigned SIZE>
struct decode_memory {
    union {
        uint4 query[SIZE / 32][SPLITS][WARP]; /* as the tensor cores take it */
        float result[SPAN_QUERIES][SIZE];     /* when all is done */
    };
    uint4 own[2][SIZE / 8]; /* the token's own key and value */
    float4 sums[decode_shape<SIZE>::KEY_SHARES > 1 ? SPAN_WARPS - decode_shape<SIZE>::COLUMNS : 1][4][WARP];
    float scores[decode_shape<SIZE>::DEPTHS][SPAN_QUERIES][decode_shape<SIZE>::SCORE_STRIDE];
    uint16_t weights[SPLITS][SPAN_QUERIES][decode_shape<SIZE>::WEIGHT_STRIDE];
    float correction[SPAN_QUERIES], factor[SPAN_QUERIES]; /* of the sums so far, of all */
};

/* ---- Reading the caches -------------------------------------------------------------------------------- */

/* A kv head's rows in one slot; position `first` is in row `row`. */
struct cached_rows {
    const uint16_t *data;
    unsigned stride, capacity, first, row;
};

__device__ inline cached_rows rows_from(const cache &c, size_t slot, size_t kv_head, unsigned first) {
    const uint16_t *data = reinterpret_cast<const uint16_t *>(c.data + slot * c.slot_bytes);
    return cached_rows{data + kv_head * c.size, (unsigned)(c.heads * c.size), (unsigned)c.capacity, first,
                       first % (unsigned)c.capacity};
}

/* Eight elements of the row of position j, which is less than capacity past the first; zeros from `end` on.
 */
__device__ inline uint4 load_eight(const cached_rows &rows, unsigned j, unsigned end, unsigned element) {
    unsigned row = rows.row + (j - rows.first);
    row -= row >= rows.capacity ? rows.capacity : 0;
    const uint16_t *from = rows.data + (size_t)row * rows.stride + element;
    return j < end ? *reinterpret_cast<const uint4 *>(from) : uint4{0, 0, 0, 0};
}

/* Of keys j and j + 8: elements 32 u + 8 t .. of each unit u of 32. */
__device__ inline void load_keys(const cached_rows &rows, unsigned j, unsigned end, unsigned element,
                                 uint4 keys[4][2]) {
#pragma unroll
    for (unsigned i = 0; i < 2; i++)
#pragma unroll
        for (unsigned u = 0; u < 4; u++)
            keys[u][i] = load_eight(rows, j + 8 * i, end, element + 32 * u);
}

/* Of values j .. j + 3 and j + 16 .. j + 19, eight elements each. */
__device__ inline void load_values(const cached_rows &rows, unsigned j, unsigned end, unsigned element,
                                   uint4 values[2][4]) {
#pragma unroll
    for (unsigned s = 0; s < 2; s++)
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            values[s][i] = load_eight(rows, j + 16 * s + i, end, element);
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

/* They go to the caches, and to shared memory for this block, which reads them. */
template <unsigned SIZE>
__device__ inline void store_own(const attention &a, const query_tile &t, const own_elements &own,
                                 decode_memory<SIZE> &shared) {
    if (threadIdx.x >= 2 * SIZE / 8)
        return;
    const bool is_key = threadIdx.x < SIZE / 8;
    const cache &c = is_key ? a.keys : a.values;
    const unsigned e = threadIdx.x % (SIZE / 8), row = (unsigned)a.positions[t.first] % (unsigned)c.capacity;
    const float4 *x = own.four;
    const uint4 packed = {pack_bf16(x[0].x, x[0].y), pack_bf16(x[0].z, x[0].w), pack_bf16(x[1].x, x[1].y),
                          pack_bf16(x[1].z, x[1].w)};
    uint4 *slot = reinterpret_cast<uint4 *>(c.data + (size_t)a.slots[t.first] * c.slot_bytes);
    slot[(row * c.heads + t.kv_head) * (SIZE / 8) + e] = packed;
    shared.own[is_key ? 0 : 1][e] = packed;
}

/* What load_keys and load_values have left out: the row of position j + 8 i, if it is the token's own. */
template <unsigned SIZE>
__device__ inline void add_own_key(const decode_memory<SIZE> &shared, unsigned j, unsigned own,
                                   unsigned element, uint4 keys[4][2]) {
#pragma unroll
    for (unsigned i = 0; i < 2; i++)
        if (j + 8 * i == own)
#pragma unroll
            for (unsigned u = 0; u < 4; u++)
                keys[u][i] = shared.own[0][element / 8 + 4 * u];
}

template <unsigned SIZE>
__device__ inline void add_own_value(const decode_memory<SIZE> &shared, unsigned j, unsigned own,
                                     unsigned element, uint4 values[2][4]) {
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        if (j + i / 4 * 16 + i % 4 == own)
            values[i / 4][i % 4] = shared.own[1][element / 8];
}

/* ---- Products ------------------------------------------------------------------------------------------ */

/* The queries as the second matrix of multiply_add, scaled: lane l has of query l / 4 elements 8 (l mod 4) ..
 * of each unit of 32. Queries that are not there are zeros. */
template <unsigned SIZE>
__device__ inline void stage_queries(const attention &a, const query_tile &t, decode_memory<SIZE> &shared) {
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
                words[1][w] = pack_bf16(low - low_bf16(both), high - high_bf16(both));
            }
        }
#pragma unroll
        for (unsigned s = 0; s < SPLITS; s++)
            shared.query[i / WARP][s][lane] = uint4{words[s][0], words[s][1], words[s][2], words[s][3]};
    }
}

/* What the warp's part of the keys gives to the scores of its 16 keys. */
template <unsigned SIZE>
__device__ inline void score(const uint4 keys[4][2], decode_memory<SIZE> &shared) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const unsigned depth = warp / decode_shape<SIZE>::KEY_TILES, tile = warp % decode_shape<SIZE>::KEY_TILES;
    float sums[SPLITS][4] = {};
#pragma unroll
    for (unsigned u = 0; u < 4; u++) {
        const uint32_t first[4] = {keys[u][0].x, keys[u][1].x, keys[u][0].y, keys[u][1].y};
        const uint32_t second[4] = {keys[u][0].z, keys[u][1].z, keys[u][0].w, keys[u][1].w};
#pragma unroll
        for (unsigned s = 0; s < SPLITS; s++) {
            const uint4 query = shared.query[depth * 4 + u][s][lane];
            multiply_add(sums[s], first, query.x, query.y);
            multiply_add(sums[s], second, query.z, query.w);
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
template <unsigned SIZE>
__device__ inline void weigh(decode_memory<SIZE> &shared, unsigned count, softmax &so_far) {
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

/* y = correction * y + weights * values, of the warp's share of elements and keys. In y[i] are element
 * 8 (lane / 4) + 2 i of queries 2 (lane mod 4) and the next, and the same of the element after it. */
template <unsigned SIZE>
__device__ inline void add_values(const uint4 values[2][4], const decode_memory<SIZE> &shared,
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
        uint32_t words[4][4]; /* by key, of eight elements */
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            words[k][0] = values[step][k].x;
            words[k][1] = values[step][k].y;
            words[k][2] = values[step][k].z;
            words[k][3] = values[step][k].w;
        }
#pragma unroll
        for (unsigned s = 0; s < SPLITS; s++) {
            const uint2 weights = *reinterpret_cast<const uint2 *>(
                &shared.weights[s][lane / 4][share * 32 + step * 16 + lane % 4 * 4]);
#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
                const uint32_t pairs[4] = {(words[0][i] & 0xffff) | words[1][i] << 16,
                                           words[0][i] >> 16 | (words[1][i] & 0xffff0000),
                                           (words[2][i] & 0xffff) | words[3][i] << 16,
                                           words[2][i] >> 16 | (words[3][i] & 0xffff0000)};
                multiply_add(y[i], pairs, weights.x, weights.y);
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
template <unsigned SIZE>
__device__ inline softmax attend_span(const attention &a, const query_tile &t, const key_range &range,
                                      decode_memory<SIZE> &shared, float y[4][4]) {
    constexpr unsigned KEYS = decode_shape<SIZE>::KEYS;
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const size_t slot = (size_t)a.slots[t.first];
    const cached_rows key_rows = rows_from(a.keys, slot, t.kv_head, range.first);
    const cached_rows value_rows = rows_from(a.values, slot, t.kv_head, range.first);
    const unsigned key_element = warp / decode_shape<SIZE>::KEY_TILES * 128 + lane % 4 * 8;
    const unsigned value_element = warp % decode_shape<SIZE>::COLUMNS * 64 + lane / 4 * 8;
    unsigned key = range.first + warp % decode_shape<SIZE>::KEY_TILES * 16 + lane / 4;
    unsigned value = range.first + warp / decode_shape<SIZE>::COLUMNS * 32 + lane % 4 * 4;
    uint4 keys[4][2], values[2][4];
    load_keys(key_rows, key, range.own, key_element, keys);
    load_values(value_rows, value, range.own, value_element, values);
    if (range.waits)
        wait_for_earlier();
    own_elements own = {};
    if (range.own < range.end)
        own = load_own<SIZE>(a, t);
    stage_queries<SIZE>(a, t, shared);
    if (range.own < range.end)
        store_own<SIZE>(a, t, own, shared);
    __syncthreads();
    softmax so_far = {-INFINITY, 0};
    for (unsigned j = range.first; j < range.end; j += KEYS) {
        const bool is_there = range.own < range.end && j + KEYS >= range.end; /* the own row, in this round */
        if (is_there)
            add_own_key<SIZE>(shared, key, range.own, key_element, keys);
        score<SIZE>(keys, shared);
        key += KEYS;
        if (j + KEYS < range.end)
            load_keys(key_rows, key, range.own, key_element, keys);
        __syncthreads();
        if (warp < count_of(t))
            weigh<SIZE>(shared, range.end - j, so_far);
        __syncthreads();
        if (is_there)
            add_own_value<SIZE>(shared, value, range.own, value_element, values);
        add_values<SIZE>(values, shared, y);
        value += KEYS;
        if (j + KEYS < range.end)
            load_values(value_rows, value, range.own, value_element, values);
    }
    return so_far;
}

/* The sums of the warps that had other keys of the same elements, to those of the first keys: in order. */
template <unsigned SIZE>
__device__ inline void add_key_shares(decode_memory<SIZE> &shared, float y[4][4]) {
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
