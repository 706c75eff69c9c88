/* SPDX-License-Identifier: Apache-2.0 */
#include "program/verify/verify.h"

/* Rule 14: known, an input, and bound once. */
static gumbel_status check_input_role(const gb_program *program, uint32_t index, gumbel_error *error) {
    gb_role role = program->inputs[index].role;
    const gb_role_info *info = gb_role_find(role);
    if (!info)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "input role %u is not known to this version",
                       (unsigned)role);
    if (info->direction != GB_ROLE_INPUT)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "input %u: role %s is an output", index, info->name);
    for (uint32_t i = 0; i < index; i++) {
        if (program->inputs[i].role == role)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "two inputs have the role %s", info->name);
    }
    return GUMBEL_OK;
}

/* Rule 15. */
static gumbel_status check_required_inputs(const gb_program *program, gumbel_error *error) {
    for (uint32_t number = 0; number < GB_ROLE_LIMIT; number++) {
        const gb_role_info *info = gb_role_find(number);
        if (info && info->required && info->direction == GB_ROLE_INPUT &&
            gb_program_input(program, info->role) == GB_NO_VALUE)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "input %s is missing", info->name);
    }
    return GUMBEL_OK;
}

/* The type that a value's definition gives it, or false when there is no such definition. */
static bool defined_type(const gb_program *program, gb_ref ref, gb_type *type) {
    const gb_value *value = &program->values[ref];
    switch (value->kind) {
    case GB_VALUE_INPUT:
        if (value->index >= program->input_count || program->inputs[value->index].value != ref)
            return false;
        *type = gb_role_type(gb_role_find(program->inputs[value->index].role), &program->metadata);
        return true;
    case GB_VALUE_CONSTANT:
        if (value->index >= program->constant_count)
            return false;
        *type = program->constants[value->index].type;
        return true;
    case GB_VALUE_STATE:
        if (value->index >= program->state_count)
            return false;
        *type = program->states[value->index].type;
        return true;
    case GB_VALUE_RESULT:
        *type = value->type;
        return value->index < program->node_count;
    default:
        return false;
    }
}

/* Rule 16. */
static gumbel_status check_value(const gb_program *program, gb_ref ref, gumbel_error *error) {
    const gb_value *value = &program->values[ref];
    gb_type type;
    char found[GB_TYPE_TEXT], expected[GB_TYPE_TEXT];
    if (!defined_type(program, ref, &type))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "value %u: kind %u, index %u: nothing defines it so", ref,
                       (unsigned)value->kind, value->index);
    if (!gb_type_valid(&value->type) || !gb_type_equal(&type, &value->type))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "value %u is %s, its definition %s", ref,
                       gb_type_text(&value->type, found), gb_type_text(&type, expected));
    return GUMBEL_OK;
}

/* Rule 17: as many values of a kind as things of that kind, and no two of the same thing. Values of one kind
 * stand in the order of their indices, which is how that is checked. */
static gumbel_status check_order(const gb_program *program, gb_value_kind kind, const char *what,
                                 uint32_t count, gumbel_error *error) {
    uint32_t next = 0;
    for (gb_ref ref = 0; ref < program->value_count; ref++) {
        if (program->values[ref].kind != kind)
            continue;
        if (program->values[ref].index != next)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "value %u is %s %u, expected %s %u", ref, what,
                           program->values[ref].index, what, next);
        next++;
    }
    if (next != count)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s %u has no value", what, next);
    return GUMBEL_OK;
}

static gumbel_status check_results(gb_verification *verification, uint32_t index) {
    const gb_program *program = verification->program;
    const gb_node *node = &program->nodes[index];
    if (node->operand_count > GB_MAX_OPERANDS || node->result_count > GB_MAX_RESULTS ||
        node->attribute_count > GB_MAX_ATTRIBUTES)
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                       "node %u: more operands, results or attributes than a node can have", index);
    for (uint32_t i = 0; i < node->result_count; i++) {
        gb_ref ref = node->results[i];
        if (ref >= program->value_count || program->values[ref].kind != GB_VALUE_RESULT ||
            program->values[ref].index != index || (verification->values[ref] & GB_VALUE_SEEN))
            return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                           "node %u: its result %u is not a value of its own", index, ref);
        verification->values[ref] = GB_VALUE_SEEN;
    }
    return GUMBEL_OK;
}

/* Rule 18: every result value is the result of the node that it names, once. */
static gumbel_status check_all_results(gb_verification *verification) {
    const gb_program *program = verification->program;
    for (uint32_t i = 0; i < program->node_count; i++)
        GB_TRY(check_results(verification, i));
    for (gb_ref ref = 0; ref < program->value_count; ref++) {
        if (program->values[ref].kind != GB_VALUE_RESULT)
            verification->values[ref] = GB_VALUE_SEEN | GB_VALUE_VISIBLE;
        else if (!verification->values[ref])
            return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                           "value %u: node %u does not have it as a result", ref, program->values[ref].index);
    }
    return GUMBEL_OK;
}

gumbel_status gb_verify_values(gb_verification *verification) {
    const gb_program *program = verification->program;
    gumbel_error *error = verification->error;
    for (uint32_t i = 0; i < program->input_count; i++)
        GB_TRY(check_input_role(program, i, error));
    GB_TRY(check_required_inputs(program, error));
    for (gb_ref ref = 0; ref < program->value_count; ref++)
        GB_TRY(check_value(program, ref, error));
    GB_TRY(check_order(program, GB_VALUE_INPUT, "input", program->input_count, error));
    GB_TRY(check_order(program, GB_VALUE_CONSTANT, "constant", program->constant_count, error));
    GB_TRY(check_order(program, GB_VALUE_STATE, "state", program->state_count, error));
    return check_all_results(verification);
}
