/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/layers.h"

#include <stdio.h>

/* The last dim of a value; 1 after an error, when the value is not there. */
static int64_t width(const gb_scope *scope, gb_ref x) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return 1;
    gb_type type = gb_build_type(scope->builder, x);
    return type.shape.rank > 0 ? type.shape.dims[type.shape.rank - 1] : 1;
}

gb_ref gb_linear(const gb_scope *scope, const char *name, gb_ref x, int64_t outputs) {
    return gb_multiply_matrix(scope, x, gb_matrix(scope, name, outputs, width(scope, x)));
}

gb_ref gb_linear_heads(const gb_scope *scope, const char *name, gb_ref x, int64_t heads, int64_t head_dim) {
    return gb_split_heads(scope, gb_linear(scope, name, x, heads * head_dim), heads);
}

gb_ref gb_gate(const gb_scope *scope, const char *name, gb_ref x, int64_t outputs) {
    return gb_multiply_matrix(scope, x, gb_gate_matrix(scope, name, outputs, width(scope, x)));
}

gb_ref gb_linear_of(const gb_scope *scope, const char *name, const gb_fused_rows *fused, gb_ref x,
                    int64_t outputs) {
    return gb_multiply_matrix(scope, x, gb_matrix_of(scope, name, fused, outputs, width(scope, x)));
}

gb_ref gb_add_bias(const gb_scope *scope, const char *name, gb_ref x) {
    const int64_t size = width(scope, x);
    return gb_node2(scope, GB_OP_ADD_BIAS, x, gb_weight(scope, name, 1, &size, gb_random_bias()));
}

static const char HEAD[] = "lm_head.weight", EMBEDDING[] = "embed_tokens.weight";

/* Whether the head is the table: a checkpoint may have quantized a tied one by itself. */
static bool is_shared(const gb_scope *head, bool is_tied) {
    char full[GB_SCOPE_NAME + 64];
    snprintf(full, sizeof full, "%s%s", head->prefix, HEAD);
    return is_tied && !gb_weights_is_packed(head->weights, full);
}

gb_ref gb_token_table(const gb_scope *scope, const gb_scope *head, int64_t vocab_size, int64_t hidden_size,
                      bool is_tied) {
    return (is_shared(head, is_tied) ? gb_tied_table : gb_table)(scope, EMBEDDING, vocab_size, hidden_size);
}

gb_ref gb_head(const gb_scope *scope, const gb_scope *head, gb_ref x, gb_ref table, int64_t vocab_size,
               bool is_tied) {
    if (!is_shared(head, is_tied))
        return gb_linear(head, HEAD, x, vocab_size);
    return gb_multiply_matrix(scope, x, table);
}

gb_ref gb_rms_norm(const gb_scope *scope, const char *name, gb_ref x, double epsilon) {
    return gb_node_with(scope, GB_OP_RMS_NORM, x, gb_gain(scope, name, width(scope, x)),
                        gb_float(GB_ATTRIBUTE_EPSILON, epsilon));
}

gb_ref gb_rms_norm_times(const gb_scope *scope, const char *name, gb_ref x, double epsilon, double scale) {
    const gb_ref operands[] = {x, gb_gain(scope, name, width(scope, x))};
    const gb_attribute attributes[] = {gb_float(GB_ATTRIBUTE_EPSILON, epsilon),
                                       gb_float(GB_ATTRIBUTE_SCALE, scale)};
    return gb_build_op(scope->builder, GB_OP_RMS_NORM, operands, 2, attributes, 2);
}

gb_ref gb_rms_norm_from_one(const gb_scope *scope, const char *name, gb_ref x, double epsilon) {
    const int64_t size = width(scope, x);
    const gb_ref operands[] = {x, gb_weight(scope, name, 1, &size, gb_random_difference())};
    const gb_attribute attributes[] = {gb_float(GB_ATTRIBUTE_EPSILON, epsilon),
                                       gb_float(GB_ATTRIBUTE_WEIGHT_OFFSET, 1)};
    return gb_build_op(scope->builder, GB_OP_RMS_NORM, operands, 2, attributes, 2);
}

gb_ref gb_rms_normalize(const gb_scope *scope, gb_ref x, double epsilon) {
    return gb_node_with(scope, GB_OP_RMS_NORM, x, GB_NO_VALUE, gb_float(GB_ATTRIBUTE_EPSILON, epsilon));
}

gb_ref gb_split_heads(const gb_scope *scope, gb_ref x, int64_t heads) {
    return gb_node_with(scope, GB_OP_SPLIT_HEADS, x, GB_NO_VALUE, gb_int(GB_ATTRIBUTE_HEADS, heads));
}

gb_ref gb_slice(const gb_scope *scope, gb_ref x, int64_t start, int64_t count) {
    const gb_attribute attributes[] = {gb_int(GB_ATTRIBUTE_START, start), gb_int(GB_ATTRIBUTE_COUNT, count)};
    return gb_build_op(scope->builder, GB_OP_SLICE, &x, 1, attributes, 2);
}

gb_ref gb_gather_rows(const gb_scope *scope, gb_ref x) {
    return gb_node2(scope, GB_OP_GATHER_ROWS, x, gb_build_input(scope->builder, GB_ROLE_ROWS));
}

static gb_ref gated_mlp(const gb_scope *scope, const gb_mlp_tensors *tensors, gb_ref x, int64_t inner,
                        gb_op activation) {
    const gb_fused_rows above = {.tensor = tensors->gate_up, .rows = 2 * inner},
                        below = {.tensor = tensors->gate_up, .rows = 2 * inner, .first = inner},
                        down = {.tensor = tensors->down, .rows = width(scope, x)};
    gb_ref gate = gb_node1(scope, activation, gb_linear_of(scope, "gate_proj.weight", &above, x, inner));
    gb_ref up = gb_linear_of(scope, "up_proj.weight", &below, x, inner);
    return gb_linear_of(scope, "down_proj.weight", &down, gb_node2(scope, GB_OP_MULTIPLY, gate, up),
                        width(scope, x));
}

gb_ref gb_geglu_mlp(const gb_scope *scope, gb_ref x, int64_t inner) {
    return gated_mlp(scope, &(gb_mlp_tensors){0}, x, inner, GB_OP_GELU_TANH);
}

gb_ref gb_swiglu_mlp(const gb_scope *scope, gb_ref x, int64_t inner) {
    return gb_fused_swiglu_mlp(scope, &(gb_mlp_tensors){0}, x, inner);
}

gb_ref gb_fused_swiglu_mlp(const gb_scope *scope, const gb_mlp_tensors *tensors, gb_ref x, int64_t inner) {
    return gated_mlp(scope, tensors, x, inner, GB_OP_SILU);
}
