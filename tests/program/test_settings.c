/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of sampling settings that roles.def makes: ranges, recommended values, inputs and fields.
 */
#include "program/settings.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const gb_setting *find(const char *name) {
    for (size_t i = 0; i < GB_SETTING_COUNT; i++)
        if (strcmp(gb_settings[i].shown.name, name) == 0)
            return &gb_settings[i];
    fail_msg("there is no setting %s", name);
    return NULL;
}

static void ranges_are_in_the_fields_precision(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double value;
        bool fine;
    } cases[] = {
        {"temperature", 0, true},
        {"temperature", 1e-4, true},
        {"temperature", (double)1e-4f, true}, /* a little below 1e-4 */
        {"temperature", 9e-5, false},
        {"temperature", 1e4, true},
        {"temperature", INFINITY, false},
        {"temperature", NAN, false},
        {"temperature", -0.5, false},
        {"top_k", -1, true},
        {"top_k", -2, false},
        {"top_k", 2.5, false},
        {"top_k", 2147483647, true},
        {"top_k", 2147483648, false},
        {"top_k", 1e300, false},
        {"top_k", NAN, false},
        {"top_p", 1e-9, true},
        {"top_p", 0, false},
        {"top_p", 1e-60, false}, /* 0 as a float */
        {"top_p", 1, true},
        {"top_p", 1.001, false},
        {"repetition_penalty", (double)0.01f, true},
        {"repetition_penalty", 0, false},
        {"presence_penalty", -2, true},
        {"presence_penalty", -2.01, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (gb_setting_accepts(find(cases[i].name), cases[i].value) != cases[i].fine)
            fail_msg("%s %g is %s", cases[i].name, cases[i].value, cases[i].fine ? "refused" : "accepted");
}

static void ranges_are_told(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"temperature", "0 or a number in [0.0001, 10000]"},
        {"top_k", "an integer in [-1, 2147483647]"},
        {"top_p", "a number in (0, 1]"},
        {"min_p", "a number in [0, 1]"},
    };
    char text[GB_RANGE_TEXT];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(gb_setting_range(find(texts[i][0]), text), texts[i][1]);
}

/* Each has a range around what is built in and what is neutral, an input of one number a row, a place among
 * the metadata, and a field that no other has. */
static void rows_are_consistent(void **state) {
    (void)state;
    gb_metadata metadata;
    gumbel_sampling sampling;
    memset(&metadata, 0, sizeof metadata);
    memset(&sampling, 0, sizeof sampling);
    for (size_t i = 0; i < GB_SETTING_COUNT; i++) {
        const gb_setting *setting = &gb_settings[i];
        const gb_role_info *role = gb_role_find(setting->role);
        assert_true(gb_setting_accepts(setting, setting->shown.built_in));
        assert_true(gb_setting_accepts(setting, setting->shown.neutral) || setting->shown.zero_is_neutral);
        assert_true(gb_setting_accepts(setting, setting->shown.high));
        assert_string_equal(role->name, setting->shown.name);
        assert_int_equal(role->direction, GB_ROLE_INPUT);
        assert_string_equal(role->dims, "B");
        assert_int_equal(setting->mask != GB_OP_NONE, setting->kind == GB_SETTING_MASK);
        double value;
        assert_false(gb_recommended(setting, &metadata, &value));
        gb_recommend(setting, (double)(i + 1), &metadata);
        gb_setting_put(setting, (double)(i + 1), &sampling);
    }
    for (size_t i = 0; i < GB_SETTING_COUNT; i++) {
        double value;
        assert_true(gb_recommended(&gb_settings[i], &metadata, &value) && value == (double)(i + 1));
        assert_true(gb_setting_get(&gb_settings[i], &sampling) == (double)(i + 1));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_in_the_fields_precision),
        cmocka_unit_test(ranges_are_told),
        cmocka_unit_test(rows_are_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
