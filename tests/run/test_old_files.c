/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs and sessions that earlier versions wrote still load and give the same tokens; those of a format
 * that is too old say what to do.
 */
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PROMPT = 4, GENERATED = 24, SAVED_AFTER = 8 };

static const char program_path[] = GUMBEL_TEST_DATA "/run/old/version_3.gumbel";
static const char refused_path[] = GUMBEL_TEST_DATA "/run/old/first_release.gumbel";
static const char session_path[] = GUMBEL_TEST_DATA "/run/old/first_release.session";
static const int32_t prompt[PROMPT] = {2, 5, 9, 11};

static gumbel_error error;
static gumbel_program *program;
static gumbel_engine *engine;
static gumbel_session *session;

/* What the first version generated. NULL settings are those that the program recommends. */
static const gumbel_sampling greedy = {.size = sizeof greedy, .temperature = 0, .top_p = 1};
static const gumbel_sampling warm = {.size = sizeof warm, .temperature = 1.5f, .top_p = 0.8f};
static const struct {
    const gumbel_sampling *sampling;
    uint64_t seed;
    int32_t tokens[GENERATED];
} answers[] = {
    {NULL, 3, {58, 44, 57, 57, 57, 57, 57, 3, 8, 8, 50, 5, 38, 0, 0, 32, 29, 29, 29, 25, 9, 27, 32, 18}},
    {&greedy, 0, {58, 58, 58, 58, 58, 58, 58, 58, 58, 58, 58, 58,
                  58, 58, 58, 58, 58, 58, 58, 58, 58, 58, 58, 58}},
    {&warm, 12345678901, {32, 29, 61, 61, 25, 25, 45, 53, 18, 46, 28, 61,
                          2,  38, 56, 44, 45, 41, 41, 11, 3,  33, 37, 46}},
};

static int set_up(void **state) {
    (void)state;
    assert_ok(gumbel_program_open(program_path, &program, &error), &error);
    assert_ok(gumbel_engine_create(program, NULL, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    return 0;
}

static void assert_generates(const int32_t *expected, size_t count) {
    for (size_t i = 0; i < count; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(session, &next, &error), &error);
        assert_int_equal(next.token, expected[i]);
    }
}

static void test_program(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        gumbel_generate_options options = {
            .size = sizeof options, .sampling = answers[i].sampling, .ignore_stop = true};
        gumbel_session_reset(session);
        gumbel_session_set_seed(session, answers[i].seed);
        assert_ok(gumbel_generate(session, prompt, PROMPT, &options, &error), &error);
        assert_generates(answers[i].tokens, GENERATED);
    }
}

static void test_session(void **state) {
    (void)state;
    gumbel_generate_options options = {.size = sizeof options, .ignore_stop = true};
    assert_ok(gumbel_session_load(session, session_path, &error), &error);
    assert_int_equal(gumbel_session_position(session, NULL), PROMPT + SAVED_AFTER - 1);
    assert_ok(gumbel_generate(session, NULL, 0, &options, &error), &error);
    assert_generates(answers[0].tokens + SAVED_AFTER, GENERATED - SAVED_AFTER);
}

static void programs_without_chat_templates_are_refused(void **state) {
    (void)state;
    gumbel_program *refused;
    assert_fails(gumbel_program_open(refused_path, &refused, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "export it again");
    assert_null(refused);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_session, set_up, tear_down),
        cmocka_unit_test(programs_without_chat_templates_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
