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
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_the_end_on_gathered_rows_alone),
        cmocka_unit_test(has_the_released_names_and_shapes),
        cmocka_unit_test(survives_every_bit_flip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
