/* SPDX-License-Identifier: Apache-2.0
 *
 * Qwen3.5, with experts or dense, and Qwen3-Next. For a layer with input x:
 *
 *     h = x + mixer(norm(x))
 *     y = h + mlp(norm(h))
 *
 * The mixer is a gated delta net in most layers and full attention in each last of a few; the MLP is a
 * mixture of experts with a shared one, or dense. Attention gates its own output, head by head; queries and
 * keys are normalized with a weight, and their first dims rotated. Norms multiply by 1 + w, but for the delta
 * net's own; in some checkpoints they hold 1 + w.
 */
#include "export/models/model.h"
#include "export/models/qwen3_5_config.h"
#include "export/nn/attention.h"
#include "export/nn/layers.h"
#include "export/nn/rotary.h"
#include "export/nn/sampling.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef struct qwen3_5 {
    const gb_qwen3_5_config *config;
    gb_context context;
    gb_rotary rotary;
} qwen3_5;

static gb_ref norm(const qwen3_5 *model, const gb_scope *scope, const char *name, gb_ref x) {
    double epsilon = model->config->rms_norm_eps;
    return model->config->norms_hold_one ? gb_rms_norm(scope, name, x, epsilon)
                                         : gb_rms_norm_from_one(scope, name, x, epsilon);
}

/* q_proj gives each head its query and then its gate. */
static gb_ref attention(const qwen3_5 *model, const gb_scope *scope, const char *name, gb_ref x,
                        bool rows_only) {
    const gb_qwen3_5_config *config = model->config;
    int64_t head_dim = config->head_dim;

    gb_ref both = gb_linear(scope, "q_proj.weight", x, config->heads * 2 * head_dim);
    gb_ref key = gb_linear(scope, "k_proj.weight", x, config->kv_heads * head_dim);
    gb_ref value = gb_linear(scope, "v_proj.weight", x, config->kv_heads * head_dim);

    both = gb_split_heads(scope, both, config->heads);
    gb_ref query = gb_slice(scope, both, 0, head_dim);
    gb_ref gate = gb_node1(scope, GB_OP_MERGE_HEADS, gb_slice(scope, both, head_dim, head_dim));
    query = gb_rotate(scope, &model->rotary, norm(model, scope, "q_norm.weight", query));

    key = gb_split_heads(scope, key, config->kv_heads);
    key = gb_rotate(scope, &model->rotary, norm(model, scope, "k_norm.weight", key));
    value = gb_split_heads(scope, value, config->kv_heads);

    gb_ref mixed =
        gb_cached_attention(scope, &model->context, name, query, key, value, 1 / sqrt((double)head_dim), 0);
    mixed = gb_node1(scope, GB_OP_MERGE_HEADS, mixed);
    if (rows_only) {
        mixed = gb_gather_rows(scope, mixed);
        gate = gb_gather_rows(scope, gate);
    }
    mixed = gb_node2(scope, GB_OP_MULTIPLY, mixed, gb_node1(scope, GB_OP_SIGMOID, gate));
    return gb_linear(scope, "o_proj.weight", mixed, config->hidden_size);
}

static gb_ref mixer(const qwen3_5 *model, int64_t index, const gb_scope *scope, gb_ref x, bool rows_only) {
    char name[32];
    snprintf(name, sizeof name, "layers.%" PRId64, index);
    if (model->config->layers[index].kind == GB_QWEN3_5_FULL) {
        gb_scope self_attn = gb_scope_in(scope, "self_attn.");
        return attention(model, &self_attn, name, x, rows_only);
    }
    gb_scope linear_attn = gb_scope_in(scope, "linear_attn.");
    return gb_delta_net_mixer(&linear_attn, &model->config->delta_net, name, x, rows_only);
}

/* In the last layer only the rows whose next token is wanted leave the mixer: the others have then left their
 * trace in its state, which is all that later tokens need of them. */
static gb_ref decoder_layer(const qwen3_5 *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_qwen3_5_config *config = model->config;
    bool is_last = index == config->layer_count - 1;
    gb_scope mlp = gb_scope_in(scope, "mlp.");

    gb_ref h = norm(model, scope, "input_layernorm.weight", x);
    h = mixer(model, index, scope, h, is_last);
    x = gb_node2(scope, GB_OP_ADD, is_last ? gb_gather_rows(scope, x) : x, h);

    h = norm(model, scope, "post_attention_layernorm.weight", x);
    h = config->layers[index].has_experts ? gb_expert_mlp(&mlp, &config->experts, h)
                                          : gb_swiglu_mlp(&mlp, h, config->intermediate_size);
    return gb_node2(scope, GB_OP_ADD, x, h);
}

/* Logits of the rows whose next token is wanted, f32[B, V]. */
static gb_ref forward(const qwen3_5 *model, const gb_scope *scope, const gb_scope *head) {
    const gb_qwen3_5_config *config = model->config;
    gb_ref tokens = gb_build_input(scope->builder, GB_ROLE_TOKENS);
    gb_build_input(scope->builder, GB_ROLE_POSITIONS); /* every program has them, used or not */
    gb_ref table =
        gb_token_table(scope, head, config->vocab_size, config->hidden_size, config->has_tied_head);
    gb_ref x = gb_embedding(scope, table, tokens, 1);
    for (int64_t i = 0; i < config->layer_count; i++) {
        gb_scope layer = gb_scope_in(scope, "layers.%" PRId64 ".", i);
        x = decoder_layer(model, i, &layer, x);
    }
    x = norm(model, scope, "norm.weight", x);
    return gb_head(scope, head, x, table, config->vocab_size, config->has_tied_head);
}

/* Whether mlx-lm has written the checkpoint, known as mlx-lm knows it: by a convolution's weight, which is
 * [C, W, 1] then and not [C, 1, W]. */
static bool is_from_mlx(const gb_qwen3_5_config *config, const gb_weights *weights) {
    const gb_delta_net *net = &config->delta_net;
    const int64_t channels = 2 * net->key_heads * net->key_dim + net->value_heads * net->value_dim;
    const char *prefix = gb_find_tensors(weights, NULL, config->is_wrapped).text;
    for (int64_t i = 0; i < config->layer_count; i++) {
        char name[128];
        snprintf(name, sizeof name, "%slayers.%" PRId64 ".linear_attn.conv1d.weight", prefix, i);
        if (gb_weights_has_shape(weights, name, 3, (const int64_t[]){channels, net->conv_width, 1}))
            return true;
    }
    return false;
}

static gumbel_status build_graph(const gb_qwen3_5_config *config, const gb_model_options *options,
                                 gb_builder *builder, gb_weights *weights, gumbel_error *error) {
    const gb_text_model text = {
        .vocab_size = config->vocab_size,
        .max_positions = config->max_positions,
        .is_wrapped = config->is_wrapped,
    };
    gb_text_graph graph;
    GB_TRY(gb_begin_text_graph(&text, options, builder, weights, &graph, error));
    qwen3_5 model = {
        .config = config,
        .context = graph.context,
        .rotary = gb_rotary_create(&graph.scope, "rotary", config->rope_theta, 1, config->rotary_dim,
                                   config->rotary_dim / 2),
    };
    return gb_end_text_graph(&graph, forward(&model, &graph.scope, &graph.head), options, error);
}

static gumbel_status build(const gb_config *root, const gb_model_options *options, gb_builder *builder,
                           gb_weights *weights, gumbel_error *error) {
    gb_qwen3_5_config config;
    gumbel_status status = gb_qwen3_5_config_read(root, &config, error);
    if (status == GUMBEL_OK)
        status = gb_keep_layers(options->layers, &config.layer_count, error);
    if (status == GUMBEL_OK && is_from_mlx(&config, weights))
        config.norms_hold_one = true;
    if (status == GUMBEL_OK)
        status = build_graph(&config, options, builder, weights, error);
    gb_qwen3_5_config_free(&config);
    return status;
}

/* Name, wrapper and model_type; ids that end and begin texts. */
const gb_model gb_qwen3_5 = {"qwen3_5", "qwen3_5", "qwen3_5_text", -1, -1, build, NULL};
const gb_model gb_qwen3_5_moe = {"qwen3_5_moe", "qwen3_5_moe", "qwen3_5_moe_text", -1, -1, build, NULL};
const gb_model gb_qwen3_next = {"qwen3_next", NULL, "qwen3_next", -1, -1, build, NULL};
