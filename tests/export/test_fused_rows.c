/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices that a checkpoint has above each other in one tensor: taken apart they give the logits that they
 * give where each has a tensor of its own, quantized at export or not.
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

enum { VOCABULARY = 40, GREEDY = 4, MAX_TENSORS = 64, NAME = 128, MAX_PARTS = 3, FUSED = 3 };

#define SIZES                                                                                                \
    "\"dtype\":\"float32\",\"vocab_size\":40,\"hidden_size\":64,\"intermediate_size\":96,"                   \
    "\"shared_intermediate_size\":96,\"num_hidden_layers\":2,\"num_attention_heads\":2,"                     \
    "\"num_key_value_heads\":1,\"max_position_embeddings\":100"

/* A model, its fused tensors, and the constants that are parts of each. */
typedef struct fused_model {
    const char *config;
    struct {
        const char *tensor, *parts[MAX_PARTS];
    } fused[FUSED];
} fused_model;

static const fused_model MODELS[] = {
    {"{\"model_type\":\"phi3\"," SIZES "}",
     {{"self_attn.qkv_proj.weight",
       {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"}},
      {"mlp.gate_up_proj.weight", {"mlp.gate_proj.weight", "mlp.up_proj.weight"}}}},
    {"{\"model_type\":\"granitemoehybrid\",\"num_local_experts\":0,\"position_embedding_type\":\"rope\","
     "\"layer_types\":[\"attention\",\"attention\"]," SIZES "}",
     {{"shared_mlp.input_linear.weight", {"shared_mlp.gate_proj.weight", "shared_mlp.up_proj.weight"}},
      {"shared_mlp.output_linear.weight", {"shared_mlp.down_proj.weight"}}}},
};
enum { MODEL_COUNT = sizeof MODELS / sizeof MODELS[0] };

typedef struct tensor_list {
    test_tensor tensors[MAX_TENSORS];
    char names[MAX_TENSORS][NAME];
    void *owned[MAX_TENSORS];
    size_t count;
} tensor_list;

static int start_empty(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

/* Copies the rows below those of the tensor of that name, which begins with them. */
static void add_rows(tensor_list *list, const char *name, const gb_constant *from) {
    const gb_shape *shape = &from->type.shape;
    size_t at = 0;
    while (at < list->count && strcmp(list->names[at], name) != 0)
        at++;
    assert_true(at < MAX_TENSORS);
    test_tensor *tensor = &list->tensors[at];
    if (at == list->count) {
        *tensor = (test_tensor){.name = list->names[at], .dtype = "F32", .rank = shape->rank};
        snprintf(list->names[at], NAME, "%s", name);
        memcpy(tensor->dims, shape->dims, (size_t)shape->rank * sizeof *shape->dims);
        tensor->dims[0] = 0;
        list->owned[list->count++] = gb_allocate(1 << 20, 1);
        assert_non_null(list->owned[at]);
    }
    memcpy((uint8_t *)list->owned[at] + tensor->size, from->data, (size_t)from->size);
    tensor->data = list->owned[at];
    tensor->dims[0] += shape->dims[0];
    tensor->size += (size_t)from->size;
}

/* The tensor that a constant is a part of, or its own name; or of Granite's MLP, as mlx-lm names it. */
static void name_tensor(const fused_model *model, bool is_fused, const char *constant, char name[NAME]) {
    snprintf(name, NAME, "%s", constant);
    for (size_t i = 0; i < FUSED * MAX_PARTS; i++) {
        const char *part = model->fused[i / MAX_PARTS].parts[i % MAX_PARTS];
        const char *at = part ? strstr(constant, part) : NULL;
        if (at && is_fused)
            snprintf(name + (at - constant), NAME - (size_t)(at - constant), "%s",
                     model->fused[i / MAX_PARTS].tensor);
        else if (at && strncmp(part, "shared_", 7) == 0)
            snprintf(name + (at - constant), NAME - (size_t)(at - constant), "%s", part + 7);
    }
}

/* checkpoint/model.safetensors with random weights. */
static void write_checkpoint(const fused_model *model, bool is_fused) {
    static tensor_list list;
    gb_program *program = NULL;
    gumbel_error error;
    const gumbel_export_options options = {.size = sizeof options, .random_weights = true, .random_seed = 5};
    list = (tensor_list){.count = 0};
    write_text(temporary_path("checkpoint/config.json"), model->config);
    assert_ok(gumbel_export(temporary_path("checkpoint/config.json"), temporary_path("random.gumbel"),
                            &options, &error),
              &error);
    assert_ok(gb_program_read(temporary_path("random.gumbel"), &program, &error), &error);
    for (uint32_t i = 0; i < program->constant_count; i++) {
        char name[NAME];
        name_tensor(model, is_fused, program->constants[i].name, name);
        if (strchr(name, '.'))
            add_rows(&list, name, &program->constants[i]);
    }
    write_safetensors(temporary_path("checkpoint/model.safetensors"), list.tensors, list.count);
    for (size_t i = 0; i < list.count; i++)
        gb_free(list.owned[i]);
    gb_program_destroy(program);
}

static void agree(const fused_model *model, const char *recipe) {
    float logits[2][VOCABULARY];
    int32_t greedy[2][GREEDY];
    const gumbel_export_options options = {.size = sizeof options, .quantize = recipe};
    for (int i = 0; i < 2; i++) {
        write_checkpoint(model, i == 1);
        exported_logits(temporary_path("checkpoint"), "form.gumbel", &options, VOCABULARY, logits[i],
                        greedy[i], GREEDY);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    assert_memory_equal(greedy[0], greedy[1], sizeof greedy[0]);
    assert_true(logits[0][0] != logits[0][1]);
}

static void agrees_with_matrices_apart(void **state) {
    (void)state;
    for (size_t m = 0; m < MODEL_COUNT; m++) {
        agree(&MODELS[m], NULL);
        agree(&MODELS[m], "int4");
        agree(&MODELS[m], "int8-affine");
    }
}

/* The random generator draws the tensor, of which each part is its rows. */
static void draws_as_the_tensor(void **state) {
    (void)state;
    for (size_t m = 0; m < MODEL_COUNT; m++) {
        float expected[VOCABULARY], found[VOCABULARY];
        const gumbel_export_options options = {
            .size = sizeof options, .random_weights = true, .random_seed = 5};
        write_checkpoint(&MODELS[m], true);
        exported_logits(temporary_path("checkpoint/config.json"), "a.gumbel", &options, VOCABULARY, expected,
                        NULL, 0);
        exported_logits(temporary_path("checkpoint"), "b.gumbel", NULL, VOCABULARY, found, NULL, 0);
        assert_memory_equal(expected, found, sizeof found);
    }
}

static void refuses_another_number_of_rows(void **state) {
    (void)state;
    gumbel_error error;
    write_checkpoint(&MODELS[0], true);
    write_text(temporary_path("checkpoint/config.json"),
               "{\"model_type\":\"phi3\",\"vocab_size\":40,\"hidden_size\":64,\"intermediate_size\":96,"
               "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"max_position_embeddings\":100}");
    assert_fails(gumbel_export(temporary_path("checkpoint"), temporary_path("no.gumbel"), NULL, &error),
                 GUMBEL_ERROR_FORMAT, &error, "self_attn.qkv_proj.weight");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(agrees_with_matrices_apart, start_empty),
        cmocka_unit_test_setup(draws_as_the_tensor, start_empty),
        cmocka_unit_test_setup(refuses_another_number_of_rows, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
