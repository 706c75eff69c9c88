/* SPDX-License-Identifier: Apache-2.0
 *
 * Hidden states by position, which a draft head reads.
 */
#include "backends/cpu/kernels/row_kernels.h"

#include <string.h>

/* A slot's row at a position. */
static void *row_at(const gb_cpu_tensor *hidden, int32_t slot, int32_t position) {
    const size_t row_bytes = hidden->dims[2] * gb_dtype_size(hidden->dtype);
    return (uint8_t *)hidden->data + (size_t)slot * hidden->slot_bytes + (size_t)position * row_bytes;
}

/* operands: x [N,K], positions, slots, hidden [C,1,K]. */
void gb_kernel_keep_hidden(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *positions = call->operands[1], *slots = call->operands[2],
                        *hidden = call->operands[3];
    const int32_t start = (int32_t)gb_node_int(call->node, GB_ATTRIBUTE_START);
    const gb_share share = gb_tokens_of(worker, x->dims[0]);
    for (size_t n = share.first; n < share.end; n++) {
        const float *row = ROW(const float, x, n);
        const int32_t position = ITEM(int32_t, positions, n) + start;
        if ((size_t)position < hidden->dims[0])
            call->vector->narrow(row, hidden->dtype, x->dims[1],
                                 row_at(hidden, ITEM(int32_t, slots, n), position));
        memcpy(ROW(float, call->results[0], n), row, x->dims[1] * sizeof *row);
    }
}

/* operands: positions, slots, hidden [C,1,K]. */
void gb_kernel_load_hidden(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *positions = call->operands[0], *slots = call->operands[1],
                        *hidden = call->operands[2], *y = call->results[0];
    const int32_t before = (int32_t)gb_node_int(call->node, GB_ATTRIBUTE_BEFORE);
    const gb_share share = gb_tokens_of(worker, y->dims[0]);
    for (size_t n = share.first; n < share.end; n++) {
        const int32_t position = ITEM(int32_t, positions, n) - before;
        if (position < 0)
            memset(ROW(float, y, n), 0, y->dims[1] * sizeof(float));
        else
            call->vector->widen(row_at(hidden, ITEM(int32_t, slots, n), position), hidden->dtype, y->dims[1],
                                ROW(float, y, n));
    }
}
