/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/mlx/lowering.hpp"

extern "C" {
#include "backends/batch/batch.h"
}

namespace gb_mlx {

/* ---- One step ------------------------------------------------------------------------------------------ */

std::vector<slot_run> runs_of(const gb_batch &batch) {
    std::vector<slot_run> runs;
    for (uint32_t n = 0; n < batch.token_count; n++) {
        const auto slot = static_cast<uint32_t>(batch.slots[n]);
        if (runs.empty() || runs.back().slot != slot)
            runs.push_back({slot, static_cast<int>(n), 0, batch.positions[n]});
        runs.back().count++;
    }
    return runs;
}

step::step(const gb_plan &executed, const gb_batch &inputs, slots &kept,
           const std::optional<mx::array> &tokens)
    : batch(inputs), runs(runs_of(inputs)), states(kept), plan(executed), values(plan.program->value_count),
      conditions(plan.program->value_count) {
    if (tokens)
        set(gb_program_input(plan.program, GB_ROLE_TOKENS), *tokens);
}

const void *step::input(gb_ref value) const {
    const gb_value &v = plan.program->values[value];
    if (v.kind != GB_VALUE_INPUT)
        return nullptr;
    const gb_role role = plan.program->inputs[v.index].role;
    if (role == GB_ROLE_MASK && batch.late_masks)
        gb_late_masks_finish(batch.late_masks);
    return gb_batch_input(&batch, role);
}

mx::Shape step::shape_of(gb_ref value) const {
    const gb_shape &shape = plan.program->values[value].type.shape;
    mx::Shape dims;
    for (int32_t i = 0; i < shape.rank; i++)
        dims.push_back(shape.dims[i] == GB_DIM_N   ? token_count()
                       : shape.dims[i] == GB_DIM_B ? row_count()
                                                   : static_cast<int>(shape.dims[i]));
    return dims;
}

/* A copy of the host's numbers. */
static mx::array array_from(const void *data, const mx::Shape &shape, gb_dtype dtype) {
    switch (dtype) {
    case GB_F32:
        return mx::array(static_cast<const float *>(data), shape, mx::float32);
    case GB_I32:
        return mx::array(static_cast<const int32_t *>(data), shape, mx::int32);
    case GB_U32:
        return mx::array(static_cast<const uint32_t *>(data), shape, mx::uint32);
    case GB_U64:
        return mx::array(static_cast<const uint64_t *>(data), shape, mx::uint64);
    default:
        return mx::array(static_cast<const bool *>(data), shape, mx::bool_);
    }
}

const mx::array &step::operator[](gb_ref value) {
    std::optional<mx::array> &known_array = values[value];
    if (known_array)
        return *known_array;
    const gb_ref storage = plan.places[value].storage;
    if (const void *data = input(value))
        known_array = array_from(data, shape_of(value), plan.program->values[value].type.dtype);
    else if (storage != value)
        known_array = mx::reshape((*this)[storage], shape_of(value));
    else
        throw failure(GUMBEL_ERROR_UNSUPPORTED, "mlx: a value is used that no lowered op makes");
    return *known_array;
}

void step::set(gb_ref value, mx::array array) {
    values[value] = std::move(array);
}

bool step::has(gb_ref value) const {
    return values[value].has_value();
}

bool step::has_operands(const gb_step &planned) const {
    for (uint32_t i = 0; i < planned.operand_count; i++) {
        const gb_ref operand = planned.operands[i];
        if (plan.program->values[operand].kind == GB_VALUE_RESULT && !has(plan.places[operand].storage))
            return false;
    }
    return true;
}

void step::know(gb_ref value, std::vector<uint8_t> known_conditions) {
    conditions[value] = std::move(known_conditions);
}

const std::vector<uint8_t> *step::known(gb_ref value) const {
    return conditions[value] ? &*conditions[value] : nullptr;
}

bool step::is_true(gb_ref value) {
    const std::vector<uint8_t> *condition = known(value);
    return condition ? condition->front() != 0 : mx::array((*this)[value]).item<bool>();
}

/* The angles are computed once, for one head. */
const step::rotation &step::rotation_of(gb_ref positions, gb_ref frequencies, const mx::array &numbers,
                                        int heads) {
    const auto known_rotation = rotations.find({positions, frequencies, heads});
    if (known_rotation != rotations.end())
        return known_rotation->second;
    const auto keep = [&](const rotation &created) -> const rotation & {
        return rotations.emplace(std::tuple(positions, frequencies, heads), created).first->second;
    };
    if (heads > 1) {
        const rotation &single = rotation_of(positions, frequencies, numbers, 1);
        const mx::Shape shape = {token_count(), heads, single.cosines.shape(2)};
        return keep({mx::broadcast_to(single.cosines, shape), mx::broadcast_to(single.sines, shape)});
    }
    const mx::array angles =
        mx::multiply(mx::expand_dims(mx::astype((*this)[positions], mx::float32), {1, 2}), numbers);
    const mx::array cosine = mx::cos(angles), sine = mx::sin(angles);
    return keep({mx::concatenate({cosine, cosine}, 2), mx::concatenate({mx::negative(sine), sine}, 2)});
}

/* ---- The list ------------------------------------------------------------------------------------------ */

operation_maker find_maker(gb_op op) {
    for (const op_entry *table : {model_ops, state_ops, sampler_ops, logprob_ops})
        for (; table->op != GB_OP_NONE; table++)
            if (table->op == op)
                return table->make;
    throw failure(GUMBEL_ERROR_UNSUPPORTED,
                  std::string("the mlx backend has no op ") + gb_op_find(op)->name + "; use --backend cpu");
}

void require_input(const gb_program &program, const gb_node &node, int operand, gb_role role) {
    if (node.operands[operand] != gb_program_input(&program, role))
        throw failure(GUMBEL_ERROR_UNSUPPORTED, std::string("the mlx backend has ") +
                                                    gb_op_find(node.op)->name + " only of the input " +
                                                    gb_role_find(role)->name + "; use --backend cpu");
}

void refuse_of_heads(const gb_node &node, gb_attribute_key key) {
    if (gb_node_int(&node, key) != 0)
        throw failure(GUMBEL_ERROR_UNSUPPORTED, std::string("the mlx backend has no ") +
                                                    gb_op_find(node.op)->name +
                                                    " of draft heads; use --backend cpu");
}

lowered_program::lowered_program(const gb_program &program, const gb_backend_options &options,
                                 bool has_fused_kernels) {
    gb_plan_options plan_options = {};
    plan_options.step_tokens = options.step_tokens;
    plan_options.rows = options.slots;
    gb_plan *created = nullptr;
    gumbel_error error;
    if (gb_plan_create(&program, &plan_options, &created, &error) != GUMBEL_OK)
        throw failure(error.status, error.message);
    owned_plan.reset(created);
    for (uint32_t i = 0; i < created->step_count; i++)
        if (created->steps[i].kind == GB_STEP_NODE)
            find_maker(created->steps[i].node->op);
    weights constants(program, has_fused_kernels);
    operations.resize(created->step_count);
    for (uint32_t i = 0; i < created->step_count; i++)
        if (created->steps[i].kind == GB_STEP_NODE)
            operations[i] = find_maker(created->steps[i].node->op)(*created->steps[i].node, constants);
    constants.finish(options.log, options.log_user);
}

void lowered_program::build(step &s) const {
    const bool has_rows = s.batch.row_count > 0;
    for (uint32_t i = 0; i < owned_plan->step_count;) {
        const gb_step &next = owned_plan->steps[i];
        const uint32_t index = i++;
        if (!has_rows && (next.needs_rows || !s.has_operands(next)))
            continue;
        if (next.kind == GB_STEP_NODE)
            execute(index, s);
        else if (next.kind == GB_STEP_MOVE)
            s.set(next.results[0], s[next.operands[0]]);
        else if (next.kind == GB_STEP_JUMP || (has_rows && !s.is_true(next.operands[0])))
            i = next.target;
    }
}

} // namespace gb_mlx
