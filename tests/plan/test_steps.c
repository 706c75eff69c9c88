/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"
#include "support/assertions.h"
#include "support/programs/tiny_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static gb_plan *new_plan(const gb_program *program, bool fuse) {
    gb_plan_options options = {.step_tokens = 8, .rows = 2, .fuse = fuse};
    gb_plan *plan;
    gumbel_error error;
    assert_ok(gb_plan_create(program, &options, &plan, &error), &error);
    return plan;
}

static uint32_t count_kind(const gb_plan *plan, gb_step_kind kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->step_count; i++)
        count += plan->steps[i].kind == kind;
    return count;
}

static uint32_t count_op(const gb_plan *plan, gb_op op) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->step_count; i++)
        count += plan->steps[i].kind == GB_STEP_NODE && plan->steps[i].node->op == op;
    return count;
}

static gb_node *find_node(gb_program *program, gb_op op) {
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == op)
            return &program->nodes[i];
    fail_msg("no node of op %u", (unsigned)op);
    return NULL;
}

static void sampler_is_fused(void **unused) {
    (void)unused;
    gb_program *program = tiny_program_build(true);
    gb_plan *plan = new_plan(program, true);
    assert_int_equal(count_kind(plan, GB_STEP_SAMPLE), 1);
    assert_int_equal(count_kind(plan, GB_STEP_BRANCH), 0);
    assert_int_equal(count_op(plan, GB_OP_IS_ZERO) + count_op(plan, GB_OP_ANY_FALSE), 0); /* dead */
    const gb_step *sample = &plan->steps[plan->step_count - 1];
    assert_int_equal(sample->kind, GB_STEP_SAMPLE);
#define GB_SETTING(number, NAME, ...)                                                                        \
    assert_int_equal(sample->operands[GB_SAMPLE_##NAME], gb_program_input(program, GB_ROLE_##NAME));
#include "program/roles.def"
    assert_int_equal(sample->operands[GB_SAMPLE_SEED], gb_program_input(program, GB_ROLE_SEED));
    assert_int_equal(sample->operands[GB_SAMPLE_LOGITS], find_node(program, GB_OP_SOFT_CAP)->results[0]);
    assert_int_equal(sample->results[0], gb_program_output(program, GB_ROLE_NEXT));
    gb_plan_destroy(plan);
    gb_program_destroy(program);
}

static void unfused_plan_has_both_branches(void **unused) {
    (void)unused;
    gb_program *program = tiny_program_build(true);
    gb_plan *plan = new_plan(program, false);
    assert_int_equal(count_kind(plan, GB_STEP_SAMPLE), 0);
    assert_int_equal(count_kind(plan, GB_STEP_BRANCH), 1);
    assert_int_equal(count_kind(plan, GB_STEP_JUMP), 1);
    assert_int_equal(count_kind(plan, GB_STEP_MOVE), 2);
    assert_int_equal(count_op(plan, GB_OP_RANDOM_BITS), 1);
    assert_int_equal(count_op(plan, GB_OP_ARGMAX), 4); /* one for the log-probability */
    gb_plan_destroy(plan);
    gb_program_destroy(program);
}

/* Each changes what the chain means in one place; the sampler must then stay as it is written. */
static void divisor_of_two(gb_program *program) {
    find_node(program, GB_OP_FILL_LIKE)->attributes[0].f = 2;
}
static void top_k_of_unscaled_logits(gb_program *program) {
    find_node(program, GB_OP_TOP_K_MASK)->operands[0] = find_node(program, GB_OP_SOFT_CAP)->results[0];
}
static void top_p_of_unscaled_logits(gb_program *program) {
    find_node(program, GB_OP_TOP_P_MASK)->operands[0] = find_node(program, GB_OP_SOFT_CAP)->results[0];
}
static void candidates_of_scaled_logits(gb_program *program) {
    find_node(program, GB_OP_CANDIDATES)->operands[0] =
        find_node(program, GB_OP_APPLY_TEMPERATURE)->results[0];
}
static void divisor_without_select(gb_program *program) {
    find_node(program, GB_OP_APPLY_TEMPERATURE)->operands[1] = gb_program_input(program, GB_ROLE_TEMPERATURE);
}
static void greedy_of_scores(gb_program *program) {
    gb_node *choose = find_node(program, GB_OP_CHOOSE_TOKEN);
    choose->operands[1] = choose->operands[2];
}
static gb_node *argmax_of(gb_program *program, uint8_t operand_count) {
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == GB_OP_ARGMAX && program->nodes[i].operand_count == operand_count)
            return &program->nodes[i];
    fail_msg("no argmax of %u operands", operand_count);
    return NULL;
}
static void greedy_of_candidates(gb_program *program) {
    gb_node *greedy = argmax_of(program, 1);
    greedy->operand_count = 2;
    greedy->operands[1] = find_node(program, GB_OP_CANDIDATES)->results[0];
}
static void drawn_of_all(gb_program *program) {
    argmax_of(program, 2)->operand_count = 1;
}
static void condition_of_top_p(gb_program *program) {
    find_node(program, GB_OP_IS_ZERO)->operands[0] = gb_program_input(program, GB_ROLE_TOP_P);
}

/* Fused samplers read settings before the step's kernels end. */
static void top_p_that_is_computed(gb_program *program) {
    find_node(program, GB_OP_TOP_P_MASK)->operands[2] = find_node(program, GB_OP_FILL_LIKE)->results[0];
}

static void near_misses_stay_unfused(void **unused) {
    (void)unused;
    static void (*const changes[])(gb_program *) = {
        divisor_of_two,           top_k_of_unscaled_logits,
        top_p_of_unscaled_logits, candidates_of_scaled_logits,
        divisor_without_select,   greedy_of_scores,
        greedy_of_candidates,     drawn_of_all,
        condition_of_top_p,       top_p_that_is_computed,
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        gb_program *program = tiny_program_build(true);
        changes[i](program);
        gb_plan *plan = new_plan(program, true);
        if (count_kind(plan, GB_STEP_SAMPLE) != 0)
            fail_msg("change %zu was fused", i);
        gb_plan_destroy(plan);
        gb_program_destroy(program);
    }
}

/* The masks are optional. */
static void sampler_without_masks(void **unused) {
    (void)unused;
    gb_program *program = tiny_program_build(true);
    gb_ref keep = find_node(program, GB_OP_CANDIDATES)->results[0];
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == GB_OP_ARGMAX && program->nodes[i].operand_count == 2)
            program->nodes[i].operands[1] = keep;
    gb_plan *plan = new_plan(program, true);
    const gb_step *sample = &plan->steps[plan->step_count - 1];
    assert_int_equal(sample->kind, GB_STEP_SAMPLE);
    assert_int_equal(sample->operands[GB_SAMPLE_TOP_K], GB_NO_VALUE);
    assert_int_equal(sample->operands[GB_SAMPLE_TOP_P], GB_NO_VALUE);
    gb_plan_destroy(plan);
    gb_program_destroy(program);
}

/* A chunk without rows runs neither head nor sampler, and all attention. */
static void steps_that_need_rows(void **unused) {
    (void)unused;
    gb_program *program = tiny_program_build(true);
    gb_plan *plan = new_plan(program, false);
    bool after_gather = false;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const gb_step *step = &plan->steps[i];
        if (step->kind != GB_STEP_NODE)
            continue;
        after_gather = after_gather || step->node->op == GB_OP_GATHER_ROWS;
        gb_op op = step->node->op;
        assert_int_equal(step->needs_rows, after_gather && op != GB_OP_ANY_FALSE && op != GB_OP_COUNT_TOKENS);
    }
    assert_true(after_gather);
    assert_int_equal(count_op(plan, GB_OP_ATTENTION), 2);
    gb_plan_destroy(plan);
    gb_program_destroy(program);
}

static void views_have_no_steps(void **unused) {
    (void)unused;
    gb_program *program = tiny_program_build(false);
    gb_plan *plan = new_plan(program, true);
    assert_int_equal(count_op(plan, GB_OP_SPLIT_HEADS) + count_op(plan, GB_OP_MERGE_HEADS), 0);
    const gb_node *merge = find_node(program, GB_OP_MERGE_HEADS);
    assert_int_equal(plan->places[merge->results[0]].storage, merge->operands[0]);
    assert_true(plan->places[merge->operands[0]].in_arena);
    gb_plan_destroy(plan);
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampler_is_fused),         cmocka_unit_test(unfused_plan_has_both_branches),
        cmocka_unit_test(near_misses_stay_unfused), cmocka_unit_test(sampler_without_masks),
        cmocka_unit_test(steps_that_need_rows),     cmocka_unit_test(views_have_no_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
