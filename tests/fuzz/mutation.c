/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutants of programs of every family: refused with a message, or run for some tokens. None may crash,
 * hang or make a sanitizer speak; a token that comes out is in the vocabulary.
 */
#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "base/memory.h"
#include "mutate.h"
#include "mutate_graph.h"
#include "originals.h"
#include "support/backend.h"
#include "support/temporary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MUTANTS, ACCEPTED, ENGINES, TOKENS };
enum { MOST_PROMPT = 40, ANSWER = 6, CONTEXT = 96 };

static void ignore_text(void *user, const char *text, size_t length) {
    (void)user, (void)text, (void)length;
}

/* An error must have a reason that can be read, and a device may not fail. */
static bool went_well(gumbel_status status, const gumbel_error *error) {
    if (status == GUMBEL_ERROR_BACKEND)
        fail_case("%s", error->message);
    if (status != GUMBEL_OK && (status != error->status || error->message[0] == '\0'))
        fail_case("status %d with error %d \"%s\"", (int)status, (int)error->status, error->message);
    return status == GUMBEL_OK;
}

static void describe(const gumbel_program *program) {
    gumbel_error error;
    for (int part = GUMBEL_INSPECT_SUMMARY; part <= GUMBEL_INSPECT_JSON; part++)
        went_well(gumbel_program_inspect(program, (gumbel_inspect_part)part, ignore_text, NULL, &error),
                  &error);
    const gumbel_step_shape shape = {
        .size = sizeof shape, .sequences = 2, .tokens = 3, .position = 70, .wants_tokens = true};
    gumbel_step_costs costs = {.size = sizeof costs};
    went_well(gumbel_program_get_costs(program, &shape, &costs, &error), &error);
}

static void use_text(const gumbel_program *program, uint32_t vocab_size, random_source *source) {
    static const char text[] = "Why is the sky blue?\n\xc3\xa9<end_of_turn>\xff";
    static const gumbel_message messages[] = {
        {.size = sizeof *messages, .role = "system", .content = "Be brief."},
        {.size = sizeof *messages, .role = "user", .content = text},
    };
    gumbel_tokenizer *tokenizer;
    gumbel_detokenizer *detokenizer;
    gumbel_error error;
    int32_t tokens[256];
    size_t count, length;
    if (!went_well(gumbel_tokenizer_create(program, &tokenizer, &error), &error))
        return;
    went_well(gumbel_encode(tokenizer, text, sizeof text - 1, NULL, tokens, 256, &count, &error), &error);
    went_well(gumbel_chat_encode(tokenizer, messages, 2, NULL, tokens, 256, &count, &error), &error);
    if (went_well(gumbel_detokenizer_create(tokenizer, true, &detokenizer, &error), &error)) {
        const char *written;
        draw_tokens(source, vocab_size, tokens, 32);
        for (int i = 0; i < 32; i++)
            went_well(gumbel_detokenize(detokenizer, tokens[i], &written, &length, &error), &error);
        gumbel_detokenize_end(detokenizer, &written, &length);
        gumbel_detokenizer_destroy(detokenizer);
    }
    gumbel_tokenizer_destroy(tokenizer);
}

static gumbel_sampling any_sampling(const gumbel_program *program, random_source *source) {
    gumbel_sampling sampling = {.size = sizeof sampling};
    gumbel_sampling_defaults(program, &sampling, NULL);
    if (random_once_in(source, 3))
        sampling.temperature = 0;
    if (random_once_in(source, 3))
        sampling.min_p = 0.05f;
    if (random_once_in(source, 3))
        sampling.repetition_penalty = 1.3f;
    if (random_once_in(source, 3))
        sampling.top_k = 1 + (int32_t)random_below(source, 100);
    return sampling;
}

/* Runs a prompt and draws tokens after it, by steps: programs with and without a sampler take them. */
static bool answer(gumbel_engine *engine, gumbel_session *session, const gumbel_program_info *info,
                   const gumbel_sampling *sampling, random_source *source, uint64_t *counts) {
    gumbel_error error;
    int32_t prompt[MOST_PROMPT];
    size_t count = 1 + random_below(source, MOST_PROMPT);
    draw_tokens(source, info->vocab_size, prompt, count);
    if (!went_well(gumbel_session_append(session, prompt, count - 1, &error), &error))
        return false;
    int32_t token = prompt[count - 1];
    for (int i = 0; i < ANSWER; i++) {
        gumbel_result result = {.size = sizeof result};
        const gumbel_request request = {.size = sizeof request,
                                        .session = session,
                                        .tokens = &token,
                                        .token_count = 1,
                                        .result = &result,
                                        .sampling = sampling};
        if (!went_well(gumbel_step(engine, &request, 1, &error), &error))
            return false;
        if (info->use_sampling && (result.token < 0 || (uint32_t)result.token >= info->vocab_size))
            fail_case("token %d of a vocabulary of %u", result.token, info->vocab_size);
        counts[TOKENS]++;
        if (info->use_sampling)
            token = result.token;
    }
    return true;
}

static void use_sessions(gumbel_engine *engine, const gumbel_program_info *info,
                         const gumbel_sampling *sampling, random_source *source, uint64_t *counts) {
    gumbel_session *session, *copy;
    gumbel_error error;
    const char *path = temporary_path("mutant.session");
    if (!went_well(gumbel_session_create(engine, &session, &error), &error))
        return;
    gumbel_session_set_seed(session, 3);
    if (!answer(engine, session, info, sampling, source, counts) ||
        !went_well(gumbel_session_snapshot(session, &error), &error) ||
        !went_well(gumbel_session_fork(session, &copy, &error), &error) ||
        !answer(engine, copy, info, sampling, source, counts) ||
        !went_well(gumbel_session_save(copy, path, &error), &error))
        return;
    uint32_t position = gumbel_session_position(session, NULL);
    if (went_well(gumbel_session_rewind(session, (uint32_t)random_below(source, position), &error), &error))
        answer(engine, session, info, sampling, source, counts);
    went_well(gumbel_session_load(session, path, &error), &error);
}

static void run_program(const gumbel_program *program, random_source *source, uint64_t *counts) {
    const bool is_cpu = strcmp(GUMBEL_TEST_BACKEND, "cpu") == 0;
    const gb_vector_kernels *set = is_cpu ? gb_available_vector_kernels(random_below(source, 4)) : NULL;
    gumbel_program_info info = {.size = sizeof info};
    gumbel_error error;
    gumbel_engine *engine;
    if (!went_well(gumbel_program_get_info(program, &info, &error), &error))
        fail_case("no info: %s", error.message);
    describe(program);
    use_text(program, info.vocab_size, source);
    const gumbel_engine_options options = {.size = sizeof options,
                                           .threads = random_once_in(source, 8) ? 2 : 1,
                                           .slots = 2,
                                           .snapshots = true,
                                           .unfused = random_once_in(source, 4),
                                           .backend = GUMBEL_TEST_BACKEND,
                                           .max_context =
                                               info.max_context < CONTEXT ? info.max_context : CONTEXT,
                                           .lock = GUMBEL_LOCK_NONE,
                                           .cpu_isa = set ? set->name : NULL};
    if (!went_well(gumbel_engine_create(program, &options, &engine, &error), &error))
        return;
    counts[ENGINES]++;
    const gumbel_sampling sampling = any_sampling(program, source);
    use_sessions(engine, &info, &sampling, source, counts);
    gumbel_engine_destroy(engine);
}

/* Damage to bytes, which is mostly refused, or another graph, which is mostly not. */
static program_file new_mutant(const program_file *original, random_source *source) {
    if (!random_once_in(source, 3))
        return mutate_graph(original, source);
    program_file mutant = copy_program_file(original, 0);
    mutate_program(&mutant, source);
    return mutant;
}

static void run_mutant(uint64_t seed, uint64_t *counts) {
    random_source source = {seed};
    program_file mutant = new_mutant(original_file(random_below(&source, original_count())), &source);
    const char *path = temporary_path("mutant.gumbel");
    write_file(path, mutant.bytes, (size_t)mutant.size);
    gb_free(mutant.bytes);
    counts[MUTANTS]++;
    gumbel_program *program;
    gumbel_error error;
    if (!went_well(gumbel_program_open(path, &program, &error), &error))
        return;
    counts[ACCEPTED]++;
    run_program(program, &source, counts);
    gumbel_program_close(program);
}

int main(int argument_count, char **arguments) {
    static const harness h = {.name = "mutation",
                              .counted = {"mutants", "accepted", "engines", "tokens"},
                              .prepare = read_originals,
                              .run_case = run_mutant};
    return run_harness(&h, argument_count, arguments);
}
