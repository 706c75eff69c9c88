/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma 4, the text model, dense or with experts. For a layer with input x:
 *
 *     h = x + norm(attention(norm(x)))
 *     y = (h + norm(mlp(norm(h)))) * layer_scalar
 *
 * The last layers of some models have no keys and values: they attend to those of the last layer of their
 * kind that has. In some models each token has a vector for each layer, which is gated by y, projected,
 * normalized and added before the layer's scalar.
 *
 * With experts mlp(norm(h)) is norm(mlp(norm(h))) + norm(experts(norm(h))), each with norms of its own; the
 * router sees h, normalized and scaled, and each expert has a scale. Queries and keys are normalized with a
 * weight and rotated; values are normalized without one; attention is not scaled. Sliding layers see a
 * window; full layers see all, with heads of another size of which only a part rotates, and may take their
 * values from the key projection. Norms multiply by w, not by 1 + w.
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
    gb_cached_keys keys[GB_GEMMA4_KINDS]; /* of the last layer of a kind */
    gb_ref inverse_root;                  /* 1 / sqrt(hidden_size) */
    gb_ref layer_inputs;                  /* f32[N, input_layers * input_size], or none */
} gemma4;

/* Keys and values of a layer that has its own. */
static gb_cached_keys own_keys(const gemma4 *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_gemma4_config *config = model->config;
    const gb_gemma4_layer *layer = &config->layers[index];
    const bool is_full = layer->kind == GB_GEMMA4_FULL;
    gb_ref key = gb_linear(scope, "k_proj.weight", x, layer->kv_heads * layer->head_dim);
    gb_ref value = is_full && config->keys_are_values
                       ? key
                       : gb_linear(scope, "v_proj.weight", x, layer->kv_heads * layer->head_dim);

    key = gb_split_heads(scope, key, layer->kv_heads);
    key = gb_rms_norm(scope, "k_norm.weight", key, config->rms_norm_eps);
    key = gb_rotate(scope, &model->rotary[layer->kind], key);

    value = gb_split_heads(scope, value, layer->kv_heads);
    value = gb_rms_normalize(scope, value, config->rms_norm_eps);
    char name[32];
    snprintf(name, sizeof name, "layers.%" PRId64, index);
    return gb_cache_keys(scope, &model->context, name, key, value, is_full ? 0 : config->sliding_window);
}

static gb_ref attention(gemma4 *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_gemma4_config *config = model->config;
    const gb_gemma4_layer *layer = &config->layers[index];
    gb_ref query = gb_linear(scope, "q_proj.weight", x, config->heads * layer->head_dim);
    query = gb_split_heads(scope, query, config->heads);
    query = gb_rms_norm(scope, "q_norm.weight", query, config->rms_norm_eps);
    query = gb_rotate(scope, &model->rotary[layer->kind], query);
    if (!layer->shares_keys)
        model->keys[layer->kind] = own_keys(model, index, scope, x);
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    return gb_node1(scope, GB_OP_MERGE_HEADS, gb_attention(scope, query, &model->keys[layer->kind], 1.0));
}

/* Chooses experts by h itself: its norm without a weight times a vector and 1 / sqrt(hidden_size). The
 * weights of those chosen sum to 1 before each is multiplied with its expert's scale. */
static gb_routes route(const gemma4 *model, const gb_scope *scope, gb_ref h) {
    const gb_gemma4_config *config = model->config;
    const gb_experts *experts = &config->experts;
    gb_scope router = gb_scope_in(scope, "router.");
    gb_ref x = gb_rms_norm(&router, "scale", h, config->rms_norm_eps);
    x = gb_node2(&router, GB_OP_SCALE, x, model->inverse_root);
    gb_routes routes = gb_route(&router, experts, gb_gate(&router, "proj.weight", x, experts->count));
    /* Each weight as a row of one element, times the 1 x 1 matrix of its expert. */
    const int64_t dims[] = {experts->count, 1, 1};
    gb_ref scales = gb_weight(&router, "per_expert_scale", 3, dims, gb_random_gain());
    gb_ref rows = gb_split_heads(&router, routes.weights, experts->choices);
    gb_ref scaled = gb_node3(&router, GB_OP_EXPERT_LINEAR, rows, scales, routes.experts);
    routes.weights = gb_node1(&router, GB_OP_MERGE_HEADS, scaled);
    return routes;
}

/* What comes between the norms around the feed-forward part. */
static gb_ref feed_forward(const gemma4 *model, int64_t index, const gb_scope *scope, gb_ref h) {
    const gb_gemma4_config *config = model->config;
    const double epsilon = config->rms_norm_eps;
    gb_scope mlp = gb_scope_in(scope, "mlp.");
    gb_ref dense = gb_rms_norm(scope, "pre_feedforward_layernorm.weight", h, epsilon);
    dense = gb_geglu_mlp(&mlp, dense, config->layers[index].intermediate_size);
    if (!config->has_experts)
        return dense;
    dense = gb_rms_norm(scope, "post_feedforward_layernorm_1.weight", dense, epsilon);
    gb_routes routes = route(model, scope, h);
    gb_ref sparse = gb_rms_norm(scope, "pre_feedforward_layernorm_2.weight", h, epsilon);
    sparse = gb_chosen_experts(scope, &config->experts, routes, sparse);
    sparse = gb_rms_norm(scope, "post_feedforward_layernorm_2.weight", sparse, epsilon);
    return gb_node2(scope, GB_OP_ADD, dense, sparse);
}

/* What the layer's own vectors of the tokens add to x. */
static gb_ref add_layer_input(const gemma4 *model, int64_t index, const gb_scope *scope, gb_ref x,
                              bool rows_only) {
    const gb_gemma4_config *config = model->config;
    gb_ref input = gb_slice(scope, model->layer_inputs, index * config->input_size, config->input_size);
    if (rows_only)
        input = gb_gather_rows(scope, input);
    gb_ref gate = gb_linear(scope, "per_layer_input_gate.weight", x, config->input_size);
    gate = gb_node2(scope, GB_OP_MULTIPLY, gb_node1(scope, GB_OP_GELU_TANH, gate), input);
    gate = gb_linear(scope, "per_layer_projection.weight", gate, config->hidden_size);
    gate = gb_rms_norm(scope, "post_per_layer_input_norm.weight", gate, config->rms_norm_eps);
    return gb_node2(scope, GB_OP_ADD, x, gate);
}

/* The vectors of all layers: the mean, but for a factor of sqrt(2), of what a table has for the token and
 * what is projected from its embedding x. */
static gb_ref all_layer_inputs(const gemma4 *model, const gb_scope *scope, gb_ref tokens, gb_ref x) {
    const gb_gemma4_config *config = model->config;
    const int64_t width = config->input_layers * config->input_size;
    const float half_root = (float)sqrt(0.5);
    gb_ref table = gb_table(scope, "embed_tokens_per_layer.weight", config->input_rows, width);
    gb_ref looked_up = gb_embedding(scope, table, tokens, sqrt((double)config->input_size));
    gb_ref projected = gb_linear(scope, "per_layer_model_projection.weight", x, width);
    projected = gb_node2(scope, GB_OP_SCALE, projected, model->inverse_root);
    projected = gb_split_heads(scope, projected, config->input_layers);
    projected = gb_rms_norm(scope, "per_layer_projection_norm.weight", projected, config->rms_norm_eps);
    projected = gb_node1(scope, GB_OP_MERGE_HEADS, projected);
    return gb_node2(scope, GB_OP_SCALE, gb_node2(scope, GB_OP_ADD, projected, looked_up),
                    gb_values(scope, "layer_inputs.scale", &half_root, 1));
}

/* In the last layer only the rows whose next token is wanted go on after attention: the others have then left
 * their keys and values, which is all that later tokens need of them. */
static gb_ref decoder_layer(gemma4 *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_gemma4_config *config = model->config;
    gb_scope self_attn = gb_scope_in(scope, "self_attn.");
    double epsilon = config->rms_norm_eps;

    gb_ref h = gb_rms_norm(scope, "input_layernorm.weight", x, epsilon);
    h = attention(model, index, &self_attn, h);
    const bool is_last = index == config->layer_count - 1;
    if (is_last) {
        h = gb_gather_rows(scope, h);
        x = gb_gather_rows(scope, x);
    }
    h = gb_linear(&self_attn, "o_proj.weight", h, config->hidden_size);
    h = gb_rms_norm(scope, "post_attention_layernorm.weight", h, epsilon);
    x = gb_node2(scope, GB_OP_ADD, x, h);

    h = feed_forward(model, index, scope, x);
    h = gb_rms_norm(scope, "post_feedforward_layernorm.weight", h, epsilon);
    x = gb_node2(scope, GB_OP_ADD, x, h);
    if (config->input_size > 0)
        x = add_layer_input(model, index, scope, x, is_last);
    return gb_node2(scope, GB_OP_SCALE, x, gb_gain(scope, "layer_scalar", 1));
}

/* Soft-capped logits of the rows whose next token is wanted, f32[B, V]. */
static gb_ref forward(gemma4 *model, const gb_scope *scope, const gb_scope *head) {
    const gb_gemma4_config *config = model->config;
    gb_ref tokens = gb_build_input(scope->builder, GB_ROLE_TOKENS);
    gb_ref table =
        gb_token_table(scope, head, config->vocab_size, config->hidden_size, config->has_tied_head);
    gb_ref x = gb_embedding(scope, table, tokens, sqrt((double)config->hidden_size));
    if (config->input_size > 0)
        model->layer_inputs = all_layer_inputs(model, scope, tokens, x);
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
        .inverse_root = GB_NO_VALUE,
        .layer_inputs = GB_NO_VALUE,
        .rotary = {[GB_GEMMA4_SLIDING] = rotary_of(&graph.scope, config, GB_GEMMA4_SLIDING),
                   [GB_GEMMA4_FULL] = rotary_of(&graph.scope, config, GB_GEMMA4_FULL)},
    };
    const float root = (float)(1 / sqrt((double)config->hidden_size));
    if (config->has_experts || config->input_size > 0)
        model.inverse_root = gb_values(&graph.scope, "inverse_root", &root, 1);
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

/* Name, wrapper and model_type; ids that end and begin texts. */
const gb_model gb_gemma4 = {"gemma4", "gemma4", "gemma4_text", 1, 2, build, NULL};
const gb_model gb_gemma4_unified = {"gemma4", "gemma4_unified", "gemma4_unified_text", 1, 2, build, NULL};
