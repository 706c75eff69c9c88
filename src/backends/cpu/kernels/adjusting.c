/* SPDX-License-Identifier: Apache-2.0
 *
 * What adjusts logits before a token is drawn: biases, token counts, penalties and masks; sampler.h says what
 * they compute.
 */
#include "backends/cpu/kernels/row_kernels.h"

#include <string.h>

void gb_kernel_apply_bias(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *ids = call->operands[1], *values = call->operands[2];
    FOR_ROWS_OF(worker, x, b) {
        const gb_bias_list bias = {ROW(const int32_t, ids, b), ROW(const float, values, b), row_length(ids)};
        gb_apply_bias(ROW(const float, x, b), row_length(x), &bias, ROW(float, call->results[0], b));
    }
}

static int32_t *history_of(const gb_cpu_tensor *history, int32_t slot) {
    return (int32_t *)(void *)((uint8_t *)history->data + (size_t)slot * history->slot_bytes);
}

void gb_kernel_count_tokens_append(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *tokens = call->operands[0], *positions = call->operands[1],
                        *slots = call->operands[2];
    for (size_t n = 0; worker->index == 0 && n < tokens->dims[0]; n++)
        history_of(call->operands[5], ITEM(int32_t, slots, n))[ITEM(int32_t, positions, n)] =
            ITEM(int32_t, tokens, n);
}

void gb_kernel_count_tokens(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *positions = call->operands[1], *slots = call->operands[2], *rows = call->operands[3];
    const gb_cpu_tensor *counts = call->results[0];
    const uint32_t limit = (uint32_t)counts->dims[1];
    FOR_ROWS_OF(worker, counts, b) {
        const int32_t row = ITEM(int32_t, rows, b), from = ITEM(int32_t, call->operands[4], b);
        gb_token_count *list = (gb_token_count *)counts->data + b * limit;
        if (from < 0)
            list[0].id = -1;
        else
            gb_count_tokens(history_of(call->operands[5], ITEM(int32_t, slots, row)),
                            (uint32_t)ITEM(int32_t, positions, row) + 1, (uint32_t)from, list, limit,
                            worker->scratch);
    }
}

gb_penalties gb_penalties_of(const gb_cpu_tensor *const *operands, size_t b) {
    const uint32_t limit = (uint32_t)operands[0]->dims[1];
    return (gb_penalties){
        .counts = (const gb_token_count *)operands[0]->data + b * limit,
        .limit = limit,
        .repetition = ITEM(float, operands[1], b),
        .frequency = ITEM(float, operands[2], b),
        .presence = ITEM(float, operands[3], b),
        .prompt = ITEM(int32_t, operands[4], b),
    };
}

void gb_kernel_penalize(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0];
    FOR_ROWS_OF(worker, x, b) {
        const gb_penalties penalties = gb_penalties_of(&call->operands[1], b);
        gb_penalize(ROW(const float, x, b), row_length(x), &penalties, ROW(float, call->results[0], b));
    }
}

void gb_kernel_apply_mask(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *y = call->results[0];
    FOR_ROWS_OF(worker, x, b) {
        if (ITEM(bool, call->operands[1], b))
            gb_apply_mask(ROW(const float, x, b), row_length(x), ROW(const uint32_t, call->operands[2], b),
                          ROW(float, y, b));
        else
            memcpy(ROW(float, y, b), ROW(const float, x, b), row_length(x) * sizeof(float));
    }
}
