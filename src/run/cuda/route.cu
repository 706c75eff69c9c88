/* SPDX-License-Identifier: Apache-2.0
 *
 * The experts of each token, a warp a token (device/routing.cuh).
 */
#include "run/cuda/device/routing.cuh"

using namespace gb_cuda;

/* logits [tokens, choices]; experts, weights [tokens, count]. */
template <int EACH>
static __global__ void __launch_bounds__(WARP)
    route(const float *logits, int choices, int count, bool normalized, int32_t *experts, float *weights) {
    const int lane = (int)threadIdx.x;
    const size_t m = blockIdx.x;
    wait_for_earlier();
    routing<EACH> row;
    row.create(logits + m * (size_t)choices, choices);
    experts += m * (size_t)count;
    weights += m * (size_t)count;
    float chosen_sum = 0;
    for (int t = 0; t < count; t++) {
        float p;
        const int expert = row.take(&p);
        chosen_sum += p;
        if (t % WARP == lane) {
            experts[t] = expert;
            weights[t] = p;
        }
    }
    for (int t = lane; normalized && t < count; t += WARP) /* the lane's own */
        weights[t] /= chosen_sum;
}

void gb_cuda_route_top_k(const gb_cuda_call *call) {
    const gb_cuda_tensor *logits = call->operands[0], *experts = call->results[0];
    const int choices = (int)logits->dims[1], count = (int)experts->dims[1];
    const bool normalized = gb_node_int(call->node, GB_ATTRIBUTE_NORMALIZE) != 0;
    static_assert(GB_MAX_EXPERTS <= 128 * WARP, "a warp has a row in registers");
    const auto kernel = choices <= 8 * WARP ? route<8> : route<128>;
    GB_LAUNCH(kernel, (unsigned)logits->dims[0], WARP, 0, call->stream, data_of<const float>(logits), choices,
              count, normalized, data_of<int32_t>(experts), data_of<float>(call->results[1]));
}
