/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes that stay are not bound again: what else differs between two steps must be.
 */
#include "support/assertions.h"
#include "support/programs/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 12, SESSIONS = 3, LAST = 2 };

static int32_t prompt[PROMPT];
static const gumbel_sampling greedy = {.size = sizeof greedy, .top_p = 1};

/* Of the last tokens of the prompt. */
static gumbel_request request_of(gumbel_session *session, size_t tokens, gumbel_result *result) {
    return (gumbel_request){.size = sizeof(gumbel_request),
                            .session = session,
                            .tokens = prompt + PROMPT - tokens,
                            .token_count = tokens,
                            .result = result,
                            .sampling = &greedy};
}

/* The last tokens of one prompt twice: of one session, and by halves of two, where one has the result. Both
 * are as many tokens and rows, in other runs. */
static void other_runs_are_bound(void **unused) {
    (void)unused;
    gumbel_program *program =
        export_random_program("qwen.json", (gumbel_export_options){.activations = "none"});
    const gumbel_engine_options options = {
        .size = sizeof options, .backend = "cuda", .slots = SESSIONS, .step_tokens = PROMPT, .threads = 1};
    gumbel_engine *engine;
    gumbel_error error;
    float expected[VOCAB];
    gumbel_session *sessions[SESSIONS];
    gumbel_result result = {.size = sizeof result};
    random_tokens(1, VOCAB, prompt, PROMPT);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    for (size_t s = 0; s < SESSIONS; s++) {
        const size_t last = s == 0 ? 2 * LAST : LAST;
        assert_ok(gumbel_session_create(engine, &sessions[s], &error), &error);
        assert_ok(gumbel_session_append(sessions[s], prompt, PROMPT - last, &error), &error);
    }
    const gumbel_request alone = request_of(sessions[0], 2 * LAST, &result);
    const gumbel_request both[] = {request_of(sessions[1], LAST, NULL),
                                   request_of(sessions[2], LAST, &result)};
    assert_ok(gumbel_step(engine, &alone, 1, &error), &error);
    memcpy(expected, result.logits, sizeof expected);
    assert_ok(gumbel_step(engine, both, 2, &error), &error);
    assert_memory_equal(result.logits, expected, sizeof expected);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(other_runs_are_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
