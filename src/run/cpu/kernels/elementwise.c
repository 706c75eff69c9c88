/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"

#include <string.h>

enum { UNIT = 1024 };

static gb_share elements_of(const gb_kernel_call *call, const gb_worker *worker) {
    return gb_share_of(worker, gb_elements(call->results[0]), UNIT);
}

static float *output(const gb_kernel_call *call, gb_share share) {
    return (float *)call->results[0]->data + share.first;
}

void gb_kernel_add(const gb_kernel_call *call, const gb_worker *worker) {
    gb_share s = elements_of(call, worker);
    call->vector->add(gb_floats(call->operands[0]) + s.first, gb_floats(call->operands[1]) + s.first,
                      s.end - s.first, output(call, s));
}

void gb_kernel_multiply(const gb_kernel_call *call, const gb_worker *worker) {
    gb_share s = elements_of(call, worker);
    call->vector->multiply(gb_floats(call->operands[0]) + s.first, gb_floats(call->operands[1]) + s.first,
                           s.end - s.first, output(call, s));
}

void gb_kernel_scale(const gb_kernel_call *call, const gb_worker *worker) {
    gb_share s = elements_of(call, worker);
    float factor;
    call->vector->widen(call->operands[1]->data, call->operands[1]->dtype, 1, &factor);
    call->vector->scale(gb_floats(call->operands[0]) + s.first, factor, s.end - s.first, output(call, s));
}

void gb_kernel_gelu_tanh(const gb_kernel_call *call, const gb_worker *worker) {
    gb_share s = elements_of(call, worker);
    call->vector->gelu_tanh(gb_floats(call->operands[0]) + s.first, s.end - s.first, output(call, s));
}

void gb_kernel_silu(const gb_kernel_call *call, const gb_worker *worker) {
    gb_share s = elements_of(call, worker);
    call->vector->silu(gb_floats(call->operands[0]) + s.first, s.end - s.first, output(call, s));
}

void gb_kernel_sigmoid(const gb_kernel_call *call, const gb_worker *worker) {
    gb_share s = elements_of(call, worker);
    call->vector->sigmoid(gb_floats(call->operands[0]) + s.first, s.end - s.first, output(call, s));
}

void gb_kernel_soft_cap(const gb_kernel_call *call, const gb_worker *worker) {
    gb_share s = elements_of(call, worker);
    float cap = (float)gb_node_float(call->node, GB_ATTRIBUTE_CAP);
    call->vector->soft_cap(gb_floats(call->operands[0]) + s.first, cap, s.end - s.first, output(call, s));
}

void gb_kernel_move(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *from = call->operands[0], *to = call->results[0];
    size_t size = gb_dtype_size(to->dtype);
    gb_share s = gb_share_of(worker, gb_elements(to), UNIT);
    if (s.first < s.end)
        memcpy((uint8_t *)to->data + s.first * size, gb_element(from, s.first), (s.end - s.first) * size);
}
