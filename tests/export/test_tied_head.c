/* SPDX-License-Identifier: Apache-2.0
 *
 * Heads that are tied to the embedding: one constant for both, stored as the recipe says of the head.
 */
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"
#include "tensor/convert.h"
#include "tensor/hadamard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 64, COLUMNS = 256 };

#define CONFIG(is_tied)                                                                                      \
    "{\"model_type\":\"llama\",\"tie_word_embeddings\":" is_tied                                             \
    ",\"hidden_size\":96,\"intermediate_size\":128,\"num_attention_heads\":3,\"num_key_value_heads\":1,"     \
    "\"vocab_size\":64,\"max_position_embeddings\":100,\"num_hidden_layers\":1}"

static gumbel_status export_to(const char *config, const char *recipe, const char *activations,
                               const char **path, gumbel_error *error) {
    const gumbel_export_options options = {.size = sizeof options,
                                           .random_weights = true,
                                           .quantize = recipe,
                                           .activations = activations,
                                           .backend = "none"};
    write_text(temporary_path("config.json"), config);
    *path = temporary_path("program.gumbel");
    return gumbel_export(temporary_path("config.json"), *path, &options, error);
}

static gb_program *program_of(const char *config, const char *recipe, const char *activations) {
    gb_program *program;
    gumbel_error error;
    const char *path;
    assert_ok(export_to(config, recipe, activations, &path, &error), &error);
    assert_ok(gb_program_read(path, &program, &error), &error);
    return program;
}

static const gb_constant *constant_of(const gb_program *program, gb_ref value) {
    assert_int_equal(program->values[value].kind, GB_VALUE_CONSTANT);
    return &program->constants[program->values[value].index];
}

static const gb_constant *find_constant(const gb_program *program, const char *name) {
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (strcmp(program->constants[i].name, name) == 0)
            return &program->constants[i];
    return NULL;
}

/* The first node of that op, or the last. */
static const gb_node *node_of(const gb_program *program, gb_op op, bool is_last) {
    const gb_node *found = NULL;
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == op && (!found || is_last))
            found = &program->nodes[i];
    assert_non_null(found);
    return found;
}

static void assert_stored(const gb_constant *constant, const char *expected) {
    char text[GB_FORMAT_TEXT];
    if (constant->type.dtype == GB_QUANTIZED)
        assert_string_equal(gb_format_text(&constant->format, text), expected);
    else
        assert_string_equal(gb_dtype_name(constant->type.dtype), expected);
}

static void assert_shared(const char *recipe, const char *activations, const char *stored, int64_t rotation) {
    gb_program *program = program_of(CONFIG("true"), recipe, activations);
    const gb_node *embedding = node_of(program, GB_OP_EMBEDDING, false);
    const gb_node *head = node_of(program, GB_OP_LINEAR, true);
    assert_int_equal(embedding->operands[0], head->operands[1]);
    const gb_constant *table = constant_of(program, embedding->operands[0]);
    assert_string_equal(table->name, "model.embed_tokens.weight");
    assert_null(find_constant(program, "lm_head.weight"));
    assert_stored(table, stored);
    assert_int_equal(gb_node_int(embedding, GB_ATTRIBUTE_ROTATION), rotation);
    assert_int_equal(gb_node_int(head, GB_ATTRIBUTE_ROTATION), rotation);
    gb_program_destroy(program);
}

static void one_constant_for_both(void **unused) {
    (void)unused;
    assert_shared("none", NULL, "bf16", 0);
    assert_shared("int8", NULL, "int8 row f16", 32);
    assert_shared("int4", NULL, "int4 g32 progressive", 32);
    assert_shared("sensitive", NULL, "int4 g32 progressive", 32);
    assert_shared("int4", "none", "int4 g32 progressive", 0);
    assert_shared("int4-affine-g32", NULL, "int4 g32 f16+bias", 0);
}

static const char *write_recipe(const char *rules) {
    char text[1024];
    snprintf(text, sizeof text, "{\"name\": \"mine\", \"activations\": \"int8\", \"rules\": [%s]}", rules);
    const char *path = temporary_path("recipe.json");
    write_text(path, text);
    return path;
}

/* The head's rule decides, and the embedding's matches nothing. */
static void rules_of_a_users_file(void **unused) {
    (void)unused;
    assert_shared(write_recipe("{\"pattern\": \"lm_head.weight\", \"bits\": 8, \"group\": \"row\","
                               " \"bias\": false, \"rotation\": 16},"
                               "{\"pattern\": \"*\", \"bits\": 4, \"scale\": \"integer\", \"group\": 32}"),
                  NULL, "int8 row f16", 16);
    assert_shared(write_recipe("{\"pattern\": \"lm_head.weight\", \"keep\": true},"
                               "{\"pattern\": \"*\", \"bits\": 4, \"scale\": \"integer\", \"group\": 32}"),
                  NULL, "bf16", 0);
    gumbel_error error;
    const char *path;
    assert_fails(export_to(CONFIG("true"),
                           write_recipe("{\"pattern\": \"*embed_tokens.weight\", \"keep\": true},"
                                        "{\"pattern\": \"*\", \"bits\": 8, \"group\": 32}"),
                           NULL, &path, &error),
                 GUMBEL_ERROR_ARGUMENT, &error,
                 "the pattern \"*embed_tokens.weight\" matches no weight that an earlier rule leaves");
}

/* The table of a head that is not tied has its own rule, and is not rotated. */
static void untied_heads_stay_apart(void **unused) {
    (void)unused;
    gb_program *program = program_of(CONFIG("false"), "int4", NULL);
    const gb_node *embedding = node_of(program, GB_OP_EMBEDDING, false);
    const gb_node *head = node_of(program, GB_OP_LINEAR, true);
    assert_stored(constant_of(program, embedding->operands[0]), "int8 row f16");
    assert_string_equal(constant_of(program, head->operands[1])->name, "lm_head.weight");
    assert_stored(constant_of(program, head->operands[1]), "int4 g32 progressive");
    assert_int_equal(gb_node_int(embedding, GB_ATTRIBUTE_ROTATION), 0);
    assert_int_equal(gb_node_int(head, GB_ATTRIBUTE_ROTATION), 32);
    gb_program_destroy(program);
}

/* A bundled model's table, whose rows are turned back where the embedding does so. */
static gb_program *model_with(const char *recipe) {
    char checkpoint[512];
    gb_program *program;
    gumbel_error error;
    const gumbel_export_options options = {.size = sizeof options, .quantize = recipe, .backend = "none"};
    snprintf(checkpoint, sizeof checkpoint, "%s/gemma4-tiny", test_models_folder);
    const char *path = temporary_path("model.gumbel");
    assert_ok(gumbel_export(checkpoint, path, &options, &error), &error);
    assert_ok(gb_program_read(path, &program, &error), &error);
    return program;
}

static void read_row(const gb_program *program, size_t row, float values[COLUMNS]) {
    const gb_node *embedding = node_of(program, GB_OP_EMBEDDING, false);
    const gb_constant *table = constant_of(program, embedding->operands[0]);
    const size_t rotation = (size_t)gb_node_int(embedding, GB_ATTRIBUTE_ROTATION);
    gb_planes planes;
    assert_int_equal(table->type.shape.dims[1], COLUMNS);
    assert_int_equal(rotation, 128);
    assert_true(gb_constant_planes(table, &planes));
    gb_format_dequantize(&table->format, &planes, table->data, row, 0, COLUMNS, values);
    for (size_t at = 0; at < COLUMNS; at += rotation) {
        gb_hadamard(values + at, rotation);
        for (size_t i = 0; i < rotation; i++)
            values[at + i] *= gb_hadamard_scale(rotation);
    }
}

/* The mean squared difference from the checkpoint's rows, in parts of their own mean square. */
static double error_of_rows(const char *recipe) {
    gb_program *dense = model_with("none"), *program = model_with(recipe);
    const gb_constant *table = constant_of(dense, node_of(dense, GB_OP_EMBEDDING, false)->operands[0]);
    assert_int_equal(table->type.dtype, GB_BF16);
    double error = 0, size = 0;
    for (size_t row = 0; row < ROWS; row++) {
        float values[COLUMNS];
        read_row(program, row, values);
        for (size_t k = 0; k < COLUMNS; k++) {
            const double expected =
                (double)gb_float_from_bf16(((const uint16_t *)table->data)[row * COLUMNS + k]);
            error += ((double)values[k] - expected) * ((double)values[k] - expected);
            size += expected * expected;
        }
    }
    gb_program_destroy(program);
    gb_program_destroy(dense);
    return error / size;
}

static void rows_are_those_of_the_checkpoint(void **unused) {
    (void)unused;
    assert_true(error_of_rows("int8") < 2e-4);
    assert_true(error_of_rows("int4") < 2e-2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_constant_for_both),
        cmocka_unit_test(rules_of_a_users_file),
        cmocka_unit_test(untied_heads_stay_apart),
        cmocka_unit_test(rows_are_those_of_the_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
