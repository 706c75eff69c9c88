/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/launches.h"

#include "backends/cuda/exchange/exchange.h"
#include "backends/cuda/lowering/products.h"
#include "backends/cuda/runtime/device.h"

#include <stdio.h>

/* ---- Values -------------------------------------------------------------------------------------------- */

/* Where a value lies that has memory of its own. */
static void *memory_of(const gb_cuda_launches *l, const gb_cuda_lowered *lowered,
                       const gb_cuda_resources *resources, gb_ref ref) {
    const gb_value *value = &l->program->values[ref];
    const gb_place *place = &lowered->plan->places[ref];
    if (place->in_arena)
        return l->arena + place->offset;
    if (value->kind == GB_VALUE_STATE) {
        const gb_states *states = &resources->slots->states;
        return gb_state_memory(states, &states->places[value->index], 0);
    }
    return value->kind == GB_VALUE_CONSTANT
               ? resources->weights->memory + resources->weights->offsets[value->index]
               : NULL;
}

/* Gives every value that lies where the one with that storage does its data. */
static void move_storage(const gb_cuda_launches *l, gb_cuda_lowered *lowered, gb_ref storage, void *data) {
    for (gb_ref v = 0; v < l->program->value_count; v++)
        if (lowered->plan->places[v].storage == storage)
            lowered->tensors[v].data = data;
}

/* Logits, which the host may read, lie where it can read them without a copy. */
static gumbel_status place_logits(gb_cuda_launches *l, gb_cuda_lowered *lowered, gumbel_error *error) {
    const gb_ref value = gb_program_output(l->program, GB_ROLE_LOGITS);
    if (value == GB_NO_VALUE)
        return GUMBEL_OK;
    const gb_ref storage = lowered->plan->places[value].storage;
    if (!lowered->plan->places[storage].in_arena)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "logits that no op makes: the cuda backend does not have that");
    move_storage(l, lowered, storage, l->logits);
    return GUMBEL_OK;
}

static gumbel_status place_tensors(gb_cuda_launches *l, gb_cuda_lowered *lowered,
                                   const gb_cuda_resources *resources, const gb_cuda_inputs *inputs,
                                   gumbel_error *error) {
    for (gb_ref i = 0; i < l->program->value_count; i++)
        lowered->tensors[i].data = memory_of(l, lowered, resources, i);
    for (uint32_t i = 0; i < l->program->input_count; i++)
        lowered->tensors[l->program->inputs[i].value].data = inputs->device + inputs->offsets[i];
    for (gb_ref i = 0; i < l->program->value_count; i++)
        lowered->tensors[i].data = lowered->tensors[lowered->plan->places[i].storage].data;
    for (uint32_t i = 0; i < lowered->prepared_count; i++)
        lowered->prepared[i].rows.data = l->arena + lowered->plan->buffers[i].offset;
    return place_logits(l, lowered, error);
}

/* The logits of a step begin with those of the batch's row first_row. */
static void shift_logits(gb_cuda_launches *l, gb_cuda_lowered *lowered, uint32_t first_row) {
    const gb_ref output = gb_program_output(l->program, GB_ROLE_LOGITS);
    if (output != GB_NO_VALUE)
        move_storage(l, lowered, lowered->plan->places[output].storage,
                     l->logits + first_row * lowered->tensors[output].dims[1]);
}

static bool has_same_sizes(const gb_cuda_step_sizes *a, const gb_cuda_step_sizes *b) {
    return a->tokens == b->tokens && a->rows == b->rows && a->first_row == b->first_row &&
           a->is_prefill == b->is_prefill && a->runs.first == b->runs.first &&
           a->runs.count == b->runs.count && a->versions.from == b->versions.from &&
           a->versions.to == b->versions.to;
}

/* Steps of a graph follow one another on a device that waits for the host: what stays is not bound again. */
void gb_cuda_launches_bind(gb_cuda_launches *l, const gb_cuda_step_sizes *sizes) {
    gb_cuda_lowered *lowered = &l->of[gb_cuda_class_of(sizes->is_prefill, sizes->tokens, sizes->rows)];
    if (has_same_sizes(&l->sizes, sizes) && !lowered->launches.has_failed)
        return;
    gb_cuda_lowered_bind(lowered, sizes->tokens, sizes->rows, &sizes->runs, &sizes->versions);
    if (sizes->first_row != lowered->first_row)
        shift_logits(l, lowered, sizes->first_row);
    lowered->first_row = sizes->first_row;
    l->bound = lowered;
    l->sizes = *sizes;
}

/* ---- Making them --------------------------------------------------------------------------------------- */

static gumbel_status lower_classes(gb_cuda_launches *l, const gb_cuda_resources *resources,
                                   gumbel_error *error) {
    gb_cuda_lowering_options options = {.program = resources->program,
                                        .backend = resources->backend,
                                        .weights = resources->weights,
                                        .states = &resources->slots->states,
                                        .scratch = &l->scratch};
    for (uint32_t i = 0; i < GB_CUDA_CLASSES; i++) {
        gb_cuda_class_range range;
        options.class = gb_cuda_classes[i];
        if (gb_cuda_class_find_range(options.class, options.backend, &range))
            GB_TRY(gb_cuda_lower(&options, &l->of[i], error));
    }
    return GUMBEL_OK;
}

/* The largest of what the classes take of each kind of memory, and of the logits. */
typedef struct memory_sizes {
    uint64_t arena, scratch, logits;
} memory_sizes;

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static memory_sizes sizes_of(const gb_cuda_launches *l) {
    const gb_ref logits = gb_program_output(l->program, GB_ROLE_LOGITS);
    memory_sizes sizes = {0};
    for (uint32_t i = 0; i < GB_CUDA_CLASSES; i++) {
        const gb_plan *plan = l->of[i].plan;
        if (!plan)
            continue;
        sizes.arena = larger(sizes.arena, plan->arena_bytes);
        sizes.scratch = larger(sizes.scratch, gb_cuda_lowered_scratch(&l->of[i]));
        if (logits != GB_NO_VALUE)
            sizes.logits = larger(sizes.logits, plan->places[plan->places[logits].storage].size);
    }
    return sizes;
}

/* Steps longer than they must be leave memory for caches: they take a part of what is free at most. */
enum { LONG_STEPS_PART = 8 };

static gumbel_status check_room(const gb_backend_options *options, const memory_sizes *sizes,
                                gumbel_error *error) {
    const uint64_t size = sizes->arena + sizes->scratch;
    size_t left = 0, all = 0;
    if (options->prefill_chunk <= options->least_chunk)
        return GUMBEL_OK;
    GB_TRY(gb_cuda_check(cudaMemGetInfo(&left, &all), "asking for the device's memory", error));
    return size <= left / LONG_STEPS_PART
               ? GUMBEL_OK
               : gb_cuda_no_memory(size * LONG_STEPS_PART, "long steps beside caches", error);
}

static gumbel_status reserve(gb_cuda_launches *l, const gb_backend_options *options, gumbel_error *error) {
    memory_sizes sizes = sizes_of(l);
    void *memory;
    if (options->rank.count > 1)
        sizes.arena = gb_cuda_exchange_bytes(sizes.arena);
    GB_TRY(check_room(options, &sizes, error));
    GB_TRY(gb_cuda_allocate(sizes.arena, "the values of a step", &memory, error));
    l->arena = memory;
    GB_TRY(gb_cuda_allocate_managed(sizes.logits, "a step's logits", &memory, error));
    l->logits = memory;
    GB_TRY(gb_cuda_allocate_pinned(sizeof *l->condition, "a branch's condition", &memory, error));
    l->condition = memory;
    GB_TRY(gb_cuda_allocate(sizes.scratch, "the scratch of kernels", &memory, error));
    l->scratch.bytes = memory;
    l->scratch.size = sizes.scratch;
    GB_TRY(gb_cuda_allocate(GB_CUDA_ARRIVALS * sizeof(uint32_t), "counting blocks", &memory, error));
    l->scratch.arrivals = memory;
    return gb_cuda_check(cudaMemsetAsync(memory, 0, GB_CUDA_ARRIVALS * sizeof(uint32_t), l->stream),
                         "clearing counters", error);
}

gumbel_status gb_cuda_launches_create(const gb_cuda_resources *resources, const gb_cuda_inputs *inputs,
                                      gb_cuda_launches *launches, gumbel_error *error) {
    gb_cuda_launches *l = launches;
    *l = (gb_cuda_launches){.program = resources->program,
                            .stream = resources->stream,
                            .bound = &l->of[0],
                            .scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks()},
                            .profile = resources->backend->profile,
                            .profile_user = resources->backend->profile_user};
    GB_TRY(lower_classes(l, resources, error));
    GB_TRY(reserve(l, resources->backend, error));
    for (uint32_t i = 0; i < GB_CUDA_CLASSES; i++)
        if (l->of[i].plan)
            GB_TRY(place_tensors(l, &l->of[i], resources, inputs, error));
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
    gb_cuda_free(l->scratch.arrivals);
    gb_cuda_free(l->arena);
    gb_cuda_free_pinned(l->condition);
    for (uint32_t i = 0; i < GB_CUDA_CLASSES; i++)
        gb_cuda_lowered_destroy(&l->of[i]);
    *l = (gb_cuda_launches){0};
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

static gumbel_status run(const gb_cuda_launches *l, uint32_t i, gumbel_error *error) {
    const gb_cuda_launch_list *list = &l->bound->launches;
    char doing[96];
    const cudaError_t result = gb_cuda_launch_run(list, i, l->stream);
    if (result == cudaSuccess)
        return GUMBEL_OK;
    snprintf(doing, sizeof doing, "launching %s", list->launches[i].name);
    return gb_cuda_check(result, doing, error);
}

static gumbel_status run_timed(gb_cuda_launches *l, uint32_t i, const gb_step *step, gumbel_error *error) {
    const gb_constant *weight = gb_step_weight(l->program, step);
    float milliseconds = 0;
    GB_TRY(gb_cuda_check(cudaEventRecord(l->begin, l->stream), "timing a step", error));
    GB_TRY(run(l, i, error));
    GB_TRY(gb_cuda_check(cudaEventRecord(l->end, l->stream), "timing a step", error));
    GB_TRY(gb_cuda_check(cudaEventSynchronize(l->end), "waiting for a step", error));
    GB_TRY(gb_cuda_check(cudaEventElapsedTime(&milliseconds, l->begin, l->end), "timing a step", error));
    l->profile(l->profile_user, l->bound->launches.launches[i].name, weight ? weight->name : NULL,
               1e-3 * (double)milliseconds);
    return GUMBEL_OK;
}

static gumbel_status run_step(gb_cuda_launches *l, const gb_cuda_step *step, gumbel_error *error) {
    for (uint32_t i = step->first_launch; i < step->end_launch; i++)
        GB_TRY(l->profile ? run_timed(l, i, step->step, error) : run(l, i, error));
    return GUMBEL_OK;
}

/* Where to go on after a branch: the host waits to read its condition. */
static gumbel_status follow_branch(gb_cuda_launches *l, const gb_cuda_step *branch, uint32_t *next,
                                   gumbel_error *error) {
    if (branch->step->kind == GB_STEP_BRANCH) {
        cudaError_t result = cudaMemcpyAsync(l->condition, branch->problem.operands[0]->data,
                                             sizeof *l->condition, cudaMemcpyDeviceToHost, l->stream);
        if (result == cudaSuccess)
            result = cudaStreamSynchronize(l->stream);
        GB_TRY(gb_cuda_check(result, "reading a condition", error));
        if (*l->condition)
            return GUMBEL_OK;
    }
    *next = branch->step->target;
    return GUMBEL_OK;
}

static bool reads_masks(const gb_cuda_launches *l, const gb_step *step) {
    const gb_ref mask = gb_program_input(l->program, GB_ROLE_MASK);
    for (uint32_t i = 0; i < step->operand_count && mask != GB_NO_VALUE; i++)
        if (step->operands[i] != GB_NO_VALUE && l->bound->plan->places[step->operands[i]].storage == mask)
            return true;
    return false;
}

/* The first step that reads masks, or their count. */
static uint32_t find_mask_step(const gb_cuda_launches *l) {
    const gb_plan *plan = l->bound->plan;
    uint32_t step = 0;
    while (step < plan->step_count && !reads_masks(l, &plan->steps[step]))
        step++;
    return step;
}

gumbel_status gb_cuda_launches_enqueue(gb_cuda_launches *l, gb_cuda_step_part part, gumbel_error *error) {
    gb_cuda_lowered *lowered = l->bound;
    const uint32_t first = part == GB_CUDA_FROM_MASKS ? find_mask_step(l) : 0;
    const uint32_t end = part == GB_CUDA_BEFORE_MASKS ? find_mask_step(l) : lowered->plan->step_count;
    for (uint32_t s = first, next; s < end; s = next) {
        const gb_cuda_step *step = &lowered->steps[s];
        next = s + 1;
        GB_TRY(gb_cuda_lowered_describe(lowered, next, error));
        if (step->kernel)
            GB_TRY(run_step(l, step, error));
        else if (!step->step->needs_rows || l->sizes.rows > 0)
            GB_TRY(follow_branch(l, step, &next, error));
    }
    return GUMBEL_OK;
}
