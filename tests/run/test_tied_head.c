/* SPDX-License-Identifier: Apache-2.0
 *
 * Tied heads of quantized programs: with one matrix for head and embedding the bundled models, which are both
 * tied, predict what they do with the checkpoint's weights.
 */
#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH = 200, TEXT_BYTES = 1 << 12, VOCABULARY = 2048 };

static gumbel_error error;

static gumbel_program *open_model(const char *model, const char *recipe) {
    char checkpoint[512];
    gumbel_program *program;
    const gumbel_export_options options = {.size = sizeof options, .quantize = recipe};
    snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, model);
    const char *path = temporary_path("model.gumbel");
    assert_ok(gumbel_export(checkpoint, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    return program;
}

static void read_tokens(const gumbel_program *program, int32_t tokens[LENGTH]) {
    static char text[TEXT_BYTES];
    static int32_t all[TEXT_BYTES];
    char path[512];
    gumbel_tokenizer *tokenizer;
    size_t count;
    snprintf(path, sizeof path, "%s/quantize/perplexity.txt", test_data_folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_ok(gumbel_tokenizer_create(program, &tokenizer, &error), &error);
    assert_ok(gumbel_encode(tokenizer, text, length, 0, all, TEXT_BYTES, &count, &error), &error);
    assert_true(count >= LENGTH);
    memcpy(tokens, all, LENGTH * sizeof *tokens);
    gumbel_tokenizer_destroy(tokenizer);
}

/* log softmax after each token of the text. */
static void predict(const char *model, const char *recipe, double (*log_p)[VOCABULARY]) {
    gumbel_program *program = open_model(model, recipe);
    const gumbel_engine_options options = {.size = sizeof options, .backend = "cpu"};
    gumbel_engine *engine;
    gumbel_session *session;
    int32_t tokens[LENGTH];
    read_tokens(program, tokens);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    for (size_t n = 0; n < LENGTH; n++) {
        gumbel_result result = {.size = sizeof result};
        const gumbel_request request = {.size = sizeof request,
                                        .session = session,
                                        .tokens = &tokens[n],
                                        .token_count = 1,
                                        .result = &result};
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
        double sum = 0;
        for (size_t i = 0; i < VOCABULARY; i++)
            sum += exp((double)result.logits[i]);
        for (size_t i = 0; i < VOCABULARY; i++)
            log_p[n][i] = (double)result.logits[i] - log(sum);
    }
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    empty_temporary_directory();
}

/* The mean Kullback-Leibler divergence of the recipe's predictions. */
static double divergence(const char *model, const char *recipe) {
    static double expected[LENGTH][VOCABULARY], found[LENGTH][VOCABULARY];
    double sum = 0;
    predict(model, "none", expected);
    predict(model, recipe, found);
    for (size_t n = 0; n < LENGTH; n++)
        for (size_t i = 0; i < VOCABULARY; i++)
            sum += exp(expected[n][i]) * (expected[n][i] - found[n][i]);
    print_message("%s %s: %.2g\n", model, recipe, sum / LENGTH);
    return sum / LENGTH;
}

static void test_gemma4(void **unused) {
    (void)unused;
    assert_true(divergence("gemma4-tiny", "int8") < 0.001);
    assert_true(divergence("gemma4-tiny", "int4") < 0.05);
}

static void test_qwen3_5(void **unused) {
    (void)unused;
    assert_true(divergence("qwen3_5-moe-tiny", "int8") < 0.001);
    assert_true(divergence("qwen3_5-moe-tiny", "int4") < 0.05);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma4),
        cmocka_unit_test(test_qwen3_5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
