/* SPDX-License-Identifier: Apache-2.0
 *
 * Granite 4 with Mamba layers and experts: every form of the configuration, refusals by name, and the graph
 * that it becomes.
 */
#include "export/model_graph.h"
#include "export/models/dense_config.h"
#include "support/temporary.h"

#include <stdio.h>

#define LAYERS ",\"num_hidden_layers\":2,\"position_embedding_type\":\"nope\""

/* config.json of these keys, each with a comma before it; free config also after an error. */
static gumbel_status read_keys(const char *keys, gb_dense_config *config, gumbel_error *error) {
    char text[2048];
    gb_config_file *file = NULL;
    const char *path = temporary_path("config.json");
    snprintf(text, sizeof text, "{\"model_type\":\"granitemoehybrid\"" LAYERS "%s}", keys);
    write_text(path, text);
    assert_ok(gb_config_open(path, &file, error), error);
    const gb_config root = gb_config_root(file);
    const gumbel_status status = gb_dense_config_read(&root, config, error);
    gb_config_close(file);
    return status;
}

static void accepts(const char *keys, gb_dense_config *config) {
    gumbel_error error;
    assert_ok(read_keys(keys, config, &error), &error);
}

static void refuses(const char *keys, gumbel_status status, const char *part) {
    gb_dense_config config;
    gumbel_error error;
    assert_fails(read_keys(keys, &config, &error), status, &error, part);
    gb_dense_config_free(&config);
}

static void has_transformers_defaults(void **state) {
    (void)state;
    gb_dense_config config;
    accepts("", &config);
    assert_true(config.layers[0].is_mamba && config.layers[1].is_mamba);
    assert_int_equal(config.mamba.heads, 128);
    assert_int_equal(config.mamba.head_dim, 64);
    assert_int_equal(config.mamba.groups, 1);
    assert_int_equal(config.mamba.state_size, 256);
    assert_int_equal(config.mamba.conv_width, 4);
    assert_true(config.mamba.has_conv_bias && config.mamba.epsilon == 1e-6);
    assert_int_equal(config.experts.count, 8);
    assert_int_equal(config.experts.choices, 2);
    assert_int_equal(config.experts.inner, 11008);
    assert_int_equal(config.intermediate_size, 1024);
    assert_false(config.has_tied_head);
    gb_dense_config_free(&config);
}

/* Under the names of before and of now, in a list of either name. */
static void layers_have_forms(void **state) {
    (void)state;
    static const char *const forms[] = {",\"layer_types\":[\"mamba\",\"attention\"]",
                                        ",\"layer_types\":[\"linear_attention\",\"full_attention\"]",
                                        ",\"layers_block_type\":[\"mamba\",\"attention\"]"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        gb_dense_config config;
        accepts(forms[i], &config);
        assert_true(config.layers[0].is_mamba && !config.layers[1].is_mamba);
        gb_dense_config_free(&config);
    }
}

static void heads_may_be_given(void **state) {
    (void)state;
    gb_dense_config config;
    accepts(",\"num_local_experts\":0,\"num_experts_per_tok\":0,\"hidden_size\":768,\"mamba_expand\":3,"
            "\"num_attention_heads\":12,\"mamba_n_heads\":36,\"mamba_d_head\":64,\"mamba_n_groups\":4,"
            "\"time_step_limit\":[0.0, Infinity]",
            &config);
    assert_int_equal(config.experts.count, 0);
    assert_int_equal(config.mamba.heads, 36);
    assert_int_equal(config.mamba.groups, 4);
    gb_dense_config_free(&config);
}

/* As Python writes it, and as transformers does. */
static void infinity_has_two_forms(void **state) {
    (void)state;
    static const char *const limits[] = {"[0.0, Infinity]", "[0.0, {\"__float__\": \"Infinity\"}]", "null"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        gb_dense_config config;
        char keys[96];
        snprintf(keys, sizeof keys, ",\"time_step_limit\":%s", limits[i]);
        accepts(keys, &config);
        gb_dense_config_free(&config);
    }
    refuses(",\"time_step_limit\":[0.0, {\"__float__\": \"NaN\"}]", GUMBEL_ERROR_FORMAT, "time_step_limit");
    refuses(",\"rms_norm_eps\":{\"__float__\": \"Infinity\"}", GUMBEL_ERROR_FORMAT, "rms_norm_eps");
}

static void refuses_what_it_cannot_run(void **state) {
    (void)state;
    refuses(",\"mamba_proj_bias\":true", GUMBEL_ERROR_UNSUPPORTED, "mamba_proj_bias");
    refuses(",\"attention_bias\":true", GUMBEL_ERROR_UNSUPPORTED, "attention_bias");
    refuses(",\"hidden_act\":\"gelu\"", GUMBEL_ERROR_UNSUPPORTED, "hidden_act: \"gelu\"");
    refuses(",\"normalization_function\":\"layernorm\"", GUMBEL_ERROR_UNSUPPORTED,
            "normalization_function: \"layernorm\"");
    refuses(",\"time_step_limit\":[0.001, 100.0]", GUMBEL_ERROR_UNSUPPORTED, "time_step_limit");
    refuses(",\"layer_types\":[\"mamba\",\"conv\"]", GUMBEL_ERROR_UNSUPPORTED,
            "layer_types: layer 1 is \"conv\", expected \"mamba\" or \"attention\"");
    refuses(",\"layer_types\":[\"mamba\"]", GUMBEL_ERROR_FORMAT,
            "layer_types: 1 layers, expected the 2 of num_hidden_layers");
    refuses(",\"layer_types\":[\"mamba\",\"mamba\"],\"layers_block_type\":[\"mamba\",\"mamba\"]",
            GUMBEL_ERROR_UNSUPPORTED, "layers_block_type: stands beside layer_types");
    refuses(",\"mamba_n_groups\":3", GUMBEL_ERROR_FORMAT, "mamba_n_groups: 3, expected a divisor of the 128");
    refuses(",\"mamba_d_head\":32", GUMBEL_ERROR_FORMAT,
            "mamba_d_head: 32 of each of 128 heads, expected the 8192 of mamba_expand * hidden_size in all");
    refuses(",\"mamba_n_heads\":60", GUMBEL_ERROR_FORMAT, "mamba_d_head: 1 of each of 60 heads");
    refuses(",\"num_experts_per_tok\":9,\"num_local_experts\":8", GUMBEL_ERROR_FORMAT,
            "num_experts_per_tok: 9, expected at most the 8 of num_local_experts");
}

/* ---- Graphs -------------------------------------------------------------------------------------------- */

#define SIZES                                                                                                \
    "\"model_type\":\"granitemoehybrid\",\"hidden_size\":32,\"num_attention_heads\":2,"                      \
    "\"num_key_value_heads\":1,\"vocab_size\":50,\"mamba_n_heads\":4,\"mamba_d_state\":8,"                   \
    "\"mamba_n_groups\":2,\"shared_intermediate_size\":14,\"intermediate_size\":10,"                         \
    "\"max_position_embeddings\":600"
#define HYBRID(positions)                                                                                    \
    "{" SIZES ",\"position_embedding_type\":\"" positions                                                    \
    "\",\"num_hidden_layers\":3,\"layer_types\":[\"mamba\",\"attention\",\"mamba\"],"                        \
    "\"residual_multiplier\":0.5"
static const char EXPERTS[] = HYBRID("nope") ",\"num_local_experts\":6,\"num_experts_per_tok\":2}";
static const char DENSE[] = HYBRID("nope") ",\"num_local_experts\":0}";
static const char TURNING[] = HYBRID("rope") ",\"num_local_experts\":0}";

static void assert_constant(const gb_program *program, const char *name, const char *type) {
    char text[GB_TYPE_TEXT];
    const gb_constant *constant = find_constant(program, name);
    if (!constant)
        fail_msg("there is no constant %s", name);
    else
        assert_string_equal(gb_type_text(&constant->type, text), type);
}

static void has_the_names_and_shapes(void **state) {
    (void)state;
    gb_program *program = graph_of(EXPERTS, 0);
    assert_constant(program, "model.layers.0.mamba.in_proj_z.weight", "bf16[64,32]");
    assert_constant(program, "model.layers.0.mamba.in_proj_xbc.weight", "bf16[96,32]");
    assert_constant(program, "model.layers.0.mamba.in_proj_dt.weight", "bf16[4,32]");
    assert_constant(program, "model.layers.0.mamba.out_proj.weight", "bf16[32,64]");
    assert_constant(program, "model.layers.1.self_attn.k_proj.weight", "bf16[16,32]");
    assert_constant(program, "model.layers.1.block_sparse_moe.router.layer.weight", "bf16[6,32]");
    assert_constant(program, "model.layers.1.block_sparse_moe.experts.gate_up_proj", "bf16[6,20,32]");
    assert_constant(program, "model.layers.2.block_sparse_moe.experts.down_proj", "bf16[6,32,10]");
    assert_constant(program, "model.layers.2.shared_mlp.gate_proj.weight", "bf16[14,32]");
    assert_constant(program, "model.layers.2.shared_mlp.down_proj.weight", "bf16[32,14]");
    gb_program_destroy(program);
    program = graph_of(DENSE, 0);
    assert_constant(program, "model.layers.2.shared_mlp.up_proj.weight", "bf16[14,32]");
    assert_null(find_constant(program, "model.layers.1.block_sparse_moe.router.layer.weight"));
    gb_program_destroy(program);
    program = graph_of(TURNING, 1);
    assert_null(find_constant(program, "rotary"));
    gb_program_destroy(program);
    program = graph_of(TURNING, 2);
    assert_constant(program, "rotary", "f32[8]");
    gb_program_destroy(program);
}

/* Behind the last layer's mixer, whichever it is, and with nothing that asks for positions. */
static void gathers_behind_the_last_mixer(void **state) {
    (void)state;
    for (uint32_t layers = 1; layers <= 3; layers++) {
        gb_program *program = graph_of(EXPERTS, layers);
        assert_int_equal(count_results(program, GB_OP_EXPERT_LINEAR, GB_DIM_N), 2 * (layers - 1));
        assert_int_equal(count_results(program, GB_OP_EXPERT_LINEAR, GB_DIM_B), 2);
        gb_program_destroy(program);
    }
}

static void survives_damage(void **state) {
    (void)state;
    assert_survives_bit_flips(EXPERTS);
    assert_survives_bit_flips(DENSE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_transformers_defaults), cmocka_unit_test(layers_have_forms),
        cmocka_unit_test(heads_may_be_given),        cmocka_unit_test(refuses_what_it_cannot_run),
        cmocka_unit_test(has_the_names_and_shapes),  cmocka_unit_test(gathers_behind_the_last_mixer),
        cmocka_unit_test(infinity_has_two_forms),    cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
