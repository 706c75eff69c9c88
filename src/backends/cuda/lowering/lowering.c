/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lowering/passes.h"

#include "base/memory.h"

/* ---- Steps ------------------------------------------------------------------------------------------ */

static bool allocate_steps(gb_cuda_lowered *lowered) {
    size_t part_count = 0, operand_count = 0;
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        part_count += gb_cuda_count_parts(&lowered->plan->steps[s]);
        operand_count += lowered->plan->steps[s].operand_count;
    }
    lowered->steps = gb_allocate(lowered->plan->step_count, sizeof *lowered->steps);
    lowered->calls = gb_allocate(part_count, sizeof *lowered->calls);
    lowered->parts = gb_allocate(part_count, sizeof *lowered->parts);
    lowered->operands = gb_allocate(operand_count, sizeof *lowered->operands);
    lowered->prepared = gb_allocate(lowered->plan->step_count, sizeof *lowered->prepared);
    return lowered->steps && lowered->calls && lowered->parts && lowered->operands && lowered->prepared;
}

static void list_problems(const gb_cuda_lowering *l, gb_cuda_lowered *lowered) {
    size_t part = 0, operand = 0;
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        gb_cuda_step *step = &lowered->steps[s];
        step->step = &lowered->plan->steps[s];
        step->calls = lowered->calls + part;
        step->problem = gb_cuda_problem_of(l, step->step, step->calls, lowered->parts + part,
                                           lowered->operands + operand);
        part += step->problem.count;
        operand += step->step->operand_count;
        lowered->has_branches = lowered->has_branches || step->step->kind == GB_STEP_BRANCH;
    }
}

/* The plan's steps are what they will be; its values have no places yet. */
static gumbel_status finish_steps(gb_plan *plan, void *user, gumbel_error *error) {
    const gb_cuda_lowering *l = user;
    gb_cuda_lowered *lowered = l->lowered;
    lowered->plan = plan;
    if (!allocate_steps(lowered))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan's steps");
    list_problems(l, lowered);
    GB_TRY(gb_cuda_choose_kernels(lowered, error));
    return gb_cuda_list_accesses(lowered)
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan's steps");
}

gumbel_status gb_cuda_lower(const gb_cuda_lowering_options *options, gb_cuda_lowered *lowered,
                            gumbel_error *error) {
    const gb_program *program = options->program;
    gb_cuda_class_range range;
    *lowered = (gb_cuda_lowered){.class = options->class};
    gb_cuda_class_find_range(options->class, options->backend, &range);
    lowered->tensors = gb_allocate(program->value_count, sizeof *lowered->tensors);
    if (!lowered->tensors)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan's values");
    for (gb_ref i = 0; i < program->value_count; i++)
        gb_cuda_describe_tensor(options, i, &lowered->tensors[i]);
    gb_cuda_lowering l = {options, lowered, !gb_cuda_is_float32_program(program)};
    const gb_plan_options plan_options = {.step_tokens = range.most_tokens,
                                          .rows = range.most_rows,
                                          .fuse = options->backend->fuse,
                                          .supports = gb_cuda_supports_step,
                                          .finish_steps = finish_steps,
                                          .user = &l};
    gb_cuda_bind_dims(program, lowered->tensors, plan_options.step_tokens, plan_options.rows);
    gb_plan *plan;
    const gumbel_status status = gb_plan_create(program, &plan_options, &plan, error);
    lowered->plan = plan;
    return status;
}

void gb_cuda_lowered_destroy(gb_cuda_lowered *lowered) {
    gb_free(lowered->accesses);
    gb_free(lowered->prepared);
    gb_free(lowered->operands);
    gb_free(lowered->parts);
    gb_free(lowered->calls);
    gb_cuda_launch_list_destroy(&lowered->launches);
    gb_free(lowered->steps);
    gb_free(lowered->tensors);
    gb_plan_destroy(lowered->plan);
    *lowered = (gb_cuda_lowered){0};
}

void gb_cuda_lowered_bind(gb_cuda_lowered *lowered, uint32_t tokens, uint32_t rows, const gb_cuda_runs *runs,
                          const gb_cuda_versions *versions) {
    gb_cuda_bind_dims(lowered->plan->program, lowered->tensors, tokens, rows);
    lowered->rows = rows;
    lowered->described = 0;
    gb_cuda_launch_list_clear(&lowered->launches);
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        const gb_cuda_step *step = &lowered->steps[s];
        for (uint32_t p = 0; p < step->problem.count; p++) {
            step->calls[p].runs = *runs;
            step->calls[p].versions = *versions;
        }
    }
}

static void describe_step(gb_cuda_lowered *lowered, gb_cuda_step *step) {
    const bool is_left_out = step->step->needs_rows && lowered->rows == 0;
    step->first_launch = lowered->launches.count;
    if (step->kernel && !is_left_out)
        step->kernel->describe(&step->problem);
    step->end_launch = lowered->launches.count;
    for (uint32_t i = step->first_launch; i < step->end_launch; i++)
        lowered->launches.launches[i].step = (uint32_t)(step - lowered->steps);
}

gumbel_status gb_cuda_lowered_describe(gb_cuda_lowered *lowered, uint32_t steps, gumbel_error *error) {
    while (lowered->described < steps)
        describe_step(lowered, &lowered->steps[lowered->described++]);
    return lowered->launches.has_failed
               ? gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a step's launches")
               : GUMBEL_OK;
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

uint64_t gb_cuda_lowered_scratch(const gb_cuda_lowered *lowered) {
    uint64_t most = 0;
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        const gb_cuda_step *step = &lowered->steps[s];
        const bool has_scratch = step->kernel && step->kernel->scratch;
        const uint64_t size = has_scratch ? step->kernel->scratch(&step->problem) : 0;
        most = size > most ? size : most;
    }
    return most;
}
