/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/passes.h"

#include "base/memory.h"

gumbel_status gb_cuda_passes_create(const gb_program *program, const gb_backend_options *options,
                                    gb_cuda_passes *passes, gumbel_error *error) {
    const size_t tokens = options->step_tokens;
    *passes = (gb_cuda_passes){.widths = gb_batch_widths_of(&program->metadata)};
    passes->tokens = gb_allocate(3 * tokens + gb_most_rows(options), sizeof *passes->tokens);
    passes->draft = gb_allocate(tokens, sizeof *passes->draft);
    if (!passes->tokens || !passes->draft)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the inputs of %u tokens",
                       options->step_tokens);
    passes->positions = passes->tokens + tokens;
    passes->slots = passes->positions + tokens;
    passes->rows = passes->slots + tokens;
    return GUMBEL_OK;
}

void gb_cuda_passes_destroy(gb_cuda_passes *passes) {
    gb_free(passes->tokens);
    gb_free(passes->draft);
    *passes = (gb_cuda_passes){0};
}

gb_batch gb_cuda_pass_of(gb_cuda_passes *passes, const gb_batch *batch, bool generated, uint32_t *first_row) {
    gb_batch pass = *batch;
    pass.token_count = pass.row_count = 0;
    *first_row = 0;
    for (uint32_t n = 0, row = 0; n < batch->token_count; n++) {
        const bool has_row = row < batch->row_count && batch->rows[row] == (int32_t)n;
        if (batch->generated[n] == generated) {
            if (has_row && pass.row_count == 0)
                *first_row = row;
            if (has_row)
                passes->rows[pass.row_count++] = (int32_t)pass.token_count;
            passes->tokens[pass.token_count] = batch->tokens[n];
            passes->positions[pass.token_count] = batch->positions[n];
            passes->draft[pass.token_count] = batch->draft[n];
            passes->slots[pass.token_count++] = batch->slots[n];
        }
        row += has_row;
    }
    if (pass.token_count < batch->token_count) {
        gb_batch_skip_rows(&pass, *first_row, &passes->widths);
        pass.tokens = passes->tokens;
        pass.positions = passes->positions;
        pass.slots = passes->slots;
        pass.draft = passes->draft;
        pass.rows = passes->rows;
    }
    return pass;
}
