/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel_export from end to end: checkpoint directories in every form to programs that hold the same bytes,
 * and failures that leave nothing behind.
 */
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/checkpoints/safetensors_writer.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#define TEXT_KEYS                                                                                            \
    "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":2,"         \
    "\"num_key_value_heads\":1,\"head_dim\":8,\"global_head_dim\":16,\"vocab_size\":50,"                     \
    "\"sliding_window\":8,\"hidden_size_per_layer_input\":0,\"attention_k_eq_v\":true,"                      \
    "\"final_logit_softcapping\":30.0,\"max_position_embeddings\":100"
static const char PLAIN[] = "{\"model_type\":\"gemma4_text\",\"dtype\":\"float32\"," TEXT_KEYS "}";
static const char WRAPPED[] = "{\"model_type\":\"gemma4\",\"text_config\":{" TEXT_KEYS "}}";

enum { MAX_TENSORS = 64 };

static char log_text[1024];

static void keep_log(void *user, gumbel_log_level level, const char *line) {
    (void)user;
    (void)level;
    strncat(log_text, line, sizeof log_text - strlen(log_text) - 1);
}

static int start_empty(void **state) {
    (void)state;
    empty_temporary_directory();
    log_text[0] = '\0';
    return 0;
}

static const char *output_path(void) {
    return temporary_path("output/program.gumbel");
}

/* Nothing was left where the program would be. */
static void assert_no_output(void) {
    output_path();
    assert_int_equal(count_files(temporary_path("output")), 0);
}

static gb_program *read_program(const char *path) {
    gb_program *program = NULL;
    gumbel_error error;
    assert_ok(gb_program_read(path, &program, &error), &error);
    return program;
}

/* Exports a configuration with random weights and reads the program. */
static gb_program *export_random(const char *config, const char *output, gumbel_export_options options) {
    gumbel_error error;
    options.size = sizeof options;
    options.random_weights = true;
    write_text(temporary_path("random/config.json"), config);
    const char *path = temporary_path(output);
    assert_ok(gumbel_export(temporary_path("random/config.json"), path, &options, &error), &error);
    return read_program(path);
}

/* The constants of a program that are tensors of a checkpoint. */
static size_t tensors_of(const gb_program *program, test_tensor *tensors) {
    static const char *const names[] = {[GB_F32] = "F32", [GB_F16] = "F16", [GB_BF16] = "BF16"};
    size_t count = 0;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        if (strncmp(constant->name, "rotary.", 7) == 0)
            continue;
        test_tensor *tensor = &tensors[count++];
        assert_true(count < MAX_TENSORS);
        *tensor = (test_tensor){.name = constant->name,
                                .dtype = names[constant->type.dtype],
                                .rank = constant->type.shape.rank,
                                .data = constant->data,
                                .size = constant->size};
        memcpy(tensor->dims, constant->type.shape.dims, sizeof tensor->dims);
    }
    return count;
}

static void assert_same_constants(const gb_program *a, const gb_program *b) {
    assert_int_equal(a->constant_count, b->constant_count);
    for (uint32_t i = 0; i < a->constant_count; i++) {
        assert_string_equal(a->constants[i].name, b->constants[i].name);
        assert_int_equal(a->constants[i].type.dtype, b->constants[i].type.dtype);
        assert_true(gb_shape_equal(&a->constants[i].type.shape, &b->constants[i].type.shape));
        assert_memory_equal(a->constants[i].data, b->constants[i].data, a->constants[i].size);
    }
}

static gumbel_status export_checkpoint(gumbel_export_options options, gumbel_error *error) {
    options.size = sizeof options;
    if (!options.log)
        options.log = keep_log;
    const char *path = output_path();
    temporary_path("checkpoint/x");
    return gumbel_export(temporary_path("checkpoint"), path, &options, error);
}

static void keeps_the_bytes_of_a_single_file(void **state) {
    (void)state;
    gb_program *random = export_random(WRAPPED, "random.gumbel", (gumbel_export_options){0});
    test_tensor tensors[MAX_TENSORS];
    size_t count = tensors_of(random, tensors);
    assert_string_equal(tensors[0].dtype, "BF16");
    assert_string_equal(tensors[0].name, "model.language_model.embed_tokens.weight");
    static const uint8_t zeros[8];
    tensors[count++] = (test_tensor){"model.vision_tower.patch.weight", "I8", 1, {8}, zeros, 8};
    write_text(temporary_path("checkpoint/config.json"), WRAPPED);
    write_text(temporary_path("checkpoint/generation_config.json"),
               "{\"eos_token_id\":[1,7],\"temperature\":1.0,\"top_k\":64}");
    write_safetensors(temporary_path("checkpoint/model.safetensors"), tensors, count);

    gumbel_error error;
    assert_ok(export_checkpoint((gumbel_export_options){0}, &error), &error);
    assert_non_null(strstr(log_text, "1 tensors of the checkpoint are not used: vision_tower 1"));
    gb_program *program = read_program(output_path());
    assert_same_constants(random, program);
    const gb_metadata *metadata = &program->metadata;
    assert_string_equal(metadata->architecture, "gemma4");
    assert_string_equal(metadata->name, "checkpoint");
    assert_string_equal(metadata->source, "safetensors");
    assert_int_equal(metadata->vocab_size, 50);
    assert_int_equal(metadata->max_context, 100);
    assert_int_equal(metadata->prefill_chunk, 64);
    assert_int_equal(metadata->stop_tokens.count, 2);
    assert_int_equal(metadata->stop_tokens.ids[1], 7);
    assert_true(metadata->has_temperature && metadata->temperature == 1.0);
    assert_true(metadata->has_top_k && metadata->top_k == 64);
    assert_false(metadata->has_top_p);
    assert_true(metadata->has_bos_token && metadata->bos_token == 2);
    gb_program_destroy(program);
    gb_program_destroy(random);
}

static void keeps_the_bytes_of_shards(void **state) {
    (void)state;
    gb_program *random = export_random(PLAIN, "random.gumbel", (gumbel_export_options){0});
    test_tensor tensors[MAX_TENSORS];
    size_t count = tensors_of(random, tensors), half = count / 2;
    assert_string_equal(tensors[0].dtype, "F32");
    assert_string_equal(tensors[0].name, "model.embed_tokens.weight");
    char index[8192] = "{\"weight_map\":{";
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(index);
        snprintf(index + used, sizeof index - used, "%s\"%s\":\"model-0000%d-of-00002.safetensors\"",
                 i ? "," : "", tensors[i].name, i < half ? 1 : 2);
    }
    strcat(index, "}}");
    write_text(temporary_path("checkpoint/config.json"), PLAIN);
    write_text(temporary_path("checkpoint/model.safetensors.index.json"), index);
    write_safetensors(temporary_path("checkpoint/model-00001-of-00002.safetensors"), tensors, half);
    write_safetensors(temporary_path("checkpoint/model-00002-of-00002.safetensors"), tensors + half,
                      count - half);
    gumbel_error error;
    assert_ok(export_checkpoint((gumbel_export_options){.name = "org/name"}, &error), &error);
    gb_program *program = read_program(output_path());
    assert_same_constants(random, program);
    assert_string_equal(program->metadata.name, "org/name");
    assert_int_equal(program->metadata.stop_tokens.count, 1); /* the model's default */
    gb_program_destroy(program);
    gb_program_destroy(random);
}

/* Each tensor in turn is left out, or loses a row. */
static void names_missing_and_misshapen_tensors(void **state) {
    (void)state;
    gb_program *random = export_random(PLAIN, "random.gumbel", (gumbel_export_options){0});
    test_tensor tensors[MAX_TENSORS];
    size_t count = tensors_of(random, tensors);
    write_text(temporary_path("checkpoint/config.json"), PLAIN);
    const char *path = "checkpoint/model.safetensors";
    for (size_t i = 0; i < count; i++) {
        gumbel_error error;
        char part[128];
        test_tensor last = tensors[count - 1], changed = tensors[i];
        tensors[i] = last;
        write_safetensors(temporary_path(path), tensors, count - 1);
        snprintf(part, sizeof part, "tensor %s is missing, expected shape [", changed.name);
        assert_fails(export_checkpoint((gumbel_export_options){0}, &error), GUMBEL_ERROR_FORMAT, &error,
                     part);
        tensors[i] = changed;
        tensors[i].size = changed.size / (size_t)changed.dims[0] * (size_t)(changed.dims[0] - 1);
        tensors[i].dims[0]--;
        write_safetensors(temporary_path(path), tensors, count);
        snprintf(part, sizeof part, "tensor %s has shape [%d", changed.name, (int)changed.dims[0] - 1);
        assert_fails(export_checkpoint((gumbel_export_options){0}, &error), GUMBEL_ERROR_FORMAT, &error,
                     part);
        tensors[i] = changed;
        assert_no_output();
    }
    gb_program_destroy(random);
}

static void is_the_same_for_the_same_seed(void **state) {
    (void)state;
    gb_program *first = export_random(PLAIN, "a.gumbel", (gumbel_export_options){.random_seed = 3});
    gb_program *again = export_random(PLAIN, "b.gumbel", (gumbel_export_options){.random_seed = 3});
    gb_program *other = export_random(PLAIN, "c.gumbel", (gumbel_export_options){.random_seed = 4});
    assert_memory_equal(first->id, again->id, sizeof first->id);
    assert_memory_not_equal(first->id, other->id, sizeof first->id);
    gb_program_destroy(first);
    gb_program_destroy(again);
    gb_program_destroy(other);
}

static size_t count_ops(const gb_program *program, gb_op op) {
    size_t count = 0;
    for (uint32_t i = 0; i < program->node_count; i++)
        count += program->nodes[i].op == op;
    return count;
}

static void ends_in_the_sampler_or_in_logits(void **state) {
    (void)state;
    gb_program *sampler = export_random(PLAIN, "a.gumbel", (gumbel_export_options){0});
    gb_program *logits = export_random(PLAIN, "b.gumbel", (gumbel_export_options){.logits = true});
    assert_true(sampler->metadata.use_sampling);
    assert_false(logits->metadata.use_sampling);
    assert_true(gb_program_output(sampler, GB_ROLE_NEXT) != GB_NO_VALUE);
    assert_true(gb_program_output(sampler, GB_ROLE_LOGITS) != GB_NO_VALUE);
    assert_true(gb_program_output(logits, GB_ROLE_NEXT) == GB_NO_VALUE);
    assert_true(gb_program_output(logits, GB_ROLE_LOGITS) != GB_NO_VALUE);
    assert_true(gb_program_input(logits, GB_ROLE_TEMPERATURE) == GB_NO_VALUE);
    assert_true(gb_program_input(logits, GB_ROLE_SEED) == GB_NO_VALUE);
    assert_int_equal(count_ops(sampler, GB_OP_IF), 1);
    assert_int_equal(count_ops(sampler, GB_OP_ARGMAX), 3);
    assert_int_equal(count_ops(logits, GB_OP_ARGMAX), 0);
    gb_program_destroy(sampler);
    gb_program_destroy(logits);
}

static const gb_state *find_state(const gb_program *program, const char *name) {
    for (uint32_t i = 0; i < program->state_count; i++)
        if (strcmp(program->states[i].name, name) == 0)
            return &program->states[i];
    fail_msg("no state %s", name);
    return NULL;
}

static void sizes_caches_by_window_and_context(void **state) {
    (void)state;
    gb_program *program = export_random(PLAIN, "a.gumbel", (gumbel_export_options){0});
    const gb_state *ring = find_state(program, "layers.0.keys"),
                   *full = find_state(program, "layers.1.values");
    assert_int_equal(ring->kind, GB_STATE_RING);
    assert_int_equal(ring->window, 8);
    assert_int_equal(ring->type.shape.dims[0], 16);
    assert_int_equal(ring->type.shape.dims[2], 8);
    assert_int_equal(full->kind, GB_STATE_CACHE);
    assert_int_equal(full->type.shape.dims[0], 100);
    assert_int_equal(full->type.shape.dims[2], 16);
    gb_program_destroy(program);

    program = export_random(PLAIN, "b.gumbel", (gumbel_export_options){.max_context = 13});
    assert_int_equal(find_state(program, "layers.0.keys")->kind, GB_STATE_CACHE);
    assert_int_equal(find_state(program, "layers.0.keys")->type.shape.dims[0], 13);
    assert_int_equal(program->metadata.max_context, 13);
    gb_program_destroy(program);

    program = export_random(PLAIN, "c.gumbel", (gumbel_export_options){.max_context = 5, .layers = 1});
    assert_int_equal(program->metadata.prefill_chunk, 4);
    assert_int_equal(program->state_count, 3); /* with the sampler's own */
    gb_program_destroy(program);
}

static void refuses_what_it_cannot_do(void **state) {
    (void)state;
    gumbel_error error;
    const char *config = temporary_path("random/config.json"), *path = output_path();
    write_text(config, PLAIN);
    gumbel_export_options options = {.size = sizeof options, .random_weights = true, .quantize = "int4"};
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "o_proj.weight has rows of 16, which the group of 32 does not divide");
    options.quantize = "int3";
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "quantize: \"int3\" is neither a file nor one of the recipes none, int8, int4");
    options = (gumbel_export_options){.size = sizeof options, .random_weights = true, .backend = "tpu"};
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "backend: \"tpu\", expected \"cpu\", \"cuda\", \"mlx\" or \"none\"");
    options = (gumbel_export_options){.size = sizeof options, .random_weights = true, .max_context = 101};
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "max_context: 101, expected at most the model's 100");
    options = (gumbel_export_options){.size = sizeof options, .random_weights = true, .layers = 3};
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_ARGUMENT, &error, "layers: 3");
    options = (gumbel_export_options){.size = sizeof options, .random_weights = true, .draft_head = true};
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "draft_head: gemma4 has no draft head that gumbel knows");
    options.size_target = 1000000;
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "draft_head and size_target");
    options.assistant = "assistant";
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "draft_head and assistant");
    options.draft_head = false;
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "assistant and size_target");
    options = (gumbel_export_options){
        .size = sizeof options, .random_weights = true, .logits = true, .assistant = "assistant"};
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "assistant and logits");
    options = (gumbel_export_options){.random_weights = true};
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_ARGUMENT, &error, "size");
    assert_fails(gumbel_export(config, path, NULL, &error), GUMBEL_ERROR_ARGUMENT, &error, "random weights");
    assert_fails(gumbel_export("/nowhere", path, NULL, &error), GUMBEL_ERROR_IO, &error, "/nowhere");
    write_text(temporary_path("model.bin"), "GGUF....");
    assert_fails(gumbel_export(temporary_path("model.bin"), path, NULL, &error), GUMBEL_ERROR_UNSUPPORTED,
                 &error, "model.bin: GGUF version");
    write_text(config, "{\"model_type\":\"gptj\"}");
    options = (gumbel_export_options){.size = sizeof options, .random_weights = true};
    assert_fails(
        gumbel_export(config, path, &options, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
        "model_type: \"gptj\" is not supported in this version; known are gemma3, gemma3_text, gemma4, "
        "gemma4_text, gemma4_unified, gemma4_unified_text, llama, mistral3, mistral, ministral3, qwen2, "
        "qwen3, "
        "qwen3_moe, "
        "qwen3_5, qwen3_5_text, qwen3_5_moe, qwen3_5_moe_text, qwen3_next, smollm3, granite, "
        "granitemoehybrid, phi3, gpt_oss, muse_glimmer, muse_glimmer_text, nemotron_h, "
        "lfm2, lfm2_moe, olmo2, olmo3");
    write_text(config, "{\"model_type\":\"gemma4_text\",\"dtype\":\"int8\"}");
    assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "dtype: \"int8\"");
    assert_no_output();
}

static void survives_every_config_truncation(void **state) {
    (void)state;
    const char *config = temporary_path("random/config.json"), *path = output_path();
    gumbel_export_options options = {.size = sizeof options, .random_weights = true};
    for (size_t length = 0; length < sizeof PLAIN - 1; length++) {
        gumbel_error error;
        write_file(config, PLAIN, length);
        assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_FORMAT, &error,
                     "config.json: ");
    }
    assert_no_output();
}

typedef struct progress_record {
    uint64_t last, total;
    int calls, allowed;
} progress_record;

static bool record_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    progress_record *record = user;
    assert_non_null(what);
    assert_true(done >= record->last && done <= total);
    record->last = done;
    record->total = total;
    return ++record->calls <= record->allowed;
}

static void reports_progress_and_cancels(void **state) {
    (void)state;
    const char *config = temporary_path("random/config.json"), *path = output_path();
    write_text(config, PLAIN);
    progress_record record = {.allowed = 1000000};
    gumbel_export_options options = {.size = sizeof options,
                                     .random_weights = true,
                                     .progress = record_progress,
                                     .progress_user = &record};
    gumbel_error error;
    assert_ok(gumbel_export(config, path, &options, &error), &error);
    assert_true(record.total > 0);
    assert_int_equal(record.last, record.total);
    int calls = record.calls;
    remove(path);
    for (int allowed = 0; allowed < calls; allowed++) {
        record = (progress_record){.allowed = allowed};
        assert_fails(gumbel_export(config, path, &options, &error), GUMBEL_ERROR_CANCELLED, &error,
                     "cancelled");
        assert_no_output();
    }
}

/* The file may grow to a few sizes only, as on a full disk; an older program under that name stays. */
static void leaves_no_half_file_on_a_full_disk(void **state) {
    (void)state;
    const char *config = temporary_path("random/config.json"), *path = output_path();
    write_text(config, PLAIN);
    gumbel_export_options options = {.size = sizeof options, .random_weights = true};
    gumbel_error error;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    static const rlim_t sizes[] = {0, 100, 4096, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct rlimit limited = {.rlim_cur = sizes[i], .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
        gumbel_status status = gumbel_export(config, path, &options, &error);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_fails(status, GUMBEL_ERROR_IO, &error, "program.gumbel");
        assert_no_output();
    }
    write_text(path, "older");
    struct rlimit limited = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
    gumbel_status status = gumbel_export(config, path, &options, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_fails(status, GUMBEL_ERROR_IO, &error, "program.gumbel");
    assert_int_equal(count_files(temporary_path("output")), 1);
    assert_ok(gumbel_export(config, path, &options, &error), &error);
    gb_program_destroy(read_program(path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(keeps_the_bytes_of_a_single_file, start_empty),
        cmocka_unit_test_setup(keeps_the_bytes_of_shards, start_empty),
        cmocka_unit_test_setup(names_missing_and_misshapen_tensors, start_empty),
        cmocka_unit_test_setup(is_the_same_for_the_same_seed, start_empty),
        cmocka_unit_test_setup(ends_in_the_sampler_or_in_logits, start_empty),
        cmocka_unit_test_setup(sizes_caches_by_window_and_context, start_empty),
        cmocka_unit_test_setup(refuses_what_it_cannot_do, start_empty),
        cmocka_unit_test_setup(survives_every_config_truncation, start_empty),
        cmocka_unit_test_setup(reports_progress_and_cancels, start_empty),
        cmocka_unit_test_setup(leaves_no_half_file_on_a_full_disk, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
