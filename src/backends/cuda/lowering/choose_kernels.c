/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lowering/activations.h"
#include "backends/cuda/lowering/passes.h"

#include "base/memory.h"

/* Kernels are chosen from the last step to the first: what a product's kernel wants of its input is known
 * when the step that computes the input is looked at, and is the epilogue that it may have. */

static const gb_node *product_of(const gb_step *step) {
    if (step->kind == GB_STEP_NODE &&
        (step->node->op == GB_OP_LINEAR || step->node->op == GB_OP_EXPERT_LINEAR))
        return step->node;
    if (step->kind != GB_STEP_FUSED)
        return NULL;
    return step->fused->kind == GB_FUSED_LINEARS   ? step->fused->nodes[0]
           : step->fused->kind == GB_FUSED_EXPERTS ? step->fused->nodes[GB_EXPERTS_GATE_UP]
                                                   : NULL;
}

/* Whether kernels of a step have epilogues that store rows so: those that have whole rows may round them. */
static bool is_of_epilogues(const gb_cuda_prepared *prepared, const gb_step *step) {
    const gb_fused_kind kind = step->kind == GB_STEP_FUSED ? step->fused->kind : GB_FUSED_NONE;
    const bool has_whole_rows = kind == GB_FUSED_NORMS || kind == GB_FUSED_NORM_LINEARS ||
                                kind == GB_FUSED_GATED || kind == GB_FUSED_DELTA || gb_cuda_is_gather(step);
    return prepared->layout <= GB_CUDA_BF16_PAIRS || (gb_cuda_is_rounded(prepared) && has_whole_rows);
}

/* Gives the part that computes that value an epilogue. */
static void attach_epilogue(const gb_cuda_problem *problem, gb_cuda_call *calls, const gb_cuda_tensor *value,
                            const gb_cuda_prepared *epilogue) {
    for (uint32_t p = 0; p < problem->count; p++)
        if (problem->parts[p] && calls[p].results[0] == value)
            calls[p].epilogue = epilogue;
}

/* ---- While steps are fused ----------------------------------------------------------------------------- */

typedef struct step_memory {
    gb_cuda_call calls[GB_MAX_FUSED_NODES];
    const gb_cuda_call *parts[GB_MAX_FUSED_NODES];
    const gb_cuda_tensor *operands[GB_MAX_STEP_OPERANDS];
} step_memory;

/* How the first product of the plan that reads a candidate's result wants it; false: as it is. */
static bool find_wanted(const gb_cuda_lowering *l, const gb_plan *plan, const gb_step *candidate,
                        gb_ref *storage, gb_cuda_prepared *wanted) {
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const gb_step *step = &plan->steps[s];
        const gb_node *product = product_of(step);
        if (!product || !gb_step_produces(candidate, plan->places[product->operands[0]].storage))
            continue;
        step_memory memory;
        const gb_cuda_problem problem =
            gb_cuda_problem_of(l, step, memory.calls, memory.parts, memory.operands);
        const gb_cuda_kernel *kernel = gb_cuda_choose(step, &problem);
        *storage = plan->places[product->operands[0]].storage;
        if (kernel && kernel->input) {
            *wanted = kernel->input(&problem);
            return is_of_epilogues(wanted, candidate);
        }
    }
    return false;
}

bool gb_cuda_supports_step(const gb_plan *plan, const gb_step *candidate, void *user) {
    const gb_cuda_lowering *l = user;
    step_memory memory;
    gb_ref storage;
    gb_cuda_prepared wanted;
    const gb_cuda_problem problem =
        gb_cuda_problem_of(l, candidate, memory.calls, memory.parts, memory.operands);
    if (find_wanted(l, plan, candidate, &storage, &wanted))
        attach_epilogue(&problem, memory.calls, &l->lowered->tensors[storage], &wanted);
    return gb_cuda_choose(candidate, &problem) != NULL;
}

/* ---- Prepared rows ------------------------------------------------------------------------------------- */

static bool has_same_rows(const gb_cuda_prepared *a, const gb_cuda_prepared *b) {
    return a->layout == b->layout && a->group == b->group && a->rotation == b->rotation &&
           a->as->dims[a->as->rank - 1] == b->as->dims[b->as->rank - 1];
}

/* The prepared rows of a value that are wanted so by a step behind this one, or new ones. Where the program
 * branches each step has its own: what came before depends on the way. */
static gb_cuda_prepared_value *value_for(gb_cuda_lowered *lowered, gb_ref storage,
                                         const gb_cuda_prepared *wanted, uint32_t step) {
    for (uint32_t i = 0; i < lowered->prepared_count && !lowered->has_branches; i++) {
        gb_cuda_prepared_value *value = &lowered->prepared[i];
        if (value->storage == storage && has_same_rows(&value->rows, wanted) &&
            lowered->steps[value->first].step->needs_rows == lowered->steps[step].step->needs_rows)
            return value;
    }
    gb_cuda_prepared_value *value = &lowered->prepared[lowered->prepared_count++];
    *value = (gb_cuda_prepared_value){.storage = storage, .rows = *wanted, .last = step};
    return value;
}

/* The first step reads them for all that it is known of, and prepares them unless one before does. */
static void add_input(gb_cuda_lowered *lowered, uint32_t s) {
    gb_cuda_step *step = &lowered->steps[s];
    const gb_ref x = product_of(step->step)->operands[0], storage = lowered->plan->places[x].storage;
    const gb_cuda_prepared wanted = step->kernel->input(&step->problem);
    gb_cuda_prepared_value *value = value_for(lowered, storage, &wanted, s);
    value->first = s;
    for (uint32_t p = 0; p < step->problem.count; p++)
        step->calls[p].input = &value->rows;
}

/* The rows of a result that the nearest product wants, if an epilogue can store them; or NULL. */
static const gb_cuda_prepared_value *nearest_of(const gb_cuda_lowered *lowered, const gb_step *step,
                                                gb_ref storage) {
    const gb_cuda_prepared_value *nearest = NULL;
    for (uint32_t i = 0; i < lowered->prepared_count; i++) {
        const gb_cuda_prepared_value *value = &lowered->prepared[i];
        if (value->storage == storage && (!nearest || value->first < nearest->first))
            nearest = value;
    }
    return nearest && is_of_epilogues(&nearest->rows, step) ? nearest : NULL;
}

static void add_epilogues(const gb_cuda_lowered *lowered, const gb_cuda_step *step) {
    for (uint32_t i = 0; i < step->step->result_count && !lowered->has_branches; i++) {
        const gb_ref storage = step->step->results[i];
        const gb_cuda_prepared_value *value = nearest_of(lowered, step->step, storage);
        if (value)
            attach_epilogue(&step->problem, step->calls, &lowered->tensors[storage], &value->rows);
    }
}

/* Those that no epilogue stores are prepared by their first reader. */
static void settle_step(gb_cuda_lowered *lowered, uint32_t s) {
    gb_cuda_step *step = &lowered->steps[s];
    const bool has_epilogue =
        step->kernel && step->kernel->has_epilogue && step->kernel->has_epilogue(&step->problem);
    for (uint32_t p = 0; p < step->problem.count; p++) {
        gb_cuda_call *call = &step->calls[p];
        if (call->epilogue && has_epilogue)
            gb_cuda_prepared_value_of(call->epilogue)->first = s;
        else
            call->epilogue = NULL;
        call->prepares_input = call->input && gb_cuda_prepared_value_of(call->input)->first == s;
    }
}

/* ---- Values of which prepared rows alone are read ------------------------------------------------------ */

/* Whether a step reads a value as it is, and not only those rows, which a step before has prepared. */
static bool step_reads(const gb_plan *plan, const gb_cuda_step *step, gb_ref storage,
                       const gb_cuda_prepared *rows) {
    const bool has_rows = step->calls[0].input == rows;
    for (uint32_t i = 0; i < step->step->operand_count; i++) {
        const gb_ref operand = step->step->operands[i];
        const bool is_value = operand != GB_NO_VALUE && plan->places[operand].storage == storage;
        if (is_value && !(i == 0 && has_rows))
            return true;
    }
    return false;
}

bool gb_cuda_is_output(const gb_plan *plan, gb_ref storage) {
    for (uint32_t i = 0; i < plan->program->output_count; i++)
        if (plan->places[plan->program->outputs[i].value].storage == storage)
            return true;
    return false;
}

static bool is_read(const gb_cuda_lowered *lowered, const gb_cuda_prepared *rows) {
    const gb_ref storage = gb_cuda_prepared_value_of(rows)->storage;
    bool result = gb_cuda_is_output(lowered->plan, storage);
    for (uint32_t s = 0; s < lowered->plan->step_count && !result; s++)
        result = step_reads(lowered->plan, &lowered->steps[s], storage, rows);
    return result;
}

/* Whether an epilogue is of the last part, which no other part reads: it is stored only where it is live. */
static bool ends_in_epilogue(const gb_step *step) {
    const gb_fused_kind kind = step->kind == GB_STEP_FUSED ? step->fused->kind : GB_FUSED_NONE;
    return kind == GB_FUSED_NORMS || kind == GB_FUSED_GATED || kind == GB_FUSED_DELTA ||
           gb_cuda_is_gather(step);
}

/* A value is twice or four times as large as its prepared rows, and storing it takes as much longer. */
static void leave_out_unread(const gb_cuda_lowered *lowered, gb_cuda_step *step) {
    for (uint32_t p = 0; p < step->problem.count && ends_in_epilogue(step->step); p++)
        if (step->calls[p].epilogue && !is_read(lowered, step->calls[p].epilogue))
            step->problem.live &= ~(1u << p);
}

gumbel_status gb_cuda_choose_kernels(gb_cuda_lowered *lowered, gumbel_error *error) {
    for (uint32_t s = lowered->plan->step_count; s-- > 0;) {
        gb_cuda_step *step = &lowered->steps[s];
        add_epilogues(lowered, step);
        step->kernel = gb_cuda_choose(step->step, &step->problem);
        if (!step->kernel && step->step->kind != GB_STEP_BRANCH && step->step->kind != GB_STEP_JUMP)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "the cuda backend has no kernel for %s",
                           gb_step_name(step->step));
        if (step->kernel && step->kernel->input)
            add_input(lowered, s);
    }
    for (uint32_t s = 0; s < lowered->plan->step_count; s++)
        settle_step(lowered, s);
    for (uint32_t s = 0; s < lowered->plan->step_count; s++)
        leave_out_unread(lowered, &lowered->steps[s]);
    gb_cuda_join_gathers(lowered);
    gb_cuda_share_lists(lowered);
    for (uint32_t i = 0; i < lowered->prepared_count; i++) {
        const gb_cuda_prepared_value *value = &lowered->prepared[i];
        GB_TRY(gb_plan_add_buffer(lowered->plan, value->first, value->last,
                                  gb_cuda_prepared_size(&value->rows), error));
    }
    return GUMBEL_OK;
}
