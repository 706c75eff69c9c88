/* SPDX-License-Identifier: Apache-2.0
 *
 * The same answers under load: requests of mixed length and settings, answered alone one by one in fresh
 * sessions, then by a scheduler, submitted by several threads at random times with cancels between, on
 * engines of 1 to 64 slots, with and without a prefix cache, drafts and a draft model, and with so little
 * memory that answers are spilled.
 */
#include "bundled.h"
#include "cases.h"
#include "run/handles.h"
#include "support/random_setting.h"
#include "support/test_arguments.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REQUESTS, TOKENS, CACHED, SPILLED, CANCELLED, DRAFTED, ACCEPTED };
enum {
    EACH = 64, /* requests of a case */
    CONTEXT = 256,
    MOST_PROMPT = 170,
    MOST_ANSWER = 60,
    MOST_ANSWERS = 3, /* of a request */
    TEXT = 2048,
    CALLERS = 64,
    SAMPLED_PROGRAMS = 4, /* of the bundled ones: both families, unquantized and in 4 bits */
    SLOT_COUNTS = 5,      /* cases with one after another have every program with every number of slots */
    BASES = 3
};

/* What came of one answer. */
typedef struct outcome {
    int32_t tokens[MOST_ANSWER];
    uint64_t seeds[MOST_ANSWER];
    float logprobs[MOST_ANSWER];
    uint32_t count;
    char text[TEXT];
    size_t text_length;
    gumbel_finish finish;
    gumbel_status status;
    unsigned last_events;
    uint32_t cached_tokens;
} outcome;

typedef struct asked {
    int32_t prompt[MOST_PROMPT], predicted[MOST_ANSWER];
    gumbel_sampling sampling;
    gumbel_submission submission;
    uint32_t branch;
    const char *stop_strings[1];
    bool is_cancelled;
    long pause, patience; /* nanoseconds before it is submitted, and until it is cancelled */
    outcome alone[MOST_ANSWERS], found[MOST_ANSWERS];
} asked;

typedef struct load {
    random_source source;
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    gumbel_program_info info;
    uint64_t seed;
    gumbel_scheduler *scheduler;
    gumbel_program *draft_program; /* NULL: none guesses */
    gumbel_engine *draft_engine;
    atomic_uint next;
    asked requests[EACH];
} load;

static gumbel_error error;

static int request_count(void) {
    return shortened(EACH, 32);
}

static void must(gumbel_status status, const char *what) {
    if (status != GUMBEL_OK)
        fail_case("%s: %s", what, error.message);
}

/* ---- Requests ------------------------------------------------------------------------------------------ */

static gumbel_sampling draw_sampling(random_source *source, const gumbel_program *program) {
    gumbel_sampling sampling = {.size = sizeof sampling};
    const gumbel_setting *setting;
    must(gumbel_sampling_defaults(program, &sampling, &error), "defaults");
    for (size_t i = 0; (setting = gumbel_setting_at(i)); i++) {
        const double value = random_setting(setting, (uint32_t)random_bits(source));
        const bool is_integer = setting->type == GUMBEL_SETTING_INT32;
        must(gumbel_setting_set(setting, is_integer ? (double)(int32_t)value : value, &sampling, &error),
             "setting");
    }
    return sampling;
}

/* One of a few beginnings, of any length, and tokens of its own. */
static uint32_t draw_prompt(load *l, int32_t *prompt) {
    random_source base = {1 + random_below(&l->source, BASES)};
    const uint32_t shared = (uint32_t)random_below(&l->source, 110);
    const uint32_t own = 1 + (uint32_t)random_below(&l->source, random_once_in(&l->source, 2) ? 10 : 60);
    draw_tokens(&base, l->info.vocab_size, prompt, shared);
    draw_tokens(&l->source, l->info.vocab_size, prompt + shared, own);
    return shared + own;
}

static void draw_request(load *l, asked *a) {
    random_source *source = &l->source;
    a->sampling = draw_sampling(source, l->program);
    a->branch = (uint32_t)random_below(source, MOST_PROMPT);
    a->stop_strings[0] = random_once_in(source, 2) ? "e" : "the";
    a->submission = (gumbel_submission){
        .size = sizeof a->submission,
        .tokens = a->prompt,
        .token_count = draw_prompt(l, a->prompt),
        .sampling = &a->sampling,
        .has_seed = true,
        .seed = random_bits(source),
        .max_new_tokens = 1 + (uint32_t)random_below(source, (uint64_t)shortened(MOST_ANSWER, 15)),
        .answers = random_once_in(source, 6) ? 1 + (uint32_t)random_below(source, MOST_ANSWERS) : 1,
        .wants_logprob = random_once_in(source, 3),
        .ignore_stop = random_once_in(source, 2),
        .no_prefix_cache = random_once_in(source, 8),
        .priority = (int32_t)random_below(source, 2),
        .branch_positions = &a->branch,
        .branch_position_count = random_once_in(source, 3),
        .stop_strings = a->stop_strings,
        .stop_string_count = random_once_in(source, 3),
        .tokenizer = l->tokenizer,
    };
    a->is_cancelled = random_once_in(source, 8);
    a->pause = (long)random_below(source, 3000000);
    a->patience = (long)random_below(source, 30000000);
}

/* ---- Alone --------------------------------------------------------------------------------------------- */

static void add_text(outcome *o, const char *text, size_t length) {
    if (length > TEXT - o->text_length)
        fail_case("a text is longer than expected");
    if (length > 0)
        memcpy(o->text + o->text_length, text, length);
    o->text_length += length;
}

static void answer_alone(gumbel_session *session, const asked *a, uint32_t answer, outcome *o) {
    const gumbel_submission *s = &a->submission;
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = s->sampling,
                                             .max_new_tokens = s->max_new_tokens,
                                             .wants_logprob = s->wants_logprob,
                                             .ignore_stop = s->ignore_stop,
                                             .tokenizer = s->tokenizer,
                                             .stop_strings = s->stop_strings,
                                             .stop_string_count = s->stop_string_count};
    gumbel_generated next = {.size = sizeof next};
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, gumbel_answer_seed(s->seed, answer));
    must(gumbel_generate(session, s->tokens, s->token_count, &options, &error), "generate");
    while (!next.finish) {
        must(gumbel_next(session, &next, &error), "next");
        o->tokens[o->count] = next.token;
        o->seeds[o->count] = next.seed;
        o->logprobs[o->count++] = next.logprob;
        add_text(o, next.text, next.text_length);
    }
    o->finish = next.finish;
}

static void answer_all_alone(load *l) {
    gumbel_engine *engine;
    gumbel_session *session;
    const gumbel_engine_options options = {.size = sizeof options, .threads = 1, .max_context = CONTEXT};
    must(gumbel_engine_create(l->program, &options, &engine, &error), "engine");
    must(gumbel_session_create(engine, &session, &error), "session");
    for (int i = 0; i < request_count(); i++)
        for (uint32_t j = 0; j < l->requests[i].submission.answers; j++)
            answer_alone(session, &l->requests[i], j, &l->requests[i].alone[j]);
    gumbel_engine_destroy(engine);
}

/* Drafts come from the answer itself, where some tokens are others. */
static void predict(load *l, asked *a) {
    const outcome *alone = &a->alone[0];
    for (uint32_t i = 0; i < alone->count; i++)
        a->predicted[i] = random_once_in(&l->source, 8)
                              ? (int32_t)random_below(&l->source, l->info.vocab_size)
                              : alone->tokens[i];
    a->submission.predicted_tokens = a->predicted;
    a->submission.predicted_count = random_once_in(&l->source, 4) ? 0 : alone->count;
    a->submission.max_draft = (uint32_t)random_below(&l->source, 12);
    if (random_once_in(&l->source, 8))
        a->submission.drafting = GUMBEL_DRAFTING_OFF;
}

/* ---- Together ------------------------------------------------------------------------------------------ */

static void handle_event(void *user, const gumbel_event *event) {
    outcome *o = &((asked *)user)->found[event->answer];
    add_text(o, event->text, event->text_length);
    if (event->type == GUMBEL_EVENT_TOKEN) {
        o->tokens[o->count] = event->token;
        o->seeds[o->count] = event->seed;
        o->logprobs[o->count++] = event->logprob;
        return;
    }
    o->last_events++;
    o->finish = event->finish;
    o->status = event->status;
    o->cached_tokens = event->usage->cached_tokens;
}

static void pause_for(long nanoseconds) {
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

static void *submit_some(void *user) {
    load *l = user;
    for (unsigned i; (i = atomic_fetch_add(&l->next, 1)) < (unsigned)request_count();) {
        asked *a = &l->requests[i];
        gumbel_error told;
        uint64_t number;
        a->submission.callback = handle_event;
        a->submission.user = a;
        pause_for(a->pause);
        const gumbel_status status = gumbel_scheduler_submit(l->scheduler, &a->submission, &number, &told);
        if (status != GUMBEL_OK)
            fail_case("submit: %s", told.message);
        if (a->is_cancelled) {
            pause_for(a->patience);
            gumbel_scheduler_cancel(l->scheduler, number);
        }
    }
    return NULL;
}

static void submit_all(load *l) {
    pthread_t callers[CALLERS];
    const bool all = random_once_in(&l->source, 2); /* at once */
    const unsigned count = all ? CALLERS : 1 + (unsigned)random_below(&l->source, CALLERS);
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&callers[i], NULL, submit_some, l) != 0)
            fail_case("no thread");
    for (unsigned i = 0; i < count; i++)
        pthread_join(callers[i], NULL);
}

/* Another program of the same family, with any number of sessions. Where nothing depends on times it is said
 * to be cheap, so that it guesses much. */
static void draw_draft_engine(load *l, gumbel_engine_options *options) {
    gumbel_engine_options of_draft = {.size = sizeof of_draft,
                                      .slots = 1 + (int)random_below(&l->source, (uint64_t)options->slots),
                                      .threads = 1,
                                      .max_context =
                                          CONTEXT / 2 + (uint32_t)random_below(&l->source, CONTEXT / 2),
                                      .snapshots = true};
    if (options->draft_tokens == 0 || random_once_in(&l->source, 2))
        return;
    const uint64_t other = (l->seed + 2 * random_below(&l->source, 2)) % SAMPLED_PROGRAMS;
    must(gumbel_program_open(bundled_path(other), &l->draft_program, &error), "draft program");
    must(gumbel_engine_create(l->draft_program, &of_draft, &l->draft_engine, &error), "draft engine");
    options->draft_engine = l->draft_engine;
}

/* Some answers are guessed for by the draft model alone. */
static void choose_drafters(load *l) {
    for (int i = 0; i < request_count() && l->draft_engine; i++)
        if (l->requests[i].submission.drafting == GUMBEL_DRAFTING_AUTO && random_once_in(&l->source, 2))
            l->requests[i].submission.drafting = GUMBEL_DRAFTING_MODEL;
}

/* Steps are said to take so long. */
static void fix_times(gb_step_times *times, double seconds) {
    times->seconds[0] = seconds;
    times->samples[0] = 1;
    times->is_fixed = true;
}

static gumbel_engine *draw_engine(load *l) {
    static const int slots[SLOT_COUNTS] = {1, 2, 3, 8, 64};
    gumbel_engine *engine;
    gumbel_engine_options options = {.size = sizeof options,
                                     .slots = slots[l->seed % SLOT_COUNTS],
                                     .threads = 1 + (int)random_below(&l->source, 2),
                                     .max_context = CONTEXT};
    if (!random_once_in(&l->source, 4))
        options.draft_tokens = 1 + (uint32_t)random_below(&l->source, 12);
    if (random_once_in(&l->source, 2))
        options.step_tokens = (uint32_t)options.slots + (uint32_t)random_below(&l->source, 200);
    draw_draft_engine(l, &options);
    must(gumbel_engine_create(l->program, &options, &engine, &error), "engine");
    if (random_once_in(&l->source, 2))
        engine->backend->threads = 0; /* as a device, which stages snapshots */
    if (l->draft_engine && !random_once_in(&l->source, 4)) {
        fix_times(&engine->step_times, 1);
        fix_times(&l->draft_engine->step_times, 0.05);
    }
    return engine;
}

/* The states of one context of the engine's: as the scheduler counts them. */
static uint64_t context_bytes(gumbel_engine *engine) {
    gumbel_scheduler *scheduler;
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    must(gumbel_scheduler_create(engine, NULL, &scheduler, &error), "scheduler");
    gumbel_scheduler_drain(scheduler);
    must(gumbel_scheduler_get_stats(scheduler, &stats, &error), "stats");
    gumbel_scheduler_destroy(scheduler);
    return stats.state_bytes / stats.slots;
}

static gumbel_scheduler_stats answer_all_together(load *l) {
    gumbel_engine *engine = draw_engine(l);
    choose_drafters(l);
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    gumbel_scheduler_options options = {.size = sizeof options};
    options.no_prefix_cache = random_once_in(&l->source, 4);
    if (random_once_in(&l->source, 2)) {
        options.answer_reserve = 1;
        options.state_bytes = context_bytes(engine) * (4 + random_below(&l->source, 4)) / 4;
    }
    if (random_once_in(&l->source, 3))
        options.host_bytes = 1 + random_below(&l->source, (uint64_t)1 << 20);
    must(gumbel_scheduler_create(engine, &options, &l->scheduler, &error), "scheduler");
    submit_all(l);
    gumbel_scheduler_drain(l->scheduler);
    must(gumbel_scheduler_get_stats(l->scheduler, &stats, &error), "stats");
    gumbel_scheduler_destroy(l->scheduler);
    gumbel_engine_destroy(engine);
    gumbel_engine_destroy(l->draft_engine);
    gumbel_program_close(l->draft_program);
    return stats;
}

/* ---- Comparing ----------------------------------------------------------------------------------------- */

/* A cancelled answer is the beginning of what it would have been. */
static void compare(const asked *a, uint32_t answer, uint64_t *counts) {
    const outcome *alone = &a->alone[answer], *found = &a->found[answer];
    if (found->last_events != 1)
        fail_case("%u last events", found->last_events);
    const bool is_whole = found->status == GUMBEL_OK;
    if (!is_whole && (found->status != GUMBEL_ERROR_CANCELLED || !a->is_cancelled))
        fail_case("an answer failed with status %d", found->status);
    if (is_whole ? found->count != alone->count || found->finish != alone->finish
                 : found->count > alone->count)
        fail_case("%u tokens, finish %d; alone %u and %d", found->count, found->finish, alone->count,
                  alone->finish);
    if (memcmp(found->tokens, alone->tokens, found->count * sizeof *found->tokens) != 0 ||
        memcmp(found->seeds, alone->seeds, found->count * sizeof *found->seeds) != 0 ||
        memcmp(found->logprobs, alone->logprobs, found->count * sizeof *found->logprobs) != 0)
        fail_case("other tokens than alone, with %u of %zu cached", found->cached_tokens,
                  a->submission.token_count);
    if (is_whole && (found->text_length != alone->text_length ||
                     memcmp(found->text, alone->text, found->text_length) != 0))
        fail_case("another text than alone");
    counts[REQUESTS]++;
    counts[TOKENS] += found->count;
    counts[CANCELLED] += !is_whole;
}

static void check_stats(const gumbel_scheduler_stats *stats) {
    if (stats->free_slots + stats->kept_slots != stats->slots || stats->running || stats->queued ||
        stats->spilled || stats->running_bytes || stats->spilled_bytes ||
        stats->kept_bytes > stats->state_bytes || stats->finished + stats->failed != stats->submitted)
        fail_case("idle: %u free and %u kept of %u slots, %u running", stats->free_slots, stats->kept_slots,
                  stats->slots, stats->running);
}

/* ---- Cases --------------------------------------------------------------------------------------------- */

static void open_program(load *l) {
    l->info = (gumbel_program_info){.size = sizeof l->info};
    must(gumbel_program_open(bundled_path(l->seed % SAMPLED_PROGRAMS), &l->program, &error), "program");
    must(gumbel_program_get_info(l->program, &l->info, &error), "info");
    must(gumbel_tokenizer_create(l->program, &l->tokenizer, &error), "tokenizer");
}

static void run_load(uint64_t seed, uint64_t *counts) {
    load *l = calloc(1, sizeof *l);
    if (!l)
        fail_case("no memory");
    l->seed = seed;
    l->source = (random_source){seed};
    open_program(l);
    for (int i = 0; i < request_count(); i++)
        draw_request(l, &l->requests[i]);
    answer_all_alone(l);
    for (int i = 0; i < request_count(); i++)
        predict(l, &l->requests[i]);
    const gumbel_scheduler_stats stats = answer_all_together(l);
    check_stats(&stats);
    for (int i = 0; i < request_count(); i++)
        for (uint32_t j = 0; j < l->requests[i].submission.answers; j++)
            compare(&l->requests[i], j, counts);
    counts[CACHED] += stats.cached_tokens;
    counts[SPILLED] += stats.spills;
    counts[DRAFTED] += stats.drafts.proposed;
    counts[ACCEPTED] += stats.drafts.accepted;
    gumbel_tokenizer_destroy(l->tokenizer);
    gumbel_program_close(l->program);
    free(l);
}

int main(int argument_count, char **arguments) {
    static const harness h = {.name = "schedule",
                              .counted = {"answers", "tokens", "prompt tokens cached", "spills",
                                          "answers cancelled", "draft tokens", "draft tokens accepted"},
                              .prepare = export_bundled,
                              .run_case = run_load};
    return run_harness(&h, argument_count, arguments);
}
