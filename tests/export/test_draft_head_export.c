/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports of models with their draft head: the file is read back with both graphs, holds what both have once,
 * and packing it gives the file of an export.
 */
#include "base/file_map.h"
#include "program/draft_head.h"
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static gumbel_error error;

static const char *export_for(const char *config, const char *backend, const char *name) {
    const char *path = temporary_path(name);
    char source[512];
    const gumbel_export_options options = {.size = sizeof options,
                                           .quantize = "int4",
                                           .backend = backend,
                                           .random_weights = true,
                                           .random_seed = 5,
                                           .draft_head = true};
    snprintf(source, sizeof source, "%s/run/%s", test_data_folder, config);
    assert_ok(gumbel_export(source, path, &options, &error), &error);
    return path;
}

static void both_graphs_are_read_back(void **state) {
    (void)state;
    gb_program *program;
    size_t shared = 0;
    assert_ok(gb_program_read(export_for("qwen_groups.json", "cpu", "cpu.gumbel"), &program, &error), &error);
    const gb_program *head = program->head;
    assert_non_null(head);
    assert_true(gb_is_draft_head(head));
    assert_string_equal(head->metadata.architecture, program->metadata.architecture);
    assert_int_equal(head->metadata.stop_tokens.count, program->metadata.stop_tokens.count);
    assert_int_equal(head->metadata.use_sampling, program->metadata.use_sampling);
    for (uint32_t i = 0; i < head->constant_count; i++)
        shared += head->constants[i].same != NULL;
    assert_in_range(shared, 2, head->constant_count - 1); /* embedding and head of tokens at least */
    assert_true(gb_head_own_bytes(program) > 0);
    assert_ok(gb_check_weights(program, &error), &error);
    gb_program_destroy(program);
}

static void assert_same_file(const char *path, const char *other) {
    gb_file_map a, b;
    assert_ok(gb_map_file(path, &a, &error), &error);
    assert_ok(gb_map_file(other, &b, &error), &error);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    gb_unmap_file(&a);
    gb_unmap_file(&b);
}

static void packing_gives_the_file_of_an_export(void **state) {
    (void)state;
    static const char *const backends[] = {"cpu", "cuda", "none"};
    export_for("qwen_groups.json", "none", "packed.gumbel");
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        const gumbel_pack_options options = {.size = sizeof options, .backend = backends[i]};
        export_for("qwen_groups.json", backends[i], "exported.gumbel");
        assert_ok(
            gumbel_pack(temporary_path("packed.gumbel"), temporary_path("packed.gumbel"), &options, &error),
            &error);
        assert_same_file(temporary_path("packed.gumbel"), temporary_path("exported.gumbel"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_graphs_are_read_back),
        cmocka_unit_test(packing_gives_the_file_of_an_export),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
