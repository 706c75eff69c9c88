/* SPDX-License-Identifier: Apache-2.0
 *
 * The array file, byte by byte as numpy.lib.format describes version 1.0.
 */
#include "cli/programs/npy.h"

#include "support/assertions.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

static void header_and_values(void **state) {
    (void)state;
    const float values[] = {1.0f, -2.5f, 0.0f};
    const char *path = temporary_path("row.npy");
    gumbel_error error;
    assert_ok(cli_write_npy(path, NULL, values, 3, &error), &error);
    unsigned char bytes[256];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), 128 + 12);
    fclose(file);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00", 10); /* 10 + 0x76 = 128 */
    static const char dictionary[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    assert_memory_equal(bytes + 10, dictionary, strlen(dictionary));
    for (size_t i = 10 + strlen(dictionary); i < 127; i++)
        assert_int_equal(bytes[i], ' ');
    assert_int_equal(bytes[127], '\n');
    assert_memory_equal(bytes + 128, "\x00\x00\x80\x3f\x00\x00\x20\xc0\x00\x00\x00\x00", 12);
}

static void a_path_that_cannot_be_written(void **state) {
    (void)state;
    const float value = 1;
    gumbel_error error;
    assert_fails(cli_write_npy("/no/such/directory/row.npy", NULL, &value, 1, &error), GUMBEL_ERROR_IO,
                 &error, "/no/such/directory/row.npy: cannot be written: /no/such/directory/: No such file");
}

/* A file that may not grow past its first page stands for a full disk. */
static void a_full_disk_leaves_what_was_there(void **state) {
    (void)state;
    static float values[100000];
    struct rlimit before, small;
    gumbel_error error;
    const char *path = temporary_path("full/row.npy");
    write_text(path, "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    gumbel_status status = cli_write_npy(path, NULL, values, 100000, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_fails(status, GUMBEL_ERROR_IO, &error, "row.npy: cannot be written: File too large");
    assert_int_equal(count_files(temporary_path("full")), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_and_values),
        cmocka_unit_test(a_path_that_cannot_be_written),
        cmocka_unit_test(a_full_disk_leaves_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
