/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"

/* What an element of an elementwise op costs beside one product of a matrix: tanh is the dearest. */
enum { ELEMENT_WORK = 16 };

uint64_t gb_kernel_work(const gb_kernel_call *call, size_t positions) {
    gb_op op = call->node ? call->node->op : GB_OP_NONE;
    if (!call->results[0]) /* what runs before attention: it stores keys and values */
        return 2 * gb_elements(call->operands[1]);
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
        return call->results[0]->dims[0] * positions * ELEMENT_WORK;
    if (op == GB_OP_EMBEDDING || op == GB_OP_GATHER_ROWS)
        return results;
    return (elements > results ? elements : results) * ELEMENT_WORK;
}
