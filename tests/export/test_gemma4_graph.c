/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph that a Gemma 4 configuration becomes: where rows are gathered, what a layer holds, and that no
 * damaged configuration gets further than an error.
 */
#include "export/models/model.h"
#include "support/assertions.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char CONFIG[] =
    "{\"model_type\":\"gemma4\",\"text_config\":{\"hidden_size\":32,\"intermediate_size\":48,"
    "\"num_hidden_layers\":3,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":8,"
    "\"vocab_size\":50,\"sliding_window\":8,\"hidden_size_per_layer_input\":0,\"attention_k_eq_v\":true,"
    "\"final_logit_softcapping\":30.0,\"rms_norm_eps\":1e-5,\"per_layer_config\":{\"2\":{\"head_dim\":32}},"
    "\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"full_attention\"],"
    "\"rope_parameters\":{\"sliding_attention\":{\"rope_theta\":10000.0},\"full_attention\":"
    "{\"rope_type\":\"proportional\",\"rope_theta\":1e6,\"partial_rotary_factor\":0.25}}}}";

/* Builds the graph of the config.json at path; no weights are made. */
static gumbel_status build(const char *path, gb_program **program, gumbel_error *error) {
    gb_config_file *file = NULL;
    const gb_model *model = NULL;
    *program = NULL;
    GB_TRY(gb_config_open(path, &file, error));
    gb_config root = gb_config_root(file);
    gb_weights *weights = gb_weights_create(NULL, GB_BF16, 1);
    gb_builder *builder = gb_builder_create();
    gb_model_options options = {.sampler = {.kind = GB_SAMPLER_MINIMAL}};
    gumbel_status status = gb_model_find(&root, &model, error);
    if (status == GUMBEL_OK)
        status = model->build(&root, &options, builder, weights, error);
    if (status == GUMBEL_OK) {
        gb_builder_metadata(builder)->architecture = model->name;
        status = gb_builder_finish(builder, program, error);
    }
    gb_builder_destroy(builder);
    gb_weights_destroy(weights);
    gb_config_close(file);
    return status;
}

static gb_program *build_config(void) {
    gb_program *program = NULL;
    gumbel_error error;
    const char *path = temporary_path("config.json");
    write_text(path, CONFIG);
    assert_ok(build(path, &program, &error), &error);
    return program;
}

/* How many results of that op have their first dim equal to dim. */
static size_t count_results(const gb_program *program, gb_op op, int64_t dim) {
    size_t count = 0;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const gb_node *node = &program->nodes[i];
        if (node->op == op)
            count += program->values[node->results[0]].type.shape.dims[0] == dim;
    }
    return count;
}

static void runs_the_end_on_gathered_rows_alone(void **state) {
    (void)state;
    gb_program *program = build_config();
    assert_int_equal(count_results(program, GB_OP_GATHER_ROWS, GB_DIM_B), 2);
    assert_int_equal(count_results(program, GB_OP_ATTENTION, GB_DIM_N), 3);
    /* The last layer's o_proj and MLP, and the head. */
    assert_int_equal(count_results(program, GB_OP_LINEAR, GB_DIM_B), 5);
    /* Two layers of seven matrices; q_proj and k_proj of the last, which has no v_proj. */
    assert_int_equal(count_results(program, GB_OP_LINEAR, GB_DIM_N), 2 * 7 + 2);
    assert_int_equal(count_results(program, GB_OP_SOFT_CAP, GB_DIM_B), 1);
    gb_program_destroy(program);
}

static const gb_constant *find_constant(const gb_program *program, const char *name) {
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (strcmp(program->constants[i].name, name) == 0)
            return &program->constants[i];
    return NULL;
}

static void has_the_released_names_and_shapes(void **state) {
    (void)state;
    gb_program *program = build_config();
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

/* A flipped bit may leave another valid configuration; it never crashes, and errors name the file. */
static void survives_every_bit_flip(void **state) {
    (void)state;
    char text[sizeof CONFIG];
    memcpy(text, CONFIG, sizeof text);
    const char *path = temporary_path("config.json");
    for (size_t bit = 0; bit < (sizeof CONFIG - 1) * 8; bit++) {
        gb_program *program = NULL;
        gumbel_error error;
        text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
        write_file(path, text, sizeof CONFIG - 1);
        gumbel_status status = build(path, &program, &error);
        assert_true(status == GUMBEL_OK || strlen(error.message) > 0);
        gb_program_destroy(program);
        text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_the_end_on_gathered_rows_alone),
        cmocka_unit_test(has_the_released_names_and_shapes),
        cmocka_unit_test(survives_every_bit_flip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
