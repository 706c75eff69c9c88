/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a prompt's steps are: what each backend takes by default, what an engine refuses, and that tokens
 * do not depend on it.
 */
#include "run/prefill_chunk.h"
#include "support/backend.h"
#include "support/paths.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { LONGEST = 1300, ANSWER = 6 };

static gumbel_error error;

static gumbel_engine *make_engine(const gumbel_program *program, gumbel_engine_options options,
                                  gumbel_engine_info *info) {
    gumbel_engine *engine;
    options.size = sizeof options;
    options.backend = GUMBEL_TEST_BACKEND;
    *info = (gumbel_engine_info){.size = sizeof *info};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_engine_get_info(engine, info, &error), &error);
    return engine;
}

/* ---- Sizes --------------------------------------------------------------------------------------------- */

static uint32_t usual_chunk(const char *backend, gb_program *program, uint32_t max_context) {
    const gb_backend_entry *entry;
    assert_ok(gb_backend_find(backend, &entry, &error), &error);
    return gb_usual_prefill_chunk(program, entry, max_context);
}

static void each_backend_has_a_default(void **unused) {
    (void)unused;
    gb_program program = {.metadata = {.prefill_chunk = 512, .max_context = 20000}};
    assert_int_equal(usual_chunk(NULL, &program, 20000), 512);
    assert_int_equal(usual_chunk("mlx", &program, 20000), 512);
    assert_int_equal(usual_chunk("cuda", &program, 20000), 8192);
    assert_int_equal(usual_chunk("cuda", &program, 8192), 8192);
    assert_int_equal(usual_chunk("cuda", &program, 8191), 4096);
    assert_int_equal(usual_chunk("cuda", &program, 300), 512); /* the program's, whatever the context */
    program.metadata.prefill_chunk = 16384;
    assert_int_equal(usual_chunk("cuda", &program, 20000), 16384);
}

static void an_engine_has_the_chunk_it_is_given(void **unused) {
    (void)unused;
    gumbel_engine_info info;
    gumbel_program *program = open_random_program("qwen_long.json", false);
    gumbel_engine_destroy(make_engine(program, (gumbel_engine_options){.slots = 2}, &info));
    const uint32_t usual = strcmp(GUMBEL_TEST_BACKEND, "cuda") == 0 ? 4096 : 512;
    assert_int_equal(info.prefill_chunk, usual);
    assert_int_equal(info.step_tokens, usual + 2);
    gumbel_engine_destroy(
        make_engine(program, (gumbel_engine_options){.slots = 2, .prefill_chunk = 1024}, &info));
    assert_int_equal(info.prefill_chunk, 1024);
    assert_int_equal(info.step_tokens, 1026);
    gumbel_engine_destroy(
        make_engine(program, (gumbel_engine_options){.prefill_chunk = 1024, .step_tokens = 100}, &info));
    assert_int_equal(info.prefill_chunk, 100);
    gumbel_engine_destroy(make_engine(program, (gumbel_engine_options){.prefill_chunk = 3}, &info));
    assert_int_equal(info.prefill_chunk, 3);
    gumbel_program_close(program);
}

static void refuse(const gumbel_program *program, gumbel_engine_options options, const char *message) {
    gumbel_engine *engine;
    options.size = sizeof options;
    options.backend = GUMBEL_TEST_BACKEND;
    assert_fails(gumbel_engine_create(program, &options, &engine, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 message);
    assert_null(engine);
}

static void what_is_too_long_is_refused(void **unused) {
    (void)unused;
    gumbel_program *caches = open_random_program("qwen_long.json", false);
    refuse(caches, (gumbel_engine_options){.prefill_chunk = 4672},
           "prefill chunk of 4672 tokens: at most 4608 with a context of 4608 positions (--max-context)");
    refuse(caches, (gumbel_engine_options){.prefill_chunk = 1088, .max_context = 1024},
           "at most 1024 with a context of 1024 positions");
    refuse(caches, (gumbel_engine_options){.prefill_chunk = 1000},
           "prefill chunk of 1000 tokens: above 64 expected a multiple of 64");
    gumbel_program_close(caches);
}

/* A step takes as many tokens as the engine says, and no more. */
static void a_step_has_the_chunk(void **unused) {
    (void)unused;
    gumbel_engine_info info;
    gumbel_session *session;
    static int32_t tokens[129];
    gumbel_program *program = open_random_program("qwen.json", false);
    gumbel_engine *engine = make_engine(program, (gumbel_engine_options){.prefill_chunk = 64}, &info);
    random_tokens(3, 160, tokens, 129);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_request request = {
        .size = sizeof request, .session = session, .tokens = tokens, .token_count = 65};
    assert_fails(gumbel_step(engine, &request, 1, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "65 tokens for one session, at most 64 (the engine's prefill chunk)");
    request.token_count = 64;
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    assert_ok(gumbel_session_append(session, tokens, 64, &error), &error);
    assert_int_equal(gumbel_session_position(session, NULL), 128);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

/* ---- Tokens -------------------------------------------------------------------------------------------- */

typedef struct answer {
    int32_t tokens[ANSWER];
    float logprobs[ANSWER];
} answer;

static answer answer_of(const gumbel_program *program, uint32_t chunk, const int32_t *prompt, size_t count) {
    gumbel_engine_info info;
    gumbel_session *session;
    gumbel_engine *engine = make_engine(program, (gumbel_engine_options){.prefill_chunk = chunk}, &info);
    const gumbel_sampling warm = {.size = sizeof warm, .temperature = 1, .top_p = 1};
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &warm,
                                             .wants_logprob = true,
                                             .max_new_tokens = ANSWER,
                                             .ignore_stop = true};
    answer made = {0};
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, 5);
    assert_ok(gumbel_generate(session, prompt, count, &options, &error), &error);
    for (int i = 0; i < ANSWER; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(session, &next, &error), &error);
        made.tokens[i] = next.token;
        made.logprobs[i] = next.logprob;
    }
    gumbel_engine_destroy(engine);
    return made;
}

/* Chunks that divide the prompt, that leave a rest, and one that has all of it. */
static void compare(const gumbel_program *program, const uint32_t *chunks, size_t chunk_count, size_t count) {
    static int32_t prompt[LONGEST];
    random_tokens(9, 160, prompt, count);
    const answer expected = answer_of(program, 0, prompt, count);
    for (size_t i = 0; i < chunk_count; i++) {
        const answer found = answer_of(program, chunks[i], prompt, count);
        assert_memory_equal(&found, &expected, sizeof found);
    }
}

static void chunks_change_no_tokens(void **unused) {
    (void)unused;
    gumbel_program *program = open_random_program("qwen_long.json", false);
    compare(program, (const uint32_t[]){64, 512, 4096}, 3, (size_t)shortened(LONGEST, 200));
    gumbel_program_close(program);
}

/* Several layers read the same rings, which the last of them fills with a long chunk. */
static void chunks_change_no_tokens_of_shared_keys(void **unused) {
    (void)unused;
    gumbel_program *program = open_random_program("../export/agreement/gemma_shared_keys.json", false);
    compare(program, (const uint32_t[]){7, 48, 64, 256}, 4, (size_t)shortened(300, 80));
    gumbel_program_close(program);
}

/* Heads of 128 and 256, in rings and in a full cache; prompts of a token more than the window, of two
 * windows, and of a window and a chunk. */
static void chunks_change_no_tokens_of_codes(void **unused) {
    (void)unused;
    enum { WINDOW = 8, CHUNK = 64 };
    static const size_t lengths[] = {2 * WINDOW, 100, WINDOW + 1, WINDOW + CHUNK};
    static const char *const caches[] = {"bfloat16", "q4-all", "q8", "q4"};
    for (size_t i = is_short_run() ? 2 : 0; i < sizeof caches / sizeof *caches; i++) {
        gumbel_program *program =
            export_random_program("small_heads.json", (gumbel_export_options){.cache = caches[i]});
        for (size_t l = is_short_run() ? 3 : 0; l < sizeof lengths / sizeof *lengths; l++)
            compare(program, (const uint32_t[]){7, 64, 128}, 3, lengths[l]);
        gumbel_program_close(program);
    }
}

static void compare_bundled(const char *model, const uint32_t *chunks, size_t count) {
    char checkpoint[512];
    gumbel_program *program;
    const gumbel_export_options options = {.size = sizeof options, .quantize = "int4"};
    if (is_short_run())
        skip();
    snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, model);
    const char *path = temporary_path("bundled.gumbel");
    assert_ok(gumbel_export(checkpoint, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    compare(program, chunks, count, LONGEST);
    gumbel_program_close(program);
}

static void chunks_change_no_tokens_of_qwen(void **unused) {
    (void)unused;
    compare_bundled("qwen3_5-moe-tiny", (const uint32_t[]){64, 512, 2048}, 3);
}

static void chunks_change_no_tokens_of_gemma(void **unused) {
    (void)unused;
    compare_bundled("gemma4-tiny", (const uint32_t[]){16, 64, 512, 2048}, 4);
}

int main(int argument_count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_backend_has_a_default),
        cmocka_unit_test(an_engine_has_the_chunk_it_is_given),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(a_step_has_the_chunk),
        cmocka_unit_test(chunks_change_no_tokens),
        cmocka_unit_test(chunks_change_no_tokens_of_shared_keys),
        cmocka_unit_test(chunks_change_no_tokens_of_codes),
        cmocka_unit_test(chunks_change_no_tokens_of_qwen),
        cmocka_unit_test(chunks_change_no_tokens_of_gemma),
    };
    read_test_arguments(argument_count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
