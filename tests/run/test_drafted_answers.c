/* SPDX-License-Identifier: Apache-2.0
 *
 * Drafts change no answer: what gumbel_next gives with drafts is what it gives without them, whatever the
 * settings, and so is the session between two of its tokens. Drafts come from an answer that is predicted
 * with errors by chance, so that they are accepted and refused at any temperature.
 */
#include "run/handles.h"
#include "support/backend.h"
#include "support/poison.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { PROMPT = 11, MOST_TOKENS = 80, CONTEXT = 128, DRAFT = 8, TOP = 3, STOP = 1 };

static gumbel_error error;

static uint32_t chance_state;

/* Below limit. */
static uint32_t chance(uint32_t limit) {
    chance_state = chance_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)chance_state * limit) >> 32);
}

static const gumbel_bias biases[] = {{7, -INFINITY}, {11, 1.5f}, {40, -2}};
static const gumbel_sampling settings[] = {
    {.size = sizeof(gumbel_sampling), .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 0.7f, .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 1, .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 1.5f, .top_p = 1},
    {.size = sizeof(gumbel_sampling),
     .temperature = 1.5f,
     .top_k = 40,
     .top_p = 0.95f,
     .min_p = 0.01f,
     .repetition_penalty = 1.3f,
     .frequency_penalty = 0.6f,
     .presence_penalty = 0.4f,
     .penalized = GUMBEL_PENALIZED_ALL,
     .bias = biases,
     .bias_count = 3},
    {.size = sizeof(gumbel_sampling),
     .temperature = 0.7f,
     .top_p = 0.9f,
     .frequency_penalty = 0.3f,
     .penalized = GUMBEL_PENALIZED_GENERATED},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static const char *const configs[] = {"qwen.json", "small.json"};
enum { CONFIGS = sizeof configs / sizeof *configs };

/* ---- Two sessions that are to be the same -------------------------------------------------------------- */

typedef struct pair {
    gumbel_engine *engines[2]; /* without drafts and with them */
    gumbel_session *sessions[2];
} pair;

static gumbel_engine *make_engine(const gumbel_program *program, uint32_t drafts) {
    gumbel_engine *engine;
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = GUMBEL_TEST_BACKEND,
                                           .slots = 3,
                                           .threads = 2,
                                           .max_context = CONTEXT,
                                           .snapshots = true,
                                           .draft_tokens = drafts};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    engine->step_times.is_fixed = true;
    return engine;
}

static pair make_pair(const gumbel_program *program, uint64_t seed) {
    pair p;
    for (uint32_t i = 0; i < 2; i++) {
        p.engines[i] = make_engine(program, i * DRAFT);
        assert_ok(gumbel_session_create(p.engines[i], &p.sessions[i], &error), &error);
        gumbel_session_set_seed(p.sessions[i], seed);
    }
    return p;
}

static void destroy_pair(const pair *p) {
    for (uint32_t i = 0; i < 2; i++)
        gumbel_engine_destroy(p->engines[i]);
}

static void assert_same_sessions(const pair *p) {
    const int32_t *tokens[2];
    const uint32_t position = gumbel_session_position(p->sessions[0], &tokens[0]);
    assert_int_equal(gumbel_session_position(p->sessions[1], &tokens[1]), position);
    assert_memory_equal(tokens[0], tokens[1], position * sizeof **tokens);
}

static void assert_same_seeds(const pair *p) {
    uint64_t seeds[2];
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(gumbel_session_get_seed(p->sessions[i], &seeds[i], &error), &error);
    assert_int_equal(seeds[0], seeds[1]);
}

static void assert_same_results(const gumbel_generated *a, const gumbel_generated *b) {
    assert_int_equal(a->token, b->token);
    assert_int_equal(a->finish, b->finish);
    assert_int_equal(a->seed, b->seed);
    assert_int_equal(a->top_logprobs, b->top_logprobs);
    assert_memory_equal(&a->logprob, &b->logprob, sizeof a->logprob);
    assert_memory_equal(a->top_tokens, b->top_tokens, a->top_logprobs * sizeof *a->top_tokens);
    assert_memory_equal(a->top_token_logprob, b->top_token_logprob, a->top_logprobs * sizeof(float));
}

/* Draws a token of both. Returns whether they go on. */
static bool draw(const pair *p, int32_t *token) {
    gumbel_generated next[2];
    for (uint32_t i = 0; i < 2; i++) {
        next[i] = (gumbel_generated){.size = sizeof *next};
        assert_ok(gumbel_next(p->sessions[i], &next[i], &error), &error);
    }
    assert_same_results(&next[0], &next[1]);
    assert_same_sessions(p);
    *token = next[0].token;
    return next[0].finish == GUMBEL_FINISH_NONE;
}

static gumbel_generate_options options_of(const gumbel_sampling *sampling, const int32_t *predicted,
                                          size_t count) {
    return (gumbel_generate_options){.size = sizeof(gumbel_generate_options),
                                     .sampling = sampling,
                                     .wants_logprob = true,
                                     .top_logprobs = TOP,
                                     .max_new_tokens = MOST_TOKENS,
                                     .predicted_tokens = predicted,
                                     .predicted_count = count};
}

static void begin(const pair *p, const int32_t *tokens, size_t count,
                  const gumbel_generate_options *options) {
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(gumbel_generate(p->sessions[i], tokens, count, options, &error), &error);
}

static gumbel_draft_stats stats_of(const pair *p) {
    gumbel_draft_stats stats = {.size = sizeof stats};
    assert_ok(gumbel_session_draft_stats(p->sessions[1], &stats, &error), &error);
    return stats;
}

/* The answer of a session alone, in which some tokens are then others. */
static size_t predict(const gumbel_program *program, const int32_t *prompt, uint64_t seed,
                      const gumbel_generate_options *given, uint32_t errors, int32_t *tokens) {
    gumbel_engine *engine = make_engine(program, 0);
    gumbel_session *session;
    gumbel_generated next = {.size = sizeof next};
    size_t count = 0;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, seed);
    assert_ok(gumbel_generate(session, prompt, PROMPT, given, &error), &error);
    while (next.finish == GUMBEL_FINISH_NONE) {
        assert_ok(gumbel_next(session, &next, &error), &error);
        tokens[count++] = errors > 0 && chance(errors) == 0 ? (int32_t)(20 + chance(40)) : next.token;
    }
    gumbel_engine_destroy(engine);
    return count;
}

/* ---- Answers ------------------------------------------------------------------------------------------- */

static void compare_answers(const gumbel_program *program, const gumbel_sampling *sampling, uint64_t seed,
                            bool ignores_stop, gumbel_draft_stats *sum) {
    int32_t prompt[PROMPT], predicted[MOST_TOKENS], token;
    random_tokens((uint32_t)seed, 160, prompt, PROMPT);
    gumbel_generate_options options = options_of(sampling, predicted, 0);
    options.ignore_stop = ignores_stop;
    options.predicted_count = predict(program, prompt, seed, &options, 6, predicted);
    const pair p = make_pair(program, seed);
    begin(&p, prompt, PROMPT, &options);
    while (draw(&p, &token))
        ;
    assert_same_seeds(&p);
    const gumbel_draft_stats stats = stats_of(&p);
    sum->steps += stats.steps;
    sum->proposed += stats.proposed;
    sum->accepted += stats.accepted;
    destroy_pair(&p);
}

static void answers_are_the_same(void **state) {
    (void)state;
    for (uint32_t c = 0; c < CONFIGS; c++) {
        gumbel_program *program = open_random_program(configs[c], false);
        gumbel_draft_stats sum = {0};
        for (uint32_t s = 0; s < SETTINGS; s++)
            for (uint64_t seed = 1; seed <= (uint64_t)shortened(3, 1); seed++)
                compare_answers(program, &settings[s], seed, seed % 2 == 1, &sum);
        assert_true(sum.accepted > sum.steps);
        assert_true(sum.proposed > sum.accepted + 10);
        gumbel_program_close(program);
    }
}

/* Given tokens are a mask for each row, and drafts that are always accepted. */
static void given_tokens_are_drafts(void **state) {
    (void)state;
    enum { GIVEN = 30 };
    gumbel_program *program = open_random_program("qwen.json", false);
    int32_t prompt[PROMPT], given[GIVEN], token;
    random_tokens(3, 160, prompt, PROMPT);
    random_tokens(4, 160, given, GIVEN);
    given[5] = STOP;
    gumbel_generate_options options = options_of(&settings[2], NULL, 0);
    options.forced_tokens = given;
    options.forced_count = GIVEN;
    const pair p = make_pair(program, 9);
    begin(&p, prompt, PROMPT, &options);
    for (uint32_t i = 0; i < GIVEN; i++) {
        draw(&p, &token);
        assert_int_equal(token, given[i]);
    }
    const gumbel_draft_stats stats = stats_of(&p);
    assert_true(stats.accepted == stats.proposed && stats.accepted >= 20);
    while (draw(&p, &token))
        ;
    destroy_pair(&p);
    gumbel_program_close(program);
}

/* A row without a token ends the answer where it would end it alone, and what comes next is the same. */
static void rows_without_tokens_end_them(void **state) {
    (void)state;
    enum { POISON = 3, GIVEN = 12 };
    gumbel_program *program = open_poisoned_program("qwen.json", POISON);
    int32_t prompt[PROMPT], given[GIVEN], token;
    random_tokens(5, 100, prompt, PROMPT);
    random_tokens(6, 100, given, GIVEN);
    for (uint32_t i = 0; i < PROMPT; i++)
        prompt[i] += 20;
    for (uint32_t i = 0; i < GIVEN; i++)
        given[i] = i == 6 ? POISON : given[i] + 20;
    gumbel_generate_options options = options_of(&settings[2], NULL, 0);
    options.forced_tokens = given;
    options.forced_count = GIVEN;
    const pair p = make_pair(program, 9);
    begin(&p, prompt, PROMPT, &options);
    for (uint32_t i = 0; i <= 6; i++)
        draw(&p, &token);
    assert_int_equal(token, POISON);
    for (uint32_t i = 0; i < 2; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_fails(gumbel_next(p.sessions[i], &next, &error), GUMBEL_ERROR_NUMERIC, &error,
                     "request 0: the logits have a NaN");
        assert_ok(gumbel_session_append(p.sessions[i], prompt, 1, &error), &error);
    }
    assert_same_sessions(&p);
    assert_same_seeds(&p);
    assert_true(stats_of(&p).accepted > 4);
    destroy_pair(&p);
    const pair left = make_pair(program, 9); /* before that row has its turn */
    begin(&left, prompt, PROMPT, &options);
    for (uint32_t i = 0; i < 4; i++)
        draw(&left, &token);
    assert_same_seeds(&left);
    assert_same_sessions(&left);
    destroy_pair(&left);
    gumbel_program_close(program);
}

/* ---- In between ---------------------------------------------------------------------------------------- */

static void fork_both(pair *p) {
    for (uint32_t i = 0; i < 2; i++) {
        gumbel_session *copy;
        assert_ok(gumbel_session_fork(p->sessions[i], &copy, &error), &error);
        gumbel_session_destroy(p->sessions[i]);
        p->sessions[i] = copy;
    }
}

static void save_and_load_both(pair *p) {
    for (uint32_t i = 0; i < 2; i++) {
        const char *path = temporary_path("drafted.session");
        assert_ok(gumbel_session_save(p->sessions[i], path, &error), &error);
        gumbel_session_destroy(p->sessions[i]);
        assert_ok(gumbel_session_create(p->engines[i], &p->sessions[i], &error), &error);
        assert_ok(gumbel_session_load(p->sessions[i], path, &error), &error);
    }
}

static void rewind_both(const pair *p) {
    const uint32_t position = gumbel_session_position(p->sessions[0], NULL), back = chance(4);
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(gumbel_session_rewind(p->sessions[i], position - back, &error), &error);
}

static void append_to_both(const pair *p) {
    const int32_t tokens[2] = {50, 51};
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(gumbel_session_append(p->sessions[i], tokens, 2, &error), &error);
}

static void snapshot_both(const pair *p) {
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(gumbel_session_snapshot(p->sessions[i], &error), &error);
}

/* A step of the caller's own, with the token that was given last. */
static void step_both(const pair *p, int32_t token) {
    gumbel_result results[2];
    for (uint32_t i = 0; i < 2; i++) {
        results[i] = (gumbel_result){.size = sizeof *results};
        const gumbel_request request = {.size = sizeof request,
                                        .session = p->sessions[i],
                                        .tokens = &token,
                                        .token_count = 1,
                                        .result = &results[i],
                                        .sampling = &settings[3]};
        assert_ok(gumbel_step(p->engines[i], &request, 1, &error), &error);
    }
    assert_int_equal(results[0].token, results[1].token);
    assert_int_equal(results[0].seed, results[1].seed);
}

/* What callers do to a session whose answer they leave where it is. */
static void meddle(pair *p, uint32_t what, int32_t token) {
    switch (what) {
    case 0:
        fork_both(p);
        break;
    case 1:
        save_and_load_both(p);
        break;
    case 2:
        rewind_both(p);
        break;
    case 3:
        append_to_both(p);
        break;
    case 4:
        snapshot_both(p);
        break;
    case 5:
        step_both(p, token);
        break;
    case 6:
        for (uint32_t i = 0; i < 2; i++)
            gumbel_session_set_seed(p->sessions[i], 77);
        break;
    case 7:
        for (uint32_t i = 0; i < 2; i++)
            gumbel_session_reset(p->sessions[i]);
        break;
    default: /* the next prompt follows at once */
        break;
    }
}

static void meddle_with_answers(const gumbel_program *program, uint32_t what, uint32_t s) {
    const uint64_t seed = 100 + what;
    int32_t prompt[PROMPT], predicted[MOST_TOKENS], token;
    random_tokens(what, 160, prompt, PROMPT);
    gumbel_generate_options options = options_of(&settings[s], predicted, 0);
    options.ignore_stop = true;
    options.predicted_count = predict(program, prompt, seed, &options, 0, predicted);
    pair p = make_pair(program, seed);
    begin(&p, prompt, PROMPT, &options);
    for (uint32_t turn = 0; turn < 4; turn++) {
        for (uint32_t n = 2 + chance(7); n > 0; n--)
            draw(&p, &token);
        meddle(&p, what, token);
        assert_same_sessions(&p);
        if (chance(2))
            assert_same_seeds(&p);
        begin(&p, &predicted[turn], 1, &options);
    }
    destroy_pair(&p);
}

static void sessions_stand_where_tokens_were_given(void **state) {
    (void)state;
    for (uint32_t c = 0; c < CONFIGS; c++) {
        gumbel_program *program = open_random_program(configs[c], false);
        for (uint32_t what = 0; what < 9; what++)
            meddle_with_answers(program, what, what % 2 ? 3 : 0);
        gumbel_program_close(program);
    }
}

/* Two sessions of one engine take turns, so that the results of one outlast steps of the other. */
static void sessions_take_turns(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("qwen.json", false);
    int32_t prompts[2][PROMPT], predicted[MOST_TOKENS], token;
    pair p[2] = {make_pair(program, 5), make_pair(program, 6)};
    gumbel_engine_destroy(p[1].engines[1]);
    p[1].engines[1] = p[0].engines[1];
    assert_ok(gumbel_session_create(p[0].engines[1], &p[1].sessions[1], &error), &error);
    gumbel_session_set_seed(p[1].sessions[1], 6);
    for (uint32_t i = 0; i < 2; i++) {
        random_tokens(i, 160, prompts[i], PROMPT);
        gumbel_generate_options options = options_of(&settings[3], predicted, 0);
        options.ignore_stop = true;
        options.predicted_count = predict(program, prompts[i], 5 + i, &options, 0, predicted);
        begin(&p[i], prompts[i], PROMPT, &options);
    }
    for (uint32_t n = 0; n < 40; n++)
        draw(&p[n % 3 == 0], &token);
    assert_true(stats_of(&p[0]).accepted > 10 && stats_of(&p[1]).accepted > 5);
    gumbel_engine_destroy(p[1].engines[0]);
    destroy_pair(&p[0]);
    gumbel_program_close(program);
}

/* ---- Ends ---------------------------------------------------------------------------------------------- */

static void answers_end_where_they_would(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("small.json", false);
    int32_t prompt[PROMPT], predicted[CONTEXT], token;
    random_tokens(1, 160, prompt, PROMPT);
    for (uint32_t limit = 1; limit <= 12; limit++) {
        gumbel_generate_options options = options_of(&settings[1], predicted, 0);
        options.ignore_stop = true;
        options.max_new_tokens = limit == 12 ? 0 : limit; /* up to the end of the context */
        options.predicted_count = predict(program, prompt, 8, &options, 0, predicted);
        const pair p = make_pair(program, 8);
        begin(&p, prompt, PROMPT, &options);
        while (draw(&p, &token))
            ;
        assert_int_equal(gumbel_session_position(p.sessions[1], NULL),
                         limit < 12 ? PROMPT + limit - 1 : CONTEXT);
        destroy_pair(&p);
    }
    gumbel_program_close(program);
}

static void refusals_and_none(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("small.json", false);
    const pair p = make_pair(program, 1);
    const int32_t prompt[PROMPT] = {5}, unknown = 160;
    gumbel_generate_options options = options_of(&settings[0], &unknown, 1);
    assert_fails(gumbel_generate(p.sessions[1], prompt, PROMPT, &options, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "predicted_tokens: token 160: the vocabulary has ids 0 to 159");
    options.predicted_tokens = NULL;
    assert_fails(gumbel_generate(p.sessions[1], prompt, PROMPT, &options, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "predicted_tokens is NULL");
    options.predicted_count = 0;
    options.ignore_stop = true;
    options.drafting = GUMBEL_DRAFTING_OFF;
    int32_t token;
    begin(&p, prompt, PROMPT, &options);
    while (draw(&p, &token))
        ;
    assert_int_equal(stats_of(&p).steps, 0);
    destroy_pair(&p);
    gumbel_program_close(program);
}

int main(int argument_count, char **arguments) {
    read_test_arguments(argument_count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_the_same),
        cmocka_unit_test(given_tokens_are_drafts),
        cmocka_unit_test(rows_without_tokens_end_them),
        cmocka_unit_test(sessions_stand_where_tokens_were_given),
        cmocka_unit_test(sessions_take_turns),
        cmocka_unit_test(answers_end_where_they_would),
        cmocka_unit_test(refusals_and_none),
    };
    return cmocka_run_group_tests_name("drafted_answers", tests, NULL, NULL);
}
