/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/gemma4_layers.h"

#include "export/nn/layers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Keys and values of a layer that has its own. */
static gb_cached_keys own_keys(const gb_gemma4_graph *model, int64_t index, const gb_scope *scope, gb_ref x) {
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

static gb_ref attention(gb_gemma4_graph *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_gemma4_config *config = model->config;
    const gb_gemma4_layer *layer = &config->layers[index];
    gb_ref query = gb_linear(scope, "q_proj.weight", x, config->heads * layer->head_dim);
    query = gb_split_heads(scope, query, config->heads);
    query = gb_rms_norm(scope, "q_norm.weight", query, config->rms_norm_eps);
    if (config->is_assistant) {
        query = gb_rotate_behind(scope, &model->rotary[layer->kind], query);
        return gb_node1(scope, GB_OP_MERGE_HEADS, gb_attend(scope, query, &model->keys[layer->kind], 1.0));
    }
    query = gb_rotate(scope, &model->rotary[layer->kind], query);
    if (!layer->shares_keys)
        model->keys[layer->kind] = own_keys(model, index, scope, x);
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    return gb_node1(scope, GB_OP_MERGE_HEADS, gb_attention(scope, query, &model->keys[layer->kind], 1.0));
}

/* Chooses experts by h itself: its norm without a weight times a vector and 1 / sqrt(hidden_size). The
 * weights of those chosen sum to 1 before each is multiplied with its expert's scale. */
static gb_routes route(const gb_gemma4_graph *model, const gb_scope *scope, gb_ref h) {
    const gb_gemma4_config *config = model->config;
    const gb_experts *experts = &config->experts;
    gb_scope router = gb_scope_in(scope, "router.");
    const double inverse_root = 1 / sqrt((double)config->hidden_size);
    gb_ref x = gb_rms_norm_times(&router, "scale", h, config->rms_norm_eps, inverse_root);
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
static gb_ref feed_forward(const gb_gemma4_graph *model, int64_t index, const gb_scope *scope, gb_ref h) {
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
static gb_ref add_layer_input(const gb_gemma4_graph *model, int64_t index, const gb_scope *scope, gb_ref x,
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

gb_ref gb_gemma4_decoder_layer(gb_gemma4_graph *model, int64_t index, const gb_scope *scope, gb_ref x,
                               bool rows_only) {
    const gb_gemma4_config *config = model->config;
    gb_scope self_attn = gb_scope_in(scope, "self_attn.");
    double epsilon = config->rms_norm_eps;

    gb_ref h = gb_rms_norm(scope, "input_layernorm.weight", x, epsilon);
    h = attention(model, index, &self_attn, h);
    if (rows_only) {
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
        x = add_layer_input(model, index, scope, x, rows_only);
    return gb_node2(scope, GB_OP_SCALE, x, gb_gain(scope, "layer_scalar", 1));
}

const gb_gemma4_layer *gb_gemma4_find_layer(const gb_gemma4_config *config, gb_gemma4_kind kind) {
    for (int64_t i = 0; i < config->layer_count; i++)
        if (config->layers[i].kind == kind)
            return &config->layers[i];
    return NULL;
}

gb_text_model gb_gemma4_text_model(const gb_gemma4_config *config) {
    return (gb_text_model){
        .vocab_size = config->vocab_size,
        .max_positions = config->max_positions,
        .window = gb_gemma4_find_layer(config, GB_GEMMA4_SLIDING) ? config->sliding_window : 0,
        .is_wrapped = config->is_wrapped,
    };
}

gb_rotary gb_gemma4_rotary(const gb_scope *scope, const char *prefix, const gb_gemma4_config *config,
                           gb_gemma4_kind kind) {
    const gb_gemma4_layer *layer = gb_gemma4_find_layer(config, kind);
    if (!layer)
        return (gb_rotary){.frequencies = GB_NO_VALUE};
    const gb_gemma4_rope *rope = &config->rope[kind];
    /* A pair is two dimensions; an odd one left over turns with its pair. Released sizes have none. */
    int64_t turning = (int64_t)(rope->proportion * (double)layer->head_dim);
    char name[64];
    snprintf(name, sizeof name, "%srotary.%s", prefix, gb_gemma4_kind_name(kind));
    return gb_rotary_create(scope, name, rope->theta, rope->factor, layer->head_dim, (turning + 1) / 2);
}
