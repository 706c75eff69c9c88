/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights that would be read as other numbers than the checkpoint's, or without their bias, and numbers that
 * are none: an export ends in an error that names the tensor, and leaves no file.
 */
#include "export/checkpoint/ggml_types.h"
#include "support/assertions.h"
#include "support/checkpoints/gemma4_gguf.h"
#include "support/checkpoints/gguf_blocks.h"
#include "support/checkpoints/safetensors_writer.h"
#include "support/temporary.h"
#include "tensor/convert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_TENSORS = 128 };
#define ATTENTION "model.layers.0.self_attn."

static int start_empty(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

static gumbel_status export_from(const char *name, const char *recipe, gumbel_error *error) {
    gumbel_export_options options = {.size = sizeof options, .quantize = recipe};
    const char *path = temporary_path("output/program.gumbel");
    return gumbel_export(temporary_path(name), path, &options, error);
}

static void refuses(const char *name, const char *recipe, gumbel_status status, const char *part) {
    gumbel_error error;
    assert_fails(export_from(name, recipe, &error), status, &error, part);
    assert_non_null(strstr(error.message, name));
    temporary_path("output/program.gumbel");
    assert_int_equal(count_files(temporary_path("output")), 0);
}

/* A whole model of that dtype and one tensor more, which takes the place of one of its name. */
static void write_checkpoint(const char *dtype, const test_tensor *more) {
    static const char *const names[] = {[GB_F32] = "F32", [GB_F16] = "F16", [GB_BF16] = "BF16"};
    gb_program *random = random_gemma4(&(gemma4_variant){dtype, true, true, NULL});
    test_tensor tensors[MAX_TENSORS] = {*more};
    size_t count = 1;
    for (uint32_t i = 0; i < random->constant_count; i++) {
        const gb_constant *constant = &random->constants[i];
        if (strncmp(constant->name, "model.", 6) != 0 || strcmp(constant->name, more->name) == 0)
            continue;
        assert_true(count < MAX_TENSORS);
        tensors[count] = (test_tensor){.name = constant->name,
                                       .dtype = names[constant->type.dtype],
                                       .rank = constant->type.shape.rank,
                                       .data = constant->data,
                                       .size = constant->size};
        memcpy(tensors[count++].dims, constant->type.shape.dims, sizeof tensors->dims);
    }
    write_safetensors(temporary_path("checkpoint/model.safetensors"), tensors, count);
    gb_program_destroy(random);
}

/* ---- Scales -------------------------------------------------------------------------------------------- */

static void write_scale(const char *name) {
    static const float ONE = 1;
    write_checkpoint(
        "float32",
        &(test_tensor){.name = name, .dtype = "F32", .rank = 1, .dims = {1}, .data = &ONE, .size = 4});
}

static void refuses_scales_of_used_weights(void **state) {
    (void)state;
    static const char *const names[] = {ATTENTION "q_proj.weight_scale",
                                        ATTENTION "q_proj.input_scale",
                                        ATTENTION "q_proj.scales",
                                        ATTENTION "q_proj.weight_scale_2",
                                        ATTENTION "q_proj.weight_scale_inv",
                                        ATTENTION "q_proj.weight_zero_point",
                                        ATTENTION "q_proj.weight.absmax",
                                        ATTENTION "q_proj.SCB",
                                        ATTENTION "q_proj._weight_act_pre_scale",
                                        ATTENTION "k_scale",
                                        ATTENTION "v_scale",
                                        ATTENTION "q_proj.weight_g_idx"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char part[160];
        write_scale(names[i]);
        snprintf(part, sizeof part, "checkpoint: tensor %s is not used: " ATTENTION, names[i]);
        refuses("checkpoint", NULL, GUMBEL_ERROR_UNSUPPORTED, part);
    }
}

/* Towers for images and layers that are left out have scales of their own. */
static void leaves_scales_of_unused_weights(void **state) {
    (void)state;
    static const char *const names[] = {"model.vision_tower.layers.0.q_proj.weight_scale",
                                        "model.layers.7.self_attn.q_proj.weight_scale", "mtp.fc.weight_scale",
                                        "model.layers.0.self_attn.q_projection.scales"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        gumbel_error error;
        write_scale(names[i]);
        assert_ok(export_from("checkpoint", NULL, &error), &error);
    }
}

static void refuses_scales_in_gguf(void **state) {
    (void)state;
    static const char *const names[] = {"blk.1.attn_q.scale", "blk.1.attn_q.input_scale"};
    static const float ONE = 1;
    for (size_t i = 0; i < 2; i++) {
        char part[160];
        gguf_writer w = {0};
        gguf_add_tensor(&w, names[i], GB_GGML_F32, 1, (const int64_t[]){1}, &ONE, 4);
        finish_gemma4(&w, NULL, NULL, true);
        snprintf(part, sizeof part, "model.gguf: tensor %s is not used: blk.1.attn_q.weight would be read",
                 names[i]);
        refuses("model.gguf", NULL, GUMBEL_ERROR_UNSUPPORTED, part);
    }
}

/* ---- Biases -------------------------------------------------------------------------------------------- */

/* The message names both tensors as the file does. */
static void refuses_bias(const char *name, const char *bias, const char *weight) {
    char part[300];
    snprintf(part, sizeof part, "tensor %s is not used: the results of %s would be computed without it", bias,
             weight);
    refuses(name, NULL, GUMBEL_ERROR_UNSUPPORTED, part);
}

static void refuses_biases_of_used_weights(void **state) {
    (void)state;
    static const char *const modules[] = {ATTENTION "q_proj", ATTENTION "o_proj",
                                          "model.layers.1.mlp.down_proj", "model.norm"};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        char bias[80], weight[80];
        snprintf(bias, sizeof bias, "%s.bias", modules[i]);
        snprintf(weight, sizeof weight, "%s.weight", modules[i]);
        write_scale(bias);
        refuses_bias("checkpoint", bias, weight);
    }
    write_scale("lm_head.bias");
    refuses_bias("checkpoint", "lm_head.bias", "model.embed_tokens.weight");
    write_scale("language_model.lm_head.bias"); /* as under a wrapper */
    refuses_bias("checkpoint", "language_model.lm_head.bias", "model.embed_tokens.weight");
}

static void leaves_biases_of_zeros(void **state) {
    (void)state;
    static const float ZEROS[2];
    gumbel_error error;
    write_checkpoint("float32", &(test_tensor){.name = ATTENTION "q_proj.bias",
                                               .dtype = "F32",
                                               .rank = 1,
                                               .dims = {2},
                                               .data = ZEROS,
                                               .size = sizeof ZEROS});
    assert_ok(export_from("checkpoint", NULL, &error), &error);
}

static void refuses_biases_in_gguf(void **state) {
    (void)state;
    static const char *const names[][2] = {{"blk.1.attn_q.bias", "blk.1.attn_q.weight"},
                                           {"blk.0.attn_output.bias", "blk.0.attn_output.weight"},
                                           {"blk.0.ffn_down.bias", "blk.0.ffn_down.weight"},
                                           {"output.bias", "token_embd.weight"}};
    static const float ONE = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        gguf_writer w = {0};
        gguf_add_tensor(&w, names[i][0], GB_GGML_F32, 1, (const int64_t[]){1}, &ONE, 4);
        finish_gemma4(&w, NULL, NULL, true);
        refuses_bias("model.gguf", names[i][0], names[i][1]);
    }
}

/* As are scales, with towers, layers that are left out and those that guess tokens ahead. */
static void leaves_biases_of_unused_weights(void **state) {
    (void)state;
    static const char *const names[] = {"model.vision_tower.layers.0.q_proj.bias",
                                        "model.layers.7.self_attn.q_proj.bias", "mtp.fc.bias",
                                        "model.layers.0.self_attn.q.bias", "bias"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        gumbel_error error;
        write_scale(names[i]);
        assert_ok(export_from("checkpoint", NULL, &error), &error);
    }
}

static void leaves_biases_past_the_layers_that_are_kept(void **state) {
    (void)state;
    gumbel_error error;
    gumbel_export_options options = {.size = sizeof options, .layers = 1};
    write_scale("model.layers.1.self_attn.q_proj.bias");
    assert_ok(gumbel_export(temporary_path("checkpoint"), temporary_path("output/program.gumbel"), &options,
                            &error),
              &error);
}

/* ---- Numbers ------------------------------------------------------------------------------------------- */

static void store(uint8_t *to, const char *dtype, float value) {
    const uint32_t bits = gb_bits_from_float(value);
    const uint16_t half =
        strcmp(dtype, "bfloat16") == 0 ? gb_bf16_from_float(value) : gb_f16_from_float(value);
    if (strcmp(dtype, "float32") == 0)
        memcpy(to, &bits, sizeof bits);
    else
        memcpy(to, &half, sizeof half);
}

static void refuses_numbers_of(const char *dtype, const char *stored, size_t size, float value,
                               const char *part) {
    enum { ROWS = 64, COLUMNS = 32, ROW = 63, COLUMN = 5 };
    static uint8_t data[ROWS * COLUMNS * sizeof(float)];
    memset(data, 0, sizeof data);
    store(data + (ROW * COLUMNS + COLUMN) * size, dtype, value);
    write_checkpoint(dtype, &(test_tensor){.name = ATTENTION "q_proj.weight",
                                           .dtype = stored,
                                           .rank = 2,
                                           .dims = {ROWS, COLUMNS},
                                           .data = data,
                                           .size = ROWS * COLUMNS * size});
    refuses("checkpoint", NULL, GUMBEL_ERROR_FORMAT, part);
    refuses("checkpoint", "int8", GUMBEL_ERROR_FORMAT, part);
}

static void refuses_numbers_that_are_none(void **state) {
    (void)state;
    static const char name[] = "checkpoint: tensor " ATTENTION "q_proj.weight: row 63, column 5 is";
    char nan[128], infinite[128], negative[128];
    snprintf(nan, sizeof nan, "%s NaN", name);
    snprintf(infinite, sizeof infinite, "%s infinity", name);
    snprintf(negative, sizeof negative, "%s -infinity", name);
    refuses_numbers_of("float32", "F32", 4, NAN, nan);
    refuses_numbers_of("float32", "F32", 4, -INFINITY, negative);
    refuses_numbers_of("bfloat16", "BF16", 2, NAN, nan);
    refuses_numbers_of("float16", "F16", 2, INFINITY, infinite);
}

static void names_tensors_of_gguf_as_the_file_does(void **state) {
    (void)state;
    float values[32] = {0};
    values[7] = NAN;
    gguf_writer w = {0};
    gguf_add_tensor(&w, "output_norm.weight", GB_GGML_F32, 1, (const int64_t[]){32}, values, sizeof values);
    finish_gemma4(&w, NULL, "output_norm.weight", true);
    refuses("model.gguf", NULL, GUMBEL_ERROR_FORMAT,
            "model.gguf: tensor output_norm.weight: row 0, column 7 is NaN, expected finite numbers");
}

/* A matrix [64, 32] of blocks of 32 weights, of which the scale, or the bias, at byte `at` of row 9 is none.
 */
static void refuses_block(uint32_t type, uint32_t bytes, size_t at, const char *part) {
    enum { ROWS = 64, ROW = 9 };
    static const uint16_t INFINITE = 0xfc00;
    uint8_t *blocks = calloc(ROWS, bytes);
    assert_non_null(blocks);
    memcpy(blocks + ROW * bytes + at, &INFINITE, sizeof INFINITE);
    gguf_writer w = {0};
    gguf_add_tensor(&w, "blk.0.attn_q.weight", type, 2, (const int64_t[]){ROWS, 32}, blocks, ROWS * bytes);
    finish_gemma4(&w, NULL, "blk.0.attn_q.weight", true);
    refuses("model.gguf", NULL, GUMBEL_ERROR_FORMAT, part);
    free(blocks);
}

static void refuses_scales_that_are_none(void **state) {
    (void)state;
    refuses_block(GB_BLOCK_Q8_0, 34, 0,
                  "tensor blk.0.attn_q.weight: row 9: the scale of column 0 is -infinity, expected finite");
    refuses_block(GB_BLOCK_Q4_1, 20, 2, "blk.0.attn_q.weight: row 9: the bias of column 0 is -infinity");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(refuses_scales_of_used_weights, start_empty),
        cmocka_unit_test_setup(leaves_scales_of_unused_weights, start_empty),
        cmocka_unit_test_setup(refuses_scales_in_gguf, start_empty),
        cmocka_unit_test_setup(refuses_biases_of_used_weights, start_empty),
        cmocka_unit_test_setup(leaves_biases_of_zeros, start_empty),
        cmocka_unit_test_setup(refuses_biases_in_gguf, start_empty),
        cmocka_unit_test_setup(leaves_biases_of_unused_weights, start_empty),
        cmocka_unit_test_setup(leaves_biases_past_the_layers_that_are_kept, start_empty),
        cmocka_unit_test_setup(refuses_numbers_that_are_none, start_empty),
        cmocka_unit_test_setup(names_tensors_of_gguf_as_the_file_does, start_empty),
        cmocka_unit_test_setup(refuses_scales_that_are_none, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
