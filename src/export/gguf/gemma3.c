/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma 3 in GGUF. What was done to the weights: norms hold 1 + w, and a tied head has no tensor. What the
 * file does not say is as in llama.cpp: which layers slide, and how the largest model scales its queries.
 */
#include "export/gguf/architecture.h"
#include "export/gguf/dense.h"
#include "export/gguf/settings.h"

#include <inttypes.h>

enum { PATTERN = 6, LARGEST_MODEL = 62 /* layers of 27B */ };

#define LAYER(file, original)                                                                                \
    { .gguf = "blk.*." file ".weight", .checkpoint = "model.layers.*." original ".weight" }

static const gb_gguf_name NAMES[] = {
    {.gguf = "token_embd.weight", .checkpoint = "model.embed_tokens.weight"},
    {.gguf = "output_norm.weight", .checkpoint = "model.norm.weight"},
    {.gguf = "output.weight", .checkpoint = "lm_head.weight"},
    LAYER("attn_norm", "input_layernorm"),
    LAYER("attn_q", "self_attn.q_proj"),
    LAYER("attn_k", "self_attn.k_proj"),
    LAYER("attn_v", "self_attn.v_proj"),
    LAYER("attn_q_norm", "self_attn.q_norm"),
    LAYER("attn_k_norm", "self_attn.k_norm"),
    LAYER("attn_output", "self_attn.o_proj"),
    LAYER("post_attention_norm", "post_attention_layernorm"),
    LAYER("ffn_norm", "pre_feedforward_layernorm"),
    LAYER("ffn_gate", "mlp.gate_proj"),
    LAYER("ffn_up", "mlp.up_proj"),
    LAYER("ffn_down", "mlp.down_proj"),
    LAYER("post_ffw_norm", "post_feedforward_layernorm"),
    {0},
};

static int64_t integer_of(const json_t *config, const char *key) {
    return json_integer_value(json_object_get(config, key));
}

/* The decoder's rope_parameters are those of full layers; sliding ones are never scaled. */
static void write_ropes(gb_gguf_metadata *metadata, json_t *config) {
    static const char TYPE[] = ".rope.scaling.type", NAME[] = "rope_parameters";
    if (gb_gguf_text_is(metadata, TYPE, "yarn"))
        gb_gguf_fail(metadata, TYPE, GUMBEL_ERROR_UNSUPPORTED,
                     "\"yarn\" is not supported of this architecture; expected none or linear");
    const double theta = gb_gguf_get_number(metadata, ".rope.freq_base_swa", 10000);
    json_t *ropes = json_object();
    gb_gguf_set(metadata, ropes, "full_attention", json_incref(json_object_get(config, NAME)));
    gb_gguf_set(metadata, ropes, "sliding_attention", json_pack("{s:f}", "rope_theta", theta));
    gb_gguf_set(metadata, config, NAME, ropes);
}

static void write_scales(gb_gguf_metadata *metadata, size_t layers, json_t *config) {
    const int64_t heads = integer_of(config, "num_attention_heads");
    const bool is_largest = layers == LARGEST_MODEL && heads > 0;
    const int64_t scalar =
        is_largest ? integer_of(config, "hidden_size") / heads : integer_of(config, "head_dim");
    const double cap = gb_gguf_get_number(metadata, ".final_logit_softcapping", 0);
    gb_gguf_set(metadata, config, "query_pre_attn_scalar", json_integer((json_int_t)scalar));
    if (cap != 0)
        gb_gguf_set(metadata, config, "final_logit_softcapping", json_real(cap));
}

static void configure(gb_gguf_metadata *metadata, json_t *config) {
    const size_t layers = gb_gguf_configure_decoder(metadata, "gemma3_text", config);
    if (layers == 0)
        return;
    gb_gguf_set(metadata, config, "norm_weights_hold_one", json_true());
    gb_gguf_write_windows(metadata, layers, PATTERN, config);
    write_ropes(metadata, config);
    write_scales(metadata, layers, config);
}

const gb_gguf_architecture gb_gguf_gemma3 = {.name = "gemma3", .names = NAMES, .configure = configure};
