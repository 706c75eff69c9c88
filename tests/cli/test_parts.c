/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands print of replies: thoughts, answers, calls of tools, and what they do with results. The
 * thoughts are those of the bundled model, which thinks before it answers. It calls no tools: there a
 * template begins a call, and a bias has the model end it with its first token.
 */
#include "cli/fixture.h"

#include "support/paths.h"
#include "support/run_terminal.h"

static const char *thinker, *caller;

#define CALL_TOKEN "8" /* <tool_call|> */
#define CALLS "--chat-template-file", test_data("cli/calls.jinja"), "--logit-bias", CALL_TOKEN "=100"

static int set_up(void **state) {
    (void)state;
    static char path[4096];
    snprintf(path, sizeof path, "%s", temporary_path("thinker.gumbel"));
    command_result result = GUMBEL(NULL, "export", bundled_model("qwen3_5-moe-tiny"), "-o", path);
    assert_status(result, 0);
    free_result(&result);
    thinker = path;
    caller = export_program("caller.gumbel", "512", false);
    setenv("HOME", temporary_directory(), 1);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    return 0;
}

/* ---- Thoughts ------------------------------------------------------------------------------------------ */

#define ASK(...)                                                                                             \
    output_of(GUMBEL(NULL, "run", thinker, "-p", "What is 3 + 4?", "--temp", "0", "-q", __VA_ARGS__))

static void a_pipe_gets_the_answer_alone(void **state) {
    (void)state;
    char *usual = ASK(NULL), *hidden = ASK("--reasoning", "hide");
    assert_has(usual, "7");
    assert_null(strstr(usual, "think"));
    assert_string_equal(usual, hidden);
    free(usual), free(hidden);
}

static void thoughts_are_shown_where_they_are_wanted(void **state) {
    (void)state;
    char *answer = ASK(NULL), *thought = ASK("--reasoning", "only"), *both = ASK("--reasoning", "show");
    char expected[1024];
    assert_true(strlen(thought) > 0);
    assert_null(strstr(thought, "7"));
    snprintf(expected, sizeof expected, "%s\n\n%s", thought, answer);
    assert_string_equal(both, expected);
    assert_null(strstr(both, "</think>"));
    free(answer), free(thought), free(both);
}

static void a_thought_that_is_cut_off_is_noted(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "run", thinker, "-p", "What is 3 + 4?", "--temp", "0", "-n", "4");
    assert_status(result, 0);
    assert_string_equal(result.output ? result.output : "", "");
    assert_has(result.errors, "the reply is a thought alone, which --reasoning show prints");
    free_result(&result);
}

static void a_terminal_shows_thoughts_dimmed(void **state) {
    (void)state;
    terminal_run run;
    start_on_terminal(&run, 80,
                      (const char *const[]){gumbel_command_path, "run", thinker, "-p", "What is 3 + 4?",
                                            "--temp", "0", NULL});
    assert_int_equal(finish_on_terminal(&run), 0);
    const char *begin = strstr(run.output, "\033[2m"), *end = strstr(run.output, "\033[0m");
    assert_non_null(begin);
    assert_true(end > begin + 10);
    assert_has(end, "7");
    free_terminal_run(&run);
}

static void json_has_the_message(void **state) {
    (void)state;
    char *json = ASK("--json"), *thought = ASK("--reasoning", "only"), expected[512];
    snprintf(expected, sizeof expected, "\"reasoning_content\":\"%s\"}", thought);
    assert_has(json, "\"message\":{\"role\":\"assistant\",\"content\":\"3 + 4 = 7.\"");
    assert_has(json, expected);
    assert_has(json, "{\"text\":\"3 + 4 = 7.\"");
    free(json), free(thought);
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

static const char *tools_file(void) {
    const char *path = temporary_path("tools.json");
    write_text(path, "[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":"
                     "\"object\",\"properties\":{\"days\":{\"type\":\"string\"}}}}}]");
    return path;
}

static void calls_are_printed(void **state) {
    (void)state;
    char *text = output_of(GUMBEL(NULL, "run", caller, "-p", "Hi", "-n", "1", CALLS));
    assert_string_equal(text, "weather(place: \"Rome\", days: 2)");
    char *json = output_of(GUMBEL(NULL, "run", caller, "-p", "Hi", "-n", "1", CALLS, "--json"));
    assert_has(json, "\"content\":null,\"tool_calls\":[{\"id\":\"call_");
    assert_has(json, "\"arguments\":\"{\\\"place\\\":\\\"Rome\\\",\\\"days\\\":2}\"}}]");
    /* The tool's schema says that it is a text. */
    char *typed = output_of(
        GUMBEL(NULL, "run", caller, "-p", "Hi", "-n", "1", CALLS, "--json", "--tools", tools_file()));
    assert_has(typed, "\\\"days\\\":\\\"2\\\"");
    free(text), free(json), free(typed);
}

/* What is wrong with the tools, in which file. */
static void broken_tools_are_named(void **state) {
    (void)state;
    static const char *const broken[][2] = {
        {"[\n{\"type\": \"function\",\n", "broken.json: tools: line 3: "},
        {"[{\"type\": \"function\", \"function\": {}}]", "broken.json: tool 0: function.name is nothing"},
        {"{}", "broken.json: tools: expected an array"},
    };
    const char *path = temporary_path("broken.json");
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        write_text(path, broken[i][0]);
        command_result result = GUMBEL(NULL, "run", caller, "-p", "Hi", "-n", "1", "--tools", path);
        assert_status(result, 1);
        assert_has(result.errors, broken[i][1]);
        free_result(&result);
        result = GUMBEL("Hi\n", "chat", caller, "-n", "1", "--tools", path);
        assert_status(result, 1);
        assert_has(result.errors, broken[i][1]);
        free_result(&result);
    }
}

/* The line after a call is its result, even an empty one; the template shows that it came as one. */
static void the_next_line_is_the_result(void **state) {
    (void)state;
    char path[4096], lines[8192];
    snprintf(path, sizeof path, "%s", temporary_path("calls.session"));
    snprintf(lines, sizeof lines, "Hi\nsunny\nAnd?\n\n/save %s\n/regen\n", path);
    command_result result = GUMBEL(lines, "chat", caller, "-n", "1", CALLS);
    assert_status(result, 0);
    free_result(&result);
    char kept[8192] = "";
    char beside[4200];
    snprintf(beside, sizeof beside, "%s.json", path);
    FILE *file = fopen(beside, "rb");
    assert_non_null(file);
    assert_true(fread(kept, 1, sizeof kept - 1, file) > 0);
    fclose(file);
    const char *first = strstr(kept, "\"role\":\"tool\",\"content\":\"sunny\",\"tool_call_id\":\"call_");
    assert_non_null(first);
    assert_has(first, "\"name\":\"weather\"");
    assert_has(first, "\"role\":\"user\",\"content\":\"And?\"");
    assert_has(first, "\"role\":\"tool\",\"content\":\"\"");
}

static void a_terminal_asks_for_results(void **state) {
    (void)state;
    terminal_run run;
    start_on_terminal(&run, 80,
                      (const char *const[]){gumbel_command_path, "chat", caller, "-n", "1", "--no-history",
                                            "--temp", "0", CALLS, NULL});
    await_text(&run, "> ");
    type_text(&run, "Hi\r");
    await_text(&run, "weather(place: \"Rome\", days: 2)");
    await_text(&run, "weather gives> ");
    type_text(&run, "/reset\r"); /* commands are commands there, too */
    await_text(&run, "\n> ");
    type_text(&run, "Hi\r");
    await_text(&run, "weather gives> ");
    type_text(&run, "sunny\r");
    await_text(&run, "\n> ");
    type_text(&run, "/exit\r");
    assert_int_equal(finish_on_terminal(&run), 0);
    free_terminal_run(&run);
}

/* ---- Settings in a conversation ------------------------------------------------------------------------ */

#define CHAT(lines, ...) output_of(GUMBEL(lines, "chat", thinker, "--temp", "0", "-n", "60", __VA_ARGS__))

static void the_system_message_can_change(void **state) {
    (void)state;
    char *flag = CHAT("Hi\n", "--system", "Be brief."), *command = CHAT("/system Be brief.\nHi\n", NULL);
    assert_string_equal(flag, command);
    command_result one =
        GUMBEL("Hi\n/system Be brief.\nWhy?\n/stats\n", "chat", thinker, "-n", "20", "--temp", "0");
    command_result none = GUMBEL("Hi\nWhy?\n/stats\n", "chat", thinker, "-n", "20", "--temp", "0");
    int with = 0, without = 0;
    assert_int_equal(sscanf(strstr(one.errors, "prompt  "), "prompt %d tokens", &with), 1);
    assert_int_equal(sscanf(strstr(none.errors, "prompt  "), "prompt %d tokens", &without), 1);
    assert_true(with > without + 5); /* it stands before all that was said */
    free_result(&one), free_result(&none);
    free(flag), free(command);
}

static void tools_can_change(void **state) {
    (void)state;
    char lines[4200];
    snprintf(lines, sizeof lines, "/tools %s\nHi\n/stats\n", tools_file());
    char *flag = CHAT("Hi\n", "--tools", tools_file()), *command = CHAT(lines, NULL);
    assert_string_equal(flag, command);
    snprintf(lines, sizeof lines, "/tools %s\n/tools none\nHi\n", tools_file());
    char *none = CHAT(lines, NULL), *without = CHAT("Hi\n", NULL);
    assert_string_equal(none, without);
    command_result result = GUMBEL("/tools nowhere.json\nHi\n", "chat", thinker, "--temp", "0", "-n", "60");
    assert_status(result, 1);
    assert_one_error_line(&result, "nowhere.json");
    assert_has(result.output, without);
    free_result(&result);
    free(flag), free(command), free(none), free(without);
}

static void wrong_tools_are_refused(void **state) {
    (void)state;
    const char *path = temporary_path("wrong.json");
    write_text(path, "[{\"type\":\"function\"}]");
    command_result result = GUMBEL(NULL, "run", thinker, "-p", "Hi", "--tools", path);
    assert_status(result, 1);
    assert_one_error_line(&result, "tool 0: name");
    free_result(&result);
    write_text(path, "[{\"type\":");
    result = GUMBEL("Hi\n", "chat", thinker, "--tools", path);
    assert_status(result, 1);
    assert_one_error_line(&result, "tools: line 1");
    free_result(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_gets_the_answer_alone),
        cmocka_unit_test(thoughts_are_shown_where_they_are_wanted),
        cmocka_unit_test(a_thought_that_is_cut_off_is_noted),
        cmocka_unit_test(a_terminal_shows_thoughts_dimmed),
        cmocka_unit_test(json_has_the_message),
        cmocka_unit_test(calls_are_printed),
        cmocka_unit_test(broken_tools_are_named),
        cmocka_unit_test(the_next_line_is_the_result),
        cmocka_unit_test(a_terminal_asks_for_results),
        cmocka_unit_test(the_system_message_can_change),
        cmocka_unit_test(tools_can_change),
        cmocka_unit_test(wrong_tools_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
