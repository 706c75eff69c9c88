/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

#include <string.h>

enum { UNIT_COLUMNS = 64, GATES = 64 };

_Static_assert((int)GB_DELTA_SCRATCH <= (int)GB_LINEAR_SCRATCH &&
                   (int)GB_CONV_SCRATCH <= (int)GB_LINEAR_SCRATCH,
               "the scratch holds what these kernels need");

/* A state of the slot that token n belongs to. */
static float *state_of(const gb_cpu_tensor *state, const gb_cpu_tensor *slots, size_t n) {
    size_t slot = (size_t)((const int32_t *)slots->data)[n];
    return (float *)(void *)((uint8_t *)state->data + slot * state->slot_bytes);
}

/* ---- Convolution --------------------------------------------------------------------------------------- */

/* Moves the last width - 1 rows of tail and x, one after the other, into tail: from old to new, so that no
 * row is overwritten before it is moved. */
static void keep_tail(const gb_conv *conv, gb_share channels, float *tail) {
    size_t rows = conv->width - 1, count = channels.end - channels.first;
    for (size_t r = 0; r < rows; r++) {
        size_t from = r + conv->tokens;
        const float *row =
            from < rows ? tail + from * conv->channels : conv->x + (from - rows) * conv->channels;
        memcpy(tail + r * conv->channels + channels.first, row + channels.first, count * sizeof *tail);
    }
}

/* operands: x [N,C], weight [C,1,W], slots [N], tail [W-1,C]. Each thread takes some channels of all tokens.
 */
void gb_kernel_causal_conv(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *weight = call->operands[1], *slots = call->operands[2];
    gb_conv conv = {
        .channels = x->dims[1], .width = weight->dims[2], .weight = weight->data, .dtype = weight->dtype};
    gb_share share = gb_columns_of(worker, conv.channels);
    for (size_t n = 0; n < slots->dims[0]; n += conv.tokens) {
        float *tail = state_of(call->operands[3], slots, n);
        conv.tokens = gb_end_of_run(slots, n, SIZE_MAX) - n;
        conv.x = gb_floats(x) + n * conv.channels;
        conv.y = (float *)call->results[0]->data + n * conv.channels;
        conv.tail = tail;
        call->vector->conv(&conv, share.first, share.end, worker->scratch);
        keep_tail(&conv, share, tail);
    }
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* operands: x [M,H], a_log [H], bias [H]. Each thread takes some tokens. */
void gb_kernel_delta_decay(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *a_log = call->operands[1], *bias = call->operands[2];
    size_t heads = x->dims[1];
    gb_share share = gb_tokens_of(worker, x->dims[0]);
    for (size_t h = 0; h < heads; h += GATES) {
        float wide_a_log[GATES], wide_bias[GATES];
        size_t count = heads - h < GATES ? heads - h : GATES;
        call->vector->widen(gb_element(a_log, h), a_log->dtype, count, wide_a_log);
        call->vector->widen(gb_element(bias, h), bias->dtype, count, wide_bias);
        for (size_t m = share.first; m < share.end; m++)
            call->vector->delta_decay(gb_floats(x) + m * heads + h, wide_a_log, wide_bias, count,
                                      (float *)call->results[0]->data + m * heads + h);
    }
}

enum { QUERY, KEY, VALUE, DECAY, BETA, SLOTS, MEMORY }; /* as in ops.def */

/* The tokens n .. n + count - 1 of one slot through head h. */
static gb_delta head_of(const gb_kernel_call *call, size_t n, size_t count, size_t h) {
    const gb_cpu_tensor *key = call->operands[KEY], *value = call->operands[VALUE];
    size_t key_heads = key->dims[1], key_size = key->dims[2], heads = value->dims[1], size = value->dims[2];
    bool is_tiled = gb_node_int(call->node, GB_ATTRIBUTE_TILED) != 0;
    size_t key_head = is_tiled ? h % key_heads : h / (heads / key_heads);
    size_t key_at = (n * key_heads + key_head) * key_size, value_at = (n * heads + h) * size;
    return (gb_delta){
        .tokens = count,
        .key_size = key_size,
        .value_size = size,
        .query = gb_floats(call->operands[QUERY]) + key_at,
        .key = gb_floats(key) + key_at,
        .key_stride = key_heads * key_size,
        .value = gb_floats(value) + value_at,
        .y = (float *)call->results[0]->data + value_at,
        .value_stride = heads * size,
        .decay = gb_floats(call->operands[DECAY]) + n * heads + h,
        .beta = gb_floats(call->operands[BETA]) + n * heads + h,
        .gate_stride = heads,
        .memory = state_of(call->operands[MEMORY], call->operands[SLOTS], n) + h * key_size * size,
    };
}

/* Each thread takes some of the heads' stripes of columns, for all tokens of a slot. */
void gb_kernel_gated_delta(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *slots = call->operands[SLOTS], *value = call->operands[VALUE];
    size_t columns = value->dims[2], stripes = (columns + UNIT_COLUMNS - 1) / UNIT_COLUMNS, count;
    gb_share share = gb_share_of(worker, value->dims[1] * stripes, 1);
    for (size_t n = 0; n < slots->dims[0]; n += count) {
        count = gb_end_of_run(slots, n, SIZE_MAX) - n;
        for (size_t s = share.first; s < share.end; s++) {
            gb_delta delta = head_of(call, n, count, s / stripes);
            size_t first = s % stripes * UNIT_COLUMNS;
            call->vector->delta(&delta, first,
                                columns - first < UNIT_COLUMNS ? columns : first + UNIT_COLUMNS,
                                worker->scratch);
        }
    }
}
