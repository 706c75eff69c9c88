/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

#include <string.h>

/* operands: table [R,K], tokens [M]. The engine has checked the ids; a wrong one would give zeros. */
void gb_kernel_embedding(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *table = call->operands[0], *tokens = call->operands[1], *y = call->results[0];
    const int32_t *ids = tokens->data;
    size_t width = table->dims[1];
    float scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    gb_part part = gb_part_of(call, worker, y);
    size_t column = part.columns.first, count = part.columns.end - column;
    for (size_t m = part.rows.first; m < part.rows.end && count > 0; m++) {
        float *to = (float *)y->data + m * width + column;
        if (ids[m] >= 0 && (size_t)ids[m] < table->dims[0]) {
            size_t row = (size_t)ids[m];
            if (table->quantized)
                call->vector->dequantize(table->quantized, row, column, count, to);
            else
                call->vector->widen(gb_element(table, row * width + column), table->dtype, count, to);
            call->vector->scale(to, scale, count, to);
        } else {
            memset(to, 0, count * sizeof *to);
        }
    }
}
