/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lowering/activations.h"
#include "backends/cuda/lowering/passes.h"

#include "base/memory.h"

static void add(gb_cuda_step *step, gb_cuda_access access) {
    if (access.tensor || access.rows)
        step->accesses[step->access_count++] = access;
}

/* States are operands that change; a sample step leaves its logits as they were. */
static bool changes(const gb_program *program, const gb_step *step, uint32_t operand) {
    const gb_ref ref = step->operands[operand];
    const bool samples = step->kind == GB_STEP_SAMPLE ||
                         (step->kind == GB_STEP_FUSED && step->fused->kind == GB_FUSED_LOGPROB);
    return ref != GB_NO_VALUE &&
           (program->values[ref].kind == GB_VALUE_STATE || (samples && operand == GB_SAMPLE_LOGITS));
}

/* Whether a product reads rows that a step before has prepared of its input, which is operand 0. */
static bool has_prepared_input(const gb_cuda_step *step) {
    return step->calls[0].input && !step->calls[0].prepares_input;
}

/* A delta net works in its result's memory before it is done. */
static bool is_left_out(const gb_cuda_step *step, const gb_cuda_tensor *result) {
    const gb_fused *fused = step->step->fused;
    for (uint32_t p = 0; p < step->problem.count; p++)
        if (step->calls[p].results[0] == result &&
            (step->calls[p].gathered || step->calls[p].is_stored_before))
            return true;
    if (!fused)
        return step->problem.live == 0;
    if (fused->kind == GB_FUSED_DELTA)
        return false;
    for (uint32_t p = 0; p < step->problem.count; p++)
        if (step->calls[p].results[0] == result)
            return (fused->live & ~step->problem.live) >> p & 1u;
    return false;
}

static void list_operands(const gb_cuda_lowered *lowered, gb_cuda_step *step) {
    if (step->calls[0].is_stored_before)
        return;
    for (uint32_t i = has_prepared_input(step); i < step->step->operand_count; i++)
        add(step, (gb_cuda_access){.tensor = step->problem.operands[i],
                                   .writes = changes(lowered->plan->program, step->step, i)});
}

static void list_results(const gb_cuda_lowered *lowered, gb_cuda_step *step) {
    for (uint32_t i = 0; i < step->step->result_count; i++) {
        const gb_cuda_tensor *result = &lowered->tensors[step->step->results[i]];
        if (!is_left_out(step, result))
            add(step, (gb_cuda_access){.tensor = result, .writes = true});
    }
}

static void list_prepared(gb_cuda_step *step) {
    const gb_cuda_prepared *input = NULL;
    for (uint32_t p = 0; p < step->problem.count; p++) {
        const gb_cuda_call *call = &step->calls[p];
        if (call->input != input)
            add(step, (gb_cuda_access){.rows = call->input, .writes = call->prepares_input});
        add(step, (gb_cuda_access){.rows = call->is_stored_before ? NULL : call->epilogue, .writes = true});
        add(step, (gb_cuda_access){.tensor = call->gathered, .writes = true});
        input = call->input ? call->input : input;
    }
}

static void list_step(const gb_cuda_lowered *lowered, gb_cuda_step *step) {
    list_operands(lowered, step);
    list_results(lowered, step);
    list_prepared(step);
}

bool gb_cuda_list_accesses(gb_cuda_lowered *lowered) {
    size_t most = 0;
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        const gb_cuda_step *step = &lowered->steps[s];
        most += step->step->operand_count + step->step->result_count + 3 * (size_t)step->problem.count;
    }
    lowered->accesses = gb_allocate(most, sizeof *lowered->accesses);
    size_t first = 0;
    for (uint32_t s = 0; s < lowered->plan->step_count && lowered->accesses; s++) {
        lowered->steps[s].accesses = lowered->accesses + first;
        list_step(lowered, &lowered->steps[s]);
        first += lowered->steps[s].access_count;
    }
    return lowered->accesses != NULL;
}

gb_cuda_range gb_cuda_range_of(const gb_cuda_access *access) {
    const gb_cuda_tensor *tensor = access->tensor;
    if (access->rows)
        return (gb_cuda_range){access->rows->data, gb_cuda_prepared_size(access->rows)};
    const uint64_t size = tensor->dtype == GB_QUANTIZED
                              ? tensor->planes.size
                              : gb_cuda_elements(tensor) * gb_dtype_size(tensor->dtype);
    return (gb_cuda_range){tensor->data, size};
}
