/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/experts.h"

#include "export/nn/layers.h"

static gb_ref expert_linear(const gb_scope *scope, const char *name, gb_ref x, gb_ref chosen,
                            const gb_experts *experts, int64_t outputs, int64_t inputs) {
    gb_ref weight = gb_expert_matrices(scope, name, experts->count, outputs, inputs);
    return gb_multiply_experts(scope, x, weight, chosen);
}

static gb_ref routed(const gb_scope *scope, const gb_experts *experts, gb_ref x, int64_t hidden) {
    const gb_attribute count = gb_int(GB_ATTRIBUTE_COUNT, experts->choices);
    gb_ref logits = gb_linear(scope, "gate.weight", x, experts->count);
    gb_ref routes[2]; /* experts, weights */
    gb_build_op_results(scope->builder, GB_OP_ROUTE_TOP_K, &logits, 1, &count, 1, routes, 2);
    gb_ref both =
        expert_linear(scope, "experts.gate_up_proj", x, routes[0], experts, 2 * experts->inner, hidden);
    gb_ref gate = gb_node1(scope, GB_OP_SILU, gb_slice(scope, both, 0, experts->inner));
    gb_ref up = gb_slice(scope, both, experts->inner, experts->inner);
    gb_ref y = gb_node2(scope, GB_OP_MULTIPLY, gate, up);
    y = expert_linear(scope, "experts.down_proj", y, routes[0], experts, hidden, experts->inner);
    return gb_node2(scope, GB_OP_COMBINE_EXPERTS, y, routes[1]);
}

static gb_ref shared(const gb_scope *scope, const gb_experts *experts, gb_ref x) {
    gb_scope expert = gb_scope_in(scope, "shared_expert.");
    gb_ref y = gb_swiglu_mlp(&expert, x, experts->shared_inner);
    gb_ref gate = gb_node1(scope, GB_OP_SIGMOID, gb_linear(scope, "shared_expert_gate.weight", x, 1));
    return gb_node2(scope, GB_OP_SCALE_ROWS, y, gate);
}

gb_ref gb_expert_mlp(const gb_scope *scope, const gb_experts *experts, gb_ref x) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    int64_t hidden = gb_build_type(scope->builder, x).shape.dims[1];
    gb_ref y = routed(scope, experts, x, hidden);
    return gb_node2(scope, GB_OP_ADD, y, shared(scope, experts, x));
}
