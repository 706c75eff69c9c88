/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lowering/passes.h"

/* ---- Tensors ------------------------------------------------------------------------------------------- */

static void describe_constant(const gb_cuda_lowering_options *options, uint32_t index,
                              gb_cuda_tensor *tensor) {
    const gb_cuda_weight_layout *layout = &options->weights->layouts[index];
    tensor->format = layout->format;
    tensor->planes = layout->planes;
    tensor->is_packed = layout->packing.block_rows > 0;
    tensor->int8_input = layout->int8_input;
    tensor->all_outputs = gb_cuda_count_all_outputs(&options->program->constants[index]);
}

/* Stands for memory while kernels are chosen: aligned, and another address for each number. */
static void *somewhere(uint32_t number) {
    enum { ALIGNMENT = 256 };
    return (void *)((uintptr_t)ALIGNMENT * ((uintptr_t)number + 1));
}

/* All of a value but where it lies. */
void gb_cuda_describe_tensor(const gb_cuda_lowering_options *options, gb_ref ref, gb_cuda_tensor *tensor) {
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
        tensor->is_ring = state->kind == GB_STATE_RING;
    }
    if (value->kind == GB_VALUE_CONSTANT)
        describe_constant(options, value->index, tensor);
}

void gb_cuda_bind_dims(const gb_program *program, gb_cuda_tensor *tensors, uint32_t tokens, uint32_t rows) {
    for (gb_ref i = 0; i < program->value_count; i++) {
        const gb_shape *shape = &program->values[i].type.shape;
        if (shape->rank > 0 && shape->dims[0] < 0)
            tensors[i].dims[0] = shape->dims[0] == GB_DIM_N ? tokens : rows;
    }
}

/* ---- Steps as problems --------------------------------------------------------------------------------- */

/* Whether all weights are float32: such a program has none but true float32 products. */
bool gb_cuda_is_float32_program(const gb_program *program) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_dtype dtype = program->constants[i].type.dtype;
        if (dtype == GB_BF16 || dtype == GB_F16 || dtype == GB_QUANTIZED)
            return false;
    }
    return true;
}

static const gb_cuda_tensor *tensor_of(const gb_cuda_lowering *l, gb_ref value) {
    return value == GB_NO_VALUE ? NULL : &l->lowered->tensors[value];
}

/* A call of some operands and results. */
static gb_cuda_call call_of(const gb_cuda_lowering *l, const gb_step *step, const gb_node *node) {
    const gb_cuda_class class = l->options->class;
    return (gb_cuda_call){.node = node,
                          .scratch = l->options->scratch,
                          .row_class = step->needs_rows ? class.rows : class.tokens,
                          .allows_bf16 = l->allows_bf16,
                          .launches = &l->lowered->launches};
}

static gb_cuda_call call_of_node(const gb_cuda_lowering *l, const gb_step *step, const gb_node *node) {
    gb_cuda_call call = call_of(l, step, node);
    for (uint32_t i = 0; i < node->operand_count; i++)
        call.operands[i] = tensor_of(l, node->operands[i]);
    for (uint32_t i = 0; i < node->result_count; i++)
        call.results[i] = tensor_of(l, node->results[i]);
    call.is_last_with_state = gb_is_last_with_state(l->options->program, node);
    return call;
}

/* Of a step that executes no node, such as the sampler's. */
static gb_cuda_call call_of_step(const gb_cuda_lowering *l, const gb_step *step, uint32_t operand_count) {
    gb_cuda_call call = call_of(l, step, NULL);
    for (uint32_t i = 0; i < operand_count; i++)
        call.operands[i] = tensor_of(l, step->operands[i]);
    call.results[0] = tensor_of(l, step->results[0]);
    return call;
}

uint32_t gb_cuda_count_parts(const gb_step *step) {
    return step->kind == GB_STEP_FUSED ? step->fused->node_count : 1;
}

/* Fills in a step's problem, whose memory is given: a call and a part for each of its parts, and a tensor for
 * each of its operands. */
gb_cuda_problem gb_cuda_problem_of(const gb_cuda_lowering *l, const gb_step *step, gb_cuda_call *calls,
                                   const gb_cuda_call **parts, const gb_cuda_tensor **operands) {
    const uint32_t count = gb_cuda_count_parts(step);
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
