/* SPDX-License-Identifier: Apache-2.0
 *
 * The built program without a model: help, version, manual pages, and what it says when it is called wrongly.
 */
#include "cli/fixture.h"

#include "cli/command.h"

static void help_and_version(void **state) {
    (void)state;
    char *version = output_of(GUMBEL(NULL, "--version"));
    assert_string_equal(version, "gumbel " GUMBEL_VERSION);
    free(version);
    char *help = output_of(GUMBEL(NULL, "--help"));
    assert_has(help, "usage: gumbel");
    free(help);
    for (const cli_command *const *command = cli_commands; *command; command++) {
        char *by_topic = output_of(GUMBEL(NULL, "help", (*command)->name));
        char *by_flag = output_of(GUMBEL(NULL, (*command)->name, "--help"));
        assert_true(strlen(by_topic) > 200);
        assert_string_equal(by_topic, by_flag);
        free(by_topic);
        free(by_flag);
    }
}

static void manual_pages(void **state) {
    (void)state;
    char *overview = output_of(GUMBEL(NULL, "--man"));
    assert_has(overview, ".TH GUMBEL 1");
    for (const cli_command *const *command = cli_commands; *command; command++) {
        char *page = output_of(GUMBEL(NULL, "--man", (*command)->name));
        assert_has(page, ".SH SYNOPSIS");
        assert_has(overview, (*command)->summary);
        free(page);
    }
    free(overview);
}

/* The build's list of pages is that of the commands. */
static void every_command_gets_a_page(void **state) {
    (void)state;
    char names[256] = "";
    for (const cli_command *const *command = cli_commands; *command; command++)
        strcat(strcat(names, names[0] ? " " : ""), (*command)->name);
    assert_string_equal(names, gumbel_manual_pages);
}

static void backends_need_no_program(void **state) {
    (void)state;
    char *backends = output_of(GUMBEL(NULL, "inspect", "--backends"));
    assert_has(backends, "cpu: ");
    assert_has(backends, "portable");
    free(backends);
}

static void assert_usage_error(command_result result, const char *part) {
    assert_status(result, 2);
    assert_one_error_line(&result, part);
    assert_true(!result.output || result.output[0] == '\0');
    free_result(&result);
}

static void wrong_usage_is_one_line_and_status_2(void **state) {
    (void)state;
    assert_usage_error(GUMBEL(NULL, "exprot"), "did you mean export?");
    assert_usage_error(GUMBEL(NULL, "help", "frob"), "there is no command \"frob\"");
    assert_usage_error(GUMBEL(NULL, "-m", "p", "-p", "hi"),
                       "a command comes first, such as gumbel run -m (see");
    assert_usage_error(GUMBEL(NULL, gumbel_command_path), "a command comes first, such as gumbel run /");
    assert_usage_error(GUMBEL(NULL, "run"), "run needs a PROGRAM");
    assert_usage_error(GUMBEL(NULL, "run", "p", "--tmp", "1"), "did you mean --temp?");
    assert_usage_error(GUMBEL(NULL, "run", "p", "--top-p", "1.5"),
                       "--top-p 1.5: expected a number in (0, 1]");
    assert_usage_error(GUMBEL(NULL, "run", "p", "-p", "a", "-f", "b"),
                       "one of PROMPT, --prompt, --file and --tokens");
    assert_usage_error(GUMBEL(NULL, "run", "p", "--backend", "tpu"), "expected one of cpu cuda mlx");
    assert_usage_error(GUMBEL(NULL, "export", "c"), "export needs -o PROGRAM");
    assert_usage_error(GUMBEL(NULL, "export", "c", "-o", "p", "--random-weights", "-1"),
                       "--random-weights -1");
    assert_usage_error(GUMBEL(NULL, "inspect"), "inspect needs a PROGRAM");
    assert_usage_error(GUMBEL(NULL, "logits", "p", "-o", "f"), "logits needs --tokens");
    assert_usage_error(GUMBEL(NULL, "logits", "p", "--tokens", "1"), "logits needs -o");
    assert_usage_error(GUMBEL(NULL, "tokenize", "m", "text", "-f", "x"), "tokenize takes one of");
}

/* What users of other programs type. */
static void flags_of_others_are_not_misread(void **state) {
    (void)state;
    assert_usage_error(GUMBEL(NULL, "inspect", "p", "-hff", "file"), "-hff: the file stands behind");
    assert_usage_error(GUMBEL(NULL, "tokenize", "-hf", "org/name"), "-hf: gumbel pull ORG/NAME");
    assert_usage_error(GUMBEL(NULL, "serve", "p", "--grammar", "x"),
                       "--grammar: gumbel run and chat have it");
    assert_usage_error(GUMBEL(NULL, "run", "p", "-temp", "1"), "did you mean --temp?");
    assert_usage_error(GUMBEL(NULL, "run", "p", "--zzinja"), "run has no option --zzinja (see");
    assert_usage_error(GUMBEL(NULL, "chat", "p", "-p", "hi"), "-p: gumbel run takes a prompt this way");
    assert_usage_error(GUMBEL(NULL, "run", "p", "hi", "-cnv"), "run takes a prompt or --interactive (-cnv)");
    assert_usage_error(GUMBEL(NULL, "run", "p", "hi", "-p", "a"), "run takes one of PROMPT, --prompt");
}

static void variables_are_read(void **state) {
    (void)state;
    setenv("GUMBEL_TOP_P", "1.5", 1);
    assert_usage_error(GUMBEL(NULL, "run", "p", "hi"), "GUMBEL_TOP_P=1.5: expected a number in (0, 1]");
    command_result result = GUMBEL(NULL, "inspect", "/no/such.gumbel");
    assert_status(result, 1); /* has no such option */
    free_result(&result);
    unsetenv("GUMBEL_TOP_P");
    setenv("GUMBEL_MODEL", "/no/such.gumbel", 1);
    result = GUMBEL(NULL, "run", "-p", "hi");
    assert_status(result, 1);
    assert_one_error_line(&result, "/no/such.gumbel");
    free_result(&result);
    result = GUMBEL(NULL, "run", "/no/other.gumbel", "hi");
    assert_status(result, 1);
    assert_one_error_line(&result, "/no/other.gumbel");
    free_result(&result);
    unsetenv("GUMBEL_MODEL");
    setenv("GUMBEL_MODLE", "x", 1);
    result = GUMBEL(NULL, "inspect", "--backends");
    assert_status(result, 0);
    assert_one_error_line(&result, "GUMBEL_MODLE is not read; did you mean GUMBEL_MODEL?");
    free_result(&result);
    unsetenv("GUMBEL_MODLE");
}

/* The end of a message says what is wrong. */
static void long_arguments_are_cut(void **state) {
    (void)state;
    char path[2000];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    command_result result = GUMBEL(NULL, "run", path, "-p", "a");
    assert_status(result, 1);
    assert_one_error_line(&result, "x\u2026x");
    assert_has(result.errors, ": File name too long\n");
    free_result(&result);
    assert_usage_error(GUMBEL(NULL, path), "xxx\u2026\" (see gumbel help)");
    assert_usage_error(GUMBEL(NULL, "inspect", "a", path), "xxx\u2026\" (see gumbel help inspect)");
    memcpy(path, "--", 2);
    assert_usage_error(GUMBEL(NULL, "run", "a", path), "xxx\u2026 (see gumbel help run)");
    assert_usage_error(GUMBEL(NULL, "run", "a", "-n", path), "xxx\u2026: expected -1 or an integer");
}

static void assert_failure(command_result result, const char *part) {
    assert_status(result, 1);
    assert_one_error_line(&result, part);
    free_result(&result);
}

static void missing_files_are_one_line_and_status_1(void **state) {
    (void)state;
    assert_failure(GUMBEL(NULL, "run", "/no/such.gumbel", "-p", "a"), "/no/such.gumbel");
    assert_failure(GUMBEL(NULL, "chat", "/no/such.gumbel"), "/no/such.gumbel");
    assert_failure(GUMBEL(NULL, "inspect", "/no/such.gumbel"), "/no/such.gumbel");
    assert_failure(GUMBEL(NULL, "logits", "/no/such.gumbel", "--tokens", "1", "-o", "x"), "/no/such.gumbel");
    assert_failure(GUMBEL(NULL, "tokenize", "/no/such.gumbel", "a"), "/no/such.gumbel");
    assert_failure(GUMBEL(NULL, "export", "/no/such", "-o", temporary_path("p")), "/no/such");
}

static void without_a_command_help_is_an_error(void **state) {
    (void)state;
    command_result result = run_command((const char *const[]){gumbel_command_path, NULL}, NULL);
    assert_status(result, 2);
    assert_has(result.errors, "usage: gumbel");
    free_result(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_and_version),
        cmocka_unit_test(manual_pages),
        cmocka_unit_test(every_command_gets_a_page),
        cmocka_unit_test(backends_need_no_program),
        cmocka_unit_test(wrong_usage_is_one_line_and_status_2),
        cmocka_unit_test(flags_of_others_are_not_misread),
        cmocka_unit_test(variables_are_read),
        cmocka_unit_test(long_arguments_are_cut),
        cmocka_unit_test(missing_files_are_one_line_and_status_1),
        cmocka_unit_test(without_a_command_help_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
