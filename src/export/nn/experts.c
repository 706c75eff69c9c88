/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/experts.h"

#include "export/nn/layers.h"

#include <stdio.h>

/* The constants, and how transformers names the tensors: with the gate above up. */
static const char GATE_UP[] = "experts.gate_up_proj";
static const char DOWN[] = "experts.down_proj";

/* As mlx-lm names them; GGUF files have the same matrices. */
static const char MLX_GATE[] = "switch_mlp.gate_proj.weight";
static const char MLX_UP[] = "switch_mlp.up_proj.weight";
static const char MLX_DOWN[] = "switch_mlp.down_proj.weight";

static bool has(const gb_scope *scope, const char *name) {
    char full[GB_SCOPE_NAME + 64];
    snprintf(full, sizeof full, "%s%s", scope->prefix, name);
    return gb_weights_has(scope->weights, full);
}

/* Gate and up in one product; GB_NO_VALUE where the checkpoint has them in different formats. */
static gb_ref gate_up(const gb_scope *scope, const gb_experts *experts, gb_ref x, gb_ref chosen,
                      int64_t hidden) {
    const bool is_apart = !has(scope, GATE_UP) && (has(scope, MLX_GATE) || has(scope, MLX_UP));
    const int64_t dims[] = {experts->count, 2 * experts->inner, hidden};
    gb_ref weight = is_apart ? gb_expert_matrices(scope, GATE_UP, MLX_GATE, MLX_UP, dims)
                             : gb_expert_matrices(scope, GATE_UP, GATE_UP, NULL, dims);
    return weight == GB_NO_VALUE ? GB_NO_VALUE : gb_multiply_experts(scope, x, weight, chosen);
}

static gb_ref one_of_two(const gb_scope *scope, const char *name, const gb_experts *experts, gb_ref x,
                         gb_ref chosen, int64_t hidden) {
    const int64_t dims[] = {experts->count, experts->inner, hidden};
    return gb_multiply_experts(scope, x, gb_expert_matrices(scope, name, name, NULL, dims), chosen);
}

static gb_ref inner_values(const gb_scope *scope, const gb_experts *experts, gb_ref x, gb_ref chosen,
                           int64_t hidden) {
    int64_t inner = experts->inner;
    gb_ref both = gate_up(scope, experts, x, chosen, hidden), gate, up;
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    if (both == GB_NO_VALUE) {
        gate = one_of_two(scope, MLX_GATE, experts, x, chosen, hidden);
        up = one_of_two(scope, MLX_UP, experts, x, chosen, hidden);
    } else {
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
    const int64_t dims[] = {experts->count, hidden, experts->inner};
    const bool is_mlx = !has(scope, DOWN) && has(scope, MLX_DOWN);
    gb_ref down = gb_expert_matrices(scope, DOWN, is_mlx ? MLX_DOWN : DOWN, NULL, dims);
    y = gb_multiply_experts(scope, y, down, routes[0]);
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
