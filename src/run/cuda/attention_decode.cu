/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of generated tokens over caches of bfloat16. The positions that a token reads are cut into spans,
 * as many and as long as its own position alone says. A block computes a span for all query heads of a kv
 * head, so that every row of the caches is read once, straight into registers in the order in which the
 * tensor cores take it; the block that is done last puts a token's spans together in the order of positions
 * (Dao et al., Flash-Decoding, 2023).
 *
 * Queries and weights go into the products as two bfloat16 each, x = high + low, so that a product has 16
 * bits of them; cached keys and values are bfloat16 anyway.
 */
#include "run/cuda/device/attention.cuh"

using namespace gb_cuda;

constexpr unsigned THREADS = 256, WARPS = THREADS / WARP, QUERIES = 8, SPLITS = 2;
constexpr unsigned MOST_TOKENS = 16, MOST_SPANS = 64, BLOCKS_WANTED = 512;
constexpr unsigned AT_ONCE = 16; /* spans that are put together: their rows are on their way at once */

/* How a block's warps share a round of keys: scores of 16 keys over 128 elements each, then 64 elements of
 * the values of 32 keys each. */
template <unsigned SIZE>
struct decode_shape {
    static constexpr unsigned KEYS = 16 * WARPS * 128 / SIZE;
    static constexpr unsigned DEPTHS = SIZE / 128, KEY_TILES = WARPS / DEPTHS;
    static constexpr unsigned COLUMNS = SIZE / 64, KEY_SHARES = WARPS / COLUMNS;
    static constexpr unsigned SCORE_STRIDE = KEYS + 4, WEIGHT_STRIDE = KEYS + 8; /* against bank conflicts */
    static_assert(KEY_TILES * 16 == KEYS && KEY_SHARES * 32 == KEYS, "all keys of a round are taken");
};

/* A span of a token's positions. */
struct span {
    unsigned first, end; /* of all spans */
    unsigned size;       /* positions of a span; the last one may have fewer */
    unsigned count;
};

struct decoding {
    attention a;
    unsigned most_spans;
    bool appends; /* the block of the last span stores the token's own key and value */
    float *y;     /* [tokens, heads, most_spans, size]: of each span */
    float *state; /* [tokens, heads, most_spans, 2]: largest score, sum of weights */
};

template <unsigned SIZE>
struct decode_memory {
    uint4 query[SIZE / 32][SPLITS][WARP]; /* as the tensor cores take it */
    uint4 own[2][SIZE / 8];               /* the token's own key and value */
    float4 sums[decode_shape<SIZE>::KEY_SHARES > 1 ? WARPS - decode_shape<SIZE>::COLUMNS : 1][4][WARP];
    float scores[decode_shape<SIZE>::DEPTHS][QUERIES][decode_shape<SIZE>::SCORE_STRIDE];
    uint16_t weights[SPLITS][QUERIES][decode_shape<SIZE>::WEIGHT_STRIDE];
    float correction[QUERIES], largest[QUERIES], sum[QUERIES];
};

/* ---- Reading the caches -------------------------------------------------------------------------------- */

/* A kv head's rows in one slot; position `first` is in row `row`. */
struct cached_rows {
    const uint16_t *data;
    unsigned stride, capacity, first, row;
};

__device__ static cached_rows rows_from(const cache &c, size_t slot, size_t kv_head, unsigned first) {
    const uint16_t *data = reinterpret_cast<const uint16_t *>(c.data + slot * c.slot_bytes);
    return cached_rows{data + kv_head * c.size, (unsigned)(c.heads * c.size), (unsigned)c.capacity, first,
                       first % (unsigned)c.capacity};
}

/* Eight elements of the row of position j, which is less than capacity past the first; zeros from `end` on.
 */
__device__ static uint4 load_eight(const cached_rows &rows, unsigned j, unsigned end, unsigned element) {
    unsigned row = rows.row + (j - rows.first);
    row -= row >= rows.capacity ? rows.capacity : 0;
    const uint16_t *from = rows.data + (size_t)row * rows.stride + element;
    return j < end ? *reinterpret_cast<const uint4 *>(from) : uint4{0, 0, 0, 0};
}

/* Of keys j and j + 8: elements 32 u + 8 t .. of each unit u of 32. */
__device__ static void load_keys(const cached_rows &rows, unsigned j, unsigned end, unsigned element,
                                 uint4 keys[4][2]) {
#pragma unroll
    for (unsigned i = 0; i < 2; i++)
#pragma unroll
        for (unsigned u = 0; u < 4; u++)
            keys[u][i] = load_eight(rows, j + 8 * i, end, element + 32 * u);
}

/* Of values j .. j + 3 and j + 16 .. j + 19, eight elements each. */
__device__ static void load_values(const cached_rows &rows, unsigned j, unsigned end, unsigned element,
                                   uint4 values[2][4]) {
#pragma unroll
    for (unsigned s = 0; s < 2; s++)
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            values[s][i] = load_eight(rows, j + 16 * s + i, end, element);
}

/* The token's own key and value go to the caches, and to shared memory for this block, which reads them. */
template <unsigned SIZE>
__device__ static void store_own(const attention &a, const query_tile &t, decode_memory<SIZE> &shared) {
    if (threadIdx.x >= 2 * SIZE / 8)
        return;
    const bool is_key = threadIdx.x < SIZE / 8;
    const cache &c = is_key ? a.keys : a.values;
    const unsigned e = threadIdx.x % (SIZE / 8), row = (unsigned)a.positions[t.first] % (unsigned)c.capacity;
    const float4 *x = reinterpret_cast<const float4 *>(is_key ? a.key : a.value) +
                      ((t.first * c.heads + t.kv_head) * (SIZE / 8) + e) * 2;
    const uint4 packed = {pack_bf16(x[0].x, x[0].y), pack_bf16(x[0].z, x[0].w), pack_bf16(x[1].x, x[1].y),
                          pack_bf16(x[1].z, x[1].w)};
    uint4 *slot = reinterpret_cast<uint4 *>(c.data + (size_t)a.slots[t.first] * c.slot_bytes);
    slot[(row * c.heads + t.kv_head) * (SIZE / 8) + e] = packed;
    shared.own[is_key ? 0 : 1][e] = packed;
}

/* What load_keys and load_values have left out: the row of position j + 8 i, if it is the token's own. */
template <unsigned SIZE>
__device__ static void add_own_key(const decode_memory<SIZE> &shared, unsigned j, unsigned own,
                                   unsigned element, uint4 keys[4][2]) {
#pragma unroll
    for (unsigned i = 0; i < 2; i++)
        if (j + 8 * i == own)
#pragma unroll
            for (unsigned u = 0; u < 4; u++)
                keys[u][i] = shared.own[0][element / 8 + 4 * u];
}

template <unsigned SIZE>
__device__ static void add_own_value(const decode_memory<SIZE> &shared, unsigned j, unsigned own,
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
__device__ static void stage_queries(const attention &a, const query_tile &t, decode_memory<SIZE> &shared) {
    for (unsigned i = threadIdx.x; i < SIZE / 32 * WARP; i += THREADS) {
        const unsigned lane = i % WARP, q = lane / 4;
        uint32_t words[SPLITS][4] = {};
        if (q < count_of(t)) {
            const float *x = a.query + (t.first * a.heads + t.head + q) * SIZE + i / WARP * 32 + lane % 4 * 8;
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
__device__ static void score(const uint4 keys[4][2], decode_memory<SIZE> &shared) {
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

/* A query's softmax so far: its warp's to keep. */
struct softmax {
    float largest, sum;
};

/* Turns a round's scores of the warp's query into weights; keys from `count` on are none. */
template <unsigned SIZE>
__device__ static void weigh(decode_memory<SIZE> &shared, unsigned count, softmax &so_far) {
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
    so_far.sum = so_far.sum * correction + warp_sum(sum);
    so_far.largest = largest;
    if (lane == 0)
        shared.correction[q] = correction;
}

/* y = correction * y + weights * values, of the warp's share of elements and keys. In y[i] are element
 * 8 (lane / 4) + 2 i of queries 2 (lane mod 4) and the next, and the same of the element after it. */
template <unsigned SIZE>
__device__ static void add_values(const uint4 values[2][4], const decode_memory<SIZE> &shared,
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

/* ---- Spans --------------------------------------------------------------------------------------------- */

/* The spans of a position: full ones of whole rounds. */
__device__ static span spans_of(const decoding &d, unsigned position, unsigned keys) {
    const unsigned first = (unsigned)first_read(d.a, position), length = position + 1 - first;
    const unsigned rounds = (length + keys - 1) / keys;
    const unsigned size = (rounds + d.most_spans - 1) / d.most_spans * keys;
    return span{first, position + 1, size, (length + size - 1) / size};
}

/* Positions first .. end - 1 of a token; own: the token's own one if this block stores it, else end. */
struct key_range {
    unsigned first, end, own;
};

/* Computes positions for the tile's queries, into y and the warp's query's softmax. */
template <unsigned SIZE>
__device__ static softmax attend_span(const attention &a, const query_tile &t, const key_range &range,
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
    stage_queries<SIZE>(a, t, shared);
    if (range.own < range.end)
        store_own<SIZE>(a, t, shared);
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
__device__ static void add_key_shares(decode_memory<SIZE> &shared, float y[4][4]) {
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

/* ---- Results ------------------------------------------------------------------------------------------- */

/* Puts the block's y down: of the only span the result, of others what joins them. */
template <unsigned SIZE>
__device__ static void store_span(const decoding &d, const query_tile &t, const span &all, unsigned number,
                                  const softmax &mine, decode_memory<SIZE> &shared, const float y[4][4]) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const size_t row = t.first * d.a.heads + t.head;
    if (lane == 0 && warp < count_of(t)) {
        shared.sum[warp] = mine.sum;
        float *state = d.state + ((row + warp) * d.most_spans + number) * 2;
        state[0] = mine.largest;
        state[1] = mine.sum;
    }
    __syncthreads();
    if (warp >= decode_shape<SIZE>::COLUMNS)
        return;
#pragma unroll
    for (unsigned c = 0; c < 2; c++) {
        const unsigned q = lane % 4 * 2 + c, element = warp * 64 + lane / 4 * 8;
        if (q >= count_of(t))
            continue;
        float result[8];
#pragma unroll
        for (unsigned i = 0; i < 8; i++)
            result[i] = y[i / 2][c + i % 2 * 2];
        float *to = d.y + ((row + q) * d.most_spans + number) * SIZE + element;
        if (all.count == 1) {
            to = d.a.y + (row + q) * SIZE + element;
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
                result[i] /= shared.sum[q];
        }
        reinterpret_cast<float4 *>(to)[0] = float4{result[0], result[1], result[2], result[3]};
        reinterpret_cast<float4 *>(to)[1] = float4{result[4], result[5], result[6], result[7]};
    }
}

/* Token blockIdx.z, kv head and part blockIdx.y, spans blockIdx.x, + gridDim.x and so on. */
template <unsigned SIZE>
static __global__ void __launch_bounds__(THREADS, 2) decode(decoding d) {
    wait_for_earlier();
    GB_DYNAMIC_SHARED(decode_memory<SIZE>, shared);
    const attention &a = d.a;
    query_tile t = heads_of(a, blockIdx.y);
    t.first = blockIdx.z;
    t.end = t.first + 1;
    const span all = spans_of(d, (unsigned)a.positions[t.first], decode_shape<SIZE>::KEYS);
    for (unsigned number = blockIdx.x; number < all.count; number += gridDim.x) {
        const bool is_last_span = number + 1 == all.count;
        key_range range = {all.first + number * all.size, all.end, all.end};
        if (!is_last_span)
            range.end = range.own = range.first + all.size;
        else if (d.appends)
            range.own = all.end - 1;
        float y[4][4] = {};
        const softmax mine = attend_span<SIZE>(a, t, range, *shared, y);
        add_key_shares<SIZE>(*shared, y);
        store_span<SIZE>(d, t, all, number, mine, *shared, y);
        __syncthreads();
    }
}

/* Head blockIdx.x of token blockIdx.y, four elements a thread: the spans' sums, in order, each times what it
 * counts for beside the others. A token of one span has its result. */
template <unsigned SIZE>
static __global__ void __launch_bounds__(SIZE / 4) join_spans(decoding d) {
    wait_for_earlier();
    static_assert(MOST_SPANS == 2 * WARP && WARP % AT_ONCE == 0, "two spans a lane");
    const unsigned lane = threadIdx.x % WARP;
    const unsigned count = spans_of(d, (unsigned)d.a.positions[blockIdx.y], decode_shape<SIZE>::KEYS).count;
    if (count == 1)
        return;
    const size_t row = blockIdx.y * d.a.heads + blockIdx.x;
    const float2 *state = reinterpret_cast<const float2 *>(d.state) + row * d.most_spans;
    const float4 *from =
        reinterpret_cast<const float4 *>(d.y) + row * d.most_spans * (SIZE / 4) + threadIdx.x;
    const float2 none = {-INFINITY, 0};
    const float2 low = lane < count ? state[lane] : none;
    const float2 high = lane + WARP < count ? state[lane + WARP] : none;
    const float largest = warp_max(larger(low.x, high.x));
    const float factors[2] = {gb_exp(low.x - largest), gb_exp(high.x - largest)};
    const float sum = warp_sum(factors[0] * low.y + factors[1] * high.y);
    float4 y = {0, 0, 0, 0};
    for (unsigned first = 0; first < count; first += AT_ONCE) {
        float4 rows[AT_ONCE];
#pragma unroll
        for (unsigned s = 0; s < AT_ONCE; s++)
            rows[s] =
                from[(first + s < count ? first + s : count - 1) * (SIZE / 4)]; /* factor 0 past the end */
#pragma unroll
        for (unsigned s = 0; s < AT_ONCE; s++) {
            const float of_lane = first < WARP ? factors[0] : factors[1];
            const float factor = __shfl_sync(0xffffffffu, of_lane, (int)((first + s) % WARP));
            y.x = fmaf(rows[s].x, factor, y.x);
            y.y = fmaf(rows[s].y, factor, y.y);
            y.z = fmaf(rows[s].z, factor, y.z);
            y.w = fmaf(rows[s].w, factor, y.w);
        }
    }
    reinterpret_cast<float4 *>(d.a.y)[row * (SIZE / 4) + threadIdx.x] =
        float4{y.x / sum, y.y / sum, y.z / sum, y.w / sum};
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* Few kv heads need more spans to keep the device busy. */
static unsigned most_spans(const attention &a) {
    return a.keys.heads >= 8 ? MOST_SPANS / 2 : MOST_SPANS;
}

uint64_t gb_cuda::attend_generated_scratch(const attention &a) {
    const uint64_t tokens = a.tokens < MOST_TOKENS ? a.tokens : MOST_TOKENS;
    return tokens * a.heads * most_spans(a) * (a.values.size + 2) * sizeof(float);
}

template <unsigned SIZE>
static void launch_decode(const decoding &d, cudaStream_t stream) {
    const size_t across = d.a.keys.heads * d.a.parts, pairs = across * d.a.tokens;
    const size_t blocks = (BLOCKS_WANTED + pairs - 1) / pairs;
    const dim3 grid((unsigned)(blocks < d.most_spans ? blocks : d.most_spans), (unsigned)across,
                    (unsigned)d.a.tokens);
    const dim3 rows((unsigned)d.a.heads, (unsigned)d.a.tokens);
    GB_LAUNCH(decode<SIZE>, grid, THREADS, sizeof(decode_memory<SIZE>), stream, d);
    GB_LAUNCH(join_spans<SIZE>, rows, SIZE / 4, 0, stream, d);
}

/* The call's tokens first .. first + count - 1. */
static attention some_tokens(attention a, size_t first, size_t count) {
    a.query += first * a.heads * a.keys.size;
    a.key += first * a.keys.heads * a.keys.size;
    a.value += first * a.keys.heads * a.values.size;
    a.y += first * a.heads * a.values.size;
    a.positions += first;
    a.slots += first;
    a.tokens = count;
    return a;
}

void gb_cuda::attend_generated(attention a, const gb_cuda_scratch *scratch, cudaStream_t stream) {
    set_tiles(a, QUERIES);
    a.tile_tokens = 1;
    decoding d = {};
    d.appends = a.parts == 1 && a.run_count == a.tokens; /* else several blocks read what one stores */
    d.most_spans = most_spans(a);
    d.y = reinterpret_cast<float *>(scratch->bytes);
    d.state =
        d.y + (a.tokens < MOST_TOKENS ? a.tokens : MOST_TOKENS) * a.heads * d.most_spans * a.values.size;
    if (!d.appends)
        append_to_caches(a, stream);
    for (size_t first = 0; first < a.tokens; first += MOST_TOKENS) {
        d.a = some_tokens(a, first, a.tokens - first < MOST_TOKENS ? a.tokens - first : MOST_TOKENS);
        if (a.keys.size == 128)
            launch_decode<128>(d, stream);
        else if (a.keys.size == 256)
            launch_decode<256>(d, stream);
        else
            launch_decode<512>(d, stream);
    }
}
