/* SPDX-License-Identifier: Apache-2.0
 *
 * The load of bench_soak: a scheduler is given requests until so many steps have run. All but the first are
 * submitted between steps by the scheduler's own thread, so that the same load gives the same steps.
 */
#ifndef GUMBEL_BENCH_SOAK_LOAD_H
#define GUMBEL_BENCH_SOAK_LOAD_H

#include "arguments.h"
#include "base/clock.h"
#include "soak_requests.h"

#include <inttypes.h>
#include <semaphore.h>

enum { MOST_SEQUENCES = 256, MOST_LIVE = 2 * MOST_SEQUENCES };

/* What came of one answer. */
typedef struct outcome {
    int32_t *tokens; /* [max_new_tokens] */
    uint32_t count;
    bool is_whole; /* it was not cancelled */
    gumbel_finish finish;
} outcome;

typedef struct soak soak;

typedef struct asked {
    drawn_request drawn;
    soak *soak;
    uint64_t id;        /* the scheduler's */
    uint64_t cancel_at; /* when so many tokens have been heard; 0: never, or it has been */
    uint64_t end_step;
    uint32_t live_answers;
    int32_t *tokens;
    outcome answers[MOST_ANSWERS];
    struct asked *next;
} asked;

/* The scheduler's thread alone uses it while the scheduler runs. */
struct soak {
    request_limits limits;
    uint32_t sequences, steps;
    gumbel_engine *engine;
    gumbel_scheduler *scheduler;
    int32_t *prompt; /* [limits.longest] of the request at hand */
    asked *first, **end;
    asked *live[MOST_LIVE];
    uint32_t live_count, live_answers, wanted_answers, requests;
    uint64_t state; /* of the random numbers */
    uint64_t tokens, change_at;
    bool has_failed;
    sem_t done;
};

static inline void *allocate(size_t count, size_t bytes) {
    void *made = calloc(count, bytes);
    if (!made) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return made;
}

static inline gumbel_scheduler_stats stats_of(const soak *s) {
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    gumbel_error error;
    must(gumbel_scheduler_get_stats(s->scheduler, &stats, &error), &error);
    return stats;
}

static inline asked *add_request(soak *s) {
    asked *a = allocate(1, sizeof *a);
    draw_request(&s->limits, s->requests++, s->sequences, &a->drawn);
    a->soak = s;
    a->cancel_at = a->drawn.patience > 0 ? s->tokens + a->drawn.patience : 0;
    a->live_answers = a->drawn.answers;
    a->tokens = allocate((size_t)a->drawn.answers * a->drawn.max_new_tokens, sizeof *a->tokens);
    for (uint32_t i = 0; i < a->drawn.answers; i++)
        a->answers[i].tokens = a->tokens + (size_t)i * a->drawn.max_new_tokens;
    s->live[s->live_count++] = a;
    s->live_answers += a->live_answers;
    *s->end = a;
    s->end = &a->next;
    return a;
}

static inline void hear(void *user, const gumbel_event *event);

/* Submitting comes last: the first request's events come before it returns. */
static inline void submit(soak *s) {
    asked *a = add_request(s);
    const drawn_request *r = &a->drawn;
    gumbel_error error;
    const gumbel_submission submission = {.size = sizeof submission,
                                          .tokens = s->prompt,
                                          .token_count = r->prompt_tokens,
                                          .callback = hear,
                                          .user = a,
                                          .sampling = &r->sampling,
                                          .has_seed = true,
                                          .ignore_stop = r->ignore_stop,
                                          .seed = r->seed,
                                          .answers = r->answers,
                                          .max_new_tokens = r->max_new_tokens,
                                          .branch_positions = &r->base_tokens,
                                          .branch_position_count = r->has_branch,
                                          .priority = r->priority};
    draw_prompt(&s->limits, r, s->prompt);
    must(gumbel_scheduler_submit(s->scheduler, &submission, &a->id, &error), &error);
}

/* Mostly as many answers as there are slots; sometimes fewer, for small steps, or more, so that some wait. */
static inline void choose_load(soak *s) {
    if (s->tokens < s->change_at)
        return;
    s->wanted_answers = random_once_in(&s->state, 4)
                            ? 1 + random_below(&s->state, s->sequences + s->sequences / 2)
                            : s->sequences;
    s->change_at = s->tokens + 1 + random_below(&s->state, 32 * s->wanted_answers);
}

static inline void cancel_impatient(soak *s) {
    for (uint32_t i = 0; i < s->live_count; i++) {
        asked *a = s->live[i];
        if (a->cancel_at == 0 || s->tokens < a->cancel_at)
            continue;
        a->cancel_at = 0;
        gumbel_scheduler_cancel(s->scheduler, a->id);
    }
}

static inline void end_answer(asked *a, const gumbel_event *event) {
    soak *s = a->soak;
    outcome *o = &a->answers[event->answer];
    o->finish = event->finish;
    o->is_whole = event->type == GUMBEL_EVENT_FINISH;
    if (!o->is_whole && event->status != GUMBEL_ERROR_CANCELLED) {
        print_request(stderr, &a->drawn);
        fprintf(stderr, "answer %u failed: %s\n", event->answer, event->message);
        s->has_failed = true;
    }
    s->live_answers--;
    a->end_step = stats_of(s).steps;
    if (--a->live_answers > 0)
        return;
    for (uint32_t i = 0; i < s->live_count; i++)
        if (s->live[i] == a)
            s->live[i--] = s->live[--s->live_count];
}

static inline void add_token(asked *a, const gumbel_event *event) {
    outcome *o = &a->answers[event->answer];
    if (o->count < a->drawn.max_new_tokens)
        o->tokens[o->count++] = event->token;
    a->soak->tokens++;
}

static inline void hear(void *user, const gumbel_event *event) {
    asked *a = user;
    soak *s = a->soak;
    if (event->type == GUMBEL_EVENT_TOKEN)
        add_token(a, event);
    else
        end_answer(a, event);
    cancel_impatient(s);
    choose_load(s);
    const bool goes_on = !s->has_failed && stats_of(s).steps < s->steps;
    while (goes_on && s->live_answers < s->wanted_answers)
        submit(s);
    if (s->live_answers == 0)
        sem_post(&s->done);
}

static inline uint32_t count_cancelled(const soak *s) {
    uint32_t cancelled = 0;
    for (const asked *a = s->first; a; a = a->next)
        for (uint32_t i = 0; i < a->drawn.answers; i++)
            cancelled += !a->answers[i].is_whole;
    return cancelled;
}

static inline void print_stats(const soak *s, double seconds) {
    const gumbel_scheduler_stats stats = stats_of(s);
    printf("%s\n", gumbel_engine_description(s->engine));
    printf("%9s %9s %14s %9s %9s %9s %18s\n", "requests", "steps", "prompt tokens", "cached", "tokens",
           "tokens/s", "cancelled answers");
    printf("%9u %9" PRIu64 " %14" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9.1f %18u\n", s->requests, stats.steps,
           stats.prompt_tokens, stats.cached_tokens, s->tokens, (double)s->tokens / seconds,
           count_cancelled(s));
    fflush(stdout);
}

static inline void answer_together(soak *s) {
    gumbel_error error;
    s->wanted_answers = s->sequences; /* a short run is a full one, too */
    s->change_at = 16 * s->sequences;
    must(gumbel_scheduler_create(s->engine, NULL, &s->scheduler, &error), &error);
    const double begun = gb_seconds();
    submit(s);
    while (sem_wait(&s->done) != 0)
        ;
    const double seconds = gb_seconds() - begun;
    gumbel_scheduler_drain(s->scheduler);
    print_stats(s, seconds);
    gumbel_scheduler_destroy(s->scheduler);
}

static inline void free_requests(soak *s) {
    for (asked *a = s->first, *next; a; a = next) {
        next = a->next;
        free(a->tokens);
        free(a);
    }
}

#endif
