/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel export --size: how sizes are written, that they are met, and that the programs run and are the same
 * each time.
 */
#include "cli/fixture.h"
#include "support/test_arguments.h"

#include <sys/stat.h>

static size_t size_of(const char *path) {
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    return (size_t)found.st_size;
}

static void export_sized(const char *model, const char *path, const char *size) {
    command_result result =
        GUMBEL(NULL, "export", bundled_model(model), "-o", path, "--quantize", "int4", "--size", size);
    assert_status(result, 0);
    assert_has(result.errors, "matrices have 8 bits");
    free_result(&result);
}

static void assert_same_files(const char *one, const char *other) {
    command_result result = run_command((const char *const[]){"/usr/bin/cmp", one, other, NULL}, NULL);
    assert_status(result, 0);
    free_result(&result);
}

static void assert_sized(const char *model) {
    const char *path = temporary_path("sized.gumbel"), *again = temporary_path("again.gumbel");
    export_sized(model, path, "3.5MB");
    assert_true(size_of(path) <= 3500000 && size_of(path) > 3200000);
    export_sized(model, again, "3500000");
    assert_same_files(path, again);
    free(output_of(GUMBEL(NULL, "run", path, "Hello", "-n", "4", "--quiet")));
    export_sized(model, again, "3MiB");
    assert_true(size_of(again) <= 3 << 20 && size_of(again) > 2900000);
}

static void sizes_are_met(void **state) {
    (void)state;
    assert_sized("gemma4-tiny");
    assert_sized("qwen3_5-moe-tiny");
}

/* A text, in a short run the beginning of it. */
static const char *calibration_text(void) {
    static char bytes[1 << 13];
    const char *path = temporary_path("calibration.txt");
    FILE *file = fopen(test_data("models/text.txt"), "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, (size_t)shortened(sizeof bytes, 2000), file);
    fclose(file);
    write_file(path, bytes, size);
    return path;
}

/* What products lose on the text decides, and is the same each time. */
static void calibrated_sizes_are_met(void **state) {
    (void)state;
    const char *model = bundled_model("gemma4-tiny"), *one = temporary_path("one.gumbel"),
               *other = temporary_path("other.gumbel"), *text = calibration_text();
    const char *const paths[] = {one, other};
    for (size_t i = 0; i < 2; i++)
        free(output_of(GUMBEL(NULL, "export", model, "-o", paths[i], "--quantize", "int4", "--size", "3.2MB",
                              "--calibrate", text, "--quiet")));
    assert_true(size_of(one) <= 3200000 && size_of(one) > 2900000);
    assert_same_files(one, other);
}

static void bad_sizes_are_refused(void **state) {
    (void)state;
    const char *model = bundled_model("gemma4-tiny"), *program = temporary_path("refused/program.gumbel");
    const struct {
        const char *quantize, *size, *message;
        int status;
    } cases[] = {
        {"int4", "", "17.5GB", 2},         {"int4", "0", "17.5GB", 2},
        {"int4", "large", "17.5GB", 2},    {"int4", "-3MB", "17.5GB", 2},
        {"int4", "3 MBs", "17.5GB", 2},    {"int4", "2MB", "not 2000000", 1},
        {"int8", "9MB", "recipe int8", 1}, {"none", "9MB", "recipe none", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        command_result result = GUMBEL(NULL, "export", model, "-o", program, "--quiet", "--quantize",
                                       cases[i].quantize, "--size", cases[i].size);
        assert_status(result, cases[i].status);
        assert_one_error_line(&result, cases[i].message);
        free_result(&result);
    }
    command_result result = GUMBEL(NULL, "export", model, "-o", program, "--size", "3MB");
    assert_status(result, 2);
    assert_one_error_line(&result, "--quantize");
    free_result(&result);
    result = GUMBEL(NULL, "export", model, "-o", program, "--quiet", "--quantize", "int4", "--size", "2MB",
                    "--calibrate", "built-in");
    assert_status(result, 1);
    assert_one_error_line(&result, "not 2000000"); /* before the model is run */
    free_result(&result);
    assert_int_equal(count_files(temporary_path("refused")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_met),
        cmocka_unit_test(calibrated_sizes_are_met),
        cmocka_unit_test(bad_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
