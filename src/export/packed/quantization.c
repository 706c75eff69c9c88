/* SPDX-License-Identifier: Apache-2.0 */
#include "export/packed/quantization.h"

#include "export/checkpoint/json.h"
#include "export/packed/quantization_methods.h"

#include <string.h>

enum { MAX_GROUP = 1 << 20, MAX_BLOCK = 1 << 20 };

/* ---- MLX ----------------------------------------------------------------------------------------------- */

/* With MLX's defaults, which are the only numbers that modes of floats have. */
static const struct {
    const char *name;
    int64_t bits, group;
} MODES[] = {{"affine", 4, 64}, {"mxfp4", 4, 32}, {"nvfp4", 4, 16}, {"mxfp8", 8, 32}};

static size_t read_mode(const gb_config *scheme) {
    const char *mode = gb_config_string(scheme, "mode", MODES[0].name);
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++)
        if (strcmp(mode, MODES[i].name) == 0)
            return i;
    gb_config_fail(scheme, "mode", GUMBEL_ERROR_UNSUPPORTED,
                   "\"%s\" is not supported in this version; expected \"affine\", \"mxfp4\", \"nvfp4\" or "
                   "\"mxfp8\"",
                   mode);
    return 0;
}

/* mlx-lm's mixed recipes write null for bits and groups. */
static gb_mlx_module read_scheme(const gb_config *scheme) {
    const size_t mode = read_mode(scheme);
    gb_mlx_module said = {.is_said = true, .bits = MODES[mode].bits, .group = MODES[mode].group};
    if (gb_config_has(scheme, "bits"))
        said.bits = gb_config_integer(scheme, "bits", 0, 1, 32);
    if (gb_config_has(scheme, "group_size"))
        said.group = gb_config_integer(scheme, "group_size", 0, 1, MAX_GROUP);
    if (mode > 0 && (said.bits != MODES[mode].bits || said.group != MODES[mode].group))
        gb_config_fail(scheme, "mode", GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\" with %d bits in groups of %d; expected %d in groups of %d", MODES[mode].name,
                       (int)said.bits, (int)said.group, (int)MODES[mode].bits, (int)MODES[mode].group);
    if (gb_config_bool(scheme, "global_scale", false))
        gb_config_fail(scheme, "global_scale", GUMBEL_ERROR_UNSUPPORTED,
                       "a scale of scales is not supported in this version; expected false");
    return said;
}

gumbel_status gb_quantization_mlx_module(const gb_quantization *packing, const char *module,
                                         gb_mlx_module *said, gumbel_error *error) {
    const gb_config *all = &packing->quantization;
    const json_t *own = json_object_get(all->object, module);
    *said = (gb_mlx_module){0};
    if (json_is_true(own)) {
        *said = read_scheme(all);
    } else if (json_is_false(own)) {
        gb_config_fail(all, module, GUMBEL_ERROR_FORMAT, "false, but its weight is packed");
    } else if (own && !json_is_null(own)) {
        gb_config scheme = gb_config_child(all, module);
        *said = read_scheme(&scheme);
    }
    return gb_config_status(all->file, error);
}

static void read_mlx(const gb_config *quantization, gb_quantization *packing) {
    packing->method = GB_QUANTIZATION_MLX;
    packing->quantization = *quantization;
    read_scheme(quantization);
}

/* ---- compressed-tensors -------------------------------------------------------------------------------- */

/* Bits, group size and zero points are read from the tensors; here is only what they do not show. */
static void check_weights(const gb_config *weights) {
    static const char *const types[] = {"int"}, *const strategies[] = {"group", "channel"};
    int64_t bits = gb_config_integer(weights, "num_bits", 4, 1, 64);
    if (bits != 4 && bits != 8)
        gb_config_fail(weights, "num_bits", GUMBEL_ERROR_UNSUPPORTED,
                       "%d is not supported in this version; expected 4 or 8", (int)bits);
    gb_config_expect_text(weights, "type", types, 1, "\"int\"");
    gb_config_expect_text(weights, "strategy", strategies, 2, "\"group\" or \"channel\"");
}

/* Rows and columns that share a scale; all where the key is absent. */
static void read_block(const gb_config *config, const char *key, gb_quantization *packing) {
    const size_t count = gb_config_integers(config, key, 1, MAX_BLOCK, packing->fp8_block, 2);
    if (gb_config_has(config, key) && count != 2)
        gb_config_fail(config, key, GUMBEL_ERROR_FORMAT, "%zu numbers, expected rows and columns", count);
}

/* Products of such weights have inputs in 8 bits with scales that are computed, or else stored; here inputs
 * and caches stay as they are. */
static bool has_stored_scales(const gb_config *config, const char *key) {
    const gb_config scheme = gb_config_child(config, key);
    return gb_config_next_key(&scheme, NULL) && !gb_config_bool(&scheme, "dynamic", false);
}

static void read_float_group(const gb_config *group, gb_quantization *packing) {
    static const char *const formats[] = {"float-quantized"}, *const types[] = {"float"},
                             *const strategies[] = {"tensor", "channel", "block"};
    const gb_config weights = gb_config_child(group, "weights");
    gb_config_expect_text(group, "format", formats, 1, "\"float-quantized\"");
    gb_config_expect_text(&weights, "type", types, 1, "\"float\"");
    gb_config_expect_text(&weights, "strategy", strategies, 3, "\"tensor\", \"channel\" or \"block\"");
    if (gb_config_integer(&weights, "num_bits", 8, 1, 64) != 8)
        gb_config_fail(&weights, "num_bits", GUMBEL_ERROR_UNSUPPORTED, "expected 8");
    if (strcmp(gb_config_string(&weights, "strategy", "tensor"), "block") == 0)
        read_block(&weights, "block_structure", packing);
    if (has_stored_scales(group, "input_activations") || has_stored_scales(group, "output_activations"))
        packing->leaves_input_scales = true;
}

static void read_compressed_floats(const gb_config *quantization, gb_quantization *packing) {
    const gb_config groups = gb_config_child(quantization, "config_groups");
    size_t count = 0;
    packing->method = GB_QUANTIZATION_FP8;
    packing->fp8_scales = "_scale";
    packing->leaves_input_scales = has_stored_scales(quantization, "kv_cache_scheme");
    gb_config_refuse_object(quantization, "transform_config", "rotated weights are");
    for (const char *name = NULL; (name = gb_config_next_key(&groups, name)); count++) {
        const gb_config group = gb_config_child(&groups, name);
        read_float_group(&group, packing);
    }
    if (count > 1)
        gb_config_fail(quantization, "config_groups", GUMBEL_ERROR_UNSUPPORTED,
                       "%zu groups of 8-bit floats are not supported in this version; expected one", count);
}

static void read_packed_integers(const gb_config *quantization, gb_quantization *packing) {
    static const char *const formats[] = {"pack-quantized"};
    packing->method = GB_QUANTIZATION_COMPRESSED_TENSORS;
    gb_config_expect_text(quantization, "format", formats, 1,
                          "\"pack-quantized\", \"float-quantized\" or \"nvfp4-pack-quantized\"");
    gb_config_refuse_object(quantization, "transform_config", "rotated weights are");
    gb_config sparsity = gb_config_child(quantization, "sparsity_config");
    gb_config_expect_text(&sparsity, "format", (const char *const[]){"dense"}, 1, "\"dense\"");
    gb_config groups = gb_config_child(quantization, "config_groups");
    for (const char *name = NULL; (name = gb_config_next_key(&groups, name));) {
        gb_config group = gb_config_child(&groups, name);
        gb_config weights = gb_config_child(&group, "weights");
        gb_config_expect_text(&group, "format", formats, 1, "\"pack-quantized\"");
        gb_config_refuse_object(&group, "input_activations", "quantized activations are");
        gb_config_refuse_object(&group, "output_activations", "quantized activations are");
        check_weights(&weights);
    }
}

static void read_compressed(const gb_config *quantization, gb_quantization *packing) {
    const char *format = gb_config_string(quantization, "format", "pack-quantized");
    if (strcmp(format, "nvfp4-pack-quantized") == 0)
        gb_quantization_read_compressed_nvfp4(quantization, packing);
    else if (strcmp(format, "float-quantized") == 0)
        read_compressed_floats(quantization, packing);
    else
        read_packed_integers(quantization, packing);
}

/* ---- fp8 ----------------------------------------------------------------------------------------------- */

/* Modules that were not converted are known by their tensors' dtype. AutoFP8 writes no blocks, and what it
 * stores of caches also where inputs have no scales. */
static void read_fp8(const gb_config *quantization, gb_quantization *packing) {
    static const char *const formats[] = {"e4m3"}, *const schemes[] = {"dynamic", "static"};
    packing->method = GB_QUANTIZATION_FP8;
    packing->fp8_scales = "_scale_inv";
    gb_config_expect_text(quantization, "fmt", formats, 1, "\"e4m3\"");
    gb_config_expect_text(quantization, "activation_scheme", schemes, 2, "\"dynamic\" or \"static\"");
    packing->leaves_input_scales =
        strcmp(gb_config_string(quantization, "activation_scheme", schemes[0]), schemes[1]) == 0 ||
        gb_config_has(quantization, "kv_cache_scheme");
    read_block(quantization, "weight_block_size", packing);
    if (packing->fp8_block[0] == 0)
        packing->fp8_other_scales = "_scale";
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

static void read_method(const gb_config *quantization, gb_quantization *packing) {
    const char *method = gb_config_string(quantization, "quant_method", "");
    if (strcmp(method, "compressed-tensors") == 0)
        read_compressed(quantization, packing);
    else if (strcmp(method, "fp8") == 0)
        read_fp8(quantization, packing);
    else if (strcmp(method, "gptq") == 0)
        gb_quantization_read_gptq(quantization, packing);
    else if (strcmp(method, "awq") == 0)
        gb_quantization_read_awq(quantization, packing);
    else if (strcmp(method, "auto-round") == 0 || strcmp(method, "intel/auto-round") == 0)
        gb_quantization_read_auto_round(quantization, packing);
    else if (strcmp(method, "modelopt") == 0)
        gb_quantization_read_modelopt(quantization, packing);
    else if (strcmp(method, "torchao") == 0)
        packing->method = GB_QUANTIZATION_TORCHAO;
    else if (strcmp(method, "mxfp4") == 0)
        packing->method = GB_QUANTIZATION_MXFP4;
    else if (method[0] != '\0')
        gb_config_fail(
            quantization, "quant_method", GUMBEL_ERROR_UNSUPPORTED,
            "\"%s\" is not supported in this version; expected \"auto-round\", \"awq\", "
            "\"compressed-tensors\" (pack-quantized, float-quantized or nvfp4-pack-quantized), \"fp8\", "
            "\"gptq\", \"modelopt\" (FP8 or NVFP4), \"mxfp4\" or \"torchao\", or MLX's form without a method",
            method);
    else if (gb_config_has(quantization, "bits") && gb_config_has(quantization, "group_size"))
        read_mlx(quantization, packing);
    else
        gb_config_fail(quantization, "quant_method", GUMBEL_ERROR_FORMAT, "is missing");
}

gumbel_status gb_quantization_read(const gb_config *root, gb_quantization *packing, gumbel_error *error) {
    *packing = (gb_quantization){.method = GB_QUANTIZATION_NONE};
    const gb_config text = gb_config_has(root, "text_config") ? gb_config_child(root, "text_config") : *root;
    const gb_config *const places[] = {root, &text};
    for (size_t i = 0; i < 2; i++) { /* mlx-lm writes both keys, and reads this one first */
        if (!gb_config_has(places[i], "quantization"))
            continue;
        gb_config quantization = gb_config_child(places[i], "quantization");
        read_mlx(&quantization, packing);
        return gb_config_status(root->file, error);
    }
    for (size_t i = 0; i < 2; i++) {
        if (!gb_config_has(places[i], "quantization_config"))
            continue;
        gb_config quantization = gb_config_child(places[i], "quantization_config");
        read_method(&quantization, packing);
        return gb_config_status(root->file, error);
    }
    return gb_config_status(root->file, error);
}

bool gb_quantization_leaves(const gb_quantization *packing, const char *component) {
    static const char *const names[] = {"input_scale",
                                        "input_global_scale",
                                        "activation_scale",
                                        "output_scale",
                                        "output_global_scale",
                                        "gate_up_proj_activation_scale",
                                        "q_scale",
                                        "k_scale",
                                        "kv_scale",
                                        "v_scale",
                                        "down_proj_activation_scale"};
    for (size_t i = 0; packing->leaves_input_scales && i < sizeof names / sizeof *names; i++)
        if (strcmp(component, names[i]) == 0)
            return true;
    return false;
}
