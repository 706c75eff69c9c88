/* SPDX-License-Identifier: Apache-2.0
 *
 * Recipes: patterns, which rule decides, what the built-in ones say, and errors in a user's file.
 */
#include "export/quantize/recipe.h"
#include "support/assertions.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void patterns(void **unused) {
    (void)unused;
    assert_true(gb_match_pattern("*", ""));
    assert_true(gb_match_pattern("*.weight", "a.b.weight"));
    assert_true(gb_match_pattern("*a*b?", "xxaxxaxbc"));
    assert_true(gb_match_pattern("abc", "abc"));
    assert_false(gb_match_pattern("abc", "abcd"));
    assert_false(gb_match_pattern("*.weight", "a.weights"));
    assert_false(gb_match_pattern("?", ""));
    assert_false(gb_match_pattern("a*b", "acc"));
}

static gb_recipe *open_recipe(const char *name) {
    gb_recipe *recipe;
    gumbel_error error;
    assert_ok(gb_recipe_open(name, &recipe, &error), &error);
    return recipe;
}

/* What the recipe says of a tensor with rows of that many, in a model of 8 layers. */
static void assert_choice(gb_recipe *recipe, const char *name, uint64_t columns, const char *expected) {
    gb_quantize_choice choice;
    gumbel_error error;
    char text[GB_FORMAT_TEXT];
    assert_ok(gb_recipe_choose(recipe, name, columns, 8, &choice, &error), &error);
    assert_string_equal(gb_format_text(&choice.format, text), expected);
}

#define INT4 "int4 g32 progressive"
#define INT4_64 "int4 g64 progressive"
#define INT8_ROW "int8 row f16"
#define AFFINE4(group) "int4 g" group " f16+bias"

static void built_in_recipes(void **unused) {
    (void)unused;
    static const struct {
        const char *recipe, *embedding, *head, *value, *down, *first_down;
    } cases[] = {
        {"none", "dense", "dense", "dense", "dense", "dense"},
        {"int8", INT8_ROW, INT8_ROW, INT8_ROW, INT8_ROW, INT8_ROW},
        {"int4", INT8_ROW, INT4, INT4, INT4, INT4},
        {"int4-g64", INT8_ROW, INT4_64, INT4_64, INT4_64, INT4_64},
        {"sensitive", INT8_ROW, INT4, INT8_ROW, INT4, INT8_ROW},
        {"int8-affine", INT8_ROW, "int8 g64 f16", "int8 g64 f16", "int8 g64 f16", "int8 g64 f16"},
        {"int4-affine", INT8_ROW, AFFINE4("64"), AFFINE4("64"), AFFINE4("64"), AFFINE4("64")},
        {"int4-affine-g32", INT8_ROW, AFFINE4("32"), AFFINE4("32"), AFFINE4("32"), AFFINE4("32")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb_recipe *recipe = open_recipe(cases[i].recipe);
        assert_string_equal(gb_recipe_name(recipe), cases[i].recipe);
        assert_int_equal(gb_recipe_inputs(recipe),
                         i > 0 ? GB_RECIPE_INPUTS_INT8 : GB_RECIPE_INPUTS_AS_THEY_ARE);
        assert_int_equal(gb_recipe_cache(recipe)->full, i > 0 ? GB_BF16 : GB_F32);
        assert_choice(recipe, "model.embed_tokens.weight", 256, cases[i].embedding);
        assert_choice(recipe, "lm_head.weight", 256, cases[i].head);
        assert_choice(recipe, "model.layers.4.self_attn.v_proj.weight", 256, cases[i].value);
        assert_choice(recipe, "model.layers.0.self_attn.k_proj.weight", 256, cases[i].value);
        assert_choice(recipe, "model.layers.4.mlp.down_proj.weight", 256, cases[i].down);
        assert_choice(recipe, "model.layers.1.mlp.down_proj.weight", 256, cases[i].first_down);
        assert_choice(recipe, "model.layers.6.mlp.down_proj.weight", 256, cases[i].first_down);
        assert_choice(recipe, "mtp.layers.0.mlp.down_proj.weight", 256, cases[i].down);
        assert_choice(recipe, "assistant.model.layers.0.mlp.down_proj.weight", 256, cases[i].down);
        assert_choice(recipe, "model.layers.3.mlp.gate.weight", 256, "dense");
        assert_choice(recipe, "model.layers.3.router.proj.weight", 256, "dense");
        gumbel_error error;
        assert_ok(gb_recipe_check_used(recipe, &error), &error);
        gb_recipe_close(recipe);
    }
}

static void rows_that_no_group_divides(void **unused) {
    (void)unused;
    gb_recipe *recipe = open_recipe("int4-g64");
    gb_quantize_choice choice;
    gumbel_error error;
    assert_choice(recipe, "a.weight", 96, INT4);
    assert_fails(
        gb_recipe_choose(recipe, "b.weight", 80, 8, &choice, &error), GUMBEL_ERROR_ARGUMENT, &error,
        "recipe int4-g64: b.weight has rows of 80, which the group of 64 (or its fallback) does not divide");
    gb_recipe_close(recipe);
}

/* What products of such rows do with their input. */
static void assert_input(gb_recipe *recipe, const char *name, uint64_t columns, gb_activation activation,
                         uint32_t rotation) {
    gb_quantize_choice choice;
    gumbel_error error;
    assert_ok(gb_recipe_choose(recipe, name, columns, 8, &choice, &error), &error);
    assert_int_equal(choice.input.activation, activation);
    assert_int_equal(choice.input.rotation, rotation);
}

static const char *write_recipe(const char *text) {
    const char *path = temporary_path("recipe.json");
    write_text(path, text);
    return path;
}

static void a_users_file(void **unused) {
    (void)unused;
    gb_recipe *recipe = open_recipe(write_recipe("{\"name\": \"mine\", \"rules\": ["
                                                 "{\"pattern\": \"*.k_proj.weight\", \"keep\": true},"
                                                 "{\"pattern\": \"*proj*\", \"bits\": 6, \"group\": 128, "
                                                 "\"scale\": \"bfloat16\", \"method\": \"hqq\"},"
                                                 "{\"pattern\": \"nothing\", \"bits\": 5}]}"));
    gumbel_error error;
    assert_choice(recipe, "a.k_proj.weight", 256, "dense");
    assert_choice(recipe, "a.q_proj.weight", 256, "int6 g128 bf16+bias");
    assert_choice(recipe, "embed_tokens.weight", 256, "dense");
    assert_fails(gb_recipe_check_used(recipe, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "recipe mine: the pattern \"nothing\" matches no weight");
    assert_ok(gb_recipe_override(recipe, "int8", "bfloat16", &error), &error);
    assert_int_equal(gb_recipe_inputs(recipe), GB_RECIPE_INPUTS_INT8);
    assert_int_equal(gb_recipe_cache(recipe)->full, GB_BF16);
    assert_ok(gb_recipe_override(recipe, "bfloat16", NULL, &error), &error);
    assert_int_equal(gb_recipe_inputs(recipe), GB_RECIPE_INPUTS_BFLOAT16);
    assert_fails(gb_recipe_override(recipe, "int7", NULL, &error), GUMBEL_ERROR_ARGUMENT, &error, "int7");
    assert_fails(gb_recipe_override(recipe, NULL, "f8", &error), GUMBEL_ERROR_ARGUMENT, &error, "f8");
    gb_recipe_close(recipe);
}

/* The largest block up to the rule's that divides the rows; none without 8-bit inputs. */
static void rotations(void **unused) {
    (void)unused;
    static const struct {
        uint64_t columns;
        uint32_t rotation;
    } cases[] = {{5376, 128}, {21504, 128}, {192, 64}, {96, 32}, {2080, 32}};
    gumbel_error error;
    gb_recipe *recipe = open_recipe("int4"), *rows = open_recipe("int8"),
              *affine = open_recipe("int4-affine");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t columns = cases[i].columns;
        assert_input(recipe, "a.weight", columns, GB_ACTIVATION_INT8_PER_TOKEN, cases[i].rotation);
        assert_input(rows, "a.weight", columns, GB_ACTIVATION_INT8_PER_TOKEN, cases[i].rotation);
        assert_input(recipe, "a.v_proj.weight", columns, GB_ACTIVATION_INT8_PER_TOKEN, cases[i].rotation);
        assert_input(affine, "a.weight", columns, GB_ACTIVATION_INT8_PER_GROUP, 0);
        assert_input(recipe, "x.mlp.gate.weight", columns, GB_ACTIVATION_NONE, 0);
    }
    assert_input(rows, "a.weight", 6, GB_ACTIVATION_INT8_PER_TOKEN, 2);
    assert_input(rows, "a.weight", 7, GB_ACTIVATION_INT8_PER_TOKEN, 0);
    assert_input(recipe, "embed_tokens.weight", 256, GB_ACTIVATION_INT8_PER_GROUP, 0);
    assert_ok(gb_recipe_override(recipe, "none", NULL, &error), &error);
    assert_input(recipe, "a.weight", 256, GB_ACTIVATION_NONE, 0);
    gb_recipe_close(recipe);
    gb_recipe_close(rows);
    gb_recipe_close(affine);
    recipe = open_recipe(
        write_recipe("{\"name\": \"mine\", \"activations\": \"int8\", \"rules\": ["
                     "{\"pattern\": \"a*\", \"bits\": 5, \"scale\": \"integer\", \"rotation\": 256},"
                     "{\"pattern\": \"*\", \"bits\": 6, \"scale\": \"integer\", \"rotation\": 0}]}"));
    assert_choice(recipe, "a.weight", 512, "int5 g64 progressive");
    assert_input(recipe, "a.weight", 512, GB_ACTIVATION_INT8_PER_TOKEN, 256);
    assert_choice(recipe, "b.weight", 512, "int6 g64 progressive");
    assert_input(recipe, "b.weight", 512, GB_ACTIVATION_INT8_PER_TOKEN, 0);
    gb_recipe_close(recipe);
}

static void bad_files(void **unused) {
    (void)unused;
    static const char *const cases[][2] = {
        {"{\"rules\": []}", "name: expected a short text, found nothing"},
        {"{\"name\": \"a\"}", "rules: expected a list"},
        {"{\"name\": \"a\", \"rules\": {}}", "rules: expected a list"},
        {"{\"name\": \"a\", \"rule\": []}", "the key \"rule\" is not known"},
        {"{\"name\": \"a\", \"rules\": [1]}", "rules[0]: expected an object"},
        {"{\"name\": \"a\", \"rules\": [{}]}", "rules[0]: pattern: expected a short text"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\"}]}",
         "rules[0]: bits: expected 4, 5, 6 or 8, found nothing"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 7}]}", "int7 g64 f16+bias by min-max"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 260}]}",
         "bits: expected 4, 5, 6 or 8"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": -4}]}", "bits: expected an integer"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"group\": \"row\"}]}", "int4 row"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"group\": 0}]}",
         "group: expected 32"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"fallback_group\": 48}]}",
         "int4 g48 f16+bias by min-max is no weight format"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"fallback_group\": 128}]}",
         "rules[0]: fallback_group: expected a smaller group than the rule's, found 128"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"keep\": true, \"bits\": 4}]}",
         "rules[0]: bits: expected nothing beside \"keep\", found 4"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"method\": \"best\"}]}",
         "rules[0]: method: expected \"min-max\" or \"hqq\", found \"best\""},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"bias\": false, \"method\": "
         "\"hqq\"}]}",
         "hqq needs groups and a bias"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"bias\": 1}]}",
         "bias: expected true or"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"scale\": \"int\"}]}",
         "rules[0]: scale: expected \"float16\", \"bfloat16\" or \"integer\", found \"int\""},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 8, \"scale\": \"integer\"}]}",
         "int8 g64 progressive by search is no weight format"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"scale\": \"integer\", \"bias\": "
         "true}]}",
         "integer scales have groups and no bias"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"scale\": \"integer\", "
         "\"method\": \"hqq\"}]}",
         "method: expected nothing beside \"scale\": \"integer\", found \"hqq\""},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"rotation\": 64}]}",
         "rotation: expected \"scale\": \"integer\", or 8 bits a row without a bias, found 64"},
        {"{\"name\": \"a\", \"rules\": [{\"pattern\": \"*\", \"bits\": 4, \"scale\": \"integer\", "
         "\"rotation\": 48}]}",
         "rotation: expected 0 or a power of two from 2 to 256, found 48"},
        {"{\"name\": \"a\", \"cache\": \"int8\", \"rules\": []}",
         "cache: expected \"float32\", \"bfloat16\", \"q8\", \"q4\" or \"q4-all\""},
        {"{\"name\": ", "line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb_recipe *recipe;
        gumbel_error error;
        assert_fails(gb_recipe_open(write_recipe(cases[i][0]), &recipe, &error), GUMBEL_ERROR_FORMAT, &error,
                     cases[i][1]);
        assert_null(recipe);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(built_in_recipes),
        cmocka_unit_test(rows_that_no_group_divides),
        cmocka_unit_test(a_users_file),
        cmocka_unit_test(rotations),
        cmocka_unit_test(bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
