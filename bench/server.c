/* SPDX-License-Identifier: Apache-2.0
 *
 * What the server costs for a streamed token: a generator that only says tokens, one to each stream every few
 * milliseconds, and readers in a process of their own. Prints the processor time of all threads but the
 * generator's, which includes the kernel's for sending.
 *
 *     bench_server PROGRAM [STREAMS [TOKENS [MICROSECONDS]]]       by default 8 2000 2000
 */
#include "server/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_STREAMS = 256 };

typedef struct sayer {
    pthread_mutex_t lock;
    gumbel_submission submissions[MOST_STREAMS];
    uint32_t count, streams, tokens;
    long pause; /* nanoseconds */
    double processor_seconds;
} sayer;

static double seconds_of(clockid_t id) {
    struct timespec time;
    clock_gettime(id, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
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
    s->processor_seconds = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* ---- Readers ------------------------------------------------------------------------------------------- */

static void *read_stream(void *user) {
    static const char body[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"stream\":true}";
    const struct sockaddr_in *address = user;
    char buffer[65536];
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, (const struct sockaddr *)address, sizeof *address) != 0)
        return NULL;
    dprintf(connection,
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
            "%zu\r\n\r\n%s",
            sizeof body - 1, body);
    while (read(connection, buffer, sizeof buffer) > 0) {
    }
    close(connection);
    return NULL;
}

static void read_all(uint16_t port, uint32_t streams) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    pthread_t readers[MOST_STREAMS];
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (uint32_t i = 0; i < streams; i++)
        pthread_create(&readers[i], NULL, read_stream, &address);
    for (uint32_t i = 0; i < streams; i++)
        pthread_join(readers[i], NULL);
}

/* ---- Measuring ----------------------------------------------------------------------------------------- */

/* Of the process, in user space and in the kernel. */
static void get_processor_seconds(double seconds[2]) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    seconds[0] = (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
    seconds[1] = (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
}

static void measure(server *running, sayer *s) {
    pthread_t thread;
    double before[2], after[2];
    pthread_create(&thread, NULL, say, s);
    get_processor_seconds(before);
    const pid_t readers = fork();
    if (readers == 0) {
        read_all(server_port(running), s->streams);
        _exit(0);
    }
    waitpid(readers, NULL, 0);
    pthread_join(thread, NULL);
    get_processor_seconds(after);
    const double a_token = 1e6 / ((double)s->streams * s->tokens);
    const double user = a_token * (after[0] - before[0]), kernel = a_token * (after[1] - before[1]);
    printf("%u streams of %u tokens: %.2f us of processor time a token (all threads: %.2f in user space, "
           "%.2f in the "
           "kernel; of these the generator's %.2f)\n",
           s->streams, s->tokens, user + kernel - a_token * s->processor_seconds, user, kernel,
           a_token * s->processor_seconds);
}

static void must(gumbel_status status, const gumbel_error *error) {
    if (status == GUMBEL_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
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
    s.streams = count > 2 ? (uint32_t)atoi(words[2]) : 8;
    s.tokens = count > 3 ? (uint32_t)atoi(words[3]) : 2000;
    s.pause = 1000L * (count > 4 ? atol(words[4]) : 2000);
    if (s.streams < 1 || s.streams > MOST_STREAMS)
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
                                    .max_connections = MOST_STREAMS,
                                    .max_stream_bytes = 1 << 22};
    const server_models models = server_models_of(&model);
    must(server_create(&options, &models, &running, &error), &error);
    measure(running, &s);
    server_drain(running);
    server_destroy(running);
    return 0;
}
