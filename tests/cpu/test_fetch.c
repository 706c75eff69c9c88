/* SPDX-License-Identifier: Apache-2.0
 *
 * What a waiting thread prefetches: its own first rows of a product to come, each byte once, and no more.
 */
#include "backends/cpu/kernels/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROWS = 100 * GB_COLUMN_UNIT, INPUTS = 512, AT_ONCE = 2048 };

typedef struct product {
    gb_node node;
    gb_cpu_tensor x, weight, y;
    gb_quantized_matrix matrix;
    gb_kernel_call call;
} product;

/* Nothing reads what it asks memory for, so that any address will do. */
static void make_product(product *p, size_t tokens, const gb_format *format) {
    static uint8_t nowhere[64];
    *p = (product){.node = {.op = GB_OP_LINEAR},
                   .x = {.dtype = GB_F32, .rank = 2, .dims = {tokens, INPUTS}},
                   .weight = {.data = nowhere, .dtype = GB_BF16, .rank = 2, .dims = {ROWS, INPUTS}},
                   .y = {.dtype = GB_F32, .rank = 2, .dims = {tokens, ROWS}}};
    if (format) {
        p->matrix = (gb_quantized_matrix){.format = *format, .is_interleaved = true, .data = nowhere};
        assert_true(gb_format_planes(format, ROWS, INPUTS, &p->matrix.planes));
        p->weight.quantized = &p->matrix;
    }
    p->call = (gb_kernel_call){
        .node = &p->node, .operands = {&p->x, &p->weight}, .results = {&p->y}, .split = GB_SPLIT_OWN};
}

static size_t fetched_by(const product *p, size_t index, size_t count) {
    const gb_worker worker = {index, count, NULL, NULL};
    size_t all = 0, bytes;
    while ((bytes = gb_kernel_fetch(&p->call, &worker, all, AT_ONCE)) > 0) {
        assert_true(bytes <= AT_ONCE);
        all += bytes;
    }
    return all;
}

static size_t fetched_by_all(const product *p, size_t count) {
    size_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += fetched_by(p, i, count);
    return all;
}

static void shares_make_up_the_weight(void **state) {
    (void)state;
    static const gb_format formats[] = {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 64, 0},
                                        {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0},
                                        {GB_FORMAT_TWO_LEVEL, 6, false, 8, GB_F16, 16, 0}};
    product p;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        make_product(&p, 1, &formats[i]);
        for (size_t count = 1; count <= 3; count++)
            assert_int_equal(fetched_by_all(&p, count), ROWS * p.matrix.planes.codes.row_bytes);
    }
    make_product(&p, 1, NULL);
    assert_int_equal(fetched_by_all(&p, 3), ROWS * INPUTS * 2);
    const gb_work_queue queue = {.thread_count = 3, .units = ROWS / GB_COLUMN_UNIT, .least = 1};
    p.call.queue = &queue;
    assert_int_equal(fetched_by_all(&p, 3), ROWS * INPUTS * 2);
    assert_int_equal(fetched_by(&p, 0, 3), 33 * GB_COLUMN_UNIT * INPUTS * 2);
}

static void only_what_is_known_is_asked_for(void **state) {
    (void)state;
    product p;
    make_product(&p, 1, NULL);
    assert_true(gb_kernel_can_fetch(&p.call));
    p.call.split = GB_SPLIT_ALONE;
    assert_false(gb_kernel_can_fetch(&p.call));
    make_product(&p, GB_MOST_QUEUE_TOKENS + 1, NULL);
    assert_false(gb_kernel_can_fetch(&p.call));
    make_product(&p, 1, NULL);
    p.node.op = GB_OP_EXPERT_LINEAR; /* of which experts depends on what is computed before */
    assert_false(gb_kernel_can_fetch(&p.call));
    make_product(&p, 1, NULL);
    p.call.results[0] = NULL; /* the rounding of its input */
    assert_false(gb_kernel_can_fetch(&p.call));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_make_up_the_weight),
        cmocka_unit_test(only_what_is_known_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
