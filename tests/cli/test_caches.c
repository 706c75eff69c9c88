/* SPDX-License-Identifier: Apache-2.0
 *
 * --cache: a program that was exported with it, and another one that is run with it.
 */
#include "cli/fixture.h"
#include "support/paths.h"

#define MODEL bundled_model("gemma4-tiny")

static const char *exported(const char *name, const char *cache) {
    static char paths[2][4096];
    static size_t next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], "%s", temporary_path(name));
    free(output_of(GUMBEL(NULL, "export", MODEL, "-o", path, "--quiet", "--cache", cache)));
    return path;
}

static void a_program_runs_as_if_exported_so(void **state) {
    (void)state;
    static const char *const caches[] = {"q8", "q4"};
    const char *plain = exported("plain.gumbel", "float32");
    for (size_t i = 0; i < 2; i++) {
        const char *coded = exported("coded.gumbel", caches[i]);
        char *expected = output_of(GUMBEL(NULL, "run", coded, "Why?", "--seed", "3", "-n", "40"));
        char *found =
            output_of(GUMBEL(NULL, "run", plain, "Why?", "--seed", "3", "-n", "40", "--cache", caches[i]));
        assert_string_equal(found, expected);
        free(found);
        free(expected);
        expected = output_of(GUMBEL(NULL, "inspect", coded, "--graph"));
        found = output_of(GUMBEL(NULL, "inspect", plain, "--graph", "--cache", caches[i]));
        assert_string_equal(found, expected);
        assert_has(found, "layers.0.keys: ring q8[");
        assert_has(found, i == 0 ? "layers.3.keys: cache q8[" : "layers.3.keys: cache q4[");
        assert_has(found, "rotation = 64, value_rotation = 64}");
        free(found);
        free(expected);
    }
}

static void bytes_of_conversations(void **state) {
    (void)state;
    char *summary = output_of(GUMBEL(NULL, "inspect", exported("plain.gumbel", "bf16"), "--cache", "q8"));
    assert_has(summary, "  at 1024 tokens     ");
    assert_has(summary, " sessions beside the weights\n");
    free(summary);
}

/* The bytes of a line that begins with label, in kB. */
static double kilobytes_of(const char *report, const char *label) {
    double kilobytes = 0, sessions = 0;
    const char *line = strstr(report, label);
    assert_non_null(line);
    line += strlen(label);
    assert_int_equal(
        sscanf(line, " %lf kB a conversation, %lf have room beside the weights\n", &kilobytes, &sessions), 2);
    assert_true(sessions >= 1);
    return kilobytes;
}

static double kilobytes_with(const char *program, const char *cache, const char *context) {
    command_result result = GUMBEL(NULL, "run", program, "Why?", "-n", "2", "--temp", "0", "--stats",
                                   "--cache", cache, "-c", context);
    assert_status(result, 0);
    const double kilobytes = kilobytes_of(result.errors, "\nat 1024 tokens   ");
    assert_null(strstr(result.errors, "at 8192 tokens"));
    free_result(&result);
    return kilobytes;
}

/* An engine's are those of its caches, at the lengths that it can hold. */
static void stats_have_bytes_of_conversations(void **state) {
    (void)state;
    const char *plain = exported("plain.gumbel", "bf16");
    const double bfloat16 = kilobytes_with(plain, "bfloat16", "1024"),
                 q8 = kilobytes_with(plain, "q8", "2048");
    assert_true(q8 < 0.7 * bfloat16);
    command_result result = GUMBEL(NULL, "run", plain, "Why?", "-n", "2", "--stats", "-c", "1023");
    assert_status(result, 0);
    assert_null(strstr(result.errors, "a conversation"));
    free_result(&result);
}

static void assert_refused(command_result result, const char *part) {
    assert_int_not_equal(result.status, 0);
    assert_has(result.errors, part);
    free_result(&result);
}

static void other_kinds_are_refused(void **state) {
    (void)state;
    const char *plain = exported("plain.gumbel", "bfloat16");
    assert_refused(GUMBEL(NULL, "run", plain, "Why?", "--cache", "q3"),
                   "cache: \"q3\", expected float32, bfloat16, q8, q4");
    assert_refused(GUMBEL(NULL, "export", MODEL, "-o", temporary_path("none.gumbel"), "--cache", "f16"),
                   "cache: \"f16\": caches of 16 bits are bfloat16");
    assert_refused(GUMBEL(NULL, "run", export_program("narrow.gumbel", "32", false), "Why?", "--cache", "q8"),
                   ".keys has heads of 16 elements; q8 takes a multiple of 32, at most 512: use bfloat16");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_runs_as_if_exported_so),
        cmocka_unit_test(bytes_of_conversations),
        cmocka_unit_test(stats_have_bytes_of_conversations),
        cmocka_unit_test(other_kinds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
