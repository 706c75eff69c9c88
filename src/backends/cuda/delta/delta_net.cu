/* SPDX-License-Identifier: Apache-2.0
 *
 * The recurrences of a delta net for prefill: the causal convolution and the delta rule.
 */
#include "backends/cuda/device/tiles.cuh"

using namespace gb_cuda;

template <typename T>
__device__ static T *state_of(T *state, size_t slot_bytes, const int32_t *slots, size_t n) {
    return reinterpret_cast<T *>(reinterpret_cast<uint8_t *>(state) + (size_t)slots[n] * slot_bytes);
}

/* ---- Convolution --------------------------------------------------------------------------------------- */

constexpr unsigned CHANNELS = 128, FEWEST_TILE_TOKENS = 16;

struct convolution {
    const float *x;
    const void *weight; /* [channels, 1, width] */
    gb_dtype dtype;
    size_t channels, width;
    size_t tile; /* tokens of a block: width - 1 or more, so that the first tile alone reads the tail */
    gb_cuda_versions slots;
    const int32_t *run_first;
    float *tail; /* [width - 1, channels] */
    size_t slot_bytes;
    float *y;
};

/* Stores channel c of the tail after a token of the run: from old to new, so that in place no row is
 * overwritten before it is moved. */
__device__ static void store_tail(const convolution &v, const float *x, const float *tail, size_t token,
                                  size_t c, float *new_tail) {
    const size_t tail_rows = v.width - 1;
    for (size_t r = 0; r < tail_rows; r++) {
        const size_t row = r + token + 1; /* of the tail and x, one after the other */
        new_tail[r * v.channels + c] =
            row < tail_rows ? tail[row * v.channels + c] : x[(row - tail_rows) * v.channels + c];
    }
}

/* Stores it where the tokens leave it, where they read it last of all. */
__device__ static void store_tails(const convolution &v, const float *x, size_t first, size_t tokens,
                                   size_t c) {
    const int32_t *to = v.slots.to + first, from = v.slots.from[first];
    const float *tail = state_of(v.tail, v.slot_bytes, v.slots.from, first);
    for (int in_place = 0; in_place < 2; in_place++)
        for (size_t n = to[0] == to[tokens - 1] ? tokens - 1 : 0; n < tokens; n++)
            if ((n + 1 == tokens || to[n] != to[n + 1]) && (to[n] == from) == (in_place == 1))
                store_tail(v, x, tail, n, c, state_of(v.tail, v.slot_bytes, to, n));
}

/* A block has some channels of tile number blockIdx.y of run blockIdx.z. The sum goes from the oldest x to
 * the newest. */
static __global__ void __launch_bounds__(CHANNELS) run_causal_conv(convolution v) {
    wait_for_earlier();
    const size_t first = (size_t)v.run_first[blockIdx.z],
                 tokens = (size_t)v.run_first[blockIdx.z + 1] - first;
    const size_t c = (size_t)blockIdx.x * CHANNELS + threadIdx.x, tail_rows = v.width - 1;
    const size_t begin = blockIdx.y * v.tile, end = begin + v.tile < tokens ? begin + v.tile : tokens;
    if (c >= v.channels || begin >= tokens)
        return;
    const float *tail = state_of(v.tail, v.slot_bytes, v.slots.from, first);
    const float *x = v.x + first * v.channels;
    for (size_t n = begin; n < end; n++) {
        float sum = 0;
        for (size_t w = 0; w < v.width; w++) {
            const size_t row = n + w; /* of the tail and the run's x, one after the other */
            const float of_row =
                row < tail_rows ? tail[row * v.channels + c] : x[(row - tail_rows) * v.channels + c];
            const float product = of_row * load_float(v.weight, v.dtype, c * v.width + w);
            sum = w == 0 ? product : sum + product;
        }
        v.y[(first + n) * v.channels + c] = sum;
    }
    if (begin == 0)
        store_tails(v, x, first, tokens, c);
}

void gb_cuda_causal_conv(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *weight = call->operands[1], *tail = call->operands[3];
    convolution v = {};
    v.x = data_of<const float>(x);
    v.weight = weight->data;
    v.dtype = weight->dtype;
    v.channels = x->dims[1];
    v.width = weight->dims[2];
    v.tile = v.width > FEWEST_TILE_TOKENS ? v.width : (size_t)FEWEST_TILE_TOKENS;
    v.slots = gb_cuda_versions_of(call, call->operands[2]);
    v.run_first = call->runs.first;
    v.tail = data_of<float>(tail);
    v.slot_bytes = tail->slot_bytes;
    v.y = data_of<float>(call->results[0]);
    const dim3 grid(blocks_for(v.channels, CHANNELS), blocks_for(x->dims[0], v.tile), call->runs.count);
    add_launch(call->launches, "causal_conv", run_causal_conv, grid, CHANNELS, 0, v);
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* A block has COLUMNS columns of one head's memory, in registers, for all tokens of a run. PARTS neighbouring
 * lanes share PAIR columns: part p has rows 32 i + 4 p .. 32 i + 4 p + 3 of each step i. The next STAGED
 * tokens are in flight to shared memory while these are computed. */
constexpr unsigned COLUMNS = 32, PARTS = 8, PAIR = 2, THREADS = COLUMNS / PAIR * PARTS, STAGED = 16;
constexpr unsigned STEP_ROWS = 4 * PARTS, LANES_A_TOKEN = THREADS / STAGED;

struct delta {
    const float *query, *key, *value, *decay, *beta;
    gb_cuda_versions slots;
    const int32_t *run_first;
    float *memory;
    size_t slot_bytes, heads, key_heads, key_size, value_size;
    bool is_tiled;
    float *y;
};

/* Tokens of the block's head; zeros past a head's size. */
template <unsigned STEPS>
struct staged_tokens {
    static constexpr unsigned STRIDE = STEP_ROWS * STEPS + 8; /* against bank conflicts */
    float key[STAGED][STRIDE], query[STAGED][STRIDE], value[STAGED][COLUMNS];
    float decay[STAGED], beta[STAGED], product[STAGED]; /* of query and key */
};

/* What a block works on. */
struct delta_block {
    size_t first, end; /* tokens */
    size_t head, key_head, column;
};

__device__ static delta_block block_of(const delta &v) {
    const size_t head = blockIdx.y;
    return delta_block{(size_t)v.run_first[blockIdx.z], (size_t)v.run_first[blockIdx.z + 1], head,
                       v.is_tiled ? head % v.key_heads : head / (v.heads / v.key_heads),
                       (size_t)blockIdx.x * COLUMNS};
}

/* Starts copies of a row's floats; zeros from `size` on. */
__device__ static void stage_row(float *to, const float *from, unsigned count, unsigned size, unsigned lane) {
    if (size % 4 == 0) {
        for (unsigned i = lane * 4; i < count; i += LANES_A_TOKEN * 4)
            copy_16(to + i, from + (i < size ? i : 0), i < size);
    } else {
        for (unsigned i = lane; i < count; i += LANES_A_TOKEN)
            copy_4(to + i, from + (i < size ? i : 0), i < size);
    }
}

/* Starts copies of tokens n and following. */
template <unsigned STEPS>
__device__ static void stage(const delta &v, const delta_block &b, size_t n, staged_tokens<STEPS> &to) {
    const unsigned token = threadIdx.x / LANES_A_TOKEN, lane = threadIdx.x % LANES_A_TOKEN;
    n += token;
    if (n >= b.end)
        return;
    const size_t key_at = (n * v.key_heads + b.key_head) * v.key_size, of_head = n * v.heads + b.head;
    stage_row(to.key[token], v.key + key_at, STEP_ROWS * STEPS, (unsigned)v.key_size, lane);
    stage_row(to.query[token], v.query + key_at, STEP_ROWS * STEPS, (unsigned)v.key_size, lane);
    stage_row(to.value[token], v.value + of_head * v.value_size + b.column, COLUMNS,
              (unsigned)(v.value_size - b.column), lane);
    if (lane == 0)
        copy_4(&to.decay[token], &v.decay[of_head], true);
    if (lane == 1)
        copy_4(&to.beta[token], &v.beta[of_head], true);
}

/* The products of the staged tokens' queries and keys. */
template <unsigned STEPS>
__device__ static void multiply_staged(staged_tokens<STEPS> &tokens) {
    const unsigned token = threadIdx.x / LANES_A_TOKEN, lane = threadIdx.x % LANES_A_TOKEN;
    float sum = 0;
    for (unsigned d = lane; d < STEP_ROWS * STEPS; d += LANES_A_TOKEN)
        sum = fmaf(tokens.query[token][d], tokens.key[token][d], sum);
    for (unsigned distance = LANES_A_TOKEN / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, (int)distance);
    if (lane == 0)
        tokens.product[token] = sum;
}

/* The sum over a column's parts, in all of them. */
__device__ static float part_sum(float sum) {
    for (unsigned distance = 1; distance < PARTS; distance *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, (int)distance);
    return sum;
}

/* A lane's rows of a token's key and query. */
template <unsigned STEPS>
struct token_rows {
    float key[STEPS][4], query[STEPS][4];
};

template <unsigned STEPS>
__device__ static token_rows<STEPS> load_rows(const staged_tokens<STEPS> &tokens, unsigned token) {
    token_rows<STEPS> rows;
#pragma unroll
    for (unsigned i = 0; i < STEPS; i++) {
        const unsigned at = i * STEP_ROWS + threadIdx.x % PARTS * 4;
        const float4 key = *reinterpret_cast<const float4 *>(&tokens.key[token][at]);
        const float4 query = *reinterpret_cast<const float4 *>(&tokens.query[token][at]);
        const float of_key[4] = {key.x, key.y, key.z, key.w};
        const float of_query[4] = {query.x, query.y, query.z, query.w};
#pragma unroll
        for (unsigned r = 0; r < 4; r++) {
            rows.key[i][r] = of_key[r];
            rows.query[i][r] = of_query[r];
        }
    }
    return rows;
}

/* One token: both products with the memory are computed from its value before the token. With S the decayed
 * memory, S' = S + key change^T and query^T S' = query^T S + (query key) change. Where nothing is corrected
 * no token waits for the sums of the one before. */
template <unsigned STEPS, bool CORRECTS>
__device__ static void update(float memory[STEPS][4][PAIR], const token_rows<STEPS> &rows,
                              const staged_tokens<STEPS> &tokens, unsigned token, float y[PAIR]) {
    const float decay = tokens.decay[token], beta = tokens.beta[token], product = tokens.product[token];
    float recalled[2][PAIR] = {}, answered[2][PAIR] = {}, change[PAIR]; /* of even and odd rows */
#pragma unroll
    for (unsigned i = 0; i < STEPS * 4; i++) {
#pragma unroll
        for (unsigned c = 0; c < PAIR; c++) {
            if (CORRECTS)
                recalled[i % 2][c] =
                    fmaf(rows.key[i / 4][i % 4], memory[i / 4][i % 4][c], recalled[i % 2][c]);
            answered[i % 2][c] = fmaf(rows.query[i / 4][i % 4], memory[i / 4][i % 4][c], answered[i % 2][c]);
        }
    }
#pragma unroll
    for (unsigned c = 0; c < PAIR; c++) {
        const float recall = CORRECTS ? part_sum(recalled[0][c] + recalled[1][c]) * decay : 0.0f;
        const float answer = part_sum(answered[0][c] + answered[1][c]) * decay;
        change[c] = (tokens.value[token][threadIdx.x / PARTS * PAIR + c] - recall) * beta;
        y[c] = fmaf(product, change[c], answer);
    }
#pragma unroll
    for (unsigned i = 0; i < STEPS * 4; i++)
#pragma unroll
        for (unsigned c = 0; c < PAIR; c++)
            memory[i / 4][i % 4][c] =
                fmaf(rows.key[i / 4][i % 4], change[c], memory[i / 4][i % 4][c] * decay);
}

/* Where a lane's row of step i / 4 has its pair of elements, of the head's memory [key size, value size]. */
template <typename T>
__device__ static T *pair_in(const delta &v, const delta_block &b, T *state, unsigned i) {
    const size_t row = i / 4 * STEP_ROWS + threadIdx.x % PARTS * 4 + i % 4;
    const size_t column = b.column + threadIdx.x / PARTS * PAIR;
    return row < v.key_size && column < v.value_size ? state + row * v.value_size + column : nullptr;
}

/* Whether pairs are whole and can be moved at once. */
__device__ static bool has_whole_pairs(const delta &v) {
    static_assert(PAIR == 2, "a float2");
    return v.value_size % 2 == 0;
}

template <unsigned STEPS>
__device__ static void load_memory(const delta &v, const delta_block &b, const float *state,
                                   float memory[STEPS][4][PAIR]) {
    const bool whole = has_whole_pairs(v);
#pragma unroll
    for (unsigned i = 0; i < STEPS * 4; i++) {
        const float *from = pair_in(v, b, state, i);
        float2 pair = {0, 0};
        if (from && whole)
            pair = *reinterpret_cast<const float2 *>(from);
        else if (from)
            pair = float2{from[0], b.column + threadIdx.x / PARTS * PAIR + 1 < v.value_size ? from[1] : 0.0f};
        memory[i / 4][i % 4][0] = pair.x;
        memory[i / 4][i % 4][1] = pair.y;
    }
}

template <unsigned STEPS>
__device__ static void store_memory(const delta &v, const delta_block &b, float *state,
                                    const float memory[STEPS][4][PAIR]) {
    const bool whole = has_whole_pairs(v);
#pragma unroll
    for (unsigned i = 0; i < STEPS * 4; i++) {
        float *to = pair_in(v, b, state, i);
        const float2 pair = {memory[i / 4][i % 4][0], memory[i / 4][i % 4][1]};
        if (to && whole)
            *reinterpret_cast<float2 *>(to) = pair;
        else if (to)
            to[0] = pair.x;
        if (to && !whole && b.column + threadIdx.x / PARTS * PAIR + 1 < v.value_size)
            to[1] = pair.y;
    }
}

/* The states of a block's head that slots number. */
__device__ static float *head_state(const delta &v, const delta_block &b, const int32_t *slots, size_t n) {
    return state_of(v.memory, v.slot_bytes, slots, n) + b.head * v.key_size * v.value_size;
}

/* The staged tokens one after the other; a token's rows are read while the one before it is computed.
 * has_versions: some tokens leave the memory where those behind them do not. */
template <unsigned STEPS, bool CORRECTS>
__device__ static void update_staged(const delta &v, const delta_block &b, size_t n,
                                     const staged_tokens<STEPS> &tokens, bool has_versions,
                                     float memory[STEPS][4][PAIR]) {
    const unsigned count = b.end - n < STAGED ? (unsigned)(b.end - n) : STAGED;
    const size_t column = b.column + threadIdx.x / PARTS * PAIR;
    float *to = v.y + (n * v.heads + b.head) * v.value_size + column;
    token_rows<STEPS> rows = load_rows<STEPS>(tokens, 0);
#pragma unroll 2
    for (unsigned token = 0; token < count; token++, to += v.heads * v.value_size) {
        const token_rows<STEPS> next = load_rows<STEPS>(tokens, token + 1 < STAGED ? token + 1 : 0);
        float y[PAIR];
        update<STEPS, CORRECTS>(memory, rows, tokens, token, y);
#pragma unroll
        for (unsigned c = 0; c < PAIR; c++)
            if (threadIdx.x % PARTS == c && column + c < v.value_size)
                to[c] = y[c];
        const size_t at = n + token;
        if (has_versions && at + 1 < b.end && v.slots.to[at] != v.slots.to[at + 1])
            store_memory<STEPS>(v, b, head_state(v, b, v.slots.to, at), memory);
        rows = next;
    }
}

template <unsigned STEPS, bool CORRECTS>
static __global__ void __launch_bounds__(THREADS, 1) run_gated_delta(delta v) {
    wait_for_earlier();
    GB_DYNAMIC_SHARED(staged_tokens<STEPS>, staged);
    const delta_block b = block_of(v);
    const bool has_versions = v.slots.to[b.first] != v.slots.to[b.end - 1];
    float memory[STEPS][4][PAIR];
    stage<STEPS>(v, b, b.first, staged[0]);
    commit_copies();
    load_memory<STEPS>(v, b, head_state(v, b, v.slots.from, b.first), memory);
    unsigned turn = 0;
    for (size_t n = b.first; n < b.end; n += STAGED, turn ^= 1) {
        stage<STEPS>(v, b, n + STAGED, staged[turn ^ 1]);
        commit_copies();
        wait_for_copies<1>();
        __syncthreads();
        multiply_staged<STEPS>(staged[turn]);
        __syncthreads();
        update_staged<STEPS, CORRECTS>(v, b, n, staged[turn], has_versions, memory);
        __syncthreads();
    }
    store_memory<STEPS>(v, b, head_state(v, b, v.slots.to, b.end - 1), memory);
}

template <unsigned STEPS>
static void launch_update(const delta &v, bool corrects, unsigned runs, gb_cuda_launch_list *launches) {
    const dim3 grid(blocks_for(v.value_size, COLUMNS), (unsigned)v.heads, runs);
    /* More rows than the steps have are more than a block can hold: no device launches that. */
    const size_t shared_bytes = 2 * sizeof(staged_tokens<STEPS>) * blocks_for(v.key_size, STEP_ROWS * STEPS);
    const auto kernel = corrects ? run_gated_delta<STEPS, true> : run_gated_delta<STEPS, false>;
    add_launch(launches, "gated_delta", kernel, grid, THREADS, shared_bytes, v);
}

void gb_cuda_gated_delta(const gb_cuda_call *call) {
    const gb_cuda_tensor *key = call->operands[1], *value = call->operands[2], *memory = call->operands[6];
    delta v = {};
    v.query = data_of<const float>(call->operands[0]);
    v.key = data_of<const float>(key);
    v.value = data_of<const float>(value);
    v.decay = data_of<const float>(call->operands[3]);
    v.beta = data_of<const float>(call->operands[4]);
    v.slots = gb_cuda_versions_of(call, call->operands[5]);
    v.run_first = call->runs.first;
    v.memory = data_of<float>(memory);
    v.slot_bytes = memory->slot_bytes;
    v.heads = value->dims[1];
    v.key_heads = key->dims[1];
    v.key_size = key->dims[2];
    v.value_size = value->dims[2];
    v.is_tiled = gb_node_int(call->node, GB_ATTRIBUTE_TILED) != 0;
    v.y = data_of<float>(call->results[0]);
    const bool corrects = gb_node_int(call->node, GB_ATTRIBUTE_CORRECTS) != 0;
    if (v.key_size <= 128)
        launch_update<128 / STEP_ROWS>(v, corrects, call->runs.count, call->launches);
    else
        launch_update<512 / STEP_ROWS>(v, corrects, call->runs.count, call->launches);
}
