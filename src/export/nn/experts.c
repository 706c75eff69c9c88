/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/experts.h"

#include "export/nn/expert_biases.h"
#include "export/nn/layers.h"

#include <stdio.h>

/* The constants, and how transformers names the tensors: with the gate above up. */
static const char GATE_UP[] = "experts.gate_up_proj";
static const char DOWN[] = "experts.down_proj";

/* As mlx-lm names them behind its stack's name, and as some checkpoints name each expert's. GGUF files have
 * the same matrices. */
enum { GATE, UP, STACKED_DOWN, MATRICES };
static const char *const MATRIX_NAMES[][MATRICES] = {
    {"gate_proj.weight", "up_proj.weight", "down_proj.weight"}, {"w1.weight", "w3.weight", "w2.weight"}};

enum { NAME = 64 };

static void name_stacked(const gb_experts *experts, size_t form, int matrix, char name[NAME]) {
    snprintf(name, NAME, "%s%s", experts->mlx_stack, MATRIX_NAMES[form][matrix]);
}

/* The name of the stack that the checkpoint has, in the first form where it has none. */
static const char *stacked(const gb_scope *scope, const gb_experts *experts, int matrix, char name[NAME]) {
    for (size_t form = sizeof MATRIX_NAMES / sizeof *MATRIX_NAMES; form-- > 0;) {
        name_stacked(experts, form, matrix, name);
        if (form > 0 && gb_scope_has(scope, name) && !gb_scope_has(scope, GATE_UP))
            break;
    }
    return name;
}

/* The tensor that a constant is made of: other where the checkpoint has that. */
static const char *whole(const gb_scope *scope, const char *name, const char *other) {
    return other && gb_scope_has(scope, other) ? other : name;
}

/* Gate and up in one product; GB_NO_VALUE where the checkpoint has them in different formats. */
static gb_ref gate_up(const gb_scope *scope, const gb_experts *experts, gb_ref x, gb_ref chosen,
                      int64_t hidden) {
    char gate[NAME], up[NAME];
    stacked(scope, experts, GATE, gate);
    stacked(scope, experts, UP, up);
    const char *both = whole(scope, GATE_UP, experts->gate_up_tensor);
    const bool is_apart =
        !gb_scope_has(scope, both) && (gb_scope_has(scope, gate) || gb_scope_has(scope, up));
    const int64_t dims[] = {experts->count, 2 * experts->inner, hidden};
    gb_ref weight = is_apart ? gb_expert_matrices(scope, GATE_UP, gate, up, dims)
                             : gb_expert_matrices(scope, GATE_UP, both, NULL, dims);
    return weight == GB_NO_VALUE ? GB_NO_VALUE : gb_multiply_experts(scope, x, weight, chosen);
}

static gb_ref one_of_two(const gb_scope *scope, int matrix, const gb_experts *experts, gb_ref x,
                         gb_ref chosen, int64_t hidden) {
    char name[NAME];
    const int64_t dims[] = {experts->count, experts->inner, hidden};
    stacked(scope, experts, matrix, name);
    return gb_multiply_experts(scope, x, gb_expert_matrices(scope, name, name, NULL, dims), chosen);
}

static gb_ref clamped_swiglu(const gb_scope *scope, const gb_experts *experts, gb_ref gate, gb_ref up) {
    const gb_attribute attributes[] = {gb_float(GB_ATTRIBUTE_ALPHA, experts->alpha),
                                       gb_float(GB_ATTRIBUTE_LIMIT, experts->limit)};
    return gb_build_op(scope->builder, GB_OP_CLAMPED_SWIGLU, (const gb_ref[]){gate, up}, 2, attributes, 2);
}

static gb_ref inner_values(const gb_scope *scope, const gb_experts *experts, gb_ref x, gb_ref chosen,
                           int64_t hidden) {
    int64_t inner = experts->inner;
    gb_ref both = gate_up(scope, experts, x, chosen, hidden), gate, up;
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    if (both == GB_NO_VALUE) {
        gate = one_of_two(scope, GATE, experts, x, chosen, hidden);
        up = one_of_two(scope, UP, experts, x, chosen, hidden);
    } else {
        gate = gb_slice(scope, both, 0, inner);
        up = gb_slice(scope, both, inner, inner);
    }
    gate = gb_add_expert_bias(scope, experts, GB_GATE_PRODUCT, gate, chosen);
    up = gb_add_expert_bias(scope, experts, GB_UP_PRODUCT, up, chosen);
    if (experts->activation == GB_OP_CLAMPED_SWIGLU)
        return clamped_swiglu(scope, experts, gate, up);
    return gb_node2(scope, GB_OP_MULTIPLY, gb_node1(scope, experts->activation, gate), up);
}

gb_routes gb_route(const gb_scope *scope, const gb_experts *experts, gb_ref logits) {
    const gb_attribute attributes[] = {gb_int(GB_ATTRIBUTE_COUNT, experts->choices),
                                       gb_int(GB_ATTRIBUTE_NORMALIZE, 0)};
    gb_ref routes[2] = {GB_NO_VALUE, GB_NO_VALUE};
    gb_build_op_results(scope->builder, GB_OP_ROUTE_TOP_K, &logits, 1, attributes,
                        experts->has_plain_weights ? 2 : 1, routes, 2);
    return (gb_routes){.experts = routes[0], .weights = routes[1]};
}

gb_ref gb_chosen_experts(const gb_scope *scope, const gb_experts *experts, gb_routes routes, gb_ref x) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    const int64_t hidden = gb_build_type(scope->builder, x).shape.dims[1];
    gb_ref y = inner_values(scope, experts, x, routes.experts, hidden);
    const int64_t dims[] = {experts->count, hidden, experts->inner};
    char name[NAME];
    stacked(scope, experts, STACKED_DOWN, name);
    const char *tensor = whole(scope, DOWN, experts->down_tensor);
    const bool is_stacked = !gb_scope_has(scope, tensor) && gb_scope_has(scope, name);
    gb_ref down = gb_expert_matrices(scope, DOWN, is_stacked ? name : tensor, NULL, dims);
    y = gb_multiply_experts(scope, y, down, routes.experts);
    y = gb_add_expert_bias(scope, experts, GB_DOWN_PRODUCT, y, routes.experts);
    return gb_node2(scope, GB_OP_COMBINE_EXPERTS, y, routes.weights);
}

static gb_ref shared(const gb_scope *scope, const gb_experts *experts, gb_ref x) {
    gb_scope expert = gb_scope_in(scope, "shared_expert.");
    gb_ref y = gb_swiglu_mlp(&expert, x, experts->shared_inner);
    gb_ref gate = gb_node1(scope, GB_OP_SIGMOID, gb_gate(scope, "shared_expert_gate.weight", x, 1));
    return gb_node2(scope, GB_OP_SCALE_ROWS, y, gate);
}

gb_ref gb_expert_mlp(const gb_scope *scope, const gb_experts *experts, gb_ref x) {
    const gb_scope router = gb_scope_in(scope, "%s", experts->router ? experts->router : "gate.");
    gb_ref logits = gb_gate(&router, "weight", x, experts->count);
    if (experts->has_biases)
        logits = gb_add_bias(&router, "bias", logits);
    gb_ref y = gb_chosen_experts(scope, experts, gb_route(scope, experts, logits), x);
    return experts->shared_inner == 0 ? y : gb_node2(scope, GB_OP_ADD, y, shared(scope, experts, x));
}
