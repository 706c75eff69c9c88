/* SPDX-License-Identifier: Apache-2.0
 *
 * How signals end a process that writes a file, or reads one that becomes shorter. Each case is a child.
 */
#include "cli/base/fatal_signals.h"

#include "base/file_map.h"
#include "base/output_file.h"
#include "cli/base/signals.h"
#include "support/checkpoints/large_checkpoint.h"
#include "support/system_faults.h"
#include "support/temporary.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char errors[1024]; /* of the last child */

/* Runs work in a child with its standard error in a pipe. Returns the child's status. */
static int status_of(void (*work)(int), int argument) {
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t process = fork();
    if (process == 0) {
        dup2(ends[1], STDERR_FILENO);
        setrlimit(RLIMIT_CORE, &(const struct rlimit){0});
        signal(SIGPIPE, SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        cli_handle_fatal_signals();
        work(argument);
        _exit(99);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t count; (count = read(ends[0], errors + length, sizeof errors - 1 - length)) > 0;)
        length += (size_t)count;
    errors[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(process, &status, 0), process);
    return status;
}

/* ---- Signals while a file is written ------------------------------------------------------------------- */

static void write_and_get(int number) {
    static char buffer[64];
    gb_output_file file;
    if (gb_output_create(&file, temporary_path("output/file"), NULL, buffer, sizeof buffer, NULL))
        _exit(98);
    raise(number);
}

/* Where it has a name. What looks like a temporary file but is only read stays; it is locked by its writer,
 * this process. */
static void the_temporary_file_is_removed(void **state) {
    (void)state;
    static const int numbers[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXCPU, SIGBUS};
    write_text(temporary_path("output/.gumbel-temporary-9999"), "");
    int mine = open(temporary_path("output/.gumbel-temporary-9999"), O_RDONLY);
    assert_int_equal(flock(mine, LOCK_EX), 0);
    allow_nameless_files(false);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int status = status_of(write_and_get, numbers[i]);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), numbers[i]);
        assert_int_equal(count_files(temporary_path("output")), 1);
    }
    allow_nameless_files(true);
    close(mine);
}

static void cancel_by(int number) {
    cli_catch_interrupt();
    cli_catch_termination();
    raise(number);
    bool was_noted = cli_interrupted();
    cli_release_signals();
    if (was_noted)
        write_and_get(number);
}

/* What can be cancelled is; afterwards the signal ends the process as before. */
static void cancelling_comes_first(void **state) {
    (void)state;
    static const int numbers[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int status = status_of(cancel_by, numbers[i]);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), numbers[i]);
        assert_int_equal(count_files(temporary_path("output")), 0);
    }
}

static void get(int number) {
    raise(number);
}

static void ignored_signals_stay_ignored(void **state) {
    (void)state;
    signal(SIGHUP, SIG_IGN); /* as nohup does */
    int status = status_of(get, SIGHUP);
    signal(SIGHUP, SIG_DFL);
    assert_int_equal(WEXITSTATUS(status), 99);
}

static void exceed_file_size(int bytes) {
    gumbel_error error;
    static char buffer[64];
    gb_output_file file;
    setrlimit(RLIMIT_FSIZE, &(const struct rlimit){.rlim_cur = 10, .rlim_max = 10});
    if (gb_output_create(&file, temporary_path("output/file"), NULL, buffer, sizeof buffer, &error) ==
        GUMBEL_OK)
        gb_output_write(&file, temporary_directory(), (uint64_t)bytes, &error);
    fprintf(stderr, "%s", error.message);
    gb_output_close(&file);
    _exit(3);
}

static void a_limit_on_files_is_an_error(void **state) {
    (void)state;
    int status = status_of(exceed_file_size, 64);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    assert_non_null(strstr(errors, "output/file: cannot be written: File too large"));
}

/* ---- Files that become shorter ------------------------------------------------------------------------- */

static bool cut_weights(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)user, (void)what, (void)total;
    return done == 0 || truncate(temporary_path("large/model.safetensors"), 65536) == 0;
}

static void export_what_is_cut(int unused) {
    gumbel_export_options options = {.size = sizeof options, .quantize = "int4", .progress = cut_weights};
    (void)unused;
    gumbel_export(temporary_path("large"), temporary_path("output/program.gumbel"), &options, NULL);
}

static void a_checkpoint_cut_short_is_named(void **state) {
    (void)state;
    char expected[600];
    write_text(temporary_path("output/program.gumbel"), "old");
    write_text(temporary_path("large/empty"), "");
    write_large_checkpoint(temporary_path("large"), 4096, 1);
    int status = status_of(export_what_is_cut, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    char *real = realpath(temporary_path("large/model.safetensors"), NULL);
    snprintf(expected, sizeof expected,
             "gumbel: %s: was cut short while it was in use, or cannot be read from its disk\n", real);
    assert_string_equal(errors, expected);
    assert_int_equal(count_files(temporary_path("output")), 1);
    free(real);
}

static void read_past_the_end(int unused) {
    gb_file_map map;
    (void)unused;
    if (gb_map_file(temporary_path("red\033[31m"), &map, NULL) != GUMBEL_OK ||
        truncate(temporary_path("red\033[31m"), 0) != 0)
        _exit(98);
    _exit(*(const volatile uint8_t *)map.data);
}

static void a_path_does_not_reach_the_terminal_raw(void **state) {
    (void)state;
    write_text(temporary_path("red\033[31m"), "text");
    assert_int_equal(WEXITSTATUS(status_of(read_past_the_end, 0)), 1);
    assert_non_null(strstr(errors, "/red?[31m: was cut short"));
    assert_null(strchr(errors, '\033'));
}

static int clean(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

int main(void) {
#define CLEANED(test) cmocka_unit_test_teardown(test, clean)
    const struct CMUnitTest tests[] = {
        CLEANED(the_temporary_file_is_removed),   CLEANED(cancelling_comes_first),
        CLEANED(ignored_signals_stay_ignored),    CLEANED(a_limit_on_files_is_an_error),
        CLEANED(a_checkpoint_cut_short_is_named), CLEANED(a_path_does_not_reach_the_terminal_raw),
    };
    if (access("/proc/self/fd", R_OK) != 0)
        return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
