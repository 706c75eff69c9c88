/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice of what becomes wider, from gains and bytes alone.
 */
#include "export/quantize/widths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { COUNT = 4 };

static void assert_taken(const gb_widening *given, uint64_t room, const char *expected, uint64_t bytes) {
    gb_widening widenings[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        widenings[i] = given[i];
    assert_int_equal(gb_choose_widths(widenings, COUNT, room), bytes);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(widenings[i].is_taken, expected[i] == 'x');
}

static void largest_gain_per_byte_first(void **unused) {
    (void)unused;
    static const gb_widening given[COUNT] = {{.gain = 3, .bytes = 300},
                                             {.gain = 2, .bytes = 100},
                                             {.gain = 1, .bytes = 200},
                                             {.gain = 1, .bytes = 10}};
    assert_taken(given, 9, "....", 0);
    assert_taken(given, 10, "...x", 10);
    assert_taken(given, 110, ".x.x", 110);
    assert_taken(given, 410, "xx.x", 410);
    assert_taken(given, 610, "xxxx", 610);
    assert_taken(given, UINT64_MAX, "xxxx", 610);
}

/* What is too large does not end the choice. */
static void smaller_ones_still_fit(void **unused) {
    (void)unused;
    static const gb_widening given[COUNT] = {{.gain = 9, .bytes = 300},
                                             {.gain = 2, .bytes = 100},
                                             {.gain = 1, .bytes = 200},
                                             {.gain = 1, .bytes = 100}};
    assert_taken(given, 299, ".x.x", 200);
    assert_taken(given, 300, "x...", 300);
    assert_taken(given, 399, "x...", 300);
    assert_taken(given, 400, "xx..", 400);
}

static void equal_ones_in_their_order(void **unused) {
    (void)unused;
    static const gb_widening given[COUNT] = {{.gain = 1, .bytes = 10},
                                             {.gain = 2, .bytes = 20},
                                             {.gain = 1, .bytes = 10},
                                             {.gain = 1, .bytes = 10}};
    assert_taken(given, 40, "xxx.", 40);
    assert_taken(given, 25, "x.x.", 20);
}

static void without_gain_or_bytes(void **unused) {
    (void)unused;
    static const gb_widening given[COUNT] = {{.gain = -1, .bytes = 10},
                                             {.gain = 0, .bytes = 0},
                                             {.gain = 1, .bytes = 0},
                                             {.gain = 1, .bytes = 10}};
    assert_taken(given, 0, ".xx.", 0);
    assert_taken(given, 10, ".xxx", 10);
    assert_taken(given, 20, "xxxx", 20);
    gb_choose_widths(NULL, 0, 100);
}

static void what_can_become_wider(void **unused) {
    (void)unused;
    const gb_format formats[] = {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},
                                 {GB_FORMAT_PROGRESSIVE, 6, false, 8, GB_F16, 64, 0},
                                 {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 64, 0},
                                 {.kind = GB_FORMAT_DENSE}};
    const gb_format wide = gb_wide_format();
    assert_true(gb_can_widen(&formats[0]) && gb_can_widen(&formats[1]));
    assert_false(gb_can_widen(&formats[2]) || gb_can_widen(&formats[3]) || gb_can_widen(&wide));
    assert_true(gb_format_valid(&wide) && gb_format_is_integer(&wide));
    gb_quantize_choice choice = {formats[0], GB_METHOD_SEARCH, {GB_ACTIVATION_INT8_PER_TOKEN, 64}};
    gb_widen(&choice);
    assert_true(gb_format_equal(&choice.format, &wide) && gb_can_quantize(choice.method, &wide));
    assert_int_equal(choice.input.rotation, 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(largest_gain_per_byte_first), cmocka_unit_test(smaller_ones_still_fit),
        cmocka_unit_test(equal_ones_in_their_order),   cmocka_unit_test(without_gain_or_bytes),
        cmocka_unit_test(what_can_become_wider),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
