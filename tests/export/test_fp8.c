/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of 8-bit floats, and of NVFP4: every weight has the bits that MLX computes, logits agree with
 * mlx-lm's, and a recipe makes of them what it makes of the same numbers in bfloat16.
 * tests/oracle/make_fp8_goldens.py and make_nvfp4_goldens.py write tests/data/export/packed/fp8_* and
 * nvfp4_*.
 */
#include "export/checkpoint/safetensors.h"
#include "export/quantize/fp8_rows.h"
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/checkpoints/safetensors_writer.h"
#include "support/paths.h"
#include "support/temporary.h"
#include "tensor/convert.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static const char *const NAMES[] = {"fp8_blocks",     "fp8_next",         "fp8_channel",         "fp8_tensor",
                                    "fp8_modelopt",   "fp8_stack",        "fp8_halves",          "mlx_mxfp8",
                                    "nvfp4_modelopt", "nvfp4_compressed", "fp8_modelopt_blocks", "fp8_auto"};
enum { CASES = sizeof NAMES / sizeof NAMES[0], MAX_TENSORS = 192, MAX_PROMPT = 64 };
static const double TOLERANCE = 2e-4; /* of the largest absolute logit */

static void data_path(char path[512], const char *name, const char *file) {
    snprintf(path, 512, "%s/export/packed/%s%s", test_data_folder, name, file);
}

static json_t *read_json(const char *name, const char *file) {
    char path[512];
    json_error_t reason;
    data_path(path, name, file);
    json_t *json = json_load_file(path, 0, &reason);
    if (!json)
        fail_msg("%s: %s", path, reason.text);
    return json;
}

static int start_empty(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

static const char *export_from(const char *source, const char *output, gumbel_export_options options) {
    gumbel_error error;
    const char *path = temporary_path(output);
    options.size = sizeof options;
    assert_ok(gumbel_export(source, path, &options, &error), &error);
    return path;
}

static gb_program *read_program(const char *path) {
    gb_program *program = NULL;
    gumbel_error error;
    assert_ok(gb_program_read(path, &program, &error), &error);
    return program;
}

/* ---- Codes --------------------------------------------------------------------------------------------- */

static void codes_are_numbers(void **state) {
    (void)state;
    for (int code = 0; code < 256; code++) {
        const int exponent = code >> 3 & 15, fraction = code & 7;
        const double magnitude =
            exponent ? ldexp(1 + fraction / 8.0, exponent - 7) : ldexp(fraction / 8.0, -6);
        const float found = gb_float_from_e4m3((uint8_t)code);
        if ((code & 0x7f) == 0x7f)
            assert_true(isnan(found));
        else
            assert_true((double)found == (code & 0x80 ? -magnitude : magnitude));
        assert_true(!signbit(found) == !(code & 0x80));
    }
}

/* ---- Weights and logits -------------------------------------------------------------------------------- */

/* As packed_checkpoints.py has it. */
static uint64_t checksum(const gb_constant *constant) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < constant->size / 2; i++) {
        uint16_t half;
        memcpy(&half, constant->data + 2 * i, sizeof half);
        sum += gb_bits_from_float(gb_float_from_bf16(half)) * (2 * i + 1);
    }
    return sum;
}

static void compare_weights(const char *path, const json_t *expected) {
    gb_program *program = read_program(path);
    size_t found = 0;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        const char *sum = json_string_value(json_object_get(expected, constant->name));
        char computed[32];
        if (!sum)
            continue;
        found++;
        assert_int_equal(constant->type.dtype, GB_BF16);
        snprintf(computed, sizeof computed, "%016" PRIx64, checksum(constant));
        if (strcmp(sum, computed) != 0)
            fail_msg("%s has other weights than expected", constant->name);
    }
    assert_int_equal(found, json_object_size(expected));
    gb_program_destroy(program);
}

static size_t read_prompt(const json_t *golden, int32_t tokens[MAX_PROMPT]) {
    const json_t *prompt = json_object_get(golden, "prompt");
    const size_t count = json_array_size(prompt);
    assert_true(count > 1 && count <= MAX_PROMPT);
    for (size_t i = 0; i < count; i++)
        tokens[i] = (int32_t)json_integer_value(json_array_get(prompt, i));
    return count;
}

static void compare_logits(const char *path, const json_t *golden) {
    gumbel_program *program = NULL;
    gumbel_engine *engine = NULL;
    gumbel_session *session = NULL;
    gumbel_error error;
    int32_t tokens[MAX_PROMPT];
    const size_t count = read_prompt(golden, tokens);
    const gumbel_engine_options options = {.size = sizeof options, .threads = 1};
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
    const json_t *expected = json_object_get(golden, "logits");
    double largest = 0, difference = 0;
    for (size_t i = 0; i < json_array_size(expected); i++) {
        const double value = json_number_value(json_array_get(expected, i));
        largest = fmax(largest, fabs(value));
        difference = fmax(difference, fabs(value - (double)result.logits[i]));
    }
    assert_true(largest > 0 && difference <= TOLERANCE * largest);
    gumbel_session_destroy(session);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

static void has_the_numbers_of_mlx(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        char directory[512];
        json_t *golden = read_json(NAMES[i], "/golden.json");
        data_path(directory, NAMES[i], "");
        const char *path = export_from(directory, "exact.gumbel",
                                       (gumbel_export_options){.activations = "none", .backend = "none"});
        compare_weights(path, json_object_get(golden, "weights"));
        compare_logits(path, golden);
        json_decref(golden);
    }
}

/* ---- Recipes ------------------------------------------------------------------------------------------- */

/* checkpoint/ with the constants of a program as tensors. */
static void write_constants(const char *name, const gb_program *program) {
    test_tensor tensors[MAX_TENSORS];
    size_t count = 0;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *from = &program->constants[i];
        if (from->type.dtype != GB_BF16)
            continue;
        assert_true(count < MAX_TENSORS);
        test_tensor *to = &tensors[count++];
        *to = (test_tensor){.name = from->name,
                            .dtype = "BF16",
                            .rank = from->type.shape.rank,
                            .data = from->data,
                            .size = (size_t)from->size};
        memcpy(to->dims, from->type.shape.dims, (size_t)to->rank * sizeof *to->dims);
    }
    json_t *config = read_json(name, "/config.json");
    json_object_del(config, "quantization_config");
    json_object_del(config, "quantization");
    char *text = json_dumps(config, 0);
    write_text(temporary_path("checkpoint/config.json"), text);
    write_safetensors(temporary_path("checkpoint/model.safetensors"), tensors, count);
    free(text);
    json_decref(config);
}

static void assert_same_constants(const char *a, const char *b) {
    gb_program *first = read_program(a), *second = read_program(b);
    assert_int_equal(first->constant_count, second->constant_count);
    for (uint32_t i = 0; i < first->constant_count; i++) {
        const gb_constant *x = &first->constants[i], *y = &second->constants[i];
        assert_string_equal(x->name, y->name);
        assert_true(gb_format_equal(&x->format, &y->format));
        assert_int_equal(x->size, y->size);
        assert_memory_equal(x->data, y->data, (size_t)x->size);
    }
    gb_program_destroy(first);
    gb_program_destroy(second);
}

static void is_quantized_as_bfloat16(void **state) {
    (void)state;
    static const char *const recipes[] = {"int4", "int8", "int4-affine"};
    for (size_t i = 0; i < CASES; i++) {
        char directory[512];
        data_path(directory, NAMES[i], "");
        gb_program *wide =
            read_program(export_from(directory, "wide.gumbel", (gumbel_export_options){.backend = "none"}));
        write_constants(NAMES[i], wide);
        gb_program_destroy(wide);
        for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
            const gumbel_export_options options = {.quantize = recipes[r]};
            const char *path = export_from(directory, "floats.gumbel", options);
            assert_same_constants(path, export_from(temporary_path("checkpoint"), "plain.gumbel", options));
        }
    }
}

/* ---- What is refused ----------------------------------------------------------------------------------- */

typedef struct changed_tensors {
    gb_safetensors file;
    test_tensor tensors[MAX_TENSORS];
    size_t count;
} changed_tensors;

static void open_tensors(const char *name, changed_tensors *changed) {
    char path[512];
    gumbel_error error;
    data_path(path, name, "/model.safetensors");
    assert_ok(gb_safetensors_open(path, &changed->file, &error), &error);
    assert_true(changed->file.tensor_count < MAX_TENSORS);
    changed->count = changed->file.tensor_count;
    for (size_t i = 0; i < changed->count; i++) {
        const gb_tensor *from = &changed->file.tensors[i];
        changed->tensors[i] = (test_tensor){.name = from->name,
                                            .dtype = from->dtype_name,
                                            .rank = from->rank,
                                            .data = from->data,
                                            .size = (size_t)from->size};
        memcpy(changed->tensors[i].dims, from->dims, (size_t)from->rank * sizeof *from->dims);
    }
}

static test_tensor *tensor_named(changed_tensors *changed, const char *name) {
    for (size_t i = 0; i < changed->count; i++)
        if (strcmp(changed->tensors[i].name, name) == 0)
            return &changed->tensors[i];
    fail_msg("there is no %s", name);
    return NULL;
}

static void refuses(const char *name, changed_tensors *changed, const char *recipe, const char *part) {
    gumbel_error error;
    json_t *config = read_json(name, "/config.json");
    char *text = json_dumps(config, 0);
    const gumbel_export_options options = {.size = sizeof options, .quantize = recipe};
    write_text(temporary_path("checkpoint/config.json"), text);
    write_safetensors(temporary_path("checkpoint/model.safetensors"), changed->tensors, changed->count);
    const gumbel_status status =
        gumbel_export(temporary_path("checkpoint"), temporary_path("no.gumbel"), &options, &error);
    assert_true(status == GUMBEL_ERROR_FORMAT || status == GUMBEL_ERROR_UNSUPPORTED);
    if (!strstr(error.message, part))
        fail_msg("\"%s\" lacks \"%s\"", error.message, part);
    free(text);
    json_decref(config);
    gb_safetensors_close(&changed->file);
}

#define DOWN "model.layers.1.mlp.down_proj.weight"

static void refuses_codes_that_are_no_numbers(void **state) {
    (void)state;
    static const char *const recipes[] = {NULL, "int4"};
    for (size_t i = 0; i < 2; i++) {
        static uint8_t codes[1 << 16];
        changed_tensors changed;
        open_tensors("fp8_blocks", &changed);
        test_tensor *down = tensor_named(&changed, DOWN);
        assert_true(down->size <= sizeof codes);
        memcpy(codes, down->data, down->size);
        codes[3 * down->dims[1] + 5] = 0xff;
        down->data = codes;
        refuses("fp8_blocks", &changed, recipes[i], DOWN);
    }
}

static void refuses_scales_that_do_not_fit(void **state) {
    (void)state;
    changed_tensors changed;
    open_tensors("fp8_blocks", &changed);
    tensor_named(&changed, DOWN "_scale_inv")->name = "other";
    refuses("fp8_blocks", &changed, NULL, "tensor " DOWN "_scale_inv is missing, which belongs to " DOWN);
    open_tensors("fp8_blocks", &changed);
    test_tensor *scales = tensor_named(&changed, DOWN "_scale_inv");
    scales->dims[0] = 1;
    scales->size /= 2;
    refuses("fp8_blocks", &changed, NULL, DOWN "_scale_inv has another shape than the [2, 2] blocks");
    open_tensors("fp8_blocks", &changed);
    tensor_named(&changed, DOWN "_scale_inv")->dtype = "I32";
    refuses("fp8_blocks", &changed, NULL, DOWN "_scale_inv has dtype I32");
    open_tensors("fp8_channel", &changed);
    scales = tensor_named(&changed, DOWN "_scale");
    scales->dims[0] = 2;
    scales->size = 4;
    refuses("fp8_channel", &changed, NULL,
            DOWN "_scale has neither one scale nor one for each of the 96 rows");
}

static void refuses_scales_of_other_writers(void **state) {
    (void)state;
    changed_tensors changed;
    open_tensors("fp8_auto", &changed);
    tensor_named(&changed, DOWN "_scale")->name = "other";
    refuses("fp8_auto", &changed, NULL,
            "tensor " DOWN "_scale_inv or _scale is missing, which belongs to " DOWN);
    open_tensors("fp8_modelopt_blocks", &changed);
    test_tensor *scales = tensor_named(&changed, DOWN "_scale");
    memcpy(scales->dims, (const int64_t[]){1, 1, 1, 2}, 4 * sizeof *scales->dims);
    refuses("fp8_modelopt_blocks", &changed, NULL, DOWN "_scale has another shape than the [2, 1] blocks");
    open_tensors("fp8_modelopt_blocks", &changed);
    scales = tensor_named(&changed, DOWN "_scale");
    scales->rank = 1;
    scales->dims[0] = 2;
    refuses("fp8_modelopt_blocks", &changed, NULL, DOWN "_scale has another shape than the [2, 1] blocks");
}

#define STACK "model.language_model.layers.1.mlp.experts.gate_up_proj"

static void refuses_stacks_that_do_not_fit(void **state) {
    (void)state;
    changed_tensors changed;
    open_tensors("fp8_stack", &changed);
    tensor_named(&changed, STACK "_scale_inv")->name = "other";
    refuses("fp8_stack", &changed, NULL, STACK "_scale_inv is missing, which belongs to " STACK);
    open_tensors("fp8_stack", &changed);
    test_tensor *scales = tensor_named(&changed, STACK "_scale_inv");
    scales->dims[1] = 3;
    scales->size = scales->size / 8 * 3;
    refuses("fp8_stack", &changed, NULL, STACK "_scale_inv has another shape than the blocks of " STACK);
    open_tensors("fp8_stack", &changed);
    scales = tensor_named(&changed, STACK "_scale_inv");
    scales->rank = 2;
    scales->dims[0] = 24;
    scales->dims[1] = 2;
    refuses("fp8_stack", &changed, NULL, STACK "_scale_inv has another shape");
    open_tensors("fp8_stack", &changed);
    tensor_named(&changed, STACK "_scale_inv")->dtype = "U16";
    refuses("fp8_stack", &changed, NULL, STACK "_scale_inv has dtype U16");
    open_tensors("fp8_stack", &changed);
    test_tensor *codes = tensor_named(&changed, STACK);
    codes->dims[1] -= 2;
    codes->size -= (size_t)(2 * codes->dims[0] * codes->dims[2]);
    refuses("fp8_stack", &changed, NULL, "tensor " STACK " has shape [3, 190, 64]");
}

static void refuses_scales_that_are_no_numbers(void **state) {
    (void)state;
    static const float nan = NAN;
    changed_tensors changed;
    open_tensors("fp8_modelopt", &changed);
    tensor_named(&changed, DOWN "_scale")->data = &nan;
    refuses("fp8_modelopt", &changed, NULL, DOWN);
    open_tensors("fp8_modelopt", &changed);
    tensor_named(&changed, DOWN "_scale")->name = "other";
    refuses("fp8_modelopt", &changed, NULL, DOWN "_scale is missing, which belongs to " DOWN);
}

#define SWITCH "language_model.model.layers.1.mlp.switch_mlp.up_proj."

static void refuses_exponents_that_are_no_numbers(void **state) {
    (void)state;
    static uint8_t exponents[1 << 10];
    changed_tensors changed;
    open_tensors("mlx_mxfp8", &changed);
    test_tensor *scales = tensor_named(&changed, SWITCH "scales");
    assert_true(scales->size <= sizeof exponents);
    memcpy(exponents, scales->data, scales->size);
    exponents[200] = 255;
    scales->data = exponents;
    refuses("mlx_mxfp8", &changed, NULL, "experts.gate_up_proj");
    open_tensors("mlx_mxfp8", &changed);
    tensor_named(&changed, SWITCH "scales")->name = SWITCH "global_scale";
    refuses("mlx_mxfp8", &changed, NULL, "tensor " SWITCH "scales is missing");
    open_tensors("mlx_mxfp8", &changed);
    scales = tensor_named(&changed, SWITCH "scales");
    scales->dtype = "F16";
    scales->dims[2] /= 2;
    refuses("mlx_mxfp8", &changed, NULL,
            SWITCH "biases is missing, which belongs to " SWITCH "scales of dtype F16");
}

#define FC "model.layers.1.mlp.up_proj."

static void refuses_nvfp4_that_does_not_fit(void **state) {
    (void)state;
    changed_tensors changed;
    open_tensors("nvfp4_modelopt", &changed);
    tensor_named(&changed, FC "weight_scale_2")->name = "other";
    refuses("nvfp4_modelopt", &changed, NULL, FC "weight_scale_2 is missing, which belongs to " FC "weight");
    open_tensors("nvfp4_modelopt", &changed);
    tensor_named(&changed, FC "weight_scale")->dtype = "U8";
    refuses("nvfp4_modelopt", &changed, NULL, FC "weight_scale has dtype U8, expected F8_E4M3");
    open_tensors("nvfp4_modelopt", &changed);
    test_tensor *scales = tensor_named(&changed, FC "weight_scale");
    scales->dims[1] /= 2;
    scales->size /= 2;
    refuses("nvfp4_modelopt", &changed, NULL, FC "weight_scale has shape [64, 2], expected [64, 4]");
    static const float two[2] = {1, 1};
    open_tensors("nvfp4_modelopt", &changed);
    test_tensor *global = tensor_named(&changed, FC "weight_scale_2");
    *global = (test_tensor){
        .name = global->name, .dtype = "F32", .rank = 1, .dims = {2}, .data = two, .size = sizeof two};
    refuses("nvfp4_modelopt", &changed, NULL, FC "weight_scale_2 has more than one number");
    open_tensors("nvfp4_modelopt", &changed);
    tensor_named(&changed, FC "input_scale")->name = FC "pre_quant_scale";
    refuses("nvfp4_modelopt", &changed, NULL, FC "pre_quant_scale");
}

/* As modelopt has it of gpt-oss, whatever the shape. */
static void refuses_nvfp4_experts_in_one_tensor(void **state) {
    (void)state;
    static const uint8_t codes[2 * 3 * 4];
    changed_tensors changed;
    open_tensors("nvfp4_compressed", &changed);
    changed.tensors[changed.count++] =
        (test_tensor){.name = STACK, .dtype = "U8", .rank = 3, .dims = {2, 3, 4}, .data = codes, .size = 24};
    refuses("nvfp4_compressed", &changed, NULL, "tensor " STACK " holds NVFP4 of all experts");
}

static void refuses_scales_that_nothing_uses(void **state) {
    (void)state;
    static const float one = 1;
    static const char *const names[] = {"model.embed_tokens.weight_scale_inv",
                                        "model.layers.0.mlp.up_proj.input_scale",
                                        "model.layers.0.self_attn.k_scale"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        changed_tensors changed;
        open_tensors("fp8_blocks", &changed);
        changed.tensors[changed.count++] =
            (test_tensor){.name = names[i], .dtype = "F32", .rank = 1, .dims = {1}, .data = &one, .size = 4};
        refuses("fp8_blocks", &changed, NULL, names[i]);
    }
}

/* ---- hf_quant_config.json -------------------------------------------------------------------------------
 */

static void write_without_settings(const char *name) {
    changed_tensors changed;
    json_t *config = read_json(name, "/config.json");
    json_object_del(config, "quantization_config");
    json_object_del(config, "quantization");
    char *text = json_dumps(config, 0);
    write_text(temporary_path("checkpoint/config.json"), text);
    open_tensors(name, &changed);
    write_safetensors(temporary_path("checkpoint/model.safetensors"), changed.tensors, changed.count);
    gb_safetensors_close(&changed.file);
    free(text);
    json_decref(config);
}

/* algorithm: with its quotes */
static void write_settings(const char *producer, const char *algorithm) {
    char text[256];
    snprintf(text, sizeof text,
             "{\"producer\":{\"name\":\"%s\"},\"quantization\":{\"quant_algo\":%s,\"group_size\":16,"
             "\"kv_cache_quant_algo\":\"FP8\",\"exclude_modules\":[\"lm_head\"]}}",
             producer, algorithm);
    write_text(temporary_path("checkpoint/hf_quant_config.json"), text);
}

static void reads_settings_beside_the_configuration(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"fp8_modelopt", "\"FP8\""}, {"nvfp4_modelopt", "\"NVFP4\""}};
    const gumbel_export_options options = {.activations = "none", .backend = "none"};
    for (size_t i = 0; i < 2; i++) {
        char directory[512];
        data_path(directory, cases[i][0], "");
        write_without_settings(cases[i][0]);
        write_settings("modelopt", cases[i][1]);
        const char *path = export_from(temporary_path("checkpoint"), "beside.gumbel", options);
        assert_same_constants(path, export_from(directory, "within.gumbel", options));
    }
}

static void refuses_settings(const char *part) {
    gumbel_error error;
    const gumbel_export_options options = {.size = sizeof options};
    assert_fails(gumbel_export(temporary_path("checkpoint"), temporary_path("no.gumbel"), &options, &error),
                 GUMBEL_ERROR_UNSUPPORTED, &error, part);
}

static void refuses_other_settings_beside_it(void **state) {
    (void)state;
    write_without_settings("fp8_modelopt");
    write_settings("other", "\"FP8\"");
    refuses_settings("hf_quant_config.json: producer.name: \"other\"");
    write_settings("modelopt", "\"W4A8_AWQ\"");
    refuses_settings("hf_quant_config.json: quantization.quant_algo: \"W4A8_AWQ\"");
}

/* Weights that nothing tells of, also where caches alone are quantized. */
static void refuses_codes_without_settings(void **state) {
    (void)state;
    write_without_settings("fp8_modelopt");
    refuses_settings("q_proj.weight has dtype F8_E4M3, expected F32, F16 or BF16, or F8_E4M3 with scales "
                     "that quantization_config in config.json");
    write_settings("modelopt", "null");
    refuses_settings("q_proj.weight has dtype F8_E4M3");
    empty_temporary_directory();
    write_without_settings("nvfp4_modelopt");
    refuses_settings("q_proj.weight has dtype U8, expected F32, F16 or BF16, or codes of a quantization");
    empty_temporary_directory();
    write_without_settings("mlx_mxfp8");
    refuses_settings("embed_tokens.weight has dtype U32, expected F32, F16 or BF16, or codes of");
}

/* What modelopt writes of plain weights. */
static void reads_caches_alone(void **state) {
    (void)state;
    char directory[512];
    const gumbel_export_options options = {.activations = "none", .backend = "none"};
    data_path(directory, "fp8_tensor", "");
    gb_program *wide = read_program(export_from(directory, "wide.gumbel", options));
    write_constants("fp8_tensor", wide);
    write_settings("modelopt", "null");
    const char *path = export_from(temporary_path("checkpoint"), "caches.gumbel", options);
    assert_same_constants(path, temporary_path("wide.gumbel"));
    gb_program_destroy(wide);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_numbers),
        cmocka_unit_test_setup(has_the_numbers_of_mlx, start_empty),
        cmocka_unit_test_setup(is_quantized_as_bfloat16, start_empty),
        cmocka_unit_test_setup(refuses_codes_that_are_no_numbers, start_empty),
        cmocka_unit_test_setup(refuses_scales_that_do_not_fit, start_empty),
        cmocka_unit_test_setup(refuses_scales_of_other_writers, start_empty),
        cmocka_unit_test_setup(refuses_stacks_that_do_not_fit, start_empty),
        cmocka_unit_test_setup(refuses_scales_that_are_no_numbers, start_empty),
        cmocka_unit_test_setup(refuses_exponents_that_are_no_numbers, start_empty),
        cmocka_unit_test_setup(refuses_nvfp4_that_does_not_fit, start_empty),
        cmocka_unit_test_setup(refuses_nvfp4_experts_in_one_tensor, start_empty),
        cmocka_unit_test_setup(refuses_scales_that_nothing_uses, start_empty),
        cmocka_unit_test_setup(reads_settings_beside_the_configuration, start_empty),
        cmocka_unit_test_setup(refuses_other_settings_beside_it, start_empty),
        cmocka_unit_test_setup(refuses_codes_without_settings, start_empty),
        cmocka_unit_test_setup(reads_caches_alone, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
