/* SPDX-License-Identifier: Apache-2.0
 *
 * --stop and /set stop: what is printed of an answer, and how a conversation goes on after it.
 */
#include "cli/fixture.h"

#include "cli/model/stops.h"
#include "support/paths.h"

static const char *model, *logits_model, *bare;

static const char *export_model(const char *name, const char *flag) {
    static char paths[2][4096];
    static size_t next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], "%s", temporary_path(name));
    free(output_of(GUMBEL(NULL, "export", bundled_model("gemma4-tiny"), "-o", path, "--quiet", flag)));
    return path;
}

static int set_up(void **state) {
    (void)state;
    static char path[4096];
    model = export_model("model.gumbel", NULL);
    logits_model = export_model("logits.gumbel", "--logits");
    snprintf(path, sizeof path, "%s", temporary_path("bare.gumbel"));
    free(output_of(
        GUMBEL(NULL, "export", test_data("run/small.json"), "--random-weights", "1", "-o", path, "--quiet")));
    bare = path;
    return 0;
}

/* ---- The texts of flags -------------------------------------------------------------------------------- */

static void escapes_stand_for_characters(void **state) {
    (void)state;
    cli_stops stops = {0};
    const cli_stop_options options = {
        .strings = {.count = 5, .list = {"\\n", "a\\tb\\\\n", "\\end{x}", "\\", "\xE2\x82\xAC\\r"}},
        .included = true};
    cli_read_stops(&options, &stops);
    assert_int_equal(stops.count, 5);
    assert_string_equal(stops.texts[0], "\n");
    assert_string_equal(stops.texts[1], "a\tb\\n");
    assert_string_equal(stops.texts[2], "\\end{x}");
    assert_string_equal(stops.texts[3], "\\");
    assert_string_equal(stops.texts[4], "\xE2\x82\xAC\r");
    assert_true(stops.included);
    cli_read_stops(&(const cli_stop_options){.included = false}, &stops);
    assert_int_equal(stops.count, 0);
    cli_stops_free(&stops);
}

static void lists_have_limits(void **state) {
    (void)state;
    cli_strings strings = {0};
    assert_false(cli_add_string("", &strings));
    for (int i = 0; i < CLI_MOST_STRINGS; i++)
        assert_true(cli_add_string("x", &strings));
    assert_false(cli_add_string("x", &strings));
    assert_int_equal(strings.count, CLI_MOST_STRINGS);
    assert_true(cli_clear_strings(&strings));
    assert_int_equal(strings.count, 0);
}

/* ---- run ----------------------------------------------------------------------------------------------- */

#define STORY(program, ...)                                                                                  \
    GUMBEL(NULL, "run", program, "--raw", "-p", "Once upon a time", "-n", "40", "--temperature", "0",        \
           __VA_ARGS__)

/* Checks that an answer is the first length bytes of the story. */
static void assert_begins(char *answer, const char *story, size_t length) {
    assert_int_equal(strlen(answer), length);
    assert_int_equal(strncmp(answer, story, length), 0);
    free(answer);
}

static void answers_end_before_the_text(void **state) {
    (void)state;
    char *story = output_of(STORY(model, NULL));
    size_t dot = strcspn(story, "."), comma = strcspn(story + 1, ",") + 1;
    assert_true(dot < strlen(story) && comma < strlen(story));
    assert_begins(output_of(STORY(model, "--stop", ".")), story, dot);
    assert_begins(output_of(STORY(model, "-r", ".")), story, dot);
    assert_begins(output_of(STORY(model, "--reverse-prompt", ".", "--include-stop")), story, dot + 1);
    assert_begins(output_of(STORY(model, "--stop", "nowhere", "--stop", ". ")), story, dot);
    assert_begins(output_of(STORY(model, "--stop", "nowhere")), story, strlen(story));
    assert_begins(output_of(STORY(logits_model, NULL)), story, strlen(story));
    assert_begins(output_of(STORY(logits_model, "--stop", ". ")), story, dot);
    assert_begins(output_of(STORY(logits_model, "--stop", ".", "--include-stop")), story, dot + 1);
    free(story);
}

/* A newline that the user wrote as \n. */
static void escapes_are_found(void **state) {
    (void)state;
    char *story = output_of(STORY(model, "-n", "120"));
    const size_t line = strcspn(story, "\n");
    assert_true(line < strlen(story));
    assert_begins(output_of(STORY(model, "-n", "120", "--stop", "\\n")), story, line);
    free(story);
}

static size_t count(const char *text, char c) {
    size_t found = 0;
    for (; *text; text++)
        found += *text == c;
    return found;
}

/* Tokens are printed up to the one that completes the text. */
static void tokens_end_with_the_text(void **state) {
    (void)state;
    char *all = output_of(STORY(model, "--print-tokens")),
         *some = output_of(STORY(model, "--print-tokens", "--stop", ".")),
         *lines = output_of(STORY(model, "--logprobs", "--stop", "."));
    assert_true(strlen(some) < strlen(all));
    assert_int_equal(strncmp(all, some, strlen(some)), 0);
    assert_int_equal(count(lines, '\n'), count(some, ','));
    assert_has(strrchr(lines, '\n'), "\".");
    free(all), free(some), free(lines);
}

static void bad_texts_are_refused(void **state) {
    (void)state;
    command_result result = STORY(model, "--stop", "");
    assert_status(result, 2);
    assert_one_error_line(&result, "--stop \"\": expected a text that is not empty");
    free_result(&result);
    result = STORY(model, "--stop", "\xC3");
    assert_status(result, 1);
    assert_one_error_line(&result, "stop string 0 of 1 is not UTF-8");
    free_result(&result);
    result = GUMBEL(NULL, "run", bare, "--tokens", "2,3", "--print-tokens", "--stop", "x");
    assert_status(result, 1);
    assert_one_error_line(&result, "--stop: the program has no tokenizer");
    free_result(&result);
}

/* ---- chat ---------------------------------------------------------------------------------------------- */

#define CHAT(input, ...) output_of(GUMBEL(input, "chat", model, "--temperature", "0", __VA_ARGS__))

static void settings_can_be_changed(void **state) {
    (void)state;
    char *whole = CHAT("Hello, who are you?\n", NULL);
    char *cut = CHAT("/set stop nowhere\n/set stop .\nHello, who are you?\n", NULL);
    assert_begins(cut, whole, strcspn(whole, "."));
    char *again = CHAT("/set stop .\n/set stop\nHello, who are you?\n", NULL);
    assert_string_equal(again, whole);
    free(again);
    command_result result = GUMBEL("/set stop\n/set stop \\n\n/set stops x\n", "chat", model);
    assert_status(result, 1);
    assert_has(result.errors, "there is no setting stops");
    free_result(&result);
    free(whole);
}

/* The model's own words stay in the session, the text that ended them included: the next reply is that after
 * as many tokens that ended for another reason. */
static void the_next_turn_goes_on(void **state) {
    (void)state;
    char *tokens = output_of(GUMBEL(NULL, "run", model, "-p", "Hello, who are you?", "--temperature", "0",
                                    "--stop", ".", "--print-tokens"));
    char most[32];
    snprintf(most, sizeof most, "%zu", count(tokens, ',') + 1);
    char *stopped = CHAT("Hello, who are you?\n/set stop\nWhy is the sky blue?\n", "--stop", ".");
    char *limited = CHAT("Hello, who are you?\n/set max-new-tokens -1\nWhy is the sky blue?\n", "-n", most);
    assert_non_null(strchr(stopped, '\n'));
    assert_string_equal(strchr(stopped, '\n'), strchr(limited, '\n'));
    assert_true(strlen(strchr(stopped, '\n')) > 8);
    free(tokens), free(stopped), free(limited);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_stand_for_characters), cmocka_unit_test(lists_have_limits),
        cmocka_unit_test(answers_end_before_the_text),  cmocka_unit_test(escapes_are_found),
        cmocka_unit_test(tokens_end_with_the_text),     cmocka_unit_test(bad_texts_are_refused),
        cmocka_unit_test(settings_can_be_changed),      cmocka_unit_test(the_next_turn_goes_on),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
