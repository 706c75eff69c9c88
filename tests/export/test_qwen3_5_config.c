/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of Qwen3.5 and Qwen3-Next: every form, every default, and refusals by name.
 */
#include "export/models/qwen3_5_config.h"
#include "support/assertions.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static gumbel_status read_text(const char *text, gb_qwen3_5_config *config, gumbel_error *error) {
    gb_config_file *file = NULL;
    const char *path = temporary_path("config.json");
    write_text(path, text);
    assert_ok(gb_config_open(path, &file, error), error);
    gb_config root = gb_config_root(file);
    gumbel_status status = gb_qwen3_5_config_read(&root, config, error);
    gb_config_close(file);
    return status;
}

/* Keys of the text model, each with a comma before it. */
static gumbel_status read_keys(const char *type, const char *keys, gb_qwen3_5_config *config,
                               gumbel_error *error) {
    char text[2048];
    snprintf(text, sizeof text, "{\"model_type\":\"%s\"%s}", type, keys);
    return read_text(text, config, error);
}

static void accepts(const char *type, const char *keys, gb_qwen3_5_config *config) {
    gumbel_error error;
    assert_ok(read_keys(type, keys, config, &error), &error);
}

static void refuses(const char *type, const char *keys, gumbel_status status, const char *part) {
    gb_qwen3_5_config config;
    gumbel_error error;
    assert_fails(read_keys(type, keys, &config, &error), status, &error, part);
    gb_qwen3_5_config_free(&config);
}

#define MOE "qwen3_5_moe_text"
#define DENSE "qwen3_5_text"
#define NEXT "qwen3_next"

static void has_transformers_defaults(void **state) {
    (void)state;
    gb_qwen3_5_config config;
    accepts(MOE, "", &config);
    assert_true(config.has_experts && !config.is_wrapped && !config.has_tied_head);
    assert_int_equal(config.vocab_size, 248320);
    assert_int_equal(config.hidden_size, 2048);
    assert_int_equal(config.max_positions, 32768);
    assert_true(config.rms_norm_eps == 1e-6 && config.delta_net.epsilon == 1e-6);
    assert_int_equal(config.heads, 16);
    assert_int_equal(config.kv_heads, 2);
    assert_int_equal(config.head_dim, 256);
    assert_int_equal(config.rotary_dim, 64);
    assert_true(config.rope_theta == 1e4);
    assert_int_equal(config.delta_net.key_heads, 16);
    assert_int_equal(config.delta_net.value_heads, 32);
    assert_int_equal(config.delta_net.key_dim, 128);
    assert_int_equal(config.delta_net.value_dim, 128);
    assert_int_equal(config.delta_net.conv_width, 4);
    assert_int_equal(config.experts.count, 256);
    assert_int_equal(config.experts.choices, 8);
    assert_int_equal(config.experts.inner, 512);
    assert_int_equal(config.experts.shared_inner, 512);
    assert_int_equal(config.layer_count, 40);
    for (int i = 0; i < 40; i++)
        assert_int_equal(config.layers[i].kind, i % 4 == 3 ? GB_QWEN3_5_FULL : GB_QWEN3_5_LINEAR);
    gb_qwen3_5_config_free(&config);
}

static void has_the_dense_models_defaults(void **state) {
    (void)state;
    gb_qwen3_5_config config;
    accepts(DENSE, "", &config);
    assert_false(config.has_experts);
    assert_int_equal(config.hidden_size, 4096);
    assert_int_equal(config.intermediate_size, 12288);
    assert_int_equal(config.layer_count, 32);
    assert_int_equal(config.kv_heads, 4);
    gb_qwen3_5_config_free(&config);
}

static void has_the_next_models_defaults(void **state) {
    (void)state;
    gb_qwen3_5_config config;
    accepts(NEXT, "", &config);
    assert_true(config.has_experts && !config.is_wrapped && !config.has_tied_head);
    assert_true(config.delta_net.is_interleaved && !config.delta_net.is_tiled && !config.norms_hold_one);
    assert_int_equal(config.vocab_size, 151936);
    assert_int_equal(config.hidden_size, 2048);
    assert_int_equal(config.intermediate_size, 5632);
    assert_int_equal(config.layer_count, 48);
    assert_int_equal(config.kv_heads, 2);
    assert_int_equal(config.rotary_dim, 64);
    assert_int_equal(config.experts.count, 512);
    assert_int_equal(config.experts.choices, 10);
    assert_false(config.experts.has_plain_weights);
    for (int i = 0; i < 48; i++) {
        assert_int_equal(config.layers[i].kind, i % 4 == 3 ? GB_QWEN3_5_FULL : GB_QWEN3_5_LINEAR);
        assert_true(config.layers[i].has_experts);
    }
    gb_qwen3_5_config_free(&config);
}

/* As released: Qwen3-Coder-Next. */
static void reads_the_next_models_keys(void **state) {
    (void)state;
    gb_qwen3_5_config config;
    accepts(
        NEXT,
        ",\"architectures\":[\"Qwen3NextForCausalLM\"],\"attention_bias\":false,\"decoder_sparse_step\":1,"
        "\"full_attention_interval\":4,\"hidden_act\":\"silu\",\"intermediate_size\":5120,"
        "\"max_position_embeddings\":262144,\"mlp_only_layers\":[],\"norm_topk_prob\":true,"
        "\"partial_rotary_factor\":0.25,\"rope_scaling\":null,\"rope_theta\":5000000,"
        "\"torch_dtype\":\"bfloat16\",\"use_sliding_window\":false,\"tie_word_embeddings\":false",
        &config);
    assert_true(config.rope_theta == 5e6);
    assert_int_equal(config.rotary_dim, 64);
    assert_int_equal(config.max_positions, 262144);
    gb_qwen3_5_config_free(&config);
    accepts(NEXT,
            ",\"num_hidden_layers\":6,\"mlp_only_layers\":[3,9],\"decoder_sparse_step\":2,"
            "\"norm_topk_prob\":false",
            &config);
    for (int i = 0; i < 6; i++)
        assert_int_equal(config.layers[i].has_experts, i == 1 || i == 5);
    assert_true(config.experts.has_plain_weights);
    gb_qwen3_5_config_free(&config);
}

static void refuses_of_the_next_model(void **state) {
    (void)state;
    refuses(NEXT, ",\"attention_bias\":true", GUMBEL_ERROR_UNSUPPORTED, "attention_bias");
    refuses(NEXT, ",\"hidden_act\":\"gelu\"", GUMBEL_ERROR_UNSUPPORTED, "hidden_act: \"gelu\"");
    refuses(NEXT, ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4}", GUMBEL_ERROR_UNSUPPORTED,
            "rope_scaling.rope_type: \"yarn\"");
    refuses(NEXT, ",\"decoder_sparse_step\":0", GUMBEL_ERROR_FORMAT, "decoder_sparse_step");
    refuses(NEXT, ",\"mlp_only_layers\":[-1]", GUMBEL_ERROR_FORMAT, "mlp_only_layers");
    refuses(NEXT, ",\"num_experts\":0", GUMBEL_ERROR_FORMAT, "num_experts");
    refuses(NEXT, ",\"linear_num_value_heads\":24", GUMBEL_ERROR_FORMAT, "linear_num_value_heads: 24");
    refuses(NEXT, ",\"layer_types\":[\"full_attention\"]", GUMBEL_ERROR_FORMAT, "layer_types: 1 layers");
}

static void reads_layers_in_both_forms(void **state) {
    (void)state;
    gb_qwen3_5_config config;
    accepts(MOE, ",\"num_hidden_layers\":5,\"full_attention_interval\":2", &config);
    for (int i = 0; i < 5; i++)
        assert_int_equal(config.layers[i].kind, i % 2 ? GB_QWEN3_5_FULL : GB_QWEN3_5_LINEAR);
    gb_qwen3_5_config_free(&config);
    accepts(MOE,
            ",\"num_hidden_layers\":3,\"full_attention_interval\":3,"
            "\"layer_types\":[\"full_attention\",\"linear_attention\",\"linear_attention\"]",
            &config); /* the list goes first */
    assert_int_equal(config.layers[0].kind, GB_QWEN3_5_FULL);
    assert_int_equal(config.layers[2].kind, GB_QWEN3_5_LINEAR);
    gb_qwen3_5_config_free(&config);
    refuses(MOE, ",\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\"]", GUMBEL_ERROR_FORMAT,
            "layer_types: 1 layers, expected the 2 of num_hidden_layers");
    refuses(MOE, ",\"num_hidden_layers\":1,\"layer_types\":[\"sliding_attention\"]", GUMBEL_ERROR_UNSUPPORTED,
            "layer_types: layer 0 is \"sliding_attention\"");
}

static void reads_rope_in_every_form(void **state) {
    (void)state;
    gb_qwen3_5_config config;
    accepts(MOE,
            ",\"head_dim\":64,\"rope_theta\":5,\"partial_rotary_factor\":0.75,\"rope_parameters\":"
            "{\"rope_type\":\"default\",\"rope_theta\":1e7,\"partial_rotary_factor\":0.5,"
            "\"mrope_section\":[11,11,10],\"mrope_interleaved\":true}",
            &config);
    assert_true(config.rope_theta == 1e7);
    assert_int_equal(config.rotary_dim, 32);
    gb_qwen3_5_config_free(&config);
    accepts(MOE, ",\"head_dim\":64,\"rope_theta\":5e5,\"partial_rotary_factor\":1.0", &config);
    assert_true(config.rope_theta == 5e5);
    assert_int_equal(config.rotary_dim, 64);
    gb_qwen3_5_config_free(&config);
    accepts(MOE, ",\"rope_theta\":5e5,\"rope_parameters\":{\"partial_rotary_factor\":0.5}", &config);
    assert_true(config.rope_theta == 5e5);
    assert_int_equal(config.rotary_dim, 128);
    gb_qwen3_5_config_free(&config);
    accepts(MOE, ",\"rope_scaling\":{\"type\":\"default\",\"rope_theta\":3e5}", &config);
    assert_true(config.rope_theta == 3e5);
    gb_qwen3_5_config_free(&config);
    refuses(MOE, ",\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4}", GUMBEL_ERROR_UNSUPPORTED,
            "rope_parameters.rope_type: \"yarn\"");
    refuses(MOE, ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e7}}", GUMBEL_ERROR_UNSUPPORTED,
            "rope_parameters.full_attention");
    refuses(MOE, ",\"head_dim\":12", GUMBEL_ERROR_UNSUPPORTED, "3 of a head's 12 dimensions turn");
}

static void reads_a_wrapper(void **state) {
    (void)state;
    gb_qwen3_5_config config;
    gumbel_error error;
    assert_ok(read_text("{\"model_type\":\"qwen3_5_moe\",\"hidden_size\":7,\"text_config\":{\"model_type\":"
                        "\"qwen3_5_moe_text\",\"hidden_size\":64},\"vision_config\":{\"depth\":27}}",
                        &config, &error),
              &error);
    assert_true(config.is_wrapped && config.has_experts && !config.has_tied_head);
    assert_int_equal(config.hidden_size, 64);
    gb_qwen3_5_config_free(&config);
    assert_ok(read_text("{\"model_type\":\"qwen3_5\",\"text_config\":{\"tie_word_embeddings\":true}}",
                        &config, &error),
              &error);
    assert_true(config.has_tied_head && !config.has_experts);
    gb_qwen3_5_config_free(&config);
    assert_ok(read_text("{\"model_type\":\"qwen3_5\",\"tie_word_embeddings\":false,\"text_config\":"
                        "{\"tie_word_embeddings\":true}}",
                        &config, &error),
              &error);
    assert_false(config.has_tied_head); /* the wrapper's own word counts */
    gb_qwen3_5_config_free(&config);
    assert_fails(read_text("{\"model_type\":\"qwen3_5_moe\"}", &config, &error), GUMBEL_ERROR_FORMAT, &error,
                 "text_config: is missing");
    gb_qwen3_5_config_free(&config);
    assert_fails(
        read_text("{\"model_type\":\"qwen3_5_moe\",\"text_config\":{\"model_type\":\"qwen3_5_text\"}}",
                  &config, &error),
        GUMBEL_ERROR_UNSUPPORTED, &error, "text_config.model_type: \"qwen3_5_text\"");
    gb_qwen3_5_config_free(&config);
}

static void refuses_what_it_cannot_run(void **state) {
    (void)state;
    refuses(MOE, ",\"attention_bias\":true", GUMBEL_ERROR_UNSUPPORTED, "attention_bias");
    refuses(MOE, ",\"hidden_act\":\"gelu\"", GUMBEL_ERROR_UNSUPPORTED, "hidden_act: \"gelu\"");
    refuses(MOE, ",\"attn_output_gate\":false", GUMBEL_ERROR_UNSUPPORTED, "attn_output_gate");
    refuses(MOE, ",\"mlp_only_layers\":[0]", GUMBEL_ERROR_UNSUPPORTED, "mlp_only_layers");
    refuses(MOE, ",\"decoder_sparse_step\":2", GUMBEL_ERROR_UNSUPPORTED, "decoder_sparse_step");
    refuses(MOE, ",\"norm_topk_prob\":false", GUMBEL_ERROR_UNSUPPORTED, "norm_topk_prob");
    refuses(DENSE, ",\"num_experts\":8", GUMBEL_ERROR_UNSUPPORTED, "num_experts");
}

static void accepts_what_changes_nothing(void **state) {
    (void)state;
    gb_qwen3_5_config config;
    accepts(MOE,
            ",\"attention_bias\":false,\"hidden_act\":\"silu\",\"attn_output_gate\":true,"
            "\"mlp_only_layers\":[],\"norm_topk_prob\":true,\"decoder_sparse_step\":1,\"mtp_num_hidden_"
            "layers\":1,"
            "\"mamba_ssm_dtype\":\"float32\",\"router_aux_loss_coef\":0.001",
            &config);
    gb_qwen3_5_config_free(&config);
}

/* Qwen3.6 and Qwen3.8 are released as Qwen3.5 is: in a wrapper, with parts for images and for further tokens,
 * and with keys that are null. */
static void accepts_later_releases(void **state) {
    (void)state;
    gb_qwen3_5_config config;
    gumbel_error error;
    assert_ok(
        read_text(
            "{\"architectures\":[\"Qwen3_5MoeForConditionalGeneration\"],\"model_type\":\"qwen3_5_moe\","
            "\"image_token_id\":248056,\"video_token_id\":248057,\"tie_word_embeddings\":false,"
            "\"vision_config\":{\"model_type\":\"qwen3_5_moe\",\"depth\":27},\"text_config\":{"
            "\"model_type\":\"qwen3_5_moe_text\",\"dtype\":\"bfloat16\",\"bos_token_id\":null,"
            "\"pad_token_id\":null,\"attention_dropout\":0.0,\"use_cache\":true,\"mlp_only_layers\":[],"
            "\"mtp_num_hidden_layers\":1,\"mtp_use_dedicated_embeddings\":false,"
            "\"output_router_logits\":false,\"rope_scaling\":null,\"partial_rotary_factor\":0.25,"
            "\"rope_parameters\":{\"mrope_interleaved\":true,\"mrope_section\":[11,11,10],"
            "\"rope_type\":\"default\",\"rope_theta\":10000000,\"partial_rotary_factor\":0.25}}}",
            &config, &error),
        &error);
    assert_true(config.is_wrapped && config.has_experts && !config.has_tied_head);
    assert_true(config.rope_theta == 1e7);
    assert_int_equal(config.rotary_dim, 64);
    gb_qwen3_5_config_free(&config);
    assert_ok(read_text("{\"model_type\":\"qwen3_5\",\"text_config\":{\"model_type\":\"qwen3_5_text\","
                        "\"hidden_size\":5120,\"intermediate_size\":17408,\"num_hidden_layers\":64,"
                        "\"num_attention_heads\":24,\"num_key_value_heads\":4,\"linear_num_value_heads\":48,"
                        "\"mtp_num_hidden_layers\":1,\"attn_output_gate\":true}}",
                        &config, &error),
              &error);
    assert_false(config.has_experts);
    assert_int_equal(config.delta_net.value_heads, 48);
    assert_int_equal(config.layers[63].kind, GB_QWEN3_5_FULL);
    gb_qwen3_5_config_free(&config);
}

static void refuses_sizes_that_do_not_fit(void **state) {
    (void)state;
    refuses(MOE, ",\"num_key_value_heads\":3", GUMBEL_ERROR_FORMAT, "num_key_value_heads: 3");
    refuses(MOE, ",\"linear_num_value_heads\":24", GUMBEL_ERROR_FORMAT, "linear_num_value_heads: 24");
    refuses(MOE, ",\"linear_conv_kernel_dim\":1", GUMBEL_ERROR_FORMAT, "linear_conv_kernel_dim");
    refuses(MOE, ",\"linear_conv_kernel_dim\":65", GUMBEL_ERROR_FORMAT, "linear_conv_kernel_dim");
    refuses(MOE, ",\"num_experts\":4", GUMBEL_ERROR_FORMAT, "num_experts_per_tok: 8, expected at most the 4");
    refuses(MOE, ",\"num_experts\":5000", GUMBEL_ERROR_FORMAT, "num_experts");
    refuses(MOE, ",\"num_hidden_layers\":0", GUMBEL_ERROR_FORMAT, "num_hidden_layers");
    refuses(MOE, ",\"full_attention_interval\":0", GUMBEL_ERROR_FORMAT, "full_attention_interval");
    refuses(DENSE, ",\"intermediate_size\":\"wide\"", GUMBEL_ERROR_FORMAT, "intermediate_size");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_transformers_defaults),    cmocka_unit_test(has_the_dense_models_defaults),
        cmocka_unit_test(has_the_next_models_defaults), cmocka_unit_test(reads_the_next_models_keys),
        cmocka_unit_test(refuses_of_the_next_model),    cmocka_unit_test(reads_layers_in_both_forms),
        cmocka_unit_test(reads_rope_in_every_form),     cmocka_unit_test(reads_a_wrapper),
        cmocka_unit_test(refuses_what_it_cannot_run),   cmocka_unit_test(accepts_what_changes_nothing),
        cmocka_unit_test(accepts_later_releases),       cmocka_unit_test(refuses_sizes_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
