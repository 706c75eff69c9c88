/* SPDX-License-Identifier: Apache-2.0
 *
 * Routing as an op of its own, by a block or a warp (moe/routing.cuh); by sigmoids always by a warp.
 */
#include "backends/cuda/moe/routing.cuh"
#include "backends/cuda/norm/row_ops.cuh"

using namespace gb_cuda;

struct route_call {
    const float *logits; /* [tokens, experts] */
    int experts, choices;
    bool normalized;
    int32_t *chosen; /* [tokens, choices] */
    float *weights;  /* likewise */
};

static __global__ void __launch_bounds__(BLOCK_EXPERTS) run_route_in_block(GB_GRID_CONSTANT route_call p) {
    __shared__ block_routing memory;
    const size_t m = blockIdx.x;
    wait_for_earlier();
    const uint32_t t = threadIdx.x, choices = (uint32_t)p.choices;
    choose_in_block(p.logits + m * (size_t)p.experts, (uint32_t)p.experts, memory);
    if (t < choices) {
        p.chosen[m * choices + t] = (int32_t)memory.chosen_experts[t];
        p.weights[m * choices + t] = memory.weight(t, choices, p.normalized);
    }
}

template <int EACH>
static __global__ void __launch_bounds__(WARP) run_route_in_warp(GB_GRID_CONSTANT route_call p) {
    const int lane = (int)threadIdx.x;
    const size_t m = blockIdx.x;
    wait_for_earlier();
    warp_routing<EACH> row;
    row.create(p.logits + m * (size_t)p.experts, p.experts);
    int32_t *const chosen = p.chosen + m * (size_t)p.choices;
    float *const weights = p.weights + m * (size_t)p.choices;
    float sum = 0;
    for (int t = 0; t < p.choices; t++) {
        float probability;
        const int expert = row.take(&probability);
        sum += probability;
        if (t % WARP == lane) {
            chosen[t] = expert;
            weights[t] = probability;
        }
    }
    for (int t = lane; p.normalized && t < p.choices; t += WARP) /* the lane's own */
        weights[t] /= sum;
}

static route_call route_of(const gb_cuda_call *call) {
    const gb_cuda_tensor *logits = call->operands[0], *chosen = call->results[0];
    return {data_of<const float>(logits), (int)logits->dims[1],
            (int)chosen->dims[1],         gb_node_int(call->node, GB_ATTRIBUTE_NORMALIZE) != 0,
            data_of<int32_t>(chosen),     data_of<float>(call->results[1])};
}

void gb_cuda_route_top_k(const gb_cuda_call *call) {
    const unsigned tokens = (unsigned)call->operands[0]->dims[0];
    const route_call p = route_of(call);
    static_assert(GB_MAX_EXPERTS <= 128 * WARP, "a warp has a row in registers");
    const bool is_small = p.experts <= BLOCK_EXPERTS;
    if (is_small && p.choices <= MOST_BLOCK_CHOICES) {
        add_launch(call->launches, "route_in_block", run_route_in_block, tokens, BLOCK_EXPERTS, 0, p);
        return;
    }
    const auto kernel = is_small ? run_route_in_warp<8> : run_route_in_warp<128>;
    add_launch(call->launches, "route_in_warp", kernel, tokens, WARP, 0, p);
}

/* ---- By sigmoids --------------------------------------------------------------------------------------- */

struct sigmoid_call {
    route_call route;
    const void *correction; /* [experts] */
    gb_dtype dtype;
    float scale, epsilon;
};

template <int EACH>
static __global__ void __launch_bounds__(WARP) run_route_sigmoid(GB_GRID_CONSTANT sigmoid_call p) {
    const int lane = (int)threadIdx.x, experts = p.route.experts, choices = p.route.choices;
    const size_t m = blockIdx.x;
    wait_for_earlier();
    const float *logits = p.route.logits + m * (size_t)experts;
    warp_choice<EACH> row;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const int i = lane + j * WARP;
        row.keys[j] =
            i < experts ? key_of(sigmoid(logits[i]) + load_float(p.correction, p.dtype, (size_t)i)) : 0;
    }
    int32_t *const chosen = p.route.chosen + m * (size_t)choices;
    float *const weights = p.route.weights + m * (size_t)choices;
    float sum = 0;
    for (int t = 0; t < choices; t++) {
        uint32_t key;
        const int expert = row.take(&key);
        const float weight = sigmoid(logits[expert]);
        sum += weight;
        if (t % WARP == lane) {
            chosen[t] = expert;
            weights[t] = weight;
        }
    }
    for (int t = lane; t < choices; t += WARP) /* the lane's own */
        weights[t] = (p.route.normalized ? weights[t] / (sum + p.epsilon) : weights[t]) * p.scale;
}

void gb_cuda_route_sigmoid(const gb_cuda_call *call) {
    const gb_cuda_tensor *correction = call->operands[1];
    const sigmoid_call p = {route_of(call), correction->data, correction->dtype,
                            (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE),
                            (float)gb_node_float(call->node, GB_ATTRIBUTE_EPSILON)};
    const auto kernel = p.route.experts <= BLOCK_EXPERTS ? run_route_sigmoid<8> : run_route_sigmoid<128>;
    add_launch(call->launches, "route_sigmoid", kernel, (unsigned)call->operands[0]->dims[0], WARP, 0, p);
}
