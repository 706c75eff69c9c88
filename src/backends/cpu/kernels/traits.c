/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

static gb_kernel_traits traits_of_kernel(const gb_op_traits *op, gb_operand_roles roles) {
    return (gb_kernel_traits){
        .splits = op->splits ? op->splits : GB_SPLIT_OWN,
        .own_tokens = roles.by_token,
        .own_columns = roles.by_column,
        .changed = op->before == GB_BEFORE_APPEND ? 0 : roles.states,
        .shared = op->before == GB_BEFORE_ROUND ? GB_SHARED_READ : GB_SHARED_UNUSED,
    };
}

static gb_kernel_traits traits_before(const gb_op_traits *op, gb_operand_roles roles) {
    const bool appends = op->before == GB_BEFORE_APPEND;
    return (gb_kernel_traits){
        .splits = op->splits_before ? op->splits_before : GB_SPLIT_OWN,
        .own_tokens = roles.by_token,
        .changed = appends ? roles.states : 0,
        .shared = appends ? GB_SHARED_UNUSED : GB_SHARED_WRITTEN,
    };
}

gb_kernel_traits gb_find_traits(gb_op op, bool before) {
    const gb_op_traits *traits = gb_op_traits_find(op);
    if (!traits)
        return (gb_kernel_traits){.splits = GB_SPLIT_OWN};
    const gb_operand_roles roles = gb_op_operand_roles(op);
    return before ? traits_before(traits, roles) : traits_of_kernel(traits, roles);
}
