/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

#include <string.h>

/* operands: x [N,K], rows [B]. The engine has checked the rows; a wrong one would give zeros. */
void gb_kernel_gather_rows(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *rows = call->operands[1], *y = call->results[0];
    const int32_t *row = rows->data;
    size_t width = x->dims[1];
    gb_share share = gb_tokens_of(worker, rows->dims[0]);
    for (size_t b = share.first; b < share.end; b++) {
        float *to = (float *)y->data + b * width;
        if (row[b] >= 0 && (size_t)row[b] < x->dims[0])
            memcpy(to, gb_floats(x) + (size_t)row[b] * width, width * sizeof *to);
        else
            memset(to, 0, width * sizeof *to);
    }
}

/* operands: x [...,K]. */
void gb_kernel_slice(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *y = call->results[0];
    size_t from_width = x->dims[x->rank - 1], width = y->dims[y->rank - 1];
    const float *from = gb_floats(x) + gb_node_int(call->node, GB_ATTRIBUTE_START);
    gb_share rows = gb_part_of(call, worker, y).rows;
    for (size_t r = rows.first; r < rows.end; r++)
        memcpy((float *)y->data + r * width, from + r * from_width, width * sizeof *from);
}
