/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

/* operands: x [M,T,K], weights [M,T]. The sum begins with the first product. */
void gb_kernel_combine_experts(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *y = call->results[0];
    size_t choices = x->dims[1], width = x->dims[2];
    gb_part part = gb_part_of(call, worker, y);
    size_t count = part.columns.end - part.columns.first;
    for (size_t m = part.rows.first; m < part.rows.end && count > 0; m++) {
        const float *from = gb_floats(x) + m * choices * width + part.columns.first;
        const float *weights = gb_floats(call->operands[1]) + m * choices;
        float *to = (float *)y->data + m * width + part.columns.first;
        call->vector->scale(from, weights[0], count, to);
        for (size_t t = 1; t < choices; t++)
            call->vector->add_scaled(from + t * width, weights[t], count, to);
    }
}

/* operands: x [M,T,K], bias [X,K], experts [M,T]. */
void gb_kernel_add_expert_bias(const gb_kernel_call *call, const gb_worker *worker) {
    enum { AT_ONCE = 256 };
    const gb_cpu_tensor *x = call->operands[0], *bias = call->operands[1], *y = call->results[0];
    const int32_t *experts = call->operands[2]->data;
    const size_t width = x->dims[2];
    const gb_part part = gb_part_of(call, worker, y);
    for (size_t row = part.rows.first; row < part.rows.end; row++) {
        for (size_t k = 0; k < width; k += AT_ONCE) {
            float wide[AT_ONCE];
            const size_t count = width - k < AT_ONCE ? width - k : AT_ONCE, at = row * width + k;
            call->vector->widen(gb_element(bias, (size_t)experts[row] * width + k), bias->dtype, count, wide);
            call->vector->add(gb_floats(x) + at, wide, count, (float *)y->data + at);
        }
    }
}

/* operands: x [M,K], factor [M,1]. */
void gb_kernel_scale_rows(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *y = call->results[0];
    gb_part part = gb_part_of(call, worker, y);
    size_t count = part.columns.end - part.columns.first;
    for (size_t m = part.rows.first; m < part.rows.end && count > 0; m++) {
        size_t at = m * x->dims[1] + part.columns.first;
        call->vector->scale(gb_floats(x) + at, gb_floats(call->operands[1])[m], count, (float *)y->data + at);
    }
}
