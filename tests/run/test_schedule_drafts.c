/* SPDX-License-Identifier: Apache-2.0
 *
 * Drafts in a scheduler over fake slots: answers are those without drafts, however they end, what is kept of
 * them is what was run for them, and prompts go before drafts.
 */
#include "support/assertions.h"
#include "support/schedule_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { PROMPT = 5, ANSWER = 40, DRAFT = 7, SLOTS = 4, CHUNK = 64 };

static schedule_case c;
static int32_t prompts[SLOTS][PROMPT], answers[SLOTS][ANSWER + 1];
static told to[SLOTS];

static void begin(bool recurrent, uint32_t step_tokens, bool caches) {
    memset(to, 0, sizeof to);
    begin_drafting_case(&c, SLOTS, step_tokens, CHUNK, recurrent, DRAFT,
                        (gumbel_scheduler_options){.no_prefix_cache = !caches});
    c.fake.step_times.is_fixed = true;
    for (uint32_t i = 0; i < SLOTS; i++) {
        fake_prompt(i, prompts[i], PROMPT);
        fake_answer(&c.fake, prompts[i], PROMPT, i + 1, answers[i], ANSWER + 1);
    }
}

/* A request for the i-th prompt, whose answer is predicted. */
static gumbel_submission ask(uint32_t i) {
    return (gumbel_submission){.tokens = prompts[i],
                               .token_count = PROMPT,
                               .max_new_tokens = ANSWER,
                               .predicted_tokens = answers[i],
                               .predicted_count = ANSWER};
}

static gumbel_draft_stats drafts_of(void) {
    gumbel_scheduler_stats stats;
    gb_schedule_get_stats(&c.schedule, &stats);
    return stats.drafts;
}

static void predicted_answers_take_few_steps(void **state) {
    (void)state;
    for (int recurrent = 0; recurrent < 2; recurrent++) {
        begin(recurrent, 128, false);
        for (uint32_t i = 0; i < SLOTS; i++)
            submit(&c, ask(i), &to[i]);
        turn_until_done(&c);
        for (uint32_t i = 0; i < SLOTS; i++)
            assert_answer(&c, &to[i], prompts[i], PROMPT, i + 1, ANSWER, GUMBEL_FINISH_LENGTH);
        assert_true(c.schedule.counts.steps < 12);
        assert_true(drafts_of().accepted > SLOTS * (ANSWER - 10));
        assert_int_equal(to[0].usage.accepted_tokens + to[1].usage.accepted_tokens +
                             to[2].usage.accepted_tokens + to[3].usage.accepted_tokens,
                         drafts_of().accepted);
        end_case(&c);
    }
}

/* Tokens that are predicted wrongly are not those of the answer. */
static void wrong_predictions_change_nothing(void **state) {
    (void)state;
    begin(true, 128, false);
    int32_t wrong[ANSWER];
    for (uint32_t i = 0; i < ANSWER; i++)
        wrong[i] = i % 5 == 4 ? 3 : answers[0][i];
    gumbel_submission submission = ask(0);
    submission.predicted_tokens = wrong;
    submit(&c, submission, &to[0]);
    turn_until_done(&c);
    assert_answer(&c, &to[0], prompts[0], PROMPT, 1, ANSWER, GUMBEL_FINISH_LENGTH);
    const gumbel_draft_stats drafts = drafts_of();
    assert_true(drafts.accepted > 5 && drafts.accepted < drafts.proposed);
    end_case(&c);
}

/* At a limit, and at a stop token of the request amid what is predicted: the next turn begins with what was
 * run for the answer. */
static void answers_end_amid_drafts(void **state) {
    (void)state;
    for (uint32_t at = 1; at < 14; at++) {
        begin(at % 2, 128, true);
        gumbel_submission submission = ask(0);
        const int32_t stop = answers[0][at];
        if (at % 3 == 0) {
            submission.stop_tokens = &stop;
            submission.stop_token_count = 1;
        } else {
            submission.max_new_tokens = at + 1;
        }
        submit(&c, submission, &to[0]);
        turn_until_done(&c);
        assert_answer(&c, &to[0], prompts[0], PROMPT, 1, at + 1,
                      at % 3 == 0 ? GUMBEL_FINISH_STOP : GUMBEL_FINISH_LENGTH);
        int32_t next[PROMPT + ANSWER];
        memcpy(next, prompts[0], sizeof prompts[0]);
        memcpy(next + PROMPT, answers[0], (at + 1) * sizeof *next);
        next[PROMPT + at + 1] = 77;
        submit(&c, (gumbel_submission){.tokens = next, .token_count = PROMPT + at + 2, .max_new_tokens = 3},
               &to[1]);
        turn_until_done(&c);
        assert_answer(&c, &to[1], next, PROMPT + at + 2, 2, 3, GUMBEL_FINISH_LENGTH);
        assert_int_equal(to[1].usage.cached_tokens, PROMPT + at);
        end_case(&c);
    }
}

/* While a prompt waits, what is beside its chunk is left for drafts. */
static void prompts_go_before_drafts(void **state) {
    (void)state;
    begin(false, CHUNK + SLOTS, false);
    submit(&c, ask(0), &to[0]);
    turn(&c, 3);
    static int32_t longer[300];
    fake_prompt(9, longer, 300);
    const uint64_t before = c.schedule.counts.steps;
    submit(&c, (gumbel_submission){.tokens = longer, .token_count = 300, .max_new_tokens = 1}, &to[1]);
    turn(&c, 5);
    assert_int_equal(to[1].last_events, 1);
    assert_int_equal(c.schedule.counts.steps - before, 5);
    turn_until_done(&c);
    assert_answer(&c, &to[0], prompts[0], PROMPT, 1, ANSWER, GUMBEL_FINISH_LENGTH);
    end_case(&c);
}

static void drafts_may_be_off(void **state) {
    (void)state;
    begin(false, 128, false);
    gumbel_submission submission = ask(0);
    submission.drafting = GUMBEL_DRAFTING_OFF;
    submit(&c, submission, &to[0]);
    submission = ask(1);
    submission.max_draft = 1;
    submit(&c, submission, &to[1]);
    turn_until_done(&c);
    assert_int_equal(to[0].usage.draft_tokens, 0);
    assert_true(to[1].usage.draft_tokens > 10);
    assert_int_equal(drafts_of().tried_at[1], 0);
    end_case(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predicted_answers_take_few_steps),
        cmocka_unit_test(wrong_predictions_change_nothing),
        cmocka_unit_test(answers_end_amid_drafts),
        cmocka_unit_test(prompts_go_before_drafts),
        cmocka_unit_test(drafts_may_be_off),
    };
    return cmocka_run_group_tests_name("schedule_drafts", tests, NULL, NULL);
}
