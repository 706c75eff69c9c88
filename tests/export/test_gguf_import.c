/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma 4 from GGUF: the same values as in a safetensors checkpoint give the same program, and what a file
 * lacks or asks for too much is named as the file names it.
 */
#include "export/checkpoint/ggml_types.h"

#include "export/gguf/architecture.h"
#include "export/quantize/import_blocks.h"
#include "export/random_weights.h"
#include "program/reader.h"
#include "support/assertions.h"
#include "support/gguf_writer.h"
#include "support/safetensors_writer.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LAYERS = 3, VOCABULARY = 40, MAX_TENSORS = 64, HEAD_DIM = 16, FULL_HEAD_DIM = 32 };

/* To be formatted with the dtype, and whether keys are values and the head is tied. */
static const char CONFIG[] =
    "{\"model_type\":\"gemma4_text\",\"dtype\":\"%s\",\"hidden_size\":32,\"intermediate_size\":48,"
    "\"num_hidden_layers\":3,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
    "\"num_global_key_value_heads\":1,\"head_dim\":16,\"global_head_dim\":32,\"vocab_size\":40,"
    "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"full_attention\"],"
    "\"sliding_window\":8,\"hidden_size_per_layer_input\":0,\"final_logit_softcapping\":30.0,"
    "\"max_position_embeddings\":100,\"rms_norm_eps\":1e-06,\"attention_k_eq_v\":%s,"
    "\"tie_word_embeddings\":%s,\"rope_parameters\":{"
    "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":12345.0},"
    "\"full_attention\":{\"rope_type\":\"proportional\",\"rope_theta\":1000000.0,"
    "\"partial_rotary_factor\":0.25}}}";

static const char KV_HEADS[] = "gemma4.attention.head_count_kv";

typedef struct variant {
    const char *dtype;
    bool keys_are_values, is_tied;
} variant;

static int start_empty(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

static gb_program *read_program(const char *path) {
    gb_program *program = NULL;
    gumbel_error error;
    assert_ok(gb_program_read(path, &program, &error), &error);
    return program;
}

/* The program of random weights: a source of tensors of the right names and shapes. */
static gb_program *random_program(const variant *chosen) {
    char config[2048];
    gumbel_error error;
    snprintf(config, sizeof config, CONFIG, chosen->dtype, chosen->keys_are_values ? "true" : "false",
             chosen->is_tied ? "true" : "false");
    write_text(temporary_path("checkpoint/config.json"), config);
    gumbel_export_options options = {.size = sizeof options, .random_weights = true, .random_seed = 5};
    const char *path = temporary_path("random.gumbel");
    assert_ok(gumbel_export(temporary_path("checkpoint/config.json"), path, &options, &error), &error);
    return read_program(path);
}

/* The settings as llama.cpp's converter writes them. skipped, which may be NULL, is left out. */
static void add_settings(gguf_writer *w, const char *skipped) {
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
    if (strcmp(skipped, "general.architecture") != 0)
        gguf_add_text(w, "general.architecture", "gemma4");
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        if (strcmp(skipped, integers[i].key) != 0)
            gguf_add_u32(w, integers[i].key, integers[i].value);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(skipped, numbers[i].key) != 0)
            gguf_add_f32(w, numbers[i].key, numbers[i].value);
    if (strcmp(skipped, "gemma4.attention.sliding_window_pattern") != 0)
        gguf_add_bools(w, "gemma4.attention.sliding_window_pattern", pattern, LAYERS);
    if (strcmp(skipped, KV_HEADS) != 0)
        gguf_add_i32s(w, KV_HEADS, kv_heads, LAYERS);
}

static void add_rope_freqs(gguf_writer *w) {
    float factors[FULL_HEAD_DIM / 2];
    for (int i = 0; i < FULL_HEAD_DIM / 2; i++)
        factors[i] = i < FULL_HEAD_DIM / 8 ? 1.0f : 1e30f;
    gguf_add_tensor(w, "rope_freqs.weight", GB_GGML_F32, 1, (const int64_t[]){FULL_HEAD_DIM / 2}, factors,
                    sizeof factors);
}

static bool is_tensor(const gb_constant *constant) {
    return strncmp(constant->name, "rotary.", 7) != 0;
}

static bool is_listed(const char *const *names, const char *name) {
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* The program's weights under their names in GGUF, but for those listed up to a NULL. */
static void add_other_tensors(gguf_writer *w, const gb_program *program, const char *const *skipped) {
    static const uint32_t types[] = {
        [GB_F32] = GB_GGML_F32, [GB_F16] = GB_GGML_F16, [GB_BF16] = GB_GGML_BF16};
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        char name[GB_GGUF_NAME];
        if (!is_tensor(constant))
            continue;
        assert_true(gb_gguf_from_checkpoint(gb_gguf_gemma4.names, constant->name, name));
        if (!is_listed(skipped, name))
            gguf_add_tensor(w, name, types[constant->type.dtype], constant->type.shape.rank,
                            constant->type.shape.dims, constant->data, constant->size);
    }
}

/* skipped may be NULL. */
static void add_tensors(gguf_writer *w, const gb_program *program, const char *skipped) {
    add_other_tensors(w, program, (const char *const[]){skipped, NULL});
}

static void write_checkpoint(const gb_program *program) {
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

/* Exports a checkpoint with its logits, runs it, and copies the logits of the last token. */
static void run_logits(const char *checkpoint, const char *output, float logits[VOCABULARY]) {
    static const int32_t tokens[] = {2, 17, 39, 0, 5, 5, 8, 21, 33, 12, 1, 30, 7, 19};
    enum { COUNT = sizeof tokens / sizeof tokens[0] };
    gumbel_export_options options = {.size = sizeof options, .logits = true};
    gumbel_program *program = NULL;
    gumbel_engine *engine = NULL;
    gumbel_session *session = NULL;
    gumbel_error error;
    const char *path = temporary_path(output);
    assert_ok(gumbel_export(checkpoint, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    assert_ok(gumbel_engine_create(program, NULL, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(gumbel_session_append(session, tokens, COUNT - 1, &error), &error);
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = &tokens[COUNT - 1],
                              .token_count = 1,
                              .wants_token = true};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    memcpy(logits, request.logits, VOCABULARY * sizeof *logits);
    gumbel_session_destroy(session);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

static void gives_the_same_logits(void **state) {
    (void)state;
    static const variant variants[] = {
        {"float32", true, true}, {"bfloat16", true, false}, {"float16", false, true}};
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        float expected[VOCABULARY], found[VOCABULARY];
        gb_program *random = random_program(&variants[i]);
        write_checkpoint(random);
        gguf_writer w = {.version = 3};
        /* num_global_key_value_heads only counts where keys are values */
        add_settings(&w, variants[i].keys_are_values ? NULL : KV_HEADS);
        if (!variants[i].keys_are_values)
            gguf_add_u32(&w, KV_HEADS, 2);
        add_rope_freqs(&w);
        add_tensors(&w, random, NULL);
        gguf_write(&w, temporary_path("model.gguf"));
        run_logits(temporary_path("checkpoint"), "directory.gumbel", expected);
        run_logits(temporary_path("model.gguf"), "gguf.gumbel", found);
        assert_memory_equal(expected, found, sizeof expected);

        gb_program *program = read_program(temporary_path("gguf.gumbel"));
        assert_int_equal(program->constant_count, random->constant_count);
        assert_string_equal(program->metadata.source, "GGUF");
        assert_string_equal(program->metadata.name, "model");
        assert_string_equal(program->metadata.architecture, "gemma4");
        gb_program_destroy(program);
        gb_program_destroy(random);
    }
}

/* ---- Blocks ---- */

enum { BLOCK_COLUMNS = 32, MAX_BLOCK_BYTES = 34 };

/* One block for each row, with small scales, and biases of 0. */
static void make_blocks(const gb_block_info *info, uint64_t rows, uint8_t *blocks) {
    static const uint8_t SCALE[2] = {0x00, 0x18}; /* 2^-9 as f16 */
    gb_random_bytes(rows, 0, rows * info->bytes, blocks);
    for (uint64_t r = 0; r < rows; r++) {
        memcpy(blocks + r * info->bytes, SCALE, sizeof SCALE);
        if (info->format.has_bias)
            memset(blocks + r * info->bytes + sizeof SCALE, 0, 2);
    }
}

static void dequantize_blocks(gb_block_type type, const uint8_t *blocks, uint64_t rows, float *values) {
    const gb_block_info *info = gb_block_find(type);
    for (uint64_t r = 0; r < rows; r++) {
        uint8_t data[256] = {0};
        gb_planes planes;
        assert_true(gb_format_planes(&info->format, 1, BLOCK_COLUMNS, &planes));
        gb_imported_row row = {data + planes.codes.offset, data + planes.scales.offset,
                               info->format.has_bias ? data + planes.biases.offset : NULL, NULL, NULL};
        gb_import_block_row(type, blocks + r * info->bytes, BLOCK_COLUMNS, &row);
        gb_format_dequantize(&info->format, &planes, data, 0, 0, BLOCK_COLUMNS, values + r * BLOCK_COLUMNS);
    }
}

/* model.gguf with the tensors skipped and then added: blocks, or the numbers that they stand for. */
static void write_with_blocks(const gb_program *random, gb_block_type type, bool as_numbers) {
    static const struct {
        const char *name;
        int64_t rows;
    } matrices[] = {{"blk.0.attn_q.weight", 64}, {"token_embd.weight", VOCABULARY}};
    static uint8_t blocks[64 * MAX_BLOCK_BYTES];
    static float values[64 * BLOCK_COLUMNS];
    const gb_block_info *info = gb_block_find(type);
    gguf_writer w = {.version = 3};
    add_settings(&w, NULL);
    add_rope_freqs(&w);
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        const int64_t dims[] = {matrices[i].rows, BLOCK_COLUMNS};
        uint64_t rows = (uint64_t)dims[0];
        make_blocks(info, rows, blocks);
        dequantize_blocks(type, blocks, rows, values);
        if (as_numbers)
            gguf_add_tensor(&w, matrices[i].name, GB_GGML_F32, 2, dims, values,
                            rows * BLOCK_COLUMNS * sizeof *values);
        else
            gguf_add_tensor(&w, matrices[i].name, type, 2, dims, blocks, rows * info->bytes);
    }
    add_other_tensors(&w, random, (const char *const[]){matrices[0].name, matrices[1].name, NULL});
    gguf_write(&w, temporary_path("model.gguf"));
}

/* Quantized matrices stay what they are, and weigh what the numbers weigh that they stand for. */
static void keeps_blocks(void **state) {
    (void)state;
    static const gb_block_type types[] = {GB_BLOCK_Q4_0, GB_BLOCK_Q4_1, GB_BLOCK_Q5_0, GB_BLOCK_Q5_1,
                                          GB_BLOCK_Q8_0};
    gb_program *random = random_program(&(variant){"float32", true, true});
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        float expected[VOCABULARY], found[VOCABULARY];
        write_with_blocks(random, types[i], true);
        run_logits(temporary_path("model.gguf"), "numbers.gumbel", expected);
        write_with_blocks(random, types[i], false);
        run_logits(temporary_path("model.gguf"), "blocks.gumbel", found);
        assert_memory_equal(expected, found, sizeof expected);
        gb_program *program = read_program(temporary_path("blocks.gumbel"));
        size_t kept = 0;
        for (uint32_t c = 0; c < program->constant_count; c++)
            kept += gb_format_equal(&program->constants[c].format, &gb_block_find(types[i])->format);
        assert_int_equal(kept, 2);
        gb_program_destroy(program);
    }
    gb_program_destroy(random);
    gumbel_error error;
    gumbel_export_options options = {.size = sizeof options, .quantize = "int8"};
    assert_fails(
        gumbel_export(temporary_path("model.gguf"), temporary_path("refused.gumbel"), &options, &error),
        GUMBEL_ERROR_ARGUMENT, &error, "model.embed_tokens.weight is quantized already, as Q8_0");
}

/* ---- What is refused ---- */

/* Writes a whole model to model.gguf: w may have been given keys and tensors before. */
static void finish_model(gguf_writer *w, const char *skipped_key, const char *skipped_tensor,
                         bool has_rope_freqs) {
    gb_program *random = random_program(&(variant){"float32", true, true});
    w->version = 3;
    add_settings(w, skipped_key);
    if (has_rope_freqs)
        add_rope_freqs(w);
    add_tensors(w, random, skipped_tensor);
    gguf_write(w, temporary_path("model.gguf"));
    gb_program_destroy(random);
}

static void refuses(gumbel_status status, const char *part) {
    gumbel_error error;
    assert_fails(gumbel_export(temporary_path("model.gguf"), temporary_path("refused.gumbel"), NULL, &error),
                 status, &error, part);
    assert_non_null(strstr(error.message, "model.gguf: "));
    assert_null(strchr(error.message, '\n'));
}

static void names_missing_keys(void **state) {
    (void)state;
    static const char *const keys[] = {"general.architecture",
                                       "gemma4.block_count",
                                       "gemma4.context_length",
                                       "gemma4.embedding_length",
                                       "gemma4.feed_forward_length",
                                       "gemma4.attention.head_count",
                                       "gemma4.attention.key_length",
                                       "gemma4.attention.sliding_window",
                                       "gemma4.attention.sliding_window_pattern",
                                       "gemma4.attention.head_count_kv",
                                       "gemma4.attention.layer_norm_rms_epsilon"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char expected[128];
        finish_model(&(gguf_writer){0}, keys[i], NULL, true);
        snprintf(expected, sizeof expected, "model.gguf: %s: the key is missing", keys[i]);
        refuses(GUMBEL_ERROR_FORMAT, expected);
    }
}

static void names_missing_tensors(void **state) {
    (void)state;
    finish_model(&(gguf_writer){0}, NULL, "blk.1.attn_q.weight", true);
    refuses(GUMBEL_ERROR_FORMAT,
            "model.gguf: tensor blk.1.attn_q.weight is missing, expected shape [128, 32]");
    finish_model(&(gguf_writer){0}, NULL, "blk.2.layer_output_scale.weight", true);
    refuses(GUMBEL_ERROR_FORMAT, "tensor blk.2.layer_output_scale.weight is missing, expected shape [1]");
    finish_model(&(gguf_writer){0}, NULL, "token_embd.weight", true);
    refuses(GUMBEL_ERROR_FORMAT, "tensor token_embd.weight is missing");
    gguf_writer w = {.version = 3};
    add_settings(&w, NULL);
    gguf_write(&w, temporary_path("model.gguf"));
    refuses(GUMBEL_ERROR_FORMAT, "it has no tensors, only a vocabulary");
}

/* Types that no program holds, and blocks where plain numbers are needed. */
static void names_tensor_types(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        const char *name;
    } types[] = {{20, "IQ4_NL"}, {39, "MXFP4"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char expected[128];
        const gb_ggml_type *type = gb_ggml_type_find(types[i].type);
        gguf_writer w = {0};
        gguf_add_tensor(&w, "blk.0.attn_q.weight", types[i].type, 2, (const int64_t[]){64, 32}, NULL,
                        64 * type->block_bytes);
        finish_model(&w, NULL, "blk.0.attn_q.weight", true);
        snprintf(expected, sizeof expected,
                 "tensor blk.0.attn_q.weight has dtype %s, expected F32, F16 or BF16, or Q4_0, Q4_1",
                 types[i].name);
        refuses(GUMBEL_ERROR_UNSUPPORTED, expected);
    }
    gguf_writer w = {0};
    gguf_add_tensor(&w, "output_norm.weight", GB_GGML_Q8_0, 1, (const int64_t[]){32}, NULL, 34);
    finish_model(&w, NULL, "output_norm.weight", true);
    refuses(GUMBEL_ERROR_UNSUPPORTED, "tensor output_norm.weight has dtype Q8_0, expected F32, F16 or BF16");
}

static void refuses_shapes(void **state) {
    (void)state;
    gguf_writer w = {0};
    gguf_add_tensor(&w, "output_norm.weight", GB_GGML_F32, 1, (const int64_t[]){31}, NULL, 124);
    finish_model(&w, NULL, "output_norm.weight", true);
    refuses(GUMBEL_ERROR_FORMAT, "tensor output_norm.weight has shape [31], expected [32]");
    w = (gguf_writer){0};
    gguf_add_tensor(&w, "rope_freqs.weight", GB_GGML_F32, 1, (const int64_t[]){15}, NULL, 60);
    finish_model(&w, NULL, NULL, false);
    refuses(GUMBEL_ERROR_FORMAT, "rope_freqs.weight: expected an F32 tensor of the 16 pairs");
    w = (gguf_writer){0};
    gguf_add_tensor(&w, "rope_freqs.weight", GB_GGML_F32, 1, (const int64_t[]){16}, NULL, 64);
    finish_model(&w, NULL, NULL, false);
    refuses(GUMBEL_ERROR_UNSUPPORTED, "rope_freqs.weight: factor 0 is 0; expected one positive number");
    float mixed[16] = {1, 1, 1e30f, 1};
    w = (gguf_writer){0};
    gguf_add_tensor(&w, "rope_freqs.weight", GB_GGML_F32, 1, (const int64_t[]){16}, mixed, 64);
    finish_model(&w, NULL, NULL, false);
    refuses(GUMBEL_ERROR_UNSUPPORTED, "rope_freqs.weight: factor 3 is 1; expected one positive number");
}

/* One key of another value than the model's. */
static void refuses_key(const char *key, void (*add)(gguf_writer *, const char *), gumbel_status status,
                        const char *part) {
    gguf_writer w = {0};
    add(&w, key);
    finish_model(&w, key, NULL, true);
    refuses(status, part);
}

static void add_zero(gguf_writer *w, const char *key) {
    gguf_add_u32(w, key, 0);
}

static void add_seven(gguf_writer *w, const char *key) {
    gguf_add_u32(w, key, 7);
}

static void add_huge(gguf_writer *w, const char *key) {
    gguf_add_u32(w, key, UINT32_MAX);
}

static void add_word(gguf_writer *w, const char *key) {
    gguf_add_text(w, key, "llama");
}

static void add_nan(gguf_writer *w, const char *key) {
    static const uint32_t FLOAT32 = 6;
    gguf_add_raw(w, key, FLOAT32, "\0\0\300\177", 4);
}

static void add_rising(gguf_writer *w, const char *key) {
    gguf_add_i32s(w, key, (const int32_t[]){1, 2, 3}, 3);
}

static void add_two(gguf_writer *w, const char *key) {
    gguf_add_i32s(w, key, (const int32_t[]){1, 2}, 2);
}

static void add_all_sliding(gguf_writer *w, const char *key) {
    gguf_add_bools(w, key, (const bool[]){true, true, true}, 3);
}

static void refuses_settings(void **state) {
    (void)state;
    const gumbel_status format = GUMBEL_ERROR_FORMAT, unsupported = GUMBEL_ERROR_UNSUPPORTED;
    refuses_key("general.architecture", add_word, unsupported,
                "general.architecture: \"llama\" is not supported in this version; known are gemma4");
    refuses_key("general.architecture", add_seven, format,
                "general.architecture: expected a text, found uint32");
    refuses_key("gemma4.block_count", add_zero, format,
                "gemma4.block_count: expected an integer from 1 to 1024");
    refuses_key("gemma4.block_count", add_huge, format, "gemma4.block_count: expected an integer from 0");
    refuses_key("gemma4.block_count", add_word, format,
                "gemma4.block_count: expected an integer, found a value of type string");
    refuses_key("gemma4.block_count", add_seven, format,
                "gemma4.attention.sliding_window_pattern: an array of 3, expected one value for each of 7");
    refuses_key("gemma4.embedding_length", add_zero, format,
                "as config.json: hidden_size: expected an integer from 1");
    refuses_key("gemma4.attention.head_count", add_rising, unsupported,
                "gemma4.attention.head_count: 2 in layer 1 and 1 in layer 0");
    refuses_key("gemma4.feed_forward_length", add_two, format, "gemma4.feed_forward_length: an array of 2");
    refuses_key("gemma4.attention.head_count_kv", add_rising, format, "num_key_value_heads: layer 2 has 3");
    refuses_key("gemma4.attention.value_length", add_seven, unsupported,
                "gemma4.attention.value_length: 7, expected the 32");
    refuses_key("gemma4.rope.dimension_count_swa", add_seven, unsupported,
                "gemma4.rope.dimension_count_swa: 7, expected the 16");
    refuses_key("gemma4.attention.sliding_window_pattern", add_all_sliding, unsupported,
                "gemma4.attention.sliding_window_pattern: the last layer slides");
    refuses_key("gemma4.attention.sliding_window_pattern", add_seven, format,
                "expected an array with one bool for each layer");
    refuses_key("gemma4.rope.freq_base", add_nan, format, "gemma4.rope.freq_base: expected a finite number");
    refuses_key("gemma4.rope.freq_base", add_word, format, "gemma4.rope.freq_base: expected a number");
    refuses_key("gemma4.rope.scaling.type", add_word, unsupported, "gemma4.rope.scaling.type: scaled rotary");
    refuses_key("gemma4.expert_count", add_seven, unsupported, "experts are not supported");
    refuses_key("gemma4.embedding_length_per_layer_input", add_seven, unsupported, "per-layer inputs");
    refuses_key("gemma4.attention.shared_kv_layers", add_seven, unsupported, "share keys and values");
    refuses_key("gemma4.attention.causal", add_zero, unsupported, "gemma4.attention.causal: attention");
    refuses_key("tokenizer.ggml.eos_token_id", add_huge, format,
                "tokenizer.ggml.eos_token_id: expected an integer from 0");
}

static void refuses_random_weights(void **state) {
    (void)state;
    gumbel_error error;
    gumbel_export_options options = {.size = sizeof options, .random_weights = true};
    finish_model(&(gguf_writer){0}, NULL, NULL, true);
    assert_fails(
        gumbel_export(temporary_path("model.gguf"), temporary_path("refused.gumbel"), &options, &error),
        GUMBEL_ERROR_ARGUMENT, &error, "random weights need a config.json, found a GGUF");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gives_the_same_logits, start_empty),
        cmocka_unit_test_setup(keeps_blocks, start_empty),
        cmocka_unit_test_setup(names_missing_keys, start_empty),
        cmocka_unit_test_setup(names_missing_tensors, start_empty),
        cmocka_unit_test_setup(names_tensor_types, start_empty),
        cmocka_unit_test_setup(refuses_shapes, start_empty),
        cmocka_unit_test_setup(refuses_settings, start_empty),
        cmocka_unit_test_setup(refuses_random_weights, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
