/* SPDX-License-Identifier: Apache-2.0
 *
 * Agreement with mlx-lm. For each configuration of tests/data/export/agreement a program with the same random
 * weights is exported and run: the prompt's last logits agree, greedy and sampled continuations are equal.
 * tests/oracle/make_goldens.py writes the answers.
 */
#include "gumbel.h"
#include "support/assertions.h"
#include "support/backend.h"
#include "support/paths.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static const double TOLERANCE = 2e-4; /* of the largest absolute logit */
enum { MAX_TOKENS = 512 };

typedef struct token_list {
    int32_t ids[MAX_TOKENS];
    size_t count;
} token_list;

typedef struct golden_answers {
    json_t *json;
    token_list prompt, greedy, sampled;
} golden_answers;

static void data_path(char path[512], const char *name, const char *ending) {
    snprintf(path, 512, "%s/export/agreement/%s%s", test_data_folder, name, ending);
}

static token_list read_tokens(const json_t *json, const char *key) {
    const json_t *array = json_object_get(json, key);
    token_list list = {.count = json_array_size(array)};
    assert_true(list.count > 0 && list.count <= MAX_TOKENS);
    for (size_t i = 0; i < list.count; i++)
        list.ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return list;
}

static golden_answers read_golden(const char *name) {
    char path[512];
    json_error_t reason;
    data_path(path, name, ".golden.json");
    golden_answers golden = {.json = json_load_file(path, 0, &reason)};
    if (!golden.json)
        fail_msg("%s: %s", path, reason.text);
    golden.prompt = read_tokens(golden.json, "prompt");
    golden.greedy = read_tokens(golden.json, "greedy");
    golden.sampled = read_tokens(golden.json, "sampled");
    return golden;
}

static gumbel_program *open_program(const char *name, const golden_answers *golden) {
    char config[512];
    gumbel_error error;
    gumbel_program *program = NULL;
    data_path(config, name, ".json");
    json_int_t seed = json_integer_value(json_object_get(golden->json, "weights_seed"));
    gumbel_export_options options = {
        .size = sizeof options, .activations = "none", .random_weights = true, .random_seed = (uint64_t)seed};
    const char *path = temporary_path("agreement.gumbel");
    assert_ok(gumbel_export(config, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    return program;
}

/* Runs the prompt and compares the logits of its last token. */
static void compare_logits(const char *name, gumbel_session *session, gumbel_engine *engine,
                           const golden_answers *golden) {
    gumbel_error error;
    const token_list *prompt = &golden->prompt;
    assert_ok(gumbel_session_append(session, prompt->ids, prompt->count - 1, &error), &error);
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = &prompt->ids[prompt->count - 1],
                              .token_count = 1,
                              .result = &result};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    const json_t *expected = json_object_get(golden->json, "logits");
    double largest = 0, difference = 0;
    for (size_t i = 0; i < json_array_size(expected); i++) {
        double value = json_number_value(json_array_get(expected, i));
        largest = fmax(largest, fabs(value));
        difference = fmax(difference, fabs(value - (double)result.logits[i]));
    }
    print_message("%s: largest difference %.2g of the largest logit\n", name, difference / largest);
    assert_true(largest > 0);
    assert_true(difference <= TOLERANCE * largest);
}

static void compare_tokens(const char *name, gumbel_session *session, const golden_answers *golden,
                           const gumbel_sampling *sampling, const token_list *expected) {
    gumbel_error error;
    const size_t count = (size_t)shortened((int)expected->count, 4);
    gumbel_session_reset(session);
    gumbel_generate_options options = {
        .size = sizeof options, .sampling = sampling, .max_new_tokens = (uint32_t)count, .ignore_stop = true};
    const token_list *prompt = &golden->prompt;
    assert_ok(gumbel_generate(session, prompt->ids, prompt->count, &options, &error), &error);
    for (size_t i = 0; i < count; i++) {
        gumbel_generated generated = {.size = sizeof generated};
        assert_ok(gumbel_next(session, &generated, &error), &error);
        if (generated.token != expected->ids[i])
            fail_msg("%s: token %zu at temperature %g is %d, expected %d", name, i,
                     (double)sampling->temperature, generated.token, expected->ids[i]);
    }
}

static gumbel_sampling golden_sampling(const golden_answers *golden, uint64_t *seed) {
    const json_t *json = json_object_get(golden->json, "sampling");
    *seed = (uint64_t)json_integer_value(json_object_get(json, "seed"));
    return (gumbel_sampling){.size = sizeof(gumbel_sampling),
                             .temperature = (float)json_number_value(json_object_get(json, "temperature")),
                             .top_k = (int32_t)json_integer_value(json_object_get(json, "top_k")),
                             .top_p = (float)json_number_value(json_object_get(json, "top_p"))};
}

static void agrees(void **state) {
    const char *name = *state;
    golden_answers golden = read_golden(name);
    gumbel_program *program = open_program(name, &golden);
    gumbel_engine *engine = NULL;
    gumbel_session *session = NULL;
    gumbel_error error;
    gumbel_engine_options options = {.size = sizeof options, .threads = 2, .backend = GUMBEL_TEST_BACKEND};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);

    compare_logits(name, session, engine, &golden);
    const gumbel_sampling greedy = {.size = sizeof greedy, .temperature = 0, .top_p = 1};
    compare_tokens(name, session, &golden, &greedy, &golden.greedy);
    uint64_t seed = 0;
    gumbel_sampling sampling = golden_sampling(&golden, &seed);
    gumbel_session_set_seed(session, seed);
    compare_tokens(name, session, &golden, &sampling, &golden.sampled);

    gumbel_session_destroy(session);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    json_decref(golden.json);
}

#define AGREES(name)                                                                                         \
    { name, agrees, NULL, NULL, (void *)(uintptr_t)(name) }

int main(int argument_count, char **arguments) {
    const struct CMUnitTest tests[] = {
        AGREES("released"),
        AGREES("defaults"),
        AGREES("per_layer"),
        AGREES("wide_window"),
        AGREES("odd_sizes"),
        AGREES("half"),
        AGREES("own_head"),
        AGREES("qwen_released"),
        AGREES("qwen_older"),
        AGREES("qwen_many_experts"),
        AGREES("qwen_odd_sizes"),
        AGREES("qwen_tied"),
        AGREES("qwen_dense"),
        AGREES("qwen_dense_text"),
        AGREES("llama_released"),
        AGREES("llama_older"),
        AGREES("mistral_window"),
        AGREES("mistral_wrapped"),
        AGREES("qwen3_dense"),
        AGREES("qwen3_yarn"),
        AGREES("qwen3_experts"),
        AGREES("qwen3_some_experts"),
        AGREES("gemma_experts"),
        AGREES("gemma_many_experts"),
        AGREES("gemma_unified"),
        AGREES("gemma_shared_keys"),
        AGREES("gemma_layer_inputs"),
        AGREES("qwen2_released"),
        AGREES("qwen2_own_head"),
        AGREES("qwen2_window"),
        AGREES("gemma3_released"),
        AGREES("gemma3_text"),
        AGREES("gemma3_nested"),
        AGREES("gemma3_odd_sizes"),
        AGREES("smollm3_released"),
        AGREES("smollm3_interval"),
        AGREES("smollm3_yarn"),
        AGREES("granite_released"),
        AGREES("granite_own_head"),
        AGREES("granite_hybrid"),
        AGREES("granite_hybrid_nope"),
        AGREES("granite4_experts"),
        AGREES("granite4_dense"),
        AGREES("granite4_odd_sizes"),
        AGREES("granite4_mamba"),
        AGREES("phi3_long"),
        AGREES("phi3_short"),
        AGREES("phi3_window"),
        AGREES("gpt_oss_released"),
        AGREES("gpt_oss_odd_sizes"),
        AGREES("gpt_oss_half"),
        AGREES("muse_released"),
        AGREES("muse_flat"),
        AGREES("muse_listed"),
        AGREES("ministral3_released"),
        AGREES("ministral3_window"),
        AGREES("ministral3_plain"),
        AGREES("olmo2_released"),
        AGREES("olmo3_released"),
        AGREES("olmo3_nested"),
        AGREES("olmo3_half"),
        AGREES("lfm2_released"),
        AGREES("lfm2_odd_sizes"),
        AGREES("lfm2_moe_released"),
        AGREES("lfm2_moe_scaled"),
        AGREES("nemotron_released"),
        AGREES("nemotron_dense"),
        AGREES("nemotron_latent"),
        AGREES("nemotron_odd_sizes"),
        AGREES("next_released"),
        AGREES("next_some_experts"),
        AGREES("next_plain_weights"),
        AGREES("next_listed_layers"),
    };
    read_test_arguments(argument_count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
