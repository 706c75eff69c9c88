/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"

#include <string.h>

/* operands: x [N,K], rows [B]. The engine has checked the rows; a wrong one would give zeros. */
void gb_kernel_gather_rows(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *x = call->operands[0], *rows = call->operands[1], *y = call->results[0];
    const int32_t *row = rows->data;
    size_t width = x->dims[1];
    for (size_t b = worker->index; b < rows->dims[0]; b += worker->count) {
        float *to = (float *)y->data + b * width;
        if (row[b] >= 0 && (size_t)row[b] < x->dims[0])
            memcpy(to, gb_floats(x) + (size_t)row[b] * width, width * sizeof *to);
        else
            memset(to, 0, width * sizeof *to);
    }
}
