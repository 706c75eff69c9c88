/* SPDX-License-Identifier: Apache-2.0
 *
 * The delta net of a decode step, in one launch: convolution, norms, decay, the delta rule, output norm and
 * gate. On Hopper four blocks, a cluster, share a head of a run where runs are few, otherwise one has it;
 * each has columns of its memory in registers, prefetched before earlier kernels end, because the last step
 * wrote them. Queries and keys are convolved by every block that reads them; the last to read their tail
 * stores the new one, and the head's first block normalizes its result. Convolution and activations have the
 * bits of the ops' own kernels; sums over a head have an order of their own.
 */
#include "backends/cuda/delta/delta_chunks.cuh"
#include "backends/cuda/lowering/activations.h"

using namespace gb_cuda;

enum { BLOCKS_AT_ONCE = 2 /* on a multiprocessor */ };

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

/* What one of these warps takes of a token: a number of the head's for all lanes, or the gate's columns. */
template <unsigned SHARES>
__device__ static float4 load_token(const delta_step &v, const step_place &p, size_t n) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const size_t of_head = n * v.heads + p.head;
    if (warp == step_shape<SHARES>::DECAY_WARP)
        return float4{v.decay[of_head], 0, 0, 0};
    if (warp == step_shape<SHARES>::BETA_WARP)
        return float4{v.beta[of_head], 0, 0, 0};
    return reinterpret_cast<const float4 *>(v.gate + of_head * SIZE)[lane];
}

template <unsigned SHARES>
__device__ static void activate(float4 &of_token, step_memory<SHARES> &shared) {
    const unsigned warp = threadIdx.x / WARP;
    if (warp == step_shape<SHARES>::DECAY_WARP)
        shared.decay = delta_decay(of_token.x, shared.rate, shared.bias);
    else if (warp == step_shape<SHARES>::BETA_WARP)
        shared.beta = sigmoid(of_token.x);
    else
        of_token = float4{silu(of_token.x), silu(of_token.y), silu(of_token.z), silu(of_token.w)};
}

/* Normalizes and gates the head's result, and prepares it for the product that follows: of the first block
 * the last warp. */
template <unsigned SHARES>
__device__ static void finish(const delta_step &v, const step_place &p, size_t n, const float *result,
                              const float4 &gate, const step_memory<SHARES> &shared) {
    const unsigned lane = threadIdx.x % WARP;
    const float4 of_head = reinterpret_cast<const float4 *>(result)[lane];
    const float4 weight = reinterpret_cast<const float4 *>(shared.weight)[lane];
    float y[4] = {of_head.x, of_head.y, of_head.z, of_head.w};
    const float weights[4] = {weight.x, weight.y, weight.z, weight.w};
    const float gates[4] = {gate.x, gate.y, gate.z, gate.w};
    const float squares = (y[0] * y[0] + y[1] * y[1]) + (y[2] * y[2] + y[3] * y[3]);
    const float factor = norm_factor(v.norm, warp_sum(squares));
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const float value = y[i] * factor;
        y[i] = (v.norm.weight ? value * (v.norm.weight_offset + weights[i]) : value) * gates[i];
    }
    reinterpret_cast<float4 *>(v.y + (n * v.heads + p.head) * SIZE)[lane] = float4{y[0], y[1], y[2], y[3]};
    if (v.prepared.values)
        prepare_four(v.prepared, n, p.head * SIZE + lane * 4, true, y);
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

/* What a warp has. */
struct step_role {
    bool memory, unit, value, other, last;
};

template <unsigned SHARES>
__device__ static step_role role_of_warp() {
    using shape = step_shape<SHARES>;
    const unsigned warp = threadIdx.x / WARP;
    return step_role{warp < shape::MEMORY_WARPS, warp < shape::UNIT_WARPS,
                     warp >= shape::UNIT_WARPS && warp < shape::DECAY_WARP,
                     warp >= shape::DECAY_WARP && warp <= shape::LAST_WARP, warp == shape::LAST_WARP};
}

/* Token n. */
template <unsigned SHARES>
__device__ static void step(const delta_step &v, const step_place &p, const step_role &has, size_t n,
                            channel &mine, float4 *memory, step_memory<SHARES> &shared) {
    using shape = step_shape<SHARES>;
    float *y = shared.y[n % 2], value = 0;
    float4 of_token = {};
    unit_factors unit = {};
    if (has.unit || has.value)
        value = convolve(v, n, mine);
    if (has.unit)
        put_unit(value, shared);
    if (has.other)
        of_token = load_token<SHARES>(v, p, n);
    __syncthreads();
    const bool counts = n == p.first && threadIdx.x == shape::BETA_WARP * WARP;
    const uint32_t others = counts ? count_block(v, p) : 0;
    if (n == p.first)
        prefetch_later<SHARES>(v);
    if (has.memory)
        multiply(memory, shared);
    if (has.value)
        unit = find_factors(v, shared);
    if (has.other)
        activate(of_token, shared);
    __syncthreads();
    if (has.value) {
        const unsigned column = threadIdx.x - 2 * SIZE;
        change_column(column, value, unit, &y[p.share * shape::COLUMNS + column], shared);
    }
    let_next_begin();
    arrive_in_cluster();
    __syncthreads();
    if (has.last) {
        wait_for_cluster();
        if (p.share == 0)
            finish(v, p, n, y, of_token, shared);
    }
    if (counts)
        shared.is_last = is_last_of(v, p, others, SHARES);
    if (has.memory)
        update(memory, shared);
}

/* Stores what no other block reads of the states, as it is after token n. */
template <unsigned SHARES>
__device__ static void store_own(const delta_step &v, const step_place &p, const step_role &has, size_t n,
                                 const channel &mine, const float4 *memory) {
    if (has.memory)
        store_memory<SHARES>(v, p, n, memory);
    if (has.value)
        store_tail(v, n, mine);
}

/* Stores the tail of queries and keys, in the last block that has read it. */
template <unsigned SHARES>
__device__ static void store_shared(const delta_step &v, const step_role &has, size_t n, const channel &mine,
                                    const step_memory<SHARES> &shared) {
    if (has.unit && shared.is_last)
        store_tail(v, n, mine);
}

/* Head and share blockIdx.x of run blockIdx.y; the shares of a head are a cluster. */
template <unsigned SHARES>
static __global__ void __launch_bounds__(step_shape<SHARES>::THREADS, BLOCKS_AT_ONCE)
    run_delta_step(GB_GRID_CONSTANT delta_step v) {
    __shared__ step_memory<SHARES> shared;
    arrive_in_cluster();
    const step_role has = role_of_warp<SHARES>();
    const step_place p = place_of<SHARES>(v);
    channel mine = {};
    float4 memory[step_shape<SHARES>::LOADS];
    if (has.memory)
        load_memory<SHARES>(v, p, memory);
    if (has.unit || has.value)
        mine = load_channel<SHARES>(v, p);
    load_constants(v, p, shared);
    fetch_parameters(v);
    wait_for_earlier();
    wait_for_cluster();
    for (size_t n = p.first; n < p.end; n++) {
        if (n > p.first) {
            if (!has.last)
                wait_for_cluster();
            __syncthreads();
            if (v.slots.to[n - 1] != v.slots.to[n]) { /* a draft follows */
                store_own<SHARES>(v, p, has, n - 1, mine, memory);
                store_shared(v, has, n - 1, mine, shared);
            }
        }
        step(v, p, has, n, mine, memory, shared);
    }
    store_own<SHARES>(v, p, has, p.end - 1, mine, memory);
    __syncthreads();
    store_shared(v, has, p.end - 1, mine, shared);
    if (!has.last)
        wait_for_cluster();
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

static size_t start_of(const gb_cuda_call *slice) {
    return (size_t)gb_node_int(slice->node, GB_ATTRIBUTE_START);
}

bool gb_cuda_has_delta_sizes(const gb_cuda_problem *problem) {
    const gb_cuda_tensor *memory = problem->operands[GB_DELTA_MEMORY];
    const gb_cuda_tensor *normed = problem->parts[GB_DELTA_NORM]->operands[0];
    return memory->dims[1] == SIZE && memory->dims[2] == SIZE &&
           problem->operands[GB_DELTA_TAPS]->dims[2] == WIDTH && normed->dims[normed->rank - 1] == SIZE;
}

bool gb_cuda_supports_delta(const gb_cuda_problem *problem) {
    const gb_cuda_call *rule = problem->parts[GB_DELTA_RULE];
    return !gb_cuda_is_prompt(rule) && gb_cuda_has_delta_sizes(problem) &&
           rule->operands[1]->dims[1] <= GB_CUDA_ARRIVALS;
}

delta_step gb_cuda_delta_net_of(const gb_cuda_problem *problem) {
    const gb_cuda_tensor *const *operands = problem->operands;
    const gb_cuda_call *const *parts = problem->parts, *rule = parts[GB_DELTA_RULE];
    const gb_cuda_tensor *tail = operands[GB_DELTA_TAIL], *memory = operands[GB_DELTA_MEMORY];
    const gb_cuda_tensor *x = operands[GB_DELTA_X];
    delta_step v = {};
    v.x = data_of<const float>(x);
    v.channels = x->dims[1];
    v.starts[QUERY] = start_of(parts[GB_DELTA_QUERY]);
    v.starts[KEY] = start_of(parts[GB_DELTA_KEY]);
    v.starts[VALUE] = start_of(parts[GB_DELTA_VALUE]);
    v.weight = operands[GB_DELTA_TAPS]->data;
    v.weight_dtype = operands[GB_DELTA_TAPS]->dtype;
    v.slots = gb_cuda_versions_of(rule, operands[GB_DELTA_SLOTS]);
    v.run_first = rule->runs.first;
    v.has_single_tokens = rule->runs.count == x->dims[0];
    v.tail = data_of<float>(tail);
    v.memory = data_of<float>(memory);
    v.tail_slot_bytes = tail->slot_bytes;
    v.memory_slot_bytes = memory->slot_bytes;
    v.decay = data_of<const float>(operands[GB_DELTA_A]);
    v.rate = operands[GB_DELTA_RATE]->data;
    v.rate_dtype = operands[GB_DELTA_RATE]->dtype;
    v.bias = operands[GB_DELTA_BIAS]->data;
    v.bias_dtype = operands[GB_DELTA_BIAS]->dtype;
    v.beta = data_of<const float>(operands[GB_DELTA_B]);
    v.gate = data_of<const float>(operands[GB_DELTA_Z]);
    v.unit[QUERY] = normalization_of(parts[GB_DELTA_QUERY_UNIT]);
    v.unit[KEY] = normalization_of(parts[GB_DELTA_KEY_UNIT]);
    v.norm = normalization_of(parts[GB_DELTA_NORM]);
    v.heads = (unsigned)memory->dims[0];
    v.key_heads = (unsigned)rule->operands[1]->dims[1];
    v.is_tiled = gb_node_int(rule->node, GB_ATTRIBUTE_TILED) != 0;
    v.y = data_of<float>(parts[GB_DELTA_RESULT]->results[0]);
    v.arrivals = rule->scratch->arrivals;
    v.at_once = BLOCKS_AT_ONCE * gb_cuda_find_facts()->multiprocessors;
    return v;
}

/* The head's warp can round what the next product takes: groups within a head. */
bool gb_cuda_delta_has_epilogue(const gb_cuda_problem *problem) {
    const gb_cuda_call *result = problem->parts[GB_DELTA_RESULT];
    if (!result->epilogue || gb_cuda_is_rounded(result->epilogue) ||
        gb_cuda_epilogue_columns(result) != problem->operands[GB_DELTA_MEMORY]->dims[0] * SIZE)
        return false;
    return result->epilogue->group == 0 || SIZE % result->epilogue->group == 0;
}

/* Up to so many runs are done soonest by several blocks a head; more keep the device busy anyway. */
constexpr unsigned FEW_RUNS = 2, FEW_SHARES = 4;

void gb_cuda_delta_step(const gb_cuda_problem *problem) {
    const gb_cuda_call *rule = problem->parts[GB_DELTA_RULE], *result = problem->parts[GB_DELTA_RESULT];
    delta_step v = gb_cuda_delta_net_of(problem);
    v.prepared = gb_cuda_epilogue_rows(result);
    const unsigned runs = rule->runs.count, at_once = GB_CUDA_ARRIVALS / v.key_heads;
    for (; v.first_run < runs; v.first_run += at_once) {
        const unsigned count = runs - v.first_run < at_once ? runs - v.first_run : at_once;
        if (count <= FEW_RUNS && has_clusters())
            add_clusters(rule->launches, FEW_SHARES, "delta_step", run_delta_step<FEW_SHARES>,
                         dim3(v.heads * FEW_SHARES, count), step_shape<FEW_SHARES>::THREADS, 0, v);
        else
            add_launch(rule->launches, "delta_step", run_delta_step<1>, dim3(v.heads, count),
                       step_shape<1>::THREADS, 0, v);
    }
}
