/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

enum { LINE = 64, PLANES = 5 };

/* Codes and what else a matrix has, or the rows of one that is not quantized. */
typedef struct planes {
    const uint8_t *first[PLANES]; /* of the worker's first row */
    uint64_t row_bytes[PLANES];
    size_t count;
} planes;

static void add_plane(planes *all, const void *data, uint64_t offset, uint64_t row_bytes, size_t row) {
    if (row_bytes == 0)
        return;
    all->first[all->count] = (const uint8_t *)data + offset + row * row_bytes;
    all->row_bytes[all->count++] = row_bytes;
}

static planes planes_from(const gb_cpu_tensor *weight, size_t row) {
    planes all = {.count = 0};
    if (!weight->quantized) {
        add_plane(&all, weight->data, 0, weight->dims[1] * gb_dtype_size(weight->dtype), row);
        return all;
    }
    const gb_planes *of = &weight->quantized->planes;
    const gb_plane *each[PLANES] = {&of->codes, &of->scales, &of->biases, &of->super_scales,
                                    &of->super_biases};
    for (size_t i = 0; i < PLANES; i++)
        add_plane(&all, weight->quantized->data, each[i]->offset, each[i]->row_bytes, row);
    return all;
}

/* The rows with which the worker begins. */
static gb_share first_rows(const gb_kernel_call *call, const gb_worker *worker) {
    const size_t rows = call->operands[1]->dims[0];
    if (!call->queue)
        return gb_columns_of(worker, rows);
    const size_t units = call->queue->units, end = units * (worker->index + 1) / worker->count;
    return (gb_share){units * worker->index / worker->count * GB_COLUMN_UNIT,
                      end * GB_COLUMN_UNIT < rows ? end * GB_COLUMN_UNIT : rows};
}

static void fetch_lines(const uint8_t *from, const uint8_t *end) {
    for (const uint8_t *at = from - (uintptr_t)from % LINE; at < end; at += LINE)
        __builtin_prefetch(at, 0, 2);
}

bool gb_kernel_can_fetch(const gb_kernel_call *call) {
    return call->node && call->node->op == GB_OP_LINEAR && call->results[0] &&
           call->split != GB_SPLIT_ALONE && call->operands[0]->dims[0] <= GB_MOST_QUEUE_TOKENS;
}

size_t gb_kernel_fetch(const gb_kernel_call *call, const gb_worker *worker, size_t offset, size_t bytes) {
    const gb_share rows = first_rows(call, worker);
    const planes all = planes_from(call->operands[1], rows.first);
    const uint64_t end = (rows.end - rows.first) * all.row_bytes[0];
    if (offset >= end)
        return 0;
    const uint64_t count = end - offset < bytes ? end - offset : bytes;
    for (size_t i = 0; i < all.count; i++)
        fetch_lines(all.first[i] + offset * all.row_bytes[i] / all.row_bytes[0],
                    all.first[i] + (offset + count) * all.row_bytes[i] / all.row_bytes[0]);
    return (size_t)count;
}
