/* SPDX-License-Identifier: Apache-2.0 */
#include "export/choose_wide.h"

#include "base/memory.h"
#include "export/measure_loss.h"
#include "export/parallel.h"
#include "export/quantize/widths.h"
#include "program/file/file_size.h"

#include <inttypes.h>

static const uint32_t NONE = UINT32_MAX;

typedef struct choosing {
    const gb_wide_request *request;
    gb_program *program;
    gb_format *formats;     /* of each constant, as the recipe has it */
    uint32_t *widening_of;  /* of each constant; NONE: it stays */
    gb_ref *inputs;         /* of each widening: what its products take in; GB_NO_VALUE: of experts */
    gb_widening *widenings; /* at most one for each constant */
    size_t count;
} choosing;

static bool reserve(choosing *c) {
    const size_t count = c->program->constant_count;
    c->formats = gb_allocate(count, sizeof *c->formats);
    c->widening_of = gb_allocate(count, sizeof *c->widening_of);
    c->inputs = gb_allocate(count, sizeof *c->inputs);
    c->widenings = gb_allocate(count, sizeof *c->widenings);
    if (!c->formats || !c->widening_of || !c->inputs || !c->widenings)
        return false;
    for (size_t i = 0; i < count; i++) {
        c->formats[i] = c->program->constants[i].format;
        c->widening_of[i] = NONE;
    }
    return true;
}

/* ---- What can become wider ----------------------------------------------------------------------------- */

static uint32_t find_widening(choosing *c, gb_ref input) {
    for (size_t i = 0; i < c->count && input != GB_NO_VALUE; i++)
        if (c->inputs[i] == input)
            return (uint32_t)i;
    c->inputs[c->count] = input;
    c->widenings[c->count] = (gb_widening){0};
    return (uint32_t)c->count++;
}

static void add_product(choosing *c, const gb_node *node) {
    const gb_value *weight = &c->program->values[node->operands[1]];
    if (weight->kind == GB_VALUE_CONSTANT && c->widening_of[weight->index] == NONE &&
        gb_can_widen(&c->formats[weight->index]))
        c->widening_of[weight->index] =
            find_widening(c, node->op == GB_OP_LINEAR ? node->operands[0] : GB_NO_VALUE);
}

static gumbel_status find_widenings(choosing *c, gumbel_error *error) {
    for (uint32_t n = 0; n < c->program->node_count; n++)
        if (c->program->nodes[n].op == GB_OP_LINEAR || c->program->nodes[n].op == GB_OP_EXPERT_LINEAR)
            add_product(c, &c->program->nodes[n]);
    if (c->count == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "size: recipe %s has no matrices that can become wider; expected one with integer "
                       "scales, such as int4",
                       c->request->recipe);
    return GUMBEL_OK;
}

/* ---- Bytes --------------------------------------------------------------------------------------------- */

/* Gives the constants of a widening the wide format, or their own again. */
static bool set_formats(const choosing *c, uint32_t widening, bool is_wide) {
    for (uint32_t i = 0; i < c->program->constant_count; i++) {
        gb_constant *constant = &c->program->constants[i];
        if (c->widening_of[i] != widening)
            continue;
        constant->format = is_wide ? gb_wide_format() : c->formats[i];
        if (!gb_constant_bytes(constant, &constant->size))
            return false;
    }
    return true;
}

static gumbel_status measure_file(const choosing *c, gb_file_size *size, gumbel_error *error) {
    GB_TRY(gb_program_choose_packings(c->program, c->request->order, error));
    return gb_program_file_size(c->program, size) ? GUMBEL_OK : gb_no_memory(error, "choosing widths");
}

static gumbel_status measure_bytes(choosing *c, const gb_file_size *least, gumbel_error *error) {
    for (uint32_t i = 0; i < c->count; i++) {
        gb_file_size wide = {0};
        gumbel_status status = set_formats(c, i, true) ? measure_file(c, &wide, error)
                                                       : gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                                                                 "size: the program would be too large");
        set_formats(c, i, false);
        GB_TRY(status);
        const uint64_t before = least->bytes - least->padding, after = wide.bytes - wide.padding;
        c->widenings[i].bytes = after > before ? after - before : 0;
    }
    return gb_program_choose_packings(c->program, c->request->order, error);
}

/* ---- Losses -------------------------------------------------------------------------------------------- */

/* Drawn weights are all alike. */
static gumbel_status measure_gain(const choosing *c, uint32_t index, double *gain, gumbel_error *error) {
    const gb_quantized_source source = gb_weights_plain_source(c->request->weights, index);
    const gb_format wide = gb_wide_format();
    gb_measured_matrix matrix = {.source = &source,
                                 .correlations = gb_weights_correlations(c->request->weights, index)};
    double narrow_loss, wide_loss;
    *gain = 1;
    if (!source.data.parts)
        return GUMBEL_OK;
    if (!gb_constant_matrix(&c->program->constants[index], &matrix.rows, &matrix.columns) ||
        !gb_measure_loss(&matrix, &c->formats[index], source.method, gb_export_threads(), &narrow_loss) ||
        !gb_measure_loss(&matrix, &wide, GB_METHOD_MIN_MAX, gb_export_threads(), &wide_loss))
        return gb_no_memory(error, "choosing widths");
    if (source.is_mapped)
        gb_release_stacked(&source.data, 0, matrix.rows, gb_source_row_bytes(&source, matrix.columns));
    *gain = narrow_loss - wide_loss;
    return GUMBEL_OK;
}

static uint64_t candidate_bytes(const choosing *c) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->program->constant_count; i++)
        bytes += c->widening_of[i] == NONE ? 0 : c->program->constants[i].size;
    return bytes;
}

static gumbel_status measure_gains(choosing *c, gumbel_error *error) {
    const gb_wide_request *request = c->request;
    const uint64_t total = candidate_bytes(c);
    uint64_t done = 0;
    for (uint32_t i = 0; i < c->program->constant_count; i++) {
        double gain;
        if (c->widening_of[i] == NONE)
            continue;
        GB_TRY(measure_gain(c, i, &gain, error));
        c->widenings[c->widening_of[i]].gain += gain;
        done += c->program->constants[i].size;
        if (request->progress && !request->progress(request->progress_user, "losses", done, total))
            return gb_fail(error, GUMBEL_ERROR_CANCELLED, "the export was cancelled");
    }
    return GUMBEL_OK;
}

/* ---- Choosing ------------------------------------------------------------------------------------------ */

static gumbel_status measure_least(const choosing *c, gb_file_size *least, gumbel_error *error) {
    GB_TRY(measure_file(c, least, error));
    if (least->bytes > c->request->size)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "size: recipe %s alone makes a program of %" PRIu64
                       " bytes; expected that or more, not %" PRIu64,
                       c->request->recipe, least->bytes, c->request->size);
    return GUMBEL_OK;
}

/* The padding between sections may become the most that there can be. */
static uint64_t room_beside(const gb_file_size *least, uint64_t size) {
    const uint64_t used = least->bytes - least->padding + GB_MOST_SECTION_PADDING;
    return size > used ? size - used : 0;
}

static gumbel_status mark(const choosing *c, gb_wide_choice *choice, gumbel_error *error) {
    choice->is_wide = gb_allocate(c->program->constant_count, sizeof *choice->is_wide);
    if (!choice->is_wide)
        return gb_no_memory(error, "choosing widths");
    for (uint32_t i = 0; i < c->program->constant_count; i++) {
        const bool is_candidate = c->widening_of[i] != NONE;
        choice->is_wide[i] = is_candidate && c->widenings[c->widening_of[i]].is_taken;
        choice->wide += choice->is_wide[i];
        choice->candidates += is_candidate;
    }
    return GUMBEL_OK;
}

static gumbel_status choose(choosing *c, gb_wide_choice *choice, gumbel_error *error) {
    gb_file_size least;
    if (!reserve(c))
        return gb_no_memory(error, "choosing widths");
    GB_TRY(find_widenings(c, error));
    GB_TRY(measure_least(c, &least, error));
    GB_TRY(measure_bytes(c, &least, error));
    GB_TRY(measure_gains(c, error));
    gb_choose_widths(c->widenings, c->count, room_beside(&least, c->request->size));
    return mark(c, choice, error);
}

gumbel_status gb_choose_wide(const gb_wide_request *request, gb_wide_choice *choice, gumbel_error *error) {
    choosing c = {.request = request, .program = request->program};
    *choice = (gb_wide_choice){0};
    const gumbel_status status = choose(&c, choice, error);
    gb_free(c.formats);
    gb_free(c.widening_of);
    gb_free(c.inputs);
    gb_free(c.widenings);
    return status;
}
