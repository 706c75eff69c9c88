/* SPDX-License-Identifier: Apache-2.0
 *
 * Assistants of Gemma 4 as draft heads: the graph of a model that keeps hidden states for one, the graph of
 * the assistant, what it reads of the model and what does not fit it.
 */
#include "export/model_graph.h"

#include <stdio.h>

#define KINDS                                                                                                \
    "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\"]"
#define SIZES                                                                                                \
    "\"num_hidden_layers\":4,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":8,"            \
    "\"global_head_dim\":16,\"vocab_size\":50,\"sliding_window\":8,\"max_position_embeddings\":600"
#define WITHOUT_INPUTS "\"hidden_size_per_layer_input\":0,\"vocab_size_per_layer_input\":0"
#define OWN "\"hidden_size\":24,\"intermediate_size\":40," SIZES "," KINDS "," WITHOUT_INPUTS
#define ASSISTANT_OF(more, text)                                                                             \
    "{\"model_type\":\"gemma4_assistant\"," more "\"text_config\":{\"model_type\":\"gemma4_text\"," text "}" \
    "}"
#define ASSISTANT ASSISTANT_OF("\"backbone_hidden_size\":32,", OWN)

static const char DENSE[] = "{\"model_type\":\"gemma4\",\"text_config\":{\"hidden_size\":32,"
                            "\"intermediate_size\":48,\"final_logit_softcapping\":30.0," SIZES "," KINDS
                            ",\"hidden_size_per_layer_input\":0}}";
static const char SHARED[] =
    "{\"model_type\":\"gemma4_text\",\"hidden_size\":32,\"intermediate_size\":48," SIZES "," KINDS
    ",\"hidden_size_per_layer_input\":6,\"vocab_size_per_layer_input\":60,"
    "\"num_kv_shared_layers\":2}";

static gumbel_error error;

/* ---- Graphs -------------------------------------------------------------------------------------------- */

static gumbel_status build_head(const char *target, const char *assistant, uint32_t layers,
                                gb_program **program) {
    gb_config_file *file = NULL;
    json_t *json = NULL;
    *program = NULL;
    GB_TRY(gb_parse_json("assistant.json", assistant, strlen(assistant), &json, &error));
    const gumbel_status parsed = gb_config_from_json("assistant.json", json, &file, &error);
    json_decref(json);
    GB_TRY(parsed);
    const gb_config root = gb_config_root(file);
    const wanted_graph wanted = {
        .is_head = true,
        .options = {.assistant = &root, .layers = layers, .sampler = {.kind = GB_SAMPLER_MINIMAL}}};
    const gumbel_status status = build_wanted(target, strlen(target), &wanted, program, &error);
    gb_config_close(file);
    return status;
}

static gb_program *head_of(const char *target, const char *assistant, uint32_t layers) {
    gb_program *program = NULL;
    assert_ok(build_head(target, assistant, layers, &program), &error);
    return program;
}

static gb_program *target_of(const char *config, uint32_t layers) {
    const wanted_graph wanted = {
        .options = {.keep_hidden = true, .layers = layers, .sampler = {.kind = GB_SAMPLER_MINIMAL}}};
    gb_program *program = NULL;
    assert_ok(build_wanted(config, strlen(config), &wanted, &program, &error), &error);
    return program;
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

/* The node that a value comes from. */
static const gb_node *source_of(const gb_program *program, gb_ref value) {
    uint32_t at = 0;
    while (at < program->node_count && program->nodes[at].results[0] != value)
        at++;
    assert_true(at < program->node_count);
    return &program->nodes[at];
}

static const char *weight_of(const gb_program *program, const gb_node *linear) {
    assert_int_equal(linear->op, GB_OP_LINEAR);
    return program->constants[program->values[linear->operands[1]].index].name;
}

static const gb_state *find_state(const gb_program *program, const char *name) {
    for (uint32_t i = 0; i < program->state_count; i++)
        if (strcmp(program->states[i].name, name) == 0)
            return &program->states[i];
    return NULL;
}

static void a_model_keeps_hidden_states_of_all_tokens(void **unused) {
    (void)unused;
    static const char *const configs[] = {DENSE, SHARED};
    for (size_t i = 0; i < 2; i++) {
        gb_program *target = target_of(configs[i], 0), *plain = graph_of(configs[i], 0);
        const gb_node *keep = node_of(target, GB_OP_KEEP_HIDDEN);
        assert_int_equal(source_of(target, keep->operands[0])->op, GB_OP_RMS_NORM);
        assert_int_equal(gb_node_int(keep, GB_ATTRIBUTE_START), 0);
        assert_int_equal(node_of(target, GB_OP_GATHER_ROWS)->operands[0], keep->results[0]);
        assert_int_equal(count_results(target, GB_OP_LINEAR, GB_DIM_B), 1);
        assert_int_equal(target->constant_count, plain->constant_count);
        assert_int_equal(target->state_count, plain->state_count + 1);
        assert_int_equal(count_ops(plain, GB_OP_KEEP_HIDDEN), 0);
        gb_program_destroy(target);
        gb_program_destroy(plain);
    }
}

/* pre_projection [embedding, hidden before]; the norm's result becomes logits, and a hidden state by
 * post_projection. */
static void an_assistant_takes_in_a_token_and_what_was_before_it(void **unused) {
    (void)unused;
    gb_program *head = head_of(DENSE, ASSISTANT, 0);
    const gb_node *both = node_of(head, GB_OP_CONCATENATE), *load = node_of(head, GB_OP_LOAD_HIDDEN),
                  *keep = node_of(head, GB_OP_KEEP_HIDDEN), *embedding = node_of(head, GB_OP_EMBEDDING);
    assert_true(gb_is_draft_head(head));
    assert_int_equal(both->operands[0], embedding->results[0]);
    assert_int_equal(both->operands[1], load->results[0]);
    assert_int_equal(gb_node_int(load, GB_ATTRIBUTE_BEFORE), 1);
    assert_int_equal(gb_node_int(keep, GB_ATTRIBUTE_START), 0);
    const gb_node *projected = source_of(head, keep->operands[0]);
    assert_string_equal(weight_of(head, projected), "assistant.post_projection.weight");
    const gb_ref norm = projected->operands[0];
    assert_int_equal(source_of(head, norm)->op, GB_OP_RMS_NORM);
    assert_int_equal(node_of(head, GB_OP_GATHER_ROWS)->operands[0], norm);
    assert_int_equal(count_results(head, GB_OP_LINEAR, GB_DIM_B), 1);
    assert_int_equal(count_ops(head, GB_OP_SOFT_CAP), 0);
    gb_program_destroy(head);
}

/* Every layer attends by the input last, which also turns its queries; nothing is stored but hidden states.
 */
static void an_assistant_reads_the_models_keys(void **unused) {
    (void)unused;
    gb_program *head = head_of(DENSE, ASSISTANT, 0);
    const gb_ref last = gb_program_input(head, GB_ROLE_LAST);
    assert_int_not_equal(last, GB_NO_VALUE);
    assert_int_equal(count_ops(head, GB_OP_ATTENTION), 0);
    assert_int_equal(count_ops(head, GB_OP_ATTEND), 4);
    assert_int_equal(count_ops(head, GB_OP_ROPE), 4);
    for (uint32_t i = 0; i < head->node_count; i++) {
        const gb_node *node = &head->nodes[i];
        if (node->op != GB_OP_ROPE && node->op != GB_OP_ATTEND)
            continue;
        assert_int_equal(node->operands[1], last);
        assert_int_equal(gb_node_int(node, GB_ATTRIBUTE_START), node->op == GB_OP_ROPE);
    }
    gb_program_destroy(head);
}

/* States are the model's by name and form, of the last layers that have keys of their own. */
static void assert_reads(const char *config, uint32_t layers, const char *const *names, size_t count) {
    gb_program *target = target_of(config, layers), *head = head_of(config, ASSISTANT, layers);
    char own[GB_TYPE_TEXT], expected[GB_TYPE_TEXT];
    assert_int_equal(head->state_count, count);
    for (size_t i = 0; i < count; i++) {
        const gb_state *read = find_state(head, names[i]), *stored = find_state(target, names[i]);
        if (!read || !stored)
            fail_msg("there is no state %s", names[i]);
        assert_string_equal(gb_type_text(&read->type, own), gb_type_text(&stored->type, expected));
        assert_int_equal(read->kind, stored->kind);
        assert_int_equal(read->window, stored->window);
    }
    gb_program_destroy(target);
    gb_program_destroy(head);
}

static void an_assistant_reads_the_last_layers_with_keys(void **unused) {
    (void)unused;
    static const char *const whole[] = {"hidden", "layers.2.keys", "layers.2.values", "layers.3.keys",
                                        "layers.3.values"};
    static const char *const first[] = {"hidden", "layers.0.keys", "layers.0.values", "layers.1.keys",
                                        "layers.1.values"};
    assert_reads(DENSE, 0, whole, 5);
    assert_reads(SHARED, 0, first, 5);
    assert_reads(DENSE, 2, first, 5);
}

static void an_assistant_shares_the_table_only(void **unused) {
    (void)unused;
    gb_program *target = target_of(DENSE, 0), *head = head_of(DENSE, ASSISTANT, 0);
    size_t shared = 0;
    for (uint32_t i = 0; i < head->constant_count; i++) {
        const gb_constant *constant = &head->constants[i], *same = find_constant(target, constant->name);
        const bool is_own = strncmp(constant->name, "assistant.", 10) == 0;
        shared += !is_own;
        assert_true(is_own ? !same : same && gb_type_equal(&same->type, &constant->type));
    }
    assert_int_equal(shared, 1);
    assert_non_null(find_constant(head, "assistant.model.embed_tokens.weight"));
    assert_non_null(find_constant(head, "assistant.model.layers.3.layer_scalar"));
    assert_non_null(find_constant(head, "assistant.rotary.full_attention"));
    assert_null(find_constant(head, "assistant.model.layers.0.self_attn.k_proj.weight"));
    gb_program_destroy(target);
    gb_program_destroy(head);
}

static void an_assistant_may_have_a_head_of_tokens(void **unused) {
    (void)unused;
    gb_program *head =
        head_of(DENSE, ASSISTANT_OF("\"tie_word_embeddings\":false,\"backbone_hidden_size\":32,", OWN), 0);
    assert_non_null(find_constant(head, "assistant.lm_head.weight"));
    assert_null(find_constant(head, "assistant.model.embed_tokens.weight"));
    gb_program_destroy(head);
}

/* ---- What is refused ----------------------------------------------------------------------------------- */

static void assert_refuses(const char *assistant, uint32_t layers, gumbel_status status, const char *part) {
    gb_program *program = NULL;
    assert_fails(build_head(DENSE, assistant, layers, &program), status, &error, part);
    assert_null(program);
}

static void assistants_of_other_models_are_refused(void **unused) {
    (void)unused;
    static const char *const cases[][2] = {
        {ASSISTANT_OF("\"backbone_hidden_size\":48,", OWN),
         "assistant.json: backbone_hidden_size: 48, expected the 32 of the model's hidden_size"},
        {ASSISTANT_OF("", OWN), "backbone_hidden_size: 1536, expected the 32"},
        {ASSISTANT_OF("\"backbone_hidden_size\":32,",
                      "\"num_hidden_layers\":1,\"vocab_size\":60," WITHOUT_INPUTS),
         "text_config.vocab_size: 60, expected the 50 of the model's vocab_size"},
        {ASSISTANT_OF("\"backbone_hidden_size\":32,",
                      "\"num_hidden_layers\":1,\"vocab_size\":50,\"global_head_dim\":32," WITHOUT_INPUTS),
         "text_config.global_head_dim: 32, expected the 16"},
        {ASSISTANT_OF("\"backbone_hidden_size\":32,",
                      "\"num_hidden_layers\":2,\"vocab_size\":50,\"head_dim\":16," WITHOUT_INPUTS),
         "text_config.head_dim: 16, expected the 8"},
        {ASSISTANT_OF("\"backbone_hidden_size\":32,",
                      "\"num_hidden_layers\":2,\"vocab_size\":50,\"head_dim\":8,\"global_head_dim\":16,"
                      "\"num_key_value_heads\":2," WITHOUT_INPUTS),
         "text_config.num_key_value_heads: 2, expected the 1"},
        {SHARED, "model_type: \"gemma4_text\", expected \"gemma4_assistant\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refuses(cases[i][0], 0, GUMBEL_ERROR_ARGUMENT, cases[i][1]);
    assert_refuses(ASSISTANT, 1, GUMBEL_ERROR_ARGUMENT, "layer_types: the assistant has layers of");
    assert_refuses(ASSISTANT_OF("\"backbone_hidden_size\":32,", OWN ",\"num_kv_shared_layers\":2"), 0,
                   GUMBEL_ERROR_UNSUPPORTED, "num_kv_shared_layers: 2, expected all the 4");
}

static void models_without_assistants_refuse_one(void **unused) {
    (void)unused;
    static const char qwen[] = "{\"model_type\":\"qwen3_5_text\"}";
    gb_program *program = NULL;
    const wanted_graph wanted = {.is_head = true};
    assert_fails(build_head(qwen, ASSISTANT, 0, &program), GUMBEL_ERROR_ARGUMENT, &error,
                 "assistant: this model has none");
    assert_fails(build_wanted(DENSE, strlen(DENSE), &wanted, &program, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "draft_head: gemma4 has no draft head that gumbel knows");
}

/* One may leave another that is valid; none crashes, and errors say something. */
static void survives_bit_flips(void **unused) {
    (void)unused;
    char text[sizeof ASSISTANT] = ASSISTANT;
    for (size_t bit = 0; bit < (sizeof text - 1) * 8; bit++) {
        gb_program *program = NULL;
        text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
        const gumbel_status status = build_head(SHARED, text, 0, &program);
        assert_true(status == GUMBEL_OK || strlen(error.message) > 0);
        gb_program_destroy(program);
        text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_keeps_hidden_states_of_all_tokens),
        cmocka_unit_test(an_assistant_takes_in_a_token_and_what_was_before_it),
        cmocka_unit_test(an_assistant_reads_the_models_keys),
        cmocka_unit_test(an_assistant_reads_the_last_layers_with_keys),
        cmocka_unit_test(an_assistant_shares_the_table_only),
        cmocka_unit_test(an_assistant_may_have_a_head_of_tokens),
        cmocka_unit_test(assistants_of_other_models_are_refused),
        cmocka_unit_test(models_without_assistants_refuse_one),
        cmocka_unit_test(survives_bit_flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
