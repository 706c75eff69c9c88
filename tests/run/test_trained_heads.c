/* SPDX-License-Identifier: Apache-2.0
 *
 * The bundled models' own draft heads, which are trained: answers are those without them, and most of what
 * they guess is right.
 */
#include "run/handles.h"
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

enum { MOST = 240, PROMPT = 256, DRAFT = 3 };

typedef struct trained {
    const char *model, *assistant; /* NULL: the head is in the model's own checkpoint */
    uint32_t least;                /* of 100 first guesses that are right */
} trained;

static const char question[] = "Tell me a story about a dog and a cat.";
static gumbel_error error;

static gumbel_program *export_with_head(const trained *one) {
    char checkpoint[512], assistant[512];
    const char *path = temporary_path("trained.gumbel");
    gumbel_program *program;
    snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, one->model);
    gumbel_export_options options = {.size = sizeof options, .quantize = "int4", .max_context = 512};
    if (one->assistant) {
        snprintf(assistant, sizeof assistant, "%s/%s", test_models_folder, one->assistant);
        options.assistant = assistant;
    } else {
        options.draft_head = true;
    }
    assert_ok(gumbel_export(checkpoint, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    return program;
}

static size_t find_prompt(const gumbel_program *program, int32_t prompt[PROMPT]) {
    const gumbel_message message = {.size = sizeof message, .role = "user", .content = question};
    const gumbel_chat_options chat = {.size = sizeof chat, .thinking = GUMBEL_THINKING_OFF};
    gumbel_tokenizer *tokenizer;
    size_t count;
    assert_ok(gumbel_tokenizer_create(program, &tokenizer, &error), &error);
    assert_ok(gumbel_chat_encode(tokenizer, &message, 1, &chat, prompt, PROMPT, &count, &error), &error);
    gumbel_tokenizer_destroy(tokenizer);
    return count;
}

/* Returns how many tokens there are. */
static uint32_t answer(gumbel_engine *engine, const int32_t *prompt, size_t count, float temperature,
                       gumbel_drafting drafting, int32_t tokens[MOST], gumbel_draft_stats *stats) {
    const gumbel_sampling sampling = {.size = sizeof sampling, .temperature = temperature, .top_p = 1};
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &sampling,
                                             .max_new_tokens = MOST,
                                             .drafting = drafting,
                                             .max_draft = DRAFT};
    gumbel_session *session;
    gumbel_generated next = {.size = sizeof next};
    uint32_t drawn = 0;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, 11);
    assert_ok(gumbel_generate(session, prompt, count, &options, &error), &error);
    for (; next.finish == GUMBEL_FINISH_NONE; tokens[drawn++] = next.token)
        assert_ok(gumbel_next(session, &next, &error), &error);
    *stats = (gumbel_draft_stats){.size = sizeof *stats};
    assert_ok(gumbel_session_draft_stats(session, stats, &error), &error);
    gumbel_session_destroy(session);
    return drawn;
}

static void test_head(void **state) {
    const trained *one = *state;
    gumbel_program *program = export_with_head(one);
    gumbel_engine_options options = {.size = sizeof options, .backend = GUMBEL_TEST_BACKEND};
    gumbel_engine *draft_engine, *engine;
    int32_t prompt[PROMPT];
    const size_t count = find_prompt(program, prompt);
    assert_ok(gumbel_engine_create(gumbel_program_draft_head(program), &options, &draft_engine, &error),
              &error);
    options.draft_engine = draft_engine;
    options.draft_tokens = DRAFT;
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    engine->step_times.is_fixed = draft_engine->step_times.is_fixed = true;
    for (int t = 0; t < 3; t++) {
        int32_t alone[MOST], found[MOST];
        gumbel_draft_stats none, stats;
        const float temperature = 0.5f * (float)t;
        const uint32_t drawn = answer(engine, prompt, count, temperature, GUMBEL_DRAFTING_OFF, alone, &none);
        assert_int_equal(answer(engine, prompt, count, temperature, GUMBEL_DRAFTING_MODEL, found, &stats),
                         drawn);
        assert_memory_equal(found, alone, drawn * sizeof *found);
        print_message("%s at %.1f: %u tokens, %u of %u first guesses right, %u of %u at all\n", one->model,
                      (double)temperature, drawn, (unsigned)stats.accepted_at[0], (unsigned)stats.tried_at[0],
                      (unsigned)stats.accepted, (unsigned)stats.proposed);
        assert_true(stats.steps > drawn / 6);
        assert_true(100 * stats.accepted_at[0] > one->least * stats.tried_at[0]);
    }
    gumbel_engine_destroy(engine);
    gumbel_engine_destroy(draft_engine);
    gumbel_program_close(program);
}

int main(int argument_count, char **arguments) {
    static const trained qwen = {.model = "qwen3_5-moe-tiny", .least = 60},
                         gemma = {.model = "gemma4-tiny", .assistant = "gemma4-tiny/assistant", .least = 50};
    read_test_arguments(argument_count, arguments);
    const struct CMUnitTest tests[] = {
        {"qwen3_5-moe-tiny", test_head, NULL, NULL, (void *)(uintptr_t)&qwen},
        {"gemma4-tiny", test_head, NULL, NULL, (void *)(uintptr_t)&gemma},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
