/* SPDX-License-Identifier: Apache-2.0
 *
 * One answer, replayed with each instruction set of this machine, other threads and a prompt cut elsewhere:
 * the bits of tokens, log-probabilities and logits are those of one thread with portable kernels.
 */
#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "bundled.h"
#include "cases.h"

#include <stdlib.h>
#include <string.h>

enum { REPLAYS, SETS, TOKENS };
enum { MOST_PROMPT = 90, ANSWER = 8, TOP = 5, CONTEXT = 128, CHUNK = 64, MOST_THREADS = 3 };

typedef struct replay {
    random_source source;
    gumbel_program *program;
    gumbel_program_info info;
    gumbel_sampling sampling;
    int32_t prompt[MOST_PROMPT];
    uint32_t prompt_count;
} replay;

typedef struct result {
    int32_t tokens[ANSWER];
    float logprobs[ANSWER][1 + TOP];
    float *logits; /* [ANSWER][vocab_size] of a program without a sampler, otherwise zeros */
} result;

static gumbel_error error;

static void must(gumbel_status status, const char *what) {
    if (status != GUMBEL_OK)
        fail_case("%s: %s", what, error.message);
}

static void draw_case(replay *r, uint64_t seed) {
    r->source = (random_source){seed};
    r->info.size = sizeof r->info;
    must(gumbel_program_open(bundled_path(random_below(&r->source, BUNDLED_PROGRAMS)), &r->program, &error),
         "program");
    must(gumbel_program_get_info(r->program, &r->info, &error), "info");
    r->prompt_count = 1 + (uint32_t)random_below(&r->source, MOST_PROMPT);
    draw_tokens(&r->source, r->info.vocab_size, r->prompt, r->prompt_count);
    r->sampling = (gumbel_sampling){.size = sizeof r->sampling, .temperature = 1, .top_p = 1};
    if (random_once_in(&r->source, 3))
        r->sampling.temperature = 0;
    if (random_once_in(&r->source, 2))
        r->sampling.top_k = 1 + (int32_t)random_below(&r->source, 60);
    if (random_once_in(&r->source, 2))
        r->sampling.top_p = 0.9f;
}

static void keep(const replay *r, const gumbel_result *got, result *kept, size_t i) {
    const uint32_t vocab_size = r->info.vocab_size;
    kept->tokens[i] = got->token;
    kept->logprobs[i][0] = got->logprob;
    if (got->top_token_logprob)
        memcpy(kept->logprobs[i] + 1, got->top_token_logprob, got->top_logprobs * sizeof(float));
    if (!r->info.use_sampling)
        memcpy(kept->logits + i * vocab_size, got->logits, vocab_size * sizeof(float));
}

/* Prompts in pieces of at most that many tokens. */
static void answer(const replay *r, gumbel_engine *engine, uint32_t piece, result *kept) {
    gumbel_session *session;
    const uint32_t top = r->info.max_top_logprobs < TOP ? r->info.max_top_logprobs : TOP;
    must(gumbel_session_create(engine, &session, &error), "session");
    gumbel_session_set_seed(session, 5);
    for (uint32_t at = 0; at + 1 < r->prompt_count; at += piece) {
        uint32_t left = r->prompt_count - 1 - at;
        must(gumbel_session_append(session, r->prompt + at, left < piece ? left : piece, &error), "append");
    }
    int32_t token = r->prompt[r->prompt_count - 1];
    for (size_t i = 0; i < ANSWER; i++) {
        gumbel_result got = {.size = sizeof got};
        gumbel_request request = {.size = sizeof request,
                                  .session = session,
                                  .tokens = &token,
                                  .token_count = 1,
                                  .result = &got,
                                  .sampling = &r->sampling,
                                  .wants_logprob = top > 0,
                                  .top_logprobs = top};
        must(gumbel_step(engine, &request, 1, &error), "step");
        keep(r, &got, kept, i);
        if (r->info.use_sampling)
            token = got.token;
    }
}

static void run_with(const replay *r, const char *set, int threads, uint32_t piece, bool unfused,
                     result *kept) {
    gumbel_engine *engine;
    const gumbel_engine_options options = {.size = sizeof options,
                                           .threads = threads,
                                           .max_context = CONTEXT,
                                           .lock = GUMBEL_LOCK_NONE,
                                           .cpu_isa = set,
                                           .unfused = unfused};
    memset(kept->logprobs, 0, sizeof kept->logprobs);
    must(gumbel_engine_create(r->program, &options, &engine, &error), set);
    answer(r, engine, piece, kept);
    gumbel_engine_destroy(engine);
}

static void compare(const replay *r, const result *expected, const result *got, const char *set,
                    int threads) {
    const size_t logits_size = (size_t)ANSWER * r->info.vocab_size * sizeof(float);
    for (size_t i = 0; i < ANSWER; i++)
        if (got->tokens[i] != expected->tokens[i])
            fail_case("%s, %d threads: token %zu is %d, expected %d", set, threads, i, got->tokens[i],
                      expected->tokens[i]);
    if (memcmp(expected->logprobs, got->logprobs, sizeof got->logprobs) != 0)
        fail_case("%s, %d threads: log-probabilities have other bits", set, threads);
    if (memcmp(expected->logits, got->logits, logits_size) != 0)
        fail_case("%s, %d threads: logits have other bits", set, threads);
}

static void replay_answer(uint64_t seed, uint64_t *counts) {
    replay r = {0};
    result expected = {0}, got = {0};
    draw_case(&r, seed);
    expected.logits = calloc((size_t)ANSWER * r.info.vocab_size, sizeof(float));
    got.logits = calloc((size_t)ANSWER * r.info.vocab_size, sizeof(float));
    if (!expected.logits || !got.logits)
        fail_case("no memory");
    run_with(&r, "portable", 1, CHUNK, random_once_in(&r.source, 2), &expected);
    const gb_vector_kernels *set;
    for (size_t i = 0; (set = gb_available_vector_kernels(i)); i++) {
        int threads = 1 + (int)random_below(&r.source, MOST_THREADS);
        uint32_t piece = 1 + (uint32_t)random_below(&r.source, CHUNK);
        run_with(&r, set->name, threads, piece, random_once_in(&r.source, 4), &got);
        compare(&r, &expected, &got, set->name, threads);
        counts[SETS]++;
        counts[TOKENS] += ANSWER;
    }
    counts[REPLAYS]++;
    free(expected.logits);
    free(got.logits);
    gumbel_program_close(r.program);
}

int main(int argument_count, char **arguments) {
    static const harness h = {.name = "replay",
                              .counted = {"answers", "replays", "tokens compared"},
                              .prepare = export_bundled,
                              .run_case = replay_answer};
    return run_harness(&h, argument_count, arguments);
}
