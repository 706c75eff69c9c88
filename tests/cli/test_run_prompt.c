/* SPDX-License-Identifier: Apache-2.0
 *
 * How gumbel run comes by its prompt, and when it chats instead.
 */
#define _GNU_SOURCE /* posix_openpt */
#include "cli/fixture.h"
#include "support/paths.h"

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

/* Without a chat template, but with bos, as the tokenizer says. */
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

/* A program keeps a template that is not known here whole: export warns, and what would use it fails. */
static void an_unknown_template_is_generic(void **state) {
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
    write_text(temporary_path("odd/chat_template.jinja"), "{{ messages }}\n{% include 'x' %}");
    const char *path = temporary_path("odd.gumbel");
    static const char part[] = "chat template, line 2: the statement \"include\" is not known here";
    command_result exported =
        GUMBEL(NULL, "export", checkpoint, "--random-weights", "7", "-o", path, "--max-context", "64");
    assert_status(exported, 0);
    assert_has(exported.errors, part);
    free_result(&exported);
#define ODD(...) GUMBEL(NULL, "run", path, "-n", "2", "--temp", "0", __VA_ARGS__)
    command_result refused = ODD("hi");
    assert_status(refused, 1);
    assert_one_error_line(&refused, part);
    free_result(&refused);
    free(output_of(ODD("hi", "--plain")));
    free(output_of(ODD("hi", "--raw")));
    free(output_of(ODD("--tokens", "2,17")));
    char *ours = output_of(ODD("hi", "--chat-template-file", test_data("cli/turns.jinja")));
    char *same = output_of(ODD("hi", "--chat-template",
                               "{{ bos_token }}<|turn>user\n"
                               "{{ messages[0].content }}<turn|>\n<|turn>model\n\n"));
    assert_string_equal(ours, same);
    free(ours), free(same);
}

/* Variables, names and texts of templates by flags, and what is wrong with them. */
static void templates_are_chosen_by_flags(void **state) {
    (void)state;
#define RENDER(...) GUMBEL(NULL, "tokenize", program, "--messages", messages, "--render", __VA_ARGS__)
    const char *messages = temporary_path("flags.json");
    write_text(messages,
               "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"tools\":[{\"name\":\"f\"}]}");
    char *text = output_of(RENDER("--chat-template",
                                  "{{ messages[0].content }} {{ tools[0].name }} {{ a }} "
                                  "{{ enable_thinking }}",
                                  "--chat-template-kwargs", "{\"a\": [1]}", "--no-think"));
    assert_string_equal(text, "Hi f [1] False");
    free(text);
    static const char *const cases[][4] = {
        {"--chat-template-kwargs", "{", "--think", "template_kwargs: line 1"},
        {"--chat-template-kwargs", "[]", "--think", "template_kwargs: expected an object"},
        {"--chat-template", "rag", "--think", "no chat template \"rag\"; there are: default"},
        {"--chat-template", "{{ raise_exception('Not so') }}", "--think", "Not so"},
        {"--chat-template-file", "/no/such/file", "--think", "/no/such/file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        command_result refused = RENDER(cases[i][0], cases[i][1], cases[i][2]);
        assert_status(refused, 1);
        assert_one_error_line(&refused, cases[i][3]);
        free_result(&refused);
    }
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
    on_terminal((const char *const[]){gumbel_command_path, "run", program, __VA_ARGS__, NULL}, (typed),      \
                (text), sizeof(text))

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
        cmocka_unit_test(words_are_a_prompt),
        cmocka_unit_test(a_word_is_no_file),
        cmocka_unit_test(plain_text_is_continued),
        cmocka_unit_test(an_unknown_template_is_generic),
        cmocka_unit_test(templates_are_chosen_by_flags),
        cmocka_unit_test(it_chats_on_a_terminal),
        cmocka_unit_test(it_chats_through_a_pipe_when_told),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
