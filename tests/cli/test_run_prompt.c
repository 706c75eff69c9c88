/* SPDX-License-Identifier: Apache-2.0
 *
 * How gumbel run comes by its prompt, and when it chats instead.
 */
#define _GNU_SOURCE /* posix_openpt */
#include "cli/fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;

static int set_up(void **state) {
    (void)state;
    program = export_program("model.gumbel", "256", false);
    return 0;
}

#define ANSWER(input, ...)                                                                                   \
    output_of(GUMBEL(input, "run", __VA_ARGS__, "--print-tokens", "-n", "8", "--temp", "0"))

static void words_are_a_prompt(void **state) {
    (void)state;
    char *expected = ANSWER(NULL, program, "-p", "Why is the sky blue?");
    setenv("GUMBEL_MODEL", program, 1);
    char *answers[] = {
        ANSWER(NULL, program, "Why is the sky blue?"),
        ANSWER(NULL, program, "Why", "is", "--seed", "1", "the", "sky", "blue?"),
        ANSWER(NULL, "-m", program, "Why is", "the sky blue?"),
        ANSWER("Why is the sky blue?\n", program, "-"),
        ANSWER("Why is the sky blue?\n", program),
        ANSWER(NULL, "-p", "Why is the sky blue?"), /* the program is the environment's */
        ANSWER(NULL, program, "Why is the sky blue?", "-ngl", "99", "-fa", "on", "--jinja", "-st"),
    };
    unsetenv("GUMBEL_MODEL");
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        assert_string_equal(answers[i], expected);
        free(answers[i]);
    }
    free(expected);
}

/* A file that is named in the place of a prompt, or by a flag of another program, is not read. */
static void a_word_is_no_file(void **state) {
    (void)state;
    const char *path = temporary_path("a");
    write_text(path, "another prompt");
    command_result result = GUMBEL(NULL, "run", program, path, "-n", "2", "--temp", "0", "--ignore-eos");
    assert_status(result, 0);
    assert_has(result.errors, "\"; -f reads the file of that name\n");
    free_result(&result);
    result = GUMBEL("", "run", program, "-fa");
    assert_status(result, 1);
    assert_has(result.errors, "the prompt is empty");
    free_result(&result);
}

/* Without a chat format, but with bos, as the tokenizer says. */
static void plain_text_is_continued(void **state) {
    (void)state;
    char *ids = output_of(GUMBEL("The cat sat.", "tokenize", program, "--add-special"));
    char *expected = ANSWER(NULL, program, "--tokens", ids),
         *plain = ANSWER(NULL, program, "The cat sat.", "--plain");
    char *as_llama = ANSWER(NULL, program, "-no-cnv", "-p", "The cat sat.");
    assert_string_equal(plain, expected);
    assert_string_equal(as_llama, expected);
    free(ids);
    free(expected);
    free(plain);
    free(as_llama);
}

static void assert_template_note(command_result result, bool expected) {
    assert_status(result, 0);
    bool noted =
        result.errors && strstr(result.errors, "gumbel: chat_template.jinja: no known chat format renders");
    if (noted != expected)
        fail_msg("expected %s note: %s", expected ? "a" : "no", result.errors ? result.errors : "");
    free_result(&result);
}

/* A program whose checkpoint has a template that is not known says so whenever it would have been used. */
static void an_unknown_template_is_told(void **state) {
    (void)state;
    char checkpoint[4096];
    snprintf(checkpoint, sizeof checkpoint, "%s", temporary_path("odd"));
    static const char *const names[] = {"config.json", "tokenizer.json", "tokenizer_config.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char from[4200], to[64];
        snprintf(from, sizeof from, "%s/%s", checkpoint_directory(), names[i]);
        snprintf(to, sizeof to, "odd/%s", names[i]);
        copy_file(from, temporary_path(to));
    }
    write_text(temporary_path("odd/chat_template.jinja"),
               "{% for m in messages %}[{{ m.content }}]{% endfor %}");
    const char *path = temporary_path("odd.gumbel");
    command_result exported =
        GUMBEL(NULL, "export", checkpoint, "--random-weights", "7", "-o", path, "--max-context", "64");
    assert_template_note(exported, false); /* a warning that says the same */
#define ODD(...) GUMBEL(NULL, "run", path, "-n", "2", "--temp", "0", __VA_ARGS__)
    assert_template_note(ODD("hi"), true);
    assert_template_note(ODD("-p", "hi"), true);
    assert_template_note(ODD("hi", "--plain"), false);
    assert_template_note(ODD("hi", "--raw"), false);
    assert_template_note(ODD("hi", "--quiet"), false);
    assert_template_note(ODD("--tokens", "2,17"), false);
    assert_template_note(ODD("hi", "--chat-format", GUMBEL_TEST_DATA "/cli/chat_format.json"), false);
    char *summary = output_of(GUMBEL(NULL, "inspect", path));
    assert_has(summary, "unknown template   chat_template.jinja: no known");
    free(summary);
}

/* ---- On a terminal ------------------------------------------------------------------------------------- */

static void read_until_end(int terminal, char *text, size_t capacity) {
    size_t length = 0;
    struct pollfd ready = {terminal, POLLIN, 0};
    while (length + 1 < capacity && poll(&ready, 1, 60000) > 0) {
        ssize_t count = read(terminal, text + length, capacity - 1 - length);
        if (count <= 0)
            break;
        length += (size_t)count;
    }
    text[length] = '\0';
}

/* Runs gumbel on a terminal where text is typed; returns the exit status. */
static int on_terminal(const char *const *words, const char *typed, char *text, size_t capacity) {
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    const char *name = ptsname(terminal);
    pid_t child = fork();
    if (child == 0) {
        setsid();
        int other = open(name, O_RDWR);
        dup2(other, 0);
        dup2(other, 1);
        dup2(other, 2);
        setenv("TERM", "dumb", 1);
        execv(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    assert_true(child > 0);
    assert_int_equal(write(terminal, typed, strlen(typed)), strlen(typed));
    read_until_end(terminal, text, capacity);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    close(terminal);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define ON_TERMINAL(typed, text, ...)                                                                        \
    on_terminal((const char *const[]){GUMBEL_COMMAND, "run", program, __VA_ARGS__, NULL}, (typed), (text),   \
                sizeof(text))

static void it_chats_on_a_terminal(void **state) {
    (void)state;
    char text[1 << 14];
    assert_int_equal(ON_TERMINAL("hello\n/stats\n/exit\n", text, "--temp", "0.25", "-n", "3", "--seed", "7"),
                     0);
    assert_has(text, "/help lists the commands");
    assert_has(text, "temperature      0.25 (flag)");
    assert_has(text, "generated        3 tokens");
    assert_has(text, "seed             7 (flag)");
    assert_int_equal(ON_TERMINAL("", text, "--json"), 2);
    assert_has(text, "run needs a prompt for --json");
    assert_int_equal(ON_TERMINAL("", text, "-st"), 2);
    assert_has(text, "run needs a prompt: PROMPT");
    assert_int_equal(ON_TERMINAL("", text, "hello", "-n", "2", "--temp", "0"), 0);
    assert_null(strstr(text, "/help"));
}

static void it_chats_through_a_pipe_when_told(void **state) {
    (void)state;
    char *chat = output_of(GUMBEL("hi\nbye\n", "chat", program, "--temp", "0", "-n", "4"));
    char *run = output_of(GUMBEL("hi\nbye\n", "run", program, "--temp", "0", "-n", "4", "-cnv"));
    assert_string_equal(run, chat);
    free(chat);
    free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_a_prompt),      cmocka_unit_test(a_word_is_no_file),
        cmocka_unit_test(plain_text_is_continued), cmocka_unit_test(an_unknown_template_is_told),
        cmocka_unit_test(it_chats_on_a_terminal),  cmocka_unit_test(it_chats_through_a_pipe_when_told),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
