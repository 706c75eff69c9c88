/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling settings at the API: the list of them, ranges, where they come from, programs that lack their
 * inputs, and structures of other versions.
 */
#include "support/backend.h"
#include "support/paths.h"
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
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = o->session,
                              .tokens = prompt,
                              .token_count = 1,
                              .result = &result,
                              .sampling = sampling,
                              .wants_logprob = top > 0,
                              .top_logprobs = top};
    return gumbel_step(o->engine, &request, 1, &error);
}

static gumbel_sampling neutral(void) {
    return (gumbel_sampling){.size = sizeof(gumbel_sampling), .temperature = 1, .top_p = 1};
}

#define FOR_SETTINGS(setting)                                                                                \
    const gumbel_setting *setting;                                                                           \
    for (size_t index = 0; (setting = gumbel_setting_at(index)); index++)

/* Values of the setting's range, its limits among them, and of none. */
typedef struct samples {
    double fine[3], wrong[4];
    size_t fine_count, wrong_count;
} samples;

static samples samples_of(const gumbel_setting *setting) {
    samples s = {.fine = {setting->high, setting->neutral}, .fine_count = 2};
    if (!setting->low_excluded)
        s.fine[s.fine_count++] = setting->low;
    if (setting->type == GUMBEL_SETTING_INT32) {
        s.wrong[s.wrong_count++] = setting->low - 1;
        return s;
    }
    s.wrong[s.wrong_count++] = setting->high * 1.01;
    s.wrong[s.wrong_count++] = (double)NAN;
    s.wrong[s.wrong_count++] = -3;
    if (setting->low_excluded)
        s.wrong[s.wrong_count++] = setting->low;
    return s;
}

/* Each is refused beyond its range, by its name, in a step and by its setter. */
static void test_ranges(void **state) {
    (void)state;
    opened o = start_exported((gumbel_export_options){0});
    FOR_SETTINGS(setting) {
        const samples s = samples_of(setting);
        gumbel_sampling sampling = neutral();
        char *field = (char *)&sampling + setting->offset;
        for (size_t n = 0; n < s.fine_count; n++) {
            assert_ok(gumbel_setting_set(setting, s.fine[n], &sampling, &error), &error);
            assert_true((float)gumbel_setting_get(setting, &sampling) == (float)s.fine[n]);
            assert_ok(step(&o, &sampling, 0), &error);
        }
        for (size_t n = 0; n < s.wrong_count; n++) {
            assert_fails(gumbel_setting_set(setting, s.wrong[n], &sampling, &error), GUMBEL_ERROR_ARGUMENT,
                         &error, setting->name);
            if (setting->type == GUMBEL_SETTING_INT32)
                *(int32_t *)(void *)field = (int32_t)s.wrong[n];
            else
                *(float *)(void *)field = (float)s.wrong[n];
            assert_fails(step(&o, &sampling, 0), GUMBEL_ERROR_ARGUMENT, &error, setting->name);
            assert_non_null(strstr(error.message, setting->type == GUMBEL_SETTING_INT32 ? "an integer in ["
                                                                                        : "a number in "));
        }
    }
    gumbel_sampling sampling = neutral();
    sampling.penalized = (gumbel_penalized)3;
    assert_fails(step(&o, &sampling, 0), GUMBEL_ERROR_ARGUMENT, &error, "penalized 3");
    stop(&o);
}

/* The list is that of the structure's numbers, with the ranges that docs/sampling.md gives. */
static void test_list(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t offset;
        double built_in, neutral, low, high;
    } expected[] = {
#define FIELD(name) #name, offsetof(gumbel_sampling, name)
        {FIELD(temperature), 0.8, 0, 1e-4, 1e4},
        {FIELD(top_k), 0, 0, -1, INT32_MAX},
        {FIELD(top_p), 1, 1, 0, 1},
        {FIELD(min_p), 0, 0, 0, 1},
        {FIELD(repetition_penalty), 1, 1, 0.01, 100},
        {FIELD(frequency_penalty), 0, 0, -2, 2},
        {FIELD(presence_penalty), 0, 0, -2, 2},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const gumbel_setting *found = NULL;
        FOR_SETTINGS(setting)
        found = strcmp(setting->name, expected[i].name) == 0 ? setting : found;
        assert_non_null(found);
        assert_int_equal(found->size, sizeof *found);
        assert_int_equal(found->offset, expected[i].offset);
        assert_true(found->built_in == expected[i].built_in && found->neutral == expected[i].neutral);
        assert_true(found->low == expected[i].low && found->high == expected[i].high);
    }
    FOR_SETTINGS(setting) {
        assert_true(setting->help && setting->help[strlen(setting->help) - 1] == '.');
        assert_true(setting->argument && *setting->argument);
        /* a caller of an older version has 0 in a field that is added */
        const gumbel_setting *top_p = gumbel_setting_at(2);
        assert_true(setting == top_p || setting->neutral == 0 || setting->zero_is_neutral);
    }
    assert_string_equal(gumbel_setting_at(2)->name, "top_p");
    assert_null(gumbel_setting_at(100));
}

/* What a row was drawn with is the caller's, or the program's where the caller gives nothing. */
static void test_used(void **state) {
    (void)state;
    opened o = start_exported((gumbel_export_options){0});
    gumbel_sampling sampling = neutral();
    FOR_SETTINGS(setting)
    assert_ok(gumbel_setting_set(setting, setting->high / 2 + setting->low / 2, &sampling, &error), &error);
    sampling.penalized = GUMBEL_PENALIZED_ALL;
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = o.session,
                              .tokens = prompt,
                              .token_count = 1,
                              .result = &result,
                              .sampling = &sampling};
    assert_ok(gumbel_step(o.engine, &request, 1, &error), &error);
    assert_memory_equal(result.used, &sampling, sizeof sampling);
    request.sampling = NULL;
    assert_ok(gumbel_step(o.engine, &request, 1, &error), &error);
    assert_ok(gumbel_sampling_defaults(o.program, &sampling, &error), &error);
    assert_memory_equal(result.used, &sampling, sizeof sampling);
    stop(&o);
}

static void test_biases(void **state) {
    (void)state;
    opened o = start_exported((gumbel_export_options){0});
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(o.program, &info, &error), &error);
    assert_int_equal(info.max_bias, 256);
    assert_true(info.has_logprob && info.has_mask);
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
    size_t refused = 0, count = 0;
    FOR_SETTINGS(setting) {
        count++;
        sampling = neutral();
        assert_ok(gumbel_setting_set(setting, setting->neutral, &sampling, &error), &error);
        assert_ok(step(o, &sampling, 0), &error);
        assert_ok(gumbel_setting_set(setting, setting->high, &sampling, &error), &error);
        char part[64];
        snprintf(part, sizeof part, "no input %s", setting->name);
        if (setting->high == setting->neutral || step(o, &sampling, 0) == GUMBEL_OK)
            continue;
        assert_fails(step(o, &sampling, 0), GUMBEL_ERROR_UNSUPPORTED, &error, part);
        refused++;
    }
    assert_int_equal(refused, count - 3); /* all but temperature, top-k and top-p */
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
    FILE *from = fopen(test_data("run/small.json"), "rb");
    assert_non_null(from);
    static char config[4096];
    size_t size = fread(config, 1, sizeof config, from);
    fclose(from);
    write_file(temporary_path("recommended/config.json"), config, size);
    static const char recommended[] =
        "{\"temperature\": 0.6, \"min_p\": 0.03, \"presence_penalty\": 1.5, \"frequency_penalty\": -0.5,"
        " \"repetition_penalty\": 1.05}";
    write_text(temporary_path("recommended/generation_config.json"), recommended);
    for (int i = 0; i < 2; i++) {
        gumbel_export_options options = {
            .size = sizeof options, .random_weights = true, .sampler = i ? "minimal" : NULL};
        const char *path = temporary_path("recommended.gumbel");
        gumbel_program *program;
        assert_ok(gumbel_export(temporary_path("recommended/config.json"), path, &options, &error), &error);
        assert_ok(gumbel_program_open(path, &program, &error), &error);
        gumbel_sampling sampling = {.size = sizeof sampling};
        assert_ok(gumbel_sampling_defaults(program, &sampling, &error), &error);
        assert_true(sampling.temperature == 0.6f && sampling.top_p == 1);
        assert_true(sampling.min_p == (i ? 0 : 0.03f));
        assert_true(sampling.presence_penalty == (i ? 0 : 1.5f));
        assert_true(sampling.frequency_penalty == (i ? 0 : -0.5f));
        assert_true(sampling.repetition_penalty == (i ? 1 : 1.05f));
        FOR_SETTINGS(setting) {
            const bool is_given = strstr(recommended, setting->name) != NULL, is_minimal = index < 3;
            assert_int_equal(gumbel_setting_is_recommended(setting, program), is_given && (!i || is_minimal));
        }
        opened o = start(program);
        gumbel_result result = {.size = sizeof result};
        gumbel_request request = {.size = sizeof request,
                                  .session = o.session,
                                  .tokens = prompt,
                                  .token_count = 1,
                                  .result = &result};
        assert_ok(gumbel_step(o.engine, &request, 1, &error), &error);
        assert_true(result.used->presence_penalty == sampling.presence_penalty);
        stop(&o);
    }
}

/* ---- Structures of other versions ---------------------------------------------------------------------- */

/* What a shorter structure lacks is neutral, and nothing is written behind its end. */
static void test_shorter_structures(void **state) {
    (void)state;
    opened o = start_exported((gumbel_export_options){.max_top_logprobs = 2});
    gumbel_sampling sampling = neutral();
    sampling.size = offsetof(gumbel_sampling, min_p);
    sampling.min_p = sampling.presence_penalty = NAN;
    const gumbel_setting *min_p = gumbel_setting_at(3);
    assert_string_equal(min_p->name, "min_p");
    assert_true(gumbel_setting_get(min_p, &sampling) == 0);
    assert_fails(gumbel_setting_set(min_p, 0.5, &sampling, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "no field min_p");
    gumbel_result result = {.size = offsetof(gumbel_result, logprob), .logprob = 77};
    gumbel_request request = {.size = sizeof request,
                              .session = o.session,
                              .tokens = prompt,
                              .token_count = PROMPT,
                              .result = &result,
                              .sampling = &sampling,
                              .wants_logprob = true};
    assert_ok(gumbel_step(o.engine, &request, 1, &error), &error);
    assert_true(result.used->min_p == 0 && result.used->repetition_penalty == 1);
    assert_true(result.logprob == 77);
    assert_ok(gumbel_sampling_defaults(o.program, &sampling, &error), &error);
    assert_true(isnan(sampling.min_p) && sampling.temperature == 0.8f);
    sampling.size = 0;
    assert_fails(gumbel_sampling_defaults(NULL, &sampling, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "sampling: the field size");
    stop(&o);
}

/* Requests of a newer version: they stand further apart, and may not ask for what this one does not know. */
static void test_longer_structures(void **state) {
    (void)state;
    gumbel_program *program = export_random_program("small.json", (gumbel_export_options){0});
    gumbel_engine_options options = {.size = sizeof options, .slots = 2, .backend = GUMBEL_TEST_BACKEND};
    gumbel_engine *engine;
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    struct newer {
        gumbel_request request;
        uint64_t added;
    } requests[2];
    gumbel_result results[2];
    memset(requests, 0, sizeof requests);
    for (int i = 0; i < 2; i++) {
        results[i] = (gumbel_result){.size = sizeof results[i], .token = -7};
        requests[i].request = (gumbel_request){.size = sizeof requests[i],
                                               .tokens = prompt,
                                               .token_count = (size_t)(1 + i),
                                               .result = &results[i]};
        assert_ok(gumbel_session_create(engine, &requests[i].request.session, &error), &error);
    }
    assert_ok(gumbel_step(engine, &requests[0].request, 2, &error), &error);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gumbel_session_position(requests[i].request.session, NULL), 1 + i);
    assert_true(results[0].token >= 0 && results[1].token >= 0);
    requests[1].added = 1;
    assert_fails(gumbel_step(engine, &requests[0].request, 2, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "request 1: a field at byte");
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
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
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_used),
        cmocka_unit_test(test_biases),
        cmocka_unit_test(test_programs_without_roles),
        cmocka_unit_test(test_minimal_and_full),
        cmocka_unit_test(test_recommended),
        cmocka_unit_test(test_shorter_structures),
        cmocka_unit_test(test_longer_structures),
        cmocka_unit_test(test_on_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
