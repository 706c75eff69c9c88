/* SPDX-License-Identifier: Apache-2.0
 *
 * An export never replaces a file that it reads, whatever the checkpoint's form and the output's name.
 */
#include "base/file_map.h"
#include "base/memory.h"
#include "support/assertions.h"
#include "support/checkpoints/gemma4_gguf.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static gb_program *weights;
static gumbel_export_options options = {.size = sizeof options};

static int set_up(void **state) {
    (void)state;
    weights = random_gemma4(&(const gemma4_variant){"float32", true, true, NULL});
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    gb_program_destroy(weights);
    empty_temporary_directory();
    return 0;
}

/* The export to that output is refused and leaves it as it was; nothing else stands beside it. */
static void assert_refused(const char *checkpoint, const char *folder, const char *output) {
    gumbel_error error;
    char *before, *after;
    size_t size, size_after, count = count_files(temporary_path(folder));
    assert_ok(gb_read_file(temporary_path(output), 1 << 30, &before, &size, &error), &error);
    assert_fails(gumbel_export(temporary_path(checkpoint), temporary_path(output), &options, &error),
                 GUMBEL_ERROR_ARGUMENT, &error, "is one of the files that are read");
    assert_non_null(strstr(error.message, output));
    assert_ok(gb_read_file(temporary_path(output), 1 << 30, &after, &size_after, &error), &error);
    assert_int_equal(size, size_after);
    assert_memory_equal(before, after, size);
    assert_int_equal(count_files(temporary_path(folder)), count);
    gb_free(before);
    gb_free(after);
}

static void assert_exported(const char *checkpoint, const char *output) {
    gumbel_error error;
    assert_ok(gumbel_export(temporary_path(checkpoint), temporary_path(output), &options, &error), &error);
    gb_program_destroy(read_exported(temporary_path(output)));
}

static void files_of_a_directory(void **state) {
    (void)state;
    write_gemma4_checkpoint(weights);
    write_text(temporary_path("checkpoint/generation_config.json"), "{\"temperature\": 0.5}");
    write_text(temporary_path("checkpoint/README.md"), "not read");
    assert_int_equal(link(temporary_path("checkpoint/model.safetensors"), temporary_path("names/hard")), 0);
    assert_int_equal(symlink("../checkpoint/config.json", temporary_path("names/soft")), 0);
    assert_refused("checkpoint", "checkpoint", "checkpoint/config.json");
    assert_refused("checkpoint", "checkpoint", "checkpoint/model.safetensors");
    assert_refused("checkpoint", "checkpoint", "checkpoint/generation_config.json");
    assert_refused("checkpoint", "names", "names/hard");
    assert_refused("checkpoint", "names", "names/soft");
    assert_exported("checkpoint", "checkpoint/README.md");
    assert_exported("checkpoint", "checkpoint/README.md");
}

static void a_config_alone(void **state) {
    (void)state;
    write_gemma4_checkpoint(weights);
    options.random_weights = true;
    assert_refused("checkpoint/config.json", "checkpoint", "checkpoint/config.json");
    assert_exported("checkpoint/config.json", "checkpoint/model.safetensors"); /* it is not read */
    options.random_weights = false;
}

static void a_recipe(void **state) {
    (void)state;
    write_gemma4_checkpoint(weights);
    write_text(temporary_path("recipes/mine.json"), "{\"name\": \"mine\", \"rules\": []}");
    options.quantize = temporary_path("recipes/mine.json");
    assert_refused("checkpoint", "recipes", "recipes/mine.json");
    options.quantize = NULL;
    assert_exported("checkpoint", "recipes/mine.json");
}

static void a_gguf(void **state) {
    (void)state;
    gguf_writer w = {.version = 3};
    add_gemma4_settings(&w, NULL);
    add_gemma4_rope_freqs(&w);
    add_gemma4_tensors(&w, weights, (const char *const[]){NULL});
    gguf_write(&w, temporary_path("ggufs/own.gguf"));
    assert_refused("ggufs/own.gguf", "ggufs", "ggufs/own.gguf");
}

static void add_split_keys(gguf_writer *writer, uint32_t number) {
    gguf_add_u32(writer, "split.no", number);
    gguf_add_u32(writer, "split.count", 2);
}

static void parts_of_a_gguf(void **state) {
    (void)state;
    gguf_writer first = {.version = 3}, second = {.version = 3};
    add_split_keys(&first, 0);
    add_split_keys(&second, 1);
    add_gemma4_settings(&first, NULL);
    add_gemma4_tensors(&first, weights, (const char *const[]){NULL});
    add_gemma4_rope_freqs(&second);
    gguf_write(&first, temporary_path("parts/m-00001-of-00002.gguf"));
    gguf_write(&second, temporary_path("parts/m-00002-of-00002.gguf"));
    assert_refused("parts/m-00001-of-00002.gguf", "parts", "parts/m-00001-of-00002.gguf");
    assert_refused("parts/m-00001-of-00002.gguf", "parts", "parts/m-00002-of-00002.gguf");
    assert_exported("parts/m-00001-of-00002.gguf", "parts/m.gumbel");
}

/* A pack takes its own program: the file that is mapped stays whole under no name. */
static void a_pack_may_replace_its_program(void **state) {
    (void)state;
    gumbel_error error;
    write_gemma4_checkpoint(weights);
    assert_exported("checkpoint", "packs/own.gumbel");
    assert_int_equal(symlink("own.gumbel", temporary_path("packs/link.gumbel")), 0);
    assert_ok(
        gumbel_pack(temporary_path("packs/own.gumbel"), temporary_path("packs/own.gumbel"), NULL, &error),
        &error);
    assert_ok(
        gumbel_pack(temporary_path("packs/own.gumbel"), temporary_path("packs/link.gumbel"), NULL, &error),
        &error);
    gb_program_destroy(read_exported(temporary_path("packs/own.gumbel")));
    assert_int_equal(count_files(temporary_path("packs")), 2);
}

int main(void) {
#define WITH_WEIGHTS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_WEIGHTS(files_of_a_directory),
        WITH_WEIGHTS(a_config_alone),
        WITH_WEIGHTS(a_recipe),
        WITH_WEIGHTS(a_gguf),
        WITH_WEIGHTS(parts_of_a_gguf),
        WITH_WEIGHTS(a_pack_may_replace_its_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
