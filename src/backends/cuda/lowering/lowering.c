/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lowering/lowering.h"

#include "backends/cuda/lowering/activations.h"
#include "base/memory.h"

#include <string.h>

/* ---- Tensors ------------------------------------------------------------------------------------------- */

static void describe_constant(const gb_cuda_lowering_options *options, uint32_t index,
                              gb_cuda_tensor *tensor) {
    tensor->format = options->program->constants[index].format;
    tensor->planes = options->weights->planes[index];
    tensor->is_packed = options->weights->packings[index].block_rows > 0;
    tensor->int8_input = options->weights->int8_input[index];
}

/* Stands for memory while kernels are chosen: aligned, and another address for each number. */
static void *somewhere(uint32_t number) {
    enum { ALIGNMENT = 256 };
    return (void *)((uintptr_t)ALIGNMENT * ((uintptr_t)number + 1));
}

/* All of a value but where it lies. */
static void describe_tensor(const gb_cuda_lowering_options *options, gb_ref ref, gb_cuda_tensor *tensor) {
    const gb_value *value = &options->program->values[ref];
    tensor->data = somewhere(ref);
    tensor->dtype = value->type.dtype;
    tensor->rank = value->type.shape.rank;
    for (int32_t i = 0; i < tensor->rank; i++)
        tensor->dims[i] = value->type.shape.dims[i] > 0 ? (size_t)value->type.shape.dims[i] : 0;
    if (value->kind == GB_VALUE_STATE) {
        const gb_state_place *state = &options->states->places[value->index];
        tensor->slot_bytes = (size_t)gb_state_area(options->states, state)->stride;
        if (state->kind != GB_STATE_RECURRENT)
            tensor->dims[0] = (size_t)state->rows;
    }
    if (value->kind == GB_VALUE_CONSTANT)
        describe_constant(options, value->index, tensor);
}

static void bind_dims(const gb_program *program, gb_cuda_tensor *tensors, uint32_t tokens, uint32_t rows) {
    for (gb_ref i = 0; i < program->value_count; i++) {
        const gb_shape *shape = &program->values[i].type.shape;
        if (shape->rank > 0 && shape->dims[0] < 0)
            tensors[i].dims[0] = shape->dims[0] == GB_DIM_N ? tokens : rows;
    }
}

/* ---- Steps as problems --------------------------------------------------------------------------------- */

/* Whether all weights are float32: such a program has none but true float32 products. */
static bool is_float32_program(const gb_program *program) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_dtype dtype = program->constants[i].type.dtype;
        if (dtype == GB_BF16 || dtype == GB_F16 || dtype == GB_QUANTIZED)
            return false;
    }
    return true;
}

/* What supports() needs to know. */
typedef struct lowering {
    const gb_cuda_lowering_options *options;
    gb_cuda_tensor *tensors;
    gb_cuda_launch_list *launches;
    bool allows_bf16;
} lowering;

static const gb_cuda_tensor *tensor_of(const lowering *l, gb_ref value) {
    return value == GB_NO_VALUE ? NULL : &l->tensors[value];
}

/* A call of some operands and results. */
static gb_cuda_call call_of(const lowering *l, const gb_step *step, const gb_node *node) {
    const gb_cuda_class class = l->options->class;
    return (gb_cuda_call){.node = node,
                          .scratch = l->options->scratch,
                          .row_class = step->needs_rows ? class.rows : class.tokens,
                          .allows_bf16 = l->allows_bf16,
                          .launches = l->launches};
}

static gb_cuda_call call_of_node(const lowering *l, const gb_step *step, const gb_node *node) {
    gb_cuda_call call = call_of(l, step, node);
    for (uint32_t i = 0; i < node->operand_count; i++)
        call.operands[i] = tensor_of(l, node->operands[i]);
    for (uint32_t i = 0; i < node->result_count; i++)
        call.results[i] = tensor_of(l, node->results[i]);
    return call;
}

/* Of a step that executes no node, such as the sampler's. */
static gb_cuda_call call_of_step(const lowering *l, const gb_step *step, uint32_t operand_count) {
    gb_cuda_call call = call_of(l, step, NULL);
    for (uint32_t i = 0; i < operand_count; i++)
        call.operands[i] = tensor_of(l, step->operands[i]);
    call.results[0] = tensor_of(l, step->results[0]);
    return call;
}

static uint32_t count_parts(const gb_step *step) {
    return step->kind == GB_STEP_FUSED ? step->fused->node_count : 1;
}

/* Fills in a step's problem, whose memory is given: a call and a part for each of its parts, and a tensor for
 * each of its operands. */
static gb_cuda_problem problem_of(const lowering *l, const gb_step *step, gb_cuda_call *calls,
                                  const gb_cuda_call **parts, const gb_cuda_tensor **operands) {
    const uint32_t count = count_parts(step);
    for (uint32_t i = 0; i < step->operand_count; i++)
        operands[i] = tensor_of(l, step->operands[i]);
    for (uint32_t p = 0; p < count; p++) {
        const gb_node *node = step->kind == GB_STEP_FUSED ? step->fused->nodes[p] : step->node;
        if (step->kind == GB_STEP_FUSED && node && node->op == GB_OP_IF)
            calls[p] = call_of_step(l, step, GB_SAMPLE_OPERANDS);
        else if (step->kind == GB_STEP_FUSED || step->kind == GB_STEP_NODE)
            calls[p] = node ? call_of_node(l, step, node) : (gb_cuda_call){0};
        else
            calls[p] = call_of_step(l, step, step->operand_count);
        parts[p] = step->kind != GB_STEP_FUSED || node ? &calls[p] : NULL;
    }
    return (gb_cuda_problem){.operands = operands,
                             .parts = parts,
                             .count = count,
                             .live = step->kind == GB_STEP_FUSED ? step->fused->live : 1};
}

/* ---- Results that products take ------------------------------------------------------------------------ */

/* A step's GEMM input that an earlier step can store as prepared rows. */
typedef struct prepared_input {
    gb_ref x; /* GB_NO_VALUE: it has none */
    gb_ref weight;
} prepared_input;

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

static prepared_input prepared_input_of(const gb_program *program, const gb_step *step) {
    const gb_node *product = product_of(step);
    if (!product || program->values[product->operands[1]].type.dtype != GB_QUANTIZED ||
        gb_cuda_is_int8_per_token(product))
        return (prepared_input){GB_NO_VALUE, GB_NO_VALUE};
    return (prepared_input){product->operands[0], product->operands[1]};
}

/* Gives the part that computes a GEMM's input an epilogue that stores prepared rows. */
static void set_epilogue(const lowering *l, const gb_plan *plan, const gb_cuda_problem *problem,
                         gb_cuda_call *calls, prepared_input input, gb_cuda_epilogue *epilogue) {
    const gb_cuda_tensor *input_bytes = &l->tensors[plan->places[input.x].storage];
    *epilogue = (gb_cuda_epilogue){&l->tensors[input.x], &l->tensors[input.weight]};
    for (uint32_t p = 0; p < problem->count; p++)
        if (problem->parts[p] && calls[p].results[0] == input_bytes)
            calls[p].epilogue = epilogue;
}

/* ---- Which fused steps there are ----------------------------------------------------------------------- */

/* The first GEMM of the plan that reads a candidate's result. */
static prepared_input find_reader(const gb_plan *plan, const gb_step *candidate) {
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const prepared_input input = prepared_input_of(plan->program, &plan->steps[s]);
        if (input.x != GB_NO_VALUE && gb_step_produces(candidate, plan->places[input.x].storage))
            return input;
    }
    return (prepared_input){GB_NO_VALUE, GB_NO_VALUE};
}

static bool supports(const gb_plan *plan, const gb_step *candidate, void *user) {
    const lowering *l = user;
    gb_cuda_call calls[GB_MAX_FUSED_NODES];
    const gb_cuda_call *parts[GB_MAX_FUSED_NODES];
    const gb_cuda_tensor *operands[GB_MAX_STEP_OPERANDS];
    const gb_cuda_problem problem = problem_of(l, candidate, calls, parts, operands);
    const prepared_input input = find_reader(plan, candidate);
    gb_cuda_epilogue epilogue;
    if (input.x != GB_NO_VALUE)
        set_epilogue(l, plan, &problem, calls, input, &epilogue);
    return gb_cuda_choose(candidate, &problem) != NULL;
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

static bool allocate_steps(gb_cuda_lowered *lowered) {
    size_t part_count = 0, operand_count = 0;
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        part_count += count_parts(&lowered->plan->steps[s]);
        operand_count += lowered->plan->steps[s].operand_count;
    }
    lowered->steps = gb_allocate(lowered->plan->step_count, sizeof *lowered->steps);
    lowered->calls = gb_allocate(part_count, sizeof *lowered->calls);
    lowered->parts = gb_allocate(part_count, sizeof *lowered->parts);
    lowered->operands = gb_allocate(operand_count, sizeof *lowered->operands);
    return lowered->steps && lowered->calls && lowered->parts && lowered->operands;
}

static void list_problems(const lowering *l, gb_cuda_lowered *lowered) {
    size_t part = 0, operand = 0;
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        gb_cuda_step *step = &lowered->steps[s];
        step->step = &lowered->plan->steps[s];
        step->calls = lowered->calls + part;
        step->problem =
            problem_of(l, step->step, step->calls, lowered->parts + part, lowered->operands + operand);
        part += step->problem.count;
        operand += step->step->operand_count;
        lowered->has_branches = lowered->has_branches || step->step->kind == GB_STEP_BRANCH;
    }
}

/* There is one place for prepared rows, so an epilogue is for the next GEMM that reads them. */
static void add_epilogues(const lowering *l, gb_cuda_lowered *lowered) {
    prepared_input next = {GB_NO_VALUE, GB_NO_VALUE};
    for (uint32_t s = lowered->plan->step_count; s-- > 0;) {
        gb_cuda_step *step = &lowered->steps[s];
        if (next.x != GB_NO_VALUE)
            set_epilogue(l, lowered->plan, &step->problem, step->calls, next, &step->epilogue);
        const prepared_input input = prepared_input_of(lowered->plan->program, step->step);
        next = input.x != GB_NO_VALUE ? input : next;
    }
}

/* What scratch->prepared has behind a launch. */
typedef struct prepared_rows {
    const gb_cuda_tensor *x; /* NULL: nothing that is known */
    uint32_t kind;
} prepared_rows;

/* The call of a launch's product, whose input is prepared. */
static gb_cuda_call *product_call(gb_cuda_step *step) {
    const bool is_experts = step->step->kind == GB_STEP_FUSED && step->step->fused->kind == GB_FUSED_EXPERTS;
    return &step->calls[is_experts ? GB_EXPERTS_GATE_UP : 0];
}

/* Removes the epilogue where the kernel has none; otherwise notes what it writes. */
static void settle_epilogue(gb_cuda_step *step, prepared_rows *held) {
    const bool has_one = step->kernel->has_epilogue && step->kernel->has_epilogue(&step->problem);
    for (uint32_t p = 0; p < step->problem.count; p++) {
        gb_cuda_call *call = &step->calls[p];
        if (call->epilogue && has_one)
            *held = (prepared_rows){call->epilogue->as,
                                    gb_cuda_prepared_kind(call, call->epilogue->as, call->epilogue->weight)};
        else
            call->epilogue = NULL;
    }
}

/* Whether a step's products round their rows to where prepared ones are. */
static bool rounds_rows(const gb_step *step) {
    const gb_node *product = product_of(step);
    return product && gb_cuda_is_int8_per_token(product);
}

/* Finds the products whose input the launches before have prepared. */
static void find_prepared(gb_cuda_lowered *lowered) {
    prepared_rows held = {NULL, 0};
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        gb_cuda_step *step = &lowered->steps[s];
        if (lowered->has_branches || !step->kernel) {
            held.x = NULL; /* what came before depends on the way */
            if (!step->kernel)
                continue;
        }
        if (step->kernel->reads_prepared) {
            gb_cuda_call *call = product_call(step);
            const gb_cuda_tensor *x = call->operands[0];
            const prepared_rows wanted = {x, gb_cuda_prepared_kind(call, x, call->operands[1])};
            call->has_prepared_rows = held.x == wanted.x && held.kind == wanted.kind;
            held = wanted;
        } else if (rounds_rows(step->step)) {
            held.x = NULL;
        }
        settle_epilogue(step, &held);
    }
}

static gumbel_status choose_kernels(gb_cuda_lowered *lowered, gumbel_error *error) {
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        gb_cuda_step *step = &lowered->steps[s];
        step->kernel = gb_cuda_choose(step->step, &step->problem);
        if (!step->kernel && step->step->kind != GB_STEP_BRANCH && step->step->kind != GB_STEP_JUMP)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "the cuda backend has no kernel for %s",
                           gb_step_name(step->step));
    }
    return GUMBEL_OK;
}

static gumbel_status lower(const gb_cuda_lowering_options *options, gb_cuda_lowered *lowered,
                           gumbel_error *error) {
    const gb_program *program = options->program;
    gb_cuda_class_range range;
    *lowered = (gb_cuda_lowered){.class = options->class};
    gb_cuda_class_find_range(options->class, options->backend, &range);
    lowered->tensors = gb_allocate(program->value_count, sizeof *lowered->tensors);
    if (!lowered->tensors)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan's values");
    for (gb_ref i = 0; i < program->value_count; i++)
        describe_tensor(options, i, &lowered->tensors[i]);
    lowering l = {options, lowered->tensors, &lowered->launches, !is_float32_program(program)};
    const gb_plan_options plan_options = {.step_tokens = range.most_tokens,
                                          .rows = range.most_rows,
                                          .fuse = options->backend->fuse,
                                          .supports = supports,
                                          .user = &l};
    bind_dims(program, lowered->tensors, plan_options.step_tokens, plan_options.rows);
    GB_TRY(gb_plan_create(program, &plan_options, &lowered->plan, error));
    if (!allocate_steps(lowered))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan's steps");
    list_problems(&l, lowered);
    add_epilogues(&l, lowered);
    GB_TRY(choose_kernels(lowered, error));
    find_prepared(lowered);
    return GUMBEL_OK;
}

gumbel_status gb_cuda_lower(const gb_cuda_lowering_options *options, gb_cuda_lowered *lowered,
                            gumbel_error *error) {
    uint8_t *const prepared = options->scratch->prepared;
    options->scratch->prepared = somewhere(0); /* kernels look at it to see whether rows are prepared */
    const gumbel_status status = lower(options, lowered, error);
    options->scratch->prepared = prepared;
    return status;
}

void gb_cuda_lowered_destroy(gb_cuda_lowered *lowered) {
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
    bind_dims(lowered->plan->program, lowered->tensors, tokens, rows);
    lowered->rows = rows;
    lowered->is_described = false;
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
}

gumbel_status gb_cuda_lowered_describe(gb_cuda_lowered *lowered, gumbel_error *error) {
    if (lowered->is_described)
        return GUMBEL_OK;
    gb_cuda_launch_list_clear(&lowered->launches);
    for (uint32_t s = 0; s < lowered->plan->step_count; s++)
        describe_step(lowered, &lowered->steps[s]);
    lowered->is_described = !lowered->launches.has_failed;
    return lowered->is_described ? GUMBEL_OK
                                 : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a step's launches");
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

/* Products take prepared rows from there; experts' of matrices that are not quantized have them elsewhere. */
static bool has_prepared_inputs(const gb_cuda_step *step, const gb_node *product,
                                const gb_cuda_tensor *weight) {
    return weight->dtype == GB_QUANTIZED ||
           (product->op == GB_OP_LINEAR && step->calls[0].scratch->wgmma_blocks > 0 &&
            gb_cuda_is_large_bf16(weight));
}

uint64_t gb_cuda_lowered_prepared(const gb_cuda_lowered *lowered) {
    uint64_t most = 0;
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        const gb_node *product = product_of(lowered->steps[s].step);
        if (!product)
            continue;
        const gb_cuda_tensor *x = &lowered->tensors[product->operands[0]],
                             *weight = &lowered->tensors[product->operands[1]];
        const uint64_t columns = x->dims[x->rank - 1], rows = gb_cuda_elements(x) / columns;
        if (!has_prepared_inputs(&lowered->steps[s], product, weight))
            continue;
        const uint64_t size = gb_cuda_is_int8_per_token(product)
                                  ? gb_cuda_int8_rows_bytes(rows, columns)
                                  : gb_cuda_prepared_bytes(rows, columns, weight->dtype);
        most = size > most ? size : most;
    }
    return most;
}
