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

static gb_ref scoped_matrix(const gb_scope *scope, const char *name, bool is_table, const int64_t dims[2]) {
    char full[GB_SCOPE_NAME + 64];
    snprintf(full, sizeof full, "%s%s", scope->prefix, name);
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    return matrix(scope, &(gb_matrix_request){
                             .name = full, .tensors = {full}, .rank = 2, .dims = dims, .is_table = is_table});
}

gb_ref gb_matrix(const gb_scope *scope, const char *name, int64_t outputs, int64_t inputs) {
    return scoped_matrix(scope, name, false, (const int64_t[]){outputs, inputs});
}

gb_ref gb_table(const gb_scope *scope, const char *name, int64_t rows, int64_t columns) {
    return scoped_matrix(scope, name, true, (const int64_t[]){rows, columns});
}

bool gb_scope_has(const gb_scope *scope, const char *name) {
    char full[GB_SCOPE_NAME + 64];
    snprintf(full, sizeof full, "%s%s", scope->prefix, name);
    return gb_weights_has(scope->weights, full);
}

gb_ref gb_matrix_of(const gb_scope *scope, const char *name, const gb_fused_rows *fused, int64_t outputs,
                    int64_t inputs) {
    char full[GB_SCOPE_NAME + 64], tensor[GB_SCOPE_NAME + 64];
    if (!fused->tensor || (!gb_scope_has(scope, fused->tensor) && gb_scope_has(scope, name)))
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
                                              .first_row = fused->first});
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

gb_ref gb_tied_head(const gb_scope *scope, const char *name, gb_ref embedding) {
    static const char HEAD[] = "lm_head.weight";
    char tensor[GB_SCOPE_NAME + 64];
    snprintf(tensor, sizeof tensor, "%s%s", scope->prefix, name);
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    gb_type type = gb_build_type(scope->builder, embedding);
    gb_stored table, head;
    gumbel_error error;
    const gb_matrix_request as_table = {
        .name = tensor, .tensors = {tensor}, .rank = 2, .dims = type.shape.dims, .is_table = true};
    const gb_matrix_request as_head = {.name = HEAD, .tensors = {tensor}, .rank = 2, .dims = type.shape.dims};
    gumbel_status status = gb_weights_plan_matrix(scope->weights, &as_table, &table, &error);
    if (status == GUMBEL_OK)
        status = gb_weights_plan_matrix(scope->weights, &as_head, &head, &error);
    if (status != GUMBEL_OK) {
        gb_builder_fail(scope->builder, status, "%s", error.message);
        return GB_NO_VALUE;
    }
    if (table.dtype == head.dtype && head.rotation == 0 && gb_format_equal(&table.format, &head.format))
        return embedding;
    return matrix(scope, &as_head);
}

/* A node that multiplies by the operand weight. */
static gb_ref multiply(const gb_scope *scope, gb_op op, const gb_ref *operands, uint32_t count,
                       gb_ref weight) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    uint32_t constant;
    gb_product_input input = {GB_ACTIVATION_NONE, 0};
    if (gb_build_constant_index(scope->builder, weight, &constant))
        input = gb_weights_input(scope->weights, constant);
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

gb_ref gb_gain(const gb_scope *scope, const char *name, int64_t size) {
    return gb_weight(scope, name, 1, &size, gb_random_gain());
}

gb_ref gb_values(const gb_scope *scope, const char *name, const float *values, size_t count) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    gumbel_error error;
    gumbel_status status = gb_weights_add_values(scope->weights, values, count, &error);
    if (status != GUMBEL_OK) {
        gb_builder_fail(scope->builder, status, "%s", error.message);
        return GB_NO_VALUE;
    }
    const int64_t size = (int64_t)count;
    return gb_build_constant(scope->builder, name, GB_F32, 1, &size);
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
