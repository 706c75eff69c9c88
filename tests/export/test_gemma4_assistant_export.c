/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports of Gemma 4 with an assistant: both checkpoints are read, each tensor becomes the constant of its
 * name, and what cannot be an assistant is refused.
 */
#include "export/checkpoint/ggml_types.h"
#include "export/gguf/architecture.h"
#include "program/draft_head.h"
#include "program/file/reader.h"
#include "program/shard/shard.h"
#include "support/assertions.h"
#include "support/checkpoints/gguf_writer.h"
#include "support/checkpoints/safetensors_writer.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static gumbel_error error;

static const gb_constant *find_constant(const gb_program *program, const char *name) {
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (strcmp(program->constants[i].name, name) == 0)
            return &program->constants[i];
    return NULL;
}

static const char *data_path(char text[512], const char *name, const char *ending) {
    snprintf(text, 512, "%s/export/assistant/%s%s.json", test_data_folder, name, ending);
    return text;
}

/* Writes the constants whose names begin with the prefix, without it, and an unused one. */
static void write_checkpoint(const char *folder, const gb_program *program, const char *prefix) {
    enum { MOST = 256 };
    static const float unused[8];
    static test_tensor tensors[MOST];
    char path[64];
    size_t count = 0;
    tensors[count++] =
        (test_tensor){"masked_embedding.centroids.weight", "F32", 1, {8}, unused, sizeof unused};
    for (uint32_t i = 0; i < program->constant_count && count < MOST; i++) {
        const gb_constant *constant = &program->constants[i];
        const gb_shape *shape = &constant->type.shape;
        if (constant->same || strncmp(constant->name, prefix, strlen(prefix)) != 0)
            continue;
        assert_int_equal(constant->type.dtype, GB_F32);
        test_tensor *tensor = &tensors[count++];
        *tensor = (test_tensor){constant->name + strlen(prefix), "F32", shape->rank, {0}, constant->data,
                                (size_t)constant->size};
        memcpy(tensor->dims, shape->dims, (size_t)shape->rank * sizeof *shape->dims);
    }
    assert_in_range(count, 2, MOST - 1);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    write_safetensors(temporary_path(path), tensors, count);
}

static void copy_config(const char *folder, const char *from) {
    char path[64];
    json_t *config = json_load_file(from, 0, NULL);
    assert_non_null(config);
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_int_equal(json_dump_file(config, temporary_path(path), 0), 0);
    json_decref(config);
}

/* ---- An assistant as llama.cpp's converter writes it --------------------------------------------------- */

#define KEY(name) "gemma4-assistant." name

static int64_t integer_of(const json_t *object, const char *name, int64_t usual) {
    const json_t *value = json_object_get(object, name);
    return value ? json_integer_value(value) : usual;
}

static double rope_of(const json_t *text, const char *kind, const char *name, double usual) {
    const json_t *ropes = json_object_get(text, "rope_parameters"),
                 *value = json_object_get(json_object_get(ropes, kind), name);
    return value ? json_number_value(value) : usual;
}

static void add_integers(gguf_writer *w, const json_t *root, const json_t *text) {
    const int64_t full = integer_of(text, "global_head_dim", 0), sliding = integer_of(text, "head_dim", 0),
                  layers = integer_of(text, "num_hidden_layers", 0);
    const struct {
        const char *key;
        int64_t value;
    } integers[] = {
        {KEY("block_count"), layers},
        {KEY("nextn_predict_layers"), layers},
        {KEY("attention.shared_kv_layers"), layers},
        {KEY("context_length"), integer_of(text, "max_position_embeddings", 0)},
        {KEY("embedding_length"), integer_of(text, "hidden_size", 0)},
        {KEY("embedding_length_out"), integer_of(root, "backbone_hidden_size", 0)},
        {KEY("feed_forward_length"), integer_of(text, "intermediate_size", 0)},
        {KEY("attention.head_count"), integer_of(text, "num_attention_heads", 0)},
        {KEY("attention.key_length"), full},
        {KEY("attention.value_length"), full},
        {KEY("attention.key_length_swa"), sliding},
        {KEY("attention.value_length_swa"), sliding},
        {KEY("rope.dimension_count"), full},
        {KEY("rope.dimension_count_swa"), sliding},
        {KEY("attention.sliding_window"), integer_of(text, "sliding_window", 0)},
        {KEY("embedding_length_per_layer_input"), 0},
    };
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        gguf_add_u32(w, integers[i].key, (uint32_t)integers[i].value);
}

static void add_layers(gguf_writer *w, const json_t *text) {
    enum { MOST = 8 };
    const json_t *kinds = json_object_get(text, "layer_types");
    const size_t count = json_array_size(kinds);
    const int64_t sliding = integer_of(text, "num_key_value_heads", 0);
    bool is_sliding[MOST] = {0};
    int32_t kv_heads[MOST] = {0};
    assert_in_range(count, 1, MOST);
    for (size_t i = 0; i < count; i++) {
        is_sliding[i] = strcmp(json_string_value(json_array_get(kinds, i)), "sliding_attention") == 0;
        kv_heads[i] =
            (int32_t)(is_sliding[i] ? sliding : integer_of(text, "num_global_key_value_heads", sliding));
    }
    gguf_add_bools(w, KEY("attention.sliding_window_pattern"), is_sliding, count);
    gguf_add_i32s(w, KEY("attention.head_count_kv"), kv_heads, count);
}

static void add_ropes(gguf_writer *w, const json_t *text) {
    float factors[64];
    const int64_t pairs = integer_of(text, "global_head_dim", 0) / 2;
    const double turning = rope_of(text, "full_attention", "partial_rotary_factor", 0.25) * (double)pairs;
    assert_in_range(pairs, 1, 64);
    for (int i = 0; i < pairs; i++)
        factors[i] = i < turning ? 1.0f : 1e30f;
    gguf_add_tensor(w, "rope_freqs.weight", GB_GGML_F32, 1, &pairs, factors, (size_t)pairs * sizeof *factors);
    gguf_add_f32(w, KEY("rope.freq_base"), (float)rope_of(text, "full_attention", "rope_theta", 1e6));
    gguf_add_f32(w, KEY("rope.freq_base_swa"), (float)rope_of(text, "sliding_attention", "rope_theta", 1e4));
}

/* What has a name in GGUF: rotary tables have none. */
static void add_tensors(gguf_writer *w, const gb_program *head) {
    static const char prefix[] = "assistant.";
    for (uint32_t i = 0; i < head->constant_count; i++) {
        const gb_constant *constant = &head->constants[i];
        const gb_shape *shape = &constant->type.shape;
        char name[GB_GGUF_NAME];
        if (strncmp(constant->name, prefix, strlen(prefix)) == 0 &&
            gb_gguf_from_checkpoint(gb_gguf_gemma4_assistant.names, constant->name + strlen(prefix), name))
            gguf_add_tensor(w, name, GB_GGML_F32, shape->rank, shape->dims, constant->data,
                            (size_t)constant->size);
    }
}

static void write_gguf(const char *path, const char *config, const gb_program *head) {
    json_t *root = json_load_file(config, 0, NULL);
    const json_t *text = json_object_get(root, "text_config"),
                 *cap = json_object_get(text, "final_logit_softcapping");
    gguf_writer w = {.version = 3};
    assert_non_null(text);
    gguf_add_text(&w, "general.architecture", "gemma4-assistant");
    add_integers(&w, root, text);
    add_layers(&w, text);
    add_ropes(&w, text);
    gguf_add_f32(&w, KEY("attention.layer_norm_rms_epsilon"), 1e-6f);
    if (cap)
        gguf_add_f32(&w, KEY("final_logit_softcapping"), (float)json_number_value(cap));
    add_tensors(&w, head);
    gguf_write(&w, path);
    json_decref(root);
}

/* ---- Exports ------------------------------------------------------------------------------------------- */

static void assert_same_constants(const gb_program *a, const gb_program *b) {
    assert_int_equal(a->constant_count, b->constant_count);
    for (uint32_t i = 0; i < a->constant_count; i++) {
        const gb_constant *own = &a->constants[i], *other = find_constant(b, own->name);
        if (!other)
            fail_msg("there is no constant %s", own->name);
        else {
            assert_int_equal(own->size, other->size);
            assert_memory_equal(own->data, other->data, own->size);
        }
    }
}

/* Each rank's part of the head has the states of its part of the program. */
static void assert_shards_alike(const gb_program *program) {
    for (uint32_t rank = 0; rank < 2; rank++) {
        const gb_shard_options options = {.rank = rank, .ranks = 2, .least_weights = 1};
        gb_sharded own, of_head;
        assert_ok(gb_program_shard(program, &options, &own, &error), &error);
        assert_ok(gb_program_shard(program->head, &options, &of_head, &error), &error);
        for (uint32_t i = 0; i < of_head.program->state_count; i++)
            if (gb_state_of_program(own.program, of_head.program, i) == UINT32_MAX)
                fail_msg("rank %u has another state %s", rank, of_head.program->states[i].name);
        gb_sharded_free(&own);
        gb_sharded_free(&of_head);
    }
}

static char notices[1024];

static void note(void *user, gumbel_log_level level, const char *message) {
    (void)user;
    (void)level;
    const size_t used = strlen(notices);
    snprintf(notices + used, sizeof notices - used, "%s\n", message);
}

/* An export with random weights, written as two checkpoints, is exported from those again. */
static void both_checkpoints_are_exported(void **state) {
    const char *name = *state;
    char target[512], assistant[512];
    gb_program *drawn, *read;
    gumbel_export_options options = {.size = sizeof options,
                                     .backend = "none",
                                     .random_weights = true,
                                     .random_seed = 5,
                                     .assistant = data_path(assistant, name, ".assistant")};
    empty_temporary_directory();
    assert_ok(gumbel_export(data_path(target, name, ""), temporary_path("drawn.gumbel"), &options, &error),
              &error);
    assert_ok(gb_program_read(temporary_path("drawn.gumbel"), &drawn, &error), &error);
    assert_non_null(drawn->head);
    assert_string_equal(drawn->head->metadata.architecture, "gemma4");
    copy_config("target", target);
    copy_config("assistant", assistant);
    write_checkpoint("target", drawn, "");
    write_checkpoint("assistant", drawn->head, "assistant.");
    options.random_weights = false;
    options.assistant = temporary_path("assistant");
    options.log = note;
    notices[0] = '\0';
    assert_ok(gumbel_export(temporary_path("target"), temporary_path("read.gumbel"), &options, &error),
              &error);
    assert_non_null(strstr(notices, "assistant 3")); /* rotary tables, and what it has no use for */
    assert_ok(gb_program_read(temporary_path("read.gumbel"), &read, &error), &error);
    assert_same_constants(drawn, read);
    assert_same_constants(drawn->head, read->head);
    assert_shards_alike(read);
    gb_program_destroy(read);
    write_gguf(temporary_path("assistant.gguf"), assistant, drawn->head);
    options.assistant = temporary_path("assistant.gguf");
    assert_ok(gumbel_export(temporary_path("target"), temporary_path("read.gumbel"), &options, &error),
              &error);
    assert_ok(gb_program_read(temporary_path("read.gumbel"), &read, &error), &error);
    assert_same_constants(drawn->head, read->head);
    assert_int_equal(read->head->node_count, drawn->head->node_count);
    gb_program_destroy(read);
    gb_program_destroy(drawn);
}

/* ---- What is refused ----------------------------------------------------------------------------------- */

static void assert_refuses(const char *target, const char *assistant, gumbel_status status,
                           const char *part) {
    const gumbel_export_options options = {
        .size = sizeof options, .assistant = assistant, .random_weights = strstr(target, ".json") != NULL};
    assert_fails(gumbel_export(target, NULL, &options, &error), status, &error, part);
}

static void other_assistants_are_refused(void **unused) {
    (void)unused;
    char target[512], other[512];
    data_path(target, "unified", "");
    assert_refuses(target, "/nowhere", GUMBEL_ERROR_IO, "assistant: /nowhere");
    assert_refuses(data_path(other, "unified", ".assistant"), NULL, GUMBEL_ERROR_ARGUMENT,
                   "guesses for another model: export that one with this as its assistant");
    assert_refuses(target, data_path(other, "keys_are_values", ""), GUMBEL_ERROR_ARGUMENT, "model_type");
    snprintf(target, sizeof target, "%s/run/gemma3.json", test_data_folder);
    assert_refuses(target, data_path(other, "unified", ".assistant"), GUMBEL_ERROR_ARGUMENT,
                   "assistant: gemma3 has no draft head that gumbel knows");
    snprintf(target, sizeof target, "%s/run/qwen.json", test_data_folder);
    assert_refuses(target, other, GUMBEL_ERROR_ARGUMENT, "assistant: this model has none");
}

/* Of a checkpoint with an assistant that lacks a tensor, and of a quantized one. */
static void incomplete_assistants_are_refused(void **unused) {
    (void)unused;
    static const float numbers[8];
    const test_tensor only = {"numbers", "F32", 1, {8}, numbers, sizeof numbers};
    char path[512];
    empty_temporary_directory();
    copy_config("target", data_path(path, "unified", ""));
    copy_config("assistant", data_path(path, "unified", ".assistant"));
    write_safetensors(temporary_path("target/model.safetensors"), &only, 1);
    write_text(temporary_path("assistant/model.safetensors"), "");
    assert_refuses(temporary_path("target"), temporary_path("assistant"), GUMBEL_ERROR_FORMAT,
                   "model.safetensors: 0 bytes");
    write_text(temporary_path("assistant/config.json"),
               "{\"model_type\":\"gemma4_assistant\",\"quantization\":{\"bits\":4,\"group_size\":32}}");
    write_safetensors(temporary_path("assistant/model.safetensors"), &only, 1);
    assert_refuses(temporary_path("target"), temporary_path("assistant"), GUMBEL_ERROR_UNSUPPORTED,
                   "is quantized, which is supported of GGUF alone in this version");
    write_text(temporary_path("assistant.gguf"), "GGUF");
    assert_refuses(temporary_path("target"), temporary_path("assistant.gguf"), GUMBEL_ERROR_FORMAT,
                   "assistant: ");
}

#define EXPORTS(name)                                                                                        \
    { name, both_checkpoints_are_exported, NULL, NULL, (void *)(uintptr_t)(name) }

int main(void) {
    const struct CMUnitTest tests[] = {
        EXPORTS("shared_keys"),
        EXPORTS("keys_are_values"),
        EXPORTS("unified"),
        cmocka_unit_test(other_assistants_are_refused),
        cmocka_unit_test(incomplete_assistants_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
