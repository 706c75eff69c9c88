/* SPDX-License-Identifier: Apache-2.0
 *
 * Nemotron-H and Nemotron 3. Each layer adds one thing to its input x:
 *
 *     y = x + mixer(norm(x))
 *
 * a Mamba 2 layer, full attention, an MLP, or a mixture of experts. Attention rotates nothing: the Mamba
 * layers know where tokens stand. An MLP, and an expert, has no gate: down(relu(up(x))^2).
 */
#include "export/models/model.h"
#include "export/models/nemotron_h_config.h"
#include "export/nn/attention.h"
#include "export/nn/layers.h"
#include "export/nn/sampling.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const char TABLE[] = "embeddings.weight";

typedef struct nemotron_h {
    const gb_nemotron_h_config *config;
    gb_context context;
} nemotron_h;

static gb_ref attention(const nemotron_h *model, const gb_scope *scope, const char *name, gb_ref x,
                        bool rows_only) {
    const gb_nemotron_h_config *config = model->config;
    const int64_t head_dim = config->head_dim;
    const gb_ref query = gb_linear_heads(scope, "q_proj.weight", x, config->heads, head_dim);
    const gb_ref key = gb_linear_heads(scope, "k_proj.weight", x, config->kv_heads, head_dim);
    const gb_ref value = gb_linear_heads(scope, "v_proj.weight", x, config->kv_heads, head_dim);
    gb_ref mixed =
        gb_cached_attention(scope, &model->context, name, query, key, value, 1 / sqrt((double)head_dim), 0);
    mixed = gb_node1(scope, GB_OP_MERGE_HEADS, mixed);
    if (rows_only)
        mixed = gb_gather_rows(scope, mixed);
    return gb_linear(scope, "o_proj.weight", mixed, config->hidden_size);
}

static gb_ref mixer(const nemotron_h *model, int64_t index, const gb_scope *scope, gb_ref x, bool rows_only) {
    const gb_nemotron_h_config *config = model->config;
    char name[32];
    snprintf(name, sizeof name, "layers.%" PRId64, index);
    switch (config->layers[index]) {
    case GB_NEMOTRON_H_MAMBA:
        return gb_mamba_mixer(scope, &config->mamba, name, x, rows_only);
    case GB_NEMOTRON_H_ATTENTION:
        return attention(model, scope, name, x, rows_only);
    case GB_NEMOTRON_H_EXPERTS:
        return gb_plain_expert_mlp(scope, &config->experts, x);
    default:
        return gb_relu_squared_mlp(scope, x, config->intermediate_size);
    }
}

static bool has_state(gb_nemotron_h_kind kind) {
    return kind == GB_NEMOTRON_H_MAMBA || kind == GB_NEMOTRON_H_ATTENTION;
}

/* The last layer with a state, behind which only the rows whose next token is wanted go on; -1: none has one.
 */
static int64_t last_with_state(const gb_nemotron_h_config *config) {
    int64_t last = config->layer_count - 1;
    while (last >= 0 && !has_state(config->layers[last]))
        last--;
    return last;
}

static gb_ref layers(const nemotron_h *model, const gb_scope *scope, gb_ref x) {
    const gb_nemotron_h_config *config = model->config;
    const int64_t last = last_with_state(config);
    if (last < 0)
        x = gb_gather_rows(scope, x);
    for (int64_t i = 0; i < config->layer_count; i++) {
        const gb_scope layer = gb_scope_in(scope, "layers.%" PRId64 ".", i),
                       mix = gb_scope_in(&layer, "mixer.");
        gb_ref h = gb_rms_norm(&layer, "norm.weight", x, config->epsilon);
        h = mixer(model, i, &mix, h, i == last);
        x = gb_node2(scope, GB_OP_ADD, i == last ? gb_gather_rows(scope, x) : x, h);
    }
    return x;
}

/* Logits of the rows whose next token is wanted, f32[B, V]. */
static gb_ref forward(const nemotron_h *model, const gb_scope *scope, const gb_scope *head) {
    const gb_nemotron_h_config *config = model->config;
    const int64_t vocabulary = config->vocab_size, hidden = config->hidden_size;
    const gb_ref tokens = gb_build_input(scope->builder, GB_ROLE_TOKENS);
    gb_build_input(scope->builder, GB_ROLE_POSITIONS); /* every program has these two, used or not */
    gb_build_input(scope->builder, GB_ROLE_SLOTS);
    const gb_ref table = (config->has_tied_head ? gb_tied_table : gb_table)(scope, TABLE, vocabulary, hidden);
    gb_ref x = layers(model, scope, gb_embedding(scope, table, tokens, 1));
    x = gb_rms_norm(scope, "norm_f.weight", x, config->epsilon);
    return config->has_tied_head ? gb_multiply_matrix(scope, x, table)
                                 : gb_linear(head, "lm_head.weight", x, vocabulary);
}

static gumbel_status build(const gb_config *root, const gb_model_options *options, gb_builder *builder,
                           gb_weights *weights, gumbel_error *error) {
    gb_nemotron_h_config config;
    GB_TRY(gb_nemotron_h_config_read(root, &config, error));
    GB_TRY(gb_keep_layers(options->layers, &config.layer_count, error));
    const gb_text_model text = {
        .vocab_size = config.vocab_size, .max_positions = config.max_positions, .table = TABLE};
    gb_text_graph graph;
    GB_TRY(gb_begin_text_graph(&text, options, builder, weights, &graph, error));
    const nemotron_h model = {.config = &config, .context = graph.context};
    return gb_end_text_graph(&graph, forward(&model, &graph.scope, &graph.head), options, error);
}

/* Name, wrapper and model_type; ids that end and begin texts. */
const gb_model gb_nemotron_h = {"nemotron_h", NULL, "nemotron_h", 2, 1, build, NULL};
