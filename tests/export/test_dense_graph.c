/* SPDX-License-Identifier: Apache-2.0
 *
 * The graphs that configurations of the plain decoders become: names, shapes, windows, where rows are
 * gathered, and that no damaged configuration gets further than an error.
 */
#include "export/model_graph.h"

#include <math.h>

#define SIZES                                                                                                \
    "\"hidden_size\":32,\"intermediate_size\":40,\"num_attention_heads\":4,\"num_key_value_heads\":2,"       \
    "\"vocab_size\":50,\"max_position_embeddings\":600,\"num_hidden_layers\":3,\"rope_theta\":1e6"

static const char LLAMA[] = "{\"model_type\":\"llama\",\"tie_word_embeddings\":true," SIZES "}";
static const char MISTRAL[] =
    "{\"model_type\":\"mistral3\",\"text_config\":{\"model_type\":\"mistral\",\"sliding_window\":16," SIZES
    "}}";
static const char QWEN2[] = "{\"model_type\":\"qwen2\",\"tie_word_embeddings\":true," SIZES "}";
static const char QWEN3[] =
    "{\"model_type\":\"qwen3\",\"head_dim\":16,\"use_sliding_window\":true,\"sliding_window\":20,"
    "\"max_window_layers\":2,\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4}," SIZES "}";
static const char EXPERTS[] =
    "{\"model_type\":\"qwen3_moe\",\"num_experts\":6,\"num_experts_per_tok\":2,\"moe_intermediate_size\":10,"
    "\"mlp_only_layers\":[1]," SIZES "}";

static const char GEMMA3[] =
    "{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3_text\",\"sliding_window\":20,"
    "\"head_dim\":16,\"sliding_window_pattern\":2,\"query_pre_attn_scalar\":25," SIZES "}}";

static const char SMOLLM3[] =
    "{\"model_type\":\"smollm3\",\"no_rope_layers\":[1,0,1],\"rope_scaling\":{\"rope_type\":\"yarn\","
    "\"factor\":4}," SIZES "}";
static const char NOTHING_TURNS[] = "{\"model_type\":\"smollm3\",\"no_rope_layer_interval\":1," SIZES "}";

#define MINISTRAL3(original)                                                                                 \
    "{\"model_type\":\"ministral3\",\"head_dim\":8,\"rope_parameters\":{\"llama_4_scaling_beta\":0.5,"       \
    "\"original_max_position_embeddings\":" original "}," SIZES "}"
static const char MINISTRAL3_LONG[] = MINISTRAL3("599"), MINISTRAL3_SHORT[] = MINISTRAL3("600");

static const char OLMO3[] =
    "{\"model_type\":\"olmo3\",\"sliding_window\":20,\"rope_parameters\":{\"full_attention\":{\"rope_type\":"
    "\"yarn\","
    "\"factor\":4},\"sliding_attention\":{\"rope_theta\":100}},\"layer_types\":[\"sliding_attention\","
    "\"full_attention\",\"sliding_attention\"]," SIZES "}";

static const char GRANITE[] =
    "{\"model_type\":\"granite\",\"embedding_multiplier\":12,\"attention_multiplier\":0.25,"
    "\"residual_multiplier\":0.5,\"logits_scaling\":8," SIZES "}";
static const char GRANITE_HYBRID[] =
    "{\"model_type\":\"granitemoehybrid\",\"layer_types\":[\"attention\",\"attention\",\"attention\"],"
    "\"num_local_experts\":0,\"shared_intermediate_size\":24,\"position_embedding_type\":\"nope\"," SIZES "}";

#define PHI3(original)                                                                                       \
    "{\"model_type\":\"phi3\",\"partial_rotary_factor\":0.5,\"original_max_position_embeddings\":" original  \
    ",\"rope_scaling\":{\"type\":\"longrope\",\"attention_factor\":1.5,\"short_factor\":[1,1],"              \
    "\"long_factor\":[1,4]}," SIZES "}"
static const char PHI3_LONG[] = PHI3("100"), PHI3_SHORT[] = PHI3("600");

static void assert_constant(const gb_program *program, const char *name, const char *type) {
    char text[GB_TYPE_TEXT];
    const gb_constant *constant = find_constant(program, name);
    if (!constant)
        fail_msg("there is no constant %s", name);
    else
        assert_string_equal(gb_type_text(&constant->type, text), type);
}

static void has_the_released_names_and_shapes(void **state) {
    (void)state;
    gb_program *program = graph_of(LLAMA, 0);
    assert_constant(program, "model.layers.0.self_attn.q_proj.weight", "bf16[32,32]");
    assert_constant(program, "model.layers.2.self_attn.k_proj.weight", "bf16[16,32]");
    assert_constant(program, "model.layers.2.mlp.down_proj.weight", "bf16[32,40]");
    assert_constant(program, "rotary", "f32[4]");
    assert_null(find_constant(program, "lm_head.weight"));
    assert_null(find_constant(program, "model.layers.0.self_attn.q_norm.weight"));
    gb_program_destroy(program);
    program = graph_of(MISTRAL, 0);
    assert_constant(program, "model.language_model.layers.0.self_attn.q_proj.weight", "bf16[32,32]");
    assert_constant(program, "lm_head.weight", "bf16[50,32]");
    gb_program_destroy(program);
    program = graph_of(QWEN2, 0);
    assert_constant(program, "model.layers.0.self_attn.q_proj.bias", "bf16[32]");
    assert_constant(program, "model.layers.2.self_attn.k_proj.bias", "bf16[16]");
    assert_constant(program, "model.layers.2.self_attn.v_proj.bias", "bf16[16]");
    assert_null(find_constant(program, "model.layers.2.self_attn.o_proj.bias"));
    gb_program_destroy(program);
    program = graph_of(QWEN3, 0);
    assert_null(find_constant(program, "model.layers.0.self_attn.q_proj.bias"));
    assert_constant(program, "model.layers.0.self_attn.q_proj.weight", "bf16[64,32]");
    assert_constant(program, "model.layers.0.self_attn.k_norm.weight", "bf16[16]");
    gb_program_destroy(program);
    program = graph_of(GEMMA3, 0);
    assert_constant(program, "model.language_model.layers.0.post_attention_layernorm.weight", "bf16[32]");
    assert_constant(program, "model.language_model.layers.0.pre_feedforward_layernorm.weight", "bf16[32]");
    assert_constant(program, "model.language_model.layers.2.post_feedforward_layernorm.weight", "bf16[32]");
    assert_constant(program, "model.language_model.layers.2.self_attn.q_norm.weight", "bf16[16]");
    assert_constant(program, "rotary", "f32[8]");
    assert_constant(program, "rotary.sliding", "f32[8]");
    assert_null(find_constant(program, "lm_head.weight"));
    gb_program_destroy(program);
    program = graph_of(GEMMA3, 1); /* whose one layer slides */
    assert_null(find_constant(program, "rotary"));
    gb_program_destroy(program);
    program = graph_of(SMOLLM3, 0);
    assert_constant(program, "rotary", "f32[4]");
    assert_null(find_constant(program, "lm_head.weight"));
    gb_program_destroy(program);
    program = graph_of(NOTHING_TURNS, 0);
    assert_null(find_constant(program, "rotary"));
    gb_program_destroy(program);
    program = graph_of(GRANITE, 0);
    assert_constant(program, "residual.scale", "f32[1]");
    assert_constant(program, "logits.scale", "f32[1]");
    gb_program_destroy(program);
    program = graph_of(GRANITE_HYBRID, 0);
    assert_constant(program, "model.layers.2.shared_mlp.gate_proj.weight", "bf16[24,32]");
    assert_constant(program, "model.layers.2.shared_mlp.up_proj.weight", "bf16[24,32]");
    assert_constant(program, "model.layers.2.shared_mlp.down_proj.weight", "bf16[32,24]");
    assert_null(find_constant(program, "rotary"));
    assert_null(find_constant(program, "residual.scale"));
    gb_program_destroy(program);
    program = graph_of(EXPERTS, 0);
    assert_constant(program, "model.layers.0.mlp.experts.gate_up_proj", "bf16[6,20,32]");
    assert_constant(program, "model.layers.0.mlp.gate.weight", "bf16[6,32]");
    assert_constant(program, "model.layers.1.mlp.up_proj.weight", "bf16[40,32]");
    assert_null(find_constant(program, "model.layers.0.mlp.shared_expert_gate.weight"));
    gb_program_destroy(program);
}

/* Windows and scales of the attention nodes, layer by layer. */
static void check_attention(const char *config, const int64_t windows[3], double scale) {
    gb_program *program = graph_of(config, 0);
    size_t layer = 0;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const gb_node *node = &program->nodes[i];
        if (node->op != GB_OP_ATTENTION)
            continue;
        assert_int_equal(gb_node_int(node, GB_ATTRIBUTE_WINDOW), windows[layer++]);
        assert_true(fabs(gb_node_float(node, GB_ATTRIBUTE_SCALE) - scale) < 1e-12);
    }
    assert_int_equal(layer, 3);
    gb_program_destroy(program);
}

static void attends_as_configured(void **state) {
    (void)state;
    const double factor = 0.1 * log(4) + 1; /* of queries and of keys */
    check_attention(LLAMA, (const int64_t[]){0, 0, 0}, 1 / sqrt(8));
    check_attention(MISTRAL, (const int64_t[]){16, 16, 16}, 1 / sqrt(8));
    check_attention(QWEN2, (const int64_t[]){0, 0, 0}, 1 / sqrt(8));
    check_attention(QWEN3, (const int64_t[]){0, 0, 20}, factor * factor / 4);
    check_attention(GEMMA3, (const int64_t[]){20, 0, 20}, 0.2);
    check_attention(GRANITE, (const int64_t[]){0, 0, 0}, 0.25);
}

static int count_nodes(const char *config, gb_op op) {
    gb_program *program = graph_of(config, 0);
    int count = 0;
    for (uint32_t i = 0; i < program->node_count; i++)
        count += program->nodes[i].op == op;
    gb_program_destroy(program);
    return count;
}

/* What each layer adds twice, and the logits; nothing where a multiplier is 1. */
static void multiplies_as_configured(void **state) {
    (void)state;
    assert_int_equal(count_nodes(GRANITE, GB_OP_SCALE), 7);
    assert_int_equal(count_nodes(GRANITE_HYBRID, GB_OP_SCALE), 0);
    assert_int_equal(count_nodes(LLAMA, GB_OP_SCALE), 0);
}

/* Two norms of a layer are of what it adds, two of queries and keys before they are heads. */
static void normalizes_what_olmo_adds(void **state) {
    (void)state;
    const double factor = 0.1 * log(4) + 1; /* of full layers */
    gb_program *program = graph_of(OLMO3, 0);
    assert_constant(program, "model.layers.0.self_attn.q_norm.weight", "bf16[32]");
    assert_constant(program, "model.layers.2.self_attn.k_norm.weight", "bf16[16]");
    assert_constant(program, "model.layers.1.post_feedforward_layernorm.weight", "bf16[32]");
    assert_null(find_constant(program, "model.layers.0.input_layernorm.weight"));
    assert_null(find_constant(program, "model.layers.0.pre_feedforward_layernorm.weight"));
    size_t layer = 0;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const gb_node *node = &program->nodes[i];
        if (node->op != GB_OP_ATTENTION)
            continue;
        const bool is_full = layer++ == 1;
        const double scale = (is_full ? factor * factor : 1) / sqrt(8);
        assert_true(fabs(gb_node_float(node, GB_ATTRIBUTE_SCALE) - scale) < 1e-12);
        assert_int_equal(gb_node_int(node, GB_ATTRIBUTE_WINDOW), is_full ? 0 : 20);
    }
    assert_int_equal(layer, 3);
    gb_program_destroy(program);
    assert_int_equal(count_nodes(OLMO3, GB_OP_RMS_NORM), 3 * 4 + 1);
}

/* Where the context is longer than the first one was; else the scale is 1 at each position. */
static void scales_queries_of_long_contexts(void **state) {
    (void)state;
    assert_int_equal(count_nodes(MINISTRAL3_LONG, GB_OP_SCALE_ROWS), 3);
    assert_int_equal(count_nodes(MINISTRAL3_SHORT, GB_OP_SCALE_ROWS), 0);
    gb_program *program = graph_of(MINISTRAL3_LONG, 0);
    assert_constant(program, "query.scales", "f32[600,1]");
    gb_program_destroy(program);
}

/* A layer that does not turn has neither a rotary embedding nor its factor. */
static void turns_as_configured(void **state) {
    (void)state;
    const double factor = 0.1 * log(4) + 1;
    const int turns_before[3] = {2, 2, 4}; /* of queries and keys, until a layer attends */
    gb_program *program = graph_of(SMOLLM3, 0);
    size_t layer = 0;
    int turns = 0;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const gb_node *node = &program->nodes[i];
        turns += node->op == GB_OP_ROPE;
        if (node->op != GB_OP_ATTENTION)
            continue;
        const double scale = (layer == 1 ? 1 : factor * factor) / sqrt(8);
        assert_true(fabs(gb_node_float(node, GB_ATTRIBUTE_SCALE) - scale) < 1e-12);
        assert_int_equal(turns, turns_before[layer++]);
    }
    assert_int_equal(layer, 3);
    gb_program_destroy(program);
}

/* What is taken apart has the names that others' matrices have; the context chooses LongRoPE's factors. */
static void takes_phi_apart(void **state) {
    (void)state;
    static const char *const configs[] = {PHI3_LONG, PHI3_SHORT}, *const factors[] = {"long", "short"};
    for (size_t i = 0; i < 2; i++) {
        gb_program *program = graph_of(configs[i], 0);
        assert_constant(program, "model.layers.0.self_attn.q_proj.weight", "bf16[32,32]");
        assert_constant(program, "model.layers.0.self_attn.v_proj.weight", "bf16[16,32]");
        assert_constant(program, "model.layers.2.mlp.gate_proj.weight", "bf16[40,32]");
        assert_constant(program, "model.layers.2.mlp.up_proj.weight", "bf16[40,32]");
        assert_constant(program, "rotary", "f32[2]");
        assert_string_equal(program->metadata.rotary_factors, factors[i]);
        for (uint32_t n = 0; n < program->node_count; n++) {
            const gb_node *node = &program->nodes[n];
            if (node->op == GB_OP_ROPE) {
                assert_int_equal(gb_node_int(node, GB_ATTRIBUTE_PAIR_OFFSET), 2);
                assert_true(gb_node_float(node, GB_ATTRIBUTE_SCALE) == 1.5);
            }
        }
        gb_program_destroy(program);
    }
    check_attention(PHI3_LONG, (const int64_t[]){0, 0, 0}, 1 / sqrt(8));
}

/* Each norm of Gemma 3 multiplies by 1 + w: four of a layer and two of its heads, and the last. */
static void adds_one_to_norms(void **state) {
    (void)state;
    gb_program *program = graph_of(GEMMA3, 0);
    size_t norms = 0;
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == GB_OP_RMS_NORM) {
            assert_true(gb_node_float(&program->nodes[i], GB_ATTRIBUTE_WEIGHT_OFFSET) == 1);
            norms++;
        }
    assert_int_equal(norms, 3 * 6 + 1);
    gb_program_destroy(program);
}

static void routes_with_plain_weights(void **state) {
    (void)state;
    gb_program *program = graph_of(EXPERTS, 0);
    size_t routers = 0;
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == GB_OP_ROUTE_TOP_K) {
            assert_int_equal(gb_node_int(&program->nodes[i], GB_ATTRIBUTE_NORMALIZE), 0);
            routers++;
        }
    assert_int_equal(routers, 2);
    gb_program_destroy(program);
}

static void runs_the_end_on_gathered_rows_alone(void **state) {
    (void)state;
    gb_program *program = graph_of(LLAMA, 0);
    assert_int_equal(count_results(program, GB_OP_GATHER_ROWS, GB_DIM_B), 2);
    assert_int_equal(count_results(program, GB_OP_LINEAR, GB_DIM_B),
                     1 + 3 + 1); /* o_proj, the MLP, the head */
    gb_program_destroy(program);
}

static void survives_every_bit_flip(void **state) {
    (void)state;
    assert_survives_bit_flips(LLAMA);
    assert_survives_bit_flips(QWEN2);
    assert_survives_bit_flips(QWEN3);
    assert_survives_bit_flips(GEMMA3);
    assert_survives_bit_flips(SMOLLM3);
    assert_survives_bit_flips(GRANITE);
    assert_survives_bit_flips(GRANITE_HYBRID);
    assert_survives_bit_flips(PHI3_LONG);
    assert_survives_bit_flips(MINISTRAL3_LONG);
    assert_survives_bit_flips(OLMO3);
    assert_survives_bit_flips(EXPERTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_released_names_and_shapes),
        cmocka_unit_test(attends_as_configured),
        cmocka_unit_test(turns_as_configured),
        cmocka_unit_test(multiplies_as_configured),
        cmocka_unit_test(normalizes_what_olmo_adds),
        cmocka_unit_test(scales_queries_of_long_contexts),
        cmocka_unit_test(takes_phi_apart),
        cmocka_unit_test(adds_one_to_norms),
        cmocka_unit_test(routes_with_plain_weights),
        cmocka_unit_test(runs_the_end_on_gathered_rows_alone),
        cmocka_unit_test(survives_every_bit_flip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
