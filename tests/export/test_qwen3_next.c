/* SPDX-License-Identifier: Apache-2.0
 *
 * Qwen3-Next's own forms: tensors in which each key head has its rows of several matrices, and a tensor for
 * each matrix of each expert. As released and in every form that llama.cpp's converters have given them in
 * GGUF they are the weights that they were made of, quantized at export or before.
 */
#include "base/memory.h"
#include "export/gguf/architecture.h"
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/checkpoints/gguf_blocks.h"
#include "support/checkpoints/safetensors_writer.h"
#include "support/programs/model_logits.h"
#include "support/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    VOCABULARY = 40,
    GREEDY = 4,
    HIDDEN = 256,
    KEY_HEADS = 2,
    VALUE_HEADS = 6,
    KEY_DIM = 32,
    VALUE_DIM = 16,
    EXPERTS = 3,
    INNER = 256,
    MAX_TENSORS = 80,
    NAME = 128
};

/* A layer of each kind, and a dense one of each. */
static const char SIZES[] =
    "\"dtype\":\"float32\",\"vocab_size\":40,\"hidden_size\":256,\"intermediate_size\":96,"
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":128,\"linear_num_key_heads\":2,"
    "\"linear_num_value_heads\":6,\"linear_key_head_dim\":32,\"linear_value_head_dim\":16,"
    "\"num_experts\":3,\"num_experts_per_tok\":2,\"moe_intermediate_size\":256,"
    "\"shared_expert_intermediate_size\":256,\"max_position_embeddings\":100,\"rope_theta\":12345.0,"
    "\"num_hidden_layers\":2,\"full_attention_interval\":2";

typedef struct tensor_list {
    test_tensor tensors[MAX_TENSORS];
    char names[MAX_TENSORS][NAME];
    float *owned[MAX_TENSORS];
    size_t count;
} tensor_list;

static tensor_list list;

static void write_config(const char *more) {
    char text[2048];
    snprintf(text, sizeof text, "{\"model_type\":\"qwen3_next\",%s%s}", SIZES, more);
    write_text(temporary_path("checkpoint/config.json"), text);
}

static int start_empty(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

static void free_list(void) {
    for (size_t i = 0; i < list.count; i++)
        gb_free(list.owned[i]);
    list.count = 0;
}

static float *add_tensor(const char *name, int32_t rank, const int64_t *dims) {
    assert_true(list.count < MAX_TENSORS);
    const size_t at = list.count++;
    size_t elements = 1;
    for (int32_t i = 0; i < rank; i++)
        elements *= (size_t)dims[i];
    test_tensor *tensor = &list.tensors[at];
    *tensor = (test_tensor){.name = list.names[at], .dtype = "F32", .rank = rank, .size = 4 * elements};
    snprintf(list.names[at], NAME, "%s", name);
    memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
    list.owned[at] = gb_allocate(elements, sizeof(float));
    assert_non_null(list.owned[at]);
    tensor->data = list.owned[at];
    return list.owned[at];
}

/* ---- What belongs to a key head, together -------------------------------------------------------------- */

static const gb_constant *sibling(const gb_program *program, const char *prefix, const char *name) {
    char full[NAME];
    snprintf(full, sizeof full, "%.80s%s", prefix, name);
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (strcmp(program->constants[i].name, full) == 0)
            return &program->constants[i];
    fail_msg("there is no %s", full);
    return NULL;
}

/* Copies the head's `rows` rows of those that begin at row first of a matrix. */
static float *copy_rows(float *to, const gb_constant *from, size_t first, size_t head, size_t rows) {
    memcpy(to, (const float *)(const void *)from->data + (first + head * rows) * HIDDEN,
           rows * HIDDEN * sizeof(float));
    return to + rows * HIDDEN;
}

static void add_qkvz(const gb_program *program, const char *prefix) {
    char name[NAME];
    const gb_constant *qkv = sibling(program, prefix, "in_proj_qkv.weight"),
                      *z = sibling(program, prefix, "in_proj_z.weight");
    const size_t values = VALUE_HEADS / KEY_HEADS * VALUE_DIM, keys = KEY_DIM;
    const int64_t dims[] = {(int64_t)(KEY_HEADS * (2 * keys + 2 * values)), HIDDEN};
    snprintf(name, sizeof name, "%.80sin_proj_qkvz.weight", prefix);
    float *to = add_tensor(name, 2, dims);
    for (size_t head = 0; head < KEY_HEADS; head++) {
        to = copy_rows(to, qkv, 0, head, keys);
        to = copy_rows(to, qkv, KEY_HEADS * keys, head, keys);
        to = copy_rows(to, qkv, 2 * KEY_HEADS * keys, head, values);
        to = copy_rows(to, z, 0, head, values);
    }
}

static void add_ba(const gb_program *program, const char *prefix) {
    char name[NAME];
    const size_t heads = VALUE_HEADS / KEY_HEADS;
    snprintf(name, sizeof name, "%.80sin_proj_ba.weight", prefix);
    float *to = add_tensor(name, 2, (const int64_t[]){2 * VALUE_HEADS, HIDDEN});
    for (size_t head = 0; head < KEY_HEADS; head++) {
        to = copy_rows(to, sibling(program, prefix, "in_proj_b.weight"), 0, head, heads);
        to = copy_rows(to, sibling(program, prefix, "in_proj_a.weight"), 0, head, heads);
    }
}

/* ---- A checkpoint -------------------------------------------------------------------------------------- */

typedef enum form {
    RELEASED,   /* as Hugging Face has it */
    FIRST_GGUF, /* experts stacked */
    NEWER_GGUF, /* and queries, keys, values apart from gates */
    FORMS
} form;

static void add_experts(const gb_constant *both, const char *prefix) {
    static const char *const names[] = {"gate_proj", "up_proj"};
    const float *from = (const float *)(const void *)both->data;
    for (size_t i = 0; i < 2 * EXPERTS; i++) {
        char name[NAME];
        snprintf(name, sizeof name, "%.80s%zu.%s.weight", prefix, i / 2, names[i % 2]);
        memcpy(add_tensor(name, 2, (const int64_t[]){INNER, HIDDEN}), from + i * INNER * HIDDEN,
               sizeof(float) * INNER * HIDDEN);
    }
}

static void add_down(const gb_constant *down, const char *prefix) {
    const float *from = (const float *)(const void *)down->data;
    for (size_t i = 0; i < EXPERTS; i++) {
        char name[NAME];
        snprintf(name, sizeof name, "%.80s%zu.down_proj.weight", prefix, i);
        memcpy(add_tensor(name, 2, (const int64_t[]){HIDDEN, INNER}), from + i * INNER * HIDDEN,
               sizeof(float) * INNER * HIDDEN);
    }
}

/* Whether the name ends so; then prefix is what comes before. */
static bool has_ending(const char *name, const char *ending, char prefix[NAME]) {
    const size_t length = strlen(name), tail = strlen(ending);
    if (length < tail || strcmp(name + length - tail, ending) != 0)
        return false;
    snprintf(prefix, NAME, "%.*s", (int)(length - tail), name);
    return true;
}

static void add_constant(const gb_program *program, const gb_constant *constant, form kind) {
    char prefix[NAME];
    const char *name = constant->name;
    if (has_ending(name, "in_proj_z.weight", prefix) && kind != NEWER_GGUF)
        add_qkvz(program, prefix);
    else if (has_ending(name, "in_proj_b.weight", prefix))
        add_ba(program, prefix);
    else if (has_ending(name, "gate_up_proj", prefix) && kind == RELEASED)
        add_experts(constant, prefix);
    else if (strstr(name, "experts.") && has_ending(name, "down_proj", prefix) && kind == RELEASED)
        add_down(constant, prefix);
    else if (strchr(name, '.') && !has_ending(name, "in_proj_a.weight", prefix) &&
             (kind == NEWER_GGUF || !has_ending(name, "in_proj_qkv.weight", prefix)))
        memcpy(add_tensor(name, constant->type.shape.rank, constant->type.shape.dims), constant->data,
               (size_t)constant->size);
}

/* Random weights as the form has them. */
static void make_list(const char *config, form kind) {
    gb_program *program = NULL;
    gumbel_error error;
    const gumbel_export_options options = {.size = sizeof options, .random_weights = true, .random_seed = 5};
    free_list();
    write_config(config);
    assert_ok(gumbel_export(temporary_path("checkpoint/config.json"), temporary_path("random.gumbel"),
                            &options, &error),
              &error);
    assert_ok(gb_program_read(temporary_path("random.gumbel"), &program, &error), &error);
    for (uint32_t i = 0; i < program->constant_count; i++)
        add_constant(program, &program->constants[i], kind);
    gb_program_destroy(program);
}

static void write_checkpoint(void) {
    write_safetensors(temporary_path("checkpoint/model.safetensors"), list.tensors, list.count);
}

/* ---- As released --------------------------------------------------------------------------------------- */

typedef struct answer {
    float logits[VOCABULARY];
    int32_t greedy[GREEDY];
} answer;

static answer answer_of(const char *path, const gumbel_export_options *options) {
    answer found;
    exported_logits(path, "answer.gumbel", options, VOCABULARY, found.logits, found.greedy, GREEDY);
    return found;
}

static void assert_equal(const answer *a, const answer *b) {
    assert_memory_equal(a->logits, b->logits, sizeof a->logits);
    assert_memory_equal(a->greedy, b->greedy, sizeof a->greedy);
    assert_true(a->logits[0] != a->logits[1]);
}

static void agree_as_released(const char *config, const char *recipe) {
    const gumbel_export_options options = {.size = sizeof options, .quantize = recipe};
    gumbel_export_options random = options;
    random.random_weights = true;
    random.random_seed = 5;
    make_list(config, RELEASED);
    write_checkpoint();
    const answer released = answer_of(temporary_path("checkpoint"), &options),
                 drawn = answer_of(temporary_path("checkpoint/config.json"), &random);
    assert_equal(&released, &drawn);
}

static void is_what_it_was_made_of(void **state) {
    (void)state;
    agree_as_released("", NULL);
    agree_as_released(",\"mlp_only_layers\":[0],\"tie_word_embeddings\":true", NULL);
    agree_as_released(",\"layer_types\":[\"full_attention\",\"linear_attention\"]", NULL);
}

/* A quantizer sees the rows that it sees where they stand one below the other. */
static void is_quantized_alike(void **state) {
    (void)state;
    static const char *const recipes[] = {"int4", "int8", "int4-affine"};
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        const gumbel_export_options options = {.size = sizeof options, .quantize = recipes[i]};
        make_list("", RELEASED);
        write_checkpoint();
        const answer released = answer_of(temporary_path("checkpoint"), &options);
        make_list("", NEWER_GGUF);
        write_checkpoint();
        const answer apart = answer_of(temporary_path("checkpoint"), &options);
        assert_equal(&released, &apart);
    }
}

/* Dims of 1 that some converters add, before or behind the others, change nothing. */
static void takes_further_dims_of_one(void **state) {
    (void)state;
    const gumbel_export_options options = {.size = sizeof options};
    make_list("", RELEASED);
    write_checkpoint();
    const answer expected = answer_of(temporary_path("checkpoint"), &options);
    for (size_t i = 0; i < list.count; i++) {
        test_tensor *tensor = &list.tensors[i];
        if (tensor->rank != 2)
            continue;
        tensor->rank = 3;
        tensor->dims[2] = 1;
        if (i % 2 == 0)
            memcpy(tensor->dims, (const int64_t[]){1, tensor->dims[0], tensor->dims[1]}, sizeof(int64_t) * 3);
    }
    write_checkpoint();
    const answer found = answer_of(temporary_path("checkpoint"), &options);
    assert_equal(&expected, &found);
}

static void keep_message(void *user, gumbel_log_level level, const char *message) {
    if (level == GUMBEL_LOG_INFO)
        snprintf(user, 256, "%.250s", message);
}

static void says_what_it_leaves_out(void **state) {
    (void)state;
    gumbel_error error;
    char said[256] = "";
    const gumbel_export_options options = {.size = sizeof options, .log = keep_message, .log_user = said};
    make_list("", RELEASED);
    add_tensor("mtp.fc.weight", 2, (const int64_t[]){HIDDEN, 2 * HIDDEN});
    add_tensor("mtp.norm.weight", 1, (const int64_t[]){HIDDEN});
    write_checkpoint();
    assert_ok(gumbel_export(temporary_path("checkpoint"), temporary_path("a.gumbel"), &options, &error),
              &error);
    assert_string_equal(
        said,
        "2 tensors of the checkpoint are not used: mtp 2; --draft-head takes the draft head (mtp) along");
}

static void names_what_is_missing(void **state) {
    (void)state;
    static const char *const endings[] = {"in_proj_qkvz.weight", "in_proj_ba.weight",
                                          "experts.2.up_proj.weight"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        gumbel_error error;
        char prefix[NAME];
        make_list("", RELEASED);
        size_t at = 0;
        while (!has_ending(list.names[at], endings[i], prefix))
            at++;
        list.tensors[at].name = "other";
        write_checkpoint();
        assert_fails(gumbel_export(temporary_path("checkpoint"), temporary_path("a.gumbel"), NULL, &error),
                     GUMBEL_ERROR_FORMAT, &error, endings[i]);
    }
    gumbel_error error;
    make_list("", RELEASED);
    write_checkpoint();
    char other[2048];
    snprintf(other, sizeof other, "{\"model_type\":\"qwen3_next\",%s}", SIZES);
    char *value_heads = strstr(other, "\"linear_num_value_heads\":6");
    assert_non_null(value_heads);
    value_heads[strlen("\"linear_num_value_heads\":")] = '4';
    write_text(temporary_path("checkpoint/config.json"), other);
    assert_fails(gumbel_export(temporary_path("checkpoint"), temporary_path("a.gumbel"), NULL, &error),
                 GUMBEL_ERROR_FORMAT, &error, "in_proj_qkvz.weight");
}

/* ---- GGUF ---------------------------------------------------------------------------------------------- */

static void add_settings(gguf_writer *writer, const char *skipped) {
    static const struct {
        const char *key;
        uint32_t value;
    } integers[] = {{"block_count", 2},
                    {"context_length", 100},
                    {"embedding_length", HIDDEN},
                    {"feed_forward_length", 96},
                    {"attention.head_count", 2},
                    {"attention.head_count_kv", 1},
                    {"attention.key_length", 128},
                    {"attention.value_length", 128},
                    {"rope.dimension_count", 32},
                    {"full_attention_interval", 2},
                    {"ssm.conv_kernel", 4},
                    {"ssm.state_size", KEY_DIM},
                    {"ssm.group_count", KEY_HEADS},
                    {"ssm.time_step_rank", VALUE_HEADS},
                    {"ssm.inner_size", VALUE_HEADS * VALUE_DIM},
                    {"expert_count", EXPERTS},
                    {"expert_used_count", 2},
                    {"expert_feed_forward_length", INNER},
                    {"expert_shared_feed_forward_length", 256}};
    gguf_add_text(writer, "general.architecture", "qwen3next");
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        char key[NAME];
        snprintf(key, sizeof key, "qwen3next.%s", integers[i].key);
        if (!skipped || strcmp(skipped, integers[i].key) != 0)
            gguf_add_u32(writer, key, integers[i].value);
    }
    gguf_add_f32(writer, "qwen3next.rope.freq_base", 12345.0f);
    gguf_add_f32(writer, "qwen3next.attention.layer_norm_rms_epsilon", 1e-6f);
}

/* What the converter does to numbers: norms get 1 but for the delta net's, rates their sign. */
static void convert(const char *name, float *values, size_t count) {
    char prefix[NAME];
    const bool is_norm =
        has_ending(name, "norm.weight", prefix) && !has_ending(name, "linear_attn.norm.weight", prefix);
    for (size_t i = 0; i < count; i++) {
        if (is_norm)
            values[i] += 1;
        if (has_ending(name, "A_log", prefix))
            values[i] = -expf(values[i]);
    }
}

/* Dims but for those of 1. */
static int32_t squeeze(const test_tensor *tensor, int64_t dims[4]) {
    int32_t rank = 0;
    for (int32_t i = 0; i < tensor->rank; i++)
        if (tensor->dims[i] != 1)
            dims[rank++] = tensor->dims[i];
    return rank;
}

/* The list's tensors; matrices with rows of 256 are random blocks, or the numbers that these stand for, where
 * there are blocks. */
static void write_gguf(const char *skipped, const gb_block_type *type, bool as_numbers) {
    gguf_writer w = {.version = 3};
    add_settings(&w, skipped);
    for (size_t i = 0; i < list.count; i++) {
        char name[GB_GGUF_NAME];
        int64_t dims[4];
        const test_tensor *tensor = &list.tensors[i];
        const int32_t rank = squeeze(tensor, dims);
        assert_non_null(gb_gguf_from_checkpoint(gb_gguf_qwen3next.names, tensor->name, name));
        convert(tensor->name, list.owned[i], tensor->size / 4);
        if (type && rank > 1 && dims[rank - 1] == 256)
            gguf_add_blocks(&w, name, *type, rank, dims, (uint32_t)i, as_numbers);
        else
            gguf_add_tensor(&w, name, 0, rank, dims, tensor->data, tensor->size);
    }
    gguf_write(&w, temporary_path("model.gguf"));
}

static void gguf_agrees(void **state) {
    (void)state;
    const gumbel_export_options random = {.size = sizeof random, .random_weights = true, .random_seed = 5};
    for (form kind = FIRST_GGUF; kind < FORMS; kind++) {
        make_list("", kind);
        const answer expected = answer_of(temporary_path("checkpoint/config.json"), &random);
        write_gguf(NULL, NULL, false);
        const answer found = answer_of(temporary_path("model.gguf"), NULL);
        float largest = 0, difference = 0;
        for (size_t i = 0; i < VOCABULARY; i++) {
            largest = fmaxf(largest, fabsf(expected.logits[i]));
            difference = fmaxf(difference, fabsf(expected.logits[i] - found.logits[i]));
        }
        assert_true(largest > 0 && difference <= 1e-5f * largest);
        assert_memory_equal(expected.greedy, found.greedy, sizeof found.greedy);
    }
}

/* Rows are taken out of quantized tensors as they are. */
static void gguf_keeps_blocks(void **state) {
    (void)state;
    static const gb_block_type types[] = {GB_BLOCK_Q4_0, GB_BLOCK_Q8_0, GB_BLOCK_Q4_K, GB_BLOCK_Q6_K};
    const gumbel_export_options options = {.size = sizeof options, .activations = "none", .cache = "float32"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        make_list("", FIRST_GGUF);
        write_gguf(NULL, &types[i], true);
        const answer expected = answer_of(temporary_path("model.gguf"), &options);
        make_list("", FIRST_GGUF);
        write_gguf(NULL, &types[i], false);
        const answer found = answer_of(temporary_path("model.gguf"), &options);
        assert_equal(&expected, &found);
    }
}

static void gguf_names_missing_keys(void **state) {
    (void)state;
    static const char *const keys[] = {"ssm.group_count", "expert_count", "expert_used_count",
                                       "expert_feed_forward_length"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        gumbel_error error;
        make_list("", NEWER_GGUF);
        write_gguf(keys[i], NULL, false);
        assert_fails(gumbel_export(temporary_path("model.gguf"), temporary_path("a.gumbel"), NULL, &error),
                     GUMBEL_ERROR_FORMAT, &error, keys[i]);
    }
}

static int tear_down(void **state) {
    (void)state;
    free_list();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(is_what_it_was_made_of, start_empty),
        cmocka_unit_test_setup(is_quantized_alike, start_empty),
        cmocka_unit_test_setup(takes_further_dims_of_one, start_empty),
        cmocka_unit_test_setup(says_what_it_leaves_out, start_empty),
        cmocka_unit_test_setup(names_what_is_missing, start_empty),
        cmocka_unit_test_setup(gguf_agrees, start_empty),
        cmocka_unit_test_setup(gguf_keeps_blocks, start_empty),
        cmocka_unit_test_setup(gguf_names_missing_keys, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
