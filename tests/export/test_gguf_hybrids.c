/* SPDX-License-Identifier: Apache-2.0
 *
 * Nemotron-H, LFM2 and Granite 4 from GGUF, dense and with experts: files as llama.cpp's converter writes
 * them give what the weights give that they were made of (tests/oracle/make_hybrid_gguf.py), and what is not
 * supported is refused by key.
 */
#include "support/assertions.h"
#include "support/checkpoints/gguf_writer.h"
#include "support/paths.h"
#include "support/programs/model_logits.h"
#include "support/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define GOLDEN(name) test_data("export/gguf/" name)
enum { VOCABULARY = 300, GREEDY = 12 };

static void agrees_with_the_original(const char *config, const char *gguf) {
    static float expected[VOCABULARY], found[VOCABULARY];
    int32_t expected_tokens[GREEDY], found_tokens[GREEDY];
    const gumbel_export_options options = {.size = sizeof options, .random_weights = true, .random_seed = 5};
    exported_logits(config, "random.gumbel", &options, VOCABULARY, expected, expected_tokens, GREEDY);
    exported_logits(gguf, "gguf.gumbel", NULL, VOCABULARY, found, found_tokens, GREEDY);
    float largest = 0, difference = 0;
    for (size_t i = 0; i < VOCABULARY; i++) {
        largest = fmaxf(largest, fabsf(expected[i]));
        difference = fmaxf(difference, fabsf(expected[i] - found[i]));
    }
    assert_true(largest > 0 && difference <= 1e-5f * largest);
    assert_memory_equal(expected_tokens, found_tokens, sizeof found_tokens);
}

static void dense_agrees(void **state) {
    (void)state;
    agrees_with_the_original(GOLDEN("nemotron_dense.json"), GOLDEN("nemotron_dense.gguf"));
}

static void experts_agree(void **state) {
    (void)state;
    agrees_with_the_original(GOLDEN("nemotron_experts.json"), GOLDEN("nemotron_experts.gguf"));
}

static void lfm2_agrees(void **state) {
    (void)state;
    agrees_with_the_original(GOLDEN("lfm2_dense.json"), GOLDEN("lfm2_dense.gguf"));
    agrees_with_the_original(GOLDEN("lfm2_experts.json"), GOLDEN("lfm2_experts.gguf"));
}

static void granite_agrees(void **state) {
    (void)state;
    agrees_with_the_original(GOLDEN("granite_dense.json"), GOLDEN("granite_dense.gguf"));
    agrees_with_the_original(GOLDEN("granite_experts.json"), GOLDEN("granite_experts.gguf"));
}

/* ---- Refusals ------------------------------------------------------------------------------------------ */

/* A file of settings alone: three layers, of which the second attends and the third is an MLP. */
typedef struct settings {
    const char *skipped;
    uint32_t inner, next;
    int32_t key_heads[3], widths[3];
} settings;

static const settings RIGHT = {NULL, 256, 0, {0, 1, 0}, {0, 0, 64}};

static void write_settings(const settings *s, const char *path) {
    static const struct {
        const char *key;
        uint32_t value;
    } integers[] = {{"nemotron_h.block_count", 3},           {"nemotron_h.context_length", 100},
                    {"nemotron_h.embedding_length", 64},     {"nemotron_h.attention.head_count", 2},
                    {"nemotron_h.attention.key_length", 32}, {"nemotron_h.ssm.conv_kernel", 4},
                    {"nemotron_h.ssm.state_size", 16},       {"nemotron_h.ssm.group_count", 2},
                    {"nemotron_h.ssm.time_step_rank", 8}};
    gguf_writer writer = {.version = 3};
    gguf_add_text(&writer, "general.architecture", "nemotron_h");
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        if (!s->skipped || strcmp(s->skipped, integers[i].key) != 0)
            gguf_add_u32(&writer, integers[i].key, integers[i].value);
    gguf_add_u32(&writer, "nemotron_h.ssm.inner_size", s->inner);
    gguf_add_u32(&writer, "nemotron_h.nextn_predict_layers", s->next);
    gguf_add_i32s(&writer, "nemotron_h.attention.head_count_kv", s->key_heads, 3);
    gguf_add_i32s(&writer, "nemotron_h.feed_forward_length", s->widths, 3);
    if (!s->skipped || strcmp(s->skipped, "epsilon") != 0)
        gguf_add_f32(&writer, "nemotron_h.attention.layer_norm_epsilon", 1e-5f);
    const int64_t dims[] = {40, 64};
    static const float table[40 * 64];
    gguf_add_tensor(&writer, "token_embd.weight", 0, 2, dims, table, sizeof table);
    gguf_write(&writer, path);
}

static void refuses(settings s, gumbel_status status, const char *part) {
    const char *path = temporary_path("settings.gguf");
    gumbel_error error;
    write_settings(&s, path);
    assert_fails(gumbel_export(path, temporary_path("no.gumbel"), NULL, &error), status, &error, part);
}

static void refuses_by_key(void **state) {
    (void)state;
    settings s = RIGHT;
    refuses(s, GUMBEL_ERROR_FORMAT, "tensor blk.0."); /* so far all is right */
    s.inner = 250;
    refuses(s, GUMBEL_ERROR_FORMAT, "ssm.inner_size: 250, expected a multiple of the 8");
    s = RIGHT;
    s.next = 3;
    refuses(s, GUMBEL_ERROR_FORMAT, "nextn_predict_layers: 3, expected fewer than the 3 layers");
    s = RIGHT;
    s.skipped = "epsilon";
    refuses(s, GUMBEL_ERROR_FORMAT, "layer_norm_epsilon");
    s.skipped = "nemotron_h.ssm.state_size";
    refuses(s, GUMBEL_ERROR_FORMAT, "ssm.state_size");
    s = RIGHT;
    s.key_heads[0] = 2;
    refuses(s, GUMBEL_ERROR_UNSUPPORTED, "head_count_kv: layers of 2 and of 1");
}

/* A mixture's settings, of which one says how its router scores. */
static void write_mixture(const char *path, uint32_t gating) {
    static const struct {
        const char *key;
        uint32_t value;
    } integers[] = {{"lfm2moe.block_count", 1},
                    {"lfm2moe.context_length", 100},
                    {"lfm2moe.embedding_length", 64},
                    {"lfm2moe.feed_forward_length", 64},
                    {"lfm2moe.attention.head_count", 2},
                    {"lfm2moe.attention.head_count_kv", 1},
                    {"lfm2moe.shortconv.l_cache", 3},
                    {"lfm2moe.expert_count", 4},
                    {"lfm2moe.expert_used_count", 2},
                    {"lfm2moe.expert_feed_forward_length", 32},
                    {"lfm2moe.leading_dense_block_count", 0}};
    gguf_writer writer = {.version = 3};
    gguf_add_text(&writer, "general.architecture", "lfm2moe");
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        gguf_add_u32(&writer, integers[i].key, integers[i].value);
    gguf_add_u32(&writer, "lfm2moe.expert_gating_func", gating);
    gguf_add_f32(&writer, "lfm2moe.attention.layer_norm_rms_epsilon", 1e-5f);
    const int64_t dims[] = {40, 64};
    static const float table[40 * 64];
    gguf_add_tensor(&writer, "token_embd.weight", 0, 2, dims, table, sizeof table);
    gguf_write(&writer, path);
}

static void routers_score_by_sigmoids(void **state) {
    (void)state;
    const char *path = temporary_path("mixture.gguf");
    gumbel_error error;
    write_mixture(path, 1);
    assert_fails(gumbel_export(path, temporary_path("no.gumbel"), NULL, &error), GUMBEL_ERROR_UNSUPPORTED,
                 &error, "expert_gating_func: 1, expected 2");
    write_mixture(path, 2);
    assert_fails(gumbel_export(path, temporary_path("no.gumbel"), NULL, &error), GUMBEL_ERROR_FORMAT, &error,
                 "tensor blk.0.");
}

/* Granite's settings: two layers, of which the second attends. */
typedef struct granite_settings {
    uint32_t heads, inner, experts;
    float scale;
    const char *skipped;
} granite_settings;

static const granite_settings RIGHT_GRANITE = {8, 128, 4, 0, NULL};

static void write_granite(const granite_settings *s, const char *path) {
    const struct {
        const char *key;
        uint32_t value;
    } integers[] = {{"granitehybrid.block_count", 2},
                    {"granitehybrid.context_length", 100},
                    {"granitehybrid.embedding_length", 64},
                    {"granitehybrid.feed_forward_length", 64},
                    {"granitehybrid.attention.head_count", 2},
                    {"granitehybrid.ssm.conv_kernel", 4},
                    {"granitehybrid.ssm.state_size", 16},
                    {"granitehybrid.ssm.group_count", 1},
                    {"granitehybrid.ssm.time_step_rank", s->heads},
                    {"granitehybrid.ssm.inner_size", s->inner},
                    {"granitehybrid.expert_count", s->experts},
                    {"granitehybrid.expert_used_count", 2},
                    {"granitehybrid.expert_shared_feed_forward_length", 48}};
    gguf_writer writer = {.version = 3};
    gguf_add_text(&writer, "general.architecture", "granitehybrid");
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        if (!s->skipped || strcmp(s->skipped, integers[i].key) != 0)
            gguf_add_u32(&writer, integers[i].key, integers[i].value);
    gguf_add_i32s(&writer, "granitehybrid.attention.head_count_kv", (const int32_t[]){0, 1}, 2);
    gguf_add_f32(&writer, "granitehybrid.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_add_f32(&writer, "granitehybrid.expert_weights_scale", s->scale);
    const int64_t dims[] = {40, 64};
    static const float table[40 * 64];
    gguf_add_tensor(&writer, "token_embd.weight", 0, 2, dims, table, sizeof table);
    gguf_write(&writer, path);
}

static void refuses_granite(granite_settings s, gumbel_status status, const char *part) {
    const char *path = temporary_path("granite.gguf");
    gumbel_error error;
    write_granite(&s, path);
    assert_fails(gumbel_export(path, temporary_path("no.gumbel"), NULL, &error), status, &error, part);
}

static void granite_is_refused_by_key(void **state) {
    (void)state;
    granite_settings s = RIGHT_GRANITE;
    refuses_granite(s, GUMBEL_ERROR_FORMAT, "tensor blk.0."); /* so far all is right */
    s.inner = 120;
    refuses_granite(s, GUMBEL_ERROR_FORMAT,
                    "ssm.inner_size: 120, expected a multiple of the 8 of ssm.time_step_rank and the 64");
    s = RIGHT_GRANITE;
    s.heads = 0;
    refuses_granite(s, GUMBEL_ERROR_FORMAT, "ssm.inner_size: 128, expected a multiple of the 0");
    s = RIGHT_GRANITE;
    s.scale = 2;
    refuses_granite(s, GUMBEL_ERROR_UNSUPPORTED, "expert_weights_scale: 2");
    s = RIGHT_GRANITE;
    s.skipped = "granitehybrid.expert_shared_feed_forward_length";
    refuses_granite(s, GUMBEL_ERROR_FORMAT, "expert_shared_feed_forward_length");
    s.skipped = "granitehybrid.ssm.state_size";
    refuses_granite(s, GUMBEL_ERROR_FORMAT, "ssm.state_size");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_agrees),
        cmocka_unit_test(experts_agree),
        cmocka_unit_test(lfm2_agrees),
        cmocka_unit_test(granite_agrees),
        cmocka_unit_test(refuses_by_key),
        cmocka_unit_test(routers_score_by_sigmoids),
        cmocka_unit_test(granite_is_refused_by_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
