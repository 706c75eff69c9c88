/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "program/verify/verifier.h"
#include "support/programs/tiny_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void note_ops(const gb_program *program, bool present[GB_OP_LIMIT]) {
    gumbel_error error = {0};
    if (gb_program_verify(program, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    for (uint32_t i = 0; i < program->node_count; i++)
        present[program->nodes[i].op] = true;
}

static void builds_the_tiny_programs(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(true), *recurrent = tiny_recurrent_build(true),
               *target = tiny_target_build(), *head = tiny_head_build(), *reader = tiny_reader_build();
    bool present[GB_OP_LIMIT] = {false};
    note_ops(program, present);
    note_ops(recurrent, present);
    note_ops(target, present);
    note_ops(head, present);
    note_ops(reader, present);
    for (uint32_t op = 0; op < GB_OP_LIMIT; op++) {
        if (gb_op_find(op) && !present[op])
            fail_msg("the tiny programs lack op %s", gb_op_find(op)->name);
    }
    assert_int_equal(program->region_count, 3);
    assert_int_equal(program->state_count, 5);
    assert_true(program->metadata.has_architecture && program->metadata.has_vocab_size);
    assert_false(program->metadata.has_recipe);
    assert_string_equal(program->metadata.recipe, "");
    assert_int_equal(recurrent->state_count, 3);
    gb_program_destroy(reader);
    gb_program_destroy(program);
    gb_program_destroy(recurrent);
    gb_program_destroy(target);
    gb_program_destroy(head);
}

static void nodes_may_have_several_results(void **state) {
    (void)state;
    gb_program *program = tiny_recurrent_build(false);
    const gb_node *router = NULL;
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == GB_OP_ROUTE_TOP_K)
            router = &program->nodes[i];
    char text[GB_TYPE_TEXT];
    assert_int_equal(router->result_count, 2);
    assert_string_equal(gb_type_text(&program->values[router->results[0]].type, text), "i32[N,2]");
    assert_string_equal(gb_type_text(&program->values[router->results[1]].type, text), "f32[N,2]");
    gb_program_destroy(program);

    gb_builder *builder = gb_builder_create();
    gb_ref temperature = gb_build_input(builder, GB_ROLE_TEMPERATURE), results[2];
    gb_build_op_results(builder, GB_OP_IS_ZERO, &temperature, 1, NULL, 0, results, 2);
    assert_int_equal(results[0], GB_NO_VALUE);
    assert_int_equal(results[1], GB_NO_VALUE);
    assert_int_equal(gb_builder_status(builder, NULL), GUMBEL_ERROR_ARGUMENT);
    gb_builder_destroy(builder);
}

static void ends_in_logits_without_sampling(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(false);
    gb_ref logits = gb_program_output(program, GB_ROLE_LOGITS);
    char text[GB_TYPE_TEXT];
    assert_string_equal(gb_type_text(&program->values[logits].type, text), "f32[B,48]");
    assert_int_equal(gb_program_output(program, GB_ROLE_NEXT), GB_NO_VALUE);
    assert_int_equal(gb_program_input(program, GB_ROLE_SEED), GB_NO_VALUE);
    gb_program_destroy(program);
}

static void optional_attributes_have_their_defaults(void **state) {
    (void)state;
    gb_node node = {.op = GB_OP_EMBEDDING};
    assert_true(gb_node_float(&node, GB_ATTRIBUTE_SCALE) == 1);
    node.op = GB_OP_ATTENTION;
    assert_int_equal(gb_node_int(&node, GB_ATTRIBUTE_WINDOW), 0);
    node.attribute_count = 1;
    node.attributes[0] = gb_int(GB_ATTRIBUTE_WINDOW, 512);
    assert_int_equal(gb_node_int(&node, GB_ATTRIBUTE_WINDOW), 512);
}

static void the_first_error_stays(void **state) {
    (void)state;
    gb_builder *builder = gb_builder_create();
    gumbel_error error;
    assert_int_equal(gb_builder_status(builder, &error), GUMBEL_OK);
    gb_ref rows = gb_build_input(builder, GB_ROLE_ROWS);
    assert_int_equal(gb_build_op(builder, GB_OP_GELU_TANH, &rows, 1, NULL, 0), GB_NO_VALUE);
    gb_builder_fail(builder, GUMBEL_ERROR_MEMORY, "later");
    assert_int_equal(gb_build_input(builder, GB_ROLE_TOKENS), GB_NO_VALUE);
    assert_int_equal(gb_builder_status(builder, &error), GUMBEL_ERROR_FORMAT);
    assert_string_equal(error.message, "gelu_tanh: operand x is input i32[B], expected f32[...]");
    gb_program *program;
    assert_int_equal(gb_builder_finish(builder, &program, &error), GUMBEL_ERROR_FORMAT);
    assert_null(program);
    gb_builder_destroy(builder);
}

static void ifs_must_be_whole(void **state) {
    (void)state;
    gumbel_error error;
    gb_builder *builder = gb_builder_create();
    gb_ref rows = gb_build_input(builder, GB_ROLE_ROWS);
    gb_build_if_else(builder, rows);
    assert_int_equal(gb_builder_status(builder, &error), GUMBEL_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "has not begun"));
    gb_builder_destroy(builder);

    builder = gb_builder_create();
    gb_ref temperature = gb_build_input(builder, GB_ROLE_TEMPERATURE);
    gb_ref zero = gb_build_op(builder, GB_OP_IS_ZERO, &temperature, 1, NULL, 0);
    gb_ref some = gb_build_op(builder, GB_OP_ANY_FALSE, &zero, 1, NULL, 0);
    gb_build_if_begin(builder, some);
    gb_program *program;
    assert_int_equal(gb_builder_finish(builder, &program, &error), GUMBEL_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "no end"));
    gb_builder_destroy(builder);

    builder = gb_builder_create();
    temperature = gb_build_input(builder, GB_ROLE_TEMPERATURE);
    zero = gb_build_op(builder, GB_OP_IS_ZERO, &temperature, 1, NULL, 0);
    gb_build_if_begin(builder, gb_build_op(builder, GB_OP_ANY_FALSE, &zero, 1, NULL, 0));
    gb_build_if_else(builder, temperature);
    assert_int_equal(gb_build_if_end(builder, zero), GB_NO_VALUE);
    assert_int_equal(gb_builder_status(builder, &error), GUMBEL_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "different types"));
    gb_builder_destroy(builder);
}

static bool count_down(void *user, size_t bytes) {
    int *left = user;
    (void)bytes;
    return (*left)-- > 0;
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    for (int allowed = 0; status != GUMBEL_OK; allowed++) {
        int left = allowed;
        gb_program *program;
        gb_set_allocation_hook(count_down, &left);
        status = tiny_program_try(true, &program, NULL);
        gb_set_allocation_hook(NULL, NULL);
        gb_program_destroy(program);
        assert_true(status == GUMBEL_OK || status == GUMBEL_ERROR_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builds_the_tiny_programs),
        cmocka_unit_test(nodes_may_have_several_results),
        cmocka_unit_test(ends_in_logits_without_sampling),
        cmocka_unit_test(optional_attributes_have_their_defaults),
        cmocka_unit_test(the_first_error_stays),
        cmocka_unit_test(ifs_must_be_whole),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
