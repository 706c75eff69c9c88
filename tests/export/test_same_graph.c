/* SPDX-License-Identifier: Apache-2.0
 *
 * One graph for a block, whatever form the checkpoint has: the released form of a model with experts, what
 * mlx-lm, compressed-tensors and llama.cpp make of it, give programs of the same nodes, edges and shapes.
 */
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PACKED(name) "export/packed/" name
#define GGUF(name) "export/gguf/" name

static const char SLOWER[] = "the experts' gate and up of 2 layers have different formats and stay two "
                             "matrices; those layers run slower";

static void keep_notice(void *user, gumbel_log_level level, const char *line) {
    if (level == GUMBEL_LOG_INFO && strstr(line, "the experts' gate and up"))
        snprintf(user, 256, "%s", line);
}

/* The program of a checkpoint of the tests' data, with float32 products and caches. notice gets what is said
 * of experts. */
static gb_program *export_program(const char *source, bool is_random, char notice[256]) {
    gumbel_error error;
    gb_program *program = NULL;
    const char *path = temporary_path("graph.gumbel");
    const gumbel_export_options options = {.size = sizeof options,
                                           .random_weights = is_random,
                                           .activations = "none",
                                           .cache = "float32",
                                           .log = keep_notice,
                                           .log_user = notice};
    notice[0] = '\0';
    assert_ok(gumbel_export(test_data(source), path, &options, &error), &error);
    assert_ok(gb_program_read(path, &program, &error), &error);
    return program;
}

/* Whether an attribute says how a source stores a weight: norms with or without their 1, value heads in the
 * order of llama.cpp's converter. */
static bool is_of_storage(const gb_attribute *attribute) {
    return attribute->key == GB_ATTRIBUTE_WEIGHT_OFFSET || attribute->key == GB_ATTRIBUTE_TILED;
}

static uint32_t next_attribute(const gb_node *node, uint32_t i) {
    while (i < node->attribute_count && is_of_storage(&node->attributes[i]))
        i++;
    return i;
}

static void assert_same_attributes(const gb_node *a, const gb_node *b) {
    uint32_t i = next_attribute(a, 0), j = next_attribute(b, 0);
    while (i < a->attribute_count && j < b->attribute_count) {
        assert_int_equal(a->attributes[i].key, b->attributes[j].key);
        assert_int_equal(a->attributes[i].i, b->attributes[j].i);
        i = next_attribute(a, i + 1);
        j = next_attribute(b, j + 1);
    }
    assert_true(i == a->attribute_count && j == b->attribute_count);
}

static void assert_same_node(const gb_node *a, const gb_node *b) {
    assert_int_equal(a->op, b->op);
    assert_int_equal(a->operand_count, b->operand_count);
    assert_int_equal(a->result_count, b->result_count);
    assert_memory_equal(a->operands, b->operands, a->operand_count * sizeof *a->operands);
    assert_memory_equal(a->results, b->results, a->result_count * sizeof *a->results);
    assert_same_attributes(a, b);
}

/* But for the names and formats of constants. */
static void assert_same_graph(const gb_program *a, const gb_program *b) {
    assert_int_equal(a->node_count, b->node_count);
    assert_int_equal(a->constant_count, b->constant_count);
    assert_int_equal(a->value_count, b->value_count);
    for (uint32_t i = 0; i < a->value_count; i++) {
        assert_int_equal(a->values[i].kind, b->values[i].kind);
        assert_memory_equal(&a->values[i].type.shape, &b->values[i].type.shape, sizeof(gb_shape));
    }
    for (uint32_t i = 0; i < a->node_count; i++)
        assert_same_node(&a->nodes[i], &b->nodes[i]);
}

/* A checkpoint and the configuration of the released form. */
typedef struct pair {
    const char *config, *checkpoint;
} pair;

static void has_the_released_graph(void **state) {
    const pair *forms = *state;
    char notice[256];
    gb_program *released = export_program(forms->config, true, notice);
    gb_program *converted = export_program(forms->checkpoint, false, notice);
    assert_string_equal(notice, "");
    assert_same_graph(released, converted);
    gb_program_destroy(released);
    gb_program_destroy(converted);
}

/* Formats that differ stay two matrices, which is said. */
static void says_what_stays_apart(void **state) {
    (void)state;
    char notice[256];
    gb_program *program = export_program(PACKED("mlx_qwen_moe_int4"), false, notice);
    assert_string_equal(notice, SLOWER);
    gb_program_destroy(program);
}

static const pair FORMS[] = {
    {PACKED("mlx_qwen_moe/config.json"), PACKED("mlx_qwen_moe")},
    {PACKED("mlx_qwen_moe_even/config.json"), PACKED("mlx_qwen_moe_even")},
    {PACKED("compressed_qwen_moe/config.json"), PACKED("compressed_qwen_moe")},
    {GGUF("qwen_experts.json"), GGUF("qwen_experts.gguf")},
};

#define SAME(i)                                                                                              \
    { "has the released graph " #i, has_the_released_graph, NULL, NULL, (void *)(uintptr_t)&FORMS[i] }

int main(void) {
    const struct CMUnitTest tests[] = {SAME(0), SAME(1), SAME(2), SAME(3),
                                       cmocka_unit_test(says_what_stays_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
