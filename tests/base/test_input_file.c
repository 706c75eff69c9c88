/* SPDX-License-Identifier: Apache-2.0
 *
 * What is opened for reading, and the lists of it.
 */
#include "base/file_map.h"
#include "base/memory.h"
#include "support/assertions.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_refused(const char *path, const char *kind) {
    gb_file_map map;
    gumbel_error error;
    int descriptor;
    struct stat information;
    assert_fails(gb_open_input(path, &descriptor, &information, &error), GUMBEL_ERROR_IO, &error, path);
    assert_non_null(strstr(error.message, kind));
    assert_non_null(strstr(error.message, ", expected a regular file"));
    assert_int_equal(descriptor, -1);
    assert_fails(gb_map_file(path, &map, &error), GUMBEL_ERROR_IO, &error, kind);
}

static void make_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(descriptor, (const struct sockaddr *)&address, sizeof address), 0);
    close(descriptor);
}

/* Nobody writes to the FIFO: opening it must not wait. */
static void what_is_no_regular_file_is_named(void **state) {
    (void)state;
    assert_int_equal(mkfifo(temporary_path("fifo"), 0600), 0);
    assert_int_equal(symlink("fifo", temporary_path("link")), 0);
    make_socket(temporary_path("socket"));
    alarm(60);
    assert_refused(temporary_path("fifo"), "is a FIFO");
    assert_refused(temporary_path("link"), "is a FIFO");
    assert_refused(temporary_path("socket"), "is a socket");
    assert_refused(temporary_directory(), "is a directory");
    assert_refused("/dev/null", "is a character device");
    alarm(0);
}

static struct stat state_of(const char *name) {
    struct stat information;
    assert_int_equal(stat(temporary_path(name), &information), 0);
    return information;
}

static void open_and_close(const char *name) {
    int descriptor;
    struct stat information;
    gumbel_error error;
    assert_ok(gb_open_input(temporary_path(name), &descriptor, &information, &error), &error);
    close(descriptor);
}

static void lists_have_what_was_opened(void **state) {
    (void)state;
    gb_input_list outer, inner;
    write_text(temporary_path("a"), "a");
    write_text(temporary_path("b"), "b");
    assert_int_equal(link(temporary_path("a"), temporary_path("hard")), 0);
    struct stat a = state_of("a"), b = state_of("b"), hard = state_of("hard");
    open_and_close("b");
    gb_record_inputs(&outer);
    open_and_close("a");
    open_and_close("a");
    gb_record_inputs(&inner);
    open_and_close("b");
    assert_true(gb_is_input(&inner, &b));
    assert_false(gb_is_input(&inner, &a));
    gb_end_inputs(&inner);
    assert_false(gb_is_input(&inner, &b));
    assert_int_equal(outer.count, 2);
    assert_true(gb_is_input(&outer, &a));
    assert_true(gb_is_input(&outer, &hard));
    assert_true(gb_is_input(&outer, &b));
    gb_end_inputs(&outer);
    open_and_close("a");
    assert_int_equal(outer.count, 0);
    assert_false(gb_is_input(NULL, &a));
}

static bool refuse(void *user, size_t bytes) {
    (void)user, (void)bytes;
    return false;
}

static void a_list_without_memory_is_an_error(void **state) {
    (void)state;
    gb_input_list list;
    int descriptor;
    struct stat information;
    gumbel_error error;
    write_text(temporary_path("a"), "a");
    gb_record_inputs(&list);
    gb_set_allocation_hook(refuse, NULL);
    gumbel_status status = gb_open_input(temporary_path("a"), &descriptor, &information, &error);
    gb_set_allocation_hook(NULL, NULL);
    gb_end_inputs(&list);
    assert_fails(status, GUMBEL_ERROR_MEMORY, &error, "list of inputs");
    assert_int_equal(descriptor, -1);
}

static int clean(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_no_regular_file_is_named, clean),
        cmocka_unit_test_teardown(lists_have_what_was_opened, clean),
        cmocka_unit_test_teardown(a_list_without_memory_is_an_error, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
