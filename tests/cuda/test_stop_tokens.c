/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that end in a stop token while lookahead is in flight: however the session goes on, it is as if
 * that had not run.
 */
#include "cuda/answers.h"
#include "support/test_arguments.h"

/* The program's stop token is every other token of the answer (in a short run of its first four) by turns. */
static void stop_tokens_end_answers(void **unused) {
    (void)unused;
    int32_t expected[ANSWER], tokens[ANSWER];
    const gb_token_list kept = *stop_tokens();
    gumbel_session *session = new_session();
    answer_in_steps(session, 1, ANSWER, expected);
    gumbel_session_destroy(session);
    for (int at = 0; at < shortened(ANSWER - 1, 4); at += 2) {
        const gumbel_sampling sampling = settings_of(1);
        const gumbel_generate_options options = {.size = sizeof options, .sampling = &sampling};
        gumbel_generated next = {.size = sizeof next};
        float logits[VOCAB], expected_logits[VOCAB];
        int count = 0;
        *stop_tokens() = (gb_token_list){.ids = &expected[at], .count = 1};
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
    *stop_tokens() = kept;
}

/* How many tokens the answer has where its token number `last` stops it: that may have come before. */
static int count_to(const int32_t *tokens, int last) {
    int at = 0;
    while (tokens[at] != tokens[last])
        at++;
    return at + 1;
}

/* After stop tokens that were drawn by the first step after the prompt, and by steps that were announced. */
static void compare_stopped(deviation *deviate, uint32_t stop_count) {
    static const int lasts[] = {1, 6};
    const int tried = shortened(2, 1);
    int32_t tokens[ANSWER];
    gumbel_session *session = new_session();
    answer_in_steps(session, 1, ANSWER, tokens);
    gumbel_session_destroy(session);
    for (int i = 0; i < tried; i++)
        compare_after(deviate, count_to(tokens, lasts[i]), stop_count);
}

/* Takes count tokens from the one that waits on, in as many generations as they need. */
static void generate_on(gumbel_session *session, int count, uint32_t most, bool ignore_stop,
                        int32_t *tokens) {
    gumbel_generated next = {.finish = GUMBEL_FINISH_STOP};
    for (int i = 0; i < count; i++) {
        if (next.finish != GUMBEL_FINISH_NONE)
            generate(session, NULL, 0, 1, most, ignore_stop);
        next = take(session);
        tokens[i] = next.token;
    }
}

/* The stopped answer goes on in a new generation, the other one by steps. */
static void go_on_generating(gumbel_session *session, bool is_generating, int32_t last, uint32_t most,
                             bool ignore_stop) {
    int32_t tokens[LATER];
    if (is_generating)
        generate_on(session, LATER, most, ignore_stop, tokens);
    else
        go_on_by_steps(session, false, last);
}

static void generate_past_stops(gumbel_session *session, bool is_generating, int32_t last) {
    go_on_generating(session, is_generating, last, 0, true);
}

static void generate_to_next_stop(gumbel_session *session, bool is_generating, int32_t last) {
    go_on_generating(session, is_generating, last, 0, false);
}

static void generate_single_tokens(gumbel_session *session, bool is_generating, int32_t last) {
    go_on_generating(session, is_generating, last, 1, false);
}

static void generate_after_prompt(gumbel_session *session, bool is_generating, int32_t last) {
    const int32_t tokens[] = {last, prompt[1], prompt[2]};
    const size_t waiting = is_generating ? 1 : 0;
    generate(session, tokens + waiting, 3 - waiting, 1, LATER, true);
    for (int i = 0; i < LATER; i++)
        take(session);
}

static void stopped_answers_go_on(void **unused) {
    (void)unused;
    compare_stopped(generate_past_stops, 1);
    compare_stopped(generate_to_next_stop, 1);
    compare_stopped(generate_single_tokens, 1);
    compare_stopped(generate_after_prompt, 1);
    compare_stopped(go_on_by_steps, 1);
}

static void stopped_answers_deviate(void **unused) {
    (void)unused;
    compare_stopped(append_prompt, 1);
    compare_stopped(change_settings, 1);
    compare_stopped(change_token, 1);
    compare_stopped(rewind_into_answer, 1);
    compare_stopped(save_and_load, 1);
}

/* More of them than the device looks for. */
static void many_stop_tokens(void **unused) {
    (void)unused;
    compare_stopped(generate_past_stops, MANY);
    compare_stopped(go_on_by_steps, MANY);
    compare_stopped(append_prompt, MANY);
}

/* An answer that is taken up with other stop tokens while steps are in flight that come to one: these ended
 * there or went on by the ones of before. */
static void stops_change_under_way(void **unused) {
    (void)unused;
    int32_t expected[ANSWER], tokens[ANSWER];
    const gb_token_list kept = *stop_tokens();
    gumbel_session *session = new_session();
    answer_in_steps(session, 1, ANSWER, expected);
    gumbel_session_destroy(session);
    const int count = count_to(expected, ANSWER - 3);
    *stop_tokens() = (gb_token_list){.ids = &expected[count - 1], .count = 1};
    for (int taken = count > 3 ? count - 3 : 1; taken < count; taken++)
        for (int ignored_first = 0; ignored_first < 2; ignored_first++) {
            session = new_session();
            begin(session, 1, 0, ignored_first);
            for (int i = 0; i < taken; i++)
                tokens[i] = take(session).token;
            generate(session, NULL, 0, 1, 0, !ignored_first);
            for (int i = taken; i < count; i++) {
                const gumbel_generated next = take(session);
                const bool stops = ignored_first && i + 1 == count;
                assert_int_equal(next.finish, stops ? GUMBEL_FINISH_STOP : GUMBEL_FINISH_NONE);
                tokens[i] = next.token;
            }
            generate_on(session, ANSWER - count, 0, true, tokens + count);
            assert_memory_equal(tokens, expected, sizeof tokens);
            gumbel_session_destroy(session);
        }
    *stop_tokens() = kept;
}

#define TEST(name)                                                                                           \
    { #name, name, set_up, tear_down, (void *)(uintptr_t)config }

static int try_all(const char *config) {
    const struct CMUnitTest tests[] = {
        TEST(stop_tokens_end_answers), TEST(stopped_answers_go_on),  TEST(stopped_answers_deviate),
        TEST(many_stop_tokens),        TEST(stops_change_under_way),
    };
    print_message("%s\n", config);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argument_count, char **arguments) {
    read_test_arguments(argument_count, arguments);
    const int of_rings = try_all("small.json");
    if (is_short_run() && argument_count == 1)
        cmocka_set_test_filter("stopped_answers_go_on");
    return of_rings + try_all("qwen.json");
}
