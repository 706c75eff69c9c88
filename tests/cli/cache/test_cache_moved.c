/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs belong to what a checkpoint holds: moved ones and copies have theirs, others that look like them
 * do not.
 */
#include "cli/cache/cache_fixture.h"
#include "support/paths.h"

static int set_up(void **state) {
    (void)state;
    use_cache();
    return 0;
}

/* Removes the checkpoints of the test before. */
static int start_empty(void **state) {
    run_plainly(
        (const char *const[]){"/bin/rm", "-rf", temporary_path("first"), temporary_path("second"), NULL});
    return empty_cache(state);
}

/* A checkpoint with files of its own, so that they can be changed. */
static const char *copy_checkpoint(const char *name) {
    const char *path = temporary_path(name);
    run_plainly((const char *const[]){"/bin/cp", "-r", bundled_model("gemma4-tiny"), path, NULL});
    return path;
}

static void a_moved_checkpoint_keeps_its_program(void **state) {
    (void)state;
    const char *first = copy_checkpoint("first"), *second = temporary_path("second");
    command_result before = answer(first);
    assert_status(before, 0);
    assert_int_equal(rename(first, second), 0);
    char *list = output_of(GUMBEL(NULL, "cache"));
    assert_has(list, "orphaned");
    free(list);
    command_result after = answer(second);
    assert_string_equal(before.output, after.output);
    assert_quiet(&after);
    list = output_of(GUMBEL(NULL, "cache"));
    assert_has(list, "current");
    assert_has(list, second);
    free(list);
    assert_int_equal(count_entries(), 1);
    entry_of("first-");
    free_result(&before);
}

static void recipes_are_not_mixed_up(void **state) {
    (void)state;
    const char *first = copy_checkpoint("first"), *second = temporary_path("second");
    command_result result = GUMBEL(NULL, "run", first, "--quantize", "int4", ANSWER);
    assert_says(&result, "exporting ");
    assert_int_equal(rename(first, second), 0);
    result = answer(second);
    assert_says(&result, "exporting ");
    result = GUMBEL(NULL, "run", second, "--quantize", "int4", ANSWER);
    assert_quiet(&result);
}

/* The list has the one that was used last. */
static void a_copy_has_the_same_program(void **state) {
    (void)state;
    const char *first = copy_checkpoint("first"), *second = temporary_path("second");
    command_result result = answer(first);
    assert_says(&result, "exporting ");
    run_plainly((const char *const[]){"/bin/cp", "-a", first, second, NULL});
    result = answer(first);
    assert_quiet(&result);
    result = answer(second);
    assert_quiet(&result);
    char *list = output_of(GUMBEL(NULL, "cache"));
    assert_has(list, second);
    free(list);
    assert_int_equal(count_entries(), 1);
}

/* Turns a bit of every weight in bfloat16, as another training would some. */
static void train_differently(const char *path) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    static unsigned char bytes[1 << 24];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_true(feof(file) && size > 100000);
    for (size_t i = 65536; i < size; i += 2)
        bytes[i] ^= 0x40;
    rewind(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The same config, names, sizes and times, and the first one is gone: only the weights tell. */
static void another_model_of_that_shape_is_not_taken_for_it(void **state) {
    (void)state;
    const char *first = copy_checkpoint("first"), *second = temporary_path("second");
    char weights[4200];
    struct stat file;
    command_result before = answer(first);
    assert_status(before, 0);
    assert_int_equal(rename(first, second), 0);
    snprintf(weights, sizeof weights, "%s/model.safetensors", second);
    assert_int_equal(stat(weights, &file), 0);
    train_differently(weights);
    const struct timespec times[2] = {file.st_atim, file.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, weights, times, 0), 0);
    command_result after = answer(second);
    assert_has(after.errors, "exporting ");
    assert_status(after, 0);
    assert_string_not_equal(before.output, after.output);
    free_result(&before);
    free_result(&after);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_moved_checkpoint_keeps_its_program, start_empty),
        cmocka_unit_test_setup(recipes_are_not_mixed_up, start_empty),
        cmocka_unit_test_setup(a_copy_has_the_same_program, start_empty),
        cmocka_unit_test_setup(another_model_of_that_shape_is_not_taken_for_it, start_empty),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
