/* SPDX-License-Identifier: Apache-2.0
 *
 * The two recurrences of a delta net: the causal convolution over a few tokens and the memory.
 */
#include "run/cuda/device/device.cuh"

using namespace gb_cuda;

enum { THREADS = 256 };

template <typename T>
__device__ static T *state_of(T *state, size_t slot_bytes, const int32_t *slots, size_t n) {
    return reinterpret_cast<T *>(reinterpret_cast<uint8_t *>(state) + (size_t)slots[n] * slot_bytes);
}

/* ---- Convolution --------------------------------------------------------------------------------------- */

struct convolution {
    const float *x;
    const void *weight; /* [channels, 1, width] */
    gb_dtype dtype;
    size_t channels, width, tokens;
    const int32_t *slots, *run_first;
    float *tail; /* [width - 1, channels] */
    size_t slot_bytes;
    float *y;
};

/* Moves the last width - 1 rows of tail and the x of tokens first .. end - 1 into tail: from old to new, so
 * that none is overwritten before it is moved. */
__device__ static void move_tail(const convolution &v, size_t first, size_t end, size_t c) {
    const size_t rows = v.width - 1, tokens = end - first;
    float *tail = state_of(v.tail, v.slot_bytes, v.slots, first);
    for (size_t r = 0; r < rows; r++) {
        const size_t from = r + tokens;
        tail[r * v.channels + c] =
            from < rows ? tail[from * v.channels + c] : v.x[(first + from - rows) * v.channels + c];
    }
}

/* The sum goes from the oldest x to the newest. A token that is alone in its run moves its tail, too. */
template <bool ALONE>
static __global__ void convolve(convolution v) {
    wait_for_earlier();
    const size_t n = blockIdx.y, c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c >= v.channels)
        return;
    const float *tail = state_of(v.tail, v.slot_bytes, v.slots, n);
    size_t before = 0; /* tokens of the run before n, as far as they matter */
    while (before + 1 < v.width && before < n && v.slots[n - before - 1] == v.slots[n])
        before++;
    float sum = 0;
    for (size_t w = 0; w < v.width; w++) {
        const size_t back = v.width - 1 - w;
        const float x = back <= before ? v.x[(n - back) * v.channels + c]
                                       : tail[(v.width - 1 + before - back) * v.channels + c];
        const float product = x * load_float(v.weight, v.dtype, c * v.width + w);
        sum = w == 0 ? product : sum + product;
    }
    v.y[n * v.channels + c] = sum;
    if (ALONE)
        move_tail(v, n, n + 1, c);
}

static __global__ void keep_tail(convolution v) {
    wait_for_earlier();
    const size_t c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c < v.channels)
        move_tail(v, (size_t)v.run_first[blockIdx.y], (size_t)v.run_first[blockIdx.y + 1], c);
}

void gb_cuda_causal_conv(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *weight = call->operands[1], *tail = call->operands[3];
    convolution v = {};
    v.x = data_of<const float>(x);
    v.weight = weight->data;
    v.dtype = weight->dtype;
    v.channels = x->dims[1];
    v.width = weight->dims[2];
    v.tokens = x->dims[0];
    v.slots = data_of<const int32_t>(call->operands[2]);
    v.run_first = call->runs.first;
    v.tail = data_of<float>(tail);
    v.slot_bytes = tail->slot_bytes;
    v.y = data_of<float>(call->results[0]);
    const unsigned across = blocks_for(v.channels, THREADS);
    const dim3 all(across, (unsigned)v.tokens), of_runs(across, call->runs.count);
    if (call->runs.count == v.tokens) {
        GB_LAUNCH(convolve<true>, all, THREADS, 0, call->stream, v);
        return;
    }
    GB_LAUNCH(convolve<false>, all, THREADS, 0, call->stream, v);
    GB_LAUNCH(keep_tail, of_runs, THREADS, 0, call->stream, v);
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* A block has COLUMNS columns of one head's memory, in shared memory, for all tokens of a run. SHARES threads
 * share a column's rows: row d is that of share d mod SHARES. */
enum { COLUMNS = 32, SHARES = 8 };

struct delta {
    const float *query, *key, *value, *decay, *beta;
    const int32_t *slots, *run_first;
    float *memory;
    size_t slot_bytes, heads, key_heads, key_size, value_size;
    bool is_tiled;
    float *y;
};

/* The sum over a column's shares, in order, for all of its threads. */
__device__ static float share_sum(float value, float *parts, unsigned column, unsigned share) {
    __syncthreads();
    parts[share * COLUMNS + column] = value;
    __syncthreads();
    float sum = 0;
    for (unsigned s = 0; s < SHARES; s++)
        sum += parts[s * COLUMNS + column];
    return sum;
}

static __global__ void __launch_bounds__(COLUMNS *SHARES) update_memory(delta v) {
    wait_for_earlier();
    GB_DYNAMIC_SHARED(float, shared);
    const size_t D = v.key_size, E = v.value_size, h = blockIdx.y;
    float *kept = shared, *key = kept + D * COLUMNS, *query = key + D, *parts = query + D;
    const unsigned column = threadIdx.x % COLUMNS, share = threadIdx.x / COLUMNS;
    const size_t e = (size_t)blockIdx.x * COLUMNS + column;
    const size_t first = (size_t)v.run_first[blockIdx.z], end = (size_t)v.run_first[blockIdx.z + 1];
    const size_t key_head = v.is_tiled ? h % v.key_heads : h / (v.heads / v.key_heads);
    float *memory = state_of(v.memory, v.slot_bytes, v.slots, first) + h * D * E;
    for (size_t d = share; d < D; d += SHARES)
        kept[d * COLUMNS + column] = e < E ? memory[d * E + e] : 0.0f;
    for (size_t n = first; n < end; n++) {
        const float decay = v.decay[n * v.heads + h], beta = v.beta[n * v.heads + h];
        const size_t key_at = (n * v.key_heads + key_head) * D;
        const size_t value_at = (n * v.heads + h) * E + e;
        __syncthreads();
        for (size_t d = threadIdx.x; d < D; d += COLUMNS * SHARES) {
            key[d] = v.key[key_at + d];
            query[d] = v.query[key_at + d];
        }
        __syncthreads();
        float recalled = 0, y = 0;
        for (size_t d = share; d < D; d += SHARES) {
            const float decayed = kept[d * COLUMNS + column] * decay;
            kept[d * COLUMNS + column] = decayed;
            recalled = fmaf(key[d], decayed, recalled);
        }
        recalled = share_sum(recalled, parts, column, share);
        const float change = ((e < E ? v.value[value_at] : 0.0f) - recalled) * beta;
        for (size_t d = share; d < D; d += SHARES) {
            const float changed = fmaf(key[d], change, kept[d * COLUMNS + column]);
            kept[d * COLUMNS + column] = changed;
            y = fmaf(query[d], changed, y);
        }
        y = share_sum(y, parts, column, share);
        if (share == 0 && e < E)
            v.y[value_at] = y;
    }
    for (size_t d = share; d < D && e < E; d += SHARES)
        memory[d * E + e] = kept[d * COLUMNS + column];
}

void gb_cuda_gated_delta(const gb_cuda_call *call) {
    const gb_cuda_tensor *key = call->operands[1], *value = call->operands[2], *memory = call->operands[6];
    delta v = {};
    v.query = data_of<const float>(call->operands[0]);
    v.key = data_of<const float>(key);
    v.value = data_of<const float>(value);
    v.decay = data_of<const float>(call->operands[3]);
    v.beta = data_of<const float>(call->operands[4]);
    v.slots = data_of<const int32_t>(call->operands[5]);
    v.run_first = call->runs.first;
    v.memory = data_of<float>(memory);
    v.slot_bytes = memory->slot_bytes;
    v.heads = value->dims[1];
    v.key_heads = key->dims[1];
    v.key_size = key->dims[2];
    v.value_size = value->dims[2];
    v.is_tiled = gb_node_int(call->node, GB_ATTRIBUTE_TILED) != 0;
    v.y = data_of<float>(call->results[0]);
    const dim3 grid(blocks_for(v.value_size, COLUMNS), (unsigned)v.heads, call->runs.count);
    const size_t shared_bytes = (v.key_size * (COLUMNS + 2) + COLUMNS * SHARES) * sizeof(float);
    GB_LAUNCH(update_memory, grid, COLUMNS * SHARES, shared_bytes, call->stream, v);
}
