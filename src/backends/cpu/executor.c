/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/executor.h"

#include "backends/batch/batch.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/observe.h"
#include "backends/cpu/ready_steps.h"
#include "backends/threads/team_trial.h"
#include "base/clock.h"
#include "base/memory.h"

#include <string.h>

struct gb_executor {
    const gb_plan *plan;
    const gb_placed_weights *weights;
    gb_row_log *log;
    gb_team *team;
    uint64_t least_shared_work;
    gumbel_profile_callback profile;
    void *profile_user;
    gumbel_observe_callback observe;
    void *observe_user;
    gb_cpu_tensor *tensors;        /* by value */
    gb_quantized_matrix *matrices; /* by constant; of dense ones not used */
    gb_ready_steps steps;
    gb_team_trial trial;
    uint8_t *arena;
    uint8_t *scratch; /* [thread_count, scratch_bytes] */
    uint8_t *shared;  /* of all threads */
    size_t scratch_bytes;
    unsigned thread_count;
    uint32_t token_count, row_count; /* of this batch */
    gb_late_masks *late_masks;       /* of this batch; NULL: none is late */
};

/* ---- Values -------------------------------------------------------------------------------------------- */

/* Data of what does not move: values in the arena, constants and states. Inputs come with each batch. */
static void place_tensor(gb_executor *e, const gb_states *states, gb_ref ref) {
    const gb_program *program = e->plan->program;
    const gb_value *value = &program->values[ref];
    const gb_place *place = &e->plan->places[ref];
    gb_cpu_tensor *tensor = &e->tensors[ref];
    tensor->dtype = value->type.dtype;
    tensor->rank = value->type.shape.rank;
    for (int32_t i = 0; i < tensor->rank; i++)
        tensor->dims[i] = value->type.shape.dims[i] > 0 ? (size_t)value->type.shape.dims[i] : 0;
    if (place->in_arena)
        tensor->data = e->arena + place->offset;
    if (value->kind == GB_VALUE_STATE) {
        const gb_state_place *state = &states->places[value->index];
        tensor->data = gb_state_memory(states, state, 0);
        tensor->slot_bytes = (size_t)gb_state_area(states, state)->stride;
        if (state->kind != GB_STATE_RECURRENT)
            tensor->dims[0] = (size_t)state->rows;
        else if (e->log->capacity > 0)
            tensor->log = &e->log->states[value->index];
    }
    if (value->kind == GB_VALUE_CONSTANT) {
        const gb_constant *constant = &program->constants[value->index];
        const gb_placed_weight *weight = &e->weights->of[value->index];
        tensor->data = (void *)(uintptr_t)weight->data; /* kernels do not write to operands */
        gb_quantized_matrix *matrix = &e->matrices[value->index];
        *matrix = (gb_quantized_matrix){
            .format = constant->format, .is_interleaved = weight->is_interleaved, .data = weight->data};
        if (gb_constant_planes(constant, &matrix->planes))
            tensor->quantized = matrix;
    }
}

static void place_tensors(gb_executor *e, const gb_states *states) {
    for (gb_ref i = 0; i < e->plan->program->value_count; i++)
        place_tensor(e, states, i);
    for (gb_ref i = 0; i < e->plan->program->value_count; i++)
        e->tensors[i].data = e->tensors[e->plan->places[i].storage].data;
}

/* The batch's sizes take the place of N and B. */
static void bind_batch(gb_executor *e, const gb_batch *batch) {
    const gb_program *program = e->plan->program;
    for (uint32_t i = 0; i < program->input_count; i++)
        e->tensors[program->inputs[i].value].data =
            (void *)(uintptr_t)gb_batch_input(batch, program->inputs[i].role);
    for (gb_ref i = 0; i < program->value_count; i++) {
        const gb_shape *shape = &program->values[i].type.shape;
        if (shape->rank > 0 && shape->dims[0] < 0)
            e->tensors[i].dims[0] = shape->dims[0] == GB_DIM_N ? batch->token_count : batch->row_count;
    }
    e->token_count = batch->token_count;
    e->row_count = batch->row_count;
    e->late_masks = batch->late_masks;
    e->log->is_draft = batch->draft;
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

/* While a thread waits memory would be idle: it asks for the weights of the products to come, as many as stay
 * in its own cache until they are used. */
enum { FETCHED_BYTES = 384 * 1024, FETCHED_AT_ONCE = 2048 };

/* One thread on its way through the steps. */
typedef struct walker {
    gb_executor *executor;
    gb_worker worker;
    uint32_t next;    /* step */
    uint32_t fetched; /* the step whose weights are prefetched, not before next */
    size_t offset;    /* how far in that */
    size_t bytes;     /* that have been prefetched and not used */
} walker;

/* Asks for a few more bytes. False where the way branches, and when it has been enough. */
static bool fetch_more(void *user) {
    walker *w = user;
    const gb_ready_steps *steps = &w->executor->steps;
    if (w->fetched < w->next) {
        w->fetched = w->next;
        w->offset = w->bytes = 0;
    }
    while (w->fetched < steps->count && w->bytes < FETCHED_BYTES) {
        const gb_ready_step *step = &steps->list[w->fetched];
        if (!step->kernel)
            return false;
        const size_t bytes = gb_kernel_can_fetch(&step->call)
                                 ? gb_kernel_fetch(&step->call, &w->worker, w->offset, FETCHED_AT_ONCE)
                                 : 0;
        w->offset += bytes;
        w->bytes += bytes;
        if (bytes > 0)
            return true;
        w->fetched++;
        w->offset = 0;
    }
    return false;
}

static void wait_for_others(walker *w) {
    if (!w->executor->steps.is_single)
        gb_team_wait_with(w->executor->team, fetch_more, w);
}

/* Waits for what the step needs. In passing the threads make masks: before the step that reads them, and
 * before one that shares itself out, so that who has no mask to make begins with it. */
static void prepare_step(walker *w, const gb_ready_step *step) {
    gb_late_masks *masks = w->executor->late_masks;
    if (masks && step->reads_masks)
        gb_late_masks_work(masks);
    if (step->meets_first || (masks && step->reads_masks))
        wait_for_others(w);
    if (masks && w->next == w->executor->steps.mask_step)
        gb_late_masks_work(masks);
}

/* The inputs are complete after the first barrier; before the second no later step overwrites them. */
static void observe(walker *w, const gb_ready_step *step) {
    const gb_executor *e = w->executor;
    gumbel_observation observation = gb_observation_of(e->plan->program, step);
    observation.thread = (unsigned)w->worker.index;
    observation.threads = e->steps.is_single ? 1 : e->thread_count;
    wait_for_others(w);
    e->observe(e->observe_user, &observation);
    wait_for_others(w);
}

/* Where to go on after a jump or a branch. The second barrier keeps the condition until all have read it. */
static uint32_t next_step(walker *w, const gb_ready_step *step, uint32_t following) {
    if (step->kind == GB_STEP_JUMP)
        return step->target;
    wait_for_others(w);
    bool condition = *(const bool *)step->call.operands[0]->data;
    wait_for_others(w);
    return condition ? following : step->target;
}

static void execute(walker *w, const gb_ready_step *step) {
    if (step->call.split != GB_SPLIT_ALONE)
        step->kernel(&step->call, &w->worker);
    else if (w->worker.index == 0)
        step->kernel(&step->call, &(gb_worker){0, 1, w->worker.scratch, w->worker.shared});
}

/* What the thread waits for the others before the step is reported as the time of a "barrier". */
static void execute_timed(walker *w, const gb_ready_step *step) {
    const gb_executor *e = w->executor;
    const gb_constant *weight = gb_step_weight(e->plan->program, step->planned);
    double begin = gb_seconds();
    prepare_step(w, step);
    if (step->meets_first) {
        double met = gb_seconds();
        e->profile(e->profile_user, "barrier", NULL, met - begin);
        begin = met;
    }
    execute(w, step);
    e->profile(e->profile_user, gb_step_name(step->planned), weight ? weight->name : NULL,
               gb_seconds() - begin);
}

static void walk(void *user, unsigned index) {
    gb_executor *e = user;
    walker w = {.executor = e,
                .worker = {index, e->thread_count, e->scratch + index * e->scratch_bytes, e->shared}};
    const bool is_timed = e->profile && index == 0, is_observed = e->observe;
    for (uint32_t s = 0; s < e->steps.count;) {
        const gb_ready_step *step = &e->steps.list[s++];
        w.next = s - 1;
        if (gb_is_left_out(step, e->token_count, e->row_count))
            continue;
        if (is_observed && step->is_product)
            observe(&w, step);
        if (!step->kernel) {
            s = next_step(&w, step, s);
        } else if (is_timed) {
            execute_timed(&w, step);
        } else {
            prepare_step(&w, step);
            execute(&w, step);
        }
    }
}

/* Rows that the program gave, or NULL. */
static const void *output_data(const gb_executor *e, gb_role role) {
    gb_ref value = gb_program_output(e->plan->program, role);
    return value != GB_NO_VALUE && e->row_count > 0 ? e->tensors[value].data : NULL;
}

/* With the team, or with one thread where that is no slower. */
static void run_steps(gb_executor *e, const gb_batch *batch) {
    const bool has_trial = e->thread_count > 1 && e->least_shared_work > 0;
    const bool is_single = has_trial && gb_team_trial_is_single(&e->trial);
    const double begin = gb_seconds();
    gb_ready_steps_schedule(&e->steps, batch, is_single ? 1 : e->thread_count, e->least_shared_work,
                            e->shared);
    if (e->steps.is_single)
        walk(e, 0);
    else
        gb_team_run(e->team, walk, e);
    if (has_trial && e->steps.is_single == is_single)
        gb_team_trial_record(&e->trial, e->steps.work, gb_seconds() - begin);
}

void gb_executor_run(gb_executor *e, gb_batch *batch) {
    const gb_program *program = e->plan->program;
    bind_batch(e, batch);
    run_steps(e, batch);
    gb_ref next = gb_program_output(program, GB_ROLE_NEXT);
    if (next != GB_NO_VALUE && batch->row_count > 0)
        memcpy(batch->next, e->tensors[next].data, batch->row_count * sizeof *batch->next);
    batch->logits = output_data(e, GB_ROLE_LOGITS);
    batch->logprob = output_data(e, GB_ROLE_LOGPROB);
    batch->top_ids = output_data(e, GB_ROLE_TOP_IDS);
    batch->top_logprobs = output_data(e, GB_ROLE_TOP_LOGPROBS);
    gb_row_log_advance(e->log, batch);
}

void gb_executor_take_logged(gb_executor *e, uint32_t slot) {
    if (e->log->capacity == 0 || e->log->drafts[slot].count == 0)
        return;
    for (uint32_t s = 0; s < e->steps.count; s++)
        gb_kernel_take_logged(&e->steps.list[s].call, slot, e->scratch);
    gb_row_log_reset(e->log, slot, e->log->drafts[slot].position + e->log->drafts[slot].count);
}

/* ---- Making one ---------------------------------------------------------------------------------------- */

/* Makes *longest at least the length of the rows of a value, if there is one. */
static void include_rows(const gb_program *program, gb_ref value, uint32_t *longest) {
    if (value == GB_NO_VALUE)
        return;
    uint32_t length = (uint32_t)program->values[value].type.shape.dims[1];
    *longest = length > *longest ? length : *longest;
}

static gb_row_lengths longest_rows(const gb_plan *plan) {
    gb_row_lengths longest = {0};
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const gb_step *step = &plan->steps[s];
        if (step->kind == GB_STEP_SAMPLE) {
            include_rows(plan->program, step->operands[GB_SAMPLE_LOGITS], &longest.logits);
            include_rows(plan->program, step->operands[GB_SAMPLE_BIAS_IDS], &longest.bias);
            include_rows(plan->program, step->operands[GB_SAMPLE_COUNTS], &longest.counts);
        }
        if (step->kind == GB_STEP_NODE && step->node->op == GB_OP_COUNT_TOKENS)
            include_rows(plan->program, step->results[0], &longest.counts);
    }
    return longest;
}

static bool reserve(gb_executor *e) {
    gb_row_lengths longest = longest_rows(e->plan);
    uint64_t bytes = gb_kernel_scratch_bytes(&longest);
    if (!gb_align_size(bytes, 64, &bytes))
        return false;
    e->scratch_bytes = (size_t)bytes;
    e->tensors = gb_allocate(e->plan->program->value_count, sizeof *e->tensors);
    e->matrices = gb_allocate(e->plan->program->constant_count, sizeof *e->matrices);
    e->arena = gb_allocate_aligned((size_t)e->plan->arena_bytes, 1);
    e->scratch = gb_allocate_aligned(e->thread_count, e->scratch_bytes);
    return e->tensors && e->matrices && e->arena && e->scratch;
}

gumbel_status gb_executor_create(const gb_executor_options *options, gb_executor **executor,
                                 gumbel_error *error) {
    *executor = NULL;
    const gb_plan *plan = options->plan;
    gb_executor *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for an executor");
    created->plan = plan;
    created->weights = options->weights;
    created->log = options->log;
    created->team = options->team;
    created->thread_count = options->thread_count;
    created->least_shared_work = options->least_shared_work;
    created->profile = options->profile;
    created->profile_user = options->profile_user;
    created->observe = options->observe;
    created->observe_user = options->observe_user;
    gumbel_status status = GUMBEL_OK;
    if (!reserve(created))
        status = gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the values of a step: %llu bytes",
                         (unsigned long long)plan->arena_bytes);
    if (status == GUMBEL_OK)
        place_tensors(created, options->states);
    if (status == GUMBEL_OK)
        status = gb_ready_steps_create(plan, created->tensors, options->vector, options->rank,
                                       created->thread_count, &created->steps, error);
    if (status == GUMBEL_OK) {
        created->shared = gb_allocate_aligned((size_t)created->steps.shared_bytes + 1, 1);
        if (!created->shared)
            status =
                gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the activations of a step: %llu bytes",
                        (unsigned long long)created->steps.shared_bytes);
    }
    if (status != GUMBEL_OK)
        gb_executor_destroy(created);
    else
        *executor = created;
    return status;
}

void gb_executor_destroy(gb_executor *e) {
    if (!e)
        return;
    gb_free(e->shared);
    gb_free(e->scratch);
    gb_free(e->arena);
    gb_ready_steps_free(&e->steps);
    gb_free(e->matrices);
    gb_free(e->tensors);
    gb_free(e);
}
