/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel pack: the layout of a program's weights changes, what it says does not.
 */
#include "cli/fixture.h"
#include "support/paths.h"

/* A quantized program. */
static const char *export_quantized(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s", temporary_path(name));
    command_result result = GUMBEL(NULL, "export", test_data("run/small_groups.json"), "--random-weights",
                                   "7", "-o", path, "--quantize", "int4", "--backend", "none", "-q");
    assert_status(result, 0);
    free_result(&result);
    return path;
}

static char *tensors_of(const char *program) {
    return output_of(GUMBEL(NULL, "inspect", program, "--tensors"));
}

static char *answer_of(const char *program) {
    return output_of(
        GUMBEL(NULL, "run", program, "--tokens", "2,5,9", "--seed", "3", "-n", "8", "--print-tokens"));
}

static void a_packed_program_says_the_same(void **state) {
    (void)state;
    const char *program = export_quantized("plain.gumbel");
    char packed[4096];
    snprintf(packed, sizeof packed, "%s", temporary_path("packed.gumbel"));
    char *before = tensors_of(program);
    assert_has(before, "canonical");
    assert_null(strstr(before, "interleaved 16"));
    command_result result = GUMBEL(NULL, "pack", program, "-o", packed);
    assert_status(result, 0);
    assert_has(result.errors, "wrote ");
    free_result(&result);
    char *after = tensors_of(packed), *expected = answer_of(program), *found = answer_of(packed);
    assert_has(after, "interleaved 16");
    assert_string_equal(found, expected);
    free(output_of(GUMBEL(NULL, "pack", packed, "-o", packed, "--backend", "mlx", "-q")));
    char *back = tensors_of(packed);
    assert_string_equal(back, before);
    free(before);
    free(after);
    free(back);
    free(expected);
    free(found);
}

static void mistakes_are_told(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "pack", "-o", "x");
    assert_status(result, 2);
    assert_one_error_line(&result, "pack needs a PROGRAM");
    free_result(&result);
    result = GUMBEL(NULL, "pack", "x");
    assert_status(result, 2);
    assert_one_error_line(&result, "pack needs -o OUT");
    free_result(&result);
    result = GUMBEL(NULL, "pack", "x", "-o", "y", "--backend", "tpu");
    assert_status(result, 2);
    assert_one_error_line(&result, "cpu cuda mlx none");
    free_result(&result);
    result = GUMBEL(NULL, "pack", temporary_path("absent.gumbel"), "-o", "y");
    assert_status(result, 1);
    assert_one_error_line(&result, "absent.gumbel");
    free_result(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packed_program_says_the_same),
        cmocka_unit_test(mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
