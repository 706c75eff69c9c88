/* SPDX-License-Identifier: Apache-2.0
 *
 * A draft head guesses from the hidden states of its target: answers are those without it, and what it
 * guesses depends on the target's tokens alone, not on when it guessed before. So it is with one that runs
 * the target's tokens and with one that attends to the target's keys.
 */
#include "program/file/writer.h"
#include "run/draft/guess.h"
#include "run/draft/model.h"
#include "run/handles.h"
#include "support/assertions.h"
#include "support/backend.h"
#include "support/programs/tiny_program.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PROMPT = 9, ANSWER = 30, DRAFT = 5 };

static gumbel_error error;
static gumbel_program *target, *head;

/* With them the two, which have nothing in common, often draw the same. */
static const gumbel_bias biases[] = {{9, 20}, {30, 20}, {41, 20}};
static const gumbel_sampling settings[] = {
    {.size = sizeof(gumbel_sampling), .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 1, .top_p = 1},
    {.size = sizeof(gumbel_sampling),
     .temperature = 1.5f,
     .top_k = 12,
     .top_p = 0.95f,
     .repetition_penalty = 1.3f,
     .penalized = GUMBEL_PENALIZED_ALL},
    {.size = sizeof(gumbel_sampling), .temperature = 1, .top_p = 1, .bias = biases, .bias_count = 3},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static gumbel_program *open_written(gb_program *built) {
    const char *path = temporary_path("draft_head.gumbel");
    gumbel_program *program;
    assert_ok(tiny_program_write(built, path, &error), &error);
    gb_program_destroy(built);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    remove(path);
    return program;
}

static int open_programs(gb_program *built_head) {
    target = open_written(tiny_target_build());
    head = open_written(built_head);
    return 0;
}

static int open_with_head(void **state) {
    (void)state;
    return open_programs(tiny_head_build());
}

static int open_with_reader(void **state) {
    (void)state;
    return open_programs(tiny_reader_build());
}

static int close_programs(void **state) {
    (void)state;
    gumbel_program_close(target);
    gumbel_program_close(head);
    return 0;
}

/* ---- Engines ------------------------------------------------------------------------------------------- */

typedef struct side {
    gumbel_engine *draft_engine, *engine;
    gumbel_session *session;
} side;

static gumbel_engine *make_engine(const gumbel_program *program, gumbel_engine *draft_engine,
                                  double seconds) {
    gumbel_engine *engine;
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = GUMBEL_TEST_BACKEND,
                                           .slots = 3,
                                           .threads = 2,
                                           .draft_tokens = draft_engine ? DRAFT : 0,
                                           .draft_engine = draft_engine};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    engine->step_times.seconds[0] = seconds; /* drafts pay */
    engine->step_times.samples[0] = 1;
    engine->step_times.is_fixed = true;
    return engine;
}

static side make_side(bool has_head) {
    side s = {0};
    if (has_head)
        s.draft_engine = make_engine(head, NULL, 0.001);
    s.engine = make_engine(target, s.draft_engine, 1);
    assert_ok(gumbel_session_create(s.engine, &s.session, &error), &error);
    gumbel_session_set_seed(s.session, 7);
    return s;
}

static void destroy_side(const side *s) {
    gumbel_engine_destroy(s->engine);
    gumbel_engine_destroy(s->draft_engine);
}

/* ---- Answers ------------------------------------------------------------------------------------------- */

static uint32_t answer_length(void) {
    return (uint32_t)shortened(ANSWER, 16);
}

static void ask_from(const side *s, uint32_t question, int32_t first, const gumbel_sampling *sampling,
                     gumbel_drafting drafting) {
    int32_t prompt[PROMPT];
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = sampling,
                                             .ignore_stop = true,
                                             .max_new_tokens = answer_length(),
                                             .drafting = drafting};
    for (uint32_t i = 0; i < PROMPT; i++)
        prompt[i] = (int32_t)((question * 17 + i * 29) % (TINY_VOCABULARY - 8)) + 8;
    prompt[0] = first;
    assert_ok(gumbel_generate(s->session, prompt, PROMPT, &options, &error), &error);
}

static void ask(const side *s, uint32_t question, const gumbel_sampling *sampling, gumbel_drafting drafting) {
    ask_from(s, question, 5, sampling, drafting);
}

static void fork_it(side *s) {
    gumbel_session *copy;
    assert_ok(gumbel_session_fork(s->session, &copy, &error), &error);
    gumbel_session_destroy(s->session);
    s->session = copy;
}

static void draw(const side *s, uint32_t count, int32_t *tokens) {
    for (uint32_t i = 0; i < count; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(s->session, &next, &error), &error);
        tokens[i] = next.token;
    }
}

/* Two turns, of which the first is left early and gone back in. Drafts are those of both: one that was never
 * right is not asked again for a while. */
static gumbel_draft_stats converse(const side *s, const gumbel_sampling *sampling, int32_t *tokens) {
    const gumbel_drafting drafting = s->draft_engine ? GUMBEL_DRAFTING_MODEL : GUMBEL_DRAFTING_OFF;
    gumbel_draft_stats first = {.size = sizeof first}, stats = first;
    ask(s, 1, sampling, drafting);
    draw(s, 8, tokens);
    assert_ok(gumbel_session_draft_stats(s->session, &first, &error), &error);
    assert_ok(gumbel_session_rewind(s->session, gumbel_session_position(s->session, NULL) - 3, &error),
              &error);
    ask(s, 2, sampling, drafting);
    draw(s, answer_length(), tokens + 8);
    assert_ok(gumbel_session_draft_stats(s->session, &stats, &error), &error);
    stats.proposed += first.proposed;
    return stats;
}

static void answers_are_those_without(void **state) {
    (void)state;
    for (uint32_t i = 0; i < SETTINGS; i++) {
        int32_t plain[8 + ANSWER] = {0}, drafted[8 + ANSWER] = {0};
        const side without = make_side(false), with = make_side(true);
        converse(&without, &settings[i], plain);
        const gumbel_draft_stats stats = converse(&with, &settings[i], drafted);
        assert_memory_equal(plain, drafted, sizeof plain);
        assert_true(stats.proposed > 0);
        assert_true(settings[i].bias_count == 0 || stats.accepted > answer_length() / 3);
        destroy_side(&without);
        destroy_side(&with);
    }
}

/* The same answer with so many of 100 guesses right. */
static gumbel_draft_stats simulate(const int32_t *answer, uint32_t acceptance) {
    const side s = make_side(true);
    gumbel_draft_stats stats = {.size = sizeof stats};
    const int32_t first = 9;
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &settings[1],
                                             .ignore_stop = true,
                                             .max_new_tokens = answer_length(),
                                             .drafting = GUMBEL_DRAFTING_MODEL,
                                             .predicted_tokens = answer,
                                             .predicted_count = answer_length(),
                                             .has_draft_acceptance = true,
                                             .draft_acceptance = acceptance};
    int32_t drawn[ANSWER];
    assert_ok(gumbel_generate(s.session, &first, 1, &options, &error), &error);
    draw(&s, answer_length(), drawn);
    assert_memory_equal(drawn, answer, answer_length() * sizeof *drawn);
    assert_ok(gumbel_session_draft_stats(s.session, &stats, &error), &error);
    destroy_side(&s);
    return stats;
}

static void guesses_can_be_made_right(void **state) {
    (void)state;
    int32_t answer[ANSWER];
    const int32_t first = 9;
    const side s = make_side(false);
    gumbel_generate_options options = {.size = sizeof options,
                                       .sampling = &settings[1],
                                       .ignore_stop = true,
                                       .max_new_tokens = answer_length()};
    assert_ok(gumbel_generate(s.session, &first, 1, &options, &error), &error);
    draw(&s, answer_length(), answer);
    const gumbel_draft_stats all = simulate(answer, 100), none = simulate(answer, 0);
    assert_true(all.proposed > 0 && all.accepted == all.proposed);
    assert_true(none.proposed > 0 && none.accepted == 0);
    options.has_draft_acceptance = true;
    options.draft_acceptance = 101;
    assert_fails(gumbel_generate(s.session, &first, 1, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "generate: draft_acceptance: 101, expected 0 to 100 (of 100)");
    options.predicted_tokens = answer;
    options.predicted_count = answer_length();
    options.draft_acceptance = 100;
    assert_fails(gumbel_generate(s.session, &first, 1, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "generate: draft_acceptance needs drafting by a model alone");
    options.predicted_count = 0;
    assert_fails(gumbel_generate(s.session, &first, 1, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "generate: draft_acceptance: predicted_tokens must be the tokens of the answer");
    destroy_side(&s);
}

/* ---- Guesses ------------------------------------------------------------------------------------------- */

static void guess(const side *s, int32_t *tokens) {
    gb_guess made = {.most = DRAFT, .tokens = tokens};
    assert_ok(gb_draft_model_guess(s->session, NULL, &made, &error), &error);
    for (uint32_t i = made.count; i < DRAFT; i++) /* behind a stop token */
        tokens[i] = -1;
}

/* A head's states, of which the hidden ones stand first. */
typedef struct saved_states {
    uint8_t bytes[1 << 14];
    uint64_t size;
} saved_states;

static gumbel_status keep_bytes(void *user, const void *data, uint64_t size, gumbel_error *unused) {
    saved_states *to = user;
    (void)unused;
    assert_true(size <= sizeof to->bytes - to->size);
    memcpy(to->bytes + to->size, data, (size_t)size);
    to->size += size;
    return GUMBEL_OK;
}

/* What it has run behind the target's hidden states. */
static saved_states states_of_head(const side *s) {
    const gumbel_session *draft = s->session->draft_model->session;
    gb_backend *backend = draft->engine->backend;
    saved_states saved = {.size = 0};
    assert_ok(backend->functions->save_slot(backend, draft->slot, s->session->position, GB_SAVED_ALL,
                                            keep_bytes, &saved, &error),
              &error);
    return saved;
}

/* Keys, values and tokens. The hidden ones are those that were given last. */
static void assert_same_states(const side *s, const saved_states *a, const saved_states *b) {
    const size_t hidden = s->session->position * TINY_WIDTH * sizeof(uint16_t);
    assert_int_equal(a->size, b->size);
    assert_true(a->size > hidden);
    assert_memory_equal(a->bytes + hidden, b->bytes + hidden, (size_t)a->size - hidden);
}

/* One that has guessed all along, and one that begins anew and so reads all hidden states, guess the same. */
static void compare_with_anew(const side *s) {
    int32_t going_on[DRAFT], anew[DRAFT];
    guess(s, going_on);
    const saved_states states = states_of_head(s);
    gb_draft_model model = *s->session->draft_model;
    *s->session->draft_model = (gb_draft_model){0};
    guess(s, anew);
    const saved_states states_anew = states_of_head(s);
    gb_draft_model_end(s->session->draft_model);
    *s->session->draft_model = model;
    assert_memory_equal(going_on, anew, sizeof anew);
    assert_same_states(s, &states, &states_anew);
}

static void guesses_depend_on_the_tokens_alone(void **state) {
    (void)state;
    static const uint32_t all[] = {1, 1, 2, 5, 1, 3, 4}, few[] = {1, 5};
    const uint32_t *between = is_short_run() ? few : all;
    const size_t times = is_short_run() ? sizeof few / sizeof *few : sizeof all / sizeof *all;
    for (uint32_t i = 0; i < SETTINGS; i++) {
        side s = make_side(true);
        int32_t tokens[ANSWER];
        ask(&s, 3, &settings[i], GUMBEL_DRAFTING_OFF);
        draw(&s, 1, tokens);
        for (size_t b = 0; b < times; b++) {
            compare_with_anew(&s);
            draw(&s, between[b], tokens);
        }
        fork_it(&s);
        ask(&s, 4, &settings[i], GUMBEL_DRAFTING_OFF);
        draw(&s, 2, tokens);
        compare_with_anew(&s);
        gumbel_session_reset(s.session); /* and another first token alone */
        ask_from(&s, 3, 7, &settings[i], GUMBEL_DRAFTING_OFF);
        draw(&s, 2, tokens);
        compare_with_anew(&s);
        destroy_side(&s);
    }
}

static const gb_backend_functions *usual;

static gumbel_status take_of_another(gb_backend *backend, uint32_t slot, uint32_t state,
                                     const gb_rows_of_slot *rows, gumbel_error *why) {
    gb_rows_of_slot others = *rows;
    others.slot = 1;
    return usual->take_rows(backend, slot, state, &others, why);
}

static gumbel_status take_nothing(gb_backend *backend, uint32_t slot, uint32_t state,
                                  const gb_rows_of_slot *rows, gumbel_error *why) {
    (void)backend, (void)slot, (void)state, (void)rows;
    return gb_fail(why, GUMBEL_ERROR_MEMORY, "no rows");
}

/* What could not be taken is taken the next time. */
static void rows_that_failed_are_taken_later(void **state) {
    (void)state;
    const side s = make_side(true);
    gb_backend *backend = s.draft_engine->backend;
    gb_backend_functions changed = *(usual = backend->functions);
    int32_t tokens[ANSWER];
    gb_guess made = {.most = DRAFT, .tokens = tokens};
    ask(&s, 3, &settings[0], GUMBEL_DRAFTING_OFF);
    draw(&s, 4, tokens);
    changed.take_rows = take_nothing;
    backend->functions = &changed;
    assert_fails(gb_draft_model_guess(s.session, NULL, &made, &error), GUMBEL_ERROR_MEMORY, &error,
                 s.draft_engine->attends_to_program ? "could not be copied" : "no rows");
    assert_int_equal(made.count, 0);
    backend->functions = usual;
    compare_with_anew(&s);
    destroy_side(&s);
}

/* A session in the other slot, which has run other tokens. */
static void run_another(side *s) {
    int32_t tokens[ANSWER];
    gumbel_session *first = s->session;
    assert_ok(gumbel_session_create(s->engine, &s->session, &error), &error);
    ask(s, 8, &settings[0], GUMBEL_DRAFTING_OFF);
    draw(s, answer_length(), tokens);
    s->session = first;
}

/* A head that is given the hidden states of another answer guesses otherwise. */
static void hidden_states_count(void **state) {
    (void)state;
    side right = make_side(true), wrong = make_side(true);
    int32_t tokens[ANSWER], with[DRAFT], without[DRAFT];
    uint32_t different = 0;
    gb_backend *backend = wrong.draft_engine->backend;
    usual = backend->functions;
    gb_backend_functions changed = *usual;
    changed.take_rows = take_of_another;
    backend->functions = &changed;
    run_another(&wrong);
    ask(&right, 3, &settings[0], GUMBEL_DRAFTING_OFF);
    ask(&wrong, 3, &settings[0], GUMBEL_DRAFTING_OFF);
    for (uint32_t i = 0; i < 10; i++) {
        draw(&right, 1, tokens);
        draw(&wrong, 1, tokens);
        guess(&right, with);
        guess(&wrong, without);
        different += memcmp(with, without, sizeof with) != 0;
    }
    backend->functions = usual;
    assert_true(different > 0);
    destroy_side(&right);
    destroy_side(&wrong);
}

/* ---- Errors -------------------------------------------------------------------------------------------- */

static void a_target_keeps_hidden_states(void **state) {
    (void)state;
    gumbel_program *plain = open_written(tiny_program_build(true));
    gumbel_engine *draft_engine = make_engine(head, NULL, 1), *engine;
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = GUMBEL_TEST_BACKEND,
                                           .draft_tokens = DRAFT,
                                           .draft_engine = draft_engine};
    assert_fails(gumbel_engine_create(plain, &options, &engine, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "draft_engine: its program is a draft head, and this program keeps no hidden states for it; "
                 "export both together");
    gumbel_engine_destroy(draft_engine);
    gumbel_program_close(plain);
}

#if !defined(GUMBEL_TEST_DEVICES)
static void a_head_is_where_its_target_is(void **state) {
    (void)state;
    static const int devices[] = {0, 1};
    gumbel_engine *elsewhere, *engine;
    gumbel_engine_options options = {.size = sizeof options,
                                     .backend = "cpu",
                                     .devices = devices,
                                     .device_count = 2,
                                     .least_sharded_weights = 1};
    assert_ok(gumbel_engine_create(head, &options, &elsewhere, &error), &error);
    options = (gumbel_engine_options){.size = sizeof options,
                                      .backend = GUMBEL_TEST_BACKEND,
                                      .draft_tokens = DRAFT,
                                      .draft_engine = elsewhere};
    assert_fails(gumbel_engine_create(target, &options, &engine, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "draft_engine: a draft head runs on the backend and the devices of its program");
    gumbel_engine_destroy(elsewhere);
}
#endif

static void a_head_answers_nothing(void **state) {
    (void)state;
    gumbel_engine *engine = make_engine(head, NULL, 1);
    gumbel_session *session;
    const int32_t prompt = 9;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_fails(gumbel_generate(session, &prompt, 1, NULL, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "generate: the program is a draft head, which only guesses for another");
    gumbel_engine_destroy(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_without),
        cmocka_unit_test(guesses_can_be_made_right),
        cmocka_unit_test(guesses_depend_on_the_tokens_alone),
        cmocka_unit_test(hidden_states_count),
        cmocka_unit_test(rows_that_failed_are_taken_later),
        cmocka_unit_test(a_target_keeps_hidden_states),
        cmocka_unit_test(a_head_answers_nothing),
#if !defined(GUMBEL_TEST_DEVICES)
        cmocka_unit_test(a_head_is_where_its_target_is),
#endif
    };
    const int failed = cmocka_run_group_tests_name("draft_head", tests, open_with_head, close_programs);
    return failed + cmocka_run_group_tests_name("draft_head_reader", tests, open_with_reader, close_programs);
}
