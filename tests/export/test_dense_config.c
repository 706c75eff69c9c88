/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of the plain decoders: transformers' defaults, forms, scalings of rotary embedding, and
 * what is refused by name.
 */
#include "export/checkpoint/json.h"
#include "export/models/dense_config.h"
#include "support/assertions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static gumbel_status read_text(const char *text, gb_dense_config *config, gumbel_error *error) {
    gb_config_file *file = NULL;
    json_t *json = NULL;
    *config = (gb_dense_config){0};
    GB_TRY(gb_parse_json("config.json", text, strlen(text), &json, error));
    gumbel_status status = gb_config_from_json("config.json", json, &file, error);
    json_decref(json);
    GB_TRY(status);
    gb_config root = gb_config_root(file);
    status = gb_dense_config_read(&root, config, error);
    gb_config_close(file);
    return status;
}

static void accepts(const char *type, const char *more, gb_dense_config *config) {
    char text[1024];
    gumbel_error error;
    snprintf(text, sizeof text, "{\"model_type\":\"%s\"%s}", type, more);
    assert_ok(read_text(text, config, &error), &error);
}

static void refuses(const char *type, const char *more, gumbel_status status, const char *part) {
    char text[1024];
    gumbel_error error;
    gb_dense_config config;
    snprintf(text, sizeof text, "{\"model_type\":\"%s\"%s}", type, more);
    assert_fails(read_text(text, &config, &error), status, &error, part);
    gb_dense_config_free(&config);
}

static void has_transformers_defaults(void **state) {
    (void)state;
    static const struct {
        const char *type;
        int64_t vocab_size, intermediate_size, layers, kv_heads, head_dim, positions;
    } expected[] = {
        {"llama", 32000, 11008, 32, 32, 128, 2048},    {"mistral", 32000, 14336, 32, 8, 128, 131072},
        {"qwen2", 151936, 22016, 32, 32, 128, 32768},  {"qwen3", 151936, 22016, 32, 32, 128, 32768},
        {"qwen3_moe", 151936, 6144, 24, 4, 64, 32768}, {"gemma3_text", 262208, 9216, 26, 4, 256, 131072},
        {"smollm3", 128256, 11008, 36, 4, 128, 32768}, {"granite", 32000, 11008, 32, 32, 128, 2048},
        {"phi3", 32064, 8192, 32, 32, 96, 4096}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        gb_dense_config config;
        accepts(expected[i].type, "", &config);
        assert_int_equal(config.vocab_size, expected[i].vocab_size);
        assert_int_equal(config.intermediate_size, expected[i].intermediate_size);
        assert_int_equal(config.layer_count, expected[i].layers);
        assert_int_equal(config.kv_heads, expected[i].kv_heads);
        assert_int_equal(config.head_dim, expected[i].head_dim);
        assert_int_equal(config.max_positions, expected[i].positions);
        const bool is_gemma = strncmp(expected[i].type, "gemma", 5) == 0;
        const bool is_qwen3 = strncmp(expected[i].type, "qwen3", 5) == 0;
        assert_int_equal(config.traits.has_head_norms, is_qwen3 || is_gemma);
        assert_int_equal(config.traits.has_head_biases, strcmp(expected[i].type, "qwen2") == 0);
        assert_int_equal(config.traits.has_output_norms, is_gemma);
        assert_int_equal(config.traits.has_norms_from_one, is_gemma);
        const bool is_smollm = expected[i].type[0] == 's';
        assert_int_equal(config.has_tied_head, is_gemma || is_smollm);
        assert_int_equal(config.layers[3].has_rope, !is_smollm);
        assert_true(config.rms_norm_eps == (expected[i].type[0] == 'p' ? 1e-5 : 1e-6));
        gb_dense_config_free(&config);
    }
}

static void nulls_are_the_models_own(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("mistral",
            ",\"num_attention_heads\":16,\"num_key_value_heads\":null,\"head_dim\":null,"
            "\"sliding_window\":null",
            &config);
    assert_int_equal(config.kv_heads, 16);
    assert_int_equal(config.head_dim, 256);
    assert_int_equal(config.sliding_window, 0);
    assert_false(config.layers[0].is_sliding);
    gb_dense_config_free(&config);
    accepts("qwen2", ",\"use_sliding_window\":true,\"sliding_window\":null,\"max_window_layers\":0", &config);
    assert_int_equal(config.sliding_window, 0);
    assert_false(config.layers[0].is_sliding);
    gb_dense_config_free(&config);
}

static void reads_windows(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("mistral", "", &config);
    assert_int_equal(config.sliding_window, 4096);
    assert_true(config.layers[0].is_sliding && config.layers[31].is_sliding);
    gb_dense_config_free(&config);
    accepts("qwen3", ",\"use_sliding_window\":true,\"max_window_layers\":30", &config);
    assert_false(config.layers[29].is_sliding);
    assert_true(config.layers[30].is_sliding);
    gb_dense_config_free(&config);
    accepts("qwen2",
            ",\"num_hidden_layers\":2,\"use_sliding_window\":true,\"sliding_window\":64,"
            "\"layer_types\":[\"sliding_attention\",\"full_attention\"]",
            &config);
    assert_int_equal(config.sliding_window, 64);
    assert_true(config.layers[0].is_sliding && !config.layers[1].is_sliding);
    gb_dense_config_free(&config);
    accepts("qwen3", ",\"sliding_window\":128", &config); /* without use_sliding_window */
    assert_false(config.layers[31].is_sliding);
    gb_dense_config_free(&config);
    refuses("qwen3", ",\"num_hidden_layers\":1,\"layer_types\":[\"sliding_attention\"]",
            GUMBEL_ERROR_UNSUPPORTED, "layer_types: layer 0 slides without use_sliding_window");
    refuses("qwen3_moe", ",\"use_sliding_window\":true", GUMBEL_ERROR_UNSUPPORTED, "use_sliding_window");
    refuses("llama", ",\"num_hidden_layers\":1,\"layer_types\":[\"sliding_attention\"]",
            GUMBEL_ERROR_UNSUPPORTED, "layer_types: layer 0 slides");
    refuses("mistral", ",\"num_hidden_layers\":1,\"layer_types\":[\"full_attention\"]",
            GUMBEL_ERROR_UNSUPPORTED, "layer_types: layer 0 is not as sliding_window says");
    refuses("qwen3", ",\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\"]", GUMBEL_ERROR_FORMAT,
            "layer_types: 1 layers, expected the 2 of num_hidden_layers");
    refuses("qwen3", ",\"num_hidden_layers\":1,\"layer_types\":[\"linear_attention\"]",
            GUMBEL_ERROR_UNSUPPORTED, "layer_types: layer 0 is \"linear_attention\"");
}

/* The frequency of a pair in units of theta's own. */
static double slowing(const gb_dense_config *config, double theta, int pair) {
    return config->rope.frequencies[pair] / pow(theta, -2.0 * pair / (double)config->head_dim);
}

static void scales_rotary_embedding(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("llama", ",\"rope_theta\":5e5,\"rope_scaling\":{\"type\":\"linear\",\"factor\":4}", &config);
    assert_true(fabs(slowing(&config, 5e5, 0) - 0.25) < 1e-12);
    assert_true(fabs(slowing(&config, 5e5, 63) - 0.25) < 1e-12);
    gb_dense_config_free(&config);
    accepts("llama",
            ",\"rope_theta\":5e5,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,"
            "\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}",
            &config);
    assert_true(slowing(&config, 5e5, 0) == 1);
    assert_true(fabs(slowing(&config, 5e5, 63) - 0.125) < 1e-12);
    /* Pair 32 turns 8192 / (2 pi sqrt(5e5)) times in the first context. */
    const double kept = (8192 / (2 * 3.14159265358979 * sqrt(5e5)) - 1) / 3;
    assert_true(fabs(slowing(&config, 5e5, 32) - ((1 - kept) / 8 + kept)) < 1e-9);
    gb_dense_config_free(&config);
    accepts("qwen3",
            ",\"rope_parameters\":{\"rope_type\":\"yarn\",\"rope_theta\":1e6,\"factor\":4,"
            "\"original_max_position_embeddings\":32768}",
            &config);
    assert_true(fabs(config.rope.attention_factor - (0.1 * log(4) + 1)) < 1e-12);
    assert_true(slowing(&config, 1e6, 0) == 1);
    assert_true(fabs(slowing(&config, 1e6, 63) - 0.25) < 1e-12);
    gb_dense_config_free(&config);
    accepts("llama", ",\"head_dim\":4,\"rope_parameters\":{\"frequency_divisors\":[1,3]}", &config);
    assert_true(slowing(&config, 1e4, 0) == 1 && fabs(slowing(&config, 1e4, 1) - 1.0 / 3) < 1e-12);
    gb_dense_config_free(&config);
}

static void refuses_other_rotary_embedding(void **state) {
    (void)state;
    refuses(
        "llama", ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}", GUMBEL_ERROR_UNSUPPORTED,
        "rope_scaling.rope_type: \"dynamic\" is not supported in this version; known are default, linear");
    refuses("llama", ",\"rope_scaling\":{\"type\":\"linear\"}", GUMBEL_ERROR_FORMAT,
            "rope_scaling.factor: is missing");
    refuses("llama", ",\"partial_rotary_factor\":0.5", GUMBEL_ERROR_UNSUPPORTED, "partial_rotary_factor");
    refuses("qwen3", ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e6}}",
            GUMBEL_ERROR_UNSUPPORTED, "rope_parameters.full_attention");
    refuses("mistral", ",\"rope_parameters\":{\"llama_4_scaling_beta\":0.1}", GUMBEL_ERROR_UNSUPPORTED,
            "llama_4_scaling_beta");
    refuses("llama", ",\"head_dim\":4,\"rope_parameters\":{\"frequency_divisors\":[1]}", GUMBEL_ERROR_FORMAT,
            "frequency_divisors: 1 numbers, expected the 2 pairs of a head");
}

static void reads_gemmas_windows(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("gemma3_text", "", &config);
    assert_int_equal(config.sliding_window, 4096);
    for (int i = 0; i < 26; i++)
        assert_int_equal(config.layers[i].is_sliding, i % 6 != 5);
    gb_dense_config_free(&config);
    accepts("gemma3_text", ",\"sliding_window\":512,\"sliding_window_pattern\":2", &config);
    assert_int_equal(config.sliding_window, 512);
    assert_true(config.layers[0].is_sliding && !config.layers[1].is_sliding && config.layers[2].is_sliding);
    gb_dense_config_free(&config);
    accepts("gemma3_text",
            ",\"num_hidden_layers\":2,\"sliding_window_pattern\":1,"
            "\"layer_types\":[\"full_attention\",\"sliding_attention\"]",
            &config);
    assert_true(!config.layers[0].is_sliding && config.layers[1].is_sliding);
    gb_dense_config_free(&config);
}

static void assert_near(double found, double expected) {
    assert_true(fabs(found - expected) < 1e-12 * fabs(expected));
}

/* Released files have keys of the model's own, newer ones an object for each kind of layers. */
static void reads_gemmas_rotary_embedding(void **state) {
    (void)state;
    static const char *const forms[] = {
        ",\"rope_theta\":5e5,\"rope_local_base_freq\":2e4,\"rope_scaling\":{\"type\":\"linear\",\"factor\":"
        "8}",
        ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8,\"rope_theta\":5e5},"
        "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":2e4}}",
        ",\"rope_theta\":5e5,\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8},"
        "\"sliding_attention\":{\"rope_theta\":2e4}}"};
    gb_dense_config config;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        accepts("gemma3_text", forms[i], &config);
        assert_near(config.rope.frequencies[64], 1 / sqrt(5e5) / 8);
        assert_near(config.sliding_rope.frequencies[64], 1 / sqrt(2e4));
        gb_dense_config_free(&config);
    }
    accepts("gemma3_text", ",\"rope_scaling\":null", &config);
    assert_near(config.rope.frequencies[64], 1e-3);
    assert_near(config.sliding_rope.frequencies[64], 1e-2);
    gb_dense_config_free(&config);
    refuses("gemma3_text", ",\"rope_parameters\":{\"rope_theta\":1e6}", GUMBEL_ERROR_UNSUPPORTED,
            "rope_parameters.rope_theta: stands beside the kinds of layers");
    refuses("gemma3_text", ",\"rope_parameters\":{},\"rope_scaling\":{\"rope_type\":\"default\"}",
            GUMBEL_ERROR_UNSUPPORTED, "rope_scaling: stands beside rope_parameters");
}

static void reads_gemmas_scales(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("gemma3_text", ",\"query_pre_attn_scalar\":168,\"final_logit_softcapping\":30", &config);
    assert_near(config.attention_scale, 1 / sqrt(168));
    assert_near(config.embedding_scale, 48);
    assert_true(config.logit_cap == 30);
    gb_dense_config_free(&config);
    accepts("gemma3_text", ",\"head_dim\":64,\"norm_weights_hold_one\":true", &config);
    assert_near(config.attention_scale, 1.0 / 16);
    assert_true(config.logit_cap == 0);
    assert_false(config.traits.has_norms_from_one);
    gb_dense_config_free(&config);
    accepts("llama", "", &config);
    assert_near(config.attention_scale, 1 / sqrt(128));
    assert_true(config.embedding_scale == 1);
    gb_dense_config_free(&config);
    refuses("gemma3_text", ",\"attn_logit_softcapping\":50", GUMBEL_ERROR_UNSUPPORTED,
            "attn_logit_softcapping: is not supported in this version; expected null");
    refuses("gemma3_text", ",\"use_bidirectional_attention\":true", GUMBEL_ERROR_UNSUPPORTED,
            "use_bidirectional_attention");
    refuses("gemma3_text", ",\"hidden_activation\":\"gelu\"", GUMBEL_ERROR_UNSUPPORTED,
            "hidden_activation: \"gelu\"");
}

static void reads_layers_without_rotary_embedding(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("smollm3", "", &config);
    assert_true(config.layers[2].has_rope && config.layers[4].has_rope && !config.layers[35].has_rope);
    assert_near(config.rope.frequencies[32], 1 / sqrt(2e6));
    gb_dense_config_free(&config);
    accepts("smollm3", ",\"no_rope_layer_interval\":3,\"no_rope_layers\":null", &config);
    assert_true(!config.layers[2].has_rope && config.layers[3].has_rope);
    gb_dense_config_free(&config);
    accepts("smollm3",
            ",\"num_hidden_layers\":3,\"no_rope_layers\":[0,1,1],\"no_rope_layer_interval\":2,"
            "\"use_sliding_window\":false,\"sliding_window\":64",
            &config);
    assert_true(!config.layers[0].has_rope && config.layers[1].has_rope && !config.layers[1].is_sliding);
    gb_dense_config_free(&config);
    accepts("llama", ",\"no_rope_layer_interval\":2", &config); /* as transformers and mlx-lm ignore it */
    assert_true(config.layers[1].has_rope);
    gb_dense_config_free(&config);
    refuses("smollm3", ",\"num_hidden_layers\":3,\"no_rope_layers\":[0,1]", GUMBEL_ERROR_FORMAT,
            "no_rope_layers: 2 layers, expected the 3 of num_hidden_layers");
    refuses("smollm3", ",\"num_hidden_layers\":2,\"no_rope_layers\":[0,2]", GUMBEL_ERROR_FORMAT,
            "no_rope_layers");
    refuses("smollm3", ",\"no_rope_layer_interval\":0", GUMBEL_ERROR_FORMAT,
            "no_rope_layer_interval: expected an integer");
    refuses("smollm3", ",\"use_sliding_window\":true", GUMBEL_ERROR_UNSUPPORTED,
            "use_sliding_window: is not supported where layers lack rotary embedding; expected false");
    refuses("smollm3", ",\"attention_bias\":true", GUMBEL_ERROR_UNSUPPORTED, "attention_bias");
}

static void reads_multipliers(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("granite", "", &config);
    assert_true(config.attention_scale == 1 && config.embedding_scale == 1);
    assert_true(config.residual_scale == 1 && config.logit_scale == 1);
    gb_dense_config_free(&config);
    accepts("granite",
            ",\"embedding_multiplier\":12,\"attention_multiplier\":0.015625,\"residual_multiplier\":0.22,"
            "\"logits_scaling\":8.0",
            &config);
    assert_true(config.attention_scale == 0.015625 && config.embedding_scale == 12);
    assert_true(config.residual_scale == 0.22 && config.logit_scale == 0.125);
    gb_dense_config_free(&config);
    accepts("llama", ",\"residual_multiplier\":0.5,\"attention_multiplier\":2", &config); /* ignored there */
    assert_near(config.attention_scale, 1 / sqrt(128));
    assert_true(config.residual_scale == 1 && config.logit_scale == 1);
    gb_dense_config_free(&config);
    refuses("granite", ",\"logits_scaling\":0", GUMBEL_ERROR_FORMAT, "logits_scaling: expected a number");
    refuses("granite", ",\"attention_bias\":true", GUMBEL_ERROR_UNSUPPORTED, "attention_bias");
    refuses("granite", ",\"mlp_bias\":true", GUMBEL_ERROR_UNSUPPORTED, "mlp_bias");
}

#define GRANITE4 ",\"num_hidden_layers\":2,\"num_local_experts\":0"
#define ATTENTION ",\"layer_types\":[\"attention\",\"attention\"]"
#define ROPE ",\"position_embedding_type\":\"rope\""

/* Granite 4 of attention alone; what else it may have: test_granite_hybrid.c. */
static void reads_a_hybrid_of_one_kind(void **state) {
    (void)state;
    static const char HYBRID[] = "granitemoehybrid";
    gb_dense_config config;
    accepts(HYBRID, GRANITE4 ATTENTION ROPE ",\"logits_scaling\":4,\"intermediate_size\":96", &config);
    assert_int_equal(config.intermediate_size, 1024);
    assert_true(config.layers[1].has_rope && !config.layers[1].is_sliding && config.logit_scale == 0.25);
    gb_dense_config_free(&config);
    accepts(HYBRID,
            GRANITE4 ATTENTION ",\"position_embedding_type\":\"nope\",\"shared_intermediate_size\":80",
            &config);
    assert_int_equal(config.intermediate_size, 80);
    assert_false(config.layers[0].has_rope || config.layers[1].has_rope);
    gb_dense_config_free(&config);
    refuses(HYBRID, GRANITE4 ATTENTION, GUMBEL_ERROR_UNSUPPORTED,
            "position_embedding_type: \"\", expected \"rope\" or \"nope\"");
}

#define LONGROPE                                                                                             \
    "\"short_factor\":[1,2],\"long_factor\":[4,16]},\"original_max_position_embeddings\":4096,"              \
    "\"max_position_embeddings\":131072,\"head_dim\":8,\"partial_rotary_factor\":0.5"

static void reads_longrope(void **state) {
    (void)state;
    static const char *const forms[] = {
        ",\"rope_theta\":1e4,\"rope_scaling\":{\"type\":\"longrope\"," LONGROPE,
        ",\"rope_theta\":1e4,\"rope_scaling\":{\"type\":\"su\"," LONGROPE,
        ",\"rope_parameters\":{\"rope_type\":\"longrope\",\"rope_theta\":1e4,\"partial_rotary_factor\":0.5,"
        "\"original_max_position_embeddings\":4096," LONGROPE};
    gb_dense_config config;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        accepts("phi3", forms[i], &config);
        assert_int_equal(config.rope.pairs, 2);
        assert_int_equal(config.rope.original_positions, 4096);
        assert_near(config.rope.frequencies[1], 0.01 / 2);
        assert_near(config.rope.long_frequencies[0], 0.25);
        assert_near(config.rope.long_frequencies[1], 0.01 / 16);
        assert_near(config.rope.attention_factor, sqrt(1 + log(32) / log(4096)));
        gb_dense_config_free(&config);
    }
    accepts("phi3", ",\"rope_scaling\":{\"type\":\"longrope\",\"attention_factor\":1.5," LONGROPE, &config);
    assert_near(config.rope.attention_factor, 1.5);
    gb_dense_config_free(&config);
    accepts("phi3", ",\"partial_rotary_factor\":0.75", &config);
    assert_int_equal(config.rope.pairs, 36);
    assert_null(config.rope.long_frequencies);
    gb_dense_config_free(&config);
    refuses("phi3", ",\"rope_scaling\":{\"type\":\"longrope\",\"long_factor\":[1]}", GUMBEL_ERROR_FORMAT,
            "rope_scaling.long_factor: 1 numbers, expected the 48 pairs of a head that turn");
    refuses("phi3", ",\"rope_scaling\":{\"type\":\"longrope\",\"original_max_position_embeddings\":64}",
            GUMBEL_ERROR_UNSUPPORTED, "original_max_position_embeddings: 64, expected the model's own 4096");
    refuses("phi3", ",\"rope_scaling\":{\"type\":\"yarn\"}", GUMBEL_ERROR_UNSUPPORTED,
            "rope_type: \"yarn\" is not supported in this version; known are default, longrope, su");
    refuses("phi3", ",\"partial_rotary_factor\":0.01", GUMBEL_ERROR_FORMAT,
            "partial_rotary_factor: 0 dims turn");
}

/* A window as wide as the model's positions hides nothing. */
static void reads_phis_windows(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("phi3", ",\"sliding_window\":262144", &config);
    assert_false(config.layers[0].is_sliding);
    gb_dense_config_free(&config);
    accepts("phi3", ",\"sliding_window\":2047", &config);
    assert_true(config.layers[0].is_sliding && config.sliding_window == 2047);
    gb_dense_config_free(&config);
}

static void reads_experts(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("qwen3_moe", "", &config);
    assert_int_equal(config.experts.count, 128);
    assert_int_equal(config.experts.choices, 8);
    assert_int_equal(config.experts.inner, 768);
    assert_int_equal(config.experts.shared_inner, 0);
    assert_true(config.experts.has_plain_weights && config.layers[0].has_experts);
    gb_dense_config_free(&config);
    accepts("qwen3_moe",
            ",\"num_hidden_layers\":4,\"decoder_sparse_step\":2,\"mlp_only_layers\":[3,9],"
            "\"norm_topk_prob\":true,\"num_local_experts\":16",
            &config);
    assert_int_equal(config.experts.count, 16);
    assert_false(config.experts.has_plain_weights);
    assert_false(config.layers[0].has_experts || config.layers[2].has_experts ||
                 config.layers[3].has_experts);
    assert_true(config.layers[1].has_experts);
    gb_dense_config_free(&config);
    refuses("qwen3_moe", ",\"num_experts\":4", GUMBEL_ERROR_FORMAT,
            "num_experts_per_tok: 8, expected at most the 4 of num_experts");
}

#define YARN                                                                                                 \
    ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":32.0,\"original_max_position_embeddings\":4096"

/* The pair at the begin of YaRN's ramp is rounded down or not. */
static void reads_gpt_oss(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("gpt_oss", YARN ",\"truncate\":false},\"attention_bias\":true,\"swiglu_limit\":7.0", &config);
    assert_int_equal(config.experts.count, 128);
    assert_int_equal(config.experts.choices, 4);
    assert_int_equal(config.experts.inner, 2880);
    assert_true(config.experts.has_biases && config.traits.has_sinks && config.traits.has_output_bias);
    assert_true(config.layers[0].is_sliding && !config.layers[1].is_sliding && config.layers[2].is_sliding);
    assert_int_equal(config.sliding_window, 128);
    const double slowed = config.rope.frequencies[9];
    gb_dense_config_free(&config);
    accepts("gpt_oss",
            YARN "},\"layer_types\":[\"full_attention\",\"sliding_attention\"],\"num_hidden_layers\":2",
            &config);
    assert_true(config.rope.frequencies[9] < slowed);
    assert_true(!config.layers[0].is_sliding && config.layers[1].is_sliding);
    gb_dense_config_free(&config);
    refuses("gpt_oss", "", GUMBEL_ERROR_UNSUPPORTED,
            "rope_scaling: is missing, where implementations differ");
    refuses("gpt_oss", YARN "},\"attention_bias\":false", GUMBEL_ERROR_UNSUPPORTED,
            "attention_bias: is not supported in this version; expected true");
    refuses("gpt_oss", YARN "},\"swiglu_limit\":8", GUMBEL_ERROR_UNSUPPORTED, "swiglu_limit: is not 7");
    refuses("gpt_oss", YARN "},\"num_local_experts\":2", GUMBEL_ERROR_FORMAT,
            "num_experts_per_tok: 4, expected at most the 2 of num_local_experts");
}

static void reads_muse_glimmer(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("muse_glimmer", ",\"text_config\":{\"num_hidden_layers\":8}", &config);
    assert_true(config.is_wrapped && config.traits.has_plain_head_norms && config.traits.has_plain_last_norm);
    assert_true(config.attention_scale == 3.87 / sqrt(128) && config.logit_scale == 0.19611613513818404);
    assert_true(config.logit_cap == 20 && config.rms_norm_eps == 1e-5 && config.output_norm_eps == 1e-8);
    for (int64_t i = 0; i < 8; i++)
        assert_true(config.layers[i].is_sliding == (i % 4 != 3) && config.layers[i].has_rope == (i % 4 != 3));
    gb_dense_config_free(&config);
    accepts("muse_glimmer", ",\"num_hidden_layers\":2,\"layer_rope_theta\":[0,500000.0]", &config);
    assert_true(!config.is_wrapped && config.layers[0].is_sliding && !config.layers[0].has_rope);
    gb_dense_config_free(&config);
    refuses("muse_glimmer_text", ",\"num_hidden_layers\":5", GUMBEL_ERROR_UNSUPPORTED,
            "layer_rope_theta: is missing, and implementations differ about layer 0");
    refuses("muse_glimmer_text", ",\"layer_rope_theta\":[1]", GUMBEL_ERROR_FORMAT,
            "layer_rope_theta: 1 layers, expected the 52 of num_hidden_layers");
    refuses("muse_glimmer_text", ",\"num_hidden_layers\":2,\"rope_theta\":900,\"layer_rope_theta\":[900,500]",
            GUMBEL_ERROR_UNSUPPORTED,
            "layer_rope_theta: layer 1 has 500, which implementations do not obey; expected 0 or the 900");
    refuses("muse_glimmer_text", ",\"hidden_activation\":\"gelu\"", GUMBEL_ERROR_UNSUPPORTED,
            "hidden_activation: \"gelu\" is not supported in this version; expected \"silu\"");
}

#define SCALED_QUERIES                                                                                       \
    ",\"rope_parameters\":{\"type\":\"yarn\",\"rope_theta\":1e6,\"factor\":16,\"mscale\":1,\"mscale_all_"    \
    "dim\":1,"                                                                                               \
    "\"original_max_position_embeddings\":16384,\"llama_4_scaling_beta\":0.1}"

static void reads_ministral3(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("ministral3", SCALED_QUERIES, &config);
    assert_int_equal(config.vocab_size, 131072);
    assert_int_equal(config.layer_count, 34);
    assert_int_equal(config.kv_heads, 8);
    assert_int_equal(config.head_dim, 128);
    assert_int_equal(config.max_positions, 262144);
    assert_true(config.rms_norm_eps == 1e-5 && !config.has_tied_head && config.sliding_window == 0);
    assert_true(config.rope.query_beta == 0.1 && config.rope.query_positions == 16384);
    assert_true(config.rope.attention_factor == 1 && fabs(slowing(&config, 1e6, 63) - 1.0 / 16) < 1e-12);
    gb_dense_config_free(&config);
    accepts("ministral3",
            ",\"head_dim\":null,\"num_attention_heads\":16,\"sliding_window\":64,\"rope_theta\":1e5,"
            "\"rope_parameters\":{\"llama_4_scaling_beta\":0}",
            &config);
    assert_int_equal(config.head_dim, 256);
    assert_int_equal(config.sliding_window, 64);
    assert_true(config.layers[33].is_sliding && config.rope.query_beta == 0 && config.rope.theta == 1e5);
    gb_dense_config_free(&config);
    refuses("ministral3", "", GUMBEL_ERROR_UNSUPPORTED,
            "rope_parameters: is missing, where implementations differ");
    refuses("ministral3", ",\"rope_parameters\":{\"llama_4_scaling_beta\":0.1}", GUMBEL_ERROR_FORMAT,
            "rope_parameters.original_max_position_embeddings: is missing");
}

static void reads_olmo(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("olmo3",
            ",\"rope_theta\":500000.0,\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8,"
            "\"original_max_position_embeddings\":8192}",
            &config);
    assert_int_equal(config.vocab_size, 50304);
    assert_int_equal(config.kv_heads, 32);
    assert_int_equal(config.head_dim, 128);
    assert_int_equal(config.sliding_window, 4096);
    assert_true(config.traits.has_wide_head_norms && config.traits.has_output_norms);
    assert_true(config.traits.has_plain_inputs && !config.has_tied_head && config.rms_norm_eps == 1e-5);
    assert_true(config.layers[2].is_sliding && !config.layers[3].is_sliding);
    assert_true(config.rope.attention_factor > 1 && config.sliding_rope.attention_factor == 1);
    assert_near(config.rope.frequencies[63], config.sliding_rope.frequencies[63] / 8);
    gb_dense_config_free(&config);
    accepts("olmo3", ",\"rope_theta\":10.0,\"rope_parameters\":{\"sliding_attention\":{\"rope_theta\":100}}",
            &config);
    assert_true(config.rope.theta == 10 && config.sliding_rope.theta == 100);
    gb_dense_config_free(&config);
    accepts("olmo2", ",\"rope_theta\":10.0", &config);
    assert_true(config.rope.theta == 10 && config.traits.has_wide_head_norms && !config.layers[0].is_sliding);
    gb_dense_config_free(&config);
    accepts("olmo3", ",\"num_hidden_layers\":1,\"sliding_window\":null,\"layer_types\":[\"full_attention\"]",
            &config);
    assert_false(config.layers[0].is_sliding);
    gb_dense_config_free(&config);
    refuses("olmo3", ",\"sliding_window\":null", GUMBEL_ERROR_UNSUPPORTED,
            "sliding_window: null, expected the window of layer 0, which slides");
    refuses("olmo3", ",\"rope_theta\":1e4", GUMBEL_ERROR_UNSUPPORTED,
            "rope_theta: 10000, where implementations differ about layers that slide; expected 500000");
    refuses("olmo3", ",\"rope_parameters\":{\"rope_theta\":1e4}", GUMBEL_ERROR_UNSUPPORTED,
            "rope_parameters.rope_theta: stands beside the kinds of layers");
}

static void reads_a_wrapper(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("mistral3",
            ",\"vision_config\":{\"model_type\":\"pixtral\"},\"text_config\":{\"model_type\":\"mistral\","
            "\"hidden_size\":64,\"tie_word_embeddings\":true}",
            &config);
    assert_true(config.is_wrapped && config.has_tied_head);
    assert_int_equal(config.hidden_size, 64);
    gb_dense_config_free(&config);
    accepts("gemma3", ",\"text_config\":{\"model_type\":\"gemma3_text\",\"tie_word_embeddings\":false}",
            &config);
    assert_true(config.is_wrapped && !config.has_tied_head);
    gb_dense_config_free(&config);
    accepts("mistral3", ",\"text_config\":{\"model_type\":\"ministral3\"" SCALED_QUERIES "}", &config);
    assert_true(config.is_wrapped && config.rope.query_beta == 0.1);
    gb_dense_config_free(&config);
    refuses("mistral3", "", GUMBEL_ERROR_FORMAT, "text_config: is missing");
    refuses("mistral3", ",\"text_config\":{\"model_type\":\"mistral4\"}", GUMBEL_ERROR_UNSUPPORTED,
            "text_config.model_type: \"mistral4\", expected \"mistral\"");
}

static void refuses_what_it_cannot_run(void **state) {
    (void)state;
    refuses("llama", ",\"attention_bias\":true", GUMBEL_ERROR_UNSUPPORTED, "attention_bias");
    refuses("qwen3", ",\"attention_bias\":true", GUMBEL_ERROR_UNSUPPORTED, "attention_bias");
    refuses("llama", ",\"mlp_bias\":true", GUMBEL_ERROR_UNSUPPORTED, "mlp_bias");
    refuses("qwen3", ",\"hidden_act\":\"gelu\"", GUMBEL_ERROR_UNSUPPORTED, "hidden_act: \"gelu\"");
    refuses("llama", ",\"num_key_value_heads\":3", GUMBEL_ERROR_FORMAT, "num_key_value_heads: 3");
    refuses("llama", ",\"head_dim\":15", GUMBEL_ERROR_FORMAT, "head_dim: 15, expected an even number");
    refuses("llama", ",\"num_hidden_layers\":0", GUMBEL_ERROR_FORMAT, "num_hidden_layers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_transformers_defaults),
        cmocka_unit_test(nulls_are_the_models_own),
        cmocka_unit_test(reads_windows),
        cmocka_unit_test(scales_rotary_embedding),
        cmocka_unit_test(refuses_other_rotary_embedding),
        cmocka_unit_test(reads_gemmas_windows),
        cmocka_unit_test(reads_gemmas_rotary_embedding),
        cmocka_unit_test(reads_gemmas_scales),
        cmocka_unit_test(reads_layers_without_rotary_embedding),
        cmocka_unit_test(reads_multipliers),
        cmocka_unit_test(reads_a_hybrid_of_one_kind),
        cmocka_unit_test(reads_longrope),
        cmocka_unit_test(reads_phis_windows),
        cmocka_unit_test(reads_experts),
        cmocka_unit_test(reads_gpt_oss),
        cmocka_unit_test(reads_muse_glimmer),
        cmocka_unit_test(reads_ministral3),
        cmocka_unit_test(reads_olmo),
        cmocka_unit_test(reads_a_wrapper),
        cmocka_unit_test(refuses_what_it_cannot_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
