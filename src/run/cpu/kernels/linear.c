/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"

/* operands: x [M,K], weight [O,K]. Each thread takes some rows of the weight, for all tokens. */
void gb_kernel_linear(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *x = call->operands[0], *weight = call->operands[1], *y = call->results[0];
    gb_linear linear = {
        .tokens = x->dims[0],
        .inputs = x->dims[1],
        .x = x->data,
        .x_stride = x->dims[1],
        .weight = weight->data,
        .weight_stride = weight->dims[1],
        .dtype = weight->dtype,
        .y = y->data,
        .y_stride = weight->dims[0],
        .quantized = weight->quantized,
    };
    bool is_int8 = weight->quantized && gb_node_int(call->node, GB_ATTRIBUTE_ACTIVATION) != 0;
    gb_share share = gb_columns_of(worker, weight->dims[0]);
    if (share.first < share.end && is_int8)
        call->vector->linear_int8(&linear, share.first, share.end, worker->scratch);
    else if (share.first < share.end)
        call->vector->linear(&linear, share.first, share.end, worker->scratch);
}
