/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/expert_biases.h"

#include <stdio.h>

static gb_ref find_bias(const gb_scope *scope, const gb_experts *experts, gb_expert_product product,
                        int64_t columns) {
    static const char *const names[] = {"gate_proj.bias", "up_proj.bias", "down_proj.bias"};
    static const char in_turns[] = "experts.gate_up_proj_bias", down[] = "experts.down_proj_bias";
    const int64_t dims[] = {experts->count, columns};
    char name[64];
    snprintf(name, sizeof name, "%s%s", experts->mlx_stack, names[product]);
    if (gb_scope_has(scope, name))
        return gb_weight(scope, name, 2, dims, gb_random_bias());
    return product == GB_DOWN_PRODUCT
               ? gb_weight(scope, down, 2, dims, gb_random_bias())
               : gb_weight_in_turns(scope, name, in_turns, product == GB_UP_PRODUCT, dims);
}

gb_ref gb_add_expert_bias(const gb_scope *scope, const gb_experts *experts, gb_expert_product product,
                          gb_ref y, gb_ref chosen) {
    if (!experts->has_biases || gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return y;
    const int64_t columns = gb_build_type(scope->builder, y).shape.dims[2];
    return gb_node3(scope, GB_OP_ADD_EXPERT_BIAS, y, find_bias(scope, experts, product, columns), chosen);
}
