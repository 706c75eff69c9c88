/* SPDX-License-Identifier: Apache-2.0
 *
 * How commands end when something is in the way: an export that a signal stops leaves nothing behind, and
 * output that nobody takes is an error.
 */
#include "cli/fixture.h"
#include "cli/writing.h"

#include "support/checkpoints/large_checkpoint.h"

#include <signal.h>
#include <unistd.h>

enum { LAST_SECONDS = 60 };

/* Starts words, sends the signal once an export writes in directory, and expects so many files there then. */
static void assert_leaves(size_t names, const char *const *words, int number, const char *directory) {
    running_command started;
    start_command(&started, words);
    feed_command(&started, NULL);
    await_writing(started.process, directory, LAST_SECONDS);
    assert_int_equal(kill(started.process, number), 0);
    command_result result = finish_command(&started, LAST_SECONDS);
    assert_status(result, 130);
    assert_has(result.errors, "cancelled");
    free_result(&result);
    assert_int_equal(count_files(directory), names);
}

static void a_signal_leaves_nothing_of_an_export(void **state) {
    (void)state;
    char checkpoint[4096], program[4096], output[4096], cache[4096];
    snprintf(checkpoint, sizeof checkpoint, "%s", temporary_path("large"));
    snprintf(program, sizeof program, "%s", temporary_path("output/program.gumbel"));
    snprintf(output, sizeof output, "%s", temporary_path("output"));
    snprintf(cache, sizeof cache, "%s", temporary_path("caches/gumbel"));
    write_text(temporary_path("large/empty"), "");
    write_large_checkpoint(checkpoint, 16384, 1);
    setenv("XDG_CACHE_HOME", temporary_path("caches"), 1);
    static const int numbers[] = {SIGTERM, SIGHUP, SIGINT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_leaves(0,
                      (const char *const[]){gumbel_command_path, "export", checkpoint, "-o", program,
                                            "--quantize", "int4", NULL},
                      numbers[i], output);
    /* The lock of a program in the cache stays. */
    assert_leaves(1,
                  (const char *const[]){gumbel_command_path, "run", checkpoint, "--tokens", "2",
                                        "--print-tokens", "--quantize", "int4", NULL},
                  SIGTERM, cache);
}

/* Runs gumbel with that command line and its output on a device that is always full. */
static void assert_output_is_missed(const char *words) {
    char line[8192];
    snprintf(line, sizeof line, "exec '%s' %s >/dev/full", gumbel_command_path, words);
    command_result result = run_command((const char *const[]){"/bin/sh", "-c", line, NULL}, NULL);
    assert_status(result, 1);
    assert_one_error_line(&result, "standard output cannot be written");
    free_result(&result);
}

static void full_output_is_an_error(void **state) {
    (void)state;
    if (access("/dev/full", W_OK) != 0) /* Linux has it */
        return;
    const char *program = export_program("full.gumbel", "256", false);
    static const char *const forms[] = {
        "--version",
        "help run",
        "export --list-recipes",
        "inspect --backends",
        "inspect '%s'",
        "tokenize '%s' 'The cat sat.'",
        "run '%s' --tokens 2,17 --print-tokens -n 4 --temp 0",
        "run '%s' -p 'The cat sat.' -n 4 --temp 0 --ignore-eos",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *place = strstr(forms[i], "%s");
        size_t before = place ? (size_t)(place - forms[i]) : strlen(forms[i]);
        char words[4600];
        snprintf(words, sizeof words, "%.*s%s%s", (int)before, forms[i], place ? program : "",
                 place ? place + 2 : "");
        assert_output_is_missed(words);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_leaves_nothing_of_an_export),
        cmocka_unit_test(full_output_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
