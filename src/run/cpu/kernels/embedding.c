/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"

#include <string.h>

enum { UNIT = 1024 };

/* operands: table [V,K], tokens [M]. The engine has checked the ids; a wrong one would give zeros. */
void gb_kernel_embedding(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *table = call->operands[0], *tokens = call->operands[1], *y = call->results[0];
    const int32_t *ids = tokens->data;
    size_t width = table->dims[1];
    float scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    gb_share share = gb_share_of(worker, tokens->dims[0] * width, UNIT);
    for (size_t at = share.first; at < share.end;) {
        size_t token = at / width, column = at % width;
        size_t count = width - column < share.end - at ? width - column : share.end - at;
        float *to = (float *)y->data + at;
        if (ids[token] >= 0 && (size_t)ids[token] < table->dims[0]) {
            size_t row = (size_t)ids[token];
            if (table->quantized)
                call->vector->dequantize(table->quantized, row, column, count, to);
            else
                call->vector->widen(gb_element(table, row * width + column), table->dtype, count, to);
            call->vector->scale(to, scale, count, to);
        } else {
            memset(to, 0, count * sizeof *to);
        }
        at += count;
    }
}
