/* SPDX-License-Identifier: Apache-2.0
 *
 * Penalties, biases, min-p and log-probabilities through steps and sessions: each token against a plain
 * reference on the row of logits that the step hands out, and after rewinding, forking, saving and loading.
 */
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 21, GENERATED = 40, SLOTS = 3, TOP = 4 };

static gumbel_program *program;
static gumbel_engine *engines[2]; /* fused, and node by node */
static gumbel_error error;
static int32_t prompt[PROMPT];

static const gumbel_bias biases[] = {{7, -INFINITY}, {11, 1.5f}, {11, 0.5f}, {40, -2}};
static const gumbel_sampling settings[] = {
    {.size = sizeof(gumbel_sampling), .temperature = 0, .top_p = 1, .presence_penalty = 1.5f},
    {.size = sizeof(gumbel_sampling), .temperature = 0, .top_p = 1, .repetition_penalty = 1.8f},
    {.size = sizeof(gumbel_sampling),
     .temperature = 0.9f,
     .top_p = 1,
     .min_p = 0.05f,
     .frequency_penalty = 0.6f,
     .repetition_penalty = 1.3f,
     .bias = biases,
     .bias_count = 4},
    {.size = sizeof(gumbel_sampling),
     .temperature = 1.2f,
     .top_k = 30,
     .top_p = 0.95f,
     .penalized = GUMBEL_PENALIZED_ALL,
     .presence_penalty = -0.7f,
     .frequency_penalty = 0.3f},
    {.size = sizeof(gumbel_sampling),
     .temperature = 0.7f,
     .top_p = 0.9f,
     .penalized = GUMBEL_PENALIZED_GENERATED,
     .repetition_penalty = 0.6f,
     .bias = biases,
     .bias_count = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 1, .top_p = 1},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* *state: the configuration, with rings or with recurrent states. */
static int set_up(void **state) {
    random_tokens(9, 30, prompt, PROMPT); /* of few kinds: tokens occur again */
    program = export_random_program(*state, (gumbel_export_options){.max_top_logprobs = TOP});
    for (int i = 0; i < 2; i++) {
        gumbel_engine_options options = {
            .size = sizeof options, .slots = SLOTS, .unfused = i == 1, .threads = 1 + i, .snapshots = true};
        assert_ok(gumbel_engine_create(program, &options, &engines[i], &error), &error);
    }
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++)
        gumbel_engine_destroy(engines[i]);
    gumbel_program_close(program);
    return 0;
}

static gumbel_session *new_session(gumbel_engine *engine) {
    gumbel_session *session;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, 99);
    return session;
}

/* ---- The reference ------------------------------------------------------------------------------------- */

/* The logits after biases and penalties. Tokens at positions from `from` on were generated. */
static void adjust(const gumbel_sampling *s, const int32_t *tokens, uint32_t count, uint32_t from,
                   const float *logits, float *y) {
    memcpy(y, logits, VOCAB * sizeof *y);
    for (size_t i = 0; i < s->bias_count; i++)
        y[s->bias[i].token] += s->bias[i].value;
    float repetition = s->repetition_penalty == 0 ? 1 : s->repetition_penalty;
    for (int32_t token = 0; token < VOCAB; token++) {
        int in_prompt = 0, generated = 0;
        for (uint32_t i = 0; i < count; i++) {
            in_prompt += tokens[i] == token && i < from;
            generated += tokens[i] == token && i >= from;
        }
        int repeated = generated + (s->penalized != GUMBEL_PENALIZED_GENERATED ? in_prompt : 0);
        int occurred = generated + (s->penalized == GUMBEL_PENALIZED_ALL ? in_prompt : 0);
        if (repeated)
            y[token] = y[token] < 0 ? y[token] * repetition : y[token] / repetition;
        if (occurred)
            y[token] = y[token] - s->frequency_penalty * (float)occurred - s->presence_penalty;
    }
}

static int32_t expected_token(const gumbel_sampling *s, const int32_t *tokens, uint32_t count, uint32_t from,
                              const float *logits, uint64_t seed) {
    float y[VOCAB];
    adjust(s, tokens, count, from, logits, y);
    gumbel_sampling rest = {.size = sizeof rest,
                            .temperature = s->temperature,
                            .top_k = s->top_k,
                            .top_p = s->top_p,
                            .min_p = s->min_p};
    int32_t token;
    assert_ok(gumbel_sample(y, VOCAB, &rest, seed, &token, &error), &error);
    return token;
}

/* Log-probabilities in double, from the logits as they are. */
static void check_logprobs(const gumbel_result *r) {
    double sum = 0, largest = r->logits[0];
    for (int i = 0; i < VOCAB; i++)
        largest = fmax(largest, r->logits[i]);
    for (int i = 0; i < VOCAB; i++)
        sum += exp(r->logits[i] - largest);
    assert_true(fabs(r->logits[r->token] - largest - log(sum) - r->logprob) < 1e-5);
    int32_t best = 0;
    for (int i = 1; i < VOCAB; i++)
        best = r->logits[i] > r->logits[best] ? i : best;
    assert_int_equal(r->top_tokens[0], best);
    for (uint32_t i = 0; i < r->top_logprobs; i++) {
        assert_true(fabs(r->logits[r->top_tokens[i]] - largest - log(sum) - r->top_token_logprob[i]) < 1e-5);
        assert_true(i == 0 || r->top_token_logprob[i] <= r->top_token_logprob[i - 1]);
    }
}

/* ---- Running ------------------------------------------------------------------------------------------- */

static gumbel_request request_of(gumbel_session *session, const gumbel_sampling *sampling,
                                 const int32_t *tokens, size_t count, gumbel_result *result) {
    *result = (gumbel_result){.size = sizeof *result};
    return (gumbel_request){.size = sizeof(gumbel_request),
                            .session = session,
                            .tokens = tokens,
                            .token_count = count,
                            .result = result,
                            .sampling = sampling,
                            .wants_logprob = true,
                            .top_logprobs = TOP};
}

/* The request's token is that of the reference. */
static void check_token(const gumbel_request *r, uint32_t from) {
    const int32_t *tokens;
    uint32_t position = gumbel_session_position(r->session, &tokens);
    const gumbel_result *found = r->result;
    assert_int_equal(found->token,
                     expected_token(r->sampling, tokens, position, from, found->logits, found->seed));
    check_logprobs(found);
}

/* Continues a session whose next token to run is `next`; fills tokens with it and what follows. */
static void continue_with(gumbel_engine *engine, gumbel_session *session, const gumbel_sampling *sampling,
                          uint32_t from, int32_t next, int32_t *tokens, size_t count) {
    for (size_t i = 0; i < count; i++) {
        tokens[i] = next;
        gumbel_result result;
        gumbel_request r = request_of(session, sampling, &tokens[i], 1, &result);
        assert_ok(gumbel_step(engine, &r, 1, &error), &error);
        check_token(&r, from);
        next = result.token;
    }
}

/* Runs the prompt; gives the first token. */
static int32_t begin(gumbel_engine *engine, gumbel_session *session, const gumbel_sampling *sampling) {
    assert_ok(gumbel_session_append(session, prompt, PROMPT - 1, &error), &error);
    gumbel_result result;
    gumbel_request r = request_of(session, sampling, &prompt[PROMPT - 1], 1, &result);
    assert_ok(gumbel_step(engine, &r, 1, &error), &error);
    check_token(&r, PROMPT);
    return result.token;
}

static void test_every_token(void **state) {
    (void)state;
    int32_t tokens[2][GENERATED], plain[GENERATED];
    for (int n = SETTINGS - 1; n >= 0; n--) {
        for (int e = 0; e < 2; e++) {
            gumbel_session *session = new_session(engines[e]);
            int32_t first = begin(engines[e], session, &settings[n]);
            continue_with(engines[e], session, &settings[n], PROMPT, first, tokens[e], GENERATED);
            gumbel_session_destroy(session);
        }
        assert_memory_equal(tokens[0], tokens[1], sizeof tokens[0]);
        if (n == SETTINGS - 1) /* the others would be blind if they changed nothing */
            memcpy(plain, tokens[0], sizeof plain);
        else
            assert_memory_not_equal(tokens[0], plain, sizeof plain);
    }
}

/* Rewinding within an answer, whether in place or by running tokens again, leaves what was generated
 * generated. */
static void test_rewind(void **state) {
    (void)state;
    const gumbel_sampling *sampling = &settings[2];
    int32_t tokens[GENERATED], again[GENERATED];
    gumbel_session *session = new_session(engines[0]);
    int32_t first = begin(engines[0], session, sampling);
    continue_with(engines[0], session, sampling, PROMPT, first, tokens, GENERATED);
    for (uint32_t back = 1; back < GENERATED; back += 6) {
        uint32_t kept = GENERATED - back;
        assert_ok(gumbel_session_rewind(session, PROMPT + kept, &error), &error);
        gumbel_session_set_seed(session, 99 + kept + 1);
        continue_with(engines[0], session, sampling, PROMPT, tokens[kept], again + kept, back);
        assert_memory_equal(again + kept, tokens + kept, back * sizeof *tokens);
    }
    /* Another token than the one that stood there begins a new prompt. */
    assert_ok(gumbel_session_rewind(session, PROMPT + 10, &error), &error);
    int32_t other = (tokens[10] + 1) % VOCAB;
    continue_with(engines[0], session, sampling, PROMPT + 11, other, again, GENERATED / 2);
    gumbel_session_destroy(session);
}

/* A turn's tokens are part of the prompt of the next one, as if the session had begun with them. */
static void test_second_turn(void **state) {
    (void)state;
    const gumbel_sampling *sampling = &settings[0];
    int32_t tokens[GENERATED], more[GENERATED];
    gumbel_session *session = new_session(engines[0]);
    int32_t first = begin(engines[0], session, sampling);
    continue_with(engines[0], session, sampling, PROMPT, first, tokens, 12);
    assert_ok(gumbel_session_append(session, prompt, 5, &error), &error);
    continue_with(engines[0], session, sampling, PROMPT + 12 + 5 + 1, 3, more, GENERATED / 2);
    gumbel_session_destroy(session);
}

static void test_fork_and_files(void **state) {
    (void)state;
    const gumbel_sampling *sampling = &settings[2];
    const char *path = temporary_path("penalties.session");
    int32_t tokens[GENERATED], others[GENERATED];
    gumbel_session *session = new_session(engines[0]), *copy;
    int32_t first = begin(engines[0], session, sampling);
    continue_with(engines[0], session, sampling, PROMPT, first, tokens, 15);
    gumbel_result result;
    gumbel_request r = request_of(session, sampling, &tokens[14], 1, &result);
    assert_ok(gumbel_session_rewind(session, PROMPT + 14, &error), &error);
    assert_ok(gumbel_step(engines[0], &r, 1, &error), &error); /* leaves a token drawn and not run */

    assert_ok(gumbel_session_fork(session, &copy, &error), &error);
    assert_ok(gumbel_session_save(session, path, &error), &error);
    continue_with(engines[0], session, sampling, PROMPT, result.token, tokens, 20);
    continue_with(engines[0], copy, sampling, PROMPT, result.token, others, 20);
    assert_memory_equal(others, tokens, 20 * sizeof *tokens);
    assert_ok(gumbel_session_load(copy, path, &error), &error);
    continue_with(engines[0], copy, sampling, PROMPT, result.token, others, 20);
    assert_memory_equal(others, tokens, 20 * sizeof *tokens);
    gumbel_session_destroy(copy);
    gumbel_session_destroy(session);
}

/* Three sessions in one step, each with settings of its own, and one that only runs its prompt. */
static void test_mixed_batches(void **state) {
    (void)state;
    for (int n = 0; n < SETTINGS; n++) {
        gumbel_engine *engine = engines[n % 2];
        gumbel_session *sessions[SLOTS];
        int32_t next[SLOTS];
        for (int i = 0; i < SLOTS; i++) {
            sessions[i] = new_session(engine);
            next[i] = i < SLOTS - 1 ? begin(engine, sessions[i], &settings[(n + i) % SETTINGS]) : prompt[0];
        }
        for (int step = 0; step < 12; step++) {
            gumbel_request requests[SLOTS];
            gumbel_result results[SLOTS];
            for (int i = 0; i < SLOTS; i++)
                requests[i] =
                    request_of(sessions[i], &settings[(n + i) % SETTINGS], &next[i], 1, &results[i]);
            requests[SLOTS - 1].result = NULL;
            assert_ok(gumbel_step(engine, requests, SLOTS, &error), &error);
            for (int i = 0; i < SLOTS - 1; i++) {
                check_token(&requests[i], PROMPT);
                next[i] = results[i].token;
            }
            assert_null(results[SLOTS - 1].top_tokens);
            next[SLOTS - 1] = prompt[step + 1];
        }
        for (int i = 0; i < SLOTS; i++)
            gumbel_session_destroy(sessions[i]);
    }
}

/* gumbel_generate copies the biases and hands out log-probabilities. */
static void test_generate(void **state) {
    (void)state;
    gumbel_bias only[] = {{17, 100}};
    gumbel_sampling sampling = {
        .size = sizeof sampling, .temperature = 1, .top_p = 1, .bias = only, .bias_count = 1};
    gumbel_generate_options options = {.size = sizeof options,
                                       .sampling = &sampling,
                                       .ignore_stop = true,
                                       .wants_logprob = true,
                                       .top_logprobs = 2};
    gumbel_session *session = new_session(engines[0]);
    assert_ok(gumbel_generate(session, prompt, PROMPT, &options, &error), &error);
    only[0].token = 18;
    for (int i = 0; i < 5; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(session, &next, &error), &error);
        assert_int_equal(next.token, 17);
        assert_true(next.logprob < 0 && next.logprob > -40);
        assert_int_equal(next.top_logprobs, 2);
        assert_true(next.top_token_logprob[0] >= next.logprob);
    }
    gumbel_session_destroy(session);
}

#define ON(test, config)                                                                                     \
    { #test " on " config, test, set_up, tear_down, (void *)(uintptr_t)(config) }
#define ON_BOTH(test) ON(test, "small.json"), ON(test, "qwen.json")

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_BOTH(test_every_token),    ON_BOTH(test_rewind),        ON_BOTH(test_second_turn),
        ON_BOTH(test_fork_and_files), ON_BOTH(test_mixed_batches), ON_BOTH(test_generate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
