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

gb_ref gb_matrix(const gb_scope *scope, const char *name, int64_t outputs, int64_t inputs) {
    const int64_t dims[] = {outputs, inputs};
    return gb_weight(scope, name, 2, dims, gb_random_matrix(inputs));
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
