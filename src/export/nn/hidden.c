/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/hidden.h"

gb_ref gb_hidden_rows(const gb_scope *scope, const gb_context *context, int64_t width) {
    const int64_t dims[] = {context->max_context, 1, width};
    return gb_build_state(scope->builder, "hidden", GB_STATE_CACHE, GB_BF16, 3, dims, 0);
}

gb_ref gb_keep_hidden(const gb_scope *scope, gb_ref x, gb_ref hidden, int64_t start) {
    const gb_ref operands[] = {x, gb_build_input(scope->builder, GB_ROLE_POSITIONS),
                               gb_build_input(scope->builder, GB_ROLE_SLOTS), hidden};
    const gb_attribute attribute = gb_int(GB_ATTRIBUTE_START, start);
    return gb_build_op(scope->builder, GB_OP_KEEP_HIDDEN, operands, 4, &attribute, 1);
}

gb_ref gb_load_hidden(const gb_scope *scope, gb_ref hidden, int64_t before) {
    const gb_ref operands[] = {gb_build_input(scope->builder, GB_ROLE_POSITIONS),
                               gb_build_input(scope->builder, GB_ROLE_SLOTS), hidden};
    const gb_attribute attribute = gb_int(GB_ATTRIBUTE_BEFORE, before);
    return gb_build_op(scope->builder, GB_OP_LOAD_HIDDEN, operands, 3, &attribute, 1);
}
