/* SPDX-License-Identifier: Apache-2.0
 *
 * Many tokens, in sessions that come, fork, go back and go: the device's memory stays what it was after the
 * first of them.
 */
#include "device_memory.h"
#include "support/assertions.h"
#include "support/programs/random_program.h"
#include "support/test_arguments.h"

#include <cmocka.h>

#if defined(GUMBEL_CUDA_RACECHECK) /* for tools that take long for each token, and memory of their own */
enum { TOKENS = 240, COMPARES_MEMORY = false };
#elif defined(GUMBEL_EMULATED_DEVICE)
enum { TOKENS = 400, COMPARES_MEMORY = true };
#else
enum { TOKENS = 20000, COMPARES_MEMORY = true };
#endif
enum { VOCAB = 160, PROMPT = 9, ANSWER = 15, SLOTS = 3, ROUNDS_ALIKE = 4, ENGINES = 4 };

static gumbel_error error;
static int32_t prompt[PROMPT];

static size_t free_bytes(void) {
    size_t left, all;
    assert_cuda(cudaMemGetInfo(&left, &all));
    return left;
}

static gumbel_session *new_session(gumbel_engine *engine, uint64_t seed) {
    gumbel_session *session;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, seed);
    return session;
}

/* Generates after `count` tokens of the prompt; returns how many tokens came. */
static int generate(gumbel_session *session, size_t count, int most) {
    const gumbel_sampling sampling = {.size = sizeof sampling, .temperature = 1, .top_p = 1};
    const gumbel_generate_options options = {
        .size = sizeof options, .sampling = &sampling, .ignore_stop = true, .snapshot = true};
    assert_ok(gumbel_generate(session, prompt, count, &options, &error), &error);
    for (int i = 0; i < most; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(session, &next, &error), &error);
    }
    return most;
}

/* Sessions that answer, of which one is a copy of another and one goes back. Returns how many tokens came. */
static int run_round(gumbel_engine *engine, int round) {
    gumbel_session *first = new_session(engine, (uint64_t)round), *second = new_session(engine, 5), *copy;
    int tokens = generate(first, PROMPT, ANSWER) + generate(second, 3, ANSWER);
    assert_ok(gumbel_session_fork(first, &copy, &error), &error);
    tokens += generate(copy, 2, ANSWER);
    if (round % 2 == 0)
        gumbel_session_destroy(second);
    assert_ok(gumbel_session_rewind(first, PROMPT, &error), &error);
    tokens += generate(first, 4, ANSWER);
    gumbel_session_destroy(first);
    if (round % 2 != 0)
        gumbel_session_destroy(second);
    gumbel_session_destroy(copy);
    return tokens;
}

static void memory_stays_what_it_was(void **state) {
    gumbel_engine *engine;
    const gumbel_engine_options options = {
        .size = sizeof options, .backend = "cuda", .slots = SLOTS, .snapshots = true};
    gumbel_program *program = open_random_program(*state, false);
    random_tokens(1, VOCAB, prompt, PROMPT);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    size_t left = 0;
    int tokens = 0;
    for (int round = 0; tokens < shortened(TOKENS, 60); round++) {
        tokens += run_round(engine, round);
        if (round == ROUNDS_ALIKE)
            left = free_bytes();
        if (COMPARES_MEMORY && round > ROUNDS_ALIKE)
            assert_int_equal(free_bytes(), left);
    }
    print_message("%d tokens\n", tokens);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

static void engines_give_all_back(void **state) {
    gumbel_program *program = open_random_program(*state, false);
    size_t left = 0;
    for (int round = 0; round < shortened(ENGINES, 1); round++) {
        gumbel_engine *engine;
        const gumbel_engine_options options = {
            .size = sizeof options, .backend = "cuda", .slots = SLOTS, .snapshots = true};
        assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
        run_round(engine, round);
        gumbel_engine_destroy(engine);
        if (round == 1) /* the first one loads the kernels */
            left = free_bytes();
        if (COMPARES_MEMORY && round > 1)
            assert_true(free_bytes() >= left); /* the driver gives back some of its own, too */
    }
    gumbel_program_close(program);
}

int main(int argument_count, char **arguments) {
    static const char *const configs[] = {"small.json", "qwen.json"};
    int failed = 0;
    need_device();
    read_test_arguments(argument_count, arguments);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        void *config = (void *)(uintptr_t)configs[i];
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(memory_stays_what_it_was, config),
            cmocka_unit_test_prestate(engines_give_all_back, config),
        };
        print_message("%s\n", configs[i]);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
