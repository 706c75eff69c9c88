/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands given a checkpoint: exported once into the user's cache, again when something has changed, and
 * never half.
 */
#include "fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char checkpoint[4096], cache[4096];

/* The bundled model with a config.json of its own, which the tests touch. */
static int set_up(void **state) {
    (void)state;
    static const char *const linked[] = {"model.safetensors", "tokenizer.json", "tokenizer_config.json",
                                         "chat_template.jinja", "generation_config.json"};
    for (size_t i = 0; i < sizeof linked / sizeof *linked; i++) {
        char from[4096], to[64];
        snprintf(from, sizeof from, "%s/gemma4-tiny/%s", GUMBEL_MODELS, linked[i]);
        snprintf(to, sizeof to, "model/%s", linked[i]);
        assert_int_equal(symlink(from, temporary_path(to)), 0);
    }
    copy_file(GUMBEL_MODELS "/gemma4-tiny/config.json", temporary_path("model/config.json"));
    snprintf(checkpoint, sizeof checkpoint, "%s", temporary_path("model"));
    snprintf(cache, sizeof cache, "%s", temporary_path("caches/gumbel"));
    assert_int_equal(setenv("XDG_CACHE_HOME", temporary_path("caches"), 1), 0);
    return 0;
}

/* Begins with an empty cache. */
static int empty_cache(void **state) {
    (void)state;
    command_result result = run_command((const char *const[]){"/bin/rm", "-rf", cache, NULL}, NULL);
    assert_status(result, 0);
    free_result(&result);
    return 0;
}

#define ANSWER "--tokens", "2,17,99", "--print-tokens", "-n", "8", "--temp", "0"

static command_result answer(const char *model) {
    return GUMBEL(NULL, "run", model, ANSWER);
}

/* Nothing is said but, of an answer, why it ended. */
static void assert_quiet(command_result *result) {
    const char *errors = result->errors ? result->errors : "";
    assert_status(*result, 0);
    if (strcmp(errors, "gumbel: stopped at 8 tokens (-n)\n") != 0)
        assert_string_equal(errors, "");
    free_result(result);
}

/* Standard error has a part, and the command went well. */
static void assert_says(command_result *result, const char *part) {
    assert_status(*result, 0);
    assert_has(result->errors, part);
    free_result(result);
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
    assert_int_equal(count_files(cache), 1);
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
    assert_has(result.output, "top-1 agreement 100.00 %");
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
    assert_int_equal(count_files(cache), 1);
    write_text(temporary_path("model/notes.txt"), "not read by export");
    result = answer(checkpoint);
    assert_quiet(&result);
    write_text(temporary_path("model/added.json"), "{}");
    result = answer(checkpoint);
    assert_says(&result, "has changed");
    assert_int_equal(count_files(cache), 1);
    assert_int_equal(unlink(temporary_path("model/added.json")), 0);
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
        assert_int_equal(count_files(cache), 2);
    }
    write_text(recipe, "{\"name\":\"mine\",\"rules\":[{\"pattern\":\"*\",\"bits\":6,\"group\":32}]}");
    result = GUMBEL(NULL, "run", checkpoint, "--quantize", recipe, ANSWER);
    assert_says(&result, "has changed");
    assert_int_equal(count_files(cache), 2);
    result = answer(checkpoint);
    assert_quiet(&result);
}

/* Of a quantized checkpoint the recipe none, when it is given, makes another program than no recipe. */
static void a_given_none_is_not_the_default(void **state) {
    (void)state;
    const char *quantized = GUMBEL_TEST_DATA "/export/packed/mlx_gemma4_int4";
    for (int i = 0; i < 2; i++) {
        command_result result = GUMBEL(NULL, "inspect", quantized, "--graph");
        assert_has(result.output, "layers.1.keys: cache bf16[");
        assert_says(&result, i == 0 ? "quantized: activations int8, cache bfloat16 by default" : "");
        result = GUMBEL(NULL, "inspect", quantized, "--graph", "--quantize", "none");
        assert_has(result.output, "layers.1.keys: cache f32[");
        assert_says(&result, i == 0 ? "exporting " : "");
        assert_int_equal(count_files(cache), 2);
    }
}

static void two_at_once(void **state) {
    (void)state;
    const char *const words[] = {GUMBEL_COMMAND, "run", checkpoint, ANSWER, NULL};
    running_command started[2];
    command_result results[2];
    for (size_t i = 0; i < 2; i++) {
        start_command(&started[i], words);
        feed_command(&started[i], NULL);
    }
    for (size_t i = 0; i < 2; i++) {
        results[i] = finish_command(&started[i], 60);
        assert_status(results[i], 0);
    }
    assert_string_equal(results[0].output, results[1].output);
    assert_int_equal(count_files(cache), 1);
    free_result(&results[0]);
    free_result(&results[1]);
}

static void a_gguf_is_a_checkpoint_and_a_program_is_none(void **state) {
    (void)state;
    const char *bad = temporary_path("bad.gguf"), *program = temporary_path("exported.gumbel");
    write_text(bad, "GGUF");
    command_result result = answer(bad);
    assert_status(result, 1);
    assert_has(result.errors, "bad.gguf: the header is cut short");
    free_result(&result);
    assert_int_equal(count_files(cache), 0);
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
        cmocka_unit_test_setup(two_at_once, empty_cache),
        cmocka_unit_test_setup(a_gguf_is_a_checkpoint_and_a_program_is_none, empty_cache),
        cmocka_unit_test_setup(lies_in_the_home_directory_otherwise, empty_cache),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
