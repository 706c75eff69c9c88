/* SPDX-License-Identifier: Apache-2.0
 *
 * Granite 4 with Mamba layers in GGUF; without them it is `granite` (dense.c). What was done to the weights:
 * as in that, the rows of attn_q and attn_k stand in pairs, even where nothing turns; as in Nemotron-H, A_log
 * stands as -exp(A_log), and the norm of a Mamba layer as a row for each group; gate and up are apart. A
 * layer without key heads remembers.
 */
#include "export/gguf/architecture.h"
#include "export/gguf/dense.h"
#include "export/gguf/settings.h"

#include <inttypes.h>

#define LAYER(file, original)                                                                                \
    { .gguf = "blk.*." file, .checkpoint = "model.layers.*." original }
#define PAIRED(file, original)                                                                               \
    { .gguf = "blk.*." file, .checkpoint = "model.layers.*." original, .has_row_pairs = true }

static const gb_gguf_name NAMES[] = {
    {.gguf = "token_embd.weight", .checkpoint = "model.embed_tokens.weight"},
    {.gguf = "output_norm.weight", .checkpoint = "model.norm.weight"},
    {.gguf = "output.weight", .checkpoint = "lm_head.weight"},
    LAYER("attn_norm.weight", "input_layernorm.weight"),
    LAYER("ffn_norm.weight", "post_attention_layernorm.weight"),
    /* attention */
    PAIRED("attn_q.weight", "self_attn.q_proj.weight"),
    PAIRED("attn_k.weight", "self_attn.k_proj.weight"),
    LAYER("attn_v.weight", "self_attn.v_proj.weight"),
    LAYER("attn_output.weight", "self_attn.o_proj.weight"),
    /* Mamba */
    LAYER("ssm_in.weight", "mamba.in_proj.weight"),
    LAYER("ssm_conv1d.weight", "mamba.conv1d.weight"),
    LAYER("ssm_conv1d.bias", "mamba.conv1d.bias"),
    {.gguf = "blk.*.ssm_a", .checkpoint = "model.layers.*.mamba.A_log", .is_minus_exp = true},
    LAYER("ssm_d", "mamba.D"),
    LAYER("ssm_dt.bias", "mamba.dt_bias"),
    {.gguf = "blk.*.ssm_norm.weight", .checkpoint = "model.layers.*.mamba.norm.weight", .is_flat = true},
    LAYER("ssm_out.weight", "mamba.out_proj.weight"),
    /* an MLP alone */
    LAYER("ffn_gate.weight", "mlp.gate_proj.weight"),
    LAYER("ffn_up.weight", "mlp.up_proj.weight"),
    LAYER("ffn_down.weight", "mlp.down_proj.weight"),
    /* experts, and the MLP beside them */
    LAYER("ffn_gate_inp.weight", "block_sparse_moe.router.layer.weight"),
    LAYER("ffn_gate_exps.weight", "block_sparse_moe.switch_mlp.gate_proj.weight"),
    LAYER("ffn_up_exps.weight", "block_sparse_moe.switch_mlp.up_proj.weight"),
    LAYER("ffn_down_exps.weight", "block_sparse_moe.output_linear.weight"),
    LAYER("ffn_gate_shexp.weight", "shared_mlp.gate_proj.weight"),
    LAYER("ffn_up_shexp.weight", "shared_mlp.up_proj.weight"),
    LAYER("ffn_down_shexp.weight", "shared_mlp.output_linear.weight"),
    {0},
};

static void write_layers(gb_gguf_metadata *metadata, json_t *config) {
    static const char KEY[] = ".attention.head_count_kv";
    int64_t key_heads[GB_GGUF_LAYERS];
    const size_t count = gb_gguf_need_layers(metadata);
    gb_gguf_need_per_layer(metadata, KEY, key_heads, count);
    if (metadata->error.status != GUMBEL_OK)
        return;
    json_t *types = json_array();
    for (size_t i = 0; i < count; i++)
        gb_gguf_append(metadata, types, json_string(key_heads[i] > 0 ? "attention" : "mamba"));
    gb_gguf_set(metadata, config, "layer_types", types);
    const int64_t common = gb_gguf_common(metadata, KEY, key_heads, count);
    gb_gguf_set(metadata, config, "num_key_value_heads", json_integer(common > 0 ? common : 1));
}

/* llama.cpp knows no other expansion than 2, the configuration any whole one. */
static void write_mamba(gb_gguf_metadata *metadata, json_t *config) {
    static const char INNER[] = ".ssm.inner_size";
    const int64_t heads = gb_gguf_need_integer(metadata, ".ssm.time_step_rank");
    const int64_t inner = gb_gguf_need_integer(metadata, INNER);
    const int64_t hidden = gb_gguf_need_integer(metadata, ".embedding_length");
    if (heads < 1 || hidden < 1 || inner % heads != 0 || inner % hidden != 0) {
        gb_gguf_fail(metadata, INNER, GUMBEL_ERROR_FORMAT,
                     "%" PRId64 ", expected a multiple of the %" PRId64
                     " of ssm.time_step_rank and the %" PRId64 " of embedding_length",
                     inner, heads, hidden);
        return;
    }
    gb_gguf_copy_integer(metadata, ".ssm.conv_kernel", config, "mamba_d_conv");
    gb_gguf_copy_integer(metadata, ".ssm.state_size", config, "mamba_d_state");
    gb_gguf_copy_integer(metadata, ".ssm.group_count", config, "mamba_n_groups");
    gb_gguf_set(metadata, config, "mamba_n_heads", json_integer(heads));
    gb_gguf_set(metadata, config, "mamba_d_head", json_integer(inner / heads));
    gb_gguf_set(metadata, config, "mamba_expand", json_integer(inner / hidden));
}

/* The width of the one MLP stands as that of experts does. */
static void write_experts(gb_gguf_metadata *metadata, size_t layers, json_t *config) {
    static const char SHARED[] = "shared_intermediate_size";
    const int64_t count = gb_gguf_get_integer(metadata, ".expert_count", 0);
    gb_gguf_set(metadata, config, "num_local_experts", json_integer(count));
    if (count == 0) {
        gb_gguf_copy_uniform(metadata, ".feed_forward_length", layers, config, SHARED);
        return;
    }
    gb_gguf_copy_uniform(metadata, ".expert_used_count", layers, config, "num_experts_per_tok");
    gb_gguf_copy_uniform(metadata, ".expert_shared_feed_forward_length", layers, config, SHARED);
    gb_gguf_refuse_scaled_experts(metadata);
}

static void configure(gb_gguf_metadata *metadata, json_t *config) {
    write_layers(metadata, config);
    const size_t layers = gb_gguf_configure_decoder(metadata, "granitemoehybrid", config);
    if (layers == 0)
        return;
    const bool turns = gb_gguf_get_integer(metadata, ".rope.scaling.finetuned", 1) == 1;
    gb_gguf_set(metadata, config, "position_embedding_type", json_string(turns ? "rope" : "nope"));
    write_mamba(metadata, config);
    write_experts(metadata, layers, config);
    gb_gguf_write_multipliers(metadata, config);
}

const gb_gguf_architecture gb_gguf_granitehybrid = {
    .name = "granitehybrid", .names = NAMES, .configure = configure};
