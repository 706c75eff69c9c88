/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed reading of JSON configurations, and generation_config.json.
 */
#include "export/checkpoint/config.h"
#include "export/checkpoint/generation_config.h"
#include "support/assertions.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static gb_config_file *open_text(const char *text) {
    gb_config_file *file = NULL;
    gumbel_error error;
    const char *path = temporary_path("config.json");
    write_text(path, text);
    assert_ok(gb_config_open(path, &file, &error), &error);
    return file;
}

static void reads_values_and_fallbacks(void **state) {
    (void)state;
    gb_config_file *file = open_text("{\"a\":{\"i\":7,\"f\":0.5,\"b\":true,\"s\":\"x\",\"n\":null,"
                                     "\"list\":[\"p\",\"q\"],\"ids\":[1,106],\"id\":3}}");
    gb_config root = gb_config_root(file), a = gb_config_child(&root, "a"), none = gb_config_child(&a, "no");
    assert_int_equal(gb_config_integer(&a, "i", 1, 0, 10), 7);
    assert_int_equal(gb_config_integer(&a, "absent", 1, 0, 10), 1);
    assert_int_equal(gb_config_integer(&none, "i", 2, 0, 10), 2);
    assert_true(gb_config_number(&a, "f", 1, 0, 1) == 0.5);
    assert_true(gb_config_number(&a, "i", 1, 0, 10) == 7);
    assert_true(gb_config_bool(&a, "b", false));
    assert_string_equal(gb_config_string(&a, "s", ""), "x");
    assert_string_equal(gb_config_string(&a, "n", "fallback"), "fallback");
    assert_false(gb_config_has(&a, "n"));
    assert_int_equal(gb_config_list_size(&a, "list"), 2);
    assert_string_equal(gb_config_list_string(&a, "list", 1), "q");
    int64_t ids[2];
    assert_int_equal(gb_config_integers(&a, "ids", 0, 200, ids, 2), 2);
    assert_int_equal(ids[1], 106);
    assert_int_equal(gb_config_integers(&a, "id", 0, 200, ids, 2), 1);
    assert_int_equal(ids[0], 3);
    assert_int_equal(gb_config_status(file, NULL), GUMBEL_OK);
    gb_config_close(file);
}

/* Every getter on a value that it cannot take. The message names file, key, expectation and value. */
static void wrong(const char *text, void (*get)(const gb_config *config), const char *part) {
    gb_config_file *file = open_text(text);
    gb_config root = gb_config_root(file), a = gb_config_child(&root, "a");
    gumbel_error error = {0};
    get(&a);
    assert_fails(gb_config_status(file, &error), GUMBEL_ERROR_FORMAT, &error, part);
    assert_non_null(strstr(error.message, "config.json: "));
    gb_config_close(file);
}

static void get_integer(const gb_config *config) {
    gb_config_integer(config, "k", 1, 1, 10);
}
static void get_number(const gb_config *config) {
    gb_config_number(config, "k", 1, 0, 10);
}
static void get_bool(const gb_config *config) {
    gb_config_bool(config, "k", true);
}
static void get_string(const gb_config *config) {
    gb_config_string(config, "k", "");
}
static void get_list(const gb_config *config) {
    if (gb_config_list_size(config, "k") > 0)
        gb_config_list_string(config, "k", 0);
}
static void get_integers(const gb_config *config) {
    int64_t ids[2];
    gb_config_integers(config, "k", 0, 10, ids, 2);
}
static void get_child(const gb_config *config) {
    gb_config_child(config, "k");
}

static void names_wrong_values(void **state) {
    (void)state;
    wrong("{\"a\":{\"k\":\"abc\"}}", get_integer, "a.k: expected an integer from 1 to 10, found \"abc\"");
    wrong("{\"a\":{\"k\":0}}", get_integer, "found 0");
    wrong("{\"a\":{\"k\":11}}", get_integer, "found 11");
    wrong("{\"a\":{\"k\":2.0}}", get_integer, "found 2.0");
    wrong("{\"a\":{\"k\":null}}", get_integer, "found null");
    wrong("{\"a\":{\"k\":-0.1}}", get_number, "expected a number from 0 to 10");
    wrong("{\"a\":{\"k\":true}}", get_number, "found true");
    wrong("{\"a\":{\"k\":1}}", get_bool, "expected true or false, found 1");
    wrong("{\"a\":{\"k\":[]}}", get_string, "expected a string, found []");
    wrong("{\"a\":{\"k\":{}}}", get_list, "expected a list, found {}");
    wrong("{\"a\":{\"k\":[1]}}", get_list, "expected a list of strings, found 1");
    wrong("{\"a\":{\"k\":[1,2,3]}}", get_integers, "a list of 3, expected at most 2");
    wrong("{\"a\":{\"k\":[1,\"2\"]}}", get_integers, "expected integers from 0 to 10, found \"2\"");
    wrong("{\"a\":{\"k\":[]}}", get_child, "expected an object, found []");
    wrong("{\"a\":[]}", get_integer, "a: expected an object, found []");
}

static void keeps_the_first_error(void **state) {
    (void)state;
    gb_config_file *file = open_text("{\"first\":\"a\",\"second\":\"b\"}");
    gb_config root = gb_config_root(file);
    gumbel_error error;
    assert_int_equal(gb_config_integer(&root, "first", 5, 0, 9), 5);
    gb_config_integer(&root, "second", 5, 0, 9);
    assert_fails(gb_config_status(file, &error), GUMBEL_ERROR_FORMAT, &error, "first");
    gb_config_close(file);
}

static void refuses_what_is_no_json_object(void **state) {
    (void)state;
    static const char *const texts[] = {
        "", "{", "[]", "3", "{\"a\":1,}", "{\"a\":1}x", "{\"a\":1,\"a\":2}", "{\"a\":\"\xff\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        gb_config_file *file = NULL;
        gumbel_error error;
        write_text(temporary_path("config.json"), texts[i]);
        assert_fails(gb_config_open(temporary_path("config.json"), &file, &error), GUMBEL_ERROR_FORMAT,
                     &error, "config.json: ");
        assert_null(file);
    }
}

static gumbel_status read_generation(const char *generation_text, const char *config_text,
                                     gb_generation_config *generation, gumbel_error *error) {
    gb_config_file *file = open_text(config_text);
    gb_config root = gb_config_root(file);
    if (generation_text)
        write_text(temporary_path("generation_config.json"), generation_text);
    gumbel_status status = gb_generation_config_read(temporary_directory(), &root, 200, generation, error);
    gb_config_close(file);
    empty_temporary_directory();
    return status;
}

static void reads_generation_config(void **state) {
    (void)state;
    gb_generation_config generation;
    gumbel_error error;
    const char *config = "{\"eos_token_id\":9,\"text_config\":{\"eos_token_id\":8,\"bos_token_id\":2}}";
    assert_ok(read_generation("{\"eos_token_id\":[1,106,1],\"top_k\":64,\"top_p\":0.95,\"do_sample\":true}",
                              config, &generation, &error),
              &error);
    assert_int_equal(generation.stop_token_count, 2);
    assert_int_equal(generation.stop_tokens[1], 106);
    assert_int_equal(generation.bos_token, 2);
    assert_false(generation.recommended.has_temperature);
    assert_true(generation.recommended.has_top_k && generation.recommended.top_k == 64);
    assert_true(generation.recommended.has_top_p && generation.recommended.top_p == 0.95);

    assert_ok(read_generation(NULL, config, &generation, &error), &error);
    assert_int_equal(generation.stop_token_count, 1);
    assert_int_equal(generation.stop_tokens[0], 9);
    assert_false(generation.recommended.has_top_k || generation.recommended.has_top_p ||
                 generation.recommended.has_temperature);

    assert_ok(read_generation("{\"do_sample\":false,\"temperature\":0.7}", "{}", &generation, &error),
              &error);
    assert_int_equal(generation.stop_token_count, 0);
    assert_int_equal(generation.bos_token, -1);
    assert_true(generation.recommended.has_temperature && generation.recommended.temperature == 0);
}

static void refuses_bad_generation_configs(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\"eos_token_id\":200}", "eos_token_id"},
        {"{\"eos_token_id\":-1}", "eos_token_id"},
        {"{\"eos_token_id\":\"1\"}", "eos_token_id"},
        {"{\"top_p\":0}", "top_p"},
        {"{\"top_p\":1.5}", "top_p"},
        {"{\"temperature\":-1}", "temperature"},
        {"{\"temperature\":1e-5}", "temperature"},
        {"{\"top_k\":1.5}", "top_k"},
        {"{\"do_sample\":1}", "do_sample"},
        {"", "line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gb_generation_config generation;
        gumbel_error error;
        assert_fails(read_generation(cases[i][0], "{}", &generation, &error), GUMBEL_ERROR_FORMAT, &error,
                     cases[i][1]);
        assert_non_null(strstr(error.message, "generation_config.json"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_values_and_fallbacks), cmocka_unit_test(names_wrong_values),
        cmocka_unit_test(keeps_the_first_error),      cmocka_unit_test(refuses_what_is_no_json_object),
        cmocka_unit_test(reads_generation_config),    cmocka_unit_test(refuses_bad_generation_configs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
