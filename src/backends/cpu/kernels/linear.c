/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

enum { UNIT_GROUPS = 4 };

bool gb_has_rounded_activations(const gb_kernel_call *call) {
    return call->node && gb_node_int(call->node, GB_ATTRIBUTE_ACTIVATION) != GB_ACTIVATION_NONE;
}

gb_rounding gb_rounding_of(const gb_kernel_call *call) {
    const int64_t activation = gb_node_int(call->node, GB_ATTRIBUTE_ACTIVATION);
    if (activation == GB_ACTIVATION_BFLOAT16)
        return gb_round_to_bfloat16();
    if (activation == GB_ACTIVATION_INT8_PER_TOKEN)
        return gb_round_per_token((uint32_t)gb_node_int(call->node, GB_ATTRIBUTE_ROTATION));
    return gb_round_per_group(&call->operands[1]->quantized->format);
}

static size_t inputs_of(const gb_kernel_call *call) {
    const gb_cpu_tensor *weight = call->operands[1];
    return weight->dims[weight->rank - 1];
}

gb_activations gb_shared_activations(const gb_kernel_call *call, const gb_worker *worker) {
    const size_t inputs = inputs_of(call), rows = gb_elements(call->operands[0]) / inputs;
    const gb_rounding rounding = gb_rounding_of(call);
    return gb_place_activations(worker->shared, rows, inputs, &rounding);
}

static const float *row_of_x(const gb_kernel_call *call, const gb_activations *to, size_t row) {
    return gb_floats(call->operands[0]) + row * to->inputs;
}

static void round_row(const gb_kernel_call *call, const gb_activations *to, size_t row, void *scratch) {
    if (to->rounding.kind == GB_ROUND_BFLOAT16)
        call->vector->round_bfloat16(row_of_x(call, to, row), to, row);
    else
        call->vector->quantize_token(row_of_x(call, to, row), to, row, scratch);
}

/* A row has one scale at most and so one thread. */
static void round_rows(const gb_kernel_call *call, const gb_worker *worker, const gb_activations *to) {
    gb_share rows = gb_share_of(worker, to->rows, 1);
    if (call->split == GB_SPLIT_TOKENS)
        rows = gb_part_of(call, worker, call->operands[0]).rows;
    for (size_t row = rows.first; row < rows.end; row++)
        round_row(call, to, row, worker->scratch);
}

/* Each thread takes the rows of some tokens, or, split in its own way, some groups of the rows of x, one row
 * after the other. */
void gb_kernel_quantize(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_activations to = gb_shared_activations(call, worker);
    if (to.rounding.kind != GB_ROUND_GROUPS) {
        round_rows(call, worker, &to);
        return;
    }
    gb_share share = gb_share_of(worker, to.rows * to.groups, UNIT_GROUPS);
    if (call->split == GB_SPLIT_TOKENS) {
        gb_share rows = gb_part_of(call, worker, call->operands[0]).rows;
        share = (gb_share){rows.first * to.groups, rows.end * to.groups};
    }
    for (size_t at = share.first; at < share.end;) {
        size_t row = at / to.groups, first = at % to.groups, left = to.groups - first;
        size_t end = first + (left < share.end - at ? left : share.end - at);
        call->vector->quantize(row_of_x(call, &to, row), &to, row, first, end);
        at += end - first;
    }
}

void gb_multiply_rows(const gb_vector_kernels *vector, const gb_linear *linear, size_t first, size_t end,
                      void *scratch) {
    if (first == end)
        return;
    if (!linear->activations)
        vector->linear(linear, first, end, scratch);
    else if (linear->activations->rounding.kind == GB_ROUND_BFLOAT16)
        vector->linear_bfloat16(linear, first, end, scratch);
    else if (linear->activations->rounding.kind == GB_ROUND_TOKENS)
        vector->linear_exact(linear, first, end, scratch);
    else
        vector->linear_int8(linear, first, end, scratch);
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
    if (gb_has_rounded_activations(call)) {
        activations = gb_shared_activations(call, worker);
        linear.activations = &activations;
    }
    if (!call->queue) {
        const gb_share rows = gb_columns_of(worker, weight->dims[0]);
        gb_multiply_rows(call->vector, &linear, rows.first, rows.end, worker->scratch);
        return;
    }
    size_t first, end;
    while (gb_work_queue_take(call->queue, (uint32_t)worker->index, &first, &end)) {
        const size_t end_row = end * GB_COLUMN_UNIT;
        const bool is_last = end_row >= weight->dims[0];
        linear.next_row = is_last ? GB_NO_ROW : end_row;
        gb_multiply_rows(call->vector, &linear, first * GB_COLUMN_UNIT, is_last ? weight->dims[0] : end_row,
                         worker->scratch);
    }
}
