/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of bytes as people write them.
 */
#include "cli/base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void describes(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 bytes"},           {999, "999 bytes"},      {1000, "1.0 kB"},
                 {7659881, "7.7 MB"},      {999940000, "999.9 MB"}, {999990000, "1.0 GB"},
                 {18700000000, "18.7 GB"}, {UINT64_MAX, "18.4 EB"}};
    char text[CLI_BYTES_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(cli_describe_bytes(cases[i].bytes, text), cases[i].text);
}

static void parses(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {{"0", 0},
                 {"1000000", 1000000},
                 {"12b", 12},
                 {"20G", 20000000000},
                 {"1.5TB", 1500000000000},
                 {"512MiB", 536870912},
                 {"2 kib", 2048},
                 {"3mb", 3000000}};
    static const char *const bad[] = {"", "G", "-1", "1x", "1GiBs", "1e3", "1.2.3", "99999EB", "1 2", "nan"};
    uint64_t bytes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(cli_parse_bytes(cases[i].text, &bytes));
        assert_int_equal(bytes, cases[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(cli_parse_bytes(bad[i], &bytes));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes),
        cmocka_unit_test(parses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
