/* SPDX-License-Identifier: Apache-2.0
 *
 * Muse Glimmer in GGUF. What was done to the weights: norms of layers hold 1 + w; the norm of queries, which
 * has no weight in the original, has the factor of queries for one, and that of keys has 1; and the rows of
 * attn_q and attn_k stand in pairs. Layers that slide rotate, and no others.
 */
#include "export/gguf/architecture.h"
#include "export/gguf/dense.h"
#include "export/gguf/settings.h"

enum { PATTERN = 4 };

#define LAYER(file, original)                                                                                \
    { .gguf = "blk.*." file ".weight", .checkpoint = "model.layers.*." original ".weight" }
#define PAIRED(file, original)                                                                               \
    {                                                                                                        \
        .gguf = "blk.*." file ".weight", .checkpoint = "model.layers.*." original ".weight",                 \
        .has_row_pairs = true                                                                                \
    }

static const gb_gguf_name NAMES[] = {
    {.gguf = "token_embd.weight", .checkpoint = "model.embed_tokens.weight"},
    {.gguf = "output_norm.weight", .checkpoint = "model.norm.weight"},
    {.gguf = "output.weight", .checkpoint = "lm_head.weight"},
    LAYER("attn_norm", "input_layernorm"),
    PAIRED("attn_q", "self_attn.q_proj"),
    PAIRED("attn_k", "self_attn.k_proj"),
    LAYER("attn_v", "self_attn.v_proj"),
    LAYER("attn_q_norm", "self_attn.q_norm"),
    LAYER("attn_k_norm", "self_attn.k_norm"),
    LAYER("attn_gate", "self_attn.gate_proj"),
    LAYER("attn_output", "self_attn.o_proj"),
    LAYER("post_attention_norm", "post_attention_layernorm"),
    LAYER("ffn_norm", "pre_feedforward_layernorm"),
    LAYER("ffn_gate", "mlp.gate_proj"),
    LAYER("ffn_up", "mlp.up_proj"),
    LAYER("ffn_down", "mlp.down_proj"),
    LAYER("post_ffw_norm", "post_feedforward_layernorm"),
    {0},
};

/* Layers that slide are never scaled. */
static void write_rope(gb_gguf_metadata *metadata, json_t *config) {
    const double theta = gb_gguf_get_number(metadata, ".rope.freq_base", 10000);
    gb_gguf_refuse_variants(metadata);
    gb_gguf_set(metadata, config, "rope_parameters",
                json_pack("{s:f}", "rope_theta", gb_gguf_get_number(metadata, ".rope.freq_base_swa", theta)));
    gb_gguf_set(metadata, config, "rope_is_of_windows", json_true());
}

static void configure(gb_gguf_metadata *metadata, json_t *config) {
    static const char SCALE[] = ".logit_scale", CAP[] = ".final_logit_softcapping";
    const size_t layers = gb_gguf_configure_decoder(metadata, "muse_glimmer_text", config);
    if (layers == 0)
        return;
    gb_gguf_set(metadata, config, "norm_weights_hold_one", json_true());
    gb_gguf_set(metadata, config, "head_norms_have_weights", json_true());
    gb_gguf_need_integer(metadata, ".attention.sliding_window");
    gb_gguf_write_windows(metadata, layers, PATTERN, config);
    write_rope(metadata, config);
    gb_gguf_set(metadata, config, "output_multiplier", json_real(gb_gguf_need_number(metadata, SCALE)));
    gb_gguf_set(metadata, config, "final_logit_softcapping", json_real(gb_gguf_need_number(metadata, CAP)));
}

const gb_gguf_architecture gb_gguf_muse_glimmer = {
    .name = "muse-glimmer", .names = NAMES, .configure = configure};
