/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

/* Rows of x [...,D]: those of whole tokens, or, split in its own way, any. */
static gb_share rows_of(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0];
    if (call->split == GB_SPLIT_TOKENS)
        return gb_part_of(call, worker, x).rows;
    return gb_share_of(worker, gb_elements(x) / x->dims[x->rank - 1], 1);
}

/* operands: x [...,D], weight [D] or none. */
void gb_kernel_rms_norm(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *weight = call->operands[1], *y = call->results[0];
    size_t size = x->dims[x->rank - 1];
    float epsilon = (float)gb_node_float(call->node, GB_ATTRIBUTE_EPSILON);
    float scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    float weight_offset = (float)gb_node_float(call->node, GB_ATTRIBUTE_WEIGHT_OFFSET);
    gb_share share = rows_of(call, worker);
    for (size_t r = share.first; r < share.end; r++)
        call->vector->rms_norm(gb_floats(x) + r * size, size, epsilon, scale, weight ? weight->data : NULL,
                               weight ? weight->dtype : GB_F32, weight_offset, (float *)y->data + r * size);
}

/* operands: x [...,D]. */
void gb_kernel_l2_normalize(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *y = call->results[0];
    size_t size = x->dims[x->rank - 1];
    float epsilon = (float)gb_node_float(call->node, GB_ATTRIBUTE_EPSILON);
    float scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    gb_share share = rows_of(call, worker);
    for (size_t r = share.first; r < share.end; r++)
        call->vector->l2_normalize(gb_floats(x) + r * size, size, epsilon, scale,
                                   (float *)y->data + r * size);
}
