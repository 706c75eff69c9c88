/* SPDX-License-Identifier: Apache-2.0
 *
 * The plain decoders from GGUF: a file as llama.cpp's converter writes it gives, to the bit, what the weights
 * give that it was made from.
 */
#include "base/memory.h"
#include "export/checkpoint/ggml_types.h"
#include "export/gguf/architecture.h"
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/checkpoints/gguf_blocks.h"
#include "support/programs/model_logits.h"
#include "support/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { VOCABULARY = 40, GREEDY = 8, HEAD_DIM = 64, PHI_PAIRS = 24 };

/* A model, as config.json and as a GGUF. */
typedef struct dense_case {
    const gb_gguf_architecture *architecture;
    const char *config;      /* besides the sizes */
    const float *divisors;   /* of the frequencies, or NULL */
    const char *scaling;     /* rope.scaling.type, "": keys without it; or NULL */
    const char *experts_key; /* "" where there are none */
} dense_case;

#define SIZES                                                                                                \
    "\"dtype\":\"float32\",\"vocab_size\":40,\"hidden_size\":256,\"intermediate_size\":256,"                 \
    "\"num_hidden_layers\":4,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":64,"           \
    "\"max_position_embeddings\":100,\"rms_norm_eps\":1e-06,\"tie_word_embeddings\":false"

static float divisors[HEAD_DIM / 2]; /* 1 in the first half, 4 in the second */

static const dense_case CASES[] = {
    {&gb_gguf_llama,
     "{\"model_type\":\"llama\"," SIZES ",\"rope_theta\":12345.0,\"rope_scaling\":{\"frequency_divisors\":"
     "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4]}}",
     divisors, NULL, ""},
    {&gb_gguf_qwen3,
     "{\"model_type\":\"qwen3\"," SIZES ",\"rope_theta\":12345.0,\"rope_scaling\":{\"rope_type\":\"yarn\","
     "\"factor\":4.0,\"original_max_position_embeddings\":25,\"attention_factor\":1.5}}",
     NULL, "yarn", ""},
    {&gb_gguf_qwen2,
     "{\"model_type\":\"qwen2\"," SIZES ",\"rope_theta\":12345.0,\"rope_scaling\":{\"rope_type\":\"linear\","
     "\"factor\":4.0}}",
     NULL, "", ""},
    {&gb_gguf_qwen3moe,
     "{\"model_type\":\"qwen3_moe\"," SIZES ",\"rope_theta\":12345.0,\"num_experts\":3,"
     "\"num_experts_per_tok\":2,\"moe_intermediate_size\":256,\"norm_topk_prob\":true}",
     NULL, NULL, "expert_count"},
    {&gb_gguf_gemma3,
     "{\"model_type\":\"gemma3_text\"," SIZES ",\"rope_theta\":12345.0,\"rope_local_base_freq\":321.0,"
     "\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":4.0},\"sliding_window\":3,"
     "\"sliding_window_pattern\":2,\"query_pre_attn_scalar\":64}",
     NULL, "linear", ""},
    {&gb_gguf_smollm3,
     "{\"model_type\":\"smollm3\"," SIZES ",\"rope_theta\":12345.0,\"rope_scaling\":{\"rope_type\":\"yarn\","
     "\"factor\":4.0,\"original_max_position_embeddings\":25}}",
     NULL, "yarn", ""},
    {&gb_gguf_granite,
     "{\"model_type\":\"granite\"," SIZES ",\"rope_theta\":12345.0,\"embedding_multiplier\":1.5,"
     "\"attention_multiplier\":0.25,\"residual_multiplier\":0.5,\"logits_scaling\":8}",
     NULL, NULL, ""},
    {&gb_gguf_phi3,
     "{\"model_type\":\"phi3\"," SIZES ",\"rope_theta\":12345.0,\"original_max_position_embeddings\":25,"
     "\"partial_rotary_factor\":0.75,\"sliding_window\":3,\"rope_scaling\":{\"type\":\"longrope\","
     "\"attention_factor\":1.25,\"long_factor\":[4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4],"
     "\"short_factor\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}",
     NULL, NULL, ""},
    {&gb_gguf_gpt_oss,
     "{\"model_type\":\"gpt_oss\"," SIZES ",\"rope_theta\":12345.0,\"num_local_experts\":3,"
     "\"num_experts_per_tok\":2,\"sliding_window\":3,\"rope_scaling\":{\"rope_type\":\"yarn\","
     "\"factor\":4.0,\"original_max_position_embeddings\":25,\"truncate\":false}}",
     NULL, "yarn", "expert_count"},
    {&gb_gguf_muse_glimmer,
     "{\"model_type\":\"muse_glimmer_text\"," SIZES ",\"rope_theta\":321.0,\"sliding_window\":3,"
     "\"sliding_window_pattern\":2,\"layer_rope_theta\":[321,0,321,0],\"qk_scale_factor\":2,"
     "\"output_multiplier\":8,\"final_logit_softcapping\":1024}",
     NULL, NULL, ""},
    {&gb_gguf_mistral3,
     "{\"model_type\":\"ministral3\"," SIZES
     ",\"rope_parameters\":{\"rope_theta\":12345.0,\"rope_type\":\"yarn\","
     "\"factor\":4.0,\"original_max_position_embeddings\":5,\"mscale\":1,\"mscale_all_dim\":0.5,"
     "\"llama_4_scaling_beta\":0.25}}",
     NULL, "yarn", ""},
    {&gb_gguf_olmo2,
     "{\"model_type\":\"olmo3\"," SIZES ",\"sliding_window\":3,\"layer_types\":[\"sliding_attention\","
     "\"full_attention\",\"sliding_attention\",\"full_attention\"],\"rope_parameters\":{"
     "\"full_attention\":{\"rope_theta\":12345.0,\"rope_type\":\"yarn\",\"factor\":4.0,"
     "\"original_max_position_embeddings\":25},\"sliding_attention\":{\"rope_theta\":321.0}}}",
     NULL, "yarn", ""},
    {&gb_gguf_olmo2, "{\"model_type\":\"olmo2\"," SIZES ",\"rope_theta\":12345.0}", NULL, NULL, ""},
};
enum { CASE_COUNT = sizeof CASES / sizeof CASES[0] };

static int start(void **state) {
    (void)state;
    for (size_t i = 0; i < HEAD_DIM / 2; i++)
        divisors[i] = i < HEAD_DIM / 4 ? 1 : 4;
    empty_temporary_directory();
    return 0;
}

static bool is_muse(const dense_case *c) {
    return c->architecture == &gb_gguf_muse_glimmer;
}

/* Whether the model's files have the key. */
static bool has_key(const dense_case *c, const char *key) {
    if (is_muse(c) && (strcmp(key, "logit_scale") == 0 || strstr(key, "sliding") || strstr(key, "swa")))
        return true;
    const bool is_olmo3 = c->architecture == &gb_gguf_olmo2 && c->scaling;
    if (is_olmo3 && (strstr(key, "sliding") || strstr(key, "swa")))
        return true;
    if (strstr(key, "capping"))
        return is_muse(c);
    if (strncmp(key, "expert", 6) == 0)
        return c->experts_key[0];
    if (strcmp(key, "attention.temperature_scale") == 0 ||
        strcmp(key, "rope.scaling.yarn_log_multiplier") == 0)
        return c->architecture == &gb_gguf_mistral3;
    const bool is_phi = c->architecture == &gb_gguf_phi3;
    if (strcmp(key, "rope.scaling.original_context_length") == 0)
        return is_phi || c->scaling;
    if (strcmp(key, "rope.scaling.attn_factor") == 0 || strcmp(key, "attention.sliding_window") == 0)
        return is_phi ||
               (key[0] == 'a' && (c->architecture == &gb_gguf_gemma3 || c->architecture == &gb_gguf_gpt_oss));
    if (strcmp(key, "rope.scaling.yarn_attn_factor") == 0)
        return c->architecture == &gb_gguf_qwen3;
    if (strstr(key, "scaling"))
        return c->scaling;
    if (strstr(key, "_scale") || strcmp(key, "attention.scale") == 0)
        return c->architecture == &gb_gguf_granite;
    return c->architecture == &gb_gguf_gemma3 || (!strstr(key, "sliding") && !strstr(key, "swa"));
}

/* Three quarters of Phi's heads turn, and Ministral's queries grow within the prompt. */
static uint32_t value_of(const dense_case *c, const char *key, uint32_t usual) {
    if (c->architecture == &gb_gguf_mistral3 && strcmp(key, "rope.scaling.original_context_length") == 0)
        return 5;
    return c->architecture == &gb_gguf_phi3 && strcmp(key, "rope.dimension_count") == 0 ? 2 * PHI_PAIRS
                                                                                        : usual;
}

static void add_long_factors(gguf_writer *w) {
    float longer[PHI_PAIRS], shorter[PHI_PAIRS];
    for (size_t i = 0; i < PHI_PAIRS; i++) {
        longer[i] = 4;
        shorter[i] = 1;
    }
    gguf_add_tensor(w, "rope_factors_long.weight", GB_GGML_F32, 1, (const int64_t[]){PHI_PAIRS}, longer,
                    sizeof longer);
    gguf_add_tensor(w, "rope_factors_short.weight", GB_GGML_F32, 1, (const int64_t[]){PHI_PAIRS}, shorter,
                    sizeof shorter);
}

static void add_settings(gguf_writer *w, const dense_case *c, const char *skipped) {
    static const struct {
        const char *key;
        uint32_t value;
    } integers[] = {{"block_count", 4},
                    {"context_length", 100},
                    {"embedding_length", 256},
                    {"feed_forward_length", 256},
                    {"attention.head_count", 4},
                    {"attention.head_count_kv", 2},
                    {"attention.key_length", 64},
                    {"attention.value_length", 64},
                    {"rope.dimension_count", 64},
                    {"expert_count", 3},
                    {"expert_used_count", 2},
                    {"expert_feed_forward_length", 256},
                    {"rope.scaling.original_context_length", 25},
                    {"attention.sliding_window", 3},
                    {"attention.sliding_window_pattern", 2}};
    static const struct {
        const char *key;
        float value;
    } numbers[] = {{"rope.freq_base", 12345.0f},
                   {"rope.freq_base_swa", 321.0f},
                   {"attention.layer_norm_rms_epsilon", 1e-6f},
                   {"rope.scaling.factor", 4.0f},
                   {"embedding_scale", 1.5f},
                   {"attention.scale", 0.25f},
                   {"residual_scale", 0.5f},
                   {"logit_scale", 8.0f},
                   {"final_logit_softcapping", 1024.0f},
                   {"attention.temperature_scale", 0.25f},
                   {"rope.scaling.yarn_log_multiplier", 0.5f},
                   {"rope.scaling.attn_factor", 1.25f},
                   {"rope.scaling.yarn_attn_factor", 1.5f}};
    char key[128];
    w->version = 3;
    gguf_add_text(w, "general.architecture", c->architecture->name);
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        snprintf(key, sizeof key, "%s.%s", c->architecture->name, integers[i].key);
        if (has_key(c, integers[i].key) && strcmp(skipped, integers[i].key) != 0)
            gguf_add_u32(w, key, value_of(c, integers[i].key, integers[i].value));
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(key, sizeof key, "%s.%s", c->architecture->name, numbers[i].key);
        if (has_key(c, numbers[i].key) && strcmp(skipped, numbers[i].key) != 0)
            gguf_add_f32(w, key, numbers[i].value);
    }
    snprintf(key, sizeof key, "%s.rope.scaling.type", c->architecture->name);
    if (c->scaling && c->scaling[0] && strcmp(skipped, "rope.scaling.type") != 0)
        gguf_add_text(w, key, c->scaling);
    if (c->architecture == &gb_gguf_phi3)
        add_long_factors(w);
    if (c->divisors)
        gguf_add_tensor(w, "rope_freqs.weight", GB_GGML_F32, 1, (const int64_t[]){HEAD_DIM / 2}, c->divisors,
                        sizeof divisors);
}

/* A tensor's rows as the converter sorts them: a head's row i beside its row i + HEAD_DIM / 2. */
static float *pair_rows(const float *from, int64_t rows, int64_t columns) {
    float *to = gb_allocate((size_t)(rows * columns), sizeof *to);
    assert_non_null(to);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t head = row / HEAD_DIM, within = row % HEAD_DIM;
        const int64_t original = head * HEAD_DIM + within % 2 * (HEAD_DIM / 2) + within / 2;
        memcpy(to + row * columns, from + original * columns, (size_t)columns * sizeof *to);
    }
    return to;
}

/* A norm's weight as the converter stores it: 1 + w. */
static float *add_one(const float *from, int64_t count) {
    float *to = gb_allocate((size_t)count, sizeof *to);
    assert_non_null(to);
    for (int64_t i = 0; i < count; i++)
        to[i] = 1 + from[i];
    return to;
}

/* What the converter makes of a tensor's numbers; NULL: it leaves them. */
static float *convert(const dense_case *c, const gb_gguf_name *pair, const gb_constant *from) {
    const int64_t *dims = from->type.shape.dims;
    if (pair->has_row_pairs)
        return pair_rows((const float *)from->data, dims[0], dims[1]);
    bool holds_one = c->architecture == &gb_gguf_gemma3 && from->type.shape.rank == 1;
    if (is_muse(c) && strncmp(pair->gguf, "blk.", 4) == 0 && from->type.shape.rank == 1)
        holds_one = true;
    return holds_one ? add_one((const float *)from->data, dims[0]) : NULL;
}

/* How matrices are stored. */
typedef struct storing {
    bool as_blocks; /* random ones of the type, or the numbers that they stand for */
    bool as_numbers;
    gb_block_type type;
    const char *skipped;
} storing;

static void add_tensor(gguf_writer *w, const storing *how, const char *name, int32_t rank,
                       const int64_t *dims, const void *data, uint64_t size) {
    uint64_t seed = 0;
    if (strcmp(how->skipped, name) == 0)
        return;
    for (const char *at = name; *at; at++)
        seed = seed * 31 + (uint64_t)*at;
    if (how->as_blocks && rank >= 2 && !strstr(name, ".bias"))
        gguf_add_blocks(w, name, how->type, rank, dims, seed, how->as_numbers);
    else
        gguf_add_tensor(w, name, GB_GGML_F32, rank, dims, data, size);
}

/* Gate above up in each expert: one tensor of each. */
static void add_gate_up(gguf_writer *w, const storing *how, const gb_constant *both, int layer) {
    const int64_t *all = both->type.shape.dims;
    const int64_t dims[] = {all[0], all[1] / 2, all[2]};
    const size_t half = (size_t)(dims[1] * dims[2]);
    for (int part = 0; part < 2; part++) {
        float *values = gb_allocate((size_t)dims[0] * half, sizeof *values);
        assert_non_null(values);
        for (size_t x = 0; x < (size_t)dims[0]; x++)
            memcpy(values + x * half, (const float *)both->data + (2 * x + (size_t)part) * half,
                   half * sizeof *values);
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_%s_exps.weight", layer, part ? "up" : "gate");
        add_tensor(w, how, name, 3, dims, values, (uint64_t)dims[0] * half * sizeof *values);
        gb_free(values);
    }
}

/* Matrices of Phi that stand above each other in a tensor of the file. */
static const struct fused {
    const char *name, *parts[3];
} FUSED[] = {
    {"attn_qkv", {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"}},
    {"ffn_up", {"mlp.gate_proj.weight", "mlp.up_proj.weight"}},
};

static const gb_constant *constant_of(const gb_program *program, int layer, const char *part) {
    char name[96];
    snprintf(name, sizeof name, "model.layers.%d.%s", layer, part);
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (strcmp(program->constants[i].name, name) == 0)
            return &program->constants[i];
    fail_msg("there is no constant %s", name);
    return NULL;
}

static void add_fused(gguf_writer *w, const storing *how, const gb_program *program, int layer,
                      const struct fused *fused) {
    float *values = gb_allocate(1024 * 256, sizeof *values);
    int64_t dims[] = {0, 256};
    assert_non_null(values);
    for (size_t i = 0; i < 3 && fused->parts[i]; i++) {
        const gb_constant *from = constant_of(program, layer, fused->parts[i]);
        memcpy(values + dims[0] * dims[1], from->data, (size_t)from->size);
        dims[0] += from->type.shape.dims[0];
    }
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s.weight", layer, fused->name);
    add_tensor(w, how, name, 2, dims, values, (uint64_t)(dims[0] * dims[1]) * sizeof *values);
    gb_free(values);
}

/* Whether the constant is a part of such a tensor, which goes with the first one. */
static bool add_part(gguf_writer *w, const storing *how, const gb_program *program, const char *constant) {
    int layer = 0, length = 0;
    if (sscanf(constant, "model.layers.%d.%n", &layer, &length) != 1)
        return false;
    for (size_t i = 0; i < 6; i++) {
        const struct fused *fused = &FUSED[i / 3];
        if (!fused->parts[i % 3] || strcmp(constant + length, fused->parts[i % 3]) != 0)
            continue;
        if (i % 3 == 0)
            add_fused(w, how, program, layer, fused);
        return true;
    }
    return false;
}

/* Muse Glimmer's queries are normalized with their factor for a weight, its keys with 1. */
static void add_head_norms(gguf_writer *w, const storing *how) {
    for (int i = 0; i < 8; i++) {
        float weight[HEAD_DIM];
        char name[64];
        for (size_t j = 0; j < HEAD_DIM; j++)
            weight[j] = i % 2 ? 1 : 2;
        snprintf(name, sizeof name, "blk.%d.attn_%c_norm.weight", i / 2, i % 2 ? 'k' : 'q');
        add_tensor(w, how, name, 1, (const int64_t[]){HEAD_DIM}, weight, sizeof weight);
    }
}

static void add_tensors(gguf_writer *w, const dense_case *c, const gb_program *program, const storing *how) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *from = &program->constants[i];
        const gb_shape *shape = &from->type.shape;
        char name[GB_GGUF_NAME];
        int layer = 0;
        if (sscanf(from->name, "model.layers.%d.mlp.experts.gate_up", &layer) == 1 &&
            strstr(from->name, "gate_up_proj")) {
            add_gate_up(w, how, from, layer);
            continue;
        }
        if (c->architecture == &gb_gguf_phi3 && add_part(w, how, program, from->name))
            continue;
        const gb_gguf_name *pair = gb_gguf_from_checkpoint(c->architecture->names, from->name, name);
        if (!pair)
            continue;
        float *converted = convert(c, pair, from);
        add_tensor(w, how, name, shape->rank, shape->dims, converted ? (const void *)converted : from->data,
                   from->size);
        gb_free(converted);
    }
    if (is_muse(c))
        add_head_norms(w, how);
}

static gb_program *random_program(const dense_case *c) {
    gb_program *program = NULL;
    gumbel_error error;
    gumbel_export_options options = {.size = sizeof options, .random_weights = true, .random_seed = 5};
    write_text(temporary_path("config.json"), c->config);
    assert_ok(gumbel_export(temporary_path("config.json"), temporary_path("random.gumbel"), &options, &error),
              &error);
    assert_ok(gb_program_read(temporary_path("random.gumbel"), &program, &error), &error);
    return program;
}

static void write_gguf(const dense_case *c, const gb_program *program, const storing *how) {
    gguf_writer w = {0};
    add_settings(&w, c, "");
    add_tensors(&w, c, program, how);
    gguf_write(&w, temporary_path("model.gguf"));
}

static void agrees_with_the_original(void **state) {
    (void)state;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        float expected[VOCABULARY], found[VOCABULARY];
        int32_t expected_tokens[GREEDY], found_tokens[GREEDY];
        gumbel_export_options options = {.size = sizeof options, .random_weights = true, .random_seed = 5};
        gb_program *program = random_program(&CASES[i]);
        write_gguf(&CASES[i], program, &(storing){.skipped = ""});
        gb_program_destroy(program);
        exported_logits(temporary_path("config.json"), "a.gumbel", &options, VOCABULARY, expected,
                        expected_tokens, GREEDY);
        exported_logits(temporary_path("model.gguf"), "b.gumbel", NULL, VOCABULARY, found, found_tokens,
                        GREEDY);
        assert_memory_equal(expected, found, sizeof found);
        assert_memory_equal(expected_tokens, found_tokens, sizeof found_tokens);
    }
}

/* Quantized rows are sorted as those of numbers are. */
static void keeps_blocks(void **state) {
    (void)state;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        float expected[VOCABULARY], found[VOCABULARY];
        gumbel_export_options options = {.size = sizeof options, .activations = "none", .cache = "float32"};
        gb_program *program = random_program(&CASES[i]);
        storing how = {.as_blocks = true, .as_numbers = true, .type = GB_BLOCK_Q4_K, .skipped = ""};
        write_gguf(&CASES[i], program, &how);
        exported_logits(temporary_path("model.gguf"), "a.gumbel", &options, VOCABULARY, expected, NULL, 0);
        how.as_numbers = false;
        write_gguf(&CASES[i], program, &how);
        gb_program_destroy(program);
        exported_logits(temporary_path("model.gguf"), "b.gumbel", &options, VOCABULARY, found, NULL, 0);
        assert_memory_equal(expected, found, sizeof expected);
        assert_true(isfinite(found[0]) && found[0] != found[1]);
    }
}

static void refuses(const dense_case *c, const gb_program *program, gguf_writer *w, const char *skipped_key,
                    const char *skipped_tensor, gumbel_status status, const char *part) {
    gumbel_error error;
    add_settings(w, c, skipped_key);
    add_tensors(w, c, program, &(storing){.skipped = skipped_tensor});
    gguf_write(w, temporary_path("model.gguf"));
    assert_fails(gumbel_export(temporary_path("model.gguf"), temporary_path("no.gumbel"), NULL, &error),
                 status, &error, part);
    assert_non_null(strstr(error.message, "model.gguf: "));
}

/* llama.cpp adds biases wherever a file has them. */
static void refuses_biases(void **state) {
    (void)state;
    static const struct {
        size_t index; /* of the case */
        const char *bias, *weight;
    } biases[] = {{0, "blk.3.attn_q.bias", "blk.3.attn_q.weight"},
                  {0, "blk.0.ffn_up.bias", "blk.0.ffn_up.weight"},
                  {2, "blk.1.attn_output.bias", "blk.1.attn_output.weight"},
                  {2, "output.bias", "output.weight"}};
    static const float values[256] = {[255] = 0.5f}; /* one of zeros alone would be left out */
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++) {
        const dense_case *c = &CASES[biases[i].index];
        char part[160];
        gguf_writer w = {0};
        gb_program *program = random_program(c);
        gguf_add_tensor(&w, biases[i].bias, GB_GGML_F32, 1, (const int64_t[]){256}, values, sizeof values);
        snprintf(part, sizeof part, "tensor %s is not used: the results of %s would be computed without it",
                 biases[i].bias, biases[i].weight);
        refuses(c, program, &w, "", "", GUMBEL_ERROR_UNSUPPORTED, part);
        gb_program_destroy(program);
    }
}

static void refuses_by_name(void **state) {
    (void)state;
    gb_program *llama = random_program(&CASES[0]), *qwen2 = random_program(&CASES[2]),
               *moe = random_program(&CASES[3]);
    refuses(&CASES[0], llama, &(gguf_writer){0}, "context_length", "", GUMBEL_ERROR_FORMAT,
            "llama.context_length: the key is missing");
    refuses(&CASES[0], llama, &(gguf_writer){0}, "", "blk.1.attn_k.weight", GUMBEL_ERROR_FORMAT,
            "tensor blk.1.attn_k.weight is missing");
    refuses(&CASES[3], moe, &(gguf_writer){0}, "expert_used_count", "", GUMBEL_ERROR_FORMAT,
            "qwen3moe.expert_used_count: the key is missing");
    refuses(&CASES[3], moe, &(gguf_writer){0}, "", "blk.0.ffn_up_exps.weight", GUMBEL_ERROR_FORMAT,
            "tensor blk.0.ffn_up_exps.weight is missing");
    refuses(&CASES[2], qwen2, &(gguf_writer){0}, "", "blk.1.attn_v.bias", GUMBEL_ERROR_FORMAT,
            "tensor blk.1.attn_v.bias is missing");
    gguf_writer w = {0};
    gguf_add_u32(&w, "llama.expert_count", 8);
    refuses(&CASES[0], llama, &w, "", "", GUMBEL_ERROR_UNSUPPORTED, "llama.expert_count: 8: experts of this");
    gb_program *qwen3 = random_program(&CASES[1]);
    gguf_add_f32(&w, "qwen3.rope.scaling.yarn_ext_factor", 0.5f);
    refuses(&CASES[1], qwen3, &w, "", "", GUMBEL_ERROR_UNSUPPORTED,
            "qwen3.rope.scaling.yarn_ext_factor: 0.5 is not supported in this version; expected 1");
    gguf_add_f32(&w, "qwen3.rope.scaling.attn_factor", 2);
    refuses(&CASES[1], qwen3, &w, "", "", GUMBEL_ERROR_UNSUPPORTED,
            "qwen3.rope.scaling.attn_factor: 2 is not");
    gb_program_destroy(qwen3);
    gb_program *granite = random_program(&CASES[6]);
    refuses(&CASES[6], granite, &(gguf_writer){0}, "logit_scale", "", GUMBEL_ERROR_FORMAT,
            "granite.logit_scale: the key is missing");
    gguf_add_u32(&w, "granite.rope.scaling.finetuned", 0);
    refuses(&CASES[6], granite, &w, "", "", GUMBEL_ERROR_UNSUPPORTED,
            "granite.rope.scaling.finetuned: a model without rotary embedding");
    gb_program_destroy(granite);
    gb_program *muse = random_program(&CASES[9]);
    refuses(&CASES[9], muse, &(gguf_writer){0}, "", "blk.2.attn_k_norm.weight", GUMBEL_ERROR_FORMAT,
            "tensor blk.2.attn_k_norm.weight is missing");
    refuses(&CASES[9], muse, &(gguf_writer){0}, "attention.sliding_window", "", GUMBEL_ERROR_FORMAT,
            "muse-glimmer.attention.sliding_window: the key is missing");
    gguf_add_f32(&w, "qwen2.rope.scaling.yarn_log_multiplier", 1);
    gguf_add_text(&w, "qwen2.rope.scaling.type", "yarn");
    refuses(&CASES[2], qwen2, &w, "", "", GUMBEL_ERROR_UNSUPPORTED,
            "qwen2.rope.scaling.yarn_log_multiplier: 1 is not supported in this version; expected 0");
    gguf_add_text(&w, "muse-glimmer.rope.scaling.type", "yarn");
    refuses(&CASES[9], muse, &w, "", "", GUMBEL_ERROR_UNSUPPORTED,
            "muse-glimmer.rope.scaling.type: scaled rotary embedding");
    gb_program_destroy(muse);
    gguf_add_text(&w, "llama.rope.scaling.type", "longrope");
    refuses(&CASES[0], llama, &w, "", "", GUMBEL_ERROR_UNSUPPORTED,
            "llama.rope.scaling.type: is not supported");
    gguf_add_u32(&w, "llama.rope.dimension_count", 32);
    refuses(&CASES[0], llama, &w, "rope.dimension_count", "", GUMBEL_ERROR_UNSUPPORTED,
            "llama.rope.dimension_count: 32, expected the 64");
    gb_program_destroy(llama);
    gb_program_destroy(qwen2);
    gb_program_destroy(moe);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(agrees_with_the_original, start),
        cmocka_unit_test_setup(keeps_blocks, start),
        cmocka_unit_test_setup(refuses_biases, start),
        cmocka_unit_test_setup(refuses_by_name, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
