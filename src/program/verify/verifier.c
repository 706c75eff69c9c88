/* SPDX-License-Identifier: Apache-2.0 */
#include "program/verify/verifier.h"

#include "base/memory.h"
#include "program/verify/verify.h"

static gumbel_status verify_graph(gb_verification *verification) {
    const gb_program *program = verification->program;
    verification->values = gb_allocate(program->value_count, 1);
    verification->nodes = gb_allocate(program->node_count, 1);
    verification->regions = gb_allocate(program->region_count, 1);
    verification->state_users = gb_allocate(program->state_count, sizeof *verification->state_users);
    if (!verification->values || !verification->nodes || !verification->regions || !verification->state_users)
        return gb_fail(verification->error, GUMBEL_ERROR_MEMORY, "no memory for verifying the graph");
    GB_TRY(gb_verify_values(verification));
    GB_TRY(gb_verify_regions(verification));
    return gb_verify_outputs(verification);
}

static gumbel_status verify_one(const gb_program *program, gumbel_error *error) {
    GB_TRY(gb_verify_metadata(program, error));
    GB_TRY(gb_verify_data(program, error));
    gb_verification verification = {.program = program, .error = error};
    gumbel_status status = verify_graph(&verification);
    gb_free(verification.values);
    gb_free(verification.nodes);
    gb_free(verification.regions);
    gb_free(verification.state_users);
    return status;
}

gumbel_status gb_program_verify(const gb_program *program, gumbel_error *error) {
    GB_TRY(verify_one(program, error));
    if (!program->head)
        return GUMBEL_OK;
    const gumbel_status status = verify_one(program->head, error);
    return status == GUMBEL_OK ? gb_verify_head(program, error) : gb_prefix(error, status, "draft head");
}
