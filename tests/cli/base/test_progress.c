/* SPDX-License-Identifier: Apache-2.0
 *
 * The line that shows how far a task is.
 */
#include "cli/base/progress.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

typedef void (*describe_function)(const char *what, uint64_t done, uint64_t total, double seconds, char *text,
                                  size_t capacity);

static void assert_line(describe_function describe, uint64_t done, uint64_t total, double seconds,
                        const char *expected) {
    char text[160];
    describe("work", done, total, seconds, text, sizeof text);
    assert_string_equal(text, expected);
}

static void bytes(void **state) {
    (void)state;
    assert_line(cli_progress_describe, 0, 5000000, 0, "work    0%  0.0 of 5.0 MB  0.0 MB/s");
    assert_line(cli_progress_describe, 1000000000, 4000000000, 10,
                "work   25%  1.0 of 4.0 GB  100.0 MB/s  30 s left");
    assert_line(cli_progress_describe, 1000000000, 61000000000, 10,
                "work    2%  1.0 of 61.0 GB  100.0 MB/s  10 min left");
    assert_line(cli_progress_describe, 10000000, 361000000000, 10,
                "work    0%  0.0 of 361.0 GB  1.0 MB/s  100 h left");
    assert_line(cli_progress_describe, 1, 5000000, 10, "work    0%  0.0 of 5.0 MB  0.0 MB/s");
    assert_line(cli_progress_describe, 5000000, 5000000, 1, "work  100%  5.0 of 5.0 MB  5.0 MB/s");
    assert_line(cli_progress_describe, 0, 0, 1, "work  100%  0.0 of 0.0 MB  0.0 MB/s");
}

static void counts(void **state) {
    (void)state;
    assert_line(cli_progress_describe_count, 50, 200, 4, "work   25%  50 of 200  12.5 a second  12 s left");
    assert_line(cli_progress_describe_count, 200, 200, 4, "work  100%  200 of 200  50.0 a second");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes), cmocka_unit_test(counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
