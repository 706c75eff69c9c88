/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/graph.h"

#include <stdio.h>
#include <string.h>

gb_scope gb_scope_in(const gb_scope *scope, const char *format, ...) {
    gb_scope inner = *scope;
    size_t used = strlen(inner.prefix);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(inner.prefix + used, sizeof inner.prefix - used, format, arguments);
    va_end(arguments);
    return inner;
}

gb_ref gb_weight(const gb_scope *scope, const char *name, int32_t rank, const int64_t *dims,
                 gb_uniform uniform) {
    char full[GB_SCOPE_NAME + 64];
    snprintf(full, sizeof full, "%s%s", scope->prefix, name);
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    gumbel_error error;
    gb_dtype dtype = GB_DTYPE_NONE;
    gumbel_status status = gb_weights_add_tensor(scope->weights, full, rank, dims, uniform, &dtype, &error);
    if (status != GUMBEL_OK) {
        gb_builder_fail(scope->builder, status, "%s", error.message);
        return GB_NO_VALUE;
    }
    return gb_build_constant(scope->builder, full, dtype, rank, dims);
}

gb_ref gb_weight_in_turns(const gb_scope *scope, const char *name, const char *tensor, bool is_second,
                          const int64_t dims[2]) {
    char full[GB_SCOPE_NAME + 64], from[GB_SCOPE_NAME + 64];
    snprintf(full, sizeof full, "%s%s", scope->prefix, name);
    snprintf(from, sizeof from, "%s%s", scope->prefix, tensor);
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    gumbel_error error;
    gumbel_status status = gb_weights_add_in_turns(scope->weights, from, is_second, dims, &error);
    if (status != GUMBEL_OK) {
        gb_builder_fail(scope->builder, status, "%s", error.message);
        return GB_NO_VALUE;
    }
    return gb_build_constant(scope->builder, full, GB_F32, 2, dims);
}

/* The constant of a matrix, or of several; GB_NO_VALUE where its tensors cannot be stacked. */
static gb_ref matrix(const gb_scope *scope, const gb_matrix_request *request) {
    gumbel_error error;
    gb_stored stored;
    bool is_added;
    const int32_t rank = request->rank;
    gumbel_status status = gb_weights_add_matrix(
        scope->weights, request, gb_random_matrix(request->dims[rank - 1]), &stored, &is_added, &error);
    if (status != GUMBEL_OK)
        gb_builder_fail(scope->builder, status, "%s", error.message);
    if (status != GUMBEL_OK || !is_added)
        return GB_NO_VALUE;
    return stored.dtype == GB_QUANTIZED
               ? gb_build_quantized(scope->builder, request->name, &stored.format, rank, request->dims)
               : gb_build_constant(scope->builder, request->name, stored.dtype, rank, request->dims);
}

/* A matrix made from the tensor of that name; of the request its rank, dims, rule and kind are given. */
static gb_ref scoped_matrix(const gb_scope *scope, const char *name, gb_matrix_request request) {
    char full[GB_SCOPE_NAME + 64];
    snprintf(full, sizeof full, "%s%s", scope->prefix, name);
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    request.name = request.tensors[0] = full;
    return matrix(scope, &request);
}

gb_ref gb_matrix(const gb_scope *scope, const char *name, int64_t outputs, int64_t inputs) {
    const int64_t dims[] = {outputs, inputs};
    return scoped_matrix(scope, name, (gb_matrix_request){.rank = 2, .dims = dims});
}

gb_ref gb_gate_matrix(const gb_scope *scope, const char *name, int64_t outputs, int64_t inputs) {
    const int64_t dims[] = {outputs, inputs};
    return scoped_matrix(scope, name, (gb_matrix_request){.rank = 2, .dims = dims, .is_gate = true});
}

gb_ref gb_table(const gb_scope *scope, const char *name, int64_t rows, int64_t columns) {
    const int64_t dims[] = {rows, columns};
    return scoped_matrix(scope, name, (gb_matrix_request){.rank = 2, .dims = dims, .is_table = true});
}

gb_ref gb_tied_table(const gb_scope *scope, const char *name, int64_t rows, int64_t columns) {
    const int64_t dims[] = {rows, columns};
    return scoped_matrix(scope, name,
                         (gb_matrix_request){.rule_name = "lm_head.weight", .rank = 2, .dims = dims});
}

bool gb_scope_has(const gb_scope *scope, const char *name) {
    char full[GB_SCOPE_NAME + 64];
    snprintf(full, sizeof full, "%s%s", scope->prefix, name);
    return gb_weights_has(scope->weights, full);
}

/* Whether a matrix that may be a part of a larger tensor is one by itself: random weights have both names. */
static bool is_apart(const gb_scope *scope, const char *name, const gb_fused_rows *fused) {
    if (!fused->tensor)
        return true;
    return gb_scope_has(scope, name) && (fused->run_count > 0 || !gb_scope_has(scope, fused->tensor));
}

gb_ref gb_matrix_of(const gb_scope *scope, const char *name, const gb_fused_rows *fused, int64_t outputs,
                    int64_t inputs) {
    char full[GB_SCOPE_NAME + 64], tensor[GB_SCOPE_NAME + 64];
    if (is_apart(scope, name, fused))
        return gb_matrix(scope, name, outputs, inputs);
    snprintf(full, sizeof full, "%s%s", scope->prefix, name);
    snprintf(tensor, sizeof tensor, "%s%s", scope->prefix, fused->tensor);
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    return matrix(scope, &(gb_matrix_request){.name = full,
                                              .tensors = {tensor},
                                              .rank = 2,
                                              .dims = (const int64_t[]){outputs, inputs},
                                              .whole_rows = fused->rows,
                                              .first_row = fused->first,
                                              .runs = fused->run_count > 0 ? fused->runs : NULL,
                                              .run_count = fused->run_count});
}

gb_ref gb_expert_matrices(const gb_scope *scope, const char *name, const char *first, const char *second,
                          const int64_t dims[3]) {
    char full[GB_SCOPE_NAME + 64], tensors[GB_PACKED_PARTS][GB_SCOPE_NAME + 64];
    snprintf(full, sizeof full, "%s%s", scope->prefix, name);
    snprintf(tensors[0], sizeof tensors[0], "%s%s", scope->prefix, first);
    snprintf(tensors[1], sizeof tensors[1], "%s%s", scope->prefix, second ? second : "");
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    return matrix(scope, &(gb_matrix_request){.name = full,
                                              .tensors = {tensors[0], second ? tensors[1] : NULL},
                                              .rank = 3,
                                              .dims = dims});
}

/* How products take their input beside a constant, which the operand is. */
static gb_product_input input_beside(const gb_scope *scope, gb_ref operand) {
    uint32_t constant;
    return gb_build_constant_index(scope->builder, operand, &constant)
               ? gb_weights_input(scope->weights, constant)
               : (gb_product_input){GB_ACTIVATION_NONE, 0};
}

/* A node that multiplies by the operand weight. */
static gb_ref multiply(const gb_scope *scope, gb_op op, const gb_ref *operands, uint32_t count,
                       gb_ref weight) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    const gb_product_input input = input_beside(scope, weight);
    const gb_attribute attributes[] = {gb_int(GB_ATTRIBUTE_ACTIVATION, input.activation),
                                       gb_int(GB_ATTRIBUTE_ROTATION, input.rotation)};
    const uint32_t attribute_count = input.activation == GB_ACTIVATION_NONE ? 0 : input.rotation == 0 ? 1 : 2;
    return gb_build_op(scope->builder, op, operands, count, attributes, attribute_count);
}

gb_ref gb_multiply_matrix(const gb_scope *scope, gb_ref x, gb_ref weight) {
    return multiply(scope, GB_OP_LINEAR, (const gb_ref[]){x, weight}, 2, weight);
}

gb_ref gb_multiply_experts(const gb_scope *scope, gb_ref x, gb_ref weight, gb_ref chosen) {
    return multiply(scope, GB_OP_EXPERT_LINEAR, (const gb_ref[]){x, weight, chosen}, 3, weight);
}

gb_ref gb_embedding(const gb_scope *scope, gb_ref table, gb_ref tokens, double factor) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    const uint32_t rotation = input_beside(scope, table).rotation;
    gb_attribute attributes[2];
    uint32_t count = 0;
    if (factor != 1)
        attributes[count++] = gb_float(GB_ATTRIBUTE_SCALE, factor);
    if (rotation > 0)
        attributes[count++] = gb_int(GB_ATTRIBUTE_ROTATION, rotation);
    return gb_build_op(scope->builder, GB_OP_EMBEDDING, (const gb_ref[]){table, tokens}, 2, attributes,
                       count);
}

gb_ref gb_gain(const gb_scope *scope, const char *name, int64_t size) {
    return gb_weight(scope, name, 1, &size, gb_random_gain());
}

gb_ref gb_recurrent_state(const gb_scope *scope, const char *name, const char *suffix, int32_t rank,
                          const int64_t *dims) {
    char full[GB_SCOPE_NAME];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    return gb_build_state(scope->builder, full, GB_STATE_RECURRENT, GB_F32, rank, dims, 0);
}

static gb_ref add_values(const gb_scope *scope, const char *name, const float *values, int32_t rank,
                         size_t count) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    gumbel_error error;
    gumbel_status status = gb_weights_add_values(scope->weights, values, count, &error);
    if (status != GUMBEL_OK) {
        gb_builder_fail(scope->builder, status, "%s", error.message);
        return GB_NO_VALUE;
    }
    return gb_build_constant(scope->builder, name, GB_F32, rank, (const int64_t[]){(int64_t)count, 1});
}

gb_ref gb_values(const gb_scope *scope, const char *name, const float *values, size_t count) {
    return add_values(scope, name, values, 1, count);
}

gb_ref gb_value_rows(const gb_scope *scope, const char *name, const float *values, size_t count) {
    return add_values(scope, name, values, 2, count);
}

gb_ref gb_node1(const gb_scope *scope, gb_op op, gb_ref a) {
    return gb_build_op(scope->builder, op, &a, 1, NULL, 0);
}

gb_ref gb_node2(const gb_scope *scope, gb_op op, gb_ref a, gb_ref b) {
    return gb_build_op(scope->builder, op, (const gb_ref[]){a, b}, 2, NULL, 0);
}

gb_ref gb_node3(const gb_scope *scope, gb_op op, gb_ref a, gb_ref b, gb_ref c) {
    return gb_build_op(scope->builder, op, (const gb_ref[]){a, b, c}, 3, NULL, 0);
}

gb_ref gb_node_with(const gb_scope *scope, gb_op op, gb_ref a, gb_ref b, gb_attribute attribute) {
    return gb_build_op(scope->builder, op, (const gb_ref[]){a, b}, b == GB_NO_VALUE ? 1 : 2, &attribute, 1);
}
