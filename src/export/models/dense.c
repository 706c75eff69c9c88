/* SPDX-License-Identifier: Apache-2.0
 *
 * The plain decoders: Llama 3, Mistral, Qwen2, Qwen3 with and without experts. For a layer with input x:
 *
 *     h = x + attention(norm(x))
 *     y = h + mlp(norm(h))
 *
 * Queries and keys are rotated; Qwen3 normalizes them before, head by head with a weight. Qwen2 adds biases
 * to what queries, keys and values are projected to. The MLP is a SwiGLU or, in Qwen3 with experts, a mixture
 * of them without a shared one. Norms multiply by w.
 */
#include "export/models/dense_config.h"
#include "export/models/model.h"
#include "export/nn/attention.h"
#include "export/nn/layers.h"
#include "export/nn/rotary.h"
#include "export/nn/sampling.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef struct dense {
    const gb_dense_config *config;
    gb_context context;
    gb_rotary rotary;
} dense;

static gb_ref projected_heads(const dense *model, const gb_scope *scope, gb_ref x, const char *name,
                              int64_t heads) {
    const gb_scope projection = gb_scope_in(scope, "%s.", name);
    gb_ref y = gb_linear(&projection, "weight", x, heads * model->config->head_dim);
    if (model->config->traits.has_head_biases)
        y = gb_add_bias(&projection, "bias", y);
    return gb_split_heads(scope, y, heads);
}

/* Queries or keys, normalized where the model does so, and rotated. */
static gb_ref rotate(const dense *model, const gb_scope *scope, gb_ref x, const char *norm) {
    if (model->config->traits.has_head_norms)
        x = gb_rms_norm(scope, norm, x, model->config->rms_norm_eps);
    return gb_rotate(scope, &model->rotary, x);
}

static gb_ref attention(const dense *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_dense_config *config = model->config;
    const double factor = config->rope.attention_factor;
    gb_ref query = projected_heads(model, scope, x, "q_proj", config->heads);
    gb_ref key = projected_heads(model, scope, x, "k_proj", config->kv_heads);
    gb_ref value = projected_heads(model, scope, x, "v_proj", config->kv_heads);
    query = rotate(model, scope, query, "q_norm.weight");
    key = rotate(model, scope, key, "k_norm.weight");
    char name[32];
    snprintf(name, sizeof name, "layers.%" PRId64, index);
    gb_ref mixed = gb_cached_attention(scope, &model->context, name, query, key, value,
                                       factor * factor / sqrt((double)config->head_dim),
                                       config->layers[index].is_sliding ? config->sliding_window : 0);
    return gb_node1(scope, GB_OP_MERGE_HEADS, mixed);
}

/* In the last layer only the rows whose next token is wanted go on after attention: the others have then left
 * their keys and values, which is all that later tokens need of them. */
static gb_ref decoder_layer(const dense *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_dense_config *config = model->config;
    gb_scope self_attn = gb_scope_in(scope, "self_attn."), mlp = gb_scope_in(scope, "mlp.");

    gb_ref h = gb_rms_norm(scope, "input_layernorm.weight", x, config->rms_norm_eps);
    h = attention(model, index, &self_attn, h);
    if (index == config->layer_count - 1) {
        h = gb_gather_rows(scope, h);
        x = gb_gather_rows(scope, x);
    }
    x = gb_node2(scope, GB_OP_ADD, x, gb_linear(&self_attn, "o_proj.weight", h, config->hidden_size));

    h = gb_rms_norm(scope, "post_attention_layernorm.weight", x, config->rms_norm_eps);
    h = config->layers[index].has_experts ? gb_expert_mlp(&mlp, &config->experts, h)
                                          : gb_swiglu_mlp(&mlp, h, config->intermediate_size);
    return gb_node2(scope, GB_OP_ADD, x, h);
}

/* Logits of the rows whose next token is wanted, f32[B, V]. */
static gb_ref forward(const dense *model, const gb_scope *scope, const gb_scope *head) {
    const gb_dense_config *config = model->config;
    gb_ref tokens = gb_build_input(scope->builder, GB_ROLE_TOKENS);
    gb_ref table = gb_table(scope, "embed_tokens.weight", config->vocab_size, config->hidden_size);
    gb_ref x = gb_node2(scope, GB_OP_EMBEDDING, table, tokens);
    for (int64_t i = 0; i < config->layer_count; i++) {
        gb_scope layer = gb_scope_in(scope, "layers.%" PRId64 ".", i);
        x = decoder_layer(model, i, &layer, x);
    }
    x = gb_rms_norm(scope, "norm.weight", x, config->rms_norm_eps);
    return gb_head(scope, head, x, table, config->vocab_size, config->has_tied_head);
}

static bool has_window(const gb_dense_config *config) {
    for (int64_t i = 0; i < config->layer_count; i++)
        if (config->layers[i].is_sliding)
            return true;
    return false;
}

static gumbel_status build_graph(const gb_dense_config *config, const gb_model_options *options,
                                 gb_builder *builder, gb_weights *weights, gumbel_error *error) {
    const gb_text_model text = {
        .vocab_size = config->vocab_size,
        .max_positions = config->max_positions,
        .window = has_window(config) ? config->sliding_window : 0,
        .is_wrapped = config->is_wrapped,
    };
    gb_text_graph graph;
    GB_TRY(gb_begin_text_graph(&text, options, builder, weights, &graph, error));
    dense model = {
        .config = config,
        .context = graph.context,
        .rotary = gb_rotary_of(&graph.scope, "rotary", config->rope.frequencies, config->head_dim),
    };
    return gb_end_text_graph(&graph, forward(&model, &graph.scope, &graph.head), options, error);
}

static gumbel_status build(const gb_config *root, const gb_model_options *options, gb_builder *builder,
                           gb_weights *weights, gumbel_error *error) {
    gb_dense_config config;
    gumbel_status status = gb_dense_config_read(root, &config, error);
    if (status == GUMBEL_OK)
        status = gb_keep_layers(options->layers, &config.layer_count, error);
    if (status == GUMBEL_OK)
        status = build_graph(&config, options, builder, weights, error);
    gb_dense_config_free(&config);
    return status;
}

const gb_model gb_llama = {.name = "llama", .text = "llama", .eos_token = 2, .bos_token = 1, .build = build};

const gb_model gb_mistral = {.name = "mistral",
                             .wrapper = "mistral3",
                             .text = "mistral",
                             .eos_token = 2,
                             .bos_token = 1,
                             .build = build};

const gb_model gb_qwen2 = {
    .name = "qwen2", .text = "qwen2", .eos_token = -1, .bos_token = -1, .build = build};

const gb_model gb_qwen3 = {
    .name = "qwen3", .text = "qwen3", .eos_token = -1, .bos_token = -1, .build = build};

const gb_model gb_qwen3_moe = {
    .name = "qwen3_moe", .text = "qwen3_moe", .eos_token = -1, .bos_token = -1, .build = build};
