/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of one engine that do everything that sessions can, in any order and together: prompts cut
 * anywhere, tokens drawn in batches, drafts, forks, rewinds, snapshots, files, cancels. Each token must be
 * the one that a session alone on another engine draws, which is given the same history at once; its
 * instruction set and threads are others.
 */
#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "bundled.h"
#include "cases.h"
#include "support/temporary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS, SESSIONS, CHECKED, ACCEPTED };
enum { SLOTS = 4, DRAFTS = 5, CONTEXT = 256, ACTIONS = 60, MOST_TOKENS = 48, FILES = 2, NO_TOKEN = -1 };

/* A run of tokens, and the token that was drawn after it. */
typedef struct event {
    uint32_t first, count; /* of history.tokens */
    int32_t drawn;         /* NO_TOKEN: none was wanted */
    uint64_t seed;
    gumbel_sampling sampling;
} event;

/* What must be done again to get a session's state. */
typedef struct history {
    int32_t tokens[CONTEXT];
    event events[CONTEXT];
    uint32_t position, event_count;
    uint32_t answer_start; /* tokens from here on are the answer that goes on */
    int32_t pending;       /* drawn by gumbel_next, which gumbel_append and gumbel_generate run first */
} history;

typedef struct tried_session {
    gumbel_session *session; /* NULL: the place is free */
    history history;
} tried_session;

typedef struct soak {
    random_source source;
    uint64_t *counts;
    uint32_t vocab_size, max_bias, step_tokens;
    gumbel_engine *engine, *alone;
    tried_session sessions[SLOTS];
    history files[FILES];
    bool has_file[FILES];
} soak;

static gumbel_error error;

static void must(gumbel_status status, const char *what) {
    if (status != GUMBEL_OK)
        fail_case("%s: %s", what, error.message);
}

/* ---- The history, and what a session alone makes of it ------------------------------------------------- */

static int32_t last_drawn(const history *h) {
    return h->event_count > 0 ? h->events[h->event_count - 1].drawn : NO_TOKEN;
}

static void add_event(history *h, const int32_t *tokens, uint32_t count, const gumbel_sampling *sampling,
                      uint64_t seed, int32_t drawn) {
    const bool goes_on = count == 1 && tokens[0] == last_drawn(h);
    memcpy(h->tokens + h->position, tokens, count * sizeof *tokens);
    h->events[h->event_count++] =
        (event){.first = h->position, .count = count, .drawn = drawn, .seed = seed, .sampling = *sampling};
    h->position += count;
    if (!goes_on)
        h->answer_start = h->position;
    h->pending = NO_TOKEN;
}

/* Forgets what came after the position. The last event draws nothing then, unless its token is what followed.
 */
static void cut_history(history *h, uint32_t position) {
    h->pending = NO_TOKEN;
    if (position == h->position)
        return;
    const bool in_answer = position >= h->answer_start;
    const int32_t following = h->tokens[position];
    while (h->event_count > 0 && h->events[h->event_count - 1].first >= position)
        h->event_count--;
    if (h->event_count > 0) {
        event *last = &h->events[h->event_count - 1];
        last->count = position - last->first;
        if (!in_answer || last->drawn != following)
            last->drawn = NO_TOKEN;
    }
    h->position = position;
    if (h->answer_start > position)
        h->answer_start = position;
}

static gumbel_engine *new_engine(soak *s, const gumbel_program *program, bool is_alone) {
    gumbel_engine *engine;
    gumbel_engine_options options = {.size = sizeof options,
                                     .max_context = CONTEXT,
                                     .lock = GUMBEL_LOCK_NONE,
                                     .snapshots = !is_alone,
                                     .slots = is_alone ? 1 : SLOTS,
                                     .draft_tokens = is_alone ? 0 : DRAFTS,
                                     .step_tokens = is_alone ? 0 : s->step_tokens,
                                     .threads = is_alone ? 1 : 2};
    if (is_alone) {
        const gb_vector_kernels *set = gb_available_vector_kernels(random_below(&s->source, 3));
        options.cpu_isa = set ? set->name : NULL;
        options.unfused = random_once_in(&s->source, 4);
    }
    must(gumbel_engine_create(program, &options, &engine, &error), "engine");
    return engine;
}

/* Runs the history on the other engine: prompts whole, each token drawn again. */
static void check_history(soak *s, const history *h) {
    gumbel_session *session;
    must(gumbel_session_create(s->alone, &session, &error), "session alone");
    for (uint32_t i = 0; i < h->event_count; i++) {
        const event *e = &h->events[i];
        gumbel_result result = {.size = sizeof result, .token = NO_TOKEN};
        const gumbel_request request = {.size = sizeof request,
                                        .session = session,
                                        .sampling = &e->sampling,
                                        .tokens = h->tokens + e->first,
                                        .token_count = e->count,
                                        .result = e->drawn != NO_TOKEN ? &result : NULL};
        gumbel_session_set_seed(session, e->seed);
        must(gumbel_step(s->alone, &request, 1, &error), "step alone");
        if (result.token != e->drawn)
            fail_case("token %d at position %u of %u; a session alone draws %d (event %u of %u, temperature "
                      "%g, seed %llu)",
                      e->drawn, e->first + e->count, h->position, result.token, i, h->event_count,
                      (double)e->sampling.temperature, (unsigned long long)e->seed);
        s->counts[CHECKED] += e->drawn != NO_TOKEN;
    }
    gumbel_session_destroy(session);
}

/* ---- What sessions do ---------------------------------------------------------------------------------- */

static uint32_t room_of(const tried_session *t) {
    return CONTEXT - t->history.position - (t->history.pending != NO_TOKEN);
}

static gumbel_sampling any_sampling(soak *s) {
    gumbel_sampling sampling = {.size = sizeof sampling, .temperature = 1, .top_p = 1};
    if (random_once_in(&s->source, 4))
        sampling.temperature = 0;
    if (random_once_in(&s->source, 3))
        sampling.top_k = 1 + (int32_t)random_below(&s->source, 50);
    if (random_once_in(&s->source, 3))
        sampling.top_p = 0.9f;
    if (s->max_bias == 0) /* a minimal sampler */
        return sampling;
    if (random_once_in(&s->source, 3))
        sampling.min_p = 0.02f;
    if (random_once_in(&s->source, 3)) {
        sampling.repetition_penalty = 1.2f;
        sampling.presence_penalty = 0.5f;
        sampling.frequency_penalty = 0.3f;
        sampling.penalized = (gumbel_penalized)random_below(&s->source, 3);
    }
    return sampling;
}

/* Gives up on a session; its tokens are looked at before they are forgotten. */
static void forget(soak *s, tried_session *t) {
    if (t->session) {
        check_history(s, &t->history);
        gumbel_session_destroy(t->session);
    }
    *t = (tried_session){.history.pending = NO_TOKEN};
}

static void begin(soak *s, tried_session *t) {
    forget(s, t);
    must(gumbel_session_create(s->engine, &t->session, &error), "session");
    s->counts[SESSIONS]++;
}

static void append(soak *s, tried_session *t) {
    static const gumbel_sampling none = {.size = sizeof none};
    int32_t tokens[MOST_TOKENS];
    history *h = &t->history;
    uint32_t count = 1 + (uint32_t)random_below(&s->source, MOST_TOKENS);
    if (count > room_of(t))
        return;
    draw_tokens(&s->source, s->vocab_size, tokens, count);
    must(gumbel_session_append(t->session, tokens, count, &error), "append");
    if (h->pending != NO_TOKEN)
        add_event(h, &(int32_t){h->pending}, 1, &none, 0, NO_TOKEN);
    add_event(h, tokens, count, &none, 0, NO_TOKEN);
}

/* The tokens of a session's next request: the one that was drawn, or a prompt. */
static uint32_t next_tokens(soak *s, const tried_session *t, int32_t *tokens, uint32_t most) {
    const history *h = &t->history;
    int32_t drawn = last_drawn(h);
    if (drawn != NO_TOKEN && !random_once_in(&s->source, 5)) {
        tokens[0] = drawn;
        return 1;
    }
    uint32_t count = 1 + (uint32_t)random_below(&s->source, random_once_in(&s->source, 3) ? MOST_TOKENS : 3);
    if (count > room_of(t))
        count = room_of(t);
    count = count < most ? count : most;
    draw_tokens(&s->source, s->vocab_size, tokens, count);
    return count;
}

/* A draft behind the token that was drawn. Some are right for a while, because a bias makes them so. Returns
 * how many tokens it has. */
static uint32_t draw_draft(soak *s, gumbel_sampling *sampling, int32_t *draft, uint32_t most) {
    static const gumbel_bias favoured = {17, 1000};
    const uint32_t count = (uint32_t)random_below(&s->source, (most < DRAFTS ? most : DRAFTS) + 1);
    draw_tokens(&s->source, s->vocab_size, draft, count);
    if (s->max_bias == 0 || random_once_in(&s->source, 3))
        return count;
    sampling->bias = &favoured;
    sampling->bias_count = 1;
    const uint32_t right = (uint32_t)random_below(&s->source, count + 1);
    for (uint32_t i = 0; i < right; i++)
        draft[i] = favoured.token;
    return count;
}

/* Notes what a request has run and drawn, a row after the other. */
static void add_rows(soak *s, history *h, const gumbel_request *request, const gumbel_result *results) {
    const uint32_t accepted = request->result ? results[0].accepted : 0;
    add_event(h, request->tokens, (uint32_t)request->token_count, request->sampling, results[0].seed,
              results[0].token);
    for (uint32_t r = 1; r <= accepted; r++)
        add_event(h, &request->draft[r - 1], 1, request->sampling, results[r].seed, results[r].token);
    s->counts[ACCEPTED] += accepted;
}

/* One step of all sessions that have room, or of some of them. Each has its own settings. */
static void step(soak *s) {
    gumbel_request requests[SLOTS];
    gumbel_result results[SLOTS][DRAFTS + 1];
    gumbel_sampling sampling[SLOTS];
    int32_t tokens[SLOTS][MOST_TOKENS], drafts[SLOTS][DRAFTS];
    tried_session *of[SLOTS];
    size_t count = 0;
    uint32_t left = s->step_tokens;
    for (int i = 0; i < SLOTS; i++) {
        tried_session *t = &s->sessions[i];
        if (!t->session || room_of(t) < 2 || left == 0 || random_once_in(&s->source, 4))
            continue;
        uint32_t taken = next_tokens(s, t, tokens[count], left);
        left -= taken;
        sampling[count] = any_sampling(s);
        gumbel_session_set_seed(t->session, random_bits(&s->source));
        for (int r = 0; r <= DRAFTS; r++)
            results[count][r] = (gumbel_result){.size = sizeof **results, .token = NO_TOKEN};
        requests[count] = (gumbel_request){.size = sizeof *requests,
                                           .session = t->session,
                                           .tokens = tokens[count],
                                           .token_count = taken,
                                           .result = random_once_in(&s->source, 4) ? NULL : results[count],
                                           .sampling = &sampling[count],
                                           .draft = drafts[count]};
        if (requests[count].result && taken == 1 && tokens[count][0] == last_drawn(&t->history)) {
            const uint32_t room = room_of(t) - 2;
            requests[count].draft_count =
                draw_draft(s, &sampling[count], drafts[count], left < room ? left : room);
            left -= (uint32_t)requests[count].draft_count;
        }
        of[count++] = t;
    }
    must(gumbel_step(s->engine, requests, count, &error), "step");
    for (size_t i = 0; i < count; i++)
        add_rows(s, &of[i]->history, &requests[i], results[i]);
}

/* A prompt and some tokens after it, one of which may be cancelled. */
static void generate(soak *s, tried_session *t) {
    int32_t tokens[MOST_TOKENS + 1];
    history *h = &t->history;
    const gumbel_sampling sampling = any_sampling(s);
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &sampling,
                                             .ignore_stop = true,
                                             .snapshot = random_once_in(&s->source, 2)};
    uint32_t count = 1 + (uint32_t)random_below(&s->source, MOST_TOKENS), pending = h->pending != NO_TOKEN;
    uint32_t answer = 1 + (uint32_t)random_below(&s->source, 8);
    if (count + answer + 1 > room_of(t))
        return;
    if (pending)
        tokens[0] = h->pending;
    draw_tokens(&s->source, s->vocab_size, tokens + pending, count);
    gumbel_session_set_seed(t->session, random_bits(&s->source));
    must(gumbel_generate(t->session, tokens + pending, count, &options, &error), "generate");
    for (uint32_t i = 0; i < answer; i++) {
        gumbel_generated next = {.size = sizeof next};
        if (i > 0 && random_once_in(&s->source, 30)) {
            gumbel_session_cancel(t->session);
            if (gumbel_next(t->session, &next, &error) != GUMBEL_ERROR_CANCELLED)
                fail_case("a cancelled token came");
            return;
        }
        must(gumbel_next(t->session, &next, &error), "next");
        if (i == 0)
            add_event(h, tokens, count + pending, &sampling, next.seed, next.token);
        else
            add_event(h, &(int32_t){last_drawn(h)}, 1, &sampling, next.seed, next.token);
        h->pending = next.token;
    }
}

static void rewind_session(soak *s, tried_session *t) {
    if (random_once_in(&s->source, 2))
        check_history(s, &t->history);
    uint32_t back = (uint32_t)random_below(&s->source, random_once_in(&s->source, 2) ? 6 : CONTEXT);
    uint32_t position = back < t->history.position ? t->history.position - back : 0;
    must(gumbel_session_rewind(t->session, position, &error), "rewind");
    cut_history(&t->history, position);
}

static void fork_session(soak *s, const tried_session *t) {
    tried_session *copy = &s->sessions[random_below(&s->source, SLOTS)];
    if (copy == t)
        return;
    forget(s, copy);
    must(gumbel_session_fork(t->session, &copy->session, &error), "fork");
    copy->history = t->history;
    s->counts[SESSIONS]++;
}

static void use_file(soak *s, tried_session *t) {
    static const char *const names[FILES] = {"a.session", "b.session"};
    size_t file = random_below(&s->source, FILES);
    const char *path = temporary_path(names[file]);
    if (random_once_in(&s->source, 2)) {
        must(gumbel_session_save(t->session, path, &error), "save");
        s->files[file] = t->history;
        s->has_file[file] = true;
    } else if (s->has_file[file]) {
        check_history(s, &t->history);
        must(gumbel_session_load(t->session, path, &error), "load");
        t->history = s->files[file];
    }
}

static void act(soak *s) {
    tried_session *t = &s->sessions[random_below(&s->source, SLOTS)];
    uint64_t action = random_below(&s->source, 20);
    s->counts[STEPS]++;
    if (!t->session || action == 0)
        begin(s, t);
    else if (action == 1)
        fork_session(s, t);
    else if (action <= 3)
        rewind_session(s, t);
    else if (action == 4)
        use_file(s, t);
    else if (action == 5)
        must(gumbel_session_snapshot(t->session, &error), "snapshot");
    else if (action <= 7)
        append(s, t);
    else if (action <= 11)
        generate(s, t);
    else
        step(s);
    if (t->session && gumbel_session_position(t->session, NULL) != t->history.position)
        fail_case("position %u after action %u, expected %u", gumbel_session_position(t->session, NULL),
                  (unsigned)action, t->history.position);
}

/* One of the programs that have a sampler. */
static gumbel_program *open_any_program(soak *s) {
    for (;;) {
        gumbel_program *program;
        gumbel_program_info info = {.size = sizeof info};
        const char *path = bundled_path(random_below(&s->source, BUNDLED_PROGRAMS));
        must(gumbel_program_open(path, &program, &error), "program");
        must(gumbel_program_get_info(program, &info, &error), "info");
        s->vocab_size = info.vocab_size;
        s->max_bias = info.max_bias;
        if (info.use_sampling)
            return program;
        gumbel_program_close(program);
    }
}

static void run_episode(uint64_t seed, uint64_t *counts) {
    soak *s = calloc(1, sizeof *s);
    if (!s)
        fail_case("no memory");
    s->source = (random_source){seed};
    s->counts = counts;
    s->step_tokens = SLOTS + (uint32_t)random_below(&s->source, 60);
    gumbel_program *program = open_any_program(s);
    s->engine = new_engine(s, program, false);
    s->alone = new_engine(s, program, true);
    for (int i = 0; i < ACTIONS; i++)
        act(s);
    for (int i = 0; i < SLOTS; i++)
        forget(s, &s->sessions[i]);
    gumbel_engine_destroy(s->engine);
    gumbel_engine_destroy(s->alone);
    gumbel_program_close(program);
    free(s);
}

int main(int argument_count, char **arguments) {
    static const harness h = {.name = "soak",
                              .counted = {"actions", "sessions", "tokens compared", "accepted"},
                              .prepare = export_bundled,
                              .run_case = run_episode};
    return run_harness(&h, argument_count, arguments);
}
