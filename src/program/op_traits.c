/* SPDX-License-Identifier: Apache-2.0 */
#include "program/op_traits.h"

#include "program/signature.h"

static const gb_op_traits traits[GB_OP_LIMIT] = {
#define GB_OP(number, NAME, name, signature, attributes, before_, ...)                                       \
    [number] = {.before = GB_BEFORE_##before_, __VA_ARGS__},
#include "program/ops.def"
#undef GB_OP
};

const gb_op_traits *gb_op_traits_find(uint32_t number) {
    return gb_op_find(number) ? &traits[number] : NULL;
}

static int64_t first_dim(const gb_type_pattern *pattern) {
    return pattern->dim_count > 0 ? pattern->dims[0] : 0;
}

static int64_t last_dim(const gb_type_pattern *pattern) {
    return pattern->dim_count > 0 ? pattern->dims[pattern->dim_count - 1] : 0;
}

static bool is_state(const gb_type_pattern *pattern) {
    return pattern->kind == GB_PATTERN_CACHE || pattern->kind == GB_PATTERN_STATE ||
           pattern->kind == GB_PATTERN_I32_STATE;
}

/* The same letter stands for the same tokens or columns. A result that a rule computes has operand 0's
 * tokens, and columns of its own. */
gb_operand_roles gb_op_operand_roles(gb_op op) {
    gb_operand_roles roles = {0};
    const gb_op_info *info = gb_op_find(op);
    gb_signature signature;
    if (!info || !gb_signature_parse(info, &signature))
        return roles;
    const gb_type_pattern *result = &signature.results[0];
    const bool is_computed = result->kind == GB_PATTERN_RULE;
    const int64_t tokens = first_dim(is_computed ? &signature.operands[0] : result);
    for (uint32_t i = 0; i < signature.operand_count; i++) {
        const gb_type_pattern *operand = &signature.operands[i];
        const uint8_t bit = (uint8_t)(1u << i);
        roles.by_token |= first_dim(operand) == tokens ? bit : 0;
        roles.by_column |= !is_computed && last_dim(operand) == last_dim(result) ? bit : 0;
        roles.states |= is_state(operand) ? bit : 0;
    }
    return roles;
}
