/* SPDX-License-Identifier: Apache-2.0
 *
 * What a scheduler runs in each step, in which order, and how requests end, over fake slots.
 */
#include "support/assertions.h"
#include "support/schedule_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { PROMPTS = 6, LONGEST = 400 };

static schedule_case c;
static int32_t prompts[PROMPTS][LONGEST];
static told to[PROMPTS];

/* Steps of 68 tokens over 4 slots, chunks of 64. */
static int set_up(void **state) {
    (void)state;
    memset(to, 0, sizeof to);
    for (uint32_t i = 0; i < PROMPTS; i++)
        fake_prompt(i, prompts[i], LONGEST);
    begin_case(&c, 4, 68, 64, false, (gumbel_scheduler_options){.no_prefix_cache = true});
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    end_case(&c);
    return 0;
}

/* A request for the i-th prompt. */
static gumbel_submission ask(uint32_t i, uint32_t prompt_count, uint32_t answer) {
    return (gumbel_submission){.tokens = prompts[i], .token_count = prompt_count, .max_new_tokens = answer};
}

static void answers_go_on_beside_prompts(void **state) {
    (void)state;
    submit(&c, ask(0, 3, 6), &to[0]);
    turn(&c, 2);
    assert_steps(&c, "0:3+|0:1+|");
    submit(&c, ask(1, 150, 2), &to[1]);
    submit(&c, ask(2, 5, 2), &to[2]);
    turn_until_done(&c);
    /* the long prompt leaves a little of each step to the next one; it is cut at 64 and 128 */
    assert_steps(&c, "0:1+ 1:64|0:1+ 1:64|0:1+ 1:22+ 2:5+|0:1+ 1:1+ 2:1+|");
    for (uint32_t i = 0; i < 3; i++)
        assert_answer(&c, &to[i], prompts[i],
                      i == 1   ? 150
                      : i == 0 ? 3
                               : 5,
                      i + 1, i == 0 ? 6 : 2, GUMBEL_FINISH_LENGTH);
}

/* Prompts are cut at multiples of 64 of their own positions, whatever room a step has. */
/* A backend may begin ahead with the steps of an answer that nobody can join. */
static void steps_of_a_single_answer_are_announced(void **state) {
    (void)state;
    submit(&c, ask(0, 100, 4), &to[0]);
    turn(&c, 1);
    assert_int_equal(c.fake.following, 0); /* half a prompt draws nothing */
    for (uint32_t left = 4; left-- > 2;) {
        turn(&c, 1);
        assert_int_equal(c.fake.following, left);
    }
    submit(&c, ask(1, 3, 0), &to[1]);
    turn(&c, 1);
    assert_int_equal(c.fake.following, 0);
    turn(&c, 1);
    assert_true(to[0].last_events == 1 && to[1].last_events == 0);
    turn(&c, 1);
    assert_true(c.fake.following > 100000); /* as far as the context goes */
    turn_until_done(&c);
    end_case(&c);
    begin_case(&c, 1, 68, 64, false, (gumbel_scheduler_options){.no_prefix_cache = true});
    submit(&c, ask(2, 3, 3), &to[2]);
    submit(&c, ask(3, 3, 3), &to[3]); /* waits for the only slot */
    turn(&c, 1);
    assert_int_equal(c.fake.following, 2);
    turn_until_done(&c);
}

static void prompts_are_cut_at_the_grain(void **state) {
    (void)state;
    submit(&c, ask(0, 20, 1), &to[0]);
    submit(&c, ask(1, 100, 1), &to[1]);
    submit(&c, ask(2, 40, 1), &to[2]);
    turn_until_done(&c);
    assert_steps(&c, "0:20+ 2:40+|1:64|1:36+|");
}

static void the_oldest_prompt_goes_first(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        submit(&c, ask(i, 128, 1), &to[i]);
    turn_until_done(&c);
    assert_steps(&c, "0:64|0:64+|1:64|1:64+|2:64|2:64+|");
}

/* Where no answer waits for its token the first prompt's steps are long; beside answers no step is. */
static void long_steps_are_of_one_prompt_alone(void **state) {
    static const uint32_t counts[] = {300, 400, 3, 400};
    (void)state;
    end_case(&c);
    begin_case(&c, 4, 260, 256, false, (gumbel_scheduler_options){.no_prefix_cache = true});
    c.fake.base.short_chunk = 64;
    c.fake.base.short_step_tokens = 68;
    submit(&c, ask(0, 300, 1), &to[0]);
    submit(&c, ask(1, 400, 1), &to[1]);
    turn_until_done(&c);
    assert_steps(&c, "0:256|0:44+|1:256|1:144+|");
    submit(&c, ask(2, 3, 4), &to[2]);
    turn(&c, 1);
    submit(&c, ask(3, 400, 1), &to[3]);
    turn_until_done(&c);
    assert_steps(&c, "0:3+|0:1+ 1:64|0:1+ 1:64|0:1+ 1:64|1:64|1:144+|");
    for (uint32_t i = 0; i < 4; i++)
        assert_answer(&c, &to[i], prompts[i], counts[i], i + 1, i == 2 ? 4 : 1, GUMBEL_FINISH_LENGTH);
}

/* However many short ones come, a long prompt goes on in every step, and every answer too. */
static void nobody_starves(void **state) {
    (void)state;
    static told many[40];
    memset(many, 0, sizeof many);
    submit(&c, ask(0, 384, 1), &to[0]);
    for (uint32_t i = 0; i < 40; i++) {
        submit(&c, ask(1 + i % 5, 30, 3), &many[i]);
        turn(&c, 1);
        if (i == 6)
            assert_int_equal(to[0].last_events, 1);
    }
    turn_until_done(&c);
    assert_answer(&c, &to[0], prompts[0], 384, 1, 1, GUMBEL_FINISH_LENGTH);
    for (uint32_t i = 0; i < 40; i++)
        assert_answer(&c, &many[i], prompts[1 + i % 5], 30, i + 2, 3, GUMBEL_FINISH_LENGTH);
}

static void priority_goes_first(void **state) {
    (void)state;
    gumbel_submission urgent = ask(5, 64, 1);
    urgent.priority = 1;
    for (uint32_t i = 0; i < 5; i++) /* more than there are slots */
        submit(&c, ask(i, 64, 1), &to[i]);
    submit(&c, urgent, &to[5]);
    turn(&c, 2);
    assert_int_equal(to[5].last_events, 1);
    assert_int_equal(to[1].last_events, 0);
    turn_until_done(&c);
    assert_steps(&c, "0:64+|1:64+|2:64+|3:64+|0:64+|1:64+|");
}

static void deadlines_end_requests(void **state) {
    (void)state;
    gumbel_submission limited = ask(0, 3, 100);
    limited.deadline_seconds = 2;
    submit(&c, limited, &to[0]);
    for (uint32_t i = 1; i < 4; i++)
        submit(&c, ask(i, 3, 100), &to[i]);
    limited.tokens = prompts[4];
    submit(&c, limited, &to[4]); /* waits for a slot */
    turn(&c, 3);
    c.now += 2;
    turn(&c, 1);
    assert_true(to[0].last_events == 1 && to[0].status == GUMBEL_ERROR_DEADLINE && to[0].count == 3);
    assert_true(to[4].last_events == 1 && to[4].status == GUMBEL_ERROR_DEADLINE && to[4].count == 0);
    turn_until_done(&c);
    for (uint32_t i = 1; i < 4; i++)
        assert_answer(&c, &to[i], prompts[i], 3, i + 1, 100, GUMBEL_FINISH_LENGTH);
}

/* In the queue, in the middle of a prompt, in an answer. */
static void cancelled_in_every_phase(void **state) {
    (void)state;
    submit(&c, ask(0, 3, 100), &to[0]);
    submit(&c, ask(1, 300, 100), &to[1]);
    for (uint32_t i = 2; i < 5; i++)
        submit(&c, ask(i, 2, 4), &to[i]);
    turn(&c, 2);
    assert_true(c.of[1]->phase == GB_RUNNING && c.of[2]->sequence->position == 128);
    assert_int_equal(c.of[5]->phase, GB_WAITING);
    for (uint32_t i = 1; i <= 5; i += i == 2 ? 3 : 1)
        atomic_store(&c.of[i]->cancelled, true);
    turn(&c, 1);
    assert_true(to[0].status == GUMBEL_ERROR_CANCELLED && to[0].count == 2);
    assert_true(to[1].status == GUMBEL_ERROR_CANCELLED && to[1].count == 0);
    assert_true(to[4].status == GUMBEL_ERROR_CANCELLED && to[4].usage.queue_seconds == 0);
    turn_until_done(&c);
    assert_answer(&c, &to[2], prompts[2], 2, 3, 4, GUMBEL_FINISH_LENGTH);
    assert_answer(&c, &to[3], prompts[3], 2, 4, 4, GUMBEL_FINISH_LENGTH);
}

static void a_failed_row_is_its_requests(void **state) {
    (void)state;
    prompts[1][2] = FAKE_POISON;
    for (uint32_t i = 0; i < 3; i++)
        submit(&c, ask(i, 3, 5), &to[i]);
    turn_until_done(&c);
    assert_true(to[1].last_events == 1 && to[1].status == GUMBEL_ERROR_NUMERIC && to[1].count == 0);
    assert_answer(&c, &to[0], prompts[0], 3, 1, 5, GUMBEL_FINISH_LENGTH);
    assert_answer(&c, &to[2], prompts[2], 3, 3, 5, GUMBEL_FINISH_LENGTH);
}

/* A step that fails is run again, part by part, so that only the one whose fault it is ends. */
static void a_failed_step_is_its_culprits(void **state) {
    (void)state;
    submit(&c, ask(0, 3, 5), &to[0]);
    turn(&c, 1);
    prompts[1][1] = FAKE_FAULT;
    submit(&c, ask(1, 3, 5), &to[1]);
    submit(&c, ask(2, 3, 5), &to[2]);
    turn_until_done(&c);
    assert_true(to[1].last_events == 1 && to[1].status == GUMBEL_ERROR_BACKEND);
    assert_answer(&c, &to[0], prompts[0], 3, 1, 5, GUMBEL_FINISH_LENGTH);
    assert_answer(&c, &to[2], prompts[2], 3, 3, 5, GUMBEL_FINISH_LENGTH);
}

/* Where a failed step has taken states with it, all answers that had them end, and later ones are right. */
static void answers_whose_states_are_lost_end(void **state) {
    (void)state;
    submit(&c, ask(0, 3, 50), &to[0]);
    submit(&c, ask(1, 130, 5), &to[1]);
    turn(&c, 2);
    prompts[2][1] = FAKE_FAULT;
    c.fake.fault_empties = true;
    submit(&c, ask(2, 3, 5), &to[2]);
    turn_until_done(&c);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(to[i].last_events == 1 && to[i].status == GUMBEL_ERROR_BACKEND);
    submit(&c, ask(3, 3, 5), &to[3]);
    turn_until_done(&c);
    assert_answer(&c, &to[3], prompts[3], 3, 4, 5, GUMBEL_FINISH_LENGTH);
}

static void count_failure(void *user, const gumbel_error *error) {
    ++*(unsigned *)user;
    assert_string_equal(error->message, "device 1: lost");
}

/* Those that run, wait or come later, also beside no others, whose step tells no fault from a loss. */
static void a_lost_engine_ends_all(void **state) {
    (void)state;
    unsigned failures = 0;
    c.schedule.options.on_failure = count_failure;
    c.schedule.options.failure_user = &failures;
    prompts[5][1] = FAKE_FAULT;
    submit(&c, ask(5, 3, 5), &to[5]);
    turn_until_done(&c);
    assert_true(to[5].status == GUMBEL_ERROR_BACKEND && failures == 0);
    submit(&c, ask(0, 3, 50), &to[0]);
    submit(&c, ask(1, 130, 50), &to[1]);
    turn(&c, 2);
    c.fake.is_lost = true;
    for (uint32_t i = 2; i < 4; i++)
        submit(&c, ask(i, 3, 5), &to[i]);
    turn_until_done(&c);
    c.fake.log[0] = 0;
    submit(&c, ask(4, 3, 5), &to[4]);
    turn_until_done(&c);
    assert_steps(&c, "");
    assert_int_equal(failures, 1);
    for (uint32_t i = 0; i < 5; i++)
        assert_true(to[i].last_events == 1 && to[i].status == GUMBEL_ERROR_BACKEND);
}

static void answers_end_for_their_reasons(void **state) {
    (void)state;
    prompts[0][2] = FAKE_ENDING;
    int32_t drawn[8];
    fake_answer(&c.fake, prompts[1], 3, 2, drawn, 8);
    gumbel_submission stopped = ask(1, 3, 8), ignoring = ask(0, 3, 2);
    stopped.stop_tokens = &drawn[4];
    stopped.stop_token_count = 1;
    ignoring.ignore_stop = true;
    submit(&c, ask(0, 3, 5), &to[0]);
    submit(&c, stopped, &to[1]);
    submit(&c, ask(2, LONGEST, 0), &to[2]);
    submit(&c, ignoring, &to[3]);
    turn_until_done(&c);
    assert_answer(&c, &to[0], prompts[0], 3, 1, 1, GUMBEL_FINISH_STOP);
    assert_answer(&c, &to[1], prompts[1], 3, 2, 5, GUMBEL_FINISH_STOP);
    assert_answer(&c, &to[2], prompts[2], LONGEST, 3, FAKE_CONTEXT - LONGEST + 1, GUMBEL_FINISH_CONTEXT);
    assert_int_equal(to[3].tokens[0], FAKE_STOP);
    assert_int_equal(to[3].count, 2);
}

static void refusals(void **state) {
    (void)state;
    gumbel_error error;
    gb_answer *answer;
    const struct {
        gumbel_submission submission;
        gumbel_status status;
        const char *message;
    } cases[] = {
        {{.tokens = prompts[0], .token_count = 1}, GUMBEL_ERROR_ARGUMENT, "callback is NULL"},
        {{.callback = tell}, GUMBEL_ERROR_ARGUMENT, "no tokens"},
        {{.callback = tell, .token_count = 2}, GUMBEL_ERROR_ARGUMENT, "tokens is NULL"},
        {{.callback = tell, .tokens = prompts[0], .token_count = 513}, GUMBEL_ERROR_LIMIT, "holds 512"},
        {{.callback = tell, .tokens = &(int32_t){1000}, .token_count = 1}, GUMBEL_ERROR_ARGUMENT, "0 to 999"},
        {{.callback = tell, .tokens = prompts[0], .token_count = 1, .deadline_seconds = -1},
         GUMBEL_ERROR_ARGUMENT,
         "deadline_seconds"},
        {{.callback = tell, .tokens = prompts[0], .token_count = 1, .stop_string_count = 1},
         GUMBEL_ERROR_ARGUMENT,
         "need a tokenizer"},
        {{.callback = tell, .tokens = prompts[0], .token_count = 1, .min_new_tokens = 1},
         GUMBEL_ERROR_ARGUMENT,
         "min_new_tokens bans 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(gb_answer_create(&c.fake.base, &cases[i].submission, 0, 1, 64, &answer, &error),
                     cases[i].status, &error, cases[i].message);
}

#define each(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        each(answers_go_on_beside_prompts),
        each(steps_of_a_single_answer_are_announced),
        each(prompts_are_cut_at_the_grain),
        each(the_oldest_prompt_goes_first),
        each(long_steps_are_of_one_prompt_alone),
        each(nobody_starves),
        each(priority_goes_first),
        each(deadlines_end_requests),
        each(cancelled_in_every_phase),
        each(a_failed_row_is_its_requests),
        each(a_failed_step_is_its_culprits),
        each(answers_whose_states_are_lost_end),
        each(a_lost_engine_ends_all),
        each(answers_end_for_their_reasons),
        each(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
