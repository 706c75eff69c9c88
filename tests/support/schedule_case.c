/* SPDX-License-Identifier: Apache-2.0 */
#include "support/schedule_case.h"

#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static double clock_of(void *user) {
    return ((schedule_case *)user)->now;
}

void begin_case(schedule_case *c, uint32_t slots, uint32_t step_tokens, uint32_t chunk, bool recurrent,
                gumbel_scheduler_options options) {
    begin_drafting_case(c, slots, step_tokens, chunk, recurrent, 0, options);
}

void begin_drafting_case(schedule_case *c, uint32_t slots, uint32_t step_tokens, uint32_t chunk,
                         bool recurrent, uint32_t draft_tokens, gumbel_scheduler_options options) {
    gumbel_error error;
    memset(c, 0, sizeof *c);
    fake_slots_init(&c->fake, slots, step_tokens, chunk, recurrent);
    c->fake.base.draft_tokens = draft_tokens;
    c->fake.base.most_rows = slots * (1 + draft_tokens);
    options.size = sizeof options;
    c->now = 1;
    assert_ok(gb_schedule_create(&c->fake.base, &options, clock_of, c, &c->schedule, &error), &error);
}

static void forget_ended(schedule_case *c) {
    for (gb_answer *ended = gb_schedule_take_ended(&c->schedule); ended;) {
        gb_answer *next = ended->next;
        c->of[ended->request] = NULL;
        gb_answer_destroy(ended);
        ended = next;
    }
}

void end_case(schedule_case *c) {
    gumbel_scheduler_stats stats;
    forget_ended(c);
    gb_schedule_get_stats(&c->schedule, &stats);
    assert_null(c->schedule.answers);
    assert_true(stats.queued == 0 && stats.running == 0 && stats.spilled == 0);
    assert_int_equal(stats.free_slots + stats.kept_slots, stats.slots);
    assert_true(stats.running_bytes == 0 && stats.spilled_bytes == 0);
    assert_int_equal(stats.finished + stats.failed, stats.submitted);
    gb_schedule_destroy(&c->schedule);
    assert_int_equal(c->schedule.host_bytes, 0);
    c->fake.base.functions->destroy(&c->fake.base);
}

void fake_prompt(uint32_t seed, int32_t *tokens, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = (int32_t)((seed * 7919 + i * 104729 + (i + 3) * (seed + 1)) % FAKE_FAULT);
}

void tell(void *user, const gumbel_event *event) {
    told *to = (told *)user + event->answer;
    assert_int_equal(to->last_events, 0);
    if (event->type == GUMBEL_EVENT_TOKEN) {
        to->tokens[to->count++] = event->token;
        return;
    }
    to->last_events++;
    to->answer = event->answer;
    to->finish = event->finish;
    to->status = event->status;
    to->usage = *event->usage;
    assert_int_equal(to->usage.generated_tokens, to->count);
}

uint64_t submit(schedule_case *c, gumbel_submission submission, told *to) {
    gumbel_error error;
    gb_answer *answers = NULL, **end = &answers;
    const uint64_t number = ++c->submitted;
    assert_true(number <= CASE_ANSWERS);
    submission.size = sizeof submission;
    submission.callback = tell;
    submission.user = to;
    for (uint32_t i = 0; i < (submission.answers ? submission.answers : 1); i++) {
        assert_ok(gb_answer_create(&c->fake.base, &submission, i, gumbel_answer_seed(number, i),
                                   c->schedule.grain, end, &error),
                  &error);
        (*end)->request = (*end)->arrival = number;
        (*end)->arrived_at = c->now;
        if (submission.deadline_seconds > 0)
            (*end)->deadline = c->now + submission.deadline_seconds;
        c->of[number] = answers;
        atomic_fetch_add(&c->schedule.queued, 1);
        end = &(*end)->next;
    }
    gb_schedule_add(&c->schedule, answers);
    return number;
}

void check_sums(const schedule_case *c) {
    gumbel_scheduler_stats stats;
    gb_schedule_get_stats(&c->schedule, &stats);
    assert_int_equal(stats.free_slots + stats.kept_slots + stats.running, stats.slots);
    assert_true(stats.kept_bytes + stats.running_bytes <= stats.state_bytes);
    assert_true(stats.host_bytes <= c->schedule.options.host_bytes);
    for (uint32_t i = 0; i < stats.slots; i++)
        if (!c->schedule.slot_used[i])
            assert_int_equal(c->fake.slots[i].position, 0);
}

void turn(schedule_case *c, unsigned times) {
    for (unsigned i = 0; i < times; i++) {
        gb_schedule_turn(&c->schedule);
        forget_ended(c);
        check_sums(c);
    }
}

void turn_until_done(schedule_case *c) {
    for (unsigned i = 0; c->schedule.answers; i++) {
        assert_true(i < 10000);
        turn(c, 1);
    }
}

void assert_answer(const schedule_case *c, const told *to, const int32_t *prompt, uint32_t prompt_count,
                   uint64_t seed, uint32_t count, gumbel_finish finish) {
    int32_t expected[FAKE_CONTEXT + 1];
    fake_answer(&c->fake, prompt, prompt_count, seed, expected, count);
    assert_int_equal(to->last_events, 1);
    assert_int_equal(to->status, GUMBEL_OK);
    assert_int_equal(to->finish, finish);
    assert_int_equal(to->count, count);
    assert_memory_equal(to->tokens, expected, count * sizeof *expected);
}

void assert_steps(schedule_case *c, const char *expected) {
    assert_string_equal(c->fake.log, expected);
    c->fake.log[0] = 0;
}
