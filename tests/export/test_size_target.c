/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs of a given size: as near to it as the matrices that are left allow, and never above.
 */
#include "program/file/file_size.h"
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char notices[1024];

/* Of the size: others tell what is left out of a checkpoint. */
static void keep_notice(void *user, gumbel_log_level level, const char *line) {
    (void)user;
    (void)level;
    if (strstr(line, "the program has"))
        snprintf(notices, sizeof notices, "%s", line);
}

static gumbel_status export_to(const char *path, const char *model, const char *recipe, uint64_t size,
                               gumbel_error *error) {
    const gumbel_export_options options = {
        .size = sizeof options, .quantize = recipe, .size_target = size, .log = keep_notice};
    return gumbel_export(bundled_model(model), path, &options, error);
}

static uint64_t size_of(const char *path) {
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    return (uint64_t)found.st_size;
}

static gb_program *export_sized(const char *path, const char *model, uint64_t size) {
    gb_program *program;
    gumbel_error error;
    char expected[64];
    assert_ok(export_to(path, model, "int4", size, &error), &error);
    assert_ok(gb_program_read(path, &program, &error), &error);
    snprintf(expected, sizeof expected, "the program has %llu bytes", (unsigned long long)size_of(path));
    if (size > 0)
        assert_non_null(strstr(notices, expected));
    return program;
}

/* ---- What is left -------------------------------------------------------------------------------------- */

/* Bytes by which a weight of the program is smaller than its like in the other one. */
static uint64_t smaller_by(const gb_program *program, const gb_program *other, const gb_node *node) {
    const gb_value *weight = &program->values[node->operands[1]];
    return weight->kind == GB_VALUE_CONSTANT
               ? other->constants[weight->index].size - program->constants[weight->index].size
               : 0;
}

/* What widening all products of a node's input would take. */
static uint64_t bytes_beside(const gb_program *program, const gb_program *wide, const gb_node *node) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->node_count && node->op == GB_OP_LINEAR; i++) {
        const gb_node *other = &program->nodes[i];
        if (other->op == GB_OP_LINEAR && other->operands[0] == node->operands[0])
            bytes += smaller_by(program, wide, other);
    }
    return node->op == GB_OP_LINEAR ? bytes : smaller_by(program, wide, node);
}

/* The least that could still become wider. */
static uint64_t smallest_left(const gb_program *program, const gb_program *wide) {
    uint64_t smallest = UINT64_MAX;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const gb_node *node = &program->nodes[i];
        if (node->op != GB_OP_LINEAR && node->op != GB_OP_EXPERT_LINEAR)
            continue;
        const uint64_t bytes = bytes_beside(program, wide, node);
        smallest = bytes > 0 && bytes < smallest ? bytes : smallest;
    }
    return smallest;
}

/* Products of one input have one format, as far as the recipe has them below 8 bits. */
static void assert_joined(const gb_program *program, const gb_program *narrow, const gb_program *wide) {
    for (uint32_t i = 0; i < program->node_count; i++) {
        const gb_node *node = &program->nodes[i];
        if (node->op == GB_OP_LINEAR && smaller_by(program, wide, node) > 0)
            assert_int_equal(bytes_beside(program, wide, node), bytes_beside(narrow, wide, node));
    }
}

static void assert_met(const char *model) {
    const char *path = temporary_path("sized.gumbel");
    gb_program *narrow = export_sized(path, model, 0);
    const uint64_t least = size_of(path);
    gb_program *wide = export_sized(path, model, UINT64_C(1) << 40);
    const uint64_t most = size_of(path);
    assert_true(least < most);
    for (uint64_t eighth = 1; eighth < 8; eighth += 2) {
        const uint64_t target = least + (most - least) * eighth / 8;
        gb_program *program = export_sized(path, model, target);
        const uint64_t size = size_of(path);
        assert_true(size > least && size <= target);
        assert_true(target - size < smallest_left(program, wide) + 2 * GB_MOST_SECTION_PADDING);
        assert_joined(program, narrow, wide);
        gb_program_destroy(program);
    }
    assert_int_equal(smallest_left(wide, wide), UINT64_MAX);
    gb_program_destroy(narrow);
    gb_program_destroy(wide);
}

static void sizes_are_met(void **unused) {
    (void)unused;
    assert_met("gemma4-tiny");
    assert_met("qwen3_5-moe-tiny");
}

/* The recipe's own size is the smallest target, and gives the recipe's own program. */
static void too_small_a_size_is_refused(void **unused) {
    (void)unused;
    const char *plain = temporary_path("plain.gumbel"), *path = temporary_path("least.gumbel");
    gumbel_error error;
    char least[32], asked[32];
    assert_ok(export_to(plain, "gemma4-tiny", "int4", 0, &error), &error);
    const uint64_t size = size_of(plain);
    snprintf(least, sizeof least, "%llu bytes", (unsigned long long)size);
    snprintf(asked, sizeof asked, "not %llu", (unsigned long long)(size - 1));
    assert_fails(export_to(path, "gemma4-tiny", "int4", size - 1, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 least);
    assert_non_null(strstr(error.message, asked));
    assert_ok(export_to(path, "gemma4-tiny", "int4", size, &error), &error);
    assert_int_equal(size_of(path), size);
    assert_non_null(strstr(notices, "0 of "));
}

static void recipes_with_nothing_to_widen(void **unused) {
    (void)unused;
    static const char *const recipes[] = {NULL, "none", "int8", "int8-affine", "int4-affine"};
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        gumbel_error error;
        assert_fails(
            export_to(temporary_path("refused/x.gumbel"), "gemma4-tiny", recipes[i], 100000000, &error),
            GUMBEL_ERROR_ARGUMENT, &error, "no matrices that can become wider");
        assert_non_null(strstr(error.message, recipes[i] ? recipes[i] : "none"));
    }
    assert_int_equal(count_files(temporary_path("refused")), 0);
}

static bool stop_at_losses(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)user;
    assert_true(done <= total);
    return strcmp(what, "losses") != 0;
}

static void measuring_can_be_cancelled(void **unused) {
    (void)unused;
    const gumbel_export_options options = {
        .size = sizeof options, .quantize = "int4", .size_target = 3000000, .progress = stop_at_losses};
    gumbel_error error;
    assert_fails(gumbel_export(bundled_model("gemma4-tiny"), temporary_path("x.gumbel"), &options, &error),
                 GUMBEL_ERROR_CANCELLED, &error, "cancelled");
}

/* Drawn weights lose alike, so that the size alone counts. */
static void drawn_weights_have_a_size(void **unused) {
    (void)unused;
    const gumbel_export_options options = {.size = sizeof options,
                                           .quantize = "int4-g64",
                                           .size_target = 3500000,
                                           .backend = "cuda",
                                           .random_weights = true};
    const char *path = temporary_path("drawn.gumbel");
    gumbel_error error;
    assert_ok(gumbel_export(bundled_model("qwen3_5-moe-tiny"), path, &options, &error), &error);
    assert_true(size_of(path) <= 3500000 && size_of(path) > 3000000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_met),
        cmocka_unit_test(too_small_a_size_is_refused),
        cmocka_unit_test(recipes_with_nothing_to_widen),
        cmocka_unit_test(measuring_can_be_cancelled),
        cmocka_unit_test(drawn_weights_have_a_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
