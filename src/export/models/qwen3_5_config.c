/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/qwen3_5_config.h"

#include "export/models/expert_layers.h"

#include "base/memory.h"
#include "export/models/rope_unread.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_LAYERS = 1024, MAX_WIDTH = 1 << 20, MAX_HEADS = 1 << 12, MAX_HEAD_DIM = 1 << 12 };
static const int64_t MAX_VOCABULARY = (1 << 23) - 1; /* the sampler's limit */

static const char *const KIND_NAMES[GB_QWEN3_5_KINDS] = {"linear_attention", "full_attention"};

/* ---- Families ------------------------------------------------------------------------------------------ */

/* Text-only model_type, and what transformers takes for absent keys. */
typedef struct family {
    const char *type;
    bool has_experts, is_next;
    int64_t vocab_size, hidden_size, intermediate_size, layers, kv_heads, experts, choices;
} family;

static const family DENSE = {"qwen3_5_text", false, false, 248320, 4096, 12288, 32, 4, 0, 0};
static const family MOE = {"qwen3_5_moe_text", true, false, 248320, 2048, 0, 40, 2, 256, 8};
static const family NEXT = {"qwen3_next", true, true, 151936, 2048, 5632, 48, 2, 512, 10};

/* ---- What is not supported ----------------------------------------------------------------------------- */

static void refuse_true(const gb_config *text, const char *key) {
    if (gb_config_bool(text, key, false))
        gb_config_fail(text, key, GUMBEL_ERROR_UNSUPPORTED,
                       "is not supported in this version; expected false");
}

/* Keys of relatives of the model, which transformers does not read here: they must not change anything. */
static void refuse_relatives(const gb_config *text, const gb_qwen3_5_config *config) {
    if (!gb_config_bool(text, "attn_output_gate", true))
        gb_config_fail(text, "attn_output_gate", GUMBEL_ERROR_UNSUPPORTED,
                       "queries without a gate are not supported in this version; expected true");
    if (config->has_dense_layers)
        return;
    if (gb_config_list_size(text, "mlp_only_layers") > 0)
        gb_config_fail(text, "mlp_only_layers", GUMBEL_ERROR_UNSUPPORTED,
                       "layers without experts are not supported in this version; expected []");
    if (gb_config_integer(text, "decoder_sparse_step", 1, 0, MAX_LAYERS) != 1)
        gb_config_fail(text, "decoder_sparse_step", GUMBEL_ERROR_UNSUPPORTED,
                       "layers without experts are not supported in this version; expected 1");
    if (!gb_config_bool(text, "norm_topk_prob", true)) /* transformers would not obey it, mlx-lm would */
        gb_config_fail(text, "norm_topk_prob", GUMBEL_ERROR_UNSUPPORTED,
                       "weights that do not sum to 1 are not supported in this version; expected true");
    if (!config->has_experts && gb_config_integer(text, "num_experts", 0, 0, GB_MAX_EXPERTS) != 0)
        gb_config_fail(text, "num_experts", GUMBEL_ERROR_UNSUPPORTED,
                       "experts in a dense model are not supported in this version; expected 0");
}

static void refuse_unsupported(const gb_config *text, const gb_qwen3_5_config *config) {
    refuse_true(text, "attention_bias");
    const char *activation = gb_config_string(text, "hidden_act", "silu");
    if (strcmp(activation, "silu") != 0)
        gb_config_fail(text, "hidden_act", GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\" is not supported in this version; expected \"silu\"", activation);
    refuse_relatives(text, config);
}

/* ---- Sizes --------------------------------------------------------------------------------------------- */

static void read_sizes(const gb_config *text, const family *of, gb_qwen3_5_config *config) {
    config->vocab_size = gb_config_integer(text, "vocab_size", of->vocab_size, 1, MAX_VOCABULARY);
    config->hidden_size = gb_config_integer(text, "hidden_size", of->hidden_size, 1, MAX_WIDTH);
    config->max_positions = gb_config_integer(text, "max_position_embeddings", 32768, 1, INT32_MAX);
    config->rms_norm_eps = gb_config_number(text, "rms_norm_eps", 1e-6, 0, 1);
    config->layer_count = gb_config_integer(text, "num_hidden_layers", of->layers, 1, MAX_LAYERS);
    config->heads = gb_config_integer(text, "num_attention_heads", 16, 1, MAX_HEADS);
    config->kv_heads = gb_config_integer(text, "num_key_value_heads", of->kv_heads, 1, MAX_HEADS);
    config->head_dim = gb_config_integer(text, "head_dim", 256, 1, MAX_HEAD_DIM);
    if (config->heads % config->kv_heads != 0)
        gb_config_fail(text, "num_key_value_heads", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected a divisor of the %" PRId64 " of num_attention_heads",
                       config->kv_heads, config->heads);
}

static void read_delta_net(const gb_config *text, gb_qwen3_5_config *config) {
    gb_delta_net *net = &config->delta_net;
    net->key_heads = gb_config_integer(text, "linear_num_key_heads", 16, 1, MAX_HEADS);
    net->value_heads = gb_config_integer(text, "linear_num_value_heads", 32, 1, MAX_HEADS);
    net->key_dim = gb_config_integer(text, "linear_key_head_dim", 128, 1, MAX_HEAD_DIM);
    net->value_dim = gb_config_integer(text, "linear_value_head_dim", 128, 1, MAX_HEAD_DIM);
    net->conv_width = gb_config_integer(text, "linear_conv_kernel_dim", 4, 2, GB_MAX_CONV_WIDTH);
    net->epsilon = config->rms_norm_eps;
    net->is_tiled = gb_config_bool(text, "linear_value_heads_tiled", false);
    if (net->value_heads % net->key_heads != 0)
        gb_config_fail(text, "linear_num_value_heads", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected a multiple of the %" PRId64 " of linear_num_key_heads",
                       net->value_heads, net->key_heads);
}

static void read_mlp(const gb_config *text, const family *of, gb_qwen3_5_config *config) {
    gb_experts *experts = &config->experts;
    if (of->intermediate_size > 0)
        config->intermediate_size =
            gb_config_integer(text, "intermediate_size", of->intermediate_size, 1, MAX_WIDTH);
    if (!config->has_experts)
        return;
    experts->activation = GB_OP_SILU;
    experts->mlx_stack = "switch_mlp.";
    experts->count = gb_config_integer(text, "num_experts", of->experts, 1, GB_MAX_EXPERTS);
    experts->choices = gb_config_integer(text, "num_experts_per_tok", of->choices, 1, GB_MAX_EXPERTS);
    experts->inner = gb_config_integer(text, "moe_intermediate_size", 512, 1, MAX_WIDTH);
    experts->shared_inner = gb_config_integer(text, "shared_expert_intermediate_size", 512, 1, MAX_WIDTH);
    experts->has_plain_weights = !gb_config_bool(text, "norm_topk_prob", true);
    if (experts->choices > experts->count)
        gb_config_fail(text, "num_experts_per_tok", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected at most the %" PRId64 " of num_experts", experts->choices,
                       experts->count);
}

/* ---- Layers and rotary --------------------------------------------------------------------------------- */

static gb_qwen3_5_kind read_kind(const gb_config *text, size_t index) {
    const char *name = gb_config_list_string(text, "layer_types", index);
    for (int kind = 0; kind < GB_QWEN3_5_KINDS; kind++)
        if (strcmp(name, KIND_NAMES[kind]) == 0)
            return (gb_qwen3_5_kind)kind;
    gb_config_fail(text, "layer_types", GUMBEL_ERROR_UNSUPPORTED,
                   "layer %zu is \"%s\", expected \"linear_attention\" or \"full_attention\"", index, name);
    return GB_QWEN3_5_FULL;
}

/* As listed, or the last of every interval full. */
static void read_layers(const gb_config *text, gb_qwen3_5_config *config) {
    bool is_listed = gb_config_has(text, "layer_types");
    size_t listed = gb_config_list_size(text, "layer_types");
    int64_t interval = gb_config_integer(text, "full_attention_interval", 4, 1, MAX_LAYERS);
    if (is_listed && listed != (size_t)config->layer_count) {
        gb_config_fail(text, "layer_types", GUMBEL_ERROR_FORMAT,
                       "%zu layers, expected the %" PRId64 " of num_hidden_layers", listed,
                       config->layer_count);
        return;
    }
    for (int64_t i = 0; i < config->layer_count; i++) {
        gb_qwen3_5_kind kind = (i + 1) % interval == 0 ? GB_QWEN3_5_FULL : GB_QWEN3_5_LINEAR;
        config->layers[i].kind = is_listed ? read_kind(text, (size_t)i) : kind;
    }
}

static void choose_mlps(const gb_config *text, gb_qwen3_5_config *config) {
    for (int64_t i = 0; i < config->layer_count; i++)
        config->layers[i].has_experts =
            config->has_experts && (!config->has_dense_layers || gb_layer_has_experts(text, i));
}

/* The sections of multimodal rotary (mrope_section) are for images; all of a text's positions are equal. */
static void read_rope(const gb_config *text, gb_qwen3_5_config *config) {
    const bool is_scaling = gb_config_has(text, "rope_scaling");
    gb_config rope = gb_config_child(text, is_scaling ? "rope_scaling" : "rope_parameters");
    if (is_scaling)
        gb_refuse_rope_beside(text, "rope_parameters", "rope_scaling");
    const char *type = gb_config_string(&rope, "rope_type", gb_config_string(&rope, "type", "default"));
    if (strcmp(type, "default") != 0)
        gb_config_fail(&rope, "rope_type", GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\" is not supported in this version; expected \"default\"", type);
    if (gb_config_has(&rope, KIND_NAMES[GB_QWEN3_5_FULL]))
        gb_config_fail(&rope, KIND_NAMES[GB_QWEN3_5_FULL], GUMBEL_ERROR_UNSUPPORTED,
                       "parameters for one kind of layer are not supported in this version");
    double theta = gb_config_number(text, "rope_theta", 1e4, 1, 1e12);
    double proportion = gb_config_number(text, "partial_rotary_factor", 0.25, 0, 1);
    config->rope_theta = gb_config_number(&rope, "rope_theta", theta, 1, 1e12);
    proportion = gb_config_number(&rope, "partial_rotary_factor", proportion, 0, 1);
    config->rotary_dim = (int64_t)((double)config->head_dim * proportion);
    if (config->rotary_dim % 2 != 0)
        gb_config_fail(text, "partial_rotary_factor", GUMBEL_ERROR_UNSUPPORTED,
                       "%" PRId64 " of a head's %" PRId64 " dimensions turn, expected an even number",
                       config->rotary_dim, config->head_dim);
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

static const family *find_family(const char *type) {
    return strcmp(type, NEXT.type) == 0 ? &NEXT : strstr(type, "_moe") ? &MOE : &DENSE;
}

/* The text model's object. model_type says which of the forms the file has. */
static gb_config find_text(const gb_config *root, const family *of, gb_qwen3_5_config *config) {
    const char *type = gb_config_string(root, "model_type", ""), *expected = of->type;
    config->has_experts = of->has_experts;
    config->has_dense_layers = config->delta_net.is_interleaved = of->is_next;
    config->is_wrapped = !of->is_next && strstr(type, "_text") == NULL;
    gb_config text = config->is_wrapped ? gb_config_child(root, "text_config") : *root;
    if (!text.object)
        gb_config_fail(root, "text_config", GUMBEL_ERROR_FORMAT, "is missing");
    type = gb_config_string(&text, "model_type", expected);
    if (strcmp(type, expected) != 0)
        gb_config_fail(&text, "model_type", GUMBEL_ERROR_UNSUPPORTED, "\"%s\", expected \"%s\"", type,
                       expected);
    return text;
}

gumbel_status gb_qwen3_5_config_read(const gb_config *root, gb_qwen3_5_config *config, gumbel_error *error) {
    *config = (gb_qwen3_5_config){0};
    const family *of = find_family(gb_config_string(root, "model_type", ""));
    gb_config text = find_text(root, of, config);
    read_sizes(&text, of, config);
    read_delta_net(&text, config);
    read_mlp(&text, of, config);
    refuse_unsupported(&text, config);
    config->layers = gb_allocate((size_t)config->layer_count, sizeof *config->layers);
    if (!config->layers)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %" PRId64 " layers", config->layer_count);
    read_layers(&text, config);
    choose_mlps(&text, config);
    read_rope(&text, config);
    config->norms_hold_one = gb_config_bool(&text, "norm_weights_hold_one", false);
    config->has_tied_head =
        gb_config_bool(root, "tie_word_embeddings", gb_config_bool(&text, "tie_word_embeddings", false));
    return gb_config_status(root->file, error);
}

gumbel_status gb_qwen3_5_check_head(const gb_config *root, gumbel_error *error) {
    gb_config text = gb_config_has(root, "text_config") ? gb_config_child(root, "text_config") : *root;
    const int64_t layers = gb_config_integer(&text, "mtp_num_hidden_layers", 1, 0, MAX_LAYERS);
    if (layers != 1)
        gb_config_fail(&text, "mtp_num_hidden_layers", GUMBEL_ERROR_UNSUPPORTED,
                       "a draft head of %" PRId64 " layers is not supported in this version; expected 1",
                       layers);
    refuse_true(&text, "mtp_use_dedicated_embeddings");
    return gb_config_status(root->file, error);
}

void gb_qwen3_5_config_free(gb_qwen3_5_config *config) {
    gb_free(config->layers);
    *config = (gb_qwen3_5_config){0};
}
