/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch lists as they are printed: what they contain, and that steps launch just that.
 */
#include "backends/cuda/lowering/kernels.h"
#include "support/paths.h"
#include "support/programs/random_program.h"
#include "support/text_buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 6, MOST_LAUNCHES = 256, NAME = 32 };

typedef struct launch_list {
    char names[MOST_LAUNCHES][NAME];
    uint32_t count;
} launch_list;

static gumbel_program *program;

static void add_name(launch_list *list, const char *name) {
    assert_true(list->count < MOST_LAUNCHES);
    snprintf(list->names[list->count++], NAME, "%s", name);
}

/* The kernels of a class as they are printed, of an engine of one slot. */
static launch_list printed_list(const char *class) {
    launch_list list = {.count = 0};
    char title[NAME], step[NAME], kernel[NAME];
    text_buffer text = {0};
    gumbel_error error;
    const gb_text_sink sink = text_buffer_sink(&text);
    assert_ok(gumbel_program_describe_plan(program, "cuda", sink.write, sink.user, &error), &error);
    snprintf(title, sizeof title, "cuda, %s:", class);
    const char *line = strstr(text.text, title);
    assert_non_null(line);
    for (line = strchr(line, '\n') + 1, line = strchr(line, '\n') + 1; *line && *line != '\n';
         line = strchr(line, '\n') + 1) {
        assert_int_equal(sscanf(line, "%*u %31s %31s", step, kernel), 2);
        add_name(&list, kernel);
    }
    free(text.text);
    return list;
}

static bool has_name(const launch_list *list, const char *name) {
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return true;
    return false;
}

static void note_launch(void *user, const char *op, const char *weight, double seconds) {
    (void)weight, (void)seconds;
    add_name(user, op);
}

static void assert_lists_equal(const launch_list *found, const launch_list *expected) {
    for (uint32_t i = 0; i < found->count && i < expected->count; i++)
        assert_string_equal(found->names[i], expected->names[i]);
    assert_int_equal(found->count, expected->count);
}

/* A prompt and a generated token, timed. */
static void steps_launch_what_is_printed(void **unused) {
    (void)unused;
    gumbel_engine *engine;
    gumbel_session *session;
    gumbel_error error;
    launch_list launched = {.count = 0};
    int32_t tokens[PROMPT];
    const gumbel_engine_options options = {
        .size = sizeof options, .backend = "cuda", .profile = note_launch, .profile_user = &launched};
    random_tokens(1, VOCAB, tokens, PROMPT);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = tokens,
                              .token_count = PROMPT,
                              .result = &result};
    static const char *const classes[] = {"prefill", "one token"};
    for (int i = 0; i < 2; i++) {
        launched.count = 0;
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
        const launch_list printed = printed_list(classes[i]);
        assert_lists_equal(&launched, &printed);
        request.tokens = &result.token;
        request.token_count = 1;
    }
    gumbel_engine_destroy(engine);
}

static void classes_have_kernels_of_their_own(void **unused) {
    (void)unused;
    const launch_list one = printed_list("one token"), decode = printed_list("decode"),
                      prefill = printed_list("prefill");
    assert_string_equal(one.names[1], "norm_gemv_small");
    assert_string_equal(decode.names[1], "norm_chain");
    assert_string_equal(prefill.names[1], "norm_chain");
    assert_true(has_name(&one, "norm_gemv") && has_name(&one, "expert_mlp"));
    assert_true(has_name(&decode, "gemv") && has_name(&decode, "expert_mlp"));
    if (gb_cuda_wgmma_blocks() > 0)
        assert_true(has_name(&prefill, "gemm_wgmma") && has_name(&prefill, "expert_wgmma"));
    assert_true(has_name(&one, "sample_logprob"));
}

static uint32_t count_name(const launch_list *list, const char *name) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        count += strcmp(list->names[i], name) == 0;
    return count;
}

/* A model that mlx-lm or llama.cpp has quantized, beside gumbel's program of the same model. */
static void sources_have_the_same_kernels(void **unused) {
    (void)unused;
    const char *const recipes[] = {test_data("run/mlx_4bit.json"), test_data("run/gguf_q4_0.json")};
    static const char *const classes[] = {"one token", "decode"};
    /* Output projections of this model are too narrow to be packed. */
    static const char *const counted[] = {"expert_mlp", "route_top_k",    "expert_gemv",
                                          "norm_chain", "gemm_quantized", "gemv_float"};
    gumbel_program *const own = program;
    for (int r = 0; r < 2; r++) {
        const launch_list of_own[] = {printed_list(classes[0]), printed_list(classes[1])};
        program =
            export_random_program("qwen_long_rows.json", (gumbel_export_options){.quantize = recipes[r]});
        for (int i = 0; i < 2; i++) {
            const launch_list list = printed_list(classes[i]);
            assert_true(list.count <= of_own[i].count);
            for (size_t k = 0; k < sizeof counted / sizeof *counted; k++)
                assert_int_equal(count_name(&list, counted[k]), count_name(&of_own[i], counted[k]));
        }
        gumbel_program_close(program);
        program = own;
    }
}

static void note_warning(void *user, gumbel_log_level level, const char *message) {
    bool *is_warned = user;
    *is_warned = *is_warned || (level == GUMBEL_LOG_WARNING && strstr(message, "--quantize int4-affine"));
}

/* Whether an engine of such a program says that its experts are slow. */
static bool is_warned(const char *recipe) {
    gumbel_program *own = program;
    gumbel_engine *engine;
    gumbel_error error;
    bool warned = false;
    const gumbel_engine_options options = {
        .size = sizeof options, .backend = "cuda", .log = note_warning, .log_user = &warned};
    program = export_random_program("qwen_long_rows.json", (gumbel_export_options){.quantize = recipe});
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    program = own;
    return warned;
}

static void slow_experts_are_told(void **state) {
    (void)state;
    assert_true(is_warned("int4"));
    assert_false(is_warned("int4-affine"));
}

static int open_program(void **unused) {
    (void)unused;
    program = export_random_program(
        "qwen_long_rows.json", (gumbel_export_options){.quantize = "int4-affine", .activations = "int8"});
    return 0;
}

static int close_program(void **unused) {
    (void)unused;
    gumbel_program_close(program);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_have_kernels_of_their_own),
        cmocka_unit_test(steps_launch_what_is_printed),
        cmocka_unit_test(sources_have_the_same_kernels),
        cmocka_unit_test(slow_experts_are_told),
    };
    return cmocka_run_group_tests(tests, open_program, close_program);
}
