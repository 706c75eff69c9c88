/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/granite_hybrid_config.h"
#include "export/models/step_limit.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_WIDTH = 1 << 20, MAX_HEADS = 1 << 12, MAX_HEAD_DIM = 1 << 12, MAX_EXPANSION = 64 };

/* ---- Experts ------------------------------------------------------------------------------------------- */

void gb_granite_experts_read(const gb_config *text, gb_dense_config *config) {
    const int64_t count = gb_config_integer(text, "num_local_experts", 8, 0, GB_MAX_EXPERTS);
    if (count == 0)
        return;
    config->experts = (gb_experts){
        .count = count,
        .choices = gb_config_integer(text, "num_experts_per_tok", 2, 1, GB_MAX_EXPERTS),
        .inner = gb_config_integer(text, "intermediate_size", 11008, 1, MAX_WIDTH),
        .activation = GB_OP_SILU,
        .mlx_stack = "switch_mlp.",
        .gate_up_tensor = "input_linear.weight",
        .down_tensor = "output_linear.weight",
        .router = "router.layer.",
    };
}

/* ---- Mamba --------------------------------------------------------------------------------------------- */

/* mlx-lm does not read mamba_expand, transformers wants both to say the same. */
static void read_mamba_heads(const gb_config *text, int64_t hidden, gb_mamba *mamba) {
    mamba->heads = gb_config_integer(text, "mamba_n_heads", 128, 1, MAX_HEADS);
    const int64_t inner = hidden * gb_config_integer(text, "mamba_expand", 2, 1, MAX_EXPANSION);
    const int64_t usual = inner % mamba->heads == 0 ? inner / mamba->heads : 1;
    mamba->head_dim = gb_config_integer(text, "mamba_d_head", usual, 1, MAX_HEAD_DIM);
    if (mamba->heads * mamba->head_dim != inner)
        gb_config_fail(text, "mamba_d_head", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 " of each of %" PRId64 " heads, expected the %" PRId64
                       " of mamba_expand * hidden_size in all",
                       mamba->head_dim, mamba->heads, inner);
}

/* Norms are of each group's values by themselves, as transformers and llama.cpp have them; mlx-lm has one of
 * all. */
static void read_mamba(const gb_config *text, gb_dense_config *config) {
    gb_mamba *mamba = &config->mamba;
    read_mamba_heads(text, config->hidden_size, mamba);
    mamba->groups = gb_config_integer(text, "mamba_n_groups", 1, 1, MAX_HEADS);
    mamba->state_size = gb_config_integer(text, "mamba_d_state", 256, 1, MAX_HEAD_DIM);
    mamba->conv_width = gb_config_integer(text, "mamba_d_conv", 4, 2, GB_MAX_CONV_WIDTH);
    mamba->has_conv_bias = gb_config_bool(text, "mamba_conv_bias", true);
    mamba->epsilon = config->rms_norm_eps;
    if (mamba->heads % mamba->groups != 0)
        gb_config_fail(text, "mamba_n_groups", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected a divisor of the %" PRId64 " of mamba_n_heads", mamba->groups,
                       mamba->heads);
    if (gb_config_bool(text, "mamba_proj_bias", false))
        gb_config_fail(text, "mamba_proj_bias", GUMBEL_ERROR_UNSUPPORTED,
                       "is not supported in this version; expected false");
    gb_refuse_clamped_steps(text);
}

/* ---- Layers -------------------------------------------------------------------------------------------- */

static bool read_is_mamba(const gb_config *text, const char *key, size_t index) {
    const char *name = gb_config_list_string(text, key, index);
    const bool is_mamba = strcmp(name, "mamba") == 0 || strcmp(name, "linear_attention") == 0;
    if (!is_mamba && strcmp(name, "attention") != 0 && strcmp(name, "full_attention") != 0)
        gb_config_fail(text, key, GUMBEL_ERROR_UNSUPPORTED,
                       "layer %zu is \"%s\", expected \"mamba\" or \"attention\"", index, name);
    return is_mamba;
}

/* transformers reads a list of both names, mlx-lm layer_types alone. */
static const char *find_list(const gb_config *text) {
    static const char KEY[] = "layer_types", OTHER[] = "layers_block_type";
    if (!gb_config_has(text, OTHER))
        return KEY;
    if (gb_config_has(text, KEY))
        gb_config_fail(text, OTHER, GUMBEL_ERROR_UNSUPPORTED, "stands beside %s, expected one of them", KEY);
    return OTHER;
}

/* Without a list all are Mamba layers. */
static void read_kinds(const gb_config *text, gb_dense_config *config) {
    const char *key = find_list(text);
    const bool is_listed = gb_config_has(text, key);
    const size_t listed = gb_config_list_size(text, key), layers = (size_t)config->layer_count;
    if (is_listed && listed != layers) {
        gb_config_fail(text, key, GUMBEL_ERROR_FORMAT, "%zu layers, expected the %zu of num_hidden_layers",
                       listed, layers);
        return;
    }
    for (size_t i = 0; i < layers; i++) {
        gb_dense_layer *layer = &config->layers[i];
        layer->is_mamba = !is_listed || read_is_mamba(text, key, i);
        layer->has_rope = layer->has_rope && !layer->is_mamba;
    }
}

void gb_granite_layers_read(const gb_config *text, gb_dense_config *config) {
    const char *norm = gb_config_string(text, "normalization_function", "rmsnorm");
    if (strcmp(norm, "rmsnorm") != 0)
        gb_config_fail(text, "normalization_function", GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\" is not supported in this version; expected \"rmsnorm\"", norm);
    read_kinds(text, config);
    for (int64_t i = 0; i < config->layer_count; i++)
        if (config->layers[i].is_mamba && config->mamba.heads == 0)
            read_mamba(text, config);
}
