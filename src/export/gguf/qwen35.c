/* SPDX-License-Identifier: Apache-2.0
 *
 * Qwen3.5 in GGUF, dense and with experts. What was done to the weights: norms hold 1 + w, but for the delta
 * net's own; A_log stands as -exp(A_log); the experts' gate and up are apart. And the delta net's value heads
 * are sorted so that head h has key head h mod their number, where the original gives each key head a few
 * neighbours. Everything that has a value head is sorted so (rows of in_proj_qkv, z, a and b, channels of the
 * convolution, columns of out_proj), so it can stay: only the delta rule has to know. That keeps every
 * quantized block as it is, also where one holds columns of two heads.
 *
 * Of Qwen3-Next the value heads keep their order. What it has of a and b in one tensor stays so (ssm_ba); of
 * its queries, keys, values and gates only the first converters wrote one tensor (ssm_in).
 *
 * Layers past the last (nextn_predict_layers) guess several tokens ahead: the first one is the draft head.
 */
#include "export/gguf/architecture.h"

#include "base/memory.h"
#include "export/gguf/settings.h"

#include <inttypes.h>

#define LAYER(file, original)                                                                                \
    { .gguf = "blk.*." file, .checkpoint = "model.layers.*." original }

static const gb_gguf_name NAMES[] = {
    {.gguf = "token_embd.weight", .checkpoint = "model.embed_tokens.weight"},
    {.gguf = "output_norm.weight", .checkpoint = "model.norm.weight"},
    {.gguf = "output.weight", .checkpoint = "lm_head.weight"},
    LAYER("attn_norm.weight", "input_layernorm.weight"),
    LAYER("post_attention_norm.weight", "post_attention_layernorm.weight"),
    /* full attention */
    LAYER("attn_q.weight", "self_attn.q_proj.weight"),
    LAYER("attn_k.weight", "self_attn.k_proj.weight"),
    LAYER("attn_v.weight", "self_attn.v_proj.weight"),
    LAYER("attn_q_norm.weight", "self_attn.q_norm.weight"),
    LAYER("attn_k_norm.weight", "self_attn.k_norm.weight"),
    LAYER("attn_output.weight", "self_attn.o_proj.weight"),
    /* the delta net */
    LAYER("attn_qkv.weight", "linear_attn.in_proj_qkv.weight"),
    LAYER("attn_gate.weight", "linear_attn.in_proj_z.weight"),
    LAYER("ssm_in.weight", "linear_attn.in_proj_qkvz.weight"),
    LAYER("ssm_ba.weight", "linear_attn.in_proj_ba.weight"),
    LAYER("ssm_alpha.weight", "linear_attn.in_proj_a.weight"),
    LAYER("ssm_beta.weight", "linear_attn.in_proj_b.weight"),
    LAYER("ssm_conv1d.weight", "linear_attn.conv1d.weight"),
    {.gguf = "blk.*.ssm_a", .checkpoint = "model.layers.*.linear_attn.A_log", .is_minus_exp = true},
    LAYER("ssm_dt.bias", "linear_attn.dt_bias"),
    LAYER("ssm_norm.weight", "linear_attn.norm.weight"),
    LAYER("ssm_out.weight", "linear_attn.out_proj.weight"),
    /* dense */
    LAYER("ffn_gate.weight", "mlp.gate_proj.weight"),
    LAYER("ffn_up.weight", "mlp.up_proj.weight"),
    LAYER("ffn_down.weight", "mlp.down_proj.weight"),
    /* experts */
    LAYER("ffn_gate_inp.weight", "mlp.gate.weight"),
    LAYER("ffn_gate_exps.weight", "mlp.switch_mlp.gate_proj.weight"),
    LAYER("ffn_up_exps.weight", "mlp.switch_mlp.up_proj.weight"),
    LAYER("ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj"),
    LAYER("ffn_down_exps.weight", "mlp.experts.down_proj"),
    LAYER("ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight"),
    LAYER("ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight"),
    LAYER("ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight"),
    LAYER("ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight"),
    /* the draft head */
    {.gguf = "blk.*.nextn.eh_proj.weight", .checkpoint = "mtp.fc.weight"},
    {.gguf = "blk.*.nextn.enorm.weight", .checkpoint = "mtp.pre_fc_norm_embedding.weight"},
    {.gguf = "blk.*.nextn.hnorm.weight", .checkpoint = "mtp.pre_fc_norm_hidden.weight"},
    {.gguf = "blk.*.nextn.shared_head_norm.weight", .checkpoint = "mtp.norm.weight"},
    {0},
};

/* Which of the layers that generate are delta nets: a list with one bool for each layer of the file, or all
 * but the last of every few. */
static void write_layers(gb_gguf_metadata *metadata, size_t in_file, size_t count, json_t *config) {
    static const char LIST[] = ".attention.recurrent_layers", INTERVAL[] = ".full_attention_interval";
    int64_t interval = gb_gguf_get_integer(metadata, INTERVAL, 4);
    bool is_listed = gb_gguf_value_of(metadata, LIST) != NULL;
    int64_t *is_recurrent = gb_allocate(in_file, sizeof *is_recurrent);
    if (!is_recurrent) {
        gb_gguf_fail(metadata, LIST, GUMBEL_ERROR_MEMORY, "no memory for %zu layers", in_file);
        return;
    }
    if (is_listed)
        gb_gguf_need_per_layer(metadata, LIST, is_recurrent, in_file);
    else if (interval < 1)
        gb_gguf_fail(metadata, INTERVAL, GUMBEL_ERROR_FORMAT, "expected 1 or more, found %" PRId64, interval);
    json_t *types = json_array();
    for (size_t i = 0; i < count; i++) {
        bool is_full = is_listed ? !is_recurrent[i] : interval > 0 && (int64_t)(i + 1) % interval == 0;
        gb_gguf_append(metadata, types, json_string(is_full ? "full_attention" : "linear_attention"));
    }
    gb_gguf_set(metadata, config, "layer_types", types);
    gb_gguf_set(metadata, config, "num_hidden_layers", json_integer((json_int_t)count));
    gb_free(is_recurrent);
}

static void write_attention(gb_gguf_metadata *metadata, size_t layers, json_t *config) {
    int64_t hidden = gb_gguf_need_integer(metadata, ".embedding_length");
    int64_t heads =
        gb_gguf_copy_uniform(metadata, ".attention.head_count", layers, config, "num_attention_heads");
    gb_gguf_copy_uniform(metadata, ".attention.head_count_kv", layers, config, "num_key_value_heads");
    int64_t head_dim = gb_gguf_get_integer(metadata, ".attention.key_length", heads > 0 ? hidden / heads : 0);
    gb_gguf_need_equal(metadata, ".attention.value_length", head_dim);
    gb_gguf_set(metadata, config, "hidden_size", json_integer((json_int_t)hidden));
    gb_gguf_set(metadata, config, "head_dim", json_integer((json_int_t)head_dim));
    int64_t turning = gb_gguf_get_integer(metadata, ".rope.dimension_count", head_dim);
    if (turning < 1 || turning > head_dim) {
        gb_gguf_fail(metadata, ".rope.dimension_count", GUMBEL_ERROR_FORMAT,
                     "%" PRId64 ", expected 1 to the %" PRId64 " of the head's size", turning, head_dim);
        return;
    }
    /* half a dim more, so that rounding down gives the number again */
    double proportion = turning == head_dim ? 1 : ((double)turning + 0.5) / (double)head_dim;
    gb_gguf_set(metadata, config, "rope_parameters",
                json_pack("{s:s, s:f, s:f}", "rope_type", "default", "rope_theta",
                          gb_gguf_get_number(metadata, ".rope.freq_base", 10000), "partial_rotary_factor",
                          proportion));
}

static void write_delta_net(gb_gguf_metadata *metadata, json_t *config) {
    static const char INNER[] = ".ssm.inner_size";
    int64_t heads = gb_gguf_need_integer(metadata, ".ssm.time_step_rank");
    int64_t inner = gb_gguf_need_integer(metadata, INNER);
    if (heads < 1 || inner % heads != 0) {
        gb_gguf_fail(metadata, INNER, GUMBEL_ERROR_FORMAT,
                     "%" PRId64 ", expected a multiple of the %" PRId64 " of ssm.time_step_rank", inner,
                     heads);
        return;
    }
    gb_gguf_copy_integer(metadata, ".ssm.conv_kernel", config, "linear_conv_kernel_dim");
    gb_gguf_copy_integer(metadata, ".ssm.state_size", config, "linear_key_head_dim");
    gb_gguf_copy_integer(metadata, ".ssm.group_count", config, "linear_num_key_heads");
    gb_gguf_set(metadata, config, "linear_num_value_heads", json_integer((json_int_t)heads));
    gb_gguf_set(metadata, config, "linear_value_head_dim", json_integer((json_int_t)(inner / heads)));
    gb_gguf_set(metadata, config, "norm_weights_hold_one", json_true());
}

/* Returns how many layers generate; 0 after an error. */
static size_t configure_decoder(gb_gguf_metadata *metadata, const char *model_type, json_t *config) {
    static const char NEXT[] = ".nextn_predict_layers";
    size_t in_file = gb_gguf_need_layers(metadata);
    int64_t next = gb_gguf_get_integer(metadata, NEXT, 0);
    if (in_file > 0 && next >= (int64_t)in_file)
        gb_gguf_fail(metadata, NEXT, GUMBEL_ERROR_FORMAT, "%" PRId64 ", expected fewer than the %zu layers",
                     next, in_file);
    if (metadata->error.status != GUMBEL_OK)
        return 0;
    gb_gguf_set(metadata, config, "model_type", json_string(model_type));
    if (next > 0)
        gb_gguf_set(metadata, config, "mtp_num_hidden_layers", json_integer((json_int_t)next));
    gb_gguf_copy_integer(metadata, ".context_length", config, "max_position_embeddings");
    gb_gguf_set(metadata, config, "rms_norm_eps",
                json_real(gb_gguf_need_number(metadata, ".attention.layer_norm_rms_epsilon")));
    gb_gguf_write_vocabulary(metadata, config);
    write_layers(metadata, in_file, in_file - (size_t)next, config);
    write_attention(metadata, in_file, config);
    write_delta_net(metadata, config);
    gb_gguf_refuse_variants(metadata);
    return in_file;
}

static void set_tiled(gb_gguf_metadata *metadata, json_t *config) {
    gb_gguf_set(metadata, config, "linear_value_heads_tiled", json_true());
}

static void configure_dense(gb_gguf_metadata *metadata, json_t *config) {
    size_t layers = configure_decoder(metadata, "qwen3_5_text", config);
    set_tiled(metadata, config);
    if (layers > 0)
        gb_gguf_copy_uniform(metadata, ".feed_forward_length", layers, config, "intermediate_size");
}

static void write_experts(gb_gguf_metadata *metadata, size_t layers, json_t *config) {
    if (layers == 0)
        return;
    gb_gguf_copy_integer(metadata, ".expert_count", config, "num_experts");
    gb_gguf_copy_integer(metadata, ".expert_used_count", config, "num_experts_per_tok");
    gb_gguf_copy_uniform(metadata, ".expert_feed_forward_length", layers, config, "moe_intermediate_size");
    gb_gguf_copy_integer(metadata, ".expert_shared_feed_forward_length", config,
                         "shared_expert_intermediate_size");
    gb_gguf_refuse_scaled_experts(metadata);
}

static void configure_experts(gb_gguf_metadata *metadata, json_t *config) {
    write_experts(metadata, configure_decoder(metadata, "qwen3_5_moe_text", config), config);
    set_tiled(metadata, config);
}

static void configure_next(gb_gguf_metadata *metadata, json_t *config) {
    write_experts(metadata, configure_decoder(metadata, "qwen3_next", config), config);
}

const gb_gguf_architecture gb_gguf_qwen35 = {.name = "qwen35", .names = NAMES, .configure = configure_dense};

const gb_gguf_architecture gb_gguf_qwen35moe = {
    .name = "qwen35moe", .names = NAMES, .configure = configure_experts};

const gb_gguf_architecture gb_gguf_qwen3next = {
    .name = "qwen3next", .names = NAMES, .configure = configure_next};
