/* SPDX-License-Identifier: Apache-2.0
 *
 * What the server costs for a streamed token: a generator that only says tokens, one to each stream every few
 * milliseconds, and readers in a process of their own. Prints the processor time of all threads but the
 * generator's, which includes the kernel's for sending.
 *
 *     bench_server PROGRAM [STREAMS [TOKENS [MICROSECONDS]]]       by default 8 2000 2000
 */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include "server/server.h"
#include "arguments.h"
#include "clients.h"

#include <sys/resource.h>
#include <time.h>

/* Of processor time. */
typedef struct seconds {
    double user, kernel;
} seconds;

typedef struct sayer {
    pthread_mutex_t lock;
    gumbel_submission submissions[MOST_CLIENTS];
    uint32_t count, streams, tokens;
    long pause; /* nanoseconds */
    seconds own;
} sayer;

/* Of RUSAGE_SELF or RUSAGE_THREAD. */
static seconds seconds_of(int who) {
    struct rusage usage;
    getrusage(who, &usage);
    return (seconds){(double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec,
                     (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec};
}

static gumbel_status submit(void *user, const gumbel_submission *submission, uint64_t *request,
                            gumbel_error *error) {
    (void)error;
    sayer *s = user;
    pthread_mutex_lock(&s->lock);
    s->submissions[s->count] = *submission;
    *request = ++s->count;
    pthread_mutex_unlock(&s->lock);
    return GUMBEL_OK;
}

static void cancel(void *user, uint64_t request) {
    (void)user, (void)request;
}

static gumbel_status get_stats(void *user, gumbel_scheduler_stats *stats, gumbel_error *error) {
    (void)user, (void)stats, (void)error;
    return GUMBEL_OK;
}

static bool is_complete(sayer *s) {
    pthread_mutex_lock(&s->lock);
    const bool is_all = s->count == s->streams;
    pthread_mutex_unlock(&s->lock);
    return is_all;
}

static void tell_all(const sayer *s, gumbel_event event) {
    for (uint32_t i = 0; i < s->streams; i++) {
        event.request = i + 1;
        s->submissions[i].callback(s->submissions[i].user, &event);
    }
}

static void *say(void *user) {
    sayer *s = user;
    const struct timespec pause = {.tv_nsec = s->pause};
    const gumbel_usage usage = {.size = sizeof usage, .generated_tokens = s->tokens};
    const int32_t token = 300; /* an ordinary one of the bundled models */
    while (!is_complete(s))
        nanosleep(&pause, NULL);
    for (uint32_t i = 0; i < s->tokens; i++) {
        tell_all(s, (gumbel_event){.size = sizeof(gumbel_event),
                                   .type = GUMBEL_EVENT_TOKEN,
                                   .token = token,
                                   .text = " word",
                                   .text_length = 5});
        nanosleep(&pause, NULL);
    }
    tell_all(s, (gumbel_event){.size = sizeof(gumbel_event),
                               .type = GUMBEL_EVENT_FINISH,
                               .finish = GUMBEL_FINISH_LENGTH,
                               .stop_string = -1,
                               .usage = &usage});
    s->own = seconds_of(RUSAGE_THREAD);
    return NULL;
}

/* ---- Measuring ----------------------------------------------------------------------------------------- */

static void measure(server *running, sayer *s) {
    const clients readers = {.port = server_port(running),
                             .count = s->streams,
                             .body =
                                 "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"stream\":true}"};
    pthread_t thread;
    pthread_create(&thread, NULL, say, s);
    const seconds before = seconds_of(RUSAGE_SELF);
    run_clients(&readers);
    pthread_join(thread, NULL);
    const seconds after = seconds_of(RUSAGE_SELF);
    const double tokens = 1e-6 * (double)s->streams * s->tokens;
    const double user = (after.user - before.user - s->own.user) / tokens;
    const double kernel = (after.kernel - before.kernel - s->own.kernel) / tokens;
    printf("%u streams of %u tokens: %.2f us of processor time a token (%.2f in user space, %.2f in the "
           "kernel); "
           "beside it the generator's %.2f and %.2f\n",
           s->streams, s->tokens, user + kernel, user, kernel, s->own.user / tokens, s->own.kernel / tokens);
}

int main(int count, char **words) {
    gumbel_error error = {GUMBEL_ERROR_ARGUMENT,
                          "usage: bench_server PROGRAM [STREAMS [TOKENS [MICROSECONDS]]]"};
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    server *running;
    static sayer s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    must(count < 2 ? GUMBEL_ERROR_ARGUMENT : gumbel_program_open(words[1], &program, &error), &error);
    must(gumbel_tokenizer_create(program, &tokenizer, &error), &error);
    s.streams = number_at(count, words, 2, 8);
    s.tokens = number_at(count, words, 3, 2000);
    s.pause = 1000L * number_at(count, words, 4, 2000);
    if (s.streams < 1 || s.streams > MOST_CLIENTS)
        s.streams = 8;
    server_model model = {.names = "bench",
                          .program = program,
                          .tokenizer = tokenizer,
                          .max_context = 8192,
                          .backend = "cpu",
                          .generator = {&s, submit, cancel, get_stats}};
    model.info.size = sizeof model.info;
    model.sampling.size = sizeof model.sampling;
    must(gumbel_program_get_info(program, &model.info, &error), &error);
    must(gumbel_sampling_defaults(program, &model.sampling, &error), &error);
    const server_options options = {.host = "127.0.0.1",
                                    .max_body_bytes = 1 << 20,
                                    .max_connections = MOST_CLIENTS,
                                    .max_stream_bytes = 1 << 22};
    const server_models models = server_models_of(&model);
    must(server_create(&options, &models, &running, &error), &error);
    measure(running, &s);
    server_drain(running);
    server_destroy(running);
    return 0;
}
