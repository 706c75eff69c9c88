/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that the CUDA backend begins before they are asked for: the answer is that of steps one by one, and
 * whatever is done instead of taking them finds the session as if they had not run.
 */
#include "run/handles.h"
#include "support/assertions.h"
#include "support/random_program.h"
#include "support/temporary.h"

#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 8, ANSWER = 10, LATER = 3, KINDS = 3, AHEAD = 4 };

static gumbel_program *program;
static gumbel_engine *engine;
static gumbel_error error;
static int32_t prompt[PROMPT];

static gumbel_session *new_session(void) {
    gumbel_session *session;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, 77);
    return session;
}

static gumbel_sampling settings_of(int kind) {
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
static int32_t step(gumbel_session *session, int32_t token, bool wants_token, int kind, float *logits) {
    const gumbel_sampling sampling = settings_of(kind);
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = &token,
                              .token_count = 1,
                              .wants_token = wants_token,
                              .sampling = &sampling};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    if (logits)
        memcpy(logits, request.logits, VOCAB * sizeof *logits);
    return request.token;
}

/* An answer of count tokens, asked for step by step, of which nothing is known beforehand. The last token is
 * not run. */
static void answer_in_steps(gumbel_session *session, int kind, int count, int32_t *tokens) {
    assert_ok(gumbel_session_append(session, prompt, PROMPT - 1, &error), &error);
    for (int i = 0; i < count; i++)
        tokens[i] = step(session, i == 0 ? prompt[PROMPT - 1] : tokens[i - 1], true, kind, NULL);
}

static void begin(gumbel_session *session, int kind, uint32_t most) {
    const gumbel_sampling sampling = settings_of(kind);
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &sampling,
                                             .max_new_tokens = most,
                                             .wants_logprob = true,
                                             .ignore_stop = true};
    assert_ok(gumbel_session_append(session, prompt, PROMPT - 1, &error), &error);
    assert_ok(gumbel_generate(session, prompt + PROMPT - 1, 1, &options, &error), &error);
}

static gumbel_generated take(gumbel_session *session) {
    gumbel_generated next = {.size = sizeof next};
    assert_ok(gumbel_next(session, &next, &error), &error);
    return next;
}

/* The first count tokens of an answer that would go on. */
static void answer(gumbel_session *session, int kind, int count, int32_t *tokens) {
    begin(session, kind, 0);
    for (int i = 0; i < count; i++)
        tokens[i] = take(session).token;
}

static void answer_gives_what_steps_give(void **unused) {
    (void)unused;
    for (int kind = 0; kind < KINDS; kind++) {
        int32_t expected[ANSWER], found[ANSWER];
        gumbel_session *session = new_session();
        answer_in_steps(session, kind, ANSWER, expected);
        gumbel_session_destroy(session);
        session = new_session();
        answer(session, kind, ANSWER, found);
        assert_memory_equal(found, expected, sizeof found);
        gumbel_session_destroy(session);
    }
}

static void logprobs_are_the_tokens_own(void **unused) {
    (void)unused;
    const gumbel_sampling sampling = settings_of(1);
    int32_t token = prompt[PROMPT - 1];
    gumbel_session *session = new_session(), *other = new_session();
    begin(session, 1, 0);
    assert_ok(gumbel_session_append(other, prompt, PROMPT - 1, &error), &error);
    float expected[ANSWER];
    for (int i = 0; i < ANSWER; i++) {
        gumbel_request request = {.size = sizeof request,
                                  .session = other,
                                  .tokens = &token,
                                  .token_count = 1,
                                  .wants_token = true,
                                  .sampling = &sampling,
                                  .wants_logprob = true};
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
        token = request.token;
        expected[i] = request.logprob;
    }
    for (int i = 0; i < ANSWER; i++) {
        const gumbel_generated next = take(session);
        assert_memory_equal(&next.logprob, &expected[i], sizeof expected[i]);
    }
    gumbel_session_destroy(session);
    gumbel_session_destroy(other);
}

/* ---- What is done instead of going on ------------------------------------------------------------------ */

/* Session `taken` has given count tokens of an answer that would go on, `expected` has them by steps: both do
 * the same, after which they must be in the same state. */
typedef void deviation(gumbel_session *session, bool is_generating, int32_t last);

static void run_last(gumbel_session *session, bool is_generating, int32_t last) {
    if (!is_generating)
        step(session, last, false, 0, NULL);
    assert_ok(gumbel_session_append(session, NULL, 0, &error), &error);
}

static void append_prompt(gumbel_session *session, bool is_generating, int32_t last) {
    run_last(session, is_generating, last);
    assert_ok(gumbel_session_append(session, prompt + 3, 5, &error), &error);
}

static void change_settings(gumbel_session *session, bool is_generating, int32_t last) {
    (void)is_generating;
    for (int i = 0; i < LATER; i++)
        last = step(session, last, true, 2, NULL);
}

static void change_token(gumbel_session *session, bool is_generating, int32_t last) {
    (void)is_generating;
    step(session, (last + 1) % VOCAB, true, 1, NULL);
}

static void rewind_into_answer(gumbel_session *session, bool is_generating, int32_t last) {
    (void)is_generating;
    (void)last;
    const uint32_t position = gumbel_session_position(session, NULL);
    assert_ok(gumbel_session_rewind(session, position > PROMPT ? position - 1 : position, &error), &error);
}

static void save_and_load(gumbel_session *session, bool is_generating, int32_t last) {
    run_last(session, is_generating, last);
    const char *path = temporary_path("ahead.session");
    assert_ok(gumbel_session_save(session, path, &error), &error);
    gumbel_session_reset(session);
    assert_ok(gumbel_session_load(session, path, &error), &error);
}

static void answer_elsewhere(gumbel_session *session, bool is_generating, int32_t last) {
    int32_t tokens[LATER];
    gumbel_session *other = new_session();
    answer(other, 1, LATER, tokens);
    gumbel_session_destroy(other);
    run_last(session, is_generating, last);
}

static void take_snapshot(gumbel_session *session, bool is_generating, int32_t last) {
    run_last(session, is_generating, last);
    assert_ok(gumbel_session_snapshot(session, &error), &error);
    const uint32_t position = gumbel_session_position(session, NULL);
    assert_ok(gumbel_session_append(session, prompt, 4, &error), &error);
    assert_ok(gumbel_session_rewind(session, position, &error), &error);
}

static void go_on_by_steps(gumbel_session *session, bool is_generating, int32_t last) {
    (void)is_generating;
    float logits[VOCAB];
    for (int i = 0; i < LATER; i++)
        last = step(session, last, true, 1, logits);
}

/* After numbers of tokens, where versions of states go round after every one: the deviation, and then the
 * logits after one more token. */
static void compare(deviation *deviate) {
    static const int counts[] = {1, 3, 7, 2, 5};
    const size_t tried = gb_has_recurrent_state(program->program) ? 5 : 3;
    for (size_t i = 0; i < tried; i++) {
        const int count = counts[i];
        int32_t expected_tokens[ANSWER], tokens[ANSWER];
        float expected[VOCAB], found[VOCAB];
        gumbel_session *one_by_one = new_session();
        answer_in_steps(one_by_one, 1, count, expected_tokens);
        deviate(one_by_one, false, expected_tokens[count - 1]);
        step(one_by_one, 9, true, 1, expected);
        gumbel_session_destroy(one_by_one);
        gumbel_session *ahead = new_session();
        answer(ahead, 1, count, tokens);
        deviate(ahead, true, tokens[count - 1]);
        step(ahead, 9, true, 1, found);
        gumbel_session_destroy(ahead);
        assert_memory_equal(tokens, expected_tokens, (size_t)count * sizeof *tokens);
        assert_memory_equal(found, expected, sizeof found);
    }
}

static void deviations_find_the_state_as_it_was(void **unused) {
    (void)unused;
    compare(append_prompt);
    compare(change_settings);
    compare(change_token);
    compare(go_on_by_steps);
}

static void slots_are_as_they_were(void **unused) {
    (void)unused;
    compare(rewind_into_answer);
    compare(save_and_load);
    compare(take_snapshot);
    compare(answer_elsewhere);
}

/* A copy made in the middle of an answer goes on as the answer does, and so does the original. */
static void forks_go_on(void **unused) {
    (void)unused;
    int32_t expected[ANSWER], tokens[ANSWER];
    gumbel_session *session = new_session();
    answer_in_steps(session, 1, ANSWER, expected);
    gumbel_session_destroy(session);
    for (int count = 1; count < ANSWER - LATER; count += 2) {
        gumbel_session *copy;
        session = new_session();
        answer(session, 1, count, tokens);
        assert_ok(gumbel_session_fork(session, &copy, &error), &error);
        for (int i = count; i < count + LATER; i++) {
            tokens[i] = take(session).token;
            assert_int_equal(step(copy, tokens[i - 1], true, 1, NULL), tokens[i]);
        }
        assert_memory_equal(tokens, expected, (size_t)(count + LATER) * sizeof *tokens);
        gumbel_session_destroy(copy);
        gumbel_session_destroy(session);
    }
}

/* A cancelled answer goes on where it was. */
static void cancelled_answers_go_on(void **unused) {
    (void)unused;
    int32_t expected[ANSWER], tokens[ANSWER];
    const gumbel_sampling sampling = settings_of(1);
    const gumbel_generate_options options = {
        .size = sizeof options, .sampling = &sampling, .ignore_stop = true};
    gumbel_session *session = new_session();
    answer_in_steps(session, 1, ANSWER, expected);
    gumbel_session_destroy(session);
    for (int count = 2; count < ANSWER; count += 3) {
        gumbel_generated next = {.size = sizeof next};
        session = new_session();
        answer(session, 1, count, tokens);
        gumbel_session_cancel(session);
        assert_fails(gumbel_next(session, &next, &error), GUMBEL_ERROR_CANCELLED, &error, "cancelled");
        assert_ok(gumbel_generate(session, NULL, 0, &options, &error), &error);
        for (int i = count; i < ANSWER; i++)
            tokens[i] = take(session).token;
        assert_memory_equal(tokens, expected, sizeof tokens);
        gumbel_session_destroy(session);
    }
}

/* The program's stop token is every other token of the answer by turns. */
static void stop_tokens_end_answers(void **unused) {
    (void)unused;
    int32_t expected[ANSWER], tokens[ANSWER];
    gb_token_list *stops = (gb_token_list *)(uintptr_t)&program->program->metadata.stop_tokens;
    const gb_token_list kept = *stops;
    gumbel_session *session = new_session();
    answer_in_steps(session, 1, ANSWER, expected);
    gumbel_session_destroy(session);
    for (int at = 0; at < ANSWER - 1; at += 2) {
        const gumbel_sampling sampling = settings_of(1);
        const gumbel_generate_options options = {.size = sizeof options, .sampling = &sampling};
        gumbel_generated next = {.size = sizeof next};
        float logits[VOCAB], expected_logits[VOCAB];
        int count = 0;
        *stops = (gb_token_list){.ids = &expected[at], .count = 1};
        session = new_session();
        assert_ok(gumbel_generate(session, prompt, PROMPT, &options, &error), &error);
        while (next.finish == GUMBEL_FINISH_NONE) {
            assert_ok(gumbel_next(session, &next, &error), &error);
            tokens[count++] = next.token;
        }
        assert_int_equal(next.finish, GUMBEL_FINISH_STOP);
        assert_true(count <= at + 1);
        assert_memory_equal(tokens, expected, (size_t)count * sizeof *tokens);
        step(session, tokens[count - 1], true, 0, logits);
        gumbel_session_reset(session);
        assert_ok(gumbel_session_append(session, prompt, PROMPT - 1, &error), &error);
        for (int i = 0; i <= count; i++)
            step(session, i == 0 ? prompt[PROMPT - 1] : tokens[i - 1], true, 0, expected_logits);
        assert_memory_equal(logits, expected_logits, sizeof logits);
        gumbel_session_destroy(session);
    }
    *stops = kept;
}

/* ---- How far ahead ------------------------------------------------------------------------------------- */

#if defined(GUMBEL_EMULATED_DEVICE)

static void steps_are_begun_ahead(void **unused) {
    (void)unused;
    gumbel_session *session = new_session();
    begin(session, 1, 0);
    for (unsigned i = 0, before = emulated_graph_launches; i < ANSWER; i++) {
        take(session);
        const unsigned confirmed = i < 2 ? 0 : i - 1; /* the prompt gives the first token */
        assert_int_equal(emulated_graph_launches - before, i + (confirmed < AHEAD ? confirmed : AHEAD));
    }
    gumbel_session_destroy(session);
}

static void no_step_is_begun_that_is_not_taken(void **unused) {
    (void)unused;
    for (uint32_t most = 1; most < ANSWER; most++) {
        gumbel_session *session = new_session();
        begin(session, 1, most);
        const unsigned before = emulated_graph_launches;
        while (take(session).finish == GUMBEL_FINISH_NONE)
            ;
        assert_int_equal(emulated_graph_launches - before, most - 1);
        gumbel_session_destroy(session);
    }
}

static void answers_by_turns_run_nothing_ahead(void **unused) {
    (void)unused;
    gumbel_session *sessions[2] = {new_session(), new_session()};
    begin(sessions[0], 1, 0);
    begin(sessions[1], 1, 0);
    const unsigned before = emulated_graph_launches;
    for (int i = 0; i < ANSWER; i++)
        assert_int_equal(take(sessions[0]).token, take(sessions[1]).token);
    assert_int_equal(emulated_graph_launches - before, 2 * (ANSWER - 1));
    gumbel_session_destroy(sessions[0]);
    gumbel_session_destroy(sessions[1]);
}

#endif

static int set_up(void **state) {
    const gumbel_engine_options options = {
        .size = sizeof options, .backend = "cuda", .slots = 2, .threads = 1, .snapshots = true};
    random_tokens(1, VOCAB, prompt, PROMPT);
    program = open_random_program(*state, false);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    return 0;
}

static int tear_down(void **unused) {
    (void)unused;
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    return 0;
}

#define TEST(name)                                                                                           \
    { #name, name, set_up, tear_down, (void *)(uintptr_t)config }

static int try_all(const char *config) {
    const struct CMUnitTest tests[] = {
        TEST(answer_gives_what_steps_give),
        TEST(logprobs_are_the_tokens_own),
        TEST(deviations_find_the_state_as_it_was),
        TEST(slots_are_as_they_were),
        TEST(forks_go_on),
        TEST(cancelled_answers_go_on),
        TEST(stop_tokens_end_answers),
#if defined(GUMBEL_EMULATED_DEVICE)
        TEST(steps_are_begun_ahead),
        TEST(no_step_is_begun_that_is_not_taken),
        TEST(answers_by_turns_run_nothing_ahead),
#endif
    };
    print_message("%s\n", config);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A delta net whose layers are one launch. */
static int try_whole_layers(const char *config) {
    const struct CMUnitTest tests[] = {
        TEST(answer_gives_what_steps_give),
        TEST(deviations_find_the_state_as_it_was),
    };
    print_message("%s\n", config);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    const int of_rings = try_all("small.json"), of_recurrent_states = try_all("qwen.json");
    return of_rings + of_recurrent_states + try_whole_layers("qwen_heads.json");
}
