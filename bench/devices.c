/* SPDX-License-Identifier: Apache-2.0
 *
 * The same work on one device and on several: a prompt, then sequences that decode together, each with a
 * prompt of its own. Prints a hash of all logits and tokens, which is the same for every number of devices,
 * and rates.
 *
 *     bench_devices PROGRAM BACKEND DEVICES [PROMPT] [SEQUENCES] [TOKENS]     DEVICES such as 0,1
 */
#include "arguments.h"
#include "base/clock.h"
#include "gumbel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MOST_DEVICES = 16, MOST_SEQUENCES = 64, OWN_PROMPT = 64 };

typedef struct work {
    uint32_t vocabulary, prompt, sequences, tokens;
    gumbel_engine *engine;
    gumbel_session *sessions[MOST_SEQUENCES];
    int32_t next[MOST_SEQUENCES];
    uint64_t hash;
} work;

static int32_t token_at(const work *w, uint32_t sequence, uint32_t i) {
    return (int32_t)(((i * 2654435761u + sequence * 40503u) >> 7) % w->vocabulary);
}

/* A step with one token of each of the first sequences, whose results are hashed. */
static void step(work *w, uint32_t count) {
    static const gumbel_sampling sampling = {
        .size = sizeof sampling, .temperature = 1, .top_p = 0.95f, .top_k = 200, .min_p = 0.001f};
    gumbel_result results[MOST_SEQUENCES] = {0};
    gumbel_request requests[MOST_SEQUENCES] = {0};
    gumbel_error error;
    for (uint32_t s = 0; s < count; s++) {
        results[s] = (gumbel_result){.size = sizeof *results};
        requests[s] = (gumbel_request){.size = sizeof *requests,
                                       .session = w->sessions[s],
                                       .tokens = &w->next[s],
                                       .token_count = 1,
                                       .sampling = &sampling,
                                       .result = &results[s]};
    }
    must(gumbel_step(w->engine, requests, count, &error), &error);
    for (uint32_t s = 0; s < count; s++) {
        if (results[s].logits)
            w->hash = XXH3_64bits_withSeed(results[s].logits, w->vocabulary * sizeof(float), w->hash);
        w->hash = XXH3_64bits_withSeed(&results[s].token, sizeof results[s].token, w->hash);
        w->next[s] = results[s].token > 0 ? results[s].token : 0;
    }
}

static void append(work *w, uint32_t sequence, uint32_t count) {
    gumbel_error error;
    int32_t *tokens = malloc((count + 1) * sizeof *tokens);
    for (uint32_t i = 0; i <= count; i++)
        tokens[i] = token_at(w, sequence, i);
    must(gumbel_session_append(w->sessions[sequence], tokens, count, &error), &error);
    w->next[sequence] = tokens[count];
    free(tokens);
}

/* Appended again, so that the second time nothing is done for the first time. */
static double time_prompt(work *w) {
    double seconds = 0;
    for (int turn = 0; turn < 2; turn++) {
        gumbel_session_reset(w->sessions[0]);
        gumbel_session_set_seed(w->sessions[0], 7);
        const double begin = gb_seconds();
        append(w, 0, w->prompt - 1);
        step(w, 1);
        seconds = gb_seconds() - begin;
    }
    return seconds;
}

static double time_decoding(work *w) {
    for (uint32_t s = 0; s < w->sequences; s++) {
        gumbel_session_reset(w->sessions[s]);
        gumbel_session_set_seed(w->sessions[s], s);
        append(w, s, OWN_PROMPT + s);
    }
    step(w, w->sequences);
    const double begin = gb_seconds();
    for (uint32_t i = 0; i < w->tokens; i++)
        step(w, w->sequences);
    return gb_seconds() - begin;
}

static uint32_t read_devices(const char *text, int numbers[MOST_DEVICES]) {
    uint32_t count = 0;
    for (const char *at = text; at && count < MOST_DEVICES; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        numbers[count++] = atoi(at);
    return count;
}

static void open_engine(work *w, const gumbel_program *program, const char *backend, const char *devices) {
    int numbers[MOST_DEVICES];
    gumbel_error error;
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = backend,
                                           .slots = (int)w->sequences,
                                           .max_context = w->prompt + w->tokens + OWN_PROMPT + MOST_SEQUENCES,
                                           .devices = numbers,
                                           .device_count = read_devices(devices, numbers)};
    must(gumbel_engine_create(program, &options, &w->engine, &error), &error);
    for (uint32_t s = 0; s < w->sequences; s++)
        must(gumbel_session_create(w->engine, &w->sessions[s], &error), &error);
}

int main(int count, char **arguments) {
    gumbel_error error;
    gumbel_program *program;
    gumbel_program_info info = {.size = sizeof info};
    static work w;
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    if (count < 4) {
        fprintf(stderr, "usage: bench_devices PROGRAM BACKEND DEVICES [PROMPT] [SEQUENCES] [TOKENS]\n");
        return 2;
    }
    must(gumbel_program_open(arguments[1], &program, &error), &error);
    must(gumbel_program_get_info(program, &info, &error), &error);
    w.vocabulary = info.vocab_size;
    w.prompt = number_at(count, arguments, 4, 512);
    w.sequences = number_at(count, arguments, 5, 4);
    w.tokens = number_at(count, arguments, 6, 64);
    w.sequences = w.sequences < MOST_SEQUENCES ? w.sequences : MOST_SEQUENCES;
    open_engine(&w, program, arguments[2], arguments[3]);
    const double prompt = time_prompt(&w), decoding = time_decoding(&w);
    printf("%s: devices %s: hash %016llx, prompt of %u %.1f ms, %u sequences %.1f tokens/s\n",
           gumbel_engine_description(w.engine), arguments[3], (unsigned long long)w.hash, w.prompt,
           1e3 * prompt, w.sequences, w.tokens * w.sequences / decoding);
    gumbel_engine_destroy(w.engine);
    gumbel_program_close(program);
    return 0;
}
