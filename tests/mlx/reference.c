/* SPDX-License-Identifier: Apache-2.0 */
#include "mlx/reference.h"

#include "backends/batch/batch.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/slots.h"
#include "base/memory.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct reference {
    const gb_program *program;
    gb_plan *plan;
    gb_slots slots;
    const gb_vector_kernels *vector;
    gb_cpu_tensor *tensors;
    gb_quantized_matrix *matrices;
    void *scratch;
};

static size_t elements(const gb_program *program, gb_ref ref, size_t tokens, size_t rows) {
    const gb_shape *shape = &program->values[ref].type.shape;
    size_t count = 1;
    for (int32_t i = 0; i < shape->rank; i++)
        count *= shape->dims[i] == GB_DIM_N   ? tokens
                 : shape->dims[i] == GB_DIM_B ? rows
                                              : (size_t)shape->dims[i];
    return count;
}

static void place(reference *r, const gb_backend_options *options, gb_ref ref) {
    const gb_value *value = &r->program->values[ref];
    gb_cpu_tensor *tensor = &r->tensors[ref];
    tensor->dtype = value->type.dtype;
    tensor->rank = value->type.shape.rank;
    for (int32_t i = 0; i < tensor->rank; i++)
        tensor->dims[i] = value->type.shape.dims[i] > 0 ? (size_t)value->type.shape.dims[i] : 0;
    if (value->kind == GB_VALUE_RESULT) {
        tensor->data = gb_allocate_aligned(
            elements(r->program, ref, options->step_tokens, options->slots) + 1, sizeof(uint64_t));
        assert_non_null(tensor->data);
    } else if (value->kind == GB_VALUE_STATE) {
        const gb_states *states = &r->slots.states;
        const gb_state_place *state = &states->places[value->index];
        tensor->data = gb_state_memory(states, state, 0);
        tensor->slot_bytes = (size_t)gb_state_area(states, state)->stride;
        if (state->kind != GB_STATE_RECURRENT)
            tensor->dims[0] = (size_t)state->rows;
    } else if (value->kind == GB_VALUE_CONSTANT) {
        const gb_constant *constant = &r->program->constants[value->index];
        gb_quantized_matrix *matrix = &r->matrices[value->index];
        tensor->data = (void *)(uintptr_t)constant->data;
        *matrix = (gb_quantized_matrix){.format = constant->format, .data = constant->data};
        if (gb_constant_planes(constant, &matrix->planes))
            tensor->quantized = matrix;
    }
}

reference *reference_create(const gb_program *program, const gb_backend_options *options) {
    gumbel_error error;
    reference *r = gb_allocate(1, sizeof *r);
    assert_non_null(r);
    r->program = program;
    const gb_plan_options plan_options = {.step_tokens = options->step_tokens, .rows = options->slots};
    assert_ok(gb_plan_create(program, &plan_options, &r->plan, &error), &error);
    assert_ok(gb_slots_create(program, options->slots, options->max_context, false, &r->slots, &error),
              &error);
    assert_ok(gb_choose_vector_kernels("portable", &r->vector, &error), &error);
    r->tensors = gb_allocate(program->value_count, sizeof *r->tensors);
    r->matrices = gb_allocate(program->constant_count, sizeof *r->matrices);
    const uint32_t longest = (uint32_t)program->metadata.vocab_size;
    const gb_row_lengths lengths = {longest, longest, (uint32_t)program->metadata.max_context};
    r->scratch = gb_allocate_aligned(gb_kernel_scratch_bytes(&lengths), 1);
    assert_true(r->tensors && r->matrices && r->scratch);
    for (gb_ref i = 0; i < program->value_count; i++)
        place(r, options, i);
    for (gb_ref i = 0; i < program->value_count; i++) {
        const gb_ref storage = r->plan->places[i].storage;
        if (storage != i && program->values[i].kind == GB_VALUE_RESULT) {
            gb_free(r->tensors[i].data);
            r->tensors[i].data = r->tensors[storage].data;
        }
    }
    return r;
}

void reference_destroy(reference *r) {
    for (gb_ref i = 0; i < r->program->value_count; i++)
        if (r->program->values[i].kind == GB_VALUE_RESULT && r->plan->places[i].storage == i)
            gb_free(r->tensors[i].data);
    gb_free(r->tensors);
    gb_free(r->matrices);
    gb_free(r->scratch);
    gb_slots_destroy(&r->slots);
    gb_plan_destroy(r->plan);
    gb_free(r);
}

const gb_plan *reference_plan(const reference *r) {
    return r->plan;
}

void reference_begin(reference *r, const gb_batch *batch) {
    for (uint32_t i = 0; i < r->program->input_count; i++)
        r->tensors[r->program->inputs[i].value].data =
            (void *)(uintptr_t)gb_batch_input(batch, r->program->inputs[i].role);
    for (gb_ref i = 0; i < r->program->value_count; i++) {
        const gb_shape *shape = &r->program->values[i].type.shape;
        if (shape->rank > 0 && shape->dims[0] < 0)
            r->tensors[i].dims[0] = shape->dims[0] == GB_DIM_N ? batch->token_count : batch->row_count;
    }
}

/* What runs after the last node with the same states. */
static void run_after(const reference *r, const gb_kernel_call *call, const gb_worker *alone) {
    size_t least_tokens;
    const gb_kernel after = call->node ? gb_find_kernel_after(call, &least_tokens) : NULL;
    if (after && gb_is_last_with_state(r->program, call->node))
        after(call, alone);
}

void reference_execute(reference *r, const gb_step *step) {
    gb_kernel_call call = {.node = step->node, .vector = r->vector, .split = GB_SPLIT_ALONE};
    for (uint32_t i = 0; i < step->operand_count; i++)
        call.operands[i] = &r->tensors[step->operands[i]];
    for (uint32_t i = 0; i < step->result_count; i++)
        call.results[i] = &r->tensors[step->results[i]];
    gb_kernel before = NULL;
    gb_kernel kernel = step->kind == GB_STEP_MOVE ? gb_kernel_move : gb_find_kernel(&call, &before);
    uint64_t shared_bytes = 0;
    assert_non_null(kernel);
    if (before) {
        const gb_cpu_tensor *x = call.operands[0];
        assert_true(gb_kernel_shared_bytes(&call, gb_elements(x) / x->dims[x->rank - 1], &shared_bytes));
    }
    const gb_worker alone = {0, 1, r->scratch, gb_allocate_aligned((size_t)shared_bytes + 1, 1)};
    assert_non_null(alone.shared);
    if (before)
        before(&call, &alone);
    kernel(&call, &alone);
    run_after(r, &call, &alone);
    gb_free(alone.shared);
}

const void *reference_value(const reference *r, gb_ref value, size_t *count) {
    *count = gb_elements(&r->tensors[value]);
    return r->tensors[value].data;
}

/* The row of x and that of the weight which make a number of the result. */
static void rows_of_product(const reference *r, const gb_node *node, size_t index, size_t *x_row,
                            size_t *weight_row) {
    const gb_cpu_tensor *x = &r->tensors[node->operands[0]], *weight = &r->tensors[node->operands[1]];
    const size_t outputs = weight->dims[weight->rank - 2];
    *x_row = index / outputs;
    *weight_row = index % outputs;
    if (node->op == GB_OP_EXPERT_LINEAR) {
        const gb_cpu_tensor *experts = &r->tensors[node->operands[2]];
        const size_t choice = *x_row;
        *weight_row += (size_t)((const int32_t *)experts->data)[choice] * outputs;
        *x_row = x->rank == 3 ? choice : choice / experts->dims[1];
    }
}

double reference_product(const reference *r, const gb_node *node, size_t index, double *magnitude) {
    const gb_cpu_tensor *x = &r->tensors[node->operands[0]], *weight = &r->tensors[node->operands[1]];
    const size_t inputs = weight->dims[weight->rank - 1];
    float row[4096];
    size_t x_row, weight_row;
    assert_true(inputs <= sizeof row / sizeof *row);
    rows_of_product(r, node, index, &x_row, &weight_row);
    if (weight->quantized)
        r->vector->dequantize(weight->quantized, weight_row, 0, inputs, row);
    else
        r->vector->widen(gb_element(weight, weight_row * inputs), weight->dtype, inputs, row);
    double sum = 0;
    *magnitude = 0;
    for (size_t k = 0; k < inputs; k++) {
        const double product = (double)gb_floats(x)[x_row * inputs + k] * (double)row[k];
        sum += product;
        *magnitude += product < 0 ? -product : product;
    }
    return sum;
}
