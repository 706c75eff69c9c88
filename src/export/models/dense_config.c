/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/dense_config.h"
#include "export/models/dense_layers.h"
#include "export/models/granite_hybrid_config.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_WIDTH = 1 << 20, MAX_HEADS = 1 << 12, MAX_HEAD_DIM = 1 << 12 };
static const int64_t MAX_VOCABULARY = (1 << 23) - 1; /* the sampler's limit */

/* ---- What is not supported ----------------------------------------------------------------------------- */

static void refuse_unsupported(const gb_config *text, const gb_dense_family *family) {
    static const char *const keys[] = {"mlp_bias", "rope_traditional", "use_bidirectional_attention"};
    const bool has_bias = family->traits.has_output_bias;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (gb_config_has(text, keys[i]) && gb_config_bool(text, keys[i], false))
            gb_config_fail(text, keys[i], GUMBEL_ERROR_UNSUPPORTED,
                           "is not supported in this version; expected false");
    if (gb_config_has(text, "attention_bias") && gb_config_bool(text, "attention_bias", has_bias) != has_bias)
        gb_config_fail(text, "attention_bias", GUMBEL_ERROR_UNSUPPORTED,
                       "is not supported in this version; expected %s", has_bias ? "true" : "false");
    const bool is_gelu = family->traits.has_geglu;
    const bool is_renamed = is_gelu || gb_config_has(text, "hidden_activation");
    const char *key = is_renamed ? "hidden_activation" : "hidden_act",
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

static void read_heads(const gb_config *text, const gb_dense_family *family, gb_dense_config *config) {
    config->heads = gb_config_integer(text, "num_attention_heads", family->heads, 1, MAX_HEADS);
    const bool is_default = family->kv_heads > 0 && !gb_config_is_null(text, "num_key_value_heads");
    config->kv_heads = gb_config_optional_integer(
        text, "num_key_value_heads", is_default ? family->kv_heads : config->heads, 1, MAX_HEADS);
    const bool has_default = family->head_dim > 0 && !gb_config_is_null(text, "head_dim");
    const int64_t head_dim = has_default ? family->head_dim : config->hidden_size / config->heads;
    config->head_dim = gb_config_optional_integer(text, "head_dim", head_dim, 1, MAX_HEAD_DIM);
    if (config->heads % config->kv_heads != 0)
        gb_config_fail(text, "num_key_value_heads", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected a divisor of the %" PRId64 " of num_attention_heads",
                       config->kv_heads, config->heads);
    if (config->head_dim < 2 || config->head_dim % 2 != 0)
        gb_config_fail(text, "head_dim", GUMBEL_ERROR_FORMAT, "%" PRId64 ", expected an even number",
                       config->head_dim);
}

static void read_sizes(const gb_config *text, const gb_dense_family *family, gb_dense_config *config) {
    config->vocab_size = gb_config_integer(text, "vocab_size", family->vocab_size, 1, MAX_VOCABULARY);
    config->hidden_size = gb_config_integer(text, "hidden_size", family->hidden_size, 1, MAX_WIDTH);
    config->intermediate_size = gb_config_integer(
        text, family->traits.has_shared_mlp ? "shared_intermediate_size" : "intermediate_size",
        family->intermediate_size, 1, MAX_WIDTH);
    config->max_positions =
        gb_config_integer(text, "max_position_embeddings", family->max_positions, 1, INT32_MAX);
    config->rms_norm_eps =
        gb_config_number(text, "rms_norm_eps", family->rms_norm_eps > 0 ? family->rms_norm_eps : 1e-6, 0, 1);
    config->output_norm_eps = config->rms_norm_eps;
    if (family->output_norm_eps > 0)
        config->output_norm_eps = gb_config_number(text, "post_norm_eps", family->output_norm_eps, 0, 1);
    config->layer_count =
        gb_config_integer(text, "num_hidden_layers", family->layers, 1, GB_MAX_DENSE_LAYERS);
    read_heads(text, family, config);
}

/* GGUF files have the 1 of norms in their weights, and the factor of queries in a norm of heads, which
 * config.json has no keys for. */
static void read_traits(const gb_config *text, const gb_dense_family *family, gb_dense_config *config) {
    config->traits = family->traits;
    if (gb_config_bool(text, "norm_weights_hold_one", false))
        config->traits.has_norms_from_one = false;
    if (gb_config_bool(text, "head_norms_have_weights", false)) {
        config->traits.has_head_norms = true;
        config->traits.has_plain_head_norms = false;
    }
}

static double multiplier(const gb_config *text, const char *key) {
    return gb_config_number(text, key, 1, 1e-6, 1e6);
}

/* Granite's, of which the last divides. */
static void read_multipliers(const gb_config *text, gb_dense_config *config) {
    config->embedding_scale = multiplier(text, "embedding_multiplier");
    config->attention_scale = multiplier(text, "attention_multiplier");
    config->residual_scale = multiplier(text, "residual_multiplier");
    config->logit_scale = 1 / multiplier(text, "logits_scaling");
}

static void read_scales(const gb_config *text, const gb_dense_family *family, gb_dense_config *config) {
    const double size = family->query_scalar > 0 ? gb_config_number(text, "query_pre_attn_scalar",
                                                                    (double)family->query_scalar, 1e-3, 1e6)
                                                 : (double)config->head_dim;
    config->attention_scale = 1 / sqrt(size);
    config->embedding_scale = family->scales_embeddings ? sqrt((double)config->hidden_size) : 1;
    config->residual_scale = config->logit_scale = 1;
    if (family->has_multipliers)
        read_multipliers(text, config);
    if (config->traits.has_plain_head_norms)
        config->attention_scale *= gb_config_number(text, "qk_scale_factor", family->query_factor, 1e-6, 1e6);
    if (family->logit_scale > 0)
        config->logit_scale = gb_config_number(text, "output_multiplier", family->logit_scale, 1e-6, 1e6);
    if (family->has_logit_cap && (family->logit_cap > 0 || gb_config_has(text, "final_logit_softcapping")))
        config->logit_cap = gb_config_number(text, "final_logit_softcapping", family->logit_cap, 1e-3, 1e6);
}

/* A layer's theta says whether it rotates; implementations take the model's for all that do. */
static void check_layer_thetas(const gb_config *text, const gb_dense_config *config) {
    static const char LIST[] = "layer_rope_theta";
    for (size_t i = 0; i < gb_config_list_size(text, LIST); i++) {
        const double theta = gb_config_list_number(text, LIST, i, 0, 1e12);
        if (theta != 0 && theta != config->rope.theta)
            gb_config_fail(text, LIST, GUMBEL_ERROR_UNSUPPORTED,
                           "layer %zu has %g, which implementations do not obey; expected 0 or the %g of "
                           "rope_theta",
                           i, theta, config->rope.theta);
    }
}

/* Where it is absent transformers scales, mlx-lm does not. */
static void need_rope(const gb_config *text, const char *key) {
    if (!gb_config_has(text, "rope_scaling") && !gb_config_has(text, "rope_parameters"))
        gb_config_fail(text, key, GUMBEL_ERROR_UNSUPPORTED, "is missing, where implementations differ");
}

/* Where layers that slide have no theta of their own transformers takes the default, mlx-lm the model's. */
static void check_sliding_theta(const gb_config *text, double theta) {
    const gb_config kinds = gb_config_child(text, "rope_parameters"),
                    sliding = gb_config_child(&kinds, "sliding_attention");
    const double own = gb_config_number(text, "rope_theta", theta, 1, 1e12);
    if (own != theta && !gb_config_has(&sliding, "rope_theta"))
        gb_config_fail(text, "rope_theta", GUMBEL_ERROR_UNSUPPORTED,
                       "%g, where implementations differ about layers that slide; expected %g, or a "
                       "rope_theta in rope_parameters.sliding_attention",
                       own, theta);
}

static void read_ropes_of_kinds(const gb_config *text, const gb_dense_family *family,
                                gb_dense_config *config) {
    const bool has_one = family->has_one_theta;
    const gb_rope_kind full = {"full_attention", "rope_theta", has_one ? family->rope_theta : 1e6, true};
    const gb_rope_kind sliding = {"sliding_attention", has_one ? "rope_theta" : "rope_local_base_freq",
                                  has_one ? family->rope_theta : 1e4, false};
    if (has_one)
        check_sliding_theta(text, family->rope_theta);
    gb_rope_config_read_kind(text, &full, config->head_dim, config->max_positions, &config->rope);
    gb_rope_config_read_kind(text, &sliding, config->head_dim, config->max_positions, &config->sliding_rope);
}

static void read_rope(const gb_config *text, const gb_dense_family *family, gb_dense_config *config) {
    const double theta = family->rope_theta > 0 ? family->rope_theta : 1e4;
    if (config->traits.has_long_rope) {
        gb_rope_config_read_phi(text, theta, config->head_dim, config->max_positions, &config->rope);
        return;
    }
    if (family->scales_queries) {
        need_rope(text, "rope_parameters");
        gb_rope_config_read_ministral(text, theta, config->head_dim, config->max_positions, &config->rope);
        return;
    }
    if (config->traits.has_sliding_rope)
        read_ropes_of_kinds(text, family, config);
    else
        gb_rope_config_read(text, theta, config->head_dim, config->max_positions, &config->rope);
}

/* ---- Experts ------------------------------------------------------------------------------------------- */

static void read_experts(const gb_config *text, gb_dense_config *config) {
    gb_experts *experts = &config->experts;
    const int64_t other = gb_config_optional_integer(text, "num_local_experts", 128, 1, GB_MAX_EXPERTS);
    *experts = (gb_experts){
        .count = gb_config_optional_integer(text, "num_experts", other, 1, GB_MAX_EXPERTS),
        .choices = gb_config_integer(text, "num_experts_per_tok", 8, 1, GB_MAX_EXPERTS),
        .inner = gb_config_integer(text, "moe_intermediate_size", 768, 1, MAX_WIDTH),
        .activation = GB_OP_SILU,
        .has_plain_weights = !gb_config_bool(text, "norm_topk_prob", false),
        .mlx_stack = "switch_mlp.",
    };
}

/* transformers and mlx-lm have both numbers of the SwiGLU in their code. */
static void read_gpt_oss_experts(const gb_config *text, gb_dense_config *config) {
    static const double LIMIT = 7;
    config->experts = (gb_experts){
        .count = gb_config_integer(text, "num_local_experts", 128, 1, GB_MAX_EXPERTS),
        .choices = gb_config_integer(text, "num_experts_per_tok", 4, 1, GB_MAX_EXPERTS),
        .inner = config->intermediate_size,
        .activation = GB_OP_CLAMPED_SWIGLU,
        .alpha = 1.702,
        .limit = LIMIT,
        .has_biases = true,
        .mlx_stack = "experts.",
        .router = "router.",
    };
    if (gb_config_number(text, "swiglu_limit", LIMIT, 0, 1e6) != LIMIT)
        gb_config_fail(text, "swiglu_limit", GUMBEL_ERROR_UNSUPPORTED,
                       "is not %g, which implementations take whatever it is", LIMIT);
    need_rope(text, "rope_scaling");
}

static void check_choices(const gb_config *text, const char *key, const gb_experts *experts) {
    if (experts->choices > experts->count)
        gb_config_fail(text, "num_experts_per_tok", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 ", expected at most the %" PRId64 " of %s", experts->choices,
                       experts->count, key);
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

/* Of families in the same wrapper the text model's type says which. */
static const gb_dense_family *find_family(const gb_config *root) {
    const gb_config text = gb_config_child(root, "text_config");
    const char *type = gb_config_string(root, "model_type", "");
    const gb_dense_family *family = gb_dense_family_find(type),
                          *inner = gb_dense_family_find(gb_config_string(&text, "model_type", ""));
    const bool is_inside = inner && inner->wrapper && strcmp(inner->wrapper, type) == 0;
    return is_inside ? inner : family;
}

/* The text model's object. */
static gb_config find_text(const gb_config *root, const gb_dense_family *family, gb_dense_config *config) {
    const char *type = gb_config_string(root, "model_type", "");
    config->is_wrapped = family->wrapper && strcmp(type, family->wrapper) == 0;
    if (family->may_be_flat && config->is_wrapped && !gb_config_has(root, "text_config")) {
        config->is_wrapped = false;
        return *root;
    }
    gb_config text = config->is_wrapped ? gb_config_child(root, "text_config") : *root;
    if (!text.object)
        gb_config_fail(root, "text_config", GUMBEL_ERROR_FORMAT, "is missing");
    type = gb_config_string(&text, "model_type", family->text);
    if (strcmp(type, family->text) != 0)
        gb_config_fail(&text, "model_type", GUMBEL_ERROR_UNSUPPORTED, "\"%s\", expected \"%s\"", type,
                       family->text);
    return text;
}

gumbel_status gb_dense_config_read(const gb_config *root, gb_dense_config *config, gumbel_error *error) {
    const char *type = gb_config_string(root, "model_type", "");
    const gb_dense_family *family = find_family(root);
    *config = (gb_dense_config){0};
    if (!family) {
        gb_config_fail(root, "model_type", GUMBEL_ERROR_UNSUPPORTED, "\"%s\" is no plain decoder", type);
        return gb_config_status(root->file, error);
    }
    gb_config text = find_text(root, family, config);
    read_sizes(&text, family, config);
    read_traits(&text, family, config);
    read_scales(&text, family, config);
    refuse_unsupported(&text, family);
    config->layers = gb_allocate((size_t)config->layer_count, sizeof *config->layers);
    if (!config->layers)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %" PRId64 " layers", config->layer_count);
    if (family->has_gpt_oss_experts)
        read_gpt_oss_experts(&text, config);
    else if (family->has_experts)
        read_experts(&text, config);
    else if (family->windows == GB_LISTED_MIXERS)
        gb_granite_experts_read(&text, config);
    check_choices(&text, gb_config_has(&text, "num_local_experts") ? "num_local_experts" : "num_experts",
                  &config->experts);
    gb_dense_layers_read(&text, family, config);
    read_rope(&text, family, config);
    if (family->has_rope_in_windows)
        check_layer_thetas(&text, config);
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
