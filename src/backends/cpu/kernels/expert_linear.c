/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

#include <string.h>

/* The (token, choice) pairs are sorted by expert, so that each chosen expert's weights are read once, and by
 * none that was not chosen. Every thread sorts for itself, which costs less than a barrier. Each output is
 * one of the linear kernel's, so neighbours do not change it. */

enum {
    UNIT_ROWS = 32,
    MOST_PAIRS = 16384, /* larger batches are sorted in parts */
    MEMORY_TOKENS = 5   /* reading a weight takes about as long as multiplying it with so many */
};

_Static_assert((int)MOST_PAIRS >= (int)GB_MAX_EXPERTS, "a part has the choices of one token or more");

typedef struct workspace {
    uint8_t linear[GB_LINEAR_SCRATCH];  /* first: it is aligned as the scratch is */
    uint32_t begin[GB_MAX_EXPERTS + 1]; /* of each expert's pairs, and at last their end */
    uint32_t pairs[MOST_PAIRS];
    uint32_t chosen[GB_MAX_EXPERTS]; /* the experts that have pairs, in order */
    size_t chosen_count;
} workspace;

size_t gb_expert_scratch_bytes(void) {
    return sizeof(workspace);
}

/* A counting sort: after it the pairs of expert e are begin[e] .. begin[e + 1] - 1, in order. */
static void sort_pairs(const int32_t *experts, size_t pair_count, size_t expert_count, workspace *space) {
    uint32_t *next =
        space->begin + 1; /* where the next pair of an expert goes: at last, where the next begins */
    memset(space->begin, 0, (expert_count + 1) * sizeof *space->begin);
    for (size_t p = 0; p < pair_count; p++)
        next[experts[p]]++;
    uint32_t before = 0;
    space->chosen_count = 0;
    for (size_t e = 0; e < expert_count; e++) {
        uint32_t count = next[e];
        next[e] = before;
        before += count;
        if (count > 0)
            space->chosen[space->chosen_count++] = (uint32_t)e;
    }
    for (size_t p = 0; p < pair_count; p++)
        space->pairs[next[experts[p]]++] = (uint32_t)p;
}

/* ---- Shares -------------------------------------------------------------------------------------------- */

/* The work of all rows of all chosen experts one after the other; a thread's share is first .. end - 1 of it,
 * so that with few tokens it reads long stretches of few experts. */
typedef struct work_share {
    uint64_t first, end;
    uint64_t before; /* work of the experts before this one */
} work_share;

static uint64_t unit_work(const workspace *space, size_t e) {
    uint64_t tokens = space->begin[e + 1] - space->begin[e];
    return tokens > MEMORY_TOKENS ? tokens : MEMORY_TOKENS;
}

static size_t units_of(size_t outputs) {
    return (outputs + UNIT_ROWS - 1) / UNIT_ROWS;
}

static uint64_t all_work(const workspace *space, size_t outputs) {
    uint64_t all = 0;
    for (size_t i = 0; i < space->chosen_count; i++)
        all += unit_work(space, space->chosen[i]) * units_of(outputs);
    return all;
}

/* How many units of an expert begin before that point of the work. */
static size_t units_before(uint64_t point, uint64_t before, uint64_t each, size_t units) {
    uint64_t count = point > before ? (point - before + each - 1) / each : 0;
    return count < units ? (size_t)count : units;
}

/* The rows of expert e that are in the share; moves on to the next expert. */
static gb_share rows_of_expert(work_share *work, const workspace *space, size_t e, size_t outputs) {
    const size_t units = units_of(outputs);
    const uint64_t each = unit_work(space, e);
    gb_share rows = {units_before(work->first, work->before, each, units) * UNIT_ROWS,
                     units_before(work->end, work->before, each, units) * UNIT_ROWS};
    work->before += each * units;
    rows.end = rows.end < outputs ? rows.end : outputs;
    rows.first = rows.first < rows.end ? rows.first : rows.end;
    return rows;
}

/* ---- Products ------------------------------------------------------------------------------------------ */

static void run_expert(const gb_kernel_call *call, gb_linear *linear, workspace *space, size_t e,
                       gb_share rows) {
    const gb_cpu_tensor *weight = call->operands[1];
    const size_t first_row = e * weight->dims[1];
    linear->tokens = space->begin[e + 1] - space->begin[e];
    linear->rows = space->pairs + space->begin[e];
    linear->first_row = first_row;
    if (!weight->quantized)
        linear->weight = gb_element(weight, first_row * linear->inputs);
    gb_multiply_rows(call->vector, linear, rows.first, rows.end, space->linear);
}

/* What is read after rows of the i-th chosen expert. */
static size_t row_after(const workspace *space, size_t i, gb_share rows, size_t outputs) {
    if (rows.end < outputs)
        return space->chosen[i] * outputs + rows.end;
    return i + 1 < space->chosen_count ? space->chosen[i + 1] * outputs : GB_NO_ROW;
}

static void run_share(const gb_kernel_call *call, gb_linear *linear, workspace *space, work_share work) {
    const size_t outputs = call->operands[1]->dims[1];
    for (size_t i = 0; i < space->chosen_count && work.before < work.end; i++) {
        const size_t e = space->chosen[i];
        const gb_share rows = rows_of_expert(&work, space, e, outputs);
        if (rows.first == rows.end)
            continue;
        linear->next_row = row_after(space, i, rows, outputs);
        run_expert(call, linear, space, e, rows);
    }
}

/* The shares of a thread: one, or those that it takes from the queue. */
static void run_shares(const gb_kernel_call *call, const gb_worker *worker, gb_linear *linear,
                       workspace *space) {
    const uint64_t all = all_work(space, call->operands[1]->dims[1]);
    if (!call->queue) {
        run_share(
            call, linear, space,
            (work_share){all * worker->index / worker->count, all * (worker->index + 1) / worker->count, 0});
        return;
    }
    const uint64_t units = call->queue->units;
    size_t first, end;
    while (gb_work_queue_take(call->queue, (uint32_t)worker->index, &first, &end))
        run_share(call, linear, space, (work_share){all * first / units, all * end / units, 0});
}

/* Tokens m .. m + count - 1. */
static void run_part(const gb_kernel_call *call, const gb_worker *worker, size_t m, size_t count) {
    const gb_cpu_tensor *x = call->operands[0], *weight = call->operands[1], *experts = call->operands[2];
    size_t choices = experts->dims[1], inputs = weight->dims[2], outputs = weight->dims[1];
    size_t x_rows = x->rank == 3 ? choices : 1; /* of one token */
    workspace *space = worker->scratch;
    gb_activations activations;
    sort_pairs((const int32_t *)experts->data + m * choices, count * choices, weight->dims[0], space);
    gb_linear linear = {
        .inputs = inputs,
        .x_reuse = (uint32_t)(choices / x_rows),
        .x = gb_floats(x) + m * x_rows * inputs,
        .x_stride = inputs,
        .weight_stride = inputs,
        .dtype = weight->dtype,
        .quantized = weight->quantized,
        .next_row = GB_NO_ROW,
        .y = (float *)call->results[0]->data + m * choices * outputs,
        .y_stride = outputs,
    };
    if (gb_has_rounded_activations(call)) {
        const gb_activations all = gb_shared_activations(call, worker);
        activations = gb_activations_from(&all, m * x_rows);
        linear.activations = &activations;
    }
    run_shares(call, worker, &linear, space);
}

/* operands: x [M,K] or [M,T,K], weight [X,O,K], experts [M,T], which the verifier knows to be below X. */
void gb_kernel_expert_linear(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *experts = call->operands[2];
    size_t tokens = experts->dims[0], most = MOST_PAIRS / experts->dims[1];
    for (size_t m = 0; m < tokens; m += most)
        run_part(call, worker, m, tokens - m < most ? tokens - m : most);
}
