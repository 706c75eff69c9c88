/* SPDX-License-Identifier: Apache-2.0
 *
 * What HTTP costs the scheduler: the same requests submitted directly, and by clients that stream the answers
 * over HTTP from a process of their own, in turns on one engine. Tokens are counted while all answers go on.
 * The best rate of each, and the median of what the rounds' two figures are to each other.
 *
 *     bench_server_rate PROGRAM [CLIENTS [TOKENS [THREADS [ROUNDS [BACKEND]]]]]       by default 8 128 2 5
 * cpu
 */
#include "arguments.h"
#include "base/clock.h"
#include "clients.h"
#include "server/server.h"

#include <stdatomic.h>
#include <time.h>

enum { MOST_ROUNDS = 64, MOST_PROMPT = 256, CONTEXT = 1024 };

static const char question[] = "Hi";

struct meter;

/* Hears one answer's events before their receiver does. */
typedef struct hearer {
    struct meter *meter;
    gumbel_event_callback callback; /* NULL: nobody else hears them */
    void *user;
    bool has_begun;
} hearer;

/* The scheduler's thread alone changes the counts while answers go on. */
typedef struct meter {
    gumbel_scheduler *scheduler;
    uint32_t answers, begun, tokens; /* tokens: while all go on */
    double start, end;               /* when all had begun, and when the first one ended */
    hearer hearers[MOST_CLIENTS];
    atomic_uint submitted, ended;
} meter;

static void count_token(meter *m, hearer *h) {
    m->tokens += m->start > 0 && m->end <= 0;
    m->begun += !h->has_begun;
    h->has_begun = true;
    if (m->begun == m->answers && m->start <= 0)
        m->start = gb_seconds();
}

static void hear(void *user, const gumbel_event *event) {
    hearer *h = user;
    meter *m = h->meter;
    if (event->type == GUMBEL_EVENT_ERROR) {
        fprintf(stderr, "%s\n", event->message);
        exit(1);
    }
    if (event->type == GUMBEL_EVENT_TOKEN)
        count_token(m, h);
    else if (m->end <= 0)
        m->end = gb_seconds();
    if (h->callback)
        h->callback(h->user, event);
    atomic_fetch_add(&m->ended, event->type == GUMBEL_EVENT_FINISH);
}

/* Of a server_generator, too. */
static gumbel_status submit(void *user, const gumbel_submission *given, uint64_t *request,
                            gumbel_error *error) {
    meter *m = user;
    gumbel_submission submission = *given;
    hearer *h = &m->hearers[atomic_fetch_add(&m->submitted, 1) % MOST_CLIENTS];
    *h = (hearer){.meter = m, .callback = given->callback, .user = given->user};
    submission.callback = hear;
    submission.user = h;
    return gumbel_scheduler_submit(m->scheduler, &submission, request, error);
}

static void cancel(void *user, uint64_t request) {
    gumbel_scheduler_cancel(((meter *)user)->scheduler, request);
}

static gumbel_status get_stats(void *user, gumbel_scheduler_stats *stats, gumbel_error *error) {
    return gumbel_scheduler_get_stats(((meter *)user)->scheduler, stats, error);
}

static void begin_round(meter *m) {
    m->begun = m->tokens = 0;
    m->start = m->end = 0;
    atomic_store(&m->submitted, 0);
    atomic_store(&m->ended, 0);
}

/* Tokens a second while all answers went on. */
static double rate_of(const meter *m) {
    return m->tokens / (m->end - m->start);
}

/* ---- The two ways -------------------------------------------------------------------------------------- */

static double by_scheduler(meter *m, const gumbel_tokenizer *tokenizer, uint32_t tokens) {
    const gumbel_message message = {.size = sizeof message, .role = "user", .content = question};
    static int32_t prompt[MOST_PROMPT];
    gumbel_submission submission = {.size = sizeof submission,
                                    .tokens = prompt,
                                    .has_seed = true,
                                    .ignore_stop = true,
                                    .tokenizer = tokenizer,
                                    .max_new_tokens = tokens};
    gumbel_error error;
    uint64_t request;
    must(gumbel_chat_encode(tokenizer, &message, 1, NULL, prompt, MOST_PROMPT, &submission.token_count,
                            &error),
         &error);
    begin_round(m);
    for (uint32_t i = 0; i < m->answers; i++) {
        submission.seed = i;
        must(submit(m, &submission, &request, &error), &error);
    }
    while (atomic_load(&m->ended) < m->answers)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return rate_of(m);
}

static double by_http(meter *m, const server *running, uint32_t tokens) {
    char body[512];
    snprintf(body, sizeof body,
             "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"stream\":true,\"ignore_eos\":true,"
             "\"max_tokens\":%u,\"seed\":%%u}",
             question, tokens);
    const clients readers = {.port = server_port(running), .count = m->answers, .body = body};
    begin_round(m);
    run_clients(&readers);
    if (atomic_load(&m->ended) < m->answers) {
        fprintf(stderr, "%u of %u answers ended\n", atomic_load(&m->ended), m->answers);
        exit(1);
    }
    return rate_of(m);
}

/* ---- Rounds -------------------------------------------------------------------------------------------- */

static void compare(meter *m, const server *running, const gumbel_tokenizer *tokenizer, uint32_t tokens,
                    uint32_t rounds) {
    double direct = 0, served = 0, ratios[MOST_ROUNDS];
    for (uint32_t i = 0; i < rounds; i++) {
        const double d = by_scheduler(m, tokenizer, tokens), s = by_http(m, running, tokens);
        direct = d > direct ? d : direct;
        served = s > served ? s : served;
        ratios[i] = s / d;
    }
    printf("%u clients, %u tokens each: by the scheduler %.1f tokens/s, over HTTP %.1f; median of %u rounds' "
           "ratios: %.1f %%\n",
           m->answers, tokens, direct, served, rounds, 100 * median_of(ratios, rounds));
}

/* The model that is served, whose events the meter hears. */
static server_model model_of(const gumbel_program *program, const gumbel_tokenizer *tokenizer, meter *m) {
    gumbel_error error;
    server_model model = {.names = "bench",
                          .program = program,
                          .tokenizer = tokenizer,
                          .max_context = CONTEXT,
                          .backend = "bench",
                          .generator = {m, submit, cancel, get_stats}};
    model.info.size = sizeof model.info;
    model.sampling.size = sizeof model.sampling;
    must(gumbel_program_get_info(program, &model.info, &error), &error);
    must(gumbel_sampling_defaults(program, &model.sampling, &error), &error);
    return model;
}

int main(int count, char **words) {
    static meter m;
    const uint32_t tokens = number_at(count, words, 3, 128), rounds = number_at(count, words, 5, 5);
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    gumbel_engine *engine;
    gumbel_error error;
    server *running;
    m.answers = number_at(count, words, 2, 8);
    if (count < 2 || m.answers < 1 || m.answers > MOST_CLIENTS || tokens < 2 || tokens > CONTEXT / 2 ||
        rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: bench_server_rate PROGRAM [CLIENTS [TOKENS [THREADS [ROUNDS [BACKEND]]]]]\n");
        return 2;
    }
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = count > 6 ? words[6] : NULL,
                                           .slots = (int)m.answers,
                                           .threads = (int)number_at(count, words, 4, 2),
                                           .max_context = CONTEXT};
    const gumbel_scheduler_options scheduling = {.size = sizeof scheduling, .no_prefix_cache = true};
    const server_options serving = {.host = "127.0.0.1",
                                    .max_body_bytes = 1 << 20,
                                    .max_connections = MOST_CLIENTS,
                                    .max_stream_bytes = 1 << 22};
    must(gumbel_program_open(words[1], &program, &error), &error);
    must(gumbel_tokenizer_create(program, &tokenizer, &error), &error);
    must(gumbel_engine_create(program, &options, &engine, &error), &error);
    must(gumbel_scheduler_create(engine, &scheduling, &m.scheduler, &error), &error);
    server_model model = model_of(program, tokenizer, &m);
    const server_models models = server_models_of(&model);
    must(server_create(&serving, &models, &running, &error), &error);
    compare(&m, running, tokenizer, tokens, rounds);
    server_drain(running);
    server_destroy(running);
    gumbel_scheduler_destroy(m.scheduler);
    gumbel_engine_destroy(engine);
    gumbel_tokenizer_destroy(tokenizer);
    gumbel_program_close(program);
    return 0;
}
