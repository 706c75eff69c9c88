/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel bench: what is measured and how it is told. How fast it is, is nobody's to say here.
 */
#include "fixture.h"

#include "cli/average.h"
#include "cli/bench_profile.h"
#include "cli/bench_report.h"

#include <jansson.h>
#include <math.h>

static const char *program;

static int set_up(void **state) {
    (void)state;
    program = export_program("bench.gumbel", "256", false);
    return 0;
}

static void averages(void **state) {
    (void)state;
    cli_average average = {0};
    assert_true(cli_average_deviation(&average) == 0);
    static const double numbers[] = {2, 4, 4, 4, 5, 5, 7, 9};
    for (size_t i = 0; i < 8; i++)
        cli_average_add(&average, numbers[i]);
    assert_true(average.mean == 5);
    assert_true(fabs(cli_average_deviation(&average) - sqrt(32.0 / 7)) < 1e-12);
    assert_true(fabs(cli_average_error(&average) - sqrt(32.0 / 7 / 8)) < 1e-12);
}

static void profiles_add_up_over_layers(void **state) {
    (void)state;
    cli_profile *profile = calloc(1, sizeof *profile);
    assert_non_null(profile);
    cli_profile_add(profile, "linear", "model.layers.0.mlp.up_proj.weight", 1);
    assert_int_equal(profile->count, 0);
    profile->is_on = true;
    cli_profile_add(profile, "linear", "model.layers.0.mlp.up_proj.weight", 1);
    cli_profile_add(profile, "add", NULL, 4);
    cli_profile_add(profile, "linear", "model.layers.11.mlp.up_proj.weight", 2);
    cli_profile_add(profile, "linear", "lm_head.weight", 0.5);
    cli_profile_sort(profile);
    assert_int_equal(profile->count, 3);
    assert_string_equal(profile->entries[0].name, "add");
    assert_string_equal(profile->entries[1].name, "linear mlp.up_proj");
    assert_string_equal(profile->entries[2].name, "linear lm_head");
    assert_true(profile->entries[1].seconds == 3 && profile->entries[1].calls == 2);
    assert_true(cli_profile_seconds(profile) == 7.5);
    for (int i = 0; i < 2 * CLI_MOST_PROFILED; i++) {
        char op[16];
        snprintf(op, sizeof op, "op%d", i);
        cli_profile_add(profile, op, NULL, 1);
    }
    assert_int_equal(profile->count, CLI_MOST_PROFILED);
    assert_true(cli_profile_seconds(profile) == 7.5 + 2 * CLI_MOST_PROFILED);
    free(profile);
}

/* The limit that takes longer is the one that counts. */
static void fractions(void **state) {
    (void)state;
    cli_bench_test test = {.read_bytes = 50e9, .int8_products = 100e9};
    const char *limit;
    cli_average_add(&test.seconds, 2);
    assert_true(cli_bench_fraction(&test, &limit) == 0);
    assert_string_equal(limit, "");
    cli_average_add(&test.read_rate, 100e9);
    assert_true(cli_bench_fraction(&test, &limit) == 0.25);
    assert_string_equal(limit, "read bandwidth");
    cli_average_add(&test.int8_rate, 50e9);
    assert_true(cli_bench_fraction(&test, &limit) == 1);
    assert_string_equal(limit, "int8 peak");
}

static void a_table_for_people(void **state) {
    (void)state;
    char *table = output_of(GUMBEL(NULL, "bench", program, "-p", "4,9", "-n", "3", "-d", "0,5", "--batch",
                                   "1,2", "-r", "1", "--profile"));
    static const char *const parts[] = {"engine",
                                        "read bandwidth",
                                        "int8 peak",
                                        "load and first token",
                                        "peak memory",
                                        "prompt 4 ",
                                        "prompt 9 ",
                                        "decode 3 at 0 ",
                                        "decode 3 at 5, 2 sequences",
                                        "answer 9 + 3",
                                        "all ops    ",
                                        "sampling             seed 0, temperature 0.8\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_has(table, parts[i]);
    free(table);
}

static double number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value))
        fail_msg("\"%s\" is no number", name);
    return json_number_value(value);
}

/* The defaults that a context of 256 has room for. */
static void an_object_for_programs(void **state) {
    (void)state;
    char *text = output_of(GUMBEL(NULL, "bench", program, "-o", "json", "-r", "2", "-n", "8", "-t", "1"));
    json_error_t problem;
    json_t *object = json_loads(text, 0, &problem);
    assert_non_null(object);
    assert_true(number(json_object_get(object, "read_bytes_per_second"), "mean") > 0);
    assert_true(number(object, "peak_megabytes") > 0);
    const json_t *tests = json_object_get(object, "tests"), *test;
    static const char *const names[] = {"prompt 64", "decode 8 at 0", "answer 64 + 8"};
    assert_int_equal(json_array_size(tests), 3);
    for (size_t i = 0; i < 3; i++) {
        test = json_array_get(tests, i);
        assert_string_equal(json_string_value(json_object_get(test, "name")), names[i]);
        assert_true(number(json_object_get(test, "tokens_per_second"), "mean") > 0);
        assert_true(number(json_object_get(test, "seconds"), "count") == 2);
        assert_true(number(test, "read_bytes") > 0);
        assert_true(number(json_object_get(test, "read_bytes_per_second"), "count") == 4); /* two for each */
        assert_true(number(test, "fraction_of_limit") > 0);
    }
    json_decref(object);
    free(text);
}

/* Of all tests; penalties count the tokens of every sequence. */
static void sampling_settings_are_told(void **state) {
    (void)state;
#define SETTINGS                                                                                             \
    "-p", "4", "-n", "3", "-d", "0,5", "--batch", "1,3", "-r", "1", "--top-k", "5", "--top-p", "0.5",        \
        "--seed", "18446744073709551615", "--repeat-penalty", "1.5", "--logit-bias", "3=1,4=-inf"
    char *table = output_of(GUMBEL(NULL, "bench", program, SETTINGS));
    assert_has(table, "sampling             seed 18446744073709551615, temperature 0.8, top-k 5, top-p 0.5, "
                      "repetition-penalty 1.5, biases 2\n");
    free(table);
    char *text = output_of(GUMBEL(NULL, "bench", program, SETTINGS, "--json", "--temperature", "0"));
    json_error_t problem;
    json_t *object = json_loads(text, 0, &problem);
    assert_non_null(object);
    const json_t *sampling = json_object_get(object, "sampling");
    assert_true(number(sampling, "temperature") == 0);
    assert_true(number(sampling, "top_k") == 5);
    assert_true(number(sampling, "repetition_penalty") == 1.5);
    assert_true(number(sampling, "biases") == 2);
    assert_string_equal(json_string_value(json_object_get(sampling, "seed")), "18446744073709551615");
    json_decref(object);
    free(text);
#undef SETTINGS
}

/* Depths of one token and of none both begin after one: a prompt's last token is not decoded. */
static void decoding_fills_the_context(void **state) {
    (void)state;
    char *table = output_of(GUMBEL(NULL, "bench", program, "-p", "0", "-n", "255", "-d", "0,1", "-r", "1"));
    assert_has(table, "decode 255 at 0 ");
    assert_has(table, "decode 255 at 1 ");
    free(table);
    table = output_of(
        GUMBEL(NULL, "bench", program, "-p", "0", "-n", "6", "-d", "250", "--batch", "2", "-r", "1"));
    assert_has(table, "decode 6 at 250, 2 sequences");
    free(table);
}

/* The first step that a test takes with a setting says what is wrong with it. */
static void decoding_takes_the_settings(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "bench", program, "-p", "0", "-n", "2", "-d", "0", "-r", "1",
                                   "--logit-bias", "999999=1");
    assert_status(result, 1);
    assert_one_error_line(&result, "999999");
    free_result(&result);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "bench", program, "-d", "250", "-p", "4", "-n", "20");
    assert_status(result, 1);
    assert_one_error_line(&result, "--depth 250 and 20 new tokens: the context has 256 positions");
    free_result(&result);
    result = GUMBEL(NULL, "bench", program, "-d", "0", "-p", "0", "-n", "256");
    assert_status(result, 1);
    assert_one_error_line(
        &result, "--depth 0, where one token stands before, and 256 new tokens: the context has 256");
    free_result(&result);
    result = GUMBEL(NULL, "bench", program, "-p", "4,x");
    assert_status(result, 2);
    assert_one_error_line(&result, "--prompt-tokens 4,x: expected an integer in [0, 1048576], or up to 16");
    free_result(&result);
    result = GUMBEL(NULL, "bench");
    assert_status(result, 2);
    free_result(&result);
}

static void programs_without_a_sampler(void **state) {
    (void)state;
    const char *logits = export_program("bench-logits.gumbel", "64", true);
    char *table = output_of(GUMBEL(NULL, "bench", logits, "-p", "4", "-n", "2", "-d", "3", "-r", "1"));
    assert_has(table, "answer 4 + 2");
    free(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(averages),
        cmocka_unit_test(profiles_add_up_over_layers),
        cmocka_unit_test(fractions),
        cmocka_unit_test(a_table_for_people),
        cmocka_unit_test(an_object_for_programs),
        cmocka_unit_test(sampling_settings_are_told),
        cmocka_unit_test(decoding_fills_the_context),
        cmocka_unit_test(decoding_takes_the_settings),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(programs_without_a_sampler),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
