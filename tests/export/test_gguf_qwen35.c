/* SPDX-License-Identifier: Apache-2.0
 *
 * Qwen3.5 from GGUF: files that llama.cpp's converter made give what the weights give that it was given, and
 * quantized matrices stay as they are.
 */
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/checkpoints/qwen35_gguf.h"
#include "support/paths.h"
#include "support/programs/model_logits.h"
#include "support/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define GOLDEN(name) test_data("export/gguf/" name)
enum { GOLDEN_VOCABULARY = 300, GREEDY = 12 };

static gb_program *random_model;

static int make_random(void **state) {
    (void)state;
    random_model = random_qwen35();
    return 0;
}

static int destroy_random(void **state) {
    (void)state;
    gb_program_destroy(random_model);
    return 0;
}

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

/* ---- What the converter writes --------------------------------------------------------------------------
 */

/* The goldens were converted from the random weights of their configuration. */
static void agrees_with_the_original(const char *config, const char *gguf) {
    static float expected[GOLDEN_VOCABULARY], found[GOLDEN_VOCABULARY];
    int32_t expected_tokens[GREEDY], found_tokens[GREEDY];
    gumbel_export_options options = {.size = sizeof options, .random_weights = true, .random_seed = 5};
    exported_logits(config, "random.gumbel", &options, GOLDEN_VOCABULARY, expected, expected_tokens, GREEDY);
    exported_logits(gguf, "gguf.gumbel", NULL, GOLDEN_VOCABULARY, found, found_tokens, GREEDY);
    float largest = 0, difference = 0;
    for (size_t i = 0; i < GOLDEN_VOCABULARY; i++) {
        largest = fmaxf(largest, fabsf(expected[i]));
        difference = fmaxf(difference, fabsf(expected[i] - found[i]));
    }
    assert_true(largest > 0);
    assert_true(difference <= 1e-5f * largest);
    assert_memory_equal(expected_tokens, found_tokens, sizeof found_tokens);
}

static void dense_agrees(void **state) {
    (void)state;
    agrees_with_the_original(GOLDEN("qwen_dense.json"), GOLDEN("qwen_dense.gguf"));
}

static void experts_agree(void **state) {
    (void)state;
    agrees_with_the_original(GOLDEN("qwen_experts.json"), GOLDEN("qwen_experts.gguf"));
}

static void keep_message(void *user, gumbel_log_level level, const char *message) {
    char *kept = user;
    if (level == GUMBEL_LOG_INFO)
        snprintf(kept, 256, "%.250s", message);
}

/* A file alone is a whole program; the layer that guesses further tokens is left out, which is said. */
static void has_all_of_a_program(void **state) {
    (void)state;
    gumbel_error error;
    char message[256] = "";
    const char *path = temporary_path("program.gumbel");
    gumbel_export_options options = {.size = sizeof options, .log = keep_message, .log_user = message};
    assert_ok(gumbel_export(GOLDEN("qwen_dense.gguf"), path, &options, &error), &error);
    assert_string_equal(
        message,
        "15 tensors of the checkpoint are not used: mtp 15; --draft-head takes the draft head (mtp) along");
    gumbel_program *program = NULL;
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(program, &info, &error), &error);
    assert_string_equal(info.architecture, "qwen3_5");
    assert_string_equal(info.name, "qwen_dense");
    assert_int_equal(info.stop_token_count, 2);
    assert_int_equal(info.stop_tokens[0], 266); /* <|im_end|>, which ends a turn */
    assert_int_equal(info.stop_tokens[1], 264); /* <|endoftext|> */
    assert_true(info.has_tokenizer && info.has_chat_template);
    gumbel_program_close(program);
}

/* ---- Blocks ---------------------------------------------------------------------------------------------
 */

static uint64_t size_of_file(const char *path) {
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    return (uint64_t)file.st_size;
}

/* What a weight of ours takes beside one of the type's. */
static double growth_of(gb_block_type type) {
    const gb_block_info *info = gb_block_find(type);
    return gb_format_bits_per_weight(&info->format, 256) * info->weights / (8.0 * info->bytes);
}

/* No weight changes and none grows beyond its format, also where a block of columns belongs to several value
 * heads. */
static void keeps_blocks(void **state) {
    (void)state;
    static const gb_block_type types[] = {
        GB_BLOCK_Q4_0,    GB_BLOCK_Q4_1,   GB_BLOCK_Q5_0,  GB_BLOCK_Q5_1,    GB_BLOCK_Q8_0,   GB_BLOCK_Q4_K,
        GB_BLOCK_Q5_K,    GB_BLOCK_Q6_K,   GB_BLOCK_Q2_K,  GB_BLOCK_Q3_K,    GB_BLOCK_IQ4_NL, GB_BLOCK_IQ4_XS,
        GB_BLOCK_IQ2_XXS, GB_BLOCK_IQ2_XS, GB_BLOCK_IQ2_S, GB_BLOCK_IQ3_XXS, GB_BLOCK_IQ3_S,  GB_BLOCK_IQ1_S,
        GB_BLOCK_IQ1_M,   GB_BLOCK_TQ1_0,  GB_BLOCK_TQ2_0, GB_BLOCK_MXFP4,   GB_BLOCK_NVFP4};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        float expected[QWEN35_VOCABULARY], found[QWEN35_VOCABULARY];
        const char *path = temporary_path("model.gguf");
        gumbel_export_options options = {.size = sizeof options, .activations = "none", .cache = "float32"};
        write_qwen35_blocks(random_model, types[i], true, path);
        exported_logits(path, "numbers.gumbel", &options, QWEN35_VOCABULARY, expected, NULL, 0);
        size_t matrices = write_qwen35_blocks(random_model, types[i], false, path), kept = 0;
        exported_logits(path, "blocks.gumbel", &options, QWEN35_VOCABULARY, found, NULL, 0);
        assert_memory_equal(expected, found, sizeof expected);
        assert_true(isfinite(found[0]) && found[0] != found[1]);
        gb_program *program = read_program(temporary_path("blocks.gumbel"));
        uint64_t bytes = 0;
        for (uint32_t c = 0; c < program->constant_count; c++) {
            kept += gb_format_equal(&program->constants[c].format, &gb_block_find(types[i])->format);
            bytes += program->constants[c].size;
        }
        assert_int_equal(kept, matrices);
        assert_true((double)bytes <= 1.01 * growth_of(types[i]) * (double)size_of_file(path));
        gb_program_destroy(program);
    }
}

/* ---- What is refused ------------------------------------------------------------------------------------
 */

static void refuses(gguf_writer *w, const char *skipped_key, const char *skipped_tensor, gumbel_status status,
                    const char *part) {
    gumbel_error error;
    const char *path = temporary_path("model.gguf");
    w->version = 3;
    add_qwen35_settings(w, skipped_key);
    add_qwen35_tensors(w, random_model, skipped_tensor);
    gguf_write(w, path);
    assert_fails(gumbel_export(path, temporary_path("refused.gumbel"), NULL, &error), status, &error, part);
    assert_non_null(strstr(error.message, "model.gguf: "));
    assert_null(strchr(error.message, '\n'));
}

static void names_what_is_missing(void **state) {
    (void)state;
    static const char *const keys[] = {
        "qwen35moe.context_length",    "qwen35moe.embedding_length",
        "qwen35moe.ssm.conv_kernel",   "qwen35moe.ssm.time_step_rank",
        "qwen35moe.ssm.inner_size",    "qwen35moe.ssm.state_size",
        "qwen35moe.ssm.group_count",   "qwen35moe.expert_count",
        "qwen35moe.expert_used_count", "qwen35moe.expert_feed_forward_length",
        "qwen35moe.block_count",       "qwen35moe.attention.layer_norm_rms_epsilon"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char expected[128];
        snprintf(expected, sizeof expected, "model.gguf: %s: the key is missing", keys[i]);
        refuses(&(gguf_writer){0}, keys[i], NULL, GUMBEL_ERROR_FORMAT, expected);
    }
    static const char *const tensors[] = {
        "blk.0.ssm_a",         "blk.0.ssm_conv1d.weight",    "blk.0.ssm_out.weight",
        "blk.1.attn_q.weight", "blk.1.ffn_down_exps.weight", "blk.1.ffn_gate_up_exps.weight"};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        char expected[128];
        snprintf(expected, sizeof expected, "model.gguf: tensor %s is missing, expected shape", tensors[i]);
        refuses(&(gguf_writer){0}, NULL, tensors[i], GUMBEL_ERROR_FORMAT, expected);
    }
}

static void refuses_key(const char *key, uint32_t value, gumbel_status status, const char *part) {
    gguf_writer w = {0};
    gguf_add_u32(&w, key, value);
    refuses(&w, key, NULL, status, part);
}

static void refuses_settings(void **state) {
    (void)state;
    const gumbel_status format = GUMBEL_ERROR_FORMAT, unsupported = GUMBEL_ERROR_UNSUPPORTED;
    refuses_key("qwen35moe.nextn_predict_layers", 2, format,
                "qwen35moe.nextn_predict_layers: 2, expected fewer than the 2 layers");
    refuses_key("qwen35moe.full_attention_interval", 0, format,
                "qwen35moe.full_attention_interval: expected 1 or more, found 0");
    refuses_key("qwen35moe.ssm.inner_size", 255, format,
                "qwen35moe.ssm.inner_size: 255, expected a multiple of the 4");
    refuses_key("qwen35moe.ssm.time_step_rank", 0, format, "qwen35moe.ssm.inner_size: 256, expected a");
    refuses_key("qwen35moe.ssm.group_count", 3, format, "linear_num_value_heads: 4, expected a multiple");
    refuses_key("qwen35moe.rope.dimension_count", 129, format,
                "qwen35moe.rope.dimension_count: 129, expected 1 to the 128");
    refuses_key("qwen35moe.attention.value_length", 64, unsupported,
                "qwen35moe.attention.value_length: 64, expected the 128");
    refuses_key("qwen35moe.expert_weights_scale", 2, unsupported,
                "qwen35moe.expert_weights_scale: 2: scaled experts are not supported");
    refuses_key("qwen35moe.attention.causal", 0, unsupported, "qwen35moe.attention.causal: attention");
    gguf_writer w = {0};
    gguf_add_bools(&w, "qwen35moe.attention.recurrent_layers", (const bool[]){true}, 1);
    refuses(&w, NULL, NULL, format, "qwen35moe.attention.recurrent_layers: an array of 1");
}

static void refuses_rates(void **state) {
    (void)state;
    static const float rates[4] = {-1, -0.0f, 0.5f, -1};
    gguf_writer w = {0};
    gguf_add_tensor(&w, "blk.0.ssm_a", 0, 1, (const int64_t[]){4}, rates, sizeof rates);
    refuses(&w, NULL, "blk.0.ssm_a", GUMBEL_ERROR_FORMAT,
            "model.gguf: tensor blk.0.ssm_a: value 2 is 0.5, expected a finite one of 0 or below");
    gguf_add_tensor(&w, "blk.0.ssm_a", 1, 1, (const int64_t[]){4}, NULL, 8);
    refuses(&w, NULL, "blk.0.ssm_a", GUMBEL_ERROR_UNSUPPORTED,
            "model.gguf: tensor blk.0.ssm_a has dtype F16, expected F32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(dense_agrees, start_empty),
        cmocka_unit_test_setup(experts_agree, start_empty),
        cmocka_unit_test_setup(has_all_of_a_program, start_empty),
        cmocka_unit_test_setup(keeps_blocks, start_empty),
        cmocka_unit_test_setup(names_what_is_missing, start_empty),
        cmocka_unit_test_setup(refuses_settings, start_empty),
        cmocka_unit_test_setup(refuses_rates, start_empty),
    };
    return cmocka_run_group_tests(tests, make_random, destroy_random);
}
