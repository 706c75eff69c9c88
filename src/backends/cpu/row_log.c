/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/row_log.h"

#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "base/memory.h"

/* ---- Making -------------------------------------------------------------------------------------------- */

/* A row of the state that the node changes, if it is a recurrent one. */
static gumbel_status measure_row(const gb_program *program, const gb_node *node, gb_row_log *log,
                                 gumbel_error *error) {
    enum { TAIL = 3, KEY = 1, VALUE = 2, MEMORY = 6 }; /* as in ops.def */
    const gb_ref *operands = node->operands;
    if (node->op == GB_OP_CAUSAL_CONV) {
        const gb_value *tail = &program->values[operands[TAIL]];
        log->states[tail->index].row_floats = (size_t)tail->type.shape.dims[1];
    }
    if (node->op != GB_OP_GATED_DELTA)
        return GUMBEL_OK;
    const gb_value *memory = &program->values[operands[MEMORY]];
    const int64_t *key = program->values[operands[KEY]].type.shape.dims;
    const int64_t *value = program->values[operands[VALUE]].type.shape.dims;
    if (key[2] > GB_DELTA_DISCARDED)
        return gb_fail(
            error, GUMBEL_ERROR_UNSUPPORTED,
            "draft_tokens: state %s has keys of %lld elements: the cpu backend takes drafts with at "
            "most %d",
            program->states[memory->index].name, (long long)key[2], GB_DELTA_DISCARDED);
    log->states[memory->index].row_floats = (size_t)(key[1] * key[2] + value[1] * value[2] + 2 * value[1]);
    return GUMBEL_OK;
}

static gumbel_status measure_rows(const gb_program *program, gb_row_log *log, gumbel_error *error) {
    for (uint32_t i = 0; i < program->node_count; i++)
        GB_TRY(measure_row(program, &program->nodes[i], log, error));
    return GUMBEL_OK;
}

/* The states' rows of all slots, in one block. */
static bool place_rows(const gb_program *program, uint32_t slots, gb_row_log *log) {
    uint64_t each = 0, rows, all;
    for (uint32_t i = 0; i < program->state_count; i++)
        if (!gb_multiply_size(log->states[i].row_floats, 2 * (uint64_t)log->capacity, &rows) ||
            !gb_add_size(each, rows, &each))
            return false;
    if (!gb_multiply_size(each, slots, &all) || all > SIZE_MAX / sizeof *log->memory)
        return false;
    log->slot_floats = (size_t)each;
    log->memory = gb_allocate_aligned((size_t)all, sizeof *log->memory);
    float *at = log->memory;
    for (uint32_t i = 0; i < program->state_count && at; i++) {
        log->states[i].of = log;
        log->states[i].rows = at;
        at += log->states[i].row_floats * 2 * log->capacity;
    }
    return log->memory != NULL;
}

gumbel_status gb_row_log_create(const gb_program *program, uint32_t slots, uint32_t drafts, gb_row_log *log,
                                gumbel_error *error) {
    *log = (gb_row_log){.capacity = drafts};
    if (drafts == 0)
        return GUMBEL_OK;
    log->drafts = gb_allocate(slots, sizeof *log->drafts);
    log->states = gb_allocate(program->state_count, sizeof *log->states);
    if (!log->drafts || !log->states)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for drafts of %u slots", slots);
    GB_TRY(measure_rows(program, log, error));
    if (!place_rows(program, slots, log))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %u draft tokens of each of %u slots",
                       drafts, slots);
    return GUMBEL_OK;
}

void gb_row_log_destroy(gb_row_log *log) {
    gb_free(log->drafts);
    gb_free(log->states);
    gb_free(log->memory);
    *log = (gb_row_log){0};
}

/* ---- Using --------------------------------------------------------------------------------------------- */

void gb_row_log_advance(gb_row_log *log, const gb_batch *batch) {
    if (log->capacity > 0)
        gb_drafts_advance(log->drafts, batch);
}

void gb_row_log_reset(gb_row_log *log, uint32_t slot, uint32_t position) {
    if (log->capacity > 0)
        gb_drafts_reset(&log->drafts[slot], position);
}

bool gb_row_log_truncate(gb_row_log *log, uint32_t slot, uint32_t position) {
    return log->slot_floats == 0 || gb_drafts_truncate(&log->drafts[slot], position);
}
