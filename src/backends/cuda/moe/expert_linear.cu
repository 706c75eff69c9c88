/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry of GEMMs with chosen experts; a row of y is a (token, choice) pair. Few pairs are computed one
 * by one. Many, and all of prefill on Hopper, are grouped by expert on the device and cut into tiles of one
 * expert each, with their inputs prepared in that order. Matrices that are neither quantized nor large
 * bfloat16 are computed pair by pair.
 */
#include "backends/cuda/gemm/int8_rows.cuh"
#include "backends/cuda/gemm/row_lists.cuh"
#include "backends/cuda/lowering/activations.h"

using namespace gb_cuda;

enum { FEW_PAIRS = 256, ALIGNMENT = 256, MOST_GRID_Y = 65535 };

static uint64_t aligned(uint64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Of either kernel: tiles of MANY_ROWS are more than those of gb_cuda_wgmma_tile_rows. */
static uint64_t list_bytes(const gb_cuda_call *call) {
    const size_t pairs = gb_cuda_elements(call->operands[2]), experts = call->operands[1]->dims[0];
    return aligned(gb_cuda_list_bytes(pairs, experts, GB_CUDA_MANY_ROWS));
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
    return lists;
}

/* ---- Inputs in 8 bits per row -------------------------------------------------------------------------- */

static bool supports_int8(const gb_cuda_problem *problem) {
    return gb_cuda_supports_int8(problem->parts[0]);
}
static void launch_int8(const gb_cuda_problem *problem) {
    gb_cuda_int8_product(problem->parts[0], single_pairs_of(problem->parts[0]));
}

static bool supports_mma_int8(const gb_cuda_problem *problem) {
    return gb_cuda_supports_mma_int8(problem->parts[0]);
}

/* Of tiles of 8 rows: those of more rows take less. */
static uint64_t int8_scratch(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    return gb_cuda_list_bytes(gb_cuda_elements(call->operands[2]), call->operands[1]->dims[0], 8);
}

static uint64_t wgmma_int8_scratch(const gb_cuda_problem *problem) {
    return gb_cuda_int8_entries_bytes(problem->parts[0]);
}

typedef void (*listed_product)(const gb_cuda_call *call, const row_lists &lists, size_t tile_rows,
                               size_t row_tiles);

/* Of pairs in the order of the experts. */
static void launch_listed(const gb_cuda_call *call, listed_product product, size_t tile_rows) {
    row_lists lists = pairs_of(call);
    const size_t experts = call->operands[1]->dims[0];
    gb_cuda_list_experts(call, data_of<const int32_t>(call->operands[2]), experts, tile_rows,
                         call->scratch->bytes, &lists);
    product(call, lists, tile_rows, gb_cuda_list_tiles(lists.rows, experts, tile_rows));
}

/* The choices of one token are different experts: there is nothing to group. */
static void launch_mma_int8(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const row_lists lists = single_pairs_of(call);
    if (call->operands[2]->dims[0] == 1)
        gb_cuda_expert_mma_int8(call, lists, 1, lists.rows);
    else
        launch_listed(call, gb_cuda_expert_mma_int8,
                      gb_cuda_mma_int8_tile_rows(lists.rows, call->operands[1]->dims[0]));
}

static bool supports_wgmma_int8(const gb_cuda_problem *problem) {
    return problem->parts[0]->is_prefill && gb_cuda_supports_expert_wgmma_int8(problem->parts[0]);
}

static void launch_wgmma_int8(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const size_t tile_rows =
        gb_cuda_wgmma_int8_tile_rows(gb_cuda_elements(call->operands[2]), call->operands[1]->dims[0]);
    if (tile_rows == 0)
        launch_mma_int8(problem);
    else
        launch_listed(call, gb_cuda_expert_wgmma_int8, tile_rows);
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

static void launch_wgmma(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const gb_cuda_tensor *weight = call->operands[1];
    row_lists lists = pairs_of(call);
    const size_t experts = weight->dims[0], entries = gb_cuda_list_entries(lists.rows, experts),
                 tile_rows = gb_cuda_wgmma_tile_rows(weight);
    prepared_rows x = {};
    x.values = reinterpret_cast<uint32_t *>(call->scratch->bytes + list_bytes(call));
    x.units = weight->dims[2] / UNIT;
    x.pair_rows = entries;
    x.has_rest = weight->dtype == GB_BF16;
    gb_cuda_list_experts(call, data_of<const int32_t>(call->operands[2]), experts, tile_rows,
                         call->scratch->bytes, &lists);
    gb_cuda_prepare_entries(call, call->operands[0], lists.order, entries, lists.x_reuse, x);
    gb_cuda_wgmma_product(call, x, weight, lists, gb_cuda_list_tiles(lists.rows, experts, tile_rows));
}

/* ---- Pair by pair -------------------------------------------------------------------------------------- */

static bool supports_gemv(const gb_cuda_problem *problem) {
    return problem->parts[0]->operands[1]->is_packed && !problem->parts[0]->is_prefill;
}

static void launch_gemv(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    gb_cuda_gemv_pairs(call, call->operands[0], call->operands[1], single_pairs_of(call));
}

typedef void (*pair_kernel)(const gb_cuda_call *call, const gb_cuda_tensor *x, const gb_cuda_tensor *weight,
                            const row_lists &lists);

/* As many at a time as a grid has blocks for. */
static void launch_pairs(const gb_cuda_call *call, pair_kernel kernel) {
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
static void launch_gemv_bf16(const gb_cuda_problem *problem) {
    launch_pairs(problem->parts[0], gb_cuda_gemv_bf16_pairs);
}

static bool is_dense(const gb_cuda_problem *problem) {
    return problem->parts[0]->operands[1]->dtype != GB_QUANTIZED;
}
static void launch_gemv_float(const gb_cuda_problem *problem) {
    launch_pairs(problem->parts[0], gb_cuda_gemv_float_product);
}

/* ---- Other formats: few pairs one by one, many in the order of the experts ----------------------------- */

static uint64_t lists_scratch(const gb_cuda_problem *problem) {
    return list_bytes(problem->parts[0]);
}

static void launch_quantized(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const gb_cuda_tensor *weight = call->operands[1];
    row_lists lists = pairs_of(call);
    if (lists.rows <= FEW_PAIRS) {
        gb_cuda_quantized_product(call, call->operands[0], weight, single_pairs_of(call), 0);
        return;
    }
    gb_cuda_list_experts(call, data_of<const int32_t>(call->operands[2]), weight->dims[0], GB_CUDA_MANY_ROWS,
                         call->scratch->bytes, &lists);
    gb_cuda_quantized_product(call, call->operands[0], weight, lists,
                              gb_cuda_list_tiles(lists.rows, weight->dims[0], GB_CUDA_MANY_ROWS));
}

static const gb_cuda_kernel kernels[] = {
    {"expert_wgmma_int8", supports_wgmma_int8, launch_wgmma_int8, wgmma_int8_scratch, nullptr, false},
    {"expert_mma_int8", supports_mma_int8, launch_mma_int8, int8_scratch, nullptr, false},
    {"expert_gemm_int8", supports_int8, launch_int8, nullptr, nullptr, false},
    {"expert_wgmma", supports_wgmma, launch_wgmma, wgmma_scratch, nullptr, false},
    {"expert_gemv", supports_gemv, launch_gemv, nullptr, nullptr, true},
    {"expert_gemv_bf16", supports_gemv_bf16, launch_gemv_bf16, nullptr, nullptr, false},
    {"expert_gemv_float", is_dense, launch_gemv_float, nullptr, nullptr, false},
    {"expert_gemm_quantized", nullptr, launch_quantized, lists_scratch, nullptr, true},
};

extern "C" const gb_cuda_registry gb_cuda_expert_linear_kernels = {kernels, sizeof kernels / sizeof *kernels};
