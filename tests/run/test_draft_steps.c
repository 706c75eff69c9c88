/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step with a draft refuses, and what becomes of a session afterwards: going back within the draft,
 * rows without a token, stop tokens, the context's end, failed steps.
 */
#include "base/status.h"
#include "run/handles.h"
#include "support/backend.h"
#include "support/poison.h"
#include "support/programs/random_program.h"
#include "support/test_arguments.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 8, DRAFT = 4, CONTEXT = 32, POISON = 3 };

static gumbel_error error;
static int32_t prompt[PROMPT];
static const gumbel_bias no_stop = {1, -INFINITY};
static const gumbel_sampling greedy = {.size = sizeof greedy, .top_p = 1, .bias = &no_stop, .bias_count = 1};
static const gumbel_sampling warm = {
    .size = sizeof warm, .temperature = 1.5f, .top_p = 1, .bias = &no_stop, .bias_count = 1};

static gumbel_engine *make_engine(const gumbel_program *program, uint32_t drafts) {
    gumbel_engine *engine;
    gumbel_engine_options options = {.size = sizeof options,
                                     .backend = GUMBEL_TEST_BACKEND,
                                     .slots = 2,
                                     .threads = 1,
                                     .max_context = CONTEXT,
                                     .snapshots = true,
                                     .draft_tokens = drafts};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    return engine;
}

/* A session that has run the prompt and drawn a token. */
static gumbel_session *begin(gumbel_engine *engine, const gumbel_sampling *sampling, int32_t *token) {
    gumbel_session *session;
    gumbel_result result = {.size = sizeof result};
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, 5);
    const gumbel_request request = {.size = sizeof request,
                                    .session = session,
                                    .tokens = prompt,
                                    .token_count = PROMPT,
                                    .result = &result,
                                    .sampling = sampling};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    *token = result.token;
    return session;
}

/* Runs a token, and a draft behind it. */
static gumbel_status step(gumbel_session *session, const gumbel_sampling *sampling, int32_t token,
                          const int32_t *draft, size_t count, gumbel_result results[DRAFT + 1]) {
    for (size_t r = 0; r <= DRAFT; r++)
        results[r] = (gumbel_result){.size = sizeof *results, .token = -7};
    const gumbel_request request = {.size = sizeof request,
                                    .session = session,
                                    .tokens = &token,
                                    .token_count = 1,
                                    .result = results,
                                    .sampling = sampling,
                                    .draft = draft,
                                    .draft_count = count};
    return gumbel_step(session->engine, &request, 1, &error);
}

/* What a session draws by itself, as far as the tests ask. They share it: one token a step takes long on an
 * emulated device. */
static const int32_t *drawn_alone(const char *config, gumbel_engine *engine,
                                  const gumbel_sampling *sampling) {
    enum { MOST = 4 };
    static struct {
        const char *config;
        const gumbel_sampling *sampling;
        int32_t tokens[CONTEXT];
    } known[MOST];
    const size_t count = sampling == &warm ? 2 * DRAFT - 1 : CONTEXT - PROMPT; /* behind the first */
    size_t k = 0;
    for (; k < MOST && known[k].config; k++)
        if (strcmp(known[k].config, config) == 0 && known[k].sampling == sampling)
            return known[k].tokens;
    assert_true(k < MOST);
    gumbel_result results[DRAFT + 1];
    int32_t *tokens = known[k].tokens;
    gumbel_session *session = begin(engine, sampling, &tokens[0]);
    for (size_t i = 0; i < count; i++) {
        assert_ok(step(session, sampling, tokens[i], NULL, 0, results), &error);
        tokens[i + 1] = results[0].token;
    }
    gumbel_session_destroy(session);
    known[k].config = config;
    known[k].sampling = sampling;
    return tokens;
}

/* ---- Refusals ------------------------------------------------------------------------------------------ */

static void assert_refused(gumbel_session *session, const gumbel_request *request, gumbel_status status,
                           const char *part) {
    const uint32_t position = gumbel_session_position(session, NULL);
    assert_fails(gumbel_step(session->engine, request, 1, &error), status, &error, part);
    assert_int_equal(gumbel_session_position(session, NULL), position);
}

static void test_refusals(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("qwen.json", false);
    gumbel_engine *engine = make_engine(program, DRAFT);
    const int32_t guesses[DRAFT + 1] = {5, 6, 7, 8, 9}, unknown[2] = {5, VOCAB};
    int32_t token;
    gumbel_session *session = begin(engine, &greedy, &token), *fresh;
    assert_ok(gumbel_session_create(engine, &fresh, &error), &error);
    gumbel_result results[DRAFT + 1] = {{0}};
    for (size_t r = 0; r <= DRAFT; r++)
        results[r].size = sizeof *results;
    gumbel_request good = {.size = sizeof good,
                           .session = session,
                           .tokens = &token,
                           .token_count = 1,
                           .result = results,
                           .draft = guesses,
                           .draft_count = 2};
    gumbel_request bad = good;
    bad.draft_count = DRAFT + 1;
    assert_refused(session, &bad, GUMBEL_ERROR_ARGUMENT,
                   "request 0: 5 draft tokens: the engine takes at most 4 (option draft_tokens)");
    bad.draft_count = SIZE_MAX;
    assert_refused(session, &bad, GUMBEL_ERROR_ARGUMENT, "draft tokens: the engine takes at most 4");
    bad = good;
    bad.draft = NULL;
    assert_refused(session, &bad, GUMBEL_ERROR_ARGUMENT, "request 0: 2 draft tokens without a draft");
    bad = good;
    bad.result = NULL;
    assert_refused(session, &bad, GUMBEL_ERROR_ARGUMENT, "2 draft tokens without a result for each row");
    bad = good;
    bad.draft = unknown;
    assert_refused(session, &bad, GUMBEL_ERROR_ARGUMENT, "request 0: token 160: the vocabulary has ids");
    bad = good;
    bad.tokens = guesses;
    bad.token_count = 2;
    assert_refused(session, &bad, GUMBEL_ERROR_ARGUMENT, "one token that continues an answer");
    bad = good;
    bad.session = fresh;
    assert_refused(fresh, &bad, GUMBEL_ERROR_ARGUMENT, "one token that continues an answer");
    results[1].size = 8;
    assert_refused(session, &good, GUMBEL_ERROR_ARGUMENT, "request 0: result 1: size 8 differs");
    results[1].size = sizeof *results;
    assert_ok(gumbel_step(engine, &good, 1, &error), &error);
    gumbel_engine_destroy(engine);
    engine = make_engine(program, 0);
    session = begin(engine, &greedy, &token);
    good.session = session;
    assert_refused(session, &good, GUMBEL_ERROR_ARGUMENT, "the engine takes at most 0 (option draft_tokens)");
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

static void keep_notice(void *user, gumbel_log_level level, const char *message) {
    (void)level;
    snprintf(user, 256, "%s", message);
}

static void test_engines_without(void **state) {
    (void)state;
    gumbel_engine *engine;
    gumbel_engine_options options = {.size = sizeof options, .draft_tokens = 4};
    char notice[256] = "";
    options.log = keep_notice;
    options.log_user = notice;
    gumbel_engine_info info = {.size = sizeof info};
    gumbel_program *program = open_random_program("small.json", true);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_engine_get_info(engine, &info, &error), &error);
    assert_int_equal(info.draft_tokens, 0);
    assert_string_equal(notice, "no drafts: the program was exported with --logits and draws no tokens");
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    program = open_random_program("small.json", false);
    options.draft_tokens = 9;
    options.slots = 3;
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_engine_get_info(engine, &info, &error), &error);
    assert_int_equal(info.draft_tokens, 8);
    assert_int_equal(info.step_tokens, info.prefill_chunk + 3 * 9);
    assert_string_equal(notice,
                        "drafts of at most 8 tokens, not 9: the program's layers with a window keep no more");
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

/* ---- Sessions afterwards ------------------------------------------------------------------------------- */

static uint32_t tokens_run;
static const gb_backend_functions *own;
static gb_backend_functions watched;
static bool fails_next; /* a step that runs and fails all the same */

static gumbel_status watched_step(gb_backend *backend, gb_batch *batch, gumbel_error *told) {
    tokens_run += batch->token_count;
    gumbel_status status = own->step(backend, batch, told);
    if (fails_next)
        status = gb_fail(told, GUMBEL_ERROR_BACKEND, "device lost");
    fails_next = false;
    return status;
}

static void watch(gumbel_engine *engine) {
    own = engine->backend->functions;
    watched = *own;
    watched.step = watched_step;
    engine->backend->functions = &watched;
    tokens_run = 0;
}

/* From any place of an accepted draft, and on in another way and in the same one: nothing is run again. */
static void test_rewind_within(void **state) {
    gumbel_program *program = open_random_program(*state, false);
    gumbel_engine *engine = make_engine(program, DRAFT);
    int32_t token;
    gumbel_result results[DRAFT + 1];
    const int32_t *tokens = drawn_alone(*state, engine, &warm);
    for (uint32_t kept = 0; kept <= DRAFT; kept += is_short_run() ? DRAFT / 2 : 1) { /* none, some, all */
        gumbel_session *session = begin(engine, &warm, &token);
        assert_int_equal(token, tokens[0]);
        assert_ok(step(session, &warm, token, tokens + 1, DRAFT, results), &error);
        assert_int_equal(results[0].accepted, DRAFT);
        watch(engine);
        assert_ok(gumbel_session_rewind(session, PROMPT + 1 + kept, &error), &error);
        assert_int_equal(tokens_run, 0);
        gumbel_session_set_seed(session, 5 + 2 + kept); /* the prompt's and the first row's stand before */
        if (kept == DRAFT)
            assert_ok(step(session, &warm, results[DRAFT].token, NULL, 0, results), &error);
        else
            assert_ok(step(session, &warm, tokens[1 + kept], NULL, 0, results), &error);
        assert_int_equal(results[0].token, tokens[2 + kept]);
        assert_int_equal(tokens_run, 1);
        engine->backend->functions = own;
        gumbel_session_destroy(session);
    }
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

/* Behind the step's first token a recurrent state has to be run again, and is. */
static void test_rewind_behind(void **state) {
    gumbel_program *program = open_random_program(*state, false);
    gumbel_engine *engine = make_engine(program, DRAFT);
    int32_t token;
    gumbel_result results[DRAFT + 1];
    const int32_t *tokens = drawn_alone(*state, engine, &greedy);
    gumbel_session *session = begin(engine, &greedy, &token);
    assert_ok(step(session, &greedy, token, tokens + 1, DRAFT, results), &error);
    assert_ok(gumbel_session_rewind(session, PROMPT - 2, &error), &error);
    assert_ok(gumbel_session_append(session, prompt + PROMPT - 2, 2, &error), &error);
    assert_ok(step(session, &greedy, tokens[0], NULL, 0, results), &error);
    assert_int_equal(results[0].token, tokens[1]);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

/* A step that fails moves no session, also where the states lack tokens of the step before. */
static void test_failed_step(void **state) {
    gumbel_program *program = open_random_program(*state, false);
    gumbel_engine *engine = make_engine(program, DRAFT);
    int32_t token;
    gumbel_result results[DRAFT + 1];
    const int32_t *tokens = drawn_alone(*state, engine, &greedy);
    gumbel_session *session = begin(engine, &greedy, &token);
    assert_ok(step(session, &greedy, token, tokens + 1, DRAFT, results), &error);
    const uint32_t position = gumbel_session_position(session, NULL);
    watch(engine);
    fails_next = true;
    assert_int_equal(step(session, &greedy, tokens[1 + DRAFT], tokens + 2 + DRAFT, 2, results),
                     GUMBEL_ERROR_BACKEND);
    assert_int_equal(gumbel_session_position(session, NULL), position);
    assert_ok(step(session, &greedy, tokens[1 + DRAFT], tokens + 2 + DRAFT, 2, results), &error);
    assert_int_equal(results[0].accepted, 2);
    assert_int_equal(results[2].token, tokens[4 + DRAFT]);
    engine->backend->functions = own;
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

/* A chunk of a prompt that is longer than a ring's slack overwrites what its first tokens read: after a
 * failure it is run as if it never had been. */
static void test_failed_chunk(void **state) {
    enum { CHUNK = 12 };
    gumbel_program *program = open_random_program(*state, false);
    gumbel_engine *engine = make_engine(program, 0);
    gumbel_session *session, *other;
    gumbel_result found = {.size = sizeof found}, expected = {.size = sizeof expected};
    int32_t tokens[2 * CHUNK];
    random_tokens(11, 160, tokens, 2 * CHUNK);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(gumbel_session_create(engine, &other, &error), &error);
    gumbel_request request = {.size = sizeof request,
                              .tokens = tokens + CHUNK,
                              .token_count = CHUNK,
                              .sampling = &greedy,
                              .wants_logprob = true};
    assert_ok(gumbel_session_append(session, tokens, CHUNK, &error), &error);
    assert_ok(gumbel_session_append(other, tokens, CHUNK, &error), &error);
    request.session = other;
    request.result = &expected;
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    watch(engine);
    fails_next = true;
    request.session = session;
    request.result = &found;
    assert_int_equal(gumbel_step(engine, &request, 1, &error), GUMBEL_ERROR_BACKEND);
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    assert_int_equal(found.token, expected.token);
    assert_memory_equal(&found.logprob, &expected.logprob, sizeof found.logprob);
    engine->backend->functions = own;
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

/* The last position can be a draft's; one more does not fit. */
static void test_context_end(void **state) {
    gumbel_program *program = open_random_program(*state, false);
    gumbel_engine *engine = make_engine(program, DRAFT);
    int32_t token;
    gumbel_result results[DRAFT + 1];
    const int32_t *tokens = drawn_alone(*state, engine, &greedy);
    gumbel_session *session = begin(engine, &greedy, &token);
    uint32_t drawn = 1;
    const uint32_t at_once = is_short_run() ? DRAFT : 0; /* which the room is a multiple of */
    while (CONTEXT - PROMPT - drawn > DRAFT - 1) {
        assert_ok(step(session, &greedy, tokens[drawn - 1], tokens + drawn, at_once, results), &error);
        assert_int_equal(results[0].accepted, at_once);
        drawn += at_once + 1;
    }
    assert_int_equal(gumbel_session_position(session, NULL), CONTEXT - DRAFT);
    assert_fails(step(session, &greedy, tokens[drawn - 1], tokens + drawn, DRAFT, results),
                 GUMBEL_ERROR_LIMIT, &error, "request 0: 5 tokens after position 28: the context holds 32");
    assert_ok(step(session, &greedy, tokens[drawn - 1], tokens + drawn, DRAFT - 1, results), &error);
    for (uint32_t r = 0; r <= results[0].accepted; r++) {
        const bool is_end = PROMPT + drawn + r == CONTEXT;
        assert_int_equal(results[r].token, tokens[drawn + r]);
        if (results[r].finish != GUMBEL_FINISH_STOP)
            assert_int_equal(results[r].finish, is_end ? GUMBEL_FINISH_CONTEXT : GUMBEL_FINISH_NONE);
    }
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

/* A stop token ends what is accepted, whatever the draft says behind it. */
static void test_stop_token(void **state) {
    gumbel_program *program = open_random_program(*state, false);
    gumbel_engine *engine = make_engine(program, DRAFT);
    const int32_t stop = 1;
    const gumbel_bias only_stop = {stop, 1000.0f};
    const gumbel_sampling sampling = {
        .size = sizeof sampling, .top_p = 1, .bias = &only_stop, .bias_count = 1};
    const int32_t draft[DRAFT] = {stop, stop, stop, stop};
    int32_t token;
    gumbel_result results[DRAFT + 1];
    gumbel_session *session = begin(engine, &greedy, &token);
    assert_ok(step(session, &sampling, token, draft, DRAFT, results), &error);
    assert_int_equal(results[0].accepted, 0);
    assert_int_equal(results[0].token, stop);
    assert_int_equal(results[0].finish, GUMBEL_FINISH_STOP);
    assert_int_equal(results[1].token, -7);
    assert_int_equal(gumbel_session_position(session, NULL), PROMPT + 1);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

/* ---- Rows without a token ------------------------------------------------------------------------------ */

/* The row behind a poisoned draft token has a NaN: where it is accepted that is the request's error, and
 * otherwise it never was. */
static void test_poisoned_row(void **state) {
    gumbel_program *program = open_poisoned_program(*state, POISON);
    gumbel_engine *engine = make_engine(program, DRAFT);
    const gumbel_bias wants = {POISON, 1000.0f}, shuns = {POISON, -1000.0f};
    gumbel_sampling sampling = {.size = sizeof sampling, .top_p = 1, .bias = &shuns, .bias_count = 1};
    const int32_t draft[DRAFT] = {POISON, 5, 6, 7};
    int32_t token, other;
    gumbel_result results[DRAFT + 1], beside[DRAFT + 1] = {{.size = sizeof *beside}};
    random_tokens(1, POISON, prompt, PROMPT);
    gumbel_session *session = begin(engine, &sampling, &token);
    assert_ok(step(session, &sampling, token, draft, DRAFT, results), &error);
    assert_int_equal(results[0].accepted, 0);
    assert_int_equal(results[0].status, GUMBEL_OK);
    gumbel_session *neighbour = begin(engine, &sampling, &other);
    sampling.bias = &wants;
    gumbel_request requests[2] = {{.size = sizeof *requests,
                                   .session = session,
                                   .tokens = &results[0].token,
                                   .token_count = 1,
                                   .result = results,
                                   .sampling = &sampling,
                                   .draft = draft,
                                   .draft_count = DRAFT},
                                  {.size = sizeof *requests,
                                   .session = neighbour,
                                   .tokens = &other,
                                   .token_count = 1,
                                   .result = beside}};
    token = results[0].token;
    requests[0].tokens = &token;
    assert_fails(gumbel_step(engine, requests, 2, &error), GUMBEL_ERROR_NUMERIC, &error,
                 "request 0: the logits have a NaN");
    assert_int_equal(results[0].accepted, 1);
    assert_int_equal(results[0].status, GUMBEL_OK);
    assert_int_equal(results[0].token, POISON);
    assert_int_equal(results[1].status, GUMBEL_ERROR_NUMERIC);
    assert_int_equal(results[1].token, -1);
    assert_int_equal(beside[0].status, GUMBEL_OK);
    assert_true(beside[0].token >= 0);
    assert_int_equal(gumbel_session_position(session, NULL), PROMPT + 3);
    random_tokens(9, VOCAB, prompt, PROMPT);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

/* ---- Backends ------------------------------------------------------------------------------------------ */

static int set_up(void **state) {
    (void)state;
    random_tokens(9, VOCAB, prompt, PROMPT);
    return 0;
}

#define of(test, config)                                                                                     \
    cmocka_unit_test_prestate_setup_teardown(test, set_up, NULL, (void *)(uintptr_t)(config))
#define each(test) of(test, "small.json"), of(test, "qwen.json")

int main(void) {
    const struct CMUnitTest tests[] = {
        of(test_refusals, NULL),
        of(test_engines_without, NULL),
        each(test_rewind_within),
        each(test_rewind_behind),
        each(test_failed_step),
        each(test_failed_chunk),
        each(test_context_end),
        each(test_stop_token),
        of(test_poisoned_row, "small_untied.json"),
        of(test_poisoned_row, "qwen.json"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
