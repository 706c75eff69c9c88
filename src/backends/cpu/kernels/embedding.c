/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

#include <string.h>

/* Blocks of the rotation are made whole: at both ends of the columns other threads may have their rest. */
static void read_rotated(const gb_kernel_call *call, size_t row, gb_share columns, size_t rotation,
                         float *to) {
    _Alignas(64) float made[GB_MAX_ROTATION];
    const size_t begin = columns.first / rotation * rotation;
    const size_t end = (columns.end + rotation - 1) / rotation * rotation;
    for (size_t at = begin; at < end; at += GB_MAX_ROTATION) {
        const size_t next = end - at < GB_MAX_ROTATION ? end : at + GB_MAX_ROTATION;
        call->vector->dequantize(call->operands[0]->quantized, row, at, next - at, made);
        call->vector->hadamard(made, next - at, rotation);
        const size_t first = at > columns.first ? at : columns.first;
        const size_t last = next < columns.end ? next : columns.end;
        memcpy(to + (first - columns.first), made + (first - at), (last - first) * sizeof *to);
    }
}

/* Columns of a row of the table, not yet scaled. */
static void read_row(const gb_kernel_call *call, size_t row, gb_share columns, float *to) {
    const gb_cpu_tensor *table = call->operands[0];
    const size_t rotation = (size_t)gb_node_int(call->node, GB_ATTRIBUTE_ROTATION);
    const size_t count = columns.end - columns.first;
    if (rotation > 0)
        read_rotated(call, row, columns, rotation, to);
    else if (table->quantized)
        call->vector->dequantize(table->quantized, row, columns.first, count, to);
    else
        call->vector->widen(gb_element(table, row * table->dims[1] + columns.first), table->dtype, count, to);
}

/* operands: table [R,K], tokens [M]. The engine has checked the ids; a wrong one would give zeros. */
void gb_kernel_embedding(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *table = call->operands[0], *tokens = call->operands[1], *y = call->results[0];
    const int32_t *ids = tokens->data;
    const float scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    const gb_part part = gb_part_of(call, worker, y);
    const size_t count = part.columns.end - part.columns.first;
    for (size_t m = part.rows.first; m < part.rows.end && count > 0; m++) {
        float *to = (float *)y->data + m * table->dims[1] + part.columns.first;
        if (ids[m] >= 0 && (size_t)ids[m] < table->dims[0]) {
            read_row(call, (size_t)ids[m], part.columns, to);
            call->vector->scale(to, scale, count, to);
        } else {
            memset(to, 0, count * sizeof *to);
        }
    }
}
