/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"

enum { UNIT = 1024 };

/* A share of the elements of a [M,K] result lies in rows: the part of one row that begins at element `at`. */
typedef struct row_part {
    size_t row, column, count;
} row_part;

static row_part part_at(size_t at, size_t end, size_t width) {
    size_t column = at % width, left = width - column;
    return (row_part){at / width, column, left < end - at ? left : end - at};
}

/* operands: x [M,T,K], weights [M,T]. The sum begins with the first product. */
void gb_kernel_combine_experts(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *x = call->operands[0], *y = call->results[0];
    const float *weights = gb_floats(call->operands[1]);
    size_t choices = x->dims[1], width = x->dims[2];
    gb_share share = gb_share_of(worker, y->dims[0] * width, UNIT);
    for (size_t at = share.first; at < share.end;) {
        row_part part = part_at(at, share.end, width);
        const float *from = gb_floats(x) + part.row * choices * width + part.column;
        float *to = (float *)y->data + at;
        call->vector->scale(from, weights[part.row * choices], part.count, to);
        for (size_t t = 1; t < choices; t++)
            call->vector->add_scaled(from + t * width, weights[part.row * choices + t], part.count, to);
        at += part.count;
    }
}

/* operands: x [M,K], factor [M,1]. */
void gb_kernel_scale_rows(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *x = call->operands[0], *y = call->results[0];
    gb_share share = gb_share_of(worker, gb_elements(y), UNIT);
    for (size_t at = share.first; at < share.end;) {
        row_part part = part_at(at, share.end, x->dims[1]);
        float factor = gb_floats(call->operands[1])[part.row];
        call->vector->scale(gb_floats(x) + at, factor, part.count, (float *)y->data + at);
        at += part.count;
    }
}
