/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"

/* What an element of an op costs beside one product of a matrix; ops that are not listed: MOST. */
enum { MOST_ELEMENT_WORK = 16, ROUNDING_WORK = 4 };

static const uint8_t element_work[GB_OP_LIMIT] = {
    [GB_OP_ADD] = 1,      [GB_OP_MULTIPLY] = 1,        [GB_OP_SCALE] = 1,      [GB_OP_SLICE] = 1,
    [GB_OP_RMS_NORM] = 2, [GB_OP_L2_NORMALIZE] = 2,    [GB_OP_ROPE] = 4,       [GB_OP_SILU] = 8,
    [GB_OP_SIGMOID] = 8,  [GB_OP_COMBINE_EXPERTS] = 1, [GB_OP_SCALE_ROWS] = 1,
};

uint64_t gb_kernel_work(const gb_kernel_call *call, size_t positions) {
    gb_op op = call->node ? call->node->op : GB_OP_NONE;
    if (!call->results[0] && op == GB_OP_ATTENTION) /* keys and values go to their caches */
        return 2 * gb_elements(call->operands[1]);
    if (!call->results[0])
        return gb_elements(call->operands[0]) * ROUNDING_WORK;
    uint64_t elements = gb_elements(call->operands[0]), results = gb_elements(call->results[0]);
    if (op == GB_OP_LINEAR)
        return results * call->operands[0]->dims[1];
    if (op == GB_OP_EXPERT_LINEAR || op == GB_OP_CAUSAL_CONV)
        return results * call->operands[1]->dims[2];
    if (op == GB_OP_GATED_DELTA) /* the memory is decayed, asked, changed and read */
        return 4 * results * call->operands[0]->dims[2];
    if (op == GB_OP_ATTENTION) {
        const gb_tensor *cache = call->operands[5];
        return (elements + results) * (positions < cache->dims[0] ? positions : cache->dims[0]);
    }
    if (op == GB_OP_COUNT_TOKENS) /* about so long for each token */
        return call->results[0]->dims[0] * positions * MOST_ELEMENT_WORK;
    if (op == GB_OP_EMBEDDING || op == GB_OP_GATHER_ROWS)
        return results;
    uint64_t each = (unsigned)op < GB_OP_LIMIT && element_work[op] ? element_work[op] : MOST_ELEMENT_WORK;
    return (elements > results ? elements : results) * each;
}

/* Pieces of so many bytes take long enough, at what a thread reads in a microsecond, that taking them does
 * not show; matrices are so large that a few percent of the time are more than a barrier. */
enum { PIECE_BYTES = 64 * 1024, LEAST_QUEUE_BYTES = 2 << 20, EXPERT_UNIT_ROWS = 32 };

static size_t weight_bytes(const gb_tensor *weight) {
    return weight->quantized ? (size_t)weight->quantized->planes.size
                             : gb_elements(weight) * gb_dtype_size(weight->dtype);
}

/* Units of so many rows; what several tokens prepare for a piece has to be worth it too. */
static gb_kernel_units units_of_rows(const gb_tensor *weight, size_t rows, size_t unit_rows, size_t tokens) {
    const size_t all_rows = gb_elements(weight) / weight->dims[weight->rank - 1];
    const size_t unit_bytes = weight_bytes(weight) / all_rows * unit_rows + 1;
    const size_t units = (rows + unit_rows - 1) / unit_rows;
    if (units * unit_bytes < LEAST_QUEUE_BYTES || units > UINT32_MAX)
        return (gb_kernel_units){0};
    return (gb_kernel_units){(uint32_t)units, (uint32_t)(PIECE_BYTES * tokens / unit_bytes + 1)};
}

gb_kernel_units gb_find_kernel_units(const gb_kernel_call *call) {
    const gb_op op = call->node ? call->node->op : GB_OP_NONE;
    if (!call->results[0] || (op != GB_OP_LINEAR && op != GB_OP_EXPERT_LINEAR))
        return (gb_kernel_units){0};
    const gb_tensor *weight = call->operands[1];
    const size_t tokens = call->operands[0]->dims[0];
    if (tokens > GB_MOST_QUEUE_TOKENS || gb_elements(weight) == 0)
        return (gb_kernel_units){0};
    if (op == GB_OP_LINEAR)
        return units_of_rows(weight, weight->dims[0], GB_COLUMN_UNIT, tokens);
    /* Of experts that several tokens have chosen there are fewer rows; a unit is then less than these. */
    return units_of_rows(weight, tokens * call->operands[2]->dims[1] * weight->dims[1], EXPERT_UNIT_ROWS, 1);
}
