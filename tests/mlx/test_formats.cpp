/* SPDX-License-Identifier: Apache-2.0
 *
 * Every format of weights, those of GGUF's files included: op by op, and whole programs against the CPU. What
 * the backend converts when it loads them it says.
 */
#include "mlx/compare_ops.hpp"

extern "C" {
#include "support/checkpoints/qwen35_gguf.h"
#include "support/temporary.h"
}

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

using namespace gb_mlx;

enum { LONG_PROMPT = 20 }; /* so many rows are multiplied by numbers instead of codes */

/* ---- One level ----------------------------------------------------------------------------------------- */

static const char *write_recipe(int bits, const char *group, bool has_bias, const char *scale) {
    static char json[512];
    const char *path = temporary_path("recipe.json");
    std::snprintf(json, sizeof json,
                  R"({"name": "all", "description": "one format", "rules": [)"
                  R"({"pattern": "*", "bits": %d, "group": %s, "bias": %s, "scale": "%s"}]})",
                  bits, group, has_bias ? "true" : "false", scale);
    write_text(path, json);
    return path;
}

static void compare_format(int bits, const char *group, bool has_bias, const char *scale) {
    print_message("%d bits, group %s\n", bits, group);
    const auto program = random_program("qwen_wide.json", write_recipe(bits, group, has_bias, scale));
    compare_program(*program, {.prompt = LONG_PROMPT});
}

static void test_one_level(void **) {
    for (int bits : {4, 5, 6, 8}) {
        compare_format(bits, "32", true, "float16");
        compare_format(bits, "64", false, "float16");
        compare_format(bits, "128", true, "bfloat16");
    }
    compare_format(8, "\"row\"", true, "float16");
    compare_format(8, "\"row\"", false, "bfloat16");
}

static void keep_notices(void *user, gumbel_log_level, const char *line) {
    *static_cast<std::string *>(user) += line;
}

static void assert_noticed(const char *config, const char *recipe, const char *part) {
    std::string notices;
    gb_backend_options options = backend_options();
    options.log = keep_notices;
    options.log_user = &notices;
    const auto program = random_program(config, recipe);
    const lowered_program lowered(*program, options, false);
    if (notices.find(part) == std::string::npos)
        fail_msg("notices \"%s\", expected \"%s\"", notices.c_str(), part);
}

static void test_notices(void **) {
    assert_noticed("small_bf16.json", "none", "widened to float32");
    assert_noticed("small_groups.json", "int8", "matrices with a scale per row: scales repeated per group");
}

/* ---- GGUF's formats, and their order of value heads ---------------------------------------------------- */

static const struct {
    gb_block_type type;
    const char *notice; /* NULL: nothing is converted */
} blocks[] = {{GB_BLOCK_Q4_0, nullptr},
              {GB_BLOCK_Q4_1, nullptr},
              {GB_BLOCK_Q5_0, nullptr},
              {GB_BLOCK_Q5_1, nullptr},
              {GB_BLOCK_Q8_0, nullptr},
              {GB_BLOCK_Q4_K, "with scales of two levels: scales and biases computed"},
              {GB_BLOCK_Q5_K, "with scales of two levels: scales and biases computed"},
              {GB_BLOCK_Q6_K, "in a format that mlx lacks: dequantized to float32"},
              {GB_BLOCK_Q2_K, "in a format that mlx lacks: dequantized to float32"},
              {GB_BLOCK_Q3_K, "in a format that mlx lacks: dequantized to float32"},
              {GB_BLOCK_TQ1_0, nullptr},
              {GB_BLOCK_TQ2_0, nullptr},
              {GB_BLOCK_MXFP4, "in a format that mlx lacks: dequantized to float32"},
              {GB_BLOCK_IQ4_XS, "in a format that mlx lacks: dequantized to float32"}};

static bool has_tiled_heads(const gb_program &program) {
    for (uint32_t i = 0; i < program.node_count; i++)
        if (program.nodes[i].op == GB_OP_GATED_DELTA)
            return gb_node_int(&program.nodes[i], GB_ATTRIBUTE_TILED) != 0;
    return false;
}

/* Greedy tokens after a prompt, and the logits of its last one. */
static void run(const char *path, const char *backend, std::vector<float> &logits,
                std::vector<int32_t> &tokens, std::string &notices) {
    gumbel_error error;
    gumbel_program *program;
    gumbel_engine *engine;
    gumbel_session *session;
    std::vector<int32_t> prompt(LONG_PROMPT + 1);
    random_tokens(6, QWEN35_VOCABULARY, prompt.data(), prompt.size());
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    gumbel_engine_options options = {};
    options.size = sizeof options;
    options.backend = backend;
    options.log = keep_notices;
    options.log_user = &notices;
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(gumbel_session_append(session, prompt.data(), LONG_PROMPT, &error), &error);
    gumbel_sampling greedy = {};
    greedy.size = sizeof greedy;
    greedy.top_p = 1;
    gumbel_result result = {};
    result.size = sizeof result;
    gumbel_request request = {};
    request.size = sizeof request;
    request.session = session;
    request.tokens = &prompt[LONG_PROMPT];
    request.token_count = 1;
    request.result = &result;
    request.sampling = &greedy;
    for (int32_t &token : tokens) {
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
        if (logits.empty())
            logits.assign(result.logits, result.logits + QWEN35_VOCABULARY);
        token = result.token;
        request.tokens = &token;
    }
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

static void compare_runs(const char *path, const char *notice) {
    std::vector<float> expected, found;
    std::vector<int32_t> expected_tokens(16), found_tokens(16);
    std::string nothing, notices;
    run(path, "cpu", expected, expected_tokens, nothing);
    run(path, "mlx", found, found_tokens, notices);
    float largest = 0;
    for (float logit : expected)
        largest = std::max(largest, std::fabs(logit));
    assert_true(largest > 0);
    for (size_t i = 0; i < expected.size(); i++)
        assert_true(std::fabs(expected[i] - found[i]) <= 1e-5f * largest);
    assert_true(expected_tokens == found_tokens);
    if (notice ? notices.find(notice) == std::string::npos : !notices.empty())
        fail_msg("notices \"%s\", expected \"%s\"", notices.c_str(), notice ? notice : "");
}

static void test_gguf(void **) {
    gb_program *model = random_qwen35();
    for (const auto &kind : blocks) {
        gumbel_error error;
        const char *gguf = temporary_path("model.gguf"), *path = temporary_path("imported.gumbel");
        print_message("%s\n", gb_block_find(kind.type)->name);
        write_qwen35_blocks(model, kind.type, false, gguf);
        gumbel_export_options options = {};
        options.activations = "none"; /* MLX rounds no inputs */
        options.cache = "float32";
        options.size = sizeof options;
        options.backend = "mlx";
        assert_ok(gumbel_export(gguf, path, &options, &error), &error);
        const auto program = read_program(path);
        assert_true(has_tiled_heads(*program));
        compare_program(*program, {.prompt = LONG_PROMPT});
        compare_runs(path, kind.notice);
    }
    gb_program_destroy(model);
}

int main() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_level), cmocka_unit_test(test_notices),
                                       cmocka_unit_test(test_gguf)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
