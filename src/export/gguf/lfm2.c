/* SPDX-License-Identifier: Apache-2.0
 *
 * LFM2 in GGUF, dense and with experts. Nothing was done to the weights. Which layers attend only their
 * numbers of key heads tell: a layer without any has a convolution.
 */
#include "export/gguf/architecture.h"

#include "export/gguf/settings.h"

#define LAYER(file, original)                                                                                \
    { .gguf = "blk.*." file, .checkpoint = "model.layers.*." original }

static const gb_gguf_name NAMES[] = {
    {.gguf = "token_embd.weight", .checkpoint = "model.embed_tokens.weight"},
    {.gguf = "token_embd_norm.weight", .checkpoint = "model.embedding_norm.weight"},
    {.gguf = "output_norm.weight", .checkpoint = "model.embedding_norm.weight"},
    {.gguf = "output.weight", .checkpoint = "lm_head.weight"},
    LAYER("attn_norm.weight", "operator_norm.weight"),
    LAYER("ffn_norm.weight", "ffn_norm.weight"),
    LAYER("attn_q.weight", "self_attn.q_proj.weight"),
    LAYER("attn_k.weight", "self_attn.k_proj.weight"),
    LAYER("attn_v.weight", "self_attn.v_proj.weight"),
    LAYER("attn_q_norm.weight", "self_attn.q_layernorm.weight"),
    LAYER("attn_k_norm.weight", "self_attn.k_layernorm.weight"),
    LAYER("attn_output.weight", "self_attn.out_proj.weight"),
    LAYER("shortconv.in_proj.weight", "conv.in_proj.weight"),
    LAYER("shortconv.conv.weight", "conv.conv.weight"),
    LAYER("shortconv.out_proj.weight", "conv.out_proj.weight"),
    LAYER("ffn_gate.weight", "feed_forward.w1.weight"),
    LAYER("ffn_up.weight", "feed_forward.w3.weight"),
    LAYER("ffn_down.weight", "feed_forward.w2.weight"),
    /* experts */
    LAYER("ffn_gate_inp.weight", "feed_forward.gate.weight"),
    LAYER("exp_probs_b.bias", "feed_forward.expert_bias"),
    LAYER("ffn_gate_exps.weight", "feed_forward.switch_mlp.gate_proj.weight"),
    LAYER("ffn_up_exps.weight", "feed_forward.switch_mlp.up_proj.weight"),
    LAYER("ffn_down_exps.weight", "feed_forward.experts.down_proj"),
    {0},
};

static void write_layers(gb_gguf_metadata *metadata, size_t layers, json_t *config) {
    static const char KEYS[] = ".attention.head_count_kv";
    int64_t key_heads[GB_GGUF_LAYERS];
    gb_gguf_need_per_layer(metadata, KEYS, key_heads, layers);
    if (metadata->error.status != GUMBEL_OK)
        return;
    json_t *types = json_array();
    for (size_t i = 0; i < layers; i++)
        gb_gguf_append(metadata, types, json_string(key_heads[i] > 0 ? "full_attention" : "conv"));
    const int64_t common = gb_gguf_common(metadata, KEYS, key_heads, layers);
    gb_gguf_set(metadata, config, "layer_types", types);
    gb_gguf_set(metadata, config, "num_hidden_layers", json_integer((json_int_t)layers));
    gb_gguf_set(metadata, config, "num_key_value_heads", json_integer(common > 0 ? common : 1));
}

/* Returns how many layers the file has; 0 after an error. */
static size_t configure_decoder(gb_gguf_metadata *metadata, const char *model_type, json_t *config) {
    const size_t layers = gb_gguf_need_layers(metadata);
    if (layers == 0)
        return 0;
    gb_gguf_set(metadata, config, "model_type", json_string(model_type));
    gb_gguf_copy_integer(metadata, ".context_length", config, "max_position_embeddings");
    gb_gguf_copy_integer(metadata, ".embedding_length", config, "hidden_size");
    gb_gguf_copy_integer(metadata, ".feed_forward_length", config, "intermediate_size");
    gb_gguf_copy_integer(metadata, ".shortconv.l_cache", config, "conv_L_cache");
    gb_gguf_copy_uniform(metadata, ".attention.head_count", layers, config, "num_attention_heads");
    gb_gguf_set(metadata, config, "block_auto_adjust_ff_dim", json_false());
    gb_gguf_set(metadata, config, "norm_eps",
                json_real(gb_gguf_need_number(metadata, ".attention.layer_norm_rms_epsilon")));
    gb_gguf_set(metadata, config, "rope_theta",
                json_real(gb_gguf_get_number(metadata, ".rope.freq_base", 1e6)));
    gb_gguf_write_vocabulary(metadata, config);
    write_layers(metadata, layers, config);
    gb_gguf_refuse_variants(metadata);
    return layers;
}

static void configure_dense(gb_gguf_metadata *metadata, json_t *config) {
    configure_decoder(metadata, "lfm2", config);
}

static void configure_experts(gb_gguf_metadata *metadata, json_t *config) {
    const size_t layers = configure_decoder(metadata, "lfm2_moe", config);
    if (layers == 0)
        return;
    gb_gguf_copy_integer(metadata, ".expert_count", config, "num_experts");
    gb_gguf_copy_uniform(metadata, ".expert_used_count", layers, config, "num_experts_per_tok");
    gb_gguf_copy_uniform(metadata, ".expert_feed_forward_length", layers, config, "moe_intermediate_size");
    gb_gguf_copy_integer(metadata, ".leading_dense_block_count", config, "num_dense_layers");
    gb_gguf_refuse_scaled_experts(metadata);
    gb_gguf_need_sigmoids(metadata);
}

const gb_gguf_architecture gb_gguf_lfm2 = {.name = "lfm2", .names = NAMES, .configure = configure_dense};

const gb_gguf_architecture gb_gguf_lfm2moe = {
    .name = "lfm2moe", .names = NAMES, .configure = configure_experts};
