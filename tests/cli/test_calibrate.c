/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel export --calibrate: with a text of the model's own kind 4 bits cost less on another such text, and
 * what is written depends on nothing else.
 */
#include "cli/fixture.h"
#include "support/test_arguments.h"

#include <jansson.h>

enum { CALIBRATION_BYTES = 12000, SCORED_BYTES = 12000 };

static char calibration[4096], scored[4096], calibrated[4096]; /* paths */

static int make_texts(void **state) {
    (void)state;
    static char bytes[CALIBRATION_BYTES + SCORED_BYTES + 1];
    FILE *file = fopen(test_data("quantize/perplexity.txt"), "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, sizeof bytes - 1, file), sizeof bytes - 1);
    fclose(file);
    snprintf(calibration, sizeof calibration, "%s", temporary_path("calibration.txt"));
    snprintf(scored, sizeof scored, "%s", temporary_path("scored.txt"));
    write_file(scored, bytes + CALIBRATION_BYTES, (size_t)shortened(SCORED_BYTES, 4000));
    write_file(calibration, bytes, (size_t)shortened(CALIBRATION_BYTES, 4000));
    return 0;
}

static double divergence_of(const char *program, const char *whole) {
    char *text = output_of(
        GUMBEL(NULL, "perplexity", program, "-f", scored, "-c", "256", "--against", whole, "--json"));
    json_t *root = json_loads(text, 0, NULL);
    double divergence = -1;
    assert_int_equal(json_unpack(root, "{s:{s:F}}", "kl_divergence", "mean", &divergence), 0);
    json_decref(root);
    free(text);
    return divergence;
}

static size_t read_program(const char *path, uint8_t **bytes) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    *bytes = malloc(size);
    assert_non_null(*bytes);
    assert_int_equal(fread(*bytes, 1, size, file), size);
    fclose(file);
    return size;
}

static void assert_same_files(const char *one, const char *other) {
    uint8_t *a, *b;
    const size_t size = read_program(one, &a);
    assert_int_equal(read_program(other, &b), size);
    assert_memory_equal(a, b, size);
    free(a);
    free(b);
}

/* What is lost is that of the products: the embedding, which is the head, has 8 bits. */
static const char RECIPE[] =
    "{\"name\": \"products\", \"activations\": \"int8\", \"cache\": \"bfloat16\", \"rules\": ["
    "{\"pattern\": \"lm_head.weight\", \"bits\": 8, \"group\": \"row\", \"bias\": false, \"rotation\": 128},"
    "{\"pattern\": \"*.router.proj.weight\", \"keep\": true, \"optional\": true},"
    "{\"pattern\": \"*\", \"bits\": 4, \"group\": 32, \"scale\": \"integer\"}]}";

static void export_in_four_bits(const char *model, const char *program, const char *text) {
    const char *recipe = temporary_path("products.json");
    write_text(recipe, RECIPE);
    command_result result =
        text ? GUMBEL(NULL, "export", model, "-o", program, "--quantize", recipe, "--calibrate", text)
             : GUMBEL(NULL, "export", model, "-o", program, "--quantize", recipe);
    assert_status(result, 0);
    assert_true(!text || strstr(result.errors, "calibrated on"));
    free_result(&result);
}

/* Calibrating takes a while: the tests share a program. */
static int make_texts_and_program(void **state) {
    make_texts(state);
    snprintf(calibrated, sizeof calibrated, "%s", temporary_path("calibrated.gumbel"));
    export_in_four_bits(bundled_model("gemma4-tiny"), calibrated, calibration);
    return 0;
}

static void four_bits_lose_less(void **state) {
    (void)state;
    const char *model = bundled_model("gemma4-tiny"), *whole = temporary_path("whole.gumbel"),
               *plain = temporary_path("plain.gumbel");
    free(output_of(GUMBEL(NULL, "export", model, "-o", whole, "--quiet")));
    export_in_four_bits(model, plain, NULL);
    const double before = divergence_of(plain, whole), after = divergence_of(calibrated, whole);
    print_message("%.5f becomes %.5f\n", before, after);
    assert_true(after < 0.95 * before);
}

static void one_text_gives_one_program(void **state) {
    (void)state;
    const char *model = bundled_model("gemma4-tiny"), *other = temporary_path("other.gumbel");
    export_in_four_bits(model, other, calibration);
    assert_same_files(calibrated, other);
    free(output_of(GUMBEL(NULL, "export", model, "-o", other, "--layers", "1", "--quantize", "int8",
                          "--calibrate", "built-in", "--quiet")));
}

/* A bad request leaves neither a program nor what was run for it. */
static void refusals_leave_nothing(void **state) {
    (void)state;
    const char *model = bundled_model("gemma4-tiny"), *program = temporary_path("refused/program.gumbel");
    write_text(temporary_path("refused/short.txt"), "");
    const struct {
        const char *quantize, *text, *message;
        int status;
    } cases[] = {
        {"int4", temporary_path("refused/none.txt"), "none.txt", 1},
        {"int4", temporary_path("refused/short.txt"), "short.txt", 1},
        {"none", calibration, "--quantize", 2},
        {"int44", temporary_path("refused/none.txt"), "int44", 1}, /* before the text is looked for */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        command_result result = GUMBEL(NULL, "export", model, "-o", program, "--quiet", "--quantize",
                                       cases[i].quantize, "--calibrate", cases[i].text);
        assert_status(result, cases[i].status);
        assert_one_error_line(&result, cases[i].message);
        free_result(&result);
    }
    command_result result = GUMBEL(NULL, "export", model, "-o", program, "--calibrate", calibration);
    assert_status(result, 2);
    assert_one_error_line(&result, "--quantize");
    free_result(&result);
    assert_int_equal(count_files(temporary_path("refused")), 1); /* short.txt */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_bits_lose_less),
        cmocka_unit_test(one_text_gives_one_program),
        cmocka_unit_test(refusals_leave_nothing),
    };
    return cmocka_run_group_tests(tests, make_texts_and_program, NULL);
}
