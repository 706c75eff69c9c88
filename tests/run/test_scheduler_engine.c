/* SPDX-License-Identifier: Apache-2.0
 *
 * A scheduler on an engine's sessions: several conversations at once, their next turns from kept states, and
 * answers that wait in host memory, each with the tokens and log-probabilities of a fresh session alone.
 */
#include "run/handles.h"
#include "support/backend.h"
#include "support/programs/random_program.h"
#include "support/test_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { VOCAB = 160, MOST_USERS = 3, TURNS = 2, ANSWER = 6, FIRST = 66, MORE = 9, CONTEXT = 128 };

static gumbel_error error;
static const char heads[] = "qwen_heads.json"; /* as wide as the delta net's kernels for blocks want them */

typedef struct turn {
    int32_t tokens[ANSWER];
    float logprobs[ANSWER];
    uint32_t count;
    gumbel_status status;
    gumbel_usage usage;
} turn;

static const gumbel_sampling sampling = {
    .size = sizeof sampling, .temperature = 1.2f, .top_p = 0.95f, .repetition_penalty = 1.1f};

static gumbel_engine *make_engine(const gumbel_program *program, int slots) {
    gumbel_engine *engine;
    const gumbel_engine_options options = {
        .size = sizeof options, .slots = slots, .threads = 2, .backend = GUMBEL_TEST_BACKEND};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    return engine;
}

static void handle_event(void *user, const gumbel_event *event) {
    turn *to = user;
    if (event->type == GUMBEL_EVENT_TOKEN) {
        to->tokens[to->count] = event->token;
        to->logprobs[to->count++] = event->logprob;
        return;
    }
    to->status = event->status;
    to->usage = *event->usage;
}

static void ask(gumbel_scheduler *scheduler, const int32_t *tokens, uint32_t count, uint64_t seed, turn *to) {
    const gumbel_submission submission = {.size = sizeof submission,
                                          .tokens = tokens,
                                          .token_count = count,
                                          .callback = handle_event,
                                          .user = to,
                                          .sampling = &sampling,
                                          .has_seed = true,
                                          .seed = seed,
                                          .wants_logprob = true,
                                          .ignore_stop = true,
                                          .max_new_tokens = ANSWER};
    assert_ok(gumbel_scheduler_submit(scheduler, &submission, NULL, &error), &error);
}

/* Also until no answer is run again: an emulated device is for one thread at a time. */
static void wait_until_idle(gumbel_scheduler *scheduler, uint64_t ended) {
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    for (;;) {
        assert_ok(gumbel_scheduler_get_stats(scheduler, &stats, &error), &error);
        if (stats.finished + stats.failed >= ended && stats.reruns_due == 0)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    assert_int_equal(stats.free_slots + stats.kept_slots, stats.slots);
}

static void assert_as_alone(gumbel_session *session, const int32_t *tokens, uint32_t count, uint64_t seed,
                            const turn *found) {
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &sampling,
                                             .max_new_tokens = ANSWER,
                                             .wants_logprob = true,
                                             .ignore_stop = true};
    assert_int_equal(found->status, GUMBEL_OK);
    assert_int_equal(found->count, ANSWER);
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, seed);
    assert_ok(gumbel_generate(session, tokens, count, &options, &error), &error);
    for (int i = 0; i < ANSWER; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(session, &next, &error), &error);
        if (strcmp(GUMBEL_TEST_BACKEND, "mlx") == 0)
            continue; /* its sums depend on what else a step has */
        assert_int_equal(found->tokens[i], next.token);
        assert_memory_equal(&found->logprobs[i], &next.logprob, sizeof next.logprob);
    }
}

/* What a second turn need not run on this backend: all but the token drawn last. */
static uint32_t kept_tokens(void) {
    return strcmp(GUMBEL_TEST_BACKEND, "mlx") == 0 ? 0 : FIRST + ANSWER - 1;
}

enum { BLOCK = 64 };

/* The same, or what fills blocks, where the backend computes the program in such. */
static bool is_kept(const char *config, uint32_t cached) {
    const bool may_have_blocks = strcmp(GUMBEL_TEST_BACKEND, "cuda") == 0 && strcmp(config, heads) == 0;
    return cached == kept_tokens() || (may_have_blocks && cached == BLOCK);
}

static uint32_t users(void) {
    return (uint32_t)shortened(MOST_USERS, 2);
}

static void converse(const char *config, int slots, gumbel_scheduler_options options) {
    gumbel_program *program = open_random_program(config, false);
    gumbel_engine *engine = make_engine(program, slots), *other = make_engine(program, 1);
    gumbel_scheduler *scheduler;
    gumbel_session *session;
    int32_t tokens[MOST_USERS][CONTEXT];
    uint32_t count = FIRST;
    options.size = sizeof options;
    assert_ok(gumbel_scheduler_create(engine, &options, &scheduler, &error), &error);
    assert_ok(gumbel_session_create(other, &session, &error), &error);
    for (uint32_t i = 0; i < users(); i++)
        random_tokens(50 + i, VOCAB, tokens[i], FIRST);
    for (uint32_t t = 0; t < TURNS; t++) {
        turn turns[MOST_USERS] = {{.count = 0}};
        for (uint32_t i = 0; i < users(); i++)
            ask(scheduler, tokens[i], count, 10 * t + i, &turns[i]);
        wait_until_idle(scheduler, users() * (t + 1));
        for (uint32_t i = 0; i < users(); i++) {
            assert_as_alone(session, tokens[i], count, 10 * t + i, &turns[i]);
            const uint32_t cached = turns[i].usage.cached_tokens;
            assert_true(cached <= (t == 0 ? 0 : kept_tokens()));
            if (slots > (int)users())
                assert_true(t == 0 || is_kept(config, cached));
            memcpy(tokens[i] + count, turns[i].tokens, sizeof turns[i].tokens);
            random_tokens(70 + i, VOCAB, tokens[i] + count + ANSWER, MORE);
        }
        count += ANSWER + MORE;
    }
    gumbel_scheduler_destroy(scheduler);
    gumbel_engine_destroy(engine);
    gumbel_engine_destroy(other);
    gumbel_program_close(program);
}

static void conversations_with_caches(void **state) {
    (void)state;
    converse("small.json", (int)users() + 1, (gumbel_scheduler_options){0});
}

static void conversations_with_recurrent_states(void **state) {
    (void)state;
    converse("qwen.json", (int)users() + 1, (gumbel_scheduler_options){0});
}

static void conversations_in_blocks(void **state) {
    (void)state;
    converse(heads, (int)users() + 1, (gumbel_scheduler_options){0});
}

static void conversations_in_blocks_on_one_slot(void **state) {
    (void)state;
    if (is_short_run())
        skip(); /* the same on more slots is shorter */
    converse(heads, 1, (gumbel_scheduler_options){0});
}

/* One slot for all: kept states go to host memory and come back. */
static void conversations_on_one_slot(void **state) {
    (void)state;
    converse(is_short_run() ? "small.json" : "qwen.json", 1, (gumbel_scheduler_options){0});
}

/* Room for hardly more than one: the youngest answers wait in host memory. */
static void conversations_in_little_memory(void **state) {
    (void)state;
    if (is_short_run())
        skip(); /* on one slot states go to host memory, too */
    gumbel_program *program = open_random_program("small.json", false);
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(program, &info, &error), &error);
    gumbel_program_close(program);
    converse("small.json", (int)users(),
             (gumbel_scheduler_options){.state_bytes = info.session_state_bytes, .answer_reserve = 1});
}

/* The second turn of a conversation of 4,000 tokens runs what is new: the token drawn last and the message.
 */
static void a_long_conversation_goes_on(void **state) {
    enum { LONG = 4000, LONG_CONTEXT = LONG + ANSWER + MORE };
    static const char *const configs[] = {"small_long.json", "qwen_long.json"};
    static int32_t tokens[LONG_CONTEXT];
    (void)state;
    if (strcmp(GUMBEL_TEST_BACKEND, "cpu") != 0)
        skip(); /* an emulated device takes hours, and others run the last answer again */
    for (int i = 0; i < 2; i++) {
        gumbel_program *program = open_random_program(configs[i], false);
        gumbel_engine *engine = make_engine(program, 2), *other = make_engine(program, 1);
        gumbel_scheduler *scheduler;
        gumbel_session *session;
        gumbel_scheduler_stats first = {.size = sizeof first}, second = first;
        turn turns[2] = {{.count = 0}};
        assert_ok(gumbel_scheduler_create(engine, NULL, &scheduler, &error), &error);
        assert_ok(gumbel_session_create(other, &session, &error), &error);
        random_tokens(1, VOCAB, tokens, LONG);
        ask(scheduler, tokens, LONG, 1, &turns[0]);
        wait_until_idle(scheduler, 1);
        assert_ok(gumbel_scheduler_get_stats(scheduler, &first, &error), &error);
        memcpy(tokens + LONG, turns[0].tokens, sizeof turns[0].tokens);
        random_tokens(2, VOCAB, tokens + LONG + ANSWER, MORE);
        ask(scheduler, tokens, LONG_CONTEXT, 2, &turns[1]);
        wait_until_idle(scheduler, 2);
        assert_ok(gumbel_scheduler_get_stats(scheduler, &second, &error), &error);
        assert_int_equal(turns[1].usage.cached_tokens, LONG + ANSWER - 1);
        assert_int_equal(second.prompt_tokens - first.prompt_tokens, 1 + MORE);
        assert_as_alone(session, tokens, LONG_CONTEXT, 2, &turns[1]);
        gumbel_scheduler_destroy(scheduler);
        gumbel_engine_destroy(engine);
        gumbel_engine_destroy(other);
        gumbel_program_close(program);
    }
}

/* A token that would come first is a stop token: it comes after so many others at the earliest. */
static void stop_tokens_wait_for_min_new_tokens(void **state) {
    (void)state;
    enum { LEAST = 3 };
    gumbel_program *program = open_random_program("small.json", false);
    gumbel_engine *engine = make_engine(program, 1);
    gumbel_scheduler *scheduler;
    int32_t tokens[FIRST];
    turn plain = {.count = 0}, stopped = {.count = 0}, waiting = {.count = 0};
    random_tokens(1, VOCAB, tokens, FIRST);
    assert_ok(gumbel_scheduler_create(engine, NULL, &scheduler, &error), &error);
    ask(scheduler, tokens, FIRST, 7, &plain);
    wait_until_idle(scheduler, 1);
    gumbel_submission submission = {.size = sizeof submission,
                                    .tokens = tokens,
                                    .token_count = FIRST,
                                    .callback = handle_event,
                                    .user = &stopped,
                                    .sampling = &sampling,
                                    .has_seed = true,
                                    .seed = 7,
                                    .stop_tokens = plain.tokens,
                                    .stop_token_count = 1,
                                    .max_new_tokens = ANSWER};
    assert_ok(gumbel_scheduler_submit(scheduler, &submission, NULL, &error), &error);
    submission.user = &waiting;
    submission.min_new_tokens = LEAST;
    assert_ok(gumbel_scheduler_submit(scheduler, &submission, NULL, &error), &error);
    wait_until_idle(scheduler, 3);
    assert_int_equal(stopped.count, 1);
    assert_true(waiting.status == GUMBEL_OK && waiting.count >= LEAST);
    for (uint32_t i = 0; i < LEAST; i++)
        assert_int_not_equal(waiting.tokens[i], plain.tokens[0]);
    gumbel_scheduler_destroy(scheduler);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

static void engines_that_cannot_be_taken(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("small.json", false);
    gumbel_engine *engine = make_engine(program, 2);
    gumbel_session *session;
    gumbel_scheduler *scheduler;
    const gumbel_scheduler_options sizeless = {.max_queued = 1},
                                   little = {.size = sizeof little, .state_bytes = 1};
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_fails(gumbel_scheduler_create(engine, NULL, &scheduler, &error), GUMBEL_ERROR_LIMIT, &error,
                 "an engine without sessions");
    gumbel_session_destroy(session);
    assert_fails(gumbel_scheduler_create(engine, &sizeless, &scheduler, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "size");
    assert_fails(gumbel_scheduler_create(engine, &little, &scheduler, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "state_bytes 1: one sequence of 128 tokens");
    assert_ok(gumbel_session_create(engine, &session, &error), &error); /* all slots were given back */
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

static const gb_backend_functions *real;
static atomic_int failing_steps, failures;

static gumbel_status fail_step(gb_backend *backend, gb_batch *batch, gumbel_error *why) {
    if (atomic_fetch_sub(&failing_steps, 1) > 0)
        return gb_fail(why, GUMBEL_ERROR_BACKEND, "device 1: lost");
    return real->step(backend, batch, why);
}

static void count_failure(void *unused, const gumbel_error *why) {
    (void)unused, (void)why;
    atomic_fetch_add(&failures, 1);
}

/* One step that fails is its request's; after two of them, the second of which is nobody's, nothing goes on.
 */
static void a_lost_backend(void **state) {
    (void)state;
    gumbel_program *program = open_random_program(heads, false);
    gumbel_engine *engine = make_engine(program, 2);
    gumbel_scheduler *scheduler;
    const gumbel_scheduler_options options = {.size = sizeof options, .on_failure = count_failure};
    gb_backend_functions failing = *(real = engine->backend->functions);
    failing.step = fail_step;
    engine->backend->functions = &failing;
    assert_ok(gumbel_scheduler_create(engine, &options, &scheduler, &error), &error);
    const int32_t tokens[] = {3, 4, 5};
    turn to[3] = {{.count = 0}};
    for (int i = 0; i < 3; i++) {
        atomic_store(&failing_steps, i);
        ask(scheduler, tokens, 3, 1, &to[i]);
        wait_until_idle(scheduler, (uint64_t)i + 1);
        assert_int_equal(to[i].status, i == 0 ? GUMBEL_OK : GUMBEL_ERROR_BACKEND);
        assert_int_equal(failures, i == 2);
    }
    const gumbel_submission late = {
        .size = sizeof late, .tokens = tokens, .token_count = 3, .callback = handle_event, .user = &to[0]};
    assert_fails(gumbel_scheduler_submit(scheduler, &late, NULL, &error), GUMBEL_ERROR_BACKEND, &error,
                 "device 1: lost");
    gumbel_scheduler_destroy(scheduler);
    engine->backend->functions = real;
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversations_with_caches),    cmocka_unit_test(conversations_with_recurrent_states),
        cmocka_unit_test(conversations_on_one_slot),    cmocka_unit_test(conversations_in_little_memory),
        cmocka_unit_test(a_long_conversation_goes_on),  cmocka_unit_test(stop_tokens_wait_for_min_new_tokens),
        cmocka_unit_test(engines_that_cannot_be_taken), cmocka_unit_test(a_lost_backend),
        cmocka_unit_test(conversations_in_blocks),      cmocka_unit_test(conversations_in_blocks_on_one_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
