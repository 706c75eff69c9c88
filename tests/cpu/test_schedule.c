/* SPDX-License-Identifier: Apache-2.0
 *
 * Where threads meet: between what one writes and another touches, and nowhere else.
 */
#include "backends/cpu/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { TOKENS = 8, WIDTH = 64, VALUES = 12 };

static float memory[VALUES][TOKENS * WIDTH];
static gb_cpu_tensor values[VALUES];
static gb_schedule schedule;

static int set_up(void **state) {
    (void)state;
    gb_schedule_begin(&schedule, memory[VALUES - 1]);
    for (size_t i = 0; i < VALUES; i++)
        values[i] = (gb_cpu_tensor){
            .data = memory[i], .dtype = GB_F32, .rank = 2, .dims = {TOKENS, WIDTH}, .slot_bytes = 0};
    return 0;
}

/* A step value[y] = op(value[a], value[b]); b < 0: one operand. Returns whether the threads meet before it.
 */
static bool step(gb_op op, int y, int a, int b, gb_split preferred, gb_split expected) {
    gb_kernel_call call = {.operands = {&values[a], b < 0 ? NULL : &values[b]}, .results = {&values[y]}};
    gb_kernel_traits traits = gb_find_traits(op, false);
    gb_split split;
    bool meets = gb_schedule_step(&schedule, &call, &traits, preferred, &split);
    assert_int_equal(split, expected);
    return meets;
}

static bool alone(gb_op op, int y, int a, int b, gb_split expected) {
    return step(op, y, a, b, GB_SPLIT_ALONE, expected);
}

static bool columns(gb_op op, int y, int a, int b) {
    return step(op, y, a, b, GB_SPLIT_COLUMNS, GB_SPLIT_COLUMNS);
}

static bool tokens(gb_op op, int y, int a, int b) {
    return step(op, y, a, b, GB_SPLIT_TOKENS, GB_SPLIT_TOKENS);
}

/* Products of one input: query, key, value. */
static void test_products_of_one_input(void **state) {
    (void)state;
    assert_false(columns(GB_OP_LINEAR, 1, 0, -1));
    assert_false(columns(GB_OP_LINEAR, 2, 0, -1));
    assert_false(columns(GB_OP_LINEAR, 3, 0, -1));
    assert_true(columns(GB_OP_LINEAR, 4, 3, -1)); /* reads what all wrote */
}

/* Gate, activation, up and product are one stage, also where the small ones are not worth sharing. */
static void test_gated_activation(void **state) {
    (void)state;
    assert_false(columns(GB_OP_LINEAR, 1, 0, -1));
    assert_false(alone(GB_OP_GELU_TANH, 2, 1, -1, GB_SPLIT_COLUMNS));
    assert_false(columns(GB_OP_LINEAR, 3, 0, -1));
    assert_false(alone(GB_OP_MULTIPLY, 4, 2, 3, GB_SPLIT_COLUMNS));
    assert_true(columns(GB_OP_LINEAR, 5, 4, -1));
}

/* Norm, residual sum and the next norm are one stage. */
static void test_norms_and_sums(void **state) {
    (void)state;
    assert_false(columns(GB_OP_LINEAR, 1, 0, -1));
    assert_true(tokens(GB_OP_RMS_NORM, 2, 1, -1));
    assert_false(tokens(GB_OP_ADD, 3, 2, 0));
    assert_false(tokens(GB_OP_RMS_NORM, 4, 3, -1));
    assert_true(columns(GB_OP_LINEAR, 5, 4, -1));
}

/* The residual sum after a product without a norm goes on with each thread's columns. */
static void test_residual_sum(void **state) {
    (void)state;
    assert_false(columns(GB_OP_LINEAR, 1, 0, -1));
    assert_false(step(GB_OP_ADD, 2, 1, 3, GB_SPLIT_TOKENS, GB_SPLIT_COLUMNS));
    assert_true(tokens(GB_OP_RMS_NORM, 4, 2, -1));
}

/* Bytes that another thread still reads are not written, and not those that it wrote. */
static void test_reused_bytes(void **state) {
    (void)state;
    assert_false(columns(GB_OP_LINEAR, 1, 0, -1));
    assert_true(columns(GB_OP_LINEAR, 0, 2, -1));
    values[3].data = memory[0] + WIDTH; /* overlaps value 0 */
    assert_true(columns(GB_OP_LINEAR, 3, 2, -1));
    assert_false(alone(GB_OP_SILU, 4, 3, -1, GB_SPLIT_COLUMNS));
}

/* Other shapes of the same bytes are split elsewhere. */
static void test_views(void **state) {
    (void)state;
    assert_false(columns(GB_OP_LINEAR, 1, 0, -1));
    gb_cpu_tensor heads = values[1];
    heads.rank = 3;
    heads.dims[1] = 2;
    heads.dims[2] = WIDTH / 2;
    values[2] = heads;
    assert_true(step(GB_OP_SILU, 3, 2, -1, GB_SPLIT_COLUMNS, GB_SPLIT_COLUMNS));
}

/* A factor per token is one thread's where the rows are split by columns. */
static void test_factors(void **state) {
    (void)state;
    values[1].dims[1] = 1;
    assert_false(step(GB_OP_SIGMOID, 1, 1, -1, GB_SPLIT_COLUMNS, GB_SPLIT_COLUMNS));
    assert_true(columns(GB_OP_SCALE_ROWS, 2, 0, 1));
    gb_schedule_meet(&schedule);
    assert_false(tokens(GB_OP_SIGMOID, 1, 1, -1));
    assert_false(tokens(GB_OP_SCALE_ROWS, 2, 0, 1));
}

/* One token is thread 0's, however the step is said to be split. */
static void test_one_token(void **state) {
    (void)state;
    for (size_t i = 0; i < VALUES; i++)
        values[i].dims[0] = 1;
    assert_false(alone(GB_OP_RMS_NORM, 1, 0, -1, GB_SPLIT_ALONE));
    assert_false(tokens(GB_OP_ADD, 2, 1, 0));
    assert_false(alone(GB_OP_RMS_NORM, 3, 2, -1, GB_SPLIT_ALONE));
    assert_true(columns(GB_OP_LINEAR, 4, 3, -1));
}

/* Rounding x to 8 bits waits for those who still read the last rounded one, and who reads it waits for that.
 */
static void test_rounded_inputs(void **state) {
    (void)state;
    gb_kernel_call call = {.operands = {&values[0]}};
    gb_kernel_traits traits = gb_find_traits(GB_OP_LINEAR, true);
    gb_split split;
    gb_schedule_begin(&schedule, memory[VALUES - 1]);
    assert_false(gb_schedule_step(&schedule, &call, &traits, GB_SPLIT_TOKENS, &split));
    assert_true(columns(GB_OP_LINEAR, 1, 0, -1));
    assert_false(columns(GB_OP_LINEAR, 2, 0, -1));
    assert_true(gb_schedule_step(&schedule, &call, &traits, GB_SPLIT_TOKENS, &split));
}

/* What cannot be remembered is met for. */
static void test_many_steps(void **state) {
    (void)state;
    int meetings = 0;
    for (int i = 0; i < 200; i++)
        meetings += columns(GB_OP_ADD, 1 + i % 3, 4, 5);
    assert_true(meetings > 0 && meetings < 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_products_of_one_input, set_up),
        cmocka_unit_test_setup(test_gated_activation, set_up),
        cmocka_unit_test_setup(test_norms_and_sums, set_up),
        cmocka_unit_test_setup(test_residual_sum, set_up),
        cmocka_unit_test_setup(test_reused_bytes, set_up),
        cmocka_unit_test_setup(test_views, set_up),
        cmocka_unit_test_setup(test_factors, set_up),
        cmocka_unit_test_setup(test_one_token, set_up),
        cmocka_unit_test_setup(test_rounded_inputs, set_up),
        cmocka_unit_test_setup(test_many_steps, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
