/* SPDX-License-Identifier: Apache-2.0
 *
 * Forced tokens: a drawn answer that is forced has the log-probabilities that it was drawn with, alone and
 * among others, and what is drawn behind them is what follows the same tokens as a prompt.
 */
#include "support/assertions.h"
#include "support/backend.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PROMPT = 6, TOKENS = 24, TOP = 3, OTHERS = 5 };

static gumbel_error error;
static gumbel_program *program;
static gumbel_engine *engine;
static const int32_t prompt[PROMPT] = {7, 21, 3, 40, 12, 9};
static const gumbel_sampling warm = {.size = sizeof warm, .temperature = 1.2f, .top_p = 1};

typedef struct answer {
    int32_t tokens[TOKENS], top[TOKENS][TOP];
    float logprobs[TOKENS], top_logprobs[TOKENS][TOP];
    uint32_t count;
    gumbel_finish finish;
} answer;

static int set_up(void **state) {
    (void)state;
    char checkpoint[512];
    const char *path = temporary_path("forced.gumbel");
    snprintf(checkpoint, sizeof checkpoint, "%s/gemma4-tiny", test_models_folder);
    assert_ok(gumbel_export(checkpoint, path, NULL, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    const gumbel_engine_options options = {
        .size = sizeof options, .slots = 8, .backend = GUMBEL_TEST_BACKEND};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    return 0;
}

static gumbel_generate_options options_of(const int32_t *forced, size_t count) {
    return (gumbel_generate_options){.size = sizeof(gumbel_generate_options),
                                     .sampling = &warm,
                                     .max_new_tokens = TOKENS,
                                     .ignore_stop = true,
                                     .wants_logprob = true,
                                     .top_logprobs = TOP,
                                     .forced_tokens = forced,
                                     .forced_count = count};
}

static answer generate(const int32_t *tokens, size_t count, uint64_t seed,
                       const gumbel_generate_options *options) {
    answer a = {0};
    gumbel_session *session;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, seed);
    assert_ok(gumbel_generate(session, tokens, count, options, &error), &error);
    for (gumbel_generated next = {.size = sizeof next}; a.finish == GUMBEL_FINISH_NONE; a.count++) {
        assert_ok(gumbel_next(session, &next, &error), &error);
        a.tokens[a.count] = next.token;
        a.logprobs[a.count] = next.logprob;
        memcpy(a.top[a.count], next.top_tokens, sizeof a.top[0]);
        memcpy(a.top_logprobs[a.count], next.top_token_logprob, sizeof a.top_logprobs[0]);
        a.finish = next.finish;
    }
    gumbel_session_destroy(session);
    return a;
}

static answer drawn(uint64_t seed) {
    const gumbel_generate_options options = options_of(NULL, 0);
    return generate(prompt, PROMPT, seed, &options);
}

static void check_equal(const answer *a, const answer *b) {
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->tokens, b->tokens, sizeof a->tokens);
    assert_memory_equal(a->logprobs, b->logprobs, sizeof a->logprobs);
    assert_memory_equal(a->top, b->top, sizeof a->top);
    assert_memory_equal(a->top_logprobs, b->top_logprobs, sizeof a->top_logprobs);
}

static void a_forced_answer_has_the_drawn_ones_scores(void **state) {
    (void)state;
    const answer free_one = drawn(5);
    const gumbel_generate_options options = options_of(free_one.tokens, TOKENS);
    const answer forced = generate(prompt, PROMPT, 99, &options);
    check_equal(&free_one, &forced);
    assert_int_equal(forced.finish, GUMBEL_FINISH_LENGTH);
}

/* Draws go on with the seed of their own number. */
static void what_follows_is_drawn(void **state) {
    (void)state;
    const answer free_one = drawn(5);
    const gumbel_generate_options options = options_of(free_one.tokens, TOKENS / 2);
    const answer half = generate(prompt, PROMPT, 5, &options);
    check_equal(&free_one, &half);
}

static void handle_event(void *user, const gumbel_event *event) {
    answer *a = user;
    if (event->type == GUMBEL_EVENT_TOKEN) {
        a->tokens[a->count] = event->token;
        a->logprobs[a->count] = event->logprob;
        memcpy(a->top[a->count], event->top_tokens, sizeof a->top[0]);
        memcpy(a->top_logprobs[a->count++], event->top_token_logprob, sizeof a->top_logprobs[0]);
    }
    a->finish = event->finish;
}

static void submit(gumbel_scheduler *scheduler, uint64_t seed, const answer *forced, uint32_t least,
                   answer *a) {
    const gumbel_submission submission = {.size = sizeof submission,
                                          .tokens = prompt,
                                          .token_count = PROMPT,
                                          .callback = handle_event,
                                          .user = a,
                                          .sampling = &warm,
                                          .has_seed = true,
                                          .seed = seed,
                                          .ignore_stop = true,
                                          .wants_logprob = true,
                                          .top_logprobs = TOP,
                                          .max_new_tokens = TOKENS,
                                          .min_new_tokens = least,
                                          .forced_tokens = forced ? forced->tokens : NULL,
                                          .forced_count = forced ? TOKENS : 0};
    *a = (answer){0};
    assert_ok(gumbel_scheduler_submit(scheduler, &submission, NULL, &error), &error);
}

static void among_others_they_are_the_same(void **state) {
    (void)state;
    gumbel_scheduler *scheduler;
    const answer free_one = drawn(5);
    answer forced, others[OTHERS];
    assert_ok(gumbel_scheduler_create(engine, NULL, &scheduler, &error), &error);
    for (uint32_t i = 0; i < OTHERS; i++)
        submit(scheduler, 5 + i, NULL, 0, &others[i]);
    submit(scheduler, 1, &free_one, 0, &forced);
    gumbel_scheduler_drain(scheduler);
    gumbel_scheduler_destroy(scheduler);
    check_equal(&free_one, &forced);
    check_equal(&free_one, &others[0]);
}

/* A stop token among them is one like the others; one that is drawn behind them ends the answer. */
static void none_of_them_ends_the_answer(void **state) {
    (void)state;
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(program, &info, &error), &error);
    const int32_t stop = info.stop_tokens[0];
    const int32_t tokens[] = {stop, 5, stop};
    gumbel_generate_options options = options_of(tokens, 3);
    options.ignore_stop = false;
    options.max_new_tokens = 3;
    const answer a = generate(prompt, PROMPT, 1, &options);
    assert_int_equal(a.count, 3);
    assert_int_equal(a.finish, GUMBEL_FINISH_LENGTH);
    assert_memory_equal(a.tokens, tokens, sizeof tokens);
}

/* Nor does a ban of stop tokens, which holds for those that are drawn, keep one from being forced. */
static void bans_are_for_drawn_tokens(void **state) {
    (void)state;
    gumbel_program_info info = {.size = sizeof info};
    gumbel_scheduler *scheduler;
    answer forced = {0}, a;
    assert_ok(gumbel_program_get_info(program, &info, &error), &error);
    for (uint32_t i = 0; i < TOKENS; i++)
        forced.tokens[i] = i % 3 == 0 ? info.stop_tokens[0] : 5;
    assert_ok(gumbel_scheduler_create(engine, NULL, &scheduler, &error), &error);
    submit(scheduler, 1, &forced, 4, &a);
    gumbel_scheduler_drain(scheduler);
    gumbel_scheduler_destroy(scheduler);
    assert_int_equal(a.count, TOKENS);
    assert_memory_equal(a.tokens, forced.tokens, sizeof a.tokens);
}

static void wrong_tokens_are_named(void **state) {
    (void)state;
    gumbel_session *session;
    const int32_t tokens[] = {1, -1};
    const gumbel_generate_options options = options_of(tokens, 2);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_fails(gumbel_generate(session, prompt, PROMPT, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "forced_tokens: number 1 is -1");
    gumbel_session_destroy(session);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forced_answer_has_the_drawn_ones_scores),
        cmocka_unit_test(what_follows_is_drawn),
        cmocka_unit_test(among_others_they_are_the_same),
        cmocka_unit_test(none_of_them_ends_the_answer),
        cmocka_unit_test(bans_are_for_drawn_tokens),
        cmocka_unit_test(wrong_tokens_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
