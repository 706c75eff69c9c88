/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts in every form that a checkpoint of floats may have them in: gate and up in one tensor as
 * transformers has them, in stacks apart as mlx-lm does, or one by one as most were released. All give the
 * same logits.
 */
#include "base/memory.h"
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/checkpoints/safetensors_writer.h"
#include "support/programs/model_logits.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { VOCABULARY = 40, GREEDY = 4, MAX_TENSORS = 256, NAME = 128 };

/* A model with experts, and how mlx-lm names its stacks, and those of experts without gates. */
typedef struct expert_model {
    const char *config, *stack;
    const char *up, *down;
    const char *one_gate_up, *one_down; /* tensors of all experts; NULL: they are called as the constants */
} expert_model;

static const expert_model MODELS[] = {
    {"{\"model_type\":\"qwen3_moe\",\"dtype\":\"float32\",\"vocab_size\":40,\"hidden_size\":64,"
     "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":32,"
     "\"max_position_embeddings\":100,\"num_experts\":5,\"num_experts_per_tok\":2,"
     "\"moe_intermediate_size\":64,\"intermediate_size\":64}",
     "switch_mlp.", NULL, "down_proj", NULL, NULL},
    {"{\"model_type\":\"gemma4_text\",\"dtype\":\"float32\",\"vocab_size\":40,\"hidden_size\":64,"
     "\"intermediate_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":2,\"num_key_value_heads\":1,"
     "\"head_dim\":32,\"global_head_dim\":32,\"hidden_size_per_layer_input\":0,\"max_position_embeddings\":"
     "100,"
     "\"enable_moe_block\":true,\"num_experts\":5,\"top_k_experts\":2,\"moe_intermediate_size\":64}",
     "experts.switch_glu.", NULL, "down_proj", NULL, NULL},
    {"{\"model_type\":\"nemotron_h\",\"dtype\":\"float32\",\"vocab_size\":40,\"hidden_size\":64,"
     "\"hybrid_override_pattern\":\"ME*E\",\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":"
     "32,"
     "\"mamba_num_heads\":4,\"mamba_head_dim\":8,\"ssm_state_size\":8,\"n_groups\":2,"
     "\"max_position_embeddings\":100,\"n_routed_experts\":5,\"num_experts_per_tok\":2,"
     "\"moe_intermediate_size\":64,\"moe_shared_expert_intermediate_size\":64}",
     "switch_mlp.", "fc1", "fc2", NULL, NULL},
    {"{\"model_type\":\"granitemoehybrid\",\"dtype\":\"float32\",\"vocab_size\":40,\"hidden_size\":64,"
     "\"num_hidden_layers\":2,\"layer_types\":[\"mamba\",\"attention\"],\"position_embedding_type\":\"nope\","
     "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"mamba_n_heads\":4,\"mamba_d_state\":8,"
     "\"max_position_embeddings\":100,\"num_local_experts\":5,\"num_experts_per_tok\":2,"
     "\"intermediate_size\":64,\"shared_intermediate_size\":64}",
     "switch_mlp.", NULL, "down_proj", "input_linear.weight", "output_linear.weight"},
};
enum { MODEL_COUNT = sizeof MODELS / sizeof MODELS[0] };

typedef enum expert_form { FORM_ONE_TENSOR, FORM_STACKS, FORM_ONE_BY_ONE, FORM_COUNT } expert_form;

typedef struct tensor_list {
    test_tensor tensors[MAX_TENSORS];
    char names[MAX_TENSORS][NAME];
    void *owned[MAX_TENSORS];
    size_t count, owned_count;
    const char *skipped; /* in names */
} tensor_list;

static int start_empty(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

static void add(tensor_list *list, int32_t rank, const int64_t *dims, const void *data, size_t size) {
    assert_true(list->count + 1 < MAX_TENSORS);
    test_tensor *tensor = &list->tensors[list->count];
    *tensor = (test_tensor){
        .name = list->names[list->count], .dtype = "F32", .rank = rank, .data = data, .size = size};
    memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
    list->count += list->skipped == NULL || strstr(tensor->name, list->skipped) == NULL;
}

/* Rows first to end - 1 of each matrix of a stack, in one tensor called PREFIX STACK MATRIX.weight, or in one
 * for each expert. */
static void add_rows(tensor_list *list, const gb_constant *from, size_t prefix, const char *stack,
                     const char *matrix, int64_t first, int64_t end) {
    const int64_t *all = from->type.shape.dims;
    const int64_t dims[] = {all[0], end - first, all[2]};
    const size_t one = (size_t)(dims[1] * dims[2]);
    float *values = gb_allocate((size_t)dims[0] * one, sizeof *values);
    assert_non_null(values);
    list->owned[list->owned_count++] = values;
    for (int64_t x = 0; x < dims[0]; x++) {
        float *to = values + (size_t)x * one;
        memcpy(to, (const float *)from->data + (x * all[1] + first) * all[2], one * sizeof *to);
        if (stack)
            continue;
        snprintf(list->names[list->count], NAME, "%.*sexperts.%d.%s.weight", (int)prefix, from->name, (int)x,
                 matrix);
        add(list, 2, dims + 1, to, one * sizeof *to);
    }
    if (!stack)
        return;
    snprintf(list->names[list->count], NAME, "%.*s%s%s.weight", (int)prefix, from->name, stack, matrix);
    add(list, 3, dims, values, (size_t)dims[0] * one * sizeof *values);
}

static void add_constant(tensor_list *list, const gb_constant *from, expert_form form,
                         const expert_model *model) {
    const char *at = strstr(from->name, "experts.");
    const int64_t *dims = from->type.shape.dims;
    const char *own = form == FORM_STACKS ? model->stack : NULL;
    if (form == FORM_ONE_TENSOR && at && model->one_down && !strstr(at, ".weight")) {
        snprintf(list->names[list->count], NAME, "%.*s%s", (int)(at - from->name), from->name,
                 strstr(at, "gate_up_proj") ? model->one_gate_up : model->one_down);
        add(list, from->type.shape.rank, dims, from->data, (size_t)from->size);
        return;
    }
    if (form == FORM_ONE_TENSOR || !at || !strstr(at, "_proj") || strstr(at, ".weight")) {
        snprintf(list->names[list->count], NAME, "%s", from->name);
        add(list, from->type.shape.rank, dims, from->data, (size_t)from->size);
        return;
    }
    const size_t prefix = (size_t)(at - from->name);
    if (strstr(at, "gate_up_proj")) {
        add_rows(list, from, prefix, own, "gate_proj", 0, dims[1] / 2);
        add_rows(list, from, prefix, own, "up_proj", dims[1] / 2, dims[1]);
    } else if (strstr(at, "up_proj")) {
        add_rows(list, from, prefix, own, own ? model->up : "up_proj", 0, dims[1]);
    } else {
        add_rows(list, from, prefix, own, own ? model->down : "down_proj", 0, dims[1]);
    }
}

/* checkpoint/model.safetensors with random weights in that form. */
static void write_form(const expert_model *model, expert_form form, const char *skipped) {
    static tensor_list list;
    gb_program *program = NULL;
    gumbel_error error;
    const gumbel_export_options options = {.size = sizeof options, .random_weights = true, .random_seed = 5};
    list = (tensor_list){.skipped = skipped};
    write_text(temporary_path("checkpoint/config.json"), model->config);
    assert_ok(gumbel_export(temporary_path("checkpoint/config.json"), temporary_path("random.gumbel"),
                            &options, &error),
              &error);
    assert_ok(gb_program_read(temporary_path("random.gumbel"), &program, &error), &error);
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (strchr(program->constants[i].name, '.') && strncmp(program->constants[i].name, "rotary", 6) != 0)
            add_constant(&list, &program->constants[i], form, model);
    write_safetensors(temporary_path("checkpoint/model.safetensors"), list.tensors, list.count);
    for (size_t i = 0; i < list.owned_count; i++)
        gb_free(list.owned[i]);
    gb_program_destroy(program);
}

static void agree(const gumbel_export_options *options) {
    for (size_t m = 0; m < MODEL_COUNT; m++) {
        float logits[FORM_COUNT][VOCABULARY];
        int32_t greedy[FORM_COUNT][GREEDY];
        for (int i = 0; i < FORM_COUNT; i++) {
            write_form(&MODELS[m], (expert_form)i, NULL);
            exported_logits(temporary_path("checkpoint"), "form.gumbel", options, VOCABULARY, logits[i],
                            greedy[i], GREEDY);
            assert_memory_equal(logits[0], logits[i], sizeof logits[i]);
            assert_memory_equal(greedy[0], greedy[i], sizeof greedy[i]);
        }
        assert_true(logits[0][0] != logits[0][1]);
    }
}

static void gives_the_same_logits(void **state) {
    (void)state;
    agree(NULL);
}

static void quantizes_to_the_same(void **state) {
    (void)state;
    agree(&(gumbel_export_options){.size = sizeof(gumbel_export_options), .quantize = "int4"});
}

static void names_a_missing_expert(void **state) {
    (void)state;
    gumbel_error error;
    write_form(&MODELS[0], FORM_ONE_BY_ONE, "layers.1.mlp.experts.3.up_proj");
    assert_fails(gumbel_export(temporary_path("checkpoint"), temporary_path("no.gumbel"), NULL, &error),
                 GUMBEL_ERROR_FORMAT, &error,
                 "tensor model.layers.1.mlp.experts.3.up_proj.weight is missing, expected shape [64, 64]");
    write_form(&MODELS[0], FORM_ONE_BY_ONE, "layers.1.mlp.experts.0.");
    assert_fails(gumbel_export(temporary_path("checkpoint"), temporary_path("no.gumbel"), NULL, &error),
                 GUMBEL_ERROR_FORMAT, &error, "model.layers.1.mlp.experts.gate_up_proj is missing");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gives_the_same_logits, start_empty),
        cmocka_unit_test_setup(quantizes_to_the_same, start_empty),
        cmocka_unit_test_setup(names_a_missing_expert, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
