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
 *
 * The draft head, mtp.*, is one such layer with full attention, whose input is made from a token's embedding
 * and the hidden state, behind the last norm, of the token before it:
 *
 *     x = fc [norm_e(embedding), norm_h(hidden)]
 */
#include "export/models/model.h"
#include "export/models/qwen3_5_config.h"
#include "export/nn/attention.h"
#include "export/nn/hidden.h"
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
    bool keeps_hidden;
} qwen3_5;

/* A decoder layer. In the last one only the rows whose next token is wanted leave the mixer: the others have
 * then left their trace in its state, which is all that later tokens need of them. */
typedef struct block {
    gb_qwen3_5_layer layer;
    gb_scope scope;
    char states[32]; /* what the names of its states begin with */
    bool rows_only;
} block;

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

static gb_ref mixer(const qwen3_5 *model, const block *of, gb_ref x) {
    if (of->layer.kind == GB_QWEN3_5_FULL) {
        gb_scope self_attn = gb_scope_in(&of->scope, "self_attn.");
        return attention(model, &self_attn, of->states, x, of->rows_only);
    }
    gb_scope linear_attn = gb_scope_in(&of->scope, "linear_attn.");
    return gb_delta_net_mixer(&linear_attn, &model->config->delta_net, of->states, x, of->rows_only);
}

static gb_ref decoder_layer(const qwen3_5 *model, const block *of, gb_ref x) {
    const gb_qwen3_5_config *config = model->config;
    const gb_scope *scope = &of->scope;
    gb_scope mlp = gb_scope_in(scope, "mlp.");

    gb_ref h = norm(model, scope, "input_layernorm.weight", x);
    h = mixer(model, of, h);
    x = gb_node2(scope, GB_OP_ADD, of->rows_only ? gb_gather_rows(scope, x) : x, h);

    h = norm(model, scope, "post_attention_layernorm.weight", x);
    h = of->layer.has_experts ? gb_expert_mlp(&mlp, &config->experts, h)
                              : gb_swiglu_mlp(&mlp, h, config->intermediate_size);
    return gb_node2(scope, GB_OP_ADD, x, h);
}

/* Where hidden states are kept for a draft head, those of all tokens are, and the rows leave after that. */
static gb_ref run_layers(const qwen3_5 *model, const gb_scope *scope, gb_ref x) {
    const gb_qwen3_5_config *config = model->config;
    for (int64_t i = 0; i < config->layer_count; i++) {
        block of = {.layer = config->layers[i],
                    .scope = gb_scope_in(scope, "layers.%" PRId64 ".", i),
                    .rows_only = i == config->layer_count - 1 && !model->keeps_hidden};
        snprintf(of.states, sizeof of.states, "layers.%" PRId64, i);
        x = decoder_layer(model, &of, x);
    }
    return x;
}

static gb_ref embed(const qwen3_5 *model, const gb_scope *scope, const gb_scope *head, gb_ref *table) {
    const gb_qwen3_5_config *config = model->config;
    gb_ref tokens = gb_build_input(scope->builder, GB_ROLE_TOKENS);
    gb_build_input(scope->builder, GB_ROLE_POSITIONS); /* every program has them, used or not */
    *table = gb_token_table(scope, head, config->vocab_size, config->hidden_size, config->has_tied_head);
    return gb_embedding(scope, *table, tokens, 1);
}

static gb_ref keep_and_gather(const gb_scope *scope, gb_ref x, gb_ref hidden, int64_t start) {
    return gb_gather_rows(scope, gb_keep_hidden(scope, x, hidden, start));
}

/* Logits of the rows whose next token is wanted, f32[B, V]. */
static gb_ref forward(const qwen3_5 *model, const gb_scope *scope, const gb_scope *head) {
    const gb_qwen3_5_config *config = model->config;
    gb_ref table, x = embed(model, scope, head, &table);
    x = norm(model, scope, "norm.weight", run_layers(model, scope, x));
    if (model->keeps_hidden)
        x = keep_and_gather(scope, x, gb_hidden_rows(scope, &model->context, config->hidden_size), 0);
    return gb_head(scope, head, x, table, config->vocab_size, config->has_tied_head);
}

/* ---- The draft head ------------------------------------------------------------------------------------ */

static const char FUSE[] = "fc.weight";

/* Its tensors stand beside the text model's, whatever the prefix of those. */
static gb_scope draft_scope(const gb_scope *scope) {
    const gb_scope root = {.builder = scope->builder, .weights = scope->weights};
    return gb_scope_in(&root, "mtp.");
}

/* A token stands at the position of the hidden state before it, so that the first one has none. What comes
 * behind its own guess it guesses from its own hidden state, kept in the place of the model's. */
static gb_ref forward_head(const qwen3_5 *model, const gb_scope *scope, const gb_scope *head) {
    const gb_qwen3_5_config *config = model->config;
    const gb_scope mtp = draft_scope(scope);
    const block of = {.layer = {GB_QWEN3_5_FULL, config->has_experts},
                      .scope = gb_scope_in(&mtp, "layers.0."),
                      .states = "mtp.layers.0"};
    gb_ref table, x = embed(model, scope, head, &table);
    gb_ref hidden = gb_hidden_rows(scope, &model->context, config->hidden_size);

    x = norm(model, &mtp, "pre_fc_norm_embedding.weight", x);
    gb_ref before = norm(model, &mtp, "pre_fc_norm_hidden.weight", gb_load_hidden(scope, hidden, 0));
    x = gb_linear(&mtp, FUSE, gb_node2(scope, GB_OP_CONCATENATE, x, before), config->hidden_size);
    x = norm(model, &mtp, "norm.weight", decoder_layer(model, &of, x));
    x = keep_and_gather(scope, x, hidden, 1);
    return gb_head(scope, head, x, table, config->vocab_size, config->has_tied_head);
}

static gumbel_status check_head(const gb_scope *scope, gumbel_error *error) {
    const gb_scope mtp = draft_scope(scope);
    if (gb_scope_has(&mtp, FUSE))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "the checkpoint has no draft head: no tensor %s%s",
                   mtp.prefix, FUSE);
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

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

/* Either graph, ending in these logits. */
typedef gb_ref (*logits_of)(const qwen3_5 *model, const gb_scope *scope, const gb_scope *head);

static gumbel_status build_graph(const gb_qwen3_5_config *config, const gb_model_options *options,
                                 gb_builder *builder, gb_weights *weights, logits_of logits,
                                 gumbel_error *error) {
    const gb_text_model text = {
        .vocab_size = config->vocab_size,
        .max_positions = config->max_positions,
        .is_wrapped = config->is_wrapped,
    };
    gb_text_graph graph;
    GB_TRY(gb_begin_text_graph(&text, options, builder, weights, &graph, error));
    if (logits == forward_head)
        GB_TRY(check_head(&graph.scope, error));
    qwen3_5 model = {
        .config = config,
        .context = graph.context,
        .rotary = gb_rotary_create(&graph.scope, "rotary", config->rope_theta, 1, config->rotary_dim,
                                   config->rotary_dim / 2),
        .keeps_hidden = options->keep_hidden,
    };
    return gb_end_text_graph(&graph, logits(&model, &graph.scope, &graph.head), options, error);
}

static gumbel_status build_with(const gb_config *root, const gb_model_options *options, gb_builder *builder,
                                gb_weights *weights, logits_of logits, gumbel_error *error) {
    gb_qwen3_5_config config;
    gumbel_status status = gb_qwen3_5_config_read(root, &config, error);
    if (status == GUMBEL_OK)
        status = gb_keep_layers(options->layers, &config.layer_count, error);
    if (status == GUMBEL_OK && is_from_mlx(&config, weights))
        config.norms_hold_one = true;
    if (status == GUMBEL_OK)
        status = build_graph(&config, options, builder, weights, logits, error);
    gb_qwen3_5_config_free(&config);
    return status;
}

static gumbel_status build(const gb_config *root, const gb_model_options *options, gb_builder *builder,
                           gb_weights *weights, gumbel_error *error) {
    return build_with(root, options, builder, weights, forward, error);
}

static gumbel_status build_head(const gb_config *root, const gb_model_options *options, gb_builder *builder,
                                gb_weights *weights, gumbel_error *error) {
    if (options->assistant)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "assistant: this model has none; a draft head is in its own checkpoint (draft_head)");
    GB_TRY(gb_qwen3_5_check_head(root, error));
    return build_with(root, options, builder, weights, forward_head, error);
}

/* Name, wrapper and model_type; ids that end and begin texts. */
const gb_model gb_qwen3_5 = {"qwen3_5", "qwen3_5", "qwen3_5_text", -1, -1, build, build_head};
const gb_model gb_qwen3_5_moe = {"qwen3_5_moe", "qwen3_5_moe", "qwen3_5_moe_text", -1, -1, build, build_head};
const gb_model gb_qwen3_next = {"qwen3_next", NULL, "qwen3_next", -1, -1, build, build_head};
