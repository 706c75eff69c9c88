/* SPDX-License-Identifier: Apache-2.0
 *
 * NVFP4 in GGUF with a scale beside each matrix, and one for each expert: the same program as of the numbers
 * that blocks and scales stand for.
 */
#include "export/checkpoint/ggml_types.h"
#include "support/assertions.h"
#include "support/checkpoints/qwen35_gguf.h"
#include "support/programs/model_logits.h"
#include "support/temporary.h"
#include "tensor/convert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

enum { MAX_EXPERTS = 64 };

/* Of few bits, so that products with it are exact in float32. */
static float scale_of(uint32_t index, int64_t expert) {
    return (float)(1025 + 37 * (index % 8) + 3 * (uint32_t)expert) / 1024;
}

static int64_t experts_of(const qwen35_tensor *tensor) {
    return tensor->rank == 3 ? tensor->dims[0] : 1;
}

static bool is_matrix(const qwen35_tensor *tensor) {
    return tensor->rank >= 2 && tensor->dims[tensor->rank - 1] % 256 == 0 &&
           strcmp(tensor->name, "token_embd.weight") != 0;
}

/* The numbers of the blocks of that seed, times each expert's scale, in bfloat16. */
static void add_numbers(gguf_writer *w, const qwen35_tensor *tensor, uint32_t seed) {
    gguf_writer blocks = {.version = 3};
    gguf_add_blocks(&blocks, tensor->name, GB_BLOCK_NVFP4, tensor->rank, tensor->dims, seed, true);
    size_t size;
    const size_t count = blocks.data.size / sizeof(float), run = count / (size_t)experts_of(tensor);
    uint16_t *halves = malloc(count * sizeof *halves);
    assert_non_null(halves);
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, blocks.data.data + i * sizeof value, sizeof value);
        halves[i] = gb_bf16_from_float(value * scale_of(seed, (int64_t)(i / run)));
    }
    gguf_add_tensor(w, tensor->name, GB_GGML_BF16, tensor->rank, tensor->dims, halves, 2 * count);
    free(halves);
    free(gguf_finish(&blocks, &size));
}

static void name_scale(const qwen35_tensor *tensor, char name[160]) {
    const size_t stem = strlen(tensor->name) - strlen(".weight");
    snprintf(name, 160, "%.*s.scale", (int)stem, tensor->name);
}

static void add_scaled_blocks(gguf_writer *w, const qwen35_tensor *tensor, uint32_t seed) {
    float scales[MAX_EXPERTS];
    char name[160];
    const int64_t count = experts_of(tensor);
    assert_true(count <= MAX_EXPERTS);
    for (int64_t i = 0; i < count; i++)
        scales[i] = scale_of(seed, i);
    name_scale(tensor, name);
    gguf_add_blocks(w, tensor->name, GB_BLOCK_NVFP4, tensor->rank, tensor->dims, seed, false);
    gguf_add_tensor(w, name, GB_GGML_F32, 1, &count, scales, (size_t)count * sizeof *scales);
}

/* Ends with every matrix in either form, but for the one without. */
static size_t write_model(gguf_writer *w, bool as_numbers, const char *without) {
    size_t count = 0;
    w->version = 3;
    add_qwen35_settings(w, NULL);
    for (uint32_t i = 0; i < random_model->constant_count; i++) {
        qwen35_tensor tensor;
        if (!get_qwen35_tensor(random_model, i, &tensor) || (without && strcmp(without, tensor.name) == 0))
            continue;
        count += is_matrix(&tensor);
        if (!is_matrix(&tensor))
            gguf_add_tensor(w, tensor.name, GB_GGML_F32, tensor.rank, tensor.dims, tensor.data, tensor.size);
        else if (as_numbers)
            add_numbers(w, &tensor, i);
        else
            add_scaled_blocks(w, &tensor, i);
    }
    gguf_write(w, temporary_path("model.gguf"));
    return count;
}

static void keep_notice(void *user, gumbel_log_level level, const char *line) {
    if (level == GUMBEL_LOG_INFO && strstr(line, "not rounded"))
        snprintf(user, 128, "%s", line);
}

static void has_the_numbers_of_both(void **state) {
    (void)state;
    static const char *const recipes[] = {NULL, "int4"};
    static const float one = 1;
    for (size_t i = 0; i < 2; i++) {
        float expected[QWEN35_VOCABULARY], found[QWEN35_VOCABULARY];
        char notice[128] = "";
        gumbel_export_options options = {.size = sizeof options, .quantize = recipes[i]};
        assert_true(write_model(&(gguf_writer){0}, true, NULL) > 8);
        exported_logits(temporary_path("model.gguf"), "numbers.gumbel", &options, QWEN35_VOCABULARY, expected,
                        NULL, 0);
        gguf_writer w = {0};
        gguf_add_tensor(&w, "blk.1.attn_q.input_scale", GB_GGML_F32, 1, (const int64_t[]){1}, &one, 4);
        write_model(&w, false, NULL);
        options.log = keep_notice;
        options.log_user = notice;
        exported_logits(temporary_path("model.gguf"), "blocks.gumbel", &options, QWEN35_VOCABULARY, found,
                        NULL, 0);
        assert_true(isfinite(found[0]) && found[0] != found[1]);
        assert_memory_equal(expected, found, sizeof expected);
        assert_string_equal(notice,
                            "inputs and caches are not rounded with the checkpoint's scales for them (1)");
    }
}

/* The matrix in blocks beside that scale. */
static void refuses(const char *matrix, uint32_t type, int64_t count, const float *scales,
                    uint32_t scale_type, const char *part) {
    gguf_writer w = {0};
    qwen35_tensor tensor = {0};
    char name[160];
    gumbel_error error;
    for (uint32_t i = 0; i < random_model->constant_count && strcmp(tensor.name, matrix) != 0; i++)
        get_qwen35_tensor(random_model, i, &tensor);
    name_scale(&tensor, name);
    gguf_add_blocks(&w, matrix, type, tensor.rank, tensor.dims, 1, false);
    gguf_add_tensor(&w, name, scale_type, 1, &count, scales,
                    (size_t)count * (scale_type == GB_GGML_F32 ? 4 : 2));
    write_model(&w, false, matrix);
    const gumbel_status status =
        gumbel_export(temporary_path("model.gguf"), temporary_path("no.gumbel"), NULL, &error);
    assert_true(status == GUMBEL_ERROR_FORMAT || status == GUMBEL_ERROR_UNSUPPORTED);
    if (!strstr(error.message, part))
        fail_msg("\"%s\" lacks \"%s\"", error.message, part);
}

static void refuses_scales_that_do_not_fit(void **state) {
    (void)state;
    static const float numbers[3] = {1, 1, 1}, nan = NAN;
    refuses("blk.1.attn_q.weight", GB_BLOCK_NVFP4, 3, numbers, GB_GGML_F32,
            "tensor blk.1.attn_q.scale has shape [3], expected [1]");
    refuses("blk.1.attn_q.weight", GB_BLOCK_NVFP4, 1, numbers, GB_GGML_F16,
            "tensor blk.1.attn_q.scale has dtype F16, expected F32");
    refuses("blk.1.ffn_down_exps.weight", GB_BLOCK_NVFP4, 1, numbers, GB_GGML_F32,
            "tensor blk.1.ffn_down_exps.scale has shape [1]");
    refuses("blk.1.attn_q.weight", GB_BLOCK_NVFP4, 1, &nan, GB_GGML_F32, "blk.1.attn_q.weight");
    refuses("blk.1.attn_q.weight", GB_BLOCK_Q4_K, 1, numbers, GB_GGML_F32,
            "tensor blk.1.attn_q.scale is not used");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(has_the_numbers_of_both, start_empty),
        cmocka_unit_test_setup(refuses_scales_that_do_not_fit, start_empty),
    };
    return cmocka_run_group_tests(tests, make_random, destroy_random);
}
