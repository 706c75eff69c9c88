/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns of fused steps, in the graphs that the exporter builds: what they match, and that an op which is
 * not theirs, or a value that others read, leaves them unmatched.
 */
#include "plan/plan.h"
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/programs/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TOKENS = 8, SLOTS = 2 };

static bool take_all(const gb_plan *plan, const gb_step *candidate, void *user) {
    (void)plan, (void)candidate, (void)user;
    return true;
}

/* What the table's patterns make, without products and chains of rows. */
static bool take_patterns(const gb_plan *plan, const gb_step *candidate, void *user) {
    (void)plan, (void)user;
    return candidate->fused->kind < GB_FUSED_LINEARS;
}

typedef bool (*taking)(const gb_plan *plan, const gb_step *candidate, void *user);

static gb_plan *new_plan(const gb_program *program, taking supports) {
    const gb_plan_options options = {
        .step_tokens = TOKENS, .rows = SLOTS, .fuse = true, .supports = supports};
    gb_plan *plan;
    gumbel_error error;
    assert_ok(gb_plan_create(program, &options, &plan, &error), &error);
    return plan;
}

static gb_program *read_program(const char *config) {
    gb_program *program;
    gumbel_error error;
    gumbel_program_close(export_random_program(config, (gumbel_export_options){0}));
    assert_ok(gb_program_read(random_program_path(), &program, &error), &error);
    return program;
}

/* ---- What is matched ----------------------------------------------------------------------------------- */

static void assert_steps(const char *config, taking supports, const char *const *names, uint32_t count) {
    gb_program *program = read_program(config);
    gb_plan *plan = new_plan(program, supports);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(i < plan->step_count);
        if (strcmp(gb_step_name(&plan->steps[i]), names[i]) != 0)
            fail_msg("%s: step %u is %s, expected %s", config, i, gb_step_name(&plan->steps[i]), names[i]);
    }
    gb_plan_destroy(plan);
    gb_program_destroy(program);
}

#define ASSERT_STEPS(config, supports, ...)                                                                  \
    assert_steps(config, supports, (const char *const[]){__VA_ARGS__},                                       \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* A layer of each kind. */
static void layers_are_few_steps(void **unused) {
    (void)unused;
    ASSERT_STEPS("small.json", take_all, "embedding", "norm_linears", "heads", "attention", "linear",
                 "norm_linears", "gated", "linear", "norm_linears", "heads", "attention");
    ASSERT_STEPS("qwen.json", take_all, "embedding", "norm_linears", "delta_net", "linear", "norm_linears",
                 "experts", "norm_linears");
    ASSERT_STEPS("../export/agreement/qwen3_experts.json", take_all, "embedding", "norm_linears", "heads",
                 "attention", "linear", "norm_linears", "experts", "norm_linears");
    ASSERT_STEPS("../export/agreement/gemma_experts.json", take_all, "embedding", "norm_linears", "heads",
                 "attention", "linear", "norm_linears", "gated", "linear", "norms", "norm_linears", "norms",
                 "experts", "norms");
    ASSERT_STEPS("biases.json", take_all, "embedding", "norm_linears", "heads", "attention", "linear",
                 "norm_linears", "gated", "linear", "norm_linears", "heads");
    ASSERT_STEPS("small.json", take_patterns, "embedding", "norms", "linear", "linear", "linear", "heads",
                 "attention", "linear", "norms", "linear", "linear", "gated", "linear", "norms");
}

/* The last step of that kind. */
static const gb_step *find_step(const gb_plan *plan, gb_fused_kind kind) {
    for (uint32_t s = plan->step_count; s-- > 0;)
        if (plan->steps[s].kind == GB_STEP_FUSED && plan->steps[s].fused->kind == kind)
            return &plan->steps[s];
    fail_msg("no step %s", gb_fused_name(kind));
    return NULL;
}

static void operands_have_names(void **unused) {
    (void)unused;
    gb_program *program = read_program("small.json");
    gb_plan *plan = new_plan(program, take_patterns);
    const gb_step *norms = &plan->steps[8];
    const gb_node *first = norms->fused->nodes[GB_NORMS_FIRST], *add = norms->fused->nodes[GB_NORMS_ADD];
    assert_int_equal(norms->fused->kind, GB_FUSED_NORMS);
    assert_int_equal(norms->operands[GB_NORMS_X], first->operands[0]);
    assert_int_equal(norms->operands[GB_NORMS_FIRST_WEIGHT], first->operands[1]);
    assert_int_equal(norms->operands[GB_NORMS_ADDED],
                     add->operands[add->operands[0] == first->results[0] ? 1 : 0]);
    assert_int_equal(norms->operands[GB_NORMS_SCALE_FACTOR], GB_NO_VALUE);
    assert_int_equal(norms->fused->live, 1u << GB_NORMS_ADD | 1u << GB_NORMS_LAST);
    assert_true(gb_step_produces(norms, add->results[0]));
    assert_false(gb_step_produces(norms, first->results[0]));
    const gb_step *sample = find_step(plan, GB_FUSED_LOGPROB);
    assert_int_equal(sample->operands[GB_SAMPLE_TEMPERATURE], gb_program_input(program, GB_ROLE_TEMPERATURE));
    assert_int_equal(sample->operands[GB_SAMPLE_LOGITS],
                     sample->fused->nodes[GB_LOGPROB_NORMALIZER]->operands[0]);
    assert_int_equal(sample->results[0], gb_program_output(program, GB_ROLE_NEXT));
    gb_plan_destroy(plan);
    gb_program_destroy(program);
}

/* ---- What is not --------------------------------------------------------------------------------------- */

static bool has_node(const gb_plan *plan, gb_fused_kind kind, const gb_node *node) {
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const gb_fused *fused = plan->steps[s].fused;
        for (uint32_t p = 0; fused && fused->kind == kind && p < fused->node_count; p++)
            if (fused->nodes[p] == node)
                return true;
    }
    return false;
}

/* With another op in its place no step of the kind has the node. */
static void assert_needs_op(gb_program *program, gb_fused_kind kind, const gb_node *part) {
    gb_node *node = &program->nodes[part - program->nodes];
    const gb_op op = node->op;
    if (op == GB_OP_IF)
        return;
    node->op = GB_OP_SOFT_CAP;
    gb_plan *plan = new_plan(program, take_patterns);
    if (has_node(plan, kind, node))
        fail_msg("%s has a %s that is another op", gb_fused_name(kind), gb_op_find(op)->name);
    gb_plan_destroy(plan);
    node->op = op;
}

/* What is made an output has bytes, whatever was fused. */
static void assert_output_is_produced(gb_program *program, gb_ref value) {
    gb_binding *output = &program->outputs[program->output_count - 1];
    const gb_ref before = output->value;
    output->value = value;
    gb_plan *plan = new_plan(program, take_all);
    assert_true(plan->places[plan->places[value].storage].in_arena);
    gb_plan_destroy(plan);
    output->value = before;
}

static void check_near_misses(const char *config, uint32_t *seen) {
    gb_program *program = read_program(config);
    gb_plan *plan = new_plan(program, take_patterns);
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const gb_fused *fused = plan->steps[s].fused;
        if (!fused)
            continue;
        *seen |= 1u << fused->kind;
        for (uint32_t p = 0; p < fused->node_count; p++) {
            if (!fused->nodes[p])
                continue;
            assert_needs_op(program, fused->kind, fused->nodes[p]);
            for (uint32_t r = 0; r < fused->nodes[p]->result_count; r++)
                assert_output_is_produced(program, fused->nodes[p]->results[r]);
        }
    }
    gb_plan_destroy(plan);
    gb_program_destroy(program);
}

static void near_misses_are_not_matched(void **unused) {
    (void)unused;
    uint32_t seen = 0;
    check_near_misses("small.json", &seen);
    check_near_misses("qwen.json", &seen);
    check_near_misses("gpt_oss.json", &seen);
    for (int kind = GB_FUSED_EXPERTS; kind < GB_FUSED_LINEARS; kind++)
        assert_true(seen >> kind & 1u);
}

/* gpt-oss' biases are parts of its heads and experts. */
static void biases_are_parts(void **unused) {
    (void)unused;
    gb_program *program = read_program("gpt_oss.json");
    gb_plan *plan = new_plan(program, take_patterns);
    const gb_node *const *experts = find_step(plan, GB_FUSED_EXPERTS)->fused->nodes,
                         *const *heads = find_step(plan, GB_FUSED_HEADS)->fused->nodes;
    static const uint32_t of_experts[] = {GB_EXPERTS_GATE_BIASED, GB_EXPERTS_UP_BIASED,
                                          GB_EXPERTS_DOWN_BIASED},
                          of_heads[] = {GB_HEADS_QUERY_BIASED, GB_HEADS_KEY_BIASED, GB_HEADS_VALUE_BIASED};
    for (size_t i = 0; i < sizeof of_experts / sizeof *of_experts; i++) {
        assert_non_null(experts[of_experts[i]]);
        assert_non_null(heads[of_heads[i]]);
    }
    gb_plan_destroy(plan);
    gb_program_destroy(program);
}

/* Gemma 4 normalizes a sum for its MLP, its router and its experts: the norms that are not behind it in one
 * step are steps of that kind alone. */
static void norms_of_one_sum_are_norms(void **unused) {
    (void)unused;
    gb_program *program = read_program("../export/agreement/gemma_experts.json");
    gb_plan *plan = new_plan(program, take_patterns);
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const gb_node *node = plan->steps[s].node;
        if (plan->steps[s].kind == GB_STEP_NODE && node->op == GB_OP_RMS_NORM)
            assert_true(program->values[node->results[0]].type.shape.rank > 2);
    }
    gb_plan_destroy(plan);
    gb_program_destroy(program);
}

/* An edge, an attribute, or an order that is not the pattern's; each of the last step of that kind. */
typedef struct change {
    gb_fused_kind kind;
    void (*make)(gb_program *program, const gb_step *step);
} change;

static gb_node *part_of(gb_program *program, const gb_step *step, uint32_t part) {
    return &program->nodes[step->fused->nodes[part] - program->nodes];
}

static void ups_before_gates(gb_program *program, const gb_step *step) {
    part_of(program, step, GB_EXPERTS_UP)->attributes[0].i = 0;
}
static void shared_expert_of_residual(gb_program *program, const gb_step *step) {
    part_of(program, step, GB_EXPERTS_SHARED_UP)->operands[0] = step->operands[GB_EXPERTS_RESIDUAL];
}
static void weights_that_are_logits(gb_program *program, const gb_step *step) {
    part_of(program, step, GB_EXPERTS_COMBINE)->operands[1] = step->operands[GB_EXPERTS_LOGITS];
}
static void keys_without_norm(gb_program *program, const gb_step *step) {
    part_of(program, step, GB_DELTA_RULE)->operands[1] = part_of(program, step, GB_DELTA_KEY)->results[0];
}
static void values_that_are_not_mixed(gb_program *program, const gb_step *step) {
    part_of(program, step, GB_DELTA_VALUE)->operands[0] = step->operands[GB_DELTA_X];
}
static void turns_that_differ(gb_program *program, const gb_step *step) {
    part_of(program, step, GB_HEADS_KEY_TURN)->attributes[0].i++;
}
static void a_product_without_gate(gb_program *program, const gb_step *step) {
    for (uint32_t i = 0; i < 2; i++)
        part_of(program, step, GB_GATED_RESULT)->operands[i] = step->operands[GB_GATED_OTHER];
}
static void log_probability_of_another_token(gb_program *program, const gb_step *step) {
    part_of(program, step, GB_LOGPROB_RESULT)->operands[2] = gb_program_input(program, GB_ROLE_TOP_K);
}

static void changes_are_not_matched(void **unused) {
    (void)unused;
    static const change changes[] = {
        {GB_FUSED_EXPERTS, ups_before_gates},        {GB_FUSED_EXPERTS, shared_expert_of_residual},
        {GB_FUSED_EXPERTS, weights_that_are_logits}, {GB_FUSED_DELTA, keys_without_norm},
        {GB_FUSED_DELTA, values_that_are_not_mixed}, {GB_FUSED_HEADS, turns_that_differ},
        {GB_FUSED_GATED, a_product_without_gate},    {GB_FUSED_LOGPROB, log_probability_of_another_token},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        gb_program *program = read_program("qwen.json");
        gb_plan *plan = new_plan(program, take_patterns);
        const gb_step *step = find_step(plan, changes[i].kind);
        const gb_node *last = NULL;
        for (uint32_t p = 0; p < step->fused->node_count; p++)
            last = step->fused->nodes[p] ? step->fused->nodes[p] : last;
        changes[i].make(program, step);
        gb_plan *changed = new_plan(program, take_patterns);
        if (has_node(changed, changes[i].kind, last))
            fail_msg("change %zu of %s was matched", i, gb_fused_name(changes[i].kind));
        gb_plan_destroy(changed);
        gb_plan_destroy(plan);
        gb_program_destroy(program);
    }
}

/* What a backend does not take stays nodes. */
static bool take_none(const gb_plan *plan, const gb_step *candidate, void *user) {
    (void)plan, (void)candidate, (void)user;
    return false;
}

static void what_is_not_taken_stays(void **unused) {
    (void)unused;
    gb_program *program = read_program("qwen.json");
    gb_plan *refused = new_plan(program, take_none), *plain = new_plan(program, NULL);
    assert_int_equal(refused->step_count, plain->step_count);
    for (uint32_t s = 0; s < plain->step_count; s++)
        assert_true(refused->steps[s].kind != GB_STEP_FUSED);
    gb_plan_destroy(refused);
    gb_plan_destroy(plain);
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_few_steps),        cmocka_unit_test(operands_have_names),
        cmocka_unit_test(near_misses_are_not_matched), cmocka_unit_test(biases_are_parts),
        cmocka_unit_test(norms_of_one_sum_are_norms),  cmocka_unit_test(changes_are_not_matched),
        cmocka_unit_test(what_is_not_taken_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
