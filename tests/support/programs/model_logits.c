/* SPDX-License-Identifier: Apache-2.0 */
#include "support/programs/model_logits.h"

#include "support/assertions.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { PROMPT = 14 };

static int32_t likeliest(const float *logits, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        best = logits[i] > logits[best] ? i : best;
    return (int32_t)best;
}

static const float *step(gumbel_engine *engine, gumbel_session *session, int32_t token) {
    gumbel_error error;
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {
        .size = sizeof request, .session = session, .tokens = &token, .token_count = 1, .result = &result};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    return result.logits;
}

static void run(gumbel_program *program, uint32_t vocabulary, float *logits, int32_t *greedy, size_t count) {
    gumbel_engine *engine = NULL;
    gumbel_session *session = NULL;
    gumbel_error error;
    int32_t tokens[PROMPT];
    random_tokens(3, vocabulary, tokens, PROMPT);
    assert_ok(gumbel_engine_create(program, NULL, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(gumbel_session_append(session, tokens, PROMPT - 1, &error), &error);
    const float *last = step(engine, session, tokens[PROMPT - 1]);
    memcpy(logits, last, vocabulary * sizeof *logits);
    for (size_t i = 0; i < count; i++) {
        greedy[i] = likeliest(last, vocabulary);
        last = step(engine, session, greedy[i]);
    }
    gumbel_session_destroy(session);
    gumbel_engine_destroy(engine);
}

void exported_logits(const char *checkpoint, const char *output, const gumbel_export_options *options,
                     uint32_t vocabulary, float *logits, int32_t *greedy, size_t count) {
    gumbel_export_options own = options ? *options : (gumbel_export_options){.size = sizeof own};
    gumbel_program *program = NULL;
    gumbel_error error;
    const char *path = temporary_path(output);
    own.logits = true;
    assert_ok(gumbel_export(checkpoint, path, &own, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    run(program, vocabulary, logits, greedy, count);
    gumbel_program_close(program);
}
