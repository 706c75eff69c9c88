/* SPDX-License-Identifier: Apache-2.0
 *
 * Another program guesses for the answers of a scheduler: they are those of fresh sessions alone without
 * drafts, whatever it guesses, however many there are and however they end; a model that guesses for itself
 * is always right.
 */
#include "run/handles.h"
#include "support/backend.h"
#include "support/programs/bundled_program.h"
#include "support/programs/random_program.h"
#include "support/test_arguments.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    VOCAB = 160,
    MOST_USERS = 16,
    TURNS = 2,
    PROMPT = 11,
    MORE = 7,
    ANSWER = 24,
    CONTEXT = 128,
    DRAFT = 5
};

static gumbel_error error;

static const gumbel_bias biases[] = {{7, -INFINITY}, {11, 1.5f}, {40, -2}};
static const gumbel_sampling settings[] = {
    {.size = sizeof(gumbel_sampling), .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 0.7f, .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 1, .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 1.5f, .top_p = 1},
    {.size = sizeof(gumbel_sampling), .top_p = 1, .repetition_penalty = 1.3f, .presence_penalty = 0.5f},
    {.size = sizeof(gumbel_sampling),
     .temperature = 1,
     .top_k = 40,
     .top_p = 0.95f,
     .frequency_penalty = 0.6f,
     .penalized = GUMBEL_PENALIZED_GENERATED,
     .bias = biases,
     .bias_count = 3},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static const char *const configs[] = {"qwen.json", "small.json"};
enum { CONFIGS = sizeof configs / sizeof *configs };

/* ---- Engines ------------------------------------------------------------------------------------------- */

typedef struct side {
    gumbel_engine *draft_engine, *engine;
    gumbel_scheduler *scheduler;
    uint32_t notices;
} side;

static gumbel_engine_options engine_options(int slots) {
    return (gumbel_engine_options){.size = sizeof(gumbel_engine_options),
                                   .backend = GUMBEL_TEST_BACKEND,
                                   .slots = slots,
                                   .threads = 2,
                                   .snapshots = true};
}

/* Whose steps are said to take so long. */
static gumbel_engine *make_engine(const gumbel_program *program, const gumbel_engine_options *options,
                                  double seconds) {
    gumbel_engine *engine;
    assert_ok(gumbel_engine_create(program, options, &engine, &error), &error);
    engine->step_times.seconds[0] = seconds;
    engine->step_times.samples[0] = 1;
    engine->step_times.is_fixed = true;
    return engine;
}

static void count_notices(void *user, gumbel_log_level level, const char *line) {
    (void)level;
    if (strstr(line, "no more drafts of the draft model: "))
        ++*(uint32_t *)user;
}

static void make_side(const gumbel_program *program, const gumbel_program *draft, int slots,
                      gumbel_engine_options of_draft, side *s) {
    const gumbel_scheduler_options options = {.size = sizeof options};
    gumbel_engine_options of_target = engine_options(slots);
    *s = (side){.draft_engine = make_engine(draft, &of_draft, 0.05)};
    of_target.snapshots = false;
    of_target.draft_engine = s->draft_engine;
    of_target.draft_tokens = DRAFT;
    of_target.log = count_notices;
    of_target.log_user = &s->notices;
    s->engine = make_engine(program, &of_target, 1);
    assert_ok(gumbel_scheduler_create(s->engine, &options, &s->scheduler, &error), &error);
}

/* The draft engine's sessions have been given back with the scheduler's. */
static void destroy_side(const side *s) {
    gumbel_scheduler_destroy(s->scheduler);
    for (uint32_t i = 0; i < s->draft_engine->slots; i++)
        assert_false(s->draft_engine->sessions[i].in_use);
    gumbel_engine_destroy(s->engine);
    gumbel_engine_destroy(s->draft_engine);
}

/* ---- Answers ------------------------------------------------------------------------------------------- */

typedef struct answer {
    side *side;
    uint64_t request;
    uint32_t cancel_at; /* after so many tokens; 0: never */
    int32_t tokens[ANSWER];
    uint64_t seeds[ANSWER];
    float logprobs[ANSWER];
    uint32_t count;
    unsigned last_events;
    gumbel_status status;
    gumbel_finish finish;
    gumbel_usage usage;
} answer;

/* What users ask, each the same of both sides. */
typedef struct asking {
    uint32_t users, turns, prompt; /* tokens of a first prompt */
    bool cancels, only_model;
    const gumbel_tokenizer *tokenizer;
    const gumbel_grammar *grammar;
    uint32_t vocab;
} asking;

static void handle_event(void *user, const gumbel_event *event) {
    answer *a = user;
    if (event->type == GUMBEL_EVENT_TOKEN) {
        a->tokens[a->count] = event->token;
        a->seeds[a->count] = event->seed;
        a->logprobs[a->count++] = event->logprob;
        if (a->count == a->cancel_at)
            gumbel_scheduler_cancel(a->side->scheduler, event->request);
        return;
    }
    a->last_events++;
    a->status = event->status;
    a->finish = event->finish;
    a->usage = *event->usage;
}

static const gumbel_sampling *settings_of(uint32_t user) {
    return &settings[user % SETTINGS];
}

static void submit(const asking *asked, uint32_t user, const int32_t *tokens, uint32_t count, uint64_t seed,
                   answer *a) {
    const bool by_model = asked->only_model || user % 2 == 0;
    const gumbel_submission submission = {.size = sizeof submission,
                                          .tokens = tokens,
                                          .token_count = count,
                                          .callback = handle_event,
                                          .user = a,
                                          .sampling = settings_of(user),
                                          .has_seed = true,
                                          .seed = seed,
                                          .wants_logprob = true,
                                          .ignore_stop = !asked->grammar,
                                          .max_new_tokens = ANSWER - user % 3,
                                          .tokenizer = asked->tokenizer,
                                          .grammar = asked->grammar,
                                          .drafting =
                                              by_model ? GUMBEL_DRAFTING_MODEL : GUMBEL_DRAFTING_AUTO};
    assert_ok(gumbel_scheduler_submit(a->side->scheduler, &submission, &a->request, &error), &error);
}

static void answer_alone(const asking *asked, gumbel_session *session, uint32_t user, const int32_t *tokens,
                         uint32_t count, uint64_t seed, answer *a) {
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = settings_of(user),
                                             .max_new_tokens = ANSWER - user % 3,
                                             .wants_logprob = true,
                                             .ignore_stop = !asked->grammar,
                                             .tokenizer = asked->tokenizer,
                                             .grammar = asked->grammar};
    gumbel_generated next = {.size = sizeof next};
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, seed);
    assert_ok(gumbel_generate(session, tokens, count, &options, &error), &error);
    while (next.finish == GUMBEL_FINISH_NONE) {
        assert_ok(gumbel_next(session, &next, &error), &error);
        a->tokens[a->count] = next.token;
        a->seeds[a->count] = next.seed;
        a->logprobs[a->count++] = next.logprob;
    }
    a->finish = next.finish;
}

static void assert_same(const answer *alone, const answer *found) {
    assert_int_equal(found->last_events, 1);
    if (found->status != GUMBEL_ERROR_CANCELLED || found->cancel_at == 0) {
        assert_int_equal(found->status, GUMBEL_OK);
        assert_int_equal(found->count, alone->count);
        assert_int_equal(found->finish, alone->finish);
    }
    assert_true(found->count <= alone->count);
    assert_memory_equal(found->tokens, alone->tokens, found->count * sizeof *found->tokens);
    assert_memory_equal(found->seeds, alone->seeds, found->count * sizeof *found->seeds);
    assert_memory_equal(found->logprobs, alone->logprobs, found->count * sizeof *found->logprobs);
}

static void wait_for(const side *s, uint64_t ended) {
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    do
        assert_ok(gumbel_scheduler_get_stats(s->scheduler, &stats, &error), &error);
    while (stats.finished + stats.failed < ended || stats.reruns_due > 0);
    assert_int_equal(stats.free_slots + stats.kept_slots, stats.slots);
}

/* Turns of all users at once, with and without drafts. Returns what drafts did. */
static gumbel_draft_stats converse(const gumbel_program *program, side *s, const asking *asked) {
    const gumbel_engine_options options = engine_options(1);
    static int32_t tokens[MOST_USERS][CONTEXT];
    static answer found[MOST_USERS];
    gumbel_engine *engine = make_engine(program, &options, 1);
    gumbel_session *session;
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    uint32_t counts[MOST_USERS];
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    for (uint32_t u = 0; u < asked->users; u++)
        random_tokens(u, asked->vocab, tokens[u], counts[u] = asked->prompt);
    for (uint32_t t = 0; t < asked->turns; t++) {
        memset(found, 0, sizeof found);
        for (uint32_t u = 0; u < asked->users; u++) {
            found[u].side = s;
            found[u].cancel_at = asked->cancels && u % 3 == 1 ? 1 + u : 0;
            submit(asked, u, tokens[u], counts[u], 10 * t + u, &found[u]);
        }
        wait_for(s, (uint64_t)asked->users * (t + 1));
        for (uint32_t u = 0; u < asked->users; u++) {
            answer alone = {0};
            answer_alone(asked, session, u, tokens[u], counts[u], 10 * t + u, &alone);
            assert_same(&alone, &found[u]);
            memcpy(tokens[u] + counts[u], found[u].tokens, found[u].count * sizeof *found[u].tokens);
            random_tokens(70 + u, asked->vocab, tokens[u] + counts[u] + found[u].count, MORE);
            counts[u] += found[u].count + MORE;
        }
    }
    gumbel_engine_destroy(engine);
    assert_ok(gumbel_scheduler_get_stats(s->scheduler, &stats, &error), &error);
    return stats.drafts;
}

/* ---- The same answers ---------------------------------------------------------------------------------- */

static const uint32_t numbers[] = {1, 4, 16};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static void its_own_guesses_are_accepted(void **state) {
    (void)state;
    for (uint32_t c = 0; c < CONFIGS; c++) {
        gumbel_program *program = open_random_program(configs[c], false);
        for (uint32_t n = 0; n < NUMBERS; n++) {
            const asking asked = {
                .users = numbers[n], .turns = TURNS, .prompt = PROMPT, .only_model = true, .vocab = VOCAB};
            side s;
            make_side(program, program, (int)asked.users, engine_options((int)asked.users), &s);
            const gumbel_draft_stats drafts = converse(program, &s, &asked);
            assert_int_equal(drafts.accepted, drafts.proposed);
            assert_true(drafts.accepted > (asked.users < 4 ? asked.users : 4) * ANSWER); /* rows cost, too */
            assert_int_equal(s.notices, 0);
            destroy_side(&s);
        }
        gumbel_program_close(program);
    }
}

static void compare(const gumbel_program *program, const gumbel_program *draft) {
    for (uint32_t n = 0; n < NUMBERS; n++) {
        const asking asked = {
            .users = numbers[n], .turns = TURNS, .prompt = PROMPT, .cancels = true, .vocab = VOCAB};
        side s;
        make_side(program, draft, (int)asked.users, engine_options((int)asked.users), &s);
        assert_true(converse(program, &s, &asked).proposed > 0);
        destroy_side(&s);
    }
}

static void a_draft_head_changes_no_answer(void **state) {
    (void)state;
    gumbel_program *program = export_random_program("qwen.json", (gumbel_export_options){.draft_head = true});
    compare(program, gumbel_program_draft_head(program));
    gumbel_program_close(program);
}

/* The same weights in fewer bits, and a program that has nothing in common but the vocabulary. */
static void answers_are_the_same(void **state) {
    (void)state;
    for (uint32_t c = 0; c < CONFIGS; c++) {
        gumbel_program *program = open_random_program(configs[c], false);
        gumbel_program *drafts[] = {
            export_random_program(configs[c], (gumbel_export_options){.quantize = "int8"}),
            export_random_program(configs[1 - c], (gumbel_export_options){.sampler = "minimal"})};
        compare(program, drafts[0]);
        compare(program, drafts[1]);
        gumbel_program_close(drafts[1]);
        gumbel_program_close(drafts[0]);
        gumbel_program_close(program);
    }
}

/* Answers share what sessions there are, more answers than slots among them. */
static void few_sessions_are_shared(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("small.json", false);
    const asking asked = {.users = 12, .turns = TURNS, .prompt = PROMPT, .cancels = true, .vocab = VOCAB};
    side s;
    make_side(program, program, 5, engine_options(2), &s);
    const gumbel_draft_stats drafts = converse(program, &s, &asked);
    assert_true(drafts.accepted > 0);
    destroy_side(&s);
    gumbel_program_close(program);
}

/* A long prompt is run piece by piece. */
static void long_prompts_are_caught_up_with(void **state) {
    (void)state;
    for (uint32_t c = 0; c < CONFIGS; c++) {
        gumbel_program *program = open_random_program(configs[c], false);
        const asking asked = {.users = 4, .turns = 1, .prompt = 90, .only_model = true, .vocab = VOCAB};
        gumbel_engine_options of_draft = engine_options(4);
        of_draft.prefill_chunk = 8;
        side s;
        make_side(program, program, 4, of_draft, &s);
        const gumbel_draft_stats drafts = converse(program, &s, &asked);
        assert_true(drafts.accepted > 0 && drafts.accepted == drafts.proposed);
        destroy_side(&s);
        gumbel_program_close(program);
    }
}

static void a_shorter_context_ends_drafts(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("small.json", false);
    const asking asked = {.users = 4, .turns = TURNS, .prompt = PROMPT, .vocab = VOCAB};
    gumbel_engine_options of_draft = engine_options(4);
    of_draft.max_context = PROMPT + 9;
    side s;
    make_side(program, program, 4, of_draft, &s);
    assert_true(converse(program, &s, &asked).accepted > 0);
    destroy_side(&s);
    gumbel_program_close(program);
}

/* ---- Bundled models ------------------------------------------------------------------------------------ */

static void guesses_keep_to_a_grammar(void **state) {
    (void)state;
    gumbel_program *program = open_bundled_program("gemma4-tiny", NULL),
                   *draft = open_bundled_program("gemma4-tiny", "int4");
    gumbel_tokenizer *tokenizer;
    gumbel_grammar *grammar;
    const gumbel_grammar_options of_json = {.size = sizeof of_json, .kind = GUMBEL_GRAMMAR_JSON};
    assert_ok(gumbel_tokenizer_create(program, &tokenizer, &error), &error);
    assert_ok(gumbel_grammar_create(tokenizer, &of_json, &grammar, &error), &error);
    const asking asked = {.users = 6,
                          .turns = 1,
                          .prompt = PROMPT,
                          .only_model = true,
                          .tokenizer = tokenizer,
                          .grammar = grammar,
                          .vocab = 2048};
    side s;
    make_side(program, draft, 4, engine_options(4), &s);
    const gumbel_draft_stats drafts = converse(program, &s, &asked);
    assert_true(drafts.accepted > drafts.proposed / 3 && drafts.accepted > 20);
    destroy_side(&s);
    gumbel_grammar_destroy(grammar);
    gumbel_tokenizer_destroy(tokenizer);
    gumbel_program_close(draft);
    gumbel_program_close(program);
}

/* ---- Failures ------------------------------------------------------------------------------------------ */

static gumbel_status refuse_step(gb_backend *backend, gb_batch *batch, gumbel_error *why) {
    (void)backend, (void)batch;
    return gb_fail(why, GUMBEL_ERROR_BACKEND, "out of order");
}

static void answers_outlive_the_draft_engine(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("small.json", false);
    const asking asked = {.users = 4, .turns = TURNS, .prompt = PROMPT, .only_model = true, .vocab = VOCAB};
    side s;
    make_side(program, program, 4, engine_options(4), &s);
    gb_backend *backend = s.draft_engine->backend;
    gb_backend_functions failing = *backend->functions;
    const gb_backend_functions *whole = backend->functions;
    failing.step = refuse_step;
    backend->functions = &failing;
    converse(program, &s, &asked);
    assert_int_equal(s.notices, 1);
    backend->functions = whole;
    destroy_side(&s);
    gumbel_program_close(program);
}

static void a_model_must_be_there(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("small.json", false);
    gumbel_engine_options options = engine_options(1);
    gumbel_scheduler *scheduler;
    answer a = {0};
    options.draft_tokens = DRAFT;
    gumbel_engine *engine = make_engine(program, &options, 1);
    assert_ok(gumbel_scheduler_create(engine, NULL, &scheduler, &error), &error);
    const gumbel_submission submission = {.size = sizeof submission,
                                          .tokens = (int32_t[]){5},
                                          .token_count = 1,
                                          .callback = handle_event,
                                          .user = &a,
                                          .drafting = GUMBEL_DRAFTING_MODEL};
    assert_fails(gumbel_scheduler_submit(scheduler, &submission, NULL, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "drafting by a model needs an engine created with draft_engine");
    gumbel_scheduler_destroy(scheduler);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

int main(int argument_count, char **arguments) {
    read_test_arguments(argument_count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_own_guesses_are_accepted),
        cmocka_unit_test(a_draft_head_changes_no_answer),
        cmocka_unit_test(answers_are_the_same),
        cmocka_unit_test(few_sessions_are_shared),
        cmocka_unit_test(long_prompts_are_caught_up_with),
        cmocka_unit_test(a_shorter_context_ends_drafts),
        cmocka_unit_test(guesses_keep_to_a_grammar),
        cmocka_unit_test(answers_outlive_the_draft_engine),
        cmocka_unit_test(a_model_must_be_there),
    };
    return cmocka_run_group_tests_name("schedule_draft_model", tests, NULL, NULL);
}
