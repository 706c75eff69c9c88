/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma 4 in GGUF. Norm weights stand as they are (the 1 of earlier Gemmas is not added), nothing is
 * reordered; a tied head, and the values of full layers that take them from the keys, have no tensor.
 * Proportional rotary embedding stands as the tensor rope_freqs: what the frequencies of full layers are
 * divided by, 1 for the pairs that turn and 1e30 for those that do not.
 */
#include "export/gguf/architecture.h"

#include "base/memory.h"
#include "export/gguf/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LAYER(file, original)                                                                                \
    { .gguf = "blk.*." file ".weight", .checkpoint = "model.layers.*." original }

static const gb_gguf_name NAMES[] = {
    {.gguf = "token_embd.weight", .checkpoint = "model.embed_tokens.weight"},
    {.gguf = "output_norm.weight", .checkpoint = "model.norm.weight"},
    {.gguf = "output.weight", .checkpoint = "lm_head.weight"},
    {.gguf = "rope_freqs.weight", .checkpoint = ""},
    LAYER("attn_norm", "input_layernorm.weight"),
    LAYER("attn_q", "self_attn.q_proj.weight"),
    LAYER("attn_k", "self_attn.k_proj.weight"),
    LAYER("attn_v", "self_attn.v_proj.weight"),
    LAYER("attn_q_norm", "self_attn.q_norm.weight"),
    LAYER("attn_k_norm", "self_attn.k_norm.weight"),
    LAYER("attn_output", "self_attn.o_proj.weight"),
    LAYER("post_attention_norm", "post_attention_layernorm.weight"),
    LAYER("ffn_norm", "pre_feedforward_layernorm.weight"),
    LAYER("ffn_gate", "mlp.gate_proj.weight"),
    LAYER("ffn_up", "mlp.up_proj.weight"),
    LAYER("ffn_down", "mlp.down_proj.weight"),
    LAYER("post_ffw_norm", "post_feedforward_layernorm.weight"),
    LAYER("layer_output_scale", "layer_scalar"),
    /* experts */
    LAYER("post_ffw_norm_1", "post_feedforward_layernorm_1.weight"),
    LAYER("pre_ffw_norm_2", "pre_feedforward_layernorm_2.weight"),
    LAYER("post_ffw_norm_2", "post_feedforward_layernorm_2.weight"),
    LAYER("ffn_gate_inp", "router.proj.weight"),
    {.gguf = "blk.*.ffn_gate_inp.scale", .checkpoint = "model.layers.*.router.scale"},
    {.gguf = "blk.*.ffn_down_exps.scale", .checkpoint = "model.layers.*.router.per_expert_scale"},
    LAYER("ffn_gate_up_exps", "experts.gate_up_proj"),
    LAYER("ffn_gate_exps", "experts.switch_glu.gate_proj.weight"),
    LAYER("ffn_up_exps", "experts.switch_glu.up_proj.weight"),
    LAYER("ffn_down_exps", "experts.down_proj"),
    /* inputs of layers */
    {.gguf = "per_layer_token_embd.weight", .checkpoint = "model.embed_tokens_per_layer.weight"},
    {.gguf = "per_layer_model_proj.weight", .checkpoint = "model.per_layer_model_projection.weight"},
    {.gguf = "per_layer_proj_norm.weight", .checkpoint = "model.per_layer_projection_norm.weight"},
    LAYER("inp_gate", "per_layer_input_gate.weight"),
    LAYER("proj", "per_layer_projection.weight"),
    LAYER("post_norm", "post_per_layer_input_norm.weight"),
    /* assistants */
    {.gguf = "nextn.pre_projection.weight", .checkpoint = "pre_projection.weight"},
    {.gguf = "nextn.post_projection.weight", .checkpoint = "post_projection.weight"},
    {0},
};

/* What the layers of a file have, which config.json says in fewer words. */
typedef struct layer_table {
    size_t count;
    int64_t *is_sliding, *kv_heads; /* by layer */
    int64_t head_dim[2];            /* of full and of sliding layers */
    size_t shared;                  /* layers at the end that share keys with earlier ones */
    bool is_assistant;              /* whose layers all share those of the model that it guesses for */
} layer_table;

static void read_head_dims(gb_gguf_metadata *metadata, layer_table *layers) {
    static const char *const keys[2][3] = {
        {".attention.key_length", ".attention.value_length", ".rope.dimension_count"},
        {".attention.key_length_swa", ".attention.value_length_swa", ".rope.dimension_count_swa"}};
    layers->head_dim[0] = gb_gguf_need_integer(metadata, keys[0][0]);
    layers->head_dim[1] = gb_gguf_get_integer(metadata, keys[1][0], layers->head_dim[0]);
    for (int i = 0; i < 2; i++) {
        gb_gguf_need_equal(metadata, keys[i][1], layers->head_dim[i]);
        gb_gguf_need_equal(metadata, keys[i][2], layers->head_dim[i]);
    }
}

static void read_layers(gb_gguf_metadata *metadata, layer_table *layers) {
    static const char PATTERN[] = ".attention.sliding_window_pattern";
    const gb_gguf_value *pattern = gb_gguf_value_of(metadata, PATTERN);
    if (pattern && pattern->type != GB_GGUF_ARRAY)
        gb_gguf_fail(metadata, PATTERN, GUMBEL_ERROR_FORMAT,
                     "expected an array with one bool for each layer, found a value of type %s",
                     gb_gguf_type_name(pattern->type));
    gb_gguf_need_per_layer(metadata, PATTERN, layers->is_sliding, layers->count);
    gb_gguf_need_per_layer(metadata, ".attention.head_count_kv", layers->kv_heads, layers->count);
    if (layers->is_sliding[layers->count - 1])
        gb_gguf_fail(metadata, PATTERN, GUMBEL_ERROR_UNSUPPORTED,
                     "the last layer slides, expected a full one");
    read_head_dims(metadata, layers);
}

/* Full layers have values of their own, all of them or none; those that share keys are no matter. */
static bool keys_are_values(gb_gguf_metadata *metadata, const layer_table *layers) {
    size_t full = 0, without = 0;
    for (size_t i = 0; i < layers->count - layers->shared; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%zu.attn_v.weight", i);
        if (layers->is_sliding[i])
            continue;
        full++;
        without += gb_gguf_files_find(metadata->files, name) == NULL;
    }
    if (without > 0 && without < full)
        gb_gguf_fail(metadata, ".attention", GUMBEL_ERROR_UNSUPPORTED,
                     "%zu of %zu full layers have no attn_v tensor, expected all or none", without, full);
    return without > 0;
}

static void write_layers(gb_gguf_metadata *metadata, const layer_table *layers, json_t *config) {
    json_t *types = json_array(), *overrides = json_object();
    for (size_t i = 0; i < layers->count; i++) {
        char index[32];
        snprintf(index, sizeof index, "%zu", i);
        bool is_sliding = layers->is_sliding[i] != 0;
        gb_gguf_append(metadata, types, json_string(is_sliding ? "sliding_attention" : "full_attention"));
        gb_gguf_set(metadata, overrides, index,
                    json_pack("{s:I, s:I}", "head_dim", (json_int_t)layers->head_dim[is_sliding],
                              "num_key_value_heads", (json_int_t)layers->kv_heads[i]));
    }
    gb_gguf_set(metadata, config, "num_hidden_layers", json_integer((json_int_t)layers->count));
    gb_gguf_set(metadata, config, "layer_types", types);
    gb_gguf_set(metadata, config, "per_layer_config", overrides);
    gb_gguf_set(metadata, config, "attention_k_eq_v", json_boolean(keys_are_values(metadata, layers)));
}

/* How many of the first factors are equal to the first one, all others being too large to turn anything. */
static size_t turning_pairs(gb_gguf_metadata *metadata, const gb_tensor *factors, float *divisor) {
    static const float NO_TURN = 1e20f;
    size_t count = (size_t)factors->dims[0], turning = 0;
    *divisor = 1;
    for (size_t i = 0; i < count; i++) {
        float factor;
        memcpy(&factor, factors->data + 4 * i, sizeof factor);
        if (factor >= NO_TURN)
            continue;
        if (i == 0)
            *divisor = factor;
        if (i != turning || factor != *divisor || !(factor > 0))
            gb_gguf_fail(metadata, "rope_freqs.weight", GUMBEL_ERROR_UNSUPPORTED,
                         "factor %zu is %g; expected one positive number for the pairs that turn, then 1e30 "
                         "for the rest",
                         i, (double)factor);
        turning++;
    }
    return turning;
}

/* The rotary embedding of full layers. */
static json_t *proportional_rope(gb_gguf_metadata *metadata, const layer_table *layers) {
    double theta = gb_gguf_get_number(metadata, ".rope.freq_base", 10000);
    const gb_tensor *factors = gb_gguf_files_find(metadata->files, "rope_freqs.weight");
    double proportion = 1;
    float divisor = 1;
    if (factors && (factors->rank != 1 || factors->dtype != GB_F32 ||
                    factors->dims[0] != layers->head_dim[0] / 2 || factors->dims[0] == 0))
        gb_gguf_fail(metadata, "rope_freqs.weight", GUMBEL_ERROR_FORMAT,
                     "expected an F32 tensor of the %" PRId64 " pairs of a full layer's head",
                     layers->head_dim[0] / 2);
    else if (factors)
        proportion = (double)turning_pairs(metadata, factors, &divisor) / (double)factors->dims[0];
    return json_pack("{s:s, s:f, s:f, s:f}", "rope_type", "proportional", "rope_theta", theta, "factor",
                     (double)divisor, "partial_rotary_factor", proportion);
}

static void write_ropes(gb_gguf_metadata *metadata, const layer_table *layers, json_t *config) {
    double sliding_theta = gb_gguf_get_number(metadata, ".rope.freq_base_swa", 10000);
    json_t *ropes = json_object();
    gb_gguf_set(metadata, ropes, "full_attention", proportional_rope(metadata, layers));
    gb_gguf_set(metadata, ropes, "sliding_attention",
                json_pack("{s:s, s:f}", "rope_type", "default", "rope_theta", sliding_theta));
    gb_gguf_set(metadata, config, "rope_parameters", ropes);
}

static void write_sizes(gb_gguf_metadata *metadata, size_t layers, json_t *config) {
    gb_gguf_copy_integer(metadata, ".embedding_length", config, "hidden_size");
    gb_gguf_copy_integer(metadata, ".context_length", config, "max_position_embeddings");
    gb_gguf_copy_integer(metadata, ".attention.sliding_window", config, "sliding_window");
    gb_gguf_set(metadata, config, "num_attention_heads",
                json_integer((json_int_t)gb_gguf_need_uniform(metadata, ".attention.head_count", layers)));
    gb_gguf_set(metadata, config, "rms_norm_eps",
                json_real(gb_gguf_need_number(metadata, ".attention.layer_norm_rms_epsilon")));
    double cap = gb_gguf_get_number(metadata, ".final_logit_softcapping", 0);
    if (cap != 0)
        gb_gguf_set(metadata, config, "final_logit_softcapping", json_real(cap));
    gb_gguf_write_vocabulary(metadata, config);
}

static void write_experts(gb_gguf_metadata *metadata, size_t layers, json_t *config) {
    static const char COUNT[] = ".expert_count";
    const bool has_experts = gb_gguf_get_integer(metadata, COUNT, 0) > 0;
    gb_gguf_set(metadata, config, "enable_moe_block", json_boolean(has_experts));
    if (!has_experts)
        return;
    gb_gguf_copy_integer(metadata, COUNT, config, "num_experts");
    gb_gguf_copy_integer(metadata, ".expert_used_count", config, "top_k_experts");
    gb_gguf_set(
        metadata, config, "moe_intermediate_size",
        json_integer((json_int_t)gb_gguf_need_uniform(metadata, ".expert_feed_forward_length", layers)));
    gb_gguf_refuse_scaled_experts(metadata);
}

static void write_layer_inputs(gb_gguf_metadata *metadata, json_t *config) {
    const int64_t size = gb_gguf_get_integer(metadata, ".embedding_length_per_layer_input", 0);
    const gb_tensor *table = gb_gguf_files_find(metadata->files, "per_layer_token_embd.weight");
    gb_gguf_set(metadata, config, "hidden_size_per_layer_input", json_integer((json_int_t)size));
    if (size > 0 && table && table->rank == 2)
        gb_gguf_set(metadata, config, "vocab_size_per_layer_input", json_integer((json_int_t)table->dims[0]));
}

/* Layers that share keys may have an MLP of twice the width. */
static void write_widths(gb_gguf_metadata *metadata, const layer_table *layers, json_t *config) {
    static const char KEY[] = ".feed_forward_length";
    const size_t own = layers->count - layers->shared;
    int64_t *widths = gb_allocate(layers->count, sizeof *widths);
    if (!widths) {
        gb_gguf_fail(metadata, KEY, GUMBEL_ERROR_MEMORY, "no memory for %zu layers", layers->count);
        return;
    }
    gb_gguf_need_per_layer(metadata, KEY, widths, layers->count);
    const bool is_wide = widths[layers->count - 1] != widths[0];
    for (size_t i = 0; i < layers->count; i++) {
        const int64_t expected = is_wide && i >= own ? 2 * widths[0] : widths[0];
        if (widths[i] != expected)
            gb_gguf_fail(metadata, KEY, GUMBEL_ERROR_UNSUPPORTED,
                         "%" PRId64 " in layer %zu, expected %" PRId64, widths[i], i, expected);
    }
    gb_gguf_set(metadata, config, "intermediate_size", json_integer((json_int_t)widths[0]));
    gb_gguf_set(metadata, config, "use_double_wide_mlp", json_boolean(is_wide));
    gb_free(widths);
}

/* What only some models of the family have. */
static void write_features(gb_gguf_metadata *metadata, layer_table *layers, json_t *config) {
    static const char SHARED[] = ".attention.shared_kv_layers";
    const int64_t all = (int64_t)layers->count,
                  shared = gb_gguf_get_integer(metadata, SHARED, layers->is_assistant ? all : 0);
    if (layers->is_assistant ? shared != all : shared >= all) {
        gb_gguf_fail(metadata, SHARED, GUMBEL_ERROR_FORMAT, "%" PRId64 ", expected %s the %zu layers", shared,
                     layers->is_assistant ? "all of" : "fewer than", layers->count);
        return;
    }
    layers->shared = (size_t)shared;
    gb_gguf_set(metadata, config, "num_kv_shared_layers", json_integer((json_int_t)shared));
    write_experts(metadata, layers->count, config);
    write_layer_inputs(metadata, config);
    write_widths(metadata, layers, config);
    gb_gguf_refuse_variants(metadata);
}

static void configure_text(gb_gguf_metadata *metadata, bool is_assistant, json_t *config) {
    layer_table layers = {.count = gb_gguf_need_layers(metadata), .is_assistant = is_assistant};
    if (layers.count == 0)
        return;
    layers.is_sliding = gb_allocate(layers.count, sizeof *layers.is_sliding);
    layers.kv_heads = gb_allocate(layers.count, sizeof *layers.kv_heads);
    if (layers.is_sliding && layers.kv_heads) {
        gb_gguf_set(metadata, config, "model_type", json_string("gemma4_text"));
        read_layers(metadata, &layers);
        write_features(metadata, &layers, config);
        write_sizes(metadata, layers.count, config);
        write_layers(metadata, &layers, config);
        write_ropes(metadata, &layers, config);
    } else {
        gb_gguf_fail(metadata, ".block_count", GUMBEL_ERROR_MEMORY, "no memory for the layers");
    }
    gb_free(layers.is_sliding);
    gb_free(layers.kv_heads);
}

static void configure(gb_gguf_metadata *metadata, json_t *config) {
    configure_text(metadata, false, config);
}

const gb_gguf_architecture gb_gguf_gemma4 = {.name = "gemma4", .names = NAMES, .configure = configure};

static void configure_assistant(gb_gguf_metadata *metadata, json_t *config) {
    json_t *text = json_object();
    configure_text(metadata, true, text);
    gb_gguf_set(metadata, config, "model_type", json_string("gemma4_assistant"));
    gb_gguf_copy_integer(metadata, ".embedding_length_out", config, "backbone_hidden_size");
    gb_gguf_set(metadata, config, "text_config", text);
}

const gb_gguf_architecture gb_gguf_gemma4_assistant = {
    .name = "gemma4-assistant", .names = NAMES, .configure = configure_assistant};
