/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel perplexity against the same numbers worked out here from what `gumbel logits` and `gumbel tokenize`
 * print: one run of the program for each prefix of the text, all in double precision.
 */
#include "cli/fixture.h"
#include "support/paths.h"

#include <jansson.h>
#include <math.h>

enum { VOCABULARY = 2048, WINDOW = 8, MAX_TOKENS = 64 };

static const char TEXT[] = "Once upon a time there was a fox. The fox was red.";

static const char *program, *other;
static char text_path[4096];
static int tokens[MAX_TOKENS], token_count;

typedef struct scores {
    double count, perplexity, perplexity_error, divergence, divergence_error, agreement, agreement_error;
} scores;

/* The other program sees twice as much, so that the windows must be the smaller one's. */
static const char *export_seed(const char *name, const char *seed, const char *context) {
    static char paths[2][4096];
    static size_t next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], "%s", temporary_path(name));
    command_result result = GUMBEL(NULL, "export", checkpoint_directory(), "--random-weights", seed, "-o",
                                   path, "--max-context", context, "--quiet");
    assert_status(result, 0);
    free_result(&result);
    return path;
}

static int make_programs(void **state) {
    (void)state;
    program = export_seed("one.gumbel", "7", "8");
    other = export_seed("other.gumbel", "8", "16");
    snprintf(text_path, sizeof text_path, "%s", temporary_path("text.txt"));
    write_text(text_path, TEXT);
    char *ids = output_of(GUMBEL(NULL, "tokenize", program, "-f", text_path, "--add-special"));
    for (char *word = strtok(ids, ","); word; word = strtok(NULL, ",")) {
        assert_true(token_count < MAX_TOKENS);
        tokens[token_count++] = atoi(word);
    }
    free(ids);
    assert_true(token_count > 2 * WINDOW); /* three windows */
    return 0;
}

/* ---- The same numbers in another way ------------------------------------------------------------------- */

/* log p of every token after a prefix of at most WINDOW tokens: the text's first one, then those since the
 * window's beginning. */
static void predict(const char *from, int position, double log_p[VOCABULARY]) {
    char prefix[256];
    int length = snprintf(prefix, sizeof prefix, "%d", tokens[0]);
    for (int i = position / WINDOW * WINDOW + 1; i <= position; i++)
        length += snprintf(prefix + length, sizeof prefix - (size_t)length, ",%d", tokens[i]);
    const char *path = temporary_path("row.npy");
    free(output_of(GUMBEL(NULL, "logits", from, "--tokens", prefix, "-o", path)));
    float row[VOCABULARY];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, -(long)sizeof row, SEEK_END), 0);
    assert_int_equal(fread(row, sizeof *row, VOCABULARY, file), VOCABULARY);
    fclose(file);
    double sum = 0; /* logits are capped at 30 */
    for (int i = 0; i < VOCABULARY; i++)
        sum += exp((double)row[i]);
    for (int i = 0; i < VOCABULARY; i++)
        log_p[i] = (double)row[i] - log(sum);
}

static int most_likely(const double log_p[VOCABULARY]) {
    int best = 0;
    for (int i = 1; i < VOCABULARY; i++)
        best = log_p[i] > log_p[best] ? i : best;
    return best;
}

static double mean(const double *numbers, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += numbers[i];
    return sum / count;
}

/* The sample's standard deviation over the root of its size. */
static double standard_error(const double *numbers, int count) {
    double center = mean(numbers, count), sum = 0;
    for (int i = 0; i < count; i++)
        sum += (numbers[i] - center) * (numbers[i] - center);
    return sqrt(sum / (count - 1)) / sqrt(count);
}

static scores expected_scores(const char *one, const char *reference) {
    static double log_q[VOCABULARY], log_p[VOCABULARY];
    double surprises[MAX_TOKENS], divergences[MAX_TOKENS] = {0}, agreed[MAX_TOKENS];
    int count = token_count - 1;
    for (int i = 0; i < count; i++) {
        predict(one, i, log_q);
        predict(reference, i, log_p);
        surprises[i] = -log_q[tokens[i + 1]];
        for (int j = 0; j < VOCABULARY; j++)
            divergences[i] += exp(log_p[j]) * (log_p[j] - log_q[j]);
        agreed[i] = 100 * (most_likely(log_q) == most_likely(log_p));
    }
    double perplexity = exp(mean(surprises, count));
    return (scores){count,
                    perplexity,
                    perplexity * standard_error(surprises, count),
                    mean(divergences, count),
                    standard_error(divergences, count),
                    mean(agreed, count),
                    standard_error(agreed, count)};
}

/* ---- What the command says ----------------------------------------------------------------------------- */

static scores printed_scores(command_result result) {
    char *output = output_of(result);
    scores s = {0};
    int fields = sscanf(
        output, "tokens %lf perplexity %lf +- %lf kl divergence %lf +- %lf top-1 agreement %lf +- %lf %%",
        &s.count, &s.perplexity, &s.perplexity_error, &s.divergence, &s.divergence_error, &s.agreement,
        &s.agreement_error);
    if (fields != 3 && fields != 7)
        fail_msg("unexpected output: %s", output);
    free(output);
    return s;
}

static void assert_near(double found, double expected, double tolerance) {
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("%.9g, expected %.9g", found, expected);
}

static void is_what_the_logits_say(void **state) {
    (void)state;
    scores expected = expected_scores(program, other);
    scores found = printed_scores(GUMBEL(NULL, "perplexity", program, "-f", text_path, "--against", other));
    assert_near(found.count, expected.count, 0);
    assert_near(found.perplexity, expected.perplexity, 1e-4);
    assert_near(found.perplexity_error, expected.perplexity_error, 1e-4);
    assert_near(found.divergence, expected.divergence, 1e-6);
    assert_near(found.divergence_error, expected.divergence_error, 1e-6);
    assert_near(found.agreement, expected.agreement, 0.01);
    assert_near(found.agreement_error, expected.agreement_error, 0.01);
    assert_true(expected.divergence > 0.01 && expected.agreement < 100);
}

static void against_itself_nothing_differs(void **state) {
    (void)state;
    scores alone = printed_scores(GUMBEL(TEXT, "perplexity", program, "-f", "-"));
    scores both = printed_scores(GUMBEL(NULL, "perplexity", program, "-f", text_path, "--against", program));
    assert_near(both.perplexity, alone.perplexity, 0);
    assert_near(both.perplexity_error, alone.perplexity_error, 0);
    assert_near(both.divergence, 0, 0);
    assert_near(both.divergence_error, 0, 0);
    assert_near(both.agreement, 100, 0);
}

static double number(const json_t *object, const char *name, const char *part) {
    const json_t *value = json_object_get(object, name);
    value = part ? json_object_get(value, part) : value;
    if (!json_is_number(value))
        fail_msg("\"%s\" is no number", name);
    return json_number_value(value);
}

/* Of full windows the positions from the middle on, but for the last, whose prediction is of another window.
 */
static void second_halves_alone(void **state) {
    (void)state;
    static double log_p[VOCABULARY];
    double surprises[MAX_TOKENS];
    int count = 0;
    for (int i = 0; i < token_count / WINDOW * WINDOW; i++) {
        if (i % WINDOW < WINDOW / 2 || i % WINDOW == WINDOW - 1)
            continue;
        predict(program, i, log_p);
        surprises[count++] = -log_p[tokens[i + 1]];
    }
    scores found = printed_scores(GUMBEL(NULL, "perplexity", program, "-f", text_path, "--second-half"));
    assert_near(found.count, count, 0);
    assert_near(found.perplexity, exp(mean(surprises, count)), 1e-4);
    command_result result = GUMBEL("Once", "perplexity", program, "-f", "-", "--second-half");
    assert_status(result, 1);
    assert_one_error_line(&result, "expected 8 or more in windows of 8");
    free_result(&result);
}

/* The same numbers, with more digits. */
static void an_object_for_programs(void **state) {
    (void)state;
    scores expected = expected_scores(program, other);
    char *text =
        output_of(GUMBEL(NULL, "perplexity", program, "-f", text_path, "--against", other, "--json"));
    json_error_t problem;
    json_t *object = json_loads(text, 0, &problem);
    assert_non_null(object);
    assert_near(number(object, "tokens", NULL), expected.count, 0);
    assert_near(number(object, "window", NULL), WINDOW, 0);
    assert_near(number(object, "perplexity", "mean"), expected.perplexity, 1e-3);
    assert_near(number(object, "perplexity", "error"), expected.perplexity_error, 1e-3);
    assert_near(number(object, "negative_log_likelihood", "mean"), log(expected.perplexity), 1e-6);
    assert_near(number(object, "kl_divergence", "mean"), expected.divergence, 1e-6);
    assert_near(number(object, "kl_divergence", "error"), expected.divergence_error, 1e-6);
    assert_near(number(object, "top_1_agreement", "mean"), expected.agreement / 100, 1e-9);
    assert_near(number(object, "top_1_agreement", "error"), expected.agreement_error / 100, 1e-9);
    assert_string_equal(json_string_value(json_object_get(object, "program")), program);
    assert_string_equal(json_string_value(json_object_get(object, "against")), other);
    json_decref(object);
    free(text);
    text = output_of(GUMBEL(NULL, "perplexity", program, "-f", text_path, "--json"));
    object = json_loads(text, 0, &problem);
    assert_non_null(object);
    assert_null(json_object_get(object, "kl_divergence"));
    json_decref(object);
    free(text);
}

static void counts_what_it_is_given(void **state) {
    (void)state;
    scores five = printed_scores(GUMBEL(NULL, "perplexity", program, "-f", text_path, "-n", "5"));
    assert_near(five.count, 4, 0); /* the first one has nothing before it */
    command_result result = GUMBEL("", "perplexity", program, "-f", "-");
    assert_status(result, 1);
    assert_one_error_line(&result, "1 tokens, expected 2 or more");
    free_result(&result);
}

/* Both have a vocabulary of 2048, so that only the text's tokens tell them apart. */
static void other_tokens_cannot_be_compared(void **state) {
    (void)state;
    const char *whole = temporary_path("whole.gumbel");
    free(output_of(
        GUMBEL(NULL, "export", bundled_model("qwen3_5-moe-tiny"), "-o", whole, "--quiet", "--layers", "4")));
    command_result result = GUMBEL(NULL, "perplexity", program, "-f", text_path, "--against", whole);
    assert_status(result, 1);
    assert_one_error_line(&result, "its tokenizer gives other tokens for the text than that of ");
    assert_has(result.errors, program);
    assert_has(result.errors, whole);
    free_result(&result);
    const char *small = temporary_path("small.gumbel");
    free(output_of(GUMBEL(NULL, "export", test_data("run/small.json"), "--random-weights", "1", "-o", small,
                          "--quiet")));
    result = GUMBEL(NULL, "perplexity", program, "-f", text_path, "--against", small);
    assert_status(result, 1);
    assert_one_error_line(&result, "small.gumbel: a vocabulary of 160 tokens, expected 2048 as in ");
    free_result(&result);
}

/* The bundled models on the beginning of a text of their language. The bounds are twice what is measured. */
static void four_bits_cost_little(void **state) {
    (void)state;
    const char *const models[] = {bundled_model("gemma4-tiny"), bundled_model("qwen3_5-moe-tiny")};
    const char *whole = temporary_path("whole.gumbel"), *small = temporary_path("small.gumbel");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        free(output_of(GUMBEL(NULL, "export", models[i], "-o", whole, "--quiet")));
        free(output_of(GUMBEL(NULL, "export", models[i], "-o", small, "--quiet", "--quantize", "int4")));
        scores s =
            printed_scores(GUMBEL(NULL, "perplexity", small, "--against", whole, "-f",
                                  test_data("quantize/perplexity.txt"), "-n", "600", "--threads", "1"));
        assert_true(s.divergence > 0 && s.divergence < 0.005);
        assert_true(s.agreement > 90);
    }
}

/* All but the engine's description, which says how many tokens it takes in a step. */
static char *scores_in_batches(const char *small, const char *whole, const char *batch,
                               const char *second_half) {
    char *object = output_of(GUMBEL(NULL, "perplexity", small, "--against", whole, "-f",
                                    test_data("quantize/perplexity.txt"), "-n", "100", "-c", "16", "--json",
                                    "--batch", batch, second_half));
    char *scores_of_text = strstr(object, "\"file\"");
    assert_non_null(scores_of_text);
    memmove(object, scores_of_text, strlen(scores_of_text) + 1);
    return object;
}

/* Of 100 tokens six windows are full and a seventh is not, which is run beside others and alone. */
static void a_batch_changes_nothing(void **state) {
    (void)state;
    const char *model = bundled_model("qwen3_5-moe-tiny");
    const char *whole = temporary_path("whole.gumbel"), *small = temporary_path("small.gumbel");
    free(output_of(GUMBEL(NULL, "export", model, "-o", whole, "--quiet")));
    free(output_of(GUMBEL(NULL, "export", model, "-o", small, "--quiet", "--quantize", "int4")));
    const char *const batches[] = {"8", "5", "3"}, *const halves[] = {NULL, "--second-half"};
    for (size_t h = 0; h < sizeof halves / sizeof *halves; h++) {
        char *expected = scores_in_batches(small, whole, "1", halves[h]);
        assert_has(expected, "kl_divergence");
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
            char *found = scores_in_batches(small, whole, batches[b], halves[h]);
            assert_string_equal(found, expected);
            free(found);
        }
        free(expected);
    }
}

static void batches_have_one_window_or_more(void **state) {
    (void)state;
    const char *const values[] = {"0", "-1", "1025", "8x", ""};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        command_result result = GUMBEL(NULL, "perplexity", program, "-f", text_path, "--batch", values[i]);
        assert_status(result, 2);
        assert_one_error_line(&result, "--batch");
        free_result(&result);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_what_the_logits_say),
        cmocka_unit_test(against_itself_nothing_differs),
        cmocka_unit_test(second_halves_alone),
        cmocka_unit_test(an_object_for_programs),
        cmocka_unit_test(counts_what_it_is_given),
        cmocka_unit_test(other_tokens_cannot_be_compared),
        cmocka_unit_test(four_bits_cost_little),
        cmocka_unit_test(a_batch_changes_nothing),
        cmocka_unit_test(batches_have_one_window_or_more),
    };
    return cmocka_run_group_tests(tests, make_programs, NULL);
}
