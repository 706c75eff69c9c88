/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions between 16-bit floats and float32, over all 65536 halves; the way down also at every midpoint
 * between two halves and the float32 on either side of it, where rounding is decided.
 */
#include "tensor/convert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

/* The meaning of sign, exponent and fraction bits, in double (IEEE 754-2019, 3.4). */
static double meaning(uint32_t bits, int exponent_bits, int fraction_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    double fraction = (double)(bits & ((1u << fraction_bits) - 1)) / (double)(1u << fraction_bits);
    double sign = bits >> (exponent_bits + fraction_bits) & 1 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return fraction != 0 ? NAN : sign * INFINITY;
    return exponent == 0 ? sign * ldexp(fraction, 1 - bias) : sign * ldexp(1 + fraction, exponent - bias);
}

static bool same(double expected, float found) {
    if (isnan(expected))
        return isnan(found);
    return expected == (double)found && !signbit(expected) == !signbit(found);
}

typedef struct half_format {
    int exponent_bits, fraction_bits;
    float (*widen)(uint16_t half);
    uint16_t (*narrow)(float value);
} half_format;

static float widen_f16(uint16_t half) {
    return gb_float_from_f16(half);
}

static float widen_bf16(uint16_t half) {
    return gb_float_from_bf16(half);
}

static uint16_t narrow_bf16(float value) {
    return gb_bf16_from_float(value);
}

static const half_format formats[] = {{5, 10, widen_f16, gb_f16_from_float}, {8, 7, widen_bf16, narrow_bf16}};

static void every_half_widens_exactly(void **state) {
    (void)state;
    for (int f = 0; f < 2; f++) {
        for (uint32_t half = 0; half <= 0xffff; half++) {
            float found = formats[f].widen((uint16_t)half);
            if (!same(meaning(half, formats[f].exponent_bits, formats[f].fraction_bits), found))
                fail_msg("format %d, half %04x: %a", f, half, (double)found);
        }
    }
}

static void every_half_comes_back(void **state) {
    (void)state;
    for (int f = 0; f < 2; f++) {
        for (uint32_t half = 0; half <= 0xffff; half++) {
            float value = formats[f].widen((uint16_t)half);
            uint16_t again = formats[f].narrow(value);
            if (isnan(value))
                assert_true(isnan(formats[f].widen(again)) && (again ^ half) < 0x8000);
            else
                assert_int_equal(again, half);
        }
    }
}

/* Checks that value narrows to expected, with either sign. */
static void assert_narrows(const half_format *format, float value, uint32_t expected) {
    if (format->narrow(value) != expected || format->narrow(-value) != (expected | 0x8000))
        fail_msg("%a gives %04x, expected %04x", (double)value, format->narrow(value), expected);
}

static void midpoints_round_to_even(void **state) {
    (void)state;
    for (int f = 0; f < 2; f++) {
        uint32_t infinity = ((1u << formats[f].exponent_bits) - 1) << formats[f].fraction_bits;
        for (uint32_t half = 0; half < infinity; half++) {
            double low = meaning(half, formats[f].exponent_bits, formats[f].fraction_bits);
            /* Above the largest half stands what would follow if the exponents went on. */
            double high =
                half + 1 == infinity
                    ? low + (low - meaning(half - 1, formats[f].exponent_bits, formats[f].fraction_bits))
                    : meaning(half + 1, formats[f].exponent_bits, formats[f].fraction_bits);
            double middle = (low + high) / 2;
            float exact = (float)middle;
            if ((double)exact != middle) /* bf16's subnormals have float32's smallest step */
                continue;
            assert_narrows(&formats[f], exact, half + (half & 1));
            assert_narrows(&formats[f], nextafterf(exact, 0), half);
            assert_narrows(&formats[f], nextafterf(exact, INFINITY), half + 1);
        }
    }
}

static void nans_stay_nans(void **state) {
    (void)state;
    static const uint32_t nans[] = {0x7f800001, 0x7fc00000, 0x7fffffff, 0x7f80ffff, 0xff800001, 0xffffffff};
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
        float value = gb_float_from_bits(nans[i]);
        assert_true(isnan(gb_float_from_f16(gb_f16_from_float(value))));
        assert_true(isnan(gb_float_from_bf16(gb_bf16_from_float(value))));
        assert_int_equal(gb_bf16_from_float(value) >> 15, nans[i] >> 31);
        assert_int_equal(gb_f16_from_float(value) >> 15, nans[i] >> 31);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_widens_exactly),
        cmocka_unit_test(every_half_comes_back),
        cmocka_unit_test(midpoints_round_to_even),
        cmocka_unit_test(nans_stay_nans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
