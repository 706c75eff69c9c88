/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine reports of the inputs of products: each once in a step, with the rows of the step, the same
 * from one thread and from two, and without an effect on the tokens.
 */
#include "run/handles.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { APPENDED = 5, PROMPT = 60, DECODED = 3, MOST_SEEN = 2048, MOST_KEPT = 4096 };

/* ---- What is seen -------------------------------------------------------------------------------------- */

typedef struct seen_product {
    const char *weight;
    size_t rows, columns, choices;
    size_t threads;
    uint64_t hash; /* of inputs and experts */
} seen_product;

/* Written by one thread. */
typedef struct seen_products {
    seen_product list[MOST_SEEN];
    size_t count;
    float first[MOST_KEPT]; /* inputs of the first product */
    size_t first_count;
} seen_products;

typedef struct seen_run {
    seen_products of[2]; /* by thread */
    int32_t tokens[1 + DECODED];
} seen_run;

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size) {
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t hash_of(const gumbel_observation *o) {
    const uint64_t hash = hash_bytes(0xcbf29ce484222325u, o->inputs, o->rows * o->columns * sizeof(float));
    return hash_bytes(hash, o->experts, o->rows * o->choices * sizeof(int32_t));
}

static void keep_first(const gumbel_observation *o, seen_products *seen) {
    seen->first_count = o->rows * o->columns < MOST_KEPT ? o->rows * o->columns : MOST_KEPT;
    memcpy(seen->first, o->inputs, seen->first_count * sizeof *seen->first);
}

static void see(void *user, const gumbel_observation *o) {
    seen_products *seen = &((seen_run *)user)->of[o->thread];
    if (seen->count == 0)
        keep_first(o, seen);
    if (seen->count < MOST_SEEN)
        seen->list[seen->count] =
            (seen_product){o->weight, o->rows, o->columns, o->choices, o->threads, hash_of(o)};
    seen->count++;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

static gumbel_program *export_model(const char *model, const char *recipe) {
    gumbel_error error;
    gumbel_program *program;
    const char *path = temporary_path("observed.gumbel");
    gumbel_export_options options = {.size = sizeof options, .quantize = recipe};
    assert_ok(gumbel_export(bundled_model(model), path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    return program;
}

static int32_t run_step(gumbel_engine *engine, gumbel_session *session, const int32_t *tokens, size_t count) {
    gumbel_error error;
    gumbel_result result = {.size = sizeof result};
    const gumbel_sampling greedy = {.size = sizeof greedy, .top_p = 1};
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = tokens,
                              .token_count = count,
                              .result = &result,
                              .sampling = &greedy};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    return result.token;
}

/* A step without rows, a prompt and a few tokens of its answer. */
static void run_program(const gumbel_program *program, int threads, gumbel_observe_callback observe,
                        seen_run *run) {
    gumbel_error error;
    gumbel_engine *engine;
    gumbel_session *session;
    int32_t prompt[PROMPT];
    gumbel_engine_options options = {
        .size = sizeof options, .threads = threads, .observe = observe, .observe_user = run};
    for (int32_t i = 0; i < PROMPT; i++)
        prompt[i] = 7 + i * 5 % 83;
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(gumbel_session_append(session, prompt, APPENDED, &error), &error);
    run->tokens[0] = run_step(engine, session, prompt, PROMPT);
    for (size_t i = 0; i < DECODED; i++)
        run->tokens[i + 1] = run_step(engine, session, &run->tokens[i], 1);
    gumbel_engine_destroy(engine);
}

/* ---- What is expected ---------------------------------------------------------------------------------- */

static const char *weight_of(const gb_program *program, const gb_node *node) {
    return program->constants[program->values[node->operands[1]].index].name;
}

static const seen_product *find_seen(const seen_product *seen, size_t count, const char *weight) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(seen[i].weight, weight) == 0)
            return &seen[i];
    fail_msg("%s was not observed", weight);
    return NULL;
}

static void expect_product(const gb_program *program, const gb_node *node, int64_t rows,
                           const seen_product *seen) {
    const gb_shape *x = &program->values[node->operands[0]].type.shape;
    const bool has_experts = node->op == GB_OP_EXPERT_LINEAR;
    const int64_t parts = x->rank == 3 ? x->dims[1] : 1;
    assert_int_equal(seen->rows, rows * parts);
    assert_int_equal(seen->columns, x->dims[x->rank - 1]);
    if (!has_experts)
        assert_int_equal(seen->choices, 0);
    else
        assert_int_equal(seen->choices * (size_t)parts,
                         program->values[node->operands[2]].type.shape.dims[1]);
}

/* How many rows a product of the graph has in a step; 0: it is none, or not in that step. */
static int64_t rows_of(const gb_program *program, const gb_node *node, int64_t tokens, int64_t rows) {
    if (node->op != GB_OP_LINEAR && node->op != GB_OP_EXPERT_LINEAR)
        return 0;
    return program->values[node->operands[0]].type.shape.dims[0] == GB_DIM_B ? rows : tokens;
}

/* Every product of the graph, in the plan's order. Returns how many. */
static size_t expect_step(const gb_program *program, int64_t tokens, int64_t rows, const seen_product *seen) {
    size_t count = 0;
    for (uint32_t i = 0; i < program->node_count; i++)
        count += rows_of(program, &program->nodes[i], tokens, rows) > 0;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const gb_node *node = &program->nodes[i];
        const int64_t count_of = rows_of(program, node, tokens, rows);
        if (count_of > 0)
            expect_product(program, node, count_of, find_seen(seen, count, weight_of(program, node)));
    }
    return count;
}

static void expect_run(const gb_program *program, const seen_products *seen) {
    size_t count = expect_step(program, APPENDED, 0, seen->list);
    count += expect_step(program, PROMPT, 1, seen->list + count);
    for (size_t i = 0; i < DECODED; i++)
        count += expect_step(program, 1, 1, seen->list + count);
    assert_int_equal(seen->count, count);
}

/* The second thread sees the same as the first where both execute the step. */
static void expect_same_of_both(const seen_run *run) {
    size_t shared = 0;
    for (size_t i = 0; i < run->of[0].count; i++) {
        if (run->of[0].list[i].threads == 1)
            continue;
        assert_memory_equal(&run->of[0].list[i], &run->of[1].list[shared], sizeof(seen_product));
        shared++;
    }
    assert_true(shared > 0);
    assert_int_equal(run->of[1].count, shared);
}

static void expect_same_inputs(const seen_run *run, const seen_run *other) {
    assert_int_equal(run->of[0].count, other->of[0].count);
    for (size_t i = 0; i < run->of[0].count; i++)
        assert_true(run->of[0].list[i].hash == other->of[0].list[i].hash);
}

static void expect_same_tokens(const seen_run *run, const seen_run *other) {
    assert_memory_equal(run->tokens, other->tokens, sizeof run->tokens);
}

/* ---- Tests --------------------------------------------------------------------------------------------- */

static seen_run plain, single, twofold;

static void observe_program(const gumbel_program *program) {
    plain = single = twofold = (seen_run){0};
    run_program(program, 2, NULL, &plain);
    run_program(program, 1, see, &single);
    run_program(program, 2, see, &twofold);
    expect_run(program->program, &single.of[0]);
    expect_run(program->program, &twofold.of[0]);
    assert_int_equal(single.of[1].count, 0);
    expect_same_of_both(&twofold);
    expect_same_inputs(&single, &twofold);
    expect_same_tokens(&plain, &single);
    expect_same_tokens(&plain, &twofold);
}

static bool has_rotation(const gb_program *program) {
    for (uint32_t i = 0; i < program->node_count; i++) {
        const gb_node *node = &program->nodes[i];
        if (node->op == GB_OP_LINEAR)
            return gb_node_int(node, GB_ATTRIBUTE_ROTATION) != 0;
    }
    return false;
}

static double square_sum(const float *values, const float *others, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ((double)values[i] - others[i]) * ((double)values[i] - others[i]);
    return sum;
}

/* Those of the first product are the model's own but for the rounding of its embedding. */
static void expect_near(const seen_products *exact, const seen_products *rounded) {
    static const float zeros[MOST_KEPT];
    assert_int_equal(exact->first_count, rounded->first_count);
    assert_true(square_sum(exact->first, zeros, exact->first_count) > 0);
    assert_true(square_sum(exact->first, rounded->first, exact->first_count) <
                0.01 * square_sum(exact->first, zeros, exact->first_count));
}

static void observe_model(const char *model) {
    static seen_products exact;
    gumbel_program *program = export_model(model, "none");
    observe_program(program);
    gumbel_program_close(program);
    exact = single.of[0];
    program = export_model(model, "int4");
    assert_true(has_rotation(program->program));
    observe_program(program);
    expect_near(&exact, &single.of[0]);
    gumbel_program_close(program);
}

static void dense_products_are_observed(void **state) {
    (void)state;
    observe_model("gemma4-tiny");
}

static void products_of_experts_are_observed(void **state) {
    (void)state;
    observe_model("qwen3_5-moe-tiny");
}

static void other_backends_refuse(void **state) {
    (void)state;
    gumbel_error error;
    gumbel_engine *engine;
    gumbel_program *program = export_model("gemma4-tiny", "none");
    gumbel_engine_options options = {.size = sizeof options, .observe = see};
    options.backend = "cuda";
    assert_fails(gumbel_engine_create(program, &options, &engine, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "backend cuda does not report the inputs of products (observe); use the cpu");
    options.backend = "mlx";
    assert_fails(gumbel_engine_create(program, &options, &engine, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "backend mlx does not report");
    gumbel_program_close(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_products_are_observed),
        cmocka_unit_test(products_of_experts_are_observed),
        cmocka_unit_test(other_backends_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
