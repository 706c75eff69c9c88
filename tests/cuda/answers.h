/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of a session by steps and by generations that run ahead, and what may be done with it instead of
 * going on. For tests that run one engine.
 */
#ifndef GUMBEL_TESTS_CUDA_ANSWERS_H
#define GUMBEL_TESTS_CUDA_ANSWERS_H

#include "run/handles.h"
#include "support/assertions.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 8, ANSWER = 10, LATER = 3, KINDS = 3, AHEAD = 4, MANY = 70 };

static gumbel_program *program;
static gumbel_engine *engine;
static gumbel_error error;
static int32_t prompt[PROMPT];

static inline gumbel_session *new_session(void) {
    gumbel_session *session;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, 77);
    return session;
}

static inline gumbel_sampling settings_of(int kind) {
    gumbel_sampling sampling = {.size = sizeof sampling, .temperature = kind == 0 ? 0 : 1.2f, .top_p = 1};
    if (kind == 2) {
        sampling.top_k = 50;
        sampling.repetition_penalty = 1.3f;
        sampling.frequency_penalty = 0.4f;
    }
    return sampling;
}

/* ---- Answers ------------------------------------------------------------------------------------------- */

/* One token, and the next one where it is wanted; logits (or NULL) are those after it. */
static inline int32_t step(gumbel_session *session, int32_t token, bool wants_token, int kind,
                           float *logits) {
    const gumbel_sampling sampling = settings_of(kind);
    gumbel_result result = {.size = sizeof result, .token = -1};
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = &token,
                              .token_count = 1,
                              .result = wants_token ? &result : NULL,
                              .sampling = &sampling};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    if (logits)
        memcpy(logits, result.logits, VOCAB * sizeof *logits);
    return result.token;
}

/* An answer of count tokens, run step by step, of which nothing is known beforehand. The last token is
 * not run. */
static inline void answer_in_steps(gumbel_session *session, int kind, int count, int32_t *tokens) {
    assert_ok(gumbel_session_append(session, prompt, PROMPT - 1, &error), &error);
    for (int i = 0; i < count; i++)
        tokens[i] = step(session, i == 0 ? prompt[PROMPT - 1] : tokens[i - 1], true, kind, NULL);
}

static inline void generate(gumbel_session *session, const int32_t *tokens, size_t count, int kind,
                            uint32_t most, bool ignore_stop) {
    const gumbel_sampling sampling = settings_of(kind);
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &sampling,
                                             .max_new_tokens = most,
                                             .wants_logprob = true,
                                             .ignore_stop = ignore_stop};
    assert_ok(gumbel_generate(session, tokens, count, &options, &error), &error);
}

static inline void begin(gumbel_session *session, int kind, uint32_t most, bool ignore_stop) {
    assert_ok(gumbel_session_append(session, prompt, PROMPT - 1, &error), &error);
    generate(session, prompt + PROMPT - 1, 1, kind, most, ignore_stop);
}

static inline gumbel_generated take(gumbel_session *session) {
    gumbel_generated next = {.size = sizeof next};
    assert_ok(gumbel_next(session, &next, &error), &error);
    return next;
}

/* The first count tokens of an answer that would go on. */
static inline void answer(gumbel_session *session, int kind, int count, int32_t *tokens) {
    begin(session, kind, 0, true);
    for (int i = 0; i < count; i++)
        tokens[i] = take(session).token;
}

/* ---- What is done instead of going on ------------------------------------------------------------------ */

/* One session has given tokens of an answer, another one has them by steps: both do the same, after which
 * they must be in the same state. */
typedef void deviation(gumbel_session *session, bool is_generating, int32_t last);

static inline void run_last(gumbel_session *session, bool is_generating, int32_t last) {
    if (!is_generating)
        step(session, last, false, 0, NULL);
    assert_ok(gumbel_session_append(session, NULL, 0, &error), &error);
}

static inline void append_prompt(gumbel_session *session, bool is_generating, int32_t last) {
    run_last(session, is_generating, last);
    assert_ok(gumbel_session_append(session, prompt + 3, 5, &error), &error);
}

static inline void change_settings(gumbel_session *session, bool is_generating, int32_t last) {
    (void)is_generating;
    for (int i = 0; i < LATER; i++)
        last = step(session, last, true, 2, NULL);
}

static inline void change_token(gumbel_session *session, bool is_generating, int32_t last) {
    (void)is_generating;
    step(session, (last + 1) % VOCAB, true, 1, NULL);
}

static inline void rewind_into_answer(gumbel_session *session, bool is_generating, int32_t last) {
    (void)is_generating;
    (void)last;
    const uint32_t position = gumbel_session_position(session, NULL);
    assert_ok(gumbel_session_rewind(session, position > PROMPT ? position - 1 : position, &error), &error);
}

static inline void save_and_load(gumbel_session *session, bool is_generating, int32_t last) {
    run_last(session, is_generating, last);
    const char *path = temporary_path("ahead.session");
    assert_ok(gumbel_session_save(session, path, &error), &error);
    gumbel_session_reset(session);
    assert_ok(gumbel_session_load(session, path, &error), &error);
}

static inline void answer_elsewhere(gumbel_session *session, bool is_generating, int32_t last) {
    int32_t tokens[LATER];
    gumbel_session *other = new_session();
    answer(other, 1, LATER, tokens);
    gumbel_session_destroy(other);
    run_last(session, is_generating, last);
}

static inline void take_snapshot(gumbel_session *session, bool is_generating, int32_t last) {
    run_last(session, is_generating, last);
    assert_ok(gumbel_session_snapshot(session, &error), &error);
    const uint32_t position = gumbel_session_position(session, NULL);
    assert_ok(gumbel_session_append(session, prompt, 4, &error), &error);
    assert_ok(gumbel_session_rewind(session, position, &error), &error);
}

static inline void go_on_by_steps(gumbel_session *session, bool is_generating, int32_t last) {
    (void)is_generating;
    float logits[VOCAB];
    for (int i = 0; i < LATER; i++)
        last = step(session, last, true, 1, logits);
}

/* The program's stop tokens, which tests set. */
static inline gb_token_list *stop_tokens(void) {
    return (gb_token_list *)(uintptr_t)&program->program->metadata.stop_tokens;
}

/* The deviation after count tokens of an answer, of which the last one is the last of so many stop tokens (0:
 * the answer would go on), and then the logits after one more token. */
static inline void compare_after(deviation *deviate, int count, uint32_t stop_count) {
    int32_t expected_tokens[ANSWER], tokens[ANSWER], stops[MANY];
    float expected[VOCAB], found[VOCAB];
    gumbel_session *one_by_one = new_session();
    answer_in_steps(one_by_one, 1, count, expected_tokens);
    deviate(one_by_one, false, expected_tokens[count - 1]);
    step(one_by_one, 9, true, 1, expected);
    gumbel_session_destroy(one_by_one);
    const gb_token_list kept = *stop_tokens();
    for (uint32_t i = 0; i < stop_count; i++)
        stops[i] = i + 1 < stop_count ? VOCAB : expected_tokens[count - 1];
    if (stop_count > 0)
        *stop_tokens() = (gb_token_list){.ids = stops, .count = stop_count};
    gumbel_session *ahead = new_session();
    begin(ahead, 1, 0, stop_count == 0);
    for (int i = 0; i < count; i++) {
        const gumbel_generated next = take(ahead);
        const bool stopped = stop_count > 0 && i + 1 == count;
        assert_int_equal(next.finish, stopped ? GUMBEL_FINISH_STOP : GUMBEL_FINISH_NONE);
        tokens[i] = next.token;
    }
    deviate(ahead, true, tokens[count - 1]);
    step(ahead, 9, true, 1, found);
    gumbel_session_destroy(ahead);
    *stop_tokens() = kept;
    assert_memory_equal(tokens, expected_tokens, (size_t)count * sizeof *tokens);
    assert_memory_equal(found, expected, sizeof found);
}

/* ---- Programs ------------------------------------------------------------------------------------------ */

static inline int set_up(void **state) {
    const gumbel_engine_options options = {
        .size = sizeof options, .backend = "cuda", .slots = 2, .threads = 1, .snapshots = true};
    random_tokens(1, VOCAB, prompt, PROMPT);
    program = open_random_program(*state, false);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    return 0;
}

static inline int tear_down(void **unused) {
    (void)unused;
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    return 0;
}

#endif
