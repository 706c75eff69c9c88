/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

enum { UNIT_GROUPS = 4 };

bool gb_has_int8_activations(const gb_kernel_call *call) {
    return call->operands[1]->quantized && gb_node_int(call->node, GB_ATTRIBUTE_ACTIVATION) != 0;
}

static size_t inputs_of(const gb_kernel_call *call) {
    const gb_cpu_tensor *weight = call->operands[1];
    return weight->dims[weight->rank - 1];
}

gb_activations gb_shared_activations(const gb_kernel_call *call, const gb_worker *worker) {
    const size_t inputs = inputs_of(call), rows = gb_elements(call->operands[0]) / inputs;
    return gb_place_activations(worker->shared, rows, inputs,
                                gb_activation_group(&call->operands[1]->quantized->format));
}

/* Each thread takes the rows of some tokens, or, split in its own way, some groups of the rows of x, one row
 * after the other. */
void gb_kernel_quantize(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_activations to = gb_shared_activations(call, worker);
    gb_share share = gb_share_of(worker, to.rows * to.groups, UNIT_GROUPS);
    if (call->split == GB_SPLIT_TOKENS) {
        gb_share rows = gb_part_of(call, worker, call->operands[0]).rows;
        share = (gb_share){rows.first * to.groups, rows.end * to.groups};
    }
    for (size_t at = share.first; at < share.end;) {
        size_t row = at / to.groups, first = at % to.groups, left = to.groups - first;
        size_t end = first + (left < share.end - at ? left : share.end - at);
        call->vector->quantize(gb_floats(call->operands[0]) + row * to.inputs, &to, row, first, end);
        at += end - first;
    }
}

static void multiply(const gb_kernel_call *call, const gb_worker *worker, const gb_linear *linear,
                     gb_share rows) {
    if (rows.first == rows.end)
        return;
    if (linear->activations)
        call->vector->linear_int8(linear, rows.first, rows.end, worker->scratch);
    else
        call->vector->linear(linear, rows.first, rows.end, worker->scratch);
}

/* operands: x [M,K], weight [O,K]. Each thread takes some rows of the weight, for all tokens. */
void gb_kernel_linear(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *weight = call->operands[1], *y = call->results[0];
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
        .next_row = GB_NO_ROW,
    };
    gb_activations activations;
    if (gb_has_int8_activations(call)) {
        activations = gb_shared_activations(call, worker);
        linear.activations = &activations;
    }
    if (!call->queue) {
        multiply(call, worker, &linear, gb_columns_of(worker, weight->dims[0]));
        return;
    }
    size_t first, end;
    while (gb_work_queue_take(call->queue, (uint32_t)worker->index, &first, &end)) {
        const size_t end_row = end * GB_COLUMN_UNIT;
        const bool is_last = end_row >= weight->dims[0];
        linear.next_row = is_last ? GB_NO_ROW : end_row;
        multiply(call, worker, &linear,
                 (gb_share){first * GB_COLUMN_UNIT, is_last ? weight->dims[0] : end_row});
    }
}
