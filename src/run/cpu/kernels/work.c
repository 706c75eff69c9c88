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
