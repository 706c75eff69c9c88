/* SPDX-License-Identifier: Apache-2.0
 *
 * Times between tokens while a long prompt arrives: answers go on together, at first alone, then beside the
 * prompt. A time is from one token of an answer to its next one. Beside the prompt each step has a chunk of
 * it, so that times must be those of one such step.
 *
 *     bench_schedule_latency PROGRAM [ANSWERS [PROMPT [THREADS [ROUNDS]]]]     by default 7 4096 2 3
 */
#include "base/clock.h"
#include "gumbel.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ANSWERS = 64, MOST_TIMES = 1 << 16, ALONE = 32, MOST_PROMPT = 1 << 16, BUCKETS = 12, BAR = 50 };

typedef struct times {
    double seconds[MOST_TIMES];
    size_t count;
    unsigned least; /* tokens that an answer got beside a prompt */
} times;

/* What the scheduler's thread writes. */
typedef struct state {
    gumbel_scheduler *scheduler;
    double last[MOST_ANSWERS];     /* when an answer's last token came */
    unsigned beside[MOST_ANSWERS]; /* tokens beside the prompt */
    times alone, with_prompt;
    unsigned tokens, wanted, answers;
    atomic_bool prompt_goes_on, is_warm;
    uint64_t request;
} state;

static state s;
static int32_t prompt[MOST_PROMPT];

static void must(gumbel_status status, const gumbel_error *error) {
    if (status == GUMBEL_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

static void add(times *t, double seconds) {
    if (t->count < MOST_TIMES)
        t->seconds[t->count++] = seconds;
}

static void hear_answer(void *user, const gumbel_event *event) {
    (void)user;
    if (event->type != GUMBEL_EVENT_TOKEN)
        return;
    const double now = gb_seconds();
    double *last = &s.last[event->answer];
    const bool beside = atomic_load(&s.prompt_goes_on);
    if (*last > 0)
        add(beside ? &s.with_prompt : &s.alone, now - *last);
    *last = now;
    s.beside[event->answer] += beside;
    if (++s.tokens == s.wanted)
        atomic_store(&s.is_warm, true);
}

/* The prompt's first token is its last: the answers have what they are measured for. */
static void hear_prompt(void *user, const gumbel_event *event) {
    (void)user;
    if (event->type == GUMBEL_EVENT_ERROR) {
        fprintf(stderr, "%s\n", event->message);
        exit(1);
    }
    atomic_store(&s.prompt_goes_on, false);
    if (event->type == GUMBEL_EVENT_FINISH)
        gumbel_scheduler_cancel(s.scheduler, s.request);
}

static void run_round(gumbel_engine *engine, uint32_t answers, uint32_t prompt_tokens) {
    gumbel_error error;
    const gumbel_scheduler_options options = {.size = sizeof options, .no_prefix_cache = true};
    gumbel_submission few = {.size = sizeof few,
                             .tokens = prompt,
                             .token_count = 4,
                             .callback = hear_answer,
                             .ignore_stop = true,
                             .has_seed = true,
                             .answers = answers},
                      many = few;
    many.token_count = prompt_tokens;
    many.callback = hear_prompt;
    many.answers = many.max_new_tokens = 1;
    memset(s.last, 0, sizeof s.last);
    memset(s.beside, 0, sizeof s.beside);
    s.tokens = 0;
    s.wanted = answers * ALONE;
    atomic_store(&s.is_warm, false);
    must(gumbel_scheduler_create(engine, &options, &s.scheduler, &error), &error);
    must(gumbel_scheduler_submit(s.scheduler, &few, &s.request, &error), &error);
    while (!atomic_load(&s.is_warm))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&s.prompt_goes_on, true);
    must(gumbel_scheduler_submit(s.scheduler, &many, NULL, &error), &error);
    gumbel_scheduler_drain(s.scheduler);
    gumbel_scheduler_destroy(s.scheduler);
    for (uint32_t i = 0; i < answers; i++)
        s.with_prompt.least = s.beside[i] < s.with_prompt.least ? s.beside[i] : s.with_prompt.least;
}

/* ---- Printing ------------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(const times *t, double part) {
    return 1000 * t->seconds[(size_t)(part * (double)(t->count - 1))];
}

/* Buckets of equal width up to the longest time. */
static void print_histogram(const char *what, times *t) {
    size_t counts[BUCKETS] = {0}, largest = 1;
    if (t->count == 0)
        return;
    qsort(t->seconds, t->count, sizeof *t->seconds, compare);
    const double longest = t->seconds[t->count - 1], width = longest / BUCKETS;
    printf("%s: %zu times, p50 %.1f ms, p90 %.1f, p99 %.1f, max %.1f\n", what, t->count, percentile(t, 0.5),
           percentile(t, 0.9), percentile(t, 0.99), 1000 * longest);
    for (size_t i = 0; i < t->count; i++) {
        const size_t bucket = (size_t)(t->seconds[i] / width);
        counts[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
    }
    for (int i = 0; i < BUCKETS; i++)
        largest = counts[i] > largest ? counts[i] : largest;
    for (int i = 0; i < BUCKETS; i++)
        printf("  up to %7.1f ms %6zu %.*s\n", 1000 * width * (i + 1), counts[i],
               (int)(BAR * counts[i] / largest), "##################################################");
}

static uint32_t number(int count, char **arguments, int index, uint32_t otherwise) {
    return count > index ? (uint32_t)strtoul(arguments[index], NULL, 10) : otherwise;
}

int main(int count, char **arguments) {
    const uint32_t answers = number(count, arguments, 2, 7), tokens = number(count, arguments, 3, 4096),
                   threads = number(count, arguments, 4, 2), rounds = number(count, arguments, 5, 3);
    gumbel_program *program;
    gumbel_engine *engine;
    gumbel_error error;
    gumbel_engine_info info = {.size = sizeof info};
    const gumbel_engine_options options = {
        .size = sizeof options, .slots = (int)answers + 1, .threads = (int)threads};
    if (count < 2 || answers == 0 || answers > MOST_ANSWERS || tokens == 0 || tokens > MOST_PROMPT) {
        fprintf(stderr, "usage: bench_schedule_latency PROGRAM [ANSWERS [PROMPT [THREADS [ROUNDS]]]]\n");
        return 2;
    }
    for (uint32_t i = 0; i < tokens; i++)
        prompt[i] = (int32_t)(2 + i * 7919 % 1000);
    must(gumbel_program_open(arguments[1], &program, &error), &error);
    must(gumbel_engine_create(program, &options, &engine, &error), &error);
    must(gumbel_engine_get_info(engine, &info, &error), &error);
    s.with_prompt.least = UINT32_MAX;
    for (uint32_t i = 0; i < rounds; i++)
        run_round(engine, answers, tokens);
    print_histogram("alone", &s.alone);
    print_histogram("beside the prompt", &s.with_prompt);
    printf("a prompt of %u tokens has %u chunks; beside it each answer got at least %u tokens\n", tokens,
           (tokens + info.prefill_chunk - 1) / info.prefill_chunk, s.with_prompt.least);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    return 0;
}
