/* SPDX-License-Identifier: Apache-2.0
 *
 * What products make of a constant: fragments and tiles are for those whose inputs are rounded alike.
 */
#include "program/constant_packing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PRODUCTS = 3, SIZE = 256 };

/* A program of one constant that products with these activations read. */
typedef struct products {
    gb_value values[2];
    gb_constant constant;
    gb_node nodes[PRODUCTS];
    gb_program program;
} products;

static void make(products *p, const gb_format *format, const int64_t *activations, uint32_t count) {
    *p = (products){.values = {{.kind = GB_VALUE_CONSTANT, .index = 0}, {.kind = GB_VALUE_INPUT, .index = 0}},
                    .constant = {.type = {.dtype = GB_QUANTIZED, .shape = {.rank = 2, .dims = {SIZE, SIZE}}},
                                 .format = *format}};
    for (uint32_t i = 0; i < count; i++)
        p->nodes[i] = (gb_node){.op = GB_OP_LINEAR,
                                .operand_count = 2,
                                .attribute_count = 1,
                                .operands = {1, 0},
                                .attributes = {gb_int(GB_ATTRIBUTE_ACTIVATION, activations[i])}};
    p->program = (gb_program){.values = p->values,
                              .value_count = 2,
                              .constants = &p->constant,
                              .constant_count = 1,
                              .nodes = p->nodes,
                              .node_count = count};
}

/* Rows of a block of fragments or tiles; 0: canonical. */
static uint32_t block_rows(const gb_format *format, const int64_t *activations, uint32_t count,
                           gb_packing_order order) {
    products p;
    gb_constant_use use;
    make(&p, format, activations, count);
    gb_find_constant_uses(&p.program, &use);
    return gb_constant_wanted_packing(&p.constant, &use, order).block_rows;
}

static void inputs_that_are_rounded_alike(void **state) {
    (void)state;
    static const gb_format exact = {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},
                           affine = {GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 32, 0},
                           row = {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0};
    static const struct {
        const gb_format *format;
        int64_t activations[PRODUCTS];
        uint32_t count, rows;
    } cases[] = {
        {&exact, {GB_ACTIVATION_INT8_PER_TOKEN, GB_ACTIVATION_INT8_PER_TOKEN}, 2, GB_TILE_ROWS},
        {&exact, {GB_ACTIVATION_INT8_PER_TOKEN, 0}, 2, 0},
        {&row, {GB_ACTIVATION_INT8_PER_TOKEN, GB_ACTIVATION_INT8_PER_TOKEN}, 2, GB_FRAGMENT_ROWS},
        {&row, {GB_ACTIVATION_INT8_PER_TOKEN, 0}, 2, 0},
        {&exact, {0, GB_ACTIVATION_INT8_PER_TOKEN}, 2, 0},
        {&affine,
         {GB_ACTIVATION_INT8_PER_GROUP, GB_ACTIVATION_INT8_PER_GROUP, GB_ACTIVATION_INT8_PER_GROUP},
         3,
         GB_FRAGMENT_ROWS},
        {&affine, {0, 0}, 2, GB_FRAGMENT_ROWS},
        {&affine, {GB_ACTIVATION_INT8_PER_GROUP, 0}, 2, 0},
        {&affine, {GB_ACTIVATION_INT8_PER_GROUP, 0, GB_ACTIVATION_INT8_PER_GROUP}, 3, 0},
        {&affine, {GB_ACTIVATION_INT8_PER_GROUP, GB_ACTIVATION_INT8_PER_TOKEN}, 2, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            block_rows(cases[i].format, cases[i].activations, cases[i].count, GB_ORDER_FRAGMENTS),
            cases[i].rows);
        assert_int_equal(
            block_rows(cases[i].format, cases[i].activations, cases[i].count, GB_ORDER_INTERLEAVED),
            GB_INTERLEAVED_ROWS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_that_are_rounded_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
