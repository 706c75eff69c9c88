/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules 14 to 28 of the verifier, numbered as in docs/program-format.md: each test takes a valid program,
 * breaks just that rule and looks at what the verifier says.
 */
#include "program/verify/verifier.h"
#include "program/verify/verify.h"
#include "support/programs/broken_program.h"
#include "support/programs/tiny_program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- Rules 14-18: values ------------------------------------------------------------------------------- */

static void set_input_role(gb_program *program, int64_t role) {
    program->inputs[program->input_count - 1].role = (gb_role)role;
}

static void rule_14_input_roles(void **state) {
    (void)state;
    refuse_of(true, set_input_role, 63, GUMBEL_ERROR_UNSUPPORTED, "input role 63 is not known");
    refuse_of(true, set_input_role, 1 << 20, GUMBEL_ERROR_UNSUPPORTED, "input role 1048576 is not known");
    refuse(set_input_role, GB_ROLE_NEXT, "role next is an output");
    refuse(set_input_role, GB_ROLE_TOKENS, "two inputs have the role tokens");
}

static void lose_input(gb_program *program, int64_t role) {
    for (uint32_t i = 0; i < program->input_count; i++) {
        if (program->inputs[i].role == (gb_role)role)
            program->inputs[i].role = GB_ROLE_SEED;
    }
}

static void rule_15_required_inputs(void **state) {
    (void)state;
    refuse_of(false, lose_input, GB_ROLE_SLOTS, GUMBEL_ERROR_FORMAT, "input slots is missing");
    refuse_of(false, lose_input, GB_ROLE_ROWS, GUMBEL_ERROR_FORMAT, "input rows is missing");
}

static void set_value(gb_program *program, int64_t which) {
    gb_value *constant = &program->values[value_of_kind(program, GB_VALUE_CONSTANT, 0)];
    gb_value *input = &program->values[value_of_kind(program, GB_VALUE_INPUT, 0)];
    gb_value *result = &program->values[value_of_kind(program, GB_VALUE_RESULT, 0)];
    switch (which) {
    case 0:
        constant->kind = (gb_value_kind)9;
        break;
    case 1:
        constant->index = program->constant_count;
        break;
    case 2:
        input->index = 1;
        break;
    case 3:
        result->index = program->node_count;
        break;
    case 4:
        constant->type.dtype = GB_F16;
        break;
    case 5:
        input->type.shape.dims[0] = GB_DIM_B;
        break;
    default:
        result->type.shape.dims[1] = -1;
    }
}

static void rule_16_definitions(void **state) {
    (void)state;
    refuse(set_value, 0, "value 0: kind 9, index 0: nothing defines it so");
    refuse(set_value, 1, "nothing defines it so");
    refuse(set_value, 2, "nothing defines it so");
    refuse(set_value, 3, "nothing defines it so");
    refuse(set_value, 4, "value 0 is f16[48,16], its definition f32[48,16]");
    refuse(set_value, 5, "is i32[B], its definition i32[N]");
    refuse(set_value, 6, "f32[N,N]");
}

static void repeat_value(gb_program *program, int64_t which) {
    gb_value_kind kind = which == 0 ? GB_VALUE_CONSTANT : GB_VALUE_STATE;
    gb_ref first = value_of_kind(program, kind, 0), second = value_of_kind(program, kind, 1);
    program->values[second] = program->values[first];
}

static void rule_17_one_value_each(void **state) {
    (void)state;
    refuse(repeat_value, 0, "is constant 0, expected constant 1");
    refuse(repeat_value, 1, "is state 0, expected state 1");
}

static void set_result(gb_program *program, int64_t which) {
    gb_node *first = node_of(program, GB_OP_LINEAR, 0), *second = node_of(program, GB_OP_LINEAR, 1);
    switch (which) {
    case 0:
        first->results[0] = program->value_count;
        break;
    case 1:
        first->results[0] = second->results[0];
        break;
    case 2:
        first->results[0] = value_of_kind(program, GB_VALUE_INPUT, 0);
        break;
    case 3:
        first->results[1] = first->results[0];
        first->result_count = 2;
        break;
    case 4:
        first->result_count = 0;
        break;
    case 5:
        first->operand_count = GB_MAX_OPERANDS + 1;
        break;
    default:
        first->attribute_count = GB_MAX_ATTRIBUTES + 1;
    }
}

static void rule_18_results(void **state) {
    (void)state;
    for (int64_t i = 0; i < 4; i++)
        refuse(set_result, i, "is not a value of its own");
    refuse(set_result, 4, "does not have it as a result");
    refuse(set_result, 5, "more operands, results or attributes than a node can have");
    refuse(set_result, 6, "more operands, results or attributes than a node can have");
}

/* ---- Rules 19-23: regions ------------------------------------------------------------------------------ */

static void set_range(gb_program *program, int64_t which) {
    if (which == 0)
        program->regions[1].node_count = program->node_count + 1;
    else if (which == 1)
        program->regions[1].first_node = UINT32_MAX;
    else if (which == 2)
        program->regions[0].yield_count = 1;
    else if (which == 3)
        program->regions[1].yield_count = GB_MAX_RESULTS + 1;
    else
        program->region_count = 0;
}

static void rule_19_region_ranges(void **state) {
    (void)state;
    char part[64];
    snprintf(part, sizeof part, "region 1: nodes 0 + %d, there are %d", TINY_NODES + 1, TINY_NODES);
    refuse(set_range, 0, part);
    refuse(set_range, 1, "region 1: nodes 4294967295 + ");
    refuse(set_range, 2, "region 0: yields 1 values");
    refuse(set_range, 3, "region 1: yields 5 values");
    refuse(set_range, 4, "the graph has no body");
}

static void set_regions(gb_program *program, int64_t which) {
    gb_node *branch = node_of(program, GB_OP_IF, 0);
    if (which == 0)
        branch->regions[1] = branch->regions[0];
    else if (which == 1)
        branch->regions[1] = 0;
    else if (which == 2)
        branch->regions[1] = program->region_count;
    else if (which == 3)
        node_of(program, GB_OP_SOFT_CAP, 0)->regions[0] = 1;
    else
        branch->regions[1] = GB_NO_REGION;
}

static void rule_20_regions_have_one_owner(void **state) {
    (void)state;
    for (int64_t i = 0; i < 3; i++)
        refuse(set_regions, i, "is not one of its own");
    refuse(set_regions, 3, "soft_cap has no regions");
    refuse(set_regions, 4, "is not one of its own");
}

static void move_region(gb_program *program, int64_t unused) {
    (void)unused;
    program->regions[1].first_node = program->node_count - program->regions[1].node_count;
}

static void rule_21_regions_come_first(void **state) {
    (void)state;
    refuse(move_region, 0, "its region 1 does not stand before it");
}

static void set_yield(gb_program *program, int64_t which) {
    gb_region *second = &program->regions[2];
    if (which == 0)
        second->yield_count = 0;
    else if (which == 1)
        second->yields[0] = program->regions[1].yields[0];
    else if (which == 2)
        second->yields[0] = program->value_count;
    else if (which == 3)
        second->yields[0] = gb_program_input(program, GB_ROLE_TEMPERATURE);
    else
        second->yields[0] = value_of_kind(program, GB_VALUE_STATE, 0);
}

static void rule_22_yields(void **state) {
    (void)state;
    refuse(set_yield, 0, "a region yields 0 values, the if has 1");
    refuse(set_yield, 1, "which it cannot see");
    refuse(set_yield, 2, "which it cannot see");
    refuse(set_yield, 3, "a region yields f32[B], the if is i32[B]");
    refuse(set_yield, 4, "which it cannot see");
}

/* A program of nested ifs, each choosing between top_k and what is inside. */
static gb_ref nested(gb_builder *builder, gb_ref condition, gb_ref logits, int depth) {
    gb_ref inner = gb_build_op(builder, GB_OP_ARGMAX, &logits, 1, NULL, 0);
    if (depth == 0)
        return inner;
    gb_build_if_begin(builder, condition);
    gb_build_if_else(builder, nested(builder, condition, logits, depth - 1));
    return gb_build_if_end(builder, inner);
}

static void depth_of(int depth, gumbel_status expected, const char *part) {
    gb_builder *builder = gb_builder_create();
    gb_metadata *metadata = gb_builder_metadata(builder);
    *metadata =
        (gb_metadata){.architecture = "nested", .vocab_size = 4, .max_context = 2, .prefill_chunk = 1};
    metadata->use_sampling = true;
    gb_ref table = gb_build_constant(builder, "table", GB_F32, 2, (const int64_t[]){4, 4});
    gb_ref slots = gb_build_input(builder, GB_ROLE_SLOTS),
           positions = gb_build_input(builder, GB_ROLE_POSITIONS);
    assert_true(slots != positions);
    gb_ref embedding[] = {table, gb_build_input(builder, GB_ROLE_TOKENS)};
    gb_ref x = gb_build_op(builder, GB_OP_EMBEDDING, embedding, 2, NULL, 0);
    gb_ref gather[] = {x, gb_build_input(builder, GB_ROLE_ROWS)};
    gb_ref logits = gb_build_op(builder, GB_OP_GATHER_ROWS, gather, 2, NULL, 0);
    gb_ref temperature = gb_build_input(builder, GB_ROLE_TEMPERATURE);
    gb_ref zero = gb_build_op(builder, GB_OP_IS_ZERO, &temperature, 1, NULL, 0);
    gb_ref some = gb_build_op(builder, GB_OP_ANY_FALSE, &zero, 1, NULL, 0);
    gb_build_output(builder, GB_ROLE_NEXT, nested(builder, some, logits, depth));
    gb_program *program = NULL;
    gumbel_error error = {0};
    gumbel_status status = gb_builder_finish(builder, &program, &error);
    if (status != expected || !strstr(error.message, part))
        fail_msg("status %d, message \"%s\"", (int)status, error.message);
    gb_program_destroy(program);
    gb_builder_destroy(builder);
}

/* Wraps the tiny program's `if` into others by hand, since the builder refuses to: each time the outermost
 * one moves before the body into a region of its own and a new one in the body chooses between it and
 * nothing. */
static void wrap(gb_program *program, gb_node *nodes, gb_region *regions, gb_value *values) {
    uint32_t inner = program->node_count - 1, first = program->regions[0].first_node;
    gb_node moved = nodes[inner];
    gb_ref result = program->value_count++;
    memmove(&nodes[first + 1], &nodes[first], (inner - first) * sizeof *nodes);
    nodes[first] = moved;
    for (gb_ref ref = 0; ref < result; ref++) {
        if (values[ref].kind == GB_VALUE_RESULT && values[ref].index >= first)
            values[ref].index = values[ref].index == inner ? first : values[ref].index + 1;
    }
    uint32_t taken = program->region_count++, other = program->region_count++;
    gb_ref yield = moved.results[0];
    regions[taken] = (gb_region){.first_node = first, .node_count = 1, .yield_count = 1, .yields = {yield}};
    regions[other] = (gb_region){.yield_count = 1, .yields = {gb_program_input(program, GB_ROLE_TOP_K)}};
    regions[0].first_node++;
    nodes[program->node_count] = moved;
    nodes[program->node_count].results[0] = result;
    nodes[program->node_count].regions[0] = taken;
    nodes[program->node_count].regions[1] = other;
    values[result] = values[yield];
    values[result].index = program->node_count++;
    program->outputs[0].value = result;
}

static void rule_23_nesting(void **state) {
    (void)state;
    depth_of(GB_MAX_REGION_DEPTH, GUMBEL_OK, "");
    depth_of(GB_MAX_REGION_DEPTH + 1, GUMBEL_ERROR_ARGUMENT, "more than 8 nested ifs");
    gb_program *program = tiny_program_build(true);
    gb_program copy = *program;
    gb_node nodes[128];
    gb_region regions[64];
    gb_value values[256];
    gb_binding outputs[4];
    assert_int_equal(program->output_count, 4);
    memcpy(nodes, program->nodes, program->node_count * sizeof *nodes);
    memcpy(regions, program->regions, program->region_count * sizeof *regions);
    memcpy(values, program->values, program->value_count * sizeof *values);
    copy.nodes = nodes;
    copy.regions = regions;
    copy.values = values;
    memcpy(outputs, program->outputs, sizeof outputs);
    copy.outputs = outputs;
    for (int depth = 1; depth < GB_MAX_REGION_DEPTH; depth++)
        wrap(&copy, nodes, regions, values);
    refuse_as(&copy, GUMBEL_ERROR_FORMAT,
              "output next is not chosen by argmax"); /* nothing but that is wrong */
    wrap(&copy, nodes, regions, values);
    refuse_as(&copy, GUMBEL_ERROR_FORMAT, "more than 8 nested ifs");
    gb_program_destroy(program);
}

/* ---- Rules 24-28: nodes -------------------------------------------------------------------------------- */

static void set_operand(gb_program *program, int64_t which) {
    gb_node *first = node_of(program, GB_OP_SPLIT_HEADS, 0);
    if (which == 0)
        first->operands[0] = program->value_count;
    else if (which == 1)
        first->operands[0] = first->results[0];
    else if (which == 2)
        first->operands[0] = node_of(program, GB_OP_MERGE_HEADS, 0)->results[0];
    else /* a value of the first region in the second */
        program->nodes[program->regions[2].first_node].operands[0] =
            node_of(program, GB_OP_APPLY_TEMPERATURE, 0)->results[0];
}

static void rule_24_definition_before_use(void **state) {
    (void)state;
    for (int64_t i = 0; i < 4; i++)
        refuse(set_operand, i, "which is not defined there");
}

/* Exchanges the numbers of the results of two nodes that follow one another and do not depend. */
static void swap_results(gb_program *program, int64_t unused) {
    (void)unused;
    gb_node *gate = node_of(program, GB_OP_GELU_TANH, 0) - 2, *up = gate + 1;
    assert_int_equal(gate->op, GB_OP_LINEAR);
    assert_int_equal(up->op, GB_OP_LINEAR);
    gb_ref gate_result = gate->results[0], up_result = up->results[0];
    gate->results[0] = up_result;
    up->results[0] = gate_result;
    program->values[up_result].index = (uint32_t)(gate - program->nodes);
    program->values[gate_result].index = (uint32_t)(up - program->nodes);
}

static void rule_25_numbering(void **state) {
    (void)state;
    refuse(swap_results, 0, "is numbered before results that precede it");
}

static void set_node(gb_program *program, int64_t which) {
    gb_node *rope = node_of(program, GB_OP_ROPE, 0);
    if (which == 0)
        rope->op = (gb_op)63;
    else if (which == 1)
        set_attribute(rope, gb_int(GB_ATTRIBUTE_PAIR_OFFSET, 5));
    else if (which == 2)
        rope->operand_count = 2;
    else if (which == 3)
        rope->attribute_count = 0;
    else if (which == 4)
        program->values[rope->results[0]].type.shape.dims[2] = 16;
    else
        set_attribute(node_of(program, GB_OP_SOFT_CAP, 0), gb_float(GB_ATTRIBUTE_CAP, INFINITY));
}

static void rule_26_ops(void **state) {
    (void)state;
    refuse_of(true, set_node, 0, GUMBEL_ERROR_UNSUPPORTED, "op 63 is not known to this version");
    refuse(set_node, 1, "rope: 4 pairs at pair_offset = 5 overlap or leave heads of 8");
    refuse(set_node, 2, "rope: operand frequencies is missing");
    refuse(set_node, 3, "rope: attribute pair_offset is missing");
    refuse(set_node, 4, "its result is f32[N,2,16], rope gives f32[N,2,8]");
    refuse(set_node, 5, "soft_cap: attribute cap = inf is not a finite float32");
}

/* Makes a norm of a layer work on a constant. */
static void compute_a_constant(gb_program *program, int64_t unused) {
    (void)unused;
    gb_node *embedding = node_of(program, GB_OP_EMBEDDING, 0), *norm = node_of(program, GB_OP_RMS_NORM, 0);
    norm->operands[0] = embedding->operands[0];
    program->values[norm->results[0]].type.shape.dims[0] = TINY_VOCABULARY;
}

static void rule_27_results_have_rows(void **state) {
    (void)state;
    refuse(compute_a_constant, 0, "a result f32[48,16] has no dim N or B");
}

static void set_coverage(gb_program *program, int64_t which) {
    if (which == 0) /* the second region also has the last node of the first */
        program->regions[2].first_node--, program->regions[2].node_count++;
    else /* the body lacks its last node */
        program->regions[0].node_count--;
}

static void rule_28_every_node_once(void **state) {
    (void)state;
    refuse(set_coverage, 0, "is in two regions");
    refuse(set_coverage, 1, "region 1 belongs to no if");
    gb_program *program = tiny_program_build(false);
    program->regions[0].node_count--;
    refuse_as(program, GUMBEL_ERROR_FORMAT, "is in no region");
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_14_input_roles),
        cmocka_unit_test(rule_15_required_inputs),
        cmocka_unit_test(rule_16_definitions),
        cmocka_unit_test(rule_17_one_value_each),
        cmocka_unit_test(rule_18_results),
        cmocka_unit_test(rule_19_region_ranges),
        cmocka_unit_test(rule_20_regions_have_one_owner),
        cmocka_unit_test(rule_21_regions_come_first),
        cmocka_unit_test(rule_22_yields),
        cmocka_unit_test(rule_23_nesting),
        cmocka_unit_test(rule_24_definition_before_use),
        cmocka_unit_test(rule_25_numbering),
        cmocka_unit_test(rule_26_ops),
        cmocka_unit_test(rule_27_results_have_rows),
        cmocka_unit_test(rule_28_every_node_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
