/* SPDX-License-Identifier: Apache-2.0
 *
 * The delta net of a prompt's step: what each chunk needs beside the memory, the walk from chunk to chunk
 * (delta_chunks.cuh), both for as many chunks as the scratch has room for, then norms and gates of all
 * tokens, whose rows are rounded for the product that follows where that wants it.
 */
#include "backends/cuda/delta/delta_chunks.cuh"
#include "backends/cuda/gemm/int8/round_parts.cuh"
#include "backends/cuda/lowering/activations.h"

using namespace gb_cuda;

namespace {

enum { RESULT_PARTS = 2 /* of LANE_COLUMNS, that a thread has of a row */ };

constexpr unsigned HEAD_LANES = SIZE / LANE_COLUMNS;

struct delta_result {
    float *y; /* [tokens, heads, SIZE] */
    const float *gate;
    normalization norm;
    unsigned columns;
    row_rounding rounded;
    bool is_stored; /* and not only rounded */
};

/* Sixteen lanes have a head. */
__device__ void finish_head(const delta_result &v, row_part<LANE_COLUMNS> &y,
                            const row_part<LANE_COLUMNS> &gate, unsigned column) {
    float squares = 0;
#pragma unroll
    for (unsigned i = 0; i < LANE_COLUMNS; i++)
        squares += y.v[i] * y.v[i];
    for (unsigned distance = 1; distance < HEAD_LANES; distance *= 2)
        squares += __shfl_xor_sync(0xffffffffu, squares, (int)distance);
    const float factor = norm_factor(v.norm, squares);
#pragma unroll
    for (unsigned i = 0; i < LANE_COLUMNS; i++)
        y.v[i] = normalized(v.norm, y.v[i], factor, (column + i) % SIZE) * silu(gate.v[i]);
}

/* In place. Grid: [tokens]. */
__global__ void __launch_bounds__(ROUND_WARPS *WARP) run_delta_result(GB_GRID_CONSTANT delta_result v) {
    let_next_begin();
    row_part<LANE_COLUMNS> y[RESULT_PARTS] = {}, gate[RESULT_PARTS] = {};
    wait_for_earlier();
    float *row = v.y + (size_t)blockIdx.x * v.columns;
#pragma unroll
    for (unsigned i = 0; i < RESULT_PARTS; i++) {
        const unsigned column = (i * blockDim.x + threadIdx.x) * LANE_COLUMNS;
        if (column >= v.columns)
            continue;
        y[i].load(row, column);
        gate[i].load(v.gate + (size_t)blockIdx.x * v.columns, column);
    }
#pragma unroll
    for (unsigned i = 0; i < RESULT_PARTS; i++) {
        const unsigned column = (i * blockDim.x + threadIdx.x) * LANE_COLUMNS;
        finish_head(v, y[i], gate[i], column);
        if (v.is_stored && column < v.columns)
            y[i].store(row, column);
    }
    if (v.rounded.is_there())
        round_parts<LANE_COLUMNS, RESULT_PARTS>(v.rounded, blockIdx.x, v.columns, y, true, true);
}

/* ---- From a step to launches --------------------------------------------------------------------------- */

unsigned columns_of(const gb_cuda_problem *problem) {
    return (unsigned)problem->operands[GB_DELTA_MEMORY]->dims[0] * SIZE;
}

size_t tokens_of(const gb_cuda_problem *problem) {
    return problem->operands[GB_DELTA_X]->dims[0];
}

/* Chunks that are prepared at a time: those of one long run. */
size_t most_chunks(const gb_cuda_problem *problem) {
    enum { LEAST = 34 };
    const size_t of_one_run = chunks_before(tokens_of(problem), 1);
    return of_one_run > LEAST ? of_one_run : (size_t)LEAST;
}

uint64_t bytes_of_chunk(const gb_cuda_problem *problem) {
    const uint64_t heads = problem->operands[GB_DELTA_MEMORY]->dims[0],
                   key_heads = problem->parts[GB_DELTA_RULE]->operands[1]->dims[1];
    return key_heads * sizeof(chunk_keys) + heads * (sizeof(chunk_head) + sizeof(chunk_values));
}

delta_chunks chunks_of(const gb_cuda_problem *problem) {
    const gb_cuda_call *rule = problem->parts[GB_DELTA_RULE];
    delta_chunks v = {};
    v.net = gb_cuda_delta_net_of(problem);
    v.positions = rule->runs.positions;
    v.runs = rule->runs.count;
    v.count = most_chunks(problem);
    v.keys = reinterpret_cast<chunk_keys *>(rule->scratch->bytes);
    v.heads = reinterpret_cast<chunk_head *>(v.keys + v.count * v.net.key_heads);
    v.values = reinterpret_cast<chunk_values *>(v.heads + v.count * v.net.heads);
    return v;
}

delta_result result_of(const gb_cuda_problem *problem, const delta_step &net) {
    delta_result v = {};
    v.y = net.y;
    v.gate = net.gate;
    v.norm = net.norm;
    v.columns = columns_of(problem);
    v.rounded = gb_cuda_epilogue_rounding(problem->parts[GB_DELTA_RESULT]);
    v.is_stored = gb_cuda_is_live(problem, GB_DELTA_RESULT);
    return v;
}

} // namespace

bool gb_cuda_supports_delta_prompt(const gb_cuda_problem *problem) {
    const gb_cuda_facts *device = gb_cuda_find_facts();
    return gb_cuda_is_prompt(problem->parts[GB_DELTA_RULE]) && gb_cuda_has_delta_sizes(problem) &&
           device->major >= 9 && device->shared_bytes >= gb_cuda_delta_walk_bytes &&
           columns_of(problem) <= RESULT_PARTS * ROUND_WARPS * WARP_COLUMNS;
}

uint64_t gb_cuda_delta_prompt_scratch(const gb_cuda_problem *problem) {
    return most_chunks(problem) * bytes_of_chunk(problem);
}

bool gb_cuda_delta_prompt_has_epilogue(const gb_cuda_problem *problem) {
    const gb_cuda_call *result = problem->parts[GB_DELTA_RESULT];
    return result->epilogue && gb_cuda_is_rounded(result->epilogue) &&
           gb_cuda_epilogue_columns(result) == columns_of(problem);
}

void gb_cuda_delta_prompt(const gb_cuda_problem *problem) {
    gb_cuda_launch_list *launches = problem->parts[GB_DELTA_RESULT]->launches;
    delta_chunks v = chunks_of(problem);
    const size_t all = chunks_before(tokens_of(problem), v.runs), most = v.count;
    for (; v.first < all; v.first += v.count) {
        v.count = all - v.first < most ? all - v.first : most;
        v.are_last = v.first + v.count == all;
        gb_cuda_delta_prepare(v, launches);
        gb_cuda_delta_walk(v, launches);
    }
    const delta_result result = result_of(problem, v.net);
    const unsigned warps = blocks_for(result.columns, (size_t)RESULT_PARTS * WARP_COLUMNS);
    add_launch(launches, "delta_result", run_delta_result, (unsigned)tokens_of(problem), warps * WARP, 0,
               result);
}
