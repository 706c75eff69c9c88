/* SPDX-License-Identifier: Apache-2.0
 *
 * --devices: numbers or auto, the same answers, and what is said of the choice.
 */
#include "cli/fixture.h"
#include "cli/model/devices.h"
#include "cli/options/options.h"

static const char *program;

static int set_up(void **state) {
    (void)state;
    program = export_program("devices.gumbel", "512", false);
    return 0;
}

#define RUN(...)                                                                                             \
    GUMBEL(NULL, "run", program, "Hello", "-n", "12", "--temp", "1.2", "--seed", "5", __VA_ARGS__)

/* ---- The command --------------------------------------------------------------------------------------- */

static void answers_are_the_same(void **state) {
    (void)state;
    char *plain = output_of(RUN(NULL));
    command_result result = RUN("--devices", "auto");
    assert_status(result, 0);
    assert_null(strstr(result.errors ? result.errors : "", "--devices"));
    char *chosen = output_of(result), *two = output_of(RUN("--devices", "0,1"));
    assert_string_equal(chosen, plain);
    assert_string_equal(two, plain);
    free(plain);
    free(chosen);
    free(two);
}

static void other_words_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"zero", "Auto", "auto,1", "1024", "0,", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        command_result result = RUN("--devices", wrong[i]);
        assert_status(result, 2);
        assert_one_error_line(&result, "--devices ");
        assert_has(result.errors,
                   "expected an integer in [0, 1023], or up to 16 of them separated by commas; or auto");
        free_result(&result);
    }
}

/* ---- Options ------------------------------------------------------------------------------------------- */

static const cli_option table[] = {{.names = "--devices",
                                    .argument = "LIST",
                                    .type = CLI_INTEGERS,
                                    .range = {.low = 0, .high = 9},
                                    .choices = "auto"},
                                   {0}};
static const cli_option_group groups[] = {{.title = "All", .options = table}, {0}};

static void the_last_one_counts(void **state) {
    (void)state;
    cli_integers given = {0};
    gumbel_error error;
    assert_true(cli_set_option(groups, &given, "devices", "0,1", &error));
    assert_true(given.count == 2 && !given.word);
    assert_true(cli_set_option(groups, &given, "devices", "auto", &error));
    assert_int_equal(given.count, 0);
    assert_string_equal(given.word, "auto");
    assert_true(cli_set_option(groups, &given, "devices", "3", &error));
    assert_true(given.count == 1 && given.values[0] == 3 && !given.word);
}

/* ---- What is said -------------------------------------------------------------------------------------- */

static void assert_described(gumbel_device_advice advice, const char *expected) {
    char text[CLI_ADVICE_TEXT];
    for (uint32_t i = 0; i < advice.device_count; i++)
        advice.devices[i] = (int)i;
    assert_string_equal(cli_describe_advice(&advice, text), expected);
}

static void reasons_are_said(void **state) {
    (void)state;
    const gumbel_device_estimate slow = {1, true, 10000000000, 20000000000, 0.0055},
                                 full = {1, false, 10000000000, 5000000000, 0.0055},
                                 two = {2, true, 5000000000, 20000000000, 0.0047},
                                 silent = {1, true, 10000000000, 20000000000, 0};
    assert_described((gumbel_device_advice){.device_count = 1, .estimate_count = 1, .estimates = {silent}},
                     "device 0: it is the only one that can be used");
    assert_described((gumbel_device_advice){.device_count = 1, .estimate_count = 2, .estimates = {slow, two}},
                     "device 0: there is room, and two are not a tenth faster; a decode step is predicted "
                     "to take 5.50 ms on 1, 4.70 ms on 2");
    assert_described((gumbel_device_advice){.device_count = 2, .estimate_count = 2, .estimates = {slow, two}},
                     "devices 0,1: faster than fewer; a decode step is predicted to take 5.50 ms on 1, 4.70 "
                     "ms on 2");
    assert_described((gumbel_device_advice){.device_count = 2, .estimate_count = 2, .estimates = {full, two}},
                     "devices 0,1: weights and conversations take 10.0 GB on 1, where there is room for "
                     "5.0 GB; a decode step is predicted to take 5.50 ms on 1, 4.70 ms on 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_the_same),
        cmocka_unit_test(other_words_are_refused),
        cmocka_unit_test(the_last_one_counts),
        cmocka_unit_test(reasons_are_said),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
