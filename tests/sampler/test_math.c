/* SPDX-License-Identifier: Apache-2.0
 *
 * The errors of gb_exp, gb_log, gb_tanh and gb_sin_cos against libm in double, and their special values.
 */
#include "backends/math.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Every PATTERN_STEPth float is tried. */
enum { PATTERN_STEP = 1009 };

/* How far got is from exact, in units of the last place of the float nearest to exact. */
static double error_in_ulp(float got, double exact) {
    if ((float)exact == got)
        return isinf(got) ? 0.0
                          : fabs((double)got - exact) / ldexp(1.0, ilogbf(got == 0.0f ? 1.0f : got) - 23);
    int exponent;
    frexp(exact, &exponent);
    return fabs((double)got - exact) / ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

static void test_exp(void **state) {
    (void)state;
    double largest = 0.0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += PATTERN_STEP) {
        const float x = gb_float_from_bits((uint32_t)bits);
        const float y = gb_exp(x);
        if (x < -0x1.5d589ep+6f)
            assert_true(y == 0.0f);
        else if (x == x)
            largest = fmax(largest, error_in_ulp(y, exp((double)x)));
        else
            assert_true(y != y);
    }
    assert_true(largest <= 0.99);
    assert_true(gb_exp(0.0f) == 1.0f && gb_exp(-0.0f) == 1.0f);
    assert_true(gb_exp(-INFINITY) == 0.0f && gb_exp(INFINITY) == INFINITY);
    assert_true(gb_exp(-0x1.5d589ep+6f) >= 0x1p-126f && gb_exp(-0x1.5d58a0p+6f) == 0.0f);
    assert_true(isfinite(gb_exp(0x1.62e42ep+6f)) && gb_exp(0x1.62e430p+6f) == INFINITY);
    for (float x = -87.0f; x <= 87.0f; x += 0x1.8p-10f)
        assert_true(gb_float_bits(gb_exp(x)) == gb_float_bits(gb_exp_in_range(x)));
}

static void test_log(void **state) {
    (void)state;
    double largest = 0.0;
    for (uint64_t bits = 1; bits < 0x7f800000; bits += PATTERN_STEP) {
        const float x = gb_float_from_bits((uint32_t)bits);
        largest = fmax(largest, error_in_ulp(gb_log(x), log((double)x)));
        assert_true(isnan(gb_log(-x)));
    }
    assert_true(largest <= 0.87);
    assert_true(gb_log(1.0f) == 0.0f && gb_log(INFINITY) == INFINITY && isnan(gb_log(NAN)));
    assert_true(gb_log(0.0f) == -INFINITY && gb_log(-0.0f) == -INFINITY && isnan(gb_log(-INFINITY)));
    assert_true(gb_log(0x1p-149f) == (float)log(0x1p-149));
}

static void test_tanh(void **state) {
    (void)state;
    double largest = 0.0;
    for (uint64_t bits = 0; bits < 0x7f800000; bits += PATTERN_STEP) {
        const float x = gb_float_from_bits((uint32_t)bits);
        const float y = gb_tanh(x);
        largest = fmax(largest, error_in_ulp(y, tanh((double)x)));
        assert_true(y <= 1.0f);
        assert_true(gb_float_bits(gb_tanh(-x)) == gb_float_bits(-y));
    }
    assert_true(largest <= 1.34);
    assert_true(gb_tanh(INFINITY) == 1.0f && gb_tanh(-INFINITY) == -1.0f && isnan(gb_tanh(NAN)));
    assert_true(gb_float_bits(gb_tanh(-0.0f)) == 0x80000000);
}

static void test_sin_cos(void **state) {
    (void)state;
    double largest = 0.0;
    for (uint64_t bits = 0; bits <= 0x49800000; bits += PATTERN_STEP / 4) {
        const float x = gb_float_from_bits((uint32_t)bits);
        float sine, cosine, sine_of_minus, cosine_of_minus;
        gb_sin_cos(x, &sine, &cosine);
        gb_sin_cos(-x, &sine_of_minus, &cosine_of_minus);
        largest = fmax(largest, error_in_ulp(sine, sin((double)x)));
        largest = fmax(largest, error_in_ulp(cosine, cos((double)x)));
        assert_true(sine_of_minus == -sine && cosine_of_minus == cosine);
    }
    assert_true(largest <= 0.501);
    float sine, cosine;
    gb_sin_cos(0.0f, &sine, &cosine);
    assert_true(sine == 0.0f && cosine == 1.0f);
    gb_sin_cos(NAN, &sine, &cosine);
    assert_true(isnan(sine) && isnan(cosine));
    gb_sin_cos(INFINITY, &sine, &cosine);
    gb_sin_cos(3e38f, &sine, &cosine);
}

/* One call at a time and a loop that the compiler may vectorize give the same bits. */
static void test_vectorized_loops(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static float x[COUNT], by_loop[4][COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        x[i] = gb_float_from_bits(i * 2654435761u);
    for (uint32_t i = 0; i < COUNT; i++)
        by_loop[0][i] = gb_exp(x[i]);
    for (uint32_t i = 0; i < COUNT; i++)
        by_loop[1][i] = gb_log(x[i]);
    for (uint32_t i = 0; i < COUNT; i++)
        by_loop[2][i] = gb_tanh(x[i]);
    for (uint32_t i = 0; i < COUNT; i++) {
        const volatile float one = x[i];
        const float expected[3] = {gb_exp(one), gb_log(one), gb_tanh(one)};
        for (int f = 0; f < 3; f++) {
            const bool both_nan = isnan(expected[f]) && isnan(by_loop[f][i]);
            assert_true(both_nan || gb_float_bits(expected[f]) == gb_float_bits(by_loop[f][i]));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_tanh),
        cmocka_unit_test(test_sin_cos),
        cmocka_unit_test(test_vectorized_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
