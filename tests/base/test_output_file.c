/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs: where they go, what they may not replace, what becomes of them when something fails.
 */
#include "base/file_map.h"
#include "base/memory.h"
#include "base/output_file.h"
#include "support/assertions.h"
#include "support/system_faults.h"
#include "support/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char buffer[64]; /* small, so that pieces go through it and past it */

static gumbel_status fill(gb_output_file *file, const char *text, gumbel_error *error) {
    GB_TRY(gb_output_write(file, text, 1, error));
    GB_TRY(gb_output_write(file, text + 1, strlen(text) - 1, error));
    return gb_output_commit(file, NULL, 0, error);
}

static gumbel_status put(const char *path, const gb_input_list *inputs, const char *text,
                         gumbel_error *error) {
    gb_output_file file;
    gumbel_status status = gb_output_create(&file, path, inputs, buffer, sizeof buffer, error);
    if (status == GUMBEL_OK)
        status = fill(&file, text, error);
    gb_output_close(&file);
    return status;
}

static void assert_holds(const char *path, const char *expected) {
    char *text;
    gumbel_error error;
    assert_ok(gb_read_file(path, 1 << 20, &text, NULL, &error), &error);
    assert_string_equal(text, expected);
    gb_free(text);
}

/* Writes text to the path, which then holds it. */
static void assert_put(const char *path, const char *text) {
    gumbel_error error;
    assert_ok(put(path, NULL, text, &error), &error);
    assert_holds(path, text);
}

static void assert_refused(const char *path, const gb_input_list *inputs, const char *part) {
    gumbel_error error;
    size_t before = count_files(temporary_directory());
    assert_fails(put(path, inputs, "new", &error), GUMBEL_ERROR_ARGUMENT, &error, part);
    assert_non_null(strstr(error.message, ", expected "));
    assert_int_equal(count_files(temporary_directory()), before);
}

static struct stat state_of(const char *path) {
    struct stat information;
    assert_int_equal(lstat(path, &information), 0);
    return information;
}

/* ---- What may not be replaced -------------------------------------------------------------------------- */

static void what_is_no_regular_file_is_refused(void **state) {
    (void)state;
    assert_int_equal(mkfifo(temporary_path("fifo"), 0600), 0);
    assert_int_equal(symlink("fifo", temporary_path("to-fifo")), 0);
    assert_int_equal(symlink("/dev/null", temporary_path("to-device")), 0);
    assert_refused(temporary_path("fifo"), NULL, "fifo: is a FIFO");
    assert_refused(temporary_path("to-fifo"), NULL, "to-fifo: is a FIFO");
    assert_refused(temporary_path("to-device"), NULL, "to-device: is a character device");
    assert_refused(temporary_directory(), NULL, "is a directory");
    assert_refused("/", NULL, "/: is a directory");
    assert_refused(".", NULL, ".: is a directory");
    assert_refused("", NULL, "empty");
    char path[600];
    snprintf(path, sizeof path, "%s/new/", temporary_directory());
    assert_refused(path, NULL, "names a directory");
    assert_true(S_ISFIFO(state_of(temporary_path("fifo")).st_mode));
}

static void what_has_no_name_is_refused(void **state) {
    (void)state;
    char path[64];
    int descriptor = open(temporary_path("nameless"), O_RDWR | O_CREAT, 0600);
    unlink(temporary_path("nameless"));
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    if (access(path, F_OK) != 0)
        skip();
    assert_refused(path, NULL, "has no name");
    close(descriptor);
}

static void what_cannot_be_there_is_an_error(void **state) {
    (void)state;
    gumbel_error error;
    assert_fails(put("/nowhere/x", NULL, "new", &error), GUMBEL_ERROR_IO, &error,
                 "/nowhere/x: cannot be written: /nowhere/: No such file");
    write_text(temporary_path("file"), "file");
    char path[600];
    snprintf(path, sizeof path, "%s/x", temporary_path("file"));
    assert_fails(put(path, NULL, "new", &error), GUMBEL_ERROR_IO, &error, "Not a directory");
    assert_int_equal(symlink("/nowhere/x", temporary_path("astray")), 0);
    assert_fails(put(temporary_path("astray"), NULL, "new", &error), GUMBEL_ERROR_IO, &error,
                 "astray: cannot be written: /nowhere/: No such file");
    assert_int_equal(symlink("loop", temporary_path("loop")), 0);
    assert_fails(put(temporary_path("loop"), NULL, "new", &error), GUMBEL_ERROR_IO, &error, "loop: ");
}

static void inputs_are_refused_under_all_names(void **state) {
    (void)state;
    gb_input_list inputs;
    gumbel_error error;
    char *text;
    const char *input = temporary_path("input");
    write_text(input, "input");
    assert_int_equal(link(input, temporary_path("hard")), 0);
    assert_int_equal(symlink("input", temporary_path("soft")), 0);
    gb_record_inputs(&inputs);
    assert_ok(gb_read_file(input, 100, &text, NULL, &error), &error);
    gb_free(text);
    static const char *const names[] = {"input", "hard", "soft"};
    for (size_t i = 0; i < 3; i++)
        assert_refused(temporary_path(names[i]), &inputs, "is one of the files that are read");
    assert_ok(put(temporary_path("other"), &inputs, "new", &error), &error);
    gb_end_inputs(&inputs);
    assert_holds(input, "input");
    assert_put(input, "new");
}

/* What comes to the target's name after the file was created. */
static void the_target_is_looked_at_again(void **state) {
    (void)state;
    gb_output_file file;
    gumbel_error error;
    const char *path = temporary_path("late");
    struct stat information;
    for (int i = 0; i < 3; i++) {
        gb_file_id id;
        gb_input_list inputs = {.files = &id, .count = 1};
        write_text(temporary_path("input"), "input");
        information = state_of(temporary_path("input"));
        id = gb_file_id_of(&information);
        assert_ok(gb_output_create(&file, path, &inputs, buffer, sizeof buffer, &error), &error);
        int made = i == 0   ? mkfifo(path, 0600)
                   : i == 1 ? symlink("/dev/null", path)
                            : rename(temporary_path("input"), path);
        assert_int_equal(made, 0);
        assert_fails(fill(&file, "new", &error), GUMBEL_ERROR_ARGUMENT, &error,
                     i == 0   ? "is a FIFO"
                     : i == 1 ? "is a symbolic link"
                              : "is one of the files that are read");
        gb_output_close(&file);
        unlink(path);
        unlink(temporary_path("input"));
        assert_int_equal(count_files(temporary_directory()), 0);
    }
}

/* ---- Where it goes ------------------------------------------------------------------------------------- */

static void links_are_followed(void **state) {
    (void)state;
    const char *target = temporary_path("elsewhere/target");
    write_text(target, "old");
    assert_int_equal(symlink("elsewhere", temporary_path("folder")), 0);
    assert_int_equal(symlink("folder/target", temporary_path("second")), 0);
    assert_int_equal(symlink("second", temporary_path("first")), 0);
    char made[600];
    snprintf(made, sizeof made, "%s/elsewhere/made", temporary_directory());
    assert_int_equal(symlink(made, temporary_path("dangling")), 0);
    assert_put(temporary_path("first"), "new");
    assert_holds(target, "new");
    assert_put(temporary_path("dangling"), "made");
    assert_holds(made, "made");
    static const char *const links[] = {"first", "second", "folder", "dangling"};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        assert_true(S_ISLNK(state_of(temporary_path(links[i])).st_mode));
    assert_int_equal(count_files(temporary_path("elsewhere")), 2);
}

static void other_names_of_a_file_keep_what_it_was(void **state) {
    (void)state;
    write_text(temporary_path("one"), "old");
    assert_int_equal(link(temporary_path("one"), temporary_path("two")), 0);
    assert_put(temporary_path("one"), "new");
    assert_holds(temporary_path("two"), "old");
}

static void permissions_are_kept(void **state) {
    (void)state;
    const char *path = temporary_path("private");
    static const mode_t modes[] = {0600, 0640, 0444, 0755, 0666};
    mode_t mask = umask(022);
    assert_put(path, "new");
    assert_int_equal(state_of(path).st_mode & 07777, 0644);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_put(path, "again");
        assert_int_equal(state_of(path).st_mode & 07777, modes[i]);
    }
    umask(mask);
}

/* While it is written nobody else can read what replaces a private file. */
static void a_private_file_is_private_from_the_start(void **state) {
    (void)state;
    const char *path = temporary_path("private");
    gb_output_file file;
    gumbel_error error;
    write_text(path, "old");
    assert_int_equal(chmod(path, 0600), 0);
    assert_ok(gb_output_create(&file, path, NULL, buffer, sizeof buffer, &error), &error);
    struct stat information;
    assert_int_equal(fstat(file.descriptor, &information), 0);
    assert_int_equal(information.st_mode & 0777, 0600);
    gb_output_close(&file);
}

static void long_names_are_no_obstacle(void **state) {
    (void)state;
    char path[1024], name[NAME_MAX + 2];
    gumbel_error error;
    for (int length = 230; length <= NAME_MAX; length++) {
        memset(name, 'n', (size_t)length);
        name[length] = '\0';
        snprintf(path, sizeof path, "%s/%s", temporary_directory(), name);
        assert_put(path, "long");
        unlink(path);
    }
    memset(name, 'n', NAME_MAX + 1);
    name[NAME_MAX + 1] = '\0';
    snprintf(path, sizeof path, "%s/%s", temporary_directory(), name);
    assert_fails(put(path, NULL, "new", &error), GUMBEL_ERROR_IO, &error, "File name too long");
}

/* A path as long as the system allows ends in the name of one letter: the temporary name is longer. */
static void long_paths_are_no_obstacle(void **state) {
    (void)state;
    static char path[PATH_MAX + 2];
    size_t length = (size_t)snprintf(path, sizeof path, "%s", temporary_directory());
    const size_t begin = length;
    while (length < PATH_MAX - 3) {
        size_t room = PATH_MAX - 3 - length, part = room > 200 ? 200 : room;
        path[length] = '/';
        memset(path + length + 1, 'd', part - 1);
        length += part;
        path[length] = '\0';
        if (part == 1)
            break;
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path + length, sizeof path - length, "/f");
    assert_int_equal(strlen(path), PATH_MAX - 1);
    assert_put(path, "deep");
    unlink(path);
    snprintf(path + length, sizeof path - length, "/fg");
    assert_int_equal(put(path, NULL, "new", NULL), GUMBEL_ERROR_IO);
    for (; length > begin; length = (size_t)(strrchr(path, '/') - path)) {
        path[length] = '\0';
        assert_int_equal(rmdir(path), 0);
    }
}

/* Runs a test in a process without root's rights. */
static void as_nobody(int (*test)(void)) {
    int status;
    assert_int_equal(chmod(temporary_directory(), 0755), 0);
    pid_t process = fork();
    if (process == 0)
        _exit(getuid() == 0 && setuid(65534) != 0 ? 77 : test());
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int fail_in_closed_directory(void) {
    gumbel_error error;
    return put(temporary_path("closed/new"), NULL, "new", &error) != GUMBEL_ERROR_IO ||
           !strstr(error.message, "closed/new: no file can be created in its directory: Permission denied");
}

static int write_in_unreadable_directory(void) {
    gumbel_error error;
    return put(temporary_path("unreadable/new"), NULL, "new", &error) != GUMBEL_OK;
}

static void directories_may_be_closed(void **state) {
    (void)state;
    write_text(temporary_path("closed/old"), "old");
    write_text(temporary_path("unreadable/old"), "old");
    assert_int_equal(chmod(temporary_path("closed"), 0555), 0);
    assert_int_equal(chmod(temporary_path("unreadable"), 0333), 0);
    as_nobody(fail_in_closed_directory);
    as_nobody(write_in_unreadable_directory);
    chmod(temporary_path("closed"), 0755);
    chmod(temporary_path("unreadable"), 0755);
    assert_int_equal(count_files(temporary_path("closed")), 1);
    assert_int_equal(count_files(temporary_path("unreadable")), 2);
}

/* ---- Bytes --------------------------------------------------------------------------------------------- */

static void pieces_are_put_together(void **state) {
    (void)state;
    const char *path = temporary_path("pieces");
    static const size_t sizes[] = {1, 63, 64, 65, 200, 0, 3, 128, 500};
    uint8_t expected[2048], *at = expected + 8;
    gb_output_file file;
    gumbel_error error;
    memcpy(expected, "the head", 8);
    assert_ok(gb_output_create(&file, path, NULL, buffer, sizeof buffer, &error), &error);
    assert_ok(gb_output_write(&file, "no head ", 8, &error), &error);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(at, (int)('a' + i), sizes[i]);
        assert_ok(gb_output_write(&file, at, sizes[i], &error), &error);
        at += sizes[i];
    }
    assert_ok(gb_output_align(&file, 512, &error), &error);
    assert_ok(gb_output_commit(&file, "the head", 8, &error), &error);
    gb_output_close(&file);
    gb_output_close(&file);
    gb_file_map map;
    assert_ok(gb_map_file(path, &map, &error), &error);
    assert_int_equal(map.size, 1536);
    memset(at, 0, (size_t)(expected + 1536 - at));
    assert_memory_equal(map.data, expected, 1536);
    gb_unmap_file(&map);
}

/* ---- Faults -------------------------------------------------------------------------------------------- */

/* Each call of the system fails in turn. What is there is then the old file or the new one, nothing else; a
 * failure names the path. Returns how many calls there were. */
static int fail_each_call(const char *path) {
    int n = 0;
    for (bool came = true; came; n++) {
        gumbel_error error;
        write_text(temporary_path("target"), "old");
        fail_system_call(n, EIO);
        gumbel_status status = put(path, NULL, "new", &error);
        came = end_system_faults();
        assert_holds(temporary_path("target"), status == GUMBEL_OK ? "new" : "old");
        if (status == GUMBEL_OK)
            continue;
        assert_int_equal(strncmp(error.message, path, strlen(path)), 0);
        assert_true(came);
    }
    return n - 1;
}

static void every_failed_call_leaves_nothing(void **state) {
    (void)state;
    assert_int_equal(symlink("target", temporary_path("link")), 0);
    for (int named = 0; named < 2; named++) {
        allow_nameless_files(!named);
        assert_true(fail_each_call(temporary_path("target")) > 10);
        assert_true(fail_each_call(temporary_path("link")) > 10);
    }
    assert_int_equal(count_files(temporary_directory()), 2);
}

/* ---- Several writers ----------------------------------------------------------------------------------- */

static bool has_nameless_files(void) {
    int directory = open(temporary_directory(), O_RDONLY | O_DIRECTORY);
    int descriptor = gb_create_nameless(directory, 0600);
    if (descriptor >= 0)
        close(descriptor);
    close(directory);
    return descriptor >= 0;
}

/* A writer of the target that is killed before the end. */
static void kill_a_writer(void) {
    int status;
    pid_t process = fork();
    if (process == 0) {
        gb_output_file file;
        if (gb_output_create(&file, temporary_path("target"), NULL, buffer, sizeof buffer, NULL) ==
                GUMBEL_OK &&
            gb_output_write(&file, "half", 4, NULL) == GUMBEL_OK)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_true(WIFSIGNALED(status));
}

static void a_killed_writer_leaves_nothing(void **state) {
    (void)state;
    if (!has_nameless_files())
        skip();
    kill_a_writer();
    assert_int_equal(count_files(temporary_directory()), 0);
}

static void what_a_killed_writer_left_is_removed(void **state) {
    (void)state;
    gumbel_error error;
    gb_output_file living;
    allow_nameless_files(false);
    assert_ok(gb_output_create(&living, temporary_path("living"), NULL, buffer, sizeof buffer, &error),
              &error);
    kill_a_writer();
    assert_int_equal(count_files(temporary_directory()), 2);
    assert_put(temporary_path("other"), "new");
    assert_int_equal(count_files(temporary_directory()), 2);
    assert_ok(fill(&living, "alive", &error), &error);
    gb_output_close(&living);
    assert_holds(temporary_path("living"), "alive");
}

/* All write one target and collect what the others seem to have left. */
static void assert_writers_do_not_disturb_each_other(void) {
    enum { WRITERS = 4, TIMES = 100 };
    pid_t processes[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        processes[i] = fork();
        if (processes[i] != 0)
            continue;
        for (int times = 0; times < TIMES; times++)
            if (put(temporary_path("shared"), NULL, "whole", NULL) != GUMBEL_OK)
                _exit(1);
        _exit(0);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(processes[i], &status, 0), processes[i]);
        assert_int_equal(status, 0);
    }
    assert_holds(temporary_path("shared"), "whole");
    assert_int_equal(count_files(temporary_directory()), 1);
}

static void writers_do_not_disturb_each_other(void **state) {
    (void)state;
    assert_writers_do_not_disturb_each_other();
    allow_nameless_files(false);
    assert_writers_do_not_disturb_each_other();
}

static int clean(void **state) {
    (void)state;
    allow_nameless_files(true);
    empty_temporary_directory();
    return 0;
}

int main(void) {
#define CLEANED(test) cmocka_unit_test_teardown(test, clean)
    const struct CMUnitTest tests[] = {
        CLEANED(what_is_no_regular_file_is_refused),
        CLEANED(what_has_no_name_is_refused),
        CLEANED(what_cannot_be_there_is_an_error),
        CLEANED(inputs_are_refused_under_all_names),
        CLEANED(the_target_is_looked_at_again),
        CLEANED(links_are_followed),
        CLEANED(other_names_of_a_file_keep_what_it_was),
        CLEANED(permissions_are_kept),
        CLEANED(a_private_file_is_private_from_the_start),
        CLEANED(long_names_are_no_obstacle),
        CLEANED(long_paths_are_no_obstacle),
        CLEANED(directories_may_be_closed),
        CLEANED(pieces_are_put_together),
        CLEANED(every_failed_call_leaves_nothing),
        CLEANED(a_killed_writer_leaves_nothing),
        CLEANED(what_a_killed_writer_left_is_removed),
        CLEANED(writers_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
