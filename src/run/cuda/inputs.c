/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/inputs.h"

#include "base/memory.h"
#include "run/batch_input.h"
#include "run/cuda/device.h"

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
        uint64_t count = type->shape.dims[0] == GB_DIM_N ? options->step_tokens : options->slots, size;
        inputs->element_row[i] = share_bytes(type);
        if (!gb_multiply_size(count, inputs->element_row[i], &size) ||
            !append_part(size, &inputs->offsets[i], &inputs->size))
            return false;
    }
    uint64_t runs = ((uint64_t)options->step_tokens + 1) * sizeof(int32_t);
    return append_part(runs, &inputs->runs_offset, &inputs->size) &&
           append_part(ALIGNMENT, &inputs->number_offset, &inputs->size) && inputs->size <= UINT32_MAX &&
           program->input_count + 2 <= GB_CUDA_MOST_PARTS;
}

gumbel_status gb_cuda_inputs_create(const gb_program *program, const gb_backend_options *options,
                                    gb_cuda_inputs *inputs, gumbel_error *error) {
    *inputs = (gb_cuda_inputs){.program = program};
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

uint32_t gb_cuda_inputs_fill(gb_cuda_inputs *inputs, const gb_batch *batch, uint32_t number) {
    const gb_program *program = inputs->program;
    inputs->parts.count = 0;
    for (uint32_t i = 0; i < program->input_count; i++) {
        const gb_type *type = &program->values[program->inputs[i].value].type;
        size_t count = type->shape.dims[0] == GB_DIM_N ? batch->token_count : batch->row_count;
        size_t size = count * (size_t)inputs->element_row[i];
        if (size > 0)
            memcpy(inputs->pinned + inputs->offsets[i], gb_batch_input(batch, program->inputs[i].role), size);
        use_part(inputs, inputs->offsets[i], size);
    }
    int32_t *first = (int32_t *)(void *)(inputs->pinned + inputs->runs_offset);
    uint32_t runs = 0;
    for (uint32_t n = 0; n < batch->token_count; n++)
        if (n == 0 || batch->slots[n] != batch->slots[n - 1])
            first[runs++] = (int32_t)n;
    first[runs] = (int32_t)batch->token_count;
    use_part(inputs, inputs->runs_offset, (runs + 1) * sizeof *first);
    memcpy(inputs->pinned + inputs->number_offset, &number, sizeof number);
    use_part(inputs, inputs->number_offset, sizeof number);
    return runs;
}

void gb_cuda_inputs_send(const gb_cuda_inputs *inputs, cudaStream_t stream) {
    gb_cuda_bring_in(&inputs->parts, inputs->pinned, inputs->device, stream);
}
