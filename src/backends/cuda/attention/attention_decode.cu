/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of decode on tensor cores. A token's positions are cut into spans by its own position alone
 * (split-K). A block computes spans for all query heads of a kv head (attention_span.cuh); the last block of
 * some spans to finish reduces these in order of positions, and the last of those reduces their results (Dao
 * et al., Flash-Decoding, 2023).
 */
#include "backends/cuda/attention/attention_span.cuh"
#include "backends/cuda/device/last_block.cuh"
#include "backends/cuda/gemm/prepared.cuh"

using namespace gb_cuda;

constexpr unsigned MOST_SPANS = 64, BLOCKS_WANTED = 512;
constexpr size_t MOST_SCRATCH = (size_t)128 << 20;                     /* bytes for the tokens of a launch */
constexpr unsigned TOGETHER = 8, COUNTERS = MOST_SPANS / TOGETHER + 1; /* spans that are joined at a time */
static_assert(MOST_SPANS <= TOGETHER * TOGETHER, "joined twice, all are");

/* The spans of a token's positions. */
struct span {
    unsigned first, end; /* of all spans */
    unsigned size;       /* positions of a span; the last one may have fewer */
    unsigned count;
};

struct decoding {
    attention a;
    unsigned most_spans;
    bool appends; /* the block of the last span stores the token's own key and value */
    float *y;     /* [tokens, heads, most_spans, size]: of each span, of the first ones all joined */
    float *state,
        *joined; /* [tokens, heads, most_spans, 2]: largest score, sum of weights; of what is joined */
    prepared_rows prepared; /* of all heads as one row */
    size_t first_row;       /* of token 0 there */
    uint32_t *arrivals;     /* [tokens, kv heads and parts, COUNTERS] */
};

/* The spans of a position: full ones of whole rounds. */
__device__ static span spans_of(const decoding &d, unsigned position, unsigned keys) {
    const unsigned first = (unsigned)first_read(d.a, position), length = position + 1 - first;
    const unsigned rounds = (length + keys - 1) / keys;
    const unsigned size = (rounds + d.most_spans - 1) / d.most_spans * keys;
    return span{first, position + 1, size, (length + size - 1) / size};
}

/* ---- Results ------------------------------------------------------------------------------------------- */

/* Puts the block's y down: of the only span the result, of others what is to be joined. */
template <unsigned SIZE, unsigned TERMS>
__device__ static void store_span(const decoding &d, const query_tile &t, const span &all, unsigned number,
                                  const softmax &mine, decode_memory<SIZE, TERMS> &shared,
                                  const float y[4][4]) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const size_t row = t.first * d.a.heads + t.head;
    if (warp < count_of(t)) {
        const float sum = warp_sum(mine.sum);
        shared.factor[warp] = all.count == 1 ? 1.0f / sum : 1.0f;
        if (lane == 0 && all.count > 1)
            reinterpret_cast<float2 *>(d.state)[(row + warp) * d.most_spans + number] =
                float2{mine.largest, sum};
    }
    __syncthreads();
    if (warp >= decode_shape<SIZE>::COLUMNS)
        return;
#pragma unroll
    for (unsigned c = 0; c < 2; c++) {
        const unsigned q = lane % 4 * 2 + c, element = warp * 64 + lane / 4 * 8;
        if (q >= count_of(t))
            continue;
        const float factor = shared.factor[q];
        float result[8];
#pragma unroll
        for (unsigned i = 0; i < 8; i++)
            result[i] = y[i / 2][c + i % 2 * 2] * factor;
        float *to = all.count == 1 ? &shared.result[q][element]
                                   : d.y + ((row + q) * d.most_spans + number) * SIZE + element;
        reinterpret_cast<float4 *>(to)[0] = float4{result[0], result[1], result[2], result[3]};
        reinterpret_cast<float4 *>(to)[1] = float4{result[4], result[5], result[6], result[7]};
    }
}

/* What `count` sums are put together from: number i is at i * step of a query's. */
struct sums {
    const float *state;
    unsigned step, count;
};

/* Joins sums, each times what it counts for beside the others, in order: to the place of the first one, or if
 * these are all there are to the result. A call, so that its registers are not those of what comes before. */
template <unsigned SIZE, unsigned TERMS>
__device__ static __noinline__ void join(const decoding &d, query_tile t, sums from, unsigned first,
                                         bool is_all, decode_memory<SIZE, TERMS> &shared) {
    const unsigned lane = threadIdx.x % WARP;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < count_of(t) * (SIZE / 4); i += SPAN_THREADS) {
        const unsigned q = i / (SIZE / 4), column = i % (SIZE / 4); /* a warp has one query */
        const size_t row = (t.first * d.a.heads + t.head + q) * d.most_spans;
        const float2 *state = reinterpret_cast<const float2 *>(from.state) + row;
        float4 *y = reinterpret_cast<float4 *>(d.y) + row * (SIZE / 4) + column;
        float4 rows[TOGETHER];
#pragma unroll
        for (unsigned s = 0; s < TOGETHER; s++)
            if (s < from.count)
                rows[s] = __ldcg(&y[(size_t)(first + s * from.step) * (SIZE / 4)]);
        const float2 of_lane =
            lane < from.count ? __ldcg(&state[first + lane * from.step]) : float2{-INFINITY, 0};
        const float largest = warp_max(of_lane.x), factor = gb_exp(of_lane.x - largest);
        const float sum = warp_sum(factor * of_lane.y);
        float4 joined = {0, 0, 0, 0};
#pragma unroll
        for (unsigned s = 0; s < TOGETHER; s++) {
            const float counts = __shfl_sync(0xffffffffu, factor, (int)s);
            if (s < from.count)
                joined = float4{fmaf(rows[s].x, counts, joined.x), fmaf(rows[s].y, counts, joined.y),
                                fmaf(rows[s].z, counts, joined.z), fmaf(rows[s].w, counts, joined.w)};
        }
        if (is_all) {
            const float inverse = 1.0f / sum;
            reinterpret_cast<float4 *>(shared.result[q])[column] =
                float4{joined.x * inverse, joined.y * inverse, joined.z * inverse, joined.w * inverse};
        } else {
            y[(size_t)first * (SIZE / 4)] = joined;
            if (column == 0)
                reinterpret_cast<float2 *>(d.joined)[row + first] = float2{largest, sum};
        }
    }
}

/* Counts the spans up to `number` that the block has stored since the last time. Whether the result is
 * there. */
template <unsigned SIZE, unsigned TERMS>
__device__ static bool join_spans(const decoding &d, const query_tile &t, const span &all, unsigned number,
                                  unsigned mine, decode_memory<SIZE, TERMS> &shared) {
    if (all.count == 1)
        return true;
    uint32_t *counters = d.arrivals + ((size_t)blockIdx.z * gridDim.x + blockIdx.x) * COUNTERS;
    const unsigned group = number / TOGETHER, groups = (all.count + TOGETHER - 1) / TOGETHER;
    const unsigned first = group * TOGETHER,
                   count = all.count - first < TOGETHER ? all.count - first : TOGETHER;
    if (!is_last_block(&counters[group], count, mine))
        return false;
    join<SIZE, TERMS>(d, t, sums{d.state, 1, count}, first, groups == 1, shared);
    if (groups == 1)
        return true;
    if (!is_last_block(&counters[COUNTERS - 1], groups))
        return false;
    join<SIZE, TERMS>(d, t, sums{d.joined, TOGETHER, groups}, 0, true, shared);
    return true;
}

/* Stores the result, also as prepared rows of the next GEMV. */
template <unsigned SIZE, unsigned TERMS>
__device__ static void finish(const decoding &d, const query_tile &t,
                              const decode_memory<SIZE, TERMS> &shared) {
    constexpr unsigned QUARTERS = SIZE / 8;
    const unsigned all = count_of(t) * QUARTERS;
#pragma unroll 1
    for (unsigned first = 0; first < all; first += SPAN_THREADS) {
        const unsigned i = first + threadIdx.x, q = i / QUARTERS, quarter = i % QUARTERS;
        const bool is_there = i < all;
        float4 four[2] = {};
        if (is_there) {
            const float4 *from = reinterpret_cast<const float4 *>(&shared.result[q][quarter * 8]);
            float4 *to =
                reinterpret_cast<float4 *>(d.a.y + (t.first * d.a.heads + t.head + q) * SIZE + quarter * 8);
            to[0] = four[0] = from[0];
            to[1] = four[1] = from[1];
        }
        const float v[8] = {four[0].x, four[0].y, four[0].z, four[0].w,
                            four[1].x, four[1].y, four[1].z, four[1].w};
        if (d.prepared.values)
            prepare_quarter(d.prepared, d.first_row + t.first,
                            is_there ? (t.head + q) * QUARTERS + quarter : d.prepared.units * 4, v);
    }
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

/* Token blockIdx.z, kv head and part blockIdx.x; of its spans the share number blockIdx.y, one after the
 * other. Of few spans the first blocks have all, which therefore start first. */
template <unsigned SIZE, unsigned TERMS>
static __global__ void __launch_bounds__(SPAN_THREADS, TERMS > 1 ? 1 : 2)
    run_attention_decode(GB_GRID_CONSTANT decoding d) {
    using memory = decode_memory<SIZE, TERMS>;
    GB_DYNAMIC_SHARED(memory, shared);
    let_next_begin();
    const attention &a = d.a;
    query_tile t = heads_of(a, blockIdx.x);
    t.first = blockIdx.z;
    t.end = t.first + 1;
    fetch_parameters(d);
    if (!d.appends) /* the kernel before this one wrote to the caches */
        wait_for_earlier();
    const span all = spans_of(d, (unsigned)a.positions[t.first], decode_shape<SIZE>::KEYS);
    const unsigned share = (all.count + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * share;
    const unsigned end = begin + share < all.count ? begin + share : all.count;
    for (unsigned number = begin, mine = 0; number < end; number++) {
        key_range range = {all.first + number * all.size, all.end, all.end, d.appends && number == begin};
        if (number + 1 < all.count)
            range.end = range.own = range.first + all.size;
        else if (d.appends)
            range.own = all.end - 1;
        float y[4][4] = {};
        const softmax of_span = attend_span<SIZE, TERMS>(a, t, range, *shared, y);
        add_key_shares<SIZE, TERMS>(*shared, y);
        store_span<SIZE, TERMS>(d, t, all, number, of_span, *shared, y);
        mine++;
        if ((number + 1) % TOGETHER == 0 || number + 1 == end) {
            const bool is_done = join_spans<SIZE, TERMS>(d, t, all, number, mine, *shared);
            __syncthreads();
            if (is_done)
                finish<SIZE, TERMS>(d, t, *shared);
            mine = 0;
        }
        __syncthreads();
    }
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* Few kv heads need more spans to keep the device busy. */
static unsigned most_spans(const attention &a) {
    return a.keys.heads >= 8 ? MOST_SPANS / 2 : MOST_SPANS;
}

static size_t token_scratch(const attention &a) {
    return a.heads * most_spans(a) * (a.values.size + 4) * sizeof(float);
}

static size_t tokens_with_scratch(const attention &a) {
    const size_t most = MOST_SCRATCH / token_scratch(a);
    return most < 1 ? 1 : a.tokens < most ? a.tokens : most;
}

/* As many as there are counters for, too. */
static size_t tokens_at_once(const attention &a) {
    const size_t counted = GB_CUDA_ARRIVALS / (a.keys.heads * a.parts * COUNTERS),
                 most = tokens_with_scratch(a);
    return most < counted ? most : counted;
}

uint64_t gb_cuda::attend_decode_scratch(const attention &a) {
    return (uint64_t)tokens_with_scratch(a) * token_scratch(a);
}

template <unsigned SIZE, unsigned TERMS>
static void launch_decode(const decoding &d, gb_cuda_launch_list *launches) {
    const size_t across = d.a.keys.heads * d.a.parts, pairs = across * d.a.tokens;
    const size_t blocks = (BLOCKS_WANTED + pairs - 1) / pairs;
    const dim3 grid((unsigned)across, (unsigned)(blocks < d.most_spans ? blocks : d.most_spans),
                    (unsigned)d.a.tokens);
    using memory = decode_memory<SIZE, TERMS>;
    const auto kernel = run_attention_decode<SIZE, TERMS>;
    add_launch(launches, "attention_decode", kernel, grid, SPAN_THREADS, sizeof(memory), d);
}

template <unsigned TERMS>
static void launch_size(const decoding &d, gb_cuda_launch_list *launches) {
    if (d.a.keys.size == 128)
        launch_decode<128, TERMS>(d, launches);
    else if (d.a.keys.size == 256)
        launch_decode<256, TERMS>(d, launches);
    else
        launch_decode<512, TERMS>(d, launches);
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

void gb_cuda::attend_decode(attention a, const prepared_rows &prepared, const gb_cuda_scratch *scratch,
                            gb_cuda_launch_list *launches) {
    set_tiles(a, SPAN_QUERIES);
    a.tile_tokens = 1;
    const size_t at_once = tokens_at_once(a), rows = at_once * a.heads;
    decoding d = {};
    d.appends = a.parts == 1 && a.run_count == a.tokens; /* else several blocks read what one stores */
    d.most_spans = most_spans(a);
    d.y = reinterpret_cast<float *>(scratch->bytes);
    d.state = d.y + rows * d.most_spans * a.values.size;
    d.joined = d.state + rows * d.most_spans * 2;
    d.prepared = prepared;
    d.arrivals = scratch->arrivals;
    if (!d.appends)
        append_to_caches(a, launches);
    for (size_t first = 0; first < a.tokens; first += at_once) {
        d.a = some_tokens(a, first, a.tokens - first < at_once ? a.tokens - first : at_once);
        d.first_row = first;
        if (a.terms > 1)
            launch_size<2>(d, launches);
        else
            launch_size<1>(d, launches);
    }
}
