/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/launches.h"

#include "base/memory.h"
#include "run/cuda/activations.h"
#include "run/cuda/device.h"
#include "run/cuda/expert_steps.h"

#include <stdio.h>

/* ---- Values -------------------------------------------------------------------------------------------- */

static gumbel_status place_tensor(gb_cuda_launches *l, const gb_cuda_resources *resources, gb_ref ref,
                                  gumbel_error *error) {
    const gb_program *program = l->plan->program;
    const gb_value *value = &program->values[ref];
    const gb_place *place = &l->plan->places[ref];
    gb_cuda_tensor *tensor = &l->tensors[ref];
    tensor->dtype = value->type.dtype;
    tensor->rank = value->type.shape.rank;
    for (int32_t i = 0; i < tensor->rank; i++)
        tensor->dims[i] = value->type.shape.dims[i] > 0 ? (size_t)value->type.shape.dims[i] : 0;
    if (place->in_arena)
        tensor->data = l->arena + place->offset;
    if (value->kind == GB_VALUE_STATE) {
        const gb_states *states = &resources->slots->states;
        const gb_state_place *state = &states->places[value->index];
        tensor->data = gb_state_memory(states, state, 0);
        tensor->slot_bytes = (size_t)gb_state_area(states, state)->stride;
        if (state->kind != GB_STATE_RECURRENT)
            tensor->dims[0] = (size_t)state->rows;
    }
    if (value->kind == GB_VALUE_CONSTANT) {
        const gb_constant *constant = &program->constants[value->index];
        tensor->data = resources->weights->memory + resources->weights->offsets[value->index];
        tensor->format = constant->format;
        tensor->is_packed = resources->weights->packings[value->index].block_rows > 0;
        tensor->takes_bytes = resources->weights->takes_bytes[value->index];
        if (constant->type.dtype == GB_QUANTIZED && !gb_constant_planes(constant, &tensor->planes))
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "constant %s has no format", constant->name);
    }
    return GUMBEL_OK;
}

/* Gives every value that lies where the one with that storage does its data. */
static void move_storage(gb_cuda_launches *l, gb_ref storage, void *data) {
    for (gb_ref v = 0; v < l->plan->program->value_count; v++)
        if (l->plan->places[v].storage == storage)
            l->tensors[v].data = data;
}

/* Logits, which the host may read, lie where it can without a copy being made for it. */
static gumbel_status place_logits(gb_cuda_launches *l, gumbel_error *error) {
    const gb_ref value = gb_program_output(l->plan->program, GB_ROLE_LOGITS);
    if (value == GB_NO_VALUE)
        return GUMBEL_OK;
    const gb_place *place = &l->plan->places[l->plan->places[value].storage];
    void *memory;
    if (!place->in_arena)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "logits that no op makes: the cuda backend does not have that");
    GB_TRY(gb_cuda_allocate_managed(place->size, "a step's logits", &memory, error));
    l->logits = memory;
    move_storage(l, l->plan->places[value].storage, memory);
    return GUMBEL_OK;
}

static gumbel_status place_tensors(gb_cuda_launches *l, const gb_cuda_resources *resources,
                                   const gb_cuda_inputs *inputs, gumbel_error *error) {
    const gb_program *program = l->plan->program;
    for (gb_ref i = 0; i < program->value_count; i++)
        GB_TRY(place_tensor(l, resources, i, error));
    for (uint32_t i = 0; i < program->input_count; i++)
        l->tensors[program->inputs[i].value].data = inputs->device + inputs->offsets[i];
    for (gb_ref i = 0; i < program->value_count; i++)
        l->tensors[i].data = l->tensors[l->plan->places[i].storage].data;
    return place_logits(l, error);
}

/* The batch's sizes take the place of N and B. */
static void bind_dims(gb_cuda_launches *l, uint32_t tokens, uint32_t rows) {
    const gb_program *program = l->plan->program;
    for (gb_ref i = 0; i < program->value_count; i++) {
        const gb_shape *shape = &program->values[i].type.shape;
        if (shape->rank > 0 && shape->dims[0] < 0)
            l->tensors[i].dims[0] = shape->dims[0] == GB_DIM_N ? tokens : rows;
    }
}

/* The logits of a step begin with those of the batch's row first_row. */
static void shift_logits(gb_cuda_launches *l, uint32_t first_row) {
    const gb_ref output = gb_program_output(l->plan->program, GB_ROLE_LOGITS);
    if (output != GB_NO_VALUE)
        move_storage(l, l->plan->places[output].storage, l->logits + first_row * l->tensors[output].dims[1]);
}

void gb_cuda_launches_bind(gb_cuda_launches *l, const gb_cuda_step_sizes *sizes) {
    bind_dims(l, sizes->tokens, sizes->rows);
    if (sizes->first_row != l->sizes.first_row)
        shift_logits(l, sizes->first_row);
    l->sizes = *sizes;
}

/* ---- Making them ----------------------------------------------------------------------------------------
 */

/* Whether all weights are float32: such a program has none but true float32 products. */
static bool is_float32_program(const gb_program *program) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_dtype dtype = program->constants[i].type.dtype;
        if (dtype == GB_BF16 || dtype == GB_F16 || dtype == GB_QUANTIZED)
            return false;
    }
    return true;
}

static gumbel_status ready_steps(gb_cuda_launches *l, gumbel_error *error) {
    const bool takes_terms = !is_float32_program(l->plan->program);
    for (uint32_t s = 0; s < l->plan->step_count; s++) {
        const gb_step *step = &l->plan->steps[s];
        gb_cuda_ready_step *made = &l->steps[s];
        made->planned = step;
        made->kernel = gb_cuda_find_kernel(step);
        made->call.node = step->node;
        made->call.scratch = &l->scratch;
        made->call.takes_terms = takes_terms;
        made->call.stream = l->stream;
        for (uint32_t i = 0; i < step->operand_count; i++)
            made->call.operands[i] = step->operands[i] == GB_NO_VALUE ? NULL : &l->tensors[step->operands[i]];
        for (uint32_t i = 0; i < step->result_count; i++)
            made->call.results[i] = &l->tensors[step->results[i]];
        l->has_branches = l->has_branches || step->kind == GB_STEP_BRANCH;
        if (!made->kernel && step->kind != GB_STEP_BRANCH && step->kind != GB_STEP_JUMP)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "the cuda backend has no kernel for %s",
                           gb_step_name(step));
    }
    return GUMBEL_OK;
}

static bool is_product(const gb_cuda_ready_step *step) {
    return step->planned->kind == GB_STEP_NODE &&
           (step->planned->node->op == GB_OP_LINEAR || step->planned->node->op == GB_OP_EXPERT_LINEAR);
}

static bool is_quantized_product(const gb_cuda_ready_step *step) {
    return is_product(step) && step->call.operands[1]->dtype == GB_QUANTIZED;
}

/* Whether a kernel of the step takes scratch->prepared; experts' of other matrices have them elsewhere. */
static bool has_prepared_inputs(const gb_cuda_ready_step *step) {
    return is_quantized_product(step) ||
           (is_product(step) && step->planned->node->op == GB_OP_LINEAR &&
            step->call.scratch->prefill_blocks > 0 && gb_cuda_is_large_bf16(step->call.operands[1]));
}

/* Finds the steps whose result is what the next quantized product takes. */
static void mark_preparing_steps(gb_cuda_launches *l) {
    gb_ref taken = GB_NO_VALUE;
    const gb_cuda_tensor *weight = NULL;
    for (uint32_t s = l->plan->step_count; s-- > 0;) {
        gb_cuda_call *call = &l->steps[s].call;
        const gb_step *step = l->steps[s].planned;
        call->prepares = taken != GB_NO_VALUE && step->result_count > 0 &&
                         step->results[0] == l->plan->places[taken].storage;
        call->prepares_as = call->prepares ? &l->tensors[taken] : NULL;
        call->prepares_for = call->prepares ? weight : NULL;
        if (is_quantized_product(&l->steps[s])) {
            taken = step->operands[0];
            weight = call->operands[1];
        }
    }
}

/* Memory that the largest batch takes beside the plan's values. */
static gumbel_status reserve_scratch(gb_cuda_launches *l, const gb_backend_options *options,
                                     gumbel_error *error) {
    uint64_t prepared = 0;
    void *memory;
    bind_dims(l, options->step_tokens, options->slots);
    for (uint32_t s = 0; s < l->plan->step_count; s++) {
        const gb_cuda_call *call = &l->steps[s].call;
        uint64_t size = gb_cuda_scratch_bytes(call, l->steps[s].planned);
        l->scratch.size = size > l->scratch.size ? size : l->scratch.size;
        if (has_prepared_inputs(&l->steps[s])) {
            const gb_cuda_tensor *x = call->operands[0];
            uint64_t columns = x->dims[x->rank - 1], rows = gb_cuda_elements(x) / columns;
            size = gb_cuda_prepared_bytes(rows, columns, call->operands[1]->dtype);
            prepared = size > prepared ? size : prepared;
        }
    }
    GB_TRY(gb_cuda_allocate(l->scratch.size, "what kernels put down", &memory, error));
    l->scratch.bytes = memory;
    GB_TRY(gb_cuda_allocate(prepared, "the inputs of products", &memory, error));
    l->scratch.prepared = memory;
    GB_TRY(gb_cuda_allocate(GB_CUDA_ARRIVALS * sizeof(uint32_t), "counting blocks", &memory, error));
    l->scratch.arrivals = memory;
    return gb_cuda_check(cudaMemsetAsync(memory, 0, GB_CUDA_ARRIVALS * sizeof(uint32_t), l->stream),
                         "clearing counters", error);
}

gumbel_status gb_cuda_launches_create(const gb_cuda_resources *resources, const gb_cuda_inputs *inputs,
                                      gb_cuda_launches *launches, gumbel_error *error) {
    gb_cuda_launches *l = launches;
    void *memory;
    *l = (gb_cuda_launches){.plan = resources->plan,
                            .stream = resources->stream,
                            .profile = resources->backend->profile,
                            .profile_user = resources->backend->profile_user};
    l->scratch.prefill_blocks = gb_cuda_prefill_blocks();
    l->tensors = gb_allocate(l->plan->program->value_count, sizeof *l->tensors);
    l->steps = gb_allocate(l->plan->step_count, sizeof *l->steps);
    if (!l->tensors || !l->steps)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan's steps");
    GB_TRY(gb_cuda_allocate(l->plan->arena_bytes, "the values of a step", &memory, error));
    l->arena = memory;
    GB_TRY(gb_cuda_allocate_pinned(sizeof *l->condition, "a branch's condition", &memory, error));
    l->condition = memory;
    GB_TRY(place_tensors(l, resources, inputs, error));
    GB_TRY(ready_steps(l, error));
    GB_TRY(gb_cuda_groups_create(l->plan, &l->groups, error));
    mark_preparing_steps(l);
    GB_TRY(reserve_scratch(l, resources->backend, error));
    if (!l->profile)
        return GUMBEL_OK;
    GB_TRY(gb_cuda_check(cudaEventCreate(&l->begin), "making an event", error));
    return gb_cuda_check(cudaEventCreate(&l->end), "making an event", error);
}

void gb_cuda_launches_destroy(gb_cuda_launches *l) {
    if (l->begin)
        cudaEventDestroy(l->begin);
    if (l->end)
        cudaEventDestroy(l->end);
    gb_cuda_free(l->logits);
    gb_cuda_free(l->scratch.bytes);
    gb_cuda_free(l->scratch.prepared);
    gb_cuda_free(l->scratch.arrivals);
    gb_cuda_free(l->arena);
    gb_cuda_free_pinned(l->condition);
    gb_free(l->steps);
    gb_free(l->groups);
    gb_free(l->tensors);
    *l = (gb_cuda_launches){0};
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

/* Lists the calls of the steps from s on. */
static void ready_calls(gb_cuda_launches *l, uint32_t s, uint32_t count, const gb_cuda_call **calls) {
    for (uint32_t i = 0; i < count; i++) {
        gb_cuda_ready_step *step = &l->steps[s + i];
        step->call.runs = l->sizes.runs;
        step->call.versions = l->sizes.versions;
        step->call.is_prefill = l->sizes.is_prefill && !step->planned->needs_rows;
        calls[i] = &step->call;
    }
}

/* Launches a mixture of experts that begins with step s as one; false: it cannot be, or none begins there. */
static bool launch_experts(gb_cuda_launches *l, uint32_t s) {
    const gb_cuda_call *calls[GB_EXPERT_STEPS];
    if (!l->groups[s].is_experts)
        return false;
    ready_calls(l, s, GB_EXPERT_STEPS, calls);
    return gb_cuda_expert_mlp(calls);
}

/* Norms of whole rows are quicker as a chain, also alone. */
static bool is_row_norm(const gb_cuda_call *call) {
    return call->node && call->node->op == GB_OP_RMS_NORM && call->operands[0]->rank == 2;
}

/* Lists a group's calls where all of them are products of x; returns how many, or 0. */
static uint32_t list_products_of(const gb_cuda_call *const *calls, uint32_t count, const void *x,
                                 const gb_cuda_call **products) {
    if (count > GB_CUDA_MOST_JOINED)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!calls[i]->node || calls[i]->node->op != GB_OP_LINEAR || calls[i]->operands[0]->data != x)
            return 0;
        products[i] = calls[i];
    }
    return count;
}

/* Launches a chain with those products of its last result in the group behind it that can be made with it. */
static bool launch_chain_with_products(gb_cuda_launches *l, const gb_cuda_call *const *chain,
                                       const gb_cuda_group *group, uint32_t behind) {
    const gb_cuda_call *calls[GB_CUDA_MOST_TOGETHER], *products[GB_CUDA_MOST_JOINED];
    const void *x = chain[group->count - 1]->results[0]->data;
    uint32_t count = 0;
    if (behind >= l->plan->step_count || !l->steps[behind].planned->overlaps)
        return false;
    ready_calls(l, behind, l->groups[behind].count, calls);
    for (uint32_t i = 0; i < l->groups[behind].count && count < GB_CUDA_MOST_JOINED; i++)
        if (gb_cuda_takes_dense_few(calls[i]) && calls[i]->operands[0]->data == x)
            products[count++] = calls[i];
    if (count == 0)
        count = list_products_of(calls, l->groups[behind].count, x, products);
    if (!gb_cuda_row_chain_with(chain, group->is_kept, group->count, products, count))
        return false;
    for (uint32_t i = 0; i < l->groups[behind].count; i++)
        for (uint32_t made = 0; made < count; made++)
            l->steps[behind + i].call.is_made |= calls[i] == products[made];
    return true;
}

/* Launches the calls of a group that is no mixture of experts. */
static void launch_calls(gb_cuda_launches *l, uint32_t s, const gb_cuda_group *group,
                         const gb_cuda_call *const *calls) {
    if (l->steps[s].planned->kind == GB_STEP_SAMPLE && group->count > 1)
        gb_cuda_sample_with_logprob(calls[0], calls[1], calls[2]);
    else if (l->steps[s].planned->kind == GB_STEP_NODE && calls[0]->node->op == GB_OP_LINEAR)
        gb_cuda_linear_group(calls, group->count);
    else if (group->count == 1 && !is_row_norm(calls[0]))
        l->steps[s].kernel(calls[0]);
    else if (calls[0]->node->op == GB_OP_CAUSAL_CONV)
        gb_cuda_delta_layer_calls(calls, group->is_kept, group->count);
    else if (!launch_chain_with_products(l, calls, group, s + group->count))
        gb_cuda_row_chain(calls, group->is_kept, group->count);
}

/* Launches the group of steps that begins with step s, or more; returns how many. */
static uint32_t launch_group(gb_cuda_launches *l, uint32_t s) {
    const gb_cuda_call *calls[GB_CUDA_MOST_TOGETHER];
    uint32_t count = l->groups[s].count;
    if (launch_experts(l, s)) {
        count = GB_EXPERT_STEPS;
    } else {
        ready_calls(l, s, count, calls);
        launch_calls(l, s, &l->groups[s], calls);
    }
    for (uint32_t i = 0; i < count; i++)
        l->steps[s + i].call.is_made = false;
    return count;
}

/* next: the step behind those that were launched. */
static gumbel_status launch(gb_cuda_launches *l, uint32_t s, uint32_t *next, gumbel_error *error) {
    char doing[96];
    *next = s + launch_group(l, s);
    cudaError_t result = cudaGetLastError();
    if (result == cudaSuccess)
        return GUMBEL_OK;
    snprintf(doing, sizeof doing, "launching %s", l->groups[s].name);
    return gb_cuda_check(result, doing, error);
}

/* Whether all of the group's results were made in passing. */
static bool is_made_already(const gb_cuda_launches *l, uint32_t s) {
    for (uint32_t i = 0; i < l->groups[s].count; i++)
        if (l->groups[s].is_experts || !l->steps[s + i].call.is_made)
            return false;
    return true;
}

static gumbel_status launch_timed(gb_cuda_launches *l, uint32_t s, uint32_t *next, gumbel_error *error) {
    const gb_constant *weight = gb_step_weight(l->plan->program, l->steps[s].planned);
    float milliseconds = 0;
    if (is_made_already(l, s))
        return launch(l, s, next, error); /* its time is that of the launch that made it */
    GB_TRY(gb_cuda_check(cudaEventRecord(l->begin, l->stream), "timing a step", error));
    GB_TRY(launch(l, s, next, error));
    GB_TRY(gb_cuda_check(cudaEventRecord(l->end, l->stream), "timing a step", error));
    GB_TRY(gb_cuda_check(cudaEventSynchronize(l->end), "waiting for a step", error));
    GB_TRY(gb_cuda_check(cudaEventElapsedTime(&milliseconds, l->begin, l->end), "timing a step", error));
    const bool is_whole = *next == s + l->groups[s].count;
    l->profile(l->profile_user, is_whole ? l->groups[s].name : "experts", weight ? weight->name : NULL,
               1e-3 * (double)milliseconds);
    return GUMBEL_OK;
}

/* Where to go on after a branch: the host waits to read its condition. */
static gumbel_status follow_branch(gb_cuda_launches *l, const gb_cuda_ready_step *step, uint32_t *next,
                                   gumbel_error *error) {
    if (step->planned->kind == GB_STEP_BRANCH) {
        cudaError_t result = cudaMemcpyAsync(l->condition, step->call.operands[0]->data, sizeof *l->condition,
                                             cudaMemcpyDeviceToHost, l->stream);
        if (result == cudaSuccess)
            result = cudaStreamSynchronize(l->stream);
        GB_TRY(gb_cuda_check(result, "reading a condition", error));
        if (*l->condition)
            return GUMBEL_OK;
    }
    *next = step->planned->target;
    return GUMBEL_OK;
}

gumbel_status gb_cuda_launches_enqueue(gb_cuda_launches *l, gumbel_error *error) {
    l->scratch.prepared_from = NULL;
    for (uint32_t s = 0; s < l->plan->step_count; s++)
        l->steps[s].call.is_made = false; /* a step that failed may have left it */
    for (uint32_t s = 0, next; s < l->plan->step_count; s = next) {
        const gb_cuda_ready_step *step = &l->steps[s];
        next = s + l->groups[s].count;
        if (step->planned->needs_rows && l->sizes.rows == 0)
            continue;
        if (!step->kernel)
            GB_TRY(follow_branch(l, step, &next, error));
        else if (l->profile)
            GB_TRY(launch_timed(l, s, &next, error));
        else
            GB_TRY(launch(l, s, &next, error));
    }
    return GUMBEL_OK;
}
