/* SPDX-License-Identifier: Apache-2.0
 *
 * Nemotron-H: every form of the configuration, refusals by name, and the graph that it becomes.
 */
#include "export/model_graph.h"
#include "export/models/nemotron_h_config.h"
#include "support/temporary.h"

#include <stdio.h>

/* config.json of these keys, each with a comma before it. */
static gumbel_status read_keys(const char *keys, gb_nemotron_h_config *config, gumbel_error *error) {
    char text[2048];
    gb_config_file *file = NULL;
    const char *path = temporary_path("config.json");
    snprintf(text, sizeof text, "{\"model_type\":\"nemotron_h\"%s}", keys);
    write_text(path, text);
    assert_ok(gb_config_open(path, &file, error), error);
    const gb_config root = gb_config_root(file);
    const gumbel_status status = gb_nemotron_h_config_read(&root, config, error);
    gb_config_close(file);
    return status;
}

static void accepts(const char *keys, gb_nemotron_h_config *config) {
    gumbel_error error;
    assert_ok(read_keys(keys, config, &error), &error);
}

static void refuses(const char *keys, gumbel_status status, const char *part) {
    gb_nemotron_h_config config;
    gumbel_error error;
    assert_fails(read_keys(keys, &config, &error), status, &error, part);
}

static void has_transformers_defaults(void **state) {
    (void)state;
    gb_nemotron_h_config config;
    accepts(",\"hybrid_override_pattern\":\"M*E-\"", &config);
    assert_int_equal(config.vocab_size, 131072);
    assert_int_equal(config.hidden_size, 4096);
    assert_int_equal(config.intermediate_size, 21504);
    assert_true(config.epsilon == 1e-5 && !config.has_tied_head);
    assert_int_equal(config.heads, 32);
    assert_int_equal(config.kv_heads, 8);
    assert_int_equal(config.head_dim, 128);
    assert_int_equal(config.mamba.heads, 128);
    assert_int_equal(config.mamba.head_dim, 64);
    assert_int_equal(config.mamba.groups, 8);
    assert_int_equal(config.mamba.state_size, 128);
    assert_int_equal(config.mamba.conv_width, 4);
    assert_true(config.mamba.has_conv_bias && config.mamba.epsilon == 1e-5);
    assert_int_equal(config.experts.router.count, 8);
    assert_int_equal(config.experts.router.choices, 2);
    assert_int_equal(config.experts.latent, 0);
    assert_int_equal(config.experts.shared_inner, 7688);
    assert_true(config.experts.router.is_normalized && config.experts.router.scale == 1);
}

/* A letter for each layer, transformers' names, and those of before. */
static void layers_have_three_forms(void **state) {
    (void)state;
    static const char *const forms[] = {
        ",\"hybrid_override_pattern\":\"M*E-\",\"num_hidden_layers\":52",
        ",\"layers_block_type\":[\"linear_attention\",\"full_attention\",\"moe\",\"mlp\"]",
        ",\"layer_types\":[\"mamba\",\"attention\",\"moe\",\"mlp\"]"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        gb_nemotron_h_config config;
        accepts(forms[i], &config);
        assert_int_equal(config.layer_count, 4);
        assert_int_equal(config.layers[0], GB_NEMOTRON_H_MAMBA);
        assert_int_equal(config.layers[1], GB_NEMOTRON_H_ATTENTION);
        assert_int_equal(config.layers[2], GB_NEMOTRON_H_EXPERTS);
        assert_int_equal(config.layers[3], GB_NEMOTRON_H_MLP);
    }
}

/* NVIDIA's files are Python's JSON. */
static void infinity_is_a_number(void **state) {
    (void)state;
    gb_nemotron_h_config config;
    accepts(
        ",\"hybrid_override_pattern\":\"M\",\"time_step_limit\":[0.0, Infinity],\"n_shared_experts\":null",
        &config);
    assert_int_equal(config.experts.shared_inner, 0);
    refuses(",\"hybrid_override_pattern\":\"M\",\"time_step_limit\":[0.0, "
            "Infinity],\"mlp_hidden_act\":\"\\\"Infinity\"",
            GUMBEL_ERROR_UNSUPPORTED, "mlp_hidden_act: \"\"Infinity\" is not supported");
}

static void refuses_what_it_cannot_run(void **state) {
    (void)state;
#define PATTERN ",\"hybrid_override_pattern\":\"M*E-\""
    static const char *const biases[] = {"attention_bias", "mlp_bias", "mamba_proj_bias", "use_bias"};
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++) {
        char keys[128];
        snprintf(keys, sizeof keys, PATTERN ",\"%s\":true", biases[i]);
        refuses(keys, GUMBEL_ERROR_UNSUPPORTED, biases[i]);
    }
    refuses(PATTERN ",\"mlp_hidden_act\":\"silu\"", GUMBEL_ERROR_UNSUPPORTED, "mlp_hidden_act: \"silu\"");
    refuses(PATTERN ",\"mamba_hidden_act\":\"relu\"", GUMBEL_ERROR_UNSUPPORTED, "mamba_hidden_act: \"relu\"");
    refuses(PATTERN ",\"n_group\":2", GUMBEL_ERROR_UNSUPPORTED, "n_group: groups of experts");
    refuses(PATTERN ",\"topk_group\":2", GUMBEL_ERROR_UNSUPPORTED, "topk_group: groups of experts");
    refuses(PATTERN ",\"sliding_window\":64", GUMBEL_ERROR_UNSUPPORTED, "sliding_window");
    refuses(PATTERN ",\"time_step_limit\":[0.0, 0.1]", GUMBEL_ERROR_UNSUPPORTED, "time_step_limit");
    refuses(PATTERN ",\"time_step_limit\":[0.001, Infinity]", GUMBEL_ERROR_UNSUPPORTED, "time_step_limit");
    refuses(",\"hybrid_override_pattern\":\"MX\"", GUMBEL_ERROR_UNSUPPORTED, "has the letter 'X'");
    refuses(",\"layer_types\":[\"mamba\",\"conv\"]", GUMBEL_ERROR_UNSUPPORTED, "layer 1 is \"conv\"");
    refuses("", GUMBEL_ERROR_FORMAT, "hybrid_override_pattern: 0 layers");
    refuses(PATTERN ",\"n_groups\":3", GUMBEL_ERROR_FORMAT, "n_groups: 3, expected a divisor of the 128");
    refuses(PATTERN ",\"num_key_value_heads\":5", GUMBEL_ERROR_FORMAT, "num_key_value_heads: 5");
    refuses(PATTERN ",\"num_experts_per_tok\":9", GUMBEL_ERROR_FORMAT, "num_experts_per_tok: 9");
}

/* ---- Graphs -------------------------------------------------------------------------------------------- */

#define SIZES                                                                                                \
    "\"model_type\":\"nemotron_h\",\"hidden_size\":32,\"num_attention_heads\":2,\"num_key_value_heads\":1,"  \
    "\"head_dim\":16,\"vocab_size\":50,\"mamba_num_heads\":4,\"mamba_head_dim\":6,\"ssm_state_size\":8,"     \
    "\"n_groups\":2,\"n_routed_experts\":6,\"num_experts_per_tok\":2,\"moe_intermediate_size\":10,"          \
    "\"moe_shared_expert_intermediate_size\":14,\"intermediate_size\":40,\"max_position_embeddings\":600"

static void has_the_names_and_shapes(void **state) {
    (void)state;
    gb_program *program = graph_of("{" SIZES ",\"hybrid_override_pattern\":\"ME*-\"}", 0);
    static const struct {
        const char *name, *type;
    } expected[] = {
        {"model.embeddings.weight", "bf16[50,32]"},
        {"model.layers.0.mixer.in_proj_z.weight", "bf16[24,32]"},
        {"model.layers.0.mixer.in_proj_xbc.weight", "bf16[56,32]"},
        {"model.layers.0.mixer.in_proj_dt.weight", "bf16[4,32]"},
        {"model.layers.0.mixer.conv1d.weight", "bf16[56,1,4]"},
        {"model.layers.0.mixer.D", "bf16[4]"},
        {"model.layers.0.mixer.norm.weight", "bf16[24]"},
        {"model.layers.1.mixer.experts.up_proj", "bf16[6,10,32]"},
        {"model.layers.1.mixer.experts.down_proj", "bf16[6,32,10]"},
        {"model.layers.1.mixer.gate.e_score_correction_bias", "bf16[6]"},
        {"model.layers.1.mixer.shared_experts.up_proj.weight", "bf16[14,32]"},
        {"model.layers.2.mixer.k_proj.weight", "bf16[16,32]"},
        {"model.layers.3.mixer.down_proj.weight", "bf16[32,40]"},
        {"lm_head.weight", "bf16[50,32]"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char text[GB_TYPE_TEXT];
        const gb_constant *constant = find_constant(program, expected[i].name);
        if (!constant)
            fail_msg("there is no constant %s", expected[i].name);
        else
            assert_string_equal(gb_type_text(&constant->type, text), expected[i].type);
    }
    gb_program_destroy(program);
}

/* Rows are gathered behind the last layer with a state, also where there is none. */
static void gathers_behind_the_last_state(void **state) {
    (void)state;
    static const char config[] = "{" SIZES ",\"hybrid_override_pattern\":\"E-M*-E\"}";
    for (uint32_t layers = 1; layers <= 6; layers++) {
        gb_program *program = graph_of(config, layers);
        const size_t of_tokens = layers < 3 ? 0 : 2, of_rows = layers < 3 || layers == 6 ? 2 : 0;
        assert_int_equal(count_results(program, GB_OP_EXPERT_LINEAR, GB_DIM_N), of_tokens);
        assert_int_equal(count_results(program, GB_OP_EXPERT_LINEAR, GB_DIM_B), of_rows);
        gb_program_destroy(program);
    }
}

static void survives_damage(void **state) {
    (void)state;
    assert_survives_bit_flips("{" SIZES ",\"hybrid_override_pattern\":\"ME*-\"}");
    assert_survives_bit_flips("{" SIZES
                              ",\"layer_types\":[\"mamba\",\"moe\"],\"time_step_limit\":[0,Infinity]}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_transformers_defaults), cmocka_unit_test(layers_have_three_forms),
        cmocka_unit_test(infinity_is_a_number),      cmocka_unit_test(refuses_what_it_cannot_run),
        cmocka_unit_test(has_the_names_and_shapes),  cmocka_unit_test(gathers_behind_the_last_state),
        cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
