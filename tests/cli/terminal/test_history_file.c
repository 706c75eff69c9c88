/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of what was typed.
 */
#include "cli/terminal/history_file.h"

#include "cli/base/user_paths.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct entries {
    char *items[4 * CLI_HISTORY_ENTRIES];
    size_t count;
} entries;

static void keep(void *user, const char *entry) {
    entries *all = user;
    all->items[all->count++] = strdup(entry);
}

static entries *read_entries(const char *path) {
    static entries all;
    while (all.count > 0)
        free(all.items[--all.count]);
    cli_history_read(path, keep, &all);
    return &all;
}

static off_t size_of(const char *path) {
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    return file.st_size;
}

static const char *new_path(void) {
    const char *path = temporary_path("history");
    unlink(path);
    return path;
}

static void entries_come_back(void **state) {
    (void)state;
    static const char *const written[] = {"Hello", "a\nb\\n\\\n", " /not a command", "Grüße \x1b[31m"};
    const char *path = new_path();
    assert_int_equal(read_entries(path)->count, 0);
    for (size_t i = 0; i < 4; i++)
        cli_history_append(path, written[i]);
    const entries *all = read_entries(path);
    assert_int_equal(all->count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(all->items[i], written[i]);
}

static void it_is_the_users_alone(void **state) {
    (void)state;
    const char *path = new_path();
    struct stat file;
    umask(0);
    cli_history_append(path, "Hello");
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_int_equal(chmod(path, 0644), 0);
    read_entries(path);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    umask(022);
}

/* Processes that add entries and read at the same time lose none of each other's. */
static void processes_do_not_destroy_each_others(void **state) {
    (void)state;
    enum { PROCESSES = 6, EACH = 100 };
    const char *path = new_path();
    for (int process = 0; process < PROCESSES; process++)
        if (fork() == 0) {
            for (int i = 0; i < EACH; i++) {
                char entry[32];
                snprintf(entry, sizeof entry, "%d:%d", process, i);
                cli_history_append(path, entry);
                if (i % 20 == 0)
                    read_entries(path);
            }
            _exit(0);
        }
    for (int process = 0, status; process < PROCESSES; process++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    const entries *all = read_entries(path);
    int next[PROCESSES] = {0}, process, i;
    assert_int_equal(all->count, PROCESSES * EACH);
    for (size_t at = 0; at < all->count; at++) {
        assert_int_equal(sscanf(all->items[at], "%d:%d", &process, &i), 2);
        assert_int_equal(i, next[process]++);
    }
}

static void it_is_bounded(void **state) {
    (void)state;
    const char *path = new_path();
    char *text = calloc(CLI_HISTORY_ENTRY_BYTES + 2, 1), entry[32];
    memset(text, 'x', CLI_HISTORY_ENTRY_BYTES + 1);
    cli_history_append(path, text); /* too long */
    assert_int_equal(read_entries(path)->count, 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 3 * CLI_HISTORY_ENTRIES; i++)
        fprintf(file, "entry %d\n", i);
    fclose(file);
    const entries *all = read_entries(path);
    assert_int_equal(all->count, CLI_HISTORY_ENTRIES);
    snprintf(entry, sizeof entry, "entry %d", 2 * CLI_HISTORY_ENTRIES);
    assert_string_equal(all->items[0], entry);
    assert_int_equal(size_of(path), CLI_HISTORY_ENTRIES * 11);
    text[CLI_HISTORY_ENTRY_BYTES] = '\0';
    for (int i = 0; i < 100; i++)
        cli_history_append(path, text);
    read_entries(path);
    assert_in_range(size_of(path), 1, CLI_HISTORY_FILE_BYTES / 2);
    cli_history_append(path, "last");
    all = read_entries(path);
    assert_string_equal(all->items[all->count - 1], "last");
    assert_string_equal(all->items[all->count - 2], text);
    free(text);
}

static void damage_is_survived(void **state) {
    (void)state;
    const char *path = new_path();
    write_file(path, "one\n\n\0two\nthr\\ee\\", 18);
    cli_history_append(path, "four");
    const entries *all = read_entries(path);
    assert_string_equal(all->items[0], "one");
    assert_string_equal(all->items[all->count - 1], "four");
    assert_string_equal(all->items[all->count - 2], "thr\\ee\\");
}

static void what_is_no_file_has_no_entries(void **state) {
    (void)state;
    const char *path = new_path();
    assert_int_equal(mkfifo(path, 0600), 0);
    cli_history_append(path, "Hello");
    assert_int_equal(read_entries(path)->count, 0);
    unlink(path);
    assert_int_equal(symlink("/dev/null", path), 0); /* how some turn a history off */
    cli_history_append(path, "Hello");
    assert_int_equal(read_entries(path)->count, 0);
    unlink(path);
    cli_history_append("/no/such/folder/history", "Hello");
}

/* ---- Where it lies ------------------------------------------------------------------------------------- */

static char *state_path(void) {
    gb_byte_buffer path = {0};
    if (!cli_state_path("history", &path))
        assert_int_equal(path.size, 0);
    return path.text;
}

static void assert_ends_in(const char *path, const char *folder, const char *rest) {
    assert_int_equal(strncmp(path, folder, strlen(folder)), 0);
    assert_string_equal(path + strlen(folder), rest);
}

static void it_lies_in_the_state_folder(void **state) {
    (void)state;
    const char *home = temporary_directory();
    setenv("HOME", home, 1);
    unsetenv("XDG_STATE_HOME");
    char *path = state_path();
    assert_ends_in(path, home, "/.local/state/gumbel/history");
    struct stat folder;
    *strrchr(path, '/') = '\0';
    assert_int_equal(stat(path, &folder), 0);
    assert_int_equal(folder.st_mode & 0777, 0700);
    free(path);
    setenv("XDG_STATE_HOME", "relative", 1);
    path = state_path();
    assert_ends_in(path, home, "/.local/state/gumbel/history");
    free(path);
    setenv("XDG_STATE_HOME", temporary_path("state"), 1);
    path = state_path();
    assert_ends_in(path, home, "/state/gumbel/history");
    free(path);
    setenv("XDG_STATE_HOME", "/dev/null", 1);
    assert_null(state_path());
    unsetenv("XDG_STATE_HOME");
}

static void assert_user_path(const char *path, const char *folder, const char *rest) {
    gb_byte_buffer text = {0};
    cli_add_user_path(&text, path);
    assert_ends_in(text.text, folder, rest);
    gb_buffer_free(&text);
}

static void a_tilde_is_the_home(void **state) {
    (void)state;
    setenv("HOME", "/the/home", 1);
    assert_user_path("~", "/the/home", "");
    assert_user_path("~/a ~b", "/the/home", "/a ~b");
    assert_user_path("~other/a", "", "~other/a");
    assert_user_path("a/~/b", "", "a/~/b");
    assert_user_path("", "", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_back),
        cmocka_unit_test(it_is_the_users_alone),
        cmocka_unit_test(processes_do_not_destroy_each_others),
        cmocka_unit_test(it_is_bounded),
        cmocka_unit_test(damage_is_survived),
        cmocka_unit_test(what_is_no_file_has_no_entries),
        cmocka_unit_test(it_lies_in_the_state_folder),
        cmocka_unit_test(a_tilde_is_the_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
