/* SPDX-License-Identifier: Apache-2.0
 *
 * Nemotron-H and Nemotron 3 in GGUF. What was done to the weights: A_log stands as -exp(A_log), and the norm
 * of a Mamba layer as a row for each group. What a layer is only its numbers tell: one with key heads
 * attends, one with a width of its own is an MLP or has experts, and one with neither remembers.
 *
 * A layer past the last (nextn_predict_layers) guesses several tokens ahead and is not used.
 */
#include "export/gguf/architecture.h"

#include "export/gguf/settings.h"

#include <inttypes.h>

#define LAYER(file, original)                                                                                \
    { .gguf = "blk.*." file, .checkpoint = "model.layers.*." original }

static const gb_gguf_name NAMES[] = {
    {.gguf = "token_embd.weight", .checkpoint = "model.embeddings.weight"},
    {.gguf = "output_norm.weight", .checkpoint = "model.norm_f.weight"},
    {.gguf = "output.weight", .checkpoint = "lm_head.weight"},
    LAYER("attn_norm.weight", "norm.weight"),
    /* attention */
    LAYER("attn_q.weight", "mixer.q_proj.weight"),
    LAYER("attn_k.weight", "mixer.k_proj.weight"),
    LAYER("attn_v.weight", "mixer.v_proj.weight"),
    LAYER("attn_output.weight", "mixer.o_proj.weight"),
    /* Mamba */
    LAYER("ssm_in.weight", "mixer.in_proj.weight"),
    LAYER("ssm_conv1d.weight", "mixer.conv1d.weight"),
    LAYER("ssm_conv1d.bias", "mixer.conv1d.bias"),
    {.gguf = "blk.*.ssm_a", .checkpoint = "model.layers.*.mixer.A_log", .is_minus_exp = true},
    LAYER("ssm_d", "mixer.D"),
    LAYER("ssm_dt.bias", "mixer.dt_bias"),
    {.gguf = "blk.*.ssm_norm.weight", .checkpoint = "model.layers.*.mixer.norm.weight", .is_flat = true},
    LAYER("ssm_out.weight", "mixer.out_proj.weight"),
    /* an MLP */
    LAYER("ffn_up.weight", "mixer.up_proj.weight"),
    LAYER("ffn_down.weight", "mixer.down_proj.weight"),
    /* experts */
    LAYER("ffn_gate_inp.weight", "mixer.gate.weight"),
    LAYER("exp_probs_b.bias", "mixer.gate.e_score_correction_bias"),
    LAYER("ffn_up_exps.weight", "mixer.switch_mlp.fc1.weight"),
    LAYER("ffn_down_exps.weight", "mixer.switch_mlp.fc2.weight"),
    LAYER("ffn_latent_down.weight", "mixer.fc1_latent_proj.weight"),
    LAYER("ffn_latent_up.weight", "mixer.fc2_latent_proj.weight"),
    LAYER("ffn_up_shexp.weight", "mixer.shared_experts.up_proj.weight"),
    LAYER("ffn_down_shexp.weight", "mixer.shared_experts.down_proj.weight"),
    {0},
};

static void write_layers(gb_gguf_metadata *metadata, size_t in_file, bool has_experts, json_t *config) {
    static const char KEYS[] = ".attention.head_count_kv", WIDTHS[] = ".feed_forward_length";
    int64_t key_heads[GB_GGUF_LAYERS], widths[GB_GGUF_LAYERS];
    const size_t count = in_file - (size_t)gb_gguf_get_integer(metadata, ".nextn_predict_layers", 0);
    gb_gguf_need_per_layer(metadata, KEYS, key_heads, in_file);
    gb_gguf_need_per_layer(metadata, WIDTHS, widths, in_file);
    if (metadata->error.status != GUMBEL_OK)
        return;
    json_t *types = json_array();
    for (size_t i = 0; i < count; i++)
        gb_gguf_append(metadata, types,
                       json_string(widths[i] > 0      ? has_experts ? "moe" : "mlp"
                                   : key_heads[i] > 0 ? "full_attention"
                                                      : "linear_attention"));
    gb_gguf_set(metadata, config, "layers_block_type", types);
    gb_gguf_set(metadata, config, "num_hidden_layers", json_integer((json_int_t)count));
    const int64_t kv_heads = gb_gguf_common(metadata, KEYS, key_heads, count);
    const int64_t width = gb_gguf_common(metadata, WIDTHS, widths, count);
    gb_gguf_set(metadata, config, "num_key_value_heads", json_integer(kv_heads > 0 ? kv_heads : 1));
    if (!has_experts && width > 0)
        gb_gguf_set(metadata, config, "intermediate_size", json_integer(width));
}

static void write_mamba(gb_gguf_metadata *metadata, json_t *config) {
    static const char INNER[] = ".ssm.inner_size";
    const int64_t heads = gb_gguf_need_integer(metadata, ".ssm.time_step_rank");
    const int64_t inner = gb_gguf_need_integer(metadata, INNER);
    if (heads < 1 || inner % heads != 0) {
        gb_gguf_fail(metadata, INNER, GUMBEL_ERROR_FORMAT,
                     "%" PRId64 ", expected a multiple of the %" PRId64 " of ssm.time_step_rank", inner,
                     heads);
        return;
    }
    gb_gguf_copy_integer(metadata, ".ssm.conv_kernel", config, "conv_kernel");
    gb_gguf_copy_integer(metadata, ".ssm.state_size", config, "ssm_state_size");
    gb_gguf_copy_integer(metadata, ".ssm.group_count", config, "n_groups");
    gb_gguf_set(metadata, config, "mamba_num_heads", json_integer(heads));
    gb_gguf_set(metadata, config, "mamba_head_dim", json_integer(inner / heads));
}

static void write_attention(gb_gguf_metadata *metadata, size_t layers, json_t *config) {
    const int64_t hidden = gb_gguf_need_integer(metadata, ".embedding_length");
    const int64_t heads =
        gb_gguf_copy_uniform(metadata, ".attention.head_count", layers, config, "num_attention_heads");
    const int64_t head_dim =
        gb_gguf_get_integer(metadata, ".attention.key_length", heads > 0 ? hidden / heads : 0);
    gb_gguf_need_equal(metadata, ".attention.value_length", head_dim);
    gb_gguf_set(metadata, config, "hidden_size", json_integer(hidden));
    gb_gguf_set(metadata, config, "head_dim", json_integer(head_dim));
}

/* Norms are by the root of the mean square, whichever of the two names their number has. */
static double epsilon_of(gb_gguf_metadata *metadata) {
    static const char RMS[] = ".attention.layer_norm_rms_epsilon", PLAIN[] = ".attention.layer_norm_epsilon";
    return gb_gguf_need_number(metadata, gb_gguf_value_of(metadata, RMS) ? RMS : PLAIN);
}

/* Returns how many layers the file has; 0 after an error. */
static size_t configure_decoder(gb_gguf_metadata *metadata, bool has_experts, json_t *config) {
    const size_t layers = gb_gguf_need_layers(metadata);
    const int64_t next = gb_gguf_get_integer(metadata, ".nextn_predict_layers", 0);
    if (layers > 0 && next >= (int64_t)layers)
        gb_gguf_fail(metadata, ".nextn_predict_layers", GUMBEL_ERROR_FORMAT,
                     "%" PRId64 ", expected fewer than the %zu layers", next, layers);
    if (metadata->error.status != GUMBEL_OK)
        return 0;
    gb_gguf_set(metadata, config, "model_type", json_string("nemotron_h"));
    gb_gguf_copy_integer(metadata, ".context_length", config, "max_position_embeddings");
    gb_gguf_set(metadata, config, "layer_norm_epsilon", json_real(epsilon_of(metadata)));
    gb_gguf_write_vocabulary(metadata, config);
    write_layers(metadata, layers, has_experts, config);
    write_attention(metadata, layers, config);
    write_mamba(metadata, config);
    gb_gguf_refuse_lookahead(metadata);
    return layers;
}

static void configure_dense(gb_gguf_metadata *metadata, json_t *config) {
    configure_decoder(metadata, false, config);
}

static void configure_experts(gb_gguf_metadata *metadata, json_t *config) {
    const size_t layers = configure_decoder(metadata, true, config);
    if (layers == 0)
        return;
    gb_gguf_copy_integer(metadata, ".expert_count", config, "n_routed_experts");
    gb_gguf_copy_uniform(metadata, ".expert_used_count", layers, config, "num_experts_per_tok");
    gb_gguf_copy_uniform(metadata, ".expert_feed_forward_length", layers, config, "moe_intermediate_size");
    gb_gguf_set(metadata, config, "n_shared_experts",
                json_integer(gb_gguf_get_integer(metadata, ".expert_shared_count", 0)));
    gb_gguf_copy_integer(metadata, ".expert_shared_feed_forward_length", config,
                         "moe_shared_expert_intermediate_size");
    gb_gguf_set(metadata, config, "n_group",
                json_integer(gb_gguf_get_integer(metadata, ".expert_group_count", 1)));
    const double scale = gb_gguf_get_number(metadata, ".expert_weights_scale", 1); /* 0 stands for none */
    gb_gguf_set(metadata, config, "routed_scaling_factor", json_real(scale != 0 ? scale : 1));
    gb_gguf_need_sigmoids(metadata);
    gb_gguf_set(metadata, config, "norm_topk_prob",
                json_boolean(gb_gguf_get_integer(metadata, ".expert_weights_norm", 0) != 0));
    const int64_t latent = gb_gguf_get_integer(metadata, ".moe_latent_size", 0);
    if (latent > 0)
        gb_gguf_set(metadata, config, "moe_latent_size", json_integer(latent));
}

const gb_gguf_architecture gb_gguf_nemotron_h = {
    .name = "nemotron_h", .names = NAMES, .configure = configure_dense};

const gb_gguf_architecture gb_gguf_nemotron_h_moe = {
    .name = "nemotron_h_moe", .names = NAMES, .configure = configure_experts};
