/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler's thread and its callers, over fake slots whose steps wait at gates: what happens while a
 * step is under way is up to the test.
 */
#include "run/schedule/scheduler.h"
#include "support/assertions.h"
#include "support/fake_slots.h"

#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { REQUESTS = 12, CALLERS = 8, EACH = 50 };

static fake_slots fake;
static gumbel_scheduler *scheduler;
static _Thread_local gumbel_error error;
static const int32_t prompt[] = {5, 6, 7};

/* What a request's callback got; read by the test when the scheduler's thread has ended it. */
typedef struct received {
    atomic_uint tokens, last_events;
    gumbel_status status;
    gumbel_finish finish;
    unsigned ended_as;     /* the how many-th of all */
    struct received *next; /* submitted at the first token */
} received;

static atomic_int seconds; /* what the clock shows */
static unsigned ended;     /* the scheduler's thread's */

static double test_clock(void *unused) {
    (void)unused;
    return 1 + atomic_load(&seconds);
}

static void begin(uint32_t slots, gumbel_scheduler_options options, bool has_gates) {
    fake_slots_init(&fake, slots, 64, 32, false);
    fake.has_gates = has_gates;
    options.size = sizeof options;
    assert_ok(gb_scheduler_create(&fake.base, &options, test_clock, NULL, &scheduler, &error), &error);
}

static void handle_event(void *user, const gumbel_event *event);

static gumbel_submission request_for(received *to, uint32_t answer) {
    return (gumbel_submission){.size = sizeof(gumbel_submission),
                               .tokens = prompt,
                               .token_count = 3,
                               .max_new_tokens = answer,
                               .has_seed = true,
                               .callback = handle_event,
                               .user = to};
}

static gumbel_status ask(received *to, uint32_t answer, uint64_t *number) {
    const gumbel_submission submission = request_for(to, answer);
    return gumbel_scheduler_submit(scheduler, &submission, number, &error);
}

static void handle_event(void *user, const gumbel_event *event) {
    received *to = user;
    if (event->type == GUMBEL_EVENT_TOKEN) {
        if (atomic_fetch_add(&to->tokens, 1) == 0 && to->next)
            assert_int_equal(ask(to->next, 2, NULL), GUMBEL_OK);
        return;
    }
    to->status = event->status;
    to->finish = event->finish;
    to->ended_as = ended++;
    atomic_fetch_add(&to->last_events, 1);
}

static void cancelled_while_a_step_runs(void **state) {
    (void)state;
    received to[2] = {{.tokens = 0}};
    uint64_t number;
    begin(2, (gumbel_scheduler_options){0}, true);
    assert_ok(ask(&to[0], 5, &number), &error);
    assert_int_equal(number, 1);
    assert_ok(ask(&to[1], 5, NULL), &error);
    fake_wait_for_step(&fake, 1);
    fake_let_pass(&fake, 2);
    fake_wait_for_step(&fake, 3);
    gumbel_scheduler_cancel(scheduler, number);
    gumbel_scheduler_cancel(scheduler, 77); /* nobody's */
    fake_let_pass(&fake, 100);
    gumbel_scheduler_drain(scheduler);
    assert_true(to[0].last_events == 1 && to[0].status == GUMBEL_ERROR_CANCELLED && to[0].tokens < 5);
    assert_true(to[1].last_events == 1 && to[1].finish == GUMBEL_FINISH_LENGTH && to[1].tokens == 5);
    gumbel_scheduler_cancel(scheduler, number);
    gumbel_scheduler_destroy(scheduler);
    assert_int_equal(to[0].last_events, 1);
}

/* Who comes while a step runs is put in order at its end. */
static void priorities_of_those_that_come_while_a_step_runs(void **state) {
    (void)state;
    received to[4] = {{.tokens = 0}};
    begin(1, (gumbel_scheduler_options){0}, true);
    ended = 0;
    assert_ok(ask(&to[0], 2, NULL), &error);
    fake_wait_for_step(&fake, 1);
    for (int i = 1; i < 4; i++) {
        gumbel_submission submission = request_for(&to[i], 2);
        submission.priority = i == 2 ? 7 : i == 3 ? -7 : 0;
        assert_ok(gumbel_scheduler_submit(scheduler, &submission, NULL, &error), &error);
    }
    fake_let_pass(&fake, 100);
    gumbel_scheduler_drain(scheduler);
    gumbel_scheduler_destroy(scheduler);
    assert_true(to[0].ended_as == 0 && to[2].ended_as == 1 && to[1].ended_as == 2 && to[3].ended_as == 3);
}

/* In the middle of a step, in the queue; who has time goes on. */
static void deadlines_that_pass_while_a_step_runs(void **state) {
    (void)state;
    received to[3] = {{.tokens = 0}};
    begin(1, (gumbel_scheduler_options){0}, true);
    for (int i = 0; i < 3; i++) {
        gumbel_submission submission = request_for(&to[i], 5);
        submission.deadline_seconds = i == 2 ? 100 : 10;
        assert_ok(gumbel_scheduler_submit(scheduler, &submission, NULL, &error), &error);
    }
    fake_wait_for_step(&fake, 1);
    fake_let_pass(&fake, 1);
    fake_wait_for_step(&fake, 2);
    atomic_store(&seconds, 10);
    fake_let_pass(&fake, 100);
    gumbel_scheduler_drain(scheduler);
    gumbel_scheduler_destroy(scheduler);
    assert_true(to[0].last_events == 1 && to[0].status == GUMBEL_ERROR_DEADLINE && to[0].tokens == 2);
    assert_true(to[1].last_events == 1 && to[1].status == GUMBEL_ERROR_DEADLINE && to[1].tokens == 0);
    assert_true(to[2].last_events == 1 && to[2].status == GUMBEL_OK && to[2].tokens == 5);
    atomic_store(&seconds, 0);
}

/* The last answer is run again as a prompt while nobody waits; draining waits for no such step. */
static void idle_time_is_used(void **state) {
    (void)state;
    received to[2] = {{.tokens = 0}};
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    fake_slots_init(&fake, 2, 64, 32, false);
    fake.base.reuse = GB_REUSE_PROMPT;
    fake.has_gates = true;
    assert_ok(gb_scheduler_create(&fake.base, NULL, test_clock, NULL, &scheduler, &error), &error);
    assert_ok(ask(&to[0], 5, NULL), &error);
    fake_let_pass(&fake, 5);
    fake_wait_for_step(&fake, 6); /* four of the answer's tokens again */
    assert_int_equal(to[0].last_events, 1);
    assert_ok(ask(&to[1], 1, NULL), &error);
    fake_let_pass(&fake, 2);
    while (stats.finished < 2)
        assert_ok(gumbel_scheduler_get_stats(scheduler, &stats, &error), &error);
    assert_int_equal(stats.rerun_tokens, 4);
    assert_int_equal(stats.reruns_due, 0);
    assert_ok(ask(&to[1], 3, NULL), &error);
    fake_let_pass(&fake, 3);
    fake_wait_for_step(&fake, 11);
    gumbel_scheduler_drain(scheduler);
    fake_let_pass(&fake, 1);
    gumbel_scheduler_destroy(scheduler);
    assert_int_equal(to[1].last_events, 2);
}

static void a_full_queue_refuses(void **state) {
    (void)state;
    received to[5] = {{.tokens = 0}};
    begin(1, (gumbel_scheduler_options){.max_queued = 2}, true);
    assert_ok(ask(&to[0], 1, NULL), &error);
    fake_wait_for_step(&fake, 1);
    assert_ok(ask(&to[1], 1, NULL), &error);
    assert_ok(ask(&to[2], 1, NULL), &error);
    assert_fails(ask(&to[3], 1, NULL), GUMBEL_ERROR_LIMIT, &error, "2 answers wait, at most 2 may");
    gumbel_submission four = {.size = sizeof four, .answers = 3};
    assert_fails(gumbel_scheduler_submit(scheduler, &four, NULL, &error), GUMBEL_ERROR_LIMIT, &error,
                 "3 answers: the queue holds 2");
    fake_let_pass(&fake, 100);
    gumbel_scheduler_drain(scheduler);
    assert_fails(ask(&to[4], 1, NULL), GUMBEL_ERROR_CANCELLED, &error, "no more requests");
    for (int i = 0; i < 3; i++)
        assert_int_equal(to[i].last_events, 1);
    assert_true(to[3].last_events == 0 && to[4].last_events == 0);
    gumbel_scheduler_destroy(scheduler);
}

/* Requests in the queue, in a slot and in the middle of a step, when it all ends. */
static void destroying_ends_everything_once(void **state) {
    (void)state;
    received to[REQUESTS] = {{.tokens = 0}};
    begin(4, (gumbel_scheduler_options){0}, true);
    for (int i = 0; i < REQUESTS; i++)
        assert_ok(ask(&to[i], 100, NULL), &error);
    fake_wait_for_step(&fake, 1);
    fake_let_pass(&fake, 1000);
    gumbel_scheduler_destroy(scheduler);
    for (int i = 0; i < REQUESTS; i++)
        assert_int_equal(to[i].last_events, 1);
}

static void post_failure(void *user, const gumbel_error *why) {
    (void)why;
    sem_post(user);
}

/* Those in slots, those that wait, and those that come later, which are refused. */
static void a_lost_engine_takes_no_more(void **state) {
    (void)state;
    received to[REQUESTS + 1] = {{.tokens = 0}};
    sem_t failed;
    sem_init(&failed, 0, 0);
    begin(4, (gumbel_scheduler_options){.on_failure = post_failure, .failure_user = &failed}, true);
    for (int i = 0; i < REQUESTS; i++)
        assert_ok(ask(&to[i], 100, NULL), &error);
    fake_wait_for_step(&fake, 1);
    fake.is_lost = true;
    fake_let_pass(&fake, 1000);
    sem_wait(&failed);
    gumbel_status refused = GUMBEL_OK;
    while ((refused = ask(&to[REQUESTS], 1, NULL)) == GUMBEL_OK) /* until the turn is over */
        while (atomic_load(&to[REQUESTS].last_events) == 0)
            sched_yield();
    assert_true(refused == GUMBEL_ERROR_BACKEND && strcmp(error.message, "device 1: lost") == 0);
    gumbel_scheduler_drain(scheduler);
    for (int i = 0; i < REQUESTS; i++)
        assert_true(to[i].last_events == 1 && to[i].status == GUMBEL_ERROR_BACKEND);
    gumbel_scheduler_destroy(scheduler);
    assert_int_equal(sem_trywait(&failed), -1);
    sem_destroy(&failed);
}

static void callbacks_submit(void **state) {
    (void)state;
    received to[3] = {{.tokens = 0}};
    to[0].next = &to[1];
    to[1].next = &to[2];
    begin(1, (gumbel_scheduler_options){0}, true);
    assert_ok(ask(&to[0], 3, NULL), &error);
    fake_let_pass(&fake, 100);
    while (atomic_load(&to[2].last_events) == 0)
        ;
    gumbel_scheduler_drain(scheduler);
    assert_true(to[0].tokens == 3 && to[1].tokens == 2 && to[2].tokens == 2);
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    assert_ok(gumbel_scheduler_get_stats(scheduler, &stats, &error), &error);
    assert_true(stats.submitted == 3 && stats.finished == 3 && stats.generated_tokens == 7);
    assert_int_equal(stats.prompt_tokens + stats.cached_tokens, 9);
    assert_int_equal(stats.free_slots + stats.kept_slots, stats.slots);
    gumbel_scheduler_destroy(scheduler);
}

typedef struct caller {
    pthread_t thread;
    unsigned number;
    received to[EACH];
} caller;

static void *call(void *user) {
    caller *c = user;
    for (unsigned i = 0; i < EACH; i++) {
        uint64_t number;
        while (ask(&c->to[i], 1 + i % 5, &number) == GUMBEL_ERROR_LIMIT)
            sched_yield();
        if (i % 3 == c->number % 3)
            gumbel_scheduler_cancel(scheduler, number);
    }
    return NULL;
}

/* Callers at once, who cancel a third of what they ask for. */
static void every_request_ends_once(void **state) {
    (void)state;
    static caller callers[CALLERS];
    begin(3, (gumbel_scheduler_options){.max_queued = 16}, false);
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i].number = i;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    for (unsigned i = 0; i < CALLERS; i++)
        pthread_join(callers[i].thread, NULL);
    gumbel_scheduler_drain(scheduler);
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    assert_ok(gumbel_scheduler_get_stats(scheduler, &stats, &error), &error);
    gumbel_scheduler_destroy(scheduler);
    assert_int_equal(stats.submitted, CALLERS * EACH);
    assert_int_equal(stats.finished + stats.failed, stats.submitted);
    for (unsigned i = 0; i < CALLERS; i++)
        for (unsigned j = 0; j < EACH; j++) {
            assert_int_equal(callers[i].to[j].last_events, 1);
            if (callers[i].to[j].status == GUMBEL_OK)
                assert_int_equal(callers[i].to[j].tokens, 1 + j % 5);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(priorities_of_those_that_come_while_a_step_runs),
        cmocka_unit_test(deadlines_that_pass_while_a_step_runs),
        cmocka_unit_test(idle_time_is_used),
        cmocka_unit_test(cancelled_while_a_step_runs),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(destroying_ends_everything_once),
        cmocka_unit_test(a_lost_engine_takes_no_more),
        cmocka_unit_test(callbacks_submit),
        cmocka_unit_test(every_request_ends_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
