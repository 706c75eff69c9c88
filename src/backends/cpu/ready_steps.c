/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/ready_steps.h"

#include "backends/cpu/kernels/fused.h"
#include "base/memory.h"

#include <string.h>

/* ---- Making ------------------------------------------------------------------------------------------- */

typedef struct maker {
    const gb_plan *plan;
    const gb_cpu_tensor *tensors;
    const gb_vector_kernels *vector;
    const gb_rank *rank;
    gb_ready_steps *steps;
    const gb_ready_step
        *rounded; /* the last step that rounded a product's input, if no way leads around it */
} maker;

static gb_ref storage_of(const gb_plan *plan, const gb_step *step, uint32_t operand) {
    return plan->places[step->operands[operand]].storage;
}

/* Whether the input of the step's product has been rounded in the same way. */
static bool is_rounded(const maker *m, const gb_ready_step *step) {
    if (!m->rounded || m->rounded->needs_rows != step->needs_rows ||
        storage_of(m->plan, m->rounded->planned, 0) != storage_of(m->plan, step->planned, 0))
        return false;
    const gb_cpu_tensor *a = m->rounded->call.operands[1], *b = step->call.operands[1];
    const gb_rounding of_a = gb_rounding_of(&m->rounded->call), of_b = gb_rounding_of(&step->call);
    return a->dims[a->rank - 1] == b->dims[b->rank - 1] && gb_rounding_equal(&of_a, &of_b);
}

static bool reads_masks(const gb_plan *plan, const gb_step *step) {
    const gb_ref mask = gb_program_input(plan->program, GB_ROLE_MASK);
    for (uint32_t i = 0; i < step->operand_count && mask != GB_NO_VALUE; i++)
        if (step->operands[i] != GB_NO_VALUE && storage_of(plan, step, i) == mask)
            return true;
    return false;
}

/* What the kernel keeps for the next one when the batch is the largest. */
static gumbel_status count_shared_bytes(const maker *m, const gb_ready_step *step, gumbel_error *error) {
    const gb_cpu_tensor *x = step->call.operands[0];
    const gb_place *place = &m->plan->places[storage_of(m->plan, step->planned, 0)];
    const size_t width = x->rank > 0 ? x->dims[x->rank - 1] * gb_dtype_size(x->dtype) : 0;
    uint64_t bytes = 0;
    if (width > 0 && !gb_kernel_shared_bytes(&step->call, (size_t)(place->size / width), &bytes))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the activations of a step");
    if (bytes > m->steps->shared_bytes)
        m->steps->shared_bytes = bytes;
    return GUMBEL_OK;
}

/* A step of another kernel on the same operands, before or after that of the node. */
static gb_ready_step *add_beside(maker *m, const gb_ready_step *step, gb_kernel kernel) {
    gb_ready_step *created = &m->steps->list[m->steps->count++];
    *created = *step;
    created->kernel = kernel;
    created->is_product = false;
    created->traits = gb_find_traits(step->call.node->op, true);
    memset(created->call.results, 0, sizeof created->call.results);
    return created;
}

static gumbel_status add_before(maker *m, const gb_ready_step *step, gb_kernel before, gumbel_error *error) {
    if (before == gb_kernel_quantize && is_rounded(m, step))
        return GUMBEL_OK;
    gb_ready_step *created = add_beside(m, step, before);
    if (before == gb_kernel_quantize)
        m->rounded = created;
    return count_shared_bytes(m, created, error);
}

/* Rows of a ring's long runs go to the shared memory, where rounded activations were. */
static void share_room(maker *m, gb_ready_step *before, gb_ready_step *step) {
    before->traits.shared = GB_SHARED_WRITTEN;
    step->traits.shared = GB_SHARED_READ;
    m->rounded = NULL;
}

static bool is_product(const gb_step *planned) {
    return planned->kind == GB_STEP_NODE &&
           (planned->node->op == GB_OP_LINEAR || planned->node->op == GB_OP_EXPERT_LINEAR);
}

static gb_kernel_traits traits_of(const gb_ready_step *step) {
    if (step->call.chain)
        return gb_chain_traits(&step->call);
    return gb_find_traits(step->kind == GB_STEP_NODE ? step->call.node->op : GB_OP_NONE, false);
}

static void add_fused(maker *m, gb_ready_step *step) {
    const gb_fused_kernel *kernel = gb_find_fused_kernel(m->plan, step->planned);
    step->kernel = kernel->run;
    kernel->resolve(m->plan, step->planned, m->tensors, &m->steps->chains[m->steps->chain_count++],
                    &step->call);
}

static gumbel_status add_step(maker *m, const gb_step *planned, gumbel_error *error) {
    gb_ready_step step = {.planned = planned,
                          .kind = planned->kind,
                          .needs_rows = planned->needs_rows,
                          .is_product = is_product(planned),
                          .reads_masks = reads_masks(m->plan, planned),
                          .target = planned->target,
                          .call = {.node = planned->node, .vector = m->vector, .rank = m->rank}};
    gb_kernel before = NULL;
    for (uint32_t i = 0; i < planned->operand_count; i++)
        if (planned->operands[i] != GB_NO_VALUE)
            step.call.operands[i] = &m->tensors[planned->operands[i]];
    for (uint32_t i = 0; i < planned->result_count && !planned->fused; i++)
        step.call.results[i] = &m->tensors[planned->results[i]];
    if (planned->kind == GB_STEP_SAMPLE)
        step.kernel = gb_kernel_sample;
    else if (planned->kind == GB_STEP_MOVE)
        step.kernel = gb_kernel_move;
    else if (planned->kind == GB_STEP_NODE)
        step.kernel = gb_find_kernel(&step.call, &before);
    else if (planned->kind == GB_STEP_FUSED)
        add_fused(m, &step);
    else
        m->rounded = NULL;
    if (planned->kind == GB_STEP_NODE && !step.kernel)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "the cpu backend has no kernel for op %u",
                       (unsigned)planned->node->op);
    if (before)
        GB_TRY(add_before(m, &step, before, error));
    step.traits = traits_of(&step);
    size_t least_tokens = 0;
    const gb_kernel after =
        planned->kind == GB_STEP_NODE ? gb_find_kernel_after(&step.call, &least_tokens) : NULL;
    if (after)
        share_room(m, &m->steps->list[m->steps->count - 1], &step);
    m->steps->list[m->steps->count++] = step;
    if (after && gb_is_last_with_state(m->plan->program, planned->node)) /* of those with its states */
        add_beside(m, &step, after)->least_tokens = least_tokens;
    return GUMBEL_OK;
}

/* Each step has its own queue: a thread may be in the next step while another is still in this one. */
static gumbel_status make_queues(gb_ready_steps *steps, unsigned thread_count, gumbel_error *error) {
    if (thread_count == 1)
        return GUMBEL_OK;
    steps->parts = gb_allocate_aligned((size_t)steps->count * thread_count, sizeof *steps->parts);
    if (!steps->parts)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the queues of %u threads", thread_count);
    for (uint32_t s = 0; s < steps->count; s++)
        steps->list[s].queue.parts = steps->parts + (size_t)s * thread_count;
    return GUMBEL_OK;
}

/* Targets become those of ready steps. place: of each of the plan's steps, and their end. */
static void set_targets(gb_ready_steps *steps, const uint32_t *place) {
    for (uint32_t s = 0; s < steps->count; s++) {
        gb_ready_step *step = &steps->list[s];
        if (step->kind != GB_STEP_BRANCH && step->kind != GB_STEP_JUMP)
            continue;
        step->target = place[step->target];
        if (step->target < steps->count)
            steps->list[step->target].is_target = true;
    }
}

static bool is_target(const gb_plan *plan, uint32_t index) {
    for (uint32_t s = 0; s < index; s++)
        if ((plan->steps[s].kind == GB_STEP_BRANCH || plan->steps[s].kind == GB_STEP_JUMP) &&
            plan->steps[s].target == index)
            return true;
    return false;
}

static size_t count_fused(const gb_plan *plan) {
    size_t count = 0;
    for (uint32_t s = 0; s < plan->step_count; s++)
        count += plan->steps[s].fused != NULL;
    return count;
}

gumbel_status gb_ready_steps_create(const gb_plan *plan, const gb_cpu_tensor *tensors,
                                    const gb_vector_kernels *vector, const gb_rank *rank,
                                    unsigned thread_count, gb_ready_steps *steps, gumbel_error *error) {
    *steps = (gb_ready_steps){0};
    maker m = {plan, tensors, vector, rank, steps, NULL};
    uint32_t *place = gb_allocate((size_t)plan->step_count + 1, sizeof *place);
    steps->list =
        gb_allocate((size_t)plan->step_count * 3, sizeof *steps->list); /* some have three kernels */
    steps->chains = gb_allocate(count_fused(plan) + 1, sizeof *steps->chains);
    gumbel_status status =
        place && steps->list && steps->chains
            ? GUMBEL_OK
            : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %u steps", plan->step_count);
    for (uint32_t s = 0; s < plan->step_count && status == GUMBEL_OK; s++) {
        place[s] = steps->count;
        if (is_target(plan, s))
            m.rounded = NULL;
        status = add_step(&m, &plan->steps[s], error);
    }
    if (status == GUMBEL_OK) {
        place[plan->step_count] = steps->count;
        set_targets(steps, place);
        status = make_queues(steps, thread_count, error);
    }
    gb_free(place);
    return status;
}

void gb_ready_steps_free(gb_ready_steps *steps) {
    gb_free(steps->parts);
    gb_free(steps->chains);
    gb_free(steps->list);
}

/* ---- Scheduling --------------------------------------------------------------------------------------- */

/* Gives a step that is split in its own way its queue, if it has units for one. */
static void share_out(gb_ready_step *step, gb_kernel_units units, unsigned thread_count) {
    step->call.queue = NULL;
    if (units.count == 0 || step->call.split != GB_SPLIT_OWN)
        return;
    step->queue = (gb_work_queue){step->queue.parts, thread_count, units.count, units.least};
    step->call.queue = &step->queue;
}

/* Many tokens are split by tokens, which keeps rows together; few of them by columns where that can be. Rows
 * of heads may be split in the kernel's own way. */
static gb_split preferred_split(const gb_ready_step *step, size_t thread_count) {
    const gb_cpu_tensor *x = step->call.results[0] ? step->call.results[0] : step->call.operands[0];
    unsigned splits = step->traits.splits;
    bool has_many_tokens = x->rank > 0 && x->dims[0] >= 4 * thread_count;
    if ((splits & GB_SPLIT_TOKENS) && has_many_tokens)
        return GB_SPLIT_TOKENS;
    if (splits & GB_SPLIT_COLUMNS)
        return GB_SPLIT_COLUMNS;
    if ((splits & GB_SPLIT_TOKENS) && (x->rank < 3 || !(splits & GB_SPLIT_OWN)))
        return GB_SPLIT_TOKENS;
    return GB_SPLIT_OWN;
}

/* What the batch's schedule depends on. Work grows with positions; for its estimate they need not be exact,
 * and so most batches that follow each other have the same schedule. */
static gb_batch_shape shape_of(const gb_batch *batch, unsigned thread_count, uint64_t least_shared_work,
                               const void *shared) {
    enum { POSITIONS = 256 };
    size_t positions = 0;
    for (uint32_t n = 0; n < batch->token_count; n++)
        if ((size_t)batch->positions[n] >= positions)
            positions = ((size_t)batch->positions[n] / POSITIONS + 1) * POSITIONS;
    return (gb_batch_shape){batch->token_count, batch->row_count,  thread_count,
                            positions,          least_shared_work, shared};
}

static bool is_same_shape(const gb_batch_shape *a, const gb_batch_shape *b) {
    return a->tokens == b->tokens && a->rows == b->rows && a->thread_count == b->thread_count &&
           a->positions == b->positions && a->least_shared_work == b->least_shared_work &&
           a->shared == b->shared;
}

/* The last step before the masks are read of which a thread that comes late leaves more to the others. */
static uint32_t find_mask_step(const gb_ready_steps *steps) {
    uint32_t found = steps->count;
    for (uint32_t s = 0; s < steps->count && !steps->list[s].reads_masks; s++)
        if (steps->list[s].call.queue)
            found = s;
    return found;
}

static void fill_queues(gb_ready_steps *steps) {
    for (uint32_t s = 0; s < steps->count; s++)
        if (steps->list[s].call.queue)
            gb_work_queue_fill(&steps->list[s].queue);
}

void gb_ready_steps_schedule(gb_ready_steps *steps, const gb_batch *batch, unsigned thread_count,
                             uint64_t least_shared_work, const void *shared) {
    const gb_batch_shape shape = shape_of(batch, thread_count, least_shared_work, shared);
    if (is_same_shape(&shape, &steps->shape)) {
        fill_queues(steps);
        return;
    }
    steps->shape = shape;
    gb_schedule_begin(&steps->schedule, shared);
    steps->is_single = true;
    steps->work = 0;
    bool must_meet = false; /* a path through the branches may have written anything */
    for (uint32_t s = 0; s < steps->count; s++) {
        gb_ready_step *step = &steps->list[s];
        must_meet = must_meet || step->is_target;
        if (!step->kernel || gb_is_left_out(step, batch->token_count, batch->row_count)) {
            must_meet = must_meet || step->kind == GB_STEP_BRANCH;
            continue;
        }
        if (must_meet)
            gb_schedule_meet(&steps->schedule);
        uint64_t work = gb_kernel_work(&step->call, shape.positions);
        steps->work += work;
        bool is_shared = thread_count > 1 && work >= least_shared_work;
        gb_kernel_units units = is_shared ? gb_find_kernel_units(&step->call) : (gb_kernel_units){0};
        gb_split preferred = is_shared ? preferred_split(step, thread_count) : GB_SPLIT_ALONE;
        preferred = units.count > 0 ? GB_SPLIT_OWN : preferred;
        bool conflicts =
            gb_schedule_step(&steps->schedule, &step->call, &step->traits, preferred, &step->call.split);
        step->meets_first = must_meet || conflicts;
        share_out(step, units, thread_count);
        must_meet = false;
        steps->is_single = steps->is_single && step->call.split == GB_SPLIT_ALONE;
    }
    steps->mask_step = find_mask_step(steps);
    fill_queues(steps);
}
