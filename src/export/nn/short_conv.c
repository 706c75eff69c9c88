/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/short_conv.h"

#include "export/nn/layers.h"

static gb_ref part(const gb_scope *scope, const char *name, int64_t number, gb_ref x, int64_t hidden) {
    const gb_fused_rows rows = {.tensor = "in_proj.weight", .rows = 3 * hidden, .first = number * hidden};
    return gb_linear_of(scope, name, &rows, x, hidden);
}

static gb_ref convolve(const gb_scope *scope, int64_t width, const char *name, gb_ref x, int64_t hidden) {
    const int64_t kernel[] = {hidden, 1, width}, tail[] = {width - 1, hidden};
    const gb_ref operands[] = {
        x,
        gb_weight(scope, "conv.weight", 3, kernel, gb_random_matrix(width)),
        gb_build_input(scope->builder, GB_ROLE_SLOTS),
        gb_recurrent_state(scope, name, ".conv", 2, tail),
    };
    return gb_build_op(scope->builder, GB_OP_CAUSAL_CONV, operands, 4, NULL, 0);
}

gb_ref gb_short_conv(const gb_scope *scope, int64_t width, const char *name, gb_ref x, bool rows_only) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    const int64_t hidden = gb_build_type(scope->builder, x).shape.dims[1];
    const gb_ref b = part(scope, "in_proj_b.weight", 0, x, hidden),
                 v = part(scope, "in_proj_x.weight", 2, x, hidden);
    gb_ref y = convolve(scope, width, name, gb_node2(scope, GB_OP_MULTIPLY, b, v), hidden);
    if (rows_only) {
        x = gb_gather_rows(scope, x);
        y = gb_gather_rows(scope, y);
    }
    y = gb_node2(scope, GB_OP_MULTIPLY, part(scope, "in_proj_c.weight", 1, x, hidden), y);
    return gb_linear(scope, "out_proj.weight", y, hidden);
}
