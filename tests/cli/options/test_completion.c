/* SPDX-License-Identifier: Apache-2.0
 *
 * The shells' completions: the shells read them without a complaint, and they offer every flag of every
 * command. Shells that are not installed are left out.
 */
#include "cli/command.h"
#include "cli/fixture.h"

static const char *script_of(const char *shell) {
    const char *path = temporary_path(shell);
    command_result printed = GUMBEL(NULL, "--completion", shell);
    assert_status(printed, 0);
    write_text(path, printed.output);
    free_result(&printed);
    return path;
}

/* Skips the test where there is no such shell. */
static void need_shell(const char *shell) {
    char line[64];
    snprintf(line, sizeof line, "command -v %s", shell);
    command_result found = run_command((const char *const[]){"/bin/sh", "-c", line, NULL}, NULL);
    bool is_there = found.status == 0;
    free_result(&found);
    if (!is_there)
        skip();
}

static void assert_line(const char *text, const char *line, size_t length) {
    for (const char *at = text; *at; at += strcspn(at, "\n") + (at[strcspn(at, "\n")] != 0))
        if (strcspn(at, "\t\n") == length && strncmp(at, line, length) == 0)
            return;
    fail_msg("\"%.*s\" is not a line of:\n%s", (int)length, line, text);
}

/* What the shell's line prints after it has read the script as $1; $2 is another word. */
static char *ask(const char *shell, const char *line, const char *word) {
    char all[1024];
    snprintf(all, sizeof all, "exec %s -c '%s' %s %s", shell, line, script_of(shell), word);
    return output_of(run_command((const char *const[]){"/bin/sh", "-c", all, NULL}, NULL));
}

/* offers: prints what may follow "gumbel COMMAND -". */
static void assert_offers_every_flag(const char *shell, const char *short_line, const char *long_line) {
    for (const cli_command *const *command = cli_commands; *command; command++) {
        char *short_names = ask(shell, short_line, (*command)->name);
        char *long_names = ask(shell, long_line, (*command)->name);
        for (const cli_option_group *group = (*command)->groups; group->title; group++)
            for (const cli_option *option = group->options; option->names; option++) {
                const char *names = option->names, *name;
                for (size_t n; (n = cli_next_name(&names, &name)) > 0;)
                    assert_line(name[1] == '-' ? long_names : short_names, name, n);
            }
        free(short_names);
        free(long_names);
    }
}

static void bash_offers_every_flag(void **state) {
    (void)state;
    need_shell("bash");
#define OFFERS(dashes)                                                                                       \
    "source $0; COMP_WORDS=(gumbel $1 " dashes "); COMP_CWORD=2; _gumbel; printf \"%s\\n\" ${COMPREPLY[@]}"
    assert_offers_every_flag("bash", OFFERS("-"), OFFERS("--"));
#undef OFFERS
}

static void fish_offers_every_flag(void **state) {
    (void)state;
    need_shell("fish");
#define OFFERS(dashes) "source $argv[1]; complete -C \"gumbel $argv[2] " dashes "\""
    assert_offers_every_flag("fish", OFFERS("-"), OFFERS("--"));
#undef OFFERS
}

/* zsh offers something within its line editor alone. */
static void zsh_has_every_flag(void **state) {
    (void)state;
    need_shell("zsh");
#define SPECIFICATIONS                                                                                       \
    "_arguments() { for word; do word=${word#\\*}; print -r -- ${word%%[+=[]*}; done };"                     \
    "words=(gumbel $1); CURRENT=3; source $0"
    assert_offers_every_flag("zsh", SPECIFICATIONS, SPECIFICATIONS);
#undef SPECIFICATIONS
}

static void choices_follow_their_flag(void **state) {
    (void)state;
    need_shell("bash");
#define VALUES(words, place)                                                                                 \
    "source $0; COMP_WORDS=(gumbel " words "); COMP_CWORD=" place                                            \
    "; _gumbel; printf \"%s\\n\" ${COMPREPLY[@]}"
    char *values = ask("bash", VALUES("export --backend $1", "3"), "m");
    assert_string_equal(values, "mlx");
    free(values);
    values = ask("bash", VALUES("export --sampler = $1", "4"), "f");
    assert_string_equal(values, "full");
    free(values);
    values = ask("bash", VALUES("run --temperature \"\"", "3"), "0");
    assert_string_equal(values, "");
    free(values);
    values = ask("bash", VALUES("$1", "1"), "per");
    assert_string_equal(values, "perplexity");
    free(values);
#undef VALUES
}

static void other_shells_are_refused(void **state) {
    (void)state;
    command_result refused = GUMBEL(NULL, "--completion", "tcsh");
    assert_status(refused, 2);
    assert_one_error_line(&refused, "expected bash, zsh or fish");
    free_result(&refused);
    refused = GUMBEL(NULL, "--completion");
    assert_status(refused, 2);
    free_result(&refused);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bash_offers_every_flag),   cmocka_unit_test(fish_offers_every_flag),
        cmocka_unit_test(zsh_has_every_flag),       cmocka_unit_test(choices_follow_their_flag),
        cmocka_unit_test(other_shells_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
