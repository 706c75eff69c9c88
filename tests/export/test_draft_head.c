/* SPDX-License-Identifier: Apache-2.0
 *
 * Draft heads of Qwen3.5 and Qwen3-Next: the graph of a model that keeps its hidden states, the graph of the
 * head, and what they have in common.
 */
#include "export/model_graph.h"
#include "export/source.h"
#include "support/checkpoints/safetensors_writer.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <stdio.h>

#define SIZES                                                                                                \
    "\"hidden_size\":32,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":16,"                \
    "\"vocab_size\":50,\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"linear_key_head_dim\":4,"   \
    "\"linear_value_head_dim\":6,\"linear_conv_kernel_dim\":3,\"max_position_embeddings\":600,"              \
    "\"num_hidden_layers\":4,\"full_attention_interval\":2"
#define EXPERT_SIZES                                                                                         \
    SIZES ",\"num_experts\":6,\"num_experts_per_tok\":2,\"moe_intermediate_size\":10,"                       \
          "\"shared_expert_intermediate_size\":14"

static const char EXPERTS[] = "{\"model_type\":\"qwen3_5_moe\",\"text_config\":{" EXPERT_SIZES
                              ",\"mtp_num_hidden_layers\":1,\"mtp_use_dedicated_embeddings\":false}}";
static const char DENSE[] = "{\"model_type\":\"qwen3_5_text\",\"tie_word_embeddings\":true,"
                            "\"intermediate_size\":40," SIZES "}";
static const char NEXT[] = "{\"model_type\":\"qwen3_next\"," EXPERT_SIZES "}";

static gb_program *wanted_of(const char *config, uint32_t layers, bool is_head) {
    const wanted_graph wanted = {
        .is_head = is_head,
        .options = {.sampler = {.kind = GB_SAMPLER_MINIMAL}, .layers = layers, .keep_hidden = !is_head}};
    gb_program *program = NULL;
    gumbel_error error;
    assert_ok(build_wanted(config, strlen(config), &wanted, &program, &error), &error);
    return program;
}

static gb_program *target_of(const char *config, uint32_t layers) {
    return wanted_of(config, layers, false);
}

static gb_program *head_of(const char *config, uint32_t layers) {
    return wanted_of(config, layers, true);
}

static size_t count_ops(const gb_program *program, gb_op op) {
    return count_results(program, op, GB_DIM_N) + count_results(program, op, GB_DIM_B);
}

/* Its only node of that op. */
static const gb_node *node_of(const gb_program *program, gb_op op) {
    assert_int_equal(count_ops(program, op), 1);
    uint32_t at = 0;
    while (program->nodes[at].op != op)
        at++;
    return &program->nodes[at];
}

static void assert_hidden_state(const gb_program *program) {
    const uint32_t at = gb_hidden_state(program);
    assert_int_not_equal(at, UINT32_MAX);
    const gb_state *hidden = &program->states[at];
    char text[GB_TYPE_TEXT];
    assert_string_equal(hidden->name, "hidden");
    assert_int_equal(hidden->kind, GB_STATE_CACHE);
    assert_string_equal(gb_type_text(&hidden->type, text), "bf16[600,1,32]");
}

/* All that takes in rows comes after the last norm, whose results are kept. */
static void keeps_hidden_states_of_all_tokens(void **unused) {
    (void)unused;
    static const char *const configs[] = {EXPERTS, DENSE, NEXT};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        for (uint32_t layers = 3; layers <= 4; layers++) { /* the last one of either kind */
            gb_program *target = target_of(configs[i], layers), *plain = graph_of(configs[i], layers);
            assert_hidden_state(target);
            assert_false(gb_is_draft_head(target));
            assert_int_equal(target->state_count, plain->state_count + 1);
            assert_int_equal(target->constant_count, plain->constant_count);
            assert_int_equal(count_ops(target, GB_OP_GATHER_ROWS), 1);
            assert_int_equal(count_results(target, GB_OP_LINEAR, GB_DIM_B), 1);
            assert_int_equal(count_results(target, GB_OP_RMS_NORM, GB_DIM_B), 0);
            const gb_node *keep = node_of(target, GB_OP_KEEP_HIDDEN);
            assert_int_equal(node_of(target, GB_OP_GATHER_ROWS)->operands[0], keep->results[0]);
            assert_int_equal(count_ops(plain, GB_OP_KEEP_HIDDEN), 0);
            assert_int_equal(gb_hidden_state(plain), UINT32_MAX);
            gb_program_destroy(target);
            gb_program_destroy(plain);
        }
}

static void assert_constant(const gb_program *program, const char *name, const char *type) {
    char text[GB_TYPE_TEXT];
    const gb_constant *constant = find_constant(program, name);
    if (!constant)
        fail_msg("there is no constant %s", name);
    else
        assert_string_equal(gb_type_text(&constant->type, text), type);
}

/* What is not the head's own has the names that the target has for it, so that a file has it once. */
static void assert_shares_the_rest(const char *config, size_t shared) {
    gb_program *target = target_of(config, 0), *head = head_of(config, 0);
    size_t own = 0;
    for (uint32_t i = 0; i < head->constant_count; i++) {
        const gb_constant *constant = &head->constants[i];
        const bool is_own = strncmp(constant->name, "mtp.", 4) == 0;
        const gb_constant *same = find_constant(target, constant->name);
        own += is_own;
        assert_true(is_own ? !same : same && gb_type_equal(&same->type, &constant->type));
    }
    assert_int_equal(head->constant_count - own, shared);
    gb_program_destroy(target);
    gb_program_destroy(head);
}

static void a_head_shares_table_rotary_and_head_of_tokens(void **unused) {
    (void)unused;
    assert_shares_the_rest(EXPERTS, 3);
    assert_shares_the_rest(NEXT, 3);
    assert_shares_the_rest(DENSE, 2); /* the head is the table */
}

static void assert_is_head(const gb_program *head) {
    assert_true(gb_is_draft_head(head));
    assert_hidden_state(head);
    assert_int_equal(head->state_count, 3); /* with one layer's keys and values */
    assert_int_equal(count_ops(head, GB_OP_ATTENTION), 1);
    assert_int_equal(count_ops(head, GB_OP_GATED_DELTA), 0);
    assert_int_equal(count_ops(head, GB_OP_RMS_NORM), 7); /* of both inputs, layer, query, key; the last */
    assert_int_equal(count_results(head, GB_OP_LINEAR, GB_DIM_B), 1);
    assert_constant(head, "mtp.fc.weight", "bf16[32,64]");
    assert_constant(head, "mtp.pre_fc_norm_embedding.weight", "bf16[32]");
    assert_constant(head, "mtp.pre_fc_norm_hidden.weight", "bf16[32]");
    assert_constant(head, "mtp.norm.weight", "bf16[32]");
    assert_constant(head, "mtp.layers.0.self_attn.q_proj.weight", "bf16[64,32]");
}

/* The norm that a value comes from, by its weight's name. */
static void assert_is_norm(const gb_program *program, gb_ref value, const char *weight, gb_op of) {
    uint32_t at = 0, from = 0;
    while (program->nodes[at].results[0] != value)
        at++;
    const gb_node *norm = &program->nodes[at];
    assert_int_equal(norm->op, GB_OP_RMS_NORM);
    assert_true(gb_node_float(norm, GB_ATTRIBUTE_WEIGHT_OFFSET) == 1);
    assert_string_equal(program->constants[program->values[norm->operands[1]].index].name, weight);
    while (program->nodes[from].results[0] != norm->operands[0])
        from++;
    assert_int_equal(program->nodes[from].op, of);
}

static void a_head_takes_in_a_token_and_what_was_before_it(void **unused) {
    (void)unused;
    static const char *const configs[] = {EXPERTS, DENSE, NEXT};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        gb_program *head = head_of(configs[i], 1);
        assert_is_head(head);
        const gb_node *both = node_of(head, GB_OP_CONCATENATE);
        assert_is_norm(head, both->operands[0], "mtp.pre_fc_norm_embedding.weight", GB_OP_EMBEDDING);
        assert_is_norm(head, both->operands[1], "mtp.pre_fc_norm_hidden.weight", GB_OP_LOAD_HIDDEN);
        const gb_node *keep = node_of(head, GB_OP_KEEP_HIDDEN);
        assert_is_norm(head, keep->operands[0], "mtp.norm.weight", GB_OP_ADD);
        assert_int_equal(keep->operands[3], node_of(head, GB_OP_LOAD_HIDDEN)->operands[2]);
        assert_int_equal(node_of(head, GB_OP_GATHER_ROWS)->operands[0], keep->results[0]);
        gb_program_destroy(head);
    }
}

static void a_head_has_the_models_kind_of_mlp(void **unused) {
    (void)unused;
    gb_program *experts = head_of(EXPERTS, 0), *dense = head_of(DENSE, 0), *next = head_of(NEXT, 0);
    assert_constant(experts, "mtp.layers.0.mlp.experts.gate_up_proj", "bf16[6,20,32]");
    assert_constant(next, "mtp.layers.0.mlp.experts.gate_up_proj", "bf16[6,20,32]");
    assert_constant(dense, "mtp.layers.0.mlp.up_proj.weight", "bf16[40,32]");
    gb_program_destroy(experts);
    gb_program_destroy(dense);
    gb_program_destroy(next);
}

/* ---- GGUF ---------------------------------------------------------------------------------------------- */

/* The layer past the last has all that a head needs, under its own names. */
static void a_gguf_has_a_head(void **unused) {
    (void)unused;
    static const char *const names[] = {"qwen_dense", "qwen_experts"};
    for (size_t i = 0; i < 2; i++) {
        char path[512];
        gb_source source;
        gumbel_error error;
        const gb_model *model = NULL;
        const gb_model_options options = {0};
        snprintf(path, sizeof path, "%s/export/gguf/%s.gguf", test_data_folder, names[i]);
        assert_ok(gb_source_open(path, false, &source, &error), &error);
        gb_config root = gb_config_root(source.config);
        gb_weights *weights = gb_weights_create(source.checkpoint, GB_DTYPE_NONE, 0);
        gb_builder *builder = gb_builder_create();
        assert_ok(gb_model_find(&root, &model, &error), &error);
        const gumbel_status status = model->build_head(&root, &options, builder, weights, &error);
        if (gb_config_integer(&root, "mtp_num_hidden_layers", 0, 0, 1) == 1)
            assert_ok(status, &error);
        else
            assert_fails(status, GUMBEL_ERROR_ARGUMENT, &error, "no draft head");
        for (size_t t = 0; t < gb_checkpoint_count(source.checkpoint) && status == GUMBEL_OK; t++)
            if (strncmp(gb_checkpoint_at(source.checkpoint, t)->name, "mtp.", 4) == 0)
                assert_true(gb_weights_uses(weights, t));
        gb_builder_destroy(builder);
        gb_weights_destroy(weights);
        gb_source_close(&source);
    }
}

/* ---- What is refused ----------------------------------------------------------------------------------- */

static void assert_refuses_head(const char *config, const gb_checkpoint *checkpoint, gumbel_status status,
                                const char *part) {
    gb_program *program = NULL;
    gumbel_error error;
    const wanted_graph wanted = {.is_head = true, .checkpoint = checkpoint};
    assert_fails(build_wanted(config, strlen(config), &wanted, &program, &error), status, &error, part);
    assert_null(program);
}

static void a_checkpoint_without_a_head_is_refused(void **unused) {
    (void)unused;
    static const float table[50 * 32];
    const test_tensor tensors[] = {
        {"model.embed_tokens.weight", "F32", 2, {50, 32}, table, sizeof table},
        {"mtp.fc.weight", "F32", 2, {32, 32}, table, sizeof(float) * 32 * 32},
    };
    for (size_t count = 1; count <= 2; count++) {
        gb_checkpoint *checkpoint = NULL;
        gumbel_error error;
        empty_temporary_directory();
        write_safetensors(temporary_path("model.safetensors"), tensors, count);
        assert_ok(gb_checkpoint_open(temporary_directory(), &checkpoint, &error), &error);
        assert_refuses_head(DENSE, checkpoint, count == 1 ? GUMBEL_ERROR_ARGUMENT : GUMBEL_ERROR_FORMAT,
                            count == 1 ? "the checkpoint has no draft head: no tensor mtp.fc.weight"
                                       : "mtp.pre_fc_norm_embedding.weight");
        gb_checkpoint_close(checkpoint);
    }
}

static void other_heads_are_refused(void **unused) {
    (void)unused;
    assert_refuses_head("{\"model_type\":\"qwen3_next\",\"mtp_num_hidden_layers\":2," EXPERT_SIZES "}", NULL,
                        GUMBEL_ERROR_UNSUPPORTED,
                        "mtp_num_hidden_layers: a draft head of 2 layers is not supported");
    assert_refuses_head("{\"model_type\":\"qwen3_5_moe\",\"text_config\":{"
                        "\"mtp_use_dedicated_embeddings\":true," EXPERT_SIZES "}}",
                        NULL, GUMBEL_ERROR_UNSUPPORTED, "text_config.mtp_use_dedicated_embeddings");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_hidden_states_of_all_tokens),
        cmocka_unit_test(a_head_shares_table_rotary_and_head_of_tokens),
        cmocka_unit_test(a_head_takes_in_a_token_and_what_was_before_it),
        cmocka_unit_test(a_head_has_the_models_kind_of_mlp),
        cmocka_unit_test(a_gguf_has_a_head),
        cmocka_unit_test(a_checkpoint_without_a_head_is_refused),
        cmocka_unit_test(other_heads_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
