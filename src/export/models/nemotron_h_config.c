/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/nemotron_h_config.h"
#include "export/models/step_limit.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_WIDTH = 1 << 20, MAX_HEADS = 1 << 12, MAX_HEAD_DIM = 1 << 12 };
static const int64_t MAX_VOCABULARY = (1 << 23) - 1; /* the sampler's limit */

/* ---- What is not supported ----------------------------------------------------------------------------- */

static void refuse_true(const gb_config *root, const char *key) {
    if (gb_config_bool(root, key, false))
        gb_config_fail(root, key, GUMBEL_ERROR_UNSUPPORTED,
                       "is not supported in this version; expected false");
}

static void expect_text(const gb_config *root, const char *key, const char *expected) {
    const char *found = gb_config_string(root, key, expected);
    if (strcmp(found, expected) != 0)
        gb_config_fail(root, key, GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\" is not supported in this version; expected \"%s\"", found, expected);
}

static void expect_one(const gb_config *root, const char *key) {
    if (gb_config_integer(root, key, 1, 0, GB_MAX_EXPERTS) != 1)
        gb_config_fail(root, key, GUMBEL_ERROR_UNSUPPORTED,
                       "groups of experts are not supported in this version; expected 1");
}

static void refuse_unsupported(const gb_config *root) {
    static const char *const biases[] = {"attention_bias", "mlp_bias", "mamba_proj_bias", "use_bias"};
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++)
        refuse_true(root, biases[i]);
    expect_text(root, "mlp_hidden_act", "relu2");
    expect_text(root, "mamba_hidden_act", "silu");
    gb_refuse_clamped_steps(root);
    if (gb_config_optional_integer(root, "sliding_window", 0, 0, INT32_MAX) > 0)
        gb_config_fail(root, "sliding_window", GUMBEL_ERROR_UNSUPPORTED,
                       "is not supported in this version; expected null");
}

/* ---- Sizes --------------------------------------------------------------------------------------------- */

static void read_sizes(const gb_config *root, gb_nemotron_h_config *config) {
    config->vocab_size = gb_config_integer(root, "vocab_size", 131072, 1, MAX_VOCABULARY);
    config->hidden_size = gb_config_integer(root, "hidden_size", 4096, 1, MAX_WIDTH);
    config->intermediate_size = gb_config_integer(root, "intermediate_size", 21504, 1, MAX_WIDTH);
    config->max_positions = gb_config_integer(root, "max_position_embeddings", 4096, 1, INT32_MAX);
    config->epsilon = gb_config_number(root, "layer_norm_epsilon", 1e-5, 0, 1);
    config->heads = gb_config_integer(root, "num_attention_heads", 32, 1, MAX_HEADS);
    config->kv_heads = gb_config_integer(root, "num_key_value_heads", 8, 1, MAX_HEADS);
    config->head_dim = gb_config_integer(root, "attention_head_dim", 128, 1, MAX_HEAD_DIM);
    config->head_dim = gb_config_optional_integer(root, "head_dim", config->head_dim, 1, MAX_HEAD_DIM);
    config->has_tied_head = gb_config_bool(root, "tie_word_embeddings", false);
    if (config->heads % config->kv_heads != 0)
        gb_config_fail(root, "num_key_value_heads", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected a divisor of the %" PRId64 " of num_attention_heads",
                       config->kv_heads, config->heads);
}

static void read_mamba(const gb_config *root, gb_nemotron_h_config *config) {
    gb_mamba *mamba = &config->mamba;
    mamba->heads = gb_config_integer(root, "mamba_num_heads", 128, 1, MAX_HEADS);
    mamba->head_dim = gb_config_integer(root, "mamba_head_dim", 64, 1, MAX_HEAD_DIM);
    mamba->groups = gb_config_integer(root, "n_groups", 8, 1, MAX_HEADS);
    mamba->state_size = gb_config_integer(root, "ssm_state_size", 128, 1, MAX_HEAD_DIM);
    mamba->conv_width = gb_config_integer(root, "conv_kernel", 4, 2, GB_MAX_CONV_WIDTH);
    mamba->has_conv_bias = gb_config_bool(root, "use_conv_bias", true);
    mamba->epsilon = config->epsilon;
    if (mamba->heads % mamba->groups != 0)
        gb_config_fail(root, "n_groups", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected a divisor of the %" PRId64 " of mamba_num_heads", mamba->groups,
                       mamba->heads);
}

static gb_sigmoid_router read_router(const gb_config *root) {
    gb_sigmoid_router router = {.epsilon = 1e-20, .correction = "gate.e_score_correction_bias"};
    router.count = gb_config_integer(root, "n_routed_experts", 8, 1, GB_MAX_EXPERTS);
    router.choices = gb_config_integer(root, "num_experts_per_tok", 2, 1, GB_MAX_EXPERTS);
    router.is_normalized = gb_config_bool(root, "norm_topk_prob", true);
    router.scale = gb_config_number(root, "routed_scaling_factor", 1, 0, 1e6);
    expect_one(root, "n_group");
    expect_one(root, "topk_group");
    if (router.choices > router.count)
        gb_config_fail(root, "num_experts_per_tok", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected at most the %" PRId64 " of n_routed_experts", router.choices,
                       router.count);
    return router;
}

static void read_experts(const gb_config *root, gb_nemotron_h_config *config) {
    gb_plain_experts *experts = &config->experts;
    experts->router = read_router(root);
    experts->inner = gb_config_integer(root, "moe_intermediate_size", 7688, 1, MAX_WIDTH);
    experts->latent = gb_config_optional_integer(root, "moe_latent_size", 0, 1, MAX_WIDTH);
    if (!gb_config_is_null(root, "n_shared_experts") &&
        gb_config_integer(root, "n_shared_experts", 1, 0, GB_MAX_EXPERTS) > 0)
        experts->shared_inner =
            gb_config_integer(root, "moe_shared_expert_intermediate_size", 7688, 1, MAX_WIDTH);
}

/* ---- Layers -------------------------------------------------------------------------------------------- */

/* A letter of the pattern, and the names that transformers has had for the kind. */
typedef struct kind_name {
    char letter;
    const char *name, *former;
} kind_name;

static const kind_name KINDS[GB_NEMOTRON_H_KINDS] = {
    [GB_NEMOTRON_H_MAMBA] = {'M', "linear_attention", "mamba"},
    [GB_NEMOTRON_H_ATTENTION] = {'*', "full_attention", "attention"},
    [GB_NEMOTRON_H_EXPERTS] = {'E', "moe", "moe"},
    [GB_NEMOTRON_H_MLP] = {'-', "mlp", "mlp"},
};

static gb_nemotron_h_kind kind_of_letter(const gb_config *root, const char *key, char letter) {
    for (int kind = 0; kind < GB_NEMOTRON_H_KINDS; kind++)
        if (letter == KINDS[kind].letter)
            return (gb_nemotron_h_kind)kind;
    gb_config_fail(root, key, GUMBEL_ERROR_UNSUPPORTED, "has the letter '%c', expected M, *, E or -", letter);
    return GB_NEMOTRON_H_MLP;
}

static gb_nemotron_h_kind kind_of_name(const gb_config *root, const char *key, size_t index) {
    const char *name = gb_config_list_string(root, key, index);
    for (int kind = 0; kind < GB_NEMOTRON_H_KINDS; kind++)
        if (strcmp(name, KINDS[kind].name) == 0 || strcmp(name, KINDS[kind].former) == 0)
            return (gb_nemotron_h_kind)kind;
    gb_config_fail(
        root, key, GUMBEL_ERROR_UNSUPPORTED,
        "layer %zu is \"%s\", expected \"linear_attention\", \"full_attention\", \"moe\" or \"mlp\"", index,
        name);
    return GB_NEMOTRON_H_MLP;
}

static void read_pattern(const gb_config *root, const char *key, gb_nemotron_h_config *config) {
    const char *pattern = gb_config_string(root, key, "");
    const size_t length = strlen(pattern);
    config->layer_count = (int64_t)length;
    for (size_t i = 0; i < length && i < GB_NEMOTRON_H_LAYERS; i++)
        config->layers[i] = kind_of_letter(root, key, pattern[i]);
}

static void read_list(const gb_config *root, const char *key, gb_nemotron_h_config *config) {
    const size_t length = gb_config_list_size(root, key);
    config->layer_count = (int64_t)length;
    for (size_t i = 0; i < length && i < GB_NEMOTRON_H_LAYERS; i++)
        config->layers[i] = kind_of_name(root, key, i);
}

/* num_hidden_layers says nothing that the layers do not say. */
static void read_layers(const gb_config *root, gb_nemotron_h_config *config) {
    const char *key = gb_config_has(root, "layers_block_type") ? "layers_block_type"
                      : gb_config_has(root, "layer_types")     ? "layer_types"
                                                               : "hybrid_override_pattern";
    if (key[0] == 'l')
        read_list(root, key, config);
    else
        read_pattern(root, key, config);
    if (config->layer_count < 1 || config->layer_count > GB_NEMOTRON_H_LAYERS)
        gb_config_fail(root, key, GUMBEL_ERROR_FORMAT, "%" PRId64 " layers, expected 1 to %d",
                       config->layer_count, GB_NEMOTRON_H_LAYERS);
}

gumbel_status gb_nemotron_h_config_read(const gb_config *root, gb_nemotron_h_config *config,
                                        gumbel_error *error) {
    *config = (gb_nemotron_h_config){0};
    read_sizes(root, config);
    read_mamba(root, config);
    read_experts(root, config);
    read_layers(root, config);
    refuse_unsupported(root);
    return gb_config_status(root->file, error);
}
