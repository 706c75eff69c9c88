/* SPDX-License-Identifier: Apache-2.0
 *
 * A row's error is its request's: what the other rows of the step get, and how their sessions go on.
 */
#include "support/backend.h"
#include "support/poison.h"
#include "support/programs/random_program.h"
#include "support/test_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ROWS = 64, VICTIM = 17, POISON = 3, PROMPT = 5, STEPS = 8, POISONED_STEP = 4 };

static gumbel_error error;

/* The tokens of all rows and steps; -1 where a row failed. */
typedef struct answers {
    int32_t tokens[STEPS][MOST_ROWS];
} answers;

/* The victim among them. */
static uint32_t rows(void) {
    return (uint32_t)shortened(MOST_ROWS, VICTIM + 3);
}

/* Two after the poisoned one at least. */
static int steps(void) {
    return shortened(STEPS, POISONED_STEP + 3);
}

static gumbel_engine *make_engine(const gumbel_program *program) {
    gumbel_engine *engine;
    gumbel_engine_options options = {.size = sizeof options,
                                     .slots = (int)rows(),
                                     .threads = 2,
                                     .max_context = 32,
                                     .step_tokens = rows() * PROMPT,
                                     .backend = GUMBEL_TEST_BACKEND};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    return engine;
}

static void make_sessions(gumbel_engine *engine, gumbel_session *sessions[MOST_ROWS]) {
    for (uint32_t i = 0; i < rows(); i++) {
        assert_ok(gumbel_session_create(engine, &sessions[i], &error), &error);
        gumbel_session_set_seed(sessions[i], 100 * i);
    }
}

/* The first step runs prompts, the others what was drawn; the victim is given the poison in one of them, and
 * ends there. */
static gumbel_status run_step(gumbel_engine *engine, gumbel_session *sessions[MOST_ROWS], int at,
                              bool poisoned, gumbel_result results[MOST_ROWS], answers *given) {
    static int32_t tokens[MOST_ROWS][PROMPT];
    gumbel_request requests[MOST_ROWS];
    size_t count = 0;
    for (uint32_t i = 0; i < rows(); i++) {
        if (i == VICTIM && poisoned && at > POISONED_STEP)
            continue;
        if (at == 0)
            random_tokens(i, POISON, tokens[i], PROMPT); /* all below it */
        else
            tokens[i][0] = given->tokens[at - 1][i] == POISON ? 4 : given->tokens[at - 1][i];
        if (i == VICTIM && poisoned && at == POISONED_STEP)
            tokens[i][0] = POISON;
        results[i] = (gumbel_result){.size = sizeof *results, .token = -7};
        requests[count++] = (gumbel_request){.size = sizeof *requests,
                                             .session = sessions[i],
                                             .tokens = tokens[i],
                                             .token_count = at == 0 ? PROMPT : 1,
                                             .result = &results[i]};
    }
    const gumbel_status status = gumbel_step(engine, requests, count, &error);
    for (uint32_t i = 0; i < rows(); i++)
        given->tokens[at][i] = results[i].token;
    return status;
}

static void assert_row_failed(const gumbel_result results[MOST_ROWS]) {
    assert_non_null(strstr(error.message, "request 17: the logits have a NaN"));
    for (uint32_t i = 0; i < rows(); i++) {
        assert_int_equal(results[i].status, i == VICTIM ? GUMBEL_ERROR_NUMERIC : GUMBEL_OK);
        assert_true((results[i].problem != NULL) == (i == VICTIM));
        assert_true((results[i].token == -1) == (i == VICTIM));
    }
}

static void run_all(const gumbel_program *program, bool poisoned, answers *given) {
    gumbel_engine *engine = make_engine(program);
    gumbel_session *sessions[MOST_ROWS];
    gumbel_result results[MOST_ROWS];
    make_sessions(engine, sessions);
    for (int at = 0; at < steps(); at++) {
        const gumbel_status status = run_step(engine, sessions, at, poisoned, results, given);
        if (!poisoned || at != POISONED_STEP) {
            assert_ok(status, &error);
            continue;
        }
        assert_int_equal(status, GUMBEL_ERROR_NUMERIC);
        assert_row_failed(results);
        assert_int_equal(gumbel_session_position(sessions[VICTIM], NULL), PROMPT + POISONED_STEP);
    }
    gumbel_engine_destroy(engine);
}

static void others_stand(const char *config) {
    static answers clean, poisoned;
    gumbel_program *program = open_poisoned_program(config, POISON);
    run_all(program, false, &clean);
    run_all(program, true, &poisoned);
    for (int at = 0; at < steps(); at++)
        for (uint32_t i = 0; i < rows(); i++)
            if (i != VICTIM || at < POISONED_STEP)
                assert_int_equal(poisoned.tokens[at][i], clean.tokens[at][i]);
    gumbel_program_close(program);
}

static void others_stand_with_caches(void **state) {
    (void)state;
    others_stand("small_untied.json");
}

static void others_stand_with_recurrent_states(void **state) {
    (void)state;
    others_stand("qwen.json");
}

/* The tokens before a failed one can be gone back to, and generation says which row it was. */
static void a_failed_session_goes_back(void **state) {
    (void)state;
    gumbel_program *program = open_poisoned_program("qwen.json", POISON);
    gumbel_engine *engine = make_engine(program);
    gumbel_session *session;
    int32_t prompt[PROMPT];
    random_tokens(1, POISON, prompt, PROMPT);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, 9);
    gumbel_generated first = {.size = sizeof first}, again = {.size = sizeof again};
    assert_ok(gumbel_generate(session, prompt, PROMPT, NULL, &error), &error);
    assert_ok(gumbel_next(session, &first, &error), &error);
    assert_ok(gumbel_generate(session, &(int32_t){POISON}, 1, NULL, &error), &error);
    assert_fails(gumbel_next(session, &again, &error), GUMBEL_ERROR_NUMERIC, &error, "NaN");
    assert_int_equal(gumbel_session_position(session, NULL), PROMPT + 2);
    assert_ok(gumbel_session_rewind(session, PROMPT - 1, &error), &error);
    gumbel_session_set_seed(session, 9);
    assert_ok(gumbel_generate(session, prompt + PROMPT - 1, 1, NULL, &error), &error);
    assert_ok(gumbel_next(session, &again, &error), &error);
    assert_int_equal(again.token, first.token);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_stand_with_caches),
        cmocka_unit_test(others_stand_with_recurrent_states),
        cmocka_unit_test(a_failed_session_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
