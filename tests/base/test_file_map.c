/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_map.h"
#include "base/memory.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[512];

static int make_file(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s", temporary_path("seven"));
    write_text(path, "seven\n!");
    return 0;
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static void files_are_mapped(void **state) {
    (void)state;
    gb_file_map map;
    assert_int_equal(gb_map_file(path, &map, NULL), GUMBEL_OK);
    assert_int_equal(map.size, 7);
    assert_memory_equal(map.data, "seven\n!", 7);
    gb_unmap_file(&map);
    gb_unmap_file(&map);
    assert_null(map.data);
}

static void small_files_are_read_whole(void **state) {
    (void)state;
    char *text;
    size_t size;
    gumbel_error error;
    assert_int_equal(gb_read_file(path, 7, &text, &size, &error), GUMBEL_OK);
    assert_int_equal(size, 7);
    assert_string_equal(text, "seven\n!");
    gb_free(text);
    assert_int_equal(gb_read_file(path, 6, &text, &size, &error), GUMBEL_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "7 bytes, more than the 6 allowed"));
    assert_null(text);
}

static void an_empty_file_is_no_error(void **state) {
    (void)state;
    assert_int_equal(truncate(path, 0), 0);
    gb_file_map map;
    assert_int_equal(gb_map_file(path, &map, NULL), GUMBEL_OK);
    assert_int_equal(map.size, 0);
    gb_unmap_file(&map);
    char *text;
    assert_int_equal(gb_read_file(path, 10, &text, NULL, NULL), GUMBEL_OK);
    assert_string_equal(text, "");
    gb_free(text);
}

static void what_is_no_file_is_refused(void **state) {
    (void)state;
    gb_file_map map;
    gumbel_error error;
    assert_int_equal(gb_map_file("/nowhere/x", &map, &error), GUMBEL_ERROR_IO);
    assert_string_equal(error.message, "/nowhere/x: No such file or directory");
    assert_int_equal(gb_map_file(temporary_directory(), &map, &error), GUMBEL_ERROR_IO);
    assert_non_null(strstr(error.message, ": is a directory, expected a regular file"));
    assert_null(map.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_mapped, make_file, remove_file),
        cmocka_unit_test_setup_teardown(small_files_are_read_whole, make_file, remove_file),
        cmocka_unit_test_setup_teardown(an_empty_file_is_no_error, make_file, remove_file),
        cmocka_unit_test(what_is_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
