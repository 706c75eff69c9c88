/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses and the files that they are mapped from.
 */
#include "cli/base/mapped_file.h"

#include "base/file_map.h"
#include "support/assertions.h"
#include "support/temporary.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[PATH_MAX];

static int check_system(void **state) {
    (void)state;
    return access("/proc/self/maps", R_OK) != 0;
}

static gb_file_map map_named(const char *name) {
    static char bytes[100000];
    gb_file_map map;
    gumbel_error error;
    write_file(temporary_path(name), bytes, sizeof bytes);
    assert_ok(gb_map_file(temporary_path(name), &map, &error), &error);
    return map;
}

static void every_byte_of_a_map_is_of_its_file(void **state) {
    (void)state;
    gb_file_map map = map_named("a name with blanks, - and 7f00-7fff r--s"), other = map_named("other");
    const size_t offsets[] = {0, 1, 4096, 99999};
    char *expected = realpath(temporary_path("a name with blanks, - and 7f00-7fff r--s"), NULL);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        assert_true(cli_find_mapped_file((uintptr_t)map.data + offsets[i], path, sizeof path));
        assert_string_equal(path, expected);
    }
    assert_true(cli_find_mapped_file((uintptr_t)other.data, path, sizeof path));
    assert_non_null(strstr(path, "/other"));
    free(expected);
    gb_unmap_file(&map);
    gb_unmap_file(&other);
}

static void other_memory_is_of_no_file(void **state) {
    (void)state;
    int local = 0;
    void *block = malloc(1 << 20);
    assert_false(cli_find_mapped_file(0, path, sizeof path));
    assert_string_equal(path, "");
    assert_false(cli_find_mapped_file((uintptr_t)&local, path, sizeof path));
    assert_false(cli_find_mapped_file((uintptr_t)block, path, sizeof path));
    assert_false(cli_find_mapped_file(UINTPTR_MAX, path, sizeof path));
    free(block);
}

static void a_long_path_is_cut(void **state) {
    (void)state;
    gb_file_map map = map_named("long");
    char cut[6] = "xxxxx";
    assert_true(cli_find_mapped_file((uintptr_t)map.data, cut, sizeof cut));
    assert_true(cli_find_mapped_file((uintptr_t)map.data, path, sizeof path));
    assert_int_equal(strlen(cut), 5);
    assert_int_equal(strncmp(cut, path, 5), 0);
    gb_unmap_file(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_byte_of_a_map_is_of_its_file, check_system),
        cmocka_unit_test_setup(other_memory_is_of_no_file, check_system),
        cmocka_unit_test_setup(a_long_path_is_cut, check_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
