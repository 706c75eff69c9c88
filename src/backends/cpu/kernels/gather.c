/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

#include <string.h>

/* Sections of a row are runs of `width` numbers, of which y has one of each rank side by side. */
static void place_part(const float *part, size_t runs, size_t width, uint32_t rank, uint32_t ranks,
                       float *y) {
    for (size_t i = 0; i < runs; i++)
        memcpy(y + (i * ranks + rank) * width, part + i * width, width * sizeof *y);
}

/* operands: x [...,K]. One thread of each rank copies. */
void gb_kernel_all_gather(const gb_kernel_call *call, const gb_worker *worker) {
    static const gb_rank alone = {0, 1, NULL};
    const gb_cpu_tensor *x = call->operands[0], *y = call->results[0];
    const gb_rank *rank = call->rank ? call->rank : &alone;
    const uint32_t ranks = (uint32_t)gb_node_int(call->node, GB_ATTRIBUTE_RANKS);
    const size_t sections = (size_t)gb_node_int(call->node, GB_ATTRIBUTE_SECTIONS);
    size_t runs = sections;
    const void *parts[GB_MOST_RANKS];
    for (int32_t i = 0; i + 1 < x->rank; i++)
        runs *= x->dims[i];
    const size_t width = x->dims[x->rank - 1] / sections;
    if (worker->index > 0 || !gb_rank_share(rank, x->data, runs * width * sizeof(float), parts))
        return;
    for (uint32_t r = 0; r < ranks; r++)
        place_part(parts[r], runs, width, r, ranks, y->data);
    gb_rank_release(rank);
}

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

/* operands: a [...,K], b [...,L]. */
void gb_kernel_concatenate(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *a = call->operands[0], *b = call->operands[1], *y = call->results[0];
    const size_t a_width = a->dims[a->rank - 1], b_width = b->dims[b->rank - 1];
    gb_share rows = gb_part_of(call, worker, y).rows;
    for (size_t r = rows.first; r < rows.end; r++) {
        float *to = (float *)y->data + r * (a_width + b_width);
        memcpy(to, gb_floats(a) + r * a_width, a_width * sizeof *to);
        memcpy(to + a_width, gb_floats(b) + r * b_width, b_width * sizeof *to);
    }
}
