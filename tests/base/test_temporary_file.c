/* SPDX-License-Identifier: Apache-2.0
 *
 * Temporary files of living and of ended writers.
 */
#include "base/temporary_file.h"

#include "support/system_faults.h"
#include "support/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int directory;

static int enter(void **state) {
    (void)state;
    directory = open(temporary_directory(), O_RDONLY | O_DIRECTORY);
    return directory < 0;
}

static int leave(void **state) {
    (void)state;
    close(directory);
    empty_temporary_directory();
    return 0;
}

static size_t collect(void) {
    gb_collect_temporaries(directory);
    return count_files(temporary_directory());
}

static void names_are_known_by_their_form(void **state) {
    (void)state;
    char name[GB_TEMPORARY_NAME];
    int descriptor = gb_create_temporary(directory, 0600, name);
    assert_true(descriptor >= 0);
    assert_true(gb_is_temporary_name(name));
    close(descriptor);
    static const char *const others[] = {"",
                                         ".gumbel-temporary-",
                                         ".gumbel-temporary-000",
                                         ".gumbel-temporary-00000",
                                         ".gumbel-temporary-000x",
                                         ".gumbel-temporary-0000 (deleted)",
                                         "x.gumbel-temporary-0000"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(gb_is_temporary_name(others[i]));
}

static void those_of_this_process_are_kept_apart(void **state) {
    (void)state;
    char names[3][GB_TEMPORARY_NAME];
    int descriptors[3];
    for (int i = 0; i < 3; i++)
        descriptors[i] = gb_create_temporary(directory, 0600, names[i]);
    assert_int_equal(collect(), 3);
    close(descriptors[1]);
    assert_int_equal(collect(), 2);
    assert_int_equal(faccessat(directory, names[0], F_OK, 0), 0);
    assert_int_equal(faccessat(directory, names[2], F_OK, 0), 0);
    close(descriptors[0]);
    close(descriptors[2]);
    assert_int_equal(collect(), 0);
}

/* A process with a temporary file that waits for its end. */
static pid_t start_writer(void) {
    int ready[2];
    char byte, name[GB_TEMPORARY_NAME];
    assert_int_equal(pipe(ready), 0);
    pid_t process = fork();
    if (process == 0) {
        if (gb_create_temporary(directory, 0600, name) >= 0 && write(ready[1], "", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return process;
}

static void kill_writer(pid_t process) {
    int status;
    assert_int_equal(kill(process, SIGKILL), 0);
    assert_int_equal(waitpid(process, &status, 0), process);
}

static void those_of_killed_processes_are_removed(void **state) {
    (void)state;
    pid_t first = start_writer(), second = start_writer();
    assert_int_equal(collect(), 2);
    kill_writer(first);
    assert_int_equal(collect(), 1);
    kill_writer(second);
    assert_int_equal(collect(), 0);
}

static void what_only_has_such_a_name_stays(void **state) {
    (void)state;
    assert_int_equal(mkfifoat(directory, ".gumbel-temporary-0000", 0600), 0);
    assert_int_equal(mkdirat(directory, ".gumbel-temporary-0001", 0700), 0);
    write_text(temporary_path("precious"), "precious");
    assert_int_equal(symlinkat("precious", directory, ".gumbel-temporary-0002"), 0);
    assert_int_equal(collect(), 4);
    char name[GB_TEMPORARY_NAME];
    int descriptor = gb_create_temporary(directory, 0600, name);
    assert_string_equal(name, ".gumbel-temporary-0003");
    close(descriptor);
    assert_int_equal(collect(), 4);
}

/* ---- Between creating and locking ---------------------------------------------------------------------- */

static void collect_all(void) {
    gb_collect_temporaries(directory);
}

/* A collector that finds a new file before it is locked removes it: the writer takes another. */
static void a_collector_in_between_does_no_harm(void **state) {
    (void)state;
    char name[GB_TEMPORARY_NAME];
    before_flock(collect_all);
    int descriptor = gb_create_temporary(directory, 0600, name);
    assert_true(descriptor >= 0);
    assert_int_equal(faccessat(directory, name, F_OK, 0), 0);
    assert_int_equal(collect(), 1);
    close(descriptor);
}

/* The collector has the lock and will remove the file. */
static void a_lock_that_is_taken_is_left(void **state) {
    (void)state;
    char name[GB_TEMPORARY_NAME];
    fail_system_call(1, EWOULDBLOCK); /* openat, flock */
    int descriptor = gb_create_temporary(directory, 0600, name);
    assert_true(end_system_faults());
    assert_string_equal(name, ".gumbel-temporary-0001");
    assert_int_equal(collect(), 1);
    close(descriptor);
}

/* It is in the directory once it has its name, which collectors leave while its writer lives. */
static void a_file_without_a_name_gets_one(void **state) {
    (void)state;
    char name[GB_TEMPORARY_NAME];
    int descriptor = gb_create_nameless(directory, 0600);
    if (descriptor < 0)
        skip();
    assert_int_equal(count_files(temporary_directory()), 0);
    assert_int_equal(mkdirat(directory, ".gumbel-temporary-0000", 0700), 0);
    assert_true(gb_name_temporary(directory, descriptor, name));
    assert_string_equal(name, ".gumbel-temporary-0001");
    assert_int_equal(collect(), 2);
    close(descriptor);
    assert_int_equal(collect(), 1);
}

/* Where names or such files are refused, that is known before anything is written. */
static void what_could_get_no_name_is_not_made(void **state) {
    (void)state;
    char name[GB_TEMPORARY_NAME];
    allow_nameless_files(false);
    assert_int_equal(gb_create_nameless(directory, 0600), -1);
    allow_nameless_files(true);
    for (int n = 0; n < 4; n++) { /* openat, flock, linkat, openat */
        fail_system_call(n, EPERM);
        int descriptor = gb_create_nameless(directory, 0600);
        end_system_faults();
        assert_int_equal(count_files(temporary_directory()), 0);
        assert_true(descriptor < 0 || gb_name_temporary(directory, descriptor, name));
        if (descriptor >= 0)
            close(descriptor);
        assert_int_equal(collect(), 0);
    }
}

static int first, second; /* descriptors */

static void finish_and_begin(void) {
    char name[GB_TEMPORARY_NAME];
    assert_int_equal(renameat(directory, ".gumbel-temporary-0000", directory, "finished"), 0);
    close(first);
    second = gb_create_temporary(directory, 0600, name);
    assert_string_equal(name, ".gumbel-temporary-0000");
}

/* The collector has opened the file when its writer finishes and another takes the name. */
static void a_name_may_be_another_writers_by_now(void **state) {
    (void)state;
    char name[GB_TEMPORARY_NAME];
    first = gb_create_temporary(directory, 0600, name);
    before_flock(finish_and_begin);
    assert_int_equal(collect(), 2);
    close(second);
}

/* Nothing is known of writers: all files stay, and new ones can be made. */
static void without_locks_nothing_is_removed(void **state) {
    (void)state;
    char name[GB_TEMPORARY_NAME];
    fail_system_call(1, ENOLCK);
    int descriptor = gb_create_temporary(directory, 0600, name);
    assert_true(end_system_faults());
    assert_string_equal(name, ".gumbel-temporary-0000");
    close(descriptor);
    fail_system_call(2, ENOLCK); /* openat of the directory and of the file, flock */
    gb_collect_temporaries(directory);
    assert_true(end_system_faults());
    assert_int_equal(count_files(temporary_directory()), 1);
}

int main(void) {
#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, enter, leave)
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(names_are_known_by_their_form),
        IN_DIRECTORY(those_of_this_process_are_kept_apart),
        IN_DIRECTORY(those_of_killed_processes_are_removed),
        IN_DIRECTORY(what_only_has_such_a_name_stays),
        IN_DIRECTORY(a_collector_in_between_does_no_harm),
        IN_DIRECTORY(a_lock_that_is_taken_is_left),
        IN_DIRECTORY(a_file_without_a_name_gets_one),
        IN_DIRECTORY(what_could_get_no_name_is_not_made),
        IN_DIRECTORY(a_name_may_be_another_writers_by_now),
        IN_DIRECTORY(without_locks_nothing_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
