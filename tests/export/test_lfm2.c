/* SPDX-License-Identifier: Apache-2.0
 *
 * LFM2, dense and with experts: every form of the configuration, refusals by name, and the graph that it
 * becomes.
 */
#include "export/model_graph.h"
#include "export/models/lfm2_config.h"
#include "support/temporary.h"

#include <stdio.h>

#define DENSE "\"model_type\":\"lfm2\""
#define MOE "\"model_type\":\"lfm2_moe\""

static gumbel_status read_text(const char *keys, gb_lfm2_config *config, gumbel_error *error) {
    char text[2048];
    gb_config_file *file = NULL;
    const char *path = temporary_path("config.json");
    snprintf(text, sizeof text, "{%s}", keys);
    write_text(path, text);
    assert_ok(gb_config_open(path, &file, error), error);
    const gb_config root = gb_config_root(file);
    const gumbel_status status = gb_lfm2_config_read(&root, config, error);
    gb_config_close(file);
    return status;
}

static void accepts(const char *keys, gb_lfm2_config *config) {
    gumbel_error error;
    assert_ok(read_text(keys, config, &error), &error);
}

static void refuses(const char *keys, gumbel_status status, const char *part) {
    gb_lfm2_config config;
    gumbel_error error;
    assert_fails(read_text(keys, &config, &error), status, &error, part);
    gb_lfm2_config_free(&config);
}

static void has_transformers_defaults(void **state) {
    (void)state;
    gb_lfm2_config config;
    accepts(DENSE, &config);
    assert_int_equal(config.vocab_size, 65536);
    assert_int_equal(config.hidden_size, 2560);
    assert_int_equal(config.intermediate_size, 8192); /* two thirds of 12288 */
    assert_int_equal(config.max_positions, 128000);
    assert_int_equal(config.heads, 32);
    assert_int_equal(config.kv_heads, 8);
    assert_int_equal(config.head_dim, 80);
    assert_int_equal(config.conv_width, 3);
    assert_true(config.has_tied_head && config.norm_eps == 1e-5 && config.rope.theta == 1e6);
    assert_int_equal(config.layer_count, 32);
    assert_int_equal(config.dense_layers, 32);
    assert_true(config.attends[0] && config.attends[31]); /* without a list all do */
    gb_lfm2_config_free(&config);
    accepts(MOE, &config);
    assert_int_equal(config.hidden_size, 2048);
    assert_int_equal(config.intermediate_size, 7168);
    assert_int_equal(config.dense_layers, 2);
    assert_int_equal(config.router.count, 32);
    assert_int_equal(config.router.choices, 4);
    assert_int_equal(config.experts.inner, 1792);
    assert_true(config.router.is_normalized && config.router.scale == 1 && config.router.epsilon == 1e-6);
    gb_lfm2_config_free(&config);
}

static void layers_are_listed_or_numbered(void **state) {
    (void)state;
    static const char *const forms[] = {
        DENSE ",\"num_hidden_layers\":4,\"full_attn_idxs\":[1,3]",
        DENSE ",\"num_hidden_layers\":4,\"full_attn_idxs\":[0],"
              "\"layer_types\":[\"conv\",\"full_attention\",\"conv\",\"full_attention\"]"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        gb_lfm2_config config;
        accepts(forms[i], &config);
        for (int64_t k = 0; k < 4; k++)
            assert_int_equal(config.attends[k], k % 2);
        gb_lfm2_config_free(&config);
    }
}

static void widths_are_given_or_computed(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        int64_t width;
    } cases[] = {
        {DENSE ",\"block_ff_dim\":12288,\"block_auto_adjust_ff_dim\":false", 12288},
        {DENSE ",\"block_ff_dim\":10240,\"block_multiple_of\":256", 6912},
        {DENSE ",\"intermediate_size\":6656,\"block_ffn_dim_multiplier\":1.5", 6656},
        {DENSE ",\"intermediate_size\":100,\"block_multiple_of\":1", 66},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb_lfm2_config config;
        accepts(cases[i].keys, &config);
        assert_int_equal(config.intermediate_size, cases[i].width);
        gb_lfm2_config_free(&config);
    }
}

static void refuses_what_it_cannot_run(void **state) {
    (void)state;
    refuses(DENSE ",\"conv_bias\":true", GUMBEL_ERROR_UNSUPPORTED, "conv_bias");
    refuses(MOE ",\"use_expert_bias\":false", GUMBEL_ERROR_UNSUPPORTED, "use_expert_bias");
    refuses(MOE ",\"num_experts_per_tok\":33", GUMBEL_ERROR_FORMAT, "num_experts_per_tok: 33");
    refuses(DENSE ",\"num_key_value_heads\":5", GUMBEL_ERROR_FORMAT, "num_key_value_heads: 5");
    refuses(DENSE ",\"hidden_size\":100", GUMBEL_ERROR_FORMAT, "num_attention_heads: 32 heads");
    refuses(DENSE ",\"num_hidden_layers\":2,\"layer_types\":[\"conv\"]", GUMBEL_ERROR_FORMAT,
            "layer_types: 1 layers, expected the 2");
    refuses(DENSE ",\"num_hidden_layers\":1,\"layer_types\":[\"mamba\"]", GUMBEL_ERROR_UNSUPPORTED,
            "layer 0 is \"mamba\"");
    refuses(DENSE ",\"num_hidden_layers\":2,\"full_attn_idxs\":[2]", GUMBEL_ERROR_FORMAT, "full_attn_idxs");
    refuses(DENSE ",\"intermediate_size\":1,\"block_ffn_dim_multiplier\":1e-6", GUMBEL_ERROR_FORMAT,
            "makes MLPs 0 wide");
    refuses(DENSE ",\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":2.0}", GUMBEL_ERROR_UNSUPPORTED,
            "rope_type");
}

#define SIZES                                                                                                \
    ",\"hidden_size\":32,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":50,"             \
    "\"num_hidden_layers\":3,\"block_auto_adjust_ff_dim\":false,\"intermediate_size\":40,"                   \
    "\"max_position_embeddings\":600,\"layer_types\":[\"conv\",\"full_attention\",\"conv\"]"

static void has_the_names_and_shapes(void **state) {
    (void)state;
    gb_program *program = graph_of("{" MOE SIZES ",\"num_experts\":6,\"num_experts_per_tok\":2,"
                                   "\"moe_intermediate_size\":10,\"num_dense_layers\":1}",
                                   0);
    static const struct {
        const char *name, *type;
    } expected[] = {
        {"model.layers.0.conv.in_proj_b.weight", "bf16[32,32]"},
        {"model.layers.0.conv.conv.weight", "bf16[32,1,3]"},
        {"model.layers.0.feed_forward.w2.weight", "bf16[32,40]"},
        {"model.layers.1.self_attn.k_proj.weight", "bf16[16,32]"},
        {"model.layers.1.self_attn.q_layernorm.weight", "bf16[16]"},
        {"model.layers.1.feed_forward.experts.gate_up_proj", "bf16[6,20,32]"},
        {"model.layers.2.feed_forward.expert_bias", "bf16[6]"},
        {"model.embedding_norm.weight", "bf16[32]"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char text[GB_TYPE_TEXT];
        const gb_constant *constant = find_constant(program, expected[i].name);
        if (!constant)
            fail_msg("there is no constant %s", expected[i].name);
        else
            assert_string_equal(gb_type_text(&constant->type, text), expected[i].type);
    }
    assert_int_equal(count_results(program, GB_OP_CAUSAL_CONV, GB_DIM_N), 2);
    assert_int_equal(count_results(program, GB_OP_EXPERT_LINEAR, GB_DIM_B), 2); /* of the last layer */
    gb_program_destroy(program);
}

static void survives_damage(void **state) {
    (void)state;
    assert_survives_bit_flips("{" DENSE SIZES "}");
    assert_survives_bit_flips("{" MOE SIZES ",\"num_experts\":3,\"num_experts_per_tok\":2}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_transformers_defaults),    cmocka_unit_test(layers_are_listed_or_numbered),
        cmocka_unit_test(widths_are_given_or_computed), cmocka_unit_test(refuses_what_it_cannot_run),
        cmocka_unit_test(has_the_names_and_shapes),     cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
