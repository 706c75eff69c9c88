/* SPDX-License-Identifier: Apache-2.0 */
#include "support/checkpoints/gemma4_gguf.h"

#include "export/checkpoint/ggml_types.h"
#include "export/gguf/architecture.h"
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/checkpoints/safetensors_writer.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LAYERS = 3, MAX_TENSORS = 128, HEAD_DIM = 16, FULL_HEAD_DIM = 32 };

/* To be formatted with the dtype, more members, and whether keys are values and the head is tied. */
static const char CONFIG[] =
    "{\"model_type\":\"gemma4_text\",\"dtype\":\"%s\",\"hidden_size\":32,\"intermediate_size\":48,"
    "\"num_hidden_layers\":3,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
    "\"num_global_key_value_heads\":1,\"head_dim\":16,\"global_head_dim\":32,\"vocab_size\":40,"
    "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"full_attention\"],"
    "\"sliding_window\":8,%s,\"final_logit_softcapping\":30.0,"
    "\"max_position_embeddings\":100,\"rms_norm_eps\":1e-06,\"attention_k_eq_v\":%s,"
    "\"tie_word_embeddings\":%s,\"rope_parameters\":{"
    "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":12345.0},"
    "\"full_attention\":{\"rope_type\":\"proportional\",\"rope_theta\":1000000.0,"
    "\"partial_rotary_factor\":0.25}}}";

gb_program *read_exported(const char *path) {
    gb_program *program = NULL;
    gumbel_error error;
    assert_ok(gb_program_read(path, &program, &error), &error);
    return program;
}

gb_program *random_gemma4(const gemma4_variant *variant) {
    char config[2048];
    gumbel_error error;
    snprintf(config, sizeof config, CONFIG, variant->dtype,
             variant->more ? variant->more : "\"hidden_size_per_layer_input\":0",
             variant->keys_are_values ? "true" : "false", variant->is_tied ? "true" : "false");
    write_text(temporary_path("checkpoint/config.json"), config);
    gumbel_export_options options = {.size = sizeof options, .random_weights = true, .random_seed = 5};
    const char *path = temporary_path("random.gumbel");
    assert_ok(gumbel_export(temporary_path("checkpoint/config.json"), path, &options, &error), &error);
    return read_exported(path);
}

static bool is_skipped(const char *skipped, const char *key) {
    const size_t length = strlen(key);
    for (const char *at = skipped; (at = strstr(at, key)); at += length)
        if ((at == skipped || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

void add_gemma4_settings(gguf_writer *w, const char *skipped) {
    static const struct {
        const char *key;
        uint32_t value;
    } integers[] = {
        {"gemma4.block_count", LAYERS},
        {"gemma4.context_length", 100},
        {"gemma4.embedding_length", 32},
        {"gemma4.feed_forward_length", 48},
        {"gemma4.attention.head_count", 4},
        {"gemma4.attention.key_length", FULL_HEAD_DIM},
        {"gemma4.attention.value_length", FULL_HEAD_DIM},
        {"gemma4.attention.key_length_swa", HEAD_DIM},
        {"gemma4.attention.value_length_swa", HEAD_DIM},
        {"gemma4.rope.dimension_count", FULL_HEAD_DIM},
        {"gemma4.rope.dimension_count_swa", HEAD_DIM},
        {"gemma4.attention.sliding_window", 8},
        {"gemma4.attention.shared_kv_layers", 0},
        {"gemma4.embedding_length_per_layer_input", 0},
    };
    static const struct {
        const char *key;
        float value;
    } numbers[] = {{"gemma4.attention.layer_norm_rms_epsilon", 1e-6f},
                   {"gemma4.rope.freq_base", 1e6f},
                   {"gemma4.rope.freq_base_swa", 12345.0f},
                   {"gemma4.final_logit_softcapping", 30}};
    static const bool pattern[LAYERS] = {true, false, false};
    static const int32_t kv_heads[LAYERS] = {2, 1, 1};
    if (!skipped)
        skipped = "";
    if (!is_skipped(skipped, "general.architecture"))
        gguf_add_text(w, "general.architecture", "gemma4");
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        if (!is_skipped(skipped, integers[i].key))
            gguf_add_u32(w, integers[i].key, integers[i].value);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!is_skipped(skipped, numbers[i].key))
            gguf_add_f32(w, numbers[i].key, numbers[i].value);
    if (!is_skipped(skipped, "gemma4.attention.sliding_window_pattern"))
        gguf_add_bools(w, "gemma4.attention.sliding_window_pattern", pattern, LAYERS);
    if (!is_skipped(skipped, GEMMA4_KV_HEADS))
        gguf_add_i32s(w, GEMMA4_KV_HEADS, kv_heads, LAYERS);
}

void add_gemma4_rope_freqs(gguf_writer *w) {
    float factors[FULL_HEAD_DIM / 2];
    for (int i = 0; i < FULL_HEAD_DIM / 2; i++)
        factors[i] = i < FULL_HEAD_DIM / 8 ? 1.0f : 1e30f;
    gguf_add_tensor(w, "rope_freqs.weight", GB_GGML_F32, 1, (const int64_t[]){FULL_HEAD_DIM / 2}, factors,
                    sizeof factors);
}

static bool is_tensor(const gb_constant *constant) {
    return strncmp(constant->name, "model.", 6) == 0 || strncmp(constant->name, "lm_head.", 8) == 0;
}

static bool is_listed(const char *const *names, const char *name) {
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

void add_gemma4_tensors(gguf_writer *w, const gb_program *program, const char *const *skipped) {
    static const uint32_t types[] = {
        [GB_F32] = GB_GGML_F32, [GB_F16] = GB_GGML_F16, [GB_BF16] = GB_GGML_BF16};
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        char name[GB_GGUF_NAME];
        if (!is_tensor(constant))
            continue;
        assert_true(gb_gguf_from_checkpoint(gb_gguf_gemma4.names, constant->name, name) != NULL);
        if (!is_listed(skipped, name))
            gguf_add_tensor(w, name, types[constant->type.dtype], constant->type.shape.rank,
                            constant->type.shape.dims, constant->data, constant->size);
    }
}

void write_gemma4_checkpoint(const gb_program *program) {
    static const char *const names[] = {[GB_F32] = "F32", [GB_F16] = "F16", [GB_BF16] = "BF16"};
    test_tensor tensors[MAX_TENSORS];
    size_t count = 0;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        if (!is_tensor(constant))
            continue;
        assert_true(count < MAX_TENSORS);
        tensors[count] = (test_tensor){.name = constant->name,
                                       .dtype = names[constant->type.dtype],
                                       .rank = constant->type.shape.rank,
                                       .data = constant->data,
                                       .size = constant->size};
        memcpy(tensors[count++].dims, constant->type.shape.dims, sizeof tensors->dims);
    }
    write_safetensors(temporary_path("checkpoint/model.safetensors"), tensors, count);
}

void finish_gemma4(gguf_writer *w, const char *skipped_key, const char *skipped_tensor, bool has_rope_freqs) {
    gb_program *random = random_gemma4(&(gemma4_variant){"float32", true, true, NULL});
    w->version = 3;
    add_gemma4_settings(w, skipped_key);
    if (has_rope_freqs)
        add_gemma4_rope_freqs(w);
    add_gemma4_tensors(w, random, (const char *const[]){skipped_tensor, NULL});
    gguf_write(w, temporary_path("model.gguf"));
    gb_program_destroy(random);
}
