/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* POLLRDHUP */
#include "server/generate/run.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ALIGNMENT = 16 };

/* ---- The scheduler's side ------------------------------------------------------------------------------ */

static size_t aligned(size_t size) {
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static server_event copy_of(const gumbel_event *event, uint32_t first) {
    server_event copy = {.type = event->type,
                         .answer = first + event->answer,
                         .token = event->token,
                         .stop_string = event->stop_string,
                         .seed = event->seed,
                         .logprob = event->logprob,
                         .top_logprobs = event->top_tokens ? event->top_logprobs : 0,
                         .finish = event->finish,
                         .status = event->status,
                         .time = gb_seconds(),
                         .text_length = event->text_length,
                         .message_length = event->message ? strlen(event->message) : 0};
    if (event->usage)
        copy.usage = *event->usage;
    copy.size = aligned(sizeof copy + copy.top_logprobs * (sizeof(int32_t) + sizeof(float)) +
                        copy.text_length + copy.message_length);
    return copy;
}

static char *append(char *at, const void *bytes, size_t size) {
    if (size > 0)
        memcpy(at, bytes, size);
    return at + size;
}

static void store(gb_byte_buffer *queue, const server_event *copy, const gumbel_event *event) {
    char *at = gb_buffer_extend(queue, copy->size);
    if (!at)
        return;
    at = append(at, copy, sizeof *copy);
    at = append(at, event->top_tokens, copy->top_logprobs * sizeof(int32_t));
    at = append(at, event->top_token_logprob, copy->top_logprobs * sizeof(float));
    at = append(at, event->text, copy->text_length);
    append(at, event->message, copy->message_length);
}

static void on_event(void *user, const gumbel_event *event) {
    const server_run_part *part = user;
    server_run *run = part->run;
    const server_event copy = copy_of(event, part->first);
    pthread_mutex_lock(&run->lock);
    const bool is_full = run->max_queued_bytes > 0 && run->incoming.size > run->max_queued_bytes;
    const bool was_waiting = run->is_waiting;
    if (!is_full)
        store(&run->incoming, &copy, event);
    if (is_full || run->incoming.failed) /* an event is lost */
        run->has_overflowed = true;
    run->is_waiting = false;
    const bool is_last = event->type != GUMBEL_EVENT_TOKEN;
    const bool overflows = atomic_load(&run->has_overflowed) && !is_last;
    if (is_last && --run->open_answers == 0)
        pthread_cond_signal(&run->ended);
    const int wake = !was_waiting ? -1 : run->listener ? run->listener(run->waker) : run->wake;
    const server_generator *generator = run->generator;
    if (wake >= 0 && is_last)
        eventfd_write(wake, 1);
    pthread_mutex_unlock(&run->lock); /* after the last event the run may be gone */
    if (wake >= 0 && !is_last)
        eventfd_write(wake, 1); /* without the lock, which who wakes up takes first */
    if (overflows)
        generator->cancel(generator->user, event->request);
}

/* ---- The connection's side ----------------------------------------------------------------------------- */

bool server_run_init(server_run *run, const server_generator *generator, size_t max_requests,
                     size_t max_queued_bytes, server_failure *failure) {
    *run = (server_run){.generator = generator,
                        .max_queued_bytes = max_queued_bytes,
                        .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                        .parts = calloc(max_requests, sizeof *run->parts),
                        .part_capacity = max_requests};
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->ended, NULL);
    return (run->wake >= 0 && run->parts) ||
           server_fail(failure, 503, "no memory or descriptor for another answer");
}

bool server_run_submit(server_run *run, gumbel_submission *submission, server_failure *failure) {
    server_run_part *part = &run->parts[run->part_count];
    const uint32_t answers = submission->answers > 0 ? submission->answers : 1;
    gumbel_error error;
    *part = (server_run_part){.run = run, .first = run->answers};
    submission->callback = on_event;
    submission->user = part;
    pthread_mutex_lock(&run->lock);
    run->open_answers += answers;
    pthread_mutex_unlock(&run->lock);
    if (run->generator->submit(run->generator->user, submission, &part->request, &error) == GUMBEL_OK) {
        run->answers += answers;
        run->part_count++;
        return true;
    }
    pthread_mutex_lock(&run->lock);
    run->open_answers -= answers;
    pthread_mutex_unlock(&run->lock);
    return server_fail_with(failure, NULL, &error);
}

/* Takes the next event of current. */
static bool next_of_current(server_run *run, server_event *event) {
    if (run->at >= run->current.size)
        return false;
    const char *at = run->current.text + run->at;
    memcpy(event, at, sizeof *event);
    run->at += event->size;
    event->top_tokens = (const int32_t *)(const void *)(at + sizeof *event);
    event->top_token_logprob = (const float *)(const void *)(event->top_tokens + event->top_logprobs);
    event->text = (const char *)(event->top_token_logprob + event->top_logprobs);
    event->message = event->text + event->text_length;
    return true;
}

/* Exchanges the queues where current is empty. False: both are. */
static bool refill(server_run *run, bool *has_overflowed) {
    pthread_mutex_lock(&run->lock);
    const bool is_empty = run->incoming.size == 0;
    if (!is_empty) {
        const gb_byte_buffer empty = run->current;
        run->current = run->incoming;
        run->incoming = empty;
        gb_buffer_clear(&run->incoming);
        run->at = 0;
    }
    *has_overflowed = run->has_overflowed;
    run->is_waiting = is_empty;
    pthread_mutex_unlock(&run->lock);
    return !is_empty;
}

void server_run_listen(server_run *run, server_listener *listener, void *waker) {
    pthread_mutex_lock(&run->lock);
    run->listener = listener;
    run->waker = waker;
    pthread_mutex_unlock(&run->lock);
}

bool server_has_left(int socket) {
    struct pollfd watched = {.fd = socket, .events = POLLRDHUP};
    return poll(&watched, 1, 0) > 0 && watched.revents;
}

server_taken server_run_take(server_run *run, int socket, int milliseconds, server_event *event) {
    bool has_overflowed;
    while (!next_of_current(run, event)) {
        const bool has_more = refill(run, &has_overflowed);
        if (has_overflowed)
            return SERVER_OVERFLOWED;
        if (has_more)
            continue;
        if (milliseconds == 0)
            return SERVER_QUIET;
        struct pollfd watched[2] = {{.fd = run->wake, .events = POLLIN}, {.fd = socket, .events = POLLRDHUP}};
        const int ready = poll(watched, 2, milliseconds);
        eventfd_t count;
        if (watched[0].revents)
            eventfd_read(run->wake, &count);
        if (ready > 0 && watched[1].revents)
            return SERVER_LEFT;
        if (ready == 0)
            return SERVER_QUIET;
    }
    return SERVER_TAKEN;
}

void server_run_free(server_run *run) {
    if (!run->generator)
        return;
    pthread_mutex_lock(&run->lock);
    const bool goes_on = run->open_answers > 0;
    pthread_mutex_unlock(&run->lock);
    for (size_t i = 0; i < run->part_count && goes_on; i++)
        run->generator->cancel(run->generator->user, run->parts[i].request);
    pthread_mutex_lock(&run->lock);
    while (run->open_answers > 0)
        pthread_cond_wait(&run->ended, &run->lock);
    pthread_mutex_unlock(&run->lock);
    pthread_cond_destroy(&run->ended);
    pthread_mutex_destroy(&run->lock);
    if (run->wake >= 0)
        close(run->wake);
    gb_buffer_free(&run->incoming);
    gb_buffer_free(&run->current);
    free(run->parts);
    *run = (server_run){0};
}
