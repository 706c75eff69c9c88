/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph that a Qwen3.5 configuration becomes: what layers of either kind hold and remember, where rows
 * are gathered, and that no damaged configuration gets further than an error.
 */
#include "export/backend_order.h"
#include "export/model_graph.h"
#include "export/nn/attention.h"

#include <math.h>

#define SIZES                                                                                                \
    "\"hidden_size\":32,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":16,"                \
    "\"vocab_size\":50,\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"linear_key_head_dim\":4,"   \
    "\"linear_value_head_dim\":6,\"linear_conv_kernel_dim\":3,\"rms_norm_eps\":1e-5,\"rope_theta\":1e6,"     \
    "\"max_position_embeddings\":600,\"num_hidden_layers\":4,\"full_attention_interval\":2"

static const char EXPERTS[] =
    "{\"model_type\":\"qwen3_5_moe\",\"text_config\":{" SIZES ",\"num_experts\":6,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":10,\"shared_expert_intermediate_size\":14}}";
static const char DENSE[] = "{\"model_type\":\"qwen3_5_text\",\"tie_word_embeddings\":true,"
                            "\"intermediate_size\":40," SIZES "}";

static const char NEXT[] =
    "{\"model_type\":\"qwen3_next\"," SIZES ",\"num_experts\":6,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":10,\"shared_expert_intermediate_size\":14,\"mlp_only_layers\":[2],"
    "\"intermediate_size\":22,\"decoder_sparse_step\":1}";

static const gb_state *find_state(const gb_program *program, const char *name) {
    for (uint32_t i = 0; i < program->state_count; i++)
        if (strcmp(program->states[i].name, name) == 0)
            return &program->states[i];
    fail_msg("there is no state %s", name);
    return NULL;
}

static void assert_type(const gb_type *type, const char *expected) {
    char text[GB_TYPE_TEXT];
    assert_string_equal(gb_type_text(type, text), expected);
}

static void assert_constant(const gb_program *program, const char *name, const char *type) {
    const gb_constant *constant = find_constant(program, name);
    if (!constant)
        fail_msg("there is no constant %s", name);
    else
        assert_type(&constant->type, type);
}

static void remembers_in_two_ways(void **state) {
    (void)state;
    gb_program *program = graph_of(EXPERTS, 0);
    assert_int_equal(program->metadata.prefill_chunk, 512);
    assert_int_equal(program->state_count, 8);
    assert_type(&find_state(program, "layers.0.conv")->type, "f32[2,40]");
    assert_type(&find_state(program, "layers.0.memory")->type, "f32[4,4,6]");
    assert_int_equal(find_state(program, "layers.2.conv")->kind, GB_STATE_RECURRENT);
    assert_int_equal(find_state(program, "layers.2.memory")->kind, GB_STATE_RECURRENT);
    assert_int_equal(find_state(program, "layers.1.keys")->kind, GB_STATE_CACHE);
    assert_type(&find_state(program, "layers.3.values")->type, "f32[600,1,16]");
    gb_program_destroy(program);
}

static void chunks_are_powers_of_two_within_limits(void **state) {
    (void)state;
    assert_int_equal(gb_prefill_chunk(gb_backend_prefill_chunk("cuda"), 8192), 2048);
    assert_int_equal(gb_prefill_chunk(gb_backend_prefill_chunk("cuda"), 1500), 1024);
    assert_int_equal(gb_prefill_chunk(gb_backend_prefill_chunk(NULL), 8192), 512);
    assert_int_equal(gb_prefill_chunk(512, 300), 256);
}

static void has_the_released_names_and_shapes(void **state) {
    (void)state;
    gb_program *program = graph_of(EXPERTS, 0);
#define LAYER "model.language_model.layers."
    assert_constant(program, LAYER "0.linear_attn.in_proj_qkv.weight", "bf16[40,32]");
    assert_constant(program, LAYER "0.linear_attn.conv1d.weight", "bf16[40,1,3]");
    assert_constant(program, LAYER "0.linear_attn.A_log", "bf16[4]");
    assert_constant(program, LAYER "0.linear_attn.norm.weight", "bf16[6]");
    assert_constant(program, LAYER "0.linear_attn.out_proj.weight", "bf16[32,24]");
    assert_constant(program, LAYER "1.self_attn.q_proj.weight", "bf16[64,32]");
    assert_constant(program, LAYER "1.self_attn.o_proj.weight", "bf16[32,32]");
    assert_constant(program, LAYER "1.mlp.gate.weight", "bf16[6,32]");
    assert_constant(program, LAYER "1.mlp.experts.gate_up_proj", "bf16[6,20,32]");
    assert_constant(program, LAYER "1.mlp.experts.down_proj", "bf16[6,32,10]");
    assert_constant(program, LAYER "1.mlp.shared_expert.down_proj.weight", "bf16[32,14]");
    assert_constant(program, LAYER "1.mlp.shared_expert_gate.weight", "bf16[1,32]");
    assert_constant(program, "lm_head.weight", "bf16[50,32]");
    assert_constant(program, "rotary", "f32[2]"); /* a quarter of a head, two dims each */
    gb_program_destroy(program);
    program = graph_of(DENSE, 0);
    assert_constant(program, "model.layers.3.mlp.up_proj.weight", "bf16[40,32]");
    assert_null(find_constant(program, "lm_head.weight"));
    assert_null(find_constant(program, "model.layers.3.mlp.gate.weight"));
    gb_program_destroy(program);
    program = graph_of(NEXT, 0); /* named as Qwen3.5, whatever its tensors are */
    assert_constant(program, "model.layers.0.linear_attn.in_proj_qkv.weight", "bf16[40,32]");
    assert_constant(program, "model.layers.0.linear_attn.in_proj_z.weight", "bf16[24,32]");
    assert_constant(program, "model.layers.0.linear_attn.in_proj_a.weight", "bf16[4,32]");
    assert_constant(program, "model.layers.1.mlp.experts.gate_up_proj", "bf16[6,20,32]");
    assert_constant(program, "model.layers.2.mlp.up_proj.weight", "bf16[22,32]");
    assert_null(find_constant(program, "model.layers.2.mlp.gate.weight"));
    gb_program_destroy(program);
}

static void scales_and_offsets(void **state) {
    (void)state;
    gb_program *program = graph_of(EXPERTS, 0);
    size_t from_one = 0, plain = 0;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const gb_node *node = &program->nodes[i];
        if (node->op == GB_OP_RMS_NORM) {
            bool is_from_one = gb_node_float(node, GB_ATTRIBUTE_WEIGHT_OFFSET) > 0;
            from_one += is_from_one;
            plain += !is_from_one;
            assert_true(gb_node_float(node, GB_ATTRIBUTE_EPSILON) == 1e-5);
        }
        if (node->op == GB_OP_ATTENTION)
            assert_true(gb_node_float(node, GB_ATTRIBUTE_SCALE) == 0.25);
        if (node->op == GB_OP_ROPE)
            assert_int_equal(gb_node_int(node, GB_ATTRIBUTE_PAIR_OFFSET), 2);
        if (node->op == GB_OP_L2_NORMALIZE)
            assert_true(gb_node_float(node, GB_ATTRIBUTE_EPSILON) == 1e-6);
    }
    assert_int_equal(plain, 2);                    /* of the delta nets */
    assert_int_equal(from_one, 4 * 2 + 2 * 2 + 1); /* of layers, of queries and keys, the last one */
    gb_program_destroy(program);
}

/* What follows the mixer of the last layer, whatever its kind, works on the rows alone. */
static void runs_the_end_on_gathered_rows_alone(void **state) {
    (void)state;
    gb_program *program = graph_of(EXPERTS, 0);
    assert_int_equal(count_results(program, GB_OP_GATHER_ROWS, GB_DIM_B), 3); /* mixed, gate and x */
    assert_int_equal(count_results(program, GB_OP_EXPERT_LINEAR, GB_DIM_B), 2);
    assert_int_equal(count_results(program, GB_OP_EXPERT_LINEAR, GB_DIM_N), 3 * 2);
    /* o_proj, the router, the shared expert with its gate, the head */
    assert_int_equal(count_results(program, GB_OP_LINEAR, GB_DIM_B), 1 + 1 + 4 + 1);
    gb_program_destroy(program);
    program = graph_of(EXPERTS, 3);
    assert_int_equal(count_results(program, GB_OP_GATHER_ROWS, GB_DIM_B),
                     3); /* mixed, its gate's input and x */
    assert_int_equal(count_results(program, GB_OP_GATED_DELTA, GB_DIM_N), 2);
    assert_int_equal(count_results(program, GB_OP_LINEAR, GB_DIM_B), 2 + 1 + 4 + 1); /* in_proj_z too */
    gb_program_destroy(program);
    program = graph_of(DENSE, 1); /* no full attention, so no use of positions */
    assert_int_equal(count_results(program, GB_OP_ATTENTION, GB_DIM_N), 0);
    gb_program_destroy(program);
}

static void survives_every_bit_flip(void **state) {
    (void)state;
    assert_survives_bit_flips(EXPERTS);
    assert_survives_bit_flips(DENSE);
    assert_survives_bit_flips(NEXT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remembers_in_two_ways),   cmocka_unit_test(has_the_released_names_and_shapes),
        cmocka_unit_test(scales_and_offsets),      cmocka_unit_test(runs_the_end_on_gathered_rows_alone),
        cmocka_unit_test(survives_every_bit_flip), cmocka_unit_test(chunks_are_powers_of_two_within_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
