/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph that a Gemma 4 configuration becomes: where rows are gathered, what a layer holds, and that no
 * damaged configuration gets further than an error.
 */
#include "export/model_graph.h"

static const char CONFIG[] =
    "{\"model_type\":\"gemma4\",\"text_config\":{\"hidden_size\":32,\"intermediate_size\":48,"
    "\"num_hidden_layers\":3,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":8,"
    "\"vocab_size\":50,\"sliding_window\":8,\"hidden_size_per_layer_input\":0,\"attention_k_eq_v\":true,"
    "\"final_logit_softcapping\":30.0,\"rms_norm_eps\":1e-5,\"per_layer_config\":{\"2\":{\"head_dim\":32}},"
    "\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"full_attention\"],"
    "\"rope_parameters\":{\"sliding_attention\":{\"rope_theta\":10000.0},\"full_attention\":"
    "{\"rope_type\":\"proportional\",\"rope_theta\":1e6,\"partial_rotary_factor\":0.25}}}}";

#define SMALL                                                                                                \
    "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":4,\"num_attention_heads\":2,"         \
    "\"num_key_value_heads\":1,\"head_dim\":8,\"global_head_dim\":16,\"vocab_size\":50,\"sliding_window\":"  \
    "8,"                                                                                                     \
    "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\"]"

static const char EXPERTS[] =
    "{\"model_type\":\"gemma4\",\"text_config\":{" SMALL ",\"hidden_size_per_layer_input\":0,"
    "\"enable_moe_block\":true,\"num_experts\":6,\"top_k_experts\":2,\"moe_intermediate_size\":10}}";
static const char SHARED[] = "{\"model_type\":\"gemma4_text\"," SMALL
                             ",\"hidden_size_per_layer_input\":6,\"vocab_size_per_layer_input\":60,"
                             "\"num_kv_shared_layers\":2,\"use_double_wide_mlp\":true}";

static void assert_constant(const gb_program *program, const char *name, const char *type) {
    char text[GB_TYPE_TEXT];
    const gb_constant *constant = find_constant(program, name);
    if (!constant)
        fail_msg("there is no constant %s", name);
    else
        assert_string_equal(gb_type_text(&constant->type, text), type);
}

static void has_experts_beside_the_mlp(void **state) {
    (void)state;
    gb_program *program = graph_of(EXPERTS, 0);
    assert_constant(program, "model.language_model.layers.0.experts.gate_up_proj", "bf16[6,20,32]");
    assert_constant(program, "model.language_model.layers.3.experts.down_proj", "bf16[6,32,10]");
    assert_constant(program, "model.language_model.layers.0.router.proj.weight", "bf16[6,32]");
    assert_constant(program, "model.language_model.layers.0.router.scale", "bf16[32]");
    assert_constant(program, "model.language_model.layers.0.mlp.up_proj.weight", "bf16[48,32]");
    /* gate and up, down, and the scales of the chosen */
    assert_int_equal(count_results(program, GB_OP_EXPERT_LINEAR, GB_DIM_N), 3 * 3);
    assert_int_equal(count_results(program, GB_OP_EXPERT_LINEAR, GB_DIM_B), 3);
    gb_program_destroy(program);
}

/* The last two layers attend to the first two's keys, and only those have caches. */
static void shares_keys_and_gives_layers_inputs(void **state) {
    (void)state;
    gb_program *program = graph_of(SHARED, 0);
    const gb_node *attention[4];
    size_t count = 0;
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == GB_OP_ATTENTION && count < 4)
            attention[count++] = &program->nodes[i];
    assert_int_equal(count, 4);
    assert_int_equal(program->state_count, 4);
    for (size_t i = 0; i < 2; i++) {
        assert_memory_equal(attention[i]->operands + 1, attention[i + 2]->operands + 1, 6 * sizeof(gb_ref));
        assert_true(attention[i]->operands[0] != attention[i + 2]->operands[0]);
    }
    assert_null(find_constant(program, "model.layers.2.self_attn.k_proj.weight"));
    assert_constant(program, "model.layers.1.mlp.up_proj.weight", "bf16[48,32]");
    assert_constant(program, "model.layers.2.mlp.up_proj.weight", "bf16[96,32]");
    assert_constant(program, "model.embed_tokens_per_layer.weight", "bf16[60,24]");
    assert_constant(program, "model.layers.3.per_layer_projection.weight", "bf16[32,6]");
    gb_program_destroy(program);
    program = graph_of(SHARED, 3); /* inputs of a layer that is left out are there */
    assert_constant(program, "model.embed_tokens_per_layer.weight", "bf16[60,24]");
    assert_null(find_constant(program, "model.layers.3.per_layer_projection.weight"));
    gb_program_destroy(program);
}

static void runs_the_end_on_gathered_rows_alone(void **state) {
    (void)state;
    gb_program *program = graph_of(CONFIG, 0);
    assert_int_equal(count_results(program, GB_OP_GATHER_ROWS, GB_DIM_B), 2);
    assert_int_equal(count_results(program, GB_OP_ATTENTION, GB_DIM_N), 3);
    /* The last layer's o_proj and MLP, and the head. */
    assert_int_equal(count_results(program, GB_OP_LINEAR, GB_DIM_B), 5);
    /* Two layers of seven matrices; q_proj and k_proj of the last, which has no v_proj. */
    assert_int_equal(count_results(program, GB_OP_LINEAR, GB_DIM_N), 2 * 7 + 2);
    assert_int_equal(count_results(program, GB_OP_SOFT_CAP, GB_DIM_B), 1);
    gb_program_destroy(program);
}

static void has_the_released_names_and_shapes(void **state) {
    (void)state;
    gb_program *program = graph_of(CONFIG, 0);
#define LAYER "model.language_model.layers.2."
    assert_non_null(find_constant(program, LAYER "layer_scalar"));
    assert_non_null(find_constant(program, LAYER "post_feedforward_layernorm.weight"));
    assert_null(find_constant(program, LAYER "self_attn.v_proj.weight"));
    assert_null(find_constant(program, "lm_head.weight"));
    const gb_constant *key = find_constant(program, LAYER "self_attn.k_proj.weight");
    assert_non_null(key);
    assert_int_equal(key->type.shape.dims[0], 32);
    assert_int_equal(key->type.dtype, GB_BF16);
    assert_int_equal(find_constant(program, "rotary.sliding_attention")->type.shape.dims[0], 4);
    assert_int_equal(find_constant(program, "rotary.full_attention")->type.shape.dims[0], 4);
    for (uint32_t i = 0; i < program->node_count; i++) {
        if (program->nodes[i].op == GB_OP_RMS_NORM)
            assert_true(gb_node_float(&program->nodes[i], GB_ATTRIBUTE_EPSILON) == 1e-5);
        if (program->nodes[i].op == GB_OP_ATTENTION)
            assert_true(gb_node_float(&program->nodes[i], GB_ATTRIBUTE_SCALE) == 1.0);
    }
    gb_program_destroy(program);
}

static void survives_every_bit_flip(void **state) {
    (void)state;
    assert_survives_bit_flips(CONFIG);
    assert_survives_bit_flips(EXPERTS);
    assert_survives_bit_flips(SHARED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_the_end_on_gathered_rows_alone),
        cmocka_unit_test(has_the_released_names_and_shapes),
        cmocka_unit_test(has_experts_beside_the_mlp),
        cmocka_unit_test(shares_keys_and_gives_layers_inputs),
        cmocka_unit_test(survives_every_bit_flip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
