/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel_step: what it refuses, what it returns, rows with settings of their own, and the engine's options.
 */
#include "support/backend.h"
#include "support/poison.h"
#include "support/programs/random_program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, SLOTS = 3, CHUNK = 8 };

static gumbel_program *program;
static gumbel_engine *engine;
static gumbel_session *sessions[SLOTS];
static gumbel_error error;
static int32_t tokens[32];

static int set_up(void **state) {
    (void)state;
    gumbel_engine_options options = {.size = sizeof options,
                                     .slots = SLOTS,
                                     .step_tokens = 20,
                                     .prefill_chunk = CHUNK,
                                     .backend = GUMBEL_TEST_BACKEND};
    random_tokens(6, VOCAB, tokens, 32);
    if (!program)
        program = open_random_program("small.json", false);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    for (int i = 0; i < SLOTS; i++)
        assert_ok(gumbel_session_create(engine, &sessions[i], &error), &error);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    gumbel_engine_destroy(engine);
    return 0;
}

static int close_program(void **state) {
    (void)state;
    gumbel_program_close(program);
    return 0;
}

static gumbel_result results[SLOTS];

/* Its result is that of the session's number. */
static gumbel_request request(int session, size_t count) {
    results[session] = (gumbel_result){.size = sizeof results[session], .token = -7};
    return (gumbel_request){.size = sizeof(gumbel_request),
                            .session = sessions[session],
                            .tokens = tokens,
                            .token_count = count,
                            .result = &results[session]};
}

static void test_refusals(void **state) {
    (void)state;
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(program, &info, &error), &error);
    assert_int_equal(info.prefill_chunk, 128);
    gumbel_request r[SLOTS] = {request(0, 1), request(1, 1), request(2, 1)};

    r[0].token_count = CHUNK + 1;
    assert_fails(gumbel_step(engine, r, 1, &error), GUMBEL_ERROR_ARGUMENT, &error, "9 tokens");
    r[0].token_count = 0;
    assert_fails(gumbel_step(engine, r, 1, &error), GUMBEL_ERROR_ARGUMENT, &error, "no tokens");
    r[0] = request(1, 1);
    assert_fails(gumbel_step(engine, r, 2, &error), GUMBEL_ERROR_ARGUMENT, &error, "same session");
    r[0] = request(0, CHUNK), r[1] = request(1, CHUNK), r[2] = request(2, CHUNK);
    assert_fails(gumbel_step(engine, r, 3, &error), GUMBEL_ERROR_LIMIT, &error, "step_tokens");
    r[2].session = NULL;
    assert_fails(gumbel_step(engine, r, 3, &error), GUMBEL_ERROR_ARGUMENT, &error, "request 2");
    int32_t bad[] = {3, -1};
    r[0].tokens = bad, r[0].token_count = 2;
    assert_fails(gumbel_step(engine, r, 1, &error), GUMBEL_ERROR_ARGUMENT, &error, "token -1");
    r[0] = request(0, 1), r[0].size = 0;
    assert_fails(gumbel_step(engine, r, 1, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "request 0: the field size");
    r[0] = request(0, 1), r[1] = request(1, 1), r[1].size += sizeof(void *);
    assert_fails(gumbel_step(engine, r, 2, &error), GUMBEL_ERROR_ARGUMENT, &error, "differs from the first");
    r[1] = request(1, 1), results[1].size = 0;
    assert_fails(gumbel_step(engine, r, 2, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "request 1: result: the field size");
    const gumbel_sampling sizeless = {.temperature = 1, .top_p = 1};
    r[1] = request(1, 1), r[1].sampling = &sizeless;
    assert_fails(gumbel_step(engine, r, 2, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "request 1: sampling: the field size");
    assert_fails(gumbel_step(engine, NULL, 1, &error), GUMBEL_ERROR_ARGUMENT, &error, "request 0: NULL");
    assert_fails(gumbel_step(engine, r, SLOTS + 1, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "the engine has 3 slots");
    for (int i = 0; i < SLOTS; i++)
        assert_int_equal(gumbel_session_position(sessions[i], NULL), 0);
}

/* What the options have become, theirs or the defaults. */
static void test_engine_info(void **state) {
    (void)state;
    gumbel_engine_info info = {.size = sizeof info};
    assert_ok(gumbel_engine_get_info(engine, &info, &error), &error);
    assert_int_equal(info.slots, SLOTS);
    assert_int_equal(info.max_context, 128);
    assert_int_equal(info.step_tokens, 20);
    assert_int_equal(info.prefill_chunk, CHUNK);
    assert_false(info.snapshots);
    assert_string_equal(info.backend, GUMBEL_TEST_BACKEND);
    assert_true((info.threads > 0) == (strcmp(GUMBEL_TEST_BACKEND, "cpu") == 0));
    assert_non_null(strstr(gumbel_engine_description(engine), GUMBEL_TEST_BACKEND));
    assert_non_null(strstr(gumbel_engine_description(engine), ", 20 tokens a step"));

    gumbel_engine *other;
    gumbel_engine_options options = {.size = sizeof options,
                                     .slots = 2,
                                     .threads = 3,
                                     .max_context = 50,
                                     .prefill_chunk = CHUNK,
                                     .snapshots = true,
                                     .backend = GUMBEL_TEST_BACKEND};
    assert_ok(gumbel_engine_create(program, &options, &other, &error), &error);
    assert_ok(gumbel_engine_get_info(other, &info, &error), &error);
    assert_int_equal(info.slots, 2);
    assert_int_equal(info.max_context, 50);
    assert_int_equal(info.step_tokens, CHUNK + 2);
    assert_true(info.snapshots);
    assert_int_equal(info.threads, strcmp(GUMBEL_TEST_BACKEND, "cpu") == 0 ? 3 : 0);
    assert_non_null(strstr(gumbel_engine_description(other), ", 10 tokens a step"));
    info.size = 0;
    assert_fails(gumbel_engine_get_info(other, &info, &error), GUMBEL_ERROR_ARGUMENT, &error, "size");
    gumbel_engine_destroy(other);
}

static void test_sampling_ranges(void **state) {
    (void)state;
    static const struct {
        float temperature, top_p;
        bool fine;
    } cases[] = {
        {0, 1, true},         {1e-4f, 1, true}, {1e4f, 1, true}, {9e-5f, 1, false}, {1.1e4f, 1, false},
        {-0.5f, 1, false},    {NAN, 1, false},  {1, 0, false},   {1, 1.01f, false}, {1, -0.1f, false},
        {INFINITY, 1, false}, {1, 1e-9f, true}, {1, NAN, false}, {0, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gumbel_sampling sampling = {.size = sizeof sampling,
                                    .temperature = cases[i].temperature,
                                    .top_k = 5,
                                    .top_p = cases[i].top_p};
        gumbel_request r = request(0, 1);
        r.sampling = &sampling;
        if (cases[i].fine)
            assert_ok(gumbel_step(engine, &r, 1, &error), &error);
        else
            assert_fails(gumbel_step(engine, &r, 1, &error), GUMBEL_ERROR_ARGUMENT, &error, "request 0");
    }
}

/* A greedy row, a sampled row and a prefill without a row: each as if it were alone. */
static void test_mixed_rows(void **state) {
    (void)state;
    gumbel_sampling greedy = {.size = sizeof greedy, .temperature = 0, .top_p = 1},
                    warm = {.size = sizeof warm, .temperature = 1.5f, .top_k = 20, .top_p = 0.9f};
    gumbel_result alone[SLOTS], mixed[SLOTS];
    for (int together = 0; together < 2; together++) {
        gumbel_request r[SLOTS];
        for (int i = 0; i < SLOTS; i++) {
            gumbel_session_reset(sessions[i]);
            gumbel_session_set_seed(sessions[i], 11);
            r[i] = request(i, (size_t)i + 2);
        }
        r[0].sampling = &greedy, r[1].sampling = &warm, r[2].result = NULL;
        if (together)
            assert_ok(gumbel_step(engine, r, SLOTS, &error), &error);
        else
            for (int i = 0; i < SLOTS; i++)
                assert_ok(gumbel_step(engine, &r[i], 1, &error), &error);
        memcpy(together ? mixed : alone, results, sizeof results);
    }
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(alone[i].token, mixed[i].token);
        assert_int_equal(alone[i].seed, mixed[i].seed);
    }
    assert_true(mixed[0].used->temperature == 0 && mixed[1].used->temperature == 1.5f);
    assert_true(mixed[1].used->top_k == 20 && mixed[1].used->size == sizeof(gumbel_sampling));
    assert_int_equal(mixed[0].seed, 0);
    assert_int_equal(mixed[1].seed, 11);
    assert_int_equal(mixed[2].token, -7); /* nothing was asked for */
    assert_null(mixed[2].logits);
    int32_t best = 0;
    for (int32_t i = 1; i < VOCAB; i++)
        if (mixed[0].logits[i] > mixed[0].logits[best])
            best = i;
    assert_int_equal(mixed[0].token, best);
    int32_t host;
    assert_ok(gumbel_sample(mixed[1].logits, VOCAB, &warm, 11, &host, &error), &error);
    assert_int_equal(mixed[1].token, host);
}

static void test_engine_options(void **state) {
    (void)state;
    gumbel_engine *other;
    gumbel_engine_options options = {.size = sizeof options, .max_context = 129};
    assert_fails(gumbel_engine_create(program, &options, &other, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "at most 128");
    options = (gumbel_engine_options){.size = sizeof options, .backend = "tpu"};
    assert_fails(gumbel_engine_create(program, &options, &other, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "tpu");
    static const char *const optional[] = {"cuda", "mlx"};
    for (size_t i = 0; i < 2; i++) {
        options = (gumbel_engine_options){.size = sizeof options, .backend = optional[i]};
        if (gumbel_engine_create(program, &options, &other, &error) == GUMBEL_OK)
            gumbel_engine_destroy(other);
        else /* not in this build, or no device: the message says how to get it */
            assert_non_null(strstr(error.message, optional[i]));
    }
    options = (gumbel_engine_options){.size = sizeof options, .cpu_isa = "sse9"};
    assert_fails(gumbel_engine_create(program, &options, &other, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "sse9");
    options = (gumbel_engine_options){.size = sizeof options, .threads = -1};
    assert_fails(gumbel_engine_create(program, &options, &other, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "threads -1");
    options =
        (gumbel_engine_options){.size = sizeof options, .max_context = 24, .backend = GUMBEL_TEST_BACKEND};
    assert_ok(gumbel_engine_create(program, &options, &other, &error), &error);
    gumbel_session *session;
    assert_ok(gumbel_session_create(other, &session, &error), &error);
    assert_fails(gumbel_session_append(session, tokens, 25, &error), GUMBEL_ERROR_LIMIT, &error, "24");
    assert_ok(gumbel_session_append(session, tokens, 24, &error), &error);
    gumbel_engine_destroy(other);
}

/* A row with a NaN is its request's error; the other one has its token. */
static void test_nan_row(void **state) {
    (void)state;
    gumbel_program *broken = open_poisoned_program("small_untied.json", 3);
    gumbel_engine_options options = {.size = sizeof options, .slots = 2, .backend = GUMBEL_TEST_BACKEND};
    gumbel_engine *other;
    assert_ok(gumbel_engine_create(broken, &options, &other, &error), &error);
    gumbel_session *good, *bad;
    assert_ok(gumbel_session_create(other, &good, &error), &error);
    assert_ok(gumbel_session_create(other, &bad, &error), &error);
    int32_t one = 1, three = 3;
    gumbel_request r[2] = {request(0, 1), request(1, 1)};
    r[0].session = good, r[0].tokens = &one;
    r[1].session = bad, r[1].tokens = &three;
    assert_fails(gumbel_step(other, r, 2, &error), GUMBEL_ERROR_NUMERIC, &error, "request 1");
    assert_true(results[0].status == GUMBEL_OK && results[0].token >= 0);
    assert_true(results[1].status == GUMBEL_ERROR_NUMERIC && results[1].token == -1);
    assert_int_equal(gumbel_session_position(good, NULL), 1);
    gumbel_engine_destroy(other);
    gumbel_program_close(broken);
}

/* A --logits program gives its row and leaves the drawing to the caller. */
static void test_logits_program(void **state) {
    (void)state;
    gumbel_program *plain = open_random_program("small.json", true);
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(plain, &info, &error), &error);
    assert_false(info.use_sampling);
    gumbel_engine *other;
    gumbel_session *session;
    assert_ok(gumbel_engine_create(plain, TEST_ENGINE_OPTIONS, &other, &error), &error);
    assert_ok(gumbel_session_create(other, &session, &error), &error);
    gumbel_request with = request(0, 5), without = request(1, 5);
    without.session = session;
    assert_ok(gumbel_step(engine, &with, 1, &error), &error);
    assert_ok(gumbel_step(other, &without, 1, &error), &error);
    assert_memory_equal(results[0].logits, results[1].logits, VOCAB * sizeof(float));
    assert_int_equal(results[1].token, -1);
    assert_fails(gumbel_generate(session, tokens, 3, NULL, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "--logits");
    gumbel_engine_destroy(other);
    gumbel_program_close(plain);
}

static void test_sample_on_host(void **state) {
    (void)state;
    float row[5] = {0, 3, 3, -INFINITY, 1};
    gumbel_sampling sampling = {.size = sizeof sampling, .temperature = 0, .top_p = 1};
    int32_t token;
    assert_ok(gumbel_sample(row, 5, &sampling, 0, &token, &error), &error);
    assert_int_equal(token, 1);
    sampling.temperature = 1e-5f;
    assert_fails(gumbel_sample(row, 5, &sampling, 0, &token, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "temperature");
    sampling.temperature = 1;
    row[2] = NAN;
    assert_fails(gumbel_sample(row, 5, &sampling, 0, &token, &error), GUMBEL_ERROR_NUMERIC, &error, "NaN");
    for (int i = 0; i < 5; i++)
        row[i] = -INFINITY;
    assert_fails(gumbel_sample(row, 5, &sampling, 0, &token, &error), GUMBEL_ERROR_NUMERIC, &error, "-inf");
    assert_fails(gumbel_sample(row, 0, &sampling, 0, &token, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "vocab_size");
}

#define each(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        each(test_refusals),       each(test_engine_info),    each(test_sampling_ranges),
        each(test_mixed_rows),     each(test_engine_options), each(test_nan_row),
        each(test_logits_program), each(test_sample_on_host),
    };
    return cmocka_run_group_tests(tests, NULL, close_program);
}
