/* SPDX-License-Identifier: Apache-2.0
 *
 * What a GGUF of Gemma 3 leaves unsaid: which layers slide, and how queries are scaled. test_gguf_dense.c has
 * a whole model.
 */
#include "export/gguf/architecture.h"
#include "support/assertions.h"
#include "support/checkpoints/gguf_writer.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int start(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

static void add_sizes(gguf_writer *w, uint32_t layers) {
    w->version = 3;
    gguf_add_text(w, "general.architecture", "gemma3");
    gguf_add_u32(w, "gemma3.block_count", layers);
    gguf_add_u32(w, "gemma3.context_length", 131072);
    gguf_add_u32(w, "gemma3.embedding_length", 5376);
    gguf_add_u32(w, "gemma3.feed_forward_length", 21504);
    gguf_add_u32(w, "gemma3.attention.head_count", 32);
    gguf_add_u32(w, "gemma3.attention.head_count_kv", 16);
    gguf_add_u32(w, "gemma3.attention.key_length", 128);
    gguf_add_f32(w, "gemma3.attention.layer_norm_rms_epsilon", 1e-6f);
    gguf_add_f32(w, "gemma3.rope.freq_base", 1e6f);
}

/* What config.json says that the file came from; the metadata's error goes to error. */
static json_t *configuration(gguf_writer *w, gumbel_error *error) {
    gb_gguf_files files;
    const char *path = temporary_path("model.gguf");
    gguf_write(w, path);
    assert_ok(gb_gguf_files_open(path, &files, error), error);
    gb_gguf_metadata metadata = {.files = &files, .path = path, .architecture = "gemma3"};
    json_t *config = json_object();
    gb_gguf_gemma3.configure(&metadata, config);
    *error = metadata.error;
    gb_gguf_files_close(&files);
    return config;
}

static bool slides(const json_t *config, size_t layer) {
    const char *type = json_string_value(json_array_get(json_object_get(config, "layer_types"), layer));
    return strcmp(type, "sliding_attention") == 0;
}

static int64_t integer(const json_t *config, const char *key) {
    return json_integer_value(json_object_get(config, key));
}

static void scales_queries_of_27b_by_the_width(void **state) {
    (void)state;
    for (uint32_t layers = 61; layers <= 62; layers++) {
        gumbel_error error;
        gguf_writer w = {0};
        add_sizes(&w, layers);
        json_t *config = configuration(&w, &error);
        assert_ok(error.status, &error);
        assert_int_equal(integer(config, "query_pre_attn_scalar"), layers == 62 ? 5376 / 32 : 128);
        json_decref(config);
    }
}

static void every_sixth_layer_is_full(void **state) {
    (void)state;
    gumbel_error error;
    gguf_writer w = {0};
    add_sizes(&w, 13);
    gguf_add_u32(&w, "gemma3.attention.sliding_window", 1024);
    json_t *config = configuration(&w, &error);
    assert_ok(error.status, &error);
    assert_int_equal(integer(config, "sliding_window"), 1024);
    for (size_t i = 0; i < 13; i++)
        assert_int_equal(slides(config, i), i % 6 != 5);
    const json_t *ropes = json_object_get(config, "rope_parameters");
    const json_t *full = json_object_get(ropes, "full_attention"),
                 *sliding = json_object_get(ropes, "sliding_attention");
    assert_true(json_real_value(json_object_get(full, "rope_theta")) == 1e6);
    assert_true(json_real_value(json_object_get(sliding, "rope_theta")) == 1e4);
    json_decref(config);
}

static void reads_a_list_of_layers(void **state) {
    (void)state;
    static const bool listed[] = {false, true, false};
    gumbel_error error;
    gguf_writer w = {0};
    add_sizes(&w, 3);
    gguf_add_u32(&w, "gemma3.attention.sliding_window", 8);
    gguf_add_bools(&w, "gemma3.attention.sliding_window_pattern", listed, 3);
    json_t *config = configuration(&w, &error);
    assert_ok(error.status, &error);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(slides(config, i), listed[i]);
    json_decref(config);
}

static void without_a_window_all_are_full(void **state) {
    (void)state;
    gumbel_error error;
    gguf_writer w = {0};
    add_sizes(&w, 3);
    json_t *config = configuration(&w, &error);
    assert_ok(error.status, &error);
    for (size_t i = 0; i < 3; i++)
        assert_false(slides(config, i));
    json_decref(config);
}

static void refuses_yarn(void **state) {
    (void)state;
    gumbel_error error;
    gguf_writer w = {0};
    add_sizes(&w, 3);
    gguf_add_text(&w, "gemma3.rope.scaling.type", "yarn");
    json_decref(configuration(&w, &error));
    assert_fails(error.status, GUMBEL_ERROR_UNSUPPORTED, &error, "gemma3.rope.scaling.type: \"yarn\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(scales_queries_of_27b_by_the_width, start),
        cmocka_unit_test_setup(every_sixth_layer_is_full, start),
        cmocka_unit_test_setup(reads_a_list_of_layers, start),
        cmocka_unit_test_setup(without_a_window_all_are_full, start),
        cmocka_unit_test_setup(refuses_yarn, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
