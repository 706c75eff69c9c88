/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma 4 from GGUF: the same values as in a safetensors checkpoint give the same program.
 */
#include "support/assertions.h"
#include "support/checkpoints/gemma4_gguf.h"
#include "support/checkpoints/gguf_blocks.h"
#include "support/programs/model_logits.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int start_empty(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

/* Of a program that computes in float32. */
static void run_logits(const char *checkpoint, const char *output, float logits[GEMMA4_VOCABULARY]) {
    gumbel_export_options options = {.size = sizeof options, .activations = "none", .cache = "float32"};
    exported_logits(checkpoint, output, &options, GEMMA4_VOCABULARY, logits, NULL, 0);
}

static void gives_the_same_logits(void **state) {
    (void)state;
    static const gemma4_variant variants[] = {
        {"float32", true, true, NULL}, {"bfloat16", true, false, NULL}, {"float16", false, true, NULL}};
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        float expected[GEMMA4_VOCABULARY], found[GEMMA4_VOCABULARY];
        gb_program *random = random_gemma4(&variants[i]);
        write_gemma4_checkpoint(random);
        gguf_writer w = {.version = 3};
        /* num_global_key_value_heads only counts where keys are values */
        add_gemma4_settings(&w, variants[i].keys_are_values ? NULL : GEMMA4_KV_HEADS);
        if (!variants[i].keys_are_values)
            gguf_add_u32(&w, GEMMA4_KV_HEADS, 2);
        add_gemma4_rope_freqs(&w);
        add_gemma4_tensors(&w, random, (const char *const[]){NULL});
        gguf_write(&w, temporary_path("model.gguf"));
        run_logits(temporary_path("checkpoint"), "directory.gumbel", expected);
        run_logits(temporary_path("model.gguf"), "gguf.gumbel", found);
        assert_memory_equal(expected, found, sizeof expected);

        gb_program *program = read_exported(temporary_path("gguf.gumbel"));
        assert_int_equal(program->constant_count, random->constant_count);
        assert_string_equal(program->metadata.source, "GGUF");
        assert_string_equal(program->metadata.name, "model");
        assert_string_equal(program->metadata.architecture, "gemma4");
        gb_program_destroy(program);
        gb_program_destroy(random);
    }
}

/* Logits of a checkpoint directory and of a GGUF of the same weights, whose settings differ in some keys. */
static void agree(const gemma4_variant *variant, gguf_writer *w, const char *skipped) {
    float expected[GEMMA4_VOCABULARY], found[GEMMA4_VOCABULARY];
    gb_program *random = random_gemma4(variant);
    write_gemma4_checkpoint(random);
    add_gemma4_settings(w, skipped);
    add_gemma4_rope_freqs(w);
    add_gemma4_tensors(w, random, (const char *const[]){NULL});
    gguf_write(w, temporary_path("model.gguf"));
    gb_program_destroy(random);
    run_logits(temporary_path("checkpoint"), "directory.gumbel", expected);
    run_logits(temporary_path("model.gguf"), "gguf.gumbel", found);
    assert_memory_equal(expected, found, sizeof expected);
}

static void reads_experts(void **state) {
    (void)state;
    gguf_writer w = {.version = 3};
    gguf_add_u32(&w, "gemma4.expert_count", 6);
    gguf_add_u32(&w, "gemma4.expert_used_count", 2);
    gguf_add_u32(&w, "gemma4.expert_feed_forward_length", 20);
    agree(
        &(gemma4_variant){"float32", true, true,
                          "\"hidden_size_per_layer_input\":null,\"enable_moe_block\":true,\"num_experts\":6,"
                          "\"top_k_experts\":2,\"moe_intermediate_size\":20"},
        &w, NULL);
}

static void reads_layer_inputs_and_shared_keys(void **state) {
    (void)state;
    static const int32_t widths[] = {48, 48, 96};
    gguf_writer w = {.version = 3};
    gguf_add_u32(&w, "gemma4.attention.shared_kv_layers", 1);
    gguf_add_u32(&w, "gemma4.embedding_length_per_layer_input", 8);
    gguf_add_i32s(&w, "gemma4.feed_forward_length", widths, 3);
    agree(&(gemma4_variant){"float32", true, true,
                            "\"hidden_size_per_layer_input\":8,\"vocab_size_per_layer_input\":50,"
                            "\"num_kv_shared_layers\":1,\"use_double_wide_mlp\":true"},
          &w,
          "gemma4.attention.shared_kv_layers gemma4.embedding_length_per_layer_input "
          "gemma4.feed_forward_length");
}

/* model.gguf with two matrices of blocks, or of the numbers that they stand for. */
static void write_with_blocks(const gb_program *random, gb_block_type type, bool as_numbers) {
    static const struct {
        const char *name;
        int64_t dims[2];
    } matrices[] = {{"blk.0.attn_q.weight", {64, 32}}, {"token_embd.weight", {GEMMA4_VOCABULARY, 32}}};
    gguf_writer w = {.version = 3};
    add_gemma4_settings(&w, NULL);
    add_gemma4_rope_freqs(&w);
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        gguf_add_blocks(&w, matrices[i].name, type, 2, matrices[i].dims, i, as_numbers);
    add_gemma4_tensors(&w, random, (const char *const[]){matrices[0].name, matrices[1].name, NULL});
    gguf_write(&w, temporary_path("model.gguf"));
}

/* Quantized matrices stay what they are, and weigh what the numbers weigh that they stand for. */
static void keeps_blocks(void **state) {
    (void)state;
    static const gb_block_type types[] = {GB_BLOCK_Q4_0, GB_BLOCK_Q4_1, GB_BLOCK_Q5_0, GB_BLOCK_Q5_1,
                                          GB_BLOCK_Q8_0};
    gb_program *random = random_gemma4(&(gemma4_variant){"float32", true, true, NULL});
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        float expected[GEMMA4_VOCABULARY], found[GEMMA4_VOCABULARY];
        write_with_blocks(random, types[i], true);
        run_logits(temporary_path("model.gguf"), "numbers.gumbel", expected);
        write_with_blocks(random, types[i], false);
        run_logits(temporary_path("model.gguf"), "blocks.gumbel", found);
        assert_memory_equal(expected, found, sizeof expected);
        gb_program *program = read_exported(temporary_path("blocks.gumbel"));
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

/* How many of the program's caches are bfloat16. */
static size_t count_small_caches(const gb_program *program) {
    size_t count = 0;
    for (uint32_t v = 0; v < program->value_count; v++)
        count += program->values[v].kind == GB_VALUE_STATE && program->values[v].type.dtype == GB_BF16;
    return count;
}

/* What a quantized file is exported with where no option says otherwise, and a file of numbers is not. */
static void rounds_inputs_of_blocks(void **state) {
    (void)state;
    gb_program *random = random_gemma4(&(gemma4_variant){"float32", true, true, NULL});
    for (int as_numbers = 0; as_numbers < 2; as_numbers++) {
        float exact[GEMMA4_VOCABULARY], found[GEMMA4_VOCABULARY];
        write_with_blocks(random, GB_BLOCK_Q4_0, as_numbers);
        run_logits(temporary_path("model.gguf"), "exact.gumbel", exact);
        exported_logits(temporary_path("model.gguf"), "default.gumbel", NULL, GEMMA4_VOCABULARY, found, NULL,
                        0);
        assert_int_equal(memcmp(exact, found, sizeof exact) == 0, as_numbers);
        gb_program *program = read_exported(temporary_path("default.gumbel"));
        assert_int_equal(count_small_caches(program) > 0, !as_numbers);
        gb_program_destroy(program);
    }
    gb_program_destroy(random);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gives_the_same_logits, start_empty),
        cmocka_unit_test_setup(reads_experts, start_empty),
        cmocka_unit_test_setup(reads_layer_inputs_and_shared_keys, start_empty),
        cmocka_unit_test_setup(keeps_blocks, start_empty),
        cmocka_unit_test_setup(rounds_inputs_of_blocks, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
