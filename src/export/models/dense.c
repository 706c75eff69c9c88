/* SPDX-License-Identifier: Apache-2.0
 *
 * The plain decoders: Llama 3, Mistral, Ministral 3, Qwen2, Qwen3 with and without experts, Gemma 3, SmolLM3,
 * Granite, Phi, gpt-oss, OLMo 2 and 3 and Muse Glimmer. For a layer with input x:
 *
 *     h = x + attention(norm(x))
 *     y = h + mlp(norm(h))
 *
 * Queries and keys are rotated; Qwen3 and Gemma 3 normalize them before, head by head with a weight. Qwen2
 * adds biases to what queries, keys and values are projected to. The MLP is a SwiGLU or, in Qwen3 with
 * experts, a mixture of them without a shared one. Norms multiply by w.
 *
 * In Gemma 3 what attention and the MLP, a GEGLU, add is normalized too; norms multiply by 1 + w; embeddings
 * are scaled; and sliding layers rotate with frequencies of their own. In SmolLM3 some layers do not rotate.
 *
 * In Granite embeddings, scores, what attention and the MLP add, and logits are multiplied with numbers of
 * the configuration. Granite 4 calls the MLP shared, and may have experts beside it; and layers of it may
 * have a state space in attention's place (src/export/nn/mamba.c).
 *
 * In Ministral 3 queries grow with their position.
 *
 * In Phi a part of each head is rotated, and scaled. Queries, keys and values are of one tensor, gate and up
 * of another: their rows are taken apart, so that the graph is as others' are.
 *
 * In gpt-oss all products of attention and experts have biases, and each head has a sink: a score that takes
 * its part of the softmax and has no value.
 *
 * In OLMo 2 and 3 what attention and the MLP add is normalized, and what they read is not; queries and keys
 * are normalized before they are heads. Of OLMo 3 full layers alone have a scaled rotary embedding.
 *
 * In Muse Glimmer norms are as in Gemma 3, but for the last, which multiplies by w, and for those of heads
 * and of embeddings, which have no weight; attention's result has a gate; and full layers do not rotate.
 */
#include "export/models/dense_config.h"
#include "export/models/model.h"
#include "export/nn/attention.h"
#include "export/nn/layers.h"
#include "export/nn/query_scale.h"
#include "export/nn/rotary.h"
#include "export/nn/sampling.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct dense {
    const gb_dense_config *config;
    gb_context context;
    gb_rotary rotary, sliding_rotary;
    gb_ref residual_scale; /* f32[1], where there is one */
    gb_ref query_scale;    /* f32[N, 1] or GB_NO_VALUE */
} dense;

/* The rotary embedding of a layer; NULL: none. */
static const gb_rope_config *rope_of(const gb_dense_config *config, int64_t index) {
    const gb_dense_layer *layer = &config->layers[index];
    if (!layer->has_rope)
        return NULL;
    return layer->is_sliding && config->traits.has_sliding_rope ? &config->sliding_rope : &config->rope;
}

static gb_ref norm_with(const dense *model, const gb_scope *scope, const char *name, gb_ref x,
                        double epsilon) {
    return model->config->traits.has_norms_from_one ? gb_rms_norm_from_one(scope, name, x, epsilon)
                                                    : gb_rms_norm(scope, name, x, epsilon);
}

static gb_ref norm(const dense *model, const gb_scope *scope, const char *name, gb_ref x) {
    return norm_with(model, scope, name, x, model->config->rms_norm_eps);
}

static gb_ref output_norm(const dense *model, const gb_scope *scope, const char *name, gb_ref x) {
    return norm_with(model, scope, name, x, model->config->output_norm_eps);
}

/* What attention or the MLP reads. */
static gb_ref input_norm(const dense *model, const gb_scope *scope, const char *name, gb_ref x) {
    return model->config->traits.has_plain_inputs ? x : norm(model, scope, name, x);
}

/* What queries, keys or values are made by. */
typedef struct head_projection {
    const char *name;
    int64_t first_head, heads; /* first_head: in the tensor of all, if there is one */
    const char *norm;          /* NULL: they are not normalized */
    gb_ref scale;              /* f32[N, 1] or GB_NO_VALUE */
} head_projection;

static gb_ref projected_heads(const dense *model, const gb_scope *scope, gb_ref x,
                              const head_projection *by) {
    const gb_dense_config *config = model->config;
    const gb_scope projection = gb_scope_in(scope, "%s.", by->name);
    const gb_fused_rows rows = {.tensor = config->traits.has_fused_matrices ? "qkv_proj.weight" : NULL,
                                .rows = (config->heads + 2 * config->kv_heads) * config->head_dim,
                                .first = by->first_head * config->head_dim};
    char weight[32];
    snprintf(weight, sizeof weight, "%s.weight", by->name);
    gb_ref y = gb_linear_of(scope, weight, &rows, x, by->heads * config->head_dim);
    if (model->config->traits.has_head_biases)
        y = gb_add_bias(&projection, "bias", y);
    if (by->norm && config->traits.has_wide_head_norms)
        y = norm(model, scope, by->norm, y);
    if (by->scale != GB_NO_VALUE)
        y = gb_node2(scope, GB_OP_SCALE_ROWS, y, by->scale);
    return gb_split_heads(scope, y, by->heads);
}

/* Queries or keys, normalized where the model does so, and rotated where the layer does. */
static gb_ref normalize_and_rotate(const dense *model, int64_t index, const gb_scope *scope, gb_ref x,
                                   const char *weight) {
    const gb_rope_config *rope = rope_of(model->config, index);
    const bool has_own_rope = rope == &model->config->sliding_rope;
    if (model->config->traits.has_head_norms)
        x = norm(model, scope, weight, x);
    if (model->config->traits.has_plain_head_norms)
        x = gb_rms_normalize(scope, x, model->config->rms_norm_eps);
    return rope ? gb_rotate(scope, has_own_rope ? &model->sliding_rotary : &model->rotary, x) : x;
}

static gb_ref attention(const dense *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_dense_config *config = model->config;
    const gb_rope_config *rope = rope_of(config, index);
    const double factor = rope && !config->traits.has_long_rope ? rope->attention_factor : 1;
    const int64_t heads = config->heads, kv_heads = config->kv_heads;
    const head_projection by[] = {{"q_proj", 0, heads, "q_norm.weight", model->query_scale},
                                  {"k_proj", heads, kv_heads, "k_norm.weight", GB_NO_VALUE},
                                  {"v_proj", heads + kv_heads, kv_heads, NULL, GB_NO_VALUE}};
    gb_ref query = projected_heads(model, scope, x, &by[0]);
    gb_ref key = projected_heads(model, scope, x, &by[1]);
    gb_ref value = projected_heads(model, scope, x, &by[2]);
    query = normalize_and_rotate(model, index, scope, query, by[0].norm);
    key = normalize_and_rotate(model, index, scope, key, by[1].norm);
    char name[32];
    snprintf(name, sizeof name, "layers.%" PRId64, index);
    const int64_t window = config->layers[index].is_sliding ? config->sliding_window : 0;
    gb_cached_keys keys = gb_cache_keys(scope, &model->context, name, key, value, window);
    if (config->traits.has_sinks)
        keys.sinks = gb_weight(scope, "sinks", 1, &heads, gb_random_bias());
    gb_ref mixed = gb_attention(scope, query, &keys, factor * factor * config->attention_scale);
    gb_ref y = gb_node1(scope, GB_OP_MERGE_HEADS, mixed);
    if (!config->traits.has_attention_gate)
        return y;
    gb_ref gate = gb_linear(scope, "gate_proj.weight", x, heads * config->head_dim);
    return gb_node2(scope, GB_OP_MULTIPLY, gb_node1(scope, GB_OP_SIGMOID, gate), y);
}

/* What a layer with input *x, normalized h, adds before its feed-forward part. In the last layer only the
 * rows whose next token is wanted go on after it: the others have then left their keys and values, or their
 * part of the memory, which is all that later tokens need of them. */
static gb_ref mixer(const dense *model, int64_t index, const gb_scope *scope, gb_ref h, gb_ref *x) {
    const gb_dense_config *config = model->config;
    const bool is_last = index == config->layer_count - 1, is_mamba = config->layers[index].is_mamba;
    const gb_scope self_attn = gb_scope_in(scope, "self_attn."), mamba = gb_scope_in(scope, "mamba.");
    char name[32];
    snprintf(name, sizeof name, "layers.%" PRId64, index);
    h = is_mamba ? gb_mamba_mixer(&mamba, &config->mamba, name, h, is_last)
                 : attention(model, index, &self_attn, h);
    if (is_last && !is_mamba)
        h = gb_gather_rows(scope, h);
    if (is_last)
        *x = gb_gather_rows(scope, *x);
    if (is_mamba)
        return h;
    h = gb_linear(&self_attn, "o_proj.weight", h, config->hidden_size);
    return config->traits.has_output_bias ? gb_add_bias(&self_attn, "o_proj.bias", h) : h;
}

/* An MLP and, where the model has them, experts beside it. */
static gb_ref shared_feed_forward(const dense *model, const gb_scope *scope, gb_ref h) {
    static const gb_mlp_tensors tensors = {"input_linear.weight", "output_linear.weight"};
    const gb_dense_config *config = model->config;
    const gb_scope shared = gb_scope_in(scope, "shared_mlp."), mlp = gb_scope_in(scope, "mlp."),
                   experts = gb_scope_in(scope, "block_sparse_moe.");
    if (config->experts.count == 0 && !gb_scope_has(&shared, tensors.gate_up))
        return gb_swiglu_mlp(&mlp, h, config->intermediate_size);
    const gb_ref of_experts =
        config->experts.count > 0 ? gb_expert_mlp(&experts, &config->experts, h) : GB_NO_VALUE;
    const gb_ref y = gb_fused_swiglu_mlp(&shared, &tensors, h, config->intermediate_size);
    return config->experts.count > 0 ? gb_node2(scope, GB_OP_ADD, of_experts, y) : y;
}

/* What comes between the norms around the feed-forward part. */
static gb_ref feed_forward(const dense *model, int64_t index, const gb_scope *scope, gb_ref h) {
    static const gb_mlp_tensors fused = {"gate_up_proj.weight", NULL};
    const gb_dense_config *config = model->config;
    gb_scope mlp = gb_scope_in(scope, "mlp.");
    if (config->traits.has_shared_mlp)
        return shared_feed_forward(model, scope, h);
    if (config->traits.has_fused_matrices)
        return gb_fused_swiglu_mlp(&mlp, &fused, h, config->intermediate_size);
    if (config->layers[index].has_experts)
        return gb_expert_mlp(&mlp, &config->experts, h);
    return config->traits.has_geglu ? gb_geglu_mlp(&mlp, h, config->intermediate_size)
                                    : gb_swiglu_mlp(&mlp, h, config->intermediate_size);
}

/* x and what attention or the MLP adds to it. */
static gb_ref add_branch(const dense *model, const gb_scope *scope, gb_ref x, gb_ref branch) {
    if (model->config->residual_scale != 1)
        branch = gb_node2(scope, GB_OP_SCALE, branch, model->residual_scale);
    return gb_node2(scope, GB_OP_ADD, x, branch);
}

static gb_ref decoder_layer(const dense *model, int64_t index, const gb_scope *scope, gb_ref x) {
    const gb_dense_config *config = model->config;
    const bool has_output_norms = config->traits.has_output_norms;

    gb_ref h = mixer(model, index, scope, input_norm(model, scope, "input_layernorm.weight", x), &x);
    if (has_output_norms)
        h = output_norm(model, scope, "post_attention_layernorm.weight", h);
    x = add_branch(model, scope, x, h);

    const char *before =
        has_output_norms ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight";
    h = feed_forward(model, index, scope, input_norm(model, scope, before, x));
    if (has_output_norms)
        h = output_norm(model, scope, "post_feedforward_layernorm.weight", h);
    return add_branch(model, scope, x, h);
}

static gb_ref scale_value(const gb_scope *scope, const char *name, double value) {
    const float nearest = (float)value;
    return gb_values(scope, name, &nearest, 1);
}

/* Logits of the rows whose next token is wanted, f32[B, V]. */
static gb_ref forward(const dense *model, const gb_scope *scope, const gb_scope *head) {
    const gb_dense_config *config = model->config;
    gb_ref tokens = gb_build_input(scope->builder, GB_ROLE_TOKENS);
    if (config->mamba.heads > 0) /* every program has them, used or not */
        gb_build_input(scope->builder, GB_ROLE_POSITIONS);
    gb_ref table =
        gb_token_table(scope, head, config->vocab_size, config->hidden_size, config->has_tied_head);
    gb_ref x = gb_embedding(scope, table, tokens, config->embedding_scale);
    if (config->traits.has_embedding_norm)
        x = gb_rms_normalize(scope, x, config->rms_norm_eps);
    for (int64_t i = 0; i < config->layer_count; i++) {
        gb_scope layer = gb_scope_in(scope, "layers.%" PRId64 ".", i);
        x = decoder_layer(model, i, &layer, x);
    }
    x = config->traits.has_plain_last_norm ? gb_rms_norm(scope, "norm.weight", x, config->rms_norm_eps)
                                           : norm(model, scope, "norm.weight", x);
    gb_ref logits = gb_head(scope, head, x, table, config->vocab_size, config->has_tied_head);
    if (config->logit_scale != 1)
        logits =
            gb_node2(scope, GB_OP_SCALE, logits, scale_value(scope, "logits.scale", config->logit_scale));
    if (config->logit_cap > 0)
        logits = gb_node_with(scope, GB_OP_SOFT_CAP, logits, GB_NO_VALUE,
                              gb_float(GB_ATTRIBUTE_CAP, config->logit_cap));
    return logits;
}

static bool has_sliding_layer(const gb_dense_config *config) {
    for (int64_t i = 0; i < config->layer_count; i++)
        if (config->layers[i].is_sliding)
            return true;
    return false;
}

static bool is_used(const gb_dense_config *config, const gb_rope_config *rope) {
    for (int64_t i = 0; i < config->layer_count; i++)
        if (rope_of(config, i) == rope)
            return true;
    return false;
}

/* The program says which of LongRoPE's two sets it has, since a longer or shorter context may want the other.
 */
static void set_long_rotary(const gb_scope *scope, dense *model) {
    const gb_rope_config *rope = &model->config->rope;
    const bool has_two = rope->long_frequencies != NULL;
    const bool is_long = has_two && model->context.max_context > rope->original_positions;
    model->rotary =
        gb_rotary_of(scope, "rotary", is_long ? rope->long_frequencies : rope->frequencies, 2 * rope->pairs);
    model->rotary.scale = rope->attention_factor;
    if (has_two)
        gb_builder_metadata(scope->builder)->rotary_factors = is_long ? "long" : "short";
}

/* Of the layers that there are, so that no constant is left over. */
static void set_rotary(const gb_scope *scope, dense *model) {
    const gb_dense_config *config = model->config;
    if (config->traits.has_long_rope) {
        set_long_rotary(scope, model);
        return;
    }
    if (is_used(config, &config->sliding_rope))
        model->sliding_rotary =
            gb_rotary_of(scope, "rotary.sliding", config->sliding_rope.frequencies, config->head_dim);
    if (is_used(config, &config->rope))
        model->rotary = gb_rotary_of(scope, "rotary", config->rope.frequencies, config->head_dim);
}

static gumbel_status build_graph(const gb_dense_config *config, const gb_model_options *options,
                                 gb_builder *builder, gb_weights *weights, gumbel_error *error) {
    const gb_text_model text = {
        .vocab_size = config->vocab_size,
        .max_positions = config->max_positions,
        .window = has_sliding_layer(config) ? config->sliding_window : 0,
        .is_wrapped = config->is_wrapped,
    };
    gb_text_graph graph;
    GB_TRY(gb_begin_text_graph(&text, options, builder, weights, &graph, error));
    dense model = {.config = config, .context = graph.context};
    set_rotary(&graph.scope, &model);
    model.query_scale = gb_query_scale(&graph.scope, "query.scales", config->rope.query_beta,
                                       config->rope.query_positions, graph.context.max_context);
    if (config->residual_scale != 1)
        model.residual_scale = scale_value(&graph.scope, "residual.scale", config->residual_scale);
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

/* Name, wrapper and model_type; ids that end and begin texts. */
const gb_model gb_llama = {"llama", NULL, "llama", 2, 1, build, NULL};
const gb_model gb_mistral = {"mistral", "mistral3", "mistral", 2, 1, build, NULL};
const gb_model gb_ministral3 = {"ministral3", "mistral3", "ministral3", 2, 1, build, NULL};
const gb_model gb_qwen2 = {"qwen2", NULL, "qwen2", -1, -1, build, NULL};
const gb_model gb_qwen3 = {"qwen3", NULL, "qwen3", -1, -1, build, NULL};
const gb_model gb_qwen3_moe = {"qwen3_moe", NULL, "qwen3_moe", -1, -1, build, NULL};
const gb_model gb_gemma3 = {"gemma3", "gemma3", "gemma3_text", 1, 2, build, NULL};
const gb_model gb_granite = {"granite", NULL, "granite", 2, 1, build, NULL};
const gb_model gb_granite_hybrid = {"granitemoehybrid", NULL, "granitemoehybrid", 2, 1, build, NULL};
const gb_model gb_phi3 = {"phi3", NULL, "phi3", 32000, 1, build, NULL};
const gb_model gb_gpt_oss = {"gpt_oss", NULL, "gpt_oss", 200002, 199998, build, NULL};
const gb_model gb_muse_glimmer = {
    "muse_glimmer", "muse_glimmer", "muse_glimmer_text", 200001, 200000, build, NULL};
const gb_model gb_olmo2 = {"olmo2", NULL, "olmo2", 50279, -1, build, NULL};
const gb_model gb_olmo3 = {"olmo3", NULL, "olmo3", 50279, -1, build, NULL};
const gb_model gb_smollm3 = {"smollm3", NULL, "smollm3", 128001, 128000, build, NULL};
