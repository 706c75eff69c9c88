/* SPDX-License-Identifier: Apache-2.0
 *
 * OLMo 2 and 3 in GGUF. Nothing was done to the weights. OLMo 3's files have a window, OLMo 2's do not, whose
 * model is otherwise OLMo 3's with full layers alone.
 */
#include "export/gguf/architecture.h"
#include "export/gguf/dense.h"
#include "export/gguf/settings.h"

enum { PATTERN = 4 };

#define LAYER(file, original)                                                                                \
    { .gguf = "blk.*." file ".weight", .checkpoint = "model.layers.*." original ".weight" }

static const gb_gguf_name NAMES[] = {
    {.gguf = "token_embd.weight", .checkpoint = "model.embed_tokens.weight"},
    {.gguf = "output_norm.weight", .checkpoint = "model.norm.weight"},
    {.gguf = "output.weight", .checkpoint = "lm_head.weight"},
    LAYER("attn_q", "self_attn.q_proj"),
    LAYER("attn_k", "self_attn.k_proj"),
    LAYER("attn_v", "self_attn.v_proj"),
    LAYER("attn_q_norm", "self_attn.q_norm"),
    LAYER("attn_k_norm", "self_attn.k_norm"),
    LAYER("attn_output", "self_attn.o_proj"),
    LAYER("post_attention_norm", "post_attention_layernorm"),
    LAYER("ffn_gate", "mlp.gate_proj"),
    LAYER("ffn_up", "mlp.up_proj"),
    LAYER("ffn_down", "mlp.down_proj"),
    LAYER("post_ffw_norm", "post_feedforward_layernorm"),
    {0},
};

/* The decoder's rope_parameters are those of full layers; sliding ones are never scaled. */
static void write_ropes(gb_gguf_metadata *metadata, json_t *config) {
    static const char NAME[] = "rope_parameters";
    const double theta = gb_gguf_get_number(metadata, ".rope.freq_base", 10000);
    json_t *ropes = json_object();
    gb_gguf_set(metadata, ropes, "full_attention", json_incref(json_object_get(config, NAME)));
    gb_gguf_set(metadata, ropes, "sliding_attention",
                json_pack("{s:f}", "rope_theta", gb_gguf_get_number(metadata, ".rope.freq_base_swa", theta)));
    gb_gguf_set(metadata, config, NAME, ropes);
}

static void configure(gb_gguf_metadata *metadata, json_t *config) {
    const size_t layers = gb_gguf_configure_decoder(metadata, "olmo3", config);
    if (layers == 0)
        return;
    gb_gguf_write_windows(metadata, layers, PATTERN, config);
    write_ropes(metadata, config);
}

const gb_gguf_architecture gb_gguf_olmo2 = {.name = "olmo2", .names = NAMES, .configure = configure};
