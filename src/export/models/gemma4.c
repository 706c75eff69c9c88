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
#include "export/models/gemma4_assistant.h"
#include "export/models/gemma4_layers.h"
#include "export/models/model.h"
#include "export/nn/hidden.h"
#include "export/nn/layers.h"
#include "export/nn/sampling.h"

#include <inttypes.h>
#include <math.h>

/* The vectors of all layers: the mean, but for a factor of sqrt(2), of what a table has for the token and
 * what is projected from its embedding x. */
static gb_ref all_layer_inputs(const gb_gemma4_graph *model, const gb_scope *scope, gb_ref tokens, gb_ref x) {
    const gb_gemma4_config *config = model->config;
    const int64_t width = config->input_layers * config->input_size;
    const float half_root = (float)sqrt(0.5), inverse_root = (float)(1 / sqrt((double)config->hidden_size));
    gb_ref table = gb_table(scope, "embed_tokens_per_layer.weight", config->input_rows, width);
    gb_ref looked_up = gb_embedding(scope, table, tokens, sqrt((double)config->input_size));
    gb_ref projected = gb_linear(scope, "per_layer_model_projection.weight", x, width);
    projected = gb_node2(scope, GB_OP_SCALE, projected, gb_values(scope, "inverse_root", &inverse_root, 1));
    projected = gb_split_heads(scope, projected, config->input_layers);
    projected = gb_rms_norm(scope, "per_layer_projection_norm.weight", projected, config->rms_norm_eps);
    projected = gb_node1(scope, GB_OP_MERGE_HEADS, projected);
    return gb_node2(scope, GB_OP_SCALE, gb_node2(scope, GB_OP_ADD, projected, looked_up),
                    gb_values(scope, "layer_inputs.scale", &half_root, 1));
}

/* In the last layer only the rows whose next token is wanted go on after attention: the others have then left
 * their keys and values, which is all that later tokens need of them. Where hidden states are kept for a
 * draft head, those of all tokens are, and the rows leave after that. */
static gb_ref run_layers(gb_gemma4_graph *model, const gb_scope *scope, gb_ref x, bool keeps_hidden) {
    const gb_gemma4_config *config = model->config;
    for (int64_t i = 0; i < config->layer_count; i++) {
        gb_scope layer = gb_scope_in(scope, "layers.%" PRId64 ".", i);
        x = gb_gemma4_decoder_layer(model, i, &layer, x, i == config->layer_count - 1 && !keeps_hidden);
    }
    x = gb_rms_norm(scope, "norm.weight", x, config->rms_norm_eps);
    if (!keeps_hidden)
        return x;
    gb_ref hidden = gb_hidden_rows(scope, &model->context, config->hidden_size);
    return gb_gather_rows(scope, gb_keep_hidden(scope, x, hidden, 0));
}

/* Soft-capped logits of the rows whose next token is wanted, f32[B, V]. */
static gb_ref forward(gb_gemma4_graph *model, const gb_scope *scope, const gb_scope *head,
                      bool keeps_hidden) {
    const gb_gemma4_config *config = model->config;
    gb_ref tokens = gb_build_input(scope->builder, GB_ROLE_TOKENS);
    gb_ref table =
        gb_token_table(scope, head, config->vocab_size, config->hidden_size, config->has_tied_head);
    gb_ref x = gb_embedding(scope, table, tokens, sqrt((double)config->hidden_size));
    if (config->input_size > 0)
        model->layer_inputs = all_layer_inputs(model, scope, tokens, x);
    x = run_layers(model, scope, x, keeps_hidden);
    gb_ref logits = gb_head(scope, head, x, table, config->vocab_size, config->has_tied_head);
    if (config->logit_cap > 0)
        logits = gb_node_with(scope, GB_OP_SOFT_CAP, logits, GB_NO_VALUE,
                              gb_float(GB_ATTRIBUTE_CAP, config->logit_cap));
    return logits;
}

static gumbel_status build_graph(const gb_gemma4_config *config, const gb_model_options *options,
                                 gb_builder *builder, gb_weights *weights, gumbel_error *error) {
    const gb_text_model text = gb_gemma4_text_model(config);
    gb_text_graph graph;
    GB_TRY(gb_begin_text_graph(&text, options, builder, weights, &graph, error));
    gb_gemma4_graph model = {
        .config = config,
        .context = graph.context,
        .layer_inputs = GB_NO_VALUE,
        .rotary = {[GB_GEMMA4_SLIDING] = gb_gemma4_rotary(&graph.scope, "", config, GB_GEMMA4_SLIDING),
                   [GB_GEMMA4_FULL] = gb_gemma4_rotary(&graph.scope, "", config, GB_GEMMA4_FULL)},
    };
    return gb_end_text_graph(&graph, forward(&model, &graph.scope, &graph.head, options->keep_hidden),
                             options, error);
}

/* Either graph. */
typedef gumbel_status (*graph_builder)(const gb_gemma4_config *config, const gb_model_options *options,
                                       gb_builder *builder, gb_weights *weights, gumbel_error *error);

static gumbel_status build_with(const gb_config *root, const gb_model_options *options, gb_builder *builder,
                                gb_weights *weights, graph_builder build_one, gumbel_error *error) {
    gb_gemma4_config config;
    gumbel_status status = gb_gemma4_config_read(root, &config, error);
    if (status == GUMBEL_OK)
        status = gb_keep_layers(options->layers, &config.layer_count, error);
    if (status == GUMBEL_OK)
        status = build_one(&config, options, builder, weights, error);
    gb_gemma4_config_free(&config);
    return status;
}

static gumbel_status build(const gb_config *root, const gb_model_options *options, gb_builder *builder,
                           gb_weights *weights, gumbel_error *error) {
    return build_with(root, options, builder, weights, build_graph, error);
}

static gumbel_status build_head(const gb_config *root, const gb_model_options *options, gb_builder *builder,
                                gb_weights *weights, gumbel_error *error) {
    if (!options->assistant)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "draft_head: gemma4 has no draft head that gumbel knows; its assistant can be one "
                       "(assistant)");
    return build_with(root, options, builder, weights, gb_gemma4_build_assistant, error);
}

/* Name, wrapper and model_type; ids that end and begin texts. */
const gb_model gb_gemma4 = {"gemma4", "gemma4", "gemma4_text", 1, 2, build, build_head};
const gb_model gb_gemma4_unified = {"gemma4", "gemma4_unified", "gemma4_unified_text", 1, 2,
                                    build,    build_head};
