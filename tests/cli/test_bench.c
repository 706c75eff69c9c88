/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel bench: what is measured and how it is reported. How fast it is, is nobody's to say here.
 */
#include "cli/fixture.h"

#include "cli/base/average.h"
#include "cli/bench/profile.h"
#include "cli/bench/report.h"
#include "support/test_arguments.h"

#include <jansson.h>
#include <math.h>

static const char *program, *other;

static int set_up(void **state) {
    (void)state;
    program = export_program("bench.gumbel", "256", false);
    other = export_program("other.gumbel", "128", false);
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

/* The only element of an array in JSON. Free with json_decref. */
static json_t *only_object(const char *text) {
    json_error_t problem;
    json_t *array = json_loads(text, 0, &problem);
    assert_int_equal(json_array_size(array), 1);
    json_t *object = json_incref(json_array_get(array, 0));
    json_decref(array);
    return object;
}

/* The defaults that a context of 256 has room for. */
static void an_object_for_programs(void **state) {
    (void)state;
    char *text = output_of(GUMBEL(NULL, "bench", program, "-o", "json", "-r", "2", "-n", "8", "-t", "1"));
    json_t *object = only_object(text);
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

static double bytes_with_chunk(const char *chunk) {
    char *text = output_of(GUMBEL(NULL, "bench", program, "-o", "json", "-r", "1", "-n", "0", "-p", "32",
                                  "--no-limits", "--prefill-chunk", chunk));
    json_t *object = only_object(text);
    const double bytes = number(json_array_get(json_object_get(object, "tests"), 0), "read_bytes");
    json_decref(object);
    free(text);
    return bytes;
}

/* What a prompt reads at least is that of the steps that it is run in. */
static void prompts_in_shorter_steps(void **state) {
    (void)state;
    assert_true(bytes_with_chunk("0") == bytes_with_chunk("32"));
    assert_true(bytes_with_chunk("16") > bytes_with_chunk("32"));
    assert_true(bytes_with_chunk("4") > bytes_with_chunk("16"));
}

/* ---- Several programs and numbers of threads ----------------------------------------------------------- */

#define SEVERAL(format)                                                                                      \
    output_of(GUMBEL(NULL, "bench", program, other, "-t", "1,2", "-p", "4", "-n", "3", "-d", "0,5", "-r",    \
                     "1", "--no-limits", "-o", format))
enum { TESTS = 4, RUNS = 4 }; /* prompt, two of decoding, answer; two programs on one and two threads */

static const char *test_names[TESTS] = {"prompt 4", "decode 3 at 0", "decode 3 at 5", "answer 4 + 3"};

static const char *program_of(int run) {
    return run < RUNS / 2 ? program : other;
}

static int threads_of(int run) {
    return 1 + run % 2;
}

/* Cuts the next line off; the last one ends with the text. */
static char *next_line(char **text) {
    char *line = *text;
    assert_non_null(line);
    *text = strchr(line, '\n');
    if (*text)
        *(*text)++ = '\0';
    return line;
}

static void a_table_of_markdown(void **state) {
    (void)state;
    char *text = SEVERAL("md"), *rest = text;
    assert_string_equal(
        next_line(&rest),
        "| program | weights | backend | threads | test | tokens/s | ms, or ms a step | limit |");
    assert_string_equal(next_line(&rest), "|:--|--:|:--|--:|:--|--:|--:|:--|");
    for (int run = 0; run < RUNS; run++)
        for (int i = 0; i < TESTS; i++) {
            char expected[128], *line = next_line(&rest);
            const char *name = strrchr(program_of(run), '/') + 1;
            snprintf(expected, sizeof expected, " | cpu | %d | %s | ", threads_of(run), test_names[i]);
            assert_has(line, expected);
            assert_int_equal(strncmp(line + 2, name, strlen(name)), 0);
        }
    assert_null(rest);
    free(text);
}

static void a_line_for_each_test(void **state) {
    (void)state;
    char *text = SEVERAL("jsonl"), *rest = text;
    for (int run = 0; run < RUNS; run++)
        for (int i = 0; i < TESTS; i++) {
            json_t *record = json_loads(next_line(&rest), 0, NULL);
            assert_non_null(record);
            assert_string_equal(json_string_value(json_object_get(record, "program")), program_of(run));
            assert_string_equal(json_string_value(json_object_get(record, "name")), test_names[i]);
            assert_true(number(record, "threads") == threads_of(run));
            assert_true(number(record, "tokens_per_second_mean") > 0);
            assert_true(number(record, "seconds_count") == 1);
            assert_true(number(record, "read_bytes_per_second_count") == 0); /* not measured */
            assert_true(number(record, "sampling_temperature") == 0.8);
            json_decref(record);
        }
    assert_null(rest);
    free(text);
}

static void a_line_has_the_limits_of_its_test(void **state) {
    (void)state;
    char *text = output_of(GUMBEL(NULL, "bench", program, "-p", "4,9", "-n", "0", "-r", "1", "-o", "jsonl")),
         *rest = text;
    for (int i = 0; i < 2; i++) {
        json_t *record = json_loads(next_line(&rest), 0, NULL);
        assert_true(number(record, "read_bytes_per_second_count") == 2); /* before it and after it */
        assert_true(number(record, "fraction_of_limit") > 0);
        json_decref(record);
    }
    free(text);
}

/* Columns of a line whose quoted texts have no quotes within. */
static size_t count_columns(const char *line) {
    size_t columns = 1;
    for (bool quoted = false; *line; line++) {
        quoted ^= *line == '"';
        columns += *line == ',' && !quoted;
    }
    return columns;
}

static void a_file_for_spreadsheets(void **state) {
    (void)state;
    char *text = SEVERAL("csv"), *rest = text, *header = next_line(&rest);
    const size_t columns = count_columns(header);
    assert_has(header, "\"program\",");
    assert_has(header, ",\"threads\",");
    assert_has(header, ",\"tokens_per_second_mean\",\"tokens_per_second_sd\",");
    for (int run = 0; run < RUNS; run++)
        for (int i = 0; i < TESTS; i++) {
            char *line = next_line(&rest), name[64];
            snprintf(name, sizeof name, ",\"%s\",", test_names[i]);
            assert_int_equal(count_columns(line), columns);
            assert_has(line, program_of(run));
            assert_has(line, name);
        }
    assert_null(rest);
    free(text);
}

static void an_array_of_all(void **state) {
    (void)state;
    char *text = SEVERAL("json");
    json_t *array = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(array), RUNS);
    for (int run = 0; run < RUNS; run++) {
        const json_t *object = json_array_get(array, (size_t)run);
        assert_string_equal(json_string_value(json_object_get(object, "program")), program_of(run));
        assert_true(number(object, "threads") == threads_of(run));
        assert_int_equal(json_array_size(json_object_get(object, "tests")), TESTS);
    }
    json_decref(array);
    free(text);
}

/* What was measured before is printed, and whole. */
static void a_program_that_is_not_there(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "bench", program, "nowhere.gumbel", "-p", "4", "-n", "0", "-r", "1",
                                   "-t", "1", "--no-limits", "--json");
    assert_status(result, 1);
    assert_one_error_line(&result, "nowhere.gumbel");
    json_decref(only_object(result.output));
    free_result(&result);
}

/* Of all tests; penalties count the tokens of every sequence. */
static void sampling_settings_are_told(void **state) {
    (void)state;
#define SETTINGS                                                                                             \
    "-p", "4", "-n", "3", "-d", "0,5", "--batch", "1,3", "-r", "1", "--no-limits", "--top-k", "5",           \
        "--top-p", "0.5", "--seed", "18446744073709551615", "--repeat-penalty", "1.5", "--logit-bias",       \
        "3=1,4=-inf"
    char *table = output_of(GUMBEL(NULL, "bench", program, SETTINGS));
    assert_has(table, "sampling             seed 18446744073709551615, temperature 0.8, top-k 5, top-p 0.5, "
                      "repetition-penalty 1.5, biases 2\n");
    free(table);
    char *text = output_of(GUMBEL(NULL, "bench", program, SETTINGS, "--json", "--temperature", "0"));
    json_t *object = only_object(text);
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
    char *table = output_of(
        GUMBEL(NULL, "bench", program, "-p", "0", "-n", "255", "-d", "0,1", "-r", "1", "--no-limits"));
    assert_has(table, "decode 255 at 0 ");
    assert_has(table, "decode 255 at 1 ");
    free(table);
    table = output_of(GUMBEL(NULL, "bench", program, "-p", "0", "-n", "6", "-d", "250", "--batch", "2", "-r",
                             "1", "--no-limits"));
    assert_has(table, "decode 6 at 250, 2 sequences");
    free(table);
}

/* More rows read and multiply more, of one sequence and of several. */
static void rows_of_one_sequence(void **state) {
    (void)state;
    char *text = output_of(GUMBEL(NULL, "bench", program, "-p", "0", "-n", "4", "-d", "5", "--batch", "1,2",
                                  "--rows", "1,3", "-r", "1", "--no-limits", "--json"));
    json_t *object = only_object(text);
    static const char *const names[] = {"decode 4 at 5", "decode 4 at 5, 3 rows",
                                        "decode 4 at 5, 2 sequences", "decode 4 at 5, 2 sequences, 3 rows"};
    const json_t *tests = json_object_get(object, "tests");
    assert_int_equal(json_array_size(tests), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *test = json_array_get(tests, i);
        assert_string_equal(json_string_value(json_object_get(test, "name")), names[i]);
        assert_true(number(test, "rows") == (i % 2 == 0 ? 1 : 3));
        assert_true(number(test, "sequences") == 1 + (double)(i / 2));
    }
    assert_true(number(json_array_get(tests, 1), "read_bytes") >
                number(json_array_get(tests, 0), "read_bytes"));
    json_decref(object);
    free(text);
    command_result result = GUMBEL(NULL, "bench", program, "-p", "0", "-n", "64", "--rows", "4", "-d", "1");
    assert_status(result, 1);
    assert_one_error_line(&result, "256 new tokens");
    free_result(&result);
}

/* As many guesses are accepted as --draft-acceptance says, or the command fails. */
static void drafts_are_accepted_as_wanted(void **state) {
    (void)state;
    char *text = output_of(GUMBEL(NULL, "bench", program, "-p", "0", "-n", "12", "-d", "0,5", "--rows", "2,4",
                                  "-r", "2", "--no-limits", "--temp", "1", "--draft", program,
                                  "--draft-acceptance", "0,70,100", "--json"));
    json_t *object = only_object(text);
    const json_t *tests = json_object_get(object, "tests");
    assert_int_equal(json_array_size(tests), 2 * 2 + 2 * 2 * 3);
    const json_t *test = json_array_get(tests, 4 + 5);
    assert_string_equal(json_string_value(json_object_get(test, "name")), "drafts of up to 3 at 0, 100 %");
    assert_string_equal(json_string_value(json_object_get(test, "test")), "drafted");
    assert_true(number(test, "draft_acceptance") == 1 && number(test, "rows") == 4);
    const json_t *guesses = json_object_get(test, "draft_tokens"),
                 *right = json_object_get(test, "accepted_tokens");
    assert_true(number(guesses, "mean") == number(right, "mean")); /* none, where they take too long */
    assert_true(number(guesses, "count") == 2 && number(right, "count") == 2);
    assert_true(number(json_object_get(test, "drafts"), "mean") <= number(right, "mean"));
    json_decref(object);
    free(text);
    char *table = output_of(GUMBEL(NULL, "bench", program, "-p", "0", "-n", "5", "-d", "1", "-r", "1",
                                   "--no-limits", "--draft", program, "--draft-acceptance", "50"));
    assert_has(table, "drafts of up to 3 at 1, 50 %");
    assert_has(table, " guesses in ");
    free(table);
    command_result result = GUMBEL(NULL, "bench", program, "--draft-acceptance", "50");
    assert_status(result, 1);
    assert_one_error_line(&result, "the program has no heads that guess: export it with --draft-head");
    free_result(&result);
    result = GUMBEL(NULL, "bench", program, "--draft", program);
    assert_status(result, 1);
    assert_one_error_line(&result, "--draft needs --draft-acceptance");
    free_result(&result);
    result = GUMBEL(NULL, "bench", program, "--draft", "lookup", "--draft-acceptance", "50");
    assert_status(result, 1);
    assert_one_error_line(&result, "--draft lookup: bench takes a PROGRAM");
    free_result(&result);
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
    char *table =
        output_of(GUMBEL(NULL, "bench", logits, "-p", "4", "-n", "2", "-d", "3", "-r", "1", "--no-limits"));
    assert_has(table, "answer 4 + 2");
    free(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(averages),
        cmocka_unit_test(profiles_add_up_over_layers),
        cmocka_unit_test(fractions),
        cmocka_unit_test(a_table_of_markdown),
        cmocka_unit_test(a_line_for_each_test),
        cmocka_unit_test(a_file_for_spreadsheets),
        cmocka_unit_test(an_array_of_all),
        cmocka_unit_test(a_program_that_is_not_there),
        cmocka_unit_test(sampling_settings_are_told),
        cmocka_unit_test(decoding_fills_the_context),
        cmocka_unit_test(rows_of_one_sequence),
        cmocka_unit_test(drafts_are_accepted_as_wanted),
        cmocka_unit_test(decoding_takes_the_settings),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(programs_without_a_sampler),
    };
    const struct CMUnitTest with_limits[] = {
        cmocka_unit_test(a_table_for_people),
        cmocka_unit_test(an_object_for_programs),
        cmocka_unit_test(prompts_in_shorter_steps),
        cmocka_unit_test(a_line_has_the_limits_of_its_test),
    };
    const int failed = cmocka_run_group_tests(tests, set_up, NULL);
    return is_short_run() ? failed : failed + cmocka_run_group_tests(with_limits, set_up, NULL);
}
