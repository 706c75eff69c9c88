/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling settings at the API: ranges, where they come from, programs that lack their inputs, and the
 * structures of the first release.
 */
#include "support/backend.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static gumbel_error error;
static const int32_t prompt[] = {2, 5, 9, 5};
enum { PROMPT = sizeof prompt / sizeof *prompt };

typedef struct opened {
    gumbel_program *program;
    gumbel_engine *engine;
    gumbel_session *session;
} opened;

static opened start(gumbel_program *program) {
    opened o = {.program = program};
    assert_ok(gumbel_engine_create(program, TEST_ENGINE_OPTIONS, &o.engine, &error), &error);
    assert_ok(gumbel_session_create(o.engine, &o.session, &error), &error);
    gumbel_session_set_seed(o.session, 4);
    return o;
}

static void stop(opened *o) {
    gumbel_engine_destroy(o->engine);
    gumbel_program_close(o->program);
}

static opened start_exported(gumbel_export_options options) {
    return start(export_random_program("small.json", options));
}

static gumbel_status step(const opened *o, const gumbel_sampling *sampling, uint32_t top) {
    gumbel_request request = {.size = sizeof request,
                              .session = o->session,
                              .tokens = prompt,
                              .token_count = 1,
                              .wants_token = true,
                              .sampling = sampling,
                              .wants_logprob = top > 0,
                              .top_logprobs = top};
    return gumbel_step(o->engine, &request, 1, &error);
}

static gumbel_sampling neutral(void) {
    return (gumbel_sampling){.size = sizeof(gumbel_sampling), .temperature = 1, .top_p = 1};
}

static void test_ranges(void **state) {
    (void)state;
    opened o = start_exported((gumbel_export_options){0});
    static const struct {
        size_t field;
        float low, high;
        const char *expected;
    } ranges[] = {
        {offsetof(gumbel_sampling, min_p), 0, 1, "min_p"},
        {offsetof(gumbel_sampling, presence_penalty), -2, 2, "presence_penalty"},
        {offsetof(gumbel_sampling, frequency_penalty), -2, 2, "frequency_penalty"},
        {offsetof(gumbel_sampling, repetition_penalty), 0.01f, 100, "repetition_penalty"},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        gumbel_sampling sampling = neutral();
        float *value = (float *)(void *)((char *)&sampling + ranges[i].field);
        const float fine[] = {ranges[i].low, ranges[i].high}, wrong[] = {ranges[i].high * 1.01f, NAN, -3};
        for (size_t n = 0; n < 2; n++) {
            *value = fine[n];
            assert_ok(step(&o, &sampling, 0), &error);
        }
        for (size_t n = 0; n < 3; n++) {
            *value = wrong[n];
            assert_fails(step(&o, &sampling, 0), GUMBEL_ERROR_ARGUMENT, &error, ranges[i].expected);
            assert_non_null(strstr(error.message, "expected a number in ["));
        }
    }
    gumbel_sampling sampling = neutral();
    sampling.penalized = (gumbel_penalized)3;
    assert_fails(step(&o, &sampling, 0), GUMBEL_ERROR_ARGUMENT, &error, "penalized 3");
    stop(&o);
}

static void test_biases(void **state) {
    (void)state;
    opened o = start_exported((gumbel_export_options){0});
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(o.program, &info, &error), &error);
    assert_int_equal(info.max_bias, 256);
    assert_true(info.has_logprob);
    static gumbel_bias list[257];
    gumbel_sampling sampling = neutral();
    sampling.bias = list;
    sampling.bias_count = 256;
    assert_ok(step(&o, &sampling, 0), &error);
    sampling.bias_count = 257;
    assert_fails(step(&o, &sampling, 0), GUMBEL_ERROR_ARGUMENT, &error, "257 biases");
    sampling.bias_count = 1;
    static const gumbel_bias wrong[] = {{160, 1}, {-1, 1}, {3, NAN}, {3, INFINITY}};
    for (size_t i = 0; i < 4; i++) {
        list[0] = wrong[i];
        assert_fails(step(&o, &sampling, 0), GUMBEL_ERROR_ARGUMENT, &error, "bias of token");
    }
    for (int32_t i = 0; i < 160; i++)
        list[i] = (gumbel_bias){i, -INFINITY};
    sampling.bias_count = 160;
    assert_fails(step(&o, &sampling, 0), GUMBEL_ERROR_NUMERIC, &error, "no candidate");
    sampling.bias = NULL;
    assert_fails(step(&o, &sampling, 0), GUMBEL_ERROR_ARGUMENT, &error, "bias is NULL");
    assert_fails(step(&o, NULL, 21), GUMBEL_ERROR_ARGUMENT, &error, "at most 20 (--top-logprobs-max)");
    stop(&o);
}

/* Without the roles, neutral settings run and each of the others is refused by the role's name. */
static void check_without_roles(opened *o) {
    gumbel_sampling sampling = neutral();
    const gumbel_bias bias = {3, 1};
    assert_ok(step(o, &sampling, 0), &error);
    sampling.repetition_penalty = 1;
    assert_ok(step(o, &sampling, 0), &error);
    sampling.min_p = 0.1f;
    assert_fails(step(o, &sampling, 0), GUMBEL_ERROR_UNSUPPORTED, &error, "no input min_p");
    sampling = neutral();
    sampling.presence_penalty = 1;
    assert_fails(step(o, &sampling, 0), GUMBEL_ERROR_UNSUPPORTED, &error, "no input presence_penalty");
    sampling = neutral();
    sampling.frequency_penalty = 1;
    assert_fails(step(o, &sampling, 0), GUMBEL_ERROR_UNSUPPORTED, &error, "no input frequency_penalty");
    sampling = neutral();
    sampling.repetition_penalty = 1.1f;
    assert_fails(step(o, &sampling, 0), GUMBEL_ERROR_UNSUPPORTED, &error, "no input repetition_penalty");
    sampling = neutral();
    sampling.bias = &bias;
    sampling.bias_count = 1;
    assert_fails(step(o, &sampling, 0), GUMBEL_ERROR_UNSUPPORTED, &error, "no input bias_ids");
    gumbel_generate_options options = {.size = sizeof options, .sampling = &sampling};
    assert_fails(gumbel_generate(o->session, prompt, PROMPT, &options, &error), GUMBEL_ERROR_UNSUPPORTED,
                 &error, "no input bias_ids");
    assert_fails(step(o, NULL, 1), GUMBEL_ERROR_UNSUPPORTED, &error, "no output logprob");
}

static void test_programs_without_roles(void **state) {
    (void)state;
    opened minimal = start_exported((gumbel_export_options){.sampler = "minimal"});
    check_without_roles(&minimal);
    stop(&minimal);
    gumbel_program *program;
    assert_ok(gumbel_program_open(GUMBEL_TEST_DATA "/run/old/first_release.gumbel", &program, &error),
              &error);
    opened old = start(program);
    check_without_roles(&old);
    stop(&old);
    opened logits = start_exported((gumbel_export_options){.logits = true});
    assert_fails(step(&logits, NULL, 1), GUMBEL_ERROR_UNSUPPORTED, &error, "no output logprob");
    stop(&logits);
}

/* The full and the minimal sampler draw the same tokens where both can. */
static void test_minimal_and_full(void **state) {
    (void)state;
    int32_t tokens[2][30];
    for (int i = 0; i < 2; i++) {
        opened o = start_exported((gumbel_export_options){.sampler = i ? "minimal" : "full"});
        gumbel_sampling sampling = {.size = sizeof sampling, .temperature = 0.9f, .top_k = 40, .top_p = 0.9f};
        gumbel_generate_options options = {
            .size = sizeof options, .sampling = &sampling, .ignore_stop = true};
        assert_ok(gumbel_generate(o.session, prompt, PROMPT, &options, &error), &error);
        for (int n = 0; n < 30; n++) {
            gumbel_generated next = {.size = sizeof next};
            assert_ok(gumbel_next(o.session, &next, &error), &error);
            tokens[i][n] = next.token;
        }
        stop(&o);
    }
    assert_memory_equal(tokens[0], tokens[1], sizeof tokens[0]);
}

/* Recommended settings travel from generation_config.json, and only to programs that have their inputs. */
static void test_recommended(void **state) {
    (void)state;
    FILE *from = fopen(GUMBEL_TEST_DATA "/run/small.json", "rb");
    assert_non_null(from);
    static char config[4096];
    size_t size = fread(config, 1, sizeof config, from);
    fclose(from);
    write_file(temporary_path("recommended/config.json"), config, size);
    write_text(
        temporary_path("recommended/generation_config.json"),
        "{\"temperature\": 0.6, \"min_p\": 0.03, \"presence_penalty\": 1.5, \"frequency_penalty\": -0.5,"
        " \"repetition_penalty\": 1.05}");
    for (int i = 0; i < 2; i++) {
        gumbel_export_options options = {
            .size = sizeof options, .random_weights = true, .sampler = i ? "minimal" : NULL};
        const char *path = temporary_path("recommended.gumbel");
        gumbel_program *program;
        assert_ok(gumbel_export(temporary_path("recommended/config.json"), path, &options, &error), &error);
        assert_ok(gumbel_program_open(path, &program, &error), &error);
        gumbel_sampling sampling = {.size = sizeof sampling};
        gumbel_sampling_origin origin;
        gumbel_sampling_defaults(program, &sampling, &origin);
        assert_true(sampling.temperature == 0.6f && sampling.top_p == 1);
        assert_true(sampling.min_p == (i ? 0 : 0.03f));
        assert_true(sampling.presence_penalty == (i ? 0 : 1.5f));
        assert_true(sampling.frequency_penalty == (i ? 0 : -0.5f));
        assert_true(sampling.repetition_penalty == (i ? 1 : 1.05f));
        assert_int_equal(origin.repetition_penalty, i ? GUMBEL_ORIGIN_DEFAULT : GUMBEL_ORIGIN_PROGRAM);
        assert_int_equal(origin.top_p, GUMBEL_ORIGIN_DEFAULT);
        opened o = start(program);
        gumbel_request request = {.size = sizeof request,
                                  .session = o.session,
                                  .tokens = prompt,
                                  .token_count = 1,
                                  .wants_token = true};
        assert_ok(gumbel_step(o.engine, &request, 1, &error), &error);
        assert_true(request.used_presence_penalty == sampling.presence_penalty);
        stop(&o);
    }
}

/* ---- The structures of the first release --------------------------------------------------------------- */

typedef struct first_sampling {
    size_t size;
    float temperature;
    int32_t top_k;
    float top_p;
} first_sampling;

typedef struct first_request {
    size_t size;
    gumbel_session *session;
    const int32_t *tokens;
    size_t token_count;
    bool wants_token;
    const gumbel_sampling *sampling;
    int32_t token;
    gumbel_finish finish;
    uint64_t seed;
    first_sampling used;
    const float *logits;
} first_request;

typedef struct first_generated {
    size_t size;
    int32_t token;
    gumbel_finish finish;
    uint64_t seed;
} first_generated;

static void test_first_structures(void **state) {
    (void)state;
    assert_int_equal(offsetof(first_request, logits), offsetof(gumbel_request, logits));
    opened o = start_exported((gumbel_export_options){.max_top_logprobs = 2});
    /* Padding of the old structure may hold anything. */
    first_sampling sampling;
    memset(&sampling, 0xff, sizeof sampling);
    sampling.size = sizeof sampling;
    sampling.temperature = 0.8f;
    sampling.top_k = 0;
    sampling.top_p = 0.95f;
    struct {
        first_request request;
        uint64_t guard;
    } old = {.request = {.size = sizeof(first_request),
                         .session = o.session,
                         .tokens = prompt,
                         .token_count = PROMPT,
                         .wants_token = true,
                         .sampling = (const gumbel_sampling *)(const void *)&sampling},
             .guard = 0x1234567812345678};
    assert_ok(gumbel_step(o.engine, (gumbel_request *)(void *)&old.request, 1, &error), &error);
    assert_int_equal(old.guard, 0x1234567812345678);
    assert_true(old.request.used.top_p == 0.95f);

    gumbel_sampling now = neutral();
    now.temperature = 0.8f;
    now.top_p = 0.95f;
    gumbel_session_reset(o.session);
    gumbel_session_set_seed(o.session, 4);
    gumbel_generate_options options = {.size = offsetof(gumbel_generate_options, wants_logprob),
                                       .sampling = &now};
    assert_ok(gumbel_generate(o.session, prompt, PROMPT, &options, &error), &error);
    struct {
        first_generated generated;
        uint64_t guard;
    } next = {.generated = {.size = sizeof(first_generated)}, .guard = 77};
    assert_ok(gumbel_next(o.session, (gumbel_generated *)(void *)&next.generated, &error), &error);
    assert_int_equal(next.guard, 77);
    assert_int_equal(next.generated.token, old.request.token);

    struct {
        first_sampling sampling;
        gumbel_origin origin[3], guard;
    } defaults = {.sampling = {.size = sizeof(first_sampling)}, .guard = (gumbel_origin)9};
    gumbel_sampling_defaults(o.program, (gumbel_sampling *)(void *)&defaults.sampling,
                             (gumbel_sampling_origin *)(void *)defaults.origin);
    assert_int_equal(defaults.guard, 9);
    assert_true(defaults.sampling.temperature == 0.8f);
    stop(&o);
}

/* On the host there are biases and min-p, and no tokens that penalties could count. */
static void test_on_the_host(void **state) {
    (void)state;
    static const float logits[] = {1, 2, 3, 2.5f};
    static const gumbel_bias bias[] = {{2, -INFINITY}, {0, 1.25f}, {0, 0.5f}};
    gumbel_sampling sampling = {
        .size = sizeof sampling, .temperature = 0, .top_p = 1, .bias = bias, .bias_count = 3};
    int32_t token;
    assert_ok(gumbel_sample(logits, 4, &sampling, 1, &token, &error), &error);
    assert_int_equal(token, 0);
    sampling.bias_count = 1;
    assert_ok(gumbel_sample(logits, 4, &sampling, 1, &token, &error), &error);
    assert_int_equal(token, 3);
    assert_fails(gumbel_sample(logits, 2, &sampling, 1, &token, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "bias of token 2");
    sampling = neutral();
    sampling.min_p = 1;
    for (uint64_t seed = 0; seed < 50; seed++) {
        assert_ok(gumbel_sample(logits, 4, &sampling, seed, &token, &error), &error);
        assert_int_equal(token, 2);
    }
    sampling.presence_penalty = 1;
    assert_fails(gumbel_sample(logits, 4, &sampling, 1, &token, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "penalties need a session");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_biases),
        cmocka_unit_test(test_programs_without_roles),
        cmocka_unit_test(test_minimal_and_full),
        cmocka_unit_test(test_recommended),
        cmocka_unit_test(test_first_structures),
        cmocka_unit_test(test_on_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
