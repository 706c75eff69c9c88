/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes of a book, which become 8 bits on the device: GGUF files with random blocks, dense products and
 * experts, give what they give on the CPU.
 */
#include "cuda/launching.h"
#include "support/assertions.h"
#include "support/checkpoints/qwen35_gguf.h"
#include "support/temporary.h"

#include <math.h>
#include <string.h>

enum { PROMPT = 21, STEP = 5 };

static void run(gumbel_program *program, const char *backend, float *logits) {
    const gumbel_engine_options options = {.size = sizeof options, .backend = backend, .threads = 1};
    gumbel_engine *engine;
    gumbel_session *session;
    gumbel_error error;
    int32_t prompt[PROMPT];
    for (int i = 0; i < PROMPT; i++)
        prompt[i] = i * 7 % QWEN35_VOCABULARY;
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request, .session = session, .result = &result};
    for (int at = 0; at < PROMPT; at += STEP) { /* the last step has one token */
        request.tokens = prompt + at;
        request.token_count = (size_t)(PROMPT - at < STEP ? PROMPT - at : STEP);
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    }
    memcpy(logits, result.logits, QWEN35_VOCABULARY * sizeof *logits);
    gumbel_session_destroy(session);
    gumbel_engine_destroy(engine);
}

static void check(gb_block_type type, const char *activations) {
    float expected[QWEN35_VOCABULARY], found[QWEN35_VOCABULARY];
    double largest = 0, difference = 0;
    gumbel_export_options options = {.size = sizeof options, .activations = activations, .logits = true};
    gumbel_program *program;
    gumbel_error error;
    gb_program *weights = random_qwen35();
    write_qwen35_blocks(weights, type, false, temporary_path("model.gguf"));
    gb_program_destroy(weights);
    assert_ok(gumbel_export(temporary_path("model.gguf"), temporary_path("a.gumbel"), &options, &error),
              &error);
    assert_ok(gumbel_program_open(temporary_path("a.gumbel"), &program, &error), &error);
    run(program, "cpu", expected);
    run(program, "cuda", found);
    gumbel_program_close(program);
    for (int i = 0; i < QWEN35_VOCABULARY; i++) {
        largest = fmax(largest, fabs((double)expected[i]));
        difference = fmax(difference, fabs((double)expected[i] - (double)found[i]));
    }
    print_message("%s, %s: difference %.2g of the largest logit\n", gb_block_find(type)->name, activations,
                  difference / largest);
    assert_true(isfinite(largest) && largest > 0 && difference <= 0.03 * largest);
}

static void gives_what_the_cpu_gives(void **state) {
    (void)state;
    check(GB_BLOCK_MXFP4, "none");
    check(GB_BLOCK_MXFP4, "int8");
    check(GB_BLOCK_IQ4_NL, "int8");
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(gives_what_the_cpu_gives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
