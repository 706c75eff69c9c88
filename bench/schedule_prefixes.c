/* SPDX-License-Identifier: Apache-2.0
 *
 * A full server: requests of mixed length on fewer slots, half of them behind one prefix, with states in host
 * memory or, with 0 MIB, none kept. Then turns of one conversation. By default 8 32 1024 cpu:
 *
 *     bench_schedule_prefixes PROGRAM [SLOTS [REQUESTS [MIB [BACKEND]]]]
 */
#include "arguments.h"
#include "base/clock.h"

#include <semaphore.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_REQUESTS = 1024,
    SHARED = 1500,
    MOST_OWN = 315,
    ANSWER = 96,
    CONTEXT = 8192,
    ROUNDS = 2,
    TURNS = 5,
    FIRST_TURN = 4000,
    NEXT_TURN = 60
};

/* Pseudorandom, from 0 to below `end`. */
static uint32_t draw(uint64_t *state, uint32_t end) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % end;
}

static void fill(int32_t *tokens, uint32_t count, uint64_t seed) {
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = 10 + (int32_t)draw(&seed, 5000);
}

/* What one answer was. */
typedef struct heard {
    double first;
    uint32_t tokens, cached;
    int32_t *answer; /* [ANSWER]; NULL: not wanted */
    sem_t end;       /* where it is */
} heard;

static void hear(void *user, const gumbel_event *event) {
    heard *h = user;
    if (event->type == GUMBEL_EVENT_ERROR) {
        fprintf(stderr, "%s\n", event->message);
        exit(1);
    }
    if (event->type == GUMBEL_EVENT_TOKEN) {
        if (h->tokens == 0)
            h->first = gb_seconds();
        if (h->answer && h->tokens < ANSWER)
            h->answer[h->tokens] = event->token;
        h->tokens++;
    }
    if (event->type != GUMBEL_EVENT_FINISH)
        return;
    h->cached = event->usage->cached_tokens;
    if (h->answer)
        sem_post(&h->end);
}

static void submit(gumbel_scheduler *scheduler, const int32_t *prompt, uint32_t count, uint32_t branch,
                   heard *h) {
    gumbel_error error;
    const gumbel_submission request = {.size = sizeof request,
                                       .tokens = prompt,
                                       .token_count = count,
                                       .callback = hear,
                                       .user = h,
                                       .ignore_stop = true,
                                       .has_seed = true,
                                       .seed = count,
                                       .max_new_tokens = ANSWER,
                                       .branch_positions = &branch,
                                       .branch_position_count = branch > 0};
    must(gumbel_scheduler_submit(scheduler, &request, NULL, &error), &error);
}

static void all_at_once(gumbel_scheduler *scheduler, uint32_t requests) {
    static heard heard_of[MOST_REQUESTS];
    static int32_t prompt[SHARED + MOST_OWN];
    uint64_t random = 3, prompts = 0, cached = 0, tokens = 0;
    const double begun = gb_seconds();
    memset(heard_of, 0, sizeof heard_of);
    for (uint32_t i = 0; i < requests; i++) {
        const uint32_t shared = i % 2 ? SHARED : 0,
                       own = 16 + draw(&random, i % 2 ? MOST_OWN - 16 : SHARED + MOST_OWN - 16);
        fill(prompt, shared, 1);
        fill(prompt + shared, own, i + 2);
        prompts += shared + own;
        submit(scheduler, prompt, shared + own, shared, &heard_of[i]);
    }
    gumbel_scheduler_drain(scheduler);
    for (uint32_t i = 0; i < requests; i++) {
        cached += heard_of[i].cached;
        tokens += heard_of[i].tokens;
    }
    const double seconds = gb_seconds() - begun;
    printf("%u requests: %.2f s, %.1f answered tokens/s; %llu prompt tokens, of which %.0f %% were not run\n",
           requests, seconds, (double)tokens / seconds, (unsigned long long)prompts,
           100.0 * (double)cached / (double)prompts);
}

static void wait_for(sem_t *end) {
    while (sem_wait(end) != 0)
        ;
}

/* Each turn is all before it and some more tokens; a second passes between them. */
static void turns(gumbel_scheduler *scheduler) {
    static int32_t prompt[FIRST_TURN + TURNS * (NEXT_TURN + ANSWER)];
    uint32_t count = FIRST_TURN;
    fill(prompt, count, 5);
    for (uint32_t turn = 1; turn <= TURNS; turn++) {
        heard h = {.answer = prompt + count};
        sem_init(&h.end, 0, 0);
        const double begun = gb_seconds();
        submit(scheduler, prompt, count, 0, &h);
        wait_for(&h.end);
        printf("turn %u: %u tokens, %u of them not run, the first token after %.1f ms\n", turn, count,
               h.cached, 1e3 * (h.first - begun));
        fill(prompt + count + ANSWER, NEXT_TURN, turn + 5);
        count += ANSWER + NEXT_TURN;
        sleep(1);
    }
}

int main(int count, char **arguments) {
    const uint32_t slots = number_at(count, arguments, 2, 8), requests = number_at(count, arguments, 3, 32),
                   host = number_at(count, arguments, 4, 1024);
    gumbel_program *program;
    gumbel_engine *engine;
    gumbel_scheduler *scheduler;
    gumbel_error error;
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = count > 5 ? arguments[5] : NULL,
                                           .slots = (int)slots,
                                           .max_context = CONTEXT};
    const gumbel_scheduler_options kept = {
        .size = sizeof kept, .host_bytes = (uint64_t)host << 20, .no_prefix_cache = host == 0};
    if (count < 2 || slots == 0 || requests > MOST_REQUESTS) {
        fprintf(stderr, "usage: bench_schedule_prefixes PROGRAM [SLOTS [REQUESTS [MIB [BACKEND]]]]\n");
        return 2;
    }
    must(gumbel_program_open(arguments[1], &program, &error), &error);
    must(gumbel_engine_create(program, &options, &engine, &error), &error);
    for (int round = 0; round < ROUNDS; round++) { /* the first one pays for graphs and memory */
        must(gumbel_scheduler_create(engine, &kept, &scheduler, &error), &error);
        all_at_once(scheduler, requests);
        gumbel_scheduler_destroy(scheduler);
    }
    must(gumbel_scheduler_create(engine, &kept, &scheduler, &error), &error);
    turns(scheduler);
    gumbel_scheduler_destroy(scheduler);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    return 0;
}
