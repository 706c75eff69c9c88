/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"

/* Operands by their place in ops.def. */
#define OPERAND(i) (1u << (i))

enum {
    TOKENS = GB_SPLIT_TOKENS,
    COLUMNS = GB_SPLIT_COLUMNS,
    OWN = GB_SPLIT_OWN,
    FIRST = OPERAND(0),
    FIRST_TWO = OPERAND(0) | OPERAND(1)
};

/* Ops that are not listed split their work in their own way. */
static const gb_kernel_traits traits[GB_OP_LIMIT] = {
    [GB_OP_EMBEDDING] = {TOKENS | COLUMNS, OPERAND(1), 0, 0, GB_SHARED_UNUSED},
    [GB_OP_LINEAR] = {COLUMNS, 0, 0, 0, GB_SHARED_READ},
    [GB_OP_EXPERT_LINEAR] = {OWN, 0, 0, 0, GB_SHARED_READ},
    [GB_OP_RMS_NORM] = {TOKENS | OWN, FIRST, 0, 0, GB_SHARED_UNUSED},
    [GB_OP_L2_NORMALIZE] = {TOKENS | OWN, FIRST, 0, 0, GB_SHARED_UNUSED},
    [GB_OP_ROPE] = {TOKENS | OWN, FIRST_TWO, 0, 0, GB_SHARED_UNUSED},
    [GB_OP_ADD] = {TOKENS | COLUMNS, FIRST_TWO, FIRST_TWO, 0, GB_SHARED_UNUSED},
    [GB_OP_MULTIPLY] = {TOKENS | COLUMNS, FIRST_TWO, FIRST_TWO, 0, GB_SHARED_UNUSED},
    [GB_OP_SCALE] = {TOKENS | COLUMNS, FIRST, FIRST, 0, GB_SHARED_UNUSED},
    [GB_OP_GELU_TANH] = {TOKENS | COLUMNS, FIRST, FIRST, 0, GB_SHARED_UNUSED},
    [GB_OP_SILU] = {TOKENS | COLUMNS, FIRST, FIRST, 0, GB_SHARED_UNUSED},
    [GB_OP_SIGMOID] = {TOKENS | COLUMNS, FIRST, FIRST, 0, GB_SHARED_UNUSED},
    [GB_OP_SOFT_CAP] = {TOKENS | COLUMNS, FIRST, FIRST, 0, GB_SHARED_UNUSED},
    [GB_OP_SLICE] = {TOKENS, FIRST, 0, 0, GB_SHARED_UNUSED},
    [GB_OP_GATHER_ROWS] = {TOKENS, OPERAND(1), 0, 0, GB_SHARED_UNUSED},
    [GB_OP_COMBINE_EXPERTS] = {TOKENS | COLUMNS, FIRST_TWO, FIRST, 0, GB_SHARED_UNUSED},
    [GB_OP_SCALE_ROWS] = {TOKENS | COLUMNS, FIRST_TWO, FIRST, 0, GB_SHARED_UNUSED},
    [GB_OP_ROUTE_TOP_K] = {TOKENS, FIRST, 0, 0, GB_SHARED_UNUSED},
    [GB_OP_DELTA_DECAY] = {TOKENS, FIRST, 0, 0, GB_SHARED_UNUSED},
    [GB_OP_CAUSAL_CONV] = {COLUMNS, 0, OPERAND(0) | OPERAND(3), OPERAND(3), GB_SHARED_UNUSED},
    [GB_OP_GATED_DELTA] = {OWN, 0, 0, OPERAND(6), GB_SHARED_UNUSED},
};

gb_kernel_traits gb_find_traits(gb_op op, bool before) {
    if (before && (op == GB_OP_LINEAR || op == GB_OP_EXPERT_LINEAR)) /* x is rounded to 8 bits */
        return (gb_kernel_traits){TOKENS | OWN, FIRST, 0, 0, GB_SHARED_WRITTEN};
    if (before && op == GB_OP_ATTENTION) /* the new tokens' keys and values go to their caches */
        return (gb_kernel_traits){TOKENS, OPERAND(0) | OPERAND(1) | OPERAND(2), 0, OPERAND(5) | OPERAND(6),
                                  GB_SHARED_UNUSED};
    if (before && op == GB_OP_COUNT_TOKENS)
        return (gb_kernel_traits){OWN, 0, 0, OPERAND(5), GB_SHARED_UNUSED};
    gb_kernel_traits found = (unsigned)op < GB_OP_LIMIT ? traits[op] : (gb_kernel_traits){.splits = 0};
    if (found.splits == 0)
        found.splits = OWN;
    return found;
}
