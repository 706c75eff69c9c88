/* SPDX-License-Identifier: Apache-2.0
 *
 * A program whose weights were laid out for the CPU gives the bits of one that was laid out for MLX, and the
 * backend says that it had to unpack them.
 */
#include "support/programs/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 12 };

static gumbel_error error;

static void note(void *user, gumbel_log_level level, const char *line) {
    (void)level;
    if (strstr(line, "laid out for another backend"))
        ++*(int *)user;
}

/* Logits after the prompt, and how often unpacking was told. */
static int run(const char *config, const char *recipe, const char *laid_out_for, float logits[VOCAB]) {
    int told = 0;
    gumbel_program *program = export_random_program(
        config, (gumbel_export_options){.quantize = recipe, .logits = true, .backend = laid_out_for});
    gumbel_engine_options options = {
        .size = sizeof options, .backend = "mlx", .log = note, .log_user = &told};
    gumbel_engine *engine;
    gumbel_session *session;
    int32_t tokens[PROMPT];
    random_tokens(4, VOCAB, tokens, PROMPT);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(gumbel_session_append(session, tokens, PROMPT - 1, &error), &error);
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = tokens + PROMPT - 1,
                              .token_count = 1,
                              .result = &result};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    memcpy(logits, result.logits, VOCAB * sizeof *logits);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    return told;
}

static void compare(const char *config, const char *recipe) {
    float expected[VOCAB], found[VOCAB];
    assert_int_equal(run(config, recipe, "mlx", expected), 0);
    assert_int_equal(run(config, recipe, "cpu", found), 1);
    assert_memory_equal(found, expected, sizeof expected);
}

static void test_layouts(void **state) {
    (void)state;
    compare("small_groups.json", "int4");
    compare("small_groups.json", "int4-affine");
    compare("small_groups.json", "int8-affine");
    compare("qwen_groups.json", "int4");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
