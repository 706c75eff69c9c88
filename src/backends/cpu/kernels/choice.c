/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

#include <string.h>

/* These work on one element per row of the batch: thread 0 does it all. */

void gb_kernel_is_zero(const gb_kernel_call *call, const gb_worker *worker) {
    const float *x = call->operands[0]->data;
    bool *y = call->results[0]->data;
    for (size_t m = 0; worker->index == 0 && m < call->results[0]->dims[0]; m++)
        y[m] = x[m] == 0;
}

void gb_kernel_any_false(const gb_kernel_call *call, const gb_worker *worker) {
    const bool *x = call->operands[0]->data;
    if (worker->index != 0)
        return;
    bool any = false;
    for (size_t m = 0; m < call->operands[0]->dims[0]; m++)
        any = any || !x[m];
    *(bool *)call->results[0]->data = any;
}

void gb_kernel_select(const gb_kernel_call *call, const gb_worker *worker) {
    const bool *condition = call->operands[0]->data;
    const gb_cpu_tensor *y = call->results[0];
    size_t size = gb_dtype_size(y->dtype);
    for (size_t m = 0; worker->index == 0 && m < y->dims[0]; m++)
        memcpy((uint8_t *)y->data + m * size, gb_element(call->operands[condition[m] ? 1 : 2], m), size);
}

void gb_kernel_fill_like(const gb_kernel_call *call, const gb_worker *worker) {
    float value = (float)gb_node_float(call->node, GB_ATTRIBUTE_VALUE);
    float *y = call->results[0]->data;
    for (size_t m = 0; worker->index == 0 && m < call->results[0]->dims[0]; m++)
        y[m] = value;
}

void gb_kernel_choose_token(const gb_kernel_call *call, const gb_worker *worker) {
    const bool *condition = call->operands[0]->data;
    const int32_t *a = call->operands[1]->data, *b = call->operands[2]->data;
    int32_t *y = call->results[0]->data;
    for (size_t m = 0; worker->index == 0 && m < call->results[0]->dims[0]; m++)
        y[m] = a[m] < 0 || condition[m] ? a[m] : b[m];
}
