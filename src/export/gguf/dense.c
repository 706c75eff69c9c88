/* SPDX-License-Identifier: Apache-2.0
 *
 * The plain decoders in GGUF: `llama`, which Mistral's files are as well, `smollm3`, `granite`, which are
 * those of Granite 4 without mamba layers as well, `qwen2`, `qwen3` and `qwen3moe`. What was done to the
 * weights: in the first three the rows of attn_q and attn_k stand in pairs, so that the two dims which turn
 * together are neighbours; the experts' gate and up are apart. Llama 3's rotary embedding stands as the
 * tensor rope_freqs: what each pair's frequency is divided by.
 *
 * `mistral3` is as `llama`, and says how queries grow with their position.
 *
 * `phi3` has queries, keys and values in attn_qkv, and the gate above up in ffn_up; LongRoPE's two sets of
 * divisors are tensors.
 */
#include "export/gguf/dense.h"
#include "export/gguf/architecture.h"
#include "export/gguf/settings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LAYER(file, original)                                                                                \
    { .gguf = "blk.*." file ".weight", .checkpoint = "model.layers.*." original }
#define BIAS(file, original)                                                                                 \
    { .gguf = "blk.*." file ".bias", .checkpoint = "model.layers.*." original }
#define PAIRED(file, original)                                                                               \
    { .gguf = "blk.*." file ".weight", .checkpoint = "model.layers.*." original, .has_row_pairs = true }
#define COMMON                                                                                               \
    {.gguf = "token_embd.weight", .checkpoint = "model.embed_tokens.weight"},                                \
        {.gguf = "output_norm.weight", .checkpoint = "model.norm.weight"},                                   \
        {.gguf = "output.weight", .checkpoint = "lm_head.weight"},                                           \
        {.gguf = "rope_freqs.weight", .checkpoint = ""}, LAYER("attn_norm", "input_layernorm.weight"),       \
        LAYER("attn_v", "self_attn.v_proj.weight"), LAYER("attn_output", "self_attn.o_proj.weight"),         \
        LAYER("ffn_norm", "post_attention_layernorm.weight"), LAYER("ffn_gate", "mlp.gate_proj.weight"),     \
        LAYER("ffn_up", "mlp.up_proj.weight"), LAYER("ffn_down", "mlp.down_proj.weight")

static const gb_gguf_name LLAMA_NAMES[] = {
    COMMON,
    PAIRED("attn_q", "self_attn.q_proj.weight"),
    PAIRED("attn_k", "self_attn.k_proj.weight"),
    {0},
};

static const gb_gguf_name QWEN2_NAMES[] = {
    COMMON,
    LAYER("attn_q", "self_attn.q_proj.weight"),
    LAYER("attn_k", "self_attn.k_proj.weight"),
    BIAS("attn_q", "self_attn.q_proj.bias"),
    BIAS("attn_k", "self_attn.k_proj.bias"),
    BIAS("attn_v", "self_attn.v_proj.bias"),
    {0},
};

static const gb_gguf_name QWEN3_NAMES[] = {
    COMMON,
    LAYER("attn_q", "self_attn.q_proj.weight"),
    LAYER("attn_k", "self_attn.k_proj.weight"),
    LAYER("attn_q_norm", "self_attn.q_norm.weight"),
    LAYER("attn_k_norm", "self_attn.k_norm.weight"),
    LAYER("ffn_gate_inp", "mlp.gate.weight"),
    LAYER("ffn_gate_exps", "mlp.switch_mlp.gate_proj.weight"),
    LAYER("ffn_up_exps", "mlp.switch_mlp.up_proj.weight"),
    LAYER("ffn_down_exps", "mlp.experts.down_proj"),
    {0},
};

static const gb_gguf_name PHI3_NAMES[] = {
    LAYER("attn_qkv", "self_attn.qkv_proj.weight"),
    LAYER("ffn_up", "mlp.gate_up_proj.weight"),
    {.gguf = "rope_factors_long.weight", .checkpoint = ""},
    {.gguf = "rope_factors_short.weight", .checkpoint = ""},
    COMMON,
    {0},
};

/* ---- Rotary embedding ---------------------------------------------------------------------------------- */

static void copy_number(gb_gguf_metadata *metadata, const char *key, json_t *object, const char *name) {
    if (gb_gguf_value_of(metadata, key))
        gb_gguf_set(metadata, object, name, json_real(gb_gguf_get_number(metadata, key, 0)));
}

/* A number that changes YaRN in a way that config.json cannot say. */
static void need_number(gb_gguf_metadata *metadata, const char *key, double expected) {
    const double found = gb_gguf_get_number(metadata, key, expected);
    if (found != expected)
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_UNSUPPORTED,
                     "%g is not supported in this version; expected %g", found, expected);
}

/* llama.cpp reads it of some architectures alone, and takes 1 for config.json's mscale. */
static void write_log_multiplier(gb_gguf_metadata *metadata, json_t *rope) {
    static const char KEY[] = ".rope.scaling.yarn_log_multiplier";
    if (strcmp(metadata->architecture, gb_gguf_mistral3.name) != 0) {
        need_number(metadata, KEY, 0);
        return;
    }
    gb_gguf_set(metadata, rope, "mscale", json_real(1));
    copy_number(metadata, KEY, rope, "mscale_all_dim");
}

static void write_yarn(gb_gguf_metadata *metadata, json_t *rope) {
    copy_number(metadata, ".rope.scaling.factor", rope, "factor");
    copy_number(metadata, ".rope.scaling.original_context_length", rope, "original_max_position_embeddings");
    copy_number(metadata, ".rope.scaling.yarn_attn_factor", rope, "attention_factor");
    copy_number(metadata, ".rope.scaling.yarn_beta_fast", rope, "beta_fast");
    copy_number(metadata, ".rope.scaling.yarn_beta_slow", rope, "beta_slow");
    need_number(metadata, ".rope.scaling.attn_factor", 1);
    need_number(metadata, ".rope.scaling.yarn_ext_factor", 1);
    write_log_multiplier(metadata, rope);
}

/* Files from before there was a type, or without one, scale linearly where they have a factor. */
static void write_linear(gb_gguf_metadata *metadata, json_t *rope) {
    const double older = gb_gguf_get_number(metadata, ".rope.scale_linear", 0);
    const double factor = gb_gguf_get_number(metadata, ".rope.scaling.factor", older);
    if (factor == 0)
        return;
    gb_gguf_set(metadata, rope, "rope_type", json_string("linear"));
    gb_gguf_set(metadata, rope, "factor", json_real(factor));
}

static void write_scaling(gb_gguf_metadata *metadata, json_t *rope) {
    static const char TYPE[] = ".rope.scaling.type";
    if (!gb_gguf_value_of(metadata, TYPE) || gb_gguf_text_is(metadata, TYPE, "linear")) {
        write_linear(metadata, rope);
    } else if (gb_gguf_text_is(metadata, TYPE, "yarn")) {
        gb_gguf_set(metadata, rope, "rope_type", json_string("yarn"));
        write_yarn(metadata, rope);
    } else if (!gb_gguf_text_is(metadata, TYPE, "none")) {
        gb_gguf_fail(metadata, TYPE, GUMBEL_ERROR_UNSUPPORTED,
                     "is not supported in this version; known are none, linear, yarn");
    }
}

static void write_divisors(gb_gguf_metadata *metadata, const char *name, int64_t pairs, json_t *rope,
                           const char *key) {
    const gb_tensor *factors = gb_gguf_files_find(metadata->files, name);
    if (!factors)
        return;
    if (factors->rank != 1 || factors->dtype != GB_F32 || factors->dims[0] != pairs) {
        gb_gguf_fail(metadata, name, GUMBEL_ERROR_FORMAT,
                     "expected an F32 tensor of the %" PRId64 " pairs of a head", pairs);
        return;
    }
    json_t *divisors = json_array();
    for (int64_t i = 0; i < factors->dims[0]; i++) {
        float divisor;
        memcpy(&divisor, factors->data + 4 * i, sizeof divisor);
        gb_gguf_append(metadata, divisors, json_real((double)divisor));
    }
    gb_gguf_set(metadata, rope, key, divisors);
}

/* Both tensors, or none and no type of scaling that asks for them. */
static bool has_long_factors(gb_gguf_metadata *metadata) {
    static const char TYPE[] = ".rope.scaling.type";
    const bool has_long = gb_gguf_files_find(metadata->files, "rope_factors_long.weight") != NULL;
    if (has_long != (gb_gguf_files_find(metadata->files, "rope_factors_short.weight") != NULL) ||
        (!has_long && gb_gguf_text_is(metadata, TYPE, "longrope")))
        gb_gguf_fail(metadata, TYPE, GUMBEL_ERROR_FORMAT,
                     "expected both tensors rope_factors_long.weight and rope_factors_short.weight");
    if (gb_gguf_files_find(metadata->files, "rope_freqs.weight"))
        gb_gguf_fail(metadata, ".rope.freq_base", GUMBEL_ERROR_UNSUPPORTED,
                     "the tensor rope_freqs.weight is not supported of this architecture");
    return has_long;
}

/* A part of a head may turn: half a dim more than do, so that no rounding makes them fewer. Files have no
 * type of scaling, only LongRoPE's tensors. */
static void write_phi_rope(gb_gguf_metadata *metadata, int64_t head_dim, json_t *rope, json_t *config) {
    const int64_t dims = gb_gguf_get_integer(metadata, ".rope.dimension_count", head_dim);
    if (dims < head_dim)
        gb_gguf_set(metadata, rope, "partial_rotary_factor",
                    json_real(((double)dims + 0.5) / (double)head_dim));
    else
        gb_gguf_need_equal(metadata, ".rope.dimension_count", head_dim);
    if (!has_long_factors(metadata))
        return;
    gb_gguf_set(metadata, rope, "rope_type", json_string("longrope"));
    gb_gguf_copy_integer(metadata, ".rope.scaling.original_context_length", config,
                         "original_max_position_embeddings");
    gb_gguf_set(metadata, rope, "attention_factor",
                json_real(gb_gguf_get_number(metadata, ".rope.scaling.attn_factor", 1)));
    write_divisors(metadata, "rope_factors_long.weight", dims / 2, rope, "long_factor");
    write_divisors(metadata, "rope_factors_short.weight", dims / 2, rope, "short_factor");
}

static void write_rope(gb_gguf_metadata *metadata, int64_t head_dim, json_t *config) {
    json_t *rope = json_object();
    gb_gguf_set(metadata, rope, "rope_theta",
                json_real(gb_gguf_get_number(metadata, ".rope.freq_base", 10000)));
    if (strcmp(metadata->architecture, gb_gguf_phi3.name) == 0) {
        write_phi_rope(metadata, head_dim, rope, config);
    } else {
        write_scaling(metadata, rope);
        write_divisors(metadata, "rope_freqs.weight", head_dim / 2, rope, "frequency_divisors");
        gb_gguf_need_equal(metadata, ".rope.dimension_count", head_dim);
    }
    gb_gguf_set(metadata, config, "rope_parameters", rope);
}

/* ---- Sizes --------------------------------------------------------------------------------------------- */

/* Of an architecture with layers of several kinds config says already how many those have that attend. */
static void write_key_heads(gb_gguf_metadata *metadata, size_t layers, int64_t heads, json_t *config) {
    static const char KEY[] = ".attention.head_count_kv", NAME[] = "num_key_value_heads";
    if (json_object_get(config, NAME))
        return;
    if (gb_gguf_value_of(metadata, KEY))
        gb_gguf_copy_uniform(metadata, KEY, layers, config, NAME);
    else
        gb_gguf_set(metadata, config, NAME, json_integer((json_int_t)heads));
}

static void write_attention(gb_gguf_metadata *metadata, size_t layers, json_t *config) {
    const int64_t hidden = gb_gguf_need_integer(metadata, ".embedding_length");
    const int64_t heads =
        gb_gguf_copy_uniform(metadata, ".attention.head_count", layers, config, "num_attention_heads");
    write_key_heads(metadata, layers, heads, config);
    const int64_t head_dim =
        gb_gguf_get_integer(metadata, ".attention.key_length", heads > 0 ? hidden / heads : 0);
    gb_gguf_need_equal(metadata, ".attention.value_length", head_dim);
    gb_gguf_set(metadata, config, "hidden_size", json_integer((json_int_t)hidden));
    gb_gguf_set(metadata, config, "head_dim", json_integer((json_int_t)head_dim));
    write_rope(metadata, head_dim, config);
}

size_t gb_gguf_configure_decoder(gb_gguf_metadata *metadata, const char *model_type, json_t *config) {
    const size_t layers = gb_gguf_need_layers(metadata);
    if (layers == 0)
        return 0;
    gb_gguf_set(metadata, config, "model_type", json_string(model_type));
    gb_gguf_set(metadata, config, "num_hidden_layers", json_integer((json_int_t)layers));
    gb_gguf_copy_integer(metadata, ".context_length", config, "max_position_embeddings");
    gb_gguf_set(metadata, config, "rms_norm_eps",
                json_real(gb_gguf_need_number(metadata, ".attention.layer_norm_rms_epsilon")));
    gb_gguf_write_vocabulary(metadata, config);
    write_attention(metadata, layers, config);
    gb_gguf_copy_uniform(metadata, ".feed_forward_length", layers, config, "intermediate_size");
    gb_gguf_refuse_lookahead(metadata);
    return layers;
}

static void refuse_experts(gb_gguf_metadata *metadata) {
    const int64_t experts = gb_gguf_get_integer(metadata, ".expert_count", 0);
    if (experts > 0)
        gb_gguf_fail(metadata, ".expert_count", GUMBEL_ERROR_UNSUPPORTED,
                     "%" PRId64 ": experts of this architecture are not supported in this version", experts);
}

/* Of an architecture without experts whose model_type is its name. That each fourth layer of SmolLM3 lacks
 * rotary embedding is the default of config.json too: no key says so. */
static void configure_named(gb_gguf_metadata *metadata, json_t *config) {
    if (gb_gguf_configure_decoder(metadata, metadata->architecture, config) > 0)
        refuse_experts(metadata);
}

static void configure_mistral3(gb_gguf_metadata *metadata, json_t *config) {
    static const char ORIGINAL[] = "original_max_position_embeddings";
    if (gb_gguf_configure_decoder(metadata, "ministral3", config) == 0)
        return;
    refuse_experts(metadata);
    json_t *rope = json_object_get(config, "rope_parameters");
    copy_number(metadata, ".attention.temperature_scale", rope, "llama_4_scaling_beta");
    if (!json_object_get(rope, ORIGINAL))
        gb_gguf_copy_integer(metadata, ".context_length", rope, ORIGINAL);
}

/* A number that stands for `absent` where it is missing or 0. */
static void write_multiplier(gb_gguf_metadata *metadata, const char *key, double absent, json_t *config,
                             const char *name) {
    const double value = gb_gguf_get_number(metadata, key, 0);
    gb_gguf_set(metadata, config, name, json_real(value != 0 ? value : absent));
}

void gb_gguf_write_multipliers(gb_gguf_metadata *metadata, json_t *config) {
    const double head_dim = (double)json_integer_value(json_object_get(config, "head_dim"));
    write_multiplier(metadata, ".embedding_scale", 1, config, "embedding_multiplier");
    write_multiplier(metadata, ".residual_scale", 1, config, "residual_multiplier");
    write_multiplier(metadata, ".attention.scale", 1 / sqrt(head_dim), config, "attention_multiplier");
    write_multiplier(metadata, ".logit_scale", 1, config, "logits_scaling");
}

static void configure_granite(gb_gguf_metadata *metadata, json_t *config) {
    static const char TURNS[] = ".rope.scaling.finetuned";
    if (gb_gguf_configure_decoder(metadata, "granite", config) == 0)
        return;
    refuse_experts(metadata);
    gb_gguf_write_multipliers(metadata, config);
    gb_gguf_need_number(metadata, ".logit_scale");
    if (gb_gguf_get_integer(metadata, TURNS, 1) != 1)
        gb_gguf_fail(
            metadata, TURNS, GUMBEL_ERROR_UNSUPPORTED,
            "a model without rotary embedding is not supported from GGUF in this version; expected true");
}

/* llama.cpp has no windows for it, transformers has; in released files they are as wide as the context. */
static void configure_phi3(gb_gguf_metadata *metadata, json_t *config) {
    static const char WINDOW[] = ".attention.sliding_window", SCALING[] = ".rope.scaling.type";
    if (gb_gguf_configure_decoder(metadata, "phi3", config) == 0)
        return;
    refuse_experts(metadata);
    if (gb_gguf_get_integer(metadata, WINDOW, 0) > 0)
        gb_gguf_copy_integer(metadata, WINDOW, config, "sliding_window");
    if (gb_gguf_value_of(metadata, SCALING) && !gb_gguf_text_is(metadata, SCALING, "longrope") &&
        !gb_gguf_text_is(metadata, SCALING, "none"))
        gb_gguf_fail(metadata, SCALING, GUMBEL_ERROR_UNSUPPORTED,
                     "is not supported in this version; known are none, longrope");
}

static void configure_qwen3moe(gb_gguf_metadata *metadata, json_t *config) {
    const size_t layers = gb_gguf_configure_decoder(metadata, "qwen3_moe", config);
    if (layers == 0)
        return;
    gb_gguf_copy_integer(metadata, ".expert_count", config, "num_experts");
    gb_gguf_copy_integer(metadata, ".expert_used_count", config, "num_experts_per_tok");
    gb_gguf_copy_uniform(metadata, ".expert_feed_forward_length", layers, config, "moe_intermediate_size");
    gb_gguf_set(metadata, config, "norm_topk_prob", json_true()); /* as llama.cpp computes it */
    gb_gguf_refuse_scaled_experts(metadata);
}

const gb_gguf_architecture gb_gguf_llama = {
    .name = "llama", .names = LLAMA_NAMES, .configure = configure_named};

const gb_gguf_architecture gb_gguf_mistral3 = {
    .name = "mistral3", .names = LLAMA_NAMES, .configure = configure_mistral3};

const gb_gguf_architecture gb_gguf_smollm3 = {
    .name = "smollm3", .names = LLAMA_NAMES, .configure = configure_named};

const gb_gguf_architecture gb_gguf_granite = {
    .name = "granite", .names = LLAMA_NAMES, .configure = configure_granite};

const gb_gguf_architecture gb_gguf_phi3 = {.name = "phi3", .names = PHI3_NAMES, .configure = configure_phi3};

const gb_gguf_architecture gb_gguf_qwen2 = {
    .name = "qwen2", .names = QWEN2_NAMES, .configure = configure_named};

const gb_gguf_architecture gb_gguf_qwen3 = {
    .name = "qwen3", .names = QWEN3_NAMES, .configure = configure_named};

const gb_gguf_architecture gb_gguf_qwen3moe = {
    .name = "qwen3moe", .names = QWEN3_NAMES, .configure = configure_qwen3moe};
