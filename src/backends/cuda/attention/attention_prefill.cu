/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of prefill on tensor cores: a block has 64 queries that read the same keys, and walks these in
 * tiles with a running softmax (Dao, FlashAttention-2, 2023). Sums and the softmax are float32. Over bfloat16
 * caches queries and weights are rounded to bfloat16 (TERMS 1). Over float32 caches every number is two
 * terms, high + low in bfloat16, without the product of the low ones (TERMS 2). Tiles of keys begin at
 * multiples of their size and what a query does not read adds zeros, so its bits depend on nothing else in
 * the batch.
 */
#include "backends/cuda/attention/attention_prompt.cuh"

using namespace gb_cuda;

constexpr unsigned ROWS = 64;

/* Four groups of 16 queries; where a warp's registers do not hold all values' elements, two warps share a
 * group: each scores half of the keys and has half of the elements. */
template <unsigned SIZE, unsigned TERMS>
struct prompt_shape {
    static constexpr unsigned KEYS = SIZE * TERMS > 512 ? 16 : 64; /* of a tile */
    static constexpr unsigned HALVES = SIZE * TERMS > 256 ? 2 : 1;
    static constexpr unsigned WARPS = 4 * HALVES, THREADS = WARPS * WARP;
    static constexpr unsigned SCORES = KEYS / HALVES, COLUMNS = SIZE / HALVES; /* of a warp */
    static constexpr unsigned WIDTH = SIZE * TERMS;                            /* of a tile's row */
};

template <unsigned SIZE, unsigned TERMS>
struct prompt_memory {
    using shape = prompt_shape<SIZE, TERMS>;
    uint16_t query[ROWS * shape::WIDTH], key[shape::KEYS * shape::WIDTH], value[shape::KEYS * shape::WIDTH];
    uint16_t weights[shape::HALVES > 1 ? ROWS *shape::KEYS *TERMS : 8];
    float largest[shape::HALVES][ROWS], sum[shape::HALVES][ROWS];
};

/* Of a tile with rows of COUNT elements in terms, where such a term of eight elements from e on lies. */
template <unsigned COUNT, unsigned TERMS>
__device__ static unsigned term_in(unsigned row, unsigned e, unsigned term) {
    return place_in<COUNT * TERMS>(row, e * TERMS + term * 8);
}

/* ---- Loading ------------------------------------------------------------------------------------------- */

/* Eight floats go to their terms' places. */
template <unsigned SIZE, unsigned TERMS>
__device__ static void store_terms(uint16_t *to, unsigned row, unsigned e, const float4 x[2]) {
    uint4 high = {pack_bf16(x[0].x, x[0].y), pack_bf16(x[0].z, x[0].w), pack_bf16(x[1].x, x[1].y),
                  pack_bf16(x[1].z, x[1].w)};
    *reinterpret_cast<uint4 *>(to + term_in<SIZE, TERMS>(row, e, 0)) = high;
    if constexpr (TERMS > 1)
        *reinterpret_cast<uint4 *>(to + term_in<SIZE, TERMS>(row, e, 1)) =
            uint4{pack_rest(high.x, x[0].x, x[0].y), pack_rest(high.y, x[0].z, x[0].w),
                  pack_rest(high.z, x[1].x, x[1].y), pack_rest(high.w, x[1].z, x[1].w)};
}

template <unsigned SIZE, unsigned TERMS>
__device__ static void load_queries(const attention &a, const query_tile &t, uint16_t *to) {
    for (unsigned i = threadIdx.x; i < ROWS * SIZE / 8; i += prompt_shape<SIZE, TERMS>::THREADS) {
        const unsigned row = i / (SIZE / 8), e = i % (SIZE / 8) * 8;
        const query_place p = place_of(t, row);
        float4 x[2] = {};
        const float *from = a.query + place_of_element(a, p.token, p.head, e);
        if (p.is_there && is_own_half(a, p.head, e))
#pragma unroll
            for (unsigned j = 0; j < 2; j++)
                x[j] = reinterpret_cast<const float4 *>(from)[j];
        store_terms<SIZE, TERMS>(to, row, e, x);
    }
}

/* Positions first .. end - 1 are there, the tile's others are zeros. Floats come to where their terms go. */
template <unsigned SIZE, unsigned TERMS>
__device__ static void start_loading(const head_rows &rows, unsigned tile, unsigned first, unsigned end,
                                     uint16_t *to) {
    constexpr unsigned ACROSS = SIZE / 8, AT_ONCE = prompt_shape<SIZE, TERMS>::THREADS / ACROSS;
    const unsigned e = threadIdx.x % ACROSS * 8, tile_row = tile % rows.capacity;
#pragma unroll
    for (unsigned i = 0; i < prompt_shape<SIZE, TERMS>::KEYS / AT_ONCE; i++) {
        const unsigned key = threadIdx.x / ACROSS + i * AT_ONCE;
        const uint8_t *row = row_of(rows, tile, tile_row, key);
#pragma unroll
        for (unsigned part = 0; part < TERMS; part++)
            copy_16(to + term_in<SIZE, TERMS>(key, e, part), row + (e * TERMS + part * 8) * 2,
                    tile + key >= first && tile + key < end);
    }
}

/* Splits the floats that the thread has copied into their terms. */
template <unsigned SIZE, unsigned TERMS>
__device__ static void split_loaded(uint16_t *tile) {
    constexpr unsigned ACROSS = SIZE / 8, AT_ONCE = prompt_shape<SIZE, TERMS>::THREADS / ACROSS;
    const unsigned e = threadIdx.x % ACROSS * 8;
#pragma unroll
    for (unsigned i = 0; TERMS > 1 && i < prompt_shape<SIZE, TERMS>::KEYS / AT_ONCE; i++) {
        const unsigned key = threadIdx.x / ACROSS + i * AT_ONCE;
        const float4 x[2] = {*reinterpret_cast<const float4 *>(tile + term_in<SIZE, TERMS>(key, e, 0)),
                             *reinterpret_cast<const float4 *>(tile + term_in<SIZE, TERMS>(key, e, 1))};
        store_terms<SIZE, TERMS>(tile, key, e, x);
    }
}

/* ---- Products ------------------------------------------------------------------------------------------ */

/* A term of 16 rows from `row` on and 16 columns from `column` on, as multiply_add's first matrix. */
template <unsigned COUNT, unsigned TERMS>
__device__ static void load_first(uint32_t to[4], const uint16_t *tile, unsigned row, unsigned column,
                                  unsigned term) {
    const unsigned lane = threadIdx.x % WARP;
    load_matrices<false>(to, tile + term_in<COUNT, TERMS>(row + lane % 16, column + lane / 16 * 8, term));
}

/* scores = queries * keys: of the group's 16 queries and SCORES keys from `key` on. The terms' products have
 * sums of their own, so that few of them wait for one another. */
template <unsigned SIZE, unsigned TERMS>
__device__ static void score(const prompt_memory<SIZE, TERMS> &shared, unsigned row, unsigned key,
                             float scores[prompt_shape<SIZE, TERMS>::SCORES / 8][4]) {
    constexpr unsigned COUNT = prompt_shape<SIZE, TERMS>::SCORES / 8;
    const unsigned lane = threadIdx.x % WARP;
    float with_low[2][COUNT][4] = {};
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++)
#pragma unroll
        for (unsigned c = 0; c < 4; c++)
            scores[i][c] = 0;
#pragma unroll 4
    for (unsigned e = 0; e < SIZE; e += 16) {
        uint32_t queries[TERMS][4];
#pragma unroll
        for (unsigned term = 0; term < TERMS; term++)
            load_first<SIZE, TERMS>(queries[term], shared.query, row, e, term);
#pragma unroll
        for (unsigned i = 0; i < COUNT; i += 2 / TERMS) {
            uint32_t keys[4];
            const unsigned k = key + i * 8 + lane % 8, of_lane = e + lane / 8 % 2 * 8;
            load_matrices<false>(keys, shared.key +
                                           (TERMS > 1 ? term_in<SIZE, TERMS>(k, of_lane, lane / 16)
                                                      : term_in<SIZE, TERMS>(k + lane / 16 * 8, of_lane, 0)));
            multiply_add(scores[i], queries[0], keys[0], keys[1]);
            if constexpr (TERMS > 1) {
                multiply_add(with_low[0][i], queries[0], keys[2], keys[3]);
                multiply_add(with_low[1][i], queries[1], keys[0], keys[1]);
            } else {
                multiply_add(scores[i + 1], queries[0], keys[2], keys[3]);
            }
        }
    }
#pragma unroll
    for (unsigned i = 0; TERMS > 1 && i < COUNT; i++)
#pragma unroll
        for (unsigned c = 0; c < 4; c++)
            scores[i][c] += with_low[0][i][c] + with_low[1][i][c];
}

/* y += weights * values of 16 keys from `key` on, of COLUMNS elements from `column` on. */
template <unsigned SIZE, unsigned TERMS>
__device__ static void add_values(const prompt_memory<SIZE, TERMS> &shared, const uint32_t weights[TERMS][4],
                                  unsigned key, unsigned column,
                                  float y[prompt_shape<SIZE, TERMS>::COLUMNS / 8][4]) {
    const unsigned lane = threadIdx.x % WARP;
#pragma unroll
    for (unsigned i = 0; i < prompt_shape<SIZE, TERMS>::COLUMNS / 8; i += 2 / TERMS) {
        uint32_t values[4];
        const unsigned from = TERMS > 1
                                  ? term_in<SIZE, TERMS>(key + lane % 16, column + i * 8, lane / 16)
                                  : term_in<SIZE, TERMS>(key + lane % 16, column + i * 8 + lane / 16 * 8, 0);
        load_matrices<true>(values, shared.value + from);
        if constexpr (TERMS > 1) {
            multiply_add(y[i], weights[0], values[2], values[3]);
            multiply_add(y[i], weights[1], values[0], values[1]);
            multiply_add(y[i], weights[0], values[0], values[1]);
        } else {
            multiply_add(y[i], weights[0], values[0], values[1]);
            multiply_add(y[i + 1], weights[0], values[2], values[3]);
        }
    }
}

/* ---- A block ------------------------------------------------------------------------------------------- */

/* What a thread has to do: the queries of its group, and its share of a pair's keys and elements. */
struct share {
    unsigned group_row, half;
};

/* Two floats in terms. */
template <unsigned TERMS>
__device__ static void pack_terms(uint32_t to[TERMS], float low, float high) {
    to[0] = pack_bf16(low, high);
    if constexpr (TERMS > 1)
        to[1] = pack_rest(to[0], low, high);
}

/* The weights of a warp's 16 queries and keys 16 step .. as multiply_add's first matrix: its own scores. */
template <unsigned TERMS>
__device__ static void pack_weights(uint32_t to[TERMS][4], const float scores[2][4]) {
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        uint32_t both[TERMS];
        pack_terms<TERMS>(both, scores[i / 2][i % 2 * 2], scores[i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (unsigned term = 0; term < TERMS; term++)
            to[term][i] = both[term];
    }
}

/* Puts the weights of a warp down for the warp that has the other half of the elements. */
template <unsigned SIZE, unsigned TERMS>
__device__ static void share_weights(prompt_memory<SIZE, TERMS> &shared, const share &of,
                                     const float scores[prompt_shape<SIZE, TERMS>::SCORES / 8][4]) {
    const unsigned lane = threadIdx.x % WARP, row = of.group_row + lane / 4;
#pragma unroll
    for (unsigned i = 0; i < prompt_shape<SIZE, TERMS>::SCORES / 8; i++) {
        const unsigned key = of.half * prompt_shape<SIZE, TERMS>::SCORES + i * 8;
#pragma unroll
        for (unsigned r = 0; r < 2; r++) {
            uint32_t both[TERMS];
            pack_terms<TERMS>(both, scores[i][2 * r], scores[i][2 * r + 1]);
#pragma unroll
            for (unsigned term = 0; term < TERMS; term++)
                *reinterpret_cast<uint32_t *>(
                    shared.weights + term_in<prompt_shape<SIZE, TERMS>::KEYS, TERMS>(row + r * 8, key, term) +
                    lane % 4 * 2) = both[term];
        }
    }
}

/* y / sum. */
template <unsigned SIZE, unsigned TERMS>
__device__ static void store(const attention &a, const query_tile &t, const share &of, const queries &q,
                             prompt_memory<SIZE, TERMS> &shared,
                             const float y[prompt_shape<SIZE, TERMS>::COLUMNS / 8][4]) {
    const unsigned lane = threadIdx.x % WARP;
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
        const float sum = quad_sum(q.sum[r]);
        if (lane % 4 == 0)
            shared.sum[of.half][of.group_row + lane / 4 + r * 8] = sum;
    }
    __syncthreads();
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
        const unsigned row = of.group_row + lane / 4 + r * 8;
        float sum = shared.sum[0][row];
#pragma unroll
        for (unsigned half = 1; half < prompt_shape<SIZE, TERMS>::HALVES; half++)
            sum += shared.sum[half][row];
        const query_place p = place_of(t, row);
        store_query<prompt_shape<SIZE, TERMS>::COLUMNS>(a, p, of.half * prompt_shape<SIZE, TERMS>::COLUMNS, r,
                                                        divisor_of(a, p.head, sum, q.largest[r] * a.scale),
                                                        y[0]);
    }
}

/* Tile gridDim.x - 1 - blockIdx.x, so that those with the most keys begin first; kv head and part blockIdx.y.
 * While keys are multiplied values are in flight, and the other way round. */
template <unsigned SIZE, unsigned TERMS>
static __global__ void __launch_bounds__(prompt_shape<SIZE, TERMS>::THREADS, SIZE *TERMS > 256 ? 1 : 2)
    run_attention_prefill(attention a) {
    using shape = prompt_shape<SIZE, TERMS>;
    constexpr unsigned KEYS = shape::KEYS, HALVES = shape::HALVES, SCORES = shape::SCORES;
    wait_for_earlier();
    using memory = prompt_memory<SIZE, TERMS>;
    GB_DYNAMIC_SHARED(memory, shared);
    const query_tile t = find_tile(a, gridDim.x - 1 - blockIdx.x, blockIdx.y);
    if (t.first == t.end)
        return;
    const share of = {threadIdx.x / WARP / HALVES * 16, threadIdx.x / WARP % HALVES};
    const head_rows keys = rows_of(a, a.keys, t), values = rows_of(a, a.values, t);
    const unsigned lowest = (unsigned)a.positions[t.first], end = (unsigned)a.positions[t.end - 1] + 1;
    const unsigned first = (unsigned)first_read(a, lowest); /* of any query; read by all: */
    const unsigned common = (unsigned)first_read(a, end - 1);
    queries q;
    find_queries(a, t, of.group_row, q);
    float y[prompt_shape<SIZE, TERMS>::COLUMNS / 8][4] = {};
    unsigned tile = first / KEYS * KEYS;
    start_loading<SIZE, TERMS>(keys, tile, first, end, shared->key);
    commit_copies();
    start_loading<SIZE, TERMS>(values, tile, first, end, shared->value);
    commit_copies();
    load_queries<SIZE, TERMS>(a, t, shared->query);
    wait_for_copies<1>();
    split_loaded<SIZE, TERMS>(shared->key);
    __syncthreads();
    for (; tile < end; tile += KEYS) {
        float scores[SCORES / 8][4], largest[2], corrections[2];
        score<SIZE, TERMS>(*shared, of.group_row, of.half * SCORES, scores);
        mask<SCORES>(q, tile + of.half * SCORES, tile >= common && tile + KEYS <= lowest + 1, scores[0],
                     largest);
        if constexpr (HALVES > 1)
            put_largest(shared->largest[of.half], of.group_row, largest);
        __syncthreads(); /* the keys have been read */
        if (tile + KEYS < end)
            start_loading<SIZE, TERMS>(keys, tile + KEYS, first, end, shared->key);
        commit_copies();
        if constexpr (HALVES > 1)
            take_largest(shared->largest[1 - of.half], of.group_row, largest);
        weigh<SCORES>(q, largest, a.scale * LOG2_E, scores[0], corrections);
        if constexpr (HALVES > 1)
            share_weights<SIZE, TERMS>(*shared, of, scores);
        correct<shape::COLUMNS>(y[0], corrections);
        wait_for_copies<1>();
        split_loaded<SIZE, TERMS>(shared->value);
        __syncthreads(); /* the values are there */
#pragma unroll
        for (unsigned step = 0; step < KEYS / 16; step++) {
            uint32_t weights[TERMS][4];
            if constexpr (HALVES > 1)
#pragma unroll
                for (unsigned term = 0; term < TERMS; term++)
                    load_first<KEYS, TERMS>(weights[term], shared->weights, of.group_row, step * 16, term);
            else
                pack_weights<TERMS>(weights, scores + step * 2);
            add_values<SIZE, TERMS>(*shared, weights, step * 16, of.half * prompt_shape<SIZE, TERMS>::COLUMNS,
                                    y);
        }
        wait_for_copies<0>();
        if (tile + KEYS < end)
            split_loaded<SIZE, TERMS>(shared->key);
        __syncthreads(); /* the values have been read, and the next keys are there */
        if (tile + KEYS < end)
            start_loading<SIZE, TERMS>(values, tile + KEYS, first, end, shared->value);
        commit_copies();
    }
    store<SIZE, TERMS>(a, t, of, q, *shared, y);
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

template <unsigned SIZE, unsigned TERMS>
static void launch(const attention &a, gb_cuda_launch_list *launches) {
    using shape = prompt_shape<SIZE, TERMS>;
    using memory = prompt_memory<SIZE, TERMS>;
    const auto kernel = run_attention_prefill<SIZE, TERMS>;
    const dim3 grid((unsigned)(a.tokens / a.tile_tokens + a.run_count), (unsigned)(a.keys.heads * a.parts));
    add_launch(launches, "attention_prefill", kernel, grid, shape::THREADS, sizeof(memory), a);
}

template <unsigned TERMS>
static size_t shared_bytes(size_t size) {
    return size == 128   ? sizeof(prompt_memory<128, TERMS>)
           : size == 256 ? sizeof(prompt_memory<256, TERMS>)
                         : sizeof(prompt_memory<512, TERMS>);
}

template <unsigned TERMS>
static void launch_size(const attention &a, gb_cuda_launch_list *launches) {
    if (a.keys.size == 128)
        launch<128, TERMS>(a, launches);
    else if (a.keys.size == 256)
        launch<256, TERMS>(a, launches);
    else
        launch<512, TERMS>(a, launches);
}

bool gb_cuda::prompt_fits(const attention &a) {
    return (a.form == AS_TWO_TERMS ? shared_bytes<2>(a.keys.size) : shared_bytes<1>(a.keys.size)) <=
           most_shared_bytes();
}

void gb_cuda::attend_prefill(attention a, gb_cuda_launch_list *launches) {
    set_tiles(a, ROWS);
    if (a.form == AS_TWO_TERMS)
        launch_size<2>(a, launches);
    else
        launch_size<1>(a, launches);
}
