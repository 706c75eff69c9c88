/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands given a checkpoint: exported once into the user's cache, again when something has changed, and
 * never half.
 */
#include "cli/cache/cache_fixture.h"
#include "support/paths.h"

static char checkpoint[4096];

static int set_up(void **state) {
    (void)state;
    snprintf(checkpoint, sizeof checkpoint, "%s", make_checkpoint("model"));
    use_cache();
    return 0;
}

static void exports_once_and_says_so(void **state) {
    (void)state;
    command_result first = answer(checkpoint), second = answer(checkpoint);
    assert_string_equal(first.output, second.output);
    assert_quiet(&second);
    assert_has(first.errors, "gumbel: exporting ");
    assert_has(first.errors, " with recipe none to ");
    assert_has(first.errors, cache);
    assert_says(&first, "gumbel: wrote ");
    assert_int_equal(count_entries(), 1);
}

/* The program in the cache is the one that export makes, and every command that takes a program takes it. */
static void is_the_program_of_export(void **state) {
    (void)state;
    const char *exported = temporary_path("exported.gumbel"), *row = temporary_path("row.npy");
    command_result result = GUMBEL(NULL, "export", checkpoint, "-o", exported);
    assert_status(result, 0);
    free_result(&result);
    result = GUMBEL(NULL, "inspect", checkpoint, "--json");
    char *expected = output_of(GUMBEL(NULL, "inspect", exported, "--json"));
    assert_int_equal(strncmp(result.output, expected, strlen(expected)), 0);
    assert_says(&result, "wrote ");
    free(expected);
    result = GUMBEL("/exit\n", "chat", checkpoint, "--seed", "1");
    assert_quiet(&result);
    result = GUMBEL(NULL, "logits", checkpoint, "--tokens", "2,17", "-o", row);
    assert_quiet(&result);
    result = GUMBEL("The cat sat.", "perplexity", checkpoint, "-f", "-", "--against", checkpoint);
    assert_has(result.output, "top-1 agreement 100.00 +- 0.00 %");
    assert_quiet(&result);
}

static void notices_changes(void **state) {
    (void)state;
    command_result result = answer(checkpoint);
    assert_says(&result, "exporting ");
    const struct timespec earlier[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, temporary_path("model/config.json"), earlier, 0), 0);
    result = answer(checkpoint);
    assert_says(&result, "the checkpoint, its recipe or gumbel has changed; exporting ");
    assert_int_equal(count_entries(), 1);
    write_text(temporary_path("model/notes.txt"), "not read by export");
    result = answer(checkpoint);
    assert_quiet(&result);
    write_text(temporary_path("model/added.json"), "{}");
    result = answer(checkpoint);
    assert_says(&result, "has changed");
    assert_int_equal(count_entries(), 1);
    assert_int_equal(unlink(temporary_path("model/added.json")), 0);
    write_text(temporary_path("model/additional_chat_templates/rag.jinja"), "{{ messages[0].content }}");
    result = answer(checkpoint);
    assert_says(&result, "has changed");
    assert_int_equal(unlink(temporary_path("model/additional_chat_templates/rag.jinja")), 0);
}

static void recipes_have_programs_of_their_own(void **state) {
    (void)state;
    const char *recipe = temporary_path("mine.json");
    write_text(recipe, "{\"name\":\"mine\",\"rules\":[{\"pattern\":\"*\",\"bits\":8,\"group\":32}]}");
    command_result result = answer(checkpoint);
    assert_says(&result, "recipe none");
    for (int i = 0; i < 2; i++) {
        result = GUMBEL(NULL, "run", checkpoint, "--quantize", recipe, ANSWER);
        assert_says(&result, i == 0 ? "mine.json" : "");
        assert_int_equal(count_entries(), 2);
    }
    write_text(recipe, "{\"name\":\"mine\",\"rules\":[{\"pattern\":\"*\",\"bits\":6,\"group\":32}]}");
    result = GUMBEL(NULL, "run", checkpoint, "--quantize", recipe, ANSWER);
    assert_says(&result, "has changed");
    assert_int_equal(count_entries(), 2);
    result = answer(checkpoint);
    assert_quiet(&result);
}

/* Of a quantized checkpoint the recipe none, when it is given, makes another program than no recipe. */
static void a_given_none_is_not_the_default(void **state) {
    (void)state;
    const char *quantized = test_data("export/packed/mlx_gemma4_int4");
    for (int i = 0; i < 2; i++) {
        command_result result = GUMBEL(NULL, "inspect", quantized, "--graph");
        assert_has(result.output, "layers.1.keys: cache bf16[");
        assert_says(&result, i == 0 ? "quantized: activations int8, cache bfloat16 by default" : "");
        result = GUMBEL(NULL, "inspect", quantized, "--graph", "--quantize", "none");
        assert_has(result.output, "layers.1.keys: cache f32[");
        assert_says(&result, i == 0 ? "exporting " : "");
        assert_int_equal(count_entries(), 2);
    }
}

/* Puts text over the program's bytes from offset on. */
static void overwrite(const char *path, long offset, const char *text) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static void a_damaged_program_is_made_again(void **state) {
    (void)state;
    command_result first = answer(checkpoint);
    assert_status(first, 0);
    for (int i = 0; i < 4; i++) {
        const char *program = program_of("model");
        if (i == 0)
            assert_int_equal(truncate(program, 1000), 0);
        else if (i == 1)
            overwrite(program, 20, "damage");
        else if (i == 2)
            overwrite(program, 8, "\2"); /* of an older format */
        else
            overwrite(program, 0, "NOTHING");
        command_result result = answer(checkpoint);
        assert_string_equal(result.output, first.output);
        assert_has(result.errors, i == 0   ? "truncated; making it again: exporting "
                                  : i == 1 ? "checksum does not match; making it again: exporting "
                                  : i == 2 ? "making it again: exporting "
                                           : "not a gumbel program; making it again: exporting ");
        assert_says(&result, "wrote ");
        result = answer(checkpoint);
        assert_quiet(&result);
    }
    assert_int_equal(count_entries(), 1);
    free_result(&first);
}

static void what_cannot_be_made_leaves_no_entry(void **state) {
    (void)state;
    const char *folder = temporary_path("nothing");
    mkdir(folder, 0777);
    command_result result = answer(folder);
    assert_status(result, 1);
    assert_has(result.errors, "nothing/config.json: No such file or directory, and there is no .gguf either");
    free_result(&result);
    assert_int_equal(count_entries(), 0);
}

static void a_gguf_is_a_checkpoint_and_a_program_is_none(void **state) {
    (void)state;
    const char *bad = temporary_path("bad.gguf"), *program = temporary_path("exported.gumbel");
    write_text(bad, "GGUF");
    command_result result = answer(bad);
    assert_status(result, 1);
    assert_has(result.errors, "bad.gguf: the header is cut short");
    free_result(&result);
    assert_int_equal(count_entries(), 0);
    result = GUMBEL(NULL, "run", program, "--quantize", "int4", ANSWER);
    assert_status(result, 1);
    assert_one_error_line(&result, "exported.gumbel is no checkpoint");
    free_result(&result);
}

static void lies_in_the_home_directory_otherwise(void **state) {
    (void)state;
    char before[4096];
    snprintf(before, sizeof before, "%s", getenv("HOME") ? getenv("HOME") : "/");
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", temporary_path("home"), 1);
    mkdir(temporary_path("home"), 0777);
    command_result result = answer(checkpoint);
    assert_says(&result, "home/.cache/gumbel/model-");
    unsetenv("HOME");
    result = answer(checkpoint);
    setenv("HOME", before, 1);
    setenv("XDG_CACHE_HOME", temporary_path("caches"), 1);
    assert_status(result, 1);
    assert_one_error_line(&result, "neither XDG_CACHE_HOME nor HOME");
    free_result(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(exports_once_and_says_so, empty_cache),
        cmocka_unit_test_setup(is_the_program_of_export, empty_cache),
        cmocka_unit_test_setup(notices_changes, empty_cache),
        cmocka_unit_test_setup(recipes_have_programs_of_their_own, empty_cache),
        cmocka_unit_test_setup(a_given_none_is_not_the_default, empty_cache),
        cmocka_unit_test_setup(a_damaged_program_is_made_again, empty_cache),
        cmocka_unit_test_setup(what_cannot_be_made_leaves_no_entry, empty_cache),
        cmocka_unit_test_setup(a_gguf_is_a_checkpoint_and_a_program_is_none, empty_cache),
        cmocka_unit_test_setup(lies_in_the_home_directory_otherwise, empty_cache),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
