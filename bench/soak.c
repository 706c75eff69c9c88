/* SPDX-License-Identifier: Apache-2.0
 *
 * A scheduler under a mixed load for many steps, and then every request alone: the tokens must be the same.
 * Prompts, settings and who is cancelled when are drawn from the seed.
 *
 *     bench_soak PROGRAM [--backend NAME] [--threads T] [--steps N] [--sequences S] [--seed K] [--longest L]
 *                [--answer A] [--check N]
 *
 * Prompts have up to L tokens, answers up to A; every N-th request is compared. By default cpu, a thread a
 * core, 20000 steps, 16 sequences, seed 1, 1024 and 256 tokens, and all requests.
 *
 * The exit status is 1 where a token differs.
 */
#include "arguments.h"
#include "base/clock.h"
#include "soak_load.h"

#include <inttypes.h>
#include <string.h>

enum { LONGEST = 1 << 20, PROGRESS = 500 };

/* ---- Arguments ----------------------------------------------------------------------------------------- */

typedef struct choices {
    const char *program, *backend;
    uint32_t threads, steps, sequences, seed, longest, answer, check;
} choices;

/* The number that an argument sets; NULL: there is no such argument. */
static uint32_t *number_named(choices *c, const char *name) {
    const struct {
        const char *name;
        uint32_t *number;
    } numbers[] = {{"--threads", &c->threads}, {"--steps", &c->steps},     {"--sequences", &c->sequences},
                   {"--seed", &c->seed},       {"--longest", &c->longest}, {"--answer", &c->answer},
                   {"--check", &c->check}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i].name, name) == 0)
            return numbers[i].number;
    return NULL;
}

static bool read_arguments(int count, char **words, choices *c) {
    *c = (choices){.steps = 20000, .sequences = 16, .seed = 1, .longest = 1024, .answer = 256, .check = 1};
    c->program = count % 2 == 0 ? words[1] : NULL;
    for (int i = 2; i + 1 < count; i += 2) {
        uint32_t *number = number_named(c, words[i]);
        if (number)
            *number = number_at(count, words, i + 1, 0);
        else if (strcmp(words[i], "--backend") == 0)
            c->backend = words[i + 1];
        else
            return false;
    }
    return c->program && c->longest <= LONGEST && c->steps > 0 && c->sequences > 0 &&
           c->sequences <= MOST_SEQUENCES && c->longest > 0 && c->answer > 0 && c->answer <= LONGEST &&
           c->check > 0;
}

/* ---- Alone --------------------------------------------------------------------------------------------- */

/* What was compared. */
typedef struct equal {
    uint64_t requests, tokens;
} equal;

static void begin_alone(soak *s, gumbel_session *session, const drawn_request *r, uint32_t answer) {
    gumbel_error error;
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &r->sampling,
                                             .max_new_tokens = r->max_new_tokens,
                                             .ignore_stop = r->ignore_stop};
    draw_prompt(&s->limits, r, s->prompt);
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, gumbel_answer_seed(r->seed, answer));
    must(gumbel_generate(session, s->prompt, r->prompt_tokens, &options, &error), &error);
}

static bool report(const asked *a, uint32_t answer, const char *text, int64_t together, int64_t alone) {
    print_request(stderr, &a->drawn);
    fprintf(stderr, "answer %u, token %s: %" PRId64 ", alone %" PRId64 " (it ended in step %" PRIu64 ")\n",
            answer, text, together, alone, a->end_step);
    return false;
}

/* A cancelled answer is the beginning of what it is alone. */
static bool is_equal_alone(soak *s, gumbel_session *session, const asked *a, uint32_t answer) {
    const outcome *o = &a->answers[answer];
    gumbel_generated next = {.size = sizeof next};
    gumbel_error error;
    char place[32];
    begin_alone(s, session, &a->drawn, answer);
    for (uint32_t i = 0; i < o->count; i++) {
        snprintf(place, sizeof place, "%u of %u", i, o->count);
        if (next.finish)
            return report(a, answer, place, o->tokens[i], -1);
        if (gumbel_next(session, &next, &error) != GUMBEL_OK) {
            fprintf(stderr, "alone: %s\n", error.message);
            return report(a, answer, place, o->tokens[i], -1);
        }
        if (next.token != o->tokens[i])
            return report(a, answer, place, o->tokens[i], next.token);
    }
    if (o->is_whole && next.finish != o->finish)
        return report(a, answer, "finish", o->finish, next.finish);
    return true;
}

static bool check_request(soak *s, gumbel_session *session, const asked *a, equal *e) {
    uint32_t tokens = 0;
    for (uint32_t i = 0; i < a->drawn.answers; tokens += a->answers[i++].count)
        if (!is_equal_alone(s, session, a, i))
            return false;
    e->requests += tokens > 0;
    e->tokens += tokens;
    return true;
}

/* Every check-th request, until one differs. Progress is for those who must stop a long run. */
static bool check_requests(soak *s, gumbel_session *session, uint32_t check, equal *e) {
    for (const asked *a = s->first; a; a = a->next) {
        if (a->drawn.number % check != 0)
            continue;
        if (!check_request(s, session, a, e))
            return false;
        if (e->requests > 0 && e->requests % PROGRESS == 0)
            fprintf(stderr, "request %u of %u: equal so far\n", a->drawn.number, s->requests);
    }
    return true;
}

static bool answer_alone(soak *s, uint32_t check) {
    gumbel_session *session;
    gumbel_error error;
    equal e = {0};
    const double begun = gb_seconds();
    must(gumbel_session_create(s->engine, &session, &error), &error);
    const bool is_equal = check_requests(s, session, check, &e);
    printf("%" PRIu64 " requests of %" PRIu64 " tokens equal alone%s (%.1f s)\n", e.requests, e.tokens,
           is_equal ? "" : ", the next one is not", gb_seconds() - begun);
    gumbel_session_destroy(session);
    return is_equal;
}

/* ---- Both ---------------------------------------------------------------------------------------------- */

static void set_limits(soak *s, const choices *c, const gumbel_program_info *info) {
    const uint32_t asked_for = c->longest + c->answer;
    s->limits = (request_limits){.seed = c->seed,
                                 .vocabulary = info->vocab_size,
                                 .max_bias = info->max_bias,
                                 .longest = c->longest,
                                 .answer = c->answer};
    s->limits.context = asked_for < info->max_context ? asked_for : info->max_context;
    if (s->limits.longest > s->limits.context)
        s->limits.longest = s->limits.context;
}

static void make_engine(soak *s, const choices *c, const gumbel_program *program) {
    gumbel_program_info info = {.size = sizeof info};
    gumbel_error error;
    must(gumbel_program_get_info(program, &info, &error), &error);
    set_limits(s, c, &info);
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = c->backend,
                                           .threads = (int)c->threads,
                                           .slots = (int)c->sequences,
                                           .max_context = s->limits.context};
    must(gumbel_engine_create(program, &options, &s->engine, &error), &error);
}

int main(int count, char **arguments) {
    static soak s;
    choices c;
    gumbel_program *program;
    gumbel_error error;
    if (!read_arguments(count, arguments, &c)) {
        fprintf(stderr,
                "usage: bench_soak PROGRAM [--backend NAME] [--threads T] [--steps N] [--sequences S] "
                "[--seed K] [--longest L] [--answer A] [--check N]\n");
        return 2;
    }
    must(gumbel_program_open(c.program, &program, &error), &error);
    s = (soak){.sequences = c.sequences, .steps = c.steps, .state = c.seed, .end = &s.first};
    make_engine(&s, &c, program);
    s.prompt = allocate(s.limits.longest, sizeof *s.prompt);
    sem_init(&s.done, 0, 0);
    answer_together(&s);
    const bool is_equal = !s.has_failed && answer_alone(&s, c.check);
    sem_destroy(&s.done);
    free_requests(&s);
    free(s.prompt);
    gumbel_engine_destroy(s.engine);
    gumbel_program_close(program);
    return is_equal ? 0 : 1;
}
