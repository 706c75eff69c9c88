/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with bfloat16 weights: which round their inputs likewise, and that their weights are what the
 * kernels can multiply so.
 */
#include "support/assertions.h"
#include "support/checkpoints/gemma4_gguf.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int64_t activation_beside(const gb_program *program, const char *name) {
    for (uint32_t n = 0; n < program->node_count; n++) {
        const gb_node *node = &program->nodes[n];
        if (node->op != GB_OP_LINEAR && node->op != GB_OP_EXPERT_LINEAR)
            continue;
        const gb_value *weight = &program->values[node->operands[1]];
        if (weight->kind == GB_VALUE_CONSTANT && strstr(program->constants[weight->index].name, name))
            return gb_node_int(node, GB_ATTRIBUTE_ACTIVATION);
    }
    fail_msg("no product with %s", name);
    return -1;
}

static void gates_see_all_of_them(void **state) {
    (void)state;
    static const struct {
        const char *activations, *quantize;
        int64_t projection;
    } cases[] = {
        {NULL, NULL, GB_ACTIVATION_BFLOAT16},     {"bfloat16", "none", GB_ACTIVATION_BFLOAT16},
        {NULL, "none", GB_ACTIVATION_NONE},       {"none", NULL, GB_ACTIVATION_NONE},
        {"bfloat16", "int4", GB_ACTIVATION_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gumbel_program_close(export_random_program(
            "qwen_groups.json",
            (gumbel_export_options){.quantize = cases[i].quantize, .activations = cases[i].activations}));
        gb_program *program = read_exported(random_program_path());
        assert_int_equal(activation_beside(program, "self_attn.q_proj.weight"), cases[i].projection);
        assert_int_equal(activation_beside(program, "experts.down_proj"), cases[i].projection);
        assert_int_equal(activation_beside(program, "mlp.gate.weight"), GB_ACTIVATION_NONE);
        assert_int_equal(activation_beside(program, "shared_expert_gate.weight"), GB_ACTIVATION_NONE);
        gb_program_destroy(program);
    }
}

static void float32_weights_take_all_of_them(void **state) {
    (void)state;
    gumbel_program_close(
        export_random_program("small.json", (gumbel_export_options){.activations = "bfloat16"}));
    gb_program *program = read_exported(random_program_path());
    assert_int_equal(activation_beside(program, "self_attn.q_proj.weight"), GB_ACTIVATION_NONE);
    gb_program_destroy(program);
}

/* ---- Small weights ------------------------------------------------------------------------------------- */

#define PROJECTION "model.layers.0.self_attn.q_proj.weight"
enum { CHANGED = 4 };

static const uint16_t *projection_of(const gb_program *program) {
    for (uint32_t c = 0; c < program->constant_count; c++)
        if (strstr(program->constants[c].name, "layers.0.self_attn.q_proj.weight"))
            return (const uint16_t *)(const void *)program->constants[c].data;
    fail_msg("no %s", PROJECTION);
    return NULL;
}

/* Overwrites the projection's first numbers where they stand in the checkpoint. */
static void change_checkpoint(const uint16_t *from, const uint16_t to[CHANGED]) {
    enum { SOUGHT = 32 };
    FILE *file = fopen(temporary_path("checkpoint/model.safetensors"), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const size_t size = (size_t)ftell(file);
    uint8_t *bytes = malloc(size);
    rewind(file);
    assert_true(bytes && fread(bytes, 1, size, file) == size);
    size_t at = 0;
    while (at + SOUGHT < size && memcmp(bytes + at, from, SOUGHT) != 0)
        at++;
    assert_true(at + SOUGHT < size);
    free(bytes);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(to, sizeof *to, CHANGED, file), CHANGED);
    fclose(file);
}

static void assert_projection(const char *activations, const uint16_t expected[CHANGED]) {
    gumbel_error error;
    const gumbel_export_options options = {.size = sizeof options, .activations = activations};
    const char *path = temporary_path("small.gumbel");
    assert_ok(gumbel_export(temporary_path("checkpoint"), path, &options, &error), &error);
    gb_program *program = read_exported(path);
    assert_memory_equal(projection_of(program), expected, CHANGED * sizeof *expected);
    gb_program_destroy(program);
}

/* A subnormal number, and both sides of 2^-56. */
static void small_weights_are_zero(void **state) {
    (void)state;
    static const uint16_t stored[CHANGED] = {0x0001, 0xa37f, 0x2380, 0xa380},
                          flushed[CHANGED] = {0x0000, 0x8000, 0x2380, 0xa380};
    gb_program *random = random_gemma4(&(const gemma4_variant){"bfloat16", false, true, NULL});
    write_gemma4_checkpoint(random);
    change_checkpoint(projection_of(random), stored);
    assert_projection(NULL, flushed);
    assert_projection("none", stored);
    gb_program_destroy(random);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gates_see_all_of_them),
        cmocka_unit_test(float32_weights_take_all_of_them),
        cmocka_unit_test(small_weights_are_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
