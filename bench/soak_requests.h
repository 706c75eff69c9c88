/* SPDX-License-Identifier: Apache-2.0
 *
 * The requests of bench_soak: each is drawn from a seed and its number alone, so that a run can be made
 * again.
 */
#ifndef GUMBEL_BENCH_SOAK_REQUESTS_H
#define GUMBEL_BENCH_SOAK_REQUESTS_H

#include "gumbel.h"
#include "random_logits.h"

#include <math.h>
#include <stdio.h>

enum { MOST_ANSWERS = 3, MOST_BIASES = 4, BASES = 4 };

/* What requests of a program may be. */
typedef struct request_limits {
    uint64_t seed;
    uint32_t vocabulary, context;
    uint32_t longest;  /* prompt, at most context */
    uint32_t answer;   /* the longest one */
    uint32_t max_bias; /* 0: the program's sampler is the minimal one */
} request_limits;

typedef struct drawn_request {
    uint32_t number;
    uint64_t seed;
    uint32_t prompt_tokens, base_tokens; /* of these, the first ones that other requests begin with as well */
    uint32_t base;                       /* which beginning that is */
    uint32_t max_new_tokens, answers;
    bool ignore_stop, has_branch; /* others may go on otherwise behind base_tokens */
    int32_t priority;
    uint32_t patience; /* it is cancelled after so many tokens of all requests; 0: it is not */
    gumbel_sampling sampling;
    gumbel_bias bias[MOST_BIASES];
} drawn_request;

/* Pseudorandom, from 0 to below `end`. */
static inline uint32_t random_below(uint64_t *state, uint32_t end) {
    return (uint32_t)((next_random(state) >> 32) % end);
}

static inline bool random_once_in(uint64_t *state, uint32_t cases) {
    return random_below(state, cases) == 0;
}

/* From 1 to most, and shorter ones more often: of the end of the range 0 to halvings - 1 halves are taken. */
static inline uint32_t random_length(uint64_t *state, uint32_t most, uint32_t halvings) {
    const uint32_t end = most >> random_below(state, halvings);
    return 1 + random_below(state, end > 0 ? end : 1);
}

static inline void draw_filters(uint64_t *state, gumbel_sampling *sampling) {
    static const float temperatures[] = {0, 0.7f, 1, 1.5f};
    sampling->temperature = temperatures[random_below(state, 4)];
    sampling->top_k = random_once_in(state, 3) ? 1 + (int32_t)random_below(state, 100) : 0;
    sampling->top_p = random_once_in(state, 3) ? 0.5f + 0.01f * (float)random_below(state, 50) : 1;
}

static inline void draw_penalties(uint64_t *state, gumbel_sampling *sampling) {
    sampling->min_p = random_once_in(state, 4) ? 0.01f * (float)random_below(state, 20) : 0;
    sampling->repetition_penalty = random_once_in(state, 3) ? 1 + 0.1f * (float)random_below(state, 6) : 1;
    sampling->frequency_penalty = random_once_in(state, 4) ? 0.25f * (float)random_below(state, 9) - 1 : 0;
    sampling->presence_penalty = random_once_in(state, 4) ? 0.25f * (float)random_below(state, 9) - 1 : 0;
    sampling->penalized = (gumbel_penalized)random_below(state, 3);
}

static inline void draw_biases(uint64_t *state, const request_limits *limits, drawn_request *r) {
    const uint32_t most = limits->max_bias < MOST_BIASES ? limits->max_bias : MOST_BIASES;
    r->sampling.bias = r->bias;
    r->sampling.bias_count = random_once_in(state, 3) ? random_below(state, most + 1) : 0;
    for (size_t i = 0; i < r->sampling.bias_count; i++) {
        r->bias[i].token = (int32_t)random_below(state, limits->vocabulary);
        r->bias[i].value = random_once_in(state, 4) ? -INFINITY : 0.5f * (float)random_below(state, 20) - 3;
    }
}

static inline void draw_lengths(uint64_t *state, const request_limits *limits, drawn_request *r) {
    r->prompt_tokens = random_length(state, limits->longest, 8);
    r->base = random_below(state, BASES);
    r->base_tokens = random_once_in(state, 3) ? random_below(state, r->prompt_tokens) : 0;
    r->has_branch = r->base_tokens > 0 && random_once_in(state, 2);
    r->max_new_tokens = random_length(state, limits->answer, 4);
    r->answers = random_once_in(state, 12) ? 1 + random_below(state, MOST_ANSWERS) : 1;
}

/* Where r is has to stay the same, since its settings point to its biases. */
static inline void draw_request(const request_limits *limits, uint32_t number, uint32_t sequences,
                                drawn_request *r) {
    uint64_t state = limits->seed;
    state = next_random(&state) + number;
    state = next_random(&state);
    *r = (drawn_request){.number = number, .seed = next_random(&state), .sampling.size = sizeof r->sampling};
    draw_lengths(&state, limits, r);
    r->ignore_stop = random_once_in(&state, 2);
    r->priority = (int32_t)random_below(&state, 2);
    r->patience =
        random_once_in(&state, 8) ? 1 + random_below(&state, limits->answer * sequences / 6 + 1) : 0;
    draw_filters(&state, &r->sampling);
    if (limits->max_bias > 0) {
        draw_penalties(&state, &r->sampling);
        draw_biases(&state, limits, r);
    }
}

static inline void draw_tokens(uint64_t state, uint32_t vocabulary, int32_t *tokens, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = (int32_t)random_below(&state, vocabulary);
}

/* prompt has room for the longest one. */
static inline void draw_prompt(const request_limits *limits, const drawn_request *r, int32_t *prompt) {
    draw_tokens(limits->seed ^ r->base, limits->vocabulary, prompt, r->base_tokens);
    draw_tokens(r->seed, limits->vocabulary, prompt + r->base_tokens, r->prompt_tokens - r->base_tokens);
}

/* Settings that ask for something, biases and lengths, on one line. */
static inline void print_request(FILE *file, const drawn_request *r) {
    const gumbel_setting *setting;
    fprintf(file, "request %u: seed %llu, prompt of %u tokens, %u of them shared, answers of up to %u",
            r->number, (unsigned long long)r->seed, r->prompt_tokens, r->base_tokens, r->max_new_tokens);
    for (size_t i = 0; (setting = gumbel_setting_at(i)); i++)
        if (gumbel_setting_get(setting, &r->sampling) != setting->neutral)
            fprintf(file, ", %s %.9g", setting->name, gumbel_setting_get(setting, &r->sampling));
    for (size_t i = 0; i < r->sampling.bias_count; i++)
        fprintf(file, ", bias of %d %g", r->bias[i].token, (double)r->bias[i].value);
    fprintf(file, ", penalized %d%s\n", (int)r->sampling.penalized,
            r->ignore_stop ? ", stop tokens ignored" : "");
}

#endif
