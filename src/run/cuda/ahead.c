/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/ahead.h"

#include "tensor/packing.h"

#include <string.h>

enum { PIECE = 16, KEPT_BYTES = 24 << 20 /* of some 50 MB */ };

static bool is_op(const gb_step *step, gb_op op) {
    return step->kind == GB_STEP_NODE && step->node->op == op;
}

/* Appends the first bytes of a range, up to *left. */
static void add_range(gb_cuda_ahead *ahead, const uint8_t *from, uint64_t bytes, uint64_t *left) {
    bytes = bytes < *left ? bytes : *left;
    bytes = bytes / PIECE * PIECE;
    if (ahead->count == GB_CUDA_MOST_AHEAD || bytes == 0)
        return;
    ahead->of[ahead->count].from = from;
    ahead->of[ahead->count].bytes = bytes;
    ahead->count++;
    *left -= bytes;
}

/* Of a packed matrix that does not fit the first blocks of rows, from each plane. */
static void add_blocks(gb_cuda_ahead *ahead, const gb_cuda_tensor *weight, uint64_t *left) {
    const gb_planes *planes = &weight->planes;
    const gb_plane *all[] = {&planes->codes, &planes->scales, &planes->biases};
    uint64_t block = 0;
    for (int i = 0; i < 3; i++)
        block += all[i]->row_bytes * GB_FRAGMENT_ROWS;
    const uint64_t blocks = *left / block;
    for (int i = 0; i < 3; i++)
        add_range(ahead, (const uint8_t *)weight->data + all[i]->offset,
                  blocks * all[i]->row_bytes * GB_FRAGMENT_ROWS, left);
    *left = 0;
}

static void add_weight(gb_cuda_ahead *ahead, const gb_cuda_tensor *weight, uint64_t *left) {
    const bool is_dense = weight->dtype != GB_QUANTIZED;
    const uint64_t bytes =
        is_dense ? gb_cuda_elements(weight) * gb_dtype_size(weight->dtype) : weight->planes.size;
    if (bytes > *left && weight->is_packed)
        add_blocks(ahead, weight, left);
    else
        add_range(ahead, weight->data, bytes, left);
}

/* The products of one input that begin with step s. */
static void add_group(const gb_plan *plan, const gb_cuda_tensor *tensors, uint32_t s, gb_cuda_ahead *ahead) {
    uint64_t left = KEPT_BYTES;
    do
        add_weight(ahead, &tensors[plan->steps[s].operands[1]], &left);
    while (++s < plan->step_count && plan->steps[s].joins && is_op(&plan->steps[s], GB_OP_LINEAR));
}

void gb_cuda_find_ahead(const gb_plan *plan, const gb_cuda_tensor *tensors, gb_cuda_ahead *ahead) {
    memset(ahead, 0, plan->step_count * sizeof *ahead);
    uint32_t next = plan->step_count; /* the first step of the next products; a plan without any has none */
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t s = plan->step_count; s-- > 0;) {
            const gb_step *step = &plan->steps[s];
            if (round == 1 && next < plan->step_count &&
                (is_op(step, GB_OP_LINEAR) || is_op(step, GB_OP_EXPERT_LINEAR)))
                add_group(plan, tensors, next, &ahead[s]);
            if (is_op(step, GB_OP_LINEAR) && !step->joins)
                next = s;
        }
}
