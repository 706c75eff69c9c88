/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with chosen experts. A row of y is a (token, choice) pair. Few of them are computed one by one;
 * many, and all of a prompt on Hopper, are first put in the order of their experts, on the device, and cut
 * into tiles of one expert each. A prompt's are prepared in that order, so that a tile's inputs stand side by
 * side. With matrices that are neither quantized nor large they are computed one by one.
 */
#include "run/cuda/activations.h"
#include "run/cuda/device/row_lists.cuh"

using namespace gb_cuda;

enum { FEW_PAIRS = 256, ALIGNMENT = 256, MOST_GRID_Y = 65535 };

static uint64_t aligned(uint64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* All ways take the same: tiles of MANY_ROWS are more than those of gb_cuda_prefill_tile_rows. */
static uint64_t list_bytes(const gb_cuda_call *call) {
    const size_t pairs = gb_cuda_elements(call->operands[2]), experts = call->operands[1]->dims[0];
    return aligned(gb_cuda_list_bytes(pairs, experts, GB_CUDA_MANY_ROWS));
}

uint64_t gb_cuda_expert_linear_scratch(const gb_cuda_call *call) {
    const gb_cuda_tensor *weight = call->operands[1], *chosen = call->operands[2];
    const size_t pairs = gb_cuda_elements(chosen), inputs = weight->dims[2];
    uint64_t of_prompt = 0; /* other matrices are multiplied by the rows of x as they are, pair by pair */
    if (weight->dtype == GB_QUANTIZED || (call->scratch->prefill_blocks > 0 && gb_cuda_is_large_bf16(weight)))
        of_prompt = list_bytes(call) + gb_cuda_prepared_bytes(gb_cuda_list_entries(pairs, weight->dims[0]),
                                                              inputs, weight->dtype);
    const uint64_t of_experts = gb_cuda_expert_values_bytes(chosen->dims[0], chosen->dims[1], inputs);
    return of_prompt > of_experts ? of_prompt : of_experts; /* expert_mlp.cu's inputs of down */
}

static void multiply_prompt_by_experts(const gb_cuda_call *call, row_lists lists) {
    const gb_cuda_tensor *weight = call->operands[1];
    const size_t experts = weight->dims[0], entries = gb_cuda_list_entries(lists.rows, experts),
                 tile_rows = gb_cuda_prefill_tile_rows(weight);
    prepared_rows x = {};
    x.values = reinterpret_cast<uint32_t *>(call->scratch->bytes + list_bytes(call));
    x.units = weight->dims[2] / UNIT;
    x.pair_rows = entries;
    x.has_rest = weight->dtype == GB_BF16;
    gb_cuda_list_experts(call, data_of<const int32_t>(call->operands[2]), experts, tile_rows,
                         call->scratch->bytes, &lists);
    gb_cuda_prepare_entries(call, call->operands[0], lists.order, entries, lists.x_reuse, x);
    gb_cuda_prefill_product(call, x, weight, lists, gb_cuda_list_tiles(lists.rows, experts, tile_rows));
}

/* The rows one by one, with a matrix that is not quantized: as many at a time as a grid has blocks for. */
static void multiply_pairs(const gb_cuda_call *call, const row_lists &lists) {
    const gb_cuda_tensor *weight = call->operands[1];
    const size_t most = MOST_GRID_Y / lists.x_reuse * lists.x_reuse;
    for (size_t first = 0; first < lists.rows; first += most) {
        gb_cuda_tensor x = *call->operands[0], y = *call->results[0];
        gb_cuda_call some = *call;
        row_lists of_some = lists;
        x.data = data_of<float>(&x) + first / lists.x_reuse * weight->dims[2];
        y.data = data_of<float>(&y) + first * lists.outputs;
        some.results[0] = &y;
        of_some.rows = lists.rows - first < most ? lists.rows - first : most;
        of_some.expert += first;
        if (gb_cuda_takes_dense_pairs(weight))
            gb_cuda_dense_pairs(&some, &x, weight, of_some);
        else
            gb_cuda_dense_product(&some, &x, weight, of_some);
    }
}

void gb_cuda_expert_linear(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *weight = call->operands[1], *experts = call->operands[2];
    const int32_t *expert = data_of<const int32_t>(experts);
    row_lists lists = {};
    size_t tile_count = 0;
    lists.rows = gb_cuda_elements(experts);
    lists.outputs = weight->dims[1];
    lists.x_reuse = x->rank == 3 ? 1 : experts->dims[1];
    if (gb_cuda_takes_prefill(call, weight))
        return multiply_prompt_by_experts(call, lists);
    if (weight->is_packed && !call->is_prefill) {
        lists.expert = expert;
        return gb_cuda_few_pairs(call, x, weight, lists);
    }
    if (weight->dtype != GB_QUANTIZED) {
        lists.expert = expert;
        return multiply_pairs(call, lists);
    }
    if (lists.rows > FEW_PAIRS) {
        tile_count = gb_cuda_list_tiles(lists.rows, weight->dims[0], GB_CUDA_MANY_ROWS);
        gb_cuda_list_experts(call, expert, weight->dims[0], GB_CUDA_MANY_ROWS, call->scratch->bytes, &lists);
    } else {
        lists.expert = expert;
    }
    gb_cuda_quantized_product(call, x, weight, lists, tile_count);
}
