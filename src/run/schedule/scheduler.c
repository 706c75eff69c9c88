/* SPDX-License-Identifier: Apache-2.0
 *
 * Callers put answers into an inbox, and the scheduler's thread takes them out between its turns. A list of
 * all answers that go on, for cancelling, is the only other thing that they share.
 */
#include "run/schedule/scheduler.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/versioned.h"
#include "run/handles.h"
#include "run/schedule/conversation.h"

#include <pthread.h>
#include <xxhash.h>

struct gumbel_scheduler {
    gb_slots_of_engine *slots;
    gb_serving_schedule schedule; /* the thread's alone, but for what never changes and `queued` */
    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t wake, idle;
    gb_answer *inbox, **inbox_end;
    gb_answer *live; /* all that have not been destroyed, by live_next */
    uint64_t requests, arrivals;
    bool drains, stops, works;
    gumbel_scheduler_stats stats;
    gumbel_error failure; /* the schedule's */
};

/* ---- The thread ---------------------------------------------------------------------------------------- */

static void forget(gumbel_scheduler *scheduler, const gb_answer *ended) {
    gb_answer **at = &scheduler->live;
    while (*at != ended)
        at = &(*at)->live_next;
    *at = ended->live_next;
}

/* Destroys answers, which nobody can cancel any more. */
static void destroy_ended(gb_answer *ended) {
    while (ended) {
        gb_answer *next = ended->next;
        gb_answer_destroy(ended);
        ended = next;
    }
}

static bool has_idle_work(const gumbel_scheduler *scheduler) {
    return !scheduler->drains && gb_has_rerun(&scheduler->schedule);
}

/* Tells callers how the schedule stands. With the mutex held. */
static void publish(gumbel_scheduler *scheduler) {
    gb_schedule_get_stats(&scheduler->schedule, &scheduler->stats);
    if (gb_has_failed(&scheduler->schedule))
        scheduler->failure = scheduler->schedule.failure;
}

/* Uses the time in which nobody waits. A request that comes meanwhile waits for a chunk. */
static void work_idle(gumbel_scheduler *scheduler) {
    pthread_mutex_unlock(&scheduler->mutex);
    gb_rerun(&scheduler->schedule);
    pthread_mutex_lock(&scheduler->mutex);
    publish(scheduler);
}

/* Waits until there is something to do. */
static void wait_for_work(gumbel_scheduler *scheduler, bool goes_on) {
    while (!goes_on && !scheduler->inbox && !scheduler->stops) {
        scheduler->works = false;
        pthread_cond_broadcast(&scheduler->idle);
        if (has_idle_work(scheduler))
            work_idle(scheduler);
        else
            pthread_cond_wait(&scheduler->wake, &scheduler->mutex);
    }
    scheduler->works = true;
}

/* What the thread and its callers share between two turns. Returns whether there will be another one. */
static bool meet_callers(gumbel_scheduler *scheduler, bool goes_on) {
    gb_answer *ended = gb_schedule_take_ended(&scheduler->schedule);
    pthread_mutex_lock(&scheduler->mutex);
    for (const gb_answer *answer = ended; answer; answer = answer->next)
        forget(scheduler, answer);
    publish(scheduler);
    wait_for_work(scheduler, goes_on);
    gb_answer *answers = scheduler->inbox;
    scheduler->inbox = NULL;
    scheduler->inbox_end = &scheduler->inbox;
    const bool ends = scheduler->stops && !goes_on && !answers;
    pthread_mutex_unlock(&scheduler->mutex);
    destroy_ended(ended);
    gb_schedule_add(&scheduler->schedule, answers);
    return !ends;
}

static void *run(void *user) {
    gumbel_scheduler *scheduler = user;
    bool goes_on = false;
    while (meet_callers(scheduler, goes_on))
        goes_on = gb_schedule_turn(&scheduler->schedule);
    return NULL;
}

static gumbel_status start(gumbel_scheduler *scheduler, gumbel_error *error) {
    return gb_start_thread(&scheduler->thread, run, scheduler)
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_MEMORY, "the system starts no thread for a scheduler");
}

/* ---- Making -------------------------------------------------------------------------------------------- */

static void free_scheduler(gumbel_scheduler *scheduler) {
    pthread_cond_destroy(&scheduler->wake);
    pthread_cond_destroy(&scheduler->idle);
    pthread_mutex_destroy(&scheduler->mutex);
    gb_free(scheduler);
}

gumbel_status gb_scheduler_create(gb_slots_of_engine *slots, const gumbel_scheduler_options *options,
                                  gb_clock clock, void *clock_user, gumbel_scheduler **scheduler,
                                  gumbel_error *error) {
    *scheduler = NULL;
    gumbel_scheduler *made = gb_allocate(1, sizeof *made);
    if (!made) {
        slots->functions->destroy(slots);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a scheduler");
    }
    made->slots = slots;
    made->inbox_end = &made->inbox;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->wake, NULL);
    pthread_cond_init(&made->idle, NULL);
    gumbel_status status = gb_schedule_create(slots, options, clock, clock_user, &made->schedule, error);
    if (status == GUMBEL_OK) {
        gb_schedule_get_stats(&made->schedule, &made->stats);
        status = start(made, error);
        if (status != GUMBEL_OK)
            gb_schedule_destroy(&made->schedule);
    }
    if (status != GUMBEL_OK) {
        slots->functions->destroy(slots);
        free_scheduler(made);
        return status;
    }
    *scheduler = made;
    return GUMBEL_OK;
}

static double seconds(void *unused) {
    (void)unused;
    return gb_seconds();
}

gumbel_status gumbel_scheduler_create(gumbel_engine *engine, const gumbel_scheduler_options *options,
                                      gumbel_scheduler **scheduler, gumbel_error *error) {
    gb_slots_of_engine *slots;
    *scheduler = NULL;
    GB_TRY(gb_session_slots_create(engine, &slots, error));
    return gb_scheduler_create(slots, options, seconds, NULL, scheduler, error);
}

void gumbel_scheduler_destroy(gumbel_scheduler *scheduler) {
    if (!scheduler)
        return;
    pthread_mutex_lock(&scheduler->mutex);
    scheduler->drains = scheduler->stops = true;
    for (gb_answer *answer = scheduler->live; answer; answer = answer->live_next)
        atomic_store(&answer->cancelled, true);
    pthread_cond_signal(&scheduler->wake);
    pthread_mutex_unlock(&scheduler->mutex);
    pthread_join(scheduler->thread, NULL);
    gb_schedule_destroy(&scheduler->schedule);
    scheduler->slots->functions->destroy(scheduler->slots);
    free_scheduler(scheduler);
}

/* ---- Submitting ---------------------------------------------------------------------------------------- */

uint64_t gumbel_answer_seed(uint64_t seed, uint32_t answer) {
    const uint8_t bytes[4] = {(uint8_t)answer, (uint8_t)(answer >> 8), (uint8_t)(answer >> 16),
                              (uint8_t)(answer >> 24)};
    return answer == 0 ? seed : XXH3_64bits_withSeed(bytes, sizeof bytes, seed);
}

/* Makes all answers of a submission, in order. */
static gumbel_status make_answers(const gumbel_scheduler *scheduler, const gumbel_submission *submission,
                                  gb_answer **answers, gumbel_error *error) {
    const uint32_t count = submission->answers > 0 ? submission->answers : 1;
    uint64_t seed = submission->seed;
    gumbel_status status = GUMBEL_OK;
    if (!submission->has_seed)
        GB_TRY(gb_draw_seed(&seed, error));
    const double now = gb_schedule_now(&scheduler->schedule);
    for (uint32_t i = 0; i < count && status == GUMBEL_OK; i++) {
        status = gb_answer_create(scheduler->slots, submission, i, gumbel_answer_seed(seed, i),
                                  scheduler->schedule.grain, answers, error);
        if (status != GUMBEL_OK)
            break;
        (*answers)->arrived_at = now;
        if (submission->deadline_seconds > 0)
            (*answers)->deadline = now + submission->deadline_seconds;
        answers = &(*answers)->next;
    }
    return status;
}

/* Counts answers into the queue. */
static gumbel_status enter_queue(gumbel_scheduler *scheduler, uint32_t count, gumbel_error *error) {
    const uint32_t most = scheduler->schedule.options.max_queued;
    const uint32_t before = atomic_load(&scheduler->schedule.queued);
    if (scheduler->drains)
        return gb_fail(error, GUMBEL_ERROR_CANCELLED, "submit: the scheduler takes no more requests");
    if (scheduler->failure.status != GUMBEL_OK)
        return gb_fail(error, scheduler->failure.status, "%s", scheduler->failure.message);
    if (before > most || count > most - before)
        return gb_fail(error, GUMBEL_ERROR_LIMIT,
                       "submit: the queue is full: %u answers wait, at most %u may (option max_queued)",
                       before, most);
    atomic_fetch_add(&scheduler->schedule.queued, count);
    return GUMBEL_OK;
}

/* With the mutex held. */
static gumbel_status queue_answers(gumbel_scheduler *scheduler, gb_answer *answers, uint32_t count,
                                   uint64_t *request, gumbel_error *error) {
    GB_TRY(enter_queue(scheduler, count, error));
    const uint64_t number = ++scheduler->requests;
    if (request)
        *request = number;
    *scheduler->inbox_end = answers;
    for (gb_answer *answer = answers; answer; answer = answer->next) {
        answer->request = number;
        answer->arrival = ++scheduler->arrivals;
        answer->live_next = scheduler->live;
        scheduler->live = answer;
        scheduler->inbox_end = &answer->next;
    }
    scheduler->works = true;
    pthread_cond_signal(&scheduler->wake);
    return GUMBEL_OK;
}

static gumbel_status submit_tokens(gumbel_scheduler *scheduler, const gumbel_submission *submission,
                                   uint64_t *request, gumbel_error *error) {
    gb_answer *answers = NULL;
    gumbel_status status = make_answers(scheduler, submission, &answers, error);
    if (status == GUMBEL_OK) {
        pthread_mutex_lock(&scheduler->mutex);
        status = queue_answers(scheduler, answers, submission->answers > 0 ? submission->answers : 1, request,
                               error);
        pthread_mutex_unlock(&scheduler->mutex);
    }
    if (status != GUMBEL_OK)
        destroy_ended(answers);
    return status;
}

gumbel_status gumbel_scheduler_submit(gumbel_scheduler *scheduler, const gumbel_submission *given,
                                      uint64_t *request, gumbel_error *error) {
    gumbel_submission submission;
    gb_conversation conversation = {0};
    GB_TRY(gb_check_versioned(given, "submission", error));
    GB_TRY(gb_read_versioned(given, "submission", &submission, sizeof submission, error));
    if (submission.answers > scheduler->schedule.options.max_queued)
        return gb_fail(error, GUMBEL_ERROR_LIMIT,
                       "submit: %u answers: the queue holds %u (option max_queued)", submission.answers,
                       scheduler->schedule.options.max_queued);
    gumbel_status status = gb_conversation_encode(&submission, &conversation, error);
    if (status == GUMBEL_OK)
        status = submit_tokens(scheduler, &submission, request, error);
    gb_conversation_free(&conversation);
    return status;
}

/* ---- While it runs ------------------------------------------------------------------------------------- */

void gumbel_scheduler_cancel(gumbel_scheduler *scheduler, uint64_t request) {
    pthread_mutex_lock(&scheduler->mutex);
    for (gb_answer *answer = scheduler->live; answer; answer = answer->live_next)
        if (answer->request == request)
            atomic_store(&answer->cancelled, true);
    pthread_mutex_unlock(&scheduler->mutex);
}

void gumbel_scheduler_drain(gumbel_scheduler *scheduler) {
    pthread_mutex_lock(&scheduler->mutex);
    scheduler->drains = true;
    while (scheduler->works)
        pthread_cond_wait(&scheduler->idle, &scheduler->mutex);
    pthread_mutex_unlock(&scheduler->mutex);
}

gumbel_status gumbel_scheduler_get_stats(gumbel_scheduler *scheduler, gumbel_scheduler_stats *stats,
                                         gumbel_error *error) {
    GB_TRY(gb_check_versioned(stats, "scheduler stats", error));
    pthread_mutex_lock(&scheduler->mutex);
    const gumbel_scheduler_stats full = scheduler->stats;
    pthread_mutex_unlock(&scheduler->mutex);
    gb_write_versioned(&full, sizeof full, stats);
    return GUMBEL_OK;
}
