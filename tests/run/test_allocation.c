/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: a step allocates nothing; and when the n-th allocation of a whole life fails, for every n, there is
 * an error and no leak (AddressSanitizer's build looks for those).
 */
#include "base/memory.h"
#include "support/paths.h"
#include "support/programs/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 30 };

typedef struct allocations {
    size_t seen, failing; /* the failing-th (from 1) fails; 0: none */
} allocations;

static bool count_allocation(void *user, size_t bytes) {
    allocations *a = user;
    (void)bytes;
    return ++a->seen != a->failing;
}

/* Open, create, prefill, decode, fork, destroy. */
static gumbel_status whole_life(gumbel_error *error) {
    gumbel_program *program = NULL;
    gumbel_engine *engine = NULL;
    gumbel_session *session, *fork;
    gumbel_generated next = {.size = sizeof next};
    gumbel_engine_options options = {.size = sizeof options, .threads = 2, .slots = 2, .snapshots = true};
    int32_t prompt[PROMPT];
    random_tokens(1, VOCAB, prompt, PROMPT);
    gumbel_status status = gumbel_program_open(random_program_path(), &program, error);
    if (!status)
        status = gumbel_engine_create(program, &options, &engine, error);
    if (!status)
        status = gumbel_session_create(engine, &session, error);
    if (!status)
        status = gumbel_generate(session, prompt, PROMPT, NULL, error);
    for (int i = 0; i < 3 && !status; i++)
        status = gumbel_next(session, &next, error);
    if (!status)
        status = gumbel_session_fork(session, &fork, error);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    return status;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    gumbel_error error;
    allocations counter = {0, 0};
    gumbel_program_close(open_random_program("small.json", false));
    gb_set_allocation_hook(count_allocation, &counter);
    gumbel_status status = whole_life(&error);
    gb_set_allocation_hook(NULL, NULL);
    assert_ok(status, &error);
    size_t total = counter.seen;
    assert_true(total > 5);
    for (size_t n = 1; n <= total; n++) {
        counter = (allocations){0, n};
        gb_set_allocation_hook(count_allocation, &counter);
        status = whole_life(&error);
        gb_set_allocation_hook(NULL, NULL);
        assert_fails(status, GUMBEL_ERROR_MEMORY, &error, "memory");
    }
}

static void test_steps_allocate_nothing(void **state) {
    (void)state;
    gumbel_error error;
    gumbel_engine *engine;
    gumbel_session *session, *fork;
    gumbel_generated next = {.size = sizeof next};
    int32_t prompt[PROMPT];
    allocations counter = {0, 0};
    gumbel_program *program =
        export_random_program("small.json", (gumbel_export_options){.max_top_logprobs = 3});
    gumbel_engine_options options = {.size = sizeof options, .threads = 2, .slots = 2, .snapshots = true};
    const gumbel_bias bias[] = {{3, 1}, {4, -1}};
    gumbel_sampling sampling = {.size = sizeof sampling,
                                .temperature = 1,
                                .top_k = 50,
                                .top_p = 0.9f,
                                .min_p = 0.01f,
                                .presence_penalty = 1,
                                .frequency_penalty = 0.1f,
                                .repetition_penalty = 1.1f,
                                .bias = bias,
                                .bias_count = 2};
    gumbel_generate_options generate = {.size = sizeof generate,
                                        .sampling = &sampling,
                                        .snapshot = true,
                                        .ignore_stop = true,
                                        .wants_logprob = 1,
                                        .top_logprobs = 3};
    random_tokens(1, VOCAB, prompt, PROMPT);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    gb_set_allocation_hook(count_allocation, &counter);
    gumbel_status status = gumbel_session_create(engine, &session, &error);
    for (int turn = 0; turn < 2 && !status; turn++) {
        status = gumbel_generate(session, prompt, PROMPT, &generate, &error);
        for (int i = 0; i < 10 && !status; i++)
            status = gumbel_next(session, &next, &error);
    }
    if (!status)
        status = gumbel_session_rewind(session, 5, &error);
    if (!status)
        status = gumbel_session_fork(session, &fork, &error);
    gb_set_allocation_hook(NULL, NULL);
    assert_ok(status, &error);
    assert_int_equal(counter.seen, 0);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

/* A generation that gives text: gumbel_generate allocates, and leaves the session as it was where it cannot;
 * gumbel_next does not. */
static void test_text_is_allocated_first(void **state) {
    (void)state;
    gumbel_error error;
    gumbel_tokenizer *tokenizer;
    gumbel_engine *engine;
    gumbel_session *session;
    int32_t prompt[PROMPT];
    const char *const stops[] = {"not in the text", "\n\n"};
    gumbel_program *program = open_random_program("small.json", false);
    assert_ok(gumbel_export_tokenizer(bundled_model("gemma4-tiny"), &tokenizer, &error), &error);
    assert_ok(gumbel_engine_create(program, NULL, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, 1); /* of an answer without the stop strings */
    random_tokens(1, VOCAB, prompt, PROMPT);
    const gumbel_generate_options options = {.size = sizeof options,
                                             .ignore_stop = true,
                                             .tokenizer = tokenizer,
                                             .stop_strings = stops,
                                             .stop_string_count = 2};
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    size_t n = 0;
    while (status != GUMBEL_OK) {
        allocations counter = {0, ++n};
        gb_set_allocation_hook(count_allocation, &counter);
        status = gumbel_generate(session, prompt, PROMPT, &options, &error);
        gb_set_allocation_hook(NULL, NULL);
        if (status != GUMBEL_OK)
            assert_fails(status, GUMBEL_ERROR_MEMORY, &error, "memory");
    }
    assert_true(n > 5);
    allocations counter = {0, 0};
    gb_set_allocation_hook(count_allocation, &counter);
    gumbel_generated next = {.size = sizeof next};
    for (int i = 0; i < 60 && !status; i++)
        status = gumbel_next(session, &next, &error);
    gb_set_allocation_hook(NULL, NULL);
    assert_ok(status, &error);
    assert_int_equal(counter.seen, 0);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    gumbel_tokenizer_destroy(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_text_is_allocated_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
