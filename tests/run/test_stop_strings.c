/* SPDX-License-Identifier: Apache-2.0
 *
 * Generation that gives text and ends at stop strings: the text is that without them up to the first one, the
 * session is as if nothing had been computed behind it. On random weights, whose tokens are single bytes of a
 * byte-level tokenizer.
 */
#include "run/handles.h"
#include "support/backend.h"
#include "support/naive_stops.h"
#include "support/paths.h"
#include "support/programs/random_program.h"
#include "support/test_arguments.h"
#include "text/tokenizer/tokenizer.h"

enum { VOCAB = 160, PROMPT = 20, ANSWER = 32, MOST_BYTES = 4 * ANSWER, SEED = 11 };

/* Every case on the CPU; every so-many-th on backends whose tests also run on an emulated device. */
static size_t stride(size_t others) {
    return strcmp(GUMBEL_TEST_BACKEND, "cpu") == 0 && !is_short_run() ? 1 : others;
}

static gumbel_error error;
static gumbel_tokenizer *tokenizer;
static gumbel_program *program;
static gumbel_engine *engine;
static gumbel_session *session;
static int32_t prompt[PROMPT];

static void start(const char *config) {
    program = open_random_program(config, false);
    gumbel_engine_options options = {
        .size = sizeof options, .slots = 2, .threads = 2, .backend = GUMBEL_TEST_BACKEND};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    random_tokens(1, VOCAB, prompt, PROMPT);
}

static void finish(void) {
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

typedef struct answer {
    int32_t tokens[ANSWER];
    float logprobs[ANSWER];
    size_t count;
    char text[MOST_BYTES];
    size_t length;
    gumbel_finish finish;
    int32_t stop;
} answer;

static void take(answer *a) {
    gumbel_generated next = {.size = sizeof next};
    assert_ok(gumbel_next(session, &next, &error), &error);
    assert_true(a->count < ANSWER && a->length + next.text_length <= MOST_BYTES);
    a->tokens[a->count] = next.token;
    a->logprobs[a->count++] = next.logprob;
    memcpy(a->text + a->length, next.text, next.text_length);
    a->length += next.text_length;
    a->finish = next.finish;
    a->stop = next.stop_string;
}

static const gumbel_sampling hot = {
    .size = sizeof hot, .temperature = 2, .top_p = 1, .repetition_penalty = 1, .frequency_penalty = 0.5f};

static gumbel_generate_options options_of(const char *const *stops, size_t count, uint32_t most) {
    return (gumbel_generate_options){.size = sizeof(gumbel_generate_options),
                                     .sampling = &hot,
                                     .max_new_tokens = most,
                                     .ignore_stop = true,
                                     .wants_logprob = true,
                                     .tokenizer = tokenizer,
                                     .stop_strings = stops,
                                     .stop_string_count = count};
}

static void generate(const int32_t *tokens, size_t count, const gumbel_generate_options *options, answer *a) {
    *a = (answer){.count = 0};
    assert_ok(gumbel_generate(session, tokens, count, options, &error), &error);
    while (!a->finish)
        take(a);
}

/* From the beginning of the session, with the same seed each time. */
static void answer_prompt(const char *const *stops, size_t count, uint32_t most, answer *a) {
    const gumbel_generate_options options = options_of(stops, count, most);
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, SEED);
    generate(prompt, PROMPT, &options, a);
}

/* ---- Text ---------------------------------------------------------------------------------------------- */

static void text_is_that_of_the_tokens(void **state) {
    start(*state);
    answer a;
    gumbel_detokenizer *detokenizer;
    char expected[MOST_BYTES] = "";
    size_t used = 0, length;
    const char *text;
    answer_prompt(NULL, 0, ANSWER, &a);
    assert_int_equal(a.finish, GUMBEL_FINISH_LENGTH);
    assert_int_equal(a.stop, -1);
    assert_ok(gumbel_detokenizer_create(tokenizer, false, &detokenizer, &error), &error);
    for (size_t i = 0; i <= a.count; i++) {
        if (i < a.count)
            assert_ok(gumbel_detokenize(detokenizer, a.tokens[i], &text, &length, &error), &error);
        else
            gumbel_detokenize_end(detokenizer, &text, &length);
        memcpy(expected + used, text, length);
        used += length;
    }
    assert_int_equal(a.length, used);
    assert_memory_equal(a.text, expected, used);
    gumbel_detokenizer_destroy(detokenizer);
    finish();
}

/* Every piece of the text as a stop string, beside another one: the text up to where it stands first. */
static void the_text_up_to_the_stop_string(void **state) {
    start(*state);
    answer whole, cut;
    answer_prompt(NULL, 0, ANSWER, &whole);
    for (size_t begin = 0; begin < whole.length; begin += stride(7)) {
        if (((uint8_t)whole.text[begin] & 0xC0) == 0x80)
            continue;
        size_t end = begin;
        for (int i = 0; i < 4 && end < whole.length; i++) {
            char stop[MOST_BYTES] = "";
            end += gb_utf8_size(whole.text[end]);
            memcpy(stop, whole.text + begin, end - begin);
            if (stride(2) > 1 && i % 2 == 0)
                continue;
            const char *const stops[] = {"not in it", stop};
            naive_stop expected = naive_find(stops, 2, whole.text, whole.length);
            answer_prompt(stops, 2, ANSWER, &cut);
            assert_int_equal(cut.finish, GUMBEL_FINISH_STOP_STRING);
            assert_int_equal(cut.stop, 1);
            assert_int_equal(cut.length, expected.begin);
            assert_memory_equal(cut.text, whole.text, cut.length);
            assert_memory_equal(cut.tokens, whole.tokens, cut.count * sizeof *cut.tokens);
            assert_memory_equal(cut.logprobs, whole.logprobs, cut.count * sizeof *cut.logprobs);
            assert_int_equal(gumbel_session_position(session, NULL), PROMPT + cut.count - 1);
        }
    }
    finish();
}

/* What ends the generation otherwise gives what was held back, and the string where that is wanted. */
static void nothing_is_lost(void **state) {
    start(*state);
    answer whole, cut;
    answer_prompt(NULL, 0, ANSWER, &whole);
    for (uint32_t most = 1; most < ANSWER; most += (uint32_t)stride(9)) {
        answer_prompt(NULL, 0, most, &cut);
        const answer plain = cut;
        char stop[MOST_BYTES + 8] = "";
        memcpy(stop, plain.text, plain.length);
        strcat(stop, "and more");
        const char *const stops[] = {stop};
        answer_prompt(stops, 1, most, &cut);
        assert_int_equal(cut.finish, GUMBEL_FINISH_LENGTH);
        assert_int_equal(cut.length, plain.length);
        assert_memory_equal(cut.text, plain.text, plain.length);
    }
    char first[8] = "";
    memcpy(first, whole.text, gb_utf8_size(whole.text[0]));
    const char *const stops[] = {first};
    gumbel_generate_options options = options_of(stops, 1, ANSWER);
    options.include_stop_string = true;
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, SEED);
    generate(prompt, PROMPT, &options, &cut);
    assert_int_equal(cut.finish, GUMBEL_FINISH_STOP_STRING);
    assert_int_equal(cut.length, strlen(first));
    assert_memory_equal(cut.text, first, cut.length);
    finish();
}

/* A cancel gives what was held back; the next generation goes on with the token after it. */
static void a_cancel_gives_what_was_held_back(void **state) {
    start(*state);
    answer whole, part = {.count = 0};
    answer_prompt(NULL, 0, 8, &whole);
    char stop[MOST_BYTES + 8] = "";
    memcpy(stop, whole.text, whole.length);
    strcat(stop, "and more");
    const char *const stops[] = {stop};
    const gumbel_generate_options options = options_of(stops, 1, 0);
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, SEED);
    assert_ok(gumbel_generate(session, prompt, PROMPT, &options, &error), &error);
    while (part.count < 8)
        take(&part);
    assert_true(part.length < whole.length);
    gumbel_session_cancel(session);
    gumbel_generated next = {.size = sizeof next, .token = -7};
    assert_fails(gumbel_next(session, &next, &error), GUMBEL_ERROR_CANCELLED, &error, "cancelled");
    assert_int_equal(next.token, -7);
    assert_int_equal(part.length + next.text_length, whole.length);
    assert_memory_equal(next.text, whole.text + part.length, next.text_length);
    finish();
}

/* ---- The session after it ------------------------------------------------------------------------------ */

/* The next turn after a stop string is that after as many tokens that ended for another reason. */
static void the_next_turn_is_the_same(void **state) {
    start(*state);
    answer whole, cut, turn, expected;
    const gumbel_generate_options next = options_of(NULL, 0, 8);
    answer_prompt(NULL, 0, ANSWER, &whole);
    for (size_t at = 1; at < whole.length / 2; at += 3 * stride(3)) {
        while (((uint8_t)whole.text[at] & 0xC0) == 0x80)
            at++;
        char stop[8] = "";
        memcpy(stop, whole.text + at, gb_utf8_size(whole.text[at]));
        const char *const stops[] = {stop};
        answer_prompt(stops, 1, ANSWER, &cut);
        assert_int_equal(cut.finish, GUMBEL_FINISH_STOP_STRING);
        generate(prompt + 4, 5, &next, &turn);
        const int32_t *held;
        assert_int_equal(gumbel_session_position(session, &held), PROMPT + cut.count + 5 + turn.count - 1);
        assert_memory_equal(held + PROMPT, cut.tokens, cut.count * sizeof *held);
        answer_prompt(NULL, 0, (uint32_t)cut.count, &cut);
        assert_int_equal(cut.finish, GUMBEL_FINISH_LENGTH);
        generate(prompt + 4, 5, &next, &expected);
        assert_memory_equal(turn.tokens, expected.tokens, sizeof turn.tokens);
        assert_memory_equal(turn.logprobs, expected.logprobs, sizeof turn.logprobs);
    }
    finish();
}

/* ---- What is refused ----------------------------------------------------------------------------------- */

static void bad_options_are_refused(void **state) {
    start(*state);
    const char *const empty[] = {"a", ""}, *const good[] = {"a"};
    gumbel_generate_options options = options_of(empty, 2, 3);
    answer a;
    assert_fails(gumbel_generate(session, prompt, 3, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "stop string 1 of 2 is empty");
    options = options_of(good, 1, 3);
    options.tokenizer = NULL;
    assert_fails(gumbel_generate(session, prompt, 3, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "stop_strings need a tokenizer");
    options.tokenizer = tokenizer;
    const uint32_t limit = tokenizer->id_limit;
    tokenizer->id_limit = VOCAB - 1;
    assert_fails(gumbel_generate(session, prompt, 3, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "the tokenizer has 159 ids and the program 160");
    tokenizer->id_limit = limit;
    assert_fails(gumbel_next(session, NULL, &error), GUMBEL_ERROR_ARGUMENT, &error, "generated: NULL");
    generate(prompt, 3, &options, &a);
    options = options_of(NULL, 0, 3);
    options.tokenizer = NULL; /* without text again */
    assert_ok(gumbel_generate(session, prompt, 3, &options, &error), &error);
    gumbel_generated next = {.size = sizeof next};
    assert_ok(gumbel_next(session, &next, &error), &error);
    assert_null(next.text);
    assert_int_equal(next.stop_string, -1);
    finish();
}

static int open_tokenizer(void **state) {
    (void)state;
    assert_ok(gumbel_export_tokenizer(bundled_model("qwen3_5-moe-tiny"), &tokenizer, &error), &error);
    return 0;
}

static int close_tokenizer(void **state) {
    (void)state;
    gumbel_tokenizer_destroy(tokenizer);
    return 0;
}

/* Rings, which may be overwritten by steps ahead, and recurrent states, which cannot go back. */
#define FOR_BOTH(test)                                                                                       \
    {#test "_rings", test, NULL, NULL, "small.json"}, {                                                      \
#test "_recurrent", test, NULL, NULL, "qwen.json"                                                    \
    }

int main(int argument_count, char **arguments) {
    const struct CMUnitTest tests[] = {
        FOR_BOTH(text_is_that_of_the_tokens),
        FOR_BOTH(the_text_up_to_the_stop_string),
        FOR_BOTH(nothing_is_lost),
        FOR_BOTH(a_cancel_gives_what_was_held_back),
        FOR_BOTH(the_next_turn_is_the_same),
        {"bad_options_are_refused", bad_options_are_refused, NULL, NULL, "small.json"},
    };
    read_test_arguments(argument_count, arguments);
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
