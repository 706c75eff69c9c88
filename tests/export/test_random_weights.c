/* SPDX-License-Identifier: Apache-2.0
 *
 * The generator behind --random-weights.
 */
#include "export/random_weights.h"
#include "tensor/convert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 4096 };

/* Computed by tests/oracle/random_weights.py, which makes the reference answers from the same weights. */
static void has_known_values(void **state) {
    (void)state;
    uint64_t stream = gb_random_stream(7, "model.norm.weight");
    assert_int_equal(stream, UINT64_C(0x42d850b22eacc7f1));
    static const float known[] = {-0x1.33b6600000000p-3f, 0x1.d1da200000000p-5f, -0x1.2c5f600000000p-6f,
                                  0x1.199a400000000p-7f};
    float values[4];
    gb_random_fill(stream, gb_random_matrix(48), GB_F32, 0, 4, values);
    assert_memory_equal(values, known, sizeof values);
}

/* Pieces made in any order are the whole. */
static void depends_on_the_index_alone(void **state) {
    (void)state;
    static const gb_dtype dtypes[] = {GB_F32, GB_F16, GB_BF16};
    for (size_t i = 0; i < 3; i++) {
        static uint8_t whole[COUNT * 4], pieces[COUNT * 4];
        size_t size = gb_dtype_size(dtypes[i]);
        uint64_t stream = gb_random_stream(1, "w");
        gb_random_fill(stream, gb_random_gain(), dtypes[i], 0, COUNT, whole);
        gb_random_fill(stream, gb_random_gain(), dtypes[i], 1000, COUNT - 1000, pieces + 1000 * size);
        gb_random_fill(stream, gb_random_gain(), dtypes[i], 0, 1000, pieces);
        assert_memory_equal(whole, pieces, COUNT * size);
    }
}

static void depends_on_seed_and_name(void **state) {
    (void)state;
    uint64_t stream = gb_random_stream(1, "layers.1.w");
    assert_true(stream == gb_random_stream(1, "layers.1.w"));
    assert_true(stream != gb_random_stream(2, "layers.1.w"));
    assert_true(stream != gb_random_stream(1, "layers.2.w"));
    assert_true(gb_random_stream(0, "ab") != gb_random_stream(0, "ba"));
}

/* A matrix with K inputs has mean 0 and variance 1 / K; dtypes differ by rounding alone. */
static void has_the_right_scale(void **state) {
    (void)state;
    static float values[COUNT];
    static uint16_t rounded[COUNT];
    uint64_t stream = gb_random_stream(3, "w");
    double sum = 0, squares = 0;
    gb_random_fill(stream, gb_random_matrix(100), GB_F32, 0, COUNT, values);
    gb_random_fill(stream, gb_random_matrix(100), GB_BF16, 0, COUNT, rounded);
    for (size_t i = 0; i < COUNT; i++) {
        sum += values[i];
        squares += (double)values[i] * values[i];
        assert_int_equal(rounded[i], gb_bf16_from_float(values[i]));
    }
    assert_true(fabs(sum / COUNT) < 0.01);
    assert_true(fabs(squares / COUNT - 0.01) < 0.0005);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_known_values),
        cmocka_unit_test(depends_on_the_index_alone),
        cmocka_unit_test(depends_on_seed_and_name),
        cmocka_unit_test(has_the_right_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
