/* SPDX-License-Identifier: Apache-2.0
 *
 * What config.json may say of quantization: each form that is read, and each that is refused by name.
 */
#include "export/packed/quantization.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

static gb_config_file *open_config(const char *text) {
    gb_config_file *file = NULL;
    gumbel_error error;
    json_error_t reason;
    json_t *root = json_loads(text, 0, &reason);
    if (!root)
        fail_msg("%s: %s", text, reason.text);
    assert_ok(gb_config_from_json("config.json", root, &file, &error), &error);
    json_decref(root);
    return file;
}

static void reads(const char *text, gb_quantization_method method) {
    gb_config_file *file = open_config(text);
    gb_config root = gb_config_root(file);
    gb_quantization packing;
    gumbel_error error;
    assert_ok(gb_quantization_read(&root, &packing, &error), &error);
    assert_int_equal(packing.method, method);
    gb_config_close(file);
}

static void refuses(const char *text, gumbel_status status, const char *part) {
    gb_config_file *file = open_config(text);
    gb_config root = gb_config_root(file);
    gb_quantization packing;
    gumbel_error error;
    assert_fails(gb_quantization_read(&root, &packing, &error), status, &error, part);
    gb_config_close(file);
}

/* Of compressed-tensors; changed, which begins with a comma, comes after the usual keys of a group's weights.
 */
static void refuses_group(const char *weights, const char *group, const char *part) {
    char text[1024];
    snprintf(
        text, sizeof text,
        "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\","
        "\"config_groups\":{\"group_0\":{\"weights\":{%s}%s}}}}",
        weights, group);
    refuses(text, GUMBEL_ERROR_UNSUPPORTED, part);
}

static void knows_the_methods(void **state) {
    (void)state;
    reads("{}", GB_QUANTIZATION_NONE);
    reads("{\"quantization\":null,\"quantization_config\":null,\"text_config\":{}}", GB_QUANTIZATION_NONE);
    reads("{\"quantization\":{\"bits\":4,\"group_size\":64}}", GB_QUANTIZATION_MLX);
    reads("{\"quantization\":{\"bits\":4,\"group_size\":64,\"mode\":\"affine\"},"
          "\"quantization_config\":{\"quant_method\":\"gptq\"}}",
          GB_QUANTIZATION_MLX); /* as mlx-lm, which does not look at the other key then */
    reads("{\"quantization_config\":{\"bits\":4,\"group_size\":64}}", GB_QUANTIZATION_MLX);
    reads("{\"quantization\":{\"bits\":4,\"group_size\":16,\"mode\":\"nvfp4\"}}", GB_QUANTIZATION_MLX);
    reads("{\"quantization\":{\"bits\":8,\"group_size\":32,\"mode\":\"mxfp8\"}}", GB_QUANTIZATION_MLX);
    reads("{\"text_config\":{\"quantization_config\":{\"quant_method\":\"torchao\"}}}",
          GB_QUANTIZATION_TORCHAO);
    reads("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\","
          "\"transform_config\":{},\"sparsity_config\":{},\"config_groups\":{\"group_0\":{\"targets\":["
          "\"Linear\"],"
          "\"input_activations\":null,\"weights\":{\"num_bits\":4,\"type\":\"int\",\"strategy\":\"group\","
          "\"group_size\":128,\"symmetric\":true}}}}}",
          GB_QUANTIZATION_COMPRESSED_TENSORS);
}

static void refuses_other_methods(void **state) {
    (void)state;
    static const char *const methods[] = {"aqlm", "quanto", "bitsandbytes", "fbgemm_fp8", "eetq", "hqq"};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        char text[200], part[100];
        snprintf(text, sizeof text, "{\"quantization_config\":{\"quant_method\":\"%s\",\"bits\":4}}",
                 methods[i]);
        snprintf(part, sizeof part, "config.json: quantization_config.quant_method: \"%s\" is not supported",
                 methods[i]);
        refuses(text, GUMBEL_ERROR_UNSUPPORTED, part);
    }
    refuses("{\"text_config\":{\"quantization_config\":{\"quant_method\":\"hqq\"}}}",
            GUMBEL_ERROR_UNSUPPORTED, "text_config.quantization_config.quant_method: \"hqq\"");
    refuses("{\"quantization_config\":{\"bits\":4}}", GUMBEL_ERROR_FORMAT, "quant_method: is missing");
    refuses("{\"quantization_config\":{\"quant_method\":4}}", GUMBEL_ERROR_FORMAT, "expected a string");
    refuses("{\"quantization_config\":\"gptq\"}", GUMBEL_ERROR_FORMAT,
            "quantization_config: expected an object");
}

static gb_quantization read_config(const char *text) {
    gb_config_file *file = open_config(text);
    gb_config root = gb_config_root(file);
    gb_quantization packing;
    gumbel_error error;
    assert_ok(gb_quantization_read(&root, &packing, &error), &error);
    gb_config_close(file);
    return packing;
}

#define METHOD(name, more) "{\"quantization_config\":{\"quant_method\":\"" name "\"" more "}}"
#define FP8(more) "{\"quantization_config\":{\"quant_method\":\"fp8\"" more "}}"
#define FLOATS(weights, more)                                                                                \
    "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\","      \
    "\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":8,\"type\":\"float\"," weights "}" more       \
    "}}}}"

static void reads_floats(void **state) {
    (void)state;
    gb_quantization packing = read_config(
        FP8(",\"fmt\":\"e4m3\",\"activation_scheme\":\"dynamic\",\"weight_block_size\":[128,64]"));
    assert_int_equal(packing.method, GB_QUANTIZATION_FP8);
    assert_string_equal(packing.fp8_scales, "_scale_inv");
    assert_int_equal(packing.fp8_block[0], 128);
    assert_int_equal(packing.fp8_block[1], 64);
    assert_null(packing.fp8_other_scales);
    packing = read_config(FP8(",\"weight_block_size\":null"));
    assert_int_equal(packing.fp8_block[0], 0);
    assert_string_equal(packing.fp8_other_scales, "_scale");
    packing = read_config(FLOATS("\"strategy\":\"channel\"", ",\"input_activations\":{\"dynamic\":true}"));
    assert_string_equal(packing.fp8_scales, "_scale");
    assert_int_equal(packing.fp8_block[0], 0);
    assert_false(packing.leaves_input_scales);
    packing = read_config(FLOATS("\"strategy\":\"block\",\"block_structure\":[128,128]", ""));
    assert_int_equal(packing.fp8_block[1], 128);
}

/* Where the configuration says that scales of inputs, outputs or caches are stored. */
static void leaves_scales_of_inputs(void **state) {
    (void)state;
    static const char *const cases[] = {
        FP8(",\"activation_scheme\":\"static\""),
        FP8(",\"activation_scheme\":\"dynamic\",\"kv_cache_scheme\":\"static\""),
        FLOATS("\"strategy\":\"tensor\"", ",\"input_activations\":{\"dynamic\":false}"),
        FLOATS("\"strategy\":\"tensor\"", ",\"output_activations\":{\"num_bits\":8}"),
        FLOATS("\"strategy\":\"tensor\"", "}},\"kv_cache_scheme\":{\"num_bits\":8,\"x\":{"),
        METHOD("modelopt", ",\"quant_algo\":\"FP8\",\"kv_cache_scheme\":{\"num_bits\":8}"),
        METHOD("compressed-tensors",
               ",\"format\":\"nvfp4-pack-quantized\",\"kv_cache_scheme\":{\"num_bits\":8}")};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gb_quantization packing = read_config(cases[i]);
        assert_true(gb_quantization_leaves(&packing, "input_scale"));
        assert_true(gb_quantization_leaves(&packing, "k_scale"));
        assert_false(gb_quantization_leaves(&packing, "weight_scale"));
    }
}

static void refuses_other_floats(void **state) {
    (void)state;
    const gumbel_status unsupported = GUMBEL_ERROR_UNSUPPORTED, format = GUMBEL_ERROR_FORMAT;
    refuses(FP8(",\"fmt\":\"e5m2\""), unsupported, "fmt: \"e5m2\"");
    refuses(FP8(",\"activation_scheme\":\"other\""), unsupported, "activation_scheme: \"other\"");
    refuses(FP8(",\"weight_block_size\":[128]"), format, "weight_block_size");
    refuses(FP8(",\"weight_block_size\":[0,128]"), format, "weight_block_size");
    refuses(FLOATS("\"strategy\":\"group\"", ""), unsupported, "strategy: \"group\"");
    refuses(FLOATS("\"strategy\":\"block\",\"block_structure\":[128]", ""), format, "block_structure");
}

static void reads_transposed_methods(void **state) {
    (void)state;
    gb_quantization packing = read_config(METHOD("gptq", ",\"bits\":8,\"group_size\":-1,\"sym\":true"));
    assert_int_equal(packing.method, GB_QUANTIZATION_GPTQ);
    assert_true(packing.zeros_are_less_one && !packing.may_sort_columns);
    packing = read_config(METHOD("gptq", ",\"bits\":4,\"desc_act\":true,\"checkpoint_format\":\"gptq_v2\""));
    assert_true(!packing.zeros_are_less_one && packing.may_sort_columns);
    reads(METHOD("awq", ",\"bits\":4,\"version\":\"GEMM\",\"zero_point\":true"), GB_QUANTIZATION_AWQ);
    reads(METHOD("awq", ",\"w_bit\":4,\"backend\":\"autoawq\""), GB_QUANTIZATION_AWQ);
    packing = read_config(METHOD("auto-round", ",\"packing_format\":\"auto_round:auto_gptq\",\"bits\":4"));
    assert_int_equal(packing.method, GB_QUANTIZATION_GPTQ);
    assert_true(packing.zeros_are_less_one);
    packing = read_config(METHOD("auto-round", ",\"packing_format\":\"auto_round\",\"sym\":false"));
    assert_true(packing.method == GB_QUANTIZATION_GPTQ && !packing.zeros_are_less_one);
    reads(METHOD("intel/auto-round", ",\"packing_format\":\"auto_round:auto_awq\""), GB_QUANTIZATION_AWQ);
}

static void reads_nvfp4(void **state) {
    (void)state;
    gb_quantization packing = read_config(METHOD("modelopt", ",\"quant_algo\":\"NVFP4\""));
    assert_int_equal(packing.method, GB_QUANTIZATION_NVFP4);
    assert_true(!packing.fp4_divides && gb_quantization_leaves(&packing, "input_scale"));
    assert_false(gb_quantization_leaves(&packing, "pre_quant_scale"));
    reads(METHOD("modelopt", ",\"quantization\":{\"quant_algo\":\"NVFP4\"}"), GB_QUANTIZATION_NVFP4);
    reads(METHOD("modelopt", ",\"quant_algo\":\"W4A16_NVFP4\""), GB_QUANTIZATION_NVFP4);
    packing = read_config(METHOD("compressed-tensors", ",\"format\":\"nvfp4-pack-quantized\""));
    assert_int_equal(packing.method, GB_QUANTIZATION_NVFP4);
    assert_true(packing.fp4_divides);
    refuses(METHOD("modelopt", ",\"quant_algo\":\"NVFP4_AWQ\""), GUMBEL_ERROR_UNSUPPORTED,
            "quant_algo: \"NVFP4_AWQ\"");
    refuses(METHOD("compressed-tensors", ",\"format\":\"nvfp4-pack-quantized\",\"config_groups\":{\"g\":{"
                                         "\"format\":\"float-quantized\"}}"),
            GUMBEL_ERROR_UNSUPPORTED, "format: \"float-quantized\"");
}

static void reads_modelopt_floats(void **state) {
    (void)state;
    gb_quantization packing = read_config(METHOD("modelopt", ",\"quant_algo\":\"FP8\""));
    assert_int_equal(packing.method, GB_QUANTIZATION_FP8);
    assert_string_equal(packing.fp8_scales, "_scale");
    assert_int_equal(packing.fp8_block[0], 0);
    reads(METHOD("modelopt", ",\"quant_algo\":\"FP8_PER_CHANNEL_PER_TOKEN\""), GB_QUANTIZATION_FP8);
    packing = read_config(METHOD("modelopt", ",\"quant_algo\":\"fp8_pb_wo\"")); /* as it is written */
    assert_true(packing.fp8_block[0] == 128 && packing.fp8_block[1] == 128);
    packing = read_config(METHOD("modelopt", ",\"quant_algo\":\"FP8_PB_REAL\""));
    assert_int_equal(packing.fp8_block[0], 128);
    refuses(METHOD("modelopt", ",\"quant_algo\":null"), GUMBEL_ERROR_FORMAT, "quant_algo: is missing");
    packing = read_config(METHOD("modelopt", ",\"kv_cache_scheme\":{\"num_bits\":8}"));
    assert_true(packing.method == GB_QUANTIZATION_NONE && gb_quantization_leaves(&packing, "k_scale"));
    static const char *const cases[][2] = {
        {METHOD("modelopt", ",\"quant_algo\":\"INT8_SQ\""), "quant_algo: \"INT8_SQ\""},
        {METHOD("modelopt", ",\"quant_algo\":\"NVFP4\",\"group_size\":32"), "group_size: expected 16"},
        {METHOD("modelopt", ",\"quant_algo\":\"FP8\",\"pre_quant_scale\":true"), "pre_quant_scale: scaled"},
        {METHOD("modelopt", ",\"quant_algo\":\"FP8\",\"has_zero_point\":true"), "has_zero_point: zero"},
        {METHOD("modelopt", ",\"quant_algo\":\"FP8\",\"quantized_layers\":{\"a\":{}}"), "quantized_layers: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(cases[i][0], GUMBEL_ERROR_UNSUPPORTED, cases[i][1]);
}

static void refuses_other_transposed_methods(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {METHOD("gptq", ",\"bits\":3"), "bits: 3 is not supported in this version; expected 4 or 8"},
        {METHOD("gptq", ",\"bits\":2"), "bits: 2"},
        {METHOD("gptq", ",\"checkpoint_format\":\"marlin\""), "checkpoint_format: \"marlin\""},
        {METHOD("gptq", ",\"pack_dtype\":\"int16\""), "pack_dtype: \"int16\""},
        {METHOD("gptq", ",\"adapter\":{\"name\":\"lora\"}"), "adapters are not supported"},
        {METHOD("awq", ",\"bits\":8"), "bits: 8 is not supported in this version; expected 4"},
        {METHOD("awq", ",\"version\":\"gemv\""), "version: \"gemv\""},
        {METHOD("awq", ",\"backend\":\"llm-awq\""), "backend: \"llm-awq\""},
        {METHOD("auto-round", ",\"packing_format\":\"auto_round:fake\""),
         "packing_format: \"auto_round:fake\""},
        {METHOD("auto-round", ",\"bits\":2"), "bits: 2"},
        {METHOD("auto-round", ",\"data_type\":\"mx_fp\""), "data_type: \"mx_fp\""},
        {METHOD("auto-round", ",\"act_bits\":8"), "act_bits: quantized activations"},
        {METHOD("auto-round", ",\"rotation_config\":{\"kind\":\"hadamard\"}"), "rotated weights are"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(cases[i][0], GUMBEL_ERROR_UNSUPPORTED, cases[i][1]);
}

static void refuses_bad_mlx(void **state) {
    (void)state;
    const gumbel_status unsupported = GUMBEL_ERROR_UNSUPPORTED, format = GUMBEL_ERROR_FORMAT;
    refuses("{\"quantization\":{\"bits\":4,\"group_size\":32,\"mode\":\"nvfp4\"}}", unsupported,
            "quantization.mode: \"nvfp4\" with 4 bits in groups of 32; expected 4 in groups of 16");
    refuses("{\"quantization\":{\"bits\":4,\"group_size\":32,\"mode\":\"mxfp8\"}}", unsupported,
            "\"mxfp8\" with 4 bits");
    refuses("{\"quantization\":{\"bits\":6,\"mode\":\"mxfp6\"}}", unsupported,
            "quantization.mode: \"mxfp6\" is not supported in this version");
    refuses("{\"quantization\":{\"mode\":\"nvfp4\",\"global_scale\":true}}", unsupported,
            "global_scale: a scale");
    refuses("{\"quantization\":4}", format, "quantization: expected an object, found 4");
    refuses("{\"quantization\":{\"bits\":\"4\"}}", format, "quantization.bits: expected an integer");
    refuses("{\"quantization\":{\"bits\":0}}", format, "quantization.bits: expected an integer from 1");
    refuses("{\"quantization\":{\"group_size\":-64}}", format, "quantization.group_size");
    refuses("{\"quantization\":{\"group_size\":9223372036854775807}}", format, "quantization.group_size");
    refuses("{\"quantization\":{\"mode\":1}}", format, "quantization.mode: expected a string");
}

static void refuses_bad_groups(void **state) {
    (void)state;
    refuses("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"mxfp8-"
            "quantized\"}}",
            GUMBEL_ERROR_UNSUPPORTED, "quantization_config.format: \"mxfp8-quantized\"");
    refuses("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"transform_config\":{\"R1\":{"
            "}}}}",
            GUMBEL_ERROR_UNSUPPORTED, "transform_config: rotated weights");
    refuses("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"sparsity_config\":"
            "{\"format\":\"sparse-24-bitmask\"}}}",
            GUMBEL_ERROR_UNSUPPORTED, "sparsity_config.format: \"sparse-24-bitmask\"");
    refuses("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"config_groups\":[]}}",
            GUMBEL_ERROR_FORMAT, "config_groups: expected an object");
    refuses_group("\"num_bits\":3", "", "config_groups.group_0.weights.num_bits: 3 is not supported");
    refuses_group("\"type\":\"float\"", "", "weights.type: \"float\"");
    refuses_group("\"strategy\":\"tensor\"", "", "weights.strategy: \"tensor\"");
    refuses_group("", ",\"format\":\"nvfp4-pack-quantized\"", "group_0.format: \"nvfp4-pack-quantized\"");
    refuses_group("", ",\"input_activations\":{\"num_bits\":8}", "input_activations: quantized activations");
}

static void looks_modules_up(void **state) {
    (void)state;
    gb_config_file *file =
        open_config("{\"quantization\":{\"bits\":4,\"group_size\":64,\"a\":{\"bits\":8,\"group_size\":32},"
                    "\"b\":true,\"c\":null,\"half\":{\"bits\":6},"
                    "\"floats\":{\"mode\":\"mxfp8\"},"
                    "\"mixed\":{\"bits\":6,\"group_size\":null,\"mode\":\"affine\"}}}");
    gb_config root = gb_config_root(file);
    gb_quantization packing;
    gb_mlx_module said;
    gumbel_error error;
    assert_ok(gb_quantization_read(&root, &packing, &error), &error);
    assert_ok(gb_quantization_mlx_module(&packing, "a", &said, &error), &error);
    assert_true(said.is_said && said.bits == 8 && said.group == 32);
    assert_ok(gb_quantization_mlx_module(&packing, "b", &said, &error), &error);
    assert_true(said.is_said && said.bits == 4 && said.group == 64);
    assert_ok(gb_quantization_mlx_module(&packing, "half", &said, &error), &error);
    assert_true(said.is_said && said.bits == 6 && said.group == 64);
    assert_ok(gb_quantization_mlx_module(&packing, "mixed", &said, &error),
              &error); /* as convert writes it */
    assert_true(said.is_said && said.bits == 6 && said.group == 64);
    assert_ok(gb_quantization_mlx_module(&packing, "floats", &said, &error), &error);
    assert_true(said.is_said && said.bits == 8 && said.group == 32);
    assert_ok(gb_quantization_mlx_module(&packing, "c", &said, &error), &error);
    assert_false(said.is_said);
    assert_ok(gb_quantization_mlx_module(&packing, "unnamed", &said, &error), &error);
    assert_false(said.is_said);
    gb_config_close(file);
}

static void refuses_module(const char *value, gumbel_status status, const char *part) {
    char text[256];
    snprintf(text, sizeof text, "{\"quantization\":{\"bits\":4,\"group_size\":64,\"a.b\":%s}}", value);
    gb_config_file *file = open_config(text);
    gb_config root = gb_config_root(file);
    gb_quantization packing;
    gb_mlx_module said;
    gumbel_error error;
    assert_ok(gb_quantization_read(&root, &packing, &error), &error);
    assert_fails(gb_quantization_mlx_module(&packing, "a.b", &said, &error), status, &error, part);
    gb_config_close(file);
}

static void refuses_bad_modules(void **state) {
    (void)state;
    refuses_module("4", GUMBEL_ERROR_FORMAT, "quantization.a.b: expected an object, found 4");
    refuses_module("[8]", GUMBEL_ERROR_FORMAT, "quantization.a.b: expected an object");
    refuses_module("false", GUMBEL_ERROR_FORMAT, "quantization.a.b: false, but its weight is packed");
    refuses_module("{\"bits\":true}", GUMBEL_ERROR_FORMAT, "quantization.a.b.bits");
    refuses_module("{\"bits\":4,\"group_size\":64,\"mode\":\"nvfp4\"}", GUMBEL_ERROR_UNSUPPORTED,
                   "quantization.a.b.mode: \"nvfp4\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_methods),
        cmocka_unit_test(refuses_other_methods),
        cmocka_unit_test(reads_floats),
        cmocka_unit_test(refuses_other_floats),
        cmocka_unit_test(reads_transposed_methods),
        cmocka_unit_test(refuses_other_transposed_methods),
        cmocka_unit_test(leaves_scales_of_inputs),
        cmocka_unit_test(reads_nvfp4),
        cmocka_unit_test(reads_modelopt_floats),
        cmocka_unit_test(refuses_bad_mlx),
        cmocka_unit_test(refuses_bad_groups),
        cmocka_unit_test(looks_modules_up),
        cmocka_unit_test(refuses_bad_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
