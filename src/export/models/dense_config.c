/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/dense_config.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_LAYERS = 1024, MAX_WIDTH = 1 << 20, MAX_HEADS = 1 << 12, MAX_HEAD_DIM = 1 << 12, PATTERN = 6 };
static const int64_t MAX_VOCABULARY = (1 << 23) - 1; /* the sampler's limit */

/* How a family says which layers have windows. */
typedef enum window_rule { NO_WINDOWS, WINDOWS_IN_ALL, WINDOWS_FROM_A_LAYER, WINDOWS_BY_PATTERN } window_rule;

/* transformers' defaults of a model_type, and what all of its models have. */
typedef struct dense_family {
    const char *text, *wrapper; /* model_type of the text model, and around it; NULL: none */
    int64_t vocab_size, hidden_size, intermediate_size, layers, heads;
    int64_t kv_heads; /* 0: as heads */
    int64_t head_dim; /* 0: hidden_size / heads */
    int64_t max_positions;
    int64_t sliding_window; /* 0: not unless it is given */
    int64_t query_scalar;   /* query_pre_attn_scalar; 0: the head's size */
    window_rule windows;
    bool has_experts, has_tied_head, has_logit_cap;
    bool scales_embeddings; /* by the root of their size */
    gb_dense_traits traits;
} dense_family;

static const dense_family FAMILIES[] = {
    {.text = "llama",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 11008,
     .layers = 32,
     .heads = 32,
     .max_positions = 2048},
    {.text = "mistral",
     .wrapper = "mistral3",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 14336,
     .layers = 32,
     .heads = 32,
     .kv_heads = 8,
     .max_positions = 131072,
     .sliding_window = 4096,
     .windows = WINDOWS_IN_ALL},
    {.text = "qwen2",
     .vocab_size = 151936,
     .hidden_size = 4096,
     .intermediate_size = 22016,
     .layers = 32,
     .heads = 32,
     .kv_heads = 32,
     .max_positions = 32768,
     .sliding_window = 4096,
     .windows = WINDOWS_FROM_A_LAYER,
     .traits = {.has_head_biases = true}},
    {.text = "qwen3",
     .vocab_size = 151936,
     .hidden_size = 4096,
     .intermediate_size = 22016,
     .layers = 32,
     .heads = 32,
     .kv_heads = 32,
     .head_dim = 128,
     .max_positions = 32768,
     .sliding_window = 4096,
     .windows = WINDOWS_FROM_A_LAYER,
     .traits = {.has_head_norms = true}},
    {.text = "qwen3_moe",
     .vocab_size = 151936,
     .hidden_size = 2048,
     .intermediate_size = 6144,
     .layers = 24,
     .heads = 32,
     .kv_heads = 4,
     .max_positions = 32768,
     .sliding_window = 4096,
     .windows = WINDOWS_FROM_A_LAYER,
     .has_experts = true,
     .traits = {.has_head_norms = true}},
    {.text = "gemma3_text",
     .wrapper = "gemma3",
     .vocab_size = 262208,
     .hidden_size = 2304,
     .intermediate_size = 9216,
     .layers = 26,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .max_positions = 131072,
     .sliding_window = 4096,
     .query_scalar = 256,
     .windows = WINDOWS_BY_PATTERN,
     .has_tied_head = true,
     .has_logit_cap = true,
     .scales_embeddings = true,
     .traits = {.has_head_norms = true,
                .has_output_norms = true,
                .has_norms_from_one = true,
                .has_geglu = true,
                .has_sliding_rope = true}},
};
enum { FAMILY_COUNT = sizeof FAMILIES / sizeof FAMILIES[0] };

/* As gb_config_integer; null counts as absent. */
static int64_t integer(const gb_config *text, const char *key, int64_t fallback, int64_t high) {
    return gb_config_has(text, key) ? gb_config_integer(text, key, fallback, 1, high) : fallback;
}

/* ---- What is not supported ----------------------------------------------------------------------------- */

static void refuse_unsupported(const gb_config *text, const dense_family *family) {
    static const char *const keys[] = {"attention_bias", "mlp_bias", "rope_traditional",
                                       "use_bidirectional_attention"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (gb_config_has(text, keys[i]) && gb_config_bool(text, keys[i], false))
            gb_config_fail(text, keys[i], GUMBEL_ERROR_UNSUPPORTED,
                           "is not supported in this version; expected false");
    const bool is_gelu = family->traits.has_geglu;
    const char *key = is_gelu ? "hidden_activation" : "hidden_act",
               *expected = is_gelu ? "gelu_pytorch_tanh" : "silu",
               *activation = gb_config_string(text, key, expected);
    if (strcmp(activation, expected) != 0)
        gb_config_fail(text, key, GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\" is not supported in this version; expected \"%s\"", activation, expected);
    if (gb_config_has(text, "attn_logit_softcapping"))
        gb_config_fail(text, "attn_logit_softcapping", GUMBEL_ERROR_UNSUPPORTED,
                       "is not supported in this version; expected null");
}

/* ---- Sizes --------------------------------------------------------------------------------------------- */

static void read_heads(const gb_config *text, const dense_family *family, gb_dense_config *config) {
    config->heads = gb_config_integer(text, "num_attention_heads", family->heads, 1, MAX_HEADS);
    const bool is_default = family->kv_heads > 0 && !gb_config_is_null(text, "num_key_value_heads");
    config->kv_heads =
        integer(text, "num_key_value_heads", is_default ? family->kv_heads : config->heads, MAX_HEADS);
    const int64_t head_dim = family->head_dim > 0 ? family->head_dim : config->hidden_size / config->heads;
    config->head_dim = integer(text, "head_dim", head_dim, MAX_HEAD_DIM);
    if (config->heads % config->kv_heads != 0)
        gb_config_fail(text, "num_key_value_heads", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected a divisor of the %" PRId64 " of num_attention_heads",
                       config->kv_heads, config->heads);
    if (config->head_dim < 2 || config->head_dim % 2 != 0)
        gb_config_fail(text, "head_dim", GUMBEL_ERROR_FORMAT, "%" PRId64 ", expected an even number",
                       config->head_dim);
}

static void read_sizes(const gb_config *text, const dense_family *family, gb_dense_config *config) {
    config->vocab_size = gb_config_integer(text, "vocab_size", family->vocab_size, 1, MAX_VOCABULARY);
    config->hidden_size = gb_config_integer(text, "hidden_size", family->hidden_size, 1, MAX_WIDTH);
    config->intermediate_size =
        gb_config_integer(text, "intermediate_size", family->intermediate_size, 1, MAX_WIDTH);
    config->max_positions =
        gb_config_integer(text, "max_position_embeddings", family->max_positions, 1, INT32_MAX);
    config->rms_norm_eps = gb_config_number(text, "rms_norm_eps", 1e-6, 0, 1);
    config->layer_count = gb_config_integer(text, "num_hidden_layers", family->layers, 1, MAX_LAYERS);
    read_heads(text, family, config);
}

/* GGUF files have the 1 of norms in their weights, which config.json has no key for. */
static void read_traits(const gb_config *text, const dense_family *family, gb_dense_config *config) {
    config->traits = family->traits;
    if (gb_config_bool(text, "norm_weights_hold_one", false))
        config->traits.has_norms_from_one = false;
}

static void read_scales(const gb_config *text, const dense_family *family, gb_dense_config *config) {
    const double size = family->query_scalar > 0 ? gb_config_number(text, "query_pre_attn_scalar",
                                                                    (double)family->query_scalar, 1e-3, 1e6)
                                                 : (double)config->head_dim;
    config->attention_scale = 1 / sqrt(size);
    config->embedding_scale = family->scales_embeddings ? sqrt((double)config->hidden_size) : 1;
    if (family->has_logit_cap && gb_config_has(text, "final_logit_softcapping"))
        config->logit_cap = gb_config_number(text, "final_logit_softcapping", 0, 1e-3, 1e6);
}

static void read_rope(const gb_config *text, gb_dense_config *config) {
    static const gb_rope_kind full = {"full_attention", "rope_theta", 1e6, true},
                              sliding = {"sliding_attention", "rope_local_base_freq", 1e4, false};
    if (!config->traits.has_sliding_rope) {
        gb_rope_config_read(text, config->head_dim, config->max_positions, &config->rope);
        return;
    }
    gb_rope_config_read_kind(text, &full, config->head_dim, config->max_positions, &config->rope);
    gb_rope_config_read_kind(text, &sliding, config->head_dim, config->max_positions, &config->sliding_rope);
}

/* ---- Experts ------------------------------------------------------------------------------------------- */

/* Layers without experts are listed, or all but each last of every few. */
static void choose_expert_layers(const gb_config *text, gb_dense_config *config) {
    int64_t listed[MAX_LAYERS];
    const size_t count = gb_config_integers(text, "mlp_only_layers", 0, MAX_LAYERS - 1, listed, MAX_LAYERS);
    const int64_t step = gb_config_integer(text, "decoder_sparse_step", 1, 1, MAX_LAYERS);
    for (int64_t i = 0; i < config->layer_count; i++)
        config->layers[i].has_experts = (i + 1) % step == 0;
    for (size_t i = 0; i < count; i++)
        if (listed[i] < config->layer_count)
            config->layers[listed[i]].has_experts = false;
}

static void read_experts(const gb_config *text, gb_dense_config *config) {
    gb_experts *experts = &config->experts;
    const int64_t other = integer(text, "num_local_experts", 128, GB_MAX_EXPERTS);
    *experts = (gb_experts){
        .count = integer(text, "num_experts", other, GB_MAX_EXPERTS),
        .choices = gb_config_integer(text, "num_experts_per_tok", 8, 1, GB_MAX_EXPERTS),
        .inner = gb_config_integer(text, "moe_intermediate_size", 768, 1, MAX_WIDTH),
        .activation = GB_OP_SILU,
        .has_plain_weights = !gb_config_bool(text, "norm_topk_prob", false),
        .mlx_stack = "switch_mlp.",
    };
    if (experts->choices > experts->count)
        gb_config_fail(text, "num_experts_per_tok", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected at most the %" PRId64 " of num_experts", experts->choices,
                       experts->count);
    choose_expert_layers(text, config);
}

/* ---- Windows ------------------------------------------------------------------------------------------- */

static bool read_is_sliding(const gb_config *text, size_t index) {
    const char *name = gb_config_list_string(text, "layer_types", index);
    if (strcmp(name, "sliding_attention") != 0 && strcmp(name, "full_attention") != 0)
        gb_config_fail(text, "layer_types", GUMBEL_ERROR_UNSUPPORTED,
                       "layer %zu is \"%s\", expected \"sliding_attention\" or \"full_attention\"", index,
                       name);
    return name[0] == 's';
}

static void read_layer_types(const gb_config *text, gb_dense_config *config) {
    const size_t listed = gb_config_list_size(text, "layer_types");
    if (listed != (size_t)config->layer_count) {
        gb_config_fail(text, "layer_types", GUMBEL_ERROR_FORMAT,
                       "%zu layers, expected the %" PRId64 " of num_hidden_layers", listed,
                       config->layer_count);
        return;
    }
    for (size_t i = 0; i < listed; i++)
        config->layers[i].is_sliding = read_is_sliding(text, i);
}

/* Of Mistral all layers slide where there is a window. A list of layers is obeyed by mlx-lm alone. */
static void read_mistral_windows(const gb_config *text, const dense_family *family, gb_dense_config *config) {
    const int64_t fallback = gb_config_is_null(text, "sliding_window") ? 0 : family->sliding_window;
    config->sliding_window = integer(text, "sliding_window", fallback, INT32_MAX);
    const bool is_sliding = config->sliding_window > 0;
    if (gb_config_has(text, "layer_types"))
        read_layer_types(text, config);
    for (int64_t i = 0; i < config->layer_count; i++) {
        if (gb_config_has(text, "layer_types") && config->layers[i].is_sliding != is_sliding)
            gb_config_fail(text, "layer_types", GUMBEL_ERROR_UNSUPPORTED,
                           "layer %" PRId64 " is not as sliding_window says, where implementations differ",
                           i);
        config->layers[i].is_sliding = is_sliding;
    }
}

/* Qwen lists its layers, or those from max_window_layers on slide; both only where use_sliding_window. */
static void read_qwen_windows(const gb_config *text, const dense_family *family, gb_dense_config *config) {
    const bool uses = gb_config_bool(text, "use_sliding_window", false);
    if (uses && family->has_experts)
        gb_config_fail(text, "use_sliding_window", GUMBEL_ERROR_UNSUPPORTED,
                       "is not supported beside experts in this version; expected false");
    if (uses)
        config->sliding_window = integer(text, "sliding_window", family->sliding_window, INT32_MAX);
    const int64_t first = gb_config_integer(text, "max_window_layers", 28, 0, MAX_LAYERS);
    for (int64_t i = 0; i < config->layer_count; i++)
        config->layers[i].is_sliding = uses && i >= first;
    if (gb_config_has(text, "layer_types"))
        read_layer_types(text, config);
    for (int64_t i = 0; i < config->layer_count; i++)
        if (config->layers[i].is_sliding && !uses)
            gb_config_fail(text, "layer_types", GUMBEL_ERROR_UNSUPPORTED,
                           "layer %" PRId64 " slides without use_sliding_window, expected it to be true", i);
}

/* transformers has no windows in Llama, mlx-lm has: they must not ask for any. */
static void read_llama_windows(const gb_config *text, gb_dense_config *config) {
    if (gb_config_has(text, "layer_types"))
        read_layer_types(text, config);
    for (int64_t i = 0; i < config->layer_count; i++)
        if (config->layers[i].is_sliding)
            gb_config_fail(text, "layer_types", GUMBEL_ERROR_UNSUPPORTED,
                           "layer %" PRId64 " slides, expected \"full_attention\"", i);
}

/* Of Gemma 3 all but each last of a few slide, unless the layers are listed, which mlx-lm does not read. */
static void read_gemma_windows(const gb_config *text, const dense_family *family, gb_dense_config *config) {
    const int64_t pattern = integer(text, "sliding_window_pattern", PATTERN, MAX_LAYERS);
    config->sliding_window = integer(text, "sliding_window", family->sliding_window, INT32_MAX);
    for (int64_t i = 0; i < config->layer_count; i++)
        config->layers[i].is_sliding = (i + 1) % pattern != 0;
    if (gb_config_has(text, "layer_types"))
        read_layer_types(text, config);
}

static void read_windows(const gb_config *text, const dense_family *family, gb_dense_config *config) {
    switch (family->windows) {
    case NO_WINDOWS:
        read_llama_windows(text, config);
        break;
    case WINDOWS_IN_ALL:
        read_mistral_windows(text, family, config);
        break;
    case WINDOWS_FROM_A_LAYER:
        read_qwen_windows(text, family, config);
        break;
    case WINDOWS_BY_PATTERN:
        read_gemma_windows(text, family, config);
        break;
    }
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

/* The text model's object, and its family. */
static gb_config find_text(const gb_config *root, const dense_family **family, gb_dense_config *config) {
    const char *type = gb_config_string(root, "model_type", "");
    *family = &FAMILIES[0];
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        const bool is_wrapper = FAMILIES[i].wrapper && strcmp(type, FAMILIES[i].wrapper) == 0;
        if (!is_wrapper && strcmp(type, FAMILIES[i].text) != 0)
            continue;
        *family = &FAMILIES[i];
        config->is_wrapped = is_wrapper;
    }
    gb_config text = config->is_wrapped ? gb_config_child(root, "text_config") : *root;
    if (!text.object)
        gb_config_fail(root, "text_config", GUMBEL_ERROR_FORMAT, "is missing");
    type = gb_config_string(&text, "model_type", (*family)->text);
    if (strcmp(type, (*family)->text) != 0)
        gb_config_fail(&text, "model_type", GUMBEL_ERROR_UNSUPPORTED, "\"%s\", expected \"%s\"", type,
                       (*family)->text);
    return text;
}

gumbel_status gb_dense_config_read(const gb_config *root, gb_dense_config *config, gumbel_error *error) {
    const dense_family *family;
    *config = (gb_dense_config){0};
    gb_config text = find_text(root, &family, config);
    read_sizes(&text, family, config);
    read_traits(&text, family, config);
    read_scales(&text, family, config);
    refuse_unsupported(&text, family);
    config->layers = gb_allocate((size_t)config->layer_count, sizeof *config->layers);
    if (!config->layers)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %" PRId64 " layers", config->layer_count);
    if (family->has_experts)
        read_experts(&text, config);
    read_windows(&text, family, config);
    read_rope(&text, config);
    const bool is_tied = gb_config_bool(&text, "tie_word_embeddings", family->has_tied_head);
    config->has_tied_head = gb_config_bool(root, "tie_word_embeddings", is_tied);
    return gb_config_status(root->file, error);
}

void gb_dense_config_free(gb_dense_config *config) {
    gb_free(config->layers);
    gb_rope_config_free(&config->rope);
    gb_rope_config_free(&config->sliding_rope);
    *config = (gb_dense_config){0};
}
