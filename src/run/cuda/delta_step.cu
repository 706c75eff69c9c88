/* SPDX-License-Identifier: Apache-2.0
 *
 * A delta net's layer between its products, for generated tokens (delta_layer.h). A block has a head of a
 * run's values with its whole memory in registers, which are on their way before the kernel before this one
 * ends: what they hold was written a step ago. Queries and keys are convolved by every block that reads them;
 * the last of these to have read their tail stores the new one. Convolution and activations are those of the
 * ops' own kernels; sums over a head have an order of their own.
 */
#include "run/cuda/device/prepared.cuh"
#include "run/cuda/device/row_ops.cuh"

extern "C" {
#include "run/cuda/delta_layer.h"
}

using namespace gb_cuda;

constexpr unsigned SIZE = GB_CUDA_DELTA_SIZE, WIDTH = GB_CUDA_DELTA_WIDTH, TAIL = WIDTH - 1;
constexpr unsigned THREADS = 512, WARPS = THREADS / WARP, ROWS = SIZE / WARPS;
static_assert(SIZE == 4 * WARP && ROWS == 8, "a warp has rows of a memory, a lane four columns of each");

/* What a quarter of the block's warps convolves: a channel a thread. The last quarter's warps have something
 * else to do each. */
enum part { QUERY, KEY, VALUE, PARTS };
constexpr unsigned PART_WARPS = SIZE / WARP, DECAY_WARP = PARTS * PART_WARPS, BETA_WARP = DECAY_WARP + 1,
                   COUNTING_WARP = DECAY_WARP + 2, FINISHING_WARP = DECAY_WARP + 3;

struct delta_step {
    const float *x; /* [tokens, channels] */
    size_t channels, starts[PARTS];
    const void *weight; /* of the convolution: [channels, 1, WIDTH] */
    gb_dtype weight_dtype;
    const int32_t *from, *to, *run_first; /* by token: the slots that are read and written */
    float *tail, *memory;                 /* of slot 0 */
    size_t slot_bytes;
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
    unsigned head, key_head;
};

struct step_memory {
    float4 taps[PARTS * SIZE]; /* by thread: what its channel's x are multiplied by */
    alignas(16) float gate[SIZE];
    alignas(16) float recalled[WARPS][SIZE], asked[WARPS][SIZE]; /* by warp: sums over its rows, */
    alignas(16) float change[SIZE];
    float product[WARPS];    /* likewise */
    float rows[PARTS][SIZE]; /* of the token, convolved */
    float squares[2][PART_WARPS], factors[2];
    float decay, beta, rate, bias;
    float y[SIZE], weight[SIZE]; /* of the head, and of its norm */
    bool is_last;                /* of the blocks that read the tail of the queries and keys */
};

__device__ static step_place place_of(const delta_step &v) {
    const unsigned run = v.first_run + blockIdx.y, head = blockIdx.x;
    return step_place{(size_t)v.run_first[run], (size_t)v.run_first[run + 1], head,
                      v.is_tiled ? head % v.key_heads : head / (v.heads / v.key_heads)};
}

template <typename T>
__device__ static T *of_slot(T *state, size_t slot_bytes, int32_t slot) {
    return reinterpret_cast<T *>(reinterpret_cast<uint8_t *>(state) + (size_t)slot * slot_bytes);
}

/* ---- Convolution --------------------------------------------------------------------------------------- */

/* A thread's channel and its last x, oldest first. */
struct channel {
    size_t number;
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

__device__ static channel load_channel(const delta_step &v, const step_place &p, unsigned part,
                                       step_memory &shared) {
    channel c = {};
    if (part >= PARTS)
        return c;
    c.number = v.starts[part] + (part == VALUE ? p.head : p.key_head) * SIZE + threadIdx.x % SIZE;
    const float *tail = of_slot(v.tail, v.slot_bytes, v.from[p.first]);
    for (unsigned t = 0; t < TAIL; t++)
        c.before[t] = tail[t * v.channels + c.number];
    shared.taps[threadIdx.x] = load_taps(v.weight, v.weight_dtype, c.number);
    return c;
}

/* The sum goes from the oldest x to the newest. */
__device__ static void convolve(const delta_step &v, size_t n, unsigned part, channel &c,
                                step_memory &shared) {
    const float x = v.x[n * v.channels + c.number];
    const float4 taps = shared.taps[threadIdx.x];
    const float y = silu(c.before[0] * taps.x + c.before[1] * taps.y + c.before[2] * taps.z + x * taps.w);
    for (unsigned t = 0; t + 1 < TAIL; t++)
        c.before[t] = c.before[t + 1];
    c.before[TAIL - 1] = x;
    shared.rows[part][threadIdx.x % SIZE] = y;
    if (part == VALUE)
        return;
    const float squares = warp_sum(y * y);
    if (threadIdx.x % WARP == 0)
        shared.squares[part][threadIdx.x / WARP % PART_WARPS] = squares;
}

__device__ static void store_tail(const delta_step &v, const step_place &p, const channel &c) {
    float *tail = of_slot(v.tail, v.slot_bytes, v.to[p.first]);
    for (unsigned t = 0; t < TAIL; t++)
        tail[t * v.channels + c.number] = c.before[t];
}

/* Counts this block, which has read the tail of its queries and keys. */
__device__ static void count_block(const delta_step &v, const step_place &p, step_memory &shared) {
    if (threadIdx.x != COUNTING_WARP * WARP)
        return;
    uint32_t *counter = v.arrivals + blockIdx.y * v.key_heads + p.key_head;
    __threadfence();
    shared.is_last = atomicAdd(counter, 1u) == v.heads / v.key_heads - 1;
    if (shared.is_last)
        *counter = 0;
    __threadfence();
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* What the warp's rows give to query, key and memory's products. */
__device__ static void multiply(const float4 memory[ROWS], step_memory &shared) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    float4 recalled = {0, 0, 0, 0}, asked = {0, 0, 0, 0};
    float product = 0;
#pragma unroll
    for (unsigned i = 0; i < ROWS; i++) {
        const float key = shared.rows[KEY][warp * ROWS + i], query = shared.rows[QUERY][warp * ROWS + i];
        const float4 m = memory[i];
        recalled = float4{fmaf(key, m.x, recalled.x), fmaf(key, m.y, recalled.y), fmaf(key, m.z, recalled.z),
                          fmaf(key, m.w, recalled.w)};
        asked = float4{fmaf(query, m.x, asked.x), fmaf(query, m.y, asked.y), fmaf(query, m.z, asked.z),
                       fmaf(query, m.w, asked.w)};
        product = fmaf(query, key, product);
    }
    reinterpret_cast<float4 *>(shared.recalled[warp])[lane] = recalled;
    reinterpret_cast<float4 *>(shared.asked[warp])[lane] = asked;
    if (lane == 0)
        shared.product[warp] = product;
}

/* What queries and keys are multiplied by. */
__device__ static void find_factor(const delta_step &v, unsigned part, step_memory &shared) {
    float squares = shared.squares[part][0];
    for (unsigned w = 1; w < PART_WARPS; w++)
        squares += shared.squares[part][w];
    shared.factors[part] = norm_factor(v.unit[part], squares);
}

/* A column's change and result. Both products with the memory are those with what it held before: with S the
 * decayed memory, S' = S + key change^T and query^T S' = query^T S + (query key) change. */
__device__ static void change_column(unsigned column, step_memory &shared) {
    float recalled = shared.recalled[0][column], asked = shared.asked[0][column], product = shared.product[0];
#pragma unroll
    for (unsigned w = 1; w < WARPS; w++) {
        recalled += shared.recalled[w][column];
        asked += shared.asked[w][column];
        product += shared.product[w];
    }
    const float of_key = shared.factors[KEY], of_query = shared.factors[QUERY], decay = shared.decay;
    const float change = (shared.rows[VALUE][column] - recalled * of_key * decay) * shared.beta;
    shared.y[column] = fmaf(product * of_key * of_query, change, asked * of_query * decay);
    shared.change[column] = of_key * change;
}

__device__ static void update(float4 memory[ROWS], const step_memory &shared) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const float4 change = reinterpret_cast<const float4 *>(shared.change)[lane];
    const float decay = shared.decay;
#pragma unroll
    for (unsigned i = 0; i < ROWS; i++) {
        const float key = shared.rows[KEY][warp * ROWS + i];
        const float4 m = memory[i];
        memory[i] = float4{fmaf(key, change.x, m.x * decay), fmaf(key, change.y, m.y * decay),
                           fmaf(key, change.z, m.z * decay), fmaf(key, change.w, m.w * decay)};
    }
}

/* ---- Decay ----------------------------------------------------------------------------------------------
 */

__device__ static void load_constants(const delta_step &v, const step_place &p, unsigned warp,
                                      step_memory &shared) {
    const unsigned lane = threadIdx.x % WARP;
    if (warp == DECAY_WARP) {
        shared.rate = load_float(v.rate, v.rate_dtype, p.head);
        shared.bias = load_float(v.bias, v.bias_dtype, p.head);
    }
    if (warp == FINISHING_WARP)
        for (unsigned i = lane; i < SIZE; i += WARP)
            shared.weight[i] = v.norm.weight ? load_float(v.norm.weight, v.norm.dtype, i) : 0.0f;
}

/* ---- Result -------------------------------------------------------------------------------------------- */

constexpr unsigned EACH = 8, FINISHING_LANES = SIZE / EACH; /* a quarter of a unit a lane (prepared.cuh) */

__device__ static void load_gate(const delta_step &v, const step_place &p, size_t n, step_memory &shared) {
    const unsigned lane = threadIdx.x % WARP;
    const float4 x = reinterpret_cast<const float4 *>(v.gate + (n * v.heads + p.head) * SIZE)[lane];
    reinterpret_cast<float4 *>(shared.gate)[lane] = float4{silu(x.x), silu(x.y), silu(x.z), silu(x.w)};
}

/* Normalizes and gates the head's result, and prepares it for the product that follows. */
__device__ static void finish(const delta_step &v, const step_place &p, size_t n, const step_memory &shared) {
    const unsigned lane = threadIdx.x % WARP, at = lane % FINISHING_LANES * EACH;
    const bool is_there = lane < FINISHING_LANES;
    float y[EACH], squares = 0;
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        y[i] = shared.y[at + i];
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
        prepare_quarter(v.prepared, n, is_there ? p.head * FINISHING_LANES + lane : v.prepared.units * 4, y);
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

/* Head blockIdx.x of run blockIdx.y. */
static __global__ void __launch_bounds__(THREADS, 2) run_delta_step(GB_GRID_CONSTANT delta_step v) {
    __shared__ step_memory shared;
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, part = warp / PART_WARPS;
    const step_place p = place_of(v);
    const size_t at = (p.head * SIZE + warp * ROWS) * SIZE / 4 + lane; /* in the memory's float4 */
    channel mine = load_channel(v, p, part, shared);
    float4 memory[ROWS];
    const float4 *from = reinterpret_cast<const float4 *>(of_slot(v.memory, v.slot_bytes, v.from[p.first]));
#pragma unroll
    for (unsigned i = 0; i < ROWS; i++)
        memory[i] = from[at + i * (SIZE / 4)];
    load_constants(v, p, warp, shared);
    wait_for_earlier();
    for (size_t n = p.first; n < p.end; n++) {
        if (part < PARTS)
            convolve(v, n, part, mine, shared);
        else if (warp == FINISHING_WARP)
            load_gate(v, p, n, shared);
        else if (warp == DECAY_WARP)
            shared.decay = delta_decay(v.decay[n * v.heads + p.head], shared.rate, shared.bias);
        else if (warp == BETA_WARP)
            shared.beta = sigmoid(v.beta[n * v.heads + p.head]);
        __syncthreads();
        if (warp == DECAY_WARP || warp == BETA_WARP)
            find_factor(v, warp - DECAY_WARP, shared);
        if (n == p.first)
            count_block(v, p, shared);
        multiply(memory, shared);
        __syncthreads();
        if (threadIdx.x < SIZE)
            change_column(threadIdx.x, shared);
        __syncthreads();
        if (warp == FINISHING_WARP)
            finish(v, p, n, shared);
        update(memory, shared);
        if (n + 1 < p.end)
            __syncthreads();
    }
    if (part == VALUE || (part < PARTS && shared.is_last))
        store_tail(v, p, mine);
    float4 *to = reinterpret_cast<float4 *>(of_slot(v.memory, v.slot_bytes, v.to[p.first]));
#pragma unroll
    for (unsigned i = 0; i < ROWS; i++)
        to[at + i * (SIZE / 4)] = memory[i];
}

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
    v.from = v.to = data_of<const int32_t>(l->delta->operands[5]);
    v.run_first = l->delta->runs.first;
    v.tail = data_of<float>(tail);
    v.memory = data_of<float>(memory);
    v.slot_bytes = memory->slot_bytes;
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
    const unsigned runs = layer->delta->runs.count, at_once = GB_CUDA_ARRIVALS / v.key_heads;
    for (; v.first_run < runs; v.first_run += at_once) {
        const unsigned count = runs - v.first_run < at_once ? runs - v.first_run : at_once;
        GB_LAUNCH(run_delta_step, dim3(v.heads, count), THREADS, 0, layer->delta->stream, v);
    }
}
