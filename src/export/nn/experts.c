/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/experts.h"

#include "export/nn/layers.h"

#include <stdio.h>

static gb_ref expert_linear(const gb_scope *scope, const char *name, gb_ref x, gb_ref chosen,
                            const gb_experts *experts, int64_t outputs, int64_t inputs) {
    gb_ref weight = gb_expert_matrices(scope, name, experts->count, outputs, inputs);
    return gb_multiply_experts(scope, x, weight, chosen);
}

/* As mlx-lm names them; GGUF files have the same matrices. */
static const char GATE[] = "switch_mlp.gate_proj.weight";
static const char UP[] = "switch_mlp.up_proj.weight";
static const char DOWN[] = "switch_mlp.down_proj.weight";

/* As transformers does, with the gate above up. */
static const char GATE_UP[] = "experts.gate_up_proj";
static const char STACKED_DOWN[] = "experts.down_proj";

static bool has(const gb_scope *scope, const char *name) {
    char full[GB_SCOPE_NAME + 64];
    snprintf(full, sizeof full, "%s%s", scope->prefix, name);
    return gb_weights_has(scope->weights, full);
}

static gb_ref inner_values(const gb_scope *scope, const gb_experts *experts, gb_ref x, gb_ref chosen,
                           int64_t hidden) {
    int64_t inner = experts->inner;
    gb_ref gate, up;
    if (!has(scope, GATE_UP) && (has(scope, GATE) || has(scope, UP))) {
        gate = expert_linear(scope, GATE, x, chosen, experts, inner, hidden);
        up = expert_linear(scope, UP, x, chosen, experts, inner, hidden);
    } else {
        gb_ref both = expert_linear(scope, GATE_UP, x, chosen, experts, 2 * inner, hidden);
        gate = gb_slice(scope, both, 0, inner);
        up = gb_slice(scope, both, inner, inner);
    }
    return gb_node2(scope, GB_OP_MULTIPLY, gb_node1(scope, GB_OP_SILU, gate), up);
}

static gb_ref routed(const gb_scope *scope, const gb_experts *experts, gb_ref x, int64_t hidden) {
    const gb_attribute count = gb_int(GB_ATTRIBUTE_COUNT, experts->choices);
    gb_ref logits = gb_linear(scope, "gate.weight", x, experts->count);
    gb_ref routes[2]; /* experts, weights */
    gb_build_op_results(scope->builder, GB_OP_ROUTE_TOP_K, &logits, 1, &count, 1, routes, 2);
    gb_ref y = inner_values(scope, experts, x, routes[0], hidden);
    bool is_stacked = has(scope, STACKED_DOWN) || !has(scope, DOWN);
    y = expert_linear(scope, is_stacked ? STACKED_DOWN : DOWN, y, routes[0], experts, hidden, experts->inner);
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
