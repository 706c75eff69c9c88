/* SPDX-License-Identifier: Apache-2.0 */
#include "program/infer.h"
#include "program/verify/verify.h"

/* Rule 19: the ranges of regions, and counts of yields. */
static gumbel_status check_range(const gb_program *program, uint32_t index, gumbel_error *error) {
    const gb_region *region = &program->regions[index];
    if (region->first_node > program->node_count ||
        region->node_count > program->node_count - region->first_node)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "region %u: nodes %u + %u, there are %u", index,
                       region->first_node, region->node_count, program->node_count);
    if (region->yield_count > GB_MAX_RESULTS || (index == 0 && region->yield_count != 0))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "region %u: yields %u values", index, region->yield_count);
    return GUMBEL_OK;
}

/* ---- if ------------------------------------------------------------------------------------------------ */

static gumbel_status walk_region(gb_verification *verification, uint32_t index, int depth);

/* Rules 20 and 21: a region of its own, before the node. */
static gumbel_status check_owned_region(gb_verification *verification, uint32_t node, uint32_t index) {
    const gb_program *program = verification->program;
    gumbel_error *error = verification->error;
    if (index == 0 || index >= program->region_count || verification->regions[index])
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "node %u: region %u is not one of its own", node, index);
    verification->regions[index] = 1;
    const gb_region *region = &program->regions[index];
    if (region->first_node + region->node_count > node)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "node %u: its region %u does not stand before it", node,
                       index);
    return GUMBEL_OK;
}

/* Rule 22. */
static gumbel_status check_yields(gb_verification *verification, uint32_t node_index,
                                  const gb_region *region) {
    const gb_program *program = verification->program;
    const gb_node *node = &program->nodes[node_index];
    gumbel_error *error = verification->error;
    char found[GB_TYPE_TEXT], expected[GB_TYPE_TEXT];
    if (region->yield_count != node->result_count || node->result_count == 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "node %u: a region yields %u values, the if has %u",
                       node_index, region->yield_count, node->result_count);
    for (uint32_t i = 0; i < region->yield_count; i++) {
        gb_ref yield = region->yields[i];
        const gb_type *result = &program->values[node->results[i]].type;
        if (yield >= program->value_count || !(verification->values[yield] & GB_VALUE_VISIBLE) ||
            program->values[yield].kind == GB_VALUE_STATE)
            return gb_fail(error, GUMBEL_ERROR_FORMAT,
                           "node %u: a region yields value %u, which it cannot see", node_index, yield);
        if (!gb_type_equal(&program->values[yield].type, result))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "node %u: a region yields %s, the if is %s",
                           node_index, gb_type_text(&program->values[yield].type, found),
                           gb_type_text(result, expected));
    }
    return GUMBEL_OK;
}

static void leave_region(gb_verification *verification, const gb_region *region) {
    for (uint32_t i = 0; i < region->node_count; i++) {
        const gb_node *node = &verification->program->nodes[region->first_node + i];
        for (uint32_t j = 0; j < node->result_count; j++)
            verification->values[node->results[j]] &= (uint8_t)~GB_VALUE_VISIBLE;
    }
}

static gumbel_status walk_if(gb_verification *verification, uint32_t index, int depth) {
    const gb_program *program = verification->program;
    const gb_node *node = &program->nodes[index];
    if (depth == GB_MAX_REGION_DEPTH) /* rule 23 */
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "node %u: more than %d nested ifs", index,
                       (int)GB_MAX_REGION_DEPTH);
    for (uint32_t i = 0; i < 2; i++) {
        GB_TRY(check_owned_region(verification, index, node->regions[i]));
        GB_TRY(walk_region(verification, node->regions[i], depth + 1));
        const gb_region *region = &program->regions[node->regions[i]];
        GB_TRY(check_yields(verification, index, region));
        leave_region(verification, region);
    }
    return GUMBEL_OK;
}

/* ---- Nodes --------------------------------------------------------------------------------------------- */

/* Rule 24: operands are visible. */
static gumbel_status check_operands(gb_verification *verification, uint32_t index,
                                    gb_operand_type types[GB_MAX_OPERANDS]) {
    const gb_program *program = verification->program;
    const gb_node *node = &program->nodes[index];
    for (uint32_t i = 0; i < node->operand_count; i++) {
        gb_ref ref = node->operands[i];
        if (ref >= program->value_count || !(verification->values[ref] & GB_VALUE_VISIBLE))
            return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                           "node %u: operand %u is value %u, which is not defined there", index, i, ref);
        types[i] = gb_operand_type_of(&program->values[ref], program->constants);
    }
    return GUMBEL_OK;
}

/* Tokens come from argmax over the vocabulary and keep that through the ops that choose between them. */
static bool gives_token(const gb_verification *verification, const gb_node *node, uint32_t result) {
    const gb_program *program = verification->program;
    const uint8_t *flags = verification->values;
    switch (node->op) {
    case GB_OP_ARGMAX:
        return (uint64_t)program->values[node->operands[0]].type.shape.dims[1] ==
               program->metadata.vocab_size;
    case GB_OP_SELECT:
    case GB_OP_CHOOSE_TOKEN:
        return flags[node->operands[1]] & flags[node->operands[2]] & GB_VALUE_TOKEN;
    case GB_OP_IF:
        return flags[program->regions[node->regions[0]].yields[result]] &
               flags[program->regions[node->regions[1]].yields[result]] & GB_VALUE_TOKEN;
    default:
        return false;
    }
}

/* Rule 25: results are numbered in order of execution. Makes them visible. */
static gumbel_status define_results(gb_verification *verification, uint32_t index) {
    const gb_node *node = &verification->program->nodes[index];
    for (uint32_t i = 0; i < node->result_count; i++) {
        gb_ref ref = node->results[i];
        if (ref < verification->next_result)
            return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                           "node %u: its result %u is numbered before results that precede it", index, ref);
        verification->next_result = ref + 1;
        bool token = gives_token(verification, node, i);
        verification->values[ref] |= (uint8_t)(GB_VALUE_VISIBLE | (token ? GB_VALUE_TOKEN : 0));
    }
    return GUMBEL_OK;
}

/* Rule 27: a computed value is one row per token or per row of the step, or a flag. */
static gumbel_status check_result_type(gb_verification *verification, uint32_t index, const gb_type *type) {
    char text[GB_TYPE_TEXT];
    bool flag = type->shape.rank == 0 && type->dtype == GB_BOOL;
    if (!flag && (type->shape.rank == 0 || type->shape.dims[0] > 0))
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "node %u: a result %s has no dim N or B",
                       index, gb_type_text(type, text));
    return GUMBEL_OK;
}

/* Rules 26 and 27. */
static gumbel_status check_types(gb_verification *verification, uint32_t index,
                                 const gb_operand_type *types) {
    const gb_program *program = verification->program;
    const gb_node *node = &program->nodes[index];
    gb_type results[GB_MAX_RESULTS];
    uint32_t count;
    gumbel_status status = gb_infer(node->op, types, node->operand_count, node->attributes,
                                    node->attribute_count, results, &count, verification->error);
    if (status != GUMBEL_OK)
        return gb_prefix(verification->error, status, "node %u", index);
    char found[GB_TYPE_TEXT], expected[GB_TYPE_TEXT];
    for (uint32_t i = 0; i < node->result_count; i++) {
        const gb_type *type = &program->values[node->results[i]].type;
        GB_TRY(check_result_type(verification, index, type));
        if (node->op != GB_OP_IF && i < count && !gb_type_equal(type, &results[i]))
            return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "node %u: its result is %s, %s gives %s",
                           index, gb_type_text(type, found), gb_op_find(node->op)->name,
                           gb_type_text(&results[i], expected));
    }
    if (node->op == GB_OP_IF)
        return GUMBEL_OK;
    if (node->result_count != count)
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "node %u: %u results, %s gives %u", index,
                       node->result_count, gb_op_find(node->op)->name, count);
    if (node->regions[0] != GB_NO_REGION || node->regions[1] != GB_NO_REGION) /* rule 20 */
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "node %u: %s has no regions", index,
                       gb_op_find(node->op)->name);
    return GUMBEL_OK;
}

static gumbel_status walk_node(gb_verification *verification, uint32_t index, int depth) {
    const gb_node *node = &verification->program->nodes[index];
    gb_operand_type types[GB_MAX_OPERANDS];
    if (verification->nodes[index]) /* rule 28 */
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "node %u is in two regions", index);
    verification->nodes[index] = 1;
    GB_TRY(check_operands(verification, index, types));
    GB_TRY(check_types(verification, index, types));
    gumbel_status status = gb_verify_uses(verification, node, depth);
    if (status != GUMBEL_OK)
        return gb_prefix(verification->error, status, "node %u", index);
    if (node->op == GB_OP_IF)
        GB_TRY(walk_if(verification, index, depth));
    return define_results(verification, index);
}

static gumbel_status walk_region(gb_verification *verification, uint32_t index, int depth) {
    const gb_region *region = &verification->program->regions[index];
    for (uint32_t i = 0; i < region->node_count; i++)
        GB_TRY(walk_node(verification, region->first_node + i, depth));
    return GUMBEL_OK;
}

gumbel_status gb_verify_regions(gb_verification *verification) {
    const gb_program *program = verification->program;
    if (program->region_count == 0)
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "the graph has no body");
    for (uint32_t i = 0; i < program->region_count; i++)
        GB_TRY(check_range(program, i, verification->error));
    GB_TRY(walk_region(verification, 0, 0));
    for (uint32_t i = 1; i < program->region_count; i++) {
        if (!verification->regions[i])
            return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "region %u belongs to no if", i);
    }
    for (uint32_t i = 0; i < program->node_count; i++) {
        if (!verification->nodes[i])
            return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "node %u is in no region", i);
    }
    return GUMBEL_OK;
}
