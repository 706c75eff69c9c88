/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma 4, the dense text model. For a layer with input x:
 *
 *     h = x + norm(attention(norm(x)))
 *     y = (h + norm(mlp(norm(h)))) * layer_scalar
 *
 * Queries and keys are normalized with a weight and rotated; values are normalized without one; attention is
 * not scaled. Sliding layers see a window; full layers see all, with heads of another size of which only a
 * part rotates, and may take their values from the key projection. Norms multiply by w, not by 1 + w.
 */
#include "export/models/gemma4_config.h"
#include "export/models/model.h"
#include "export/nn/attention.h"
#include "export/nn/layers.h"
#include "export/nn/rotary.h"
#include "export/nn/sampling.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef struct gemma4 {
    const gb_gemma4_config *config;
    gb_context context;
    gb_rotary rotary[GB_GEMMA4_KINDS];
} gemma4;

static gb_ref attention(const gemma4 *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_gemma4_config *config = model->config;
    const gb_gemma4_layer *layer = &config->layers[index];
    const gb_rotary *rotary = &model->rotary[layer->kind];
    bool is_full = layer->kind == GB_GEMMA4_FULL;

    gb_ref query = gb_linear(scope, "q_proj.weight", x, config->heads * layer->head_dim);
    gb_ref key = gb_linear(scope, "k_proj.weight", x, layer->kv_heads * layer->head_dim);
    gb_ref value = is_full && config->keys_are_values
                       ? key
                       : gb_linear(scope, "v_proj.weight", x, layer->kv_heads * layer->head_dim);

    query = gb_split_heads(scope, query, config->heads);
    query = gb_rms_norm(scope, "q_norm.weight", query, config->rms_norm_eps);
    query = gb_rotate(scope, rotary, query);

    key = gb_split_heads(scope, key, layer->kv_heads);
    key = gb_rms_norm(scope, "k_norm.weight", key, config->rms_norm_eps);
    key = gb_rotate(scope, rotary, key);

    value = gb_split_heads(scope, value, layer->kv_heads);
    value = gb_rms_normalize(scope, value, config->rms_norm_eps);

    char name[32];
    snprintf(name, sizeof name, "layers.%" PRId64, index);
    gb_ref mixed = gb_cached_attention(scope, &model->context, name, query, key, value, 1.0,
                                       is_full ? 0 : config->sliding_window);
    return gb_node1(scope, GB_OP_MERGE_HEADS, mixed);
}

/* In the last layer only the rows whose next token is wanted go on after attention: the others have then left
 * their keys and values, which is all that later tokens need of them. */
static gb_ref decoder_layer(const gemma4 *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_gemma4_config *config = model->config;
    gb_scope self_attn = gb_scope_in(scope, "self_attn.");
    gb_scope mlp = gb_scope_in(scope, "mlp.");
    double epsilon = config->rms_norm_eps;

    gb_ref h = gb_rms_norm(scope, "input_layernorm.weight", x, epsilon);
    h = attention(model, index, &self_attn, h);
    if (index == config->layer_count - 1) {
        h = gb_gather_rows(scope, h);
        x = gb_gather_rows(scope, x);
    }
    h = gb_linear(&self_attn, "o_proj.weight", h, config->hidden_size);
    h = gb_rms_norm(scope, "post_attention_layernorm.weight", h, epsilon);
    x = gb_node2(scope, GB_OP_ADD, x, h);

    h = gb_rms_norm(scope, "pre_feedforward_layernorm.weight", x, epsilon);
    h = gb_geglu_mlp(&mlp, h, config->intermediate_size);
    h = gb_rms_norm(scope, "post_feedforward_layernorm.weight", h, epsilon);
    x = gb_node2(scope, GB_OP_ADD, x, h);
    return gb_node2(scope, GB_OP_SCALE, x, gb_gain(scope, "layer_scalar", 1));
}

/* Soft-capped logits of the rows asked for, f32[B, V]. */
static gb_ref forward(const gemma4 *model, const gb_scope *scope, const gb_scope *head) {
    const gb_gemma4_config *config = model->config;
    gb_ref tokens = gb_build_input(scope->builder, GB_ROLE_TOKENS);
    gb_ref table = gb_table(scope, "embed_tokens.weight", config->vocab_size, config->hidden_size);
    gb_ref x = gb_node_with(scope, GB_OP_EMBEDDING, table, tokens,
                            gb_float(GB_ATTRIBUTE_SCALE, sqrt((double)config->hidden_size)));
    for (int64_t i = 0; i < config->layer_count; i++) {
        gb_scope layer = gb_scope_in(scope, "layers.%" PRId64 ".", i);
        x = decoder_layer(model, i, &layer, x);
    }
    x = gb_rms_norm(scope, "norm.weight", x, config->rms_norm_eps);
    gb_ref logits = gb_head(scope, head, x, table, config->vocab_size, config->has_tied_head);
    if (config->logit_cap > 0)
        logits = gb_node_with(scope, GB_OP_SOFT_CAP, logits, GB_NO_VALUE,
                              gb_float(GB_ATTRIBUTE_CAP, config->logit_cap));
    return logits;
}

/* The first layer of a kind, or NULL. */
static const gb_gemma4_layer *find_layer(const gb_gemma4_config *config, gb_gemma4_kind kind) {
    for (int64_t i = 0; i < config->layer_count; i++)
        if (config->layers[i].kind == kind)
            return &config->layers[i];
    return NULL;
}

static gb_rotary rotary_of(const gb_scope *scope, const gb_gemma4_config *config, gb_gemma4_kind kind) {
    const gb_gemma4_layer *layer = find_layer(config, kind);
    if (!layer)
        return (gb_rotary){.frequencies = GB_NO_VALUE};
    const gb_gemma4_rope *rope = &config->rope[kind];
    /* A pair is two dimensions; an odd one left over turns with its pair. Released sizes have none. */
    int64_t turning = (int64_t)(rope->proportion * (double)layer->head_dim);
    char name[64];
    snprintf(name, sizeof name, "rotary.%s", gb_gemma4_kind_name(kind));
    return gb_rotary_create(scope, name, rope->theta, rope->factor, layer->head_dim, (turning + 1) / 2);
}

static gumbel_status build_graph(const gb_gemma4_config *config, const gb_model_options *options,
                                 gb_builder *builder, gb_weights *weights, gumbel_error *error) {
    const gb_text_model text = {
        .vocab_size = config->vocab_size,
        .max_positions = config->max_positions,
        .window = find_layer(config, GB_GEMMA4_SLIDING) ? config->sliding_window : 0,
        .is_wrapped = config->is_wrapped,
    };
    gb_text_graph graph;
    GB_TRY(gb_begin_text_graph(&text, options, builder, weights, &graph, error));
    gemma4 model = {
        .config = config,
        .context = graph.context,
        .rotary = {[GB_GEMMA4_SLIDING] = rotary_of(&graph.scope, config, GB_GEMMA4_SLIDING),
                   [GB_GEMMA4_FULL] = rotary_of(&graph.scope, config, GB_GEMMA4_FULL)},
    };
    return gb_end_text_graph(&graph, forward(&model, &graph.scope, &graph.head), options, error);
}

static gumbel_status build(const gb_config *root, const gb_model_options *options, gb_builder *builder,
                           gb_weights *weights, gumbel_error *error) {
    gb_gemma4_config config;
    gumbel_status status = gb_gemma4_config_read(root, &config, error);
    if (status == GUMBEL_OK)
        status = gb_keep_layers(options->layers, &config.layer_count, error);
    if (status == GUMBEL_OK)
        status = build_graph(&config, options, builder, weights, error);
    gb_gemma4_config_free(&config);
    return status;
}

const gb_model gb_gemma4 = {
    .name = "gemma4",
    .wrapper = "gemma4",
    .text = "gemma4_text",
    .eos_token = 1,
    .bos_token = 2,
    .build = build,
};
