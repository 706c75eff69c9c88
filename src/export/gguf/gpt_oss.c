/* SPDX-License-Identifier: Apache-2.0
 *
 * gpt-oss in GGUF. What was done to the weights: the experts' gate and up, rows in turns in the original, are
 * apart, and so are their biases. What the file does not say is as in the released models: every other layer
 * slides, and the ends of YaRN's ramp are not rounded.
 */
#include "export/gguf/architecture.h"
#include "export/gguf/dense.h"
#include "export/gguf/settings.h"

enum { PATTERN = 2 };

#define LAYER(file, original)                                                                                \
    { .gguf = "blk.*." file ".weight", .checkpoint = "model.layers.*." original }
#define BOTH(file, original)                                                                                 \
    LAYER(file, original ".weight"), {                                                                       \
        .gguf = "blk.*." file ".bias", .checkpoint = "model.layers.*." original ".bias"                      \
    }

static const gb_gguf_name NAMES[] = {
    {.gguf = "token_embd.weight", .checkpoint = "model.embed_tokens.weight"},
    {.gguf = "output_norm.weight", .checkpoint = "model.norm.weight"},
    {.gguf = "output.weight", .checkpoint = "lm_head.weight"},
    LAYER("attn_norm", "input_layernorm.weight"),
    LAYER("post_attention_norm", "post_attention_layernorm.weight"),
    LAYER("attn_sinks", "self_attn.sinks"),
    BOTH("attn_q", "self_attn.q_proj"),
    BOTH("attn_k", "self_attn.k_proj"),
    BOTH("attn_v", "self_attn.v_proj"),
    BOTH("attn_output", "self_attn.o_proj"),
    BOTH("ffn_gate_inp", "mlp.router"),
    BOTH("ffn_gate_exps", "mlp.experts.gate_proj"),
    BOTH("ffn_up_exps", "mlp.experts.up_proj"),
    LAYER("ffn_down_exps", "mlp.experts.down_proj"),
    {.gguf = "blk.*.ffn_down_exps.bias", .checkpoint = "model.layers.*.mlp.experts.down_proj.bias"},
    {0},
};

static void configure(gb_gguf_metadata *metadata, json_t *config) {
    const size_t layers = gb_gguf_configure_decoder(metadata, "gpt_oss", config);
    if (layers == 0)
        return;
    gb_gguf_copy_integer(metadata, ".expert_count", config, "num_local_experts");
    gb_gguf_copy_integer(metadata, ".expert_used_count", config, "num_experts_per_tok");
    gb_gguf_copy_uniform(metadata, ".expert_feed_forward_length", layers, config, "intermediate_size");
    gb_gguf_write_windows(metadata, layers, PATTERN, config);
    gb_gguf_set(metadata, json_object_get(config, "rope_parameters"), "truncate", json_false());
    gb_gguf_refuse_scaled_experts(metadata);
}

const gb_gguf_architecture gb_gguf_gpt_oss = {.name = "gpt-oss", .names = NAMES, .configure = configure};
