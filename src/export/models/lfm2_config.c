/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/lfm2_config.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_WIDTH = 1 << 20, MAX_HEADS = 1 << 12 };
static const int64_t MAX_VOCABULARY = (1 << 23) - 1; /* the sampler's limit */

static bool has_experts(const gb_config *root) {
    return strcmp(gb_config_string(root, "model_type", ""), "lfm2_moe") == 0;
}

/* ---- Sizes --------------------------------------------------------------------------------------------- */

static void read_heads(const gb_config *root, gb_lfm2_config *config) {
    config->heads = gb_config_integer(root, "num_attention_heads", 32, 1, MAX_HEADS);
    config->kv_heads = gb_config_optional_integer(root, "num_key_value_heads", 8, 1, MAX_HEADS);
    config->head_dim = config->hidden_size / config->heads;
    if (config->heads % config->kv_heads != 0)
        gb_config_fail(root, "num_key_value_heads", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected a divisor of the %" PRId64 " of num_attention_heads",
                       config->kv_heads, config->heads);
    if (config->hidden_size % config->heads != 0 || config->head_dim % 2 != 0)
        gb_config_fail(root, "num_attention_heads", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 " heads, expected as many as have an even part of the %" PRId64
                       " of hidden_size",
                       config->heads, config->hidden_size);
}

static void read_sizes(const gb_config *root, gb_lfm2_config *config) {
    config->vocab_size = gb_config_integer(root, "vocab_size", 65536, 1, MAX_VOCABULARY);
    config->hidden_size =
        gb_config_integer(root, "hidden_size", has_experts(root) ? 2048 : 2560, 1, MAX_WIDTH);
    config->max_positions = gb_config_integer(root, "max_position_embeddings", 128000, 1, INT32_MAX);
    config->norm_eps = gb_config_number(root, "norm_eps", 1e-5, 0, 1);
    config->conv_width = gb_config_integer(root, "conv_L_cache", 3, 2, GB_MAX_CONV_WIDTH);
    config->layer_count = gb_config_integer(root, "num_hidden_layers", 32, 1, GB_LFM2_LAYERS);
    config->has_tied_head =
        gb_config_bool(root, "tie_embedding", gb_config_bool(root, "tie_word_embeddings", true));
    read_heads(root, config);
}

/* Two thirds of the width, times a factor, rounded up to whole multiples. */
static int64_t adjusted(const gb_config *root, int64_t width) {
    const int64_t multiple = gb_config_integer(root, "block_multiple_of", 256, 1, MAX_WIDTH);
    const double factor = gb_config_number(root, "block_ffn_dim_multiplier", 1, 1e-6, 1e3);
    const int64_t scaled = (int64_t)(factor * (double)(2 * width / 3));
    return (scaled + multiple - 1) / multiple * multiple;
}

static void read_mlp(const gb_config *root, gb_lfm2_config *config) {
    const int64_t fallback = has_experts(root) ? 7168 : 12288;
    const int64_t width = gb_config_integer(root, "intermediate_size", fallback, 1, MAX_WIDTH);
    config->intermediate_size = gb_config_optional_integer(root, "block_ff_dim", width, 1, MAX_WIDTH);
    if (!has_experts(root) && gb_config_bool(root, "block_auto_adjust_ff_dim", true))
        config->intermediate_size = adjusted(root, config->intermediate_size);
    if (config->intermediate_size < 1 || config->intermediate_size > MAX_WIDTH)
        gb_config_fail(root, "block_ffn_dim_multiplier", GUMBEL_ERROR_FORMAT,
                       "makes MLPs %" PRId64 " wide, expected 1 to %d", config->intermediate_size, MAX_WIDTH);
}

static void read_experts(const gb_config *root, gb_lfm2_config *config) {
    config->dense_layers = config->layer_count;
    if (!has_experts(root))
        return;
    gb_sigmoid_router *router = &config->router;
    router->count = gb_config_integer(root, "num_experts", 32, 1, GB_MAX_EXPERTS);
    router->choices = gb_config_integer(root, "num_experts_per_tok", 4, 1, GB_MAX_EXPERTS);
    router->is_normalized = gb_config_bool(root, "norm_topk_prob", true);
    router->scale = gb_config_number(root, "routed_scaling_factor", 1, 0, 1e6);
    router->epsilon = 1e-6;
    router->correction = "expert_bias";
    config->experts = (gb_experts){.count = router->count,
                                   .choices = router->choices,
                                   .activation = GB_OP_SILU,
                                   .mlx_stack = "switch_mlp."};
    config->experts.inner = gb_config_integer(root, "moe_intermediate_size", 1792, 1, MAX_WIDTH);
    config->dense_layers = gb_config_integer(root, "num_dense_layers", 2, 0, GB_LFM2_LAYERS);
    if (router->choices > router->count)
        gb_config_fail(root, "num_experts_per_tok", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected at most the %" PRId64 " of num_experts", router->choices,
                       router->count);
}

/* ---- Layers -------------------------------------------------------------------------------------------- */

static bool is_attention(const gb_config *root, size_t index) {
    const char *name = gb_config_list_string(root, "layer_types", index);
    if (strcmp(name, "full_attention") != 0 && strcmp(name, "conv") != 0)
        gb_config_fail(root, "layer_types", GUMBEL_ERROR_UNSUPPORTED,
                       "layer %zu is \"%s\", expected \"full_attention\" or \"conv\"", index, name);
    return name[0] == 'f';
}

static void read_listed(const gb_config *root, gb_lfm2_config *config) {
    const size_t listed = gb_config_list_size(root, "layer_types");
    if (listed != (size_t)config->layer_count)
        gb_config_fail(root, "layer_types", GUMBEL_ERROR_FORMAT,
                       "%zu layers, expected the %" PRId64 " of num_hidden_layers", listed,
                       config->layer_count);
    for (size_t i = 0; i < listed && i < (size_t)config->layer_count; i++)
        config->attends[i] = is_attention(root, i);
}

/* By their numbers, or all of them. */
static void read_layers(const gb_config *root, gb_lfm2_config *config) {
    int64_t indices[GB_LFM2_LAYERS];
    if (gb_config_list_size(root, "layer_types") > 0) {
        read_listed(root, config);
        return;
    }
    const bool is_given = gb_config_has(root, "full_attn_idxs") && !gb_config_is_null(root, "full_attn_idxs");
    const size_t count = gb_config_integers(root, "full_attn_idxs", 0, config->layer_count - 1, indices,
                                            (size_t)config->layer_count);
    for (int64_t i = 0; i < config->layer_count; i++)
        config->attends[i] = !is_given;
    for (size_t i = 0; i < count && i < (size_t)config->layer_count; i++)
        config->attends[indices[i]] = true;
}

static void refuse_unsupported(const gb_config *root) {
    if (gb_config_bool(root, "conv_bias", false))
        gb_config_fail(root, "conv_bias", GUMBEL_ERROR_UNSUPPORTED,
                       "is not supported in this version; expected false");
    if (has_experts(root) && !gb_config_bool(root, "use_expert_bias", true))
        gb_config_fail(root, "use_expert_bias", GUMBEL_ERROR_UNSUPPORTED,
                       "routers without it are not supported in this version; expected true");
}

gumbel_status gb_lfm2_config_read(const gb_config *root, gb_lfm2_config *config, gumbel_error *error) {
    *config = (gb_lfm2_config){0};
    read_sizes(root, config);
    read_mlp(root, config);
    read_experts(root, config);
    refuse_unsupported(root);
    GB_TRY(gb_config_status(root->file, error));
    read_layers(root, config);
    gb_rope_config_read(root, 1e6, config->head_dim, config->max_positions, &config->rope);
    return gb_config_status(root->file, error);
}

void gb_lfm2_config_free(gb_lfm2_config *config) {
    gb_rope_config_free(&config->rope);
}
