/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of delta_step.cu: how blocks share a head, the convolution, and the head's memory.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DELTA_DELTA_STEP_CUH
#define GUMBEL_BACKENDS_CUDA_DELTA_DELTA_STEP_CUH

#include "backends/cuda/device/cluster.cuh"
#include "backends/cuda/gemm/prepared.cuh"
#include "backends/cuda/norm/row_ops.cuh"

namespace gb_cuda {

constexpr unsigned SIZE = GB_CUDA_DELTA_SIZE, WIDTH = GB_CUDA_DELTA_WIDTH, TAIL = WIDTH - 1;

enum part { QUERY, KEY, VALUE, PARTS };

/* One of the blocks that share a head. Its first warps convolve queries, keys and values, a channel a
 * thread; the next three do one thing each. Threads of the memory warps have four columns of some rows:
 * rows come in GROUPS of four neighbours by turns, and are added in one order however many blocks share a
 * head. */
template <unsigned SHARES>
struct step_shape {
    static constexpr unsigned COLUMNS = SIZE / SHARES, UNIT_WARPS = 2 * SIZE / WARP, GROUPS = 8,
                              NEIGHBOURS = 4;
    static constexpr unsigned DECAY_WARP = UNIT_WARPS + COLUMNS / WARP, BETA_WARP = DECAY_WARP + 1,
                              LAST_WARP = DECAY_WARP + 2;
    static constexpr unsigned MEMORY_WARPS = SHARES == 1 ? 2 * GROUPS : GROUPS;
    static constexpr unsigned WARPS = MEMORY_WARPS > LAST_WARP ? MEMORY_WARPS : LAST_WARP + 1;
    static constexpr unsigned THREADS = WARPS * WARP;
    static constexpr unsigned COLUMN_LANES = COLUMNS / 4, ROWS = WARP / COLUMN_LANES; /* of a warp's load */
    static constexpr unsigned EACH = NEIGHBOURS * GROUPS / (ROWS * MEMORY_WARPS); /* neighbours of a thread */
    static constexpr unsigned TURNS = SIZE / (GROUPS * NEIGHBOURS), LOADS = TURNS * EACH;
};

struct delta_step {
    const float *x; /* [tokens, channels] */
    size_t channels, starts[PARTS];
    const void *weight; /* of the convolution: [channels, 1, WIDTH] */
    gb_dtype weight_dtype;
    gb_cuda_versions slots; /* by token */
    const int32_t *run_first;
    float *tail, *memory; /* of slot 0 */
    size_t tail_slot_bytes, memory_slot_bytes;
    const float *decay, *beta, *gate; /* [tokens, heads], likewise, [tokens, heads, SIZE] */
    const void *rate, *bias;          /* of decay: [heads] */
    gb_dtype rate_dtype, bias_dtype;
    normalization unit[2], norm; /* of queries and keys; of the result */
    unsigned heads, key_heads, first_run;
    unsigned at_once;                 /* blocks of threads that the device has at a time */
    bool is_tiled, has_single_tokens; /* every run is of one token */
    float *y;                         /* [tokens, heads, SIZE] */
    prepared_rows prepared;           /* of all heads as one row */
    uint32_t *arrivals;               /* [runs, key heads] */
};

/* What a block works on. */
struct step_place {
    unsigned first, end; /* tokens */
    unsigned head, key_head, share;
};

/* Tokens of a run whose results are kept until the cluster meets, and then finished by a warp each. */
struct step_group {
    unsigned first, end;
    unsigned turn;
};

constexpr unsigned MOST_KEPT = 8;
constexpr int32_t NO_SLOT = -1;
static_assert(MOST_KEPT < WARP, "a token a lane, and the one behind them");

template <unsigned SHARES>
struct step_memory {
    alignas(16) float rows[2][2][SIZE]; /* of tokens by turns: queries and keys, convolved */
    alignas(16) float change[SIZE / SHARES];
    alignas(16) float y[2][MOST_KEPT][SIZE], gates[MOST_KEPT][SIZE],
        weight[SIZE]; /* in the first block: the head's, of groups by turns; its gate's, its norm's */
    float recalled[step_shape<SHARES>::MEMORY_WARPS][SIZE / SHARES]; /* by warp: sums over its rows */
    float answered[step_shape<SHARES>::MEMORY_WARPS][SIZE / SHARES];
    float squares[2][SIZE / WARP];
    float decays[WARP], betas[WARP], rate, bias; /* of the group's tokens */
    int32_t slots[WARP]; /* where these leave the state, and the token behind them, or NO_SLOT */
    bool is_last;        /* of the blocks that read the tail of the queries and keys */
};

template <unsigned SHARES, bool IS_SINGLE>
__device__ inline step_place place_of(const delta_step &v) {
    const unsigned run = v.first_run + blockIdx.y, head = blockIdx.x / SHARES;
    step_place p = {run, run + 1, head, v.is_tiled ? head % v.key_heads : head / (v.heads / v.key_heads),
                    blockIdx.x % SHARES};
    if (!IS_SINGLE) {
        p.first = (unsigned)v.run_first[run];
        p.end = (unsigned)v.run_first[run + 1];
    }
    return p;
}

__device__ inline step_group group_from(const step_place &p, unsigned first) {
    const unsigned end = first + MOST_KEPT < p.end ? first + MOST_KEPT : p.end;
    return step_group{first, end, (first - p.first) / MOST_KEPT % 2};
}

template <typename T>
__device__ inline T *of_slot(T *state, size_t slot_bytes, int32_t slot) {
    return reinterpret_cast<T *>(reinterpret_cast<uint8_t *>(state) + (size_t)slot * slot_bytes);
}

/* ---- Convolution --------------------------------------------------------------------------------------- */

/* A thread's channel, what its x are multiplied by, the last of these, oldest first, and the next. */
struct channel {
    size_t number;
    float4 taps;
    float before[TAIL], next;
};

/* The weights of channel c. */
__device__ inline float4 load_taps(const void *weight, gb_dtype dtype, size_t c) {
    static_assert(WIDTH == 4, "a float4");
    if (dtype == GB_F32)
        return static_cast<const float4 *>(weight)[c];
    const uint2 all = static_cast<const uint2 *>(weight)[c];
    return float4{gb_widen_half((uint16_t)all.x, dtype), gb_widen_half((uint16_t)(all.x >> 16), dtype),
                  gb_widen_half((uint16_t)all.y, dtype), gb_widen_half((uint16_t)(all.y >> 16), dtype)};
}

template <unsigned SHARES>
__device__ inline channel load_channel(const delta_step &v, const step_place &p) {
    using shape = step_shape<SHARES>;
    channel c = {};
    if (threadIdx.x < 2 * SIZE)
        c.number = v.starts[threadIdx.x / SIZE] + p.key_head * SIZE + threadIdx.x % SIZE;
    else
        c.number = v.starts[VALUE] + p.head * SIZE + p.share * shape::COLUMNS + threadIdx.x - 2 * SIZE;
    const float *tail = of_slot(v.tail, v.tail_slot_bytes, v.slots.from[p.first]);
    for (unsigned t = 0; t < TAIL; t++)
        c.before[t] = tail[t * v.channels + c.number];
    c.taps = load_taps(v.weight, v.weight_dtype, c.number);
    return c;
}

__device__ inline float load_x(const delta_step &v, size_t n, const channel &c) {
    return v.x[n * v.channels + c.number];
}

/* Token n; the x of the one after it is on its way. The sum goes from the oldest x to the newest. */
__device__ inline float convolve(const delta_step &v, const step_place &p, unsigned n, channel &c) {
    const float x = c.next;
    if (n + 1 < p.end)
        c.next = load_x(v, n + 1, c);
    const float y = c.before[0] * c.taps.x + c.before[1] * c.taps.y + c.before[2] * c.taps.z + x * c.taps.w;
    for (unsigned t = 0; t + 1 < TAIL; t++)
        c.before[t] = c.before[t + 1];
    c.before[TAIL - 1] = x;
    return silu(y);
}

template <unsigned SHARES>
__device__ inline void put_unit(float y, float (*rows)[SIZE], step_memory<SHARES> &shared) {
    const unsigned part = threadIdx.x / SIZE;
    rows[part][threadIdx.x % SIZE] = y;
    const float squares = warp_sum(y * y);
    if (threadIdx.x % WARP == 0)
        shared.squares[part][threadIdx.x % SIZE / WARP] = squares;
}

__device__ inline void store_tail(const delta_step &v, int32_t slot, const channel &c) {
    float *tail = of_slot(v.tail, v.tail_slot_bytes, slot);
    for (unsigned t = 0; t < TAIL; t++)
        tail[t * v.channels + c.number] = c.before[t];
}

/* One thread counts this block, which has read the tail of its queries and keys, and gets to know how many
 * others have: it asks long before it needs the answer. */
__device__ inline uint32_t count_block(const delta_step &v, const step_place &p) {
    __threadfence();
    return atomicAdd(v.arrivals + blockIdx.y * v.key_heads + p.key_head, 1u);
}

/* Whether no block comes after `others`, by the thread that has counted. */
__device__ inline bool is_last_of(const delta_step &v, const step_place &p, uint32_t others,
                                  unsigned shares) {
    const bool is_last = others == v.heads / v.key_heads * shares - 1;
    if (is_last) {
        v.arrivals[blockIdx.y * v.key_heads + p.key_head] = 0;
        __threadfence();
    }
    return is_last;
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* The row of a thread's load: neighbour number `each` of its own, of the turn. */
template <unsigned SHARES>
__device__ inline unsigned row_of(unsigned turn, unsigned each) {
    using shape = step_shape<SHARES>;
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const unsigned neighbour =
        (warp / shape::GROUPS * shape::EACH + each) * shape::ROWS + lane / shape::COLUMN_LANES;
    return (turn * shape::GROUPS + warp % shape::GROUPS) * shape::NEIGHBOURS + neighbour;
}

/* The thread's columns of a head's memory, row 0. */
template <unsigned SHARES>
__device__ inline float4 *columns_in(const delta_step &v, const step_place &p, int32_t slot) {
    using shape = step_shape<SHARES>;
    return reinterpret_cast<float4 *>(of_slot(v.memory, v.memory_slot_bytes, slot)) +
           (size_t)p.head * SIZE * (SIZE / 4) + p.share * shape::COLUMN_LANES +
           threadIdx.x % shape::COLUMN_LANES;
}

template <unsigned SHARES>
__device__ inline void load_memory(const delta_step &v, const step_place &p, float4 *memory) {
    using shape = step_shape<SHARES>;
    const float4 *from = columns_in<SHARES>(v, p, v.slots.from[p.first]);
#pragma unroll
    for (unsigned i = 0; i < shape::LOADS; i++)
        memory[i] = from[row_of<SHARES>(i / shape::EACH, i % shape::EACH) * (SIZE / 4)];
}

template <unsigned SHARES>
__device__ inline void store_memory(const delta_step &v, const step_place &p, int32_t slot,
                                    const float4 *memory) {
    using shape = step_shape<SHARES>;
    float4 *to = columns_in<SHARES>(v, p, slot);
#pragma unroll
    for (unsigned i = 0; i < shape::LOADS; i++)
        to[row_of<SHARES>(i / shape::EACH, i % shape::EACH) * (SIZE / 4)] = memory[i];
}

/* Prefetches to the L2 cache what a later block of threads loads, so that memory is read while this one has
 * all that it waits for. */
template <unsigned SHARES>
__device__ inline void prefetch_later(const delta_step &v) {
    constexpr size_t HEAD_BYTES = SIZE * SIZE * sizeof(float);
    const unsigned later = blockIdx.y * gridDim.x + blockIdx.x + v.at_once,
                   run = v.first_run + later / gridDim.x;
    if (SHARES > 1 || later / gridDim.x >= gridDim.y)
        return;
    const int32_t slot = v.slots.from[v.has_single_tokens ? run : (unsigned)v.run_first[run]];
    const auto *memory = reinterpret_cast<const uint8_t *>(of_slot(v.memory, v.memory_slot_bytes, slot));
    static_assert(step_shape<1>::THREADS * CACHE_LINE == HEAD_BYTES, "a line for each thread");
    prefetch_line(memory + later % gridDim.x * HEAD_BYTES + threadIdx.x * CACHE_LINE);
}

/* Sums over a group's neighbours, in pairs. */
template <unsigned SHARES>
__device__ inline float sum_neighbours(const float *sums) {
    using shape = step_shape<SHARES>;
    float sum = sums[0];
#pragma unroll
    for (unsigned i = 1; i < shape::EACH; i++)
        sum += sums[i * 4];
#pragma unroll
    for (unsigned distance = shape::COLUMN_LANES; distance < WARP; distance *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, (int)distance);
    return sum;
}

/* What the warp's rows give to the products of the memory with the key and the query. */
template <unsigned SHARES>
__device__ inline void multiply(const float4 *memory, const float (*rows)[SIZE],
                                step_memory<SHARES> &shared) {
    using shape = step_shape<SHARES>;
    static_assert(shape::EACH == 1 || (shape::EACH == 2 && shape::ROWS == 1),
                  "neighbours are added in pairs");
    float recalled[shape::EACH][4] = {}, answered[shape::EACH][4] = {};
#pragma unroll
    for (unsigned i = 0; i < shape::LOADS; i++) {
        const unsigned row = row_of<SHARES>(i / shape::EACH, i % shape::EACH);
        const float key = rows[KEY][row], query = rows[QUERY][row];
        const float of_row[4] = {memory[i].x, memory[i].y, memory[i].z, memory[i].w};
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            recalled[i % shape::EACH][c] = fmaf(key, of_row[c], recalled[i % shape::EACH][c]);
            answered[i % shape::EACH][c] = fmaf(query, of_row[c], answered[i % shape::EACH][c]);
        }
    }
#pragma unroll
    for (unsigned c = 0; c < 4; c++) {
        const float of_key = sum_neighbours<SHARES>(&recalled[0][c]);
        const float of_query = sum_neighbours<SHARES>(&answered[0][c]);
        if (threadIdx.x % WARP < shape::COLUMN_LANES) {
            const unsigned column = threadIdx.x % WARP * 4 + c;
            shared.recalled[threadIdx.x / WARP][column] = of_key;
            shared.answered[threadIdx.x / WARP][column] = of_query;
        }
    }
}

/* What the token's query and key are multiplied by to be units, and their product as they are. */
struct unit_factors {
    float query, key, product;
};

template <unsigned SHARES>
__device__ inline unit_factors find_factors(const delta_step &v, const float (*rows)[SIZE],
                                            const step_memory<SHARES> &shared) {
    static_assert(SIZE == 4 * WARP, "a float4 a lane");
    const float4 q = reinterpret_cast<const float4 *>(rows[QUERY])[threadIdx.x % WARP];
    const float4 k = reinterpret_cast<const float4 *>(rows[KEY])[threadIdx.x % WARP];
    float squares[2];
    for (unsigned part = QUERY; part <= KEY; part++) {
        squares[part] = shared.squares[part][0];
        for (unsigned w = 1; w < SIZE / WARP; w++)
            squares[part] += shared.squares[part][w];
    }
    return unit_factors{norm_factor(v.unit[QUERY], squares[QUERY]), norm_factor(v.unit[KEY], squares[KEY]),
                        warp_sum(q.x * k.x + q.y * k.y + q.z * k.z + q.w * k.w)};
}

/* A column's change and result, of the group's token `kept`. Both products with the memory are those with
 * what it held before: with S the decayed memory, S' = S + key change^T and query^T S' = query^T S + (query
 * key) change. */
template <unsigned SHARES>
__device__ inline void change_column(unsigned kept, unsigned column, float value, const unit_factors &unit,
                                     float *y, step_memory<SHARES> &shared) {
    using shape = step_shape<SHARES>;
    float recalled = 0, answered = 0;
#pragma unroll
    for (unsigned group = 0; group < shape::GROUPS; group++) {
        float of_key = shared.recalled[group][column], of_query = shared.answered[group][column];
        if (shape::MEMORY_WARPS > shape::GROUPS) {
            of_key += shared.recalled[(group + shape::GROUPS) % shape::MEMORY_WARPS][column];
            of_query += shared.answered[(group + shape::GROUPS) % shape::MEMORY_WARPS][column];
        }
        recalled += of_key;
        answered += of_query;
    }
    const float decay = shared.decays[kept];
    const float change = (value - recalled * unit.key * decay) * shared.betas[kept];
    shared.change[column] = unit.key * change;
    store_in_first_block(y,
                         fmaf(unit.product * unit.key * unit.query, change, answered * unit.query * decay));
}

template <unsigned SHARES>
__device__ inline void update(float4 *memory, const float *keys, float decay,
                              const step_memory<SHARES> &shared) {
    using shape = step_shape<SHARES>;
    const float4 change = reinterpret_cast<const float4 *>(shared.change)[threadIdx.x % shape::COLUMN_LANES];
#pragma unroll
    for (unsigned i = 0; i < shape::LOADS; i++) {
        const float key = keys[row_of<SHARES>(i / shape::EACH, i % shape::EACH)];
        const float4 m = memory[i];
        memory[i] = float4{fmaf(key, change.x, m.x * decay), fmaf(key, change.y, m.y * decay),
                           fmaf(key, change.z, m.z * decay), fmaf(key, change.w, m.w * decay)};
    }
}

} // namespace gb_cuda

#endif
