/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "plan/passes.h"

#include <string.h>

/* Values are placed in execution order: each result takes the smallest hole that holds it, and a value's
 * bytes become a hole after the last step that reads it. A step's results never overlap its operands. The
 * order of the list counts also over the branches of an `if`; that keeps a value a little longer than some
 * paths need, never shorter. What ranks exchange has its place from the exchange before on
 * (gb_plan_exchange_before). */

enum { ALIGNMENT = 64 };

typedef struct hole {
    uint64_t offset, size;
} hole;

typedef struct placer {
    gb_plan *plan;
    const gb_plan_options *options;
    uint32_t *last_use; /* by value: one more than the last step that reads or computes it */
    hole *holes;        /* by ascending offset, never adjacent, all below arena_bytes */
    size_t hole_count, capacity;
} placer;

static gumbel_status value_bytes(const placer *p, gb_ref value, uint64_t *bytes, gumbel_error *error) {
    const gb_type *type = &p->plan->program->values[value].type;
    uint64_t size = gb_dtype_size(type->dtype);
    for (int32_t i = 0; i < type->shape.rank; i++) {
        int64_t dim = type->shape.dims[i];
        uint64_t count = dim == GB_DIM_N   ? p->options->step_tokens
                         : dim == GB_DIM_B ? p->options->rows
                                           : (uint64_t)dim;
        if (dim == 0 || dim < GB_DIM_B || !gb_multiply_size(size, count, &size))
            goto too_large;
    }
    if (gb_align_size(size, ALIGNMENT, bytes) && *bytes <= INT64_MAX)
        return GUMBEL_OK;
too_large:
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "value %u: its size at %u tokens and %u rows is out of range",
                   value, p->options->step_tokens, p->options->rows);
}

static void find_last_uses(const placer *p) {
    const gb_plan *plan = p->plan;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const gb_step *step = &plan->steps[s];
        for (uint32_t i = 0; i < step->operand_count; i++)
            if (step->operands[i] != GB_NO_VALUE)
                p->last_use[plan->places[step->operands[i]].storage] = s + 1;
        for (uint32_t i = 0; i < step->result_count; i++)
            p->last_use[step->results[i]] = s + 1;
    }
    for (uint32_t i = 0; i < plan->program->output_count; i++)
        p->last_use[plan->places[plan->program->outputs[i].value].storage] = UINT32_MAX;
}

static void delete_hole(placer *p, size_t index) {
    p->hole_count--;
    memmove(p->holes + index, p->holes + index + 1, (p->hole_count - index) * sizeof *p->holes);
}

/* The smallest hole that is large enough, else hole_count. */
static size_t best_hole(const placer *p, uint64_t size) {
    size_t best = p->hole_count;
    for (size_t i = 0; i < p->hole_count; i++)
        if (p->holes[i].size >= size && (best == p->hole_count || p->holes[i].size < p->holes[best].size))
            best = i;
    return best;
}

/* Extends the arena; a hole at its end is used first. */
static gumbel_status take_end(placer *p, uint64_t size, uint64_t *offset, gumbel_error *error) {
    uint64_t end = p->plan->arena_bytes;
    *offset = end;
    if (p->hole_count > 0) {
        const hole *last = &p->holes[p->hole_count - 1];
        if (last->offset + last->size == end) {
            *offset = last->offset;
            p->hole_count--;
        }
    }
    if (!gb_add_size(*offset, size, &p->plan->arena_bytes) || p->plan->arena_bytes > INT64_MAX)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the step's values together are too large");
    return GUMBEL_OK;
}

static gumbel_status take(placer *p, uint64_t size, uint64_t *offset, gumbel_error *error) {
    size_t index = best_hole(p, size);
    if (index == p->hole_count)
        return take_end(p, size, offset, error);
    hole *found = &p->holes[index];
    *offset = found->offset;
    found->offset += size;
    found->size -= size;
    if (found->size == 0)
        delete_hole(p, index);
    return GUMBEL_OK;
}

static gumbel_status take_value(placer *p, gb_ref value, gumbel_error *error) {
    gb_place *place = &p->plan->places[value];
    if (place->in_arena)
        return GUMBEL_OK; /* an if's result: stored by the first region's move */
    place->in_arena = true;
    GB_TRY(value_bytes(p, value, &place->size, error));
    return take(p, place->size, &place->offset, error);
}

/* Makes the bytes a hole, joined with its neighbours. */
static gumbel_status give_back(placer *p, uint64_t offset, uint64_t size, gumbel_error *error) {
    void *holes = p->holes;
    if (!gb_grow(&holes, &p->capacity, p->hole_count + 1, sizeof *p->holes))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan");
    p->holes = holes;
    size_t i = 0;
    while (i < p->hole_count && p->holes[i].offset < offset)
        i++;
    memmove(p->holes + i + 1, p->holes + i, (p->hole_count - i) * sizeof *p->holes);
    p->holes[i] = (hole){offset, size};
    p->hole_count++;
    if (i + 1 < p->hole_count && p->holes[i].offset + p->holes[i].size == p->holes[i + 1].offset) {
        p->holes[i].size += p->holes[i + 1].size;
        delete_hole(p, i + 1);
    }
    if (i > 0 && p->holes[i - 1].offset + p->holes[i - 1].size == p->holes[i].offset) {
        p->holes[i - 1].size += p->holes[i].size;
        delete_hole(p, i);
    }
    return GUMBEL_OK;
}

/* Gives back what is read for the last time by step s. A value may stand twice among the operands. */
static gumbel_status release(placer *p, uint32_t s, gb_ref value, gumbel_error *error) {
    if (value == GB_NO_VALUE)
        return GUMBEL_OK;
    gb_ref storage = p->plan->places[value].storage;
    if (!p->plan->places[storage].in_arena || p->last_use[storage] != s + 1)
        return GUMBEL_OK;
    p->last_use[storage] = 0;
    const gb_place *place = &p->plan->places[storage];
    return give_back(p, place->offset, place->size, error);
}

static bool is_exchange(const gb_step *step) {
    return step->kind == GB_STEP_NODE && step->node->op == GB_OP_ALL_GATHER;
}

uint32_t gb_plan_exchange_before(const gb_plan *plan, uint32_t step) {
    uint32_t found = step;
    for (uint32_t s = 0; s < step; s++) {
        const gb_step *before = &plan->steps[s];
        if (before->kind == GB_STEP_BRANCH || before->kind == GB_STEP_JUMP)
            return step;
        if (is_exchange(before) && (!before->needs_rows || plan->steps[step].needs_rows))
            found = s;
    }
    return found;
}

static gumbel_status take_values(placer *p, const gb_step *step, gumbel_error *error) {
    for (uint32_t i = 0; i < step->result_count; i++)
        GB_TRY(take_value(p, step->results[i], error));
    return GUMBEL_OK;
}

/* The results of exchanges before which that one is the last. */
static gumbel_status take_exchanged(placer *p, uint32_t exchange, gumbel_error *error) {
    const gb_plan *plan = p->plan;
    for (uint32_t s = exchange + 1; s < plan->step_count; s++)
        if (is_exchange(&plan->steps[s]) && gb_plan_exchange_before(plan, s) == exchange)
            GB_TRY(take_values(p, &plan->steps[s], error));
    return GUMBEL_OK;
}

static gumbel_status take_results(placer *p, uint32_t s, gumbel_error *error) {
    GB_TRY(take_values(p, &p->plan->steps[s], error));
    if (is_exchange(&p->plan->steps[s]))
        GB_TRY(take_exchanged(p, s, error));
    for (uint32_t i = 0; i < p->plan->buffer_count; i++) {
        gb_plan_buffer *buffer = &p->plan->buffers[i];
        if (buffer->first == s)
            GB_TRY(take(p, buffer->size, &buffer->offset, error));
    }
    return GUMBEL_OK;
}

static gumbel_status release_values(placer *p, uint32_t s, gumbel_error *error) {
    const gb_step *step = &p->plan->steps[s];
    for (uint32_t i = 0; i < step->operand_count; i++)
        GB_TRY(release(p, s, step->operands[i], error));
    for (uint32_t i = 0; i < step->result_count; i++)
        GB_TRY(release(p, s, step->results[i], error));
    for (uint32_t i = 0; i < p->plan->buffer_count; i++) {
        const gb_plan_buffer *buffer = &p->plan->buffers[i];
        if (buffer->last == s)
            GB_TRY(give_back(p, buffer->offset, buffer->size, error));
    }
    return GUMBEL_OK;
}

static gumbel_status place_in_order(placer *p, gumbel_error *error) {
    for (uint32_t s = 0; s < p->plan->step_count; s++) {
        GB_TRY(take_results(p, s, error));
        GB_TRY(release_values(p, s, error));
    }
    return GUMBEL_OK;
}

gumbel_status gb_plan_add_buffer(gb_plan *plan, uint32_t first, uint32_t last, uint64_t size,
                                 gumbel_error *error) {
    void *buffers = plan->buffers;
    uint64_t aligned;
    if (!gb_align_size(size, ALIGNMENT, &aligned) || aligned > INT64_MAX)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "a buffer of the plan is out of range");
    if (!gb_grow(&buffers, &plan->buffer_capacity, (size_t)plan->buffer_count + 1, sizeof *plan->buffers))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan");
    plan->buffers = buffers;
    plan->buffers[plan->buffer_count++] = (gb_plan_buffer){.first = first, .last = last, .size = aligned};
    return GUMBEL_OK;
}

gumbel_status gb_plan_place_values(gb_plan *plan, const gb_plan_options *options, gumbel_error *error) {
    placer p = {.plan = plan, .options = options};
    p.last_use = gb_allocate(plan->program->value_count, sizeof *p.last_use);
    if (!p.last_use)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan");
    find_last_uses(&p);
    gumbel_status status = place_in_order(&p, error);
    gb_free(p.holes);
    gb_free(p.last_use);
    return status;
}
