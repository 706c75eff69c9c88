/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry of GEMMs with chosen experts; a row of y is a (token, choice) pair. Pair by pair: decode with
 * packed matrices, dense ones that wgmma does not take, and few rows of other formats. All else, as prompts
 * by wgmma and exact sums of several tokens, is grouped by expert on the device and cut into tiles of one
 * expert each, with inputs prepared in that order.
 */
#include "backends/cuda/gemm/int8/rows.cuh"
#include "backends/cuda/gemm/row_lists.cuh"
#include "backends/cuda/lowering/activations.h"

using namespace gb_cuda;

enum { ALIGNMENT = 256, MOST_GRID_Y = 65535 };

static uint64_t aligned(uint64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The rows of y, and the row of x of each. */
static row_lists pairs_of(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *experts = call->operands[2];
    row_lists lists = {};
    lists.rows = gb_cuda_elements(experts);
    lists.outputs = call->operands[1]->dims[1];
    lists.x_reuse = x->rank == 3 ? 1 : experts->dims[1];
    return lists;
}

/* The same one by one. */
static row_lists single_pairs_of(const gb_cuda_call *call) {
    row_lists lists = pairs_of(call);
    lists.expert = data_of<const int32_t>(call->operands[2]);
    lists.tile_count = lists.rows;
    lists.tile_rows = 1;
    return lists;
}

/* The same in the order of the experts, by a launch that is added before the product's. */
static row_lists listed_pairs_of(const gb_cuda_call *call, size_t tile_rows) {
    row_lists lists = pairs_of(call);
    gb_cuda_list_experts(call, data_of<const int32_t>(call->operands[2]), call->operands[1]->dims[0],
                         tile_rows, call->scratch->bytes, &lists);
    return lists;
}

static size_t count_pairs(const gb_cuda_call *call) {
    return gb_cuda_elements(call->operands[2]);
}

static size_t count_experts(const gb_cuda_call *call) {
    return call->operands[1]->dims[0];
}

/* Of either kernel: tiles of MANY_ROWS are more than those of gb_cuda_wgmma_tile_rows. */
static uint64_t list_bytes(const gb_cuda_call *call) {
    return aligned(gb_cuda_list_bytes(count_pairs(call), count_experts(call), GB_CUDA_LISTED_TILE_ROWS));
}

/* ---- Inputs in 8 bits per row -------------------------------------------------------------------------- */

static bool supports_int8(const gb_cuda_problem *problem) {
    return gb_cuda_supports_canonical_int8(problem->parts[0]);
}
static void describe_int8(const gb_cuda_problem *problem) {
    gb_cuda_int8_product(problem->parts[0], single_pairs_of(problem->parts[0]));
}

static bool supports_mma_int8(const gb_cuda_problem *problem) {
    return gb_cuda_supports_mma_int8(problem->parts[0]);
}
static void describe_mma_int8(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    gb_cuda_expert_mma_int8(
        call, listed_pairs_of(call, gb_cuda_mma_int8_tile_rows(count_pairs(call), count_experts(call))));
}
/* Of tiles of 8 rows: those of more rows take less. */
static uint64_t mma_int8_scratch(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    return gb_cuda_list_bytes(count_pairs(call), count_experts(call), 8);
}

/* The choices of one token are different experts: there is nothing to group. */
static bool supports_pairs_int8(const gb_cuda_problem *problem) {
    return problem->parts[0]->row_class == GB_CUDA_ONE_ROW && supports_mma_int8(problem);
}
static void describe_pairs_int8(const gb_cuda_problem *problem) {
    gb_cuda_expert_mma_int8(problem->parts[0], single_pairs_of(problem->parts[0]));
}

static bool supports_wgmma_int8(const gb_cuda_problem *problem) {
    return gb_cuda_supports_expert_wgmma_int8(problem->parts[0]);
}
static void describe_wgmma_int8(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    gb_cuda_expert_wgmma_int8(
        call, listed_pairs_of(call, gb_cuda_wgmma_int8_tile_rows(count_pairs(call), count_experts(call))));
}

/* ---- A prompt's, in the order of the experts ----------------------------------------------------------- */

static bool supports_wgmma(const gb_cuda_problem *problem) {
    return gb_cuda_supports_wgmma(problem->parts[0], problem->parts[0]->operands[1]);
}

static uint64_t wgmma_scratch(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const gb_cuda_tensor *weight = call->operands[1];
    const size_t pairs = gb_cuda_elements(call->operands[2]);
    return list_bytes(call) + gb_cuda_prepared_bytes(gb_cuda_list_entries(pairs, weight->dims[0]),
                                                     weight->dims[2], weight->dtype);
}

static void describe_wgmma(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const gb_cuda_tensor *weight = call->operands[1];
    const row_lists lists = listed_pairs_of(call, gb_cuda_wgmma_tile_rows(weight));
    prepared_rows x = {};
    x.values = reinterpret_cast<uint32_t *>(call->scratch->bytes + list_bytes(call));
    x.units = weight->dims[2] / UNIT;
    x.pair_rows = gb_cuda_list_entries(lists.rows, weight->dims[0]);
    x.has_rest = weight->dtype == GB_BF16;
    gb_cuda_prepare_entries(call, call->operands[0], lists.order, x.pair_rows, lists.x_reuse, x);
    gb_cuda_wgmma_product(call, x, weight, lists);
}

/* ---- Pair by pair -------------------------------------------------------------------------------------- */

static bool supports_gemv(const gb_cuda_problem *problem) {
    return problem->parts[0]->operands[1]->is_packed && !gb_cuda_is_prompt(problem->parts[0]);
}

static void describe_gemv(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    gb_cuda_gemv_pairs(call, single_pairs_of(call));
}

typedef void (*pair_kernel)(const gb_cuda_call *call, const gb_cuda_tensor *x, const gb_cuda_tensor *weight,
                            const row_lists &lists);

/* As many at a time as a grid has blocks for. */
static void describe_pairs(const gb_cuda_call *call, pair_kernel kernel) {
    const gb_cuda_tensor *weight = call->operands[1];
    const row_lists lists = single_pairs_of(call);
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
        kernel(&some, &x, weight, of_some);
    }
}

static bool supports_gemv_bf16(const gb_cuda_problem *problem) {
    return gb_cuda_supports_pairs_bf16(problem->parts[0]->operands[1]);
}
static void describe_gemv_bf16(const gb_cuda_problem *problem) {
    describe_pairs(problem->parts[0], gb_cuda_gemv_bf16_pairs);
}

static bool is_dense(const gb_cuda_problem *problem) {
    return problem->parts[0]->operands[1]->dtype != GB_QUANTIZED;
}
static void describe_gemv_float(const gb_cuda_problem *problem) {
    describe_pairs(problem->parts[0], gb_cuda_gemv_float_product);
}

/* ---- Other formats: few pairs one by one, many in the order of the experts ----------------------------- */

static bool is_few(const gb_cuda_problem *problem) {
    return gb_cuda_has_few_rows(problem->parts[0]);
}
static void describe_gemv_quantized(const gb_cuda_problem *problem) {
    gb_cuda_quantized_few(problem->parts[0], single_pairs_of(problem->parts[0]));
}

static uint64_t lists_scratch(const gb_cuda_problem *problem) {
    return list_bytes(problem->parts[0]);
}
static void describe_gemm_quantized(const gb_cuda_problem *problem) {
    gb_cuda_quantized_many(problem->parts[0], listed_pairs_of(problem->parts[0], GB_CUDA_LISTED_TILE_ROWS));
}

/* Inputs in the order of the experts are in the scratch of their kernels. */
static const gb_cuda_kernel kernels[] = {
    {"expert_wgmma_int8", supports_wgmma_int8, describe_wgmma_int8, gb_cuda_gathered_bytes, nullptr,
     gb_cuda_first_input_swizzled, true, false},
    {"expert_pairs_int8", supports_pairs_int8, describe_pairs_int8, nullptr, nullptr,
     gb_cuda_first_input_by_lanes, true, false},
    {"expert_mma_int8", supports_mma_int8, describe_mma_int8, mma_int8_scratch, nullptr,
     gb_cuda_first_input_by_lanes, true, false},
    {"expert_gemm_int8", supports_int8, describe_int8, nullptr, nullptr, gb_cuda_first_input_swizzled, false,
     false},
    {"expert_wgmma", supports_wgmma, describe_wgmma, wgmma_scratch, nullptr, nullptr, true, false},
    {"expert_gemv", supports_gemv, describe_gemv, nullptr, nullptr, gb_cuda_first_input, true, false},
    {"expert_gemv_bf16", supports_gemv_bf16, describe_gemv_bf16, nullptr, nullptr, nullptr, false, false},
    {"expert_gemv_float", is_dense, describe_gemv_float, nullptr, nullptr, nullptr, false, false},
    {"expert_gemv_quantized", is_few, describe_gemv_quantized, nullptr, nullptr, gb_cuda_first_input, false,
     false},
    {"expert_gemm_quantized", nullptr, describe_gemm_quantized, lists_scratch, nullptr, gb_cuda_first_input,
     false, false},
};

extern "C" const gb_cuda_registry gb_cuda_expert_linear_kernels = {kernels, sizeof kernels / sizeof *kernels};
