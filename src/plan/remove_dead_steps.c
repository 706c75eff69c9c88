/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "plan/passes.h"

static bool changes_state(const gb_program *program, const gb_step *step) {
    for (uint32_t i = 0; i < step->operand_count; i++)
        if (step->operands[i] != GB_NO_VALUE && program->values[step->operands[i]].kind == GB_VALUE_STATE)
            return true;
    return false;
}

/* needed is by storage, so that reading a view counts for the value that it views. */
static bool is_alive(const gb_plan *plan, const gb_step *step, const bool *needed) {
    if (step->kind == GB_STEP_BRANCH || step->kind == GB_STEP_JUMP || changes_state(plan->program, step))
        return true;
    for (uint32_t i = 0; i < step->result_count; i++)
        if (needed[step->results[i]])
            return true;
    return false;
}

/* Control only goes forward, so one walk backwards sees every reader before what it reads. */
static void find_alive(const gb_plan *plan, bool *needed, bool *alive) {
    const gb_program *program = plan->program;
    for (uint32_t i = 0; i < program->output_count; i++)
        needed[plan->places[program->outputs[i].value].storage] = true;
    for (uint32_t s = plan->step_count; s-- > 0;) {
        const gb_step *step = &plan->steps[s];
        alive[s] = is_alive(plan, step, needed);
        for (uint32_t i = 0; alive[s] && i < step->operand_count; i++)
            if (step->operands[i] != GB_NO_VALUE)
                needed[plan->places[step->operands[i]].storage] = true;
    }
}

/* new_index[s] is where step s, or the next one that stays, will be. */
static void keep_alive(gb_plan *plan, const bool *alive, uint32_t *new_index) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        new_index[s] = count;
        count += alive[s];
    }
    new_index[plan->step_count] = count;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (!alive[s])
            continue;
        gb_step step = plan->steps[s];
        if (step.kind == GB_STEP_BRANCH || step.kind == GB_STEP_JUMP)
            step.target = new_index[step.target];
        plan->steps[new_index[s]] = step;
    }
    plan->step_count = count;
}

gumbel_status gb_plan_remove_dead_steps(gb_plan *plan, gumbel_error *error) {
    bool *needed = gb_allocate(plan->program->value_count, sizeof *needed);
    bool *alive = gb_allocate(plan->step_count, sizeof *alive);
    uint32_t *new_index = gb_allocate((size_t)plan->step_count + 1, sizeof *new_index);
    bool has_memory = needed && alive && new_index;
    if (has_memory) {
        find_alive(plan, needed, alive);
        keep_alive(plan, alive, new_index);
    }
    gb_free(needed);
    gb_free(alive);
    gb_free(new_index);
    return has_memory ? GUMBEL_OK : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan");
}
