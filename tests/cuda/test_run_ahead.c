/* SPDX-License-Identifier: Apache-2.0
 *
 * Lookahead: answers are those of single steps, and whatever interrupts it finds the session as if nothing
 * had run ahead.
 */
#include "cuda/answers.h"
#include "support/test_arguments.h"

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
    begin(session, 1, 0, true);
    assert_ok(gumbel_session_append(other, prompt, PROMPT - 1, &error), &error);
    float expected[ANSWER];
    for (int i = 0; i < ANSWER; i++) {
        gumbel_result result = {.size = sizeof result};
        gumbel_request request = {.size = sizeof request,
                                  .session = other,
                                  .tokens = &token,
                                  .token_count = 1,
                                  .result = &result,
                                  .sampling = &sampling,
                                  .wants_logprob = true};
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
        token = result.token;
        expected[i] = result.logprob;
    }
    for (int i = 0; i < ANSWER; i++) {
        const gumbel_generated next = take(session);
        assert_memory_equal(&next.logprob, &expected[i], sizeof expected[i]);
    }
    gumbel_session_destroy(session);
    gumbel_session_destroy(other);
}

/* ---- What is done instead of going on ------------------------------------------------------------------ */

/* After numbers of tokens, where versions of states go round after every one. */
static void compare(deviation *deviate) {
    static const int counts[] = {3, 1, 7, 2, 5};
    const int tried = shortened(gb_has_recurrent_state(program->program) ? 5 : 3, 1);
    for (int i = 0; i < tried; i++)
        compare_after(deviate, counts[i], 0);
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

/* ---- How far ahead ------------------------------------------------------------------------------------- */

#if defined(GUMBEL_EMULATED_DEVICE)

static void steps_are_begun_ahead(void **unused) {
    (void)unused;
    gumbel_session *session = new_session();
    begin(session, 1, 0, true);
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
        begin(session, 1, most, true);
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
    begin(sessions[0], 1, 0, true);
    begin(sessions[1], 1, 0, true);
    const unsigned before = emulated_graph_launches;
    for (int i = 0; i < ANSWER; i++)
        assert_int_equal(take(sessions[0]).token, take(sessions[1]).token);
    assert_int_equal(emulated_graph_launches - before, 2 * (ANSWER - 1));
    gumbel_session_destroy(sessions[0]);
    gumbel_session_destroy(sessions[1]);
}

static unsigned launches_before;

static void count_launches(void *user, const gumbel_event *event) {
    unsigned *count = user;
    if (event->type != GUMBEL_EVENT_TOKEN)
        return;
    const unsigned i = (*count)++, confirmed = i < 2 ? 0 : i - 1;
    unsigned most = i + (confirmed < AHEAD ? confirmed : AHEAD); /* as many as gumbel_next begins, */
    most = most < ANSWER - 1 ? most : ANSWER - 1;                /* and none that is not taken */
    assert_int_equal(emulated_graph_launches - launches_before, most);
}

static void schedulers_begin_steps_ahead(void **unused) {
    (void)unused;
    gumbel_scheduler *scheduler;
    unsigned count = 0;
    const gumbel_sampling sampling = settings_of(1);
    const gumbel_submission submission = {.size = sizeof submission,
                                          .tokens = prompt,
                                          .token_count = PROMPT,
                                          .callback = count_launches,
                                          .user = &count,
                                          .sampling = &sampling,
                                          .ignore_stop = true,
                                          .max_new_tokens = ANSWER};
    launches_before = emulated_graph_launches;
    assert_ok(gumbel_scheduler_create(engine, NULL, &scheduler, &error), &error);
    assert_ok(gumbel_scheduler_submit(scheduler, &submission, NULL, &error), &error);
    gumbel_scheduler_drain(scheduler);
    gumbel_scheduler_destroy(scheduler);
    assert_int_equal(count, ANSWER);
}

/* Draws a token for each of two sessions that stand behind one, in one step; graphs is how many it launches.
 */
static void draw_together(int32_t *tokens, unsigned graphs) {
    const gumbel_sampling sampling = settings_of(1);
    gumbel_session *sessions[2] = {new_session(), new_session()};
    gumbel_request requests[2];
    gumbel_result results[2];
    for (int i = 0; i < 2; i++) {
        tokens[i] = step(sessions[i], prompt[i], true, 1, NULL);
        results[i] = (gumbel_result){.size = sizeof results[i]};
        requests[i] = (gumbel_request){.size = sizeof requests[i],
                                       .session = sessions[i],
                                       .tokens = &tokens[i],
                                       .token_count = 1,
                                       .result = &results[i],
                                       .sampling = &sampling};
    }
    const unsigned before = emulated_graph_launches;
    assert_ok(gumbel_step(engine, requests, 2, &error), &error);
    assert_int_equal(emulated_graph_launches - before, graphs);
    assert_int_equal(engine->batch.has_prepared, graphs == 0);
    assert_int_equal(engine->step_times.has_prepared, graphs == 0);
    gb_step_times_begin(&engine->step_times);
    for (int i = 0; i < 2; i++) {
        tokens[i] = results[i].token;
        gumbel_session_destroy(sessions[i]);
    }
}

/* It is launched kernel by kernel, and its graph is made meanwhile; the bits are the same. */
static void the_first_step_of_a_size_is_no_graph(void **unused) {
    (void)unused;
    int32_t first[2], second[2];
    draw_together(first, 0);
    draw_together(second, 1);
    assert_memory_equal(first, second, sizeof first);
}

enum { LONG_ANSWER = 40, PREDICTED = 24, PREDICTED_END = 38 };

static void generate_drafted(gumbel_drafting drafting, const int32_t *predicted, size_t count,
                             int32_t *tokens, gumbel_draft_stats *stats) {
    const gumbel_sampling sampling = settings_of(1);
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &sampling,
                                             .max_new_tokens = LONG_ANSWER,
                                             .ignore_stop = true,
                                             .drafting = drafting,
                                             .max_draft = 1,
                                             .predicted_tokens = predicted,
                                             .predicted_count = count};
    gumbel_session *session = new_session();
    assert_ok(gumbel_generate(session, prompt, PROMPT, &options, &error), &error);
    for (int i = 0; i < LONG_ANSWER; i++)
        tokens[i] = take(session).token;
    *stats = (gumbel_draft_stats){.size = sizeof *stats};
    assert_ok(gumbel_session_draft_stats(session, stats, &error), &error);
    gumbel_session_destroy(session);
}

/* What an answer of a scheduler has drawn. */
typedef struct drawn {
    int32_t tokens[LONG_ANSWER];
    int count;
    uint64_t accepted;
} drawn;

static void keep_drawn(void *user, const gumbel_event *event) {
    drawn *to = user;
    if (event->type == GUMBEL_EVENT_TOKEN)
        to->tokens[to->count++] = event->token;
    else if (event->usage)
        to->accepted = event->usage->accepted_tokens;
}

static void submit_drafted(const int32_t *predicted, size_t count, drawn *to) {
    gumbel_scheduler *scheduler;
    const gumbel_sampling sampling = settings_of(1);
    const gumbel_submission submission = {.size = sizeof submission,
                                          .tokens = prompt,
                                          .token_count = PROMPT,
                                          .callback = keep_drawn,
                                          .user = to,
                                          .sampling = &sampling,
                                          .has_seed = true,
                                          .seed = 77,
                                          .max_new_tokens = LONG_ANSWER,
                                          .ignore_stop = true,
                                          .drafting = GUMBEL_DRAFTING_LOOKUP,
                                          .max_draft = 1,
                                          .predicted_tokens = predicted,
                                          .predicted_count = count};
    *to = (drawn){0};
    assert_ok(gumbel_scheduler_create(engine, NULL, &scheduler, &error), &error);
    assert_ok(gumbel_scheduler_submit(scheduler, &submission, NULL, &error), &error);
    gumbel_scheduler_drain(scheduler);
    gumbel_scheduler_destroy(scheduler);
}

/* Where drafts come to pay in the middle of an answer, the steps that have been begun are taken first: each
 * is launched once. */
static void drafts_throw_no_steps_away(void **unused) {
    (void)unused;
    const gumbel_engine_options with_drafts = {
        .size = sizeof with_drafts, .backend = "cuda", .slots = 2, .threads = 1, .draft_tokens = 1};
    int32_t expected[LONG_ANSWER], found[LONG_ANSWER];
    const size_t predicted = PREDICTED_END - PREDICTED;
    gumbel_draft_stats stats;
    drawn scheduled;
    gumbel_engine_destroy(engine);
    assert_ok(gumbel_engine_create(program, &with_drafts, &engine, &error), &error);
    engine->step_times.is_fixed = true;
    generate_drafted(GUMBEL_DRAFTING_OFF, NULL, 0, expected, &stats);
    unsigned before = emulated_graph_launches;
    generate_drafted(GUMBEL_DRAFTING_LOOKUP, expected + PREDICTED, predicted, found, &stats);
    assert_memory_equal(found, expected, sizeof found);
    assert_true(stats.accepted > 2);
    /* the prompt gives the first token, and the first step with a draft is no graph */
    assert_int_equal(emulated_graph_launches - before, LONG_ANSWER - 1 - stats.accepted - 1);
    before = emulated_graph_launches;
    submit_drafted(expected + PREDICTED, predicted, &scheduled);
    assert_memory_equal(scheduled.tokens, expected, sizeof expected);
    assert_true(scheduled.accepted > 2);
    assert_int_equal(emulated_graph_launches - before, LONG_ANSWER - 1 - scheduled.accepted);
}

#endif

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
#if defined(GUMBEL_EMULATED_DEVICE)
        TEST(steps_are_begun_ahead),
        TEST(no_step_is_begun_that_is_not_taken),
        TEST(answers_by_turns_run_nothing_ahead),
        TEST(the_first_step_of_a_size_is_no_graph),
        TEST(schedulers_begin_steps_ahead),
        TEST(drafts_throw_no_steps_away),
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

int main(int argument_count, char **arguments) {
    read_test_arguments(argument_count, arguments);
    const int of_rings = try_all("small.json"), of_recurrent_states = try_all("qwen.json");
    return of_rings + of_recurrent_states + try_whole_layers("qwen_heads.json");
}
