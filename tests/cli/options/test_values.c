/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading values: the whole text must be the value.
 */
#include "cli/options/values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const cli_range any = {0};

static void integers(void **state) {
    (void)state;
    int64_t value = 7;
    assert_true(cli_parse_integer("-9223372036854775808", &any, &value));
    assert_true(value == INT64_MIN);
    assert_true(cli_parse_integer("007", &any, &value));
    assert_true(value == 7);
    static const char *const wrong[] = {
        "", "-", "1.0", "1e3", " 1", "1 ", "+1", "0x10", "9223372036854775808"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(cli_parse_integer(wrong[i], &any, &value));
    assert_true(value == 7);
}

static void numbers(void **state) {
    (void)state;
    const cli_range temperature = {.low = 1e-4, .high = 1e4, .has_also = true, .also_value = 0};
    static const char *const right[] = {"0", "0.0", "-0", "1e-4", "10000", ".5", "7.", "1E+2"};
    static const char *const wrong[] = {"",    "nan",  "inf",  "-1",    "1e-5", "10001", "0x1p-3",
                                        "1,5", " 0.5", "0.5 ", "1e999", "e",    "--1",   "1e"};
    double value;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_true(cli_parse_number(right[i], &temperature, &value));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(cli_parse_number(wrong[i], &temperature, &value));
}

static void an_open_end_is_open(void **state) {
    (void)state;
    const cli_range mass = {.low = 0, .high = 1, .low_excluded = true};
    double value;
    assert_false(cli_parse_number("0", &mass, &value));
    assert_true(cli_parse_number("1e-30", &mass, &value));
    assert_true(cli_parse_number("1", &mass, &value));
    assert_false(cli_parse_number("1.0000001", &mass, &value));
}

static void lists_of_integers(void **state) {
    (void)state;
    const cli_range range = {.low = 0, .high = 4096};
    cli_integers list;
    assert_true(cli_parse_integers("64,256,1024", &range, &list));
    assert_int_equal(list.count, 3);
    assert_true(list.values[0] == 64 && list.values[2] == 1024);
    assert_true(cli_parse_integers("0", &range, &list));
    assert_int_equal(list.count, 1);
    static const char *const wrong[] = {"",    ",",   "1,",   ",1",   "1,,2",
                                        "1 2", "1,x", "5000", "1,-1", "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(cli_parse_integers(wrong[i], &range, &list));
}

static void seeds(void **state) {
    (void)state;
    bool draw;
    uint64_t value;
    assert_true(cli_parse_seed("-1", &draw, &value));
    assert_true(draw);
    assert_true(cli_parse_seed("18446744073709551615", &draw, &value));
    assert_true(!draw && value == UINT64_MAX);
    static const char *const wrong[] = {"", "-2", "18446744073709551616", "1.0", "seed", "+1", "-01"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(cli_parse_seed(wrong[i], &draw, &value));
}

static void lists_of_tokens(void **state) {
    (void)state;
    static const char *const same[] = {"2,17,99", "2, 17, 99", "2 17 99", " 2 ,17\t99\n"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        cli_tokens tokens = {0};
        assert_true(cli_parse_tokens(same[i], &tokens));
        assert_int_equal(tokens.count, 3);
        assert_int_equal(tokens.ids[0], 2);
        assert_int_equal(tokens.ids[2], 99);
        cli_tokens_free(&tokens);
    }
    static const char *const wrong[] = {"",    " ",  ",",   "1,",         ",1", "1,,2",
                                        "1;2", "-1", "1.5", "2147483648", "a"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cli_tokens tokens = {0};
        assert_false(cli_parse_tokens(wrong[i], &tokens));
        assert_null(tokens.ids);
    }
}

static void biases(void **state) {
    (void)state;
    cli_biases list = {0};
    assert_true(cli_parse_biases("5=-inf,17=2.5", &list));
    assert_true(cli_parse_biases("5=1,8=-3", &list)); /* 5 anew */
    assert_true(cli_parse_biases("17=0", &list));     /* none */
    assert_int_equal(list.count, 2);
    assert_int_equal(list.list[0].token, 5);
    assert_true(list.list[0].value == 1);
    assert_int_equal(list.list[1].token, 8);
    static const char *const wrong[] = {"",    "5",     "5=",   "=1",  "5=1,",   "5=inf",       "5=nan",
                                        "a=1", "5=1x2", "-1=2", "5:1", "5=1e30", "2147483648=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(cli_parse_biases(wrong[i], &list));
    list.count = 0;
    char text[32];
    for (int id = 0; id <= CLI_MOST_BIASES; id++) {
        snprintf(text, sizeof text, "%d=1", id);
        assert_int_equal(cli_parse_biases(text, &list), id < CLI_MOST_BIASES);
    }
}

static void choices(void **state) {
    (void)state;
    assert_true(cli_is_choice("all", "touched all none"));
    assert_true(cli_is_choice("one", "none one"));
    assert_false(cli_is_choice("on", "none one"));
    assert_false(cli_is_choice("", "none one"));
    assert_false(cli_is_choice("none one", "none one"));
}

static void descriptions_of_ranges(void **state) {
    (void)state;
    char text[96];
    cli_describe_range(&(cli_range){.low = 1e-4, .high = 1e4, .has_also = true}, false, text, sizeof text);
    assert_string_equal(text, "0 or a number in [0.0001, 10000]");
    cli_describe_range(&(cli_range){.low = 0, .high = 2147483647.0}, true, text, sizeof text);
    assert_string_equal(text, "an integer in [0, 2147483647]");
    cli_describe_range(&any, true, text, sizeof text);
    assert_string_equal(text, "an integer");
}

static void switches(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "2", "yes", "o", "onn", "t"};
    bool value = false;
    assert_true(cli_parse_switch("1", &value) && value && cli_parse_switch("ON", &value) && value);
    assert_true(cli_parse_switch("0", &value) && !value && cli_parse_switch("False", &value) && !value);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(cli_parse_switch(wrong[i], &value));
}

static void decimals_of_floats(void **state) {
    (void)state;
    assert_true(cli_decimal(0.8F) == 0.8);
    assert_true(cli_decimal(0.95F) == 0.95);
    assert_true(cli_decimal(16777215.0F) == 16777215.0);
    assert_true((float)cli_decimal(1.0F / 3) == 1.0F / 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(numbers),
        cmocka_unit_test(an_open_end_is_open),
        cmocka_unit_test(lists_of_integers),
        cmocka_unit_test(seeds),
        cmocka_unit_test(switches),
        cmocka_unit_test(decimals_of_floats),
        cmocka_unit_test(biases),
        cmocka_unit_test(choices),
        cmocka_unit_test(lists_of_tokens),
        cmocka_unit_test(descriptions_of_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
