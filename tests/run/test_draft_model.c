/* SPDX-License-Identifier: Apache-2.0
 *
 * Another program guesses: answers are those without drafts, whatever it guesses; a model that guesses for
 * itself is always right; and what follows rejected guesses takes few tokens of it.
 */
#include "base/memory.h"
#include "run/draft/drafter.h"
#include "run/draft/guess.h"
#include "run/draft/model.h"
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

enum { PROMPT = 11, ANSWER = 40, CONTEXT = 128, DRAFT = 5, MOST_DRAWN = 400 };

static gumbel_error error;

static const gumbel_bias biases[] = {{7, -INFINITY}, {11, 1.5f}, {40, -2}};
static const gumbel_sampling settings[] = {
    {.size = sizeof(gumbel_sampling), .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 0.7f, .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 1, .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 1.5f, .top_p = 1},
    {.size = sizeof(gumbel_sampling), .top_p = 1, .repetition_penalty = 1.3f, .presence_penalty = 0.5f},
    {.size = sizeof(gumbel_sampling),
     .temperature = 0.7f,
     .top_p = 0.9f,
     .frequency_penalty = 0.3f,
     .penalized = GUMBEL_PENALIZED_GENERATED},
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
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static const char *const configs[] = {"qwen.json", "small.json"};
enum { CONFIGS = sizeof configs / sizeof *configs };

/* ---- Engines ------------------------------------------------------------------------------------------- */

static gumbel_engine_options engine_options(void) {
    return (gumbel_engine_options){.size = sizeof(gumbel_engine_options),
                                   .backend = GUMBEL_TEST_BACKEND,
                                   .slots = 3,
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

typedef struct side {
    gumbel_engine *draft_engine, *engine;
    gumbel_session *session;
} side;

/* draft NULL: without drafts. */
static side make_side(const gumbel_program *program, const gumbel_program *draft, uint64_t seed) {
    side s = {0};
    gumbel_engine_options options = engine_options();
    if (draft)
        s.draft_engine = make_engine(draft, &options, 0.05);
    options.draft_engine = s.draft_engine;
    options.draft_tokens = draft ? DRAFT : 0;
    s.engine = make_engine(program, &options, 1);
    assert_ok(gumbel_session_create(s.engine, &s.session, &error), &error);
    gumbel_session_set_seed(s.session, seed);
    return s;
}

static void destroy_side(const side *s) {
    gumbel_engine_destroy(s->engine);
    gumbel_engine_destroy(s->draft_engine);
}

/* ---- Answers ------------------------------------------------------------------------------------------- */

typedef struct transcript {
    gumbel_generated drawn[MOST_DRAWN];
    uint32_t count;
    gumbel_draft_stats drafts; /* of all answers */
} transcript;

static void add_stats(const side *s, gumbel_draft_stats *sum) {
    gumbel_draft_stats stats = {.size = sizeof stats};
    assert_ok(gumbel_session_draft_stats(s->session, &stats, &error), &error);
    sum->steps += stats.steps;
    sum->proposed += stats.proposed;
    sum->accepted += stats.accepted;
}

/* Draws at most so many tokens; fewer where the answer ends. */
static void draw(const side *s, uint32_t count, transcript *t) {
    gumbel_generated next = {.size = sizeof next};
    while (count-- > 0 && next.finish == GUMBEL_FINISH_NONE) {
        assert_ok(gumbel_next(s->session, &next, &error), &error);
        assert_true(t->count < MOST_DRAWN);
        t->drawn[t->count++] = next;
    }
    add_stats(s, &t->drafts);
}

static gumbel_generate_options options_of(const gumbel_sampling *sampling, const side *s) {
    return (gumbel_generate_options){.size = sizeof(gumbel_generate_options),
                                     .sampling = sampling,
                                     .wants_logprob = true,
                                     .ignore_stop = true,
                                     .max_new_tokens = ANSWER,
                                     .drafting =
                                         s->draft_engine ? GUMBEL_DRAFTING_MODEL : GUMBEL_DRAFTING_OFF};
}

static void ask(const side *s, uint32_t question, const gumbel_sampling *sampling, uint32_t count,
                transcript *t) {
    int32_t prompt[PROMPT];
    const gumbel_generate_options options = options_of(sampling, s);
    random_tokens(question, 160, prompt, PROMPT);
    assert_ok(gumbel_generate(s->session, prompt, PROMPT, &options, &error), &error);
    draw(s, count, t);
}

static void assert_same(const transcript *a, const transcript *b) {
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_int_equal(a->drawn[i].token, b->drawn[i].token);
        assert_int_equal(a->drawn[i].finish, b->drawn[i].finish);
        assert_int_equal(a->drawn[i].seed, b->drawn[i].seed);
        assert_memory_equal(&a->drawn[i].logprob, &b->drawn[i].logprob, sizeof a->drawn[i].logprob);
    }
}

static void rewind_by(const side *s, uint32_t count) {
    const uint32_t position = gumbel_session_position(s->session, NULL);
    assert_ok(gumbel_session_rewind(s->session, position - count, &error), &error);
}

static void fork_it(side *s) {
    gumbel_session *copy;
    assert_ok(gumbel_session_fork(s->session, &copy, &error), &error);
    gumbel_session_destroy(s->session);
    s->session = copy;
}

/* Turns, and what may happen between them. */
static transcript converse(side *s, const gumbel_sampling *sampling) {
    transcript t = {0};
    ask(s, 1, sampling, ANSWER, &t);
    ask(s, 2, sampling, 7, &t);
    rewind_by(s, 3);
    ask(s, 3, sampling, 9, &t);
    fork_it(s);
    ask(s, 4, sampling, 11, &t);
    gumbel_session_reset(s->session);
    ask(s, 1, sampling, ANSWER, &t);
    ask(s, 5, sampling, ANSWER, &t);
    return t;
}

/* ---- The same answers ---------------------------------------------------------------------------------- */

static void its_own_guesses_are_accepted(void **state) {
    (void)state;
    for (uint32_t c = 0; c < CONFIGS; c++) {
        gumbel_program *program = open_random_program(configs[c], false);
        for (uint32_t i = 0; i < SETTINGS; i++) {
            const side s = make_side(program, program, 9 + i);
            transcript t = {0};
            ask(&s, i, &settings[i], ANSWER, &t);
            assert_int_equal(t.drafts.accepted, t.drafts.proposed);
            assert_true(t.drafts.accepted > ANSWER / 2);
            destroy_side(&s);
        }
        gumbel_program_close(program);
    }
}

/* A short run has two simple settings and, where it does not take minutes, the one that has everything. */
static bool is_left_out(uint32_t setting) {
    const bool is_cpu = strcmp(GUMBEL_TEST_BACKEND, "cpu") == 0;
    return is_short_run() && setting >= 2 && !(is_cpu && setting == SETTINGS - 1);
}

static void compare(const gumbel_program *program, const gumbel_program *draft, transcript *sum) {
    for (uint32_t i = 0; i < SETTINGS; i++) {
        if (is_left_out(i))
            continue;
        side alone = make_side(program, NULL, i), drafted = make_side(program, draft, i);
        const transcript expected = converse(&alone, &settings[i]), got = converse(&drafted, &settings[i]);
        assert_same(&expected, &got);
        sum->drafts.proposed += got.drafts.proposed;
        sum->drafts.accepted += got.drafts.accepted;
        destroy_side(&alone);
        destroy_side(&drafted);
    }
}

/* The same weights in fewer bits, and a program that has nothing in common but the vocabulary. */
static void answers_are_the_same(void **state) {
    (void)state;
    for (uint32_t c = 0; c < CONFIGS; c++) {
        gumbel_program *program = open_random_program(configs[c], false);
        gumbel_program *alike =
            export_random_program(configs[c], (gumbel_export_options){.quantize = "int8"});
        gumbel_program *minimal =
            export_random_program(configs[1 - c], (gumbel_export_options){.sampler = "minimal"});
        transcript sum = {0}, other = {0};
        compare(program, alike, &sum);
        assert_true(sum.drafts.accepted > (uint64_t)shortened(40, 3) &&
                    sum.drafts.proposed > sum.drafts.accepted);
        compare(program, minimal, &other);
        assert_true(other.drafts.proposed > (uint64_t)shortened(20, 5));
        gumbel_program_close(minimal);
        gumbel_program_close(alike);
        gumbel_program_close(program);
    }
}

static void a_draft_head_changes_no_answer(void **state) {
    (void)state;
    gumbel_program *program = export_random_program("qwen.json", (gumbel_export_options){.draft_head = true});
    transcript sum = {0};
    compare(program, gumbel_program_draft_head(program), &sum);
    assert_true(sum.drafts.proposed > (uint64_t)shortened(20, 5));
    gumbel_program_close(program);
}

/* Given tokens are never drawn by the model. */
static void given_tokens_come_first(void **state) {
    (void)state;
    enum { GIVEN = 12 };
    gumbel_program *program = open_random_program("qwen.json", false);
    int32_t prompt[PROMPT], given[GIVEN];
    transcript t[2] = {0};
    random_tokens(3, 160, prompt, PROMPT);
    random_tokens(4, 160, given, GIVEN);
    for (uint32_t i = 0; i < 2; i++) {
        const side s = make_side(program, i > 0 ? program : NULL, 5);
        gumbel_generate_options options = options_of(&settings[2], &s);
        options.forced_tokens = given;
        options.forced_count = GIVEN;
        assert_ok(gumbel_generate(s.session, prompt, PROMPT, &options, &error), &error);
        draw(&s, ANSWER, &t[i]);
        destroy_side(&s);
    }
    assert_same(&t[0], &t[1]);
    assert_int_equal(t[1].drafts.accepted, t[1].drafts.proposed);
    assert_true(t[1].drafts.accepted > ANSWER / 2);
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
    gumbel_draft_stats sum = {0};
    for (uint32_t i = 0; i < 4; i++) {
        transcript t[2] = {0};
        for (uint32_t drafted = 0; drafted < 2; drafted++) {
            const side s = make_side(program, drafted ? draft : NULL, i);
            gumbel_generate_options options = options_of(&settings[i], &s);
            options.tokenizer = tokenizer;
            options.grammar = grammar;
            int32_t prompt[PROMPT];
            random_tokens(i, 2048, prompt, PROMPT);
            assert_ok(gumbel_generate(s.session, prompt, PROMPT, &options, &error), &error);
            draw(&s, ANSWER, &t[drafted]);
            destroy_side(&s);
        }
        assert_same(&t[0], &t[1]);
        sum.accepted += t[1].drafts.accepted;
        sum.proposed += t[1].drafts.proposed;
    }
    assert_true(sum.accepted > sum.proposed / 3 && sum.accepted > 20);
    gumbel_grammar_destroy(grammar);
    gumbel_tokenizer_destroy(tokenizer);
    gumbel_program_close(draft);
    gumbel_program_close(program);
}

/* ---- Work ---------------------------------------------------------------------------------------------- */

/* The rows of one product of the draft engine. */
typedef struct counted {
    const char *weight;
    size_t rows;
} counted;

static void count_rows(void *user, const gumbel_observation *observation) {
    counted *c = user;
    if (!c->weight)
        c->weight = observation->weight;
    if (observation->weight == c->weight)
        c->rows += observation->rows;
}

/* Every token is run once, and a rejected guess; where states cannot go back, again behind a snapshot. */
static void rejected_guesses_are_cheap(void **state) {
    (void)state;
    for (uint32_t c = 0; c < CONFIGS; c++) {
        gumbel_program *program = open_random_program(configs[c], false);
        gumbel_program *draft = export_random_program(configs[c], (gumbel_export_options){.layers = 2});
        counted rows = {0};
        gumbel_engine_options options = engine_options();
        options.threads = 1;
        options.backend = "cpu"; /* which counts, and need not be the target's */
        options.observe = count_rows;
        options.observe_user = &rows;
        side s = {.draft_engine = make_engine(draft, &options, 0.05)};
        options = engine_options();
        options.draft_engine = s.draft_engine;
        options.draft_tokens = DRAFT;
        s.engine = make_engine(program, &options, 1);
        assert_ok(gumbel_session_create(s.engine, &s.session, &error), &error);
        gumbel_session_set_seed(s.session, 3);
        transcript t = {0};
        ask(&s, 1, &settings[2], ANSWER, &t);
        ask(&s, 2, &settings[2], ANSWER, &t);
        assert_true(t.drafts.accepted < t.drafts.proposed);
        const size_t again = c == 0 ? t.count : 0;
        assert_true(rows.rows <= 2 * PROMPT + t.count + t.drafts.proposed + again);
        destroy_side(&s);
        gumbel_program_close(draft);
        gumbel_program_close(program);
    }
}

/* Behind rejected guesses it guesses what it would, had it read the tokens at once. */
static void rejected_guesses_leave_nothing(void **state) {
    (void)state;
    uint32_t compared = 0;
    for (uint32_t c = 0; c < CONFIGS; c++) {
        gumbel_program *program = open_random_program(configs[c], false);
        gumbel_program *draft = export_random_program(configs[c], (gumbel_export_options){.layers = 2});
        for (uint32_t i = 0; i < (uint32_t)shortened(3 * SETTINGS, 4); i++) {
            const side s = make_side(program, draft, i);
            int32_t guesses[2][DRAFT];
            uint32_t counts[2];
            transcript t = {0};
            ask(&s, i, &settings[i % SETTINGS], 3 + i, &t);
            ask(&s, i + 1, &settings[i % SETTINGS], ANSWER, &t);
            for (uint32_t fresh = 0; fresh < 2; fresh++) {
                gb_guess made = {.most = DRAFT, .tokens = guesses[fresh]};
                assert_ok(gb_draft_model_guess(s.session, NULL, &made, &error), &error);
                assert_int_equal(made.rounds, DRAFT);
                counts[fresh] = made.count;
                gb_draft_model_end(s.session->draft_model);
            }
            assert_true(t.drafts.accepted < t.drafts.proposed);
            assert_int_equal(counts[0], counts[1]);
            assert_memory_equal(guesses[0], guesses[1], counts[0] * sizeof **guesses);
            compared += counts[0];
            destroy_side(&s);
        }
        gumbel_program_close(draft);
        gumbel_program_close(program);
    }
    assert_true(compared > (uint32_t)shortened(4 * SETTINGS, 4) * DRAFT);
}

/* One that has far to catch up does so a piece at a time, and guesses only then. */
static void catching_up_keeps_to_its_budget(void **state) {
    (void)state;
    enum { BUDGET = 8 };
    for (uint32_t c = 0; c < CONFIGS; c++) {
        gumbel_program *program = open_random_program(configs[c], false);
        const side s = make_side(program, program, c);
        transcript t = {0};
        ask(&s, 1, &settings[1], ANSWER, &t);
        ask(&s, 2, &settings[1], ANSWER, &t);
        gb_draft_model_end(s.session->draft_model);
        int32_t tokens[DRAFT];
        gb_guess guess = {.slot = s.session->slot,
                          .next = s.session->pending_token,
                          .sampling = &settings[1],
                          .most = DRAFT,
                          .tokens = tokens};
        uint32_t calls = 0;
        for (uint32_t before = 0; !guess.is_ready; calls++) {
            assert_ok(gb_draft_models_guess(s.engine, &guess, 1, BUDGET, &error), &error);
            const uint32_t position = s.session->draft_model->session->position;
            assert_true(position > before);
            assert_true(guess.is_ready || position <= before + BUDGET);
            before = position;
        }
        assert_true(calls >= (s.session->position - GB_MOST_DRAFT) / BUDGET);
        assert_true(guess.count > 0);
        destroy_side(&s);
        gumbel_program_close(program);
    }
}

/* A context that ends sooner ends the drafts, and no answer. */
static void a_shorter_context_ends_drafts(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("small.json", false);
    gumbel_engine_options options = engine_options();
    options.max_context = PROMPT + 9;
    side s = {.draft_engine = make_engine(program, &options, 0.05)}, alone = make_side(program, NULL, 1);
    options = engine_options();
    options.draft_engine = s.draft_engine;
    options.draft_tokens = DRAFT;
    s.engine = make_engine(program, &options, 1);
    assert_ok(gumbel_session_create(s.engine, &s.session, &error), &error);
    gumbel_session_set_seed(s.session, 1);
    transcript t[2] = {0};
    ask(&alone, 1, &settings[2], ANSWER, &t[0]);
    ask(&s, 1, &settings[2], ANSWER, &t[1]);
    assert_same(&t[0], &t[1]);
    assert_true(t[1].drafts.accepted == t[1].drafts.proposed && t[1].drafts.accepted > 4);
    destroy_side(&s);
    destroy_side(&alone);
    gumbel_program_close(program);
}

/* ---- Failures ------------------------------------------------------------------------------------------ */

static void count_notices(void *user, gumbel_log_level level, const char *line) {
    (void)level;
    if (strstr(line, "no more drafts of the draft model for this answer: all 1 slots"))
        ++*(uint32_t *)user;
}

static void without_a_slot_answers_go_on(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("small.json", false);
    gumbel_engine_options options = engine_options();
    uint32_t notices = 0;
    options.slots = 1;
    side s = {.draft_engine = make_engine(program, &options, 0.05)};
    gumbel_session *in_the_way;
    assert_ok(gumbel_session_create(s.draft_engine, &in_the_way, &error), &error);
    options = engine_options();
    options.draft_engine = s.draft_engine;
    options.draft_tokens = DRAFT;
    options.log = count_notices;
    options.log_user = &notices;
    s.engine = make_engine(program, &options, 1);
    assert_ok(gumbel_session_create(s.engine, &s.session, &error), &error);
    transcript t = {0};
    ask(&s, 1, &settings[0], ANSWER, &t);
    assert_true(t.count == ANSWER && t.drafts.steps == 0 && notices == 1);
    gumbel_session_destroy(in_the_way);
    ask(&s, 2, &settings[0], ANSWER, &t);
    assert_true(t.drafts.steps > 0 && notices == 1);
    destroy_side(&s);
    gumbel_program_close(program);
}

static void assert_refused(const gumbel_program *program, const gumbel_program *draft, bool snapshots,
                           gumbel_status status, const char *message) {
    gumbel_engine_options options = engine_options();
    options.snapshots = snapshots;
    gumbel_engine *draft_engine = make_engine(draft, &options, 1), *engine;
    options.draft_engine = draft_engine;
    assert_fails(gumbel_engine_create(program, &options, &engine, &error), status, &error, message);
    gumbel_engine_destroy(draft_engine);
}

static void other_programs_are_refused(void **state) {
    (void)state;
    gumbel_program *small = open_random_program("small.json", false),
                   *logits = open_random_program("small.json", true),
                   *qwen = open_random_program("qwen.json", false),
                   *bundled = open_bundled_program("gemma4-tiny", NULL),
                   *other = open_bundled_program("qwen3_5-moe-tiny", NULL);
    assert_refused(small, bundled, true, GUMBEL_ERROR_ARGUMENT,
                   "draft_engine: the program has a vocabulary of 160 tokens, the draft model of 2048");
    assert_refused(small, logits, true, GUMBEL_ERROR_UNSUPPORTED,
                   "draft_engine: its program was exported with --logits");
    assert_refused(small, qwen, false, GUMBEL_ERROR_ARGUMENT,
                   "draft_engine: its program has recurrent states");
    assert_refused(bundled, other, true, GUMBEL_ERROR_ARGUMENT, "draft_engine: ");
    const side s = make_side(small, NULL, 1);
    gumbel_generate_options options = options_of(&settings[0], &s);
    options.drafting = GUMBEL_DRAFTING_MODEL;
    assert_fails(gumbel_generate(s.session, (int32_t[]){5}, 1, &options, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "drafting by a model needs an engine created with draft_engine");
    destroy_side(&s);
    gumbel_program_close(other);
    gumbel_program_close(bundled);
    gumbel_program_close(qwen);
    gumbel_program_close(logits);
    gumbel_program_close(small);
}

/* What drafts lose comes back with what they gain, and no more is kept than at the start. */
static void budgets_let_a_model_be_tried(void **state) {
    (void)state;
    const gb_step_times times = {.seconds = {1}, .samples = {1}, .is_fixed = true};
    gb_draft_model *model = gb_draft_models_create(1);
    const double price = gb_draft_price(&times, 1, 3, 0.6);
    assert_true(price > 1 && price < 1.2);
    assert_true(gb_draft_price(&times, 4, 3, 0.6) > price); /* four answers wait */
    assert_int_equal(gb_draft_model_probe(model, &times, 1, 8, 0.2), 3);
    assert_int_equal(gb_draft_model_probe(model, &times, 1, 2, 0.2), 2);
    gb_draft_model_gain(model, -2 * price); /* 0.8 are left */
    assert_int_equal(gb_draft_model_probe(model, &times, 1, 8, 0.2), 2);
    gb_draft_model_gain(model, -0.5);
    assert_int_equal(gb_draft_model_probe(model, &times, 1, 8, 0.2), 0);
    gb_draft_model_gain(model, 0.3);
    assert_int_equal(gb_draft_model_probe(model, &times, 1, 8, 0.2), 1);
    gb_draft_model_gain(model, 100);
    gb_draft_model_gain(model, -2 * price);
    assert_int_equal(gb_draft_model_probe(model, &times, 1, 8, 0.2), 2);
    gb_free(model);
}

int main(int argument_count, char **arguments) {
    read_test_arguments(argument_count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_own_guesses_are_accepted),   cmocka_unit_test(answers_are_the_same),
        cmocka_unit_test(a_draft_head_changes_no_answer), cmocka_unit_test(given_tokens_come_first),
        cmocka_unit_test(guesses_keep_to_a_grammar),      cmocka_unit_test(rejected_guesses_leave_nothing),
        cmocka_unit_test(rejected_guesses_are_cheap),     cmocka_unit_test(catching_up_keeps_to_its_budget),
        cmocka_unit_test(a_shorter_context_ends_drafts),  cmocka_unit_test(without_a_slot_answers_go_on),
        cmocka_unit_test(other_programs_are_refused),     cmocka_unit_test(budgets_let_a_model_be_tried),
    };
    return cmocka_run_group_tests_name("draft_model", tests, NULL, NULL);
}
