/* SPDX-License-Identifier: Apache-2.0
 *
 * Agreement with mlx-lm under each sampling setting: continuations of programs with random weights and of the
 * bundled models are equal. tests/oracle/make_penalty_goldens.py writes the answers.
 */
#include "gumbel.h"
#include "support/assertions.h"
#include "support/backend.h"
#include "support/paths.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

enum { MOST_TOKENS = 256 };

static gumbel_error error;

static size_t read_tokens(const json_t *array, int32_t *tokens) {
    size_t count = json_array_size(array);
    assert_in_range(count, 1, MOST_TOKENS);
    for (size_t i = 0; i < count; i++)
        tokens[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return count;
}

static float number(const json_t *settings, const char *key, float neutral) {
    const json_t *value = json_object_get(settings, key);
    return value ? (float)json_number_value(value) : neutral;
}

static gumbel_sampling read_sampling(const json_t *settings) {
    return (gumbel_sampling){
        .size = sizeof(gumbel_sampling),
        .temperature = number(settings, "temperature", 0),
        .top_k = (int32_t)number(settings, "top_k", 0),
        .top_p = number(settings, "top_p", 1),
        .min_p = number(settings, "min_p", 0),
        .presence_penalty = number(settings, "presence_penalty", 0),
        .frequency_penalty = number(settings, "frequency_penalty", 0),
        .repetition_penalty = number(settings, "repetition_penalty", 1),
    };
}

/* A configuration with random weights, or a bundled model. */
static gumbel_program *open_program(const json_t *golden) {
    char source[512];
    const char *config = json_string_value(json_object_get(golden, "config"));
    gumbel_export_options options = {
        .size = sizeof options,
        .activations = "none",
        .random_weights = config != NULL,
        .random_seed = (uint64_t)json_integer_value(json_object_get(golden, "weights_seed"))};
    if (config)
        snprintf(source, sizeof source, "%s/export/agreement/%s.json", test_data_folder, config);
    else
        snprintf(source, sizeof source, "%s/%s", test_models_folder,
                 json_string_value(json_object_get(golden, "model")));
    const char *path = temporary_path("penalties.gumbel");
    gumbel_program *program;
    assert_ok(gumbel_export(source, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    return program;
}

static void compare(gumbel_session *session, const json_t *golden, const json_t *answer) {
    int32_t prompt[MOST_TOKENS], expected[MOST_TOKENS];
    size_t prompt_count = read_tokens(json_object_get(golden, "prompt"), prompt);
    int count = shortened((int)read_tokens(json_object_get(answer, "tokens"), expected), 4);
    const json_t *settings = json_object_get(answer, "settings");
    gumbel_sampling sampling = read_sampling(settings);
    gumbel_generate_options options = {.size = sizeof options, .sampling = &sampling, .ignore_stop = true};
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, (uint64_t)json_integer_value(json_object_get(settings, "seed")));
    assert_ok(gumbel_generate(session, prompt, prompt_count, &options, &error), &error);
    for (int i = 0; i < count; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(session, &next, &error), &error);
        if (next.token != expected[i])
            fail_msg("token %d is %d, expected %d", i, next.token, expected[i]);
    }
}

#define AGREES(name)                                                                                         \
    { name, test_agrees, NULL, NULL, name }

static void test_agrees(void **state);

static const struct CMUnitTest tests[] = {
    AGREES("defaults"),    AGREES("odd_sizes"),        AGREES("qwen_released"),
    AGREES("gemma4-tiny"), AGREES("qwen3_5-moe-tiny"),
};

static json_t *goldens;

static int load_goldens(void **unused) {
    json_error_t reason;
    (void)unused;
    goldens = json_load_file(test_data("run/penalties.golden.json"), 0, &reason);
    if (!goldens)
        print_error("%s\n", reason.text);
    else if (json_array_size(goldens) != sizeof tests / sizeof *tests)
        print_error("the file has %zu goldens, and there are other tests\n", json_array_size(goldens));
    else
        return 0;
    return -1;
}

static int free_goldens(void **unused) {
    (void)unused;
    json_decref(goldens);
    return 0;
}

/* The goldens of the configuration or bundled model of that name. */
static const json_t *find_golden(const char *name) {
    for (size_t i = 0; i < json_array_size(goldens); i++) {
        const json_t *golden = json_array_get(goldens, i), *config = json_object_get(golden, "config");
        if (strcmp(json_string_value(config ? config : json_object_get(golden, "model")), name) == 0)
            return golden;
    }
    fail_msg("no golden of %s", name);
    return NULL;
}

static void test_agrees(void **state) {
    const json_t *golden = find_golden(*state), *answers = json_object_get(golden, "answers");
    gumbel_program *program = open_program(golden);
    gumbel_engine *engine;
    gumbel_session *session;
    assert_ok(gumbel_engine_create(program, TEST_ENGINE_OPTIONS, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    for (size_t n = 0; n < json_array_size(answers); n++)
        compare(session, golden, json_array_get(answers, n));
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

int main(int argument_count, char **arguments) {
    read_test_arguments(argument_count, arguments);
    return cmocka_run_group_tests(tests, load_goldens, free_goldens);
}
