/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lowering/passes.h"

/* A value that a gather alone reads need not be stored first: the kernel that computes it writes into the
 * memory of all ranks, or rounds its part of the rows that are wanted, and of the gather a meeting is left.
 */

/* The step that computes the operand of a gather, which reads it alone, behind the exchange before and in the
 * same batches; or NULL. */
static gb_cuda_step *source_of(const gb_cuda_lowered *lowered, uint32_t gather) {
    const gb_plan *plan = lowered->plan;
    const gb_ref storage = plan->places[plan->steps[gather].operands[0]].storage;
    gb_cuda_step *source = NULL;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const gb_step *step = &plan->steps[s];
        source = gb_step_produces(step, storage) ? &lowered->steps[s] : source;
        for (uint32_t i = 0; i < step->operand_count && s != gather; i++)
            if (step->operands[i] != GB_NO_VALUE && plan->places[step->operands[i]].storage == storage)
                return NULL;
    }
    const uint32_t before = gb_plan_exchange_before(plan, gather);
    const bool is_behind = source && (before == gather || source > &lowered->steps[before]);
    const bool is_possible = is_behind && !gb_cuda_is_output(plan, storage) &&
                             source->step->needs_rows == plan->steps[gather].needs_rows;
    return is_possible ? source : NULL;
}

/* The part of a step that computes a value. */
static uint32_t part_of(const gb_cuda_step *step, const gb_cuda_tensor *value) {
    uint32_t part = 0;
    while (part < step->problem.count && step->calls[part].results[0] != value)
        part++;
    return part;
}

/* Its rows are rounded for the gather: by the source, whose epilogue they become. Ranks meet in the source
 * then, so nothing may come between. */
static bool round_before(const gb_cuda_lowered *lowered, gb_cuda_step *source, uint32_t part,
                         const gb_cuda_step *gather) {
    const bool is_gated = source->step->kind == GB_STEP_FUSED && source->step->fused->kind == GB_FUSED_GATED;
    const gb_cuda_prepared *rows = gather->calls[0].epilogue;
    gb_cuda_call *call = &source->calls[part];
    if (!is_gated || call->epilogue || source + 1 != gather)
        return false;
    call->epilogue = rows;
    call->rounds_for_ranks = true;
    if (source->kernel->has_epilogue && source->kernel->has_epilogue(&source->problem)) {
        source->problem.live &= ~(1u << part);
        gb_cuda_prepared_value_of(rows)->first = (uint32_t)(source - lowered->steps);
        return true;
    }
    call->epilogue = NULL;
    call->rounds_for_ranks = false;
    return false;
}

static void join(const gb_cuda_lowered *lowered, uint32_t gather) {
    const gb_cuda_step *step = &lowered->steps[gather];
    gb_cuda_call *call = &step->calls[0];
    gb_cuda_step *source = source_of(lowered, gather);
    const uint32_t part = source ? part_of(source, call->operands[0]) : 0;
    if (!source || !source->kernel || part == source->problem.count)
        return;
    if (call->epilogue && !gb_cuda_is_live(&step->problem, 0)) {
        call->is_stored_before = round_before(lowered, source, part, step);
    } else if (!call->epilogue && call->is_free_since_exchange && source->kernel->stores_gathered &&
               gb_node_int(call->node, GB_ATTRIBUTE_SECTIONS) == 1) {
        source->calls[part].gathered = call->results[0];
        call->is_stored_before = true;
    }
}

void gb_cuda_join_gathers(gb_cuda_lowered *lowered) {
    const gb_plan *plan = lowered->plan;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        gb_cuda_call *call = &lowered->steps[s].calls[0];
        if (!gb_cuda_is_gather(&plan->steps[s]) || gb_node_int(call->node, GB_ATTRIBUTE_RANKS) == 1)
            continue;
        call->rounds_for_ranks = call->epilogue != NULL;
        call->is_free_since_exchange =
            gb_plan_exchange_before(plan, s) != s && !gb_cuda_is_output(plan, plan->steps[s].results[0]);
        join(lowered, s);
    }
}
