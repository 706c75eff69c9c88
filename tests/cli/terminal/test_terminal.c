/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel on a terminal: what is typed and pasted there, what is drawn, and how the terminal is left. A
 * conversation is compared with one through a pipe by the files that /save writes.
 */
#include "cli/fixture.h"

#include "support/paths.h"
#include "support/run_terminal.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *program;

static int set_up(void **state) {
    (void)state;
    setenv("HOME", temporary_directory(), 1);
    unsetenv("XDG_STATE_HOME");
    program = export_program("terminal.gumbel", "30000", false);
    return 0;
}

#define SETTINGS "--temp", "1.2", "--seed", "5"

static terminal_run start_chat(const char *new_tokens, const char *flag) {
    terminal_run run;
    start_on_terminal(
        &run, 80,
        (const char *const[]){gumbel_command_path, "chat", program, SETTINGS, "-n", new_tokens, flag, NULL});
    await_text(&run, "/help lists the commands.");
    await_text(&run, "> ");
    return run;
}

/* Types a line and waits for the next prompt. */
static void say(terminal_run *run, const char *line) {
    type_text(run, line);
    type_text(run, "\r");
    await_text(run, "\n> ");
}

static void leave(terminal_run *run) {
    type_text(run, "/exit\r");
    const int status = finish_on_terminal(run);
    if (status != 0)
        fail_msg("it ended with %d; this was drawn: %s", status, run->output);
    assert_true(terminal_is_restored(run));
    free_terminal_run(run);
}

static void save(terminal_run *run, const char *path) {
    char line[512];
    snprintf(line, sizeof line, "/save %s", path);
    say(run, line);
}

static char *content_of(const char *path, size_t *size) {
    static char bytes[2][1 << 20];
    static size_t next;
    char *content = bytes[next++ % 2];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    *size = fread(content, 1, sizeof bytes[0], file);
    fclose(file);
    return content;
}

/* The conversation at path is the one that these lines make in a pipe. */
static void assert_conversation(const char *path, const char *lines) {
    char input[1024];
    size_t size, expected_size;
    const char *piped = temporary_path("piped.session");
    snprintf(input, sizeof input, "%s/save %s\n", lines, piped);
    command_result result = GUMBEL(input, "chat", program, SETTINGS, "-n", "12");
    assert_status(result, 0);
    free_result(&result);
    const char *content = content_of(path, &size), *expected = content_of(piped, &expected_size);
    assert_int_equal(size, expected_size);
    assert_memory_equal(content, expected, size);
}

/* ---- Pastes -------------------------------------------------------------------------------------------- */

static void pasted_lines_are_one_message(void **state) {
    (void)state;
    const char *path = temporary_path("pasted.session");
    terminal_run run = start_chat("12", NULL);
    paste_text(&run, "line1\r/reset\r/exit\rlast\r");
    say(&run, "");
    save(&run, path);
    assert_conversation(path, "line1\\\n/reset\\\n/exit\\\nlast\n");
    leave(&run);
}

/* Not even one line, with or without its newline; what is typed before it counts. */
static void a_pasted_line_is_no_command(void **state) {
    (void)state;
    const char *path = temporary_path("slash.session");
    terminal_run run = start_chat("12", NULL);
    paste_text(&run, "/usr/bin/no: not found\r");
    say(&run, "");
    paste_text(&run, "/exit");
    say(&run, " now");
    save(&run, path);
    assert_conversation(path, " /usr/bin/no: not found\n /exit now\n"); /* the format drops the blanks */
    leave(&run);
}

static void what_is_pasted_after_a_command_is_its_argument(void **state) {
    (void)state;
    terminal_run run = start_chat("12", NULL);
    type_text(&run, "/set temperature ");
    paste_text(&run, "9e9");
    type_text(&run, "\r");
    await_text(&run, "--temperature 9e9: expected");
    await_text(&run, "> ");
    leave(&run);
}

/* While a reply is printed nobody reads keys: they wait, with their brackets. */
static void what_is_pasted_during_a_reply_waits(void **state) {
    (void)state;
    terminal_run run = start_chat("-1", "--temp=0");
    type_text(&run, "Hello\r");
    watch_terminal(&run, 200);
    paste_text(&run, "line1\r/exit\rline2");
    watch_terminal(&run, 50);
    assert_null(strstr(run.output, "line1"));
    type_text(&run, "\003");
    await_text(&run, "> ");
    await_text(&run, "line2");
    type_text(&run, "\003");
    await_text(&run, "Ctrl-C again");
    await_text(&run, "> ");
    leave(&run);
}

/* Keys that send signals are text within a paste: they cannot end it early. */
static void keys_within_a_paste_are_text(void **state) {
    (void)state;
    terminal_run run = start_chat("12", NULL);
    paste_text(&run, "a\003\032\034/exit\rb");
    await_text(&run, "b");
    type_text(&run, "\003");
    await_text(&run, "Ctrl-C again");
    await_text(&run, "> ");
    leave(&run);
}

/* ---- Quotes -------------------------------------------------------------------------------------------- */

static void text_between_quotes_is_one_message(void **state) {
    (void)state;
    const char *path = temporary_path("quoted.session");
    terminal_run run = start_chat("12", NULL);
    type_text(&run, "\"\"\"\rline1\r/reset\r");
    paste_text(&run, "a \"\"\"quoted\"\"\"");
    type_text(&run, "\r");
    say(&run, "last\"\"\"");
    say(&run, "\"\"\"/one line\"\"\"");
    save(&run, path);
    assert_conversation(path, "line1\\\n/reset\\\na \"\"\"quoted\"\"\"\\\nlast\n /one line\n");
    leave(&run);
}

/* ---- History ------------------------------------------------------------------------------------------- */

static void assert_history(const char *expected) {
    char path[600];
    size_t size;
    snprintf(path, sizeof path, "%s/.local/state/gumbel/history", temporary_directory());
    const char *content = content_of(path, &size);
    char *text = strndup(content, size);
    assert_string_equal(text, expected);
    free(text);
    assert_int_equal(unlink(path), 0);
}

static void forget_history(void) {
    char path[600];
    snprintf(path, sizeof path, "%s/.local/state/gumbel/history", temporary_directory());
    unlink(path);
}

static void the_history_is_kept(void **state) {
    (void)state;
    forget_history();
    terminal_run first = start_chat("2", NULL), second = start_chat("2", NULL);
    say(&first, "first");
    say(&second, "second");
    paste_text(&first, "/two\rlines");
    say(&first, "");
    say(&first, "/stats");
    say(&first, "/stats");
    leave(&first);
    leave(&second);
    terminal_run third = start_chat("2", NULL);
    type_text(&third, "\033[A\033[A\033[A\033[A"); /* past both /exit and /stats */
    await_text(&third, "lines");
    say(&third, "");
    leave(&third);
    assert_history("first\nsecond\n /two\\nlines\n/stats\n/exit\n/exit\n /two\\nlines\n/exit\n");
}

static void assert_no_history(void) {
    char path[600];
    struct stat file;
    snprintf(path, sizeof path, "%s/.local/state/gumbel/history", temporary_directory());
    assert_int_not_equal(stat(path, &file), 0);
}

static void without_a_history_no_file_is_written(void **state) {
    (void)state;
    forget_history();
    terminal_run run = start_chat("2", "--no-history");
    say(&run, "secret");
    type_text(&run, "\033[A");
    await_text(&run, "secret"); /* within the conversation it can be recalled */
    type_text(&run, "\003");
    await_text(&run, "> ");
    leave(&run);
    assert_no_history();
    command_result result = GUMBEL("Hello\n", "chat", program, "-n", "2");
    assert_status(result, 0);
    free_result(&result);
    assert_no_history();
}

/* ---- Signals ------------------------------------------------------------------------------------------- */

static void ctrl_c_ends_the_reply_alone(void **state) {
    (void)state;
    terminal_run run = start_chat("-1", "--temp=0");
    type_text(&run, "Hello\r");
    watch_terminal(&run, 300);
    type_text(&run, "\003");
    await_text(&run, "\n> ");
    type_text(&run, "\004"); /* Ctrl-D */
    assert_int_equal(finish_on_terminal(&run), 0);
    assert_true(terminal_is_restored(&run));
    free_terminal_run(&run);
}

static void the_terminal_is_restored_however_it_ends(void **state) {
    (void)state;
    static const int signals[] = {SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS};
    for (size_t i = 0; i < 2 * sizeof signals / sizeof *signals; i++) {
        int number = signals[i / 2];
        terminal_run run = start_chat("-1", "--temp=0");
        if (i % 2 == 0) {
            type_text(&run, "Hello\r");
            watch_terminal(&run, 100);
        }
        assert_false(terminal_is_restored(&run));
        assert_int_equal(kill(run.process, number), 0);
        int status = finish_on_terminal(&run);
        assert_true(status == 128 + number || status == 1); /* 1: a sanitizer's report of the crash */
        assert_true(terminal_is_restored(&run));
        free_terminal_run(&run);
    }
}

/* As a shell runs it: the program stops, the shell has its terminal, the program goes on. */
static void a_stopped_program_leaves_the_terminal(void **state) {
    (void)state;
    static const char script[] =
        "set -m; \"$0\" chat \"$1\" -n 2 --seed 5; echo stopped; read line; fg; echo ended";
    terminal_run run;
    start_on_terminal(&run, 80,
                      (const char *const[]){"/bin/sh", "-c", script, gumbel_command_path, program, NULL});
    await_text(&run, "> ");
    type_text(&run, "Hel");
    await_text(&run, "Hel");
    type_text(&run, "\032");
    await_text(&run, "stopped");
    assert_true(terminal_is_restored(&run));
    type_text(&run, "\r");
    await_text(&run, "> Hel");
    assert_false(terminal_is_restored(&run));
    paste_text(&run, "lo\r/reset");
    say(&run, "");
    type_text(&run, "/exit\r");
    await_text(&run, "ended");
    assert_int_equal(finish_on_terminal(&run), 0);
    assert_true(terminal_is_restored(&run));
    free_terminal_run(&run);
}

/* ---- What is drawn ------------------------------------------------------------------------------------- */

/* The whole of what a command draws, without the terminal's carriage returns. Free with free(). */
static char *drawn(unsigned short columns, const char *const *words) {
    terminal_run run;
    start_on_terminal(&run, columns, words);
    assert_int_equal(finish_on_terminal(&run), 0);
    char *text = strdup(run.output), *to = text;
    for (const char *from = text; *from; from++)
        if (*from != '\r')
            *to++ = *from;
    *to = '\0';
    free_terminal_run(&run);
    return text;
}

#define DRAWN(columns, ...) drawn(columns, (const char *const[]){gumbel_command_path, __VA_ARGS__, NULL})

/* OSC 52, which writes the clipboard, as single bytes: a terminal shows it, a pipe gets it. */
static void sequences_of_tokens_are_escaped(void **state) {
    (void)state;
    static const char osc[] = "\033]52;c;aGk=\007\302\2331m\n\tx";
    char *ids = output_of(GUMBEL(NULL, "tokenize", program, "--raw", "-p", osc));
    char *piped = output_of(GUMBEL(NULL, "tokenize", program, "--decode", ids));
    assert_string_equal(piped, osc);
    char *shown = DRAWN(80, "tokenize", program, "--decode", ids);
    assert_string_equal(shown, "\\x1b]52;c;aGk=\\x07\\u009b1m\n\tx\n");
    char *quoted = output_of(GUMBEL(NULL, "tokenize", program, "--show", "--raw", "-p", "\033\302\233"));
    assert_has(quoted, "\"\\u001b\"");
    assert_has(quoted, "\"\\u009b\"");
    free(ids), free(piped), free(shown), free(quoted);
}

/* A model that answers nothing but ESC, by a bias. */
static void replies_are_escaped(void **state) {
    (void)state;
    char *id = output_of(GUMBEL(NULL, "tokenize", program, "--raw", "-p", "\033")), bias[64];
    snprintf(bias, sizeof bias, "%s=1000000", id);
    char *shown = DRAWN(80, "run", program, "-p", "Hello", "-n", "3", "--temp", "0", "--logit-bias", bias);
    assert_has(shown, "\\x1b\\x1b\\x1b\n");
    assert_null(strchr(shown, '\033'));
    char *piped = output_of(
        GUMBEL(NULL, "run", program, "-p", "Hello", "-n", "3", "--temp", "0", "--logit-bias", bias));
    assert_string_equal(piped, "\033\033\033");
    char *lines = output_of(GUMBEL(NULL, "run", program, "-p", "Hello", "-n", "1", "--temp", "0",
                                   "--logit-bias", bias, "--logprobs"));
    assert_has(lines, "\t\"\\u001b\"");
    free(id), free(shown), free(piped), free(lines);
}

/* Same words, no line longer than the window. */
static void replies_are_wrapped_at_words(void **state) {
    (void)state;
    static const unsigned short widths[] = {20, 33, 80};
    const char *story = temporary_path("story.gumbel");
    char *nothing = output_of(GUMBEL(NULL, "export", bundled_model("gemma4-tiny"), "-o", story, "-q"));
#define STORY "run", story, "-p", "Tell me a story.", "-n", "150", "--temp", "0"
    char *piped = output_of(GUMBEL(NULL, STORY)), *left = DRAWN(20, STORY, "--no-wrap");
    assert_true(strlen(piped) > 200);
    assert_has(left, piped);
    for (size_t i = 0; i < 3; i++) {
        char *shown = DRAWN(widths[i], STORY);
        const char *from = piped, *to = shown;
        for (; *from; from++, to++) {
            bool is_wrapped = *from == ' ' && *to == '\n';
            assert_true(*from == *to || is_wrapped);
        }
        for (to = shown; to && strncmp(to, "gumbel: ", 8) != 0; to = strchr(to, '\n'), to += to != NULL)
            assert_in_range(strcspn(to, "\n"), 0, widths[i]);
        free(shown);
    }
    free(nothing), free(piped), free(left);
}

/* A program that is named after a folder whose name commands the terminal. */
static const char *hostile_program(void) {
    static const char *const names[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                        "chat_template.jinja"};
    char from[5000], to[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(from, sizeof from, "%s/%s", checkpoint_directory(), names[i]);
        snprintf(to, sizeof to, "ev\033[2Jil\302\2331m/%s", names[i]);
        copy_file(from, temporary_path(to));
    }
    char *folder = strdup(temporary_path("ev\033[2Jil\302\2331m"));
    const char *path = temporary_path("evil.gumbel");
    char *nothing =
        output_of(GUMBEL(NULL, "export", folder, "--random-weights", "7", "-o", path, "--max-context", "64"));
    free(nothing);
    free(folder);
    return path;
}

static void names_are_escaped(void **state) {
    (void)state;
    const char *hostile = hostile_program();
    terminal_run run;
    start_on_terminal(&run, 80, (const char *const[]){gumbel_command_path, "chat", hostile, NULL});
    await_text(&run, "ev\\x1b[2Jil\\u009b1m, 64 positions");
    await_text(&run, "> ");
    leave(&run);
    char *shown = output_of(GUMBEL(NULL, "inspect", hostile));
    assert_has(shown, "  ev\\x1b[2Jil\\u009b1m\n");
    assert_null(strchr(shown, '\033'));
    free(shown);
}

static void messages_are_escaped(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "chat", "/no/such\033[2J\302\233\342\200\256\n");
    assert_status(result, 1);
    assert_one_error_line(&result, "/no/such\\x1b[2J\\u009b\\u202e\\n");
    free_result(&result);
    result = GUMBEL(NULL, "run", program, "--bogus\033[2J");
    assert_one_error_line(&result, "--bogus\\x1b[2J");
    free_result(&result);
}

static void the_window_may_change_its_size(void **state) {
    (void)state;
    terminal_run run = start_chat("2", NULL);
    type_text(&run, "a line that is longer than the window will be");
    await_text(&run, "will be");
    resize_terminal(&run, 30);
    await_text(&run, "\033[J> a line that is longer than t");
    await_text(&run, "will be");
    say(&run, "!");
    leave(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pasted_lines_are_one_message),
        cmocka_unit_test(a_pasted_line_is_no_command),
        cmocka_unit_test(what_is_pasted_after_a_command_is_its_argument),
        cmocka_unit_test(what_is_pasted_during_a_reply_waits),
        cmocka_unit_test(keys_within_a_paste_are_text),
        cmocka_unit_test(text_between_quotes_is_one_message),
        cmocka_unit_test(the_history_is_kept),
        cmocka_unit_test(without_a_history_no_file_is_written),
        cmocka_unit_test(ctrl_c_ends_the_reply_alone),
        cmocka_unit_test(the_terminal_is_restored_however_it_ends),
        cmocka_unit_test(a_stopped_program_leaves_the_terminal),
        cmocka_unit_test(sequences_of_tokens_are_escaped),
        cmocka_unit_test(replies_are_escaped),
        cmocka_unit_test(replies_are_wrapped_at_words),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(messages_are_escaped),
        cmocka_unit_test(the_window_may_change_its_size),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
