/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/query_scale.h"

#include "base/memory.h"

#include <math.h>

gb_ref gb_query_scale(const gb_scope *scope, const char *name, double beta, double positions,
                      int64_t max_context) {
    if (beta == 0 || (double)max_context <= positions)
        return GB_NO_VALUE;
    float *scales = gb_allocate((size_t)max_context, sizeof *scales);
    if (!scales) {
        gb_builder_fail(scope->builder, GUMBEL_ERROR_MEMORY, "no memory for %s", name);
        return GB_NO_VALUE;
    }
    for (int64_t i = 0; i < max_context; i++)
        scales[i] = (float)(1 + beta * log(1 + floor((double)i / positions)));
    const gb_ref table = gb_value_rows(scope, name, scales, (size_t)max_context);
    gb_free(scales);
    return gb_embedding(scope, table, gb_build_input(scope->builder, GB_ROLE_POSITIONS), 1);
}
