/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/inputs.h"

#include "backends/batch/batch.h"
#include "backends/cuda/runtime/device.h"
#include "base/memory.h"

#include <string.h>

enum { ALIGNMENT = 64 };

/* Bytes of one token's or row's share of an input. */
static uint64_t share_bytes(const gb_type *type) {
    uint64_t size = gb_dtype_size(type->dtype);
    for (int32_t i = 1; i < type->shape.rank; i++)
        size *= (uint64_t)type->shape.dims[i];
    return size;
}

static bool append_part(uint64_t size, uint64_t *offset, uint64_t *end) {
    return gb_align_size(*end, ALIGNMENT, offset) && gb_add_size(*offset, size, end);
}

static bool place_inputs(gb_cuda_inputs *inputs, const gb_backend_options *options) {
    const gb_program *program = inputs->program;
    for (uint32_t i = 0; i < program->input_count; i++) {
        const gb_type *type = &program->values[program->inputs[i].value].type;
        uint64_t count = type->shape.dims[0] == GB_DIM_N ? options->step_tokens : gb_most_rows(options), size;
        inputs->element_row[i] = share_bytes(type);
        if (!gb_multiply_size(count, inputs->element_row[i], &size) ||
            !append_part(size, &inputs->offsets[i], &inputs->size))
            return false;
    }
    const uint64_t tokens = (uint64_t)options->step_tokens * sizeof(int32_t);
    return append_part(tokens + sizeof(int32_t), &inputs->runs_offset, &inputs->size) &&
           append_part(tokens, &inputs->run_positions_offset, &inputs->size) &&
           append_part(tokens, &inputs->from_offset, &inputs->size) &&
           append_part(tokens, &inputs->to_offset, &inputs->size) &&
           append_part(sizeof(uint32_t), &inputs->turn_offset, &inputs->size) &&
           append_part((1 + GB_CUDA_MOST_STOPS) * sizeof(int32_t), &inputs->stops_offset, &inputs->size) &&
           append_part(sizeof(uint32_t), &inputs->number_offset, &inputs->size) && inputs->size <= UINT32_MAX;
}

gumbel_status gb_cuda_inputs_create(const gb_program *program, const gb_backend_options *options,
                                    gb_cuda_inputs *inputs, gumbel_error *error) {
    *inputs = (gb_cuda_inputs){
        .program = program, .slots = options->slots, .has_versions = gb_has_recurrent_state(program)};
    inputs->offsets = gb_allocate(program->input_count, sizeof *inputs->offsets);
    inputs->element_row = gb_allocate(program->input_count, sizeof *inputs->element_row);
    if (!inputs->offsets || !inputs->element_row || !place_inputs(inputs, options))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the inputs of %u tokens",
                       options->step_tokens);
    void *memory;
    GB_TRY(gb_cuda_allocate_pinned(inputs->size, "a step's inputs", &memory, error));
    inputs->pinned = memory;
    memset(memory, 0, (size_t)inputs->size);
    GB_TRY(gb_cuda_allocate(inputs->size, "a step's inputs", &memory, error));
    inputs->device = memory;
    return GUMBEL_OK;
}

void gb_cuda_inputs_destroy(gb_cuda_inputs *inputs) {
    gb_free(inputs->offsets);
    gb_free(inputs->element_row);
    gb_cuda_free_pinned(inputs->pinned);
    gb_cuda_free(inputs->device);
    *inputs = (gb_cuda_inputs){0};
}

/* The block's bytes from offset on are part of what the step uses; a part may end within a word. */
static void use_part(gb_cuda_inputs *inputs, uint64_t offset, uint64_t size) {
    if (size == 0)
        return;
    gb_cuda_parts *parts = &inputs->parts;
    parts->first[parts->count] = (uint32_t)(offset / sizeof(uint32_t));
    parts->words[parts->count++] = (uint32_t)((size + sizeof(uint32_t) - 1) / sizeof(uint32_t));
}

/* Copies to the host's block at offset what is part of what the step uses. */
static void put(gb_cuda_inputs *inputs, uint64_t offset, const void *data, size_t size) {
    if (size > 0)
        memcpy(inputs->pinned + offset, data, size);
    use_part(inputs, offset, size);
}

static void put_runs(gb_cuda_inputs *inputs, const gb_batch *batch) {
    int32_t *first = (int32_t *)(void *)(inputs->pinned + inputs->runs_offset);
    int32_t *positions = (int32_t *)(void *)(inputs->pinned + inputs->run_positions_offset);
    inputs->run_count = 0;
    for (uint32_t n = 0; n < batch->token_count; n++)
        if (n == 0 || batch->slots[n] != batch->slots[n - 1]) {
            positions[inputs->run_count] = batch->positions[n];
            first[inputs->run_count++] = (int32_t)n;
        }
    first[inputs->run_count] = (int32_t)batch->token_count;
    use_part(inputs, inputs->runs_offset, (inputs->run_count + 1) * sizeof *first);
    if (inputs->has_versions)
        use_part(inputs, inputs->run_positions_offset, inputs->run_count * sizeof *positions);
}

/* The stop tokens stand behind their count. */
static gb_cuda_stops stops_in(const gb_cuda_inputs *inputs, const uint8_t *block) {
    const void *count = block + inputs->stops_offset;
    return (gb_cuda_stops){count, (const int32_t *)count + 1};
}

static void put_stops(gb_cuda_inputs *inputs, const gb_batch *batch) {
    const uint32_t count = batch->stop_count < GB_CUDA_MOST_STOPS ? batch->stop_count : GB_CUDA_MOST_STOPS;
    int32_t *stops = (int32_t *)(void *)(inputs->pinned + inputs->stops_offset);
    stops[0] = (int32_t)count;
    for (uint32_t i = 0; i < count; i++)
        stops[1 + i] = batch->stop_ids[i];
    use_part(inputs, inputs->stops_offset, (1 + count) * sizeof *stops);
}

/* Bytes of the batch's input number i that the step reads and that are there. */
static size_t batch_bytes(const gb_cuda_inputs *inputs, const gb_batch *batch, uint32_t i) {
    if (inputs->program->inputs[i].role == GB_ROLE_MASK && (batch->late_masks || !gb_batch_has_mask(batch)))
        return 0;
    const gb_type *type = &inputs->program->values[inputs->program->inputs[i].value].type;
    const size_t count = type->shape.dims[0] == GB_DIM_N ? batch->token_count : batch->row_count;
    return count * (size_t)inputs->element_row[i];
}

static void put_versions(gb_cuda_inputs *inputs, const gb_batch *batch, const gb_cuda_slots *slots) {
    const uint32_t in_place = 0;
    const uint64_t size = batch->token_count * sizeof(int32_t);
    gb_cuda_slots_place_versions(slots, batch, (int32_t *)(void *)(inputs->pinned + inputs->from_offset),
                                 (int32_t *)(void *)(inputs->pinned + inputs->to_offset));
    use_part(inputs, inputs->from_offset, size);
    use_part(inputs, inputs->to_offset, size);
    put(inputs, inputs->turn_offset, &in_place, sizeof in_place);
}

void gb_cuda_inputs_fill(gb_cuda_inputs *inputs, const gb_batch *batch, const gb_cuda_slots *slots,
                         uint32_t number) {
    const gb_program *program = inputs->program;
    inputs->parts.count = 0;
    inputs->token_count = batch->token_count;
    inputs->row_count = batch->row_count;
    for (uint32_t i = 0; i < program->input_count; i++)
        put(inputs, inputs->offsets[i], gb_batch_input(batch, program->inputs[i].role),
            batch_bytes(inputs, batch, i));
    put_runs(inputs, batch);
    put_stops(inputs, batch);
    put(inputs, inputs->number_offset, &number, sizeof number);
    if (inputs->has_versions)
        put_versions(inputs, batch, slots);
}

void gb_cuda_inputs_fill_masks(gb_cuda_inputs *inputs, const gb_batch *batch) {
    const gb_program *program = inputs->program;
    gb_batch complete = *batch;
    complete.late_masks = NULL;
    inputs->parts.count = 0;
    for (uint32_t i = 0; i < program->input_count; i++)
        if (program->inputs[i].role == GB_ROLE_MASK)
            put(inputs, inputs->offsets[i], complete.mask, batch_bytes(inputs, &complete, i));
}

void gb_cuda_inputs_send(const gb_cuda_inputs *inputs, cudaStream_t stream) {
    gb_cuda_fetch_inputs(&inputs->parts, inputs->pinned, inputs->device, stream);
}

/* ---- Steps that follow on one another ------------------------------------------------------------------ */

bool gb_cuda_inputs_hold(const gb_cuda_inputs *inputs, const gb_batch *batch) {
    const gb_program *program = inputs->program;
    if (batch->token_count != inputs->token_count || batch->row_count != inputs->row_count)
        return false;
    for (uint32_t i = 0; i < program->input_count; i++)
        if (memcmp(inputs->pinned + inputs->offsets[i], gb_batch_input(batch, program->inputs[i].role),
                   batch_bytes(inputs, batch, i)) != 0)
            return false;
    return true;
}

/* The input with that role in a block, or NULL. */
static void *input_in(const gb_cuda_inputs *inputs, uint8_t *block, gb_role role) {
    for (uint32_t i = 0; i < inputs->program->input_count; i++)
        if (inputs->program->inputs[i].role == role)
            return block + inputs->offsets[i];
    return NULL;
}

static bool is_held_stop(const gb_cuda_inputs *inputs, int32_t token) {
    const gb_cuda_stops held = stops_in(inputs, inputs->pinned);
    for (uint32_t i = 0; i < *held.count; i++)
        if (held.ids[i] == token)
            return true;
    return false;
}

bool gb_cuda_inputs_advance(gb_cuda_inputs *inputs, int32_t drawn) {
    if (is_held_stop(inputs, drawn))
        return false;
    int32_t *token = input_in(inputs, inputs->pinned, GB_ROLE_TOKENS);
    int32_t *position = input_in(inputs, inputs->pinned, GB_ROLE_POSITIONS);
    uint64_t *seed = input_in(inputs, inputs->pinned, GB_ROLE_SEED);
    const float *temperature = input_in(inputs, inputs->pinned, GB_ROLE_TEMPERATURE);
    *token = drawn > 0 ? drawn : 0;
    (*position)++;
    if (seed && temperature)
        *seed += *temperature > 0;
    return true;
}

gb_cuda_advance gb_cuda_inputs_advancing(const gb_cuda_inputs *inputs, const int32_t *drawn, uint32_t count,
                                         uint32_t spares) {
    gb_cuda_advance advance = {.count = count, .stops = stops_in(inputs, inputs->device), .drawn = drawn};
    advance.tokens = input_in(inputs, inputs->device, GB_ROLE_TOKENS);
    advance.positions = input_in(inputs, inputs->device, GB_ROLE_POSITIONS);
    advance.temperature = input_in(inputs, inputs->device, GB_ROLE_TEMPERATURE);
    if (advance.temperature)
        advance.seed = input_in(inputs, inputs->device, GB_ROLE_SEED);
    if (!inputs->has_versions || count != 1)
        return advance;
    advance.slots = input_in(inputs, inputs->device, GB_ROLE_SLOTS);
    advance.from = (int32_t *)(void *)(inputs->device + inputs->from_offset);
    advance.to = (int32_t *)(void *)(inputs->device + inputs->to_offset);
    advance.turn = (uint32_t *)(void *)(inputs->device + inputs->turn_offset);
    advance.first_spare = inputs->slots;
    advance.spares = spares;
    return advance;
}

gb_cuda_runs gb_cuda_inputs_runs(const gb_cuda_inputs *inputs) {
    return (gb_cuda_runs){(const int32_t *)(const void *)(inputs->device + inputs->runs_offset),
                          (const int32_t *)(const void *)(inputs->device + inputs->run_positions_offset),
                          inputs->run_count};
}

gb_cuda_versions gb_cuda_inputs_versions(const gb_cuda_inputs *inputs) {
    if (!inputs->has_versions)
        return (gb_cuda_versions){NULL, NULL};
    return (gb_cuda_versions){(const int32_t *)(const void *)(inputs->device + inputs->from_offset),
                              (const int32_t *)(const void *)(inputs->device + inputs->to_offset)};
}

uint32_t *gb_cuda_inputs_number(const gb_cuda_inputs *inputs) {
    return (uint32_t *)(void *)(inputs->device + inputs->number_offset);
}
