/* SPDX-License-Identifier: Apache-2.0
 *
 * LFM2, dense and with experts. For a layer with input x:
 *
 *     h = x + mixer(norm(x))
 *     y = h + mlp(norm(h))
 *
 * The mixer is a short gated convolution in most layers and attention in the others, whose queries and keys
 * are normalized head by head. The MLP is a SwiGLU or, behind the first layers, a mixture of them.
 */
#include "export/models/lfm2_config.h"
#include "export/models/model.h"
#include "export/nn/attention.h"
#include "export/nn/layers.h"
#include "export/nn/rotary.h"
#include "export/nn/sampling.h"
#include "export/nn/short_conv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef struct lfm2 {
    const gb_lfm2_config *config;
    gb_context context;
    gb_rotary rotary;
} lfm2;

static gb_ref attention(const lfm2 *model, const gb_scope *scope, const char *name, gb_ref x,
                        bool rows_only) {
    const gb_lfm2_config *config = model->config;
    const int64_t head_dim = config->head_dim;
    gb_ref query = gb_linear_heads(scope, "q_proj.weight", x, config->heads, head_dim);
    gb_ref key = gb_linear_heads(scope, "k_proj.weight", x, config->kv_heads, head_dim);
    const gb_ref value = gb_linear_heads(scope, "v_proj.weight", x, config->kv_heads, head_dim);
    query = gb_rms_norm(scope, "q_layernorm.weight", query, config->norm_eps);
    key = gb_rms_norm(scope, "k_layernorm.weight", key, config->norm_eps);
    gb_ref mixed =
        gb_cached_attention(scope, &model->context, name, gb_rotate(scope, &model->rotary, query),
                            gb_rotate(scope, &model->rotary, key), value, 1 / sqrt((double)head_dim), 0);
    mixed = gb_node1(scope, GB_OP_MERGE_HEADS, mixed);
    if (rows_only)
        mixed = gb_gather_rows(scope, mixed);
    return gb_linear(scope, "out_proj.weight", mixed, config->hidden_size);
}

/* mlx-lm renames the matrices of the models with experts. */
static gb_ref dense_mlp(const gb_scope *scope, gb_ref x, int64_t inner, int64_t hidden) {
    if (!gb_scope_has(scope, "w1.weight"))
        return gb_swiglu_mlp(scope, x, inner);
    const gb_ref gate = gb_node1(scope, GB_OP_SILU, gb_linear(scope, "w1.weight", x, inner));
    const gb_ref up = gb_linear(scope, "w3.weight", x, inner);
    return gb_linear(scope, "w2.weight", gb_node2(scope, GB_OP_MULTIPLY, gate, up), hidden);
}

static gb_ref mlp(const lfm2 *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_lfm2_config *config = model->config;
    return index < config->dense_layers
               ? dense_mlp(scope, x, config->intermediate_size, config->hidden_size)
               : gb_chosen_experts(scope, &config->experts, gb_route_by_sigmoids(scope, &config->router, x),
                                   x);
}

/* In the last layer only the rows whose next token is wanted leave the mixer. */
static gb_ref decoder_layer(const lfm2 *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_lfm2_config *config = model->config;
    const bool is_last = index == config->layer_count - 1;
    const gb_scope self_attn = gb_scope_in(scope, "self_attn."), conv = gb_scope_in(scope, "conv."),
                   feed_forward = gb_scope_in(scope, "feed_forward.");
    char name[32];
    snprintf(name, sizeof name, "layers.%" PRId64, index);
    gb_ref h = gb_rms_norm(scope, "operator_norm.weight", x, config->norm_eps);
    h = config->attends[index] ? attention(model, &self_attn, name, h, is_last)
                               : gb_short_conv(&conv, config->conv_width, name, h, is_last);
    x = gb_node2(scope, GB_OP_ADD, is_last ? gb_gather_rows(scope, x) : x, h);
    h = gb_rms_norm(scope, "ffn_norm.weight", x, config->norm_eps);
    return gb_node2(scope, GB_OP_ADD, x, mlp(model, index, &feed_forward, h));
}

/* Logits of the rows whose next token is wanted, f32[B, V]. */
static gb_ref forward(const lfm2 *model, const gb_scope *scope, const gb_scope *head) {
    const gb_lfm2_config *config = model->config;
    const gb_ref tokens = gb_build_input(scope->builder, GB_ROLE_TOKENS);
    gb_build_input(scope->builder, GB_ROLE_POSITIONS); /* every program has them, used or not */
    const gb_ref table =
        gb_token_table(scope, head, config->vocab_size, config->hidden_size, config->has_tied_head);
    gb_ref x = gb_embedding(scope, table, tokens, 1);
    for (int64_t i = 0; i < config->layer_count; i++) {
        const gb_scope layer = gb_scope_in(scope, "layers.%" PRId64 ".", i);
        x = decoder_layer(model, i, &layer, x);
    }
    x = gb_rms_norm(scope, "embedding_norm.weight", x, config->norm_eps);
    return gb_head(scope, head, x, table, config->vocab_size, config->has_tied_head);
}

static gumbel_status build_graph(const gb_lfm2_config *config, const gb_model_options *options,
                                 gb_builder *builder, gb_weights *weights, gumbel_error *error) {
    const gb_text_model text = {.vocab_size = config->vocab_size, .max_positions = config->max_positions};
    gb_text_graph graph;
    GB_TRY(gb_begin_text_graph(&text, options, builder, weights, &graph, error));
    lfm2 model = {
        .config = config,
        .context = graph.context,
        .rotary = gb_rotary_of(&graph.scope, "rotary", config->rope.frequencies, config->head_dim),
    };
    model.rotary.scale = config->rope.attention_factor;
    return gb_end_text_graph(&graph, forward(&model, &graph.scope, &graph.head), options, error);
}

static gumbel_status build(const gb_config *root, const gb_model_options *options, gb_builder *builder,
                           gb_weights *weights, gumbel_error *error) {
    gb_lfm2_config config;
    gumbel_status status = gb_lfm2_config_read(root, &config, error);
    if (status == GUMBEL_OK)
        status = gb_keep_layers(options->layers, &config.layer_count, error);
    if (status == GUMBEL_OK)
        status = build_graph(&config, options, builder, weights, error);
    gb_lfm2_config_free(&config);
    return status;
}

/* Name, wrapper and model_type; ids that end and begin texts. */
const gb_model gb_lfm2 = {"lfm2", NULL, "lfm2", 2, 1, build, NULL};
const gb_model gb_lfm2_moe = {"lfm2_moe", NULL, "lfm2_moe", 2, 1, build, NULL};
