/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in float32 over caches of any size. Keys come in spans that begin at multiples of SPAN positions;
 * a span's softmax is whole, and spans are reduced in order of positions (Milakov and Gimelshein, Online
 * normalizer calculation for softmax, 2018). With few tokens a span is a block's and a second kernel reduces;
 * with many a block walks all spans of queries that read the same keys. Both have the same bits.
 */
#include "backends/cuda/attention/attention.cuh"
#include "backends/cuda/device/each.cuh"
#include "backends/cuda/gemm/int8/hadamard.cuh"

using namespace gb_cuda;

enum { THREADS = 256, SPAN = 256, QUERIES = 8, KEY_LANES = 8, KEYS_AT_ONCE = THREADS / KEY_LANES };
static_assert((unsigned)QUERIES == THREADS / (unsigned)WARP && (unsigned)QUERIES <= KEY_LANES,
              "a warp, and a lane of a key, for a query");

/* Of few tokens: what each span of a query gives. */
struct span_results {
    unsigned count; /* of a query, at most */
    float *y;       /* [tokens, heads, count, value size] */
    float *state;   /* [tokens, heads, count, 2]: largest score, sum of weights */
};

/* A head's part of a row; of codes also their scales. */
struct head_row {
    const uint8_t *data, *scales;
    gb_dtype dtype;
};

__device__ static float element_of(const head_row &row, size_t i) {
    const size_t group = i / GB_CODE_GROUP;
    if (gb_dtype_has_codes(row.dtype))
        return gb_group_element(row.dtype, row.data + gb_code_bytes(row.dtype, group * GB_CODE_GROUP),
                                row.scales + group * sizeof(uint16_t), i % GB_CODE_GROUP);
    return load_float(row.data, row.dtype, i);
}

/* Elements i .. i + 7 of a row, zeros past its size. */
__device__ static void load_eight(const head_row &row, size_t i, size_t size, float to[8]) {
    if (size % 8 == 0 && row.dtype == GB_BF16) {
        const uint4 packed = reinterpret_cast<const uint4 *>(row.data)[i / 8];
        const uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
        for (int e = 0; e < 4; e++) {
            to[2 * e] = low_bf16(words[e]);
            to[2 * e + 1] = high_bf16(words[e]);
        }
    } else {
        for (size_t e = 0; e < 8; e++)
            to[e] = i + e < size ? element_of(row, i + e) : 0.0f;
    }
}

__device__ static head_row row_at(const attention &a, const cache &c, const query_tile &t, size_t position) {
    const bool is_in_room = position >= t.room_begin;
    const size_t row = is_in_room ? t.run + (position - t.room_begin) : position % c.capacity;
    const uint8_t *rows = is_in_room ? c.room : c.data + (size_t)a.slots[t.first] * c.slot_bytes;
    const uint8_t *data = rows + row * row_bytes(c) + bytes_of(c.dtype, t.kv_head * c.size);
    return head_row{data, data + scales_behind(c, t.kv_head), c.dtype};
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

/* scores[q][j] of the span's keys first .. end - 1 = scale * query . key, -inf where the query reads it not.
 * Q: at least as many as the tile's queries. */
template <unsigned Q>
__device__ static void score_span(const attention &a, const query_tile &t, const workspace &w, size_t span,
                                  size_t first, size_t end) {
    const unsigned lane = threadIdx.x % KEY_LANES, count = count_of(t);
    const size_t size = a.keys.size, stride = padded(size);
    const query_place mine = place_of(t, lane);
    const size_t position = mine.is_there ? (size_t)a.positions[mine.token] : 0;
    const size_t first_of_mine = first_read(a, position);
    for (size_t at = threadIdx.x / WARP * (WARP / KEY_LANES); at < SPAN; at += KEYS_AT_ONCE) {
        const size_t j = span + at + threadIdx.x % WARP / KEY_LANES;
        const bool is_read = j >= first && j < end;
        float score = -INFINITY;
        if (span + at < end && span + at + WARP / KEY_LANES > first) { /* for some lane of the warp */
            float sums[Q] = {};
            const head_row row = row_at(a, a.keys, t, is_read ? j : first);
            for (size_t i = lane * 8; is_read && i < size; i += KEY_LANES * 8) {
                float key[8];
                load_eight(row, i, size, key);
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
    const size_t size = a.values.size;
    const size_t across = size < THREADS ? size : (size_t)THREADS, shares = THREADS / across;
    const size_t e0 = threadIdx.x % across, share = threadIdx.x / across;
    for (size_t chunk = 0; chunk < size; chunk += across) {
        const size_t e = chunk + e0;
        float sums[Q] = {};
        for (size_t j = span + share; share < shares && e < size && j < end; j += shares) {
            if (j < first)
                continue;
            const float value = element_of(row_at(a, a.values, t, j), e);
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
static __global__ void __launch_bounds__(THREADS) run_attention_float_spans(attention a, span_results spans) {
    wait_for_earlier();
    GB_DYNAMIC_SHARED(float, memory);
    const workspace w = workspace_of(a, memory);
    const query_tile t = find_tile(a, blockIdx.z, blockIdx.y);
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
            spans.y[((p.token * a.heads + p.head) * spans.count + blockIdx.x) * a.values.size + e] = sum;
    });
    if (threadIdx.x < count_of(t)) {
        const query_place p = place_of(t, threadIdx.x);
        float *state = spans.state + ((p.token * a.heads + p.head) * spans.count + blockIdx.x) * 2;
        for (unsigned i = 0; i < 2; i++)
            state[i] = w.state[threadIdx.x * 4 + 2 + i];
    }
}

/* Row n * heads + h of the results. */
struct attention_float_join {
    attention a;
    span_results found;
    __device__ void operator()(size_t row, size_t e) const {
        const size_t position = (size_t)a.positions[row / a.heads];
        const size_t spans = position / SPAN - first_read(a, position) / SPAN + 1;
        float largest = -INFINITY, sum = 0, y = 0;
        for (size_t s = 0; s < spans; s++) {
            const float *state = found.state + (row * found.count + s) * 2;
            if (state[0] == -INFINITY)
                continue;
            y = put_together(y, largest, found.y[(row * found.count + s) * a.values.size + e], state[0]);
            sum = put_together(sum, largest, state[1], state[0]);
            largest = larger(largest, state[0]);
        }
        a.y[row * a.values.size + e] = y / divisor_of(a, row % a.heads, sum, largest);
    }
};

/* Many tokens: a block walks all spans that one of its queries reads. */
static __global__ void __launch_bounds__(THREADS) run_attention_float(attention a) {
    wait_for_earlier();
    GB_DYNAMIC_SHARED(float, memory);
    const workspace w = workspace_of(a, memory);
    const query_tile t = find_tile(a, blockIdx.z, blockIdx.y);
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
                w.y[i] / divisor_of(a, p.head, w.state[q * 4 + 1], w.state[q * 4]);
    }
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

static unsigned most_spans(const attention &a) {
    return (unsigned)((a.window > 0 ? (a.window - 1) / SPAN + 1 : (a.keys.capacity - 1) / SPAN) + 1);
}

/* Queries by keys and results by values, as codes were rotated; the copy of queries lies behind the room. */
static __global__ void __launch_bounds__(THREADS)
    run_rotate(const float *x, float *y, size_t count, unsigned rotation) {
    wait_for_earlier();
    const size_t first = ((size_t)blockIdx.x * THREADS + threadIdx.x) * LANE_COLUMNS;
    const bool is_there = first < count;
    float v[LANE_COLUMNS];
#pragma unroll
    for (unsigned i = 0; i < LANE_COLUMNS; i++)
        v[i] = is_there ? x[first + i] : 0.0f;
    rotate_eight(v, rotation);
#pragma unroll
    for (unsigned i = 0; i < LANE_COLUMNS; i++)
        if (is_there)
            y[first + i] = v[i];
}

static void rotate(const float *x, float *y, size_t count, unsigned rotation, gb_cuda_launch_list *launches) {
    const unsigned blocks = blocks_for(count, THREADS * LANE_COLUMNS);
    add_launch(launches, "rotate_heads", run_rotate, blocks, THREADS, 0, x, y, count, rotation);
}

static size_t query_count(const attention &a) {
    return a.tokens * a.heads * a.keys.size;
}

static void rotate_queries(attention &a, const gb_cuda_scratch *scratch, gb_cuda_launch_list *launches) {
    if (a.keys.rotation == 0)
        return;
    float *copy = reinterpret_cast<float *>(scratch->bytes + a.room_bytes);
    rotate(a.query, copy, query_count(a), a.keys.rotation, launches);
    a.query = copy;
}

static void rotate_results(const attention &a, gb_cuda_launch_list *launches) {
    if (a.values.rotation > 0)
        rotate(a.y, a.y, a.tokens * a.heads * a.values.size, a.values.rotation, launches);
}

uint64_t gb_cuda::attend_in_float_scratch(const attention &a) {
    return a.room_bytes + (a.keys.rotation > 0 ? query_count(a) * sizeof(float) : 0);
}

uint64_t gb_cuda::attend_few_in_float_scratch(const attention &a) {
    const uint64_t results = (uint64_t)a.tokens * a.heads * most_spans(a);
    return attend_in_float_scratch(a) + results * (a.values.size + 2) * sizeof(float);
}

void gb_cuda::attend_few_in_float(attention a, const gb_cuda_scratch *scratch,
                                  gb_cuda_launch_list *launches) {
    set_tiles(a, QUERIES);
    a.tile_tokens = 1;
    rotate_queries(a, scratch, launches);
    span_results spans = {most_spans(a),
                          reinterpret_cast<float *>(scratch->bytes + attend_in_float_scratch(a)), nullptr};
    spans.state = spans.y + a.tokens * a.heads * spans.count * a.values.size;
    const dim3 grid(spans.count, (unsigned)a.keys.heads * a.parts, (unsigned)a.tokens);
    auto kernel = a.tile_heads <= 2   ? run_attention_float_spans<2>
                  : a.tile_heads <= 4 ? run_attention_float_spans<4>
                                      : run_attention_float_spans<8>;
    add_launch(launches, "attention_float_spans", kernel, grid, THREADS, workspace_bytes(a), a, spans);
    add_each(launches, "attention_float_join", a.tokens * a.heads, a.values.size,
             attention_float_join{a, spans});
    rotate_results(a, launches);
}

void gb_cuda::attend_in_float(attention a, const gb_cuda_scratch *scratch, gb_cuda_launch_list *launches) {
    set_tiles(a, QUERIES);
    rotate_queries(a, scratch, launches);
    const dim3 grid(1, (unsigned)a.keys.heads * a.parts, (unsigned)(a.tokens / a.tile_tokens + a.run_count));
    add_launch(launches, "attention_float", run_attention_float, grid, THREADS, workspace_bytes(a), a);
    rotate_results(a, launches);
}
