/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/gemma4_config.h"

#include "base/memory.h"
#include "export/models/rope_unread.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LAYERS = 1024,
    MAX_WIDTH = 1 << 20,
    MAX_HEADS = 1 << 12,
    MAX_HEAD_DIM = 1 << 12,
    MAX_LAYER_INPUT = 1 << 12,
    LAYER_PATTERN = 6
};
static const int64_t MAX_VOCABULARY = (1 << 23) - 1; /* the sampler's limit */

const char *gb_gemma4_kind_name(gb_gemma4_kind kind) {
    return kind == GB_GEMMA4_FULL ? "full_attention" : "sliding_attention";
}

/* Refuses what would change the numbers and is not implemented. A default of transformers that asks for it
 * counts as asking. */
static void refuse_unsupported(const gb_config *text, const gb_gemma4_config *config) {
    if (config->is_unified && gb_config_bool(text, "enable_moe_block", false))
        gb_config_fail(text, "enable_moe_block", GUMBEL_ERROR_UNSUPPORTED,
                       "experts of this model_type are not supported in this version; expected false");
    if (gb_config_bool(text, "attention_bias", false))
        gb_config_fail(text, "attention_bias", GUMBEL_ERROR_UNSUPPORTED,
                       "biases are not supported in this version; expected false");
    const char *activation = gb_config_string(text, "hidden_activation", "gelu_pytorch_tanh");
    if (strcmp(activation, "gelu_pytorch_tanh") != 0)
        gb_config_fail(text, "hidden_activation", GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\" is not supported in this version; expected \"gelu_pytorch_tanh\"", activation);
    const char *direction = gb_config_string(text, "use_bidirectional_attention", "vision");
    if (strcmp(direction, "vision") != 0) /* which leaves text causal */
        gb_config_fail(text, "use_bidirectional_attention", GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\" is not supported in this version; expected null or \"vision\"", direction);
}

static void read_sizes(const gb_config *text, gb_gemma4_config *config) {
    config->vocab_size = gb_config_integer(text, "vocab_size", 262144, 1, MAX_VOCABULARY);
    config->hidden_size = gb_config_integer(text, "hidden_size", 2304, 1, MAX_WIDTH);
    config->heads = gb_config_integer(text, "num_attention_heads", 8, 1, MAX_HEADS);
    config->max_positions = gb_config_integer(text, "max_position_embeddings",
                                              config->is_unified ? 262144 : 131072, 1, INT32_MAX);
    config->sliding_window =
        gb_config_integer(text, "sliding_window", config->is_unified ? 1024 : 512, 1, INT32_MAX);
    config->rms_norm_eps = gb_config_number(text, "rms_norm_eps", 1e-6, 0, 1);
    config->keys_are_values = gb_config_bool(text, "attention_k_eq_v", false);
    config->layer_count = gb_config_integer(text, "num_hidden_layers", 30, 1, MAX_LAYERS);
    if (gb_config_has(text, "final_logit_softcapping"))
        config->logit_cap = gb_config_number(text, "final_logit_softcapping", 0, 1e-3, 1e6);
}

/* transformers has no defaults for these. */
static int64_t need_integer(const gb_config *text, const char *key, int64_t high) {
    if (!gb_config_has(text, key))
        gb_config_fail(text, key, GUMBEL_ERROR_FORMAT, "is missing beside enable_moe_block");
    return gb_config_integer(text, key, 1, 1, high);
}

static void read_experts(const gb_config *text, gb_gemma4_config *config) {
    gb_experts *experts = &config->experts;
    config->has_experts = gb_config_bool(text, "enable_moe_block", false);
    if (!config->has_experts)
        return;
    *experts = (gb_experts){.count = need_integer(text, "num_experts", GB_MAX_EXPERTS),
                            .choices = need_integer(text, "top_k_experts", GB_MAX_EXPERTS),
                            .inner = need_integer(text, "moe_intermediate_size", MAX_WIDTH),
                            .activation = GB_OP_GELU_TANH,
                            .mlx_stack = "experts.switch_glu."};
    if (experts->choices > experts->count)
        gb_config_fail(text, "top_k_experts", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected at most the %" PRId64 " of num_experts", experts->choices,
                       experts->count);
}

static gb_gemma4_kind read_kind(const gb_config *text, size_t index) {
    const char *name = gb_config_list_string(text, "layer_types", index);
    for (int kind = 0; kind < GB_GEMMA4_KINDS; kind++)
        if (strcmp(name, gb_gemma4_kind_name((gb_gemma4_kind)kind)) == 0)
            return (gb_gemma4_kind)kind;
    gb_config_fail(text, "layer_types", GUMBEL_ERROR_UNSUPPORTED,
                   "layer %zu is \"%s\", expected \"sliding_attention\" or \"full_attention\"", index, name);
    return GB_GEMMA4_FULL;
}

/* As listed, or five sliding layers and a full one in turn; the last one is full whatever the list says. */
static void read_layer_kinds(const gb_config *text, gb_gemma4_config *config) {
    size_t listed = gb_config_list_size(text, "layer_types");
    bool is_listed = gb_config_has(text, "layer_types");
    if (is_listed && listed != (size_t)config->layer_count) {
        gb_config_fail(text, "layer_types", GUMBEL_ERROR_FORMAT,
                       "%zu layers, expected the %" PRId64 " of num_hidden_layers", listed,
                       config->layer_count);
        return;
    }
    for (int64_t i = 0; i < config->layer_count; i++) {
        bool is_last = i == config->layer_count - 1;
        gb_gemma4_kind kind = (i + 1) % LAYER_PATTERN ? GB_GEMMA4_SLIDING : GB_GEMMA4_FULL;
        if (is_listed && !is_last)
            kind = read_kind(text, (size_t)i);
        config->layers[i].kind = is_last ? GB_GEMMA4_FULL : kind;
    }
}

/* The older form: one shape for all full layers. */
static void read_global_shape(const gb_config *text, gb_gemma4_config *config) {
    int64_t head_dim = gb_config_integer(text, "global_head_dim", 512, 1, MAX_HEAD_DIM);
    int64_t kv_heads = 0;
    if (config->keys_are_values && gb_config_has(text, "num_global_key_value_heads"))
        kv_heads = gb_config_integer(text, "num_global_key_value_heads", 1, 1, MAX_HEADS);
    for (int64_t i = 0; i < config->layer_count; i++) {
        gb_gemma4_layer *layer = &config->layers[i];
        if (layer->kind != GB_GEMMA4_FULL)
            continue;
        layer->head_dim = head_dim;
        if (kv_heads > 0)
            layer->kv_heads = kv_heads;
    }
}

/* One entry of per_layer_config. Keys other than the two shapes may only repeat the model's own value. */
static void read_overrides(const gb_config *text, const gb_config *overrides, gb_gemma4_layer *layer) {
    layer->head_dim = gb_config_integer(overrides, "head_dim", layer->head_dim, 1, MAX_HEAD_DIM);
    layer->kv_heads = gb_config_integer(overrides, "num_key_value_heads", layer->kv_heads, 1, MAX_HEADS);
    for (const char *key = NULL; (key = gb_config_next_key(overrides, key));)
        if (strcmp(key, "head_dim") != 0 && strcmp(key, "num_key_value_heads") != 0 &&
            !gb_config_equal(overrides, text, key))
            gb_config_fail(overrides, key, GUMBEL_ERROR_UNSUPPORTED,
                           "a value for one layer is not supported in this version");
}

/* The current form: layer indices, maybe padded with zeros, and what differs in that layer. */
static void read_per_layer_config(const gb_config *text, gb_gemma4_config *config) {
    gb_config layers = gb_config_child(text, "per_layer_config");
    for (const char *key = NULL; (key = gb_config_next_key(&layers, key));) {
        size_t length = strlen(key);
        long index = length <= 8 && strspn(key, "0123456789") == length ? strtol(key, NULL, 10) : -1;
        if (length == 0 || index < 0 || index >= config->layer_count) {
            gb_config_fail(&layers, key, GUMBEL_ERROR_FORMAT, "expected layer indices from 0 to %" PRId64,
                           config->layer_count - 1);
            return;
        }
        gb_config overrides = gb_config_child(&layers, key);
        read_overrides(text, &overrides, &config->layers[index]);
    }
}

static void read_rope(const gb_config *text, const gb_config *parameters, gb_gemma4_kind kind,
                      gb_gemma4_rope *rope) {
    const char *name = gb_gemma4_kind_name(kind);
    gb_config own = gb_config_child(parameters, name);
    if (!own.object) {
        gb_config_fail(parameters, name, GUMBEL_ERROR_FORMAT, "expected the rope parameters of these layers");
        return;
    }
    const char *type = gb_config_string(&own, "rope_type", gb_config_string(&own, "type", "default"));
    double theta = gb_config_number(text, "rope_theta", 0, 0, 1e12);
    *rope = (gb_gemma4_rope){
        .theta = gb_config_number(&own, "rope_theta", theta, 1, 1e12), .factor = 1, .proportion = 1};
    if (rope->theta < 1)
        gb_config_fail(&own, "rope_theta", GUMBEL_ERROR_FORMAT, "is missing");
    if (strcmp(type, "proportional") == 0) {
        double proportion = gb_config_number(text, "partial_rotary_factor", 1, 0, 1);
        rope->factor = gb_config_number(&own, "factor", 1, 1e-6, 1e6);
        rope->proportion = gb_config_number(&own, "partial_rotary_factor", proportion, 0, 1);
    } else if (strcmp(type, "default") != 0) {
        gb_config_fail(&own, "rope_type", GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\" is not supported in this version; expected \"default\" or \"proportional\"",
                       type);
    }
}

static void read_ropes(const gb_config *text, gb_gemma4_config *config) {
    config->rope[GB_GEMMA4_SLIDING] = (gb_gemma4_rope){.theta = 1e4, .factor = 1, .proportion = 1};
    config->rope[GB_GEMMA4_FULL] = (gb_gemma4_rope){.theta = 1e6, .factor = 1, .proportion = 0.25};
    gb_refuse_rope_beside(text, "rope_scaling", "rope_parameters");
    if (!gb_config_has(text, "rope_parameters"))
        return;
    gb_config parameters = gb_config_child(text, "rope_parameters");
    gb_refuse_rope_type(&parameters);
    bool is_used[GB_GEMMA4_KINDS] = {false};
    for (int64_t i = 0; i < config->layer_count; i++)
        is_used[config->layers[i].kind] = true;
    for (int kind = 0; kind < GB_GEMMA4_KINDS; kind++)
        if (is_used[kind])
            read_rope(text, &parameters, (gb_gemma4_kind)kind, &config->rope[kind]);
}

/* A vector for each token and layer. Null stands for none. */
static void read_layer_inputs(const gb_config *text, gb_gemma4_config *config) {
    static const char SIZE[] = "hidden_size_per_layer_input", ROWS[] = "vocab_size_per_layer_input";
    const bool is_null = gb_config_is_null(text, SIZE);
    const int64_t fallback = config->is_unified || is_null ? 0 : 256;
    config->input_layers = config->layer_count;
    config->input_size =
        gb_config_has(text, SIZE) ? gb_config_integer(text, SIZE, fallback, 0, MAX_LAYER_INPUT) : fallback;
    if (config->input_size > 0 && !config->is_assistant)
        config->input_rows = gb_config_integer(text, ROWS, 262144, 1, MAX_VOCABULARY);
    if (config->is_unified && config->input_size > 0)
        gb_config_fail(text, SIZE, GUMBEL_ERROR_UNSUPPORTED,
                       "inputs of layers are not supported of this model_type in this version; expected 0");
    if (config->input_size > 0 && !config->is_assistant && config->input_rows < config->vocab_size)
        gb_config_fail(text, ROWS, GUMBEL_ERROR_UNSUPPORTED,
                       "%" PRId64 ", expected at least the %" PRId64 " of vocab_size", config->input_rows,
                       config->vocab_size);
}

static bool has_own_keys(const gb_gemma4_config *config, int64_t before, gb_gemma4_kind kind) {
    for (int64_t i = 0; i < before; i++)
        if (config->layers[i].kind == kind)
            return true;
    return false;
}

/* The last layers take keys and values from earlier ones, and may have an MLP of twice the width. */
static void read_shared_layers(const gb_config *text, gb_gemma4_config *config) {
    static const char SHARED[] = "num_kv_shared_layers";
    const int64_t width = gb_config_integer(text, "intermediate_size", 9216, 1, MAX_WIDTH);
    const int64_t asked = gb_config_integer(text, SHARED, 0, 0, MAX_LAYERS),
                  shared = config->is_assistant ? config->layer_count : asked,
                  first = config->layer_count - shared;
    const bool is_wide = gb_config_bool(text, "use_double_wide_mlp", false);
    for (int64_t i = 0; i < config->layer_count; i++) {
        gb_gemma4_layer *layer = &config->layers[i];
        layer->shares_keys = i >= first;
        layer->intermediate_size = layer->shares_keys && is_wide ? 2 * width : width;
        if (layer->shares_keys && !config->is_assistant && !has_own_keys(config, first, layer->kind)) {
            gb_config_fail(text, SHARED, GUMBEL_ERROR_FORMAT,
                           "%" PRId64 ", but before these layers there is none of %s", shared,
                           gb_gemma4_kind_name(layer->kind));
            return;
        }
    }
}

/* What the graph relies on. */
static void check_layers(const gb_config *text, const gb_gemma4_config *config) {
    int64_t head_dim[GB_GEMMA4_KINDS] = {0};
    for (int64_t i = 0; i < config->layer_count; i++) {
        const gb_gemma4_layer *layer = &config->layers[i];
        if (head_dim[layer->kind] == 0)
            head_dim[layer->kind] = layer->head_dim;
        if (layer->head_dim % 2 != 0 || layer->head_dim != head_dim[layer->kind])
            gb_config_fail(text, "head_dim", GUMBEL_ERROR_FORMAT,
                           "layer %" PRId64 " has %" PRId64 ", expected one even number in all %s layers", i,
                           layer->head_dim, gb_gemma4_kind_name(layer->kind));
        if (config->heads % layer->kv_heads != 0)
            gb_config_fail(text, "num_key_value_heads", GUMBEL_ERROR_FORMAT,
                           "layer %" PRId64 " has %" PRId64 ", expected a divisor of the %" PRId64
                           " of num_attention_heads",
                           i, layer->kv_heads, config->heads);
    }
}

static void read_layers(const gb_config *text, gb_gemma4_config *config) {
    int64_t head_dim = gb_config_integer(text, "head_dim", 256, 1, MAX_HEAD_DIM);
    int64_t kv_heads = gb_config_integer(text, "num_key_value_heads", 4, 1, MAX_HEADS);
    read_layer_kinds(text, config);
    for (int64_t i = 0; i < config->layer_count; i++) {
        config->layers[i].head_dim = head_dim;
        config->layers[i].kv_heads = kv_heads;
    }
    if (gb_config_has(text, "per_layer_config"))
        read_per_layer_config(text, config);
    else
        read_global_shape(text, config);
    read_shared_layers(text, config);
    check_layers(text, config);
}

/* What an assistant cannot have, since transformers builds none with it. */
static void refuse_in_assistant(const gb_config *text, const gb_gemma4_config *config) {
    const char *reason = "is not supported of an assistant; expected false";
    const int64_t shared = gb_config_integer(text, "num_kv_shared_layers", 0, 0, MAX_LAYERS);
    if (config->has_experts)
        gb_config_fail(text, "enable_moe_block", GUMBEL_ERROR_UNSUPPORTED, "true %s", reason);
    if (gb_config_bool(text, "use_double_wide_mlp", false))
        gb_config_fail(text, "use_double_wide_mlp", GUMBEL_ERROR_UNSUPPORTED, "true %s", reason);
    if (config->input_size > 0)
        gb_config_fail(text, "hidden_size_per_layer_input", GUMBEL_ERROR_UNSUPPORTED,
                       "%" PRId64 " is not supported of an assistant; expected 0", config->input_size);
    if (shared != 0 && shared != config->layer_count)
        gb_config_fail(text, "num_kv_shared_layers", GUMBEL_ERROR_UNSUPPORTED,
                       "%" PRId64 ", expected all the %" PRId64
                       " of num_hidden_layers, since an assistant has no keys of its own",
                       shared, config->layer_count);
}

/* The text model's object. model_type says which of the forms the file has. */
static gb_config find_text(const gb_config *root, gb_gemma4_config *config) {
    const char *type = gb_config_string(root, "model_type", "");
    config->is_unified = strncmp(type, "gemma4_unified", strlen("gemma4_unified")) == 0;
    config->is_wrapped = strstr(type, "_text") == NULL;
    config->is_assistant = strstr(type, "_assistant") != NULL;
    const char *expected = config->is_unified ? "gemma4_unified_text" : "gemma4_text";
    gb_config text = config->is_wrapped ? gb_config_child(root, "text_config") : *root;
    if (!text.object)
        gb_config_fail(root, "text_config", GUMBEL_ERROR_FORMAT, "is missing");
    type = gb_config_string(&text, "model_type", expected);
    if (strcmp(type, expected) != 0)
        gb_config_fail(&text, "model_type", GUMBEL_ERROR_UNSUPPORTED, "\"%s\", expected \"%s\"", type,
                       expected);
    return text;
}

gumbel_status gb_gemma4_config_read(const gb_config *root, gb_gemma4_config *config, gumbel_error *error) {
    *config = (gb_gemma4_config){0};
    gb_config text = find_text(root, config);
    read_sizes(&text, config);
    read_experts(&text, config);
    read_layer_inputs(&text, config);
    if (config->is_assistant) {
        config->backbone_hidden_size = gb_config_integer(root, "backbone_hidden_size", 1536, 1, MAX_WIDTH);
        refuse_in_assistant(&text, config);
    }
    refuse_unsupported(&text, config);
    config->layers = gb_allocate((size_t)config->layer_count, sizeof *config->layers);
    if (!config->layers)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %" PRId64 " layers", config->layer_count);
    read_layers(&text, config);
    read_ropes(&text, config);
    config->has_tied_head =
        gb_config_bool(root, "tie_word_embeddings", gb_config_bool(&text, "tie_word_embeddings", true));
    return gb_config_status(root->file, error);
}

void gb_gemma4_config_free(gb_gemma4_config *config) {
    gb_free(config->layers);
    *config = (gb_gemma4_config){0};
}
