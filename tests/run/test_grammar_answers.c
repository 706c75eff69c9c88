/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that are held to a grammar: each is what the schema says, has the tokens that it has alone in the
 * scheduler too, ends where the grammar may end, and begins behind its reasoning.
 */
#include "run/constraint.h"
#include "run/handles.h"
#include "support/assertions.h"
#include "support/backend.h"
#include "support/paths.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ANSWERS = 12, MOST_TOKENS = 400, MOST_PROMPT = 256, MOST_TEXT = 8192 };

static gumbel_error error;

static const char schema[] =
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 10},"
    " \"age\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 120},"
    " \"tags\": {\"type\": \"array\", \"items\": {\"enum\": [\"red\", \"green\"]}, \"maxItems\": 2}},"
    " \"required\": [\"name\", \"age\"], \"additionalProperties\": false}";

typedef struct bundled {
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    gumbel_engine *engine;
    gumbel_grammar *grammar;
    int32_t prompt[MOST_PROMPT];
    size_t prompt_count;
} bundled;

static void encode(const bundled *b, gumbel_thinking thinking, int32_t *tokens, size_t *count) {
    const gumbel_message message = {.size = sizeof message, .role = "user", .content = "Invent a person."};
    const gumbel_chat_options chat = {.size = sizeof chat, .thinking = thinking};
    assert_ok(gumbel_chat_encode(b->tokenizer, &message, 1, &chat, tokens, MOST_PROMPT, count, &error),
              &error);
    assert_true(*count <= MOST_PROMPT);
}

static bundled open_bundled(const char *checkpoint, const char *sampler) {
    bundled b = {0};
    const char *path = temporary_path("bundled.gumbel");
    const gumbel_export_options export = {.size = sizeof export, .sampler = sampler};
    assert_ok(gumbel_export(checkpoint, path, &export, &error), &error);
    assert_ok(gumbel_program_open(path, &b.program, &error), &error);
    assert_ok(gumbel_tokenizer_create(b.program, &b.tokenizer, &error), &error);
    const gumbel_engine_options options = {
        .size = sizeof options, .slots = 8, .backend = GUMBEL_TEST_BACKEND, .draft_tokens = 6};
    assert_ok(gumbel_engine_create(b.program, &options, &b.engine, &error), &error);
    b.engine->step_times.is_fixed = true;
    const gumbel_grammar_options of_schema = {
        .size = sizeof of_schema, .kind = GUMBEL_GRAMMAR_JSON_SCHEMA, .text = schema};
    assert_ok(gumbel_grammar_create(b.tokenizer, &of_schema, &b.grammar, &error), &error);
    encode(&b, GUMBEL_THINKING_OFF, b.prompt, &b.prompt_count);
    return b;
}

/* Exported, opened and closed once for all tests. */
static bundled gemma, qwen;

static void close_bundled(bundled *b) {
    gumbel_grammar_destroy(b->grammar);
    gumbel_engine_destroy(b->engine);
    gumbel_tokenizer_destroy(b->tokenizer);
    gumbel_program_close(b->program);
}

typedef struct answer {
    int32_t tokens[MOST_TOKENS];
    uint32_t count;
    char text[MOST_TEXT];
    size_t length;
    gumbel_finish finish;
    gumbel_status status;
} answer;

static void add(answer *a, int32_t token, const char *text, size_t length) {
    assert_true(a->count < MOST_TOKENS && a->length + length < MOST_TEXT);
    a->tokens[a->count++] = token;
    memcpy(a->text + a->length, text, length);
    a->length += length;
}

static const gumbel_sampling sampling = {.size = sizeof sampling, .temperature = 1.5f, .top_p = 1};

static void answer_with(const bundled *b, gumbel_generate_options options, uint64_t seed, answer *a,
                        gumbel_draft_stats *drafts) {
    gumbel_session *session;
    assert_ok(gumbel_session_create(b->engine, &session, &error), &error);
    gumbel_session_set_seed(session, seed);
    options.size = sizeof options;
    options.sampling = &sampling;
    options.max_new_tokens = MOST_TOKENS;
    options.tokenizer = b->tokenizer;
    assert_ok(gumbel_generate(session, b->prompt, b->prompt_count, &options, &error), &error);
    *a = (answer){0};
    while (a->finish == GUMBEL_FINISH_NONE) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(session, &next, &error), &error);
        add(a, next.token, next.text, next.text_length);
        a->finish = next.finish;
    }
    assert_ok(gumbel_session_draft_stats(session, drafts, &error), &error);
    gumbel_session_destroy(session);
}

static void answer_alone(const bundled *b, const gumbel_grammar *grammar, uint64_t seed, answer *a) {
    gumbel_draft_stats drafts = {.size = sizeof drafts};
    answer_with(b, (gumbel_generate_options){.grammar = grammar, .drafting = GUMBEL_DRAFTING_OFF}, seed, a,
                &drafts);
    assert_int_equal(drafts.steps, 0);
}

/* What the schema says, by hand. */
static void check_person(const answer *a) {
    json_error_t place;
    assert_int_equal(a->finish, GUMBEL_FINISH_STOP);
    json_t *person = json_loadb(a->text, a->length, JSON_REJECT_DUPLICATES, &place);
    if (!person)
        fail_msg("%s: %.*s", place.text, (int)a->length, a->text);
    const json_t *age = json_object_get(person, "age"), *tags = json_object_get(person, "tags");
    assert_true(json_is_string(json_object_get(person, "name")) && json_is_integer(age));
    assert_true(json_integer_value(age) >= 0 && json_integer_value(age) <= 120);
    assert_true(json_object_size(person) == (tags ? 3u : 2u) && json_array_size(tags) <= 2);
    json_decref(person);
}

static void handle_event(void *user, const gumbel_event *event) {
    answer *a = (answer *)user + event->answer;
    if (event->type == GUMBEL_EVENT_TOKEN)
        add(a, event->token, event->text, event->text_length);
    a->status = event->status;
    a->finish = event->finish;
}

/* In one batch, from the same seeds: answer i of a submission has the seed of that number. */
static uint32_t answer_count(void) {
    return (uint32_t)shortened(MOST_ANSWERS, 2);
}

static void answer_together(bundled *b, uint64_t seed, answer *answers) {
    gumbel_scheduler *scheduler;
    gumbel_grammar *own;
    const gumbel_grammar_options options = {
        .size = sizeof options, .kind = GUMBEL_GRAMMAR_JSON_SCHEMA, .text = schema};
    assert_ok(gumbel_scheduler_create(b->engine, NULL, &scheduler, &error), &error);
    assert_ok(gumbel_grammar_create(b->tokenizer, &options, &own, &error), &error);
    const gumbel_submission submission = {.size = sizeof submission,
                                          .tokens = b->prompt,
                                          .token_count = b->prompt_count,
                                          .callback = handle_event,
                                          .user = answers,
                                          .sampling = &sampling,
                                          .has_seed = true,
                                          .seed = seed,
                                          .answers = answer_count(),
                                          .max_new_tokens = MOST_TOKENS,
                                          .tokenizer = b->tokenizer,
                                          .grammar = own};
    assert_ok(gumbel_scheduler_submit(scheduler, &submission, NULL, &error), &error);
    gumbel_grammar_destroy(own); /* the answers have theirs */
    gumbel_scheduler_drain(scheduler);
    gumbel_scheduler_destroy(scheduler);
}

static void check_answers(bundled *b) {
    static answer alone[MOST_ANSWERS], together[MOST_ANSWERS];
    for (uint32_t i = 0; i < answer_count(); i++) {
        answer_alone(b, b->grammar, gumbel_answer_seed(5, i), &alone[i]);
        check_person(&alone[i]);
    }
    memset(together, 0, sizeof together);
    answer_together(b, 5, together);
    for (uint32_t i = 0; i < answer_count(); i++) {
        assert_int_equal(together[i].status, GUMBEL_OK);
        assert_int_equal(together[i].count, alone[i].count);
        assert_memory_equal(together[i].tokens, alone[i].tokens, alone[i].count * sizeof(int32_t));
    }
}

static void answers_are_what_the_schema_says(void **state) {
    (void)state;
    check_answers(&gemma);
    check_answers(&qwen);
}

static void every_kind_holds_its_answers(void **state) {
    (void)state;
    static const struct {
        gumbel_grammar_kind kind;
        const char *text, *first;
    } cases[] = {{GUMBEL_GRAMMAR_REGEX, "[a-c]{3}-\\d{2}", NULL},
                 {GUMBEL_GRAMMAR_GBNF, "root ::= \"yes\" | \"no\"", NULL},
                 {GUMBEL_GRAMMAR_CHOICES, "[\"north\"]", "north"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gumbel_grammar *grammar;
        const gumbel_grammar_options options = {
            .size = sizeof options, .kind = cases[i].kind, .text = cases[i].text};
        answer a;
        assert_ok(gumbel_grammar_create(gemma.tokenizer, &options, &grammar, &error), &error);
        answer_alone(&gemma, grammar, i, &a);
        assert_int_equal(a.finish, GUMBEL_FINISH_STOP);
        if (i == 0)
            assert_true(a.length == 6 && strspn(a.text, "abc") == 3 && a.text[3] == '-');
        else
            assert_true(strcmp(a.text, i == 1 && a.text[0] == 'y' ? "yes" : i == 1 ? "no" : "north") == 0);
        gumbel_grammar_destroy(grammar);
    }
}

/* A constraint behind a prompt that has opened reasoning; its grammar and budget stand in options. */
static gb_constraint *constrain_reasoning(const bundled *b, gb_constraint_options options) {
    int32_t prompt[MOST_PROMPT];
    gumbel_program_info info = {.size = sizeof info};
    gb_constraint *constraint;
    encode(b, GUMBEL_THINKING_ON, prompt, &options.prompt_count);
    assert_ok(gumbel_program_get_info(b->program, &info, &error), &error);
    options.prompt = prompt;
    options.tokenizer = b->tokenizer;
    options.vocab_size = info.vocab_size;
    options.end_tokens = info.stop_tokens;
    options.end_token_count = info.stop_token_count;
    assert_ok(gb_constraint_create(&options, &constraint, &error), &error);
    return constraint;
}

enum { MASK_WORDS = 1 << 13 };

/* The mask of the next token; all ones where any may be drawn. */
static void make_words(gb_constraint *constraint, uint32_t words[MASK_WORDS]) {
    const gb_mask_source mask = gb_constraint_mask(constraint);
    memset(words, 0xff, MASK_WORDS * sizeof *words);
    if (mask.make)
        mask.make(mask.user, words, 1);
}

static bool is_set(const uint32_t *words, int32_t token) {
    return (words[token / 32] >> token % 32 & 1) != 0;
}

static bool may_draw(gb_constraint *constraint, int32_t token) {
    uint32_t words[MASK_WORDS];
    make_words(constraint, words);
    return is_set(words, token);
}

/* Tokens that the mask allows. */
static size_t count_allowed(gb_constraint *constraint, int32_t vocab_size) {
    size_t count = 0;
    uint32_t words[MASK_WORDS];
    make_words(constraint, words);
    for (int32_t token = 0; token < vocab_size; token++)
        count += is_set(words, token);
    return count;
}

/* All is allowed up to the token that closes reasoning, but for the end of an answer that cannot be empty. */
static void the_grammar_begins_behind_reasoning(void **state) {
    (void)state;
    gb_constraint *constraint = constrain_reasoning(&qwen, (gb_constraint_options){.grammar = qwen.grammar});
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(qwen.program, &info, &error), &error);
    const int32_t end = gumbel_token_id(qwen.tokenizer, "</think>");
    assert_true(end >= 0);
    for (int32_t token = 20; token < 40; token++) {
        assert_int_equal(count_allowed(constraint, (int32_t)info.vocab_size),
                         info.vocab_size - info.stop_token_count);
        assert_false(may_draw(constraint, info.stop_tokens[0]));
        assert_ok(gb_constraint_accept(constraint, token, &error), &error);
    }
    assert_ok(gb_constraint_accept(constraint, end, &error), &error);
    assert_true(gb_constraint_mask(constraint).make != NULL);
    assert_fails(gb_constraint_accept(constraint, end, &error), GUMBEL_ERROR_ARGUMENT, &error, "expects");
    gb_constraint_destroy(constraint);
}

/* An answer under masks, with drafts that are what it becomes, but for some tokens, which the grammar may
 * refuse or allow. */
static void compare_drafted(const bundled *b, gumbel_generate_options options, uint64_t seed,
                            gumbel_draft_stats *sum) {
    static answer plain, drafted;
    int32_t predicted[MOST_TOKENS];
    gumbel_draft_stats drafts = {.size = sizeof drafts};
    options.drafting = GUMBEL_DRAFTING_OFF;
    answer_with(b, options, seed, &plain, &drafts);
    for (uint32_t i = 0; i < plain.count; i++)
        predicted[i] = (i + seed) % 9 == 8 ? plain.tokens[i / 2] : plain.tokens[i];
    options.drafting = GUMBEL_DRAFTING_LOOKUP;
    options.predicted_tokens = predicted;
    options.predicted_count = plain.count;
    answer_with(b, options, seed, &drafted, &drafts);
    assert_int_equal(drafted.count, plain.count);
    assert_int_equal(drafted.finish, plain.finish);
    assert_memory_equal(drafted.tokens, plain.tokens, plain.count * sizeof *plain.tokens);
    assert_int_equal(drafted.length, plain.length);
    assert_memory_equal(drafted.text, plain.text, plain.length);
    sum->proposed += drafts.proposed;
    sum->accepted += drafts.accepted;
}

static void drafts_follow_the_grammar(void **state) {
    (void)state;
    gumbel_draft_stats of_schema = {0}, of_reasoning = {0};
    for (uint64_t seed = 0; seed < (uint64_t)shortened(20, 4); seed++) {
        compare_drafted(&gemma, (gumbel_generate_options){.grammar = gemma.grammar}, seed, &of_schema);
        compare_drafted(&qwen, (gumbel_generate_options){.grammar = qwen.grammar}, seed, &of_schema);
        compare_drafted(&qwen,
                        (gumbel_generate_options){.grammar = seed % 2 ? qwen.grammar : NULL,
                                                  .reasons = true,
                                                  .has_reasoning_budget = true,
                                                  .reasoning_budget = (uint32_t)seed},
                        seed, &of_reasoning);
    }
    assert_true(of_schema.accepted > 20 && of_schema.proposed > of_schema.accepted);
    assert_true(of_reasoning.accepted > 10);
}

/* Biases that ban all that the grammar allows. */
static void an_answer_without_tokens_says_where(void **state) {
    (void)state;
    enum { WORDS = 4096, MOST_BIASES = 64 };
    static const char message[] = "no token may be drawn at $: the grammar expects ";
    gumbel_matcher *matcher;
    gumbel_session *session;
    gumbel_generated next = {.size = sizeof next};
    uint32_t words[WORDS];
    gumbel_bias bias[MOST_BIASES];
    gumbel_sampling banned = sampling;
    const gumbel_grammar_options of_array = {
        .size = sizeof of_array, .kind = GUMBEL_GRAMMAR_JSON_SCHEMA, .text = "{\"const\": [7]}"};
    gumbel_grammar *grammar;
    assert_ok(gumbel_grammar_create(gemma.tokenizer, &of_array, &grammar, &error), &error);
    assert_ok(gumbel_matcher_create(grammar, NULL, 0, &matcher, &error), &error);
    assert_ok(gumbel_matcher_mask(matcher, words, WORDS, &error), &error);
    gumbel_matcher_destroy(matcher);
    for (int32_t token = 0; token < WORDS * 32; token++)
        if (words[token / 32] >> token % 32 & 1) {
            assert_true(banned.bias_count < MOST_BIASES);
            bias[banned.bias_count++] = (gumbel_bias){token, -INFINITY};
        }
    banned.bias = bias;
    assert_ok(gumbel_session_create(gemma.engine, &session, &error), &error);
    const gumbel_generate_options options = {
        .size = sizeof options, .sampling = &banned, .tokenizer = gemma.tokenizer, .grammar = grammar};
    assert_ok(gumbel_generate(session, gemma.prompt, gemma.prompt_count, &options, &error), &error);
    assert_fails(gumbel_next(session, &next, &error), GUMBEL_ERROR_NUMERIC, &error, message);
    gumbel_session_destroy(session);
    gumbel_grammar_destroy(grammar);
}

/* With a grammar and without one: so many tokens, then the one that closes reasoning. */
static void reasoning_has_a_budget(void **state) {
    (void)state;
    const int32_t open = gumbel_token_id(qwen.tokenizer, "<think>"),
                  end = gumbel_token_id(qwen.tokenizer, "</think>");
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(qwen.program, &info, &error), &error);
    for (uint32_t budget = 0; budget < 8; budget++) {
        const gb_constraint_options options = {.grammar = budget % 2 ? qwen.grammar : NULL,
                                               .has_reasoning_budget = true,
                                               .reasoning_budget = budget};
        gb_constraint *constraint = constrain_reasoning(&qwen, options);
        for (uint32_t i = 0; i < budget; i++) {
            assert_true(may_draw(constraint, 30) && may_draw(constraint, end));
            assert_ok(gb_constraint_accept(constraint, 30, &error), &error);
        }
        assert_true(may_draw(constraint, end));
        assert_int_equal(count_allowed(constraint, (int32_t)info.vocab_size), 1);
        assert_ok(gb_constraint_accept(constraint, end, &error), &error);
        assert_false(may_draw(constraint, open));
        if (!options.grammar)
            assert_int_equal(count_allowed(constraint, (int32_t)info.vocab_size), info.vocab_size - 1);
        gb_constraint_destroy(constraint);
    }
}

/* What is not used of a budget holds for a thought that the answer opens later. */
static void a_budget_is_for_the_whole_answer(void **state) {
    (void)state;
    const int32_t open = gumbel_token_id(qwen.tokenizer, "<think>"),
                  end = gumbel_token_id(qwen.tokenizer, "</think>");
    gb_constraint *constraint = constrain_reasoning(
        &qwen, (gb_constraint_options){.has_reasoning_budget = true, .reasoning_budget = 3});
    const int32_t tokens[] = {30, 31, end, 40, 41, open, 32};
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        assert_null(gb_constraint_mask(constraint).make);
        assert_ok(gb_constraint_accept(constraint, tokens[i], &error), &error);
    }
    assert_true(may_draw(constraint, end));
    assert_false(may_draw(constraint, 30));
    gb_constraint_destroy(constraint);
}

/* A call ends reasoning, where the grammar has calls; elsewhere it is not drawn there. */
static void calls_within_reasoning(void **state) {
    (void)state;
    const int32_t open = gumbel_token_id(gemma.tokenizer, "<|channel>");
    const int32_t call = gumbel_token_id(gemma.tokenizer, "<|tool_call>");
    gumbel_grammar_options options = {.size = sizeof options,
                                      .kind = GUMBEL_GRAMMAR_TEXT,
                                      .tools = "[{\"name\": \"clock\"}]",
                                      .tool_choice = GUMBEL_TOOLS_REQUIRED};
    for (int is_called = 0; is_called < 2; is_called++) {
        gumbel_grammar *grammar = NULL;
        if (is_called)
            assert_ok(gumbel_grammar_create(gemma.tokenizer, &options, &grammar, &error), &error);
        gb_constraint *constraint = constrain_reasoning(
            &gemma, (gb_constraint_options){.grammar = is_called ? grammar : gemma.grammar, .reasons = true});
        assert_true(may_draw(constraint, open));
        assert_ok(gb_constraint_accept(constraint, open, &error), &error);
        assert_ok(gb_constraint_accept(constraint, 100, &error), &error);
        assert_int_equal(may_draw(constraint, call), is_called);
        if (is_called) {
            assert_ok(gb_constraint_accept(constraint, call, &error), &error);
            assert_false(may_draw(constraint, call));
            assert_fails(gb_constraint_accept(constraint, open, &error), GUMBEL_ERROR_ARGUMENT, &error,
                         "expects");
        }
        gb_constraint_destroy(constraint);
        gumbel_grammar_destroy(grammar);
    }
}

/* Free text with tools needs no mask until a call begins. */
static void text_with_tools_is_free(void **state) {
    (void)state;
    const int32_t call = gumbel_token_id(gemma.tokenizer, "<|tool_call>");
    const gumbel_grammar_options options = {
        .size = sizeof options, .kind = GUMBEL_GRAMMAR_TEXT, .tools = "[{\"name\": \"clock\"}]"};
    gumbel_grammar *grammar;
    assert_ok(gumbel_grammar_create(gemma.tokenizer, &options, &grammar, &error), &error);
    gb_constraint *constraint = constrain_reasoning(&gemma, (gb_constraint_options){.grammar = grammar});
    for (int32_t token = 100; token < 120; token++) {
        assert_null(gb_constraint_mask(constraint).make);
        assert_ok(gb_constraint_accept(constraint, token, &error), &error);
    }
    assert_ok(gb_constraint_accept(constraint, call, &error), &error);
    assert_non_null(gb_constraint_mask(constraint).make);
    gb_constraint_destroy(constraint);
    gumbel_grammar_destroy(grammar);
}

static void programs_without_masks_refuse(void **state) {
    (void)state;
    bundled b = open_bundled(bundled_model("gemma4-tiny"), "minimal");
    gumbel_session *session;
    assert_ok(gumbel_session_create(b.engine, &session, &error), &error);
    const gumbel_generate_options options = {.size = sizeof options, .grammar = b.grammar};
    assert_fails(gumbel_generate(session, b.prompt, b.prompt_count, &options, &error),
                 GUMBEL_ERROR_UNSUPPORTED, &error, "export it again");
    gumbel_session_destroy(session);
    close_bundled(&b);
}

static int open_both(void **state) {
    (void)state;
    gemma = open_bundled(bundled_model("gemma4-tiny"), "full");
    qwen = open_bundled(bundled_model("qwen3_5-moe-tiny"), "full");
    return 0;
}

static int close_both(void **state) {
    (void)state;
    close_bundled(&gemma);
    close_bundled(&qwen);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_what_the_schema_says),
        cmocka_unit_test(every_kind_holds_its_answers),
        cmocka_unit_test(the_grammar_begins_behind_reasoning),
        cmocka_unit_test(drafts_follow_the_grammar),
        cmocka_unit_test(an_answer_without_tokens_says_where),
        cmocka_unit_test(reasoning_has_a_budget),
        cmocka_unit_test(a_budget_is_for_the_whole_answer),
        cmocka_unit_test(calls_within_reasoning),
        cmocka_unit_test(text_with_tools_is_free),
        cmocka_unit_test(programs_without_masks_refuse),
    };
    return cmocka_run_group_tests(tests, open_both, close_both);
}
