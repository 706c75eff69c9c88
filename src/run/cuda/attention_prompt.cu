/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of prompts' tokens over caches of bfloat16, on the tensor cores: a block has 64 queries that read
 * the same keys and walks these 64 at a time, with a running softmax (Dao, FlashAttention-2, 2023). Queries
 * and weights are rounded to bfloat16, sums and the softmax are float32. Keys are taken from multiples of
 * KEYS positions on, and what a query does not read adds zeros: its bits depend on nothing else in the batch.
 */
#include "run/cuda/device/attention.cuh"
#include "run/cuda/device/tiles.cuh"

using namespace gb_cuda;

constexpr unsigned ROWS = 64, KEYS = 64;

/* Four groups of 16 queries; where a warp's registers do not hold all values' elements, two warps share a
 * group: each scores half of the keys and has half of the elements. */
template <unsigned SIZE>
struct prompt_shape {
    static constexpr unsigned HALVES = SIZE > 256 ? 2 : 1;
    static constexpr unsigned WARPS = 4 * HALVES, THREADS = WARPS * WARP;
    static constexpr unsigned SCORES = KEYS / HALVES, COLUMNS = SIZE / HALVES; /* of a warp */
};

template <unsigned SIZE>
struct prompt_memory {
    uint16_t query[ROWS * SIZE], key[KEYS * SIZE], value[KEYS * SIZE];
    uint16_t weights[prompt_shape<SIZE>::HALVES > 1 ? ROWS *KEYS : 8];
    float largest[prompt_shape<SIZE>::HALVES][ROWS], sum[prompt_shape<SIZE>::HALVES][ROWS];
};

/* Of a tile with rows of WIDTH elements, where element e (a multiple of 8) of a row lies: eight rows' same
 * elements are in different banks. */
template <unsigned WIDTH>
__device__ static unsigned place_in(unsigned row, unsigned e) {
    return row * WIDTH + ((e / 8) ^ (row % 8)) * 8;
}

/* ---- Loading ------------------------------------------------------------------------------------------- */

template <unsigned SIZE>
__device__ static void load_queries(const attention &a, const query_tile &t, uint16_t *to) {
    for (unsigned i = threadIdx.x; i < ROWS * SIZE / 8; i += prompt_shape<SIZE>::THREADS) {
        const unsigned row = i / (SIZE / 8), e = i % (SIZE / 8) * 8;
        const query_place p = place_of(t, row);
        float4 x[2] = {};
        if (p.is_there)
#pragma unroll
            for (unsigned j = 0; j < 2; j++)
                x[j] = reinterpret_cast<const float4 *>(a.query + (p.token * a.heads + p.head) * SIZE + e)[j];
        *reinterpret_cast<uint4 *>(to + place_in<SIZE>(row, e)) =
            uint4{pack_bf16(x[0].x, x[0].y), pack_bf16(x[0].z, x[0].w), pack_bf16(x[1].x, x[1].y),
                  pack_bf16(x[1].z, x[1].w)};
    }
}

/* A kv head's rows in the slot's cache. */
struct head_rows {
    const uint16_t *data;
    unsigned stride, capacity;
};

__device__ static head_rows rows_of(const cache &c, size_t slot, size_t kv_head) {
    const uint16_t *data = reinterpret_cast<const uint16_t *>(c.data + slot * c.slot_bytes);
    return head_rows{data + kv_head * c.size, (unsigned)(c.heads * c.size), (unsigned)c.capacity};
}

/* Positions first .. end - 1 are there, the tile's others are zeros. */
template <unsigned SIZE>
__device__ static void start_loading(const head_rows &rows, unsigned tile, unsigned first, unsigned end,
                                     uint16_t *to) {
    constexpr unsigned ACROSS = SIZE / 8, AT_ONCE = prompt_shape<SIZE>::THREADS / ACROSS;
    const unsigned e = threadIdx.x % ACROSS * 8, tile_row = tile % rows.capacity;
#pragma unroll
    for (unsigned i = 0; i < KEYS / AT_ONCE; i++) {
        const unsigned key = threadIdx.x / ACROSS + i * AT_ONCE;
        unsigned row = tile_row + key;
        row -= row >= rows.capacity ? rows.capacity : 0;
        copy_16(to + place_in<SIZE>(key, e), rows.data + (size_t)row * rows.stride + e,
                tile + key >= first && tile + key < end);
    }
}

/* ---- Products ------------------------------------------------------------------------------------------ */

/* 16 rows from `row` on and 16 columns from `column` on, as multiply_add's first matrix. */
template <unsigned WIDTH>
__device__ static void load_first(uint32_t to[4], const uint16_t *tile, unsigned row, unsigned column) {
    const unsigned lane = threadIdx.x % WARP;
    load_matrices<false>(to, tile + place_in<WIDTH>(row + lane % 16, column + lane / 16 * 8));
}

/* scores = queries * keys: of the group's 16 queries and SCORES keys from `key` on. */
template <unsigned SIZE>
__device__ static void score(const prompt_memory<SIZE> &shared, unsigned row, unsigned key,
                             float scores[prompt_shape<SIZE>::SCORES / 8][4]) {
    const unsigned lane = threadIdx.x % WARP;
#pragma unroll
    for (unsigned i = 0; i < prompt_shape<SIZE>::SCORES / 8; i++)
#pragma unroll
        for (unsigned c = 0; c < 4; c++)
            scores[i][c] = 0;
#pragma unroll 4
    for (unsigned e = 0; e < SIZE; e += 16) {
        uint32_t queries[4];
        load_first<SIZE>(queries, shared.query, row, e);
#pragma unroll
        for (unsigned i = 0; i < prompt_shape<SIZE>::SCORES / 8; i += 2) {
            uint32_t keys[4];
            load_matrices<false>(keys, shared.key + place_in<SIZE>(key + i * 8 + lane / 16 * 8 + lane % 8,
                                                                   e + lane / 8 % 2 * 8));
            multiply_add(scores[i], queries, keys[0], keys[1]);
            multiply_add(scores[i + 1], queries, keys[2], keys[3]);
        }
    }
}

/* y += weights * values of 16 keys from `key` on, of COLUMNS elements from `column` on. */
template <unsigned SIZE>
__device__ static void add_values(const prompt_memory<SIZE> &shared, const uint32_t weights[4], unsigned key,
                                  unsigned column, float y[prompt_shape<SIZE>::COLUMNS / 8][4]) {
    const unsigned lane = threadIdx.x % WARP;
#pragma unroll
    for (unsigned i = 0; i < prompt_shape<SIZE>::COLUMNS / 8; i += 2) {
        uint32_t values[4];
        load_matrices<true>(values,
                            shared.value + place_in<SIZE>(key + lane % 16, column + i * 8 + lane / 16 * 8));
        multiply_add(y[i], weights, values[0], values[1]);
        multiply_add(y[i + 1], weights, values[2], values[3]);
    }
}

/* ---- Softmax ------------------------------------------------------------------------------------------- */

/* The two queries of a lane: rows lane / 4 and lane / 4 + 8 of its group. */
struct queries {
    unsigned first[2], last[2]; /* the positions that they read */
    float largest[2], sum[2];   /* so far; the sum is of the lane's own keys */
};

__device__ static float quad_max(float x) {
    x = larger(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return larger(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/* Scales the scores of keys from `key` on to powers of 2, -inf where a query does not read. largest: of them.
 */
template <unsigned SIZE>
__device__ static void mask(const queries &q, unsigned key, bool all_are_read, float scale,
                            float scores[prompt_shape<SIZE>::SCORES / 8][4], float largest[2]) {
    const unsigned column = threadIdx.x % 4 * 2;
    largest[0] = largest[1] = -INFINITY;
#pragma unroll
    for (unsigned i = 0; i < prompt_shape<SIZE>::SCORES / 8; i++) {
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            const unsigned j = key + i * 8 + column + c % 2;
            const bool is_read = all_are_read || (j >= q.first[c / 2] && j <= q.last[c / 2]);
            scores[i][c] = is_read ? scores[i][c] * scale : -INFINITY;
            largest[c / 2] = larger(scores[i][c], largest[c / 2]);
        }
    }
    largest[0] = quad_max(largest[0]);
    largest[1] = quad_max(largest[1]);
}

/* Turns scores into weights. corrections: what so far was summed is to be multiplied with. */
template <unsigned SIZE>
__device__ static void weigh(queries &q, const float largest[2],
                             float scores[prompt_shape<SIZE>::SCORES / 8][4], float corrections[2]) {
    float from[2];
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
        const float both = larger(q.largest[r], largest[r]);
        from[r] = both == -INFINITY ? 0.0f : both; /* nothing read as yet: all weights are 0 */
        corrections[r] = exp2_fast(q.largest[r] - from[r]);
        q.largest[r] = both;
        q.sum[r] *= corrections[r];
    }
#pragma unroll
    for (unsigned i = 0; i < prompt_shape<SIZE>::SCORES / 8; i++) {
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            scores[i][c] = exp2_fast(scores[i][c] - from[c / 2]);
            q.sum[c / 2] += scores[i][c];
        }
    }
}

/* ---- A block ------------------------------------------------------------------------------------------- */

/* What a thread has to do: the queries of its group, and its share of a pair's keys and elements. */
struct share {
    unsigned group_row, half;
};

template <unsigned SIZE>
__device__ static void find_queries(const attention &a, const query_tile &t, unsigned group_row, queries &q) {
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
        const query_place p = place_of(t, group_row + threadIdx.x % WARP / 4 + r * 8);
        const size_t position = (size_t)a.positions[p.is_there ? p.token : t.first];
        q.first[r] = (unsigned)first_read(a, position);
        q.last[r] = (unsigned)position;
        q.largest[r] = -INFINITY;
        q.sum[r] = 0;
    }
}

/* The weights of a warp's 16 queries and keys 16 step .. as multiply_add's first matrix: its own scores. */
__device__ static void pack_weights(uint32_t to[4], const float scores[2][4]) {
    to[0] = pack_bf16(scores[0][0], scores[0][1]);
    to[1] = pack_bf16(scores[0][2], scores[0][3]);
    to[2] = pack_bf16(scores[1][0], scores[1][1]);
    to[3] = pack_bf16(scores[1][2], scores[1][3]);
}

/* Puts the weights of a warp down for the warp that has the other half of the elements. */
template <unsigned SIZE>
__device__ static void share_weights(prompt_memory<SIZE> &shared, const share &of,
                                     const float scores[prompt_shape<SIZE>::SCORES / 8][4]) {
    const unsigned lane = threadIdx.x % WARP, row = of.group_row + lane / 4;
#pragma unroll
    for (unsigned i = 0; i < prompt_shape<SIZE>::SCORES / 8; i++) {
        const unsigned key = of.half * prompt_shape<SIZE>::SCORES + i * 8;
#pragma unroll
        for (unsigned r = 0; r < 2; r++)
            *reinterpret_cast<uint32_t *>(shared.weights + place_in<KEYS>(row + r * 8, key) + lane % 4 * 2) =
                pack_bf16(scores[i][2 * r], scores[i][2 * r + 1]);
    }
}

/* The largest score of a query's whole tile, of which each of a pair of warps has half. */
template <unsigned SIZE>
__device__ static void put_largest(prompt_memory<SIZE> &shared, const share &of, const float largest[2]) {
    const unsigned lane = threadIdx.x % WARP;
#pragma unroll
    for (unsigned r = 0; r < 2 && lane % 4 == 0; r++)
        shared.largest[of.half][of.group_row + lane / 4 + r * 8] = largest[r];
}

template <unsigned SIZE>
__device__ static void take_largest(const prompt_memory<SIZE> &shared, const share &of, float largest[2]) {
#pragma unroll
    for (unsigned r = 0; r < 2; r++)
        largest[r] =
            larger(largest[r], shared.largest[1 - of.half][of.group_row + threadIdx.x % WARP / 4 + r * 8]);
}

/* y / sum. */
template <unsigned SIZE>
__device__ static void store(const attention &a, const query_tile &t, const share &of, const queries &q,
                             prompt_memory<SIZE> &shared, const float y[prompt_shape<SIZE>::COLUMNS / 8][4]) {
    const unsigned lane = threadIdx.x % WARP;
    float sums[2];
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
        sums[r] = q.sum[r] + __shfl_xor_sync(0xffffffffu, q.sum[r], 1);
        sums[r] += __shfl_xor_sync(0xffffffffu, sums[r], 2);
        if (lane % 4 == 0)
            shared.sum[of.half][of.group_row + lane / 4 + r * 8] = sums[r];
    }
    __syncthreads();
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
        const unsigned row = of.group_row + lane / 4 + r * 8;
        const query_place p = place_of(t, row);
        float sum = shared.sum[0][row];
#pragma unroll
        for (unsigned half = 1; half < prompt_shape<SIZE>::HALVES; half++)
            sum += shared.sum[half][row];
        float *to =
            a.y + (p.token * a.heads + p.head) * SIZE + of.half * prompt_shape<SIZE>::COLUMNS + lane % 4 * 2;
#pragma unroll
        for (unsigned i = 0; i < prompt_shape<SIZE>::COLUMNS / 8; i++)
            if (p.is_there)
                *reinterpret_cast<float2 *>(to + i * 8) = float2{y[i][2 * r] / sum, y[i][2 * r + 1] / sum};
    }
}

/* Tile gridDim.x - 1 - blockIdx.x, so that those with the most keys begin first; kv head and part blockIdx.y.
 * While keys are multiplied values are on their way, and the other way round. */
template <unsigned SIZE>
static __global__ void __launch_bounds__(prompt_shape<SIZE>::THREADS, SIZE > 256 ? 1 : 2)
    attend(attention a) {
    constexpr unsigned HALVES = prompt_shape<SIZE>::HALVES, SCORES = prompt_shape<SIZE>::SCORES;
    wait_for_earlier();
    GB_DYNAMIC_SHARED(prompt_memory<SIZE>, shared);
    const query_tile t = find_tile(a, gridDim.x - 1 - blockIdx.x, blockIdx.y);
    if (t.first == t.end)
        return;
    const share of = {threadIdx.x / WARP / HALVES * 16, threadIdx.x / WARP % HALVES};
    const size_t slot = (size_t)a.slots[t.first];
    const head_rows keys = rows_of(a.keys, slot, t.kv_head), values = rows_of(a.values, slot, t.kv_head);
    const unsigned lowest = (unsigned)a.positions[t.first], end = (unsigned)a.positions[t.end - 1] + 1;
    const unsigned first = (unsigned)first_read(a, lowest); /* of any query; read by all: */
    const unsigned common = (unsigned)first_read(a, end - 1);
    queries q;
    find_queries<SIZE>(a, t, of.group_row, q);
    float y[prompt_shape<SIZE>::COLUMNS / 8][4] = {};
    unsigned tile = first / KEYS * KEYS;
    start_loading<SIZE>(keys, tile, first, end, shared->key);
    commit_copies();
    start_loading<SIZE>(values, tile, first, end, shared->value);
    commit_copies();
    load_queries<SIZE>(a, t, shared->query);
    wait_for_copies<1>();
    __syncthreads();
    for (; tile < end; tile += KEYS) {
        float scores[SCORES / 8][4], largest[2], corrections[2];
        score<SIZE>(*shared, of.group_row, of.half * SCORES, scores);
        mask<SIZE>(q, tile + of.half * SCORES, tile >= common && tile + KEYS <= lowest + 1,
                   a.scale * 0x1.715476p+0f, scores, largest);
        if constexpr (HALVES > 1)
            put_largest<SIZE>(*shared, of, largest);
        __syncthreads(); /* the keys have been taken */
        if (tile + KEYS < end)
            start_loading<SIZE>(keys, tile + KEYS, first, end, shared->key);
        commit_copies();
        if constexpr (HALVES > 1)
            take_largest<SIZE>(*shared, of, largest);
        weigh<SIZE>(q, largest, scores, corrections);
        if constexpr (HALVES > 1)
            share_weights<SIZE>(*shared, of, scores);
#pragma unroll
        for (unsigned i = 0; i < prompt_shape<SIZE>::COLUMNS / 8; i++)
#pragma unroll
            for (unsigned c = 0; c < 4; c++)
                y[i][c] *= corrections[c / 2];
        wait_for_copies<1>();
        __syncthreads(); /* the values are there */
#pragma unroll
        for (unsigned step = 0; step < KEYS / 16; step++) {
            uint32_t weights[4];
            if constexpr (HALVES > 1)
                load_first<KEYS>(weights, shared->weights, of.group_row, step * 16);
            else
                pack_weights(weights, scores + step * 2);
            add_values<SIZE>(*shared, weights, step * 16, of.half * prompt_shape<SIZE>::COLUMNS, y);
        }
        wait_for_copies<0>();
        __syncthreads(); /* the values have been taken, and the next keys are there */
        if (tile + KEYS < end)
            start_loading<SIZE>(values, tile + KEYS, first, end, shared->value);
        commit_copies();
    }
    store<SIZE>(a, t, of, q, *shared, y);
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

template <unsigned SIZE>
static void launch(const attention &a, cudaStream_t stream) {
    const dim3 grid((unsigned)(a.tokens / a.tile_tokens + a.run_count), (unsigned)(a.keys.heads * a.parts));
    GB_LAUNCH(attend<SIZE>, grid, prompt_shape<SIZE>::THREADS, sizeof(prompt_memory<SIZE>), stream, a);
}

bool gb_cuda::prompt_fits(const attention &a) {
    const size_t bytes = a.keys.size == 128   ? sizeof(prompt_memory<128>)
                         : a.keys.size == 256 ? sizeof(prompt_memory<256>)
                                              : sizeof(prompt_memory<512>);
    return bytes <= most_shared_bytes();
}

void gb_cuda::attend_prompt(attention a, cudaStream_t stream) {
    set_tiles(a, ROWS);
    if (a.keys.size == 128)
        launch<128>(a, stream);
    else if (a.keys.size == 256)
        launch<256>(a, stream);
    else
        launch<512>(a, stream);
}
