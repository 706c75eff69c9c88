/* SPDX-License-Identifier: Apache-2.0
 *
 * A scheduler whose backend fails at random: steps before and after they have run, rows, copies, saving and
 * loading, while threads submit, cancel and set deadlines. Every request ends in exactly one final event, and
 * whatever tokens it got are those that it gets alone.
 */
#include "cases.h"
#include "run/handles.h"
#include "support/paths.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REQUESTS, TOKENS, CANCELLED, LATE, FAILED, INJECTED, SPILLED };
enum {
    EACH = 500, /* requests of a case at most */
    FEW = 150,  /* in a short run */
    KINDS = 24, /* different ones */
    CALLERS = 16,
    FAMILIES = 2,
    VOCAB = 160,
    MOST_PROMPT = 90,
    MOST_ANSWER = 16,
    GRAIN = 64,
    FULL_QUEUE = 300000 /* nanoseconds until it is tried again */
};

static const char *const configs[FAMILIES] = {"small", "qwen"};

/* A request, and what it gets alone. */
typedef struct kind {
    int32_t prompt[MOST_PROMPT], tokens[MOST_ANSWER];
    gumbel_sampling sampling;
    gumbel_submission submission;
    uint32_t branch, count;
    gumbel_finish finish;
} kind;

typedef struct asked {
    const kind *kind;
    uint32_t count;
    atomic_uint last_events;
    gumbel_status status;
    gumbel_finish finish;
    bool is_cancelled, has_deadline;
    int32_t priority;
    double deadline;
    long pause, patience; /* nanoseconds before it is submitted, and until it is cancelled */
} asked;

typedef struct soak {
    random_source source;
    gumbel_program *program;
    gumbel_scheduler *scheduler;
    atomic_uint next;
    kind kinds[KINDS];
    asked requests[EACH];
} soak;

static gumbel_error error;
static unsigned request_count; /* of a case */

static void must(gumbel_status status, const char *what) {
    if (status != GUMBEL_OK)
        fail_case("%s: %s", what, error.message);
}

/* ---- A backend that fails ------------------------------------------------------------------------------ */

/* The scheduler's thread alone calls a backend. */
static const gb_backend_functions *real;
static gb_backend_functions failing;
static random_source failures;
static uint64_t injected;
static unsigned once_in; /* calls */

static bool fails(void) {
    const bool is_now = random_once_in(&failures, once_in);
    injected += is_now;
    return is_now;
}

static gumbel_status fail_somehow(gumbel_error *told) {
    return random_once_in(&failures, 2) ? gb_fail(told, GUMBEL_ERROR_MEMORY, "injected: no memory")
                                        : gb_fail(told, GUMBEL_ERROR_BACKEND, "injected: the device failed");
}

/* The probe by which the scheduler finds out whether the device is lost, which it is not. */
static bool is_probe(const gb_batch *batch) {
    return batch->token_count == 1 && batch->positions[0] == 0;
}

static gumbel_status failing_step(gb_backend *backend, gb_batch *batch, gumbel_error *told) {
    const bool is_safe = is_probe(batch);
    if (!is_safe && fails())
        return fail_somehow(told);
    GB_TRY(real->step(backend, batch, told));
    if (!is_safe && fails())
        return fail_somehow(told);
    if (batch->row_count > 0 && fails())
        batch->next[random_below(&failures, batch->row_count)] = -2; /* a NaN */
    return GUMBEL_OK;
}

static gumbel_status failing_copy(gb_backend *backend, uint32_t from, uint32_t to, uint32_t position,
                                  gumbel_error *told) {
    return fails() ? fail_somehow(told) : real->copy_slot(backend, from, to, position, told);
}

static gumbel_status failing_save(gb_backend *backend, uint32_t slot, uint32_t position,
                                  gb_saved_states saved, gb_save_stream write, void *user,
                                  gumbel_error *told) {
    GB_TRY(real->save_slot(backend, slot, position, saved, write, user, told));
    return fails() ? fail_somehow(told) : GUMBEL_OK;
}

static gumbel_status failing_load(gb_backend *backend, uint32_t slot, uint32_t position,
                                  gb_saved_states saved, gb_load_stream read, void *user,
                                  gumbel_error *told) {
    GB_TRY(real->load_slot(backend, slot, position, saved, read, user, told));
    return fails() ? fail_somehow(told) : GUMBEL_OK;
}

static void let_fail(gumbel_engine *engine, uint64_t seed) {
    failures = (random_source){seed};
    injected = 0;
    once_in = 10 + (unsigned)random_below(&failures, 200);
    real = engine->backend->functions;
    failing = *real;
    failing.step = failing_step;
    failing.copy_slot = failing_copy;
    failing.save_slot = failing_save;
    failing.load_slot = failing_load;
    engine->backend->functions = &failing;
}

/* ---- Requests, and what they get alone ----------------------------------------------------------------- */

/* Prompts begin alike in three ways. */
static void draw_kind(random_source *source, kind *k) {
    random_source base = {1 + random_below(source, 3)};
    const uint32_t shared = (uint32_t)random_below(source, 70), own = 1 + (uint32_t)random_below(source, 20);
    draw_tokens(&base, VOCAB, k->prompt, shared);
    draw_tokens(source, VOCAB, k->prompt + shared, own);
    k->sampling = (gumbel_sampling){.size = sizeof k->sampling,
                                    .temperature = (float)random_below(source, 2),
                                    .top_p = 1,
                                    .repetition_penalty = random_once_in(source, 2) ? 1.2f : 1};
    k->branch = (uint32_t)random_below(source, MOST_PROMPT);
    k->submission = (gumbel_submission){.size = sizeof k->submission,
                                        .tokens = k->prompt,
                                        .token_count = shared + own,
                                        .sampling = &k->sampling,
                                        .has_seed = true,
                                        .seed = random_bits(source),
                                        .max_new_tokens = 1 + (uint32_t)random_below(source, MOST_ANSWER),
                                        .ignore_stop = random_once_in(source, 2),
                                        .no_prefix_cache = random_once_in(source, 8),
                                        .branch_positions = &k->branch,
                                        .branch_position_count = random_once_in(source, 2)};
}

static void answer_alone(gumbel_session *session, kind *k) {
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &k->sampling,
                                             .max_new_tokens = k->submission.max_new_tokens,
                                             .ignore_stop = k->submission.ignore_stop};
    gumbel_generated next = {.size = sizeof next};
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, k->submission.seed);
    must(gumbel_generate(session, k->prompt, k->submission.token_count, &options, &error), "generate");
    while (!next.finish) {
        must(gumbel_next(session, &next, &error), "next");
        k->tokens[k->count++] = next.token;
    }
    k->finish = next.finish;
}

static void draw_kinds(soak *s) {
    gumbel_engine *engine;
    gumbel_session *session;
    const gumbel_engine_options options = {.size = sizeof options, .threads = 1};
    must(gumbel_engine_create(s->program, &options, &engine, &error), "engine");
    must(gumbel_session_create(engine, &session, &error), "session");
    for (int i = 0; i < KINDS; i++) {
        draw_kind(&s->source, &s->kinds[i]);
        answer_alone(session, &s->kinds[i]);
    }
    gumbel_engine_destroy(engine);
}

static void draw_request(soak *s, asked *a) {
    random_source *source = &s->source;
    a->kind = &s->kinds[random_below(source, KINDS)];
    a->is_cancelled = random_once_in(source, 6);
    a->has_deadline = random_once_in(source, 6);
    a->deadline = 1e-6 * (double)(1 + random_below(source, 20000));
    a->priority = (int32_t)random_below(source, 3);
    a->pause = random_once_in(source, 4) ? (long)random_below(source, 1000000) : 0;
    a->patience = (long)random_below(source, 3000000);
}

/* ---- Callers ------------------------------------------------------------------------------------------- */

static void handle_event(void *user, const gumbel_event *event) {
    asked *a = user;
    if (atomic_load(&a->last_events) > 0)
        fail_case("an event after the last one");
    if (event->type == GUMBEL_EVENT_TOKEN) {
        if (a->count >= a->kind->count || event->token != a->kind->tokens[a->count])
            fail_case("token %u is %d, alone another one", a->count, event->token);
        a->count++;
        return;
    }
    a->status = event->status;
    a->finish = event->finish;
    atomic_fetch_add(&a->last_events, 1);
}

static void pause_for(long nanoseconds) {
    if (nanoseconds > 0)
        nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

static void submit(soak *s, asked *a) {
    gumbel_submission submission = a->kind->submission;
    gumbel_error told;
    uint64_t number;
    gumbel_status status;
    submission.callback = handle_event;
    submission.user = a;
    submission.priority = a->priority;
    submission.deadline_seconds = a->has_deadline ? a->deadline : 0;
    pause_for(a->pause);
    while ((status = gumbel_scheduler_submit(s->scheduler, &submission, &number, &told)) ==
           GUMBEL_ERROR_LIMIT)
        pause_for(FULL_QUEUE);
    if (status != GUMBEL_OK)
        fail_case("submit: %s", told.message);
    if (a->is_cancelled) {
        pause_for(a->patience);
        gumbel_scheduler_cancel(s->scheduler, number);
    }
}

static void *submit_some(void *user) {
    soak *s = user;
    for (unsigned i; (i = atomic_fetch_add(&s->next, 1)) < request_count;)
        submit(s, &s->requests[i]);
    return NULL;
}

static void submit_all(soak *s) {
    pthread_t callers[CALLERS];
    for (unsigned i = 0; i < CALLERS; i++)
        if (pthread_create(&callers[i], NULL, submit_some, s) != 0)
            fail_case("no thread");
    for (unsigned i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
}

/* ---- Cases --------------------------------------------------------------------------------------------- */

static gumbel_engine *draw_engine(soak *s) {
    static const int slots[] = {1, 2, 4, 16};
    gumbel_engine *engine;
    gumbel_engine_options options = {.size = sizeof options,
                                     .slots = slots[random_below(&s->source, 4)],
                                     .threads = random_once_in(&s->source, 4) ? 2 : 1};
    if (random_once_in(&s->source, 2))
        options.step_tokens = (uint32_t)options.slots + (uint32_t)random_below(&s->source, 2 * GRAIN);
    must(gumbel_engine_create(s->program, &options, &engine, &error), "engine");
    if (random_once_in(&s->source, 2))
        engine->backend->threads = 0; /* as a device, which stages snapshots */
    return engine;
}

static gumbel_scheduler_options draw_options(soak *s) {
    gumbel_program_info info = {.size = sizeof info};
    gumbel_scheduler_options options = {.size = sizeof options, .max_queued = 64, .answer_reserve = 1};
    must(gumbel_program_get_info(s->program, &info, &error), "info");
    options.no_prefix_cache = random_once_in(&s->source, 5);
    if (random_once_in(&s->source, 2))
        options.state_bytes = info.session_state_bytes * (4 + random_below(&s->source, 8)) / 4;
    if (random_once_in(&s->source, 3))
        options.host_bytes = 1 + random_below(&s->source, (uint64_t)1 << 18);
    return options;
}

static void check_idle(const gumbel_scheduler_stats *stats) {
    if (stats->free_slots + stats->kept_slots != stats->slots || stats->running || stats->queued ||
        stats->spilled || stats->running_bytes || stats->spilled_bytes ||
        stats->kept_bytes > stats->state_bytes || stats->finished + stats->failed != request_count)
        fail_case("idle: %u free and %u kept of %u slots, %u running, %u queued, %u spilled",
                  stats->free_slots, stats->kept_slots, stats->slots, stats->running, stats->queued,
                  stats->spilled);
}

/* One in four ends while it is under way. */
static bool run_scheduler(soak *s, uint64_t *counts) {
    const bool is_cut_short = random_once_in(&s->source, 4);
    gumbel_engine *engine = draw_engine(s);
    const gumbel_scheduler_options options = draw_options(s);
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    must(gumbel_scheduler_create(engine, &options, &s->scheduler, &error), "scheduler");
    let_fail(engine, random_bits(&s->source));
    submit_all(s);
    if (!is_cut_short) {
        gumbel_scheduler_drain(s->scheduler);
        must(gumbel_scheduler_get_stats(s->scheduler, &stats, &error), "stats");
        check_idle(&stats);
    }
    gumbel_scheduler_destroy(s->scheduler);
    engine->backend->functions = real;
    gumbel_engine_destroy(engine);
    counts[SPILLED] += stats.spills;
    counts[INJECTED] += injected;
    return is_cut_short;
}

/* How it ended is one of the ways that were open to it. */
static void check(const asked *a, bool is_cut_short, uint64_t *counts) {
    const bool is_whole = a->status == GUMBEL_OK, is_late = a->status == GUMBEL_ERROR_DEADLINE,
               is_cancelled = a->status == GUMBEL_ERROR_CANCELLED,
               has_failed = a->status == GUMBEL_ERROR_NUMERIC || a->status == GUMBEL_ERROR_MEMORY ||
                            a->status == GUMBEL_ERROR_BACKEND;
    if (a->last_events != 1)
        fail_case("%u last events", a->last_events);
    if (is_whole && (a->count != a->kind->count || a->finish != a->kind->finish))
        fail_case("%u tokens, finish %d; alone %u and %d", a->count, a->finish, a->kind->count,
                  a->kind->finish);
    if (!is_whole && !has_failed && !(is_late && a->has_deadline) &&
        !(is_cancelled && (a->is_cancelled || is_cut_short)))
        fail_case("ended with status %d", a->status);
    counts[REQUESTS]++;
    counts[TOKENS] += a->count;
    counts[CANCELLED] += is_cancelled;
    counts[LATE] += is_late;
    counts[FAILED] += has_failed;
}

static const char *path_of(size_t family) {
    char name[64];
    snprintf(name, sizeof name, "%s.gumbel", configs[family]);
    return temporary_path(name);
}

static void export_programs(void) {
    for (size_t i = 0; i < FAMILIES; i++) {
        char config[512];
        const gumbel_export_options options = {
            .size = sizeof options, .random_weights = true, .random_seed = 5};
        snprintf(config, sizeof config, "%s/run/%s.json", test_data_folder, configs[i]);
        if (gumbel_export(config, path_of(i), &options, &error) != GUMBEL_OK) {
            fprintf(stderr, "%s: %s\n", config, error.message);
            exit(1);
        }
    }
}

static void run_soak(uint64_t seed, uint64_t *counts) {
    soak *s = calloc(1, sizeof *s);
    if (!s)
        fail_case("no memory");
    s->source = (random_source){seed};
    must(gumbel_program_open(path_of(seed % FAMILIES), &s->program, &error), "program");
    draw_kinds(s);
    for (unsigned i = 0; i < request_count; i++)
        draw_request(s, &s->requests[i]);
    const bool is_cut_short = run_scheduler(s, counts);
    for (unsigned i = 0; i < request_count; i++)
        check(&s->requests[i], is_cut_short, counts);
    gumbel_program_close(s->program);
    free(s);
}

int main(int argument_count, char **arguments) {
    static const harness h = {
        .name = "schedule_soak",
        .counted = {"requests", "tokens", "cancelled", "late", "failed", "failures injected", "spills"},
        .prepare = export_programs,
        .run_case = run_soak};
    request_count = (unsigned)shortened(EACH, FEW);
    return run_harness(&h, argument_count, arguments);
}
