/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma 4's configuration: every form, every default, and refusals by name.
 */
#include "export/models/gemma4_config.h"
#include "support/assertions.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Reads a configuration of these keys of the text model; the caller frees it. */
static gumbel_status read_text(const char *text, gb_gemma4_config *config, gumbel_error *error) {
    gb_config_file *file = NULL;
    const char *path = temporary_path("config.json");
    write_text(path, text);
    assert_ok(gb_config_open(path, &file, error), error);
    gb_config root = gb_config_root(file);
    gumbel_status status = gb_gemma4_config_read(&root, config, error);
    gb_config_close(file);
    return status;
}

/* Keys is a list of JSON members, each with a comma behind. */
static gumbel_status read_keys(const char *keys, gb_gemma4_config *config, gumbel_error *error) {
    char text[2048];
    snprintf(text, sizeof text, "{%s\"model_type\":\"gemma4_text\",\"hidden_size_per_layer_input\":0}", keys);
    return read_text(text, config, error);
}

static void accepts(const char *keys, gb_gemma4_config *config) {
    gumbel_error error;
    assert_ok(read_keys(keys, config, &error), &error);
}

static void refuses(const char *keys, gumbel_status status, const char *part) {
    gb_gemma4_config config;
    gumbel_error error;
    assert_fails(read_keys(keys, &config, &error), status, &error, part);
    gb_gemma4_config_free(&config);
}

static void has_transformers_defaults(void **state) {
    (void)state;
    gb_gemma4_config config;
    accepts("", &config);
    assert_int_equal(config.vocab_size, 262144);
    assert_int_equal(config.hidden_size, 2304);
    assert_int_equal(config.layers[0].intermediate_size, 9216);
    assert_int_equal(config.heads, 8);
    assert_int_equal(config.sliding_window, 512);
    assert_int_equal(config.max_positions, 131072);
    assert_true(config.rms_norm_eps == 1e-6);
    assert_true(config.logit_cap == 0);
    assert_false(config.keys_are_values);
    assert_true(config.has_tied_head);
    assert_false(config.is_wrapped);
    assert_int_equal(config.layer_count, 30);
    for (int i = 0; i < 30; i++) {
        bool is_full = i % 6 == 5;
        assert_int_equal(config.layers[i].kind, is_full ? GB_GEMMA4_FULL : GB_GEMMA4_SLIDING);
        assert_int_equal(config.layers[i].head_dim, is_full ? 512 : 256);
        assert_int_equal(config.layers[i].kv_heads, 4);
    }
    const gb_gemma4_rope *sliding = &config.rope[GB_GEMMA4_SLIDING], *full = &config.rope[GB_GEMMA4_FULL];
    assert_true(sliding->theta == 1e4 && sliding->proportion == 1 && sliding->factor == 1);
    assert_true(full->theta == 1e6 && full->proportion == 0.25 && full->factor == 1);
    gb_gemma4_config_free(&config);
}

static void forces_the_last_layer_full(void **state) {
    (void)state;
    gb_gemma4_config config;
    accepts("\"num_hidden_layers\":8,", &config);
    assert_int_equal(config.layers[6].kind, GB_GEMMA4_SLIDING);
    assert_int_equal(config.layers[7].kind, GB_GEMMA4_FULL);
    assert_int_equal(config.layers[7].head_dim, 512);
    gb_gemma4_config_free(&config);
    accepts("\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\",\"sliding_attention\"],", &config);
    assert_int_equal(config.layers[0].kind, GB_GEMMA4_FULL);
    assert_int_equal(config.layers[1].kind, GB_GEMMA4_FULL);
    gb_gemma4_config_free(&config);
}

static void reads_global_shape(void **state) {
    (void)state;
    gb_gemma4_config config;
    const char *keys = "\"num_hidden_layers\":6,\"global_head_dim\":64,\"num_global_key_value_heads\":2,";
    accepts(keys, &config); /* the heads count only where keys are values */
    assert_int_equal(config.layers[5].head_dim, 64);
    assert_int_equal(config.layers[5].kv_heads, 4);
    gb_gemma4_config_free(&config);
    accepts("\"num_hidden_layers\":6,\"global_head_dim\":64,\"num_global_key_value_heads\":2,"
            "\"attention_k_eq_v\":true,",
            &config);
    assert_int_equal(config.layers[5].kv_heads, 2);
    assert_int_equal(config.layers[4].kv_heads, 4);
    assert_int_equal(config.layers[4].head_dim, 256);
    gb_gemma4_config_free(&config);
}

static void reads_per_layer_config(void **state) {
    (void)state;
    gb_gemma4_config config;
    accepts("\"num_hidden_layers\":12,\"head_dim\":32,\"global_head_dim\":1000,\"sliding_window\":9,"
            "\"per_layer_config\":{\"05\":{\"head_dim\":64,\"num_key_value_heads\":1},"
            "\"11\":{\"head_dim\":64,\"sliding_window\":9}},",
            &config);
    assert_int_equal(config.layers[5].head_dim, 64);
    assert_int_equal(config.layers[5].kv_heads, 1);
    assert_int_equal(config.layers[11].kv_heads, 4);
    assert_int_equal(config.layers[0].head_dim, 32);
    gb_gemma4_config_free(&config);
    accepts("\"num_hidden_layers\":6,\"per_layer_config\":{},", &config);
    assert_int_equal(config.layers[5].head_dim, 256); /* no overrides: not even the global default */
    gb_gemma4_config_free(&config);
}

static void refuses_bad_per_layer_config(void **state) {
    (void)state;
    refuses("\"num_hidden_layers\":6,\"per_layer_config\":{\"6\":{}},", GUMBEL_ERROR_FORMAT,
            "per_layer_config.6: expected layer indices from 0 to 5");
    refuses("\"per_layer_config\":{\"-1\":{}},", GUMBEL_ERROR_FORMAT, "per_layer_config.-1");
    refuses("\"per_layer_config\":{\"\":{}},", GUMBEL_ERROR_FORMAT, "expected layer indices");
    refuses("\"per_layer_config\":{\"99999999999999999999\":{}},", GUMBEL_ERROR_FORMAT, "layer indices");
    refuses("\"per_layer_config\":{\"5\":3},", GUMBEL_ERROR_FORMAT, "per_layer_config.5: expected an object");
    refuses("\"per_layer_config\":{\"5\":{\"head_dim\":\"64\"}},", GUMBEL_ERROR_FORMAT,
            "per_layer_config.5.head_dim");
    refuses("\"per_layer_config\":{\"5\":{\"head_dim\":64}},", GUMBEL_ERROR_FORMAT, "in all full_attention");
    refuses("\"per_layer_config\":{\"5\":{\"intermediate_size\":64}},", GUMBEL_ERROR_UNSUPPORTED,
            "per_layer_config.5.intermediate_size");
    refuses("\"per_layer_config\":{\"5\":{\"skip\":[\"mlp\"]}},", GUMBEL_ERROR_UNSUPPORTED, "skip");
}

static void reads_the_wrapper(void **state) {
    (void)state;
    gb_gemma4_config config;
    gumbel_error error;
    assert_ok(read_text("{\"model_type\":\"gemma4\",\"tie_word_embeddings\":false,\"vision_config\":{},"
                        "\"text_config\":{\"hidden_size\":64,\"hidden_size_per_layer_input\":0,"
                        "\"tie_word_embeddings\":true,\"final_logit_softcapping\":30.0}}",
                        &config, &error),
              &error);
    assert_true(config.is_wrapped);
    assert_int_equal(config.hidden_size, 64);
    assert_false(config.has_tied_head); /* the outer model owns the head */
    assert_true(config.logit_cap == 30);
    gb_gemma4_config_free(&config);
    assert_fails(read_text("{\"model_type\":\"gemma4\"}", &config, &error), GUMBEL_ERROR_FORMAT, &error,
                 "text_config: is missing");
    gb_gemma4_config_free(&config);
    assert_fails(read_text("{\"model_type\":\"gemma4\",\"text_config\":{\"model_type\":\"gemma3_text\"}}",
                           &config, &error),
                 GUMBEL_ERROR_UNSUPPORTED, &error, "text_config.model_type: \"gemma3_text\"");
    gb_gemma4_config_free(&config);
}

static void reads_rope_parameters(void **state) {
    (void)state;
    gb_gemma4_config config;
    accepts("\"rope_parameters\":{\"sliding_attention\":{\"rope_theta\":5},\"full_attention\":"
            "{\"rope_type\":\"proportional\",\"rope_theta\":7,\"factor\":2,\"partial_rotary_factor\":0.5}},",
            &config);
    assert_true(config.rope[GB_GEMMA4_SLIDING].theta == 5);
    assert_true(config.rope[GB_GEMMA4_SLIDING].proportion == 1);
    const gb_gemma4_rope *full = &config.rope[GB_GEMMA4_FULL];
    assert_true(full->theta == 7 && full->factor == 2 && full->proportion == 0.5);
    gb_gemma4_config_free(&config);
    refuses("\"rope_parameters\":{\"full_attention\":{\"rope_theta\":7}},", GUMBEL_ERROR_FORMAT,
            "rope_parameters.sliding_attention");
    refuses("\"rope_parameters\":{\"full_attention\":{},\"sliding_attention\":{}},", GUMBEL_ERROR_FORMAT,
            "rope_theta: is missing");
    refuses("\"rope_parameters\":{\"full_attention\":{\"rope_theta\":7},\"sliding_attention\":"
            "{\"rope_theta\":7,\"rope_type\":\"yarn\"}},",
            GUMBEL_ERROR_UNSUPPORTED, "sliding_attention.rope_type: \"yarn\"");
}

static void refuses_by_name(void **state) {
    (void)state;
    const gumbel_status unsupported = GUMBEL_ERROR_UNSUPPORTED, format = GUMBEL_ERROR_FORMAT;
    refuses("\"num_kv_shared_layers\":30,", format, "num_kv_shared_layers: 30, but before these layers");
    refuses("\"enable_moe_block\":true,", format, "num_experts: is missing beside enable_moe_block");
    refuses("\"enable_moe_block\":true,\"num_experts\":4,\"top_k_experts\":5,\"moe_intermediate_size\":8,",
            format, "top_k_experts: 5, expected at most the 4 of num_experts");
    refuses("\"attention_bias\":true,", unsupported, "attention_bias");
    refuses("\"hidden_activation\":\"silu\",", unsupported, "hidden_activation: \"silu\"");
    refuses("\"use_bidirectional_attention\":\"all\",", unsupported, "use_bidirectional_attention");
    refuses("\"num_hidden_layers\":2,\"layer_types\":[\"chunked_attention\",\"full_attention\"],",
            unsupported, "layer_types: layer 0 is \"chunked_attention\"");
    refuses("\"layer_types\":[\"full_attention\"],", format, "layer_types: 1 layers, expected the 30");
    refuses("\"layer_types\":\"full_attention\",", format, "layer_types");
    refuses("\"hidden_size\":\"abc\",", format, "hidden_size: expected an integer from 1");
    refuses("\"hidden_size\":0,", format, "hidden_size");
    refuses("\"num_hidden_layers\":1000000000,", format, "num_hidden_layers");
    refuses("\"num_key_value_heads\":3,", format, "num_key_value_heads: layer 0 has 3, expected a divisor");
    refuses("\"head_dim\":31,", format, "head_dim: layer 0 has 31");
    refuses("\"vocab_size\":8388608,", format, "vocab_size");
}

static void reads_experts(void **state) {
    (void)state;
    gb_gemma4_config config;
    accepts(
        "\"enable_moe_block\":true,\"num_experts\":128,\"top_k_experts\":8,\"moe_intermediate_size\":704,",
        &config);
    assert_true(config.has_experts && !config.experts.has_plain_weights);
    assert_int_equal(config.experts.count, 128);
    assert_int_equal(config.experts.choices, 8);
    assert_int_equal(config.experts.inner, 704);
    assert_int_equal(config.experts.activation, GB_OP_GELU_TANH);
    gb_gemma4_config_free(&config);
    accepts("\"num_experts\":null,\"top_k_experts\":null,\"moe_intermediate_size\":null,", &config);
    assert_false(config.has_experts);
    gb_gemma4_config_free(&config);
}

static void shares_keys_of_the_last_layers(void **state) {
    (void)state;
    gb_gemma4_config config;
    accepts("\"num_kv_shared_layers\":18,\"use_double_wide_mlp\":true,\"intermediate_size\":100,", &config);
    assert_false(config.layers[11].shares_keys);
    assert_true(config.layers[12].shares_keys);
    assert_int_equal(config.layers[11].intermediate_size, 100);
    assert_int_equal(config.layers[12].intermediate_size, 200);
    gb_gemma4_config_free(&config);
}

static void reads_inputs_of_layers(void **state) {
    (void)state;
    gb_gemma4_config config;
    gumbel_error error;
    assert_ok(read_text("{\"model_type\":\"gemma4_text\"}", &config, &error), &error);
    assert_int_equal(config.input_size, 256);
    assert_int_equal(config.input_rows, 262144);
    assert_int_equal(config.input_layers, 30);
    gb_gemma4_config_free(&config);
    assert_ok(
        read_text("{\"model_type\":\"gemma4_text\",\"hidden_size_per_layer_input\":null}", &config, &error),
        &error);
    assert_int_equal(config.input_size, 0);
    gb_gemma4_config_free(&config);
    assert_fails(
        read_text("{\"model_type\":\"gemma4_text\",\"vocab_size_per_layer_input\":9}", &config, &error),
        GUMBEL_ERROR_UNSUPPORTED, &error,
        "vocab_size_per_layer_input: 9, expected at least the 262144 of vocab_size");
    gb_gemma4_config_free(&config);
}

static void reads_the_unified_model(void **state) {
    (void)state;
    gb_gemma4_config config;
    gumbel_error error;
    assert_ok(read_text("{\"model_type\":\"gemma4_unified\",\"text_config\":{\"model_type\":"
                        "\"gemma4_unified_text\"},\"vision_config\":{},\"audio_config\":{}}",
                        &config, &error),
              &error);
    assert_true(config.is_wrapped && config.is_unified);
    assert_int_equal(config.sliding_window, 1024);
    assert_int_equal(config.max_positions, 262144);
    assert_int_equal(config.input_size, 0);
    gb_gemma4_config_free(&config);
    assert_fails(
        read_text("{\"model_type\":\"gemma4_unified\",\"text_config\":{\"model_type\":\"gemma4_text\"}}",
                  &config, &error),
        GUMBEL_ERROR_UNSUPPORTED, &error,
        "text_config.model_type: \"gemma4_text\", expected \"gemma4_unified_text\"");
    gb_gemma4_config_free(&config);
}

/* Keys are members of the text model's object, each with a comma behind. */
static gumbel_status read_assistant(const char *keys, gb_gemma4_config *config, gumbel_error *error) {
    char text[1024];
    snprintf(text, sizeof text,
             "{\"model_type\":\"gemma4_assistant\",\"backbone_hidden_size\":2560,\"text_config\":{%s"
             "\"num_hidden_layers\":4,\"vocab_size_per_layer_input\":0}}",
             keys);
    return read_text(text, config, error);
}

static void reads_an_assistant(void **state) {
    (void)state;
    static const char *const forms[] = {"\"hidden_size_per_layer_input\":0,",
                                        "\"hidden_size_per_layer_input\":0,\"num_kv_shared_layers\":4,"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        gb_gemma4_config config;
        gumbel_error error;
        assert_ok(read_assistant(forms[i], &config, &error), &error);
        assert_true(config.is_assistant && config.is_wrapped && !config.is_unified && config.has_tied_head);
        assert_int_equal(config.backbone_hidden_size, 2560);
        for (int k = 0; k < 4; k++)
            assert_true(config.layers[k].shares_keys);
        gb_gemma4_config_free(&config);
    }
}

static void refuses_what_no_assistant_has(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"\"enable_moe_block\":true,\"num_experts\":4,\"top_k_experts\":2,\"moe_intermediate_size\":8,"
         "\"hidden_size_per_layer_input\":0,",
         "text_config.enable_moe_block: true is not supported of an assistant"},
        {"", "text_config.hidden_size_per_layer_input: 256 is not supported of an assistant"},
        {"\"use_double_wide_mlp\":true,\"hidden_size_per_layer_input\":0,",
         "text_config.use_double_wide_mlp: true is not supported of an assistant"},
        {"\"num_kv_shared_layers\":3,\"hidden_size_per_layer_input\":0,",
         "text_config.num_kv_shared_layers: 3, expected all the 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb_gemma4_config config;
        gumbel_error error;
        assert_fails(read_assistant(cases[i][0], &config, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                     cases[i][1]);
        gb_gemma4_config_free(&config);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_transformers_defaults),
        cmocka_unit_test(forces_the_last_layer_full),
        cmocka_unit_test(reads_global_shape),
        cmocka_unit_test(reads_per_layer_config),
        cmocka_unit_test(refuses_bad_per_layer_config),
        cmocka_unit_test(reads_the_wrapper),
        cmocka_unit_test(reads_rope_parameters),
        cmocka_unit_test(reads_experts),
        cmocka_unit_test(shares_keys_of_the_last_layers),
        cmocka_unit_test(reads_inputs_of_layers),
        cmocka_unit_test(reads_the_unified_model),
        cmocka_unit_test(reads_an_assistant),
        cmocka_unit_test(refuses_what_no_assistant_has),
        cmocka_unit_test(refuses_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
