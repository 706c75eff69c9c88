/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"

/* operands: x [...,D], weight [D] or none. */
void gb_kernel_rms_norm(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *x = call->operands[0], *weight = call->operands[1], *y = call->results[0];
    size_t size = x->dims[x->rank - 1], rows = gb_elements(x) / size;
    float epsilon = (float)gb_node_float(call->node, GB_ATTRIBUTE_EPSILON);
    float weight_offset = (float)gb_node_float(call->node, GB_ATTRIBUTE_WEIGHT_OFFSET);
    gb_share share = gb_share_of(worker, rows, 1);
    for (size_t r = share.first; r < share.end; r++)
        call->vector->rms_norm(gb_floats(x) + r * size, size, epsilon, weight ? weight->data : NULL,
                               weight ? weight->dtype : GB_F32, weight_offset, (float *)y->data + r * size);
}

/* operands: x [...,D]. */
void gb_kernel_l2_normalize(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *x = call->operands[0], *y = call->results[0];
    size_t size = x->dims[x->rank - 1], rows = gb_elements(x) / size;
    float epsilon = (float)gb_node_float(call->node, GB_ATTRIBUTE_EPSILON);
    float scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    gb_share share = gb_share_of(worker, rows, 1);
    for (size_t r = share.first; r < share.end; r++)
        call->vector->l2_normalize(gb_floats(x) + r * size, size, epsilon, scale,
                                   (float *)y->data + r * size);
}
