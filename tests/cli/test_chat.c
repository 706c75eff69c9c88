/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel chat through a pipe: one line in, one reply out. Replies are random text of a few tokens; newlines
 * in it are cut by looking at the whole output only.
 */
#include "cli/fixture.h"
#include "support/paths.h"

#include <signal.h>
#include <unistd.h>

static const char *program;

static int set_up(void **state) {
    (void)state;
    program = export_program("chat.gumbel", "512", false);
    return 0;
}

/* The whole output for these lines; each reply has at most 12 tokens. */
#define CHAT(lines, ...)                                                                                     \
    GUMBEL(lines, "chat", program, "-n", "12", "--temp", "1.2", "--seed", "5", __VA_ARGS__)

static char *chat(const char *lines) {
    return output_of(CHAT(lines, NULL));
}

/* What the longer output has after the shorter one, which must begin it. Free with free(). */
static char *rest_after(const char *longer, const char *shorter) {
    assert_int_equal(strncmp(longer, shorter, strlen(shorter)), 0);
    return strdup(longer + strlen(shorter));
}

static void a_turn_is_what_run_answers(void **state) {
    (void)state;
    char *turn = chat("Hello\n");
    char *answer =
        output_of(GUMBEL(NULL, "run", program, "-n", "12", "--temp", "1.2", "--seed", "5", "-p", "Hello"));
    assert_string_equal(turn, answer);
    assert_true(strlen(turn) > 0);
    free(turn);
    free(answer);
}

static void the_second_turn_knows_the_first(void **state) {
    (void)state;
    char *first = chat("Hello\n"), *other = chat("The cat sat.\n");
    char *both = chat("Hello\nWhy?\n"), *both_other = chat("The cat sat.\nWhy?\n");
    char *second = rest_after(both, first), *second_other = rest_after(both_other, other);
    assert_true(strlen(second) > 1);
    assert_string_not_equal(second, second_other);
    free(first), free(other), free(both), free(both_other), free(second), free(second_other);
}

/* Only what is new is run: the second turn's text and, since the template writes earlier replies without the
 * empty thought that they were generated after, the 12 tokens of the reply. */
static void a_turn_runs_only_what_is_new(void **state) {
    (void)state;
    command_result result = CHAT(
        "Tell me a long story about a little cat who sat by the window and saw a badger.\nWhy?\n/stats\n",
        NULL);
    assert_status(result, 0);
    int tokens = 0;
    const char *line = strstr(result.errors, "prompt  ");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "prompt %d tokens", &tokens), 1);
    assert_in_range(tokens, 5, 20 + 12);
    assert_has(result.errors, "next seed        29\n"); /* 5, and two replies of 12 tokens */
    free_result(&result);
}

/* Going back and drawing with the same seeds gives the same bits as the first time. */
static void regenerating_with_the_seed_of_the_reply_repeats_it(void **state) {
    (void)state;
    char *before = chat("Hello\n"), *once = chat("Hello\nWhy?\n");
    char *twice = chat("Hello\nWhy?\n/seed 17\n/regen\n"), *other = chat("Hello\nWhy?\n/regen\n");
    char *reply = rest_after(once, before), *again = rest_after(twice, once),
         *another = rest_after(other, once);
    assert_string_equal(reply, again);
    assert_string_not_equal(reply, another);
    free(before), free(once), free(twice), free(other), free(reply), free(again), free(another);
}

/* After a reset and the first seed all is as at the start. */
static void reset_begins_anew(void **state) {
    (void)state;
    char *once = chat("Hello\nWhy?\n"), *twice = chat("Hello\nWhy?\n/reset\n/seed 5\nHello\nWhy?\n");
    char *again = rest_after(twice, once);
    assert_string_equal(again + 1, once); /* after the newline that output_of took from once */
    free(once), free(twice), free(again);
}

static void settings_change_at_run_time(void **state) {
    (void)state;
    char *greedy = output_of(GUMBEL(NULL, "run", program, "-n", "6", "--temp", "0", "-p", "Hello"));
    char *set = chat("/set temperature 0\n/set max-new-tokens 6\nHello\n");
    assert_string_equal(set, greedy);
    free(greedy), free(set);
}

static void a_saved_conversation_goes_on(void **state) {
    (void)state;
    char lines[512];
    const char *path = temporary_path("chat.session");
    snprintf(lines, sizeof lines, "Hello\n/save %s\nWhy?\n", path);
    char *first = chat("Hello\n"), *whole = chat(lines);
    snprintf(lines, sizeof lines, "/load %s\n/seed 17\nWhy?\n", path);
    char *loaded = chat(lines), *second = rest_after(whole, first);
    assert_string_equal(second + 1, loaded);
    free(first), free(whole), free(loaded), free(second);
}

/* The file of ~ is the same by its whole path. */
static void a_tilde_is_the_home(void **state) {
    (void)state;
    char lines[512];
    snprintf(lines, sizeof lines, "Hello\n/save ~/home.session\n/load %s\n/load ~/home.session\n/save ~\n",
             temporary_path("home.session"));
    setenv("HOME", temporary_directory(), 1);
    command_result result = CHAT(lines, NULL);
    assert_status(result, 1);
    assert_one_error_line(&result, temporary_directory()); /* the last one is a directory */
    free_result(&result);
}

/* A message ends where its line does, not at a zero byte: it is refused, and those around it are not. */
static void zero_bytes_are_refused(void **state) {
    (void)state;
    static const char input[] = "Hel\0lo\n/re\0set\nHello\n";
    running_command started;
    start_command(&started, (const char *const[]){gumbel_command_path, "chat", program, "-n", "12", "--temp",
                                                  "1.2", "--seed", "5", NULL});
    assert_int_equal(write(started.input, input, sizeof input - 1), sizeof input - 1);
    feed_command(&started, NULL);
    command_result result = finish_command(&started, 60);
    assert_status(result, 1);
    assert_has(result.errors, "the message has a zero byte");
    assert_has(result.errors, "a command has no zero bytes");
    char *expected = chat("Hello\n");
    assert_int_equal(strncmp(result.output, expected, strlen(expected)), 0);
    assert_int_equal(result.output_length, strlen(expected) + 1);
    free(expected);
    free_result(&result);
}

/* Quotes are for people: in a pipe each line is a turn. */
static void quotes_in_a_pipe_are_text(void **state) {
    (void)state;
    char *once = chat("\"\"\"\n"), *twice = chat("\"\"\"\nHello\n");
    char *rest = rest_after(twice, once);
    assert_true(strlen(rest) > 1);
    free(once), free(twice), free(rest);
}

static void system_messages_matter(void **state) {
    (void)state;
    char *without = chat("Hello\n"), *with = output_of(CHAT("Hello\n", "--system", "Be brief."));
    char *changed = chat("/set system Be brief.\nHello\n");
    assert_string_not_equal(without, with);
    assert_string_equal(with, changed);
    free(without), free(with), free(changed);
}

/* The template opens a thought, and the model, being random, repeats its last token when it is greedy: the
 * first reply is one long thought. The second turn must be that of a conversation without it. */
static void thoughts_are_not_replayed(void **state) {
    (void)state;
    const char *format = test_data("cli/thinks.jinja");
    const char *json = temporary_path("thought.json");
    write_text(json, "[{\"role\":\"user\",\"content\":\"Hello\"},{\"role\":\"assistant\",\"content\":\"\"},"
                     "{\"role\":\"user\",\"content\":\"Why?\"}]");
    char *ids =
        output_of(GUMBEL(NULL, "tokenize", program, "--messages", json, "--chat-template-file", format));
    char *expected =
        output_of(GUMBEL(NULL, "run", program, "--tokens", ids, "-n", "12", "--temp", "1.2", "--seed", "9"));
    char *thought =
        output_of(CHAT("/set temperature 0\nHello\n", "--chat-template-file", format, "--reasoning", "show"));
    command_result result = CHAT("/set temperature 0\nHello\n/set temperature 1.2\n/seed 9\nWhy?\n/stats\n",
                                 "--chat-template-file", format, "--reasoning", "show");
    assert_status(result, 0);
    char *reply = rest_after(result.output, thought);
    const char *thinks = expected + strspn(expected, " "); /* around a thought no blanks are printed */
    assert_int_equal(strncmp(reply + 1, thinks, strlen(thinks)), 0);
    assert_int_equal(strlen(reply), strlen(thinks) + 2); /* and a newline on either side */
    int tokens = 0, all = 1;
    for (const char *comma = ids; (comma = strchr(comma, ',')); comma++)
        all++;
    assert_int_equal(sscanf(strstr(result.errors, "prompt  "), "prompt %d tokens", &tokens), 1);
    assert_in_range(tokens, 3, all - 4); /* what both have in common was not run again */
    free(ids), free(expected), free(thought), free(reply);
    free_result(&result);
}

static void plain_text_is_continued(void **state) {
    (void)state;
    char *chatted = output_of(CHAT("The cat\n", "--raw"));
    char *continued = output_of(
        GUMBEL(NULL, "run", program, "-n", "12", "--temp", "1.2", "--seed", "5", "--raw", "-p", "The cat"));
    assert_string_equal(chatted, continued);
    free(chatted), free(continued);
}

/* Each wrong line is reported in one line; those around it work; the status is 1. */
static void mistakes_do_not_end_the_chat(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"/frobnicate\n", "there is no command /frobnicate; /help lists them"},
        {"/sav x\n", "there is no command /sav; did you mean /save?"},
        {"/regne\n", "did you mean /regen?"},
        {"/x\n", "there is no command /x; /help lists them"},
        {"/regen\n", "there is no reply to replace"},
        {"/seed\n", "/seed needs N"},
        {"/seed x\n", "--seed x: expected"},
        {"/set temperature 7e9\n", "--temperature 7e9: expected 0 or a number"},
        {"/set threads 2\n", "threads cannot be changed now"},
        {"/set temprature 1\n", "did you mean temperature?"},
        {"/load /no/such/file\n", "/no/such/file"},
        {"/reset now\n", "/reset takes nothing after it"},
    };
    char *expected = chat("Hello\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char lines[128];
        snprintf(lines, sizeof lines, "%sHello\n", cases[i][0]);
        command_result result = CHAT(lines, NULL);
        assert_status(result, 1);
        assert_one_error_line(&result, cases[i][1]);
        assert_int_equal(strncmp(result.output, expected, strlen(expected)), 0);
        free_result(&result);
    }
    free(expected);
}

static void a_full_context_is_generic(void **state) {
    (void)state;
    command_result result = GUMBEL("Hello\nHello again\n/reset\nHello\n", "chat", program, "--temp", "1",
                                   "--seed", "5", "-c", "40");
    assert_status(result, 1);
    assert_has(result.errors, "the context of 40 positions is full");
    assert_has(result.errors, "the context has no room for this turn");
    free_result(&result);
}

static void exit_ends_it(void **state) {
    (void)state;
    char *nothing = chat("/exit\nHello\n");
    assert_string_equal(nothing, "");
    free(nothing);
}

static void interrupt_in_a_pipe_ends_it(void **state) {
    (void)state;
    const char *path = export_program("long.gumbel", "60000", false);
    running_command started;
    start_command(&started, (const char *const[]){gumbel_command_path, "chat", path, "--temp", "3", "--seed",
                                                  "5", NULL});
    feed_command(&started, "Hello\nHello\nHello\nHello\n");
    await_output(&started, 100, 60);
    assert_int_equal(kill(started.process, SIGINT), 0);
    command_result result = finish_command(&started, 60);
    assert_status(result, 130);
    assert_int_equal(result.output[result.output_length - 1], '\n');
    free_result(&result);
}

static void without_a_tokenizer_it_says_what_to_do(void **state) {
    (void)state;
    const char *bare = temporary_path("bare.gumbel");
    char *nothing = output_of(
        GUMBEL(NULL, "export", test_data("cli/config.json"), "--random-weights", "7", "-o", bare, "-q"));
    free(nothing);
    command_result result = GUMBEL("Hello\n", "chat", bare);
    assert_status(result, 1);
    assert_one_error_line(&result, "the program has no tokenizer");
    free_result(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_is_what_run_answers),
        cmocka_unit_test(the_second_turn_knows_the_first),
        cmocka_unit_test(a_turn_runs_only_what_is_new),
        cmocka_unit_test(regenerating_with_the_seed_of_the_reply_repeats_it),
        cmocka_unit_test(reset_begins_anew),
        cmocka_unit_test(settings_change_at_run_time),
        cmocka_unit_test(a_saved_conversation_goes_on),
        cmocka_unit_test(a_tilde_is_the_home),
        cmocka_unit_test(zero_bytes_are_refused),
        cmocka_unit_test(quotes_in_a_pipe_are_text),
        cmocka_unit_test(system_messages_matter),
        cmocka_unit_test(thoughts_are_not_replayed),
        cmocka_unit_test(plain_text_is_continued),
        cmocka_unit_test(mistakes_do_not_end_the_chat),
        cmocka_unit_test(a_full_context_is_generic),
        cmocka_unit_test(exit_ends_it),
        cmocka_unit_test(interrupt_in_a_pipe_ends_it),
        cmocka_unit_test(without_a_tokenizer_it_says_what_to_do),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
