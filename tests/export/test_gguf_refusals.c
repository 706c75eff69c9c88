/* SPDX-License-Identifier: Apache-2.0
 *
 * What a GGUF file of Gemma 4 lacks or asks for too much is named as the file names it.
 */
#include "export/checkpoint/ggml_types.h"
#include "support/assertions.h"
#include "support/checkpoints/gemma4_gguf.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int start_empty(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
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
        finish_gemma4(&(gguf_writer){0}, keys[i], NULL, true);
        snprintf(expected, sizeof expected, "model.gguf: %s: the key is missing", keys[i]);
        refuses(GUMBEL_ERROR_FORMAT, expected);
    }
}

static void names_missing_tensors(void **state) {
    (void)state;
    finish_gemma4(&(gguf_writer){0}, NULL, "blk.1.attn_q.weight", true);
    refuses(GUMBEL_ERROR_FORMAT,
            "model.gguf: tensor blk.1.attn_q.weight is missing, expected shape [128, 32]");
    finish_gemma4(&(gguf_writer){0}, NULL, "blk.2.layer_output_scale.weight", true);
    refuses(GUMBEL_ERROR_FORMAT, "tensor blk.2.layer_output_scale.weight is missing, expected shape [1]");
    finish_gemma4(&(gguf_writer){0}, NULL, "token_embd.weight", true);
    refuses(GUMBEL_ERROR_FORMAT, "tensor token_embd.weight is missing");
    gguf_writer w = {.version = 3};
    add_gemma4_settings(&w, NULL);
    gguf_write(&w, temporary_path("model.gguf"));
    refuses(GUMBEL_ERROR_FORMAT, "it has no tensors, only a vocabulary");
}

/* Types that no program holds, and blocks where plain numbers are needed. */
static void names_tensor_types(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        const char *name;
    } types[] = {{9, "Q8_1"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char expected[128];
        const gb_ggml_type *type = gb_ggml_type_find(types[i].type);
        gguf_writer w = {0};
        gguf_add_tensor(&w, "blk.0.attn_q.weight", types[i].type, 2, (const int64_t[]){64, 32}, NULL,
                        64 * 32 / type->block_elements * type->block_bytes);
        finish_gemma4(&w, NULL, "blk.0.attn_q.weight", true);
        snprintf(expected, sizeof expected,
                 "tensor blk.0.attn_q.weight has dtype %s, expected F32, F16 or BF16, or Q4_0 to Q8_0, ",
                 types[i].name);
        refuses(GUMBEL_ERROR_UNSUPPORTED, expected);
    }
    gguf_writer w = {0};
    gguf_add_tensor(&w, "output_norm.weight", GB_GGML_Q8_0, 1, (const int64_t[]){32}, NULL, 34);
    finish_gemma4(&w, NULL, "output_norm.weight", true);
    refuses(GUMBEL_ERROR_UNSUPPORTED, "tensor output_norm.weight has dtype Q8_0, expected F32, F16 or BF16");
}

static void refuses_shapes(void **state) {
    (void)state;
    gguf_writer w = {0};
    gguf_add_tensor(&w, "output_norm.weight", GB_GGML_F32, 1, (const int64_t[]){31}, NULL, 124);
    finish_gemma4(&w, NULL, "output_norm.weight", true);
    refuses(GUMBEL_ERROR_FORMAT, "tensor output_norm.weight has shape [31], expected [32]");
    w = (gguf_writer){0};
    gguf_add_tensor(&w, "rope_freqs.weight", GB_GGML_F32, 1, (const int64_t[]){15}, NULL, 60);
    finish_gemma4(&w, NULL, NULL, false);
    refuses(GUMBEL_ERROR_FORMAT, "rope_freqs.weight: expected an F32 tensor of the 16 pairs");
    w = (gguf_writer){0};
    gguf_add_tensor(&w, "rope_freqs.weight", GB_GGML_F32, 1, (const int64_t[]){16}, NULL, 64);
    finish_gemma4(&w, NULL, NULL, false);
    refuses(GUMBEL_ERROR_UNSUPPORTED, "rope_freqs.weight: factor 0 is 0; expected one positive number");
    float mixed[16] = {1, 1, 1e30f, 1};
    w = (gguf_writer){0};
    gguf_add_tensor(&w, "rope_freqs.weight", GB_GGML_F32, 1, (const int64_t[]){16}, mixed, 64);
    finish_gemma4(&w, NULL, NULL, false);
    refuses(GUMBEL_ERROR_UNSUPPORTED, "rope_freqs.weight: factor 3 is 1; expected one positive number");
}

/* One key of another value than the model's. */
static void refuses_key(const char *key, void (*add)(gguf_writer *, const char *), gumbel_status status,
                        const char *part) {
    gguf_writer w = {0};
    add(&w, key);
    finish_gemma4(&w, key, NULL, true);
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
    gguf_add_text(w, key, "gptj");
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
                "general.architecture: \"gptj\" is not supported in this version; known are gemma3, gemma4, "
                "llama, qwen2, qwen3, qwen3moe, qwen35, qwen35moe, qwen3next, smollm3, granite, phi3, "
                "gpt-oss, muse-glimmer, nemotron_h, nemotron_h_moe, lfm2, "
                "lfm2moe, mistral3, olmo2, granitehybrid");
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
    refuses_key("gemma4.expert_count", add_seven, format, "gemma4.expert_used_count: the key is missing");
    refuses_key("gemma4.embedding_length_per_layer_input", add_seven, format,
                "tensor per_layer_token_embd.weight is missing, expected shape");
    refuses_key("gemma4.attention.shared_kv_layers", add_seven, format,
                "gemma4.attention.shared_kv_layers: 7, expected fewer than the 3 layers");
    refuses_key("gemma4.attention.causal", add_zero, unsupported, "gemma4.attention.causal: attention");
    refuses_key("tokenizer.ggml.eos_token_id", add_huge, format,
                "tokenizer.ggml.eos_token_id: expected an integer from 0");
}

static void refuses_random_weights(void **state) {
    (void)state;
    gumbel_error error;
    gumbel_export_options options = {.size = sizeof options, .random_weights = true};
    finish_gemma4(&(gguf_writer){0}, NULL, NULL, true);
    assert_fails(
        gumbel_export(temporary_path("model.gguf"), temporary_path("refused.gumbel"), &options, &error),
        GUMBEL_ERROR_ARGUMENT, &error, "random weights need a config.json, found a GGUF");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(names_missing_keys, start_empty),
        cmocka_unit_test_setup(names_missing_tensors, start_empty),
        cmocka_unit_test_setup(names_tensor_types, start_empty),
        cmocka_unit_test_setup(refuses_shapes, start_empty),
        cmocka_unit_test_setup(refuses_settings, start_empty),
        cmocka_unit_test_setup(refuses_random_weights, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
