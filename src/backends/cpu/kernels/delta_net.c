/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

#include <string.h>

enum { UNIT_COLUMNS = 64, GATES = 64 };

_Static_assert((int)GB_DELTA_SCRATCH <= (int)GB_LINEAR_SCRATCH &&
                   (int)GB_CONV_SCRATCH <= (int)GB_LINEAR_SCRATCH,
               "the scratch holds what these kernels need");

static size_t slot_of(const gb_cpu_tensor *slots, size_t n) {
    return (size_t)((const int32_t *)slots->data)[n];
}

static float *state_of(const gb_cpu_tensor *state, size_t slot) {
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

enum { CONV_X, CONV_WEIGHT, CONV_SLOTS, CONV_TAIL }; /* as in ops.def */

static void take_logged_rows(const gb_kernel_call *call, size_t slot, gb_share channels) {
    const gb_cpu_tensor *tail = call->operands[CONV_TAIL];
    const size_t count = gb_logged_count(tail->log, slot);
    if (count == 0)
        return;
    const gb_conv conv = {.tokens = count,
                          .channels = tail->dims[1],
                          .width = tail->dims[0] + 1,
                          .x = gb_logged_rows(tail->log, slot)};
    keep_tail(&conv, channels, state_of(tail, slot));
}

/* The drafts of a run end it. */
static void log_rows(const gb_conv *run, size_t drafts, gb_share channels, float *rows) {
    const float *from = run->x + (run->tokens - drafts) * run->channels;
    for (size_t at = channels.first; drafts > 0; drafts--, from += run->channels, rows += run->channels)
        memcpy(rows + at, from + at, (channels.end - at) * sizeof *rows);
}

/* Each thread takes some channels of all tokens. */
void gb_kernel_causal_conv(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[CONV_X], *weight = call->operands[CONV_WEIGHT],
                        *slots = call->operands[CONV_SLOTS], *tail = call->operands[CONV_TAIL];
    gb_conv conv = {
        .channels = x->dims[1], .width = weight->dims[2], .weight = weight->data, .dtype = weight->dtype};
    gb_share share = gb_columns_of(worker, conv.channels);
    for (size_t n = 0, end; n < slots->dims[0]; n = end) {
        const size_t slot = slot_of(slots, n);
        end = gb_end_of_run(slots, n, SIZE_MAX);
        const size_t drafts = gb_count_drafts(tail->log, n, end);
        conv.tokens = end - n;
        conv.x = gb_floats(x) + n * conv.channels;
        conv.y = (float *)call->results[0]->data + n * conv.channels;
        conv.tail = state_of(tail, slot);
        take_logged_rows(call, slot, share);
        call->vector->conv(&conv, share.first, share.end, worker->scratch);
        if (drafts > 0)
            log_rows(&conv, drafts, share, gb_rows_to_log(tail->log, slot));
        conv.tokens -= drafts;
        keep_tail(&conv, share, state_of(tail, slot));
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

/* Inputs of the rule of some tokens of one slot, and its results. */
typedef struct delta_rows {
    size_t count;
    const float *query, *key, *value, *decay, *beta; /* of the first token */
    float *y;
    size_t key_stride, value_stride, gate_stride; /* from one token's to the next one's */
} delta_rows;

/* Of tokens n and following. */
static delta_rows rows_of_batch(const gb_kernel_call *call, size_t n, size_t count) {
    const gb_cpu_tensor *key = call->operands[KEY], *value = call->operands[VALUE];
    const size_t keys = key->dims[1] * key->dims[2], heads = value->dims[1], values = heads * value->dims[2];
    return (delta_rows){
        .count = count,
        .query = gb_floats(call->operands[QUERY]) + n * keys,
        .key = gb_floats(key) + n * keys,
        .value = gb_floats(value) + n * values,
        .decay = gb_floats(call->operands[DECAY]) + n * heads,
        .beta = gb_floats(call->operands[BETA]) + n * heads,
        .y = (float *)call->results[0]->data + n * values,
        .key_stride = keys,
        .value_stride = values,
        .gate_stride = heads,
    };
}

/* Of rows of the log, which are key, value, decay and beta. Nobody reads their results: the value's place is
 * free once it has been taken in. */
static delta_rows rows_of_log(const gb_kernel_call *call, float *rows, size_t count) {
    const gb_cpu_tensor *key = call->operands[KEY], *value = call->operands[VALUE];
    const size_t keys = key->dims[1] * key->dims[2], heads = value->dims[1], values = heads * value->dims[2];
    const size_t stride = call->operands[MEMORY]->log->row_floats;
    float *of_value = rows + keys, *of_decay = of_value + values;
    return (delta_rows){count,    rows,   rows,   of_value, of_decay, of_decay + heads,
                        of_value, stride, stride, stride};
}

/* The node's attributes, which take a while to find. */
typedef struct delta_kind {
    bool is_tiled, is_corrected;
} delta_kind;

static delta_kind kind_of(const gb_kernel_call *call) {
    return (delta_kind){gb_node_int(call->node, GB_ATTRIBUTE_TILED) != 0,
                        gb_node_int(call->node, GB_ATTRIBUTE_CORRECTS) != 0};
}

/* Passes the rows through head h of the slot's memory; a discarded change leaves the memory as it is. */
static gb_delta head_of(const gb_kernel_call *call, delta_kind kind, const delta_rows *rows, size_t slot,
                        size_t h, bool is_discarded) {
    const gb_cpu_tensor *key = call->operands[KEY], *value = call->operands[VALUE];
    size_t key_heads = key->dims[1], key_size = key->dims[2], heads = value->dims[1], size = value->dims[2];
    size_t key_head = kind.is_tiled ? h % key_heads : h / (heads / key_heads);
    return (gb_delta){
        .tokens = rows->count,
        .key_size = key_size,
        .value_size = size,
        .query = rows->query + key_head * key_size,
        .key = rows->key + key_head * key_size,
        .key_stride = rows->key_stride,
        .value = rows->value + h * size,
        .y = rows->y + h * size,
        .value_stride = rows->value_stride,
        .decay = rows->decay + h,
        .beta = rows->beta + h,
        .gate_stride = rows->gate_stride,
        .memory = state_of(call->operands[MEMORY], slot) + h * key_size * size,
        .is_corrected = kind.is_corrected,
        .is_discarded = is_discarded,
    };
}

/* Some tokens of one slot that change its memory, or do not. */
typedef struct delta_part {
    delta_rows rows;
    bool is_discarded;
} delta_part;

static size_t stripes_of(const gb_kernel_call *call) {
    return (call->operands[VALUE]->dims[2] + UNIT_COLUMNS - 1) / UNIT_COLUMNS;
}

/* The parts one after the other through stripe s of all heads' stripes, which stays in a near cache. */
static void pass_stripe(const gb_kernel_call *call, delta_kind kind, const delta_part *parts,
                        size_t part_count, size_t slot, size_t s, void *scratch) {
    const size_t columns = call->operands[VALUE]->dims[2], stripes = stripes_of(call);
    const size_t first = s % stripes * UNIT_COLUMNS;
    for (size_t i = 0; i < part_count; i++) {
        if (parts[i].rows.count == 0)
            continue;
        const gb_delta delta = head_of(call, kind, &parts[i].rows, slot, s / stripes, parts[i].is_discarded);
        call->vector->delta(&delta, first, columns - first < UNIT_COLUMNS ? columns : first + UNIT_COLUMNS,
                            scratch);
    }
}

/* The slot's logged tokens, which its memory lacks. */
static delta_part logged_part(const gb_kernel_call *call, size_t slot) {
    const gb_state_log *log = call->operands[MEMORY]->log;
    const size_t count = gb_logged_count(log, slot);
    if (count == 0)
        return (delta_part){.rows.count = 0};
    return (delta_part){rows_of_log(call, gb_logged_rows(log, slot), count), false};
}

/* Each thread logs some of the drafts, which begin with token n. */
static void log_drafts(const gb_kernel_call *call, const gb_worker *worker, size_t n, size_t drafts,
                       size_t slot) {
    static const int logged[] = {KEY, VALUE, DECAY, BETA};
    const gb_share share = gb_tokens_of(worker, drafts);
    for (size_t d = share.first; d < share.end; d++) {
        const gb_state_log *log = call->operands[MEMORY]->log;
        float *row = gb_rows_to_log(log, slot) + d * log->row_floats;
        for (size_t i = 0; i < sizeof logged / sizeof *logged; i++) {
            const gb_cpu_tensor *x = call->operands[logged[i]];
            const size_t width = gb_elements(x) / x->dims[0];
            memcpy(row, gb_floats(x) + (n + d) * width, width * sizeof *row);
            row += width;
        }
    }
}

/* Each thread takes some of the heads' stripes of columns, for all tokens of a slot. */
void gb_kernel_gated_delta(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *slots = call->operands[SLOTS];
    const delta_kind kind = kind_of(call);
    gb_share share = gb_share_of(worker, call->operands[VALUE]->dims[1] * stripes_of(call), 1);
    for (size_t n = 0, end; n < slots->dims[0]; n = end) {
        const size_t slot = slot_of(slots, n);
        end = gb_end_of_run(slots, n, SIZE_MAX);
        const size_t drafts = gb_count_drafts(call->operands[MEMORY]->log, n, end), from = end - drafts;
        const delta_part parts[] = {logged_part(call, slot),
                                    {rows_of_batch(call, n, from - n), false},
                                    {rows_of_batch(call, from, drafts), true}};
        for (size_t s = share.first; s < share.end; s++)
            pass_stripe(call, kind, parts, sizeof parts / sizeof *parts, slot, s, worker->scratch);
        log_drafts(call, worker, from, drafts, slot);
    }
}

/* ---- Drafts -------------------------------------------------------------------------------------------- */

void gb_kernel_take_logged(const gb_kernel_call *call, size_t slot, void *scratch) {
    const gb_op op = call->node ? call->node->op : GB_OP_NONE;
    if (op == GB_OP_CAUSAL_CONV)
        take_logged_rows(call, slot, (gb_share){0, call->operands[CONV_TAIL]->dims[1]});
    if (op != GB_OP_GATED_DELTA)
        return;
    const delta_kind kind = kind_of(call);
    const delta_part part = logged_part(call, slot);
    const size_t stripes = call->operands[VALUE]->dims[1] * stripes_of(call);
    for (size_t s = 0; s < stripes; s++)
        pass_stripe(call, kind, &part, 1, slot, s, scratch);
}
