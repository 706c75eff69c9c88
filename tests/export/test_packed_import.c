/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints that others have converted or quantized. What mlx-lm wrote unquantized runs to the same bits as
 * the released form of the same weights; of quantized ones every weight has the bits that the writer's own
 * definition gives, and the logits agree with a float32 model of them: closely with products and caches in
 * float32, and about with what export chooses by itself. tests/oracle/make_mlx_goldens.py,
 * make_torch_goldens.py and make_gptq_goldens.py write tests/data/export/packed.
 */
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"
#include "tensor/convert.h"
#include "tensor/format.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

/* Of the largest absolute logit: with float32, and with 8-bit activations and bfloat16 caches. */
static const double TOLERANCE = 2e-4, ROUNDED_TOLERANCE = 0.05;
enum { MAX_PROMPT = 64, MAX_VOCABULARY = 256, MAX_COLUMNS = 1024 };

typedef struct logit_row {
    float values[MAX_VOCABULARY];
    size_t count;
} logit_row;

static void data_path(char path[512], const char *name, const char *file) {
    snprintf(path, 512, "%s/export/packed/%s%s", test_data_folder, name, file);
}

static json_t *read_golden(const char *name) {
    char path[512];
    json_error_t reason;
    data_path(path, name, "/golden.json");
    json_t *golden = json_load_file(path, 0, &reason);
    if (!golden)
        fail_msg("%s: %s", path, reason.text);
    return golden;
}

static const char *export_from(const char *source, const char *output, gumbel_export_options options) {
    gumbel_error error;
    const char *path = temporary_path(output);
    options.size = sizeof options;
    assert_ok(gumbel_export(source, path, &options, &error), &error);
    return path;
}

/* The logits of the golden prompt's last token. */
static logit_row run_prompt(const char *path, const json_t *golden) {
    gumbel_program *program = NULL;
    gumbel_engine *engine = NULL;
    gumbel_session *session = NULL;
    gumbel_error error;
    int32_t tokens[MAX_PROMPT];
    const json_t *prompt = json_object_get(golden, "prompt");
    size_t count = json_array_size(prompt);
    assert_true(count > 0 && count <= MAX_PROMPT);
    for (size_t i = 0; i < count; i++)
        tokens[i] = (int32_t)json_integer_value(json_array_get(prompt, i));
    gumbel_engine_options options = {.size = sizeof options, .threads = 1};
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(gumbel_session_append(session, tokens, count - 1, &error), &error);
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = &tokens[count - 1],
                              .token_count = 1,
                              .result = &result};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    logit_row row = {.count = json_array_size(json_object_get(golden, "logits"))};
    assert_true(row.count > 0 && row.count <= MAX_VOCABULARY);
    memcpy(row.values, result.logits, row.count * sizeof row.values[0]);
    gumbel_session_destroy(session);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    return row;
}

static void compare_logits(const char *name, const logit_row *row, const json_t *golden, double tolerance) {
    const json_t *expected = json_object_get(golden, "logits");
    double largest = 0, difference = 0;
    for (size_t i = 0; i < row->count; i++) {
        double value = json_number_value(json_array_get(expected, i));
        largest = fmax(largest, fabs(value));
        difference = fmax(difference, fabs(value - (double)row->values[i]));
    }
    print_message("%s: largest difference %.2g of the largest logit\n", name, difference / largest);
    assert_true(largest > 0);
    assert_true(difference <= tolerance * largest);
}

static void converted_runs_as_released(void **state) {
    const char *name = *state;
    char directory[512], config[512];
    json_t *golden = read_golden(name);
    data_path(directory, name, "");
    data_path(config, name, "/config.json");
    gumbel_export_options drawn = {.random_weights = true,
                                   .random_seed =
                                       (uint64_t)json_integer_value(json_object_get(golden, "weights_seed"))};
    logit_row released = run_prompt(export_from(config, "released.gumbel", drawn), golden);
    logit_row converted =
        run_prompt(export_from(directory, "converted.gumbel", (gumbel_export_options){0}), golden);
    compare_logits(name, &converted, golden, TOLERANCE);
    assert_memory_equal(released.values, converted.values, sizeof released.values);
    json_decref(golden);
}

/* As packed_checkpoints.py has it, of one of the parts that a constant's rows are stacked from, `run` rows of
 * each in turns. */
static uint64_t checksum_part(const gb_constant *constant, uint64_t part, uint64_t parts, uint64_t run) {
    float values[MAX_COLUMNS];
    gb_planes planes;
    uint64_t elements = 0, sum = 0, place = 0;
    const gb_shape *shape = &constant->type.shape;
    assert_true(gb_constant_planes(constant, &planes) && gb_shape_elements(shape, &elements));
    uint64_t columns = (uint64_t)shape->dims[shape->rank - 1];
    assert_true(columns <= MAX_COLUMNS);
    for (uint64_t row = 0; row < elements / columns; row++) {
        if (row / run % parts != part)
            continue;
        gb_format_dequantize(&constant->format, &planes, constant->data, row, 0, columns, values);
        for (uint64_t i = 0; i < columns; i++)
            sum += gb_bits_from_float(values[i]) * (2 * place++ + 1);
    }
    return sum;
}

/* Experts' constants have the names of transformers, and their goldens those of mlx-lm. */
static const struct {
    const char *constant, *parts[2];
} stacks[] = {
    {"experts.gate_up_proj", {"switch_mlp.gate_proj.weight", "switch_mlp.up_proj.weight"}},
    {"experts.down_proj", {"switch_mlp.down_proj.weight", NULL}},
};

/* The golden's name of a part of the constant; false where the constant has fewer parts. */
static bool golden_name(const char *constant, uint64_t part, char name[256]) {
    size_t length = strlen(constant);
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        size_t tail = strlen(stacks[i].constant);
        if (length < tail || strcmp(constant + length - tail, stacks[i].constant) != 0)
            continue;
        if (part > 1 || !stacks[i].parts[part])
            return false;
        snprintf(name, 256, "%.*s%s", (int)(length - tail), constant, stacks[i].parts[part]);
        return true;
    }
    snprintf(name, 256, "%s", constant);
    return part == 0;
}

/* How many matrices of the golden the constant has, each with the weights expected. */
static size_t compare_constant(const gb_constant *constant, const json_t *expected) {
    char name[256], text[GB_FORMAT_TEXT], computed[32];
    const gb_shape *shape = &constant->type.shape;
    uint64_t parts = 0, rows = (uint64_t)(shape->rank > 1 ? shape->dims[shape->rank - 2] : 1);
    while (golden_name(constant->name, parts, name))
        parts++;
    for (uint64_t part = 0; part < parts; part++) {
        golden_name(constant->name, part, name);
        const char *sum = json_string_value(json_object_get(expected, name));
        if (constant->type.dtype != GB_QUANTIZED) {
            assert_null(sum);
            continue;
        }
        snprintf(computed, sizeof computed, "%016" PRIx64,
                 checksum_part(constant, part, parts, rows / parts));
        if (!sum || strcmp(sum, computed) != 0)
            fail_msg("%s (%s) has other weights than expected", name,
                     gb_format_text(&constant->format, text));
    }
    return constant->type.dtype == GB_QUANTIZED ? parts : 0;
}

static void compare_weights(const char *path, const json_t *expected) {
    gb_program *program = NULL;
    gumbel_error error;
    size_t found = 0;
    assert_ok(gb_program_read(path, &program, &error), &error);
    for (uint32_t i = 0; i < program->constant_count; i++)
        found += compare_constant(&program->constants[i], expected);
    assert_int_equal(found, json_object_size(expected));
    gb_program_destroy(program);
}

static void keeps_every_weight(void **state) {
    const char *name = *state;
    char directory[512];
    json_t *golden = read_golden(name);
    data_path(directory, name, "");
    const char *path =
        export_from(directory, "quantized.gumbel",
                    (gumbel_export_options){.backend = "none", .activations = "none", .cache = "float32"});
    compare_weights(path, json_object_get(golden, "weights"));
    logit_row row = run_prompt(path, golden);
    compare_logits(name, &row, golden, TOLERANCE);
    row = run_prompt(export_from(directory, "rounded.gumbel", (gumbel_export_options){0}), golden);
    compare_logits(name, &row, golden, ROUNDED_TOLERANCE);
    json_decref(golden);
}

/* ---- What is chosen besides the weights ---------------------------------------------------------------- */

/* Whether all products with quantized weights have 8-bit inputs, or none has. */
static bool has_int8_activations(const gb_program *program) {
    size_t rounded = 0, quantized = 0;
    for (uint32_t n = 0; n < program->node_count; n++) {
        const gb_node *node = &program->nodes[n];
        if (node->op != GB_OP_LINEAR && node->op != GB_OP_EXPERT_LINEAR)
            continue;
        quantized += program->values[node->operands[1]].type.dtype == GB_QUANTIZED;
        rounded += gb_node_int(node, GB_ATTRIBUTE_ACTIVATION) == GB_ACTIVATION_INT8_PER_GROUP;
    }
    assert_true(rounded == 0 || rounded == quantized);
    return rounded > 0;
}

/* The same of the caches of attention, which are the ones of rank 3, and bfloat16. */
static bool has_small_caches(const gb_program *program) {
    size_t small = 0, caches = 0;
    for (uint32_t s = 0; s < program->state_count; s++) {
        const gb_state *state = &program->states[s];
        if (state->kind == GB_STATE_RECURRENT || state->type.shape.rank != 3)
            continue;
        caches++;
        small += state->type.dtype == GB_BF16;
    }
    assert_true(caches > 0 && (small == 0 || small == caches));
    return small > 0;
}

static void keep_notice(void *user, gumbel_log_level level, const char *line) {
    if (level == GUMBEL_LOG_INFO && strstr(line, "by default"))
        snprintf(user, 128, "%s", line);
}

static void expect_settings(const char *name, gumbel_export_options options, bool int8_activations,
                            bool small_caches, const char *notice) {
    char directory[512], said[128] = "";
    gb_program *program = NULL;
    gumbel_error error;
    data_path(directory, name, "");
    options.log = keep_notice;
    options.log_user = said;
    assert_ok(gb_program_read(export_from(directory, "chosen.gumbel", options), &program, &error), &error);
    assert_int_equal(has_int8_activations(program), int8_activations);
    assert_int_equal(has_small_caches(program), small_caches);
    assert_string_equal(said, notice);
    gb_program_destroy(program);
}

#define QUANTIZED "the checkpoint is quantized: "

static void is_fast_unless_asked_otherwise(void **state) {
    const char *name = *state;
    const gumbel_export_options silent = {0}, exact_products = {.activations = "none"},
                                exact_caches = {.cache = "float32"},
                                exact = {.activations = "none", .cache = "float32"};
    expect_settings(name, silent, true, true, QUANTIZED "activations int8, cache bfloat16 by default");
    expect_settings(name, exact_products, false, true, QUANTIZED "cache bfloat16 by default");
    expect_settings(name, exact_caches, true, false, QUANTIZED "activations int8 by default");
    expect_settings(name, exact, false, false, "");
}

static void a_given_recipe_stands(void **state) {
    const char *name = *state, *path = temporary_path("recipe.json");
    expect_settings(name, (gumbel_export_options){.quantize = "none"}, false, false, "");
    write_text(path, "{\"name\": \"mine\", \"activations\": \"int8\","
                     " \"rules\": [{\"pattern\": \"*\", \"keep\": true}]}");
    expect_settings(name, (gumbel_export_options){.quantize = path}, true, false, "");
}

static void is_exact_where_nothing_is_quantized(void **state) {
    (void)state;
    expect_settings("mlx_gemma4", (gumbel_export_options){0}, false, false, "");
    expect_settings("mlx_mxfp8", (gumbel_export_options){0}, false, false, "");
}

static void refuses_a_recipe(void **state) {
    (void)state;
    char directory[512];
    gumbel_error error;
    data_path(directory, "mlx_gemma4_int4", "");
    gumbel_export_options options = {.size = sizeof options, .quantize = "int4"};
    assert_fails(gumbel_export(directory, temporary_path("none.gumbel"), &options, &error),
                 GUMBEL_ERROR_ARGUMENT, &error, "embed_tokens.weight is quantized already, as int4 g64 bf16");
}

#define RELEASED(name)                                                                                       \
    { name, converted_runs_as_released, NULL, NULL, (void *)(uintptr_t)(name) }
#define KEEPS(name)                                                                                          \
    { name, keeps_every_weight, NULL, NULL, (void *)(uintptr_t)(name) }

#define CHOOSES(name)                                                                                        \
    { name " by default", is_fast_unless_asked_otherwise, NULL, NULL, (void *)(uintptr_t)(name) }
#define OBEYS(name)                                                                                          \
    { name " with a recipe", a_given_recipe_stands, NULL, NULL, (void *)(uintptr_t)(name) }

int main(void) {
    const struct CMUnitTest tests[] = {
        RELEASED("mlx_gemma4"),
        RELEASED("mlx_qwen_moe"),
        RELEASED("mlx_qwen_dense"),
        RELEASED("mlx_next"),
        KEEPS("mlx_gemma4_int4"),
        KEEPS("mlx_qwen_moe_int4"),
        KEEPS("mlx_qwen_moe_even"),
        KEEPS("mlx_qwen_dense_int8"),
        KEEPS("mlx_qwen2_int4"),
        KEEPS("mlx_next_int4"),
        KEEPS("mlx_mxfp4"),
        KEEPS("mlx_nvfp4"),
        KEEPS("torchao_gemma4"),
        KEEPS("torchao_gemma4_symmetric"),
        KEEPS("compressed_gemma4"),
        KEEPS("compressed_qwen_dense"),
        KEEPS("compressed_qwen_moe"),
        KEEPS("compressed_gemma4_wide"),
        KEEPS("gptq_qwen2"),
        KEEPS("gptq_gemma4"),
        KEEPS("gptq_qwen_moe"),
        KEEPS("awq_qwen2"),
        KEEPS("awq_qwen_moe"),
        cmocka_unit_test(refuses_a_recipe),
        CHOOSES("mlx_qwen_moe_int4"),
        CHOOSES("compressed_gemma4"),
        CHOOSES("torchao_gemma4"),
        OBEYS("mlx_qwen_moe_int4"),
        OBEYS("compressed_gemma4"),
        OBEYS("torchao_gemma4"),
        cmocka_unit_test(is_exact_where_nothing_is_quantized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
