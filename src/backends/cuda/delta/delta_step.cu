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

/* What one of these warps takes of a group's tokens, a lane each: a number of the head's, or the slot in
 * which it leaves the state. */
struct token_numbers {
    float of_head;
    int32_t slot;
};

template <unsigned SHARES>
__device__ static token_numbers load_numbers(const delta_step &v, const step_place &p, const step_group &g) {
    using shape = step_shape<SHARES>;
    const unsigned warp = threadIdx.x / WARP;
    const unsigned n = g.first + threadIdx.x % WARP;
    token_numbers numbers = {0, NO_SLOT};
    if (warp != shape::LAST_WARP && n < g.end)
        numbers.of_head = (warp == shape::DECAY_WARP ? v.decay : v.beta)[n * v.heads + p.head];
    if (warp == shape::LAST_WARP && n <= g.end && n < p.end)
        numbers.slot = v.slots.to[n];
    return numbers;
}

template <unsigned SHARES>
__device__ static void put_numbers(const token_numbers &numbers, step_memory<SHARES> &shared) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (warp == step_shape<SHARES>::DECAY_WARP)
        shared.decays[lane] = delta_decay(numbers.of_head, shared.rate, shared.bias);
    else if (warp == step_shape<SHARES>::BETA_WARP)
        shared.betas[lane] = sigmoid(numbers.of_head);
    else
        shared.slots[lane] = numbers.slot;
}

/* Which of a group's tokens this warp finishes, if there are so many. */
template <unsigned SHARES>
__device__ static unsigned kept_by_warp() {
    static_assert(step_shape<SHARES>::LAST_WARP + 1 >= MOST_KEPT, "a warp for each token of a group");
    return step_shape<SHARES>::LAST_WARP - threadIdx.x / WARP;
}

template <unsigned SHARES>
__device__ static bool finishes_after(const step_group &g, unsigned n) {
    return n + 1 == g.end && kept_by_warp<SHARES>() < g.end - g.first;
}

/* The lane's columns of a token's gate. */
__device__ static float4 load_gate(const delta_step &v, const step_place &p, size_t n) {
    return reinterpret_cast<const float4 *>(v.gate + (n * v.heads + p.head) * SIZE)[threadIdx.x % WARP];
}

__device__ static void put_gate(const float4 &gate, float *gates) {
    reinterpret_cast<float4 *>(gates)[threadIdx.x % WARP] =
        float4{silu(gate.x), silu(gate.y), silu(gate.z), silu(gate.w)};
}

/* Normalizes and gates the head's result of the warp's token, and prepares it for the product that follows:
 * in the first block. */
template <unsigned SHARES>
__device__ static void finish(const delta_step &v, const step_place &p, const step_group &g,
                              const step_memory<SHARES> &shared) {
    const unsigned lane = threadIdx.x % WARP, kept = kept_by_warp<SHARES>();
    const size_t n = g.first + kept;
    const float4 of_head = reinterpret_cast<const float4 *>(shared.y[g.turn][kept])[lane];
    const float4 weight = reinterpret_cast<const float4 *>(shared.weight)[lane];
    const float4 gate = reinterpret_cast<const float4 *>(shared.gates[kept])[lane];
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
    bool memory, unit, value, other;
};

template <unsigned SHARES>
__device__ static step_role role_of_warp() {
    using shape = step_shape<SHARES>;
    const unsigned warp = threadIdx.x / WARP;
    return step_role{warp < shape::MEMORY_WARPS, warp < shape::UNIT_WARPS,
                     warp >= shape::UNIT_WARPS && warp < shape::DECAY_WARP,
                     warp >= shape::DECAY_WARP && warp <= shape::LAST_WARP};
}

/* Finds token n's result and what changes the memory. After the group's last the cluster meets, for which
 * this does not wait. */
template <unsigned SHARES>
__device__ static void step(const delta_step &v, const step_place &p, const step_group &g,
                            const step_role &has, unsigned n, channel &mine, const float4 *memory,
                            step_memory<SHARES> &shared) {
    using shape = step_shape<SHARES>;
    const unsigned kept = n - g.first;
    const bool finishes = p.share == 0 && finishes_after<SHARES>(g, n);
    float(*rows)[SIZE] = shared.rows[n % 2], value = 0;
    token_numbers numbers = {};
    unit_factors unit = {};
    float4 gate = {};
    if (has.other && n == g.first)
        numbers = load_numbers<SHARES>(v, p, g);
    if (finishes)
        gate = load_gate(v, p, g.first + kept_by_warp<SHARES>());
    if (has.unit || has.value)
        value = convolve(v, p, n, mine);
    if (has.unit)
        put_unit(value, rows, shared);
    __syncthreads();
    const bool counts = n == p.first && threadIdx.x == shape::BETA_WARP * WARP;
    const uint32_t others = counts ? count_block(v, p) : 0;
    if (n == p.first)
        prefetch_later<SHARES>(v);
    if (finishes)
        put_gate(gate, shared.gates[kept_by_warp<SHARES>()]);
    if (has.memory)
        multiply(memory, rows, shared);
    if (has.value)
        unit = find_factors(v, rows, shared);
    if (has.other && n == g.first)
        put_numbers(numbers, shared);
    __syncthreads();
    if (has.value) {
        const unsigned column = threadIdx.x - 2 * SIZE;
        float *y = &shared.y[g.turn][kept][p.share * shape::COLUMNS + column];
        change_column(kept, column, value, unit, y, shared);
    }
    let_next_begin();
    if (n + 1 == g.end)
        arrive_in_cluster();
    __syncthreads();
    if (counts)
        shared.is_last = is_last_of(v, p, others, SHARES);
}

/* Stores what no other block reads of the states. */
template <unsigned SHARES>
__device__ static void store_own(const delta_step &v, const step_place &p, const step_role &has, int32_t slot,
                                 const channel &mine, const float4 *memory) {
    if (has.memory)
        store_memory<SHARES>(v, p, slot, memory);
    if (has.value)
        store_tail(v, slot, mine);
}

/* Changes the memory by token n, and stores the states as they are then, where the token behind it does not
 * leave its own. The tail of queries and keys is stored by the last block that has read it, which this one
 * knows from the first token on. */
template <unsigned SHARES>
__device__ static void leave(const delta_step &v, const step_place &p, const step_group &g,
                             const step_role &has, unsigned n, const channel &mine, float4 *memory,
                             step_memory<SHARES> &shared) {
    const unsigned kept = n - g.first;
    const int32_t slot = shared.slots[kept];
    const bool is_stored = slot != shared.slots[kept + 1], finishes = finishes_after<SHARES>(g, n);
    if (has.memory)
        update(memory, shared.rows[n % 2][KEY], shared.decays[kept], shared);
    if (is_stored)
        store_own<SHARES>(v, p, has, slot, mine, memory);
    if (finishes) {
        wait_for_cluster();
        if (p.share == 0)
            finish(v, p, g, shared);
    }
    if (is_stored && n == p.first)
        __syncthreads();
    if (is_stored && has.unit && shared.is_last)
        store_tail(v, slot, mine);
    if (n + 1 == g.end && !finishes)
        wait_for_cluster();
}

/* All tokens of a run. */
template <unsigned SHARES>
__device__ static void walk(const delta_step &v, const step_place &p, const step_role &has, channel &mine,
                            float4 *memory, step_memory<SHARES> &shared) {
    for (step_group g = group_from(p, p.first); g.first < p.end; g = group_from(p, g.end))
        for (unsigned n = g.first; n < g.end; n++) {
            step(v, p, g, has, n, mine, memory, shared);
            leave(v, p, g, has, n, mine, memory, shared);
        }
}

/* Head and share blockIdx.x of run blockIdx.y; the shares of a head are a cluster. IS_SINGLE: all runs are of
 * one token, for which the compiler needs fewer registers. */
template <unsigned SHARES, bool IS_SINGLE>
static __global__ void __launch_bounds__(step_shape<SHARES>::THREADS, BLOCKS_AT_ONCE)
    run_delta_step(GB_GRID_CONSTANT delta_step v) {
    __shared__ step_memory<SHARES> shared;
    arrive_in_cluster();
    const step_role has = role_of_warp<SHARES>();
    const step_place p = place_of<SHARES, IS_SINGLE>(v);
    channel mine = {};
    float4 memory[step_shape<SHARES>::LOADS];
    if (has.memory)
        load_memory<SHARES>(v, p, memory);
    if (has.unit || has.value)
        mine = load_channel<SHARES>(v, p);
    load_constants(v, p, shared);
    fetch_parameters(v);
    wait_for_earlier();
    if (has.unit || has.value)
        mine.next = load_x(v, p.first, mine);
    wait_for_cluster();
    if constexpr (IS_SINGLE) {
        const step_group g = {p.first, p.end, 0};
        step(v, p, g, has, p.first, mine, memory, shared);
        leave(v, p, g, has, p.first, mine, memory, shared);
    } else {
        walk(v, p, has, mine, memory, shared);
    }
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

/* Of `runs` of v, from v.first_run on. */
template <bool IS_SINGLE>
static void launch(const delta_step &v, unsigned runs, gb_cuda_launch_list *launches) {
    if (runs <= FEW_RUNS && has_clusters())
        add_clusters(launches, FEW_SHARES, "delta_step", run_delta_step<FEW_SHARES, IS_SINGLE>,
                     dim3(v.heads * FEW_SHARES, runs), step_shape<FEW_SHARES>::THREADS, 0, v);
    else
        add_launch(launches, "delta_step", run_delta_step<1, IS_SINGLE>, dim3(v.heads, runs),
                   step_shape<1>::THREADS, 0, v);
}

void gb_cuda_delta_step(const gb_cuda_problem *problem) {
    const gb_cuda_call *rule = problem->parts[GB_DELTA_RULE], *result = problem->parts[GB_DELTA_RESULT];
    delta_step v = gb_cuda_delta_net_of(problem);
    v.prepared = gb_cuda_epilogue_rows(result);
    const unsigned runs = rule->runs.count, at_once = GB_CUDA_ARRIVALS / v.key_heads;
    for (; v.first_run < runs; v.first_run += at_once) {
        const unsigned count = runs - v.first_run < at_once ? runs - v.first_run : at_once;
        if (v.has_single_tokens)
            launch<true>(v, count, rule->launches);
        else
            launch<false>(v, count, rule->launches);
    }
}
