/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags of the sampler beyond temperature, top-k and top-p, and lines of log-probabilities.
 */
#include "cli/fixture.h"

#include <math.h>

static const char *program, *with_top, *minimal, *logits;

static const char *export_as(const char *name, const char *flag, const char *value) {
    static char paths[4][4096];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s", temporary_path(name));
    command_result result = GUMBEL(NULL, "export", checkpoint_directory(), "--random-weights", "7", "-o",
                                   path, "--quiet", flag, value);
    assert_status(result, 0);
    free_result(&result);
    return path;
}

static int make_programs(void **state) {
    (void)state;
    program = export_as("full.gumbel", NULL, NULL);
    with_top = export_as("top.gumbel", "--top-logprobs-max", "3");
    minimal = export_as("minimal.gumbel", "--sampler", "minimal");
    logits = export_as("logits.gumbel", "--logits", NULL);
    return 0;
}

#define RUN(which, ...)                                                                                      \
    GUMBEL(NULL, "run", which, "--tokens", "2,17,99", "-n", "12", "--seed", "3", "--ignore-eos", __VA_ARGS__)

/* Each flag changes the tokens, by each of its names alike. */
static void flags_take_effect(void **state) {
    (void)state;
    static const char *const flags[][3] = {
        {"--min-p", "0.9", "--min-p"},
        {"--presence-penalty", "-2", "--presence_penalty"},
        {"--frequency-penalty", "-2", "--frequency-penalty"},
        {"--repeat-penalty", "30", "--repetition-penalty"},
    };
    char *plain = output_of(RUN(program, "--print-tokens", "--temp", "0.3"));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char *one = output_of(RUN(program, "--print-tokens", "--temp", "0.3", flags[i][0], flags[i][1]));
        char *other = output_of(RUN(program, "--print-tokens", "--temp", "0.3", flags[i][2], flags[i][1]));
        assert_string_not_equal(one, plain);
        assert_string_equal(one, other);
        free(one);
        free(other);
    }
    free(plain);
}

static void biases_ban_and_force(void **state) {
    (void)state;
    char *forced = output_of(RUN(program, "--print-tokens", "--logit-bias", "5=1000", "-n", "3"));
    assert_string_equal(forced, "5,5,5");
    free(forced);
    char *banned = output_of(
        RUN(program, "--print-tokens", "-n", "3", "--logit-bias", "5=1000,9=900", "--logit-bias", "5=-inf"));
    assert_string_equal(banned, "9,9,9");
    free(banned);
}

/* Token 17, of which the prompt is made, would be next, unless its being there counts. */
static void penalties_count_what_is_asked(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"usual", "17"}, {"generated", "17"}, {"all", "3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *answer =
            output_of(GUMBEL(NULL, "run", program, "--tokens", "17,17,17,17", "--print-tokens", "-n", "1",
                             "--temp", "0", "--logit-bias", "17=100,3=95", "--presence-penalty", "2",
                             "--frequency-penalty", "2", "--penalize", cases[i][0]));
        assert_string_equal(answer, cases[i][1]);
        free(answer);
    }
}

static void out_of_range_is_refused(void **state) {
    (void)state;
    static const char *const wrong[][3] = {
        {"--min-p", "1.1", "--min-p 1.1: expected a number in [0, 1]"},
        {"--presence-penalty", "2.5", "--presence-penalty 2.5: expected a number in [-2, 2]"},
        {"--frequency-penalty", "-3", "--frequency-penalty -3: expected a number in [-2, 2]"},
        {"--repeat-penalty", "0", "--repetition-penalty 0: expected a number in [0.01, 100]"},
        {"--repetition-penalty", "-1", "expected a number in [0.01, 100]"},
        {"--logit-bias", "5", "--logit-bias 5: expected ID=VALUE"},
        {"--logit-bias", "5=inf", "expected ID=VALUE"},
        {"--penalize", "some", "expected one of usual generated all"},
        {"--top-logprobs", "129", "expected an integer in [0, 128]"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        command_result result = RUN(program, wrong[i][0], wrong[i][1]);
        assert_status(result, 2);
        assert_one_error_line(&result, wrong[i][2]);
        free_result(&result);
    }
}

static void assert_refused(command_result result, const char *part) {
    assert_status(result, 1);
    assert_one_error_line(&result, part);
    free_result(&result);
}

static void programs_without_the_roles(void **state) {
    (void)state;
    assert_refused(RUN(minimal, "--print-tokens", "--min-p", "0.1"), "no input min_p");
    assert_refused(RUN(minimal, "--print-tokens", "--logit-bias", "3=1"), "no input bias_ids");
    assert_refused(RUN(minimal, "--logprobs"), "no output logprob");
    assert_refused(RUN(with_top, "--top-logprobs", "4"), "exported for at most 3 (--top-logprobs-max)");
    assert_refused(RUN(program, "--top-logprobs", "21"), "exported for at most 20 (--top-logprobs-max)");
    assert_refused(GUMBEL(NULL, "run", logits, "--tokens", "2", "--temp", "0", "--min-p", "0.1"),
                   "--min-p: the program");
    assert_refused(GUMBEL(NULL, "run", logits, "--tokens", "2", "--temp", "0", "--logprobs"),
                   "--logprobs: the program");
}

/* A line for each token: id, log-probability, text, and the likeliest ones, whose first has the largest. */
static void lines_of_logprobs(void **state) {
    (void)state;
    char *ids = output_of(RUN(with_top, "--print-tokens"));
    char *lines = output_of(RUN(with_top, "--top-logprobs", "3"));
    char *line = lines, *id = ids;
    for (int i = 0; i < 12; i++) {
        int found, best, used = 0;
        double logprob, largest;
        assert_int_equal(sscanf(line, "%d\t%lf\t\"%n", &found, &logprob, &used), 2);
        assert_int_equal(found, strtol(id, &id, 10));
        id++;
        const char *top = strstr(line, "\"\t");
        assert_non_null(top);
        assert_int_equal(sscanf(top, "\"\t%d:%lf", &best, &largest), 2);
        assert_true(logprob <= largest && largest < 0 && logprob > -50);
        line += strcspn(line, "\n");
        line += i < 11; /* output_of drops the last newline */
    }
    assert_int_equal(*line, '\0');
    free(lines);
    free(ids);
    char *plain = output_of(RUN(program, "--logprobs", "--print-tokens"));
    assert_null(strchr(plain, '"'));
    free(plain);
}

static void stats_name_the_settings(void **state) {
    (void)state;
    command_result result =
        RUN(program, "--print-tokens", "--stats", "--presence-penalty", "1.5", "--logit-bias", "3=1,4=2,3=0");
    assert_status(result, 0);
    static const char *const parts[] = {"min-p            0 (default)", "presence-penalty 1.5 (flag)",
                                        "repetition-penalty 1 (default)", "logit-bias       1 tokens (flag)"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_has(result.errors, parts[i]);
    free_result(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_take_effect),
        cmocka_unit_test(biases_ban_and_force),
        cmocka_unit_test(penalties_count_what_is_asked),
        cmocka_unit_test(out_of_range_is_refused),
        cmocka_unit_test(programs_without_the_roles),
        cmocka_unit_test(lines_of_logprobs),
        cmocka_unit_test(stats_name_the_settings),
    };
    return cmocka_run_group_tests(tests, make_programs, NULL);
}
