/* SPDX-License-Identifier: Apache-2.0
 *
 * A delta net's layer between its products, for generated tokens (delta_layer.h). Some blocks share a head of
 * a run's values: each has columns of its memory in registers, which are on their way before the kernel
 * before this one ends, because what they hold was written a step ago. Queries and keys are convolved by
 * every block that reads them; the last of these to have read their tail stores the new one. The first block
 * of a head collects its result, which is normalized as a whole. Convolution and activations are those of the
 * ops' own kernels; sums over a head have an order of their own.
 */
#include "run/cuda/device/cluster.cuh"
#include "run/cuda/device/prepared.cuh"
#include "run/cuda/device/row_ops.cuh"

extern "C" {
#include "run/cuda/delta_layer.h"
}

using namespace gb_cuda;

constexpr unsigned SIZE = GB_CUDA_DELTA_SIZE, WIDTH = GB_CUDA_DELTA_WIDTH, TAIL = WIDTH - 1;

enum part { QUERY, KEY, VALUE, PARTS };

/* A block of some that share a head. Its warps convolve 32 channels each; those of queries and keys then have
 * the memory: a thread four columns of some rows. Each of the last warps has something else to do. */
template <unsigned SHARES>
struct step_shape {
    static constexpr unsigned COLUMNS = SIZE / SHARES, UNIT_WARPS = SIZE / WARP;
    static constexpr unsigned MEMORY_WARPS = 2 * UNIT_WARPS, MEMORY_THREADS = MEMORY_WARPS * WARP;
    static constexpr unsigned DECAY_WARP = MEMORY_WARPS + COLUMNS / WARP, BETA_WARP = DECAY_WARP + 1,
                              LAST_WARP = DECAY_WARP + 2, THREADS = (LAST_WARP + 1) * WARP;
    static constexpr unsigned ROW_LANES = COLUMNS / 4, ROWS = WARP / ROW_LANES; /* of a warp's load */
    static constexpr unsigned LOADS = SIZE / (MEMORY_WARPS * ROWS);
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
    bool is_tiled;
    float *y;               /* [tokens, heads, SIZE] */
    prepared_rows prepared; /* of all heads as one row */
    uint32_t *arrivals;     /* [runs, key heads] */
};

/* What a block works on. */
struct step_place {
    size_t first, end; /* tokens */
    unsigned head, key_head, share;
};

template <unsigned SHARES>
struct step_memory {
    alignas(16) float rows[2][SIZE]; /* of the token's queries and keys, convolved */
    alignas(16) float gate[SIZE];
    alignas(16) float change[SIZE / SHARES];
    float recalled[step_shape<SHARES>::MEMORY_WARPS][SIZE / SHARES]; /* by warp: sums over its rows */
    float asked[step_shape<SHARES>::MEMORY_WARPS][SIZE / SHARES];
    float y[2][SIZE], weight[SIZE]; /* in the first block: the head's, of tokens by turns; its norm's */
    float squares[2][step_shape<SHARES>::UNIT_WARPS];
    float decay, beta, rate, bias;
    bool is_last; /* of the blocks that read the tail of the queries and keys */
};

template <unsigned SHARES>
__device__ static step_place place_of(const delta_step &v) {
    const unsigned run = v.first_run + blockIdx.y, head = blockIdx.x / SHARES;
    return step_place{(size_t)v.run_first[run], (size_t)v.run_first[run + 1], head,
                      v.is_tiled ? head % v.key_heads : head / (v.heads / v.key_heads), blockIdx.x % SHARES};
}

template <typename T>
__device__ static T *of_slot(T *state, size_t slot_bytes, int32_t slot) {
    return reinterpret_cast<T *>(reinterpret_cast<uint8_t *>(state) + (size_t)slot * slot_bytes);
}

/* ---- Convolution --------------------------------------------------------------------------------------- */

/* A thread's channel, what its x are multiplied by, and the last of these, oldest first. */
struct channel {
    size_t number;
    float4 taps;
    float before[TAIL];
};

/* The weights of channel c. */
__device__ static float4 load_taps(const void *weight, gb_dtype dtype, size_t c) {
    static_assert(WIDTH == 4, "a float4");
    if (dtype == GB_F32)
        return static_cast<const float4 *>(weight)[c];
    const uint2 all = static_cast<const uint2 *>(weight)[c];
    return float4{gb_widen_half((uint16_t)all.x, dtype), gb_widen_half((uint16_t)(all.x >> 16), dtype),
                  gb_widen_half((uint16_t)all.y, dtype), gb_widen_half((uint16_t)(all.y >> 16), dtype)};
}

template <unsigned SHARES>
__device__ static channel load_channel(const delta_step &v, const step_place &p) {
    using shape = step_shape<SHARES>;
    channel c = {};
    if (threadIdx.x < shape::MEMORY_THREADS)
        c.number = v.starts[threadIdx.x / SIZE] + p.key_head * SIZE + threadIdx.x % SIZE;
    else
        c.number =
            v.starts[VALUE] + p.head * SIZE + p.share * shape::COLUMNS + threadIdx.x - shape::MEMORY_THREADS;
    const float *tail = of_slot(v.tail, v.tail_slot_bytes, v.slots.from[p.first]);
    for (unsigned t = 0; t < TAIL; t++)
        c.before[t] = tail[t * v.channels + c.number];
    c.taps = load_taps(v.weight, v.weight_dtype, c.number);
    return c;
}

/* The sum goes from the oldest x to the newest. */
__device__ static float convolve(const delta_step &v, size_t n, channel &c) {
    const float x = v.x[n * v.channels + c.number];
    const float y = c.before[0] * c.taps.x + c.before[1] * c.taps.y + c.before[2] * c.taps.z + x * c.taps.w;
    for (unsigned t = 0; t + 1 < TAIL; t++)
        c.before[t] = c.before[t + 1];
    c.before[TAIL - 1] = x;
    return silu(y);
}

template <unsigned SHARES>
__device__ static void put_unit(float y, step_memory<SHARES> &shared) {
    const unsigned part = threadIdx.x / SIZE;
    shared.rows[part][threadIdx.x % SIZE] = y;
    const float squares = warp_sum(y * y);
    if (threadIdx.x % WARP == 0)
        shared.squares[part][threadIdx.x / WARP % step_shape<SHARES>::UNIT_WARPS] = squares;
}

__device__ static void store_tail(const delta_step &v, const step_place &p, const channel &c) {
    float *tail = of_slot(v.tail, v.tail_slot_bytes, v.slots.to[p.first]);
    for (unsigned t = 0; t < TAIL; t++)
        tail[t * v.channels + c.number] = c.before[t];
}

/* One thread counts this block, which has read the tail of its queries and keys; whether all have. */
__device__ static bool count_block(const delta_step &v, const step_place &p, unsigned shares) {
    uint32_t *counter = v.arrivals + blockIdx.y * v.key_heads + p.key_head;
    __threadfence();
    const bool is_last = atomicAdd(counter, 1u) == v.heads / v.key_heads * shares - 1;
    if (is_last)
        *counter = 0;
    __threadfence();
    return is_last;
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

template <unsigned SHARES>
__device__ static unsigned row_of(unsigned load) {
    using shape = step_shape<SHARES>;
    return (load * shape::MEMORY_WARPS + threadIdx.x / WARP) * shape::ROWS +
           threadIdx.x % WARP / shape::ROW_LANES;
}

/* Where a thread's columns begin in a row, in float4. */
template <unsigned SHARES>
__device__ static unsigned columns_of(unsigned share) {
    return share * step_shape<SHARES>::ROW_LANES + threadIdx.x % step_shape<SHARES>::ROW_LANES;
}

template <unsigned SHARES>
__device__ static float4 *rows_in(const delta_step &v, const step_place &p, int32_t slot) {
    return reinterpret_cast<float4 *>(of_slot(v.memory, v.memory_slot_bytes, slot)) +
           (size_t)p.head * SIZE * (SIZE / 4) + columns_of<SHARES>(p.share);
}

/* What the warp's rows give to the products of the memory with the key and the query. */
template <unsigned SHARES>
__device__ static void multiply(const float4 *memory, step_memory<SHARES> &shared) {
    using shape = step_shape<SHARES>;
    float recalled[4] = {}, asked[4] = {};
#pragma unroll
    for (unsigned i = 0; i < shape::LOADS; i++) {
        const unsigned row = row_of<SHARES>(i);
        const float key = shared.rows[KEY][row], query = shared.rows[QUERY][row];
        const float of_row[4] = {memory[i].x, memory[i].y, memory[i].z, memory[i].w};
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            recalled[c] = fmaf(key, of_row[c], recalled[c]);
            asked[c] = fmaf(query, of_row[c], asked[c]);
        }
    }
#pragma unroll
    for (unsigned c = 0; c < 4; c++) {
#pragma unroll
        for (unsigned distance = shape::ROW_LANES; distance < WARP; distance *= 2) {
            recalled[c] += __shfl_xor_sync(0xffffffffu, recalled[c], (int)distance);
            asked[c] += __shfl_xor_sync(0xffffffffu, asked[c], (int)distance);
        }
        if (threadIdx.x % WARP < shape::ROW_LANES) {
            const unsigned column = threadIdx.x % WARP * 4 + c;
            shared.recalled[threadIdx.x / WARP][column] = recalled[c];
            shared.asked[threadIdx.x / WARP][column] = asked[c];
        }
    }
}

/* What the token's query and key are multiplied by to be units, and their product as they are. */
struct unit_factors {
    float query, key, product;
};

template <unsigned SHARES>
__device__ static unit_factors find_factors(const delta_step &v, const step_memory<SHARES> &shared) {
    static_assert(SIZE == 4 * WARP, "a float4 a lane");
    const float4 q = reinterpret_cast<const float4 *>(shared.rows[QUERY])[threadIdx.x % WARP];
    const float4 k = reinterpret_cast<const float4 *>(shared.rows[KEY])[threadIdx.x % WARP];
    float squares[2];
    for (unsigned part = QUERY; part <= KEY; part++) {
        squares[part] = shared.squares[part][0];
        for (unsigned w = 1; w < step_shape<SHARES>::UNIT_WARPS; w++)
            squares[part] += shared.squares[part][w];
    }
    return unit_factors{norm_factor(v.unit[QUERY], squares[QUERY]), norm_factor(v.unit[KEY], squares[KEY]),
                        warp_sum(q.x * k.x + q.y * k.y + q.z * k.z + q.w * k.w)};
}

/* A column's change and result. Both products with the memory are those with what it held before: with S the
 * decayed memory, S' = S + key change^T and query^T S' = query^T S + (query key) change. */
template <unsigned SHARES>
__device__ static void change_column(unsigned column, float value, const unit_factors &unit, float *y,
                                     step_memory<SHARES> &shared) {
    float recalled = shared.recalled[0][column], asked = shared.asked[0][column];
#pragma unroll
    for (unsigned w = 1; w < step_shape<SHARES>::MEMORY_WARPS; w++) {
        recalled += shared.recalled[w][column];
        asked += shared.asked[w][column];
    }
    const float decay = shared.decay;
    const float change = (value - recalled * unit.key * decay) * shared.beta;
    shared.change[column] = unit.key * change;
    store_in_first_block(y, fmaf(unit.product * unit.key * unit.query, change, asked * unit.query * decay));
}

template <unsigned SHARES>
__device__ static void update(float4 *memory, const step_memory<SHARES> &shared) {
    using shape = step_shape<SHARES>;
    const float4 change = reinterpret_cast<const float4 *>(shared.change)[threadIdx.x % shape::ROW_LANES];
    const float decay = shared.decay;
#pragma unroll
    for (unsigned i = 0; i < shape::LOADS; i++) {
        const float key = shared.rows[KEY][row_of<SHARES>(i)];
        const float4 m = memory[i];
        memory[i] = float4{fmaf(key, change.x, m.x * decay), fmaf(key, change.y, m.y * decay),
                           fmaf(key, change.z, m.z * decay), fmaf(key, change.w, m.w * decay)};
    }
}

/* ---- Other warps --------------------------------------------------------------------------------------- */

/* What a step does not change. */
template <unsigned SHARES>
__device__ static void load_constants(const delta_step &v, const step_place &p, step_memory<SHARES> &shared) {
    const unsigned warp = threadIdx.x / WARP;
    if (warp == step_shape<SHARES>::DECAY_WARP) {
        shared.rate = load_float(v.rate, v.rate_dtype, p.head);
        shared.bias = load_float(v.bias, v.bias_dtype, p.head);
    }
    if (warp == step_shape<SHARES>::LAST_WARP && p.share == 0)
        for (unsigned i = threadIdx.x % WARP; i < SIZE; i += WARP)
            shared.weight[i] = v.norm.weight ? load_float(v.norm.weight, v.norm.dtype, i) : 0.0f;
}

template <unsigned SHARES>
__device__ static void load_token(const delta_step &v, const step_place &p, size_t n,
                                  step_memory<SHARES> &shared) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const size_t of_head = n * v.heads + p.head;
    if (warp == step_shape<SHARES>::DECAY_WARP) {
        shared.decay = delta_decay(v.decay[of_head], shared.rate, shared.bias);
    } else if (warp == step_shape<SHARES>::BETA_WARP) {
        shared.beta = sigmoid(v.beta[of_head]);
    } else if (p.share == 0) {
        const float4 x = reinterpret_cast<const float4 *>(v.gate + of_head * SIZE)[lane];
        reinterpret_cast<float4 *>(shared.gate)[lane] = float4{silu(x.x), silu(x.y), silu(x.z), silu(x.w)};
    }
}

/* Normalizes and gates the head's result, and prepares it for the product that follows: of the first block
 * the last warp. */
template <unsigned SHARES>
__device__ static void finish(const delta_step &v, const step_place &p, size_t n, const float *result,
                              const step_memory<SHARES> &shared) {
    constexpr unsigned EACH = 8, LANES = SIZE / EACH; /* a quarter of a unit a lane (prepared.cuh) */
    const unsigned lane = threadIdx.x % WARP, at = lane % LANES * EACH;
    const bool is_there = lane < LANES;
    float y[EACH], squares = 0;
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        y[i] = result[at + i];
        squares += y[i] * y[i];
    }
    const float factor = norm_factor(v.norm, warp_sum(is_there ? squares : 0.0f));
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        const float value = y[i] * factor;
        y[i] = (v.norm.weight ? value * (v.norm.weight_offset + shared.weight[at + i]) : value) *
               shared.gate[at + i];
    }
    if (is_there) {
        float4 *to = reinterpret_cast<float4 *>(v.y + (n * v.heads + p.head) * SIZE + at);
        to[0] = float4{y[0], y[1], y[2], y[3]};
        to[1] = float4{y[4], y[5], y[6], y[7]};
    }
    if (v.prepared.values)
        prepare_quarter(v.prepared, n, is_there ? p.head * LANES + lane : v.prepared.units * 4, y);
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

/* Head and share blockIdx.x of run blockIdx.y; the shares of a head are a cluster. */
template <unsigned SHARES>
static __global__ void __launch_bounds__(step_shape<SHARES>::THREADS, SHARES == 1 ? 1 : 3)
    run_delta_step(GB_GRID_CONSTANT delta_step v) {
    using shape = step_shape<SHARES>;
    __shared__ step_memory<SHARES> shared;
    arrive_in_cluster();
    const unsigned warp = threadIdx.x / WARP;
    const bool has_memory = warp < shape::MEMORY_WARPS, has_channel = warp < shape::DECAY_WARP,
               is_last_warp = warp == shape::LAST_WARP;
    const step_place p = place_of<SHARES>(v);
    channel mine = {};
    float4 memory[shape::LOADS];
    if (has_memory) {
        const float4 *from = rows_in<SHARES>(v, p, v.slots.from[p.first]);
#pragma unroll
        for (unsigned i = 0; i < shape::LOADS; i++)
            memory[i] = from[row_of<SHARES>(i) * (SIZE / 4)];
    }
    if (has_channel)
        mine = load_channel<SHARES>(v, p);
    load_constants(v, p, shared);
    wait_for_earlier();
    wait_for_cluster();
    for (size_t n = p.first; n < p.end; n++) {
        float *y = shared.y[n % 2], value = 0;
        unit_factors unit = {};
        if (has_channel)
            value = convolve(v, n, mine);
        if (has_memory)
            put_unit(value, shared);
        if (!has_channel)
            load_token(v, p, n, shared);
        __syncthreads();
        if (has_memory)
            multiply(memory, shared);
        else if (has_channel)
            unit = find_factors(v, shared);
        else if (n == p.first && threadIdx.x == shape::LAST_WARP * WARP)
            shared.is_last = count_block(v, p, SHARES);
        __syncthreads();
        if (has_channel && !has_memory) {
            const unsigned column = threadIdx.x - shape::MEMORY_THREADS;
            change_column(column, value, unit, &y[p.share * shape::COLUMNS + column], shared);
        }
        arrive_in_cluster();
        __syncthreads();
        if (has_memory)
            update(memory, shared);
        if (is_last_warp) {
            wait_for_cluster();
            if (p.share == 0)
                finish(v, p, n, y, shared);
        }
        if (n + 1 < p.end) {
            if (!is_last_warp)
                wait_for_cluster();
            __syncthreads();
        }
    }
    if (has_memory) {
        float4 *to = rows_in<SHARES>(v, p, v.slots.to[p.first]);
#pragma unroll
        for (unsigned i = 0; i < shape::LOADS; i++)
            to[row_of<SHARES>(i) * (SIZE / 4)] = memory[i];
    }
    if (has_channel && (!has_memory || shared.is_last))
        store_tail(v, p, mine);
    if (!is_last_warp)
        wait_for_cluster();
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

static size_t start_of(const gb_cuda_call *slice) {
    return (size_t)gb_node_int(slice->node, GB_ATTRIBUTE_START);
}

/* Everything but what is prepared. */
static delta_step step_of(const gb_cuda_delta_layer *l) {
    const gb_cuda_tensor *tail = l->convolution->operands[3], *memory = l->delta->operands[6];
    delta_step v = {};
    v.x = data_of<const float>(l->convolution->operands[0]);
    v.channels = l->convolution->operands[0]->dims[1];
    v.starts[QUERY] = start_of(l->query);
    v.starts[KEY] = start_of(l->key);
    v.starts[VALUE] = start_of(l->value);
    v.weight = l->convolution->operands[1]->data;
    v.weight_dtype = l->convolution->operands[1]->dtype;
    v.slots = gb_cuda_versions_of(l->delta, l->delta->operands[5]);
    v.run_first = l->delta->runs.first;
    v.tail = data_of<float>(tail);
    v.memory = data_of<float>(memory);
    v.tail_slot_bytes = tail->slot_bytes;
    v.memory_slot_bytes = memory->slot_bytes;
    v.decay = data_of<const float>(l->decay->operands[0]);
    v.rate = l->decay->operands[1]->data;
    v.rate_dtype = l->decay->operands[1]->dtype;
    v.bias = l->decay->operands[2]->data;
    v.bias_dtype = l->decay->operands[2]->dtype;
    v.beta = data_of<const float>(l->beta->operands[0]);
    v.gate = data_of<const float>(l->gate->operands[0]);
    v.unit[QUERY] = normalization_of(l->query_norm);
    v.unit[KEY] = normalization_of(l->key_norm);
    v.norm = normalization_of(l->norm);
    v.heads = (unsigned)memory->dims[0];
    v.key_heads = (unsigned)l->delta->operands[1]->dims[1];
    v.is_tiled = gb_node_int(l->delta->node, GB_ATTRIBUTE_TILED) != 0;
    v.y = data_of<float>(l->result->results[0]);
    v.arrivals = l->delta->scratch->arrivals;
    return v;
}

/* Whether the head's warp can round what the next product takes: groups within a head. */
static bool can_prepare(const gb_cuda_call *call, const delta_step &v) {
    if (!call->prepares || call->prepares_as->dims[call->prepares_as->rank - 1] != v.heads * SIZE)
        return false;
    const gb_cuda_tensor *weight = call->prepares_for;
    return !weight || !weight->takes_bytes || SIZE % weight->format.group == 0;
}

void gb_cuda_delta_step(const gb_cuda_delta_layer *layer) {
    delta_step v = step_of(layer);
    if (can_prepare(layer->result, v)) {
        v.prepared = gb_cuda_prepared_place(layer->result, layer->result->prepares_as);
        layer->result->scratch->prepared_from = layer->result->prepares_as;
    }
    constexpr unsigned SHARES = 4;
    const unsigned runs = layer->delta->runs.count, at_once = GB_CUDA_ARRIVALS / v.key_heads;
    for (; v.first_run < runs; v.first_run += at_once) {
        const unsigned count = runs - v.first_run < at_once ? runs - v.first_run : at_once;
        if (has_clusters())
            GB_LAUNCH_CLUSTERS(SHARES, run_delta_step<SHARES>, dim3(v.heads * SHARES, count),
                               step_shape<SHARES>::THREADS, layer->delta->stream, v);
        else
            GB_LAUNCH(run_delta_step<1>, dim3(v.heads, count), step_shape<1>::THREADS, 0,
                      layer->delta->stream, v);
    }
}
