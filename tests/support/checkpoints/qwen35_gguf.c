/* SPDX-License-Identifier: Apache-2.0 */
#include "support/checkpoints/qwen35_gguf.h"

#include "export/checkpoint/ggml_types.h"
#include "export/gguf/architecture.h"
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char CONFIG[] =
    "{\"model_type\":\"qwen3_5_moe_text\",\"dtype\":\"float32\",\"vocab_size\":40,\"hidden_size\":256,"
    "\"num_hidden_layers\":2,\"full_attention_interval\":2,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"head_dim\":128,\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,"
    "\"linear_key_head_dim\":64,\"linear_value_head_dim\":64,\"linear_conv_kernel_dim\":4,"
    "\"num_experts\":3,\"num_experts_per_tok\":2,\"moe_intermediate_size\":256,"
    "\"shared_expert_intermediate_size\":256,\"max_position_embeddings\":100,\"rms_norm_eps\":1e-06,"
    "\"tie_word_embeddings\":false,\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":12345.0,"
    "\"partial_rotary_factor\":0.25}}";

gb_program *random_qwen35(void) {
    gb_program *program = NULL;
    gumbel_error error;
    gumbel_export_options options = {.size = sizeof options, .random_weights = true, .random_seed = 5};
    const char *path = temporary_path("random.gumbel");
    write_text(temporary_path("config.json"), CONFIG);
    assert_ok(gumbel_export(temporary_path("config.json"), path, &options, &error), &error);
    assert_ok(gb_program_read(path, &program, &error), &error);
    return program;
}

void add_qwen35_settings(gguf_writer *writer, const char *skipped) {
    static const struct {
        const char *key;
        uint32_t value;
    } integers[] = {{"qwen35moe.block_count", 2},
                    {"qwen35moe.context_length", 100},
                    {"qwen35moe.embedding_length", 256},
                    {"qwen35moe.attention.head_count", 2},
                    {"qwen35moe.attention.head_count_kv", 1},
                    {"qwen35moe.attention.key_length", 128},
                    {"qwen35moe.attention.value_length", 128},
                    {"qwen35moe.rope.dimension_count", 32},
                    {"qwen35moe.full_attention_interval", 2},
                    {"qwen35moe.ssm.conv_kernel", 4},
                    {"qwen35moe.ssm.state_size", 64},
                    {"qwen35moe.ssm.group_count", 2},
                    {"qwen35moe.ssm.time_step_rank", 4},
                    {"qwen35moe.ssm.inner_size", 256},
                    {"qwen35moe.expert_count", 3},
                    {"qwen35moe.expert_used_count", 2},
                    {"qwen35moe.expert_feed_forward_length", 256},
                    {"qwen35moe.expert_shared_feed_forward_length", 256}};
    skipped = skipped ? skipped : "";
    gguf_add_text(writer, "general.architecture", "qwen35moe");
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        if (strcmp(skipped, integers[i].key) != 0)
            gguf_add_u32(writer, integers[i].key, integers[i].value);
    if (strcmp(skipped, "qwen35moe.rope.freq_base") != 0)
        gguf_add_f32(writer, "qwen35moe.rope.freq_base", 12345.0f);
    if (strcmp(skipped, "qwen35moe.attention.layer_norm_rms_epsilon") != 0)
        gguf_add_f32(writer, "qwen35moe.attention.layer_norm_rms_epsilon", 1e-6f);
}

/* Copies dims but for those of 1, which the converter drops. */
static void copy_dims(const gb_shape *shape, qwen35_tensor *tensor) {
    for (int32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] != 1)
            tensor->dims[tensor->rank++] = shape->dims[i];
}

bool get_qwen35_tensor(const gb_program *program, uint32_t constant, qwen35_tensor *tensor) {
    const gb_constant *from = &program->constants[constant];
    char name[GB_GGUF_NAME];
    const gb_gguf_name *pair = gb_gguf_from_checkpoint(gb_gguf_qwen35moe.names, from->name, name);
    *tensor = (qwen35_tensor){.data = from->data, .size = from->size};
    if (!pair)
        return false;
    snprintf(tensor->name, sizeof tensor->name, "%.120s", name);
    copy_dims(&from->type.shape, tensor);
    if (!pair->is_minus_exp)
        return true;
    assert_true(from->size <= sizeof tensor->rates);
    memcpy(tensor->rates, from->data, from->size);
    for (size_t i = 0; i < from->size / sizeof(float); i++)
        tensor->rates[i] = -expf(tensor->rates[i]);
    tensor->data = tensor->rates;
    return true;
}

void add_qwen35_tensors(gguf_writer *writer, const gb_program *program, const char *skipped) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        qwen35_tensor tensor;
        if (get_qwen35_tensor(program, i, &tensor) && (!skipped || strcmp(skipped, tensor.name) != 0))
            gguf_add_tensor(writer, tensor.name, GB_GGML_F32, tensor.rank, tensor.dims, tensor.data,
                            tensor.size);
    }
}

static bool is_matrix(const qwen35_tensor *tensor) {
    return tensor->rank >= 2 && tensor->dims[tensor->rank - 1] % 256 == 0;
}

size_t write_qwen35_blocks(const gb_program *program, gb_block_type type, bool as_numbers, const char *path) {
    size_t count = 0;
    gguf_writer w = {.version = 3};
    add_qwen35_settings(&w, NULL);
    for (uint32_t i = 0; i < program->constant_count; i++) {
        qwen35_tensor tensor;
        if (!get_qwen35_tensor(program, i, &tensor))
            continue;
        if (is_matrix(&tensor)) {
            gguf_add_blocks(&w, tensor.name, type, tensor.rank, tensor.dims, i, as_numbers);
            count++;
        } else {
            gguf_add_tensor(&w, tensor.name, 0, tensor.rank, tensor.dims, tensor.data, tensor.size);
        }
    }
    gguf_write(&w, path);
    return count;
}
