/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/executor.h"

#include "base/memory.h"
#include "run/cuda/activations.h"
#include "run/cuda/device.h"
#include "run/cuda/expert_steps.h"
#include "run/cuda/groups.h"
#include "run/cuda/inputs.h"
#include "run/cuda/kernels.h"
#include "run/cuda/passes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MOST_GRAPHS = 64 };

typedef struct ready_step {
    const gb_step *planned;
    gb_cuda_kernel kernel; /* NULL: a branch or jump */
    gb_cuda_call call;
} ready_step;

/* The launches of a decoding batch of some size. */
typedef struct decode_graph {
    uint32_t tokens, rows;
    cudaGraphExec_t instance; /* NULL: it came once */
} decode_graph;

struct gb_cuda_executor {
    const gb_plan *plan;
    cudaStream_t stream;
    gb_cuda_tensor *tensors; /* by value */
    ready_step *steps;       /* by step of the plan */
    gb_cuda_group *groups;   /* likewise */
    gb_cuda_inputs inputs;
    gb_cuda_passes passes;
    gb_cuda_scratch scratch;
    gb_cuda_runs runs;
    uint8_t *arena;
    void *outputs[GB_ROLE_LIMIT];   /* of the roles that the host reads: managed memory */
    gb_cuda_handed_out *handed_out; /* the host's, pinned */
    bool *condition;                /* of a branch: likewise */
    uint32_t number;                /* of the last pass */
    bool has_branches;
    uint32_t row_count; /* of this pass */
    bool is_prefill;    /* this pass */
    decode_graph graphs[MOST_GRAPHS];
    uint32_t graph_count;
    gumbel_profile_callback profile;
    void *profile_user;
    cudaEvent_t begin, end; /* of a timed step */
};

static const gb_role host_roles[] = {GB_ROLE_LOGITS, GB_ROLE_LOGPROB, GB_ROLE_TOP_IDS, GB_ROLE_TOP_LOGPROBS};

/* ---- Values -------------------------------------------------------------------------------------------- */

static gumbel_status place_tensor(gb_cuda_executor *e, const gb_cuda_executor_options *options, gb_ref ref,
                                  gumbel_error *error) {
    const gb_program *program = e->plan->program;
    const gb_value *value = &program->values[ref];
    const gb_place *place = &e->plan->places[ref];
    gb_cuda_tensor *tensor = &e->tensors[ref];
    tensor->dtype = value->type.dtype;
    tensor->rank = value->type.shape.rank;
    for (int32_t i = 0; i < tensor->rank; i++)
        tensor->dims[i] = value->type.shape.dims[i] > 0 ? (size_t)value->type.shape.dims[i] : 0;
    if (place->in_arena)
        tensor->data = e->arena + place->offset;
    if (value->kind == GB_VALUE_STATE) {
        const gb_cuda_state *state = &options->slots->states[value->index];
        tensor->data = options->slots->memory + state->offset;
        tensor->slot_bytes = (size_t)options->slots->slot_bytes;
        if (state->kind != GB_STATE_RECURRENT)
            tensor->dims[0] = (size_t)state->rows;
    }
    if (value->kind == GB_VALUE_CONSTANT) {
        const gb_constant *constant = &program->constants[value->index];
        tensor->data = options->weights->memory + options->weights->offsets[value->index];
        tensor->format = constant->format;
        tensor->is_packed = options->weights->packings[value->index].block_rows > 0;
        tensor->takes_bytes = options->weights->takes_bytes[value->index];
        if (constant->type.dtype == GB_QUANTIZED && !gb_constant_planes(constant, &tensor->planes))
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "constant %s has no format", constant->name);
    }
    return GUMBEL_OK;
}

/* What the host may read lies where it can without a copy being made for it. */
static gumbel_status place_outputs(gb_cuda_executor *e, gumbel_error *error) {
    for (size_t i = 0; i < sizeof host_roles / sizeof *host_roles; i++) {
        gb_ref value = gb_program_output(e->plan->program, host_roles[i]);
        if (value == GB_NO_VALUE)
            continue;
        gb_ref storage = e->plan->places[value].storage;
        const gb_place *place = &e->plan->places[storage];
        void **output = &e->outputs[host_roles[i]];
        if (!place->in_arena)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                           "an output that no op makes: the cuda backend does not have that");
        GB_TRY(gb_cuda_allocate_managed(place->size, "a step's outputs", output, error));
        e->tensors[storage].data = *output;
    }
    return GUMBEL_OK;
}

static gumbel_status place_tensors(gb_cuda_executor *e, const gb_cuda_executor_options *options,
                                   gumbel_error *error) {
    const gb_program *program = e->plan->program;
    for (gb_ref i = 0; i < program->value_count; i++)
        GB_TRY(place_tensor(e, options, i, error));
    for (uint32_t i = 0; i < program->input_count; i++)
        e->tensors[program->inputs[i].value].data = e->inputs.device + e->inputs.offsets[i];
    GB_TRY(place_outputs(e, error));
    for (gb_ref i = 0; i < program->value_count; i++)
        e->tensors[i].data = e->tensors[e->plan->places[i].storage].data;
    return GUMBEL_OK;
}

/* The batch's sizes take the place of N and B. */
static void bind_sizes(gb_cuda_executor *e, uint32_t tokens, uint32_t rows) {
    const gb_program *program = e->plan->program;
    for (gb_ref i = 0; i < program->value_count; i++) {
        const gb_shape *shape = &program->values[i].type.shape;
        if (shape->rank > 0 && shape->dims[0] < 0)
            e->tensors[i].dims[0] = shape->dims[0] == GB_DIM_N ? tokens : rows;
    }
    e->row_count = rows;
}

/* ---- Making one ---------------------------------------------------------------------------------------- */

static gumbel_status ready_steps(gb_cuda_executor *e, gumbel_error *error) {
    for (uint32_t s = 0; s < e->plan->step_count; s++) {
        const gb_step *step = &e->plan->steps[s];
        ready_step *made = &e->steps[s];
        made->planned = step;
        made->kernel = gb_cuda_find_kernel(step);
        made->call.node = step->node;
        made->call.scratch = &e->scratch;
        made->call.stream = e->stream;
        for (uint32_t i = 0; i < step->operand_count; i++)
            made->call.operands[i] = step->operands[i] == GB_NO_VALUE ? NULL : &e->tensors[step->operands[i]];
        for (uint32_t i = 0; i < step->result_count; i++)
            made->call.results[i] = &e->tensors[step->results[i]];
        e->has_branches = e->has_branches || step->kind == GB_STEP_BRANCH;
        if (!made->kernel && step->kind != GB_STEP_BRANCH && step->kind != GB_STEP_JUMP)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "the cuda backend has no kernel for %s",
                           gb_step_name(step));
    }
    return GUMBEL_OK;
}

static bool is_quantized_product(const ready_step *step) {
    return step->planned->kind == GB_STEP_NODE &&
           (step->planned->node->op == GB_OP_LINEAR || step->planned->node->op == GB_OP_EXPERT_LINEAR) &&
           step->call.operands[1]->dtype == GB_QUANTIZED;
}

/* Finds the steps whose result is what the next quantized product takes. */
static void mark_preparing_steps(gb_cuda_executor *e) {
    gb_ref taken = GB_NO_VALUE;
    const gb_cuda_tensor *weight = NULL;
    for (uint32_t s = e->plan->step_count; s-- > 0;) {
        gb_cuda_call *call = &e->steps[s].call;
        const gb_step *step = e->steps[s].planned;
        call->prepares = taken != GB_NO_VALUE && step->result_count > 0 &&
                         step->results[0] == e->plan->places[taken].storage;
        call->prepares_as = call->prepares ? &e->tensors[taken] : NULL;
        call->prepares_for = call->prepares ? weight : NULL;
        if (is_quantized_product(&e->steps[s])) {
            taken = step->operands[0];
            weight = call->operands[1];
        }
    }
}

/* Memory that the largest batch takes beside the plan's values. */
static gumbel_status reserve_scratch(gb_cuda_executor *e, const gb_backend_options *options,
                                     gumbel_error *error) {
    uint64_t prepared = 0;
    void *memory;
    bind_sizes(e, options->step_tokens, options->slots);
    for (uint32_t s = 0; s < e->plan->step_count; s++) {
        const gb_cuda_call *call = &e->steps[s].call;
        uint64_t size = gb_cuda_scratch_bytes(call, e->steps[s].planned);
        e->scratch.size = size > e->scratch.size ? size : e->scratch.size;
        if (is_quantized_product(&e->steps[s])) {
            const gb_cuda_tensor *x = call->operands[0];
            uint64_t columns = x->dims[x->rank - 1], rows = gb_cuda_elements(x) / columns;
            size = gb_cuda_prepared_bytes(rows, columns);
            prepared = size > prepared ? size : prepared;
        }
    }
    GB_TRY(gb_cuda_allocate(e->scratch.size, "what kernels put down", &memory, error));
    e->scratch.bytes = memory;
    GB_TRY(gb_cuda_allocate(prepared, "the inputs of products", &memory, error));
    e->scratch.prepared = memory;
    GB_TRY(gb_cuda_allocate(GB_CUDA_ARRIVALS * sizeof(uint32_t), "counting blocks", &memory, error));
    e->scratch.arrivals = memory;
    return gb_cuda_check(cudaMemsetAsync(memory, 0, GB_CUDA_ARRIVALS * sizeof(uint32_t), e->stream),
                         "clearing counters", error);
}

static gumbel_status prepare(gb_cuda_executor *e, const gb_cuda_executor_options *options,
                             gumbel_error *error) {
    void *memory;
    e->tensors = gb_allocate(e->plan->program->value_count, sizeof *e->tensors);
    e->steps = gb_allocate(e->plan->step_count, sizeof *e->steps);
    if (!e->tensors || !e->steps)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan's steps");
    GB_TRY(gb_cuda_allocate(e->plan->arena_bytes, "the values of a step", &memory, error));
    e->arena = memory;
    uint64_t pinned = sizeof *e->handed_out + options->backend->slots * sizeof(int32_t);
    GB_TRY(gb_cuda_allocate_pinned(pinned, "a step's tokens", &memory, error));
    e->handed_out = memory;
    e->handed_out->number = 0;
    GB_TRY(gb_cuda_allocate_pinned(sizeof *e->condition, "a branch's condition", &memory, error));
    e->condition = memory;
    GB_TRY(gb_cuda_inputs_create(e->plan->program, options->backend, &e->inputs, error));
    GB_TRY(gb_cuda_passes_create(e->plan->program, options->backend, &e->passes, error));
    GB_TRY(place_tensors(e, options, error));
    GB_TRY(ready_steps(e, error));
    GB_TRY(gb_cuda_groups_create(e->plan, &e->groups, error));
    mark_preparing_steps(e);
    GB_TRY(reserve_scratch(e, options->backend, error));
    if (e->profile) {
        GB_TRY(gb_cuda_check(cudaEventCreate(&e->begin), "making an event", error));
        GB_TRY(gb_cuda_check(cudaEventCreate(&e->end), "making an event", error));
    }
    return GUMBEL_OK;
}

gumbel_status gb_cuda_executor_create(const gb_cuda_executor_options *options, gb_cuda_executor **executor,
                                      gumbel_error *error) {
    *executor = NULL;
    gb_cuda_executor *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for an executor");
    made->plan = options->plan;
    made->stream = options->stream;
    made->scratch.prefill_blocks = gb_cuda_prefill_blocks();
    made->profile = options->backend->profile;
    made->profile_user = options->backend->profile_user;
    gumbel_status status = prepare(made, options, error);
    if (status != GUMBEL_OK)
        gb_cuda_executor_destroy(made);
    else
        *executor = made;
    return status;
}

void gb_cuda_executor_destroy(gb_cuda_executor *e) {
    if (!e)
        return;
    for (uint32_t i = 0; i < e->graph_count; i++)
        if (e->graphs[i].instance)
            cudaGraphExecDestroy(e->graphs[i].instance);
    for (size_t i = 0; i < GB_ROLE_LIMIT; i++)
        gb_cuda_free(e->outputs[i]);
    if (e->begin)
        cudaEventDestroy(e->begin);
    if (e->end)
        cudaEventDestroy(e->end);
    gb_cuda_inputs_destroy(&e->inputs);
    gb_cuda_passes_destroy(&e->passes);
    gb_cuda_free(e->scratch.bytes);
    gb_cuda_free(e->scratch.prepared);
    gb_cuda_free(e->scratch.arrivals);
    gb_cuda_free(e->arena);
    gb_cuda_free_pinned(e->handed_out);
    gb_cuda_free_pinned(e->condition);
    gb_free(e->steps);
    gb_free(e->groups);
    gb_free(e->tensors);
    gb_free(e);
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

/* Lists the calls of the steps from s on. */
static void ready_calls(gb_cuda_executor *e, uint32_t s, uint32_t count, const gb_cuda_call **calls) {
    for (uint32_t i = 0; i < count; i++) {
        ready_step *step = &e->steps[s + i];
        step->call.runs = e->runs;
        step->call.is_prefill = e->is_prefill && !step->planned->needs_rows;
        calls[i] = &step->call;
    }
}

/* Launches a mixture of experts that begins with step s as one; false: it cannot be, or none begins there. */
static bool launch_experts(gb_cuda_executor *e, uint32_t s) {
    const gb_cuda_call *calls[GB_EXPERT_STEPS];
    if (!e->groups[s].is_experts)
        return false;
    ready_calls(e, s, GB_EXPERT_STEPS, calls);
    return gb_cuda_expert_mlp(calls);
}

/* Norms of whole rows are quicker as a chain, also alone. */
static bool is_row_norm(const gb_cuda_call *call) {
    return call->node && call->node->op == GB_OP_RMS_NORM && call->operands[0]->rank == 2;
}

/* Launches the group of steps that begins with step s, or more; returns how many. */
static uint32_t launch_group(gb_cuda_executor *e, uint32_t s) {
    const gb_cuda_group *group = &e->groups[s];
    const gb_cuda_call *calls[GB_CUDA_MOST_TOGETHER];
    if (launch_experts(e, s))
        return GB_EXPERT_STEPS;
    ready_calls(e, s, group->count, calls);
    if (group->count == 1 && !is_row_norm(calls[0]))
        e->steps[s].kernel(calls[0]);
    else if (e->steps[s].planned->kind == GB_STEP_SAMPLE)
        gb_cuda_sample_with_logprob(calls[0], calls[1], calls[2]);
    else if (calls[0]->node->op == GB_OP_LINEAR)
        gb_cuda_linear_group(calls, group->count);
    else if (calls[0]->node->op == GB_OP_CAUSAL_CONV)
        gb_cuda_delta_layer_calls(calls, group->is_kept, group->count);
    else
        gb_cuda_row_chain(calls, group->is_kept, group->count);
    return group->count;
}

/* next: the step behind those that were launched. */
static gumbel_status launch(gb_cuda_executor *e, uint32_t s, uint32_t *next, gumbel_error *error) {
    char doing[96];
    *next = s + launch_group(e, s);
    cudaError_t result = cudaGetLastError();
    if (result == cudaSuccess)
        return GUMBEL_OK;
    snprintf(doing, sizeof doing, "launching %s", e->groups[s].name);
    return gb_cuda_check(result, doing, error);
}

static gumbel_status launch_timed(gb_cuda_executor *e, uint32_t s, uint32_t *next, gumbel_error *error) {
    const gb_constant *weight = gb_step_weight(e->plan->program, e->steps[s].planned);
    float milliseconds = 0;
    GB_TRY(gb_cuda_check(cudaEventRecord(e->begin, e->stream), "timing a step", error));
    GB_TRY(launch(e, s, next, error));
    GB_TRY(gb_cuda_check(cudaEventRecord(e->end, e->stream), "timing a step", error));
    GB_TRY(gb_cuda_check(cudaEventSynchronize(e->end), "waiting for a step", error));
    GB_TRY(gb_cuda_check(cudaEventElapsedTime(&milliseconds, e->begin, e->end), "timing a step", error));
    const bool is_whole = *next == s + e->groups[s].count;
    e->profile(e->profile_user, is_whole ? e->groups[s].name : "experts", weight ? weight->name : NULL,
               1e-3 * (double)milliseconds);
    return GUMBEL_OK;
}

/* Where to go on after a branch: the host waits to read its condition. */
static gumbel_status follow_branch(gb_cuda_executor *e, const ready_step *step, uint32_t *next,
                                   gumbel_error *error) {
    if (step->planned->kind == GB_STEP_BRANCH) {
        cudaError_t result = cudaMemcpyAsync(e->condition, step->call.operands[0]->data, sizeof *e->condition,
                                             cudaMemcpyDeviceToHost, e->stream);
        if (result == cudaSuccess)
            result = cudaStreamSynchronize(e->stream);
        GB_TRY(gb_cuda_check(result, "reading a condition", error));
        if (*e->condition)
            return GUMBEL_OK;
    }
    *next = step->planned->target;
    return GUMBEL_OK;
}

static gumbel_status launch_steps(gb_cuda_executor *e, gumbel_error *error) {
    e->scratch.prepared_from = NULL;
    for (uint32_t s = 0, next; s < e->plan->step_count; s = next) {
        const ready_step *step = &e->steps[s];
        next = s + e->groups[s].count;
        if (step->planned->needs_rows && e->row_count == 0)
            continue;
        if (!step->kernel)
            GB_TRY(follow_branch(e, step, &next, error));
        else if (e->profile)
            GB_TRY(launch_timed(e, s, &next, error));
        else
            GB_TRY(launch(e, s, &next, error));
    }
    return GUMBEL_OK;
}

/* All of a step in the stream's order: inputs, kernels, tokens. */
static gumbel_status enqueue(gb_cuda_executor *e, gumbel_error *error) {
    gb_cuda_inputs_send(&e->inputs, e->stream);
    GB_TRY(launch_steps(e, error));
    const gb_ref next = gb_program_output(e->plan->program, GB_ROLE_NEXT);
    const bool has_tokens = next != GB_NO_VALUE && e->row_count > 0;
    gb_cuda_hand_out(has_tokens ? e->tensors[next].data : NULL, has_tokens ? e->row_count : 0,
                     (const uint32_t *)(const void *)(e->inputs.device + e->inputs.number_offset),
                     e->handed_out, e->stream);
    return gb_cuda_check(cudaGetLastError(), "handing out a step's tokens", error);
}

/* Waits until the device has handed out the pass: while it decodes, by looking at its memory, which is
 * quicker than the driver. */
static gumbel_status wait_for_pass(gb_cuda_executor *e, gumbel_error *error) {
    enum { LOOKS = 1 << 12 }; /* before the driver is asked whether something went wrong */
    const _Atomic uint32_t *number = (const _Atomic uint32_t *)&e->handed_out->number;
    for (uint32_t looks = 1; !e->is_prefill && !e->profile; looks++) {
        if (atomic_load_explicit(number, memory_order_acquire) == e->number)
            return GUMBEL_OK;
        if (looks % LOOKS == 0 && cudaStreamQuery(e->stream) != cudaErrorNotReady)
            break;
    }
    return gb_cuda_check(cudaStreamSynchronize(e->stream), "executing a step", error);
}

/* ---- Graphs -------------------------------------------------------------------------------------------- */

/* The graph of a batch's size; one that has just been entered has no instance. NULL where the batch is not
 * decoding, or there are too many sizes. */
static decode_graph *find_graph(gb_cuda_executor *e, const gb_batch *batch, bool *is_new) {
    *is_new = false;
    if (e->has_branches || e->profile || e->is_prefill || e->runs.count != batch->token_count)
        return NULL;
    for (uint32_t i = 0; i < e->graph_count; i++)
        if (e->graphs[i].tokens == batch->token_count && e->graphs[i].rows == batch->row_count)
            return &e->graphs[i];
    if (e->graph_count == MOST_GRAPHS)
        return NULL;
    *is_new = true;
    decode_graph *made = &e->graphs[e->graph_count++];
    *made = (decode_graph){batch->token_count, batch->row_count, NULL};
    return made;
}

static gumbel_status capture(gb_cuda_executor *e, decode_graph *graph, gumbel_error *error) {
    static const char doing[] = "capturing a step";
    cudaGraph_t captured = NULL;
    GB_TRY(gb_cuda_check(cudaStreamBeginCapture(e->stream, cudaStreamCaptureModeThreadLocal), doing, error));
    gumbel_status status = enqueue(e, error);
    cudaError_t result = cudaStreamEndCapture(e->stream, &captured);
    if (status == GUMBEL_OK)
        status = gb_cuda_check(result, doing, error);
    if (status == GUMBEL_OK)
        status = gb_cuda_check(cudaGraphInstantiate(&graph->instance, captured, 0), doing, error);
    if (captured)
        cudaGraphDestroy(captured);
    return status;
}

/* The outputs of a pass begin with those of the batch's row first_row. */
static void shift_outputs(gb_cuda_executor *e, uint32_t first_row) {
    const gb_program *program = e->plan->program;
    for (size_t i = 0; i < sizeof host_roles / sizeof *host_roles; i++) {
        const gb_ref output = gb_program_output(program, host_roles[i]);
        if (output == GB_NO_VALUE)
            continue;
        const gb_ref storage = e->plan->places[output].storage;
        const uint64_t row_bytes = gb_cuda_elements(&e->tensors[output]) / e->tensors[output].dims[0] *
                                   gb_dtype_size(e->tensors[output].dtype);
        for (gb_ref v = 0; v < program->value_count; v++)
            if (e->plan->places[v].storage == storage)
                e->tensors[v].data = (uint8_t *)e->outputs[host_roles[i]] + first_row * row_bytes;
    }
}

static gumbel_status launch_pass(gb_cuda_executor *e, const gb_batch *pass, gumbel_error *error) {
    bool is_new;
    decode_graph *graph = find_graph(e, pass, &is_new);
    if (!graph || is_new) /* the first time loads the kernels, which a capture must not */
        return enqueue(e, error);
    if (!graph->instance)
        GB_TRY(capture(e, graph, error));
    return gb_cuda_check(cudaGraphLaunch(graph->instance, e->stream), "launching a step", error);
}

/* Executes the batch's generated tokens, or the others, and waits for them. */
static gumbel_status run_pass(gb_cuda_executor *e, const gb_batch *batch, bool generated,
                              gumbel_error *error) {
    uint32_t first_row;
    const gb_batch pass = gb_cuda_pass_of(&e->passes, batch, generated, &first_row);
    if (pass.token_count == 0)
        return GUMBEL_OK;
    bind_sizes(e, pass.token_count, pass.row_count);
    e->is_prefill = !generated;
    e->runs.count = gb_cuda_inputs_fill(&e->inputs, &pass, ++e->number);
    e->runs.first = (const int32_t *)(const void *)(e->inputs.device + e->inputs.runs_offset);
    if (first_row > 0)
        shift_outputs(e, first_row);
    gumbel_status status = launch_pass(e, &pass, error);
    if (status == GUMBEL_OK)
        status = wait_for_pass(e, error);
    else
        cudaStreamSynchronize(e->stream); /* the inputs are in use */
    if (first_row > 0)
        shift_outputs(e, 0);
    GB_TRY(status);
    if (gb_program_output(e->plan->program, GB_ROLE_NEXT) != GB_NO_VALUE && pass.row_count > 0)
        memcpy(pass.next, gb_cuda_handed_tokens(e->handed_out), pass.row_count * sizeof *pass.next);
    return GUMBEL_OK;
}

gumbel_status gb_cuda_executor_run(gb_cuda_executor *e, gb_batch *batch, gumbel_error *error) {
    GB_TRY(run_pass(e, batch, true, error));
    GB_TRY(run_pass(e, batch, false, error));
    const bool has_rows = batch->row_count > 0;
    batch->logits = has_rows ? e->outputs[GB_ROLE_LOGITS] : NULL;
    batch->logprob = has_rows ? e->outputs[GB_ROLE_LOGPROB] : NULL;
    batch->top_ids = has_rows ? e->outputs[GB_ROLE_TOP_IDS] : NULL;
    batch->top_logprobs = has_rows ? e->outputs[GB_ROLE_TOP_LOGPROBS] : NULL;
    return GUMBEL_OK;
}
