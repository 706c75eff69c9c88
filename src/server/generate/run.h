/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers on their way: from the scheduler's thread, which must never wait, to the thread of the connection.
 * Events are copied into a bounded queue; a reader that falls too far behind is cancelled.
 */
#ifndef GUMBEL_SERVER_GENERATE_RUN_H
#define GUMBEL_SERVER_GENERATE_RUN_H

#include "base/byte_buffer.h"
#include "server/base/failure.h"
#include "server/models.h"

#include <pthread.h>
#include <stdatomic.h>

/* A copy of a gumbel_event. answer counts through all requests of the run. */
typedef struct server_event {
    size_t size; /* with what follows it in the queue */
    gumbel_event_type type;
    uint32_t answer;
    int32_t token, stop_string;
    uint64_t seed;
    float logprob;
    uint32_t top_logprobs;
    gumbel_finish finish;
    gumbel_status status;
    gumbel_usage usage;
    double time; /* seconds */
    size_t text_length, message_length;
    /* valid until the next server_run_take */
    const int32_t *top_tokens;
    const float *top_token_logprob;
    const char *text, *message;
} server_event;

typedef struct server_run server_run;

/* Called when a run has events. Returns an eventfd to be written, or -1. */
typedef int server_listener(void *waker);

/* A request of a run and where its answers begin among those of all. */
typedef struct server_run_part {
    server_run *run;
    uint32_t first;
    uint64_t request;
} server_run_part;

struct server_run {
    const server_generator *generator;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int wake;                  /* an eventfd */
    server_listener *listener; /* NULL: wake is written instead */
    void *waker;
    bool is_waiting;
    atomic_bool has_overflowed;
    size_t max_queued_bytes; /* 0: any */
    gb_byte_buffer incoming, current;
    size_t at; /* in current */
    server_run_part *parts;
    size_t part_count, part_capacity;
    uint32_t answers, open_answers;
};

/* max_requests: how many will be submitted. */
bool server_run_init(server_run *run, const server_generator *generator, size_t max_requests,
                     size_t max_queued_bytes, server_failure *failure);

/* Submits a request; callback and user are filled in. */
bool server_run_submit(server_run *run, gumbel_submission *submission, server_failure *failure);

typedef enum server_taken {
    SERVER_TAKEN,     /* there is an event */
    SERVER_QUIET,     /* there was none in that time */
    SERVER_LEFT,      /* the client has closed the connection */
    SERVER_OVERFLOWED /* the queue was full: all answers are cancelled */
} server_taken;

/* Lets a function be called, by the scheduler's thread, when there is an event where there was none; NULL:
 * none is called any more once this returns. */
void server_run_listen(server_run *run, server_listener *listener, void *waker);

/* Whether the client of the socket has closed the connection; of -1: no. */
bool server_has_left(int socket);

/* Waits for the next event, or the client's leaving (socket -1: it is not looked at). */
server_taken server_run_take(server_run *run, int socket, int milliseconds, server_event *event);

/* Cancels what goes on and waits for its last events. Allowed on a zeroed run. */
void server_run_free(server_run *run);

#endif
