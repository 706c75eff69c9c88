/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens when memory runs out: the youngest answer waits in host memory and goes on with the same
 * tokens.
 */
#include "support/assertions.h"
#include "support/schedule_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { PROMPT = 50, ANSWER = 300, REQUESTS = 4 };

static schedule_case c;
static told to[REQUESTS];
static int32_t prompts[REQUESTS][PROMPT];

static void begin(bool recurrent, gumbel_scheduler_options options) {
    memset(to, 0, sizeof to);
    options.answer_reserve = 1;
    begin_case(&c, REQUESTS, 128, 64, recurrent, options);
    for (uint32_t i = 0; i < REQUESTS; i++)
        fake_prompt(i, prompts[i], PROMPT);
}

static void ask_all(void) {
    for (uint32_t i = 0; i < REQUESTS; i++)
        submit(&c, (gumbel_submission){.tokens = prompts[i], .token_count = PROMPT, .max_new_tokens = ANSWER},
               &to[i]);
}

static void assert_all_answered(void) {
    for (uint32_t i = 0; i < REQUESTS; i++)
        assert_answer(&c, &to[i], prompts[i], PROMPT, i + 1, ANSWER, GUMBEL_FINISH_LENGTH);
}

static uint64_t spills(void) {
    gumbel_scheduler_stats stats;
    gb_schedule_get_stats(&c.schedule, &stats);
    return stats.spills;
}

static void the_youngest_is_spilled(void **state) {
    for (int recurrent = 0; recurrent < 2; recurrent++) {
        (void)state;
        begin(recurrent == 1, (gumbel_scheduler_options){.state_bytes = 700});
        ask_all();
        while (spills() == 0)
            turn(&c, 1);
        assert_int_equal(c.of[4]->phase, GB_SPILLED);
        assert_int_equal(c.of[1]->phase, GB_RUNNING);
        turn_until_done(&c);
        assert_all_answered();
        end_case(&c);
    }
}

/* Whoever has a higher priority stays, also if it came last. */
static void the_lowest_priority_is_spilled(void **state) {
    static const int32_t priorities[REQUESTS] = {0, 1, 0, 1};
    (void)state;
    begin(true, (gumbel_scheduler_options){.state_bytes = 700});
    for (uint32_t i = 0; i < REQUESTS; i++)
        submit(&c,
               (gumbel_submission){.tokens = prompts[i],
                                   .token_count = PROMPT,
                                   .max_new_tokens = ANSWER,
                                   .priority = priorities[i]},
               &to[i]);
    while (spills() == 0)
        turn(&c, 1);
    assert_int_equal(c.of[3]->phase, GB_SPILLED);
    while (spills() == 1)
        turn(&c, 1);
    assert_int_equal(c.of[1]->phase, GB_SPILLED);
    assert_true(c.of[2]->phase == GB_RUNNING && c.of[4]->phase == GB_RUNNING);
    while (!to[1].last_events || !to[3].last_events)
        turn(&c, 1);
    assert_true(to[0].last_events == 0 && to[2].last_events == 0);
    turn_until_done(&c);
    assert_all_answered();
    end_case(&c);
}

/* The device refuses a step although the sums say that it fits. */
static void a_device_without_memory(void **state) {
    (void)state;
    begin(true, (gumbel_scheduler_options){0});
    c.fake.memory = 600;
    ask_all();
    turn_until_done(&c);
    assert_true(spills() > 0);
    assert_all_answered();
    c.fake.memory = 40; /* not even one fits: it says so */
    memset(to, 0, sizeof to);
    submit(&c, (gumbel_submission){.tokens = prompts[0], .token_count = PROMPT}, &to[0]);
    turn_until_done(&c);
    assert_true(to[0].last_events == 1 && to[0].status == GUMBEL_ERROR_MEMORY);
    end_case(&c);
}

static void spilled_answers_can_be_cancelled(void **state) {
    (void)state;
    begin(false, (gumbel_scheduler_options){.state_bytes = 700});
    ask_all();
    while (spills() == 0)
        turn(&c, 1);
    atomic_store(&c.of[4]->cancelled, true);
    turn(&c, 1);
    assert_true(to[3].last_events == 1 && to[3].status == GUMBEL_ERROR_CANCELLED && to[3].count > 0);
    assert_int_equal(c.schedule.spilled_bytes, 0);
    turn_until_done(&c);
    end_case(&c);
}

static void without_host_memory_the_youngest_fails(void **state) {
    (void)state;
    begin(false, (gumbel_scheduler_options){.state_bytes = 700});
    c.fake.save_fails = true;
    ask_all();
    turn_until_done(&c);
    assert_int_equal(to[3].status, GUMBEL_ERROR_MEMORY);
    assert_answer(&c, &to[0], prompts[0], PROMPT, 1, ANSWER, GUMBEL_FINISH_LENGTH);
    end_case(&c);
}

/* Who begins leaves room for the reserve of those that run. */
static void admission_counts_what_answers_will_need(void **state) {
    (void)state;
    memset(to, 0, sizeof to);
    begin_case(&c, REQUESTS, 128, 64, false, (gumbel_scheduler_options){.state_bytes = 750});
    for (uint32_t i = 0; i < REQUESTS; i++)
        fake_prompt(i, prompts[i], PROMPT);
    ask_all();
    turn(&c, 1);
    assert_int_equal(c.of[2]->phase, GB_RUNNING);
    assert_int_equal(c.of[3]->phase, GB_WAITING);
    turn_until_done(&c);
    assert_int_equal(spills(), 0);
    assert_all_answered();
    end_case(&c);
    gb_serving_schedule schedule;
    gumbel_error error;
    const gumbel_scheduler_options options = {.size = sizeof options, .state_bytes = FAKE_CONTEXT - 1};
    assert_fails(gb_schedule_create(&c.fake.base, &options, NULL, NULL, &schedule, &error),
                 GUMBEL_ERROR_ARGUMENT, &error, "one sequence of 512 tokens needs 512");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_youngest_is_spilled),
        cmocka_unit_test(the_lowest_priority_is_spilled),
        cmocka_unit_test(a_device_without_memory),
        cmocka_unit_test(spilled_answers_can_be_cancelled),
        cmocka_unit_test(without_host_memory_the_youngest_fails),
        cmocka_unit_test(admission_counts_what_answers_will_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
