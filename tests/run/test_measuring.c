/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine and a program tell about speed: costs of a step, times of its ops, the machine's limits.
 */
#include "support/programs/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, TOKENS = 6 };

typedef struct tally {
    size_t calls, samples, matrices;
    double seconds;
    bool is_negative;
} tally;

static void count(void *user, const char *op, const char *weight, double seconds) {
    tally *t = user;
    t->calls++;
    t->samples += strcmp(op, "sample") == 0;
    t->matrices += strcmp(op, "linear") == 0 && weight && weight[0] != '\0';
    t->seconds += seconds;
    t->is_negative = t->is_negative || seconds < 0;
}

static gumbel_program *program;
static gumbel_error error;

static int set_up(void **state) {
    (void)state;
    program = open_random_program("small.json", false);
    return 0;
}

static int close_program(void **state) {
    (void)state;
    gumbel_program_close(program);
    return 0;
}

static void ops_are_timed(void **state) {
    (void)state;
    tally t = {0};
    gumbel_engine_options options = {
        .size = sizeof options, .threads = 2, .profile = count, .profile_user = &t};
    gumbel_engine *engine;
    gumbel_session *session;
    int32_t tokens[TOKENS];
    random_tokens(6, VOCAB, tokens, TOKENS);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(gumbel_session_append(session, tokens, TOKENS - 1, &error), &error);
    tally prompt = t;
    assert_true(prompt.calls > 10);
    assert_int_equal(prompt.samples, 0); /* nobody wanted a token */
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = &tokens[TOKENS - 1],
                              .token_count = 1,
                              .result = &result};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    assert_int_equal(t.samples, 1);
    assert_true(t.matrices - prompt.matrices > prompt.matrices); /* the head, and what only rows need */
    assert_true(t.seconds > prompt.seconds && !t.is_negative);
    gumbel_engine_destroy(engine);
}

static void costs_are_told(void **state) {
    (void)state;
    gumbel_step_shape shape = {.size = sizeof shape, .sequences = 1, .tokens = 1, .wants_tokens = true};
    gumbel_step_costs costs = {.size = sizeof costs};
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(program, &info, &error), &error);
    assert_ok(gumbel_program_get_costs(program, &shape, &costs, &error), &error);
    assert_true(costs.weight_bytes > 0 && costs.weight_bytes < 2 * (double)info.weight_bytes);
    assert_true(costs.float_products > 0 && costs.state_bytes > 0);
    shape.sequences = 0;
    assert_int_equal(gumbel_program_get_costs(program, &shape, &costs, &error), GUMBEL_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "0 sequences"));
    shape = (gumbel_step_shape){.sequences = 1, .tokens = 1};
    assert_int_equal(gumbel_program_get_costs(program, &shape, &costs, &error), GUMBEL_ERROR_ARGUMENT);
}

static void limits_are_measured(void **state) {
    (void)state;
    gumbel_engine_options options = {.size = sizeof options, .threads = 1};
    gumbel_engine *engine;
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    gumbel_machine_limits limits = {.size = sizeof limits};
    assert_ok(gumbel_engine_measure_limits(engine, &limits, &error), &error);
    assert_true(limits.read_bytes_per_second > 0 && limits.int8_products_per_second > 0);
    limits.size = 0;
    assert_int_equal(gumbel_engine_measure_limits(engine, &limits, &error), GUMBEL_ERROR_ARGUMENT);
    gumbel_engine_destroy(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_are_timed),
        cmocka_unit_test(costs_are_told),
        cmocka_unit_test(limits_are_measured),
    };
    return cmocka_run_group_tests(tests, set_up, close_program);
}
