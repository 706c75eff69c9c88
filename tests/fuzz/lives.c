/* SPDX-License-Identifier: Apache-2.0 */
#include "lives.h"

#include "bundled.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROMPT = 20, ANSWER = 6, MOST_TOKENS = 256 };

static const char text[] = "Why is the sky blue?\n\xc3\xa9 Because the sea is.";

static void add_text(void *made, const char *written, size_t length) {
    hash_bytes(made, written, length);
}

/* Reads without the C library's buffers, which are allocated. */
static gumbel_status add_file(uint64_t *made, const char *path, gumbel_error *error) {
    gumbel_program *program;
    gumbel_status status = gumbel_program_open(path, &program, error);
    if (status != GUMBEL_OK)
        return status;
    status = gumbel_program_inspect(program, GUMBEL_INSPECT_JSON, add_text, made, error);
    gumbel_program_close(program);
    return status;
}

/* ---- Programs are made --------------------------------------------------------------------------------- */

static gumbel_status export_model(const char *model, const char *quantize, const char *backend,
                                  uint64_t *made, gumbel_error *error) {
    char checkpoint[512];
    const char *path = temporary_path("exported.gumbel");
    const gumbel_export_options options = {
        .size = sizeof options, .layers = 4, .max_context = 256, .quantize = quantize, .backend = backend};
    snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, model);
    unlink(path);
    gumbel_status status = gumbel_export(checkpoint, path, &options, error);
    return status == GUMBEL_OK ? add_file(made, path, error) : status;
}

static gumbel_status export_gemma(uint64_t *made, gumbel_error *error) {
    return export_model("gemma4-tiny", "int4", "cpu", made, error);
}

static gumbel_status export_qwen(uint64_t *made, gumbel_error *error) {
    return export_model("qwen3_5-moe-tiny", "int4-affine", "cuda", made, error);
}

static gumbel_status pack(uint64_t *made, gumbel_error *error) {
    const char *path = temporary_path("packed.gumbel");
    const gumbel_pack_options options = {.size = sizeof options, .backend = "mlx"};
    unlink(path);
    gumbel_status status = gumbel_pack(bundled_path(BUNDLED_GEMMA_INT4), path, &options, error);
    return status == GUMBEL_OK ? add_file(made, path, error) : status;
}

/* ---- Programs are looked at, and their text is used ---------------------------------------------------- */

static gumbel_status describe(uint64_t *made, gumbel_error *error) {
    gumbel_program *program;
    const gumbel_step_shape shape = {
        .size = sizeof shape, .sequences = 2, .tokens = 3, .position = 70, .wants_tokens = true};
    gumbel_step_costs costs = {.size = sizeof costs};
    gumbel_status status = gumbel_program_open(bundled_path(BUNDLED_QWEN_INT4), &program, error);
    if (status != GUMBEL_OK)
        return status;
    for (int part = GUMBEL_INSPECT_SUMMARY; part <= GUMBEL_INSPECT_JSON && !status; part++)
        status = gumbel_program_inspect(program, (gumbel_inspect_part)part, add_text, made, error);
    if (!status)
        status = gumbel_program_get_costs(program, &shape, &costs, error);
    gumbel_program_close(program);
    return status;
}

static gumbel_status detokenize(const gumbel_tokenizer *tokenizer, const int32_t *tokens, size_t count,
                                uint64_t *made, gumbel_error *error) {
    static const char *const stops[] = {"Because", "sea"};
    gumbel_detokenizer *detokenizer;
    const char *written;
    size_t length;
    gumbel_status status = gumbel_detokenizer_create(tokenizer, true, &detokenizer, error);
    if (status != GUMBEL_OK)
        return status;
    status = gumbel_detokenizer_stop_at(detokenizer, stops, 2, true, error);
    for (size_t i = 0; i < count && !status; i++) {
        status = gumbel_detokenize(detokenizer, tokens[i], &written, &length, error);
        if (!status)
            hash_bytes(made, written, length);
    }
    gumbel_detokenize_end(detokenizer, &written, &length);
    gumbel_detokenizer_destroy(detokenizer);
    return status;
}

static gumbel_status use_tokenizer(gumbel_tokenizer *tokenizer, uint64_t *made, gumbel_error *error) {
    static const gumbel_message messages[] = {
        {.size = sizeof *messages, .role = "system", .content = "Be brief."},
        {.size = sizeof *messages, .role = "user", .content = text},
    };
    int32_t tokens[MOST_TOKENS];
    size_t count;
    gumbel_status status =
        gumbel_encode(tokenizer, text, sizeof text - 1, NULL, tokens, MOST_TOKENS, &count, error);
    if (!status)
        status = detokenize(tokenizer, tokens, count, made, error);
    if (!status)
        status = gumbel_chat_encode(tokenizer, messages, 2, NULL, tokens, MOST_TOKENS, &count, error);
    if (!status)
        hash_bytes(made, tokens, count * sizeof *tokens);
    return status;
}

static gumbel_status use_text(uint64_t *made, gumbel_error *error) {
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    gumbel_status status = gumbel_program_open(bundled_path(BUNDLED_QWEN), &program, error);
    if (status != GUMBEL_OK)
        return status;
    status = gumbel_tokenizer_create(program, &tokenizer, error);
    if (!status) {
        status = use_tokenizer(tokenizer, made, error);
        gumbel_tokenizer_destroy(tokenizer);
    }
    gumbel_program_close(program);
    return status;
}

/* ---- Programs run -------------------------------------------------------------------------------------- */

/* A text with log-probabilities, which stops where none is. */
static gumbel_status generate(gumbel_session *session, const gumbel_tokenizer *tokenizer, uint64_t *made,
                              gumbel_error *error) {
    static const char *const stops[] = {"a string that no answer has"};
    static const gumbel_bias biases[] = {{3, 1}, {4, -1}};
    const gumbel_sampling sampling = {.size = sizeof sampling,
                                      .temperature = 1,
                                      .top_k = 50,
                                      .top_p = 0.9f,
                                      .repetition_penalty = 1.1f,
                                      .bias = biases,
                                      .bias_count = 2};
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &sampling,
                                             .snapshot = true,
                                             .ignore_stop = true,
                                             .wants_logprob = true,
                                             .top_logprobs = 3,
                                             .tokenizer = tokenizer,
                                             .stop_strings = stops,
                                             .stop_string_count = 1};
    int32_t prompt[PROMPT];
    for (int32_t i = 0; i < PROMPT; i++)
        prompt[i] = 10 + i;
    gumbel_session_set_seed(session, 7);
    gumbel_status status = gumbel_generate(session, prompt, PROMPT, &options, error);
    for (int i = 0; i < ANSWER && !status; i++) {
        gumbel_generated next = {.size = sizeof next};
        status = gumbel_next(session, &next, error);
        if (!status)
            hash_bytes(made, &next.token, sizeof next.token);
    }
    return status;
}

/* Answers, goes back, copies, and keeps the copy in a file. */
static gumbel_status use_sessions(gumbel_engine *engine, const gumbel_tokenizer *tokenizer, uint64_t *made,
                                  gumbel_error *error) {
    gumbel_session *session, *copy;
    const char *path = temporary_path("life.session");
    gumbel_status status = gumbel_session_create(engine, &session, error);
    if (!status)
        status = generate(session, tokenizer, made, error);
    if (!status)
        status = gumbel_session_rewind(session, PROMPT - 1, error);
    if (!status)
        status = gumbel_session_fork(session, &copy, error);
    if (!status)
        status = generate(copy, tokenizer, made, error);
    if (!status)
        status = gumbel_session_save(copy, path, error);
    if (!status)
        status = gumbel_session_load(session, path, error);
    return status ? status : generate(session, tokenizer, made, error);
}

static gumbel_status run_on_engine(const gumbel_program *program, const gumbel_tokenizer *tokenizer,
                                   uint64_t *made, gumbel_error *error) {
    gumbel_engine *engine;
    const gumbel_engine_options options = {.size = sizeof options,
                                           .threads = 2,
                                           .slots = 2,
                                           .snapshots = true,
                                           .max_context = 256,
                                           .lock = GUMBEL_LOCK_NONE};
    gumbel_status status = gumbel_engine_create(program, &options, &engine, error);
    if (status != GUMBEL_OK)
        return status;
    status = use_sessions(engine, tokenizer, made, error);
    gumbel_engine_destroy(engine);
    return status;
}

static gumbel_status run_program(size_t which, uint64_t *made, gumbel_error *error) {
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    gumbel_status status = gumbel_program_open(bundled_path(which), &program, error);
    if (status != GUMBEL_OK)
        return status;
    status = gumbel_tokenizer_create(program, &tokenizer, error);
    if (!status) {
        status = run_on_engine(program, tokenizer, made, error);
        gumbel_tokenizer_destroy(tokenizer);
    }
    gumbel_program_close(program);
    return status;
}

static gumbel_status run_gemma(uint64_t *made, gumbel_error *error) {
    return run_program(BUNDLED_GEMMA_INT4, made, error);
}

static gumbel_status run_qwen(uint64_t *made, gumbel_error *error) {
    return run_program(BUNDLED_QWEN, made, error);
}

/* ---- All ----------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    gumbel_status (*run)(uint64_t *made, gumbel_error *error);
} all[] = {{"export gemma", export_gemma}, {"export qwen", export_qwen}, {"pack", pack},
           {"describe", describe},         {"text", use_text},           {"run gemma", run_gemma},
           {"run qwen", run_qwen}};

static const char *name_of(size_t which) {
    return all[which].name;
}

static gumbel_status run(size_t which, uint64_t *made, gumbel_error *error) {
    return all[which].run(made, error);
}

const life_set lives = {.harness = "allocation",
                        .count = sizeof all / sizeof all[0],
                        .prepare = export_bundled,
                        .name_of = name_of,
                        .run = run};
